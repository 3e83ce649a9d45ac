"""Failures of an index change nothing: refused ids, failed writes of the store, and the same additions again."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from naive_window import Expected, NaiveIndex
from streaming import DAY, FOX, HOUR, NOON, RECIPES, TEXTS, SetClock, examples, id_similarities, plain_verdict

import neardup as nd
from neardup.errors import InputError, StoreError
from neardup.search import window as window_module
from neardup.search import window_index
from neardup.stream.store import Store


class Step(NamedTuple):
    """A document, its hours after the previous one, whether an id is repeated, and which statement fails."""

    text: str
    hours: int
    repeats_id: bool
    fails: str


#: Jumps ahead, some of them confirmed by a second document, and late documents; the window has 24 hours.
STEPS = st.builds(
    Step,
    TEXTS,
    st.sampled_from([0, 0, 0, 1, 1, 2, 5, 23, 24, 25, 60, 200, -1, -20, -25, -60, -200]),
    st.sampled_from([False, False, True]),
    st.sampled_from(["", "", "", "", "write", "commit", "after"]),
)
STREAMS = st.lists(STEPS, max_size=30)


@pytest.fixture(autouse=True, scope="module")
def _small_generations() -> Iterator[None]:
    """Make epochs begin and end after a few documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window_module, "_STAGES", {0: 64, 3: 64, 5: 128})
        patch.setattr(window_module, "_LAST_STAGE", 5)
        patch.setattr(window_module, "_MIN_EPOCH", 6)
        patch.setattr(window_module, "_REBUILD_RATE", 2)
        patch.setattr(window_index, "_SLICE_DOCUMENTS", 2)
        yield


class Connection:
    """The connection of a store, where one statement fails."""

    def __init__(self, connection: sqlite3.Connection, fails: str) -> None:
        self.connection, self.fails = connection, fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT" and self.fails == "after":
            self.connection.execute(statement)
            self.fails = ""
            raise KeyboardInterrupt
        if statement == "COMMIT" and self.fails == "commit":
            self.fails = ""
            raise sqlite3.OperationalError("disk I/O error")
        return self.connection.execute(statement, *values)

    def executemany(self, statement: str, values: Any) -> Any:
        if self.fails == "write":
            self.fails = ""
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.executemany(statement, values)


@contextlib.contextmanager
def failing(store: Store | None, fails: str) -> Iterator[None]:
    """Make the next write of a store fail: during it, at its commit, or just after it."""
    assert store is not None
    connection = store._connection
    store._connection = Connection(connection, fails)  # type: ignore[assignment]
    try:
        yield
    finally:
        store._connection = connection


def ids(index: nd.Index, twin: NaiveIndex) -> list[str]:
    """Return the ids in a window, without those whose segment has not expired yet."""
    inside = set(twin)
    return sorted(id for id in index if id in inside)


def add(index: nd.Index, documents: Sequence[nd.Document], fails: str = "") -> list[Expected]:
    """Add documents, after a failed write if requested."""
    if fails:
        with failing(index.store, fails), pytest.raises((StoreError, KeyboardInterrupt)):
            index.add_many(documents)
        if fails == "after":
            # They were stored before the failure, so they have verdicts.
            found = [index.verdict_of(document.id) for document in documents]
            return [plain_verdict(verdict) for verdict in found if verdict is not None]
    return [plain_verdict(verdict) for verdict in index.add_many(documents)]


@settings(max_examples=examples(120))
@given(STREAMS, st.sampled_from(["words", "edit"]), st.sampled_from(["originals", "everything"]), st.data())
def test_memory_and_store_agree_after_every_failure(
    stream: list[Step], recipe: str, against: str, data: st.DataObject
) -> None:
    clock = SetClock(NOON + 10_000 * HOUR)
    choices: dict[str, Any] = {"against": against, "now": clock}
    counts = recipe != "edit"
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        stored = {"path": Path(folder) / "news.db", **choices}
        plain, twin = nd.Index(RECIPES[recipe], **choices), NaiveIndex(RECIPES[recipe], **choices)
        durable = nd.Index(RECIPES[recipe], **stored)
        opened.callback(lambda: durable.close())
        now, number, rest = NOON, 0, list(stream)
        while rest:
            size = data.draw(st.integers(1, min(len(rest), 12)))
            steps, rest = rest[:size], rest[size:]
            documents = []
            for step in steps:
                now += step.hours * HOUR
                documents.append(nd.Document(f"d{number}", step.text, now))
                number += 1
            alive = list(twin)
            if steps[0].repeats_id and alive:
                name = alive[size % len(alive)]
                for index in (plain, durable):
                    with pytest.raises(InputError, match="already has a verdict"):
                        index.add_many([*documents, nd.Document(name, "x", now)])
            expected = twin.add_many(documents)
            for index, fails in ((plain, ""), (durable, steps[0].fails)):
                found = add(index, documents, fails)
                if not counts:
                    pairs = zip(expected, found, strict=True)
                    expected = [expected_verdict._replace(counts=other.counts) for expected_verdict, other in pairs]
                assert found == expected
                assert ids(index, twin) == sorted(twin)
                assert all(index.verdict_of(name) is not None for name in index)
                assert id_similarities(index.query(documents[0].text)) == twin.query(documents[0].text)
            assert plain.statistics._replace(bytes=0, segments=0, window_documents=0) == durable.statistics._replace(
                bytes=0, segments=0, window_documents=0
            )
            if data.draw(st.integers(0, 3)) == 0:
                durable.close()
                durable = nd.Index(RECIPES[recipe], **stored)


