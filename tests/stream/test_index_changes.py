"""Changes of an index besides additions: check, forget, replace, release; and what a store keeps for them."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from flow_classifiers import make_classifier
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import DAY, EDITED, FOX, HOUR, NOON, RECIPES, TEXTS, SetClock, documents, examples, plain_verdict

import neardup as nd
from neardup.errors import InputError, RecipeError, StoreError, UnknownDocument
from neardup.stream.store import Store, StoreReader, text_digest

TIMES = st.one_of(st.none(), st.integers(NOON - 3 * DAY, NOON + 3 * DAY))
FORGET_CHOICES: list[dict[str, Any]] = [{}, {"window": 10}, {"against": "everything"}, {"second_step": "edit >= 0.5"}]


def store_of(index: nd.Index) -> Store:
    assert index.store is not None
    return index.store


@settings(max_examples=examples(200), deadline=None)
@given(
    st.sampled_from(sorted(RECIPES)),
    st.sampled_from(["24h", "3 documents", "endless"]),
    st.sampled_from(["originals", "everything"]),
    st.lists(st.tuples(TEXTS, TIMES), min_size=1, max_size=10),
)
def test_a_check_returns_the_verdict_of_an_addition(
    recipe: str, window: str, against: str, stream: list[tuple[str, Any]]
) -> None:
    arrived = documents([text for text, _ in stream], [time for _, time in stream])
    choices: dict[str, Any] = {"window": window, "against": against, "now": SetClock()}
    with nd.Index(RECIPES[recipe], **choices) as index, nd.Index(RECIPES[recipe], **choices) as other:
        for at, document in enumerate(arrived):
            checked = index.check(arrived[at:])
            verdict = index.add(document)
            assert plain_verdict(checked[0]) == plain_verdict(verdict)
            # A check leaves no trace.
            assert plain_verdict(other.add(document)) == plain_verdict(verdict)


def test_checked_documents_are_not_compared_with_each_other() -> None:
    with nd.Index(now=SetClock()) as index:
        found = index.check([nd.Document("a", FOX), nd.Document("b", FOX)])
        assert [one.kind for one in found] == ["original", "original"]
        assert len(index) == 0
        assert index.statistics.documents == 0


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("choices", FORGET_CHOICES, ids=str)
def test_a_forgotten_document_may_be_added_again(choices: dict[str, Any], durable: bool, tmp_path: Path) -> None:
    options = choices | {"now": SetClock(NOON + HOUR), "path": tmp_path / "news.db" if durable else None}
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", EDITED, NOON + 60), nd.Document("c", "", NOON)])
        index.forget("a")
        assert index.verdict_of("a") is None
        assert "a" not in index
        repeated = "b" if options.get("against") == "everything" else None
        assert index.add(nd.Document("d", f"{FOX} tomorrow", NOON + 120)).of == repeated
        index.forget("c")
        verdict = index.add(nd.Document("a", FOX, NOON + 180))
        assert verdict.of == (repeated or "d")
        counts = index.statistics
        assert (counts.documents, counts.originals + counts.duplicates, counts.undecidable) == (3, 3, 0)
        with pytest.raises(UnknownDocument, match="'c' has a verdict"):
            index.forget("c")
    if durable:
        with nd.Index(**options) as index:
            assert index.verdict_of("a") == verdict
            assert index.verdict_of("c") is None
            assert index.statistics._replace(bytes=0, segments=0) == counts._replace(bytes=0, segments=0)


def test_a_forgotten_document_stays_forgotten_after_a_restart(tmp_path: Path) -> None:
    options: dict[str, Any] = {"path": tmp_path / "news.db", "now": SetClock(NOON + 5 * DAY)}
    with nd.Index(**options) as index:
        index.add(nd.Document("a", FOX, NOON))
        # Further ahead than the window is long: it waits for a confirmation, and is forgotten instead.
        assert index.add(nd.Document("far", EDITED, NOON + 4 * DAY)).flag == "ahead"
        index.forget("far")
    with nd.Index(**options) as index:
        assert index.add(nd.Document("b", EDITED, NOON + 60)).of == "a"
        assert index.add(nd.Document("far", "something else entirely, some words", NOON + 120)).kind == "original"


def test_a_store_with_texts_returns_and_recognizes_them(tmp_path: Path) -> None:
    options: dict[str, Any] = {"path": tmp_path / "news.db", "now": SetClock(NOON + HOUR), "keep_texts": True}
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", EDITED, NOON + 60)])
        store = store_of(index)
        judged = store.judged_documents(["a", "b", "nobody", "\ud800"])
        assert {name: one.digest for name, one in judged.items()} == {"a": text_digest(FOX), "b": text_digest(EDITED)}
        assert judged["b"].verdict == index.verdict_of("b")
        assert store.stopped_text("b") == (EDITED, "")
        assert store.stopped_text("a") is None
        assert store.ids_with_words(["FARMER", "today"], 10, 100) == ["b"]
        assert store.ids_with_words(["fox"], 1, 100) == ["b"]
        assert store.ids_with_words(["%"], 10, 100) == []
    with nd.Index(**options) as index:
        assert index.release("b").kind == "original"
        assert store_of(index).judged_documents(["b"])["b"].digest == text_digest(EDITED)
        assert index.text_of("b") == EDITED
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
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_changed_kept_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with nd.Index(path=path, keep_texts=True) as index:
        index.add_many([nd.Document("a", FOX), nd.Document("b", FOX)])
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE kept SET text = 'another' WHERE serial = 1")
        connection.execute("UPDATE kept SET digest = x'00' WHERE serial = 0")
        connection.commit()
    with StoreReader(path) as reader:
        with pytest.raises(StoreError, match="damaged"):
            reader.stopped_text("b")
        with pytest.raises(StoreError, match="damaged"):
            reader.judged_documents(["a"])


@pytest.mark.parametrize("durable", [False, True])
def test_a_document_replaces_another(durable: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"now": SetClock(NOON + HOUR), "path": tmp_path / "news.db" if durable else None}
    with nd.Index(**options) as index:
        index.add_many([nd.Document("a", FOX, NOON), nd.Document("b", "other words of another text", NOON)])
        # It is not compared with what it replaces.
        assert index.replace(nd.Document("a", EDITED, NOON + 60)).kind == "original"
        assert index.replace(nd.Document("b", f"{FOX} tomorrow", NOON + 120)).of == "a"
        assert (index.statistics.documents, index.statistics.duplicates, sorted(index)) == (2, 1, ["a"])
        with pytest.raises(UnknownDocument, match="none can be replaced"):
            index.replace(nd.Document("c", FOX))
    if durable:
        with nd.Index(**options) as index:
            assert index.text_of("a") == EDITED
            assert index.query(FOX)[0].id == "a"


def test_a_replacement_that_cannot_be_written_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nd.Index(path=tmp_path / "news.db", now=SetClock(NOON + HOUR)) as index:
        before = index.add(nd.Document("a", FOX, NOON))
        with monkeypatch.context() as broken:
            broken.setattr(
                "neardup.stream.store.insert_statements", lambda *_, **__: [("INSERT INTO nowhere VALUES (1)", [()])]
            )
            with pytest.raises(StoreError):
                index.replace(nd.Document("a", "other words of another text", NOON + 60))
        assert index.verdict_of("a") == before
        assert (index.text_of("a"), index.query(FOX)[0].id, index.statistics.documents) == (FOX, "a", 1)
        assert index.add(nd.Document("b", EDITED, NOON + 120)).of == "a"


def test_keep_texts_needs_a_store() -> None:
    with pytest.raises(RecipeError, match="keep_texts is for an index with a store"):
        nd.Index(keep_texts=True)


def test_titles_are_kept_for_classifiers_that_compare_titles(tmp_path: Path) -> None:
    learned = make_classifier("jaccard(words:2), title", bias=3.0)
    with nd.Index(classifier=learned, path=tmp_path / "news.db", keep_texts=True) as index:
        index.add_many([nd.Document("a", FOX, title="One"), nd.Document("b", FOX, title="Two")])
        assert store_of(index).stopped_text("b") == (FOX, "Two")


RELEASE_CHOICES: list[dict[str, Any]] = [
    {},
    {"window": None},
    {"window": 10},
    {"window": "24h", "window_by": "hour"},
    {"against": "everything"},
    {"second_step": "edit >= 0.5"},
    {"classifier": make_classifier("sets", bias=1.0)},
]


def filled(index: nd.Index) -> None:
    index.add(nd.Document("a", FOX, NOON))
    assert index.add(nd.Document("b", EDITED, NOON + 60)).of == "a"


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("choices", RELEASE_CHOICES, ids=str)
def test_a_released_document_is_an_original_and_its_copies_are_stopped(
    choices: dict[str, Any], durable: bool, tmp_path: Path
) -> None:
    options = choices | {"now": SetClock(NOON + HOUR), "path": tmp_path / "news.db" if durable else None}
    with nd.Index(**options) as index:
        filled(index)
        verdict = index.release(nd.Document("b", EDITED), by="ann")
        assert (verdict.kind, verdict.of, index.verdict_of("b")) == ("original", None, verdict)
        assert (index.statistics.originals, index.statistics.duplicates, index.statistics.documents) == (2, 0, 2)
        assert list(index) == ["a", "b"]
        with pytest.raises(InputError, match="already has a verdict"):
            index.add(nd.Document("b", FOX, NOON + 61))
        if not durable:
            assert index.add(nd.Document("c", EDITED, NOON + 120)).of == "b"
    if durable:
        with nd.Index(**options) as index:
            assert list(index) == ["a", "b"]
            assert index.verdict_of("b") == verdict
            assert index.statistics.duplicates == 0
            assert index.add(nd.Document("c", EDITED, NOON + 120)).of == "b"


def test_the_store_records_who_released_a_document(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with nd.Index(path=path, now=SetClock(NOON + HOUR)) as index:
        filled(index)
        index.release(nd.Document("b", EDITED), by="ann")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((id, by, kind, of, similarity),) = connection.execute("SELECT id, by, kind, of, similarity FROM released")
        assert (id, by, kind, of) == ("b", "ann", "near", "a")
        assert similarity > 0.85
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_kept_text_need_not_be_passed_to_release() -> None:
    with nd.Index(against="everything", second_step="edit >= 0.5", now=SetClock(NOON + HOUR)) as index:
        filled(index)
        assert index.release("b").kind == "original"
    with nd.Index(now=SetClock(NOON + HOUR)) as index:
        filled(index)
        with pytest.raises(InputError, match="text of 'b' is not kept"):
            index.release("b")
        for name in ("a", "nobody"):
            with pytest.raises(UnknownDocument, match=f"'{name}' was stopped"):
                index.release(name)


def test_a_release_that_cannot_be_stored_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with nd.Index(path=tmp_path / "news.db", now=SetClock(NOON + HOUR)) as index:
        filled(index)
        with monkeypatch.context() as broken:
            broken.setattr(index.store, "record", lambda *_, **__: (_ for _ in ()).throw(StoreError("full")))
            with pytest.raises(StoreError, match="full"):
                index.release(nd.Document("b", EDITED))
        assert list(index) == ["a"]
        assert index.add(nd.Document("c", EDITED, NOON + 61)).of == "a"
        index.release(nd.Document("b", EDITED))
        assert index.add(nd.Document("d", EDITED, NOON + 62)).of == "b"
