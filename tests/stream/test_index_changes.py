"""Changes of an index besides additions: forget, replace, release; and the texts that a store keeps for them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from classifiers import SETS, make_classifier
from streaming import DAY, EDITED, FOX, HOUR, NOON, ROSE, SetClock

import neardup as nd
from neardup.errors import InputError, RecipeError, StoreError, UnknownDocument
from neardup.stream.store import Store, StoreReader, text_digest

CHOICES: list[dict[str, Any]] = [
    {},
    {"window": 10},
    {"against": "everything"},
    {"second_step": "edit >= 0.5"},
    {"classifier": make_classifier(SETS, bias=1.0)},
]


def store_of(index: nd.Index) -> Store:
    assert index.store is not None
    return index.store


@pytest.fixture(params=[False, True], ids=["memory", "store"])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The options of an index at one o'clock, without or with a store."""
    return {"now": SetClock(NOON + HOUR), "path": tmp_path / "news.db" if request.param else None}


@contextlib.contextmanager
def reopened(index: nd.Index, options: dict[str, Any]) -> Any:
    """Open an index again if it has a store."""
    if index.store is None:
        yield index
    else:
        index.close()
        with nd.Index(**options) as again:
            yield again


@pytest.mark.parametrize("choices", CHOICES[:-1], ids=str)
def test_a_forgotten_document_may_be_added_again(choices: dict[str, Any], options: dict[str, Any]) -> None:
    options |= choices
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", EDITED, NOON + 60), nd.Document("c", "", NOON)])
        index.forget("a")
        assert (index.verdict_of("a"), "a" in index) == (None, False)
        repeated = "b" if options.get("against") == "everything" else None
        assert index.add(nd.Document("d", f"{FOX} tomorrow", NOON + 120)).of == repeated
        index.forget("c")
        verdict = index.add(nd.Document("a", FOX, NOON + 180))
        assert verdict.of == (repeated or "d")
        counts = index.statistics
        assert (counts.documents, counts.originals + counts.duplicates, counts.undecidable) == (3, 3, 0)
        with pytest.raises(UnknownDocument, match="'c' has a verdict"):
            index.forget("c")
        with reopened(index, options) as again:
            assert (again.verdict_of("a"), again.verdict_of("c")) == (verdict, None)
            assert again.statistics._replace(bytes=0, segments=0) == counts._replace(bytes=0, segments=0)


def test_a_forgotten_document_confirms_nothing_after_a_restart(tmp_path: Path) -> None:
    options: dict[str, Any] = {"path": tmp_path / "news.db", "now": SetClock(NOON + 5 * DAY)}
    with nd.Index(**options) as index:
        index.add(nd.Document("a", FOX, NOON))
        assert index.add(nd.Document("far", EDITED, NOON + 4 * DAY)).flag == "ahead"
        index.forget("far")
    with nd.Index(**options) as index:
        assert index.add(nd.Document("b", EDITED, NOON + 60)).of == "a"
        assert index.add(nd.Document("far", "something else entirely, some words", NOON + 120)).kind == "original"


def test_a_document_replaces_another(options: dict[str, Any]) -> None:
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", "other words of another text", NOON)])
        # It is not compared with what it replaces.
        assert index.replace(nd.Document("a", EDITED, NOON + 60)).kind == "original"
        assert index.replace(nd.Document("b", f"{FOX} tomorrow", NOON + 120)).of == "a"
        assert (index.statistics.documents, index.statistics.duplicates, sorted(index)) == (2, 1, ["a"])
        with pytest.raises(UnknownDocument, match="none can be replaced"):
            index.replace(nd.Document("c", FOX))
        with reopened(index, options) as again:
            assert again.query(FOX)[0].id == "a"
            assert again.text_of("a") == (EDITED if again.store else None)


@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_a_released_document_is_an_original_and_its_copies_are_stopped(
    choices: dict[str, Any], options: dict[str, Any]
) -> None:
    options |= choices
    with nd.Index(**options) as index:
        assert index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", EDITED, NOON + 60)])[1].of == "a"
        index.add(nd.Document("later", "other words of another text", NOON + 90))
        verdict = index.release(nd.Document("b", EDITED), by="ann")
        assert (verdict.kind, verdict.of, index.verdict_of("b")) == ("original", None, verdict)
        clock = index.statistics.clock
        assert verdict.time == (NOON + 60 if clock is None else clock)
        assert (index.statistics.originals, index.statistics.duplicates, list(index)) == (3, 0, ["a", "later", "b"])
        known = index.add(nd.Document("b", EDITED, NOON + 61))
        assert known == verdict._replace(known=True)
        with reopened(index, options) as again:
            assert (list(again), again.verdict_of("b"), again.statistics.duplicates) == (
                ["a", "later", "b"],
                verdict,
                0,
            )
            assert again.add(nd.Document("c", EDITED, NOON + 120)).of == "b"
    if path := options["path"]:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            ((*released, similarity),) = connection.execute("SELECT id, by, kind, of, similarity FROM released")
            assert (released, similarity > 0.85) == (["b", "ann", "near", "a"], True)


