"""Items: what documents hold that pairs are looked at by (features, sketches, texts), sent where they are needed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.kernels.pairs import overlaps, sort_rows
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, reaching, similarities
from neardup.spark.candidates import PAIR, Gathered
from neardup.spark.features import (
    BLOB_BYTES,
    ITEMS,
    PAIRS,
    TOLD,
    Outbox,
    blob_batch,
    blobs_of,
    exchange,
    held,
    pack,
    place_of,
    unpack,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Integers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
#: Sets whose sketches are made in one go.
_AT_A_TIME = 1024
_NO_WEIGHTS = np.empty(0, np.int64)


class Items(NamedTuple):
    """Some documents and what they hold, in the order of their rows.

    Attributes
    ----------
    rows : int64[n]
        Which documents they are, ascending.
    heads : int64[n + 1]
        Where the bytes of each begin; they lie one behind the other.
    data : uint8[m]
        The bytes.
    """

    rows: Integers
    heads: Integers
    data: Bytes

    def places(self, rows: Integers) -> Integers:
        """Return where documents are among these, -1 for those that are not: int64[k]."""
        if not len(self.rows):
            return np.full(len(rows), -1, np.int64)
        at = np.minimum(np.searchsorted(self.rows, rows), len(self.rows) - 1)
        return np.where(self.rows[at] == rows, at, -1)

    def packed(self) -> bytes:
        """Return the items as a blob: how many, their rows, their lengths, their bytes."""
        return np.int64(len(self.rows)).tobytes() + pack(self.rows, np.diff(self.heads), self.data)


def unpacked(blob: pa.Buffer) -> Items:
    """Return the items of a blob, which they look into."""
    count = int(np.frombuffer(blob, "<i8", 1)[0])
    rows, lengths = unpack(blob.slice(8, 16 * count), ("<i8", "<i8"))
    heads = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Items(rows, heads, np.frombuffer(blob, np.uint8, int(heads[-1]), 8 + 16 * count))


def together(parts: Sequence[Items]) -> Items:
    """Return several parts as one, in the order of their rows."""
    rows = np.concatenate([np.empty(0, np.int64), *(part.rows for part in parts)])
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(part.heads) for part in parts)])
    data = np.concatenate([np.empty(0, np.uint8), *(part.data for part in parts)])
    heads = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return _reordered(Items(rows, heads, data), np.argsort(rows, kind="stable"))


def _reordered(items: Items, order: Integers) -> Items:
    """Return the same items in another order; the bytes of each move as one piece."""
    if (order[1:] > order[:-1]).all():
        return items
    array = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(items.rows), [None, pa.py_buffer(items.heads), pa.py_buffer(items.data)]
    ).take(pa.array(order))
    _, ends, moved = array.buffers()
    data = np.empty(0, np.uint8) if moved is None else np.frombuffer(moved, np.uint8).copy()
    return Items(items.rows[order], np.frombuffer(ends, np.int64)[: len(order) + 1].copy(), data)


def feature_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the features of sets, ascending, as blobs for the homes that need them; in a worker."""
    for batch in batches:
        sets, features = held(batch), held(batch).features()
        heads = np.concatenate([[0], np.cumsum(sets.sizes)]).astype(np.int64)
        sort_rows(heads, features, _NO_WEIGHTS)
        yield from _sent(batch, heads * 8, features.view(np.uint8))


