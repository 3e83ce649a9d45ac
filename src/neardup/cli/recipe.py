"""``neardup recipe``: list, show and cite recipes."""

from __future__ import annotations

from typing import Annotated

import click

from neardup.cli import screen
from neardup.cli.command import Group, argument
from neardup.cli.options import Json
from neardup.recipe.named import load_recipe, names, recipe_sources

recipe_group = Group("recipe", "List, show and cite recipes.")


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
    """Print a recipe as TOML, with every field, if it is valid.

    A copy is a template for a recipe of your own. An invalid recipe is refused with the reason.
    """
    recipe = load_recipe(name)
    click.echo(recipe.to_toml().rstrip("\n"))
    screen.print_message(f"{recipe.name} is a valid recipe; fingerprint {recipe.fingerprint}")


@recipe_group.add()
def cite(name: Annotated[str, argument("NAME", "A recipe's name.")]) -> None:
    """Print the sources of a recipe, as BibTeX."""
    click.echo(recipe_sources(name))
