"""A store that is opened where something else than its recipe has changed, through the index."""

from __future__ import annotations

import contextlib
import sqlite3
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import stop_words

import neardup as nd
from neardup.errors import StoreError
from neardup.text import stop_words as lists

NEWS = "The harbour board voted to widen the eastern channel at a cost of forty million crowns"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "news.db"


@pytest.fixture
def other_words(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let the list of English stop words be that of another version of the package."""
    own = stop_words.get_stop_words
    with monkeypatch.context() as patch:
        yield patch.setattr(stop_words, "get_stop_words", lambda code: own(code) + ["harbour"] * (code == "en"))
    lists.stop_words.cache_clear()
    lists._of_language.cache_clear()


def filled(path: Path, **choices: Any) -> None:
    with contextlib.closing(nd.Index(path=path, window=None, **choices)) as index:
        index.add(nd.Document("a", NEWS, "2024-05-01T08:00"))


def again(path: Path, **choices: Any) -> str:
    with contextlib.closing(nd.Index(path=path, window=None, **choices)) as index:
        return index.add(nd.Document("b", NEWS, "2024-05-01T09:00")).kind


def refused(path: Path, **choices: Any) -> str:
    before = path.read_bytes()
    with pytest.raises(StoreError) as caught:
        nd.Index(path=path, window=None, **choices)
    assert path.read_bytes() == before
    assert "\n" not in str(caught.value)
    assert "name another path" in str(caught.value)
    return str(caught.value)


def test_a_python_with_another_version_of_unicode_goes_on(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    for version in ("15.0.0", "15.1.0", "99.0.0"):
        monkeypatch.setattr(unicodedata, "unidata_version", version)
        assert again(path.rename(path.with_name(version)).rename(path)) == "exact"
        path.unlink()
        filled(path)


def test_a_python_whose_tables_differ_is_told_so(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(path)
    monkeypatch.setattr(unicodedata, "unidata_version", "99.0.0")
    monkeypatch.setattr("neardup.text.normalize.kernel_tables", lambda name: [np.zeros(3, int)])
    assert "Unicode tables differ" in refused(path)


def test_other_stop_words_are_told_of(path: Path, request: pytest.FixtureRequest) -> None:
    filled(path, stop_words="en")
    lists.stop_words.cache_clear()
    lists._of_language.cache_clear()
    request.getfixturevalue("other_words")
    assert "other stop words" in refused(path, stop_words="en")


def test_other_stop_words_are_nothing_to_a_recipe_without_them(path: Path, request: pytest.FixtureRequest) -> None:
    filled(path)
    request.getfixturevalue("other_words")
    assert again(path) == "exact"


def test_another_recipe_is_still_told_of(path: Path) -> None:
    filled(path)
    assert "another recipe" in refused(path, threshold=0.5)


def test_a_store_of_an_older_neardup_is_told_of(path: Path) -> None:
    filled(path)
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '9b149c4753197aee' WHERE name = 'fingerprint'")
        connection.execute("DELETE FROM meta WHERE name LIKE 'depends on %'")
    assert "older neardup" in refused(path)
