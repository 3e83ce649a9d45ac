"""Replay of a dated corpus: the order of its documents, hours and totals, pace, and the page."""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from browser import draw, opened
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.documents import Corpus, corpus_of, open_corpus
from neardup.errors import InputError, OutputError
from neardup.pages.report import Report
from neardup.recipe import load_recipe
from neardup.stream.document import Document, Verdict
from neardup.stream.index import Index, IndexStatistics
from neardup.stream.replay import (
    NO_TIME,
    Hour,
    Item,
    Replay,
    ReplaySettings,
    ReplayTotals,
    Timeline,
    read_items,
    read_timeline,
    reject_undated,
)
from neardup.stream.replay_report import page_content, replay_page


def report_nothing(stage: str, done: int, total: int | None) -> None:
    """Report nothing."""


def corpus_of_rows(rows: list[dict[str, Any]]) -> Corpus:
    return corpus_of(pa.Table.from_pylist(rows), order_column="time")


def timeline_of(corpus: Corpus, *, as_listed: bool = False) -> Timeline:
    return read_timeline(corpus, as_listed=as_listed, report=report_nothing)


def expected_items(rows: list[dict[str, Any]], *, as_listed: bool) -> list[Item]:
    """Return the expected items: filter, then sort."""
    found = []
    for at, row in enumerate(rows):
        if row["time"] is not None:
            size = len(row["text"].encode())
            found.append(Item(at, row["id"], row["text"], row["time"] * 1_000_000, size))
    return found if as_listed else sorted(found, key=lambda item: item.time)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
times = st.none() | st.integers(0, 5) | st.integers(-(10**9), 0) | st.integers(10**8, 10**9)
documents = st.lists(
    st.fixed_dictionaries({"id": st.text("abc", max_size=3), "text": texts, "time": times}),
    unique_by=lambda row: row["id"],
)


@given(documents, st.booleans(), st.sampled_from([0, 3, 10**9]))
def test_documents_arrive_in_order_of_time(rows: list[dict[str, Any]], as_listed: bool, max_memory: int) -> None:
    if rows and all(row["time"] is None for row in rows):
        return
    table = pa.table(
        {name: pa.array([row[name] for row in rows], kind) for name, kind in (("id", "str"), ("text", "str"))}
        | {"time": pa.array([row["time"] for row in rows], pa.int64())}
    )
    corpus = corpus_of(table, order_column="time")
    timeline = timeline_of(corpus, as_listed=as_listed)
    expected = expected_items(rows, as_listed=as_listed)
    assert list(read_items(corpus, timeline, max_memory=max_memory)) == expected
    assert timeline.text_bytes == sum(item.size for item in expected)
    reject_undated(corpus, timeline)
    assert corpus.rejected.counts[NO_TIME] == sum(row["time"] is None for row in rows)


def test_several_files_and_batches_arrive_in_order_of_time(tmp_path: Path) -> None:
    """More than one batch, with and without the temporary file, from JSON lines and Parquet together."""
    rng = random.Random(4)
    rows = [
        {"id": str(at), "text": f"{at} é " * rng.randint(0, 1500), "time": rng.randint(10**8, 10**9)}
        for at in range(3000)
    ]
    half = len(rows) // 2
    lines, columns = tmp_path / "a.jsonl", tmp_path / "b.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows[:half]))
    pq.write_table(pa.Table.from_pylist(rows[half:]), columns, row_group_size=700)
    with open_corpus([lines, columns], order_column="time") as corpus:
        timeline = timeline_of(corpus)
        expected = expected_items(rows, as_listed=False)
        assert list(read_items(corpus, timeline, max_memory=1 << 20)) == expected
        assert list(read_items(corpus, timeline)) == expected


@pytest.mark.parametrize("max_memory", [0, 10**9])
@pytest.mark.parametrize("change", ["longer", "shorter", "more", "fewer"])
def test_an_input_that_changes_between_passes_is_refused(tmp_path: Path, change: str, max_memory: int) -> None:
    path = tmp_path / "c.jsonl"
    rows = [{"id": str(at), "text": f"text {at}", "time": 10 - at} for at in range(3)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with open_corpus([path], order_column="time") as corpus:
        timeline = timeline_of(corpus)
        changed = {"more": [*rows, rows[0]], "fewer": rows[:2]}.get(change, rows)
        text = {"longer": "text one", "shorter": "t"}.get(change, "text 1")
        changed[1] = changed[1] | {"text": text}
        path.write_text("".join(json.dumps(row) + "\n" for row in changed))
        with pytest.raises(InputError, match="changed"):
            list(read_items(corpus, timeline, max_memory=max_memory))


def test_a_full_temporary_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *rest: object) -> None:
            """Nothing to close."""

        close, closed = __exit__, True

        def write(self, data: object) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("neardup.stream.replay.tempfile.TemporaryFile", lambda **_: Full())
    corpus = corpus_of_rows([{"text": "b", "time": 2}, {"text": "a", "time": 1}])
    with pytest.raises(OutputError) as caught:
        list(read_items(corpus, timeline_of(corpus), max_memory=0))
    assert says(caught.value, "No space left", "sort the input", "by time")


