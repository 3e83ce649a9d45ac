"""``neardup watch``: files are judged as they appear in a folder; originals pass, duplicates stop."""

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
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from neardup.cli.command import MATCHES, option, switch, with_options
from neardup.cli.options import (
    ClassifierFile,
    ClassifierOptions,
    ForceDomain,
    Precision,
    RecipeOptions,
    WindowOptions,
    chosen_content,
    chosen_recipe,
)
from neardup.cli.screen import count_text, parse_size, say, size_text, visible
from neardup.errors import ForeignDocuments, RecipeError
from neardup.watch.settings import WatchSettings

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier
    from neardup.features.statistics import Statistics
    from neardup.recipe import Recipe
    from neardup.stream.index import Index
    from neardup.watch.log import Counters, Log
    from neardup.watch.watcher import Watcher

_CONTENTS = ("auto", "html", "tags", "plain")


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRecipe(RecipeOptions):
    """The recipe, and what of a file is compared."""

    content: Annotated[
        str | None,
        option(
            "auto|html|tags|plain",
            "auto: the article of web pages, the text of other files. html, tags: the article of every text, or all "
            "but its tags. plain: every text as it is.",
            MATCHES,
        ),
    ] = "auto"

    def chosen_for_items(self, classifier: Classifier | None) -> tuple[Recipe, str]:
        """Return the recipe, and what is taken of files that are web pages: auto, or the page as it is.

        Parameters
        ----------
        classifier : Classifier or None
            In place of a recipe.

        Raises
        ------
        RecipeError
            If a value is refused.
        """
        if self.content not in _CONTENTS:
            raise RecipeError(f"--content {self.content!r} is not known; choose one of {', '.join(_CONTENTS)}")
        given = chosen_content(self.html, None if self.content == "auto" else self.content)
        plain = given == "plain" and (classifier is None or not classifier.candidate_rule.content)
        recipe = chosen_recipe(replace(self, content=None if plain else given), classifier)
        if plain and classifier is None:
            recipe = recipe.changed(content="")
        return recipe, "auto" if given is None and not recipe.content else "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemClassifier:
    """A classifier, its working point, and whether it is known to be away from home."""

    classifier: ClassifierFile = None
    precision: Precision = None
    force_domain: ForceDomain = False

    def loaded(self) -> Classifier | None:
        """Return the classifier at its working point; None where none is asked for.

        Raises
        ------
        NeardupError
            If it cannot be read, or does not reach the precision.
        """
        return ClassifierOptions(
            classifier=self.classifier, precision=self.precision, force_domain=self.force_domain
        ).loaded()


@dataclass(frozen=True, slots=True, kw_only=True)
class DurableWindow(WindowOptions):
    """The window, and the store that a watcher cannot do without."""

    store: Annotated[
        str,
        option(
            "FILE",
            "SQLite file for the window and all verdicts. A new run continues where the last one ended.",
            show_default=False,
        ),
    ] = ""


#: What an option needs besides the metadata of its field.
_MORE: dict[str, dict[str, Any]] = {
    "largest": {"parser": parse_size, "show_default": "64MB"},
    **{name: {"show_default": False} for name in ("originals", "duplicates", "quarantine", "done")},
}


def _option_of(known: Field[Any]) -> Any:
    told = known.metadata
    if known.name == "once":
        return switch("--once", told["help"], told["panel"])
    return option(told["values"], told["help"], told["panel"], **_MORE.get(known.name, {}))


