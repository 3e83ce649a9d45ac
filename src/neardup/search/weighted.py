"""The exact join of weighted vectors: it finds every pair of documents whose measure reaches the threshold.

Vectors f and g give whole weights to features; o, a and b are sums of minima and of weights (weighted Jaccard), or dot
products (``neardup.recipe.measures``). No step loses a pair:

1. Features are ordered, rare first. A feature of a single vector is never shared; it counts only in a and b.
2. The prefix of a vector ends where the remaining terms suffice for no partner, so two matching vectors meet in both
   prefixes (Bayardo, Ma & Srikant, WWW 2007, section 4; for sums of minima Chaudhuri, Ganti & Kaushik, ICDE 2006,
   section 4).
3. Totals, and what remains of both vectors after the position where they meet, rule candidates out (Anastasiu &
   Karypis, ICDE 2014, section III).
4. The other candidates are added up in whole numbers; where rounding could decide, fractions do.
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

from neardup.errors import NeardupError
from neardup.features.store import Vectors
from neardup.kernels import Bools, Floats, Integers, Words
from neardup.kernels.tables import insert_values, table_size
from neardup.kernels.weighted import (
    RankedVectors,
    RequiredOverlaps,
    WeightedLists,
    arrange_terms,
    match_vectors,
    weight_totals,
    weighted_lists,
)
from neardup.recipe.measures import MEASURES
from neardup.recipe.measures import measure as measure_of
from neardup.runtime import map_in_order
from neardup.search.matches import sorted_pairs

Table = tuple[Words, npt.NDArray[np.int32]]
Scratch = tuple[Integers, Integers, Words, Integers, Integers]
Progress = Callable[[int, int], None]

#: The measures of weighted vectors.
WEIGHTED_MEASURES = tuple(name for name, m in MEASURES.items() if "weights" in m.takes)
#: A generous bound of relative rounding errors; fractions decide what is closer.
_MARGIN = 1e-9
#: The sum of a vector's squared weights is smaller, so that sums and products fit into 63 bits.
_MAX_SQUARE = 2.0**61
#: Vectors per piece of work.
_PIECE = 1024
#: The minimum capacity for pairs of one kernel call.
_CAPACITY = 1 << 16


class WeightedPairs(NamedTuple):
    """Matching pairs of documents, left < right, sorted, with o, a and b (int64[k, 3]); and counts of each step."""

    left: Integers
    right: Integers
    counts: Integers
    statistics: dict[str, int]


def weighted_join(
    vectors: Vectors,
    measure: str,
    threshold: Fraction,
    *,
    excluded: Bools | None = None,
    threads: int = 1,
    max_pairs: int | None = None,
    reference_count: int = 0,
    progress: Progress = lambda done, total: None,
) -> WeightedPairs | None:
    """Find all pairs of documents that share a feature and reach the threshold; None if they are more than max_pairs.

    measure: one of ``WEIGHTED_MEASURES``: weighted_jaccard and extended_jaccard o / (a + b - o), cosine o / sqrt(a b),
    dice 2 o / (a + b), euclidean sqrt(a + b - 2 o). threshold: in (0, 1], pairs at or above it match; for euclidean,
    the square of the maximum distance, in squared units of the weights. excluded: bool[n], documents that must match
    nothing. The last ``reference_count`` documents are of a reference; pairs among them are not searched. Raises
    ``NeardupError`` if the squared weights of a document add up to 2**61 or more.
    """
    is_filled = np.diff(vectors.heads) > 0
    members = np.flatnonzero(is_filled if excluded is None else is_filled & ~excluded)
    sizes = np.empty(len(members), np.int64)
    minima = measure == "weighted_jaccard"
    if weight_totals(members, vectors.heads, vectors.weights, minima, sizes) >= _MAX_SQUARE:
        raise NeardupError(
            "the squared weights of a document add up to 2**61 or more; choose weights 'idf', which take no repeats"
        )
    order = np.argsort(sizes, kind="stable")
    members, sizes = members[order], sizes[order]
    of_input = members < len(is_filled) - reference_count
    run = _Join(vectors, members, sizes, of_input, measure, threshold, threads)
    found = run.match(max_pairs, progress)
    if found is None:
        return None
    ranks, o = found[:, :2], found[:, 2]
    run.statistics["pairs"] = len(found)
    pairs = sorted_pairs(members[ranks[:, 0]], members[ranks[:, 1]], np.column_stack([o, sizes[ranks]]))
    return WeightedPairs(*pairs, run.statistics)


def _required_overlaps(measure: str, threshold: Fraction, sizes: Integers) -> tuple[RequiredOverlaps, Floats]:
    """Return the required overlaps, and float64[2, r], the extents that may remain after a vector's two prefixes.

    A pair requires an overlap of part * (a + b) - constant, or t sqrt(a b) for cosine. Remaining terms of extent e
    give a dot product of at most e sqrt(b), so e must be below the minimum of (part * (a + b) - constant) / sqrt(b):
    over all b for the probe prefix, which finds smaller partners, and over b >= a for the indexed one. Sizes ascend.
    """
    total, root = sizes.astype(np.float64), np.sqrt(sizes)
    t, part, constant = float(threshold), 0.5, 0.0
    if measure == "euclidean":
        square = min(int(threshold), 1 << 62)
        constant = square / 2
        remainders = np.sqrt(np.maximum(sizes - square, 0)), (2 * sizes - square) / (2 * root)
        smallest = np.maximum(root * (1 - _MARGIN) - sqrt(square) * (1 + _MARGIN), 0) ** 2
    elif measure == "weighted_jaccard":
        part = t / (1 + t)
        remainders = t * total, 2 * part * total
        smallest = t * total
    elif measure == "cosine":
        remainders = t * root, t * root
        smallest = np.zeros(len(sizes))
    else:
        dice_threshold = threshold if measure == "dice" else 2 * threshold / (1 + threshold)
        part = float(dice_threshold) / 2
        remainders = 2 * part * root, 2 * part * root
        smallest = (float(dice_threshold) / (1 + sqrt(1 - dice_threshold * dice_threshold))) ** 2 * total
    first = np.searchsorted(sizes, np.floor(smallest * (1 - _MARGIN)).astype(np.int64))
    low, high = 1 - _MARGIN, 1 + _MARGIN
    if measure == "cosine":
        fixed = np.zeros(len(sizes))
        required = RequiredOverlaps(root, fixed, t * root * low, fixed, t * root * high, first)
    else:
        fixed, certain = part * total * low - constant * high, part * total * high - constant * low
        required = RequiredOverlaps(
            total, fixed, np.full(len(sizes), part * low), certain, np.full(len(sizes), part * high), first
        )
    return required, np.stack(remainders) * low


class _Join:
    """The vectors of a join by rank, and the pairs among them."""

    def __init__(
        self,
        vectors: Vectors,
        members: Integers,
        sizes: Integers,
        of_input: Bools,
        measure: str,
        threshold: Fraction,
        threads: int,
    ) -> None:
        self.of_input = of_input
        self.measure, self.threshold, self.sizes, self.threads = measure, threshold, sizes, threads
        self.minima = measure == "weighted_jaccard"
        self.statistics = {"candidates": 0, "verified": 0, "index_entries": 0}
        self.required, remaining_limits = _required_overlaps(measure, threshold, sizes)
        self.shared_features, table = _order_features(vectors, members, members[of_input])
        self.sets = self._arrange(vectors, members, table, remaining_limits)

    def _arrange(self, vectors: Vectors, members: Integers, table: Table, remaining_limits: Floats) -> RankedVectors:
        count = len(members)
        lengths = np.diff(vectors.heads)[members]
        total_length = int(lengths.sum())
        sets = RankedVectors(
            np.cumsum(lengths) - lengths,
            lengths=np.empty(count, np.int64),
            terms=np.empty(total_length, np.int64),
            remaining_extents=np.empty(total_length, np.float32),
            probe_lengths=np.empty(count, np.int64),
            index_lengths=np.empty(count, np.int64),
            last_positions=np.empty(count, np.int64),
            index_remaining=np.empty(count, np.float32),
        )

        def fill(begin: int) -> None:
            end = min(begin + _PIECE, count)
            arrange_terms(begin, end, members, tuple(vectors), table, self.minima, remaining_limits, sets)

        for _ in map_in_order(fill, range(0, count, _PIECE), self.threads):
            pass
        return sets

    def _sides(self) -> Iterator[tuple[WeightedLists, RankedVectors]]:
        """Yield inverted lists, each with the sets to look up in them, so that all pairs meet but those of a reference.

        All sets are looked up among those of the input, and these among those of the reference.
        """
        yield self._postings(self.of_input), self.sets
        if not self.of_input.all():
            yield (
                self._postings(~self.of_input),
                self.sets._replace(probe_lengths=np.where(self.of_input, self.sets.probe_lengths, 0)),
            )

    def _postings(self, chosen: Bools) -> WeightedLists:
        sets = self.sets._replace(index_lengths=np.where(chosen, self.sets.index_lengths, 0))
        postings: WeightedLists = weighted_lists(sets, self.shared_features)
        self.statistics["index_entries"] += len(postings.entries)
        return postings

    def match(self, max_pairs: int | None, progress: Progress) -> Integers | None:
        """Return int64[k, 3], (earlier rank, later rank, o) of pairs that match, or None if they are too many."""
        count = len(self.sizes)
        local = threading.local()

        def match_from(
            begin: int, postings: WeightedLists, queries: RankedVectors
        ) -> tuple[list[Integers], int, int, int]:
            if not hasattr(local, "scratch"):
                local.scratch = self._scratch()
            end = min(begin + _PIECE, count)
            results, matched, candidates, verified = list[Integers](), 0, 0, 0
            while begin < end and (max_pairs is None or matched <= max_pairs):
                begin, written, met, compared = match_vectors(
                    begin, end, queries, postings, self.required, self.minima, local.scratch
                )
                results.append(self._decide(local.scratch[-1][:written]))
                matched += len(results[-1])
                candidates += met
                verified += compared
            return results, matched, candidates, verified

        found = [np.zeros((0, 3), np.int64)]
        total = 0
        for postings, queries in self._sides():
            work = partial(match_from, postings=postings, queries=queries)
            pieces = map_in_order(work, range(0, count, _PIECE), self.threads)
            for number, (results, matched, candidates, verified) in enumerate(pieces, 1):
                found += results
                total += matched
                self.statistics["candidates"] += candidates
                self.statistics["verified"] += verified
                if max_pairs is not None and total > max_pairs:
                    return None
                progress(min(number * _PIECE, count), count)
        return np.concatenate(found)

    def _decide(self, written: Integers) -> Integers:
        """Return the pairs that match, without the column that flags certain matches."""
        matches = written[:, 3] != 0
        for i in np.flatnonzero(~matches):
            earlier, later, o = map(int, written[i, :3])
            a, b = int(self.sizes[earlier]), int(self.sizes[later])
            matches[i] = o >= 1 and measure_of(self.measure).reaches(o, a, b, self.threshold)
        return written[matches, :3]

    def _scratch(self) -> Scratch:
        """Return the buffers of a thread: sums, candidates, a table of keys and values, and pairs."""
        count = len(self.sizes)
        width = table_size(int(self.sets.lengths.max(initial=0)))
        return (
            np.zeros(count, np.int64),
            np.empty(count, np.int64),
            np.empty(width, np.uint64),
            np.empty(width, np.int64),
            np.empty((max(count, _CAPACITY), 4), np.int64),
        )


def _member_features(vectors: Vectors, members: Integers) -> Words:
    """Return the features of members, ascending, with repetitions."""
    is_member = np.zeros(len(vectors.heads) - 1, np.bool_)
    is_member[members] = True
    lengths = np.diff(vectors.heads)
    features = vectors.features[vectors.heads[0] : vectors.heads[-1]]
    ordered: Words = np.sort(features if is_member[lengths > 0].all() else features[np.repeat(is_member, lengths)])
    return ordered


def _order_features(vectors: Vectors, members: Integers, input_members: Integers) -> tuple[int, Table]:
    """Return the number of shared features, and a table of their positions in the rare-first order.

    A feature that no member of the input has is not shared by any two vectors that are compared.
    """
    ordered = _member_features(vectors, members)
    begins = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)])
    df = np.diff(np.append(begins, len(ordered)))
    is_shared = df > 1
    if len(input_members) < len(members):
        is_shared &= np.isin(ordered[begins], np.unique(_member_features(vectors, input_members)), assume_unique=True)
    shared = ordered[begins[is_shared]]
    positions = np.empty(len(shared), np.int32)
    positions[np.argsort(df[is_shared], kind="stable")] = np.arange(len(shared), dtype=np.int32)
    slots = table_size(len(shared))
    table = np.zeros(slots, np.uint64), np.zeros(slots, np.int32)
    insert_values(shared, positions, *table)
    return len(shared), table
