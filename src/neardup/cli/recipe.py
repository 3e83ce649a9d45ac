"""``neardup recipe``: list, show, check and cite recipes."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli.command import argument, command_group, subcommand
from neardup.cli.options import Json
from neardup.cli.screen import print_json, printable_line

app = command_group()


@subcommand(app, "list", has_arguments=False)
def list_recipes(as_json: Json = False) -> None:
    """List the recipes that come with neardup."""
    from neardup.recipe import load_recipe, names

    recipes = [load_recipe(name) for name in names()]
    if as_json:
        print_json([recipe.values for recipe in recipes])
        return
    width = max(len(recipe.name) for recipe in recipes)
    for recipe in recipes:
        typer.echo(f"{recipe.name:<{width}}  {recipe.in_words()}\n{'':<{width}}  {recipe.description}")


@subcommand(app)
def show(name: Annotated[str, argument("NAME|FILE", "A recipe's name or TOML file.")]) -> None:
    """Print a recipe as TOML, with every field.

    A copy is a template for a recipe of your own.
    """
    from neardup.recipe import load_recipe

    typer.echo(load_recipe(name).to_toml().rstrip("\n"))


@subcommand(app)
def check(file: Annotated[str, argument("FILE", "A TOML file, or a recipe's name.")]) -> None:
    """Check a recipe file.

    Exit with 0 if it is valid, else with 2 and the reason.
    """
    from neardup.recipe import load_recipe

    recipe = load_recipe(file)
    typer.echo(f"{printable_line(recipe.name)} is a valid recipe; fingerprint {recipe.fingerprint}")


@subcommand(app)
def cite(name: Annotated[str, argument("NAME", "A recipe's name.")]) -> None:
    """Print the sources of a recipe, as BibTeX."""
    from neardup.recipe.named import recipe_sources

    typer.echo(recipe_sources(name))
