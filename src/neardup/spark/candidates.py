"""Pairs of rows, each once, however often they come."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.kernels.bounds import smallest_partner
from neardup.kernels.counts import NO_CELLS, prefix_rooms, prefixes
from neardup.kernels.prefixes import Sets, index_lengths, meet_in_runs, sort_runs
from neardup.recipe.measures import Rule
from neardup.search.lsh import Bands, keys_of
from neardup.spark.features import (
    CELLS,
    ENTRIES,
    PAIRS,
    TOLD,
    Held,
    Outbox,
    Shared,
    Table,
    blob_batch,
    blobs_of,
    held,
    joined,
    pack,
    place_of,
    unpack,
)

Integers = npt.NDArray[np.int64]

#: A pair: the rows of the smaller and of the larger set.
PAIR = ("<i8", "<i8")
#: So many pairs may wait before those that came again are thrown out.
_WAITING = 1 << 22


def distinct(left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return pairs in order, each once."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    fresh = np.ones(len(left), np.bool_)
    fresh[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return left[fresh], right[fresh]


class Gathered:
    """Pairs that come in pieces, near copies once for each run of keys that they share: that takes no room."""

    def __init__(self) -> None:
        self._left, self._right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self._known = self._waiting = 0

    def add(self, left: Integers, right: Integers) -> None:
        """Take some pairs."""
        self._left.append(left)
        self._right.append(right)
        self._waiting += len(left)
        if self._waiting > max(_WAITING, self._known):
            self.all()

    def all(self) -> tuple[Integers, Integers]:
        """Return all pairs so far, in order, each once."""
        left, right = distinct(np.concatenate(self._left), np.concatenate(self._right))
        self._left, self._right = [left], [right]
        self._known, self._waiting = len(left), 0
        return left, right


Words = npt.NDArray[np.uint64]

#: An entry: key, size (negative for a set of the second side, where there are two), how many shared features stand at
#: the key's place or behind it (negative where the set only looks for smaller ones at that key), row, and the key
#: before it, 0 for none.
ENTRY = ("<u8", "<i4", "<i4", "<i8", "<u8")
#: Sets whose entries are made in one go.
_AT_A_TIME = 4096


class Entries(NamedTuple):
    """The entries of some sets, arrays of one length as in ``ENTRY``."""

    keys: Words
    sizes: npt.NDArray[np.int32]
    rests: npt.NDArray[np.int32]
    rows: Integers
    befores: Words


def prefix_batches(
    rule: Rule, bits: int, counts: Shared[Table], labels: npt.NDArray[np.int32], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of sets by their rare-first prefixes; in a worker.

    Parameters
    ----------
    rule : Rule
        The measure and its threshold.
    bits : int
        The table of counts has 2**bits slots.
    counts : Shared
        The table.
    labels : int32[n]
        Of the partitions where equal keys meet.
    batches : iterator
        row, features.
    """
    table, shift = counts.value, np.uint64(64 - bits)
    yield from _sent(batches, labels, lambda sets: _by_prefix(sets, rule, shift, table))


