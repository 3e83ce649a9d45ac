"""The table of measures: each is a function of the three numbers o, a and b of a pair.

- For feature sets A and B: o = |A and B|, a = |A|, b = |B|; a multiset is a set of (feature, i).
- For weighted vectors f and g: o = sum min(f, g), a = sum f, b = sum g (``weighted_jaccard``), or o = f.g, a = f.f,
  b = g.g (all others). Weights are whole numbers in some small unit, so all three are whole, too.
- For 64-bit fingerprints (simhash): o = 64 - their Hamming distance, a = b = 64.
- For texts: a = b = the length of the longer one, o = that less their edit distance.
- For embeddings and classifiers: a = b = 10**9, o = that times the cosine or the probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import RecipeError, suggestion

if TYPE_CHECKING:
    from neardup.kernels import Bools, Floats, Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure of similarity or distance, with what the join needs.

    Attributes
    ----------
    name : str
        The name in recipes and on the command line.
    formula : str
        The formula in the symbols of this module.
    source : str
        The publication that it comes from.
    takes : tuple of str
        The kinds of data that it compares: ``sets``, ``weights``, ``simhash``, ``text`` or ``embeddings``.
    code : int
        Its code in the kernels of the set join (``neardup.kernels.bounds``); -1 if they do not support it.
    distance : bool
        Whether it is a distance: then a pair matches at or below the threshold.
    highest : float
        The end of its range, which begins at 0.
    similarity : callable
        ``similarity(o, a, b)`` on integers or arrays of them, float64 in [0, 1], 1 for equal documents; for a
        distance, the similarity that is shown instead.
    reaches : callable
        ``reaches(o, a, b, bound)`` exactly, for Python integers and a Fraction: whether the pair matches.
    least_jaccard : callable
        ``least_jaccard(t)``: the least Jaccard of a matching pair of sets; 0 if there is no bound.
    bound : callable
        ``bound(t, unit)``: the bound for ``reaches`` at threshold t, if ``unit`` of o, a and b stands for 1.
    """

    name: str
    formula: str
    source: str
    takes: tuple[str, ...]
    similarity: Callable[[Any, Any, Any], Any]
    reaches: Callable[[int, int, int, Fraction], bool]
    code: int = -1
    distance: bool = False
    highest: float = 1.0
    least_jaccard: Callable[[Fraction], Fraction] = lambda t: Fraction(0)
    bound: Callable[[Fraction, int], Fraction] = lambda t, unit: t


# NumPy is imported in the functions, so that commands that only list measures, such as help, start faster.
def _over_the_larger(o: Any, a: Any, b: Any) -> Any:
    import numpy as np

    return o / np.maximum(a, b)


def _over_the_smaller(o: Any, a: Any, b: Any) -> Any:
    import numpy as np

    return o / np.minimum(a, b)


def _over_the_root(o: Any, a: Any, b: Any) -> Any:
    import numpy as np

    # The root comes last, so that equal cosines of sets are equal numbers, and ties are ties everywhere.
    square = np.multiply(o, o, dtype=np.float64) / np.multiply(a, b, dtype=np.float64)
    return np.minimum(np.sqrt(square), 1.0)


def _of_euclidean(o: Any, a: Any, b: Any) -> Any:
    import numpy as np

    return 1 / (1 + np.sqrt(np.subtract(a + b, 2 * o, dtype=np.float64)))


def _half(t: Fraction) -> Fraction:
    return t / (2 - t)


