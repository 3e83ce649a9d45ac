"""A classifier: the measures of a pair, the machine that scores them, its evidence, and its file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.errors import RecipeError
from neardup.recipe import AnyRecipe, Recipe
from neardup.recipe.named import Choices, apply_choices

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier, ClassifierLike


def recipe_and_classifier(
    recipe: AnyRecipe,
    choices: Choices,
    classifier: ClassifierLike | None,
    *,
    title_column: str | None = None,
    time_column: str | None = None,
    force_domain: bool = False,
) -> tuple[Recipe, Classifier | None]:
    """Return the recipe of a run and its classifier: a classifier brings its own recipe.

    Raises ``RecipeError`` if an option other than ``keep`` is chosen along with a classifier, or one for classifiers
    without it.
    """
    if classifier is None:
        if title_column is not None:
            raise RecipeError(f"title_column {title_column!r} is for classifiers that compare titles; leave it out")
        if force_domain:
            raise RecipeError("force_domain=True is for a classifier; give one with classifier=, or leave it out")
        return apply_choices(recipe, choices), None
    from neardup.classifier.classifier import classifier_recipe, resolve_classifier

    resolved = resolve_classifier(classifier, title_column=title_column, time_column=time_column)
    all_choices = {"recipe": None if recipe == "default" else recipe} | choices
    return classifier_recipe(resolved, all_choices), replace(resolved, force_domain=force_domain)
