"""Pairs just beyond the threshold, found by a search with a relaxed threshold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.errors import RecipeError, option
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, measure, reaches_threshold, similarities
from neardup.recipe.second_step import SecondStep
from neardup.search.matches import Matches

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier


#: The default margin of a similarity; half the threshold if that is less.
_DEFAULT = Fraction(1, 5)
#: The default margin of distances: bits, and a share of the threshold.
_DEFAULT_BITS, _DEFAULT_SHARE = 2, Fraction(1, 4)


class Criterion(NamedTuple):
    """The last measure that decides whether a pair matches, with its threshold; ``second``: it is of a second step."""

    measure: str
    threshold: Fraction
    second: bool

    @property
    def distance(self) -> bool:
        """Whether the measure is a distance: pairs match at or below the threshold."""
        return measure(self.measure).distance

    def counts(self, matches: Matches) -> tuple[Integers, int]:
        """Return o, a and b of pairs for the measure, and their unit."""
        if self.second and matches.second is not None:
            return matches.second, 1
        return matches.counts, matches.unit

    def similarities(self, matches: Matches) -> Floats:
        """Return the similarities of pairs."""
        return similarities(self.measure, *self.counts(matches))

    def reached_by(self, matches: Matches, threshold: Fraction) -> Bools:
        """Return which pairs reach a threshold, decided exactly."""
        counts, unit = self.counts(matches)
        return reaches_threshold(self.measure, counts, threshold, unit)


def criterion_of(recipe: Recipe, classifier: Classifier | None = None) -> Criterion:
    """Return the criterion of a recipe; with a classifier, the probability at its cut."""
    step = recipe.parsed_second_step
    if step is None:
        return Criterion(recipe.measure, recipe.exact_threshold, False)
    if step.measure != "learned":
        return Criterion(step.measure, step.exact_threshold, True)
    at_cut = 0.0
    if classifier is not None and isfinite(classifier.cut):
        at_cut = float(classifier.probability(np.array([classifier.cut]))[0])
    return Criterion(step.measure, exact_fraction(at_cut, "probability", zero=True), True)


@dataclass(frozen=True, slots=True, eq=False)
class Margin:
    """The result of a search beyond the threshold.

    Attributes
    ----------
    matches : Matches or None
        All pairs that reach the relaxed threshold, the matching ones included; None if none were searched, and then
        ``relaxed_threshold`` is that of the recipe.
    note : str
        A sentence on why the search goes so far, or why there was none.
    """

    matches: Matches | None
    relaxed_threshold: Fraction
    note: str


def default_margin(recipe: Recipe) -> float:
    """Return the default margin of a recipe: 0.2, or half of a threshold below 0.4.

    For a Hamming distance it is two bits, for other distances a quarter of the threshold.
    """
    scale = criterion_of(recipe)
    if scale.measure == "hamming":
        return float(_DEFAULT_BITS)
    if scale.distance:
        return float(scale.threshold * _DEFAULT_SHARE)
    return float(min(_DEFAULT, scale.threshold / 2) or _DEFAULT)


def has_threshold(recipe: Recipe) -> bool:
    """Return whether another threshold could change the result: not if each document has a single value."""
    single = recipe.parsed_features.kind == "checksum" or recipe.signature.startswith("imatch")
    return not single or bool(recipe.second_step)


def relaxed_recipe(recipe: Recipe, margin: float) -> Recipe | str:
    """Return a recipe whose threshold, or that of its second step, is relaxed, or a sentence on why there is none.

    The threshold moves by ``margin``: down, or up for a distance; raising it finds more pairs, slower. Raises
    ``RecipeError`` if the margin is not a number above 0, or leads out of the measure's range.
    """
    try:
        distance = Fraction(str(margin)).limit_denominator(10**9)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise RecipeError(f"margin {margin!r} is not a number; give how far beyond the threshold to look") from None
    if distance <= 0:
        raise RecipeError(f"margin {margin} is not above 0; give how far beyond the threshold to look, or nothing")
    scale = criterion_of(recipe)
    if scale.measure == "learned":
        return recipe
    if not has_threshold(recipe):
        return "Two documents have one value in common or none, so another threshold would change nothing."
    if recipe.search == "lsh" and not scale.second:
        return (
            "LSH makes its bands for one threshold, so pairs beyond it were not searched: with another threshold it "
            "would find others. Choose search 'exact' to see them."
        )
    moved = scale.threshold + distance if scale.distance else scale.threshold - distance
    if not scale.distance and moved <= 0:
        raise RecipeError(
            f"margin {margin} leaves nothing of threshold {float(scale.threshold):g}; give less, such as "
            f"{default_margin(recipe):g}"
        )
    if scale.measure == "hamming" and (moved.denominator != 1 or moved > measure("hamming").highest):
        raise RecipeError(f"margin {margin} does not lead to a Hamming distance; give whole bits, up to 63 in all")
    step = recipe.parsed_second_step
    if step is None:
        return recipe.changed(threshold=float(moved))
    return recipe.changed(second_step=str(step._replace(threshold=float(moved))))


def select_pairs(matches: Matches, chosen: Bools) -> Matches:
    """Return only the chosen pairs."""
    return replace(
        matches,
        left=matches.left[chosen],
        right=matches.right[chosen],
        counts=matches.counts[chosen],
        second=None if matches.second is None else matches.second[chosen],
        vectors=None if matches.vectors is None else matches.vectors[chosen],
    )


def find_margin(recipe: Recipe, relaxed: Recipe | str, matches: Matches, find: Callable[[Recipe], Matches]) -> Margin:
    """Search beyond the threshold of a recipe without a second step.

    relaxed: from ``relaxed_recipe``; matches: of the run; find: finds the pairs for a recipe, not ``complete`` if they
    are too many.
    """
    if isinstance(relaxed, str):
        return Margin(None, recipe.exact_threshold, relaxed)
    found = find(relaxed) if matches.complete else matches
    if not found.complete:
        note = (
            f"The pairs between {relaxed.threshold:g} and the threshold are not known: there are more than "
            f"{option('--pairs-per-document')} allows to find."
        )
        return Margin(None, recipe.exact_threshold, note)
    return Margin(found, relaxed.exact_threshold, "")


def relaxed_second_step(
    step: SecondStep, relaxed: Recipe | str | None, classifier: Classifier | None
) -> tuple[SecondStep, Classifier | None]:
    """Return a second step and a classifier that also pass pairs beyond the threshold.

    ``split_at_threshold`` then separates these pairs from those that match. relaxed: from ``relaxed_recipe``; None if
    no pairs beyond the threshold are needed.
    """
    if not isinstance(relaxed, Recipe):
        return step, classifier
    if classifier is not None:
        return step, classifier.without_cut()
    return relaxed.parsed_second_step or step, None


def split_at_threshold(
    wide: Matches, recipe: Recipe, relaxed: Recipe | str, classifier: Classifier | None
) -> tuple[Matches, Margin]:
    """Return the pairs that pass a recipe's second step, and the margin around its threshold.

    wide: the pairs that pass the relaxed second step; relaxed: from ``relaxed_recipe``; classifier: with the cut of the
    run.
    """
    scale = criterion_of(recipe, classifier)
    if isinstance(relaxed, str):
        return wide, Margin(None, scale.threshold, relaxed)
    if classifier is not None and wide.vectors is not None:
        # Probabilities are rounded, so the scores decide which pairs the cut lets pass.
        passed = classifier.passes(classifier.score(wide.vectors))
        note = "Every candidate has a probability, so every threshold is known."
        margin = Margin(replace(wide, vectors=None), Fraction(0), note)
    else:
        passed = scale.reached_by(wide, scale.threshold)
        lowest = criterion_of(relaxed).threshold
        note = (
            f"Every pair that passes the first step was measured; the second step is known from {float(lowest):g} on."
        )
        margin = Margin(wide, lowest, note)
    matches = select_pairs(wide, passed)
    return replace(matches, statistics=wide.statistics | {"pairs": int(passed.sum())}), margin
