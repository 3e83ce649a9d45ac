"""Neighbours and queries of a corpus: rows, names, ranks, recipes of every kind, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
from sentences import says

from neardup.documents import corpus_of
from neardup.errors import InputError, RecipeError, UnknownDocument
from neardup.pipeline.neighbors import Neighbor, Neighbors
from neardup.pipeline.neighbors import find_neighbors as neighbors
from neardup.pipeline.pipeline import run
from neardup.pipeline.query import Answer
from neardup.pipeline.query import query_corpus as query
from neardup.recipe import Recipe, load_recipe, names
from neardup.search.matches import Similar

TEXTS = [
    "the quick brown fox jumps over the lazy dog while the old farmer sleeps",
    "a rose by any other name would smell as sweet said the poet to his friend",
    "the quick brown fox jumps over the lazy dog while the old farmer snores",
    "",
    "the quick brown fox jumps over the lazy dog",
    "a rose by any other name would smell as sweet said the poet",
]
IDS = ["fox", "rose", "fox2", "empty", "dog", "rose2"]
WORDS = Recipe(features="words:1", threshold=0.5)
NUMBERS = list(range(6))


def find_neighbors(ids: Sequence[Any] | None, recipe: Recipe = WORDS, k: int = 3, **options: Any) -> Neighbors:
    table = pa.table({"text": TEXTS} if ids is None else {"id": ids, "text": TEXTS})
    with corpus_of(table) as corpus:
        return neighbors(corpus, recipe, k, **options)


def query_corpus(text: str, recipe: Recipe = WORDS, **options: Any) -> Answer:
    with corpus_of(pa.table({"id": IDS, "text": TEXTS})) as corpus:
        return query(corpus, recipe, text, **options)


def naive_jaccard(left: str, right: str) -> float:
    a, b = set(left.split()), set(right.split())
    return len(a & b) / len(a | b) if a & b else 0.0


def test_neighbours_say_what_they_are() -> None:
    found = find_neighbors(IDS)
    assert next(iter(found)) == Neighbor("fox", 1, "fox2", naive_jaccard(TEXTS[0], TEXTS[2]))
    assert (found.documents, found.query_count) == (6, 6)
    assert [stage["name"] for stage in found.stages] == ["read and features", "neighbors"]
    assert says(repr(found), f"<{len(found)} neighbours", "of 5 documents", "among 6>")


@pytest.mark.parametrize(("ids", "queries"), [(IDS, ["rose2", "fox", "rose2"]), (NUMBERS, ["5", 0]), (None, [5, "0"])])
def test_queries_are_answered_in_their_order(ids: Sequence[Any] | None, queries: list[Any]) -> None:
    found = find_neighbors(ids, k=1, of=queries)
    expected = ["rose2", "fox"] if ids is IDS else [5, 0]
    assert [row.document for row in found] == expected
    assert found.query_count == 2


def test_a_query_for_a_document_finds_it_and_its_neighbours() -> None:
    """The nearest documents of a text that is in the corpus are that one, and then its neighbours."""
    for name in names():
        recipe = load_recipe(name)
        found = find_neighbors(IDS, recipe, k=5, of=["rose2"])
        answer = list(query_corpus(TEXTS[5], recipe, k=6))
        if not answer:
            continue
        assert Similar("rose2", 1.0) in answer, name
        others = [row for row in answer if row.id != "rose2"]
        assert others == [Similar(row.neighbor, row.similarity) for row in found], name


@pytest.mark.parametrize(
    "recipe",
    [
        WORDS,
        WORDS.changed(measure="euclidean", threshold=3.0),
        WORDS.changed(measure="containment", jaccard_floor=0.65),
        WORDS.changed(weights="idf", measure="cosine"),
        WORDS.changed(weights="tfidf", measure="euclidean", threshold=5.0),
        WORDS.changed(weights="tf", measure="weighted_jaccard"),
        WORDS.changed(signature="simhash", measure="hamming", threshold=12),
        WORDS.changed(second_step="edit >= 0.9"),
        WORDS.changed(second_step="jaccard(words:2) >= 0.6"),
    ],
    ids=lambda recipe: f"{recipe.weights} {recipe.signature} {recipe.measure} {recipe.second_step}",
)
def test_queries_find_the_pairs_of_a_run(recipe: Recipe) -> None:
    for place, text in enumerate(TEXTS):
        if not text:
            continue
        found = {row.id: row.similarity for row in query_corpus(text, recipe)}
        with corpus_of(pa.table({"id": IDS, "text": TEXTS})) as corpus:
            pairs = run(corpus, recipe).pairs.to_arrow().to_pylist()
        expected = {IDS[place]: 1.0}
        for pair in pairs:
            ends = [pair["left"], pair["right"]]
            if IDS[place] in ends:
                ends.remove(IDS[place])
                expected[ends[0]] = pair["similarity"]
        assert found == pytest.approx(expected)


@pytest.mark.parametrize(
    ("ask", "parts"),
    [
        (lambda: neighbors(corpus_of(["one"]), WORDS, 1), ("k 1 is more", "of 1 document ", "give more documents")),
        (lambda: find_neighbors(IDS, k=0), ("k 0 is below 1",)),
        (lambda: query_corpus("a", k=0), ("k 0 is below 1",)),
        (lambda: find_neighbors(IDS, first=0), ("first 0 is below 1",)),
        (lambda: find_neighbors(IDS, Recipe(measure="semantic")), ("measure 'semantic' compares embeddings",)),
        (lambda: find_neighbors(None, of=[6]), ("no document", "row number '6'")),
        (lambda: query_corpus("a\ud800"), ("not valid Unicode at character 1",)),
    ],
)
def test_queries_that_cannot_be_answered_are_refused(ask: Callable[[], object], parts: tuple[str, ...]) -> None:
    with pytest.raises((InputError, RecipeError, UnknownDocument)) as caught:
        ask()
    assert says(caught.value, *parts)
