"""The options of ``neardup watch``: what is compared, the store, where files go and when they are taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.choices import RecipeOptions, chosen_content
from neardup.cli.decisions import DecisionFile, DecisionOptions, Precision, chosen_recipe
from neardup.cli.windows import WindowOptions
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.decision.decision import Decision
    from neardup.recipe import Recipe

_WHERE, _WHEN = "Where files go", "When files are taken"
_CONTENTS = ("auto", "html", "tags", "plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecipe(RecipeOptions):
    """The recipe, and what of a file is compared."""

    content: Annotated[
        str | None,
        typer.Option(
            metavar="auto|html|tags|plain",
            rich_help_panel="What matches",
            help="auto: of files that are web pages their article, of others their text. html, tags: of every text the "
            "article, or all but the tags. plain: every text as it is.",
        ),
    ] = "auto"

    def chosen_for_items(self, decision: Decision | None) -> tuple[Recipe, str]:
        """Return the recipe, and what is taken of files that are web pages: auto, or the page as it is.

        Parameters
        ----------
        decision : Decision or None
            In place of a recipe.

        Raises
        ------
        RecipeError
            If a value is refused.
        """
        if self.content not in _CONTENTS:
            raise RecipeError(f"--content {self.content!r} is not known; choose one of {', '.join(_CONTENTS)}")
        given = chosen_content(self.html, None if self.content == "auto" else self.content)
        plain = given == "plain" and (decision is None or not decision.net.content)
        recipe = chosen_recipe(replace(self, content=None if plain else given), decision)
        if plain and decision is None:
            recipe = recipe.changed(content="")
        return recipe, "auto" if given is None and not recipe.content else "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemDecision:
    """A learned decision, and its working point."""

    decision: DecisionFile = None
    precision: Precision = None

    def loaded(self) -> Decision | None:
        """Return the decision at its working point; None where none is asked for.

        Raises
        ------
        NeardupError
            If it cannot be read, or does not reach the precision.
        """
        return DecisionOptions(decision=self.decision, precision=self.precision).loaded()


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableWindow(WindowOptions):
    """The window, and the store that a watcher cannot do without."""

    store: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Keep the window and all verdicts in this SQLite file. A new run goes on where the last one ended.",
        ),
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """Where files go."""

    originals: Annotated[
        str,
        typer.Option(metavar="FOLDER", show_default=False, rich_help_panel=_WHERE, help="Where originals go."),
    ] = ""
    duplicates: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            rich_help_panel=_WHERE,
            help="Where duplicates go, each with its evidence beside it; INBOX/.neardup/duplicates by default.",
        ),
    ] = ""
    quarantine: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            rich_help_panel=_WHERE,
            help="Where goes what cannot be read, with the reason beside it; INBOX/.neardup/quarantine by default.",
        ),
    ] = ""
    done: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            show_default=False,
            rich_help_panel=_WHERE,
            help="Where feeds and other files of several items go when their items are judged; INBOX/.neardup/done by "
            "default.",
        ),
    ] = ""
    place: Annotated[
        str,
        typer.Option(
            metavar="move|link",
            rich_help_panel=_WHERE,
            help="Move files, or leave them in the inbox and give them a second name (a copy on another disk).",
        ),
    ] = "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taking:
    """When and how files are taken."""

    poll: Annotated[
        str,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=_WHEN,
            help="Look at the whole inbox so often, whatever file events say or do not say.",
        ),
    ] = "2"
    settle: Annotated[
        str,
        typer.Option(metavar="SECONDS", rich_help_panel=_WHEN, help="Take a file when it has not changed for so long."),
    ] = "0.5"
    patience: Annotated[
        str,
        typer.Option(
            metavar="SECONDS",
            rich_help_panel=_WHEN,
            help="Wait so long for the rest of a file that ends in the middle, or is empty.",
        ),
    ] = "30"
    largest: Annotated[
        str, typer.Option(metavar="SIZE", rich_help_panel=_WHEN, help="Set larger files aside without reading them.")
    ] = "64MB"
    once: Annotated[bool, typer.Option("--once", rich_help_panel=_WHEN, help="Take what is there, then end.")] = False