@pytest.mark.parametrize("durable", [False, True])
def test_a_confirmed_id_keeps_its_verdict_while_it_is_in_the_window(tmp_path: Path, durable: bool) -> None:
    clock = SetClock(NOON + 90 * DAY)

    def document(name: str, hours: int) -> nd.Document:
        return nd.Document(name, f"{FOX} {name * 3}", NOON + hours * HOUR)

    with nd.Index(now=clock, path=tmp_path / "news.db" if durable else None) as index:
        flags = [index.add(document(name, hours)).flag for name, hours in (("x", 0), ("A", 200), ("B", 201))]
        assert flags == ["", "ahead", ""]
        with pytest.raises(InputError, match="'A' already has a verdict"):
            index.add(document("A", 203))
        verdict = index.verdict_of("A")
        assert verdict is not None
        assert verdict.flag == "ahead"
        assert index.add(document("D", 226)).flag == "ahead"
        assert index.verdict_of("A") == verdict
        assert index.add(document("E", 249)).flag == ""
        assert list(index) == ["D"]


def test_a_document_ahead_still_waits_after_a_restart(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"now": SetClock(NOON + 90 * DAY), "path": tmp_path / "news.db"}
    texts = {0: "oil", 25: FOX, 26: "rain", 51: f"{FOX} again {FOX}"}
    with nd.Index(**settings) as index:
        flags = [index.add(nd.Document(f"d{at}", text, NOON + at * HOUR)).flag for at, text in texts.items()]
        # The third confirms the second; the last one waits for a confirmation.
        assert flags == ["", "ahead", "", "ahead"]
    with nd.Index(**settings) as index:
        index.add(nd.Document("d52", "snow", NOON + 52 * HOUR))
        assert "d51" in index


@pytest.mark.parametrize("fails", ["write", "commit"])
def test_a_document_is_no_duplicate_of_itself_after_a_failure(tmp_path: Path, fails: str) -> None:
    clock = SetClock(NOON + 90 * DAY)
    index = nd.Index(now=clock, path=tmp_path / "news.db")
    before = [nd.Document(f"b{i}", f"{i} {i}a {i}b {i}c {i}d {i}e", NOON + i) for i in range(20)]
    index.add_many(before)
    # The batch begins in the last segment of an epoch, and continues in the first of the next one.
    batch = [nd.Document("first", FOX, NOON + 30), nd.Document("second", FOX[::-1], NOON + 2 * HOUR)]
    with failing(index.store, fails), pytest.raises(StoreError):
        index.add_many(batch)
    assert "first" not in index
    assert index.query(FOX) == []
    assert [verdict.kind for verdict in index.add_many(batch)] == ["original", "original"]
    index.close()


def test_a_verdict_is_returned_if_only_the_deletion_of_texts_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(NOON + 90 * DAY)
    with nd.Index(now=clock, path=tmp_path / "news.db") as index:
        index.add(nd.Document("a", FOX, NOON))
        index.add(nd.Document("b", FOX[::-1], NOON + 20 * HOUR))
        with monkeypatch.context() as broken:
            broken.setattr(index.store, "forget", lambda *_: (_ for _ in ()).throw(StoreError("full")))
            verdict = index.add(nd.Document("c", FOX, NOON + 40 * HOUR))
        assert (verdict.kind, verdict) == ("original", index.verdict_of("c"))
        assert list(index) == ["b", "c"]
    with nd.Index(now=clock, path=tmp_path / "news.db") as index:
        assert list(index) == ["b", "c"]
        assert index.add(nd.Document("d", FOX, NOON + 41 * HOUR)).of == "c"


@pytest.mark.parametrize("fails", ["", "commit"])
def test_queries_are_answered_while_the_store_writes(tmp_path: Path, fails: str) -> None:
    is_writing, may_continue = threading.Event(), threading.Event()

    class AheadDocument(Connection):
        def execute(self, statement: str, *values: Any) -> Any:
            if statement == "COMMIT":
                is_writing.set()
                assert may_continue.wait(60)
            return super().execute(statement, *values)

    documents = [nd.Document("a", FOX), nd.Document("b", "Oil prices rose in early trading on Monday after a storm")]
    with nd.Index(window=None, path=tmp_path / "news.db") as index, ThreadPoolExecutor(2) as threads:
        index.add(documents[0])
        assert index.store is not None
        connection = index.store._connection
        index.store._connection = AheadDocument(connection, fails)  # type: ignore[assignment]
        adding = threads.submit(index.add, documents[1])
        try:
            assert is_writing.wait(60)
            (checked,) = threads.submit(index.check, [nd.Document("c", f"{FOX} today")]).result(60)
            assert checked.of == "a"
            assert threads.submit(index.query, FOX).result(60)[0].id == "a"
            assert not adding.done()
        finally:
            may_continue.set()
        assert isinstance(adding.exception(60), StoreError if fails else type(None))
        index.store._connection = connection
        assert list(index) == (["a"] if fails else ["a", "b"])
        assert (index.verdict_of("b") is None) == bool(fails)
        if fails:
            assert index.add(documents[1]).kind == "original"
