"""Count pairs, dropped documents and families at many thresholds, from the pairs of one search."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.features.store import row_heads
from neardup.kernels import Integers
from neardup.kernels.graph import (
    THRESHOLDS_PER_WORD,
    count_families_at_levels,
    count_kept_at_levels,
    earlier_neighbours,
)
from neardup.recipe.measures import reaches_threshold, similarities
from neardup.search.matches import Matches

#: Within this distance of a threshold, whole numbers decide; rounding errors are far smaller.
_MARGIN = 1e-9


class ThresholdCounts(NamedTuple):
    """Counts at each of t thresholds, int64[t] each; largest_family: its documents, 0 if there is none."""

    pairs: Integers
    dropped: Integers
    families: Integers
    largest_family: Integers


class _Nodes(NamedTuple):
    """Distinct documents in keep order, the number of documents of each, and the pairs among them.

    ``level`` (int16[e]) is the place of the strictest threshold that each pair reaches, from 0 for the loosest.
    """

    documents: Integers
    left: Integers
    right: Integers
    level: npt.NDArray[np.int16]


def count_at_thresholds(
    matches: Matches, measure: str, order: Integers, thresholds: Sequence[Fraction]
) -> ThresholdCounts:
    """Return the counts at each of ascending thresholds, exact as ``measures.reaches_threshold`` takes them.

    matches: all pairs at the loosest threshold; measure: a similarity; order: int64[n], the documents in keep order.
    """
    representative = matches.representative
    matchable = order[representative[order] >= 0]
    found, first, documents = np.unique(representative[matchable], return_index=True, return_counts=True)
    by_place = np.argsort(first)
    number = np.full(len(representative), -1, np.int64)
    number[found[by_place]] = np.arange(len(found))
    level = _levels(matches, measure, thresholds)
    nodes = _Nodes(documents[by_place].astype(np.int64), number[matches.left], number[matches.right], level)
    at_level = np.zeros(len(thresholds), np.int64)
    np.add.at(at_level, level, nodes.documents[nodes.left] * nodes.documents[nodes.right])
    equal = int((nodes.documents * (nodes.documents - 1) // 2).sum())
    pairs = np.cumsum(at_level[::-1])[::-1] + equal
    dropped = len(matchable) - _count_kept(nodes, len(thresholds))
    return ThresholdCounts(pairs, dropped, *_count_families(nodes, len(thresholds)))


def _levels(matches: Matches, measure: str, thresholds: Sequence[Fraction]) -> npt.NDArray[np.int16]:
    """Return the place of the strictest threshold that each pair reaches."""
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
    return level.astype(np.int16)


def _count_kept(nodes: _Nodes, thresholds: int) -> Integers:
    heads = np.zeros(len(nodes.documents) + 1, np.int64)
    earlier, levels = np.empty(len(nodes.left), np.int32), np.empty(len(nodes.left), np.int16)
    earlier_neighbours(nodes.left, nodes.right, nodes.level, heads, earlier, levels)
    kept_bits = np.empty(len(nodes.documents), np.uint64)
    words = range(0, thresholds, THRESHOLDS_PER_WORD)
    kept = np.zeros((len(words), THRESHOLDS_PER_WORD), np.int64)
    for begin, at_each in zip(words, kept, strict=True):
        count_kept_at_levels(heads, earlier, levels, begin, kept_bits, at_each)
    return kept.reshape(-1)[:thresholds]


def _count_families(nodes: _Nodes, thresholds: int) -> tuple[Integers, Integers]:
    heads = row_heads(np.bincount(nodes.level, minlength=thresholds))
    families, largest = np.empty(thresholds, np.int64), np.empty(thresholds, np.int64)
    by_level = np.argsort(nodes.level, kind="stable")
    count_families_at_levels(nodes.left, nodes.right, by_level, heads, nodes.documents.copy(), families, largest)
    return families, largest
