"""Stopped documents that are taken back: originals from then on, in the window, whatever else there is."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from flow_classifiers import make_classifier
from streaming import HOUR, NOON, SetClock

import neardup as nd
from neardup.errors import InputError, StoreError, UnknownDocument

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
EDITED = f"{FOX} today"
CHOICES: list[dict[str, Any]] = [
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
@pytest.mark.parametrize("choices", CHOICES, ids=str)
def test_it_is_an_original_and_its_copies_are_stopped(choices: dict[str, Any], durable: bool, tmp_path: Path) -> None:
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


def test_the_store_notes_who_and_when(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with nd.Index(path=path, now=SetClock(NOON + HOUR)) as index:
        filled(index)
        index.release(nd.Document("b", EDITED), by="ann")
    with contextlib.closing(sqlite3.connect(path)) as connection:
        ((id, by, kind, of, similarity),) = connection.execute("SELECT id, by, kind, of, similarity FROM released")
        assert (id, by, kind, of) == ("b", "ann", "near", "a")
        assert similarity > 0.85
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_text_that_is_kept_need_not_be_given() -> None:
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


def test_a_release_that_cannot_be_stored_leaves_everything_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
