"""``neardup watch``: judge files as they appear in a folder; originals pass, duplicates stop."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import Field, asdict, dataclass, fields, make_dataclass, replace
from operator import getitem
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from neardup.cli.command import MATCHING, argument, option, switch, with_options
from neardup.cli.options import FlowClassifierOptions, RecipeOptions, WindowOptions, resolve_content
from neardup.cli.screen import EXIT_CODE, EXIT_TORN, parse_size, print_message, printable_line
from neardup.errors import ForeignDocuments, RecipeError
from neardup.pages.numbers import format_count, format_size
from neardup.watch.settings import WatchSettings

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.features.statistics import Statistics
    from neardup.recipe import Recipe
    from neardup.stream.index import Index
    from neardup.watch.log import Counters, Log
    from neardup.watch.watcher import Watcher


@dataclass(frozen=True, kw_only=True)
class ItemRecipeOptions(RecipeOptions):
    """The recipe, and which part of a file is compared."""

    content: Annotated[
        Literal["auto", "html", "html-fast", "tags", "plain"] | None,
        option(
            "auto|html|html-fast|tags|plain",
            "auto: the article of web pages, the text of other files. html, html-fast, tags: the article of every "
            "text, by one of two libraries, or all but its tags. plain: every text as it is.",
            MATCHING,
        ),
    ] = "auto"

    def resolve_for_items(self, classifier: Classifier | None) -> tuple[Recipe, str]:
        """Return the recipe, and what is extracted from web pages: the article (auto) or nothing (whole).

        Raises ``RecipeError`` if a value is refused.
        """
        content: Any = resolve_content(self.html, None if self.content == "auto" else self.content)
        is_plain = content == "plain" and (classifier is None or not classifier.candidate_rule.content)
        recipe = replace(self, content=None if is_plain else content).resolve(classifier, flow=True)
        if is_plain and classifier is None:
            recipe = recipe.changed(content="")
        return recipe, "auto" if content is None and not recipe.content else "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredWindowOptions(WindowOptions):
    """The window, and the store that a watcher or a service requires."""

    store: Annotated[
        str,
        option(
            "FILE",
            "SQLite file for the window and all verdicts. A new run continues where the last one ended.",
            show_default=False,
        ),
    ] = ""


StatisticsSample = Annotated[
    str | None,
    option(
        "INPUT", "A corpus to take document frequencies from, for recipes that need them; use the same one in each run."
    ),
]


#: Settings of options that the metadata of their fields does not have.
_OPTION_SETTINGS: dict[str, dict[str, Any]] = {
    "largest": {"parser": parse_size, "show_default": "64MB"},
    **{name: {"show_default": False} for name in ("originals", "duplicates", "quarantine", "done")},
}


def _option_of(field: Field[Any]) -> Any:
    metadata = field.metadata
    if field.name == "once":
        return switch("--once", metadata["help"], metadata["panel"])
    return option(metadata["values"], metadata["help"], metadata["panel"], **_OPTION_SETTINGS.get(field.name, {}))


#: An option for each field of ``WatchSettings`` with metadata.
FolderOptions: Any = make_dataclass(
    "FolderOptions",
    [
        (field.name, getitem(Annotated, (get_type_hints(WatchSettings)[field.name], _option_of(field))), field.default)
        for field in fields(WatchSettings)
        if field.metadata
    ],
    frozen=True,
    kw_only=True,
)


@with_options
def watch(
    inbox: Annotated[str, argument("INBOX", "The folder that files arrive in.")],
    folder_options: FolderOptions,
    window_options: StoredWindowOptions,
    recipe_options: ItemRecipeOptions,
    classifier_options: FlowClassifierOptions,
    versions: Annotated[
        Literal["keep", "replace"],
        option("keep|replace", "Judge an item whose id came with another text as a version, or in its place."),
    ] = "keep",
    sample: StatisticsSample = None,
    downstream: Annotated[
        float, option("SECONDS", "Cost of processing an item downstream of the watcher, for the balance.")
    ] = 10.0,
) -> None:
    """Judge files as they appear in a folder: originals pass, duplicates stop.

    It reads plain text, web pages, feeds (RSS, Atom, NewsML, NITF), JSON and JSON lines, mail and WARC files.

    A verdict is saved before its file is moved; a new run continues where the last one ended.

    Nothing is deleted or overwritten.

    In a terminal a panel shows what happens; otherwise events go to stderr as JSON lines.

    neardup report writes a page on what was stopped, while the watcher runs or later.
    """
    classifier = classifier_options.load()
    recipe, content = recipe_options.resolve_for_items(classifier)
    if not folder_options.originals:
        raise RecipeError("watch needs --originals FOLDER, where originals go")
    if not window_options.store:
        raise RecipeError("watch needs --store FILE, which keeps the window and all verdicts")
    settings = WatchSettings(inbox=inbox, content=content, downstream=downstream, **asdict(folder_options))
    settings.check_store(window_options.store)
    statistics = read_statistics(recipe, sample)

    from neardup.stream.index import Index
    from neardup.watch.inbox import inbox_lock

    with ExitStack() as stack:
        stack.enter_context(inbox_lock(inbox, shared=settings.place == "link"))
        # If the index cannot be opened, no new folder stays behind.
        with settings.created_folders():
            index = stack.enter_context(
                Index(
                    None if classifier else recipe,
                    classifier=classifier,
                    window=window_options.window,
                    window_by=window_options.window_by,
                    against=window_options.against,
                    versions=versions,
                    path=window_options.store,
                    sample=statistics,
                )
            )
        # Events tell of them, and of their files.
        index.reports_late = False
        warm_up(index)
        _watch(settings, index, window_options)


def read_statistics(recipe: Recipe, sample: str | None) -> Statistics | None:
    """Return the statistics that a recipe needs, from a sample; refuse one that is missing or not needed."""
    from neardup.documents import open_corpus
    from neardup.features.reading import gather_statistics
    from neardup.stream.index import statistics_for

    if sample is None or not recipe.needs_statistics:
        return statistics_for(recipe, None if sample is None else [sample])
    with open_corpus([sample]) as corpus:
        return gather_statistics(corpus, recipe)


def warm_up(index: Index) -> None:
    """Load or compile the kernels, so that the time of no item includes it."""
    from neardup.kernels.compilation import announce_compilation
    from neardup.stream import index as stream_index
    from neardup.watch.log import Log

    def write(message: str) -> None:
        if sys.stderr.isatty():
            print_message(message)
        else:
            Log().write("compiling", message=message)

    announce_compilation(write)
    stream_index.warm_up(index)


def _watch(settings: WatchSettings, index: Index, window_options: StoredWindowOptions) -> None:
    from neardup.watch.log import Log
    from neardup.watch.watcher import Watcher

    store = index.store
    if store is None:
        raise RecipeError("watch needs a store: name one with --store news.db")
    log = Log()
    watcher = Watcher(settings, index, store, log)
    with ExitStack() as stack:
        if sys.stderr.isatty():
            from neardup.watch.watcher import Panel

            log.listener = stack.enter_context(Panel(watcher, printable_line, format_size)).show_event
        _log_start(log, index, settings, window_options)
        with _stopped_by_signals(watcher, log), _warnings_logged(log):
            counters = watcher.run()
        left = log.files_left()
        log.write("stopped", **counters.as_dict(), **({"left": left} if left else {}), held=len(index))
    if log.listener is not None:
        print_message(_describe_counters(counters, left))
    if settings.once and left:
        EXIT_CODE.set(EXIT_TORN)


def _log_start(log: Log, index: Index, settings: WatchSettings, window_options: StoredWindowOptions) -> None:
    names = ("inbox", "originals", "duplicates", "quarantine", "done")
    log.write(
        "started",
        pid=os.getpid(),
        **{name: getattr(settings, name) for name in names},
        store=window_options.store,
        recipe=index.recipe.name,
        fingerprint=index.recipe.fingerprint,
        matches=index.recipe.in_words(),
        window=window_options.window,
        held=len(index),
    )


@contextmanager
def _stopped_by_signals(watcher: Watcher, log: Log) -> Iterator[None]:
    """Let SIGINT and SIGTERM stop the watcher after the current batch; the second signal stops it at once."""
    signalled = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal signalled
        if signalled:
            raise KeyboardInterrupt("nothing is lost: the next run continues from here")
        signalled = True
        watcher.stop()

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        if signalled:
            log.write("stopping", message="stop signal received; the current batch is finished")


@contextmanager
def _warnings_logged(log: Log) -> Iterator[None]:
    """Log the warning that documents are unlike the classifier's training."""
    previous = warnings.showwarning

    def log_warning(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, ForeignDocuments):
            log.write("foreign", message=str(message))
        else:
            previous(message, category, *where, **more)

    warnings.showwarning = log_warning
    try:
        yield
    finally:
        warnings.showwarning = previous


def _describe_counters(counters: Counters, left: int) -> str:
    from neardup.watch.log import format_balance

    share = f" ({counters.duplicates / counters.items:.1%})" if counters.items else ""
    rejected = f", {counters.quarantined:,} rejected" if counters.quarantined else ""
    rejected += f", {counters.known:,} known" if counters.known else ""
    rejected += f", {counters.late:,} late" if counters.late else ""
    rejected += f", {format_count(left, 'file')} left in the inbox" if left else ""
    return (
        f"stopped: {format_count(counters.files, 'file')}, {format_count(counters.items, 'item')}: "
        f"{format_count(counters.originals, 'original')}, {format_count(counters.duplicates, 'duplicate')}"
        f"{share}{rejected}; {format_balance(counters)}"
    )
