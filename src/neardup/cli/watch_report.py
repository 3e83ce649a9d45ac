"""The report of ``neardup watch``: its options, and who has it made."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.numbers import parse_number, parse_seconds, whole_number
from neardup.cli.report_options import ReportFamilies
from neardup.cli.screen import typed_command
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.cli.watch_options import ItemDecision
    from neardup.watch.task import Wanted

_PANEL = "A report"
_EVERY, _IN_THE_END = "10m", "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReportOptions:
    """A report of a watcher, how often it is written, and how much it shows."""

    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.html",
            rich_help_panel=_PANEL,
            help="One page, to be read without a network: what was stopped and why; written while the watcher runs and "
            "when it stops, by a process of its own.",
        ),
    ] = None
    report_every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|end",
            rich_help_panel=_PANEL,
            help="Write it so often, if anything has arrived: 30s, 10m (the default), 1h; end for once, when it stops.",
        ),
    ] = None
    report_items: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_PANEL,
            help="Report so many of the latest items, 100000 by default.",
        ),
    ] = None
    report_families: ReportFamilies = None
    report_rows: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_PANEL,
            help="List so many of the latest duplicates to search, 2000 by default.",
        ),
    ] = None
    force: Annotated[
        bool,
        typer.Option(
            "--force", rich_help_panel=_PANEL, help="Replace a file that is no report; an earlier report always is."
        ),
    ] = False

    def wanted(self, decided: ItemDecision) -> Wanted | None:
        """Return the report that is wanted; None where none is.

        Parameters
        ----------
        decided : ItemDecision
            The learned decision, if any.

        Raises
        ------
        RecipeError
            If a number is none, or an option says nothing without a report.
        """
        numbers = {"families": self.report_families, "rows": self.report_rows}
        if self.report is None:
            given = {"every": self.report_every, "items": self.report_items} | numbers
            for name, value in given.items():
                if value is not None:
                    raise RecipeError(f"--report-{name} {value} is for a report; name one with --report FILE.html")
            if self.force:
                raise RecipeError("--force is for a report; name one with --report FILE.html")
            return None
        from neardup.reporting.extent import Extent
        from neardup.watch.task import Wanted

        every = self.report_every or _EVERY
        seconds = inf if every == _IN_THE_END else parse_seconds(every, "--report-every")
        if seconds < 1:
            raise RecipeError(f"--report-every {every} is below a second: give 10m, or end for one in the end")
        extent: dict[str, Any] = {
            name: whole_number(value, f"--report-{name}", 0) for name, value in numbers.items() if value is not None
        }
        more: dict[str, Any] = {}
        if self.report_items is not None:
            more["items"] = whole_number(self.report_items, "--report-items")
        return Wanted(
            output=self.report,
            every=seconds,
            extent=Extent(**extent),
            command=typed_command(),
            decision=decided.decision,
            precision=None if decided.precision is None else parse_number(decided.precision, "--precision"),
            **more,
        )
