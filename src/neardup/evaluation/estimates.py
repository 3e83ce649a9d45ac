"""Strata, the numbers of pairs to draw from each, and what the judged ones say of the whole, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from heapq import heapify, heapreplace
from math import hypot, sqrt
from typing import NamedTuple

import numpy as np

from neardup.evaluation.scores import CONFIDENCE, Figure, Z
from neardup.kernels import Bools, Floats, Integers

#: What each of the two ends of an interval may miss.
_TAIL = (1 - CONFIDENCE) / 2


class StratumCounts(NamedTuple):
    """A stratum, and what is known of it."""

    pairs: int
    #: How many of them, drawn at random, were judged.
    judged: int
    #: How many of those are duplicates.
    same: int


class DuplicateEstimate(NamedTuple):
    """How many duplicates some strata hold: the estimate, and how far below and above it the limits lie."""

    value: float
    below: float
    above: float
    least: int
    most: int

    def __add__(self, other: object) -> DuplicateEstimate:
        """Return the sum over these strata and others."""
        if not isinstance(other, DuplicateEstimate):
            return NotImplemented
        return DuplicateEstimate(
            self.value + other.value,
            hypot(self.below, other.below),
            hypot(self.above, other.above),
            self.least + other.least,
            self.most + other.most,
        )


def limits(cell: StratumCounts) -> tuple[float, float]:
    """Return the limits of the number of duplicates in a stratum."""
    if cell.judged == cell.pairs:
        return float(cell.same), float(cell.same)
    if not cell.judged:
        return 0.0, float(cell.pairs)
    low, high = exact_limits(cell)
    wilson_low, wilson_high = _wilson(cell)
    return min(low, wilson_low), max(high, wilson_high)


@lru_cache(maxsize=1 << 12)
def exact_limits(cell: StratumCounts) -> tuple[int, int]:
    """Return the fewest and the most duplicates with which such a sample is no surprise on either side.

    With K duplicates among N pairs, the number among n judged ones is hypergeometric; K is within the limits if
    neither P(X <= x) nor P(X >= x) is 2.5% or less.
    """
    low = high = cell.same
    step = most = cell.pairs - cell.judged + cell.same
    # Both tails rise or fall with K, so halving finds where they cross.
    while step:
        if high + step <= most and _lower_tail(cell, high + step) > _TAIL:
            high += step
        else:
            step //= 2
    step = most
    while step:
        if low + step <= most and _upper_tail(cell, low + step) <= _TAIL:
            low += step
        else:
            step //= 2
    return (low if _upper_tail(cell, low) > _TAIL else low + 1), high


def _lower_tail(cell: StratumCounts, duplicates: int) -> float:
    shares, first = _hypergeometric_shares(cell, duplicates)
    return float(shares[: cell.same - first + 1].sum())


def _upper_tail(cell: StratumCounts, duplicates: int) -> float:
    shares, first = _hypergeometric_shares(cell, duplicates)
    return float(shares[cell.same - first :].sum())


def _hypergeometric_shares(cell: StratumCounts, duplicates: int) -> tuple[Floats, int]:
    """Return the chance of each number of duplicates among the judged, from the lowest possible on, and that."""
    others = cell.pairs - duplicates
    first, last = max(0, cell.judged - others), min(cell.judged, duplicates)
    i = np.arange(first, last, dtype=np.float64)
    ratios = np.log((duplicates - i) * (cell.judged - i)) - np.log((i + 1) * (others - cell.judged + i + 1))
    weights = np.concatenate([[0.0], np.cumsum(ratios)])
    shares = np.exp(weights - weights.max())
    return shares / shares.sum(), first


def _wilson(cell: StratumCounts) -> tuple[float, float]:
    share = cell.same / cell.judged
    size = cell.judged * (cell.pairs - 1) / (cell.pairs - cell.judged)
    middle = (share + Z * Z / (2 * size)) / (1 + Z * Z / size)
    half = Z / (1 + Z * Z / size) * sqrt(share * (1 - share) / size + Z * Z / (4 * size * size))
    return cell.pairs * max(middle - half, 0.0), cell.pairs * min(middle + half, 1.0)


def estimate_duplicates(cells: Sequence[StratumCounts]) -> DuplicateEstimate | None:
    """Return how many duplicates strata hold; None where nothing is judged in one of them."""
    total = DuplicateEstimate(0.0, 0.0, 0.0, 0, 0)
    for cell in cells:
        if not cell.pairs:
            continue
        if not cell.judged:
            return None
        value = cell.pairs * cell.same / cell.judged
        low, high = limits(cell)
        total += DuplicateEstimate(value, value - low, high - value, cell.same, cell.pairs - cell.judged + cell.same)
    return total


def number(duplicates: DuplicateEstimate | None) -> Figure:
    """Return the number of duplicates with its interval; what was found bounds it for certain."""
    if duplicates is None:
        return Figure(None, None, None)
    low, high = duplicates.value - duplicates.below, duplicates.value + duplicates.above
    return Figure(duplicates.value, max(low, duplicates.least), min(high, duplicates.most))


def precision(found: DuplicateEstimate | None, returned: int) -> Figure:
    """Return the share of duplicates among the returned pairs: ``found`` of so many."""
    if not returned:
        return Figure(None, None, None)
    count = number(found)
    return Figure(*(None if value is None else value / returned for value in count))


def recall(found: DuplicateEstimate | None, missed: DuplicateEstimate | None) -> Figure:
    """Return the share of returned duplicates among all: found / (found + missed), of strata apart from each other.

    The limits are the shares r at which the interval of (1 - r) found - r missed ends in 0 (after Fieller 1954).
    """
    if found is None or missed is None or found.value + missed.value == 0:
        return Figure(None, None, None)
    a, b = found.value, missed.value
    low = _share(*_odds_limit(a, b, found.below, missed.above, lower=True)) if a else 0.0
    high = _share(*_odds_limit(a, b, found.above, missed.below, lower=False))
    # What was found of both kinds is there for certain.
    low = max(low, _share(found.least, missed.most))
    high = min(high, _share(found.most, missed.least))
    return Figure(a / (a + b), low, high)


def _odds_limit(a: float, b: float, of_a: float, of_b: float, *, lower: bool) -> tuple[float, float]:
    """Return the odds t = p / q at which a - t b = +-sqrt(of_a**2 + t**2 of_b**2), the lower or the upper ones."""
    root = sqrt(max((a * of_b) ** 2 + (b * of_a) ** 2 - (of_a * of_b) ** 2, 0.0))
    if lower:
        return max(a * a - of_a * of_a, 0.0), a * b + root
    return a * b + root, max(b * b - of_b * of_b, 0.0)


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 1.0


#: How many strata there are of returned pairs, and of others.
MAX_RETURNED_STRATA, MAX_UNRETURNED_STRATA = 5, 6
#: The fewest pairs that are drawn from a stratum that has so many, unless the sample is small.
MIN_DRAWN = 8
#: Pairs are never taken to be surer than where one in twenty-five is not what it seems.
_MIN_DEVIATION = 0.2


class Stratum(NamedTuple):
    """Pairs that are all returned or all not, with scores in [low, high); [low, high] where ``high`` is the highest."""

    returned: bool
    low: float
    high: float
    pairs: int
    #: In which proportion they are drawn.
    weight: float


def label_deviation(probability: Floats) -> Floats:
    """Return the standard deviation of whether a pair is a duplicate, 0.2 at least."""
    return np.maximum(np.sqrt(probability * (1 - probability)), _MIN_DEVIATION)


def stratify(
    score: Floats, returned: Bools, deviations: Floats, edges: Sequence[float], other_edges: Sequence[float]
) -> tuple[list[Stratum], Integers]:
    """Return the strata, the highest scores first and returned pairs before others, and the stratum of each pair.

    They depend on the scores alone, not on the order of the pairs, nor on the size of a sample.

    Scores of returned pairs and of others may be on different scales; strata begin at the ``edges`` of the one, and at
    the ``other_edges`` of the other, ascending.
    """
    strata: list[Stratum] = []
    place = np.zeros(len(score), np.int64)
    for side, most, begins in ((True, MAX_RETURNED_STRATA, edges), (False, MAX_UNRETURNED_STRATA, other_edges)):
        mine = np.flatnonzero(returned == side)
        if not len(mine):
            continue
        values = score[mine]
        lowest, highest = float(values.min()), float(values.max())
        inner = np.array([edge for edge in begins if lowest < edge <= highest], np.float64)
        chosen = _choose_edges(values, deviations[mine], inner, most)
        first = max((edge for edge in begins if edge <= lowest), default=lowest)
        bounds = [first, *chosen, min((edge for edge in begins if edge > highest), default=highest)]
        number = np.searchsorted(np.array(chosen), values, side="right")
        counts = np.bincount(number, minlength=len(chosen) + 1)
        doubtful = np.bincount(number, deviations[mine], len(chosen) + 1)
        place[mine] = len(strata) + len(chosen) - number
        strata += [
            Stratum(side, bounds[at], bounds[at + 1], int(counts[at]), float(doubtful[at]) / sqrt(counts[at]))
            for at in range(len(chosen), -1, -1)
        ]
    return strata, place


def _choose_edges(values: Floats, deviations: Floats, edges: Floats, most: int) -> list[float]:
    """Return at most ``most`` - 1 of the edges, none of which leaves a stratum empty."""
    bins = np.searchsorted(edges, values, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    held = np.maximum(counts, 1)
    roots = np.sqrt(counts) * np.bincount(bins, deviations, len(edges) + 1) / held
    reached = np.cumsum(roots)
    chosen: list[float] = []
    begin = 0
    for part in range(1, most):
        # The edge whose cumulated root is nearest to this part of the whole.
        at = int(np.argmin(np.abs(reached[:-1] - reached[-1] * part / most))) if len(edges) else 0
        if at < len(edges) and counts[begin : at + 1].any() and counts[at + 1 :].any():
            chosen.append(float(edges[at]))
            begin = at + 1
    return chosen


def allocate(strata: Sequence[Stratum], sample: int) -> list[int]:
    """Return how many pairs to draw from each stratum: half of the sample from returned pairs, half from others.

    A larger sample draws no fewer from any stratum. Within a side the whole numbers are the best possible ones for the
    strata's weights (Wright 2012: equal proportions).

    All pairs are drawn where there are fewer than ``sample``.
    """
    sides = [[at for at, stratum in enumerate(strata) if stratum.returned == side] for side in (True, False)]
    sizes = [sum(strata[at].pairs for at in side) for side in sides]
    first = min((sample + 1) // 2, sizes[0])
    second = min(sample - first, sizes[1])
    first = min(sample - second, sizes[0])
    drawn = [0] * len(strata)
    for side, share in zip(sides, (first, second), strict=True):
        for at, count in zip(side, _apportion([strata[at] for at in side], share), strict=True):
            drawn[at] = count
    return drawn


def _apportion(strata: Sequence[Stratum], share: int) -> list[int]:
    drawn = [0] * len(strata)
    queue = [(_draw_priority(stratum, 0), at) for at, stratum in enumerate(strata)]
    heapify(queue)
    for _ in range(share):
        at = queue[0][1]
        drawn[at] += 1
        heapreplace(queue, (_draw_priority(strata[at], drawn[at]), at))
    return drawn


def _draw_priority(stratum: Stratum, drawn: int) -> tuple[int, float]:
    """Return the less the stronger a stratum's claim to one pair more: first all come to the floor, by turns."""
    if drawn >= stratum.pairs:
        return 2, 0.0
    if drawn < MIN_DRAWN:
        return 0, float(drawn)
    return 1, -stratum.weight / sqrt(drawn * (drawn + 1))


