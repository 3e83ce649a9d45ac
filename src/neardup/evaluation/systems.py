"""The recipes and classifiers that are compared, and the thresholds to try with each."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.classifier.classifier import Classifier, ClassifierLike, resolve_classifier
from neardup.errors import RecipeError
from neardup.keep.pairs import PairArrays, Pairs
from neardup.kernels import Floats
from neardup.pipeline.result import Result
from neardup.recipe import AnyRecipe, Recipe, resolve_recipe
from neardup.recipe import names as recipe_names
from neardup.recipe.measures import exact_fraction, measure, similarity_at

#: The default thresholds of similarities: the wide range for up to ``FEW_DOCUMENTS`` documents, the usual one above,
#: because low thresholds return nearly all pairs of a large corpus.
WIDE_THRESHOLDS, USUAL_THRESHOLDS = ".05:.95:.05", ".5:.95:.05"
FEW_DOCUMENTS = 2000
MAX_THRESHOLDS = 200
#: Simhash is tried with Hamming distances from 0 to this one.
MAX_HAMMING_DISTANCE = 10


class ThresholdGrid(NamedTuple):
    """The thresholds of one recipe or classifier, the loosest first."""

    #: ``similarity``, ``distance``, ``probability`` for a classifier, or ``fixed`` for a single threshold.
    scale: str
    thresholds: list[float]
    #: The similarity (for a classifier, the share from ``passed_shares``) that a pair must reach at each, ascending.
    cuts: list[float]
    #: The threshold of the recipe, or the cut of the classifier.
    own_threshold: float


def parse_thresholds(thresholds: str | Sequence[float]) -> list[float]:
    """Return the thresholds in ``.5:.95:.05`` (first:last:step), ``.5,.7`` or numbers, ascending and distinct."""
    values: list[Fraction] = []
    if not isinstance(thresholds, str):
        values = [exact_fraction(value, "threshold") for value in thresholds]
    elif ":" in thresholds:
        parts = thresholds.split(":")
        if len(parts) != 3:
            raise RecipeError(
                f"thresholds {thresholds!r} are not first:last:step; write them like {USUAL_THRESHOLDS} or .5,.7"
            )
        first, last, step = (_number(part, thresholds) for part in parts)
        if step <= 0 or last < first:
            raise RecipeError(
                f"thresholds {thresholds!r} are an empty range; write first:last:step, step above 0, first <= last"
            )
        count = int((last - first) / step) + 1
        _check_count(count, thresholds)
        values = [exact_fraction(float(first + i * step), "threshold") for i in range(count)]
    else:
        values = [exact_fraction(float(_number(part, thresholds)), "threshold") for part in thresholds.split(",")]
    if not values:
        raise RecipeError(f"thresholds are empty; give at least one, or a range like {USUAL_THRESHOLDS}")
    _check_count(len(set(values)), thresholds)
    return [float(threshold) for threshold in sorted(set(values))]


def _number(text: str, thresholds: str) -> Fraction:
    try:
        return Fraction(text.strip())
    except (ValueError, ZeroDivisionError):
        raise RecipeError(
            f"thresholds {thresholds!r}: {text!r} is not a number; write {USUAL_THRESHOLDS} or .5,.7"
        ) from None


def _check_count(count: int, thresholds: str | Sequence[float]) -> None:
    if count > MAX_THRESHOLDS:
        what = f"thresholds {thresholds!r}" if isinstance(thresholds, str) else "thresholds"
        raise RecipeError(f"{what} are {count:,}, and at most {MAX_THRESHOLDS} are tried; take a larger step")


def recipe_grid(recipe: Recipe, thresholds: Sequence[float]) -> ThresholdGrid:
    """Return the thresholds to try with a recipe, including its own.

    Checksums and I-Match do not use a threshold, and Euclidean distances have no common scale, so these recipes are
    only tried with their own.
    """
    own_threshold = float(recipe.exact_threshold)
    if recipe.measure == "hamming":
        distances = sorted({float(k) for k in range(MAX_HAMMING_DISTANCE + 1)} | {own_threshold}, reverse=True)
        return ThresholdGrid("distance", distances, [similarity_at("hamming", k) for k in distances], own_threshold)
    if (
        measure(recipe.measure).distance
        or recipe.features.startswith("checksum")
        or recipe.signature.startswith("imatch")
    ):
        return ThresholdGrid("fixed", [own_threshold], [0.0], own_threshold)
    steps = sorted({*thresholds, own_threshold})
    return ThresholdGrid("similarity", steps, steps, own_threshold)


def classifier_grid(classifier: Classifier, thresholds: Sequence[float]) -> ThresholdGrid:
    """Return the probability thresholds to try with a classifier, including its own cut."""
    own_threshold = float(classifier.probability(np.array([classifier.cut]))[0])
    steps = sorted({*thresholds, own_threshold})
    shares = [(at + 1) / len(steps) for at in range(len(steps))]
    return ThresholdGrid("probability", steps, shares, own_threshold)


def passed_shares(classifier: Classifier, grid: ThresholdGrid, scores: Floats) -> Floats:
    """Return the share of a grid's thresholds that each pair passes; at its own cut the classifier decides."""
    probability = classifier.probability(scores)
    passed = classifier.passes(scores).astype(np.int64)
    for threshold in grid.thresholds:
        if threshold != grid.own_threshold:
            passed += probability >= threshold
    return np.asarray(passed / len(grid.thresholds), np.float64)


