"""Count pairs, dropped documents and families at many thresholds, from the pairs of one search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.features.store import row_heads
from neardup.kernels.pairs import (
    THRESHOLDS_PER_WORD,
    count_families_at_levels,
    count_kept_at_levels,
    earlier_neighbours,
)
from neardup.recipe.measures import reaches_threshold, similarities
from neardup.search.matches import Integers, Matches

Places = npt.NDArray[np.int16]
Bools = npt.NDArray[np.bool_]

#: Within this distance of a threshold, whole numbers decide; rounding errors are far smaller.
_MARGIN = 1e-9


class ThresholdCounts(NamedTuple):
    """Counts at each of t thresholds.

    Attributes
    ----------
    pairs : int64[t]
        Matching pairs of documents.
    dropped : int64[t]
        Dropped documents.
    families, largest_family : int64[t]
        Families, and the documents of the largest one; 0 if there is none.
    """

    pairs: Integers
    dropped: Integers
    families: Integers
    largest_family: Integers


class _Nodes(NamedTuple):
    """Distinct documents in keep order, the number of documents of each, and the pairs among them."""

    documents: Integers
    left: Integers
    right: Integers
    level: Places


@dataclass(frozen=True, slots=True, eq=False)
class Levels:
    """The pairs of a search with the strictest threshold that each one reaches.

    Attributes
    ----------
    matches : Matches
        All pairs at the loosest threshold.
    order : int64[n]
        The documents in keep order.
    level : int16[e]
        The place of the strictest threshold that each pair reaches, from 0 for the loosest.
    thresholds : int
        The number of thresholds.
    """

    matches: Matches
    order: Integers
    level: Places
    thresholds: int

    def figures(self, chosen: Bools | None = None) -> ThresholdCounts:
        """Return the counts at each threshold.

        Parameters
        ----------
        chosen : bool[n], optional
            Documents to count, as if there were no others; all by default.
        """
        nodes = self._nodes(chosen)
        dropped = int(nodes.documents.sum()) - self._kept(nodes)
        return ThresholdCounts(self._pairs(nodes), dropped, *self._families(nodes))

    def pairs(self, chosen: Bools | None = None) -> Integers:
        """Return the matching pairs at each threshold: int64[t]."""
        return self._pairs(self._nodes(chosen))

    def _nodes(self, chosen: Bools | None) -> _Nodes:
        representative = self.matches.representative
        matchable = self.order[representative[self.order] >= 0]
        if chosen is not None:
            matchable = matchable[chosen[matchable]]
        found, first, documents = np.unique(representative[matchable], return_index=True, return_counts=True)
        by_place = np.argsort(first)
        number = np.full(len(representative), -1, np.int64)
        number[found[by_place]] = np.arange(len(found))
        left, right, level = number[self.matches.left], number[self.matches.right], self.level
        if chosen is not None:
            present = (left >= 0) & (right >= 0)
            left, right, level = left[present], right[present], level[present]
        return _Nodes(documents[by_place].astype(np.int64), left, right, level)

    def _pairs(self, nodes: _Nodes) -> Integers:
        at_level = np.zeros(self.thresholds, np.int64)
        np.add.at(at_level, nodes.level, nodes.documents[nodes.left] * nodes.documents[nodes.right])
        equal = int((nodes.documents * (nodes.documents - 1) // 2).sum())
        return np.cumsum(at_level[::-1])[::-1] + equal

    def _kept(self, nodes: _Nodes) -> Integers:
        heads = np.zeros(len(nodes.documents) + 1, np.int64)
        earlier, levels = np.empty(len(nodes.left), np.int32), np.empty(len(nodes.left), np.int16)
        earlier_neighbours(nodes.left, nodes.right, nodes.level, heads, earlier, levels)
        kept_bits = np.empty(len(nodes.documents), np.uint64)
        words = range(0, self.thresholds, THRESHOLDS_PER_WORD)
        kept = np.zeros((len(words), THRESHOLDS_PER_WORD), np.int64)
        for begin, at_each in zip(words, kept, strict=True):
            count_kept_at_levels(heads, earlier, levels, begin, kept_bits, at_each)
        return kept.reshape(-1)[: self.thresholds]

    def _families(self, nodes: _Nodes) -> tuple[Integers, Integers]:
        at_level = np.bincount(nodes.level, minlength=self.thresholds)
        heads = row_heads(at_level)
        families, largest = np.empty(self.thresholds, np.int64), np.empty(self.thresholds, np.int64)
        by_level = np.argsort(nodes.level, kind="stable")
        count_families_at_levels(nodes.left, nodes.right, by_level, heads, nodes.documents.copy(), families, largest)
        return families, largest


def levels_of(matches: Matches, measure: str, order: Integers, thresholds: Sequence[Fraction]) -> Levels:
    """Return the pairs of a search with the strictest threshold that each one reaches.

    Parameters
    ----------
    matches : Matches
        All pairs at the loosest threshold.
    measure : str
        The measure of the thresholds; a similarity.
    order : int64[n]
        The documents in keep order.
    thresholds : sequence of Fraction
        Ascending, from the loosest; exact, as ``measures.reaches_threshold`` takes them.
    """
    at = np.array([float(threshold) for threshold in thresholds])
    found = similarities(measure, matches.counts, matches.unit)
    level = np.searchsorted(at, found - _MARGIN, side="right") - 1
    highest = np.searchsorted(at, found + _MARGIN, side="right") - 1
    close = np.flatnonzero(level < highest)
    for place, threshold in enumerate(thresholds):
        pairs = close[(level[close] < place) & (place <= highest[close])]
        if len(pairs):
            counts, which = np.unique(matches.counts[pairs], axis=0, return_inverse=True)
            level[pairs] += reaches_threshold(measure, counts, threshold, matches.unit)[which.reshape(-1)]
    return Levels(matches, order, level.astype(np.int16), len(thresholds))
