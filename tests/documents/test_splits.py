"""Files divided into tasks: rows, lines and faults are those of the file that is read whole."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from input_files import compress, encode_rows, write_damaged_group

from neardup.documents import open_corpus
from neardup.documents import streams as streams_module
from neardup.documents.records import Reason, RecordFault
from neardup.documents.tasks import Task, TaskReader, shift_fault, tasks_of

BOM = b"\xef\xbb\xbf"


class Records(NamedTuple):
    """What is read of an input."""

    documents: list[tuple[int, str, str, Any]]
    faults: list[RecordFault]
    rows: int


def read_tasks(path: Path, size: int | None, **options: Any) -> tuple[Records, list[Task]]:
    """Read the tasks of a file, one after the other."""
    documents: list[tuple[int, str, str, Any]] = []
    faults: list[RecordFault] = []
    rows = lines = 0
    with open_corpus([str(path)], allow_torn=True, **options) as corpus:
        tasks = tasks_of(corpus.sources, size)
        for task in tasks:
            reading = TaskReader(task, corpus.read_options, str(path.parent))
            for batch in reading.batches():
                nulls = pa.nulls(len(batch.rows), pa.string())
                columns = [nulls if column is None else column.cast(pa.string()) for column in (batch.ids, batch.order)]
                places = (batch.rows + rows).tolist()
                documents += zip(places, *(column.to_pylist() for column in (batch.texts, *columns)), strict=True)
            faults += [shift_fault(fault, rows, lines) for fault in reading.faults]
            rows, lines = rows + reading.rows, lines + reading.lines
    return Records(documents, faults, rows), tasks


def read_whole(path: Path, **options: Any) -> tuple[list[tuple[int, str]], list[str], int]:
    """Read a file as a corpus."""
    with open_corpus([str(path)], allow_torn=True, **options) as corpus:
        found = [
            (int(row), text)
            for batch in corpus.scan()
            for row, text in zip(batch.rows, batch.texts.to_pylist(), strict=True)
        ]
        return found, [str(example) for example in corpus.rejected.examples], corpus.raw_rows


def json_object(text: str, key: int | str) -> bytes:
    return json.dumps({"id": key, "text": text, "when": "2025"}, ensure_ascii=False).encode()


LINES = st.one_of(
    st.builds(
        json_object, st.text(st.characters(exclude_categories=["Cs"]), max_size=6), st.integers(0, 9) | st.just("x")
    ),
    st.sampled_from(
        [
            *(b"", b" \t", b"\r", b"not json", b"[1]", b'{"id": 1}', b'{"text": 5}', b'{"text": "\xff", "id": 2}'),
            *(b'{"text": null}', b'{"text": "\xe9\x9b\xaa", "id": 3, "when": 1}  ', b"\xe9", b'{"text": "a\\ud800"}'),
        ]
    ),
)


@given(st.lists(LINES, min_size=1, max_size=14), st.booleans(), st.booleans(), st.booleans(), st.integers(1, 90))
@example([json_object("雪" * 30, 1)] * 3, True, False, True, 1)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_division_of_json_lines_gives_the_records_of_the_whole_file(
    tmp_path: Path, lines: list[bytes], mark: bool, returns: bool, ended: bool, size: int
) -> None:
    end = b"\r\n" if returns else b"\n"
    data = (BOM if mark else b"") + json_object("first", 0) + end + end.join(lines) + (end if ended else b"")
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    whole, [task] = read_tasks(path, len(data), order_column="when")
    assert task.span is None
    parts, tasks = read_tasks(path, size, order_column="when")
    assert parts == whole
    assert [task.span for task in tasks] == (
        [*pairwise([*range(0, len(data), size), len(data)])] if tasks[1:] else [None]
    )
    documents, examples, rows = read_whole(path, order_column="when")
    assert ([document[:2] for document in parts.documents], parts.rows) == (documents, rows)
    assert len(examples) == min(len(parts.faults), 5)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6), st.integers(1, 4000))
@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_division_of_row_groups_gives_the_records_of_the_whole_file(
    tmp_path: Path, groups: list[int], size: int
) -> None:
    path, number = tmp_path / "in.parquet", 0
    with pq.ParquetWriter(path, pa.schema({"id": pa.int64(), "text": pa.string()})) as writer:
        for rows in groups:
            places = range(number, number + rows)
            texts = [None if place % 5 == 3 else f"text {place} 雪" for place in places]
            writer.write_table(pa.table({"id": pa.array(places, pa.int64()), "text": pa.array(texts, pa.string())}))
            number += rows
    whole, [task] = read_tasks(path, 1 << 30)
    assert task.span is None
    parts, tasks = read_tasks(path, size)
    assert parts == whole
    spans = [task.span or (0, len(groups)) for task in tasks]
    assert [place for begin, end in spans for place in range(begin, end)] == list(range(len(groups)))
    assert read_whole(path)[0] == [document[:2] for document in parts.documents]


def test_a_damaged_row_group_is_reported_with_its_number_and_rows(tmp_path: Path) -> None:
    write_damaged_group(tmp_path / "in.parquet")
    whole, _ = read_tasks(tmp_path / "in.parquet", 1 << 30)
    parts, tasks = read_tasks(tmp_path / "in.parquet", 1)
    assert (len(tasks), parts) == (3, whole)
    assert parts.faults[1].detail.startswith("row group 1, rows 100-199: ")


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.parquet.gz", "a.csv", "a.arrow"])
def test_files_that_cannot_be_divided_are_one_task(tmp_path: Path, name: str) -> None:
    rows = [{"id": number, "text": f"text {number}\nof two lines"} for number in range(40)]
    suffix, codec = Path(name).suffixes[0], "".join(Path(name).suffixes[1:])
    (tmp_path / name).write_bytes(compress(encode_rows(rows, suffix, group=10), codec))
    parts, [task] = read_tasks(tmp_path / name, 16)
    assert task.span is None
    assert parts.rows == 40


def test_a_record_that_is_too_long_is_rejected_with_its_line_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams_module, "LARGEST_RECORD", 1000)
    monkeypatch.setattr(streams_module, "BLOCK", 256)
    path = tmp_path / "in.jsonl"
    lines = [json_object("x", number) for number in range(40)]
    lines[30:30] = [b'{"text": "' + b"y" * 4000 + b'"}']
    path.write_bytes(b"\n".join([*lines, b'{"text": "' + b"y" * 4000]))
    for size in (1 << 20, 512, 100):
        parts, _ = read_tasks(path, size)
        found = [(fault.row, fault.line, fault.reason, fault.detail) for fault in parts.faults]
        assert found == [
            (30, 31, Reason.TOO_LONG, "a record of 4013 bytes, 1000 allowed"),
            (41, 42, Reason.TOO_LONG, "a record of 4010 bytes, 1000 allowed"),
        ]
        assert len(parts.documents) == 40
