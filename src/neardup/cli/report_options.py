"""The options of reports."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.numbers import parse_number, whole_number
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.recipe import Recipe
    from neardup.reporting.batch import Wanted

_PANEL = "A report"

ReportFile = Annotated[
    str | None,
    typer.Option(
        metavar="FILE.html",
        rich_help_panel=_PANEL,
        help="One page, to be read without a network: what was dropped and why, and what another threshold would do.",
    ),
]
ReportFamilies = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=_PANEL,
        help="Show so many of the largest families, 50 by default, and half as many of the others, drawn at random.",
    ),
]
ReportRows = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER",
        rich_help_panel=_PANEL,
        help="List so many dropped documents to search, 2000 by default; drawn at random if they are more.",
    ),
]


def check_report(name: str | None, inputs: list[str], others: Iterable[str | None], *, force: bool) -> None:
    """Refuse, before the work starts, a report that cannot or must not be written.

    Parameters
    ----------
    name : str or None
        Of the page; None where none is asked for.
    inputs : list of str
        What will be read.
    others : iterable of str or None
        Names of the other outputs.
    force : bool
        Whether an existing file may be replaced.
    """
    if name is None:
        return
    from neardup.reporting.writing import check_page

    check_page(name, inputs, force=force)
    place = os.path.realpath(name)
    if any(other is not None and other != "-" and os.path.realpath(other) == place for other in others):
        raise OutputError(f"{name} is given for --report and for another output: name two files")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """A report of a run, and how much it shows."""

    report: ReportFile = None
    report_families: ReportFamilies = None
    report_rows: ReportRows = None
    report_around: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|none",
            rich_help_panel=_PANEL,
            help="How far beyond the threshold to look for the report, by default 0.2 (half the way to 0 from below "
            "0.4; 2 bits with simhash); none looks nowhere.",
        ),
    ] = None

    def around(self, recipe: Recipe) -> float | None:
        """Return how far beyond the threshold to look; None for nowhere.

        Raises
        ------
        RecipeError
            If it is no number, or an option says nothing without a report.
        """
        if self.report is None:
            options = ("report_families", "report_rows", "report_around")
            given = next((name for name in options if getattr(self, name) is not None), None)
            if given is not None:
                option = "--" + given.replace("_", "-")
                raise RecipeError(f"{option} {getattr(self, given)} is for a report; name one with --report FILE.html")
            return None
        if self.report_around == "none":
            return None
        if self.report_around is not None:
            return parse_number(self.report_around, "--report-around")
        from neardup.search.around import usual_around

        return usual_around(recipe)

    def wanted(self, *, title_column: str | None = None, time_column: str | None = None) -> Wanted:
        """Return what the report is to show.

        Raises
        ------
        RecipeError
            If a number is none.
        """
        from neardup.cli.screen import typed_command

        found: Wanted = {"command": typed_command()}
        if self.report_families is not None:
            found["families"] = whole_number(self.report_families, "--report-families", 0)
        if self.report_rows is not None:
            found["rows"] = whole_number(self.report_rows, "--report-rows", 0)
        if title_column:
            found["title_column"] = title_column
        if time_column:
            found["time_column"] = time_column
        return found