MEASURES: dict[str, Measure] = {
    m.name: m
    for m in (
        Measure(
            name="jaccard",
            formula="o / (a + b - o)",
            source="Broder 1997; Manning, Raghavan & Schuetze 2008, 19.6",
            takes=("sets",),
            code=0,
            similarity=lambda o, a, b: o / (a + b - o),
            reaches=lambda o, a, b, t: o >= t * (a + b - o),
            least_jaccard=lambda t: t,
        ),
        Measure(
            name="overlap",
            formula="o / max(a, b)",
            source="Montanari & Puglisi 2012, formula (2), there called docq",
            takes=("sets",),
            code=1,
            similarity=_over_the_larger,
            reaches=lambda o, a, b, t: o >= t * max(a, b),
            least_jaccard=_half,
        ),
        Measure(
            name="dice",
            formula="2 o / (a + b)",
            source="ICGICT 2014, formula (5)",
            takes=("sets", "weights"),
            code=2,
            similarity=lambda o, a, b: 2 * o / (a + b),
            reaches=lambda o, a, b, t: 2 * o >= t * (a + b),
            least_jaccard=_half,
        ),
        Measure(
            name="cosine",
            formula="o / sqrt(a b)",
            source="ICGICT 2014, formula (2)",
            takes=("sets", "weights"),
            code=3,
            similarity=_over_the_root,
            reaches=lambda o, a, b, t: o * o >= t * t * a * b,
            least_jaccard=lambda t: t * t,
        ),
        Measure(
            name="containment",
            formula="o / min(a, b)",
            source="Broder 1997; with a floor on Jaccard, so that a short text does not match all that quotes it",
            takes=("sets",),
            code=4,
            similarity=_over_the_smaller,
            reaches=lambda o, a, b, t: o >= t * min(a, b),
        ),
        Measure(
            name="euclidean",
            formula="sqrt(a + b - 2 o), a distance; shown as 1 / (1 + distance)",
            source="ICGICT 2014, formula (3)",
            takes=("sets", "weights"),
            code=5,
            distance=True,
            highest=float("inf"),
            similarity=_of_euclidean,
            reaches=lambda o, a, b, t: a + b - 2 * o <= t,
            bound=lambda t, unit: t * t * unit,
        ),
        Measure(
            name="extended_jaccard",
            formula="o / (a + b - o)",
            source="ICGICT 2014, formula (4)",
            takes=("sets", "weights"),
            code=0,
            similarity=lambda o, a, b: o / (a + b - o),
            reaches=lambda o, a, b, t: o >= t * (a + b - o),
            least_jaccard=lambda t: t,
        ),
        Measure(
            name="weighted_jaccard",
            formula="o / (a + b - o) of sums of weights",
            source="blog of 19 April 2020, 'weighting the n-grams like with a TF-IDF'",
            takes=("weights",),
            similarity=lambda o, a, b: o / (a + b - o),
            reaches=lambda o, a, b, t: o >= t * (a + b - o),
        ),
        Measure(
            name="hamming",
            formula="64 - o, a distance; shown as o / 64",
            source="Charikar 2002; Manku, Jain & Das Sarma, WWW 2007",
            takes=("simhash",),
            distance=True,
            highest=63.0,
            similarity=_over_the_larger,
            reaches=lambda o, a, b, t: max(a, b) - o <= t,
        ),
        Measure(
            name="edit",
            formula="1 - Levenshtein distance / length of the longer text",
            source="blog of 19 April 2020; Montanari & Puglisi 2012, 3.3",
            takes=("text",),
            similarity=_over_the_larger,
            reaches=lambda o, a, b, t: o >= t * max(a, b),
        ),
        Measure(
            name="semantic",
            formula="cosine of the embeddings that an encoder makes of the texts",
            source="Montanari & Puglisi 2012, 6",
            takes=("embeddings",),
            similarity=_over_the_larger,
            reaches=lambda o, a, b, t: o >= t * max(a, b),
        ),
        Measure(
            name="learned",
            formula="the probability that a classifier learned from labelled pairs gives, in units of 10**-9",
            source="ICGICT 2014, 3.2.2 to 3.3; Platt 1999",
            takes=("text",),
            similarity=_over_the_larger,
            reaches=lambda o, a, b, t: o >= t * max(a, b),
        ),
    )
}
#: The measures of feature sets.
SET_MEASURES = tuple(name for name, m in MEASURES.items() if "sets" in m.takes)


def measure(name: str) -> Measure:
    """Return the measure of that name.

    Raises ``RecipeError`` if there is none; the message lists those that a recipe may name.
    """
    if name not in MEASURES:
        # A classifier brings its own measure.
        choices = [known for known in MEASURES if known != "learned"]
        raise RecipeError(
            f"measure {name!r} is not known; choose one of {', '.join(choices)}{suggestion(name, choices)}"
        )
    return MEASURES[name]


#: Thresholds are taken as the nearest fraction with a denominator up to this: 0.7 is 7/10, 1/3 is 1/3.
FINEST_THRESHOLD = 10**9
#: The same for distances, which are squared.
FINEST_DISTANCE = 10**4
#: Sets have less than 2**31 features, so their distances are below 2**16.
_FARTHEST_SETS = 1 << 17
#: Within this relative distance of a threshold, whole numbers decide instead of floating point.
_MARGIN = 1e-9


class Rule(NamedTuple):
    """A measure, its threshold p/q and its floor on Jaccard, as integers for the kernels."""

    code: int
    p: int
    q: int
    floor_p: int
    floor_q: int


