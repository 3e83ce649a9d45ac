"""A recipe with other values for some of its fields, as functions and classes take them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from neardup.errors import RecipeError
from neardup.recipe.named import load
from neardup.recipe.recipe import Recipe

_NOT_CHOSEN = ("name", "description")


def chosen(recipe: Recipe | str, choices: Mapping[str, Any]) -> Recipe:
    """Return a recipe, by name or file where it is a text, with other values for some of its fields; None keeps one.

    Raises
    ------
    RecipeError
        If there is no such recipe, a recipe has no such field, or a value is refused.
    """
    known = [field.name for field in fields(Recipe) if field.name not in _NOT_CHOSEN]
    for name in choices:
        if name not in known:
            raise RecipeError(
                f"{name!r} is no field of a recipe and no option; a recipe's fields are {', '.join(known)}"
            )
    found = load(recipe) if isinstance(recipe, str) else recipe
    return found.changed(**{name: value for name, value in choices.items() if value is not None})
