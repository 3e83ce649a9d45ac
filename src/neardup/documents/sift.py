"""Parts -> batches of good documents: what every format has in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents.parts import NO_ID, NO_TEXT, NOT_UTF8, TOO_LONG, Broken, Part, Wanted
from neardup.documents.values import as_bytes, as_strings, lengths_of, not_utf8, utf8_fault

SMALLEST = 8 << 20
LARGEST = 16 << 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents in reading order.

    Parameters
    ----------
    texts : pa.LargeStringArray
        Valid UTF-8 without nulls, array offset 0; 8 to 16 MiB of text save at the end and for single
        documents that are larger.
    rows : np.ndarray
        int64 raw row of each document, ascending: counted from 0 over all inputs, broken records too.
    ids : pa.Array or None
        int64 or large_string; None when there is no id column.
    order : pa.Array or None
        Values of the order column, possibly null; None when none was asked for.
    consumed : int
        Bytes of the inputs on disk that were read since the batch before.
    """

    texts: Any
    rows: np.ndarray
    ids: Any
    order: Any
    consumed: int


def sift(part: Part, wanted: Wanted, first: int) -> tuple[Batch, list[Broken]]:
    """Split a part into its good documents and its broken records, the latter with rows of the part.

    Parameters
    ----------
    part : Part
        What a reader handed over.
    wanted : Wanted
        The columns and the largest document allowed.
    first : int
        Raw row of the part's first row.
    """
    binary = as_bytes(part.texts)
    positions = np.arange(part.rows, dtype=np.int64) if part.positions is None else part.positions
    faults = _faults(part, binary, wanted)
    ids, order = part.ids, part.order
    broken = list(part.broken)
    if faults:
        for item, (reason, detail) in faults.items():
            broken.append(_located(part, int(positions[item]), reason, detail))
        good = np.ones(len(binary), dtype=bool)
        good[list(faults)] = False
        mask = pa.array(good)
        binary, positions = binary.filter(mask), positions[good]
        ids = None if ids is None else ids.filter(mask)
        order = None if order is None else order.filter(mask)
    if ids is not None and not pa.types.is_integer(ids.type):
        ids = as_strings(as_bytes(ids))
    if order is not None and pa.types.is_dictionary(order.type):
        order = order.dictionary_decode()
    broken.sort(key=lambda fault: fault.row)
    return Batch(as_strings(binary), positions + first, ids, order, part.consumed), broken


def _faults(part: Part, binary: Any, wanted: Wanted) -> dict[int, tuple[str, str]]:
    """Item -> reason and detail; the first reason that holds counts."""
    faults: dict[int, tuple[str, str]] = {}
    if binary.null_count:
        for item in _nulls(binary):
            faults[item] = (NO_TEXT, "")
    if not pa.types.is_large_string(part.texts.type):
        for item in not_utf8(binary).tolist():
            fault = utf8_fault(binary[item].as_py())
            faults.setdefault(item, (NOT_UTF8, f"byte {fault} of the text"))
    if wanted.max_document is not None:
        lengths = lengths_of(binary)
        for item in np.flatnonzero(lengths > wanted.max_document).tolist():
            detail = f"{lengths[item]} bytes, {wanted.max_document} allowed"
            faults.setdefault(item, (TOO_LONG, detail))
    if part.ids is not None:
        if part.ids.null_count:
            for item in _nulls(part.ids):
                faults.setdefault(item, (NO_ID, ""))
        if pa.types.is_large_binary(part.ids.type):
            for item in not_utf8(part.ids).tolist():
                faults.setdefault(item, (NOT_UTF8, "in the id"))
    return faults


def _nulls(array: Any) -> list[int]:
    nulls: list[int] = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()
    return nulls


def _located(part: Part, row: int, reason: str, detail: str) -> Broken:
    if part.locate is None:
        return Broken(row, reason, detail=detail)
    line, record = part.locate(row)
    return Broken(row, reason, 1, line, detail, record)


def sized(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Join small batches and cut large ones, without copying where one is as it should be."""
    pending: list[Batch] = []
    size = 0
    for batch in batches:
        if pending and not _alike(pending[0], batch):
            yield from _cut(_joined(pending))
            pending, size = [], 0
        pending.append(batch)
        size += int(lengths_of(batch.texts).sum())
        if size >= SMALLEST:
            yield from _cut(_joined(pending))
            pending, size = [], 0
    if pending:
        yield from _cut(_joined(pending))


def _alike(one: Batch, other: Batch) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or a.type == b.type)
        for a, b in ((one.ids, other.ids), (one.order, other.order))
    )


def _joined(batches: list[Batch]) -> Batch:
    filled = [batch for batch in batches if len(batch.texts)] or batches[:1]
    consumed = sum(batch.consumed for batch in batches)
    if len(filled) == 1:
        one = filled[0]
        return Batch(one.texts, one.rows, one.ids, one.order, consumed)
    texts = pa.concat_arrays([batch.texts for batch in filled])
    rows = np.concatenate([batch.rows for batch in filled])
    ids = None if filled[0].ids is None else pa.concat_arrays([batch.ids for batch in filled])
    order = None if filled[0].order is None else pa.concat_arrays([batch.order for batch in filled])
    return Batch(texts, rows, ids, order, consumed)


def _cut(batch: Batch) -> Iterator[Batch]:
    """Cut into batches of at most the largest size, or of one document."""
    ends = np.cumsum(lengths_of(batch.texts))
    start, consumed = 0, batch.consumed
    while start < len(batch.texts):
        base = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, base + LARGEST, side="right")))
        yield Batch(
            as_strings(as_bytes(batch.texts.slice(start, stop - start))),
            batch.rows[start:stop],
            None if batch.ids is None else batch.ids.slice(start, stop - start),
            None if batch.order is None else batch.order.slice(start, stop - start),
            consumed,
        )
        start, consumed = stop, 0
