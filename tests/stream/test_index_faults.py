"""Failures of an index change nothing: failed writes of the store, and the same calls again."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest
from streaming import DAY, EDITED, FOX, HOUR, NOON, ROSE, FailingConnection, SetClock, failing

import neardup as nd
from neardup.errors import StoreError
from neardup.stream import index as index_module


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


class GoneConnection(FailingConnection):
    """The connection of a store whose disk is gone from a commit on; ``back`` says whether it is there again."""

    back = False

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT":
            self.fails = "all"
        if self.fails == "all" and not self.back:
            raise sqlite3.OperationalError("disk I/O error")
        return self.connection.execute(statement, *values)


def test_an_index_whose_disk_is_gone_refuses_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    with nd.Index(path=tmp_path / "news.db", now=SetClock(NOON + DAY)) as index:
        index.add(nd.Document("a", FOX, NOON))
        connection = GoneConnection(index.store._connection, "")  # type: ignore[union-attr]
        index.store._connection = connection  # type: ignore[union-attr]
        for _ in range(2):
            # Nobody can say whether the disk has the document, so it is neither found nor denied.
            with pytest.raises(StoreError, match=r"news\.db"):
                index.add(nd.Document("b", ROSE, NOON + 60))
            for use in (index.query, lambda text: index.check([nd.Document("c", text)]), index.__contains__):
                with pytest.raises(StoreError, match=r"news\.db"):
                    use(ROSE)
        connection.back = True
        assert (list(index), index.query(ROSE), index.query(FOX)[0].id) == (["a"], [], "a")
        assert index.add(nd.Document("b", ROSE, NOON + 60)).kind == "original"
        assert index.statistics.documents == 2


@pytest.mark.parametrize("change", ["add", "forget", "replace", "release", "remove"])
@pytest.mark.parametrize("fails", ["commit", "after", "write"])
def test_after_an_interruption_memory_is_what_the_disk_has(tmp_path: Path, change: str, fails: str) -> None:
    class Interrupted(FailingConnection):
        def execute(self, statement: str, *values: Any) -> Any:
            result = self.connection.execute(statement, *values)
            if statement == {"commit": "BEGIN IMMEDIATE", "after": "COMMIT"}.get(self.fails):
                self.fails = ""
                raise KeyboardInterrupt
            return result

        def executemany(self, statement: str, values: Any) -> Any:
            if self.fails == "write":
                raise KeyboardInterrupt
            return self.connection.executemany(statement, values)

    options: dict[str, Any] = {"path": tmp_path / "news.db", "now": SetClock(NOON + DAY), "against": "everything"}
    index: nd.Index
    changes: dict[str, Callable[[], Any]] = {
        "add": lambda: index.add_many([nd.Document("c", ROSE, NOON + 90), nd.Document("d", f"{ROSE} today", NOON)]),
        "forget": lambda: index.forget("a"),
        "replace": lambda: index.replace(nd.Document("a", ROSE, NOON + 90)),
        "release": lambda: index.release(nd.Document("b", EDITED)),
        "remove": lambda: index.remove("a"),
    }
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", EDITED, NOON + 60)])
        try:
            with failing(index.store, fails, Interrupted):
                changes[change]()
            assert (change, fails) == ("remove", "write")
        except KeyboardInterrupt:
            pass
        found = [list(index), index.query(FOX), index.query(ROSE), index.statistics._replace(bytes=0, segments=0)]
        verdicts = [index.verdict_of(name) for name in "abcd"]
    with nd.Index(**options) as index:
        again = [list(index), index.query(FOX), index.query(ROSE), index.statistics._replace(bytes=0, segments=0)]
        assert (found, verdicts) == (again, [index.verdict_of(name) for name in "abcd"])


def test_an_interruption_without_a_store_leaves_no_document_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    with nd.Index(now=SetClock(NOON + 90 * DAY)) as index:
        index.add(nd.Document("a", FOX, NOON))
        # The second one confirms the first, so that all others leave.
        batch = [nd.Document("far", ROSE, NOON + 9 * DAY), nd.Document("further", f"{ROSE} 1", NOON + 9 * DAY + 60)]
        for module in ("recent_verdicts.RecentVerdicts.record", "matcher.Verdict"):
            with monkeypatch.context() as patch:
                patch.setattr(f"neardup.stream.{module}", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
                with pytest.raises(KeyboardInterrupt):
                    index.add_many(batch)
            assert (list(index), index.query(FOX)[0].id, index.query(ROSE)) == (["a"], "a", [])
            assert (index.statistics.documents, index.statistics.clock) == (1, NOON)
        assert [verdict.flag for verdict in index.add_many(batch)] == ["ahead", ""]
        assert index.verdict_of("further").of == "far"  # type: ignore[union-attr]


def test_queries_wait_while_memory_is_read_from_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    may_continue, restores, restore = threading.Event(), list[int](), index_module._restore

    def waiting(*arguments: Any) -> None:
        restores.append(1)
        assert may_continue.wait(300)
        restore(*arguments)

    with nd.Index(path=tmp_path / "news.db", now=SetClock(NOON + DAY)) as index, ThreadPoolExecutor(3) as threads:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", ROSE, NOON + 1)])
        with failing(index.store, "after"), pytest.raises(KeyboardInterrupt):
            index.forget("b")
        monkeypatch.setattr(index_module, "_restore", waiting)
        asked: list[Future[Any]] = [
            threads.submit(index.query, FOX),
            threads.submit(index.query, ROSE),
            threads.submit(list, index),
        ]
        try:
            assert not wait(asked, 0.05).done
        finally:
            may_continue.set()
        found, forgotten, held = (one.result(60) for one in asked)
        assert ([one.id for one in found], forgotten, held) == (["a"], [], ["a"])
        assert len(restores) == 1
