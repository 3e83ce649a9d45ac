"""Figures with 95% intervals: by bootstrap over groups of documents, and of the number of duplicates in strata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import hypot, sqrt
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels import Floats, Integers

#: The share of the bootstrap draws inside an interval, and half its width in standard errors.
CONFIDENCE = 0.95
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
#: The probability that the truth lies beyond one end of an interval.
_TAIL = (1 - CONFIDENCE) / 2
#: Bootstrap draws, and counts that are drawn at a time, which bounds the memory.
RESAMPLES = 2000
_CELLS_PER_STEP = 1 << 22
#: The labels cannot distinguish two recipes that differ in fewer groups.
MIN_GROUPS = 6


class Figure(NamedTuple):
    """A figure with its interval; None where it is undefined, such as the precision of no pairs."""

    value: float | None
    low: float | None
    high: float | None


def record_dict(record: Any) -> dict[str, Any]:
    """Return a record and the records in it as dictionaries, ready for JSON."""
    return {
        name: record_dict(value) if hasattr(value, "_asdict") else value for name, value in record._asdict().items()
    }


def format_value(figure: Mapping[str, Any]) -> str:
    """Return the value of a figure as people read it."""
    return "none" if figure["value"] is None else f"{figure['value']:.3f}"


def format_interval(figure: Mapping[str, Any]) -> str:
    """Return the interval of a figure as people read it; empty without one."""
    return "" if figure["low"] is None else f"{figure['low']:.3f} to {figure['high']:.3f}"


def make_figure(value: float, drawn: Floats) -> Figure:
    """Return a figure from its value and the values in the draws; undefined if the value is not finite."""
    return Figure(float(value), *percentile_interval(drawn)) if np.isfinite(value) else Figure(None, None, None)


def percentile_interval(values: Floats) -> tuple[float | None, float | None]:
    """Return the percentiles that enclose the central 95% of the finite values; None if no value is finite."""
    finite = values[np.isfinite(values)]
    if not len(finite):
        return None, None
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(finite, [tail, 100 - tail])
    return float(low), float(high)


def bootstrap_sums(kinds: Integers, shares: Floats, groups: int, count: int, seed: int) -> Floats:
    """Return the sums of counts over ``count`` draws of ``groups`` groups with replacement: float64[count, r].

    ``kinds`` (int64[r, k]) has the r counts of a group of each kind, ``shares`` (float64[k] or float64[k + 1]) the
    share of the groups that are of each kind; a last one stands for groups whose counts are all 0.
    """
    random = np.random.default_rng(seed)
    sums = np.empty((count, len(kinds)))
    step = max(_CELLS_PER_STEP // max(len(shares), 1), 1)
    for begin in range(0, count, step):
        draws = random.multinomial(groups, shares, size=min(step, count - begin))[:, : kinds.shape[1]]
        sums[begin : begin + step] = draws.astype(np.float64) @ kinds.T.astype(np.float64)
    return sums


def ratio(part: npt.NDArray[np.number], whole: npt.NDArray[np.number]) -> Floats:
    """Return part / whole, nan where the whole is 0."""
    result = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=result, where=whole != 0)
    return result


class StratumCounts(NamedTuple):
    """Counts of a stratum."""

    pairs: int
    judged: int
    duplicates: int


class DuplicateEstimate(NamedTuple):
    """An estimate of the number of duplicates in one or more strata."""

    value: float
    #: The distances from the value to the limits of its interval.
    lower_error: float
    upper_error: float
    #: The bounds that hold for certain, from the pairs that were judged.
    minimum: int
    maximum: int

    def __add__(self, other: object) -> DuplicateEstimate:
        """Return the estimate for the strata of both."""
        if not isinstance(other, DuplicateEstimate):
            return NotImplemented
        return DuplicateEstimate(
            self.value + other.value,
            hypot(self.lower_error, other.lower_error),
            hypot(self.upper_error, other.upper_error),
            self.minimum + other.minimum,
            self.maximum + other.maximum,
        )


def duplicate_limits(cell: StratumCounts) -> tuple[float, float]:
    """Return the limits of the number of duplicates in a stratum."""
    if cell.judged == cell.pairs:
        return float(cell.duplicates), float(cell.duplicates)
    if not cell.judged:
        return 0.0, float(cell.pairs)
    low, high = exact_limits(cell)
    wilson_low, wilson_high = _wilson(cell)
    return min(low, wilson_low), max(high, wilson_high)


@lru_cache(maxsize=1 << 12)
def exact_limits(cell: StratumCounts) -> tuple[int, int]:
    """Return the exact 95% limits of the number of duplicates in a stratum, from the hypergeometric distribution.

    With K duplicates among N pairs, the number X of duplicates among n judged pairs is hypergeometric. K is within the
    limits if P(X <= x) and P(X >= x) both exceed 2.5% for the observed x.
    """
    low = high = cell.duplicates
    step = maximum = cell.pairs - cell.judged + cell.duplicates
    # Both tails are monotonic in K, so bisection finds the limits.
    while step:
        if high + step <= maximum and _lower_tail(cell, high + step) > _TAIL:
            high += step
        else:
            step //= 2
    step = maximum
    while step:
        if low + step <= maximum and _upper_tail(cell, low + step) <= _TAIL:
            low += step
        else:
            step //= 2
    return (low if _upper_tail(cell, low) > _TAIL else low + 1), high


def _lower_tail(cell: StratumCounts, duplicates: int) -> float:
    shares, first = _hypergeometric_shares(cell, duplicates)
    return float(shares[: cell.duplicates - first + 1].sum())


def _upper_tail(cell: StratumCounts, duplicates: int) -> float:
    shares, first = _hypergeometric_shares(cell, duplicates)
    return float(shares[cell.duplicates - first :].sum())


def _hypergeometric_shares(cell: StratumCounts, duplicates: int) -> tuple[Floats, int]:
    """Return the probability of each possible number of judged duplicates, ascending, and the lowest number."""
    different = cell.pairs - duplicates
    first, last = max(0, cell.judged - different), min(cell.judged, duplicates)
    i = np.arange(first, last, dtype=np.float64)
    ratios = np.log((duplicates - i) * (cell.judged - i)) - np.log((i + 1) * (different - cell.judged + i + 1))
    weights = np.concatenate([[0.0], np.cumsum(ratios)])
    shares = np.exp(weights - weights.max())
    return shares / shares.sum(), first


def _wilson(cell: StratumCounts) -> tuple[float, float]:
    share = cell.duplicates / cell.judged
    size = cell.judged * (cell.pairs - 1) / (cell.pairs - cell.judged)
    middle = (share + Z * Z / (2 * size)) / (1 + Z * Z / size)
    half = Z / (1 + Z * Z / size) * sqrt(share * (1 - share) / size + Z * Z / (4 * size * size))
    return cell.pairs * max(middle - half, 0.0), cell.pairs * min(middle + half, 1.0)


def estimate_duplicates(cells: Sequence[StratumCounts]) -> DuplicateEstimate | None:
    """Return the estimated number of duplicates in strata; None if no pair of one of them is judged."""
    total = DuplicateEstimate(0.0, 0.0, 0.0, 0, 0)
    for cell in cells:
        if not cell.pairs:
            continue
        if not cell.judged:
            return None
        value = cell.pairs * cell.duplicates / cell.judged
        low, high = duplicate_limits(cell)
        maximum = cell.pairs - cell.judged + cell.duplicates
        total += DuplicateEstimate(value, value - low, high - value, cell.duplicates, maximum)
    return total


def duplicate_figure(duplicates: DuplicateEstimate | None) -> Figure:
    """Return a number of duplicates with its interval, which respects the certain bounds."""
    if duplicates is None:
        return Figure(None, None, None)
    low, high = duplicates.value - duplicates.lower_error, duplicates.value + duplicates.upper_error
    return Figure(duplicates.value, max(low, duplicates.minimum), min(high, duplicates.maximum))


def precision_figure(found: DuplicateEstimate | None, returned: int) -> Figure:
    """Return the share of duplicates among ``returned`` pairs."""
    if not returned:
        return Figure(None, None, None)
    count = duplicate_figure(found)
    return Figure(*(None if value is None else value / returned for value in count))


def recall_figure(found: DuplicateEstimate | None, missed: DuplicateEstimate | None) -> Figure:
    """Return the recall, found / (found + missed), where both estimates come from different strata.

    The limits are the shares r at which the interval of (1 - r) found - r missed ends at 0 (after Fieller 1954).
    """
    if found is None or missed is None or found.value + missed.value == 0:
        return Figure(None, None, None)
    a, b = found.value, missed.value
    low = _share(*_odds_limit(a, b, found.lower_error, missed.upper_error, lower=True)) if a else 0.0
    high = _share(*_odds_limit(a, b, found.upper_error, missed.lower_error, lower=False))
    low = max(low, _share(found.minimum, missed.maximum))
    high = min(high, _share(found.maximum, missed.minimum))
    return Figure(a / (a + b), low, high)


def _odds_limit(a: float, b: float, error_a: float, error_b: float, *, lower: bool) -> tuple[float, float]:
    """Return the lower or upper odds t = p / q at which a - t b = +-sqrt(error_a**2 + t**2 error_b**2)."""
    root = sqrt(max((a * error_b) ** 2 + (b * error_a) ** 2 - (error_a * error_b) ** 2, 0.0))
    if lower:
        return max(a * a - error_a * error_a, 0.0), a * b + root
    return a * b + root, max(b * b - error_b * error_b, 0.0)


def _share(part: float, rest: float) -> float:
    return part / (part + rest) if part + rest > 0 else 1.0