def exact_fraction(value: float, subject: str, *, zero: bool = False) -> Fraction:
    """Return a threshold of a similarity as a fraction, taken as it is written: 0.7 is 7/10.

    Raises ``RecipeError`` if it is not a number in (0, 1] (or [0, 1] with ``zero``).
    """
    interval = "[0, 1]" if zero else "(0, 1]"
    try:
        fraction = Fraction(str(value)).limit_denominator(FINEST_THRESHOLD)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise RecipeError(f"{subject} {value!r} is not a number; give one in {interval}") from None
    if not (0 <= fraction <= 1) or (fraction == 0 and not zero):
        raise RecipeError(f"{subject} {value} is outside {interval}; give a share such as 0.7")
    return fraction


def parse_threshold(name: str, value: float) -> Fraction:
    """Return a measure's threshold as a fraction, taken as it is written.

    Raises ``RecipeError`` if it is not a number in the measure's range: (0, 1] for similarities.
    """
    definition = measure(name)
    if not definition.distance:
        return exact_fraction(value, "threshold")
    try:
        fraction = Fraction(str(value)).limit_denominator(FINEST_DISTANCE)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise RecipeError(
            f"threshold {value!r} is not a number; {name} takes the largest distance of a match"
        ) from None
    if name == "hamming" and (fraction.denominator != 1 or not 0 <= fraction <= definition.highest):
        raise RecipeError(f"threshold {value} is no Hamming distance; give the most bits that may differ, 0 to 63")
    if fraction < 0 or (fraction == 0 and name != "hamming") or fraction > FINEST_THRESHOLD:
        raise RecipeError(
            f"threshold {value} is no distance; {name} takes a number above 0 and up to {FINEST_THRESHOLD:,}: the "
            "largest of a match"
        )
    return fraction


def similarity_at(name: str, threshold: float | Fraction) -> float:
    """Return the similarity of a pair that lies exactly at a threshold, which for a distance is a distance."""
    if not measure(name).distance:
        return float(threshold)
    return 1 - float(threshold) / 64 if name == "hamming" else 1 / (1 + float(threshold))


def threshold_at(name: str, similarity: float) -> float:
    """Return the threshold at which a pair of this similarity just matches: the inverse of ``similarity_at``."""
    if not measure(name).distance:
        return similarity
    if name == "hamming":
        return round(64 * (1 - similarity))
    return 1 / similarity - 1 if similarity else float("inf")


def rule(name: str, threshold: float, jaccard_floor: float = 0.0) -> Rule:
    """Return the rule of a measure and its threshold for the kernels of the set join.

    Raising the threshold finds fewer pairs, faster (for ``euclidean`` more); raising the floor on Jaccard, 0 for none,
    excludes pairs of very different sizes.
    """
    definition = measure(name)
    value = parse_threshold(name, threshold)
    if definition.distance:
        # No two sets are farther apart, and the square of a larger number may not fit into the kernels' integers.
        value = min(value, Fraction(_FARTHEST_SETS))
    t = definition.bound(value, 1)
    floor = exact_fraction(jaccard_floor, "jaccard floor", zero=True)
    return Rule(definition.code, t.numerator, t.denominator, floor.numerator, floor.denominator)


def similarities(name: str, counts: Integers, unit: int = 1) -> Floats:
    """Return the similarity of each pair from its (o, a, b).

    Parameters
    ----------
    counts : int64[n, 3]
        o, a and b, with a and b at least 1.
    unit : int
        The value of o, a and b that stands for 1; only ``euclidean`` depends on it.
    """
    import numpy as np

    definition = measure(name)
    o, a, b = counts.T
    if unit != 1 and definition.distance:
        # A distance depends only on differences; those of whole numbers are exact.
        o, a, b = (counts - counts[:, :1]).T / unit
    return np.asarray(definition.similarity(o, a, b), np.float64)


def reaches_threshold(name: str, counts: Integers, threshold: Fraction, unit: int = 1) -> Bools:
    """Return which pairs reach a threshold, decided exactly; the other parameters are those of ``similarities``.

    Floating point decides pairs clearly above or below the threshold, whole numbers the rest.
    """
    import numpy as np

    definition = measure(name)
    values, limit = similarities(name, counts, unit), similarity_at(name, threshold)
    reached = values > limit
    bound = definition.bound(threshold, unit)
    for i in np.flatnonzero(np.abs(values - limit) <= _MARGIN * limit):
        o, a, b = map(int, counts[i])
        reached[i] = definition.reaches(o, a, b, bound)
    return reached
