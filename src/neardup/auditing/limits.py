"""How many duplicates a stratum may hold, from a random sample of it; and sums and shares over strata.

A stratum's limits are the wider of two: those of the exact test for a finite population (hypergeometric tails; Clopper
& Pearson 1934), and those of Wilson's score (1927) with the size of the sample corrected for a finite population. The
exact ones alone stop at what was found, which is too close where half of a small stratum was judged. Limits of sums
are made from them by the method of variance estimates recovery (MOVER: Zou & Donner 2008): the distances between an
estimate and its lower limits add up as squares, and likewise the upper ones. So a stratum in which no duplicate was
found, or nothing else, has limits, where a normal approximation would have none; and they do not pile up over many
such strata, as priors of half a duplicate would.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import hypot, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.evaluation.scoring import CONFIDENCE, Figure

Floats = npt.NDArray[np.float64]

#: What each of the two ends of an interval may miss.
_TAIL = (1 - CONFIDENCE) / 2
_Z = NormalDist().inv_cdf(1 - _TAIL)


class Cell(NamedTuple):
    """A stratum, and what is known of it.

    Attributes
    ----------
    pairs : int
        How many it holds.
    judged : int
        How many of them, drawn at random, were judged.
    same : int
        How many of those are duplicates.
    """

    pairs: int
    judged: int
    same: int


class Sum(NamedTuple):
    """How many duplicates some strata hold: the estimate, and how far below and above it the limits lie."""

    value: float
    below: float
    above: float
    least: int
    most: int

    def __add__(self, other: object) -> Sum:
        """Return the sum over these strata and others."""
        if not isinstance(other, Sum):
            return NotImplemented
        return Sum(
            self.value + other.value,
            hypot(self.below, other.below),
            hypot(self.above, other.above),
            self.least + other.least,
            self.most + other.most,
        )


def limits(cell: Cell) -> tuple[float, float]:
    """Return the limits of the number of duplicates in a stratum."""
    if cell.judged == cell.pairs:
        return float(cell.same), float(cell.same)
    if not cell.judged:
        return 0.0, float(cell.pairs)
    low, high = exact_limits(cell)
    wilson_low, wilson_high = _wilson(cell)
    return min(low, wilson_low), max(high, wilson_high)


@lru_cache(maxsize=1 << 12)
def exact_limits(cell: Cell) -> tuple[int, int]:
    """Return the fewest and the most duplicates with which such a sample is no surprise on either side.

    With K duplicates among N pairs, the number among n judged ones is hypergeometric; K is within the limits if
    neither P(X <= x) nor P(X >= x) is 2.5 % or less.
    """
    low = high = cell.same
    step = most = cell.pairs - cell.judged + cell.same
    # Both tails rise or fall with K, so halving finds where they cross.
    while step:
        if high + step <= most and _at_most(cell, high + step) > _TAIL:
            high += step
        else:
            step //= 2
    step = most
    while step:
        if low + step <= most and _at_least(cell, low + step) <= _TAIL:
            low += step
        else:
            step //= 2
    return (low if _at_least(cell, low) > _TAIL else low + 1), high


def _at_most(cell: Cell, duplicates: int) -> float:
    shares, first = _chances(cell, duplicates)
    return float(shares[: cell.same - first + 1].sum())


def _at_least(cell: Cell, duplicates: int) -> float:
    shares, first = _chances(cell, duplicates)
    return float(shares[cell.same - first :].sum())


def _chances(cell: Cell, duplicates: int) -> tuple[Floats, int]:
    """Return the chance of each number of duplicates among the judged, from the lowest possible on, and that."""
    others = cell.pairs - duplicates
    first, last = max(0, cell.judged - others), min(cell.judged, duplicates)
    i = np.arange(first, last, dtype=np.float64)
    ratios = np.log((duplicates - i) * (cell.judged - i)) - np.log((i + 1) * (others - cell.judged + i + 1))
    weights = np.concatenate([[0.0], np.cumsum(ratios)])
    shares = np.exp(weights - weights.max())
    return shares / shares.sum(), first


def _wilson(cell: Cell) -> tuple[float, float]:
    share = cell.same / cell.judged
    size = cell.judged * (cell.pairs - 1) / (cell.pairs - cell.judged)
    middle = (share + _Z * _Z / (2 * size)) / (1 + _Z * _Z / size)
    half = _Z / (1 + _Z * _Z / size) * sqrt(share * (1 - share) / size + _Z * _Z / (4 * size * size))
    return cell.pairs * max(middle - half, 0.0), cell.pairs * min(middle + half, 1.0)


def summed(cells: Sequence[Cell]) -> Sum | None:
    """Return how many duplicates strata hold; None where nothing is judged in one of them."""
    total = Sum(0.0, 0.0, 0.0, 0, 0)
    for cell in cells:
        if not cell.pairs:
            continue
        if not cell.judged:
            return None
        value = cell.pairs * cell.same / cell.judged
        low, high = limits(cell)
        total += Sum(value, value - low, high - value, cell.same, cell.pairs - cell.judged + cell.same)
    return total


def number(duplicates: Sum | None) -> Figure:
    """Return the number of duplicates with its interval; what was found bounds it for certain."""
    if duplicates is None:
        return Figure(None, None, None)
    low, high = duplicates.value - duplicates.below, duplicates.value + duplicates.above
    return Figure(duplicates.value, max(low, duplicates.least), min(high, duplicates.most))


def precision(found: Sum | None, returned: int) -> Figure:
    """Return the share of duplicates among the returned pairs: ``found`` of so many."""
    if not returned:
        return Figure(None, None, None)
    count = number(found)
    return Figure(*(None if value is None else value / returned for value in count))


def recall(found: Sum | None, missed: Sum | None) -> Figure:
    """Return the share of returned duplicates among all: found / (found + missed), of strata apart from each other.

    The limits are the shares r at which the interval of (1 - r) found - r missed ends in 0 (after Fieller 1954).
    """
    if found is None or missed is None or found.value + missed.value == 0:
        return Figure(None, None, None)
    a, b = found.value, missed.value
    low = _share(*_odds(a, b, found.below, missed.above, lower=True)) if a else 0.0
    high = _share(*_odds(a, b, found.above, missed.below, lower=False))
    # What was found of both kinds is there for certain.
    low = max(low, _share(found.least, missed.most))
    high = min(high, _share(found.most, missed.least))
    return Figure(a / (a + b), low, high)


def _odds(a: float, b: float, of_a: float, of_b: float, *, lower: bool) -> tuple[float, float]:
    """Return the odds t = p / q at which a - t b = +-sqrt(of_a**2 + t**2 of_b**2), the lower or the upper ones."""
    root = sqrt(max((a * of_b) ** 2 + (b * of_a) ** 2 - (of_a * of_b) ** 2, 0.0))
    if lower:
        return max(a * a - of_a * of_a, 0.0), a * b + root
    return a * b + root, max(b * b - of_b * of_b, 0.0)


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 1.0
