"""Hours of the flow: what each is told to hold, how documents are handed over, and how time passes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.stream.document import Document, Verdict
from neardup.stream.index import Index, IndexStatistics
from neardup.stream.replay import Hour, Item, Replay

HOUR = 3_600_000_000
FLAGS = ["", "late", "ahead", "undecidable"]


class Judge:
    """In the place of an index: the text says what the verdict is, and the clock is the latest time so far."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.clock = -(10.0**12)

    def add(self, document: Document) -> Verdict:
        self.calls.append([document.id])
        return self._verdict(document)

    def add_many(self, documents: Iterable[Document]) -> list[Verdict]:
        listed = list(documents)
        self.calls.append([document.id for document in listed])
        return [self._verdict(document) for document in listed]

    def _verdict(self, document: Document) -> Verdict:
        assert document.microseconds is not None
        moment = document.microseconds / 1e6
        self.clock = max(self.clock, moment)
        kind, flag = document.text.split(",")
        return Verdict(document.id, kind, None if kind == "original" else "0", None, moment, flag, None)

    @property
    def statistics(self) -> IndexStatistics:
        judged = sum(map(len, self.calls))
        known: dict[str, Any] = dict.fromkeys(IndexStatistics._fields, 0)
        known |= {"window_documents": judged, "bytes": 10 * judged, "clock": self.clock if self.calls else None}
        return IndexStatistics(**known)


def items_of(moments: Sequence[int], verdicts: Sequence[tuple[str, str]]) -> list[Item]:
    return [
        Item(at, str(at), f"{kind},{flag}", moment, 7)
        for at, (moment, (kind, flag)) in enumerate(zip(moments, verdicts, strict=False))
    ]


def replayed(items: Sequence[Item], **options: Any) -> tuple[list[Hour], Judge, Replay, list[str]]:
    judge, seen = Judge(), list[str]()
    run = Replay(cast(Index, judge), on_verdicts=lambda some, _: seen.extend(item.id for item in some), **options)
    return list(run.hours(items)), judge, run, seen


verdicts = st.tuples(st.sampled_from(["original", "near", "exact"]), st.sampled_from(FLAGS))
flows = st.lists(st.tuples(st.integers(-5 * HOUR, 60 * HOUR) | st.integers(0, 2 * HOUR), verdicts), max_size=40)


@given(flows, st.sampled_from([1, 2, 7]))
def test_hours_in_order_of_time(flow: list[tuple[int, tuple[str, str]]], batch: int) -> None:
    flow = sorted(flow, key=lambda pair: pair[0])
    items = items_of([moment for moment, _ in flow], [verdict for _, verdict in flow])
    hours, judge, run, seen = replayed(items, batch=batch)
    expected, held = [], 0
    for hour, group in groupby(items, key=lambda item: item.time // HOUR):
        kinds = Counter(item.text.split(",")[0] for item in group)
        held += kinds.total()
        originals = kinds["original"]
        expected.append((hour, kinds.total(), originals, kinds.total() - originals, held, 10 * held))
    assert [(h.hour, h.items, h.originals, h.duplicates, h.held, h.bytes) for h in hours] == expected
    assert all(0 <= h.median <= h.p99 for h in hours)
    assert seen == [item.id for item in items] == list(chain.from_iterable(judge.calls))
    for call in judge.calls:
        assert len(call) <= batch
        assert len({items[int(name)].time // HOUR for name in call}) == 1
    check_totals(run, items, hours)


def check_totals(run: Replay, items: Sequence[Item], hours: Sequence[Hour]) -> None:
    kinds = Counter(item.text.split(",")[0] for item in items)
    flags = Counter(item.text.split(",")[1] for item in items)
    del flags[""]
    totals = run.totals
    assert (totals.items, totals.exact, totals.near) == (len(items), kinds["exact"], kinds["near"])
    assert totals.flags == flags
    assert totals.text_bytes == 7 * len(items)
    assert (totals.first, totals.last) == (
        min((item.time for item in items), default=None),
        max((item.time for item in items), default=None),
    )
    assert totals.most_held == max((hour.held for hour in hours), default=0)


@given(flows, st.sampled_from([1, 3]))
def test_hours_of_the_clock(flow: list[tuple[int, tuple[str, str]]], batch: int) -> None:
    """As listed, an hour ends when the flow's clock has passed it, whatever the items' own times are."""
    items = items_of([moment for moment, _ in flow], [verdict for _, verdict in flow])
    hours, judge, run, _ = replayed(items, batch=batch, by_clock=True)
    expected: dict[int, int] = {}
    latest = -(10**18)
    for call in judge.calls:
        latest = max([latest, *(items[int(name)].time for name in call)])
        expected[latest // HOUR] = expected.get(latest // HOUR, 0) + len(call)
    assert [(hour.hour, hour.items) for hour in hours] == list(expected.items())
    held = 0
    for hour in hours:
        held += hour.items
        assert (hour.held, hour.bytes) == (held, 10 * held)
    check_totals(run, items, hours)


class Wall:
    """A clock that moves only when somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.slept = 1000.0, list[float]()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_time_passes_as_fast_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = Wall(monkeypatch)
    original = ("original", "")
    items = items_of([0, 0, HOUR // 2, HOUR // 4, HOUR, 4 * HOUR], [original] * 6)
    hours, judge, _, _ = replayed(items, batch=100, speed=60.0)
    assert wall.now == 1000 + 240
    assert wall.slept == [30, 30, 180]
    # What is due already is judged at once; nothing is held back for what is not.
    assert judge.calls == [["0", "1"], ["2"], ["3"], ["4"], ["5"]]
    assert [(hour.items, hour.as_dict()["hour"]) for hour in hours] == [
        (4, "1970-01-01T00:00Z"), (1, "1970-01-01T01:00Z"), (1, "1970-01-01T04:00Z"),
    ]  # fmt: skip
