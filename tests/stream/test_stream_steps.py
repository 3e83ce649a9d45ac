"""The steps of a stream on Spark, without Spark: micro-batches against one index, verdict for verdict."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says
from streaming import AT_LENGTH, NOON, RECIPES, TIMED, SetClock, examples, make_index
from test_index_properties import STREAMS, WINDOWS, Step, timed_documents

import neardup as nd
from neardup.classifier.classifier import Classifier
from neardup.documents.records import Reason
from neardup.errors import RecipeError
from neardup.recipe import Recipe, load_recipe
from neardup.search.window import WindowLength
from neardup.spark import streams
from neardup.spark.streams import NO_TIME, StreamConfig, checked_documents, document_blobs, judge_batch


class MemoryState:
    """A state in memory."""

    def __init__(self) -> None:
        self.data: bytes | None = None
        self.blobs: dict[int, bytes] = {}
        self.get, self.put, self.drop = self.blobs.get, self.blobs.__setitem__, self.blobs.__delitem__

    def head(self) -> bytes | None:
        return self.data

    def set_head(self, data: bytes) -> None:
        self.data = data


class LocalStream:
    """A stream of one group, with its micro-batches judged in one of several simulated processes."""

    def __init__(self, config: StreamConfig, processes: int = 1) -> None:
        self.config, self.state = config, MemoryState()
        self.processes: list[Any] = [OrderedDict() for _ in range(processes)]

    def batch(
        self, blobs: Sequence[bytes], now: float, process: int = 0, *, lost: bool = False
    ) -> list[dict[str, Any]]:
        """Judge a micro-batch in a process; its outcome may be lost, as when a worker dies."""
        head, before = self.state.data, dict(self.state.blobs)
        with patch.object(streams, "_WINDOWS", self.processes[process]):
            found: list[Any] = judge_batch(self.config, self.state, blobs, round(now * 1e6), "").to_pylist()
        if lost:
            self.state = MemoryState()
            self.state.data = head
            self.state.blobs.update(before)
        return found


def config_of(
    recipe: Recipe, window: Any, by: str, against: str, classifier: Classifier | None = None, column: str = ""
) -> StreamConfig:
    identity = {"recipe": recipe.fingerprint, "window": str(window), "against": against, "by": column}
    return StreamConfig(recipe, WindowLength.parse(window, by), against == "everything", None, classifier, identity)


WORDS = config_of(RECIPES["words"], "100s", "time", "originals")


def feature_blobs(config: StreamConfig, batches: Iterator[pa.RecordBatch]) -> list[bytes]:
    """Return rows as blobs with features."""
    broadcast: Any = SimpleNamespace(value=config)
    return [blob for batch in document_blobs(broadcast, batches) for blob in batch.column("data").to_pylist()]


def blobs(config: StreamConfig, documents: Sequence[nd.Document], pieces: int = 2, now: float = NOON) -> list[bytes]:
    """Return documents in order of arrival as blobs, in pieces as Spark makes them, the last piece first.

    Documents without a time get the current one, as in a stream without a column of times.
    """
    rows = [
        {"by": "", "now": 0, "id": d.id, "text": d.text, "time": d.microseconds, "title": d.title, "order_0": i}
        | ({"time": round(now * 1e6)} if d.microseconds is None else {})
        for i, d in enumerate(documents)
    ]
    types = dict.fromkeys(("by", "now", "id", "text", "time", "title", "order_0"), pa.string())
    types |= {"now": pa.int64(), "time": pa.timestamp("us", "UTC"), "order_0": pa.int64()}
    size = max(1, -(-len(rows) // pieces))
    cut = [rows[i : i + size] for i in range(0, len(rows), size)][::-1]
    return feature_blobs(config, (pa.RecordBatch.from_pylist(part, pa.schema(types.items())) for part in cut))


def expected(verdict: nd.Verdict, serial: int) -> dict[str, Any]:
    fields = verdict.as_dict() | dict(zip("oab", verdict.counts or (None, None, None), strict=True))
    # An id comes once in a stream.
    del fields["counts"], fields["measures"], fields["version_of"], fields["known"]
    return fields | {"serial": serial, "by": ""}


def without_late_text(row: dict[str, Any], text: str, earlier: Sequence[str]) -> dict[str, Any]:
    """Return the row of a stream for a late document that an index finds only by its exact text.

    The state of a stream is its window, so it cannot find it: docs/spark-stream.md.
    """
    assert row["flag"] == "late"
    assert text in earlier
    nothing = dict.fromkeys(("of", "similarity", "o", "a", "b", "score"))
    return row | nothing | {"kind": "original", "evidence": ""}


def row_with_seconds(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its time in seconds, as in a verdict."""
    return row | {"time": (row["time"] - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) / 1_000_000}


NAMES = [*(RECIPES if AT_LENGTH else ["default", "words", "simhash", "lsh", "edit"]), "sets", "facts", TIMED]


