"""Rows of a data frame to documents in order: what cannot be one is set aside with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.values import is_text_type
from neardup.spark.streaming.tables import packed, unpacked
from neardup.times import times_of

#: now: the time of the micro-batch in microseconds since 1970; data: documents as a blob.
BLOB_COLUMNS = "now bigint, data binary"
NO_ID, NO_TEXT, NO_TIME, NOT_UTF8 = "no id", "no text", "no readable time", "not valid UTF-8"
_COLUMNS = ("id", "text", "title", "origin")
_ORDER = "order_"


def blobs_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of rows as blobs; in a worker.

    The columns are now, id and text, and where there are some time, title, origin, aside (why a row is none), and
    order_0, order_1 ...: what says which document is earlier.
    """
    for batch in batches:
        if batch.num_rows:
            now, data = batch.column("now")[0].as_py(), packed(documents_of(batch))
            yield pa.RecordBatch.from_arrays(
                [pa.array([now], pa.int64()), pa.array([data], pa.binary())], ["now", "data"]
            )


def documents_of(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the documents of some rows: id, text, title, origin, time (microseconds or null), aside, and the order."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    count = batch.num_rows
    nothing = pa.nulls(count, pa.large_string())
    columns: dict[str, pa.Array] = {}
    aside = strings_of(given["aside"])[0].to_pylist() if "aside" in given else [None] * count
    for name in _COLUMNS:
        column, broken = strings_of(given[name]) if name in given else (nothing, _none(count))
        missing = _mask(column.is_null()) & ~broken
        if name in ("id", "text"):
            _note(aside, missing, NO_ID if name == "id" else NO_TEXT)
            _note(aside, broken, NOT_UTF8)
        columns[name] = column if name == "id" else column.fill_null("")
    columns["time"] = pa.nulls(count, pa.int64())
    if "time" in given:
        times, readable = times_of(given["time"])
        # Where items may come without a time, they are of the time of the micro-batch.
        if "aside" not in given:
            _note(aside, ~readable, NO_TIME)
        columns["time"] = pa.array(times, mask=~readable)
    columns["aside"] = pa.array(aside, pa.large_string())
    columns |= {name: column for name, column in given.items() if name.startswith(_ORDER)}
    return pa.RecordBatch.from_pydict(columns)


def strings_of(values: Any) -> tuple[pa.LargeStringArray, npt.NDArray[np.bool_]]:
    """Return a column as texts, and which of them are not valid UTF-8: those are null."""
    if not is_text_type(values.type):
        return values.cast(pa.large_string()), _none(len(values))
    raw = values.cast(pa.large_binary())
    try:
        return raw.cast(pa.large_string()), _none(len(values))
    except pa.ArrowInvalid:
        found = [_decoded(value) for value in raw.to_pylist()]
        text = pa.array(found, pa.large_string())
        return text, _mask(text.is_null()) & ~_mask(raw.is_null())


def in_order(blobs: Sequence[bytes], now: int) -> tuple[pa.Table, pa.Table]:
    """Return the documents of a micro-batch, the earliest first, and what was set aside.

    Parameters
    ----------
    blobs : sequence of bytes
        Of ``blobs_of``, in any order.
    now : int
        The time of documents without one, in microseconds since 1970.
    """
    table = unpacked(blobs)
    table = table.append_column("moment", table["time"].fill_null(now))
    given = [name for name in table.column_names if name.startswith(_ORDER)]
    # At last by all there is, so that only documents that are equal in everything could change places.
    by = dict.fromkeys([*(given or ["moment"]), "id", "text", "title", "origin", "moment"])
    keys = [(name, "ascending") for name in by]
    table = table.take(pc.sort_indices(table, sort_keys=keys))
    aside = pc.is_valid(table["aside"])
    return table.filter(pc.invert(aside)), table.filter(aside)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _note(aside: list[str | None], mask: npt.NDArray[np.bool_], reason: str) -> None:
    for i in np.flatnonzero(mask).tolist():
        aside[i] = aside[i] or reason


def _mask(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _none(count: int) -> npt.NDArray[np.bool_]:
    return np.zeros(count, np.bool_)