def test_a_document_released_by_its_id_keeps_its_title(options: dict[str, Any]) -> None:
    options |= {"classifier": make_classifier("title", bias=0.0), "against": "everything"}
    with nd.Index(**options) as index:
        first, second, third = (nd.Document(name, f"{FOX} {name}", NOON, title="A fox") for name in "abc")
        assert index.add_many([first, second])[1].of == "a"
        index.release("b")
        index.forget("a")
        assert index.add(third).of == "b"


def test_release_needs_a_stopped_document_and_its_text() -> None:
    documents = [nd.Document("a", FOX), nd.Document("b", EDITED)]
    with nd.Index(against="everything", second_step="edit >= 0.5") as index:
        index.add_many(documents)
        assert index.release("b").kind == "original"
    with nd.Index() as index:
        index.add_many(documents)
        with pytest.raises(InputError, match="text of 'b' is not kept"):
            index.release("b")
        for name in ("a", "nobody"):
            with pytest.raises(UnknownDocument, match=f"'{name}' was stopped"):
                index.release(name)
    with pytest.raises(RecipeError, match="keep_texts is for an index with a store"):
        nd.Index(keep_texts=True)


def test_a_store_with_texts_returns_and_recognizes_them(tmp_path: Path) -> None:
    learned = make_classifier("jaccard(words:2), title", bias=3.0)
    options: dict[str, Any] = {"classifier": learned, "path": tmp_path / "news.db", "keep_texts": True}
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, title="One"), nd.Document("b", EDITED, title="Two")])
        store = store_of(index)
        judged = store.judged_documents(["a", "b", "nobody", "\ud800"])
        assert {name: one.digest for name, one in judged.items()} == {"a": text_digest(FOX), "b": text_digest(EDITED)}
        assert judged["b"].verdict == index.verdict_of("b")
        assert (store.stopped_text("a"), store.stopped_text("b")) == (None, (EDITED, "Two"))
        assert store.ids_with_words(["FARMER", "today"], 10, 100) == store.ids_with_words(["fox"], 1, 100) == ["b"]
        assert store.ids_with_words(["%"], 10, 100) == []
    with nd.Index(**options) as index:
        assert (index.release("b").kind, index.text_of("b")) == ("original", EDITED)
    with StoreReader(tmp_path / "news.db") as reader:
        assert reader.judged_documents(["b"])["b"].digest == text_digest(EDITED)


def test_texts_of_duplicates_expire_and_their_digests_stay(tmp_path: Path) -> None:
    with nd.Index(path=tmp_path / "news.db", window=2, keep_texts=True) as index:
        index.add_many([nd.Document(f"{n}", FOX) for n in range(2)])
        index.add_many([nd.Document(f"x{n}", f"other words number {n} of a text that is new") for n in range(300)])
        index.add(nd.Document("last", "and one more of them"))
        assert store_of(index).stopped_text("1") is None
        assert store_of(index).judged_documents(["1"])["1"].digest == text_digest(FOX)
    with contextlib.closing(sqlite3.connect(tmp_path / "news.db")) as connection:
        assert connection.execute("SELECT text FROM kept WHERE serial = 1").fetchone() == (None,)


def test_a_changed_kept_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with nd.Index(path=path, keep_texts=True) as index:
        index.add_many([nd.Document("a", FOX), nd.Document("b", FOX)])
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE kept SET text = 'another', digest = iif(serial, digest, x'00')")
    with StoreReader(path) as reader:
        with pytest.raises(StoreError, match="damaged"):
            reader.stopped_text("b")
        with pytest.raises(StoreError, match="damaged"):
            reader.judged_documents(["a"])


@pytest.mark.parametrize("with_store", [False, True])
def test_a_late_document_does_not_repeat_the_one_that_it_replaces(tmp_path: Path, with_store: bool) -> None:
    path = tmp_path / "news.db" if with_store else None
    with nd.Index(path=path, window="24h", now=SetClock(NOON + 90 * DAY)) as index:
        index.add(nd.Document("today", FOX, NOON + 9 * DAY))
        late = nd.Document("a", ROSE, NOON)
        first = index.add(late)
        assert (first.kind, first.flag) == ("original", "late")
        assert index.replace(late) == first
        assert index.add(nd.Document("b", ROSE, NOON)).of == "a"
        assert index.replace(late) == first
