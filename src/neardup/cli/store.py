"""``neardup store``: report, list and release what a flow stopped, from its store."""

from __future__ import annotations

import getpass
import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import click

from neardup.cli.command import Group, argument, option, output_option, switch
from neardup.cli.options import ClassifierOptions, Force, JsonLines
from neardup.cli.screen import print_message, printable, printable_line, stdout_is_unicode, typed_command
from neardup.errors import InputError, RecipeError, StoreError
from neardup.pages.numbers import format_count

if TYPE_CHECKING:
    from neardup.stream.document import Arrival

#: Seconds to wait for a watcher's answer: it finishes its current batch first.
_RELEASE_TIMEOUT = 60.0

store_group = Group("store", "Report, list and release what a flow stopped, from its store.")
StoreFile = Annotated[
    str, argument("STORE", "The store of neardup watch, neardup serve or nd.Index; it may be in use.")
]


@store_group.add()
def report(
    store: StoreFile,
    output: Annotated[
        str,
        output_option(
            "Write the page to this file; an earlier report is replaced.",
            "PAGE.html",
        ),
    ],
    classifier_options: ClassifierOptions,
    items: Annotated[int, option("NUMBER", "Report on the N latest items.", min=1)] = 100_000,
    families: Annotated[int, option("NUMBER", "Show the N largest families, and half as many at random.", min=0)] = 50,
    rows: Annotated[int, option("NUMBER", "List the N latest duplicates.", min=0)] = 2000,
    force: Force = False,
) -> None:
    """Write a page on what a flow stopped and why, from its store.

    The store is only read, so a watcher can keep writing to it.
    """
    from neardup.pages.page import check_drawing
    from neardup.pages.report import ReportLimits

    check_drawing(output)
    from neardup.watch.report import write_report

    flow = write_report(
        store,
        output,
        items=items,
        limits=ReportLimits(families=families, rows=rows),
        command=typed_command(),
        classifier=classifier_options.load(),
        force=force,
    )
    reported, duplicates = len(flow) - flow.earlier_count, len(flow.duplicates)
    print_message(f"{format_count(reported, 'item')}, {format_count(duplicates, 'duplicate')}; written to {output}")


@store_group.add("list")
def list_stopped(
    store: StoreFile,
    today: Annotated[bool, switch("--today", "Only items whose own time is today (UTC).")] = False,
    since: Annotated[
        str | None, option("TIME", "Only items from this time on, such as 2026-11-22 or 2026-11-22T08:00.")
    ] = None,
    as_json: JsonLines = False,
) -> None:
    """List what was stopped and why: the item it repeats, the similarity and the time.

    A watcher may be using the store. neardup store release takes an item back.
    """
    from neardup.stream.store import StoreReader

    begin = _first_second(today, since)
    count = 0
    with StoreReader(store) as reader:
        for row in reader.stopped_documents(begin):
            count += 1
            if as_json:
                click.echo(json.dumps(_as_dict(row), ensure_ascii=not stdout_is_unicode()))
            else:
                click.echo(printable_line(_format_row(row)))
    if sys.stderr.isatty() or not count:
        limit = "" if begin == float("-inf") else f" since {_format_time(begin)}, by the time of the item itself"
        print_message(f"{format_count(count, 'item')} stopped{limit}")


def _first_second(today: bool, since: str | None) -> float:
    if today and since is not None:
        raise RecipeError(f"--since {since} and --today both set the beginning: give one of them")
    if today:
        return datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    if since is None:
        return float("-inf")
    from neardup.times import TIME_FORMS, microseconds_of

    microseconds = microseconds_of(since)
    if microseconds is None:
        raise InputError(f"--since {since!r} is not a time; give {TIME_FORMS}")
    return microseconds / 1e6


def _as_dict(row: Arrival) -> dict[str, Any]:
    verdict = row.verdict
    values = {"id": row.id, "kind": verdict.kind, "of": verdict.of, "similarity": verdict.similarity}
    values |= {"time": _format_time(verdict.time), "file": _file_name(row.origin)}
    if verdict.score is not None:
        values |= {"score": verdict.score, "evidence": verdict.evidence}
    return values


def _format_row(row: Arrival) -> str:
    verdict = row.verdict
    evidence = f"  ({verdict.evidence})" if verdict.score is not None else ""
    pair = f"{row.id} repeats {verdict.of}"
    return f"{_format_time(verdict.time)}  {verdict.kind:<5}  {verdict.similarity:.4f}  {pair}{evidence}"


def _format_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _file_name(origin: str) -> str:
    from neardup.watch.inbox import file_of, printable_path

    try:
        return printable_path(file_of(origin)[0])
    except (ValueError, TypeError):
        return origin


@store_group.add()
def release(
    store: StoreFile,
    name: Annotated[str, argument("ID", "The item's id, as neardup store list shows it.")],
    classifier_options: ClassifierOptions,
    by: Annotated[str | None, option("NAME", "Who releases it; your user name by default.")] = None,
    sample: Annotated[
        str | None, option("INPUT", "The corpus that the watcher takes document frequencies from.")
    ] = None,
) -> None:
    """Release a stopped item: its file goes to the originals.

    It enters the window, so its copies are stopped from now on. The store records who released it, and when.

    If a watcher runs on the store, the watcher does it; otherwise this command does. If neardup serve runs on it,
    release the item on the page of the service, or by its call.
    """
    from neardup.cli.watch import read_statistics
    from neardup.stream.index import Index, read_stored_recipe
    from neardup.stream.lock import Lock
    from neardup.stream.store import StoreReader, request_release
    from neardup.watch.placed import release as release_item

    person = by or getpass.getuser()
    with StoreReader(store) as reader:
        # Fails for an item that cannot be released, before the watcher is asked.
        reader.stopped_document(name)
    if Lock.is_held(Path(os.path.realpath(store))):
        _print_release(name, request_release(store, name, person, _RELEASE_TIMEOUT))
        return
    classifier = classifier_options.load()
    with StoreReader(store) as reader:
        recipe = read_stored_recipe(reader) if classifier is None else None
        settings: dict[str, Any] = reader.settings
    statistics = None if recipe is None else read_statistics(recipe, sample)
    with Index(recipe, classifier=classifier, path=store, sample=statistics, **settings) as index:
        if index.store is None:
            raise StoreError(f"{store} cannot be used")
        _print_release(name, {"file": release_item(index, index.store, name, person)})


def _print_release(name: str, answer: dict[str, str]) -> None:
    if "error" in answer:
        raise InputError(answer["error"])
    file = answer["file"]
    print_message(f"{printable(name)} is now an original" + (f"; its file is {printable(file)}" if file else ""))
