"""``neardup watch``: judge files as they appear in a folder; originals pass, duplicates stop."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import Field, asdict, dataclass, fields, make_dataclass, replace
from operator import getitem
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, get_type_hints

from neardup.cli.command import MATCHING, argument, option, switch
from neardup.cli.options import FlowClassifierOptions, FlowRecipeOptions, WindowOptions, resolve_content
from neardup.cli.screen import EXIT_CODE, EXIT_TORN, SIZE, print_message, printable_line
from neardup.errors import ForeignDocuments, RecipeError
from neardup.pages.numbers import format_count, format_size
from neardup.watch.settings import WatchSettings

if TYPE_CHECKING:
    from rich.console import RenderableType

    from neardup.classifier.classifier import Classifier
    from neardup.features.statistics import Statistics
    from neardup.recipe import Recipe
    from neardup.stream.index import Index
    from neardup.watch.log import Counters, Log
    from neardup.watch.watcher import Watcher


@dataclass(frozen=True, kw_only=True)
class ItemRecipeOptions(FlowRecipeOptions):
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
        recipe = replace(self, content=None if is_plain else content).resolve_for_flow(classifier)
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
    "largest": SIZE,
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


def watch(
    inbox: Annotated[str, argument("INBOX", "The folder that files arrive in.")],
    folder_options: FolderOptions,
    window_options: StoredWindowOptions,
    recipe_options: ItemRecipeOptions,
    classifier_options: FlowClassifierOptions,
    versions: Annotated[
        Literal["keep", "replace", "refuse"],
        option(
            "keep|replace|refuse",
            "Judge an item whose id came with another text as a version, or in the place of the first, or reject it.",
        ),
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

    neardup store report writes a page on what was stopped, while the watcher runs or later.
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
    from neardup.runtime import stop_signals
    from neardup.watch.log import Log
    from neardup.watch.watcher import Watcher

    store = index.store
    if store is None:
        raise RecipeError("watch needs a store: name one with --store news.db")
    log = Log()
    watcher = Watcher(settings, index, store, log)
    with ExitStack() as stack:
        if sys.stderr.isatty():
            log.listener = stack.enter_context(_Panel(watcher)).show_event
        _log_start(log, index, settings, window_options)
        lost = "nothing is lost: the next run continues from here"
        with stop_signals(lost, watcher.stop) as received, _warnings_logged(log):
            counters = watcher.run()
        if received:
            log.write("stopping", message="stop signal received; the current batch is finished")
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


def format_balance(counters: Counters) -> str:
    """Return the paper's balance: the processing time that duplicates would have cost, and the time spent checking."""
    saved, spent = format_duration(counters.saved_s), format_duration(counters.check_s)
    return f"saved {saved} of processing, spent {spent} checking"


_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def format_duration(seconds: float) -> str:
    """Return a time for people: 3 h 20 min."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    left = round(seconds)
    parts: list[str] = []
    for unit, size in _UNITS:
        if left >= size and len(parts) < 2:
            parts.append(f"{left // size} {unit}")
            left %= size
        elif parts:
            break
    return " ".join(parts)


def event_sentence(event: str, fields: dict[str, Any]) -> str:
    """Return an event as a person reads it."""
    if event in ("quarantined", "noted"):
        text, count = ("reason", "broken") if event == "quarantined" else ("note", "notes")
        more = f" and {fields[count] - 1:,} more" if fields[count] > 1 else ""
        where = "" if fields["where"] == "the file" else f", {fields['where']}"
        end = "; rejected" if event == "quarantined" else ""
        return f"{fields['file']}{where}: {fields[text]}{more}{end}"
    if event == "repeated_id":
        return f"{fields['file']}: the id {fields['id']} was given before, so this item is {fields['judged_as']}"
    if event == "late":
        items = "item is" if fields["late"] == 1 else "items are"
        return f"{fields['file']}: {fields['late']:,} {items} {fields['message']}"
    if event == "known_items":
        return (
            f"{fields['file']}: {fields['known']:,} of {fields['items']:,} items came before, with the same id and text"
        )
    if event == "resumed":
        return f"an earlier run left {fields['items']:,} verdicts to carry out, on {fields['files']:,} files"
    about = f"{fields['file']}: " if "file" in fields else ""
    return f"{about}{fields.get('message', event)}"


#: Events that the panel shows in its rows.
_PANEL_EVENTS = frozenset({"duplicate", "progress", "started", "stopping", "stopped", "flagged"})


class _Panel:
    """Shows a watcher at work on stderr."""

    def __init__(self, watcher: Watcher) -> None:
        from rich.console import Console
        from rich.live import Live

        self._watcher = watcher
        self._start = time.monotonic()
        self._live = Live(
            get_renderable=self._render,
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
            redirect_stdout=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._live.__exit__(kind, error, at)

    def show_event(self, event: str, fields: dict[str, Any]) -> None:
        """Show an event above the panel, unless its rows show it."""
        from rich.text import Text

        if event not in _PANEL_EVENTS:
            sentence = printable_line(event_sentence(event, fields))
            self._live.console.print(
                Text(f"{time.strftime('%H:%M:%S')}  {sentence}", "yellow" if event == "trouble" else "")
            )

    def _render(self) -> RenderableType:
        from rich.panel import Panel as Frame
        from rich.table import Table
        from rich.text import Text

        counters, statistics = self._watcher.counters, self._watcher.index.statistics
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim", no_wrap=True)
        rows.add_column(overflow="fold")
        share = counters.duplicates / counters.items if counters.items else 0.0
        rate = f"{counters.rate:,.1f} a second, {self._watcher.inbox.waiting_count:,} files waiting"
        rows.add_row("items", f"{counters.items:,} in {format_duration(time.monotonic() - self._start)}; {rate}")
        rows.add_row("originals", f"{counters.originals:,}")
        rows.add_row("duplicates", f"{counters.duplicates:,} ({share:.1%}), {counters.exact:,} of them exact")
        if counters.known:
            rows.add_row("known", f"{counters.known:,} that came before, with the same id and text")
        if counters.late:
            rows.add_row("late", f"{counters.late:,} older than the window, compared by their exact text only")
        if counters.quarantined:
            rows.add_row("rejected", f"{counters.quarantined:,} that cannot be read")
        held = f"{statistics.window_documents:,} documents, {format_size(statistics.bytes)}"
        rows.add_row("window", held)
        rows.add_row("time", format_balance(counters))
        for place, verdict in enumerate(reversed(counters.recent_duplicates)):
            score = "" if verdict.similarity is None else f"{verdict.similarity:.4f} "
            line = Text(f"{verdict.kind:<5} {score}{printable_line(verdict.id)} = {printable_line(verdict.of or '')}")
            line.truncate(200, overflow="ellipsis")
            rows.add_row("" if place else "matches", line)
        return Frame(rows, title=Text(f"neardup watch {printable_line(self._watcher.settings.inbox)}"), expand=False)
