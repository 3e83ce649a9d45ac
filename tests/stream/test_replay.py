"""Replay of a dated corpus: the order of its documents, hours and totals, pace, and the page."""

from __future__ import annotations

import html
import json
import random
import time
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.documents import Corpus, corpus_of, open_corpus
from neardup.errors import InputError, OutputError
from neardup.pages.report import Report
from neardup.recipe import load_recipe
from neardup.stream.document import Verdict
from neardup.stream.index import Index, latest_time
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
from neardup.stream.replay_report import replay_page


def timeline_of(corpus: Corpus, *, as_listed: bool = False) -> Timeline:
    return read_timeline(corpus, as_listed=as_listed, report=lambda *_: None)


def expected_items(rows: list[dict[str, Any]], *, as_listed: bool) -> list[Item]:
    """Return the expected items: filter, then sort."""
    found = []
    for row in rows:
        if row["time"] is not None:
            size = len(row["text"].encode())
            found.append(Item(row["id"], row["text"], row["time"] * 1_000_000, size))
    return found if as_listed else sorted(found, key=lambda item: item.time)


times = st.none() | st.integers(1, 5) | st.integers(-(10**9), -1) | st.integers(10**8, 10**9)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
documents = st.lists(st.tuples(texts, times), max_size=20)


@given(documents, st.booleans(), st.sampled_from([0, 3, 10**9]))
def test_documents_arrive_in_order_of_time(
    listed: list[tuple[str, int | None]], as_listed: bool, max_memory: int
) -> None:
    if listed and all(time is None for _, time in listed):
        return
    rows = [{"id": f"d{at}", "text": text, "time": time} for at, (text, time) in enumerate(listed)]
    types = pa.schema({"id": "str", "text": "str", "time": pa.int64()}.items())
    corpus = corpus_of(pa.Table.from_pylist(rows, types), order_column="time")
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
        for at in range(1500)
    ]
    half = len(rows) // 2
    lines, columns = tmp_path / "a.jsonl", tmp_path / "b.parquet"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows[:half]))
    pq.write_table(pa.Table.from_pylist(rows[half:]), columns, row_group_size=400)
    with open_corpus([lines, columns], order_column="time") as corpus:
        timeline = timeline_of(corpus)
        expected = expected_items(rows, as_listed=False)
        assert list(read_items(corpus, timeline, max_memory=1 << 20)) == expected
        assert list(read_items(corpus, timeline)) == expected


@pytest.mark.parametrize("as_listed", [True, False])
@pytest.mark.parametrize("change", ["longer", "more", "fewer"])
def test_an_input_that_changes_between_passes_is_refused(tmp_path: Path, change: str, as_listed: bool) -> None:
    path = tmp_path / "c.jsonl"
    lines = [json.dumps({"id": str(at), "text": f"text {at}", "time": 10 - at}) + "\n" for at in range(3)]
    path.write_text("".join(lines))
    with open_corpus([path], order_column="time") as corpus:
        timeline = timeline_of(corpus, as_listed=as_listed)
        longer = [lines[0].replace("text 0", "text zero"), *lines[1:]]
        path.write_text("".join({"longer": longer, "more": [*lines, lines[0]], "fewer": lines[:2]}[change]))
        with pytest.raises(InputError, match="changed"):
            list(read_items(corpus, timeline))


def test_a_full_temporary_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    full = partial(open, "/dev/full", "wb")
    monkeypatch.setattr("neardup.stream.replay.tempfile.SpooledTemporaryFile", lambda *_, **__: full())
    rows = [{"text": "b" * 9000, "time": 2}, {"text": "a", "time": 1}]
    corpus = corpus_of(pa.Table.from_pylist(rows), order_column="time")
    with pytest.raises(OutputError) as caught:
        list(read_items(corpus, timeline_of(corpus)))
    assert says(caught.value, "No space left", "sort the input", "by time")


HOUR = 3_600_000_000
Flow = list[tuple[int, str]]


def items_of(flow: Flow) -> list[Item]:
    return [Item(str(at), text, moment, 7) for at, (moment, text) in enumerate(flow)]


