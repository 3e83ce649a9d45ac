"""``neardup replay``: a dated corpus run through the window, as if it arrived."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.choices import RecipeOptions
from neardup.cli.decisions import DecisionOptions, chosen_recipe
from neardup.cli.numbers import parse_number, whole_number
from neardup.cli.options import Force, Inputs, ReadOptions, check_outputs, with_options
from neardup.cli.replay_report import ReplayReportOptions
from neardup.cli.replay_table import Shown, show_totals
from neardup.cli.report_options import check_report
from neardup.cli.screen import Report, interruptible, progress_bar, say_if_compiling, say_notes, say_set_aside
from neardup.cli.windows import WindowOptions
from neardup.errors import OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.decision.decision import Decision
    from neardup.documents import Corpus
    from neardup.replay.order import Item, Timeline

#: Documents judged at once where each verdict goes to a disk: one write for all of them.
_AT_ONCE_WITH_STORE = 256


@with_options
def replay(
    inputs: Inputs,
    recipe_options: RecipeOptions,
    decided: DecisionOptions,
    windows: WindowOptions,
    read: ReadOptions,
    reported: ReplayReportOptions,
    time_column: Annotated[
        str | None, typer.Option(metavar="NAME", help="Column of the times; found by itself when obvious.")
    ] = None,
    as_listed: Annotated[
        bool, typer.Option("--as-listed", help="Let documents arrive in the order of the input, not in that of time.")
    ] = False,
    speed: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", help="How many times as fast time passes: 60 is an hour a minute; without, nothing waits."
        ),
    ] = None,
    at_once: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            help="Judge at most so many at once, and show their mean time: 1, with --store 256.",
        ),
    ] = None,
    downstream: Annotated[
        str, typer.Option(metavar="SECONDS", help="What an item costs behind the check, for the balance.")
    ] = "10",
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="The verdict of each item, in the format of the name."),
    ] = None,
    originals: Annotated[
        str | None, typer.Option(metavar="FILE", help="The originals, whole records in the order of the input.")
    ] = None,
    force: Force = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines: the hours, then the totals.")] = False,
) -> None:
    """Run a dated corpus through the window, as if its documents arrived one after the other.

    Documents without a readable time are set aside and counted.
    """
    from neardup.clock import Clock
    from neardup.replay.order import arrivals, set_aside, survey
    from neardup.replay.run import Pace, Replay
    from neardup.replay.settings import Settings
    from neardup.replay.verdicts import LEARNED, SCHEMA, Notes

    decision = decided.loaded(time_column, also_for=True)
    recipe = chosen_recipe(recipe_options, decision)
    if decision is not None and decision.vector.needs_titles and "-" in inputs:
        raise RecipeError(
            "the decision compares titles, for which inputs are opened a second time, and stdin cannot be; name a file"
        )
    settings = Settings(recipe, windows.window, windows.window_by, windows.against, windows.store, decision)
    pace = None if speed is None else parse_number(speed, "--speed")
    if pace is not None:
        Pace(pace)
    seconds = _seconds(downstream)
    batch = (_AT_ONCE_WITH_STORE if windows.store else 1) if at_once is None else whole_number(at_once, "--at-once")
    page = reported.page(recipe)
    tables = {"-o": output, "--originals": originals, "--quarantine": read.quarantine}
    _check_places(tables, reported.report, windows.store, inputs, force=force)

    from neardup.documents import FIND_TIME, open_writer

    written: list[str] = []
    with ExitStack() as open_things, interruptible(written):
        if decision is not None and decision.vector.needs_times:
            time_column = time_column or decision.time_column
        corpus = open_things.enter_context(read.open(inputs, order_column=time_column or FIND_TIME))
        say_notes(corpus, recipe)
        say_if_compiling(None, "flowing", "posting", "comparing", *(("deciding", "pairing") if decision else ()))
        shown = Shown(sys.stdout, as_json=as_json)
        report = open_things.enter_context(progress_bar()) or _silent
        statistics = settings.statistics(corpus, report)
        index = open_things.enter_context(settings.index(statistics))
        clock = Clock()
        with clock.stage("read times"):
            timeline = survey(corpus, as_listed=as_listed, report=report)
        if decision is not None and decision.vector.needs_titles:
            timeline = _titled(timeline, corpus, decision, inputs, read, report)
        if read.strict:
            set_aside(corpus, timeline)
        settings.warm_up(statistics)
        # Filled while the replay runs, and put in its place when all else is: a full disk then leaves neither.
        schema = LEARNED if decision else SCHEMA
        verdicts = None if output is None else open_things.enter_context(open_writer(output, schema, force))
        notes = Notes(verdicts, schema)

        watching = None if page is None else page.watching(settings, statistics, clock, report)

        def see(items: Sequence[Item], judged: Sequence[Any]) -> None:
            notes.see(items, judged)
            if watching is not None:
                watching.see(items, judged)

        run = Replay(index, batch=batch, speed=pace, by_clock=as_listed, see=see)
        with clock.stage("replay"):
            for hour in run.hours(_counted(arrivals(corpus, timeline), len(timeline.order), report)):
                shown.hour(hour)
        notes.flush()
        if watching is not None:
            watching.look_around(corpus, timeline)
        set_aside(corpus, timeline)
        shown.totals(run.totals, seconds)
        if originals is not None:
            corpus.copy(notes.originals(corpus.raw_rows), originals, force=force)
            written.append(originals)
        if watching is not None:
            told = settings.as_dict() | {"inputs": list(inputs), "batch": batch}
            watching.write(corpus, timeline, told, shown.hours, run.totals, seconds)
            written.append(watching.output)
    say_set_aside(corpus)
    show_totals(
        run.totals,
        timeline,
        corpus,
        seconds,
        {"verdicts": output, "originals": originals, "report": reported.report},
    )


def _seconds(text: str) -> float:
    seconds = parse_number(text, "--downstream")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise RecipeError(f"--downstream {text!r} is no time: give seconds, such as 10")
    return seconds


def _titled(
    timeline: Timeline, corpus: Corpus, decision: Decision, inputs: list[str], read: ReadOptions, report: Report
) -> Timeline:
    """Return the timeline with titles, for which the inputs are read once more."""
    from neardup.replay.titles import title_column, titles_of

    column = title_column(corpus, timeline.rows, decision)
    with read.open(inputs, order_column=column, write=False) as titles:
        return timeline._replace(titles=titles_of(titles, timeline.rows, report))


def _check_places(
    tables: dict[str, str | None], page: str | None, store: str | None, inputs: list[str], *, force: bool
) -> None:
    """Refuse outputs before the work starts."""
    for option, name in tables.items():
        if name == "-":
            raise OutputError(f"{option} - is stdout, where the hours go: name a file")
    check_outputs(tables, None, inputs, force=force)
    check_report(page, inputs, (*tables.values(), store), force=force)


def _silent(stage: str, done: int, total: int | None) -> None:
    """Tell nobody."""


def _counted(items: Iterator[Item], total: int, report: Report) -> Iterator[Item]:
    for done, item in enumerate(items):
        if done % 256 == 0:
            report("replay", done, total)
        yield item
