"""The recipes and classifiers that are compared, and the thresholds that are tried with each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.classifier.classifier import Classifier, ClassifierLike, resolve_classifier
from neardup.errors import RecipeError
from neardup.keep.pairs import PairArrays, Pairs
from neardup.pipeline.result import Result
from neardup.recipe import AnyRecipe, Recipe, resolve_recipe
from neardup.recipe import names as recipe_names
from neardup.recipe.measures import exact_fraction, measure, similarity_at

#: What is tried with similarities where nothing else is asked for: with so many documents or fewer all that may be the
#: best; with more what does not take nearly all pairs in. And the most thresholds that may be.
WIDE_THRESHOLDS, USUAL_THRESHOLDS = ".05:.95:.05", ".5:.95:.05"
FEW_DOCUMENTS = 2000
MOST_THRESHOLDS = 200
#: The Hamming distances that are tried with simhash.
HAMMING_DISTANCES = 10


class ThresholdGrid(NamedTuple):
    """The thresholds of one recipe or classifier, the loosest first."""

    #: ``similarity``, ``distance``, ``probability`` for a classifier, or ``fixed`` where there is one threshold or no
    #: use for any.
    scale: str
    #: As recipes write them.
    thresholds: list[float]
    #: What the similarities (for a classifier, the ``levels``) of a pair must reach at each, ascending.
    cuts: list[float]
    #: The one that it has by itself.
    own: float


def thresholds_of(asked: str | Sequence[float]) -> list[float]:
    """Return thresholds from ``.5:.95:.05`` (first, last, step), ``.5,.7`` or numbers, ascending."""
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


def grid_of(recipe: Recipe, thresholds: Sequence[float]) -> ThresholdGrid:
    """Return what to try with a recipe: the thresholds, and its own among them.

    Checksums and I-Match have no use for a threshold, and Euclidean distances have no common scale: they keep their
    own.
    """
    own = float(recipe.exact_threshold)
    if recipe.measure == "hamming":
        distances = sorted({float(k) for k in range(HAMMING_DISTANCES + 1)} | {own}, reverse=True)
        return ThresholdGrid("distance", distances, [similarity_at("hamming", distance) for distance in distances], own)
    if (
        measure(recipe.measure).distance
        or recipe.features.startswith("checksum")
        or recipe.signature.startswith("imatch")
    ):
        return ThresholdGrid("fixed", [own], [0.0], own)
    tried = sorted({*thresholds, own})
    return ThresholdGrid("similarity", tried, tried, own)


def classifier_grid(classifier: Classifier, thresholds: Sequence[float]) -> ThresholdGrid:
    """Return what to try with a classifier: thresholds of the probability, its own cut among them."""
    own = float(classifier.probability(np.array([classifier.cut]))[0])
    tried = sorted({*thresholds, own})
    return ThresholdGrid("probability", tried, [(at + 1) / len(tried) for at in range(len(tried))], own)


def levels(classifier: Classifier, steps: ThresholdGrid, g: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of a grid's thresholds that let each pair pass; at its own one the classifier itself says so."""
    probability = classifier.probability(g)
    passed = classifier.passes(g).astype(np.int64)
    for threshold in steps.thresholds:
        if threshold != steps.own:
            passed += probability >= threshold
    return np.asarray(passed / len(steps.thresholds), np.float64)


class System(NamedTuple):
    """A recipe, or a classifier with its recipe, and the thresholds to try."""

    #: With its name and its own threshold.
    recipe: Recipe
    grid: ThresholdGrid
    classifier: Classifier | None = None

    @property
    def loosest(self) -> tuple[Recipe, Classifier | None]:
        """What finds the pairs of the loosest threshold."""
        if self.classifier is None:
            return self.recipe.changed(keep="first", threshold=self.grid.thresholds[0]), None
        every = self.classifier.everything()
        return every.recipe.changed(keep="first"), every

    @property
    def needs_columns(self) -> bool:
        """Whether more than texts is compared."""
        return self.classifier is not None and (
            self.classifier.vector.needs_titles or self.classifier.vector.needs_times
        )


def recipe_systems(recipes: Sequence[AnyRecipe] | None, content: str | None, asked: Sequence[float]) -> list[System]:
    """Return recipes, all named ones by default; with a content for all, where one is given."""
    chosen = [resolve_recipe(recipe) for recipe in recipes or recipe_names()]
    if content is not None:
        chosen = [recipe.changed(content=content) for recipe in chosen]
    return [System(recipe, grid_of(recipe, asked)) for recipe in chosen]


def classifier_systems(
    classifiers: Sequence[ClassifierLike], title_column: str | None, time_column: str | None, asked: Sequence[float]
) -> list[System]:
    """Return classifiers, called after their files; columns as in training, unless others are given."""
    known = [resolve_classifier(given, time_column=time_column) for given in classifiers]
    titled = [one.vector.needs_titles for one in known]
    if title_column is not None and not any(titled):
        raise RecipeError(f"title column {title_column!r} is for classifiers that compare titles; leave it out")
    found = []
    for given, classifier, compares in zip(classifiers, known, titled, strict=True):
        classifier = resolve_classifier(classifier, title_column=title_column if compares else None)
        name = Path(given).stem if isinstance(given, str | os.PathLike) else classifier.recipe.name
        says = f"{classifier.vector} on pairs with {classifier.candidate_rule.in_words()}"
        recipe = classifier.recipe.changed(name=name, description=says)
        found.append(System(recipe, classifier_grid(classifier, asked), classifier))
    return found


def pairs_of(result: Result, system: System) -> Iterator[PairArrays]:
    """Yield the pairs with what the cuts of the grid are about.

    After a second step a result tells the second measure's similarity; then the thresholds that still return a pair are
    counted. A classifier's levels are those of g, which tells apart what probabilities near 1 do not.
    """
    pairs, steps = result.pairs, system.grid
    if system.classifier is not None and result.vectors is not None:
        share = levels(system.classifier, steps, system.classifier.score(result.vectors))
        yield from Pairs(pairs.names, pairs.representative, pairs.left, pairs.right, share).arrays()
        return
    if not result.recipe.second_step:
        yield from pairs.arrays()
        return
    ends = [np.zeros((0, 2), np.int64)]
    for threshold in steps.thresholds:
        ends += [np.stack([part.left, part.right], axis=1) for part in result.at(threshold).pairs.arrays()]
    found, times = np.unique(np.concatenate(ends), axis=0, return_counts=True)
    yield PairArrays(found[:, 0], found[:, 1], np.asarray(steps.cuts)[times - 1])


def unique_names(systems: Sequence[System]) -> list[str]:
    """Return the names, with a number behind those that others have, too."""
    names: list[str] = []
    for system in systems:
        number, name = 1, system.recipe.name
        while name in names:
            number += 1
            name = f"{system.recipe.name} ({number})"
        names.append(name)
    return names