class ThresholdDirections(NamedTuple):
    """Whether scores tell what stricter thresholds would return, and what looser ones would."""

    stricter: bool
    looser: bool


class Point(NamedTuple):
    """What a threshold returns."""

    #: Pairs at or above it are returned.
    score: float
    #: Whether it is the working point.
    own: bool
    #: How many pairs of distinct texts.
    returned: int
    #: Among those pairs, and of the duplicates among the candidates; with 95% intervals.
    precision: Figure
    recall: Figure


def points(
    strata: Sequence[Stratum], cells: Sequence[StratumCounts], own: float, directions: ThresholdDirections
) -> list[Point]:
    """Return the figures of the working point and of thresholds where strata begin, the strictest first."""
    mine = [stratum for stratum in strata if stratum.returned]
    stricter = sorted({stratum.low for stratum in mine}, reverse=True)[:-1] if directions.stricter else []
    looser = (
        sorted({stratum.low for stratum in strata if not stratum.returned}, reverse=True) if directions.looser else []
    )
    found = [
        _threshold_point(strata, cells, score, within=[s.returned and s.low >= score for s in strata])
        for score in stricter
    ]
    found.append(_threshold_point(strata, cells, own, within=[s.returned for s in strata])._replace(own=True))
    found += [
        _threshold_point(strata, cells, score, within=[s.returned or s.low >= score for s in strata])
        for score in looser
    ]
    return found


def _threshold_point(
    strata: Sequence[Stratum], cells: Sequence[StratumCounts], score: float, *, within: Sequence[bool]
) -> Point:
    inside = estimate_duplicates([cell for cell, is_in in zip(cells, within, strict=True) if is_in])
    outside = estimate_duplicates([cell for cell, is_in in zip(cells, within, strict=True) if not is_in])
    returned = sum(stratum.pairs for stratum, is_in in zip(strata, within, strict=True) if is_in)
    return Point(score, False, returned, precision(inside, returned), recall(inside, outside))


def duplicates(cells: Sequence[StratumCounts]) -> Figure:
    """Return how many duplicates there are among the candidates."""
    return number(estimate_duplicates(cells))