@pytest.mark.parametrize("recipe", NAMES)
@settings(max_examples=examples(6))
@given(STREAMS, st.sampled_from(WINDOWS), st.sampled_from(["originals", "everything"]), st.data())
def test_micro_batches_get_the_verdicts_of_one_index(
    recipe: str, stream: list[Step], window: tuple[Any, str, int], against: str, data: st.DataObject
) -> None:
    """With failures, restarts and moves between processes."""
    (length, by, unit), clock = window, SetClock()
    index = make_index(recipe, window=length, window_by=by, against=against, now=clock)
    config = config_of(index.recipe, length, by, against, index.classifier)
    micro_batches = LocalStream(config, processes=2)
    rest = timed_documents(stream, unit)
    texts = [document.text for _, document, _ in rest]
    serial = 0
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        batch, rest = [document for _, document, _ in rest[:size]], rest[size:]
        clock.time = float(NOON) + serial
        process = data.draw(st.integers(0, 1))
        batch_blobs = blobs(config, batch, now=clock.time)
        event = data.draw(st.sampled_from(["", "", "", "fails", "restarts"]))
        if event == "fails":
            micro_batches.batch(batch_blobs, clock.time, data.draw(st.integers(0, 1)), lost=True)
        if event == "restarts":
            micro_batches.processes = [OrderedDict(), OrderedDict()]
        found = micro_batches.batch(batch_blobs, clock.time, process)
        verdicts = index.add_many(batch)
        expected_rows = [expected(v, serial + i) for i, v in enumerate(verdicts)]
        for i, row in enumerate(found):
            if row["flag"] == "late" and row["kind"] == "original" != expected_rows[i]["kind"]:
                expected_rows[i] = without_late_text(expected_rows[i], texts[serial + i], texts[: serial + i])
        assert [row_with_seconds(row) for row in found] == expected_rows
        serial += size


def test_a_confirmed_document_returns_with_its_own_time() -> None:
    """It is confirmed in another process than it was entered in."""
    recipe, clock = RECIPES["words"], SetClock(NOON + 10**6)
    index = nd.Index(recipe, window="100s", now=clock)
    plain = LocalStream(WORDS, processes=2)
    times = [0, 50, 20, 99, 700, 720, 760, 790, 815]
    texts = ["fox", "dog", "fox", "dog", "the owl is here", "one more", "the owl is here", "cat", "the owl is here"]
    for i, (time, text) in enumerate(zip(times, texts, strict=True)):
        document = nd.Document(f"d{i}", text, float(NOON + time))
        found = plain.batch(blobs(WORDS, [document]), clock.time, i % 2)
        assert [row_with_seconds(row) for row in found] == [expected(index.add(document), i)]
    assert [row["kind"] for row in found] == ["original"]


def test_late_documents_are_compared_with_the_window_only() -> None:
    """Unlike in an index, which also finds their exact texts elsewhere."""
    index, plain = nd.Index(RECIPES["words"], window="100s", now=SetClock(NOON + 10**6)), LocalStream(WORDS)
    texts = {1000: "owl here", 1001: "cat there", 0: "the fox ran", 1: "the fox ran"}
    for i, (time, text) in enumerate(texts.items()):
        document = nd.Document(f"d{i}", text, float(NOON + time))
        (row,), verdict = plain.batch(blobs(WORDS, [document]), NOON + 10**6), index.add(document)
    assert (verdict.kind, verdict.of, verdict.flag) == ("exact", "d2", "late")
    row = row_with_seconds(row)
    assert row == without_late_text(expected(verdict, 3), "the fox ran", ["the fox ran"])
    assert row["kind"] == "original"


def test_expired_segments_leave_the_state() -> None:
    plain = LocalStream(WORDS)
    for i in range(20):
        plain.batch(blobs(WORDS, [nd.Document(f"{i}", f"fox number {i} dog", float(NOON + 20 * i))]), NOON)
    # Segments of 20 s: those of the last 100 s, and the one in which the window ends.
    assert len(plain.state.blobs) <= 7


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (config_of(load_recipe("ddd"), "24h", "time", "originals"), ("the recipe",)),
        (config_of(RECIPES["words"], "7d", "time", "originals"), ("window 24h", "this stream has 7d")),
        (config_of(RECIPES["words"], "24h", "time", "everything"), ("against originals",)),
        (config_of(RECIPES["words"], "24h", "time", "originals", column="source"), ("by ", "this stream has source")),
    ],
)
def test_another_stream_cannot_continue_a_checkpoint(changed: StreamConfig, message: tuple[str, ...]) -> None:
    plain = LocalStream(config_of(RECIPES["words"], "24h", "time", "originals"))
    batch = blobs(plain.config, [nd.Document("a", "fox", 1.0)])
    plain.batch(batch, NOON)
    plain.config = changed
    with pytest.raises(RecipeError) as caught:
        plain.batch(batch, NOON)
    assert says(caught.value, *message)


def test_invalid_rows_are_rejected_and_not_judged() -> None:
    day, texts = "1987-02-26", [b"fox", b"dog", None, b"\xff\xfe", b"owl", "🛰 衛星".encode(), b""]
    batch = pa.RecordBatch.from_pydict(
        {
            "by": [""] * 7,
            "now": pa.array([5] * 7),
            "id": pa.array([1, None, 3, 4, 5, 6, 7]),
            "text": pa.array(texts),
            "time": pa.array([day, day, day, day, "yesterday", "541296000", "1987"]),
        }
    )
    reasons = [None, Reason.NO_ID, Reason.NO_TEXT, Reason.NOT_UTF8, NO_TIME, None, None]
    assert checked_documents(batch).column("rejection").to_pylist() == reasons
    plain = LocalStream(WORDS)
    rows = plain.batch(feature_blobs(WORDS, iter([batch])), NOON)
    found = [(row["id"], row["kind"], row["flag"], row["serial"]) for row in rows]
    # In order of time.
    judged = [("7", "original", "undecidable", 0), ("1", "original", "ahead", 1), ("6", "original", "", 2)]
    rejected = {("5", NO_TIME), (None, Reason.NO_ID), ("3", Reason.NO_TEXT), ("4", Reason.NOT_UTF8)}
    assert found[:3] == judged
    assert set(found[3:]) == {(id, "rejected", reason, None) for id, reason in rejected}
    only = pa.RecordBatch.from_pydict({name: batch.column(name)[2:3] for name in batch.schema.names})
    assert [row["flag"] for row in plain.batch(feature_blobs(WORDS, iter([only])), NOON)] == [Reason.NO_TEXT]
