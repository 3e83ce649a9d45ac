"""The thresholds that a comparison tries with each recipe."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from neardup.errors import RecipeError
from neardup.measures import exact_fraction, measure
from neardup.recipe import Recipe

#: What is tried with similarities where nothing else is asked for, and the most that may be.
USUAL_THRESHOLDS = ".5:.95:.05"
MOST_THRESHOLDS = 200
#: The Hamming distances that are tried with simhash.
HAMMING_DISTANCES = 10


class Ladder(NamedTuple):
    """The thresholds of one recipe, the loosest first.

    Attributes
    ----------
    scale : str
        ``similarity``, ``distance``, or ``fixed`` where the recipe has one threshold or no use for any.
    thresholds : list of float
        As recipes write them.
    cuts : list of float
        The similarities that a pair must reach at each, ascending.
    """

    scale: str
    thresholds: list[float]
    cuts: list[float]


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
        return Ladder("distance", distances, [1 - k / 64 for k in distances])
    if (
        measure(recipe.measure).distance
        or recipe.features.startswith("checksum")
        or recipe.signature.startswith("imatch")
    ):
        return Ladder("fixed", [own], [0.0])
    tried = sorted({*thresholds, own})
    return Ladder("similarity", tried, tried)
