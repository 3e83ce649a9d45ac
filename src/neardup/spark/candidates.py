"""Candidates: entries of one key meet, and the pairs that the bounds allow are listed.

Lists longer than a block are not looked at by the worker that has them: it cuts them into blocks of entries of like
size, and each two blocks that may hold partners become a cell of its own, which any worker can take. So no list is too
long, and none is cut short.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.bounds import smallest_partner
from neardup._kernels.keyed import meet_in_runs, sort_runs
from neardup.measures import Rule
from neardup.spark.packing import (
    CELLS,
    ENTRIES,
    PAIRS,
    TOLD,
    Outbox,
    blob_batch,
    blobs_of,
    joined,
    pack,
    place_of,
    unpack,
)
from neardup.spark.pairlists import distinct
from neardup.spark.prefixes import ENTRY

Integers = npt.NDArray[np.int64]
Labels = npt.NDArray[np.int32]

#: An entry of a cell: row, size, rest, key before.
_CELL = ("<i8", "<i4", "<i4", "<u8")
#: Room for pairs in one call of the kernel, at least.
_ROOM = 1 << 21


class Plan(NamedTuple):
    """How candidates are listed.

    Attributes
    ----------
    rule : Rule
        The measure and its threshold.
    block : int
        Lists longer than this are cut into blocks of this length.
    homes : int32[n]
        The labels of the partitions where candidates are verified: each goes to that of its smaller set.
    cells : int32[m]
        The labels of the partitions that take cells.
    """

    rule: Rule
    block: int
    homes: Labels
    cells: Labels


def meet_batches(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield candidates and cells of the entries of a partition, and what was told; in a worker."""
    blobs = []
    for label, kind, data in blobs_of(batches):
        if kind == ENTRIES:
            blobs.append(data)
        else:
            yield blob_batch([(label, kind, data.to_pybytes())])
    keys, rows, sizes, rests, befores = joined(blobs, ENTRY)
    blobs.clear()
    order = np.argsort(keys)
    keys = keys[order]
    ends = np.flatnonzero(np.concatenate([keys[1:] != keys[:-1], np.ones(min(len(keys), 1), np.bool_)])) + 1
    lengths = np.diff(ends, prepend=0)
    several = lengths > 1
    # Most keys have one entry, which meets nothing.
    order = order[np.repeat(several, lengths)]
    lengths = lengths[several]
    heads = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows, sizes, rests, befores = rows[order], sizes[order], rests[order], befores[order]
    sort_runs(heads, sizes, rests, rows, befores)
    outbox, told = Outbox(plan.homes, PAIRS), _Told(int(lengths.max(initial=0)))
    long = np.flatnonzero(lengths > plan.block)
    for run in long.tolist():
        part = slice(heads[run], heads[run + 1])
        yield from _cells(plan, (rows[part], sizes[part], rests[part], befores[part]), told)
    kept = np.repeat(lengths <= plan.block, lengths)
    heads = np.concatenate([[0], np.cumsum(lengths[lengths <= plan.block])]).astype(np.int64)
    yield from _met(plan, outbox, heads, 0, (sizes[kept], rests[kept], rows[kept], befores[kept]), told)
    yield from outbox.flush()
    yield told.batch(plan)


def cell_batches(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the candidates of cells; in a worker."""
    outbox, told = Outbox(plan.homes, PAIRS), _Told(0)
    for _, _, data in blobs_of(batches):
        split = int(np.frombuffer(data, "<i8", 1)[0])
        rows, sizes, rests, befores = (array.copy() for array in unpack(data.slice(8), _CELL))
        heads = np.array([0, len(rows)], np.int64)
        yield from _met(plan, outbox, heads, split, (sizes, rests, rows, befores), told)
    yield from outbox.flush()
    yield told.batch(plan)


class _Told:
    """What a worker counts."""

    def __init__(self, longest: int) -> None:
        self.longest, self.candidates, self.cells = longest, 0, 0

    def batch(self, plan: Plan) -> pa.RecordBatch:
        counts = {"longest_list": self.longest, "raw_candidates": self.candidates, "cells": self.cells}
        return blob_batch([(int(plan.homes[0]), TOLD, json.dumps(counts).encode())])


def _met(
    plan: Plan, outbox: Outbox, heads: Integers, split: int, entries: tuple[Any, ...], told: _Told
) -> Iterator[pa.RecordBatch]:
    room = np.empty((max(int(np.diff(heads).max(initial=0)), _ROOM), 2), np.int64)
    run = at = 0
    while run < len(heads) - 1:
        run, at, written = meet_in_runs(run, at, heads, split, *entries, plan.rule, room)
        told.candidates += written
        # A pair is found at each key that it shares: here once is enough.
        left, right = distinct(*room[:written].T)
        yield from outbox.add(place_of(left, len(plan.homes)), [left, right])


def _cells(plan: Plan, entries: tuple[Any, ...], told: _Told) -> Iterator[pa.RecordBatch]:
    """Yield the cells of a long list, each as a blob: where its later entries begin or 0, then entries (``_CELL``)."""
    rows, sizes = entries[:2]
    starts = list(range(0, len(rows), plan.block))
    for later in starts:
        last = slice(later, later + plan.block)
        low = smallest_partner(plan.rule, int(sizes[later]))
        for earlier in starts:
            first = slice(earlier, earlier + plan.block)
            if earlier > later or int(sizes[first][-1]) < low:
                continue
            parts = [last] if earlier == later else [first, last]
            split = np.array([0 if earlier == later else plan.block], "<i8")
            blob = split.tobytes() + pack(*(np.concatenate([a[p] for p in parts]) for a in entries))
            label = int(plan.cells[told.cells % len(plan.cells)])
            told.cells += 1
            yield blob_batch([(label, CELLS, blob)])
