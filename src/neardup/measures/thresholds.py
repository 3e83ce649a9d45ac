"""Thresholds as exact fractions, what reaches them, and the rules that tell the join how much overlap a pair needs."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.measures.table import measure

#: Thresholds are taken as the nearest fraction with a denominator up to this: 0.7 is 7/10, 1/3 is 1/3.
FINEST_THRESHOLD = 10**9
#: The same for distances, which are squared.
FINEST_DISTANCE = 10**4
#: Floating point is trusted to tell a pair from the threshold when they are at least so far apart.
_MARGIN = 1e-9

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Rule(NamedTuple):
    """A measure and its threshold p/q, with a floor on Jaccard, in the integers that the kernels take."""

    code: int
    p: int
    q: int
    floor_p: int
    floor_q: int


def exact_fraction(value: float, what: str, *, zero: bool = False) -> Fraction:
    """Return a threshold of a similarity as a fraction, taken as it is written: 0.7 is 7/10.

    Raises
    ------
    RecipeError
        If it is not a number in (0, 1] (or [0, 1] with ``zero``).
    """
    interval = "[0, 1]" if zero else "(0, 1]"
    try:
        fraction = Fraction(str(value)).limit_denominator(FINEST_THRESHOLD)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise RecipeError(f"{what} {value!r} is not a number; give one in {interval}") from None
    if not (0 <= fraction <= 1) or (fraction == 0 and not zero):
        raise RecipeError(f"{what} {value} is outside {interval}; give a share such as 0.7")
    return fraction


def threshold_of(name: str, value: float) -> Fraction:
    """Return a measure's threshold as a fraction, taken as it is written.

    Raises
    ------
    RecipeError
        If it is not a number in the measure's range: (0, 1] for similarities.
    """
    known = measure(name)
    if not known.distance:
        return exact_fraction(value, "threshold")
    try:
        fraction = Fraction(str(value)).limit_denominator(FINEST_DISTANCE)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise RecipeError(
            f"threshold {value!r} is not a number; {name} takes the largest distance of a match"
        ) from None
    if name == "hamming" and (fraction.denominator != 1 or not 0 <= fraction <= known.highest):
        raise RecipeError(f"threshold {value} is no Hamming distance; give the most bits that may differ, 0 to 63")
    if fraction < 0 or (fraction == 0 and name != "hamming") or fraction > FINEST_THRESHOLD:
        raise RecipeError(f"threshold {value} is no distance; {name} takes a number above 0: the largest of a match")
    return fraction


def rule(name: str, threshold: float, jaccard_floor: float = 0.0) -> Rule:
    """Return the rule of a measure and its threshold for the kernels of the set join.

    Parameters
    ----------
    name : str
        The measure.
    threshold : float
        Pairs at or above it match; in (0, 1]. Raising it finds fewer pairs, faster. (For ``euclidean``, pairs at or
        below it; raising it finds more.)
    jaccard_floor : float
        A pair's Jaccard must reach this too; 0 for no floor. Raising it keeps sizes alike.
    """
    known = measure(name)
    t = known.bound(threshold_of(name, threshold), 1)
    floor = exact_fraction(jaccard_floor, "jaccard floor", zero=True)
    return Rule(known.code, t.numerator, t.denominator, floor.numerator, floor.denominator)


def similarities(name: str, counts: Integers, unit: int = 1) -> Floats:
    """Return the similarity of each pair from its (o, a, b).

    Parameters
    ----------
    name : str
        The measure.
    counts : int64[n, 3]
        o, a and b, with a and b at least 1.
    unit : int
        How much of o, a and b makes 1; only ``euclidean`` depends on it.
    """
    known = measure(name)
    o, a, b = counts.T
    if unit != 1 and known.distance:
        # Only differences matter to a distance; those of whole numbers are exact.
        o, a, b = (counts - counts[:, :1]).T / unit
    return np.asarray(known.similarity(o, a, b), np.float64)


def reaching(name: str, counts: Integers, threshold: Fraction, unit: int = 1) -> npt.NDArray[np.bool_]:
    """Return, exactly, whether each pair reaches a threshold; the other parameters are those of ``similarities``.

    Floating point decides what is clearly above or below, whole numbers the rest.
    """
    known = measure(name)
    found = similarities(name, counts, unit)
    if not known.distance:
        at = float(threshold)
    elif name == "hamming":
        at = 1 - float(threshold) / 64
    else:
        at = 1 / (1 + float(threshold))
    reached = found > at
    bound = known.bound(threshold, unit)
    for i in np.flatnonzero(np.abs(found - at) <= _MARGIN * at):
        o, a, b = map(int, counts[i])
        reached[i] = known.reaches(o, a, b, bound)
    return reached
