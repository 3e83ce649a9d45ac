"""Row groups that several threads encode make the file that one writer would have made, byte for byte."""

from __future__ import annotations

import datetime
import io
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.documents.parquet import ParquetGroups

ROWS = 400
TABLE = pa.table(
    {
        "id": list(range(ROWS)),
        "text": [f"text {row} é" * (row % 9) if row % 7 else None for row in range(ROWS)],
        "list": [[row, -2] if row % 3 else None for row in range(ROWS)],
        "struct": [{"a": row, "b": "ж" * (row % 5)} for row in range(ROWS)],
        "day": [datetime.date(2020, 1, 1 + row % 30) for row in range(ROWS)],
        "flag": [None if row % 11 == 0 else row % 2 == 0 for row in range(ROWS)],
        "number": [row / 3 for row in range(ROWS)],
        "nothing": pa.nulls(ROWS, pa.int32()),
    }
).replace_schema_metadata({"written by": "a test"})
OPTIONS: list[dict[str, Any]] = [
    {"compression": "zstd", "use_dictionary": ["id"], "write_statistics": ["id"]},
    {"compression": "none"},
    {"compression": "snappy", "use_dictionary": False},
]


def by_one_writer(parts: list[pa.Table], options: dict[str, Any]) -> bytes:
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, TABLE.schema, **options) as writer:
        for part in parts:
            writer.write_table(part, row_group_size=part.num_rows)
    return buffer.getvalue()


def by_threads(parts: list[pa.Table], options: dict[str, Any], threads: int, weight: int = 1) -> bytes:
    buffer = io.BytesIO()
    groups = ParquetGroups(buffer, TABLE.schema, threads=threads, **options)
    for part in parts:
        groups.write(part.combine_chunks, part.nbytes * weight)
    groups.finish()
    return buffer.getvalue()


@settings(deadline=None, max_examples=40)
@given(
    cuts=st.sets(st.integers(1, ROWS - 1), max_size=30),
    options=st.sampled_from(OPTIONS),
    threads=st.integers(1, 5),
    weight=st.sampled_from([1, 1000, 1 << 30]),
)
def test_any_number_of_threads_gives_the_bytes_of_one_writer(
    cuts: set[int], options: dict[str, Any], threads: int, weight: int
) -> None:
    bounds = [0, *sorted(cuts), ROWS]
    parts = [TABLE.slice(begin, end - begin) for begin, end in pairwise(bounds)]
    written = by_threads(parts, options, threads, weight)
    assert written == by_one_writer(parts, options)
    assert pq.read_table(io.BytesIO(written)).equals(TABLE)


def test_a_file_without_rows_has_its_columns() -> None:
    written = by_threads([], OPTIONS[0], 2)
    assert written == by_one_writer([], OPTIONS[0])
    assert pq.read_table(io.BytesIO(written)).schema.names == TABLE.schema.names


def test_what_a_thread_cannot_make_is_raised() -> None:
    def fails() -> pa.Table:
        raise OSError("no room")

    groups = ParquetGroups(io.BytesIO(), TABLE.schema, threads=2)
    groups.write(fails, 1)
    with pytest.raises(OSError, match="no room"):
        groups.finish()
