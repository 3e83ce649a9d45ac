"""``neardup recipe``: list, show, check and cite recipes."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli import screen
from neardup.cli.command import argument, command_group, subcommand
from neardup.cli.options import Json
from neardup.recipe.named import load_recipe, names, recipe_sources

recipe_group = command_group()


@subcommand(recipe_group, "list", has_arguments=False)
def list_recipes(as_json: Json = False) -> None:
    """List the recipes that come with neardup."""
    recipes = [load_recipe(name) for name in names()]
    if as_json:
        screen.print_json([recipe.values for recipe in recipes])
        return
    width = max(len(recipe.name) for recipe in recipes)
    for recipe in recipes:
        typer.echo(f"{recipe.name:<{width}}  {recipe.in_words()}\n{'':<{width}}  {recipe.description}")


@subcommand(recipe_group)
def show(name: Annotated[str, argument("NAME|FILE", "A recipe's name or TOML file.")]) -> None:
    """Print a recipe as TOML, with every field.

    A copy is a template for a recipe of your own.
    """
    typer.echo(load_recipe(name).to_toml().rstrip("\n"))


@subcommand(recipe_group, "check")
def check_recipe_file(file: Annotated[str, argument("FILE", "A TOML file, or a recipe's name.")]) -> None:
    """Check a recipe file.

    Exit with 0 if it is valid, else with 2 and the reason.
    """
    recipe = load_recipe(file)
    typer.echo(f"{screen.printable_line(recipe.name)} is a valid recipe; fingerprint {recipe.fingerprint}")


@subcommand(recipe_group)
def cite(name: Annotated[str, argument("NAME", "A recipe's name.")]) -> None:
    """Print the sources of a recipe, as BibTeX."""
    typer.echo(recipe_sources(name))
