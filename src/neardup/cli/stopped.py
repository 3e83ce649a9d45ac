"""``neardup stopped`` and ``neardup release``: what a flow stopped and why, and taking one item back."""

from __future__ import annotations

import getpass
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from neardup.cli.command import option, switch, with_options
from neardup.cli.options import ClassifierFile, ClassifierOptions, Precision
from neardup.cli.screen import count_text, say, show, speaks_unicode, visible
from neardup.errors import InputError, RecipeError, StoreError

if TYPE_CHECKING:
    from neardup.stream.store import Stored

#: Seconds that a watcher may take to answer: it finishes its current batch first.
_WAIT = 60.0

StoreFile = Annotated[
    str, typer.Argument(metavar="STORE", show_default=False, help="The store of neardup watch or serve.")
]


@with_options
def stopped(
    store: StoreFile,
    today: Annotated[bool, switch("--today", "Only items whose own time is today (UTC).")] = False,
    since: Annotated[str | None, option("TIME", "Only items from this time on: 2026-11-22, 2026-11-22T08:00.")] = None,
    as_json: Annotated[bool, switch("--json", "Print JSON lines.")] = False,
) -> None:
    """List what was stopped and why: the item it repeats, the similarity and the time.

    The store may be in use by a watcher. neardup release takes an item back.
    """
    from neardup.stream.store import StoreReader

    begin = _since(today, since)
    count = 0
    with StoreReader(store) as reader:
        for row in reader.stopped(begin):
            count += 1
            if as_json:
                show(json.dumps(_as_dict(row), ensure_ascii=not speaks_unicode()))
            else:
                show(visible(_line(row), lines=False))
    if sys.stderr.isatty() or not count:
        by = "" if begin == float("-inf") else f" since {_time(begin)}; what counts is the time of the item itself"
        say(f"{count_text(count, 'item')} stopped{by}")


def _since(today: bool, since: str | None) -> float:
    """Return the first second that is wanted."""
    if today and since is not None:
        raise RecipeError(f"--since {since} and --today are two beginnings: give one of them")
    if today:
        return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    if since is None:
        return float("-inf")
    from neardup.times import FORMS, microseconds_of

    found = microseconds_of(since)
    if found is None:
        raise InputError(f"--since {since!r} is no time; give {FORMS}")
    return found / 1e6


def _as_dict(row: Stored) -> dict[str, Any]:
    verdict = row.verdict
    found = {"id": row.id, "kind": verdict.kind, "of": verdict.of, "similarity": verdict.similarity}
    found |= {"time": _time(verdict.time), "file": _file(row.origin)}
    if verdict.score is not None:
        found |= {"score": verdict.score, "evidence": verdict.evidence}
    return found


def _line(row: Stored) -> str:
    verdict = row.verdict
    evidence = f"  ({verdict.evidence})" if verdict.score is not None else ""
    pair = f"{row.id} repeats {verdict.of}"
    return f"{_time(verdict.time)}  {verdict.kind:<5}  {verdict.similarity:.4f}  {pair}{evidence}"


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _file(origin: str) -> str:
    from neardup.watch.names import file_of, shown

    try:
        return shown(file_of(origin)[0])
    except (ValueError, TypeError):
        return origin


@with_options
def release(
    store: StoreFile,
    name: Annotated[
        str, typer.Argument(metavar="ID", show_default=False, help="The item's id, as neardup stopped lists it.")
    ],
    by: Annotated[str | None, option("NAME", "Who releases it; you by default.")] = None,
    sample: Annotated[
        str | None,
        option("INPUT", "The corpus that the watcher takes frequencies from."),
    ] = None,
    classifier: ClassifierFile = None,
    precision: Precision = None,
) -> None:
    """Release a stopped item: its file goes to the originals.

    It enters the window, so its copies are stopped from now on. The store records who released it, and when.

    While a watcher runs on the store, the watcher does it; otherwise this command does. While neardup serve runs on
    it, release on the page of the service or by its call.
    """
    from neardup.cli.watch import read_statistics
    from neardup.stream.index import Index, stored_recipe
    from neardup.stream.store import Lock, StoreReader, request_release
    from neardup.watch.release import release as take_back

    person = by or getpass.getuser()
    with StoreReader(store) as reader:
        # What cannot be released is said before anybody is waited for.
        reader.stopped_one(name)
    if Lock.is_held(Path(os.path.realpath(store))):
        _say_released(name, request_release(store, name, person, _WAIT))
        return
    chosen = ClassifierOptions(classifier=classifier, precision=precision).loaded()
    with StoreReader(store) as reader:
        recipe = stored_recipe(reader) if chosen is None else None
        settings: dict[str, Any] = reader.settings
    statistics = None if recipe is None else read_statistics(recipe, sample)
    with Index(recipe, classifier=chosen, path=store, sample=statistics, **settings) as index:
        if index.store is None:
            raise StoreError(f"{store} cannot be used")
        _say_released(name, {"file": take_back(index, index.store, name, person)})


def _say_released(name: str, answer: dict[str, str]) -> None:
    if "error" in answer:
        raise InputError(answer["error"])
    target = answer["file"]
    say(f"{visible(name)} is an original now" + (f"; its file is {visible(target)}" if target else ""))
