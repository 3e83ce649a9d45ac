"""``neardup recipe``: list, show, check and cite recipes."""

from __future__ import annotations

from typing import Annotated

import click

from neardup.cli import screen
from neardup.cli.command import Group, argument
from neardup.cli.options import Json
from neardup.recipe.named import load_recipe, names, recipe_sources

recipe_group = Group("recipe", "List, show, check and cite recipes.")


@recipe_group.add("list")
def list_recipes(as_json: Json = False) -> None:
    """List the recipes that come with neardup."""
    recipes = [load_recipe(name) for name in names()]
    if as_json:
        screen.print_json([recipe.values for recipe in recipes])
        return
    width = max(len(recipe.name) for recipe in recipes)
    for recipe in recipes:
        click.echo(f"{recipe.name:<{width}}  {recipe.in_words()}\n{'':<{width}}  {recipe.description}")


@recipe_group.add()
def show(name: Annotated[str, argument("NAME|FILE", "A recipe's name or TOML file.")]) -> None:
    """Print a recipe as TOML, with every field.

    A copy is a template for a recipe of your own.
    """
    click.echo(load_recipe(name).to_toml().rstrip("\n"))


@recipe_group.add("check")
def check_recipe_file(file: Annotated[str, argument("FILE", "A TOML file, or a recipe's name.")]) -> None:
    """Check a recipe file.

    Exit with 0 if it is valid, else with 2 and the reason.
    """
    recipe = load_recipe(file)
    click.echo(f"{screen.printable_line(recipe.name)} is a valid recipe; fingerprint {recipe.fingerprint}")


@recipe_group.add()
def cite(name: Annotated[str, argument("NAME", "A recipe's name.")]) -> None:
    """Print the sources of a recipe, as BibTeX."""
    click.echo(recipe_sources(name))
