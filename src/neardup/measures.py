"""The set measures in one table, and the rules that tell the join how much overlap a pair needs.

For feature sets A and B with sizes a, b and overlap o = |A and B|; a multiset is a set whose elements are
(feature, i).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError

#: Thresholds are taken as the nearest fraction with a denominator up to this: 0.7 is 7/10, 1/3 is 1/3.
FINEST_THRESHOLD = 10**9

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


class Rule(NamedTuple):
    """A measure and its threshold p/q, with a floor on Jaccard, in the integers that the kernels take."""

    code: int
    p: int
    q: int
    floor_p: int
    floor_q: int


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of two feature sets; all here are similarities in [0, 1], 1 for equal sets.

    Attributes
    ----------
    name : str
        The name in recipes and on the command line.
    formula : str
        The formula in the symbols of this module.
    source : str
        Where it comes from.
    code : int
        What the kernels call it (``neardup._kernels.bounds``).
    similarity : callable
        ``similarity(o, a, b)`` on integers or arrays of them, float64.
    reaches : callable
        ``reaches(o, a, b, t)`` exactly, for Python integers and a Fraction t: whether similarity >= t.
    """

    name: str
    formula: str
    source: str
    code: int
    similarity: Callable[[Any, Any, Any], Any]
    reaches: Callable[[int, int, int, Fraction], bool]


MEASURES: dict[str, Measure] = {
    m.name: m
    for m in (
        Measure(
            "jaccard",
            "o / (a + b - o)",
            "Broder 1997; Manning, Raghavan & Schuetze 2008, 19.6",
            0,
            lambda o, a, b: o / (a + b - o),
            lambda o, a, b, t: o >= t * (a + b - o),
        ),
        Measure(
            "overlap",
            "o / max(a, b)",
            "Montanari & Puglisi 2012, formula (2), there called docq",
            1,
            lambda o, a, b: o / np.maximum(a, b),
            lambda o, a, b, t: o >= t * max(a, b),
        ),
        Measure(
            "dice",
            "2 o / (a + b)",
            "ICGICT 2014, formula (5), on sets",
            2,
            lambda o, a, b: 2 * o / (a + b),
            lambda o, a, b, t: 2 * o >= t * (a + b),
        ),
        Measure(
            "cosine",
            "o / sqrt(a b)",
            "ICGICT 2014, formula (2), on sets",
            3,
            lambda o, a, b: o / np.sqrt(np.multiply(a, b, dtype=np.float64)),
            lambda o, a, b, t: o * o >= t * t * a * b,
        ),
        Measure(
            "containment",
            "o / min(a, b)",
            "Broder 1997; with a floor on Jaccard, so that a short text does not match all that quotes it",
            4,
            lambda o, a, b: o / np.minimum(a, b),
            lambda o, a, b, t: o >= t * min(a, b),
        ),
    )
}


def measure(name: str) -> Measure:
    """Return the measure of that name.

    Raises
    ------
    RecipeError
        If there is none; the message lists those that there are.
    """
    if name not in MEASURES:
        raise RecipeError(f"measure {name!r} is not known; choose one of {', '.join(MEASURES)}")
    return MEASURES[name]


def exact_fraction(value: float, what: str, *, zero: bool = False) -> Fraction:
    """Return a threshold as a fraction, taken as it is written: 0.7 is 7/10.

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
        raise RecipeError(f"{what} {value} is outside {interval}")
    return fraction


def rule(name: str, threshold: float, jaccard_floor: float = 0.0) -> Rule:
    """Return the rule of a measure and its threshold for the kernels.

    Parameters
    ----------
    name : str
        The measure.
    threshold : float
        Pairs at or above it match; in (0, 1]. Raising it finds fewer pairs, faster.
    jaccard_floor : float
        A pair's Jaccard must reach this too; 0 for no floor. Raising it keeps sizes alike.
    """
    t = exact_fraction(threshold, "threshold")
    floor = exact_fraction(jaccard_floor, "jaccard floor", zero=True)
    return Rule(measure(name).code, t.numerator, t.denominator, floor.numerator, floor.denominator)


def similarities(name: str, overlap: Integers, a: Integers, b: Integers) -> Floats:
    """Return the similarity of each pair from its overlap and sizes: int64[n] each, all sizes at least 1."""
    return np.asarray(measure(name).similarity(overlap, a, b), np.float64)
