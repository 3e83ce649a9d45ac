"""Failures of an index change nothing: failed writes of the store, and the same calls again."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from streaming import DAY, EDITED, FOX, HOUR, NOON, FailingConnection, SetClock, failing

import neardup as nd
from neardup.errors import StoreError


@pytest.mark.parametrize("fails", ["write", "commit"])
def test_a_document_is_no_duplicate_of_itself_after_a_failure(tmp_path: Path, fails: str) -> None:
    with nd.Index(now=SetClock(NOON + 90 * DAY), path=tmp_path / "news.db") as index:
        index.add_many([nd.Document(f"b{i}", f"{i} {i}a {i}b {i}c {i}d {i}e", NOON + i) for i in range(20)])
        # The batch begins in the last segment of an epoch, and continues in the first of the next one.
        batch = [nd.Document("first", FOX, NOON + 30), nd.Document("second", FOX[::-1], NOON + 2 * HOUR)]
        with failing(index.store, fails), pytest.raises(StoreError):
            index.add_many(batch)
        assert "first" not in index
        assert index.query(FOX) == []
        assert [verdict.kind for verdict in index.add_many(batch)] == ["original", "original"]


@pytest.mark.parametrize("fails", ["write", "commit"])
def test_a_change_that_cannot_be_written_changes_nothing(tmp_path: Path, fails: str) -> None:
    with nd.Index(path=tmp_path / "news.db", now=SetClock(NOON + HOUR)) as index:
        before = index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", EDITED, NOON + 60)])
        changes: list[Any] = [
            lambda: index.replace(nd.Document("a", "other words of another text", NOON + 60)),
            lambda: index.release(nd.Document("b", EDITED)),
            lambda: index.forget("a"),
            lambda: index.remove("a"),
        ]
        for change in changes:
            with failing(index.store, fails if change is not changes[-1] else "commit"), pytest.raises(StoreError):
                change()
            assert [index.verdict_of(name) for name in "ab"] == before
            assert (list(index), index.text_of("a"), index.query(FOX)[0].id) == (["a"], FOX, "a")
            assert index.statistics.duplicates == 1
        index.release(nd.Document("b", EDITED))
        assert index.add(nd.Document("c", EDITED, NOON + 120)).of == "b"


def test_a_verdict_is_returned_if_only_the_deletion_of_texts_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SetClock(NOON + 90 * DAY)
    with nd.Index(now=clock, path=tmp_path / "news.db") as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", FOX[::-1], NOON + 20 * HOUR)])
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

    class WaitingConnection(FailingConnection):
        def execute(self, statement: str, *values: Any) -> Any:
            if statement == "COMMIT":
                is_writing.set()
                assert may_continue.wait(300)
            return super().execute(statement, *values)

    documents = [nd.Document("a", FOX), nd.Document("b", "Oil prices rose in early trading on Monday after a storm")]
    with nd.Index(window=None, path=tmp_path / "news.db") as index, ThreadPoolExecutor(2) as threads:
        index.add(documents[0])
        with failing(index.store, fails, WaitingConnection):
            adding = threads.submit(index.add, documents[1])
            try:
                assert is_writing.wait(300)
                (checked,) = threads.submit(index.check, [nd.Document("c", EDITED)]).result(60)
                assert checked.of == "a"
                assert threads.submit(index.query, FOX).result(60)[0].id == "a"
                assert not adding.done()
            finally:
                may_continue.set()
            assert isinstance(adding.exception(60), StoreError if fails else type(None))
        assert list(index) == (["a"] if fails else ["a", "b"])
        assert (index.verdict_of("b") is None) == bool(fails)
        if fails:
            assert index.add(documents[1]).kind == "original"


def test_an_empty_segment_is_there_again_after_a_failure(tmp_path: Path) -> None:
    batch = [nd.Document("a", FOX, NOON), nd.Document("b", FOX, NOON + 2 * HOUR)]
    with nd.Index(path=tmp_path / "news.db", now=SetClock(NOON + 90 * DAY)) as index:
        # Its segment is still empty when the later document begins the next one.
        index.add(nd.Document("empty", "", NOON))
        with failing(index.store, "write"), pytest.raises(StoreError):
            index.add(batch[1])
        assert [verdict.kind for verdict in index.add_many(batch)] == ["original", "exact"]
