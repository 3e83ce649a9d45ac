"""``neardup replay``: run a dated corpus through the window as if its documents arrived one by one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from neardup.cli import screen
from neardup.cli.command import option, output_option, switch
from neardup.cli.options import (
    CorpusClassifierOptions,
    FlowRecipeOptions,
    Force,
    Inputs,
    ReadOptions,
    ReportOptions,
    WindowOptions,
)
from neardup.errors import OutputError, RecipeError
from neardup.pages.numbers import format_count, format_size

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.documents import Corpus
    from neardup.features.reading import Progress
    from neardup.recipe import Recipe
    from neardup.stream.replay import Hour, Item, ReplayTotals, Timeline
    from neardup.stream.replay_report import ReplayReport, ReplayReportSettings

_HEADER = "hour (UTC)         items originals duplicates      held      MB  CPU µs     p99"


class HourPrinter:
    """Prints the hours of a replay as they end, and keeps them for the page.

    While a progress bar runs, ``sys.stdout`` is redirected to the terminal, so the stream to print to is given.
    """

    def __init__(self, stdout: Any, *, as_json: bool) -> None:
        self.hours: list[Hour] = []
        self._stdout, self._as_json = stdout, as_json

    def print_hour(self, hour: Hour) -> None:
        """Print an hour, after the number of hours without items before it."""
        if not self.hours and not self._as_json:
            self._print(_HEADER)
        quiet = hour.hour - self.hours[-1].hour - 1 if self.hours else 0
        if quiet > 0:
            self._print_quiet_hours(self.hours[-1].hour + 1, quiet)
        self.hours.append(hour)
        if self._as_json:
            self._print(json.dumps(hour.as_dict()))
            return
        begins = hour.start.replace("T", " ").rstrip("Z")
        counts = f"{hour.items:>7,} {hour.originals:>9,} {hour.duplicates:>10,} {hour.held:>9,}"
        self._print(f"{begins:<16} {counts} {hour.bytes / 1e6:>7,.1f} {hour.median:>7,.0f} {hour.p99:>7,.0f}")

    def print_totals(self, totals: ReplayTotals, downstream: float, columns: dict[str, str | None]) -> None:
        """Print the totals, if lines are JSON."""
        if self._as_json:
            self._print(json.dumps({"totals": totals.as_dict(downstream), "columns": columns}))

    def _print_quiet_hours(self, first: int, hours: int) -> None:
        from neardup.stream.replay import format_hour

        if self._as_json:
            self._print(json.dumps({"hour": format_hour(first), "quiet_hours": hours}))
        else:
            self._print(f"{'':<16} {'-':>7}  {format_count(hours, 'hour')} without items")

    def _print(self, line: str) -> None:
        out = sys.stdout if self._stdout.isatty() else self._stdout
        out.write(line + "\n")
        out.flush()


_FLAGS = {
    "late": "older than the window",
    "ahead": "after a gap longer than the window",
    "undecidable": "too little text to compare: originals",
    "future": "later than now",
}


def print_totals(
    totals: ReplayTotals, timeline: Timeline, corpus: Corpus, downstream: float, places: dict[str, str | None]
) -> None:
    """Print a summary of the totals to stderr."""
    column = corpus.order_column
    rows = {
        "exact copies": f"{totals.exact:,}, texts that are equal byte for byte" if totals.exact else "",
        "known": f"{format_count(totals.known, 'verdict')}, taken from the store" if totals.known else "",
        "rejected": f"{format_count(len(timeline.undated), 'document')} without a readable time in column {column!r}"
        if len(timeline.undated)
        else "",
        "flags": ", ".join(
            f"{count:,} {flag} ({_FLAGS.get(flag, flag)})" for flag, count in sorted(totals.flags.items())
        ),
        "window": f"at most {format_count(totals.max_window_documents, 'document')}, "
        f"{format_size(totals.max_window_bytes)}",
        "time an item": f"{_microseconds(totals.cpu, totals)} of processor time, {_microseconds(totals.wall, totals)} "
        "elapsed, on average",
        "classifier": totals.domain_counts.description,
        "balance": _balance(totals, downstream),
        "columns": screen.describe_columns(corpus),
    }
    rows |= {name: place or "" for name, place in places.items()}
    share = f" ({totals.share:.1%})" if totals.items else ""
    heading = (
        f"{format_count(totals.items, 'item')}: {totals.items - totals.duplicates:,} originals, "
        f"{format_count(totals.duplicates, 'duplicate')}{share}"
    )
    screen.print_summary(heading, rows)


def _microseconds(nanoseconds: int, totals: ReplayTotals) -> str:
    return f"{nanoseconds / 1e3 / max(totals.items, 1):,.0f} µs"


def _balance(totals: ReplayTotals, downstream: float) -> str:
    """Return the balance of the paper, P t_p against t_check: the downstream cost of duplicates against the check."""
    if not totals.items:
        return ""
    saved = totals.share * downstream
    return (
        f"{saved:.3g} s saved per item ({totals.share:.1%} of {downstream:g} s), "
        f"{totals.balance(downstream):,.0f} times the {totals.check:.3g} s of a check"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReportOptions(ReportOptions):
    """A report of a replay, and how much it shows."""

    def page(self, recipe: Recipe) -> ReplayReportSettings | None:
        """Return the options of the page; None without a report.

        Raises ``RecipeError`` for a bad number, or an option that is given without a report.
        """
        margin = self.margin(recipe)
        if self.report is None:
            return None
        from neardup.pages.report import ReportLimits

        return {
            "output": self.report,
            "margin": margin or 0.0,
            "limits": ReportLimits(families=self.report_families, rows=self.report_rows),
            "command": screen.typed_command(),
        }


#: How many documents are judged at once with a store: one write for all of them.
_AT_ONCE_WITH_STORE = 256


def replay(
    inputs: Inputs,
    recipe_options: FlowRecipeOptions,
    classifier_options: CorpusClassifierOptions,
    window_options: WindowOptions,
    read_options: ReadOptions,
    report_options: ReplayReportOptions,
    time_column: Annotated[str | None, option("NAME", "Column of the times; detected automatically.")] = None,
    as_listed: Annotated[
        bool, switch("--as-listed", "Let documents arrive in input order instead of time order.")
    ] = False,
    speed: Annotated[
        float | None,
        option("NUMBER", "Replay N times as fast as real time: 60 is an hour per minute; by default without waiting."),
    ] = None,
    downstream: Annotated[
        float,
        option(
            "SECONDS", "Cost of processing an item downstream of the check, for the balance.", min=0, max=1_000_000_000
        ),
    ] = 10.0,
    output: Annotated[str | None, output_option("Write the verdict of each item, in the format of the name.")] = None,
    originals: Annotated[str | None, option("FILE", "Write the original records, in input order.")] = None,
    force: Force = False,
    as_json: Annotated[bool, switch("--json", "Print JSON lines: the hours, then the totals.")] = False,
) -> None:
    """Run a dated corpus through the window, as if its documents arrived one by one.

    Documents without a readable time are rejected and counted.
    """
    from neardup.runtime import Clock
    from neardup.stream.index import warm_up
    from neardup.stream.replay import (
        CLASSIFIER_SCHEMA,
        SCHEMA,
        Pace,
        Replay,
        ReplaySettings,
        VerdictLog,
        read_items,
        read_timeline,
        reject_undated,
    )

    classifier = classifier_options.load_for_corpus(time_column, times_used=True)
    recipe = recipe_options.resolve_for_flow(classifier)
    if classifier is not None and classifier.vector.needs_titles and "-" in inputs:
        raise RecipeError(
            "the classifier compares titles, for which inputs are read twice, and stdin cannot be: name a file"
        )
    settings = ReplaySettings(
        recipe,
        window_options.window,
        window_options.window_by,
        window_options.against,
        window_options.store,
        classifier,
    )
    if speed is not None:
        Pace(speed)
    batch = _AT_ONCE_WITH_STORE if window_options.store else 1
    page = report_options.page(recipe)
    outputs = {
        "-o": output,
        "--originals": originals,
        "--quarantine": read_options.quarantine,
        "--report": report_options.report,
        "--store": window_options.store,
    }
    checks = {"-o": _check_table, "--originals": _check_table, "--store": screen.check_nothing}
    screen.check_outputs(inputs, outputs, force=force, checks=checks)

    from neardup.documents import DETECTED_TIME_COLUMN, OrderColumn, open_writer
    from neardup.documents.output import placed_together
    from neardup.features.reading import ignore_progress

    with screen.written_files() as written, placed_together(written), ExitStack() as stack:
        if classifier is not None and classifier.vector.needs_times:
            time_column = time_column or classifier.time_column
        column = OrderColumn(time_column, "--time-column") if time_column else DETECTED_TIME_COLUMN
        corpus = stack.enter_context(read_options.open(inputs, order_column=column))
        screen.print_corpus_notes(corpus, recipe)
        screen.announce_compilation()
        printer = HourPrinter(sys.stdout, as_json=as_json)
        progress = stack.enter_context(screen.progress_bar()) or ignore_progress
        statistics = settings.statistics(corpus, progress)
        index = stack.enter_context(settings.index(statistics))
        clock = Clock()
        with clock.stage("read times"):
            timeline = read_timeline(corpus, as_listed=as_listed, report=progress)
        if classifier is not None and classifier.vector.needs_titles:
            timeline = _with_titles(timeline, corpus, classifier, inputs, read_options, progress)
        if read_options.strict:
            reject_undated(corpus, timeline)
        warm_up(index)
        # Filled during the replay.
        schema = CLASSIFIER_SCHEMA if classifier else SCHEMA
        verdicts = None if output is None else stack.enter_context(open_writer(output, schema, force))
        notes = VerdictLog(verdicts, schema)

        page_report = None if page is None else _open_report(page, settings, corpus, timeline, statistics)

        def log_verdicts(items: Sequence[Item], verdicts: Sequence[Any]) -> None:
            notes.add(verdicts)
            if page_report is not None:
                page_report.add(verdicts)

        run = Replay(index, batch=batch, speed=speed, by_clock=as_listed, on_verdicts=log_verdicts)
        with clock.stage("replay"):
            for hour in run.hours(_with_progress(read_items(corpus, timeline), len(timeline.order), progress)):
                printer.print_hour(hour)
        notes.flush()
        settings.check_domain(run.totals)
        if page_report is not None:
            with clock.stage("margin"):
                page_report.search_margin(progress)
        reject_undated(corpus, timeline)
        printer.print_totals(run.totals, downstream, corpus.columns_used)
        if originals is not None:
            corpus.copy(notes.originals(timeline, corpus.raw_rows), originals, force=force)
        if page_report is not None:
            facts = settings.as_dict() | {"inputs": list(inputs), "batch": batch, "columns": corpus.columns_used}
            page_report.write(facts, printer.hours, run.totals, downstream, clock)
    screen.print_rejected_records(corpus)
    print_totals(
        run.totals,
        timeline,
        corpus,
        downstream,
        {"verdicts": output, "originals": originals, "report": report_options.report},
    )


def _with_titles(
    timeline: Timeline,
    corpus: Corpus,
    classifier: Classifier,
    inputs: list[str],
    read_options: ReadOptions,
    progress: Progress,
) -> Timeline:
    """Return the timeline with titles, for which the inputs are read again."""
    from neardup.stream.replay import title_column, titles_of

    column = title_column(corpus, timeline.rows, classifier)
    with read_options.open(inputs, order_column=column, write=False) as titles:
        return timeline._replace(titles=titles_of(titles, timeline.rows, progress))


def _open_report(page: ReplayReportSettings, *sources: Any) -> ReplayReport:
    from neardup.stream.replay_report import ReplayReport

    return ReplayReport(page, *sources)


def _check_table(name: str, inputs: Sequence[str], force: bool) -> None:
    from neardup.documents import check_output

    if name == "-":
        raise OutputError("- is stdout, where the hours are printed: name a file")
    check_output(name, inputs, force)


def _with_progress(items: Iterator[Item], total: int, progress: Progress) -> Iterator[Item]:
    for done, item in enumerate(items):
        if done % 256 == 0:
            progress("replay", done, total)
        yield item
