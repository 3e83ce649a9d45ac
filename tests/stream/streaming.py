"""Streams for the tests of the flow: a clock set by hand, recipes, failing stores, and indexes with their twins."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from classifiers import DATED, FACTS, SETS, WEIGHED, make_classifier
from hypothesis import strategies as st
from naive_window import Expected, NaiveClassifierIndex, NaiveIndex

import neardup as nd
from neardup.recipe import Recipe, load_recipe
from neardup.search import window as window_module
from neardup.search import window_index
from neardup.stream.store import Store

FOX = "The quick brown fox jumps over the lazy dog while the old farmer sleeps under a tall green tree"
EDITED = f"{FOX} today"
ROSE = "A rose by any other name would smell as sweet, said the poet to his friend in the garden at dawn"

#: Noon of a Thursday, and the seconds of an hour and of a day.
NOON = int(datetime(1987, 2, 26, 12, tzinfo=UTC).timestamp())
HOUR, DAY = 3600, 86400

#: Whether long runs are allowed: more examples, longer streams.
AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"


def examples(count: int) -> int:
    """Return the number of examples to try: all in long runs, else a quarter."""
    return count if AT_LENGTH else max(count // 4, 2)


#: Recipes of every kind that a window accepts, for short texts.
RECIPES = {
    "default": load_recipe("default"),
    "ddd": load_recipe("ddd"),
    "jaccard": load_recipe("jaccard"),
    "checksum": load_recipe("checksum"),
    "spotsigs": load_recipe("spotsigs"),
    "supershingle": load_recipe("supershingle"),
    "manber": load_recipe("manber"),
    "simhash": load_recipe("simhash"),
    "words": Recipe(features="words:1", threshold=0.5),
    "multiset": Recipe(features="words:1:multiset", normalize="whitespace", threshold=2 / 3),
    "overlap": Recipe(features="words:1", measure="overlap", threshold=0.6),
    "dice": Recipe(features="words:1", measure="dice", threshold=0.8),
    "cosine": Recipe(features="words:1", measure="cosine", threshold=0.5),
    "containment": Recipe(features="words:1", measure="containment", threshold=0.75, jaccard_floor=0.4),
    "contained": Recipe(features="words:1", measure="containment", threshold=1.0),
    "euclidean": Recipe(features="words:1", measure="euclidean", threshold=2),
    "positional": Recipe(features="qgrams:3:positional", measure="dice", threshold=0.5),
    "minhash": Recipe(features="words:1", signature="minhash:8", measure="overlap", threshold=0.5),
    "supershingles": Recipe(features="words:1", signature="supershingle:3:2", measure="overlap", threshold=0.33),
    "bits": Recipe(features="words:1", signature="simhash", weights="tf", measure="hamming", threshold=12),
    "spots": Recipe(features="spots:1:1:multiset", threshold=0.5),
    "windows": Recipe(features="windows:4:2", threshold=0.5),
    "clauses": Recipe(features="clauses", threshold=0.5),
    "lsh": Recipe(features="words:1", search="lsh", threshold=0.6, num_perm=16, recall=0.8),
    "edit": Recipe(features="words:1", threshold=0.3, second_step="edit >= 0.6"),
    "bigrams": Recipe(features="words:1", threshold=0.3, second_step="jaccard(words:2) >= 0.5"),
}

#: Linear and RBF, with cuts that let some candidates pass and some not.
CLASSIFIERS = {
    "sets": make_classifier(SETS),
    "sets, bent": make_classifier(SETS, "rbf", gamma=0.7, bias=-0.1),
    "facts": make_classifier(FACTS, bias=-0.2),
    "facts, bent": make_classifier(FACTS, "rbf", gamma=0.4, bias=0.0),
    "weights": make_classifier(WEIGHED),
    "everything": make_classifier(SETS).without_cut(),
}
#: A classifier that compares times and titles.
TIMED = "times"
_TIMED = make_classifier(DATED, weights=(1.0, -0.6, 0.5), bias=0.0)

WORDS = ["fox", "dog", "the", "is", "Owl", "ran.", "said", "東京"]
LONG = [[f"{start}{x}" for x in range(40)] for start in ("a", "b")]


@st.composite
def variants(draw: st.DrawFn) -> str:
    """One of two long texts, cut, lengthened, or with one or two other words."""
    words = list(draw(st.sampled_from(LONG)))[: draw(st.sampled_from([40, 40, 39, 34, 20]))]
    for at in draw(st.lists(st.integers(0, 39), max_size=2)):
        words[at % len(words)] = "other"
    return " ".join(words + draw(st.lists(st.sampled_from(WORDS), max_size=3)))


SHORT = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
TEXTS = st.one_of(SHORT, SHORT, variants(), st.sampled_from(["", "...", "fox dog", "Fox, dog!", "the fox is said"]))


class SetClock:
    """A clock that returns the seconds that a test has set."""

    def __init__(self, time: float = NOON) -> None:
        self.time = time

    def __call__(self) -> float:
        return self.time


def documents(texts: Sequence[str], times: Sequence[Any] | None = None) -> list[nd.Document]:
    """Return documents named d0, d1, ... in order of arrival."""
    stamps = [None] * len(texts) if times is None else times
    return [nd.Document(f"d{i}", text, stamp) for i, (text, stamp) in enumerate(zip(texts, stamps, strict=True))]


def plain_verdict(verdict: nd.Verdict) -> Expected:
    """Return a verdict without its time."""
    return Expected(verdict.id, verdict.kind, verdict.of, verdict.similarity, verdict.flag, verdict.counts)


def id_similarities(found: Iterable[Any]) -> list[tuple[str, float]]:
    """Return the answer to a query as plain tuples."""
    return [(similar.id, similar.similarity) for similar in found]


def assert_same_verdicts(found: Sequence[nd.Verdict], expected: Sequence[Expected], *, counts: bool = True) -> None:
    """Check verdicts against the twin; ``counts=False`` if a second step has its own counts."""
    assert len(found) == len(expected)
    for verdict, expected_verdict in zip(found, expected, strict=True):
        plain = plain_verdict(verdict)
        assert (plain.counts is None) == (plain.kind == "original")
        assert plain == (expected_verdict if counts else expected_verdict._replace(counts=plain.counts))


def make_index(recipe: str | Recipe, **choices: Any) -> nd.Index:
    """Return an index by the recipe or the classifier of that name."""
    if recipe == TIMED or recipe in CLASSIFIERS:
        return nd.Index(classifier=_TIMED if recipe == TIMED else CLASSIFIERS[str(recipe)], **choices)
    return nd.Index(RECIPES.get(recipe, recipe) if isinstance(recipe, str) else recipe, **choices)


def index_and_twin(recipe: str | Recipe, **choices: Any) -> tuple[nd.Index, NaiveIndex]:
    """Return an index and its twin with the same choices."""
    index = make_index(recipe, **choices)
    twin = {key: value for key, value in choices.items() if key != "path"}
    if index.classifier is not None:
        return index, NaiveClassifierIndex(index.classifier, **twin)
    return index, NaiveIndex(index.recipe, **twin)


def window_ids(index: nd.Index, twin: NaiveIndex) -> list[str]:
    """Return the ids in the window of an index, without those whose segment has not expired yet."""
    inside = set(twin)
    return [id for id in index if id in inside]


def small_epochs(patch: pytest.MonkeyPatch, least: int) -> None:
    """Unless it is 0: make epochs begin and end after a few documents, with signatures for sets of this size."""
    if least:
        patch.setattr(window_module, "_STAGES", {0: 64, 3: 64, 5: 128})
        patch.setattr(window_module, "_LAST_STAGE", 5)
        patch.setattr(window_module, "_MIN_EPOCH", 6)
        patch.setattr(window_module, "_REBUILD_RATE", 2)
        patch.setattr(window_index, "_SLICE_DOCUMENTS", 2)
        small_plans(patch, least)


def small_plans(patch: pytest.MonkeyPatch, least: int) -> None:
    """Use signatures for sets of this size and larger, with buckets that are soon full."""
    patch.setattr(window_index, "_MIN_SIGNATURE_SIZE", least)
    patch.setattr(window_index, "initial_bucket_count", lambda slots, signatures: 2)


class FailingConnection:
    """The connection of a store, where one statement fails."""

    def __init__(self, connection: sqlite3.Connection, fails: str) -> None:
        self.connection, self.fails = connection, fails

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)

    def execute(self, statement: str, *values: Any) -> Any:
        if statement == "COMMIT" and self.fails == "commit":
            self.fails = ""
            raise sqlite3.OperationalError("disk I/O error")
        result = self.connection.execute(statement, *values)
        if statement == "COMMIT" and self.fails == "after":
            self.fails = ""
            raise KeyboardInterrupt
        return result

    def executemany(self, statement: str, values: Any) -> Any:
        if self.fails == "write":
            self.fails = ""
            raise sqlite3.OperationalError("database or disk is full")
        return self.connection.executemany(statement, values)


@contextlib.contextmanager
def failing(store: Store | None, fails: str, connection: type[FailingConnection] = FailingConnection) -> Iterator[None]:
    """Make the next write of a store fail: during it (``write``), at its ``commit``, or just ``after`` it."""
    assert store is not None
    original = store._connection
    store._connection = connection(original, fails)  # type: ignore[assignment]
    try:
        yield
    finally:
        store._connection = original