def replayed(items: list[Item], **options: Any) -> tuple[list[Hour], list[tuple[Any, Any]], ReplayTotals]:
    """Replay items into a window that loses none; return the hours, and items and verdicts of each group."""
    groups: list[tuple[Any, Any]] = []
    index = Index(features="words:1", window="1000d", against="everything", now=latest_time)
    run = Replay(index, on_verdicts=lambda *group: groups.append(group), **options)
    return list(run.hours(items)), groups, run.totals


MOMENTS = st.integers(-5 * HOUR, 60 * HOUR) | st.integers(0, 2 * HOUR)
FLOWS = st.lists(st.tuples(MOMENTS, st.sampled_from(["a b", "a b", "A b", "c d", "e f", "..."])), max_size=40)


@given(FLOWS, st.sampled_from([1, 2, 7]), st.booleans())
def test_hours_count_their_documents(flow: Flow, batch: int, by_clock: bool) -> None:
    """As listed, an hour ends when the flow's clock has passed it, whatever the items' own times are."""
    items = items_of(flow if by_clock else sorted(flow, key=lambda pair: pair[0]))
    hours, groups, totals = replayed(items, batch=batch, by_clock=by_clock)
    assert [item for group, _ in groups for item in group] == items
    assert all(len(group) <= batch and len({item.time // HOUR for item in group}) == 1 for group, _ in groups)
    latest, expected, held = -(10**18), dict[int, list[Verdict]](), 0
    for group, verdicts in groups:
        latest = max([latest, *(item.time for item in group)])
        expected.setdefault(latest // HOUR, []).extend(verdicts)
    assert [hour.hour for hour in hours] == list(expected)
    for hour, verdicts in zip(hours, expected.values(), strict=True):
        duplicates = sum(verdict.is_duplicate for verdict in verdicts)
        held += sum(not verdict.flag for verdict in verdicts)
        counts = (len(verdicts), len(verdicts) - duplicates, duplicates, held)
        assert (hour.items, hour.originals, hour.duplicates, hour.held) == counts
        assert 0 <= hour.median <= hour.p99
    all_verdicts, times = [verdict for _, verdicts in groups for verdict in verdicts], [item.time for item in items]
    kinds = Counter(verdict.kind for verdict in all_verdicts)
    assert (totals.items, totals.exact, totals.near) == (len(items), kinds["exact"], kinds["near"])
    assert totals.flags == Counter(verdict.flag for verdict in all_verdicts if verdict.flag)
    assert totals.text_bytes == 7 * len(items)
    assert (totals.earliest, totals.latest) == (min(times, default=None), max(times, default=None))
    assert totals.max_window_documents == held
    assert totals.max_window_bytes == max((hour.bytes for hour in hours), default=0)


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
    items = items_of([(moment, "a b") for moment in (0, 0, HOUR // 2, HOUR // 4, HOUR, 4 * HOUR)])
    hours, groups, _ = replayed(items, batch=100, speed=60.0)
    assert wall.now == 1000 + 240
    assert wall.slept == [30, 30, 180]
    # Documents that are due are judged together, without waiting for later ones.
    assert [[item.id for item in group] for group, _ in groups] == [["0", "1"], ["2"], ["3"], ["4"], ["5"]]
    starts = [(4, "1970-01-01T00:00Z"), (1, "1970-01-01T01:00Z"), (1, "1970-01-01T04:00Z")]
    assert [(hour.items, hour.as_dict()["hour"]) for hour in hours] == starts


HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def test_the_page_of_a_replay_has_its_charts_and_escapes_its_texts() -> None:
    recipe = load_recipe("ddd").changed(name=HOSTILE)
    page_settings = ReplaySettings(recipe, "2h").as_dict() | {"inputs": [HOSTILE], "batch": 1}
    hours = [Hour(400_000 + 5 * at, 10, 8, 2, 30, 4000 * at, 120.0 * at, 900.0) for at in range(40)]
    totals = ReplayTotals(30, 1, 5, earliest=0, latest=10**15, cpu=10**6, wall=2 * 10**6)
    # Layout and scripts are tested in tests/pages.
    page = replay_page(page_settings, hours, totals.as_dict(10), Report(title="Replayed", documents=0, kept=0))
    assert HOSTILE not in page
    assert page.count(html.escape(HOSTILE, quote=False)) + page.count(html.escape(HOSTILE)) >= 2
    assert "<title>Replayed - neardup</title>" in page
    assert 'id="hour-title"' in page
    assert "dashed: the window is full" in page
