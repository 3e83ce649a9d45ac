"""Exact means exact: 26 February to 7 April 1987 replayed, against a plain comparison of all pairs."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest
from naive_text import naive_normalize
from paths import SHARED
from scipy.sparse import csr_array

from neardup.documents import corpus_of
from neardup.recipe import load_recipe
from neardup.stream.document import Verdict
from neardup.stream.replay import Item, Replay, ReplaySettings, read_items, read_timeline

AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"
REUTERS = SHARED / "reuters" / "reuters.jsonl.gz"

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not REUTERS.is_file(), reason="the corpora are not in ../shared/data beside the project"),
]

#: The six weeks of the paper, or their first one.
END, DUPLICATES = ("1987-04-08", range(500, 700)) if AT_LENGTH else ("1987-03-05", range(50, 200))

Found = dict[str, tuple[str, float] | None]


@cache
def rows() -> list[dict[str, Any]]:
    """The items of some days, in the order of the corpus, which is not that of time."""
    with gzip.open(REUTERS, "rt", encoding="utf-8") as file:
        return [row for row in map(json.loads, file) if "1987-02-26" <= row["timestamp"] < END]


def when(row: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)


@cache
def overlaps() -> tuple[list[dict[str, Any]], list[int], list[list[tuple[int, int]]]]:
    """Items in order of time, how many 4-grams each has, and which earlier ones share most of them."""
    flow = sorted(rows(), key=when)
    numbers: dict[str, int] = {}
    sets = []
    for row in flow:
        form = naive_normalize(row["text"], "compact")
        cut = {form[at : at + 4] for at in range(max(len(form) - 3, 1))} - {""}
        sets.append([numbers.setdefault(gram, len(numbers)) for gram in cut])
    ends = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    columns = np.concatenate([np.array(one, np.int64) for one in sets])
    matrix = csr_array((np.ones(len(columns), np.int32), columns, ends), (len(flow), len(numbers)))
    near: list[list[tuple[int, int]]] = []
    first = 0
    for begin in range(0, len(flow), 256):
        while when(flow[begin]) - when(flow[first]) > timedelta(hours=25):
            first += 1
        block = (matrix[begin : begin + 256] @ matrix[first : begin + 256].T).toarray()
        for at, shared in enumerate(block, begin):
            others = np.flatnonzero(2 * shared[: at - first] > len(sets[at]))
            near.append([(first + int(other), int(shared[other])) for other in others])
    return flow, [len(one) for one in sets], near


def plain(against: str, *, whole_hours: bool) -> Found:
    """Each item compared with all, or all originals, of the 24 hours before it: the first of the most similar."""
    flow, sizes, near = overlaps()
    times = [when(row) for row in flow]
    found: Found = {}
    for at, row in enumerate(flow):
        best: tuple[str, float] | None = None
        for other, shared in near[at]:
            low, high = times[other], times[at]
            if whole_hours:
                low, high = (t.replace(minute=0, second=0, microsecond=0) for t in (low, high))
            if high - low > timedelta(hours=24) or 10 * shared < 7 * max(sizes[at], sizes[other]):
                continue
            name = flow[other]["id"]
            if against == "originals" and found[name] is not None:
                continue
            similarity = shared / max(sizes[at], sizes[other])
            if best is None or similarity > best[1]:
                best = name, similarity
        found[row["id"]] = best
    return found


@pytest.mark.parametrize(
    ("against", "window_by", "batch"),
    [("originals", "time", 100), *([("originals", "hour", 1), ("everything", "time", 100)] if AT_LENGTH else ())],
)
def test_reuters_item_for_item(against: str, window_by: str, batch: int) -> None:
    columns = {name: [row[name] for row in rows()] for name in ("id", "text", "timestamp")}
    corpus = corpus_of(columns, id_column="id", text_column="text", order_column="timestamp")
    timeline = read_timeline(corpus, as_listed=False, report=lambda stage, done, total: None)
    verdicts: list[tuple[Item, Verdict]] = []
    with ReplaySettings(load_recipe("ddd"), "24h", window_by, against).index() as index:
        run = Replay(
            index, batch=batch, on_verdicts=lambda items, judged: verdicts.extend(zip(items, judged, strict=True))
        )
        hours = list(run.hours(read_items(corpus, timeline)))
    expected = plain(against, whole_hours=window_by == "hour")
    found = {item.id: (v.of, v.similarity) if v.is_duplicate else None for item, v in verdicts}
    assert found == expected
    texts = {row["id"]: row["text"] for row in rows()}
    for item, verdict in verdicts:
        assert (verdict.kind == "exact") == (verdict.of is not None and texts[item.id] == texts[verdict.of])
    duplicates = sum(one is not None for one in expected.values())
    assert duplicates in DUPLICATES
    assert run.totals.duplicates == sum(hour.duplicates for hour in hours) == duplicates
    assert run.totals.items == len(rows())
