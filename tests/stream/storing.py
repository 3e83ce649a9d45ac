"""Documents for a store, and a twin of it in plain dicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neardup.stream.document import Verdict
from neardup.stream.store import Store, Stored

SETTINGS = {"window": "24h", "window_by": "time", "against": "originals"}
FLAGS = ("late", "ahead", "future", "undecidable")


def opened(path: Path, **changes: Any) -> Store:
    return Store(path, **{"fingerprint": "f1", "settings": SETTINGS, **changes})


def stored(serial: int, name: str | None = None, *, text: str | None = "a text", **changes: Any) -> Stored:
    name = f"doc{serial}" if name is None else name
    verdict = Verdict(name, "original", None, None, serial / 4, "", None)
    row = Stored(serial, name, "", serial * 250_000, serial * 250_000, text is not None, text, verdict)
    return row._replace(**changes)


def batch(number: int, size: int = 7) -> list[Stored]:
    """Return one of many batches; its texts are of many lengths, some over several pages."""
    first = number * size
    return [
        stored(serial, text=f"{serial} é " * (serial * serial % 997 + 1), origin=f"in/{number}")
        for serial in range(first, first + size)
    ]


class Twin:
    """What a store says, from dicts."""

    def __init__(self) -> None:
        self.rows: dict[int, Stored] = {}
        self.texts: dict[int, str | None] = {}
        self.titles: dict[int, str] = {}
        self.unplaced: set[int] = set()
        self.state: dict[str, str] = {}

    def record(self, rows: list[Stored], state: dict[str, str]) -> None:
        for row in rows:
            self.rows[row.serial] = row
            if row.held:
                self.texts[row.serial] = row.text
                self.titles[row.serial] = row.title
            if row.origin:
                self.unplaced.add(row.serial)
        self.state |= state

    def forget(self, below: int) -> None:
        self.texts = {serial: text for serial, text in self.texts.items() if serial >= below}
        self.titles = {serial: title for serial, title in self.titles.items() if serial >= below}

    def now(self, serial: int) -> Stored:
        held, text, title = serial in self.texts, self.texts.get(serial), self.titles.get(serial, "")
        return self.rows[serial]._replace(held=held, text=text, title=title)

    def check(self, store: Store) -> None:
        for size in (2, 4096):
            batches = list(store.held(size))
            assert all(len(found) == size for found in batches[:-1])
            assert [row for found in batches for row in found] == [self.now(serial) for serial in sorted(self.texts)]
        assert list(store.unplaced()) == [self.now(serial) for serial in sorted(self.unplaced)]
        assert store.next_serial == max(self.rows, default=-1) + 1
        verdicts = [row.verdict for row in self.rows.values()]
        duplicates = sum(verdict.is_duplicate for verdict in verdicts)
        counts = {"arrived": len(verdicts), "originals": len(verdicts) - duplicates, "duplicates": duplicates}
        assert store.counts == counts | {flag: sum(v.flag == flag for v in verdicts) for flag in FLAGS}
        names = [row.id for row in self.rows.values()]
        assert store.known([*names, "unheard of", "\ud800"]) == set(names)
        for serial, row in self.rows.items():
            assert store.verdict_of(row.id) == row.verdict
            assert store.text_of(row.id) == self.texts.get(serial)
        for origin in {row.origin for row in self.rows.values()} - {""}:
            assert store.judged(origin) == sum(row.origin == origin for row in self.rows.values())
        for key, value in self.state.items():
            assert store.state(key) == value
