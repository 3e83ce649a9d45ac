"""A recipe with other values for some of its fields, as functions and classes take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from neardup.errors import RecipeError, option
from neardup.recipe.named import AnyRecipe, recipe_of
from neardup.recipe.recipe import Recipe

_NOT_CHOSEN = ("name", "description")


def chosen(recipe: AnyRecipe, choices: Mapping[str, Any]) -> Recipe:
    """Return a recipe, by itself, by name or by file, with other values for some of its fields; None keeps one.

    Raises
    ------
    RecipeError
        If there is no such recipe, a recipe has no such field, or a value is refused or would have no effect.
    """
    known = [field.name for field in fields(Recipe) if field.name not in _NOT_CHOSEN]
    for name in choices:
        if name not in known:
            raise RecipeError(
                f"{name!r} is no field of a recipe and no option; a recipe's fields are {', '.join(known)}"
            )
    found = recipe_of(recipe).changed(**{name: value for name, value in choices.items() if value is not None})
    if found.search != "lsh":
        refuse(choices, ("recall", "num_perm"), "is for search 'lsh'; choose that search, or leave it out")
        signature = found.parsed_signature
        if signature is None or not signature.minima:
            refuse(
                choices, ("seed",), "is for min-hash signatures and search 'lsh'; choose one of them, or leave it out"
            )
    return found


def refuse(choices: Mapping[str, Any], names: Iterable[str], why: str) -> None:
    """Refuse fields that somebody chose and that would be ignored.

    Parameters
    ----------
    choices : mapping
        Fields and their values; None for what was not chosen.
    names : iterable of str
        The fields that have no say.
    why : str
        The reason and the way out.

    Raises
    ------
    RecipeError
        Naming the first one.
    """
    for name in names:
        if choices.get(name) is not None:
            raise RecipeError(f"{option('--' + name.replace('_', '-'))} {choices[name]} {why}")
