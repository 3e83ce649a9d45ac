"""``neardup replay``: a dated corpus goes through the window as if its documents arrived one by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from neardup.cli.command import option, switch, with_options
from neardup.cli.options import (
    ClassifierOptions,
    Force,
    Inputs,
    ReadOptions,
    RecipeOptions,
    ReportOptions,
    WindowOptions,
    check_nothing,
    check_outputs,
    chosen_recipe,
)
from neardup.cli.screen import (
    count_text,
    interruptible,
    progress_bar,
    say_if_compiling,
    say_notes,
    say_rejected,
    show_rows,
    size_text,
)
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.documents import Corpus
    from neardup.features.reading import Progress
    from neardup.recipe import Recipe
    from neardup.stream.replay import Hour, Item, Timeline, Totals
    from neardup.stream.replay_report import PageOptions, ReplayReport

_HEAD = "hour (UTC)         items originals duplicates      held      MB  CPU µs     p99"


class Shown:
    """Prints hours as they end, and remembers them for the page.

    Parameters
    ----------
    stdout : file
        The real one: a progress bar on a terminal takes what is printed to itself, wherever stdout leads.
    as_json : bool
        Whether lines are JSON.
    """

    def __init__(self, stdout: Any, *, as_json: bool) -> None:
        self.hours: list[Hour] = []
        self._stdout, self._as_json = stdout, as_json

    def hour(self, hour: Hour) -> None:
        """Print an hour, and before it how long nothing came."""
        if not self.hours and not self._as_json:
            self._line(_HEAD)
        quiet = hour.hour - self.hours[-1].hour - 1 if self.hours else 0
        if quiet > 0:
            self._quiet(self.hours[-1].hour + 1, quiet)
        self.hours.append(hour)
        if self._as_json:
            self._line(json.dumps(hour.as_dict()))
            return
        begins = hour.begins.replace("T", " ").rstrip("Z")
        counts = f"{hour.items:>7,} {hour.originals:>9,} {hour.duplicates:>10,} {hour.held:>9,}"
        self._line(f"{begins:<16} {counts} {hour.bytes / 1e6:>7,.1f} {hour.median:>7,.0f} {hour.p99:>7,.0f}")

    def totals(self, totals: Totals, downstream: float) -> None:
        """Print the totals, where lines are JSON."""
        if self._as_json:
            self._line(json.dumps({"totals": totals.as_dict(downstream)}))

    def _quiet(self, first: int, hours: int) -> None:
        from neardup.stream.replay import hour_text

        if self._as_json:
            self._line(json.dumps({"hour": hour_text(first), "quiet_hours": hours}))
        else:
            self._line(f"{'':<16} {'-':>7}  {count_text(hours, 'hour')} without items")

    def _line(self, line: str) -> None:
        out = sys.stdout if self._stdout.isatty() else self._stdout
        out.write(line + "\n")
        out.flush()


_FLAGS = {
    "late": "older than the window",
    "ahead": "after a gap longer than the window",
    "undecidable": "too little text to compare: originals",
    "future": "later than now",
}


def show_totals(
    totals: Totals, timeline: Timeline, corpus: Corpus, downstream: float, places: dict[str, str | None]
) -> None:
    """Print the totals for people to stderr."""
    column = corpus.order_column
    rows = {
        "exact copies": f"{totals.exact:,}, texts that are equal byte for byte" if totals.exact else "",
        "rejected": f"{count_text(len(timeline.undated), 'document')} without a readable time in column {column!r}"
        if len(timeline.undated)
        else "",
        "flags": ", ".join(
            f"{count:,} {flag} ({_FLAGS.get(flag, flag)})" for flag, count in sorted(totals.flags.items())
        ),
        "window": f"at most {count_text(totals.most_held, 'document')}, {size_text(totals.most_bytes)}",
        "time an item": f"{_microseconds(totals.cpu, totals)} of processor time, {_microseconds(totals.wall, totals)} "
        "on the wall, on average",
        "classifier": totals.asked.description,
        "balance": _balance(totals, downstream),
    }
    rows |= {name: place or "" for name, place in places.items()}
    share = f" ({totals.share:.1%})" if totals.items else ""
    head = (
        f"{count_text(totals.items, 'item')}: {totals.items - totals.duplicates:,} originals, "
        f"{count_text(totals.duplicates, 'duplicate')}{share}"
    )
    show_rows(head, rows)


def _microseconds(nanoseconds: int, totals: Totals) -> str:
    return f"{nanoseconds / 1e3 / max(totals.items, 1):,.0f} µs"


def _balance(totals: Totals, downstream: float) -> str:
    """Return the paper's balance, P t_p against t_check: what duplicates would have cost behind the check."""
    if not totals.items:
        return ""
    saved = totals.share * downstream
    return (
        f"{saved:.3g} s saved an item ({totals.share:.1%} of {downstream:g} s), "
        f"{totals.balance(downstream):,.0f} times the {totals.check:.3g} s that a check takes"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReportOptions(ReportOptions):
    """A report of a replay, and how much it shows."""

    def page(self, recipe: Recipe) -> PageOptions | None:
        """Return the report that is wanted; None where none is.

        Raises
        ------
        RecipeError
            If a number is none, or an option says nothing without a report.
        """
        margin = self.margin(recipe)
        if self.report is None:
            return None
        from neardup.pages.report import Extent

        wanted = self.wanted()
        numbers: dict[str, Any] = {name: value for name, value in wanted.items() if name in ("families", "rows")}
        return {
            "output": self.report,
            "margin": margin or 0.0,
            "extent": Extent(**numbers),
            "command": wanted["command"],
        }


#: Documents judged at once where each verdict goes to a disk: one write for all of them.
_AT_ONCE_WITH_STORE = 256


@with_options
def replay(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: ClassifierOptions,
    windows: WindowOptions,
    read: ReadOptions,
    reported: ReplayReportOptions,
    time_column: Annotated[str | None, option("NAME", "Column of the times; detected automatically.")] = None,
    as_listed: Annotated[
        bool, switch("--as-listed", "Let documents arrive in input order, not in order of time.")
    ] = False,
    speed: Annotated[
        float | None,
        option("NUMBER", "Play time N times as fast: 60 is an hour per minute; by default without waiting."),
    ] = None,
    at_once: Annotated[
        int | None,
        option("NUMBER", "Judge up to N at once, and show their mean time: 1, with --store 256.", min=1),
    ] = None,
    downstream: Annotated[
        float, option("SECONDS", "Cost of an item downstream of the check, for the balance.", min=0, max=1_000_000_000)
    ] = 10.0,
    output: Annotated[
        str | None,
        option("FILE", "Write the verdict of each item, in the format of the name.", None, "--output", "-o"),
    ] = None,
    originals: Annotated[str | None, option("FILE", "Write the originals: whole records in input order.")] = None,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print JSON lines: the hours, then the totals.")] = False,
) -> None:
    """Run a dated corpus through the window, as if its documents arrived one by one.

    Documents without a readable time are rejected and counted.
    """
    from neardup.runtime import Clock
    from neardup.stream.index import warm_up
    from neardup.stream.replay import LEARNED, SCHEMA, Notes, Pace, Replay, ReplaySettings, arrivals, rejected, survey

    classifier = decided.loaded(time_column, also_for=True)
    recipe = chosen_recipe(recipe_options, classifier)
    if classifier is not None and classifier.vector.needs_titles and "-" in inputs:
        raise RecipeError(
            "the classifier compares titles, for which inputs are opened twice, and stdin cannot be; name a file"
        )
    settings = ReplaySettings(recipe, windows.window, windows.window_by, windows.against, windows.store, classifier)
    if speed is not None:
        Pace(speed)
    batch = at_once or (_AT_ONCE_WITH_STORE if windows.store else 1)
    page = reported.page(recipe)
    tables = ("-o", output), ("--originals", originals), ("--quarantine", read.quarantine)
    others = ("--report", reported.report), ("--store", windows.store)
    checks = {"-o": _check_table, "--originals": _check_table, "--store": check_nothing}
    check_outputs(inputs, *tables, *others, force=force, checks=checks)

    from neardup.documents import FIND_TIME, OrderColumn, open_writer
    from neardup.features.reading import ignore_progress

    written: list[str] = []
    with ExitStack() as open_things, interruptible(written):
        if classifier is not None and classifier.vector.needs_times:
            time_column = time_column or classifier.time_column
        column = OrderColumn(time_column, "--time-column") if time_column else FIND_TIME
        corpus = open_things.enter_context(read.open(inputs, order_column=column))
        say_notes(corpus, recipe)
        say_if_compiling(
            None,
            "window.flow",
            "window.meet_by_keys",
            "window.overlap_with_all",
            *(("pairs.discriminant", "pairs.align") if classifier else ()),
        )
        shown = Shown(sys.stdout, as_json=as_json)
        report = open_things.enter_context(progress_bar()) or ignore_progress
        statistics = settings.statistics(corpus, report)
        index = open_things.enter_context(settings.index(statistics))
        clock = Clock()
        with clock.stage("read times"):
            timeline = survey(corpus, as_listed=as_listed, report=report)
        if classifier is not None and classifier.vector.needs_titles:
            timeline = _titled(timeline, corpus, classifier, inputs, read, report)
        if read.strict:
            rejected(corpus, timeline)
        warm_up(index)
        # Filled while the replay runs, and put in its place when all else is: a full disk then leaves neither.
        schema = LEARNED if classifier else SCHEMA
        verdicts = None if output is None else open_things.enter_context(open_writer(output, schema, force))
        notes = Notes(verdicts, schema)

        watching = None if page is None else _report_of(page, settings, statistics, clock, report)

        def see(items: Sequence[Item], judged: Sequence[Any]) -> None:
            notes.see(items, judged)
            if watching is not None:
                watching.see(items, judged)

        run = Replay(index, batch=batch, speed=speed, by_clock=as_listed, see=see)
        with clock.stage("replay"):
            for hour in run.hours(_counted(arrivals(corpus, timeline), len(timeline.order), report)):
                shown.hour(hour)
        notes.flush()
        settings.check_domain(run.totals)
        if watching is not None:
            watching.look_around(corpus, timeline)
        rejected(corpus, timeline)
        shown.totals(run.totals, downstream)
        if originals is not None:
            corpus.copy(notes.originals(corpus.raw_rows), originals, force=force)
            written.append(originals)
        if watching is not None:
            told = settings.as_dict() | {"inputs": list(inputs), "batch": batch}
            watching.write(corpus, timeline, told, shown.hours, run.totals, downstream)
            written.append(watching.output)
    say_rejected(corpus)
    show_totals(
        run.totals,
        timeline,
        corpus,
        downstream,
        {"verdicts": output, "originals": originals, "report": reported.report},
    )


def _titled(
    timeline: Timeline, corpus: Corpus, classifier: Classifier, inputs: list[str], read: ReadOptions, report: Progress
) -> Timeline:
    """Return the timeline with titles, for which the inputs are read once more."""
    from neardup.stream.replay import title_column, titles_of

    column = title_column(corpus, timeline.rows, classifier)
    with read.open(inputs, order_column=column, write=False) as titles:
        return timeline._replace(titles=titles_of(titles, timeline.rows, report))


def _report_of(page: PageOptions, *given: Any) -> ReplayReport:
    from neardup.stream.replay_report import ReplayReport

    return ReplayReport(page, *given)


def _check_table(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents import check_output

    if name == "-":
        raise OutputError("- is stdout, where the hours go: name a file")
    check_output(name, inputs, force)


def _counted(items: Iterator[Item], total: int, report: Progress) -> Iterator[Item]:
    for done, item in enumerate(items):
        if done % 256 == 0:
            report("replay", done, total)
        yield item
