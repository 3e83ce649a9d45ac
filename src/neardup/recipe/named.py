"""Recipes by name, or from a file of one's own."""

from __future__ import annotations

import os
from importlib import resources

from neardup.errors import RecipeError, option
from neardup.recipe.recipe import Recipe, parse

#: Methods that are no recipe until they have seen labelled pairs, by the names of their vectors.
LEARNED = ("terms-svm", "terms-svm-sentence")
#: A recipe, its name, or its TOML file.
AnyRecipe = Recipe | str | os.PathLike[str]


def names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    folder = resources.files("neardup") / "recipes"
    return sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))


def load(name_or_file: str | os.PathLike[str]) -> Recipe:
    """Return a recipe by its name, or from a TOML file.

    Raises
    ------
    RecipeError
        If there is neither a recipe nor a file of that name, or the file is refused.
    """
    if not isinstance(name_or_file, str):
        return _of_file(os.fspath(name_or_file))
    if name_or_file in LEARNED and not os.path.isfile(name_or_file):
        raise RecipeError(
            f"recipe {name_or_file!r} is learned from labelled pairs: "
            + option(
                f"neardup train INPUT --labels pairs.csv --vector {name_or_file} -o FILE makes it, and --decision FILE "
                "takes it",
                f"nd.train(data, labels, vector={name_or_file!r}).decision makes it, and decision= takes it",
            )
        )
    if name_or_file in names():
        shipped = resources.files("neardup") / "recipes" / f"{name_or_file}.toml"
        return parse(shipped.read_text("utf-8"), f"recipe {name_or_file}")
    if not os.path.isfile(name_or_file):
        raise RecipeError(f"recipe {name_or_file!r} is neither a file nor one of {', '.join(names())}")
    return _of_file(name_or_file)


def recipe_of(given: AnyRecipe) -> Recipe:
    """Return a recipe that is given by itself, by its name or by its TOML file.

    Raises
    ------
    RecipeError
        If there is none.
    """
    if not isinstance(given, Recipe | str | os.PathLike):
        raise RecipeError(f"recipe {given!r} is no recipe; give a Recipe, one of {', '.join(names())}, or a TOML file")
    return given if isinstance(given, Recipe) else load(given)


def _of_file(name: str) -> Recipe:
    try:
        with open(name, encoding="utf-8") as file:
            return parse(file.read(), f"recipe {name}")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"recipe {name!r} cannot be read: {error}") from None
