"""The report of ``neardup replay``: its options, and what it is made of, taken while the replay runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.report_options import ReportOptions
from neardup.cli.screen import Report

if TYPE_CHECKING:
    from neardup.clock import Clock
    from neardup.documents import Corpus
    from neardup.features.statistics import Statistics
    from neardup.recipe import Recipe
    from neardup.replay.order import Item, Timeline
    from neardup.replay.run import Hour, Totals
    from neardup.replay.settings import Settings
    from neardup.reporting.extent import Extent

_PANEL = "A report"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReportOptions(ReportOptions):
    """A report of a replay, and how much it shows."""

    report: Annotated[
        str | None,
        typer.Option(
            "--report",
            "--page",
            metavar="FILE.html",
            rich_help_panel=_PANEL,
            help="One page, to be read without a network: what was stopped and why, what another threshold would do, "
            "and curves of time and memory.",
        ),
    ] = None

    def page(self, recipe: Recipe) -> Page | None:
        """Return the report that is wanted; None where none is.

        Raises
        ------
        RecipeError
            If a number is none, or an option says nothing without a report.
        """
        around = self.around(recipe)
        if self.report is None:
            return None
        from neardup.reporting.extent import Extent

        wanted = self.wanted()
        numbers: dict[str, Any] = {name: value for name, value in wanted.items() if name in ("families", "rows")}
        return Page(self.report, around or 0.0, Extent(**numbers), wanted["command"])


@dataclass(frozen=True, slots=True)
class Page:
    """The report that is wanted: its file, how far beyond the threshold it looks, its extent, and the command."""

    output: str
    around: float
    extent: Extent
    command: str

    def watching(self, settings: Settings, statistics: Statistics | None, clock: Clock, report: Report) -> Watching:
        """Return what takes verdicts while the replay runs."""
        return Watching(self, settings, statistics, clock, report)


class Watching:
    """Takes the verdicts of a replay, and writes its page.

    Parameters
    ----------
    page : Page
        What is wanted.
    settings : Settings
        Of the replay.
    statistics : Statistics or None
        Of the collection, for recipes that need them.
    clock : Clock
        Takes the cost of stages.
    report : callable
        Told of progress.
    """

    def __init__(
        self, page: Page, settings: Settings, statistics: Statistics | None, clock: Clock, report: Report
    ) -> None:
        from neardup.replay.report import ReplayReport
        from neardup.replay.sizes import Sample

        self.output = page.output
        self._page, self._settings, self._statistics = page, settings, statistics
        self._clock, self._report = clock, report
        self._made, self._sample = ReplayReport(settings), Sample()
        self._around: Any = None

    def see(self, items: Sequence[Item], judged: Sequence[Any]) -> None:
        """Take the verdicts of some documents."""
        self._made.see(items, judged)
        self._sample.see(items, judged)

    def look_around(self, corpus: Corpus, timeline: Timeline) -> None:
        """Replay once more with a looser threshold, for what comes near it."""
        from neardup.replay.around import around_of
        from neardup.replay.order import arrivals

        total = len(timeline.order)
        with self._clock.stage("look around the threshold"):
            items = arrivals(corpus, timeline)
            self._around = around_of(
                items, self._settings, self._page.around, total, statistics=self._statistics, report=self._report
            )

    def write(
        self,
        corpus: Corpus,
        timeline: Timeline,
        told: Mapping[str, Any],
        hours: Sequence[Hour],
        totals: Totals,
        downstream: float,
    ) -> None:
        """Write the page, which is there as a whole or not at all; ``told`` is what it says of the settings."""
        from neardup.replay.page import page_content, write_page
        from neardup.replay.sizes import measured

        with self._clock.stage("measure by size"):
            curves = measured(self._sample.items, lambda: self._settings.endless(self._statistics), self._report)
        report = self._made.made(
            corpus,
            timeline,
            self._around,
            totals,
            extent=self._page.extent,
            command=self._page.command,
            inputs=corpus.inputs,
            quarantined=corpus.set_aside.counts,
            stages=self._clock.stages,
            statistics=self._statistics,
        )
        write_page(self.output, page_content(told, hours, totals.as_dict(downstream), curves), report)
