"""Entries: the keys by which each set may meet its partners, as blobs for the workers where equal keys meet."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup._kernels.counting import prefix_rooms, prefixes
from neardup._kernels.matching import Sets, index_lengths
from neardup.measures import Rule
from neardup.search.lsh import Bands, keys_of
from neardup.spark.features import Held, held
from neardup.spark.packing import ENTRIES, TOLD, Outbox, blob_batch, place_of
from neardup.spark.sharing import Shared
from neardup.spark.tables import Table

Integers = npt.NDArray[np.int64]
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
    prefixes(sets.addresses, sets.sizes, np.arange(count), shift, table, rule, results)
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
