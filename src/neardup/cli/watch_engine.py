"""``neardup watch --engine spark``: the same flow on Spark; verdicts are written, and files stay where they are."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Annotated

import typer

from neardup.cli.engine_options import EngineOptions
from neardup.cli.numbers import parse_number, parse_size, whole_number
from neardup.cli.screen import count_text, say
from neardup.cli.watch_options import DurableWindow, Folders, Taking
from neardup.cli.watch_report import WatchReportOptions
from neardup.errors import InputError, OutputError, RecipeError

if TYPE_CHECKING:
    from neardup.decision.decision import Decision
    from neardup.features.statistics import Statistics
    from neardup.recipe import Recipe
    from neardup.spark.running import Engine
    from neardup.spark.streaming.watching import Totals
    from neardup.spark.streaming.work import Work

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
            for name, value in (("--verdicts", self.verdicts), ("--stages", self.stages)):
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
    from neardup.spark.streaming.flow import check_packages, work_for
    from neardup.spark.streaming.watching import Watching, watch
    from neardup.watch.log import Log

    check_packages()
    watching = Watching(
        inbox=inbox,
        verdicts=str(options.verdicts),
        stages=str(options.stages),
        content=content,
        largest=parse_size(taking.largest, "--largest") or 0,
        files=_FILES if options.batch_files is None else whole_number(options.batch_files, "--batch-files"),
        poll=parse_number(taking.poll, "--poll"),
        once=taking.once,
    )
    _check_places(watching.inbox, {"--verdicts": watching.verdicts, "--stages": watching.stages})
    shards = None if options.shards is None else whole_number(options.shards, "--shards")

    def make(count: int) -> Work:
        what = None if decision else recipe
        return work_for(what, decision, windows.window, windows.window_by, windows.against, sample, count, {})

    make(shards or 1)
    totals = watch(watching, engine, make, shards, Log().say)
    if sys.stderr.isatty():
        say(_summary(totals))


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


def _summary(totals: Totals) -> str:
    share = f" ({totals.duplicates / totals.items:.1%})" if totals.items else ""
    aside = f", {totals.set_aside:,} set aside" if totals.set_aside else ""
    return (
        f"stopped: {count_text(totals.files, 'file')}, {count_text(totals.items, 'item')}: "
        f"{count_text(totals.originals, 'original')}, {count_text(totals.duplicates, 'duplicate')}{share}{aside}"
    )
