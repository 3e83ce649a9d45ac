"""A classifier: what it is made of, what it says of a pair, and the file that it is kept in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from neardup.errors import RecipeError
from neardup.recipe import AnyRecipe, Recipe
from neardup.recipe.named import Choices, chosen

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier, Given


def recipe_and_classifier(
    recipe: AnyRecipe,
    choices: Choices,
    classifier: Given | None,
    *,
    title_column: str | None = None,
    time_column: str | None = None,
    force_domain: bool = False,
) -> tuple[Recipe, Classifier | None]:
    """Return what is to be done: the chosen recipe, or that of a classifier with the classifier.

    Beside a classifier only ``keep`` may be chosen.
    """
    if classifier is None:
        if title_column is not None:
            raise RecipeError(f"title_column {title_column!r} is for classifiers that compare titles; leave it out")
        if force_domain:
            raise RecipeError("force_domain=True is for a classifier; give one with classifier=, or leave it out")
        return chosen(recipe, choices), None
    from neardup.classifier.classifier import classifier_of, recipe_beside

    found = classifier_of(classifier, title_column=title_column, time_column=time_column)
    asked = {"recipe": None if recipe == "default" else recipe} | choices
    return recipe_beside(found, asked), replace(found, force_domain=force_domain)