def band_batches(
    plan: Bands, seed: int, labels: npt.NDArray[np.int32], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yield the entries of sets by the bands of their sketches; in a worker. Parameters as in ``lsh.keys_of``."""
    yield from _sent(batches, labels, lambda sets: _by_band(sets, plan, seed))


def _sent(
    batches: Iterator[pa.RecordBatch], labels: npt.NDArray[np.int32], entries_of: Any
) -> Iterator[pa.RecordBatch]:
    outbox, able, count = Outbox(labels, ENTRIES), 0, 0
    for batch, second in _sides(batches):
        for begin in range(0, batch.num_rows, _AT_A_TIME):
            sets = held(batch.slice(begin, _AT_A_TIME))
            some, entries = entries_of(sets)
            able += some
            count += len(entries.keys)
            own = entries._replace(sizes=-entries.sizes) if second else entries
            yield from outbox.add(place_of(entries.keys, len(labels)), own)
    yield from outbox.flush()
    told = {"sets_with_enough_shared_features": able, "entries": count}
    yield blob_batch([(int(labels[0]), TOLD, json.dumps(told).encode())])


def _sides(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, bool]]:
    """Yield the sets of batches, and whether they are of the second side, which a column ``second`` says."""
    for batch in batches:
        if "second" not in batch.schema.names:
            yield batch, False
            continue
        second = batch.column("second")
        for side in (False, True):
            yield batch.filter(pc.equal(second, side)), side


def _by_prefix(sets: Held, rule: Rule, shift: np.uint64, table: Table) -> tuple[int, Entries]:
    count = len(sets.sizes)
    rooms = np.empty(count, np.int64)
    prefix_rooms(sets.sizes, rule, rooms)
    shared, lengths, starts = (np.empty(count, np.int64) for _ in range(3))
    bitmaps, keys = np.empty((count, 8), np.uint64), np.empty(int(rooms.sum()), np.uint64)
    results = shared, lengths, bitmaps, starts, keys, 0
    prefixes(sets.addresses, sets.sizes, np.arange(count), shift, table, shift, NO_CELLS, rule, results)
    able = np.flatnonzero(lengths > 0)
    shared, lengths, starts = shared[able], lengths[able], starts[able]
    found = Sets(sets.addresses[able], sets.sizes[able], shared, lengths, bitmaps[able], starts, keys)
    indexed = np.empty(len(able), np.int64)
    index_lengths(found, rule, indexed)
    # Prefixes lie one behind the other, so the keys in use are the first ones of the room.
    owner = np.repeat(np.arange(len(able)), lengths)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    rests = shared[owner] - place
    rests[place >= indexed[owner]] *= -1
    used = keys[starts[owner] + place]
    befores = np.where(place > 0, np.roll(used, 1), np.uint64(0))
    sizes = found.sizes[owner].astype("<i4")
    return len(able), Entries(used, sizes, rests.astype("<i4"), sets.rows[able][owner], befores)


def _by_band(sets: Held, plan: Bands, seed: int) -> tuple[int, Entries]:
    keys = keys_of((sets.features(), sets.sizes), plan, seed)
    rows, sizes = (np.repeat(array, plan.bands) for array in (sets.rows, sets.sizes.astype("<i4")))
    befores = np.zeros_like(keys)
    befores[:, 1:] = keys[:, :-1]
    return len(sets.sizes), Entries(keys.ravel(), sizes, sizes, rows, befores.ravel())


Array = npt.NDArray[Any]
Bools = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.int32]

#: An entry of a cell: size, rest, row, key before.
_CELL = ("<i4", "<i4", "<i8", "<u8")
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
        The labels of the partitions where candidates are verified: each goes to that of its first set.
    cells : int32[m]
        The labels of the partitions that take cells.
    sided : bool
        Whether only sets of different sides meet: those of the second one have negative sizes in their entries.
    """

    rule: Rule
    block: int
    homes: Labels
    cells: Labels
    sided: bool = False


class _Runs(NamedTuple):
    """Entries of equal keys as the kernel takes them: ``heads``, ``splits``, and (sizes, rests, rows, befores)."""

    heads: Integers
    splits: Integers
    entries: tuple[Array, Array, Array, Array]

    def chosen(self, runs: Bools) -> _Runs:
        """Return some of the runs."""
        lengths = np.diff(self.heads)
        entries = np.repeat(runs, lengths)
        sizes, rests, rows, befores = (array[entries] for array in self.entries)
        return _Runs(_heads(lengths[runs]), self.splits[runs], (sizes, rests, rows, befores))


def meet_batches(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield candidates and cells of the entries of a partition, and what was told; in a worker."""
    blobs = []
    for label, kind, data in blobs_of(batches):
        if kind == ENTRIES:
            blobs.append(data)
        else:
            yield blob_batch([(label, kind, data.to_pybytes())])
    keys, *entries = joined(blobs, ENTRY)
    blobs.clear()
    outbox, told = Outbox(plan.homes, PAIRS), _Told()
    second = entries[0] < 0
    np.abs(entries[0], out=entries[0])
    # Of two sets the smaller is looked for, which may be of either side.
    for sides in (second, ~second) if plan.sided else (None,):
        runs = _runs(keys, entries, sides)
        lengths = np.diff(runs.heads)
        told.longest = max(told.longest, int(lengths.max(initial=0)))
        long = lengths > plan.block
        for run in np.flatnonzero(long).tolist():
            part = slice(runs.heads[run], runs.heads[run + 1])
            yield from _cells(plan, tuple(a[part] for a in runs.entries), int(runs.splits[run]), told)
        yield from _met(plan, outbox, runs.chosen(~long), told)
    yield from outbox.flush()
    yield told.batch(plan)


def cell_batches(plan: Plan, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the candidates of cells; in a worker."""
    outbox, told = Outbox(plan.homes, PAIRS), _Told()
    for _, _, data in blobs_of(batches):
        split = np.frombuffer(data, "<i8", 1).astype(np.int64)
        sizes, rests, rows, befores = (array.copy() for array in unpack(data.slice(8), _CELL))
        runs = _Runs(np.array([0, len(rows)], np.int64), split, (sizes, rests, rows, befores))
        yield from _met(plan, outbox, runs, told)
    yield from outbox.flush()
    yield told.batch(plan)


class _Told:
    """What a worker counts."""

    def __init__(self) -> None:
        self.longest = self.candidates = self.cells = self.in_cells = 0

    def batch(self, plan: Plan) -> pa.RecordBatch:
        counts = {"longest_list": self.longest, "raw_candidates": self.candidates, "cells": self.cells}
        counts["pairs_in_cells"] = self.in_cells
        return blob_batch([(int(plan.homes[0]), TOLD, json.dumps(counts).encode())])


def _heads(lengths: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _runs(keys: Array, entries: list[Array], sides: Bools | None) -> _Runs:
    """Return the entries of keys that meet anything, by key, side and size.

    Parameters
    ----------
    keys : uint64[n]
        The key of each entry.
    entries : list of array
        Its size, rest, row, and key before.
    sides : bool[n] or None
        Where only sets of different sides meet, whether it comes behind the split.
    """
    order = np.argsort(keys) if sides is None else np.lexsort((sides, keys))
    lengths = _lengths(keys[order])
    # Most keys have one entry, which meets nothing.
    useful, splits = lengths > 1, np.zeros(len(lengths), np.int64)
    if sides is not None:
        splits = np.add.reduceat(~sides[order], _heads(lengths)[:-1], dtype=np.int64) if len(lengths) else splits
        useful = (splits > 0) & (splits < lengths)
    order = order[np.repeat(useful, lengths)]
    lengths, splits = lengths[useful], splits[useful]
    sizes, rests, rows, befores = (array[order] for array in entries)
    parts = lengths if sides is None else np.column_stack([splits, lengths - splits]).ravel()
    sort_runs(_heads(parts), sizes, rests, rows, befores)
    return _Runs(_heads(lengths), splits, (sizes, rests, rows, befores))


def _lengths(keys: Array) -> Integers:
    """Return how many equal keys follow each other."""
    ends = np.flatnonzero(np.concatenate([keys[1:] != keys[:-1], np.ones(min(len(keys), 1), np.bool_)])) + 1
    return np.diff(ends, prepend=0)


def _met(plan: Plan, outbox: Outbox, runs: _Runs, told: _Told) -> Iterator[pa.RecordBatch]:
    room = np.empty((max(int(np.diff(runs.heads).max(initial=0)), _ROOM), 2), np.int64)
    run = at = 0
    while run < len(runs.splits):
        run, at, written = meet_in_runs(run, at, runs.heads, runs.splits, *runs.entries, plan.rule, room)
        told.candidates += written
        left, right = room[:written].T
        if plan.sided:
            # Sets of one size look for each other.
            left, right = np.minimum(left, right), np.maximum(left, right)
        # A pair is found at several keys: here once is enough.
        left, right = distinct(left, right)
        yield from outbox.add(place_of(left, len(plan.homes)), [left, right])


def _cells(plan: Plan, entries: tuple[Array, ...], split: int, told: _Told) -> Iterator[pa.RecordBatch]:
    """Yield the cells of a long list, each as a blob: where its later entries begin or 0, then entries (``_CELL``)."""
    sizes, count, block = entries[0], len(entries[0]), plan.block
    for later in range(split, count, block):
        last = slice(later, min(later + block, count))
        low = smallest_partner(plan.rule, int(sizes[later]))
        for earlier in range(0, split or later + 1, block):
            first = slice(earlier, min(earlier + block, split or count))
            if int(sizes[first][-1]) < low or (split and int(sizes[earlier]) > int(sizes[last][-1])):
                continue
            parts = [last] if first == last else [first, last]
            own = 0 if first == last else first.stop - first.start
            blob = np.int64(own).tobytes() + pack(*(np.concatenate([a[p] for p in parts]) for a in entries))
            label = int(plan.cells[told.cells % len(plan.cells)])
            width = last.stop - last.start
            told.cells += 1
            told.in_cells += own * width or width * (width - 1) // 2
            yield blob_batch([(label, CELLS, blob)])
