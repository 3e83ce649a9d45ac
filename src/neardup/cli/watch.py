"""``neardup watch``: a folder whose files are judged as they appear."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.numbers import parse_number, parse_size
from neardup.cli.options import with_options
from neardup.cli.screen import count_text, say, size_text, visible
from neardup.cli.watch_engine import StreamOptions, check_folders, only_here, watch_on_spark
from neardup.cli.watch_options import DurableWindow, Folders, ItemDecision, ItemRecipe, Taking
from neardup.cli.watch_report import WatchReportOptions
from neardup.errors import RecipeError

if TYPE_CHECKING:
    from neardup.features.statistics import Statistics
    from neardup.flow.index import Index
    from neardup.flow.store import Store
    from neardup.recipe import Recipe
    from neardup.watch.counters import Counters
    from neardup.watch.log import Log
    from neardup.watch.reporter import Reporter
    from neardup.watch.settings import Settings
    from neardup.watch.task import Wanted
    from neardup.watch.watcher import Watcher


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
        from neardup.window.keys import check_keys

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

    from neardup.flow.index import Index
    from neardup.watch.holding import Held

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
    from neardup.features.gathering import gather

    with open_corpus([sample]) as corpus:
        return gather(corpus, recipe)


def _warm_up(index: Index) -> None:
    """Load the kernels, or have them compiled, so that no item is charged for it."""
    from neardup._kernels.compiling import kernels_are_compiled
    from neardup.flow.document import Document
    from neardup.flow.index import Index
    from neardup.watch.log import Log

    if not kernels_are_compiled("shingles", "flowing", *(("deciding", "pairing") if index.decision else ())):
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
    from neardup.watch.log import Log
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

    from neardup.watch.panel import Panel

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
    from neardup.watch.reporter import Reporter
    from neardup.watch.task import Tasks

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
    from neardup.watch.panel import balance_text

    share = f" ({counters.duplicates / counters.items:.1%})" if counters.items else ""
    aside = f", {counters.quarantined:,} set aside" if counters.quarantined else ""
    return (
        f"stopped: {count_text(counters.files, 'file')}, {count_text(counters.items, 'item')}: "
        f"{count_text(counters.originals, 'original')}, {count_text(counters.duplicates, 'duplicate')}{share}{aside}; "
        f"{balance_text(counters)}"
    )
