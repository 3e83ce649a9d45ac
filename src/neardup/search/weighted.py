"""The exact join for weighted vectors: every pair of documents whose measure reaches the threshold, none missed.

Vectors f and g give features whole weights; o, a and b are sums of minima and of weights (weighted Jaccard), or dot
products (``neardup.recipe.measures``). The steps, all of which keep every pair:

1. features are put in order, rare first; one that a single vector has is shared with none, and counts in a and b alone;
2. a vector's prefix ends where what follows suffices for no partner, so that two that match meet in both prefixes
   (Bayardo, Ma & Srikant, WWW 2007, section 4; for sums of minima Chaudhuri, Ganti & Kaushik, ICDE 2006, section 4);
3. totals, and what both vectors have left after a place where they meet, rule candidates out (Anastasiu & Karypis,
   ICDE 2014, section III);
4. the rest are added up in whole numbers; where rounding could decide, fractions do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError, RecipeError
from neardup.features.store import Vectors
from neardup.kernels.tables import insert_values, table_size
from neardup.kernels.weighted import (
    RankedVectors,
    RequiredOverlaps,
    WeightedLists,
    arrange_terms,
    count_indexed,
    fill_weighted_lists,
    match_vectors,
    weight_totals,
)
from neardup.recipe.measures import MEASURES
from neardup.recipe.measures import measure as measure_of
from neardup.runtime import map_in_order

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
Table = tuple[Words, npt.NDArray[np.int32]]
Scratch = tuple[Integers, Integers, Words, Integers, Integers]
Progress = Callable[[int, int], None]

#: Those that a pair of weighted vectors has.
WEIGHTED_MEASURES = tuple(name for name, m in MEASURES.items() if "weights" in m.takes)
#: How far rounding may lead astray, with room to spare; closer decisions are left to fractions.
_MARGIN = 1e-9
#: A vector's sum of squared weights is less, so that sums and products fit into 63 bits.
_LARGEST_SQUARE = 2.0**61
_VECTORS_AT_A_TIME = 1024
#: Room for pairs in one call of the kernel, at least.
_ROOM_FOR_PAIRS = 1 << 16


class WeightedPairs(NamedTuple):
    """What the join found.

    Attributes
    ----------
    left, right : int64[k]
        Pairs of documents that match, left < right, sorted.
    counts : int64[k, 3]
        o, a (of left) and b (of right), as the measure takes them.
    statistics : dict
        Counts of what each step did.
    """

    left: Integers
    right: Integers
    counts: Integers
    statistics: dict[str, int]


def reaches_exactly(measure: str, o: int, a: int, b: int, threshold: Fraction) -> bool:
    """Return whether o, a and b reach a threshold (euclidean: stay within a squared distance); all are exact."""
    return o >= 1 and measure_of(measure).reaches(o, a, b, threshold)


def weighted_join(
    vectors: Vectors,
    measure: str,
    threshold: Fraction,
    *,
    excluded: npt.NDArray[np.bool_] | None = None,
    threads: int = 1,
    max_pairs: int | None = None,
    reference: int = 0,
    progress: Progress = lambda done, total: None,
) -> WeightedPairs | None:
    """Find all pairs of documents that reach the threshold.

    Parameters
    ----------
    vectors : Vectors
        The documents. One without features matches nothing, nor do two that share none.
    measure : str
        One of ``WEIGHTED_MEASURES``: weighted_jaccard and extended_jaccard o / (a + b - o), cosine o / sqrt(a b),
        dice 2 o / (a + b), euclidean sqrt(a + b - 2 o).
    threshold : Fraction
        In (0, 1]: pairs at or above it match; raising it finds fewer pairs, faster. For euclidean the square of the
        largest distance of a match, in squared units of the weights: raising it finds more pairs, slower.
    excluded : bool[n], optional
        Documents that must match nothing.
    threads : int
        Changes the time, never the answer.
    max_pairs : int, optional
        Where more pairs match, the search stops and returns None.
    reference : int
        How many of the documents, the last ones, are of a reference: pairs among them are not looked for.
    progress : callable
        Told (vectors done, vectors in all) from time to time.

    Raises
    ------
    RecipeError
        If the measure is none of these or the threshold is out of its range.
    NeardupError
        If the weights of a document are too large.
    """
    _check(measure, threshold)
    filled = np.diff(vectors.heads) > 0
    members = np.flatnonzero(filled if excluded is None else filled & ~excluded)
    sizes = np.empty(len(members), np.int64)
    minima = measure == "weighted_jaccard"
    if weight_totals(members, vectors.heads, vectors.weights, minima, sizes) >= _LARGEST_SQUARE:
        raise NeardupError(
            "the squared weights of a document add up to 2**61 or more; choose weights 'idf', which take no repeats"
        )
    order = np.argsort(sizes, kind="stable")
    members, sizes = members[order], sizes[order]
    of_input = members < len(filled) - reference
    run = _Join(vectors, members, sizes, of_input, measure, threshold, threads)
    found = run.match(max_pairs, progress)
    if found is None:
        return None
    ranks, o = found[:, :2], found[:, 2]
    pair = members[ranks]
    by_document = np.argsort(pair, axis=1)
    pair = np.take_along_axis(pair, by_document, axis=1)
    counts = np.column_stack([o, np.take_along_axis(sizes[ranks], by_document, axis=1)])
    sequence = np.lexsort((pair[:, 1], pair[:, 0]))
    run.statistics["pairs"] = len(pair)
    return WeightedPairs(pair[sequence, 0], pair[sequence, 1], counts[sequence], run.statistics)


def _check(measure: str, threshold: Fraction) -> None:
    if measure not in WEIGHTED_MEASURES:
        raise RecipeError(f"measure {measure!r} does not take weights; choose one of {', '.join(WEIGHTED_MEASURES)}")
    if measure == "euclidean" and threshold < 0:
        raise RecipeError(f"squared distance {threshold} is negative; give 0 or more")
    if measure != "euclidean" and not 0 < threshold <= 1:
        raise RecipeError(f"threshold {threshold} is outside (0, 1]")


def _needs(measure: str, threshold: Fraction, sizes: Integers) -> tuple[RequiredOverlaps, Floats]:
    """Return what pairs need, and float64[2, r], what may follow a vector's prefixes; sizes ascend.

    A pair needs part * (a + b) - constant in common, or for cosine t sqrt(a b). What follows, of extent e, gives a dot
    product of at most e sqrt(b), so e may be less than the least of (part * (a + b) - constant) / sqrt(b): of all b for
    the prefix that looks for smaller partners, of b >= a for the one in the index.
    """
    total, root = sizes.astype(np.float64), np.sqrt(sizes)
    t, part, constant = float(threshold), 0.5, 0.0
    if measure == "euclidean":
        square = min(int(threshold), 1 << 62)
        constant = square / 2
        follows = np.sqrt(np.maximum(sizes - square, 0)), (2 * sizes - square) / (2 * root)
        smallest = np.maximum(root * (1 - _MARGIN) - sqrt(square) * (1 + _MARGIN), 0) ** 2
    elif measure == "weighted_jaccard":
        part = t / (1 + t)
        follows = t * total, 2 * part * total
        smallest = t * total
    elif measure == "cosine":
        follows = t * root, t * root
        smallest = np.zeros(len(sizes))
    else:
        both = threshold if measure == "dice" else 2 * threshold / (1 + threshold)
        part = float(both) / 2
        follows = 2 * part * root, 2 * part * root
        smallest = (float(both) / (1 + sqrt(1 - both * both))) ** 2 * total
    first = np.searchsorted(sizes, np.floor(smallest * (1 - _MARGIN)).astype(np.int64))
    low, high = 1 - _MARGIN, 1 + _MARGIN
    if measure == "cosine":
        fixed = np.zeros(len(sizes))
        needs = RequiredOverlaps(root, fixed, t * root * low, fixed, t * root * high, first)
    else:
        least, sure = part * total * low - constant * high, part * total * high - constant * low
        needs = RequiredOverlaps(
            total, least, np.full(len(sizes), part * low), sure, np.full(len(sizes), part * high), first
        )
    return needs, np.stack(follows) * low


class _Join:
    """The vectors of a join by rank, and the pairs among them."""

    def __init__(
        self,
        vectors: Vectors,
        members: Integers,
        sizes: Integers,
        of_input: npt.NDArray[np.bool_],
        measure: str,
        threshold: Fraction,
        threads: int,
    ) -> None:
        self.of_input = of_input
        self.measure, self.threshold, self.sizes, self.threads = measure, threshold, sizes, threads
        self.minima = measure == "weighted_jaccard"
        self.statistics = {"candidates": 0, "verified": 0, "index_entries": 0}
        self.needs, least = _needs(measure, threshold, sizes)
        self.places, table = _places(vectors, members, members[of_input])
        self.sets = self._arranged(vectors, members, table, least)

    def _arranged(self, vectors: Vectors, members: Integers, table: Table, least: Floats) -> RankedVectors:
        count = len(members)
        rooms = np.diff(vectors.heads)[members]
        room = int(rooms.sum())
        sets = RankedVectors(
            np.cumsum(rooms) - rooms,
            lengths=np.empty(count, np.int64),
            terms=np.empty(room, np.int64),
            remaining_extents=np.empty(room, np.float32),
            probe_lengths=np.empty(count, np.int64),
            index_lengths=np.empty(count, np.int64),
            last_positions=np.empty(count, np.int64),
            index_remaining=np.empty(count, np.float32),
        )

        def fill(begin: int) -> None:
            end = min(begin + _VECTORS_AT_A_TIME, count)
            arrange_terms(begin, end, members, tuple(vectors), table, self.minima, least, sets)

        for _ in map_in_order(fill, range(0, count, _VECTORS_AT_A_TIME), self.threads):
            pass
        return sets

    def _sides(self) -> Iterator[tuple[WeightedLists, RankedVectors]]:
        """Yield postings, each with the sets that are looked up in them, so that all pairs meet but a reference's own.

        All sets are looked up among those of the input, and these among those of the reference.
        """
        yield self._postings(self.of_input), self.sets
        if not self.of_input.all():
            yield (
                self._postings(~self.of_input),
                self.sets._replace(probe_lengths=np.where(self.of_input, self.sets.probe_lengths, 0)),
            )

    def _postings(self, chosen: npt.NDArray[np.bool_]) -> WeightedLists:
        sets = self.sets._replace(index_lengths=np.where(chosen, self.sets.index_lengths, 0))
        heads = np.zeros(self.places + 1, np.int64)
        count_indexed(sets, heads)
        entries = np.empty((int(heads[-1]), 3), np.int32)
        postings = WeightedLists(heads, entries, entries.view(np.float32))
        fill_weighted_lists(sets, postings)
        self.statistics["index_entries"] += len(entries)
        return postings

    def match(self, max_pairs: int | None, progress: Progress) -> Integers | None:
        """Return int64[k, 3], (earlier rank, later rank, o) of pairs that match, or None if they are too many."""
        count = len(self.sizes)
        local = threading.local()

        def match_from(
            begin: int, postings: WeightedLists, asking: RankedVectors
        ) -> tuple[list[Integers], int, int, int]:
            if not hasattr(local, "scratch"):
                local.scratch = self._scratch()
            end = min(begin + _VECTORS_AT_A_TIME, count)
            results, matched, candidates, verified = list[Integers](), 0, 0, 0
            while begin < end and (max_pairs is None or matched <= max_pairs):
                begin, written, more, done = match_vectors(
                    begin, end, asking, postings, self.needs, self.minima, local.scratch
                )
                results.append(self._decided(local.scratch[-1][:written]))
                matched += len(results[-1])
                candidates += more
                verified += done
            return results, matched, candidates, verified

        found = [np.zeros((0, 3), np.int64)]
        total = 0
        for postings, asking in self._sides():
            work = partial(match_from, postings=postings, asking=asking)
            pieces = map_in_order(work, range(0, count, _VECTORS_AT_A_TIME), self.threads)
            for number, (results, matched, candidates, verified) in enumerate(pieces, 1):
                found += results
                total += matched
                self.statistics["candidates"] += candidates
                self.statistics["verified"] += verified
                if max_pairs is not None and total > max_pairs:
                    return None
                progress(min(number * _VECTORS_AT_A_TIME, count), count)
        return np.concatenate(found)

    def _decided(self, written: Integers) -> Integers:
        """Return those of the pairs written that match, without the column that says which surely do."""
        matches = written[:, 3] != 0
        for i in np.flatnonzero(~matches):
            earlier, later, o = map(int, written[i, :3])
            a, b = int(self.sizes[earlier]), int(self.sizes[later])
            matches[i] = reaches_exactly(self.measure, o, a, b, self.threshold)
        return written[matches, :3]

    def _scratch(self) -> Scratch:
        """Return what the kernel adds up, lists, looks up and writes in."""
        count = len(self.sizes)
        width = table_size(int(self.sets.lengths.max(initial=0)))
        return (
            np.zeros(count, np.int64),
            np.empty(count, np.int64),
            np.empty(width, np.uint64),
            np.empty(width, np.int64),
            np.empty((max(count, _ROOM_FOR_PAIRS), 4), np.int64),
        )


def _features_of(vectors: Vectors, members: Integers) -> Words:
    """Return the features of members, ascending, each as often as it is there."""
    within = np.zeros(len(vectors.heads) - 1, np.bool_)
    within[members] = True
    lengths = np.diff(vectors.heads)
    features = vectors.features[vectors.heads[0] : vectors.heads[-1]]
    found: Words = np.sort(features if within[lengths > 0].all() else features[np.repeat(within, lengths)])
    return found


def _places(vectors: Vectors, members: Integers, own: Integers) -> tuple[int, Table]:
    """Return how many features several members share, and a table of their places in the rare-first order.

    What none of the own members has, those of the input, is shared by none that are compared.
    """
    ordered = _features_of(vectors, members)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    df = np.diff(np.append(begins, len(ordered)))
    several = df > 1
    if len(own) < len(members):
        several &= np.isin(ordered[begins], np.unique(_features_of(vectors, own)), assume_unique=True)
    shared = ordered[begins[several]]
    places = np.empty(len(shared), np.int32)
    places[np.argsort(df[several], kind="stable")] = np.arange(len(shared), dtype=np.int32)
    slots = table_size(len(shared))
    table = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    insert_values(shared, places, *table)
    return len(shared), table