HOUR = 3_600_000_000
FLAGS = ["", "late", "ahead", "undecidable"]


class Judge:
    """A stand-in for an index: the text contains the verdict, and the clock is the latest time so far."""

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
        fields: dict[str, Any] = dict.fromkeys(IndexStatistics._fields, 0)
        fields |= {
            "window_documents": judged,
            "bytes": 10 * judged,
            "clock": self.clock if self.calls else None,
        }
        return IndexStatistics(**fields)


def items_of(moments: Sequence[int], verdicts: Sequence[tuple[str, str]]) -> list[Item]:
    return [
        Item(at, str(at), f"{kind},{flag}", moment, 7)
        for at, (moment, (kind, flag)) in enumerate(zip(moments, verdicts, strict=False))
    ]


def replayed(items: Sequence[Item], **options: Any) -> tuple[list[Hour], Judge, Replay, list[str]]:
    judge, seen_ids = Judge(), list[str]()
    run = Replay(cast(Index, judge), on_verdicts=lambda group, _: seen_ids.extend(item.id for item in group), **options)
    return list(run.hours(items)), judge, run, seen_ids


verdicts = st.tuples(st.sampled_from(["original", "near", "exact"]), st.sampled_from(FLAGS))
flows = st.lists(st.tuples(st.integers(-5 * HOUR, 60 * HOUR) | st.integers(0, 2 * HOUR), verdicts), max_size=40)


@given(flows, st.sampled_from([1, 2, 7]))
def test_hours_count_their_own_documents(flow: list[tuple[int, tuple[str, str]]], batch: int) -> None:
    flow = sorted(flow, key=lambda pair: pair[0])
    items = items_of([moment for moment, _ in flow], [verdict for _, verdict in flow])
    hours, judge, run, seen_ids = replayed(items, batch=batch)
    expected, held = [], 0
    for hour, group in groupby(items, key=lambda item: item.time // HOUR):
        kinds = Counter(item.text.split(",")[0] for item in group)
        held += kinds.total()
        originals = kinds["original"]
        expected.append((hour, kinds.total(), originals, kinds.total() - originals, held, 10 * held))
    assert [(h.hour, h.items, h.originals, h.duplicates, h.held, h.bytes) for h in hours] == expected
    assert all(0 <= h.median <= h.p99 for h in hours)
    assert seen_ids == [item.id for item in items] == list(chain.from_iterable(judge.calls))
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
    assert (totals.earliest, totals.latest) == (
        min((item.time for item in items), default=None),
        max((item.time for item in items), default=None),
    )
    assert totals.max_window_documents == max((hour.held for hour in hours), default=0)


@given(flows, st.sampled_from([1, 3]))
def test_hours_of_the_clock_count_what_arrived_until_they_ended(
    flow: list[tuple[int, tuple[str, str]]], batch: int
) -> None:
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
    """A clock that moves only during sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.slept = 1000.0, list[float]()
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_replay_keeps_the_requested_speed(monkeypatch: pytest.MonkeyPatch) -> None:
    wall = Wall(monkeypatch)
    original = ("original", "")
    items = items_of([0, 0, HOUR // 2, HOUR // 4, HOUR, 4 * HOUR], [original] * 6)
    hours, judge, _, _ = replayed(items, batch=100, speed=60.0)
    assert wall.now == 1000 + 240
    assert wall.slept == [30, 30, 180]
    # Documents that are due are judged together, without waiting for later ones.
    assert judge.calls == [["0", "1"], ["2"], ["3"], ["4"], ["5"]]
    assert [(hour.items, hour.as_dict()["hour"]) for hour in hours] == [
        (4, "1970-01-01T00:00Z"), (1, "1970-01-01T01:00Z"), (1, "1970-01-01T04:00Z"),
    ]  # fmt: skip


HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def content(hours: int = 3, *, window: str = "2h", **changes: Any) -> dict[str, Any]:
    settings = ReplaySettings(load_recipe("ddd").changed(name=HOSTILE), window).as_dict() | {
        "inputs": [HOSTILE],
        "batch": 1,
    }
    hour_rows = [Hour(400_000 + 5 * at, 10, 8, 2, 30, 4000 * at, 120.0 * at, 900.0) for at in range(hours)]
    totals = ReplayTotals(30, 1, 5, earliest=0, latest=10**15, cpu=10**6, wall=2 * 10**6)
    page_fields = page_content(settings | changes, hour_rows, totals.as_dict(10))
    return page_fields if hours else page_fields | {"totals": ReplayTotals().as_dict(10)}


#: The report of verdicts is tested in tests/pages.
REPORT = Report(title="Replayed", documents=0, kept=0)


@pytest.mark.parametrize("width", [1280, 360] if os.environ.get("NEARDUP_LONG") else [360])
def test_the_page_of_a_replay_fits_and_escapes_its_texts(width: int, tmp_path: Path) -> None:
    path = tmp_path / "replay.html"
    path.write_text(replay_page(content(40), REPORT), "utf-8")
    with opened(path, width=width) as page:
        draw(page)
        assert page.locator(".chart svg.marks").count() == page.locator("figure details table").count() == 2
        assert page.title() == "Replayed - neardup"
        assert HOSTILE in page.locator("#made").text_content()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