def sketch_batches(bits: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield sizes and sketches of sets as blobs for the homes that need them; in a worker.

    Parameters
    ----------
    bits : int
        The bits of a sketch, a power of two: bit h mod ``bits`` is set where an odd number of features h fall there.
    batches : iterator
        row, label, features.
    """
    for whole in batches:
        for begin in range(0, whole.num_rows, _AT_A_TIME):
            batch = whole.slice(begin, _AT_A_TIME)
            sets, count = held(batch), batch.num_rows
            owner = np.repeat(np.arange(count), sets.sizes)
            places = owner * bits + (sets.features() & np.uint64(bits - 1)).astype(np.int64)
            odd = (np.bincount(places, minlength=count * bits) & 1).astype(np.uint8).reshape(count, bits)
            words = np.empty((count, 1 + bits // 64), np.uint64)
            words[:, 0] = sets.sizes
            words[:, 1:] = np.packbits(odd, axis=1).view(np.uint64)
            heads = np.arange(count + 1, dtype=np.int64) * (8 + bits // 8)
            yield from _sent(batch, heads, words.view(np.uint8).ravel())


def text_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield what the column ``item`` holds as blobs for the homes that need them; in a worker."""
    for batch in batches:
        array = batch.column("item").cast(pa.large_binary())
        _, ends, data = array.buffers()
        heads = np.frombuffer(ends, np.int64)[array.offset : array.offset + len(array) + 1]
        whole = np.empty(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        yield from _sent(batch, heads - heads[:1], whole[heads[0] : heads[-1]])


def _sent(batch: pa.RecordBatch, heads: Integers, data: Bytes) -> Iterator[pa.RecordBatch]:
    """Yield what the documents of a batch hold, for the homes in its column label."""
    label = batch.column("label").to_numpy()
    order = np.argsort(label, kind="stable")
    moved, label = _reordered(Items(batch.column("row").to_numpy(), heads, data), order), label[order]
    # A blob ends with its home, or when it is large.
    cuts = (np.diff(label, prepend=label[:1]) != 0) | (np.diff(moved.heads[:-1] // BLOB_BYTES, prepend=0) != 0)
    bounds = [0, *np.flatnonzero(cuts).tolist(), len(label)]
    for begin, end in pairwise(bounds):
        if end > begin:
            part = slice(int(moved.heads[begin]), int(moved.heads[end]))
            own = Items(moved.rows[begin:end], moved.heads[begin : end + 1], moved.data[part])
            yield blob_batch([(int(label[begin]), ITEMS, own.packed())])


Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.int32]

#: A pair that matches. A row with ``left`` -1 says in o how many candidates a worker looked at.
EDGES = "left bigint, right bigint, o bigint, a bigint, b bigint, similarity double"
#: What a home needs: the document, and the label of the home.
ROUTES = "row bigint, label int"
_PAIRS_AT_A_TIME = 1 << 16


class Checked(NamedTuple):
    """What is known of n candidates that were looked at.

    Attributes
    ----------
    passed : bool[n]
        Whether each matches.
    counts : int64[k, 3]
        o, a and b of those that do.
    similarity : float64[k]
        Of those.
    """

    passed: Bools
    counts: Integers
    similarity: Floats


#: Looks at pairs of items, by their places.
Check = Callable[[Items, Integers, Integers], Checked]
#: Says which pairs of items may match.
Filter = Callable[[Items, Integers, Integers], Bools]


def route_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield which documents the homes of candidates need, each once for a partition; in a worker."""
    needed: dict[int, list[Integers]] = {}
    for label, _, data in blobs_of(batches):
        needed.setdefault(label, []).append(np.unique(np.concatenate(unpack(data, PAIR))))
    for label, rows in needed.items():
        own = np.unique(np.concatenate(rows))
        yield pa.RecordBatch.from_arrays(
            [pa.array(own), pa.array(np.full(len(own), label, np.int32))], ["row", "label"]
        )


def verified(candidates: DataFrame, items: DataFrame, check: Check, partitions: int) -> DataFrame:
    """Return the candidates that match, as ``EDGES``.

    Parameters
    ----------
    candidates : DataFrame
        Blobs of pairs, with the labels of their homes.
    items : DataFrame
        Blobs of what the homes need.
    check : callable
        It looks at pairs, in the workers.
    partitions : int
        The number of homes.
    """
    return exchange(candidates.unionByName(items), partitions).mapInArrow(partial(check_batches, check), EDGES)


def counted(found: DataFrame) -> tuple[int, int]:
    """Return how many candidates match, and how many were looked at, of what ``verified`` gave."""
    from pyspark.sql import functions as F

    looked_at = F.sum(F.when(F.col("left") < 0, F.col("o")))
    row = found.agg(F.count(F.when(F.col("left") >= 0, 1)), looked_at).first()
    return int(row[0]), int(row[1] or 0)


def check_batches(check: Check, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the candidates of a partition that match; in a worker."""
    items, pairs = _at_home(batches)
    for part in _parts(pairs):
        found = check(items, items.places(part[:, 0]), items.places(part[:, 1]))
        yield _edges([*part[found.passed].T, *found.counts.T, found.similarity])
    yield _edges([np.array([value]) for value in (-1, -1, len(pairs), 0, 0)] + [np.zeros(1)])


def filter_batches(passing: Filter, homes: Labels, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the candidates of a partition that may match, for other homes, and how many there were; in a worker."""
    items, pairs = _at_home(batches)
    yield blob_batch([(int(homes[0]), TOLD, json.dumps({"candidates": len(pairs)}).encode())])
    outbox = Outbox(homes, PAIRS)
    for part in _parts(pairs):
        left, right = part[passing(items, items.places(part[:, 0]), items.places(part[:, 1]))].T.copy()
        yield from outbox.add(place_of(left, len(homes)), [left, right])
    yield from outbox.flush()


def _at_home(batches: Iterator[pa.RecordBatch]) -> tuple[Items, Integers]:
    """Return the items that came to a home, and its candidates: int64[n, 2], each once."""
    held, found = list[Items](), Gathered()
    for _, kind, data in blobs_of(batches):
        if kind == ITEMS:
            held.append(unpacked(data))
        else:
            found.add(*unpack(data, PAIR))
    return together(held), np.column_stack(found.all())


def _parts(pairs: Integers) -> Iterator[Integers]:
    for begin in range(0, len(pairs), _PAIRS_AT_A_TIME):
        yield pairs[begin : begin + _PAIRS_AT_A_TIME]


def _edges(arrays: list[npt.NDArray[np.generic]]) -> pa.RecordBatch:
    names = [column.split()[0] for column in EDGES.split(", ")]
    return pa.RecordBatch.from_arrays([pa.array(array) for array in arrays], names)


def check_sets(recipe: Recipe, items: Items, left: Integers, right: Integers) -> Checked:
    """Look at pairs of feature sets."""
    shared = np.empty(len(left), np.int64)
    overlaps(items.heads // 8, items.data.view(np.uint64), left, right, shared)
    sizes = np.diff(items.heads) // 8
    counts = np.column_stack([shared, sizes[left], sizes[right]])
    passed = (shared > 0) & _reached(recipe, counts)
    return Checked(passed, counts[passed], similarities(recipe.measure, counts[passed]))


def may_match(recipe: Recipe, items: Items, left: Integers, right: Integers) -> Bools:
    """Return which pairs of sets may match by their sizes and sketches."""
    words = items.data.view(np.uint64).reshape(len(items.rows), -1)
    sizes = words[:, 0].astype(np.int64)
    apart = np.bitwise_count(words[left, 1:] ^ words[right, 1:]).sum(axis=1, dtype=np.int64)
    most = np.maximum((sizes[left] + sizes[right] - apart) // 2, 0)
    counts = np.column_stack([most, sizes[left], sizes[right]])
    reached = _reached(recipe, counts)
    reached[most == 0] = False
    return reached


def _reached(recipe: Recipe, counts: Integers) -> Bools:
    reached = reaching(recipe.measure, counts, recipe.exact_threshold)
    if recipe.jaccard_floor:
        reached &= reaching("jaccard", counts, exact_fraction(recipe.jaccard_floor, "jaccard_floor", zero=True))
    return reached
