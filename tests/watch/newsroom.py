"""A newsroom for tests: an inbox, deliveries, a watcher in this process, and the resulting files and verdicts."""

from __future__ import annotations

import json
import os
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from neardup.classifier.classifier import Classifier
from neardup.stream.index import Index
from neardup.watch.log import Counters, Log
from neardup.watch.settings import WatchSettings
from neardup.watch.watcher import Watcher

_WORDS = [f"{a}{b}{c}" for a in "bdfglmnprst" for b in "aeiou" for c in ("", "n", "r", "st")]
_DAY = 1_700_000_000


def text_of(number: int, words: int = 60) -> str:
    """Return a different text for each number."""
    return " ".join(random.Random(number).choices(_WORDS, k=words))


def edited(text: str) -> str:
    """Return nearly the same text."""
    words = text.split()
    return " ".join([*words[:5], "edited", *words[6:]])


class Newsroom:
    """The folders of a test, and the logged events."""

    def __init__(self, root: Path, out: Path | None = None, classifier: Classifier | None = None) -> None:
        self.root = root
        self.classifier = classifier
        self.inbox = root / "inbox"
        self.out = out or root / "out"
        self.duplicates = root / "duplicates"
        self.quarantine = root / "quarantine"
        self.done = root / "done"
        self.store = root / "news.db"
        self.inbox.mkdir(parents=True, exist_ok=True)
        self.events_seen: list[tuple[str, dict[str, Any]]] = []
        self._delivered = 0

    def deliver(self, name: str, content: str | bytes, at: float | None = None) -> Path:
        """Put a complete file into the inbox; each is a second younger than the one before."""
        self._delivered += 1
        path = self.inbox / name
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_name(f".{path.name[:200]}")
        unfinished.write_bytes(content.encode() if isinstance(content, str) else content)
        moment = _DAY + self._delivered if at is None else at
        os.utime(unfinished, (moment, moment))
        unfinished.rename(path)
        return path

    def settings(self, **changes: Any) -> WatchSettings:
        """The settings of a watcher that does not wait for anything."""
        folders = {name: str(getattr(self, name)) for name in ("inbox", "duplicates", "quarantine", "done")}
        chosen: dict[str, Any] = {
            "originals": str(self.out),
            "once": True,
            "settle": 0.0,
            "patience": 0.0,
            "poll": 0.05,
        }
        return WatchSettings(**(folders | chosen | changes))

    @contextmanager
    def watcher(
        self, window: str = "24h", versions: str = "keep", now: Callable[[], float] = time.time, **changes: Any
    ) -> Iterator[Watcher]:
        """A watcher with its index open."""
        recipe = None if self.classifier else "ddd"
        options: dict[str, Any] = {"window": window, "versions": versions, "now": now}
        with Index(recipe, classifier=self.classifier, path=self.store, **options) as index:
            assert index.store is not None
            index.reports_late = False
            log = Log(lambda event, fields: self.events_seen.append((event, fields)))
            yield Watcher(self.settings(**changes), index, index.store, log)

    def run_once(self, **changes: Any) -> Counters:
        """Judge all files of the inbox."""
        with self.watcher(**changes) as watcher:
            return watcher.run()

    @contextmanager
    def watching(self, **changes: Any) -> Iterator[Watcher]:
        """A watcher that runs while the block does."""
        with self.watcher(once=False, **changes) as watcher:
            failed: list[BaseException] = []

            def run() -> None:
                try:
                    watcher.run()
                except BaseException as error:  # shown by the thread that waits
                    failed.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            try:
                yield watcher
            finally:
                watcher.stop()
                thread.join(timeout=300)
            assert not thread.is_alive()
            assert not failed, failed

    def wait_until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        """Wait until a condition holds; the limit is for conditions that never hold, not for slow ones."""
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.events_seen
            time.sleep(0.01)

    def wait_for_scan(self, watcher: Watcher) -> None:
        """Wait until a watcher has scanned the inbox and read the settled files."""
        for _ in range(3):
            before = watcher._next_scan
            self.wait_until(lambda before=before: watcher._next_scan > before)  # type: ignore[misc]

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the fields of all events of one kind."""
        return [fields for event, fields in self.events_seen if event == name]

    def verdicts(self) -> dict[str, tuple[str, str | None]]:
        """Return kind and keeper by id, from the store."""
        return {row[0]: (row[1], row[2]) for row in rows_of(self.store)}


def rows_of(store: Path) -> list[tuple[Any, ...]]:
    """Return the documents of a closed store."""
    connection = sqlite3.connect(store)
    try:
        return connection.execute(
            "SELECT id, kind, of, similarity, origin, placed FROM documents ORDER BY serial"
        ).fetchall()
    finally:
        connection.close()


def files_in(folder: Path) -> dict[str, bytes]:
    """Return the content of every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def names_in(folder: Path) -> list[str]:
    """Return the files below a folder, without sidecars and unfinished files."""
    found = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return [name for name in found if ".neardup.json" not in name and not name.startswith(".neardup/")]


def without_digits(names: Iterable[str]) -> list[str]:
    """Return names without the digits of a stamp that end the second name of a file."""
    return [re.sub(r"(~\d{8}T\d{6})-[0-9a-f]{6}", r"\1", name) for name in names]


def sidecar(path: Path) -> dict[str, Any]:
    """Return the sidecar of a file."""
    found: dict[str, Any] = json.loads(path.with_name(f"{path.name}.neardup.json").read_text("utf-8"))
    return found


def feed_of(items: list[tuple[str, str]]) -> str:
    """Return an RSS feed of guids and texts."""
    inside = "".join(f"<item><guid>{guid}</guid><description>{text}</description></item>" for guid, text in items)
    return f'<?xml version="1.0"?><rss version="2.0"><channel><title>News</title>{inside}</channel></rss>'


def lines_in(path: Path) -> list[dict[str, Any]]:
    """Return the records in a file of JSON lines."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def lines_of(items: list[dict[str, Any]]) -> str:
    """JSON lines."""
    return "".join(json.dumps(item) + "\n" for item in items)
