"""Verifying: candidates meet what their documents hold, and those that match are kept.

Each candidate has a home, that of its smaller set, and what the home's candidates need of documents is sent there: once
for each home that asks, however many candidates a document has there. Where features would be much to send, sketches go
first: a bit of a sketch is set where an odd number of features fall on it. Two sets differ in as many features as their
sketches differ in bits, at least, which rules most candidates out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.overlaps import overlaps
from neardup.measures import exact_fraction, reaching, similarities
from neardup.recipe import Recipe
from neardup.spark.items import Items, together, unpacked
from neardup.spark.packing import ITEMS, PAIRS, TOLD, Outbox, blob_batch, blobs_of, exchange, place_of, unpack
from neardup.spark.pairlists import PAIR, Gathered

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Integers = npt.NDArray[np.int64]
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
