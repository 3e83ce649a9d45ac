"""Documents for a store, and a twin of it in plain dicts."""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

from neardup.search.window import EventTime
from neardup.stream.document import FLAGS, Arrival, Verdict
from neardup.stream.store import Store
from neardup.stream.store_file import StoreIdentity

IDENTITY = StoreIdentity("f1", {"window": "24h", "window_by": "time", "against": "originals"})


def open_store(path: Path, **changes: Any) -> Store:
    return Store(path, IDENTITY._replace(**changes))


def stored_document(serial: int, name: str | None = None, *, text: str | None = "a text", **changes: Any) -> Arrival:
    verdict = changes.pop("verdict", Verdict(name or f"doc{serial}", "original", None, None, serial / 4, "", None))
    return arrival_of(serial, verdict, text, serial * 250_000, serial * 250_000, **changes)


def arrival_of(serial: int, verdict: Verdict, text: str | None, time: int, expiry: int, **fields: Any) -> Arrival:
    """Return the arrival of a judged document, as a store returns it."""
    event_time = EventTime(time, expiry, 0, round(verdict.time * 1e6))
    return replace(
        Arrival(verdict.id, text, serial=serial, event_time=event_time, is_held=text is not None, verdict=verdict),
        **fields,
    )


def batch(number: int, size: int = 7) -> list[Arrival]:
    """Return one of many batches; its texts have many lengths, some over several pages."""
    first = number * size
    return [
        stored_document(serial, text=f"{serial} é " * (serial * serial % 997 + 1), origin=f"in/{number}")
        for serial in range(first, first + size)
    ]


class Twin:
    """The twin of a store, in dicts."""

    def __init__(self) -> None:
        self.rows: dict[int, Arrival] = {}
        self.window_serials: set[int] = set()
        self.unplaced: set[int] = set()
        self.state: dict[str, str] = {}

    def record(self, rows: list[Arrival], state: dict[str, str]) -> None:
        self.rows |= {row.serial: row for row in rows}
        self.window_serials |= {row.serial for row in rows if row.is_held}
        self.unplaced |= {row.serial for row in rows if row.origin}
        self.state |= state

    def forget(self, below: int) -> None:
        self.window_serials = {serial for serial in self.window_serials if serial >= below}

    def expected_row(self, serial: int) -> Arrival:
        row = self.rows[serial]
        if serial in self.window_serials:
            return row
        row = copy(row)
        row.is_held, row.text, row.title = False, None, ""
        return row

    def check(self, store: Store) -> None:
        for size in (2, 4096):
            batches = list(store.window_documents(size))
            assert all(len(found) == size for found in batches[:-1])
            assert [row for found in batches for row in found] == [
                self.expected_row(serial) for serial in sorted(self.window_serials)
            ]
        assert list(store.unplaced_documents()) == [self.expected_row(serial) for serial in sorted(self.unplaced)]
        assert store.next_serial == max(self.rows, default=-1) + 1
        verdicts = [row.verdict for row in self.rows.values()]
        duplicates = sum(verdict.is_duplicate for verdict in verdicts)
        counts = {"arrived": len(verdicts), "originals": len(verdicts) - duplicates, "duplicates": duplicates}
        assert store.counts == counts | {flag: sum(v.flag == flag for v in verdicts) for flag in FLAGS}
        names = [row.id for row in self.rows.values()]
        assert store.judged_ids([*names, "unheard of", "\ud800"]) == set(names)
        for serial, row in self.rows.items():
            assert (store.verdict_of(row.id), store.find(row.id)) == (row.verdict, self.expected_row(serial))
        for origin in {row.origin for row in self.rows.values()} - {""}:
            assert store.judged_count(origin) == sum(row.origin == origin for row in self.rows.values())
        assert {key: store.state(key) for key in self.state} == self.state
