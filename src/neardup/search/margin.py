"""The pairs around a threshold: a search that goes beyond it, for those who look at what it leaves out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError, option
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction, measure, reaches_threshold, similarities
from neardup.search.matches import Integers, Matches

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: How far beyond a similarity's threshold one usually looks; half the way to 0 where that is less.
_USUAL = Fraction(1, 5)
#: The same for distances: so many bits, and a share of the threshold.
_USUAL_BITS, _USUAL_SHARE = 2, Fraction(1, 4)


class Criterion(NamedTuple):
    """What decides last whether a pair matches, and from where on.

    Attributes
    ----------
    measure : str
        Its name in ``neardup.recipe.measures.MEASURES``.
    threshold : Fraction
        What a pair must reach.
    second : bool
        Whether it is a second step.
    """

    measure: str
    threshold: Fraction
    second: bool

    @property
    def distance(self) -> bool:
        """Whether pairs match at or below the threshold."""
        return measure(self.measure).distance

    def counts(self, matches: Matches) -> tuple[Integers, int]:
        """Return o, a and b of pairs as the measure takes them, and how much of them makes 1."""
        if self.second and matches.second is not None:
            return matches.second, 1
        return matches.counts, matches.unit

    def similarities(self, matches: Matches) -> Floats:
        """Return how alike pairs are."""
        return similarities(self.measure, *self.counts(matches))

    def reaching(self, matches: Matches, threshold: Fraction) -> Bools:
        """Return, exactly, which pairs reach a threshold."""
        counts, unit = self.counts(matches)
        return reaches_threshold(self.measure, counts, threshold, unit)


def criterion_of(recipe: Recipe, classifier: Classifier | None = None) -> Criterion:
    """Return what decides by a recipe, or by the probability of a classifier's cut."""
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
    """What a search that went beyond the threshold found.

    Attributes
    ----------
    matches : Matches or None
        All pairs up to the loosest threshold, those that match among them; None where it went nowhere.
    loosest : Fraction
        That threshold; the recipe's own where it went nowhere.
    note : str
        Why it goes so far, or nowhere, in a sentence.
    """

    matches: Matches | None
    loosest: Fraction
    note: str


def default_margin(recipe: Recipe) -> float:
    """Return how far beyond its threshold one usually looks: 0.2, or half the way to 0 from a threshold below 0.4.

    For a Hamming distance it is two bits, for another distance a quarter of the threshold.
    """
    scale = criterion_of(recipe)
    if scale.measure == "hamming":
        return float(_USUAL_BITS)
    if scale.distance:
        return float(scale.threshold * _USUAL_SHARE)
    return float(min(_USUAL, scale.threshold / 2) or _USUAL)


def has_threshold(recipe: Recipe) -> bool:
    """Return whether another threshold could change anything: not where documents have one value each to compare."""
    single = recipe.parsed_features.kind == "checksum" or recipe.signature.startswith("imatch")
    return not single or bool(recipe.second_step)


def relaxed_recipe(recipe: Recipe, margin: float) -> Recipe | str:
    """Return a recipe with the threshold moved, or a sentence that says why there is none.

    Parameters
    ----------
    recipe : Recipe
        Its threshold is moved, or that of its second step.
    margin : float
        How far: down, or up for a distance. Raising it finds more pairs, slower.

    Raises
    ------
    RecipeError
        If it is no number above 0, or leads out of the measure's range.
    """
    try:
        far = Fraction(str(margin)).limit_denominator(10**9)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise RecipeError(f"margin {margin!r} is not a number; give how far beyond the threshold to look") from None
    if far <= 0:
        raise RecipeError(f"margin {margin} is not above 0; give how far beyond the threshold to look, or nothing")
    scale = criterion_of(recipe)
    if scale.measure == "learned":
        return recipe
    if not has_threshold(recipe):
        return "Two documents have one value in common or none, so another threshold would change nothing."
    if recipe.search == "lsh" and not scale.second:
        return (
            "LSH makes its bands for one threshold, so pairs beyond it were not looked for: with another threshold it "
            "would find others. Take search exact to see them."
        )
    moved = scale.threshold + far if scale.distance else scale.threshold - far
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
    """Return the chosen ones of the pairs."""
    return replace(
        matches,
        left=matches.left[chosen],
        right=matches.right[chosen],
        counts=matches.counts[chosen],
        second=None if matches.second is None else matches.second[chosen],
        vectors=None if matches.vectors is None else matches.vectors[chosen],
    )


def find_margin(recipe: Recipe, looser: Recipe | str, own: Matches, find: Callable[[Recipe], Matches]) -> Margin:
    """Search beyond the threshold of a recipe without a second step.

    Parameters
    ----------
    recipe : Recipe
        What the run is by.
    looser : Recipe or str
        What ``relaxed_recipe`` says.
    own : Matches
        What the run found.
    find : callable
        Gives the pairs of a recipe; ``complete`` is False where they are too many.
    """
    if isinstance(looser, str):
        return Margin(None, recipe.exact_threshold, looser)
    found = find(looser) if own.complete else own
    if not found.complete:
        too_many = f"there are more than {option('--pairs-per-document')} allows to find"
        note = f"The pairs between {looser.threshold:g} and the threshold are not known: {too_many}."
        return Margin(None, recipe.exact_threshold, note)
    return Margin(found, looser.exact_threshold, "")


def relaxed_second_step(
    recipe: Recipe, looser: Recipe | str | None, classifier: Classifier | None
) -> tuple[Recipe, Classifier | None]:
    """Return a recipe and classifier whose second step also passes pairs beyond its threshold.

    ``split_at_threshold`` then separates these pairs from those that match.

    Parameters
    ----------
    recipe : Recipe
        What the run is by.
    looser : Recipe, str or None
        What ``relaxed_recipe`` says; None where nothing around the threshold is wanted.
    classifier : Classifier or None
        Where a classifier is the second step: it, with the cut that counts.
    """
    if not isinstance(looser, Recipe):
        return recipe, classifier
    if classifier is None:
        return looser, None
    every = classifier.everything()
    return recipe.changed(second_step=every.recipe.second_step), every


def split_at_threshold(
    wide: Matches, recipe: Recipe, looser: Recipe | str, classifier: Classifier | None
) -> tuple[Matches, Margin]:
    """Return what a second step let pass by itself, and all that it looked at.

    Parameters
    ----------
    wide : Matches
        What passed the looser second step.
    recipe, looser : Recipe
        The recipe, and the one with a looser second step.
    classifier : Classifier or None
        Where a classifier is the second step: it, with the cut that counts.
    """
    scale = criterion_of(recipe, classifier)
    if isinstance(looser, str):
        return wide, Margin(None, scale.threshold, looser)
    if classifier is not None and wide.vectors is not None:
        # A probability is rounded, so g itself must say which pairs the cut lets pass.
        passed = classifier.passes(classifier.score(wide.vectors))
        note = "Every candidate has a probability, so every threshold is known."
        beyond = Margin(replace(wide, vectors=None), Fraction(0), note)
    else:
        passed = scale.reaching(wide, scale.threshold)
        least = criterion_of(looser).threshold
        note = f"Every pair that passes the first step was measured; the second step is known from {float(least):g} on."
        beyond = Margin(wide, least, note)
    own = select_pairs(wide, passed)
    return replace(own, statistics=wide.statistics | {"pairs": int(passed.sum())}), beyond