class System(NamedTuple):
    """A recipe, or a classifier with its recipe, and the thresholds to try."""

    #: Has the name of the system and its own threshold.
    recipe: Recipe
    grid: ThresholdGrid
    classifier: Classifier | None = None

    @property
    def loosest_search(self) -> tuple[Recipe, Classifier | None]:
        """The recipe and classifier that find all pairs at the loosest threshold."""
        if self.classifier is None:
            return self.recipe.changed(keep="first", threshold=self.grid.thresholds[0]), None
        accepting = self.classifier.without_cut()
        return accepting.recipe, accepting

    @property
    def needs_columns(self) -> bool:
        """Whether it compares titles or times besides texts."""
        return self.classifier is not None and (
            self.classifier.vector.needs_titles or self.classifier.vector.needs_times
        )


def recipe_systems(
    recipes: Sequence[AnyRecipe] | None, content: str | None, thresholds: Sequence[float]
) -> list[System]:
    """Return the recipes (by default all named ones) as systems; ``content`` replaces that of each, if given."""
    chosen = [resolve_recipe(recipe) for recipe in recipes or recipe_names()]
    if content is not None:
        chosen = [recipe.changed(content=content) for recipe in chosen]
    return [System(recipe, recipe_grid(recipe, thresholds)) for recipe in chosen]


def classifier_systems(
    classifiers: Sequence[ClassifierLike],
    title_column: str | None,
    time_column: str | None,
    thresholds: Sequence[float],
) -> list[System]:
    """Return the classifiers as systems, named after their files; columns default to those of the training."""
    resolved = [resolve_classifier(source, time_column=time_column) for source in classifiers]
    needs_titles = [classifier.vector.needs_titles for classifier in resolved]
    if title_column is not None and not any(needs_titles):
        raise RecipeError(f"title column {title_column!r} is for classifiers that compare titles; leave it out")
    systems = []
    for source, classifier, has_title in zip(classifiers, resolved, needs_titles, strict=True):
        classifier = resolve_classifier(classifier, title_column=title_column if has_title else None)
        name = Path(source).stem if isinstance(source, str | os.PathLike) else classifier.recipe.name
        description = f"{classifier.vector} on pairs with {classifier.candidate_rule.in_words()}"
        recipe = classifier.recipe.changed(name=name, description=description)
        systems.append(System(recipe, classifier_grid(classifier, thresholds), classifier))
    return systems


def scored_pairs(result: Result, system: System) -> Iterator[PairArrays]:
    """Yield the pairs of a result with the values that the cuts of the grid apply to.

    After a second step the similarities are those of the second measure, so the thresholds that return each pair are
    counted instead. A classifier's shares come from the score, which still differs where probabilities are near 1.
    """
    pairs, grid = result.pairs, system.grid
    if system.classifier is not None and result.vectors is not None:
        share = passed_shares(system.classifier, grid, system.classifier.score(result.vectors))
        yield from Pairs(pairs.names, pairs.representative, pairs.left, pairs.right, share).arrays()
        return
    if not result.recipe.second_step:
        yield from pairs.arrays()
        return
    ends = [np.zeros((0, 2), np.int64)]
    for threshold in grid.thresholds:
        ends += [np.stack([part.left, part.right], axis=1) for part in result.at(threshold).pairs.arrays()]
    distinct, counts = np.unique(np.concatenate(ends), axis=0, return_counts=True)
    yield PairArrays(distinct[:, 0], distinct[:, 1], np.asarray(grid.cuts)[counts - 1])


def unique_names(systems: Sequence[System]) -> list[str]:
    """Return the names of the systems; repeated names get a number."""
    names: list[str] = []
    for system in systems:
        number, name = 1, system.recipe.name
        while name in names:
            number += 1
            name = f"{system.recipe.name} ({number})"
        names.append(name)
    return names
