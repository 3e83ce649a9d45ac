"""``neardup recipe``: list, show, check and cite recipes."""

from __future__ import annotations

from typing import Annotated

import typer

from neardup.cli.screen import show as out
from neardup.cli.screen import show_json, visible

app = typer.Typer(
    no_args_is_help=True, add_completion=False, rich_markup_mode=None, help="List, show, check and cite recipes."
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command(name="list")
def list_recipes(as_json: Json = False) -> None:
    """List the recipes that come with neardup."""
    from neardup.recipe import load_recipe, names

    recipes = [load_recipe(name) for name in names()]
    if as_json:
        show_json([recipe.values for recipe in recipes])
        return
    width = max(len(recipe.name) for recipe in recipes)
    for recipe in recipes:
        out(f"{recipe.name:<{width}}  {recipe.in_words()}\n{'':<{width}}  {recipe.description}")


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="NAME|FILE", help="A recipe's name or TOML file.")],
) -> None:
    """Print a recipe as TOML, with every field; a copy of it is the start of one's own."""
    from neardup.recipe import load_recipe

    out(load_recipe(name).to_toml().rstrip("\n"))


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A TOML file, or a recipe's name.")],
) -> None:
    """Check a recipe file: exit with 0 when it is good, else with 2 and a sentence that says why not."""
    from neardup.recipe import load_recipe

    recipe = load_recipe(file)
    out(f"{visible(recipe.name, lines=False)} is a good recipe; fingerprint {recipe.fingerprint}")


@app.command()
def cite(name: Annotated[str, typer.Argument(metavar="NAME", help="A recipe's name.")]) -> None:
    """Print where a recipe comes from, as BibTeX."""
    from neardup.recipe.named import sources

    out(sources(name))