#: The fields of ``WatchSettings`` that are options, each with the option that its metadata gives it.
_Folder: Any = make_dataclass(
    "_Folder",
    [
        (known.name, getitem(Annotated, (get_type_hints(WatchSettings)[known.name], _option_of(known))), known.default)
        for known in fields(WatchSettings)
        if known.metadata
    ],
    frozen=True,
    slots=True,
    kw_only=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderOptions(_Folder):  # type: ignore[misc]
    """Where files go, and when they are taken."""


@with_options
def watch(
    inbox: Annotated[str, typer.Argument(metavar="INBOX", show_default=False, help="The folder that files arrive in.")],
    folders: FolderOptions,
    windows: DurableWindow,
    recipe_options: ItemRecipe,
    decided: ItemClassifier,
    sample: Annotated[
        str | None,
        option(
            "INPUT", "A corpus to take frequencies from, for recipes that need them; use the same one at each start."
        ),
    ] = None,
    downstream: Annotated[
        float, option("SECONDS", "Cost of an item downstream of the watcher, for the balance.")
    ] = 10.0,
) -> None:
    """Judge files as they appear in a folder: originals pass, duplicates stop.

    It reads plain text, web pages, feeds (RSS, Atom, NewsML, NITF), JSON and JSON lines.

    A verdict is saved before its file is moved; a new run continues where the last one ended.

    Nothing is deleted or overwritten.

    A terminal shows a panel; otherwise events go to stderr as JSON lines.

    neardup report writes a page on what was stopped, while the watcher runs or later.
    """
    classifier = decided.loaded()
    recipe, content = recipe_options.chosen_for_items(classifier)
    for name, value, what in (
        ("--originals FOLDER", folders.originals, "where originals go"),
        ("--store FILE", windows.store, "where the window and all verdicts are kept"),
    ):
        if not value:
            raise RecipeError(f"watch needs {name}: {what}")
    settings = WatchSettings(inbox=inbox, content=content, downstream=downstream, **asdict(folders))
    settings.check_store(windows.store)
    statistics = read_statistics(recipe, sample)

    from neardup.stream.index import Index
    from neardup.watch.inbox import inbox_lock

    with ExitStack() as stack:
        stack.enter_context(inbox_lock(inbox, shared=settings.place == "link"))
        # Where one of both is refused, nothing is left of the other.
        with settings.folders_made():
            index = stack.enter_context(
                Index(
                    None if classifier else recipe,
                    classifier=classifier,
                    window=windows.window,
                    window_by=windows.window_by,
                    against=windows.against,
                    path=windows.store,
                    sample=statistics,
                )
            )
        warm_up(index)
        _watch(settings, index, windows)


def read_statistics(recipe: Recipe, sample: str | None) -> Statistics | None:
    """Return what a recipe takes from a collection; a sample that is missing or not asked for is refused."""
    from neardup.documents import open_corpus
    from neardup.features.reading import gather_statistics
    from neardup.stream.index import statistics_for

    if sample is None or not recipe.needs_statistics:
        return statistics_for(recipe, None if sample is None else [sample])
    with open_corpus([sample]) as corpus:
        return gather_statistics(corpus, recipe)


def warm_up(index: Index) -> None:
    """Load the kernels, or have them compiled, so that no item is charged for it."""
    from neardup.kernels.compilation import compilation_notice
    from neardup.stream import index as stream_index
    from neardup.watch.log import Log

    learned = ("pairs.discriminant", "pairs.edit_distances") if index.classifier else ()
    if message := compilation_notice("grams.feature_sets", "window.flow", *learned):
        if sys.stderr.isatty():
            say(message)
        else:
            Log().say("compiling", message=message)
    stream_index.warm_up(index)


def _watch(settings: WatchSettings, index: Index, windows: DurableWindow) -> None:
    from neardup.watch.log import Log
    from neardup.watch.watcher import Watcher

    store = index.store
    if store is None:
        raise RecipeError("a watcher needs a store: name one with --store news.db")
    log = Log()
    watcher = Watcher(settings, index, store, log)
    with ExitStack() as shown:
        if sys.stderr.isatty():
            from neardup.watch.watcher import Panel

            log.listener = shown.enter_context(Panel(watcher, lambda text: visible(text, lines=False), size_text)).hear
        _say_started(log, index, settings, windows)
        with _until_signal(watcher, log), _foreign_as_event(log):
            counters = watcher.run()
        log.say("stopped", **counters.as_dict(), held=len(index))
    if log.listener is not None:
        say(_summary(counters))


def _say_started(log: Log, index: Index, settings: WatchSettings, windows: DurableWindow) -> None:
    names = ("inbox", "originals", "duplicates", "quarantine", "done")
    log.say(
        "started",
        pid=os.getpid(),
        **{name: getattr(settings, name) for name in names},
        store=windows.store,
        recipe=index.recipe.name,
        fingerprint=index.recipe.fingerprint,
        matches=index.recipe.in_words(),
        window=windows.window,
        held=len(index),
    )


@contextmanager
def _until_signal(watcher: Watcher, log: Log) -> Iterator[None]:
    """Let SIGINT and SIGTERM end the watcher after the current batch; the second one ends it at once."""
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
            log.say("stopping", message="asked to stop: the current batch is finished")


@contextmanager
def _foreign_as_event(log: Log) -> Iterator[None]:
    """Let the warning that a classifier is not at home be an event of the log."""
    before = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, ForeignDocuments):
            log.say("foreign", message=str(message))
        else:
            before(message, category, *where, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = before


def _summary(counters: Counters) -> str:
    from neardup.watch.log import balance_text

    share = f" ({counters.duplicates / counters.items:.1%})" if counters.items else ""
    aside = f", {counters.quarantined:,} rejected" if counters.quarantined else ""
    return (
        f"stopped: {count_text(counters.files, 'file')}, {count_text(counters.items, 'item')}: "
        f"{count_text(counters.originals, 'original')}, {count_text(counters.duplicates, 'duplicate')}{share}{aside}; "
        f"{balance_text(counters)}"
    )
