"""Strata of a population of pairs: their limits, how many pairs to draw from each, and the figures of thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import sqrt
from typing import NamedTuple

import numpy as np

from neardup.evaluation.intervals import Figure, StratumCounts, estimate_duplicates, precision_figure, recall_figure
from neardup.kernels import Bools, Floats, Integers

#: The maximum numbers of strata of returned and of unreturned pairs.
MAX_RETURNED_STRATA, MAX_UNRETURNED_STRATA = 5, 6
#: A sample that is large enough draws at least this many pairs from each stratum, or all if it has fewer.
MIN_DRAWN = 8
#: The smallest standard deviation of a label: that of labels of which one in twenty-five is a surprise.
_MIN_DEVIATION = 0.2


class Stratum(NamedTuple):
    """Returned or unreturned pairs with scores in [low, high); the stratum of the highest scores includes ``high``."""

    returned: bool
    low: float
    high: float
    pairs: int
    weight: float


def label_deviations(probability: Floats) -> Floats:
    """Return the standard deviation of the label of each pair (1 for a duplicate, else 0), 0.2 or more."""
    return np.maximum(np.sqrt(probability * (1 - probability)), _MIN_DEVIATION)


def stratify(
    score: Floats,
    returned: Bools,
    deviations: Floats,
    returned_edges: Sequence[float],
    unreturned_edges: Sequence[float],
) -> tuple[list[Stratum], Integers]:
    """Return the strata, returned ones first and each side from the highest scores down, and the stratum of each pair.

    Strata begin at edges, ascending; returned and unreturned pairs may have scores on different scales. The strata
    depend on the scores alone, not on the order of the pairs or the size of a sample.
    """
    strata: list[Stratum] = []
    pair_strata = np.zeros(len(score), np.int64)
    sides = (True, MAX_RETURNED_STRATA, returned_edges), (False, MAX_UNRETURNED_STRATA, unreturned_edges)
    for side, max_strata, edges in sides:
        rows = np.flatnonzero(returned == side)
        if not len(rows):
            continue
        values = score[rows]
        lowest, highest = float(values.min()), float(values.max())
        inner = np.array([edge for edge in edges if lowest < edge <= highest], np.float64)
        chosen = _choose_edges(values, deviations[rows], inner, max_strata)
        first = max((edge for edge in edges if edge <= lowest), default=lowest)
        bounds = [first, *chosen, min((edge for edge in edges if edge > highest), default=highest)]
        bins = np.searchsorted(np.array(chosen), values, side="right")
        counts = np.bincount(bins, minlength=len(chosen) + 1)
        deviation_sums = np.bincount(bins, deviations[rows], len(chosen) + 1)
        pair_strata[rows] = len(strata) + len(chosen) - bins
        strata += [
            Stratum(side, bounds[at], bounds[at + 1], int(counts[at]), float(deviation_sums[at]) / sqrt(counts[at]))
            for at in range(len(chosen), -1, -1)
        ]
    return strata, pair_strata


def _choose_edges(values: Floats, deviations: Floats, edges: Floats, max_strata: int) -> list[float]:
    """Return at most ``max_strata`` - 1 of the edges; every stratum between them has pairs."""
    bins = np.searchsorted(edges, values, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    roots = np.sqrt(counts) * np.bincount(bins, deviations, len(edges) + 1) / np.maximum(counts, 1)
    cumulated = np.cumsum(roots)
    chosen: list[float] = []
    begin = 0
    for part in range(1, max_strata):
        # Cumulated square roots of the counts in equal parts (Dalenius & Hodges 1959).
        at = int(np.argmin(np.abs(cumulated[:-1] - cumulated[-1] * part / max_strata))) if len(edges) else 0
        if at < len(edges) and counts[begin : at + 1].any() and counts[at + 1 :].any():
            chosen.append(float(edges[at]))
            begin = at + 1
    return chosen


def allocate(strata: Sequence[Stratum], sample: int) -> list[int]:
    """Return the number of pairs to draw from each stratum: half of the sample from returned pairs, half from the rest.

    A larger sample draws no fewer pairs from any stratum. Within a side, the integers are optimal for the weights of
    the strata (Wright 2012: equal proportions). If there are fewer than ``sample`` pairs, all are drawn.
    """
    sides = [[at for at, stratum in enumerate(strata) if stratum.returned == side] for side in (True, False)]
    sizes = [sum(strata[at].pairs for at in side) for side in sides]
    first = min((sample + 1) // 2, sizes[0])
    second = min(sample - first, sizes[1])
    first = min(sample - second, sizes[0])
    counts = [0] * len(strata)
    for side, total in zip(sides, (first, second), strict=True):
        for at, count in zip(side, _apportion([strata[at] for at in side], total), strict=True):
            counts[at] = count
    return counts


def _apportion(strata: Sequence[Stratum], total: int) -> list[int]:
    counts = [0] * len(strata)
    queue = [(_draw_priority(stratum, 0), at) for at, stratum in enumerate(strata)]
    heapify(queue)
    for _ in range(total):
        at = queue[0][1]
        counts[at] += 1
        heapreplace(queue, (_draw_priority(strata[at], counts[at]), at))
    return counts


def _draw_priority(stratum: Stratum, drawn: int) -> tuple[int, float]:
    """Return the priority of a stratum for one more pair, lowest first: all strata reach ``MIN_DRAWN`` in turn."""
    if drawn >= stratum.pairs:
        return 2, 0.0
    if drawn < MIN_DRAWN:
        return 0, float(drawn)
    return 1, -stratum.weight / sqrt(drawn * (drawn + 1))


class ThresholdDirections(NamedTuple):
    """Whether the scores show which pairs a stricter or a looser threshold would return."""

    stricter: bool
    looser: bool


class ThresholdPoint(NamedTuple):
    """The figures of a threshold."""

    score: float
    is_working_point: bool
    returned: int
    precision: Figure
    recall: Figure


def threshold_points(
    strata: Sequence[Stratum], cells: Sequence[StratumCounts], working_score: float, directions: ThresholdDirections
) -> list[ThresholdPoint]:
    """Return the figures of the working point and of the lower ends of strata, the strictest first."""

    def lower_ends(returned: bool) -> list[float]:
        return sorted({stratum.low for stratum in strata if stratum.returned == returned}, reverse=True)

    def point(score: float, returned: Sequence[bool], *, is_working_point: bool = False) -> ThresholdPoint:
        inside = estimate_duplicates([cell for cell, is_in in zip(cells, returned, strict=True) if is_in])
        outside = estimate_duplicates([cell for cell, is_in in zip(cells, returned, strict=True) if not is_in])
        count = sum(stratum.pairs for stratum, is_in in zip(strata, returned, strict=True) if is_in)
        figures = precision_figure(inside, count), recall_figure(inside, outside)
        return ThresholdPoint(score, is_working_point, count, *figures)

    stricter = lower_ends(True)[:-1] if directions.stricter else []
    looser = lower_ends(False) if directions.looser else []
    return [
        *(point(score, [s.returned and s.low >= score for s in strata]) for score in stricter),
        point(working_score, [s.returned for s in strata], is_working_point=True),
        *(point(score, [s.returned or s.low >= score for s in strata]) for score in looser),
    ]
