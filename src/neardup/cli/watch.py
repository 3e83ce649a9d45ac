"""The options of ``neardup watch``: what is compared, the store, where files go and when they are taken."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from math import inf
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.options import (
    DecisionFile,
    DecisionOptions,
    EngineOptions,
    Precision,
    RecipeOptions,
    ReportFamilies,
    WindowOptions,
    chosen_content,
    chosen_recipe,
    with_options,
)
from neardup.cli.screen import (
    count_text,
    parse_number,
    parse_seconds,
    parse_size,
    say,
    size_text,
    typed_command,
    visible,
    whole_number,
)
from neardup.errors import InputError, OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.classifier.classifier import Decision
    from neardup.features.statistics import Statistics
    from neardup.recipe import Recipe
    from neardup.spark.command import Engine
    from neardup.spark.inbox import Totals
    from neardup.spark.streaming import Work
    from neardup.stream.index import Index
    from neardup.stream.store import Store
    from neardup.watch.judge import Counters, Log
    from neardup.watch.report_process import Reporter, Wanted
    from neardup.watch.settings import Settings
    from neardup.watch.watcher import Watcher

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
        plain = given == "plain" and (decision is None or not decision.candidate_rule.content)
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
        from neardup.pages.report import Extent
        from neardup.watch.report_process import Wanted

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


_ENGINE = "Engine"
_FILES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions(EngineOptions):
    """Where the work is done, and on Spark where its verdicts go."""

    verdicts: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            rich_help_panel=_ENGINE,
            help="Write verdicts there as Parquet files, each item once; on Spark, where files stay in the inbox.",
        ),
    ] = None
    batch_files: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER", rich_help_panel=_ENGINE, help=f"Take so many files at once on Spark; {_FILES} by default."
        ),
    ] = None
    shards: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=_ENGINE,
            help="Cut the window on Spark into so many parts; one for each processor by default.",
        ),
    ] = None

    def stream_engine(self, given: dict[str, object]) -> Engine | None:
        """Return the engine where it is Spark, else None; refuse what does not go together.

        Parameters
        ----------
        given : dict of str to object
            Options that only the watcher of one machine has, and their values where they are not the default.
        """
        engine = EngineOptions(**{field.name: getattr(self, field.name) for field in fields(EngineOptions)})
        if engine.engine == "memory":
            own = {"--verdicts": self.verdicts, "--batch-files": self.batch_files, "--shards": self.shards}
            for name, value in own.items():
                if value:
                    raise RecipeError(f"{name} is for --engine spark: name that engine, or leave out {name}")
        if self.resume:
            raise RecipeError("--resume is not needed: the same command goes on where the last run ended")
        found = engine.chosen(None, **given)
        if found is not None:
            for name, value in (("--verdicts", self.verdicts), ("--checkpoint-dir", self.checkpoint_dir)):
                if not value:
                    raise RecipeError(f"a watcher on Spark needs a folder for {name}: name one with {name} DIR")
        return found


def only_here(
    folders: Folders, taking: Taking, windows: DurableWindow, reported: WatchReportOptions, downstream: str
) -> dict[str, object]:
    """Return what of the options is for one machine alone, and was given: by name, None where it was not."""
    usual = Taking()
    given: dict[str, object] = {f"--{field.name}": getattr(folders, field.name) for field in fields(folders)}
    given["--place"] = folders.place != Folders().place
    given["--store"] = windows.store
    given["--settle"] = taking.settle != usual.settle
    given["--patience"] = taking.patience != usual.patience
    given["--downstream"] = downstream != "10"
    for field in fields(reported):
        given[f"--{field.name.replace('_', '-')}"] = getattr(reported, field.name)
    return given


def check_folders(folders: Folders, windows: DurableWindow) -> None:
    """Refuse to watch on one machine without the folders that this needs.

    Raises
    ------
    RecipeError
        If one is not given.
    """
    for name, value, what in (
        ("--originals", folders.originals, "FOLDER, where originals go"),
        ("--store", windows.store, "FILE, where the window and all verdicts are kept"),
    ):
        if not value:
            raise typer.BadParameter(f"a watcher needs it: give {name} {what}", param_hint=name)


def watch_on_spark(
    inbox: str,
    options: StreamOptions,
    engine: Engine,
    taking: Taking,
    windows: DurableWindow,
    *,
    recipe: Recipe,
    decision: Decision | None,
    sample: Statistics | None,
    content: str,
) -> None:
    """Watch a folder on Spark until asked to stop.

    Raises
    ------
    NeardupError
        If an option does not fit, before anything starts; or what ended the stream.
    """
    from neardup.spark.inbox import Watching, watch
    from neardup.spark.streaming import check_packages, work_for
    from neardup.watch.judge import Log

    check_packages()
    watching = Watching(
        inbox=inbox,
        verdicts=str(options.verdicts),
        checkpoint_dir=str(options.checkpoint_dir),
        content=content,
        largest=parse_size(taking.largest, "--largest") or 0,
        files=_FILES if options.batch_files is None else whole_number(options.batch_files, "--batch-files"),
        poll=parse_number(taking.poll, "--poll"),
        once=taking.once,
    )
    _check_places(watching.inbox, {"--verdicts": watching.verdicts, "--checkpoint-dir": watching.checkpoint_dir})
    shards = None if options.shards is None else whole_number(options.shards, "--shards")

    def make(count: int) -> Work:
        what = None if decision else recipe
        return work_for(what, decision, windows.window, windows.window_by, windows.against, sample, count, {})

    make(shards or 1)
    totals = watch(watching, engine, make, shards, Log().say)
    if sys.stderr.isatty():
        say(_stream_summary(totals))


def _check_places(inbox: str, folders: dict[str, str]) -> None:
    """Refuse folders of this machine that are not there, or lie in the inbox."""
    if "://" in inbox:
        return
    if not os.path.isdir(inbox):
        raise InputError(f"{inbox} is no folder: name the inbox that files arrive in")
    root = os.path.realpath(inbox)
    seen: dict[str, str] = {}
    for name, folder in folders.items():
        if "://" in folder:
            continue
        place = os.path.realpath(folder)
        if os.path.commonpath([place, root]) == root:
            raise OutputError(f"{folder} for {name} lies in the inbox {inbox}: name a folder outside of it")
        if place in seen:
            raise OutputError(f"{folder} is given for {seen[place]} and for {name}: name two folders")
        if os.path.exists(place) and not os.path.isdir(place):
            raise OutputError(f"{folder} for {name} is a file: name a folder")
        seen[place] = name


def _stream_summary(totals: Totals) -> str:
    share = f" ({totals.duplicates / totals.items:.1%})" if totals.items else ""
    aside = f", {totals.set_aside:,} set aside" if totals.set_aside else ""
    return (
        f"stopped: {count_text(totals.files, 'file')}, {count_text(totals.items, 'item')}: "
        f"{count_text(totals.originals, 'original')}, {count_text(totals.duplicates, 'duplicate')}{share}{aside}"
    )


@with_options
def watch(
    inbox: Annotated[str, typer.Argument(metavar="INBOX", show_default=False, help="The folder that files arrive in.")],
    folders: Folders,
    taking: Taking,
    windows: DurableWindow,
    recipe_options: ItemRecipe,
    decided: ItemDecision,
    reported: WatchReportOptions,
    stream: StreamOptions,
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="INPUT",
            help="A corpus to take frequencies from, for recipes that need them; the same one at each start.",
        ),
    ] = None,
    downstream: Annotated[
        str,
        typer.Option(metavar="SECONDS", help="What an item costs behind the watcher, for the balance that is shown."),
    ] = "10",
) -> None:
    """Judge files as they appear in a folder: originals go on, duplicates stop.

    It reads text, web pages, feeds (RSS, Atom, NewsML, NITF), JSON and JSON lines.

    A verdict is on the disk before its file is moved; a new run goes on where one ended.

    Nothing is deleted or overwritten.

    At a terminal a panel shows what happens, elsewhere JSON lines on stderr.

    On Spark files stay in the inbox, and verdicts go to Parquet files.
    """
    decision = decided.loaded()
    recipe, content = recipe_options.chosen_for_items(decision)
    engine = stream.stream_engine(only_here(folders, taking, windows, reported, downstream))
    _check_sample(recipe, sample)
    if engine is not None:
        from neardup.search.window import check_keys

        check_keys(recipe)
        statistics = _statistics(recipe, sample)
        what: dict[str, Any] = {"recipe": recipe, "decision": decision, "sample": statistics, "content": content}
        watch_on_spark(inbox, stream, engine, taking, windows, **what)
        return
    check_folders(folders, windows)

    from neardup.watch.settings import Settings

    settings = Settings(
        inbox=inbox,
        originals=folders.originals,
        duplicates=folders.duplicates,
        quarantine=folders.quarantine,
        done=folders.done,
        place=folders.place,
        poll=parse_number(taking.poll, "--poll"),
        settle=parse_number(taking.settle, "--settle"),
        patience=parse_number(taking.patience, "--patience"),
        largest=parse_size(taking.largest, "--largest") or 0,
        content=content,
        once=taking.once,
        downstream=parse_number(downstream, "--downstream"),
    )
    settings.check_store(windows.store)
    wanted = reported.wanted(decided)
    if wanted is not None:
        wanted.check(settings, windows.store, force=reported.force)

    from neardup.stream.index import Index
    from neardup.watch.inbox import Held

    with (
        Held(inbox, shared=settings.place == "link"),
        Index(
            None if decision else recipe,
            decision=decision,
            window=windows.window,
            window_by=windows.window_by,
            against=windows.against,
            path=windows.store,
            sample=_statistics(recipe, sample),
        ) as index,
    ):
        _warm_up(index)
        _watch(settings, index, windows, wanted)


def _check_sample(recipe: Recipe, sample: str | None) -> None:
    if recipe.needs_statistics and sample is None:
        raise RecipeError(
            f"recipe {recipe.name!r} takes frequencies from a collection, and a folder that fills is none yet: name a "
            "corpus with --sample"
        )
    if sample is not None and not recipe.needs_statistics:
        raise RecipeError(
            f"--sample {sample} is for recipes that take frequencies from a collection, and recipe {recipe.name!r} "
            "takes none; leave it out"
        )


def _statistics(recipe: Recipe, sample: str | None) -> Statistics | None:
    """Return what a recipe takes from a collection; None where it takes nothing."""
    if sample is None or not recipe.needs_statistics:
        return None
    from neardup.documents import open_corpus
    from neardup.features.reading import gather

    with open_corpus([sample]) as corpus:
        return gather(corpus, recipe)


def _warm_up(index: Index) -> None:
    """Load the kernels, or have them compiled, so that no item is charged for it."""
    from neardup.kernels.compilation import kernels_are_compiled
    from neardup.stream.document import Document
    from neardup.stream.index import Index
    from neardup.watch.judge import Log

    if not kernels_are_compiled(
        "grams.feature_sets", "window.flow", *(("pairs.discriminant", "pairs.align") if index.decision else ())
    ):
        message = "compiling kernels for this machine (once, about 15 s)"
        if sys.stderr.isatty():
            say(message)
        else:
            Log().say("compiling", message=message)
    if index.recipe.needs_statistics:
        return
    with Index(None if index.decision else index.recipe, decision=index.decision) as idle:
        idle.add_many(Document(str(number), f"some words to warm up with {number}", 0.0) for number in range(3))


def _watch(settings: Settings, index: Index, windows: DurableWindow, wanted: Wanted | None) -> None:
    from neardup.watch.judge import Log
    from neardup.watch.watcher import Watcher

    store = index.store
    if store is None:
        raise RecipeError("a watcher needs a store: name one with --store news.db")
    if not sys.stderr.isatty():
        log = Log()
        watcher = Watcher(settings, index, store, log)
        watcher.reporter = _reporter(watcher, store, log, windows, wanted)
        _say_started(log, index, settings, windows)
        counters = _run(watcher, log)
        log.say("stopped", **counters.as_dict(), held=len(index))
        return

    from neardup.watch.watcher import Panel

    heard: list[Any] = []
    log = Log(lambda event, fields: heard[0](event, fields))
    watcher = Watcher(settings, index, store, log)
    watcher.reporter = _reporter(watcher, store, log, windows, wanted)
    with Panel(watcher, lambda text: visible(text, lines=False), size_text) as panel:
        heard.append(panel.hear)
        counters = _run(watcher, log)
    say(_summary(counters))
    if wanted is not None and watcher.reporter is not None and watcher.reporter.written is not None:
        say(f"written: {wanted.output}")


def _reporter(
    watcher: Watcher, store: Store, log: Log, windows: DurableWindow, wanted: Wanted | None
) -> Reporter | None:
    """Return who has reports made; None where none are wanted."""
    if wanted is None:
        return None
    from neardup.watch.report import command
    from neardup.watch.report_process import Reporter, Tasks

    flow = {"window": windows.window, "against": windows.against}
    tasks = Tasks(wanted, watcher.settings, watcher.index, store, watcher.counters, flow)
    return Reporter(command(), tasks, every=wanted.every, log=log)


def _run(watcher: Watcher, log: Log) -> Counters:
    """Watch until the end, and have the last report made when all is in its place."""
    with _until_signal(watcher, log):
        try:
            counters = watcher.run()
            if watcher.reporter is not None:
                watcher.reporter.finish()
        finally:
            if watcher.reporter is not None:
                watcher.reporter.close()
    return counters


def _say_started(log: Log, index: Index, settings: Settings, windows: DurableWindow) -> None:
    log.say(
        "started",
        pid=os.getpid(),
        inbox=settings.inbox,
        originals=settings.originals,
        duplicates=settings.duplicates,
        quarantine=settings.quarantine,
        done=settings.done,
        store=windows.store,
        recipe=index.recipe.name,
        fingerprint=index.recipe.fingerprint,
        matches=index.recipe.in_words(),
        window=windows.window,
        held=len(index),
    )


@contextmanager
def _until_signal(watcher: Watcher, log: Log) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the watcher after the batch in hand; the second one ends it at once."""
    asked = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt("nothing is lost: the next run goes on from here")
        asked = True
        watcher.stop()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if asked:
            log.say("stopping", message="asked to stop: the batch in hand is finished")


def _summary(counters: Counters) -> str:
    from neardup.watch.watcher import balance_text

    share = f" ({counters.duplicates / counters.items:.1%})" if counters.items else ""
    aside = f", {counters.quarantined:,} set aside" if counters.quarantined else ""
    return (
        f"stopped: {count_text(counters.files, 'file')}, {count_text(counters.items, 'item')}: "
        f"{count_text(counters.originals, 'original')}, {count_text(counters.duplicates, 'duplicate')}{share}{aside}; "
        f"{balance_text(counters)}"
    )
