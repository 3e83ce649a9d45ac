"""The thresholds that a comparison tries with each recipe or decision."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.decision.decision import Decision
from neardup.errors import RecipeError
from neardup.measures import exact_fraction, measure
from neardup.recipe import Recipe

#: What is tried with similarities where nothing else is asked for, and the most that may be.
USUAL_THRESHOLDS = ".5:.95:.05"
MOST_THRESHOLDS = 200
#: The Hamming distances that are tried with simhash.
HAMMING_DISTANCES = 10


class Ladder(NamedTuple):
    """The thresholds of one recipe or decision, the loosest first.

    Attributes
    ----------
    scale : str
        ``similarity``, ``distance``, ``probability`` for a decision, or ``fixed`` where there is one threshold or no
        use for any.
    thresholds : list of float
        As recipes write them.
    cuts : list of float
        What the similarities (for a decision, the ``levels``) of a pair must reach at each, ascending.
    own : float
        The one that it has by itself.
    """

    scale: str
    thresholds: list[float]
    cuts: list[float]
    own: float


def thresholds_of(asked: str | Sequence[float]) -> list[float]:
    """Return thresholds from ``.5:.95:.05`` (first, last, step), ``.5,.7`` or numbers, ascending.

    Raises
    ------
    RecipeError
        If they are no thresholds, or more than 200.
    """
    written: list[Fraction] = []
    if not isinstance(asked, str):
        written = [exact_fraction(value, "threshold") for value in asked]
    elif ":" in asked:
        parts = asked.split(":")
        if len(parts) != 3:
            raise RecipeError(
                f"thresholds {asked!r} are not first:last:step; write them like {USUAL_THRESHOLDS} or .5,.7"
            )
        first, last, step = (_number(part, asked) for part in parts)
        if step <= 0 or last < first:
            raise RecipeError(
                f"thresholds {asked!r} lead nowhere: write first:last:step with a step above 0, first <= last"
            )
        steps = int((last - first) / step) + 1
        _refuse_many(steps, asked)
        written = [exact_fraction(float(first + i * step), "threshold") for i in range(steps)]
    else:
        written = [exact_fraction(float(_number(part, asked)), "threshold") for part in asked.split(",")]
    if not written:
        raise RecipeError(f"thresholds are none; give some, like {USUAL_THRESHOLDS}")
    _refuse_many(len(set(written)), asked)
    return [float(threshold) for threshold in sorted(set(written))]


def _number(text: str, asked: str) -> Fraction:
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise RecipeError(
            f"thresholds {asked!r}: {text!r} is not a number; write {USUAL_THRESHOLDS} or .5,.7"
        ) from None


def _refuse_many(count: int, asked: str | Sequence[float]) -> None:
    if count > MOST_THRESHOLDS:
        what = f"thresholds {asked!r}" if isinstance(asked, str) else "thresholds"
        raise RecipeError(f"{what} are {count:,}, and at most {MOST_THRESHOLDS} are tried; take a larger step")


def ladder(recipe: Recipe, thresholds: Sequence[float]) -> Ladder:
    """Return what to try with a recipe: the thresholds, and its own among them.

    Checksums and I-Match have no use for a threshold, and Euclidean distances have no common scale: they keep their
    own.

    Parameters
    ----------
    recipe : Recipe
        Any.
    thresholds : sequence of float
        Similarities, ascending.
    """
    own = float(recipe.exact_threshold)
    if recipe.measure == "hamming":
        distances = sorted({float(k) for k in range(HAMMING_DISTANCES + 1)} | {own}, reverse=True)
        return Ladder("distance", distances, [1 - k / 64 for k in distances], own)
    if (
        measure(recipe.measure).distance
        or recipe.features.startswith("checksum")
        or recipe.signature.startswith("imatch")
    ):
        return Ladder("fixed", [own], [0.0], own)
    tried = sorted({*thresholds, own})
    return Ladder("similarity", tried, tried, own)


def decision_ladder(decision: Decision, thresholds: Sequence[float]) -> Ladder:
    """Return what to try with a decision: thresholds of the probability, and its own cut, as a probability, among them.

    Parameters
    ----------
    decision : Decision
        Any.
    thresholds : sequence of float
        Probabilities, ascending.
    """
    own = float(decision.probability(np.array([decision.cut]))[0])
    tried = sorted({*thresholds, own})
    return Ladder("probability", tried, [(at + 1) / len(tried) for at in range(len(tried))], own)


def levels(decision: Decision, steps: Ladder, g: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of a ladder's thresholds that let each pair pass; at its own one the decision itself says so."""
    probability = decision.probability(g)
    passed = decision.passes(g).astype(np.int64)
    for threshold in steps.thresholds:
        if threshold != steps.own:
            passed += probability >= threshold
    return np.asarray(passed / len(steps.thresholds), np.float64)
