"""The options of ``neardup label``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.choices import Content, Html, chosen_content
from neardup.cli.numbers import parse_number, whole_number
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.recipe import Recipe
    from neardup.vector.vector import Vector

_ASKING, _PAGE, _TABLES = "Which pairs are asked", "The page", "Labels in tables, in place of the page"
_LARGEST_PORT = 65_535


def check_store(store: str, inputs: list[str]) -> None:
    """Refuse what cannot be a store of labels before the work; a new one is only made once there is something to keep.

    Raises
    ------
    NeardupError
        If it is something else, or cannot be made.
    """
    from neardup.documents.output import check_place
    from neardup.labelling.store import labels_of

    if os.path.exists(store):
        labels_of(store)
    else:
        check_place(store, inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which pairs are asked, and how they are shown."""

    net: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE>=NUMBER",
            rich_help_panel=_ASKING,
            help="Pairs below it are not asked, by default jaccard(words:3) >= 0.1.",
        ),
    ] = None
    vector: Annotated[
        str,
        typer.Option(
            metavar="MEASURES",
            rich_help_panel=_ASKING,
            help="What the model that chooses pairs goes by: default, cheap, short, or measures as train takes them.",
        ),
    ] = "default"
    title_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_ASKING, help="Column of titles; found by itself when obvious."),
    ] = None
    time_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", rich_help_panel=_ASKING, help="Column of times, for the measure hours_apart."),
    ] = None
    html: Html = False
    content: Content = None
    pairs: Annotated[
        str | None,
        typer.Option(metavar="NUMBER", rich_help_panel=_ASKING, help="Stop after so many answers of each labeller."),
    ] = None
    shared: Annotated[
        str,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=_ASKING,
            help="Of a labeller's pairs, how many are those that others have judged; for agreement.",
        ),
    ] = "0.25"
    seed: Annotated[
        str, typer.Option(metavar="NUMBER", rich_help_panel=_ASKING, help="Of what is drawn at random.")
    ] = "0"

    @property
    def recipe(self) -> Recipe:
        """The net."""
        from neardup.decision.net import NET, net_of

        return net_of(NET if self.net is None else self.net, content=chosen_content(self.html, self.content) or "")

    @property
    def measures(self) -> Vector:
        """The vector."""
        from neardup.vector.vector import Vector

        return Vector.parse(self.vector)

    @property
    def number(self) -> int:
        """The seed."""
        return whole_number(self.seed, "--seed", 0)

    @property
    def goal(self) -> int | None:
        """How many answers are enough."""
        return None if self.pairs is None else whole_number(self.pairs, "--pairs")

    @property
    def share(self) -> float:
        """How many of a labeller's pairs others judge, too."""
        share = parse_number(self.shared, "--shared")
        if not 0 <= share <= 1:
            raise RecipeError(f"--shared {self.shared!r} is outside [0, 1]; give a share such as 0.25, or 0 for none")
        return share


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Where the page is."""

    port: Annotated[
        str, typer.Option(metavar="NUMBER", rich_help_panel=_PAGE, help="On this machine; 0 for any that is free.")
    ] = "0"
    no_browser: Annotated[
        bool, typer.Option("--no-browser", rich_help_panel=_PAGE, help="Print the link, and open no browser.")
    ] = False

    @property
    def number(self) -> int:
        """The port."""
        port = whole_number(self.port, "--port", 0)
        if port > _LARGEST_PORT:
            raise RecipeError(f"--port {port} is no port; give one up to {_LARGEST_PORT}, or 0 for any that is free")
        return port


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """What is done with labels in place of the page."""

    import_file: Annotated[
        str | None,
        typer.Option(
            "--import", metavar="FILE", rich_help_panel=_TABLES, help="Take labels in: id1,id2,label, perhaps labeller."
        ),
    ] = None
    export: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", rich_help_panel=_TABLES, help="Write labels as CSV: id1,id2,label, as most labellers say."
        ),
    ] = None
    each: Annotated[
        bool, typer.Option("--each", rich_help_panel=_TABLES, help="With --export: a row for each labeller.")
    ] = False
    agreement: Annotated[
        bool, typer.Option("--agreement", rich_help_panel=_TABLES, help="Print how far labellers agree.")
    ] = False

    @property
    def asked(self) -> bool:
        """Whether anything is to be done.

        Raises
        ------
        RecipeError
            If an option is missing the one that it belongs to.
        """
        if self.each and self.export is None:
            raise RecipeError("--each belongs to --export FILE; name a file, or leave it out")
        return self.import_file is not None or self.export is not None or self.agreement
