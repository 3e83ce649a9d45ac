"""What a store keeps of classifiers: whole, or refused; and stores from before there were any."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from saying import says
from storing import opened, stored

from neardup.classifier.evidence import Contribution
from neardup.errors import StoreError
from neardup.stream.document import Verdict

PUSHES = Contribution("jaccard(words:4)", 0.75, 1.5), Contribution("title", None, -0.25)
NEAR = Verdict("doc1", "near", "doc0", 0.9, 0.25, "", (9 * 10**8, 10**9, 10**9), 1.25, PUSHES)


def filled(path: Path) -> None:
    with opened(path) as store:
        store.record([stored(0, title="A title"), stored(1, verdict=NEAR, title="Another")])


def changed(path: Path, *statements: str) -> None:
    """Do something to a store behind its back."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


def rows(path: Path, query: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute(query).fetchall()


def test_it_can_be_read_with_any_tool(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    filled(path)
    found = rows(path, "SELECT id, score, measures FROM documents JOIN learned USING (serial)")
    assert found == [("doc1", 1.25, '{"jaccard(words:4)":[0.75,1.5],"title":[null,-0.25]}')]
    assert rows(path, "SELECT serial, title FROM titles") == [(0, "A title"), (1, "Another")]
    with opened(path) as store:
        store.forget(1)
        store.unhold(1)
    assert rows(path, "SELECT serial, title FROM titles") == []
    with opened(path) as store:
        assert store.verdict_of("doc1") == NEAR


@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("DELETE FROM learned", "row"),
        ("UPDATE learned SET score = 1.2500000001", "row"),
        ("UPDATE learned SET measures = replace(measures, '0.75', '0.85')", "row"),
        ("UPDATE learned SET measures = 7", "row"),
        ("INSERT INTO learned VALUES (0, 1.0, '{}')", "row"),
        ("DELETE FROM titles WHERE serial = 1", "text"),
        ("UPDATE titles SET title = 'Others'", "text"),
        ("INSERT OR REPLACE INTO titles VALUES (1, x'00ff')", "row"),
    ],
)
def test_what_is_not_as_it_was_written_is_refused(tmp_path: Path, statement: str, what: str) -> None:
    path = tmp_path / "news.db"
    filled(path)
    changed(path, statement)
    with (
        opened(path) as store,
        pytest.raises(StoreError, match=f"the {what} of document number [01] ") as caught,
    ):
        list(store.held())
    assert says(caught.value, "news.db", "damaged", "not what was written")


def test_a_store_from_before_classifiers_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "news.db"
    with opened(path) as store:
        store.record([stored(0), stored(1, text=None)])
    changed(path, "DROP TABLE learned", "DROP TABLE titles")
    with opened(path) as store:
        assert [row.id for held in store.held() for row in held] == ["doc0"]
        assert store.verdict_of("doc1") == stored(1).verdict
        store.record([stored(2)])
        store.forget(1)
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert rows(path, "SELECT count(*) FROM learned") == [(0,)]
