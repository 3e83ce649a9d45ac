"""Nearest documents and matches against a plain comparison of all pairs in whole numbers and fractions."""

from __future__ import annotations

import random
from fractions import Fraction

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import NeardupError, RecipeError
from neardup.features.store import Vectors
from neardup.kernels.postings import is_closer
from neardup.recipe.measures import MEASURES, similarities
from neardup.search import nearest as nearest_module
from neardup.search.nearest import NearestDocuments, RankedDocuments, closest_documents, matching_documents, nearest

Document = dict[int, int]
Counts = tuple[int, int, int]

SETS = ["jaccard", "overlap", "dice", "cosine", "containment", "euclidean", "extended_jaccard"]
WEIGHTS = ["weighted_jaccard", "cosine", "dice", "extended_jaccard", "euclidean"]
NO_WEIGHTS = np.empty(0, np.int64)
LARGE = 1 << 28


def vectors_of(documents: list[Document], *, weighted: bool) -> Vectors:
    heads = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    features = np.array([feature for document in documents for feature in document], np.uint64)
    weights = np.array([w for document in documents for w in document.values()], np.int64)
    return Vectors(heads, features, weights if weighted else NO_WEIGHTS)


def counts_of(measure: str, f: Document, g: Document, *, weighted: bool) -> Counts:
    return naive.vector_counts(measure, f, g) if weighted else (len(f.keys() & g.keys()), len(f), len(g))


def closeness(measure: str, o: int, a: int, b: int) -> Fraction:
    """A fraction that orders pairs of one query as the measure does, the closest the greatest."""
    if measure == "cosine":
        return Fraction(o * o, a * b)
    return {
        "overlap": lambda: Fraction(o, max(a, b)),
        "dice": lambda: Fraction(2 * o, a + b),
        "containment": lambda: Fraction(o, min(a, b)),
        "euclidean": lambda: Fraction(-(a + b - 2 * o)),
    }.get(measure, lambda: Fraction(o, a + b - o))()


def naive_ranking(
    documents: list[Document], query: Document, others: list[int], measure: str, *, weighted: bool
) -> list[tuple[int, Counts]]:
    """All documents that share a feature, the closest first, of equally close ones the first."""
    counts = {d: counts_of(measure, query, documents[d], weighted=weighted) for d in others}
    sharing = [d for d in others if counts[d][0]]
    sharing.sort(key=lambda d: (-closeness(measure, *counts[d]), d))
    return [(d, counts[d]) for d in sharing]


def rows_of(found: NearestDocuments) -> list[tuple[int, int, Counts]]:
    columns = found.query.tolist(), found.document.tolist(), found.counts.tolist()
    return [(q, d, (o, a, b)) for q, d, (o, a, b) in zip(*columns, strict=True)]


def matches_of(found: RankedDocuments) -> list[tuple[int, Counts]]:
    return [(d, (o, a, b)) for d, (o, a, b) in zip(found.document.tolist(), found.counts.tolist(), strict=True)]


def zipfian(rng: random.Random, count: int, length: int, heaviest: int = 1) -> list[Document]:
    """Documents whose features are common ones often and rare ones rarely; some are edited copies."""
    documents: list[Document] = []
    for _ in range(count):
        size = rng.randint(0, length)
        document = {int(2000 ** rng.random()) * 0x9E3779B97F4A7C15 % (1 << 64): 1 for _ in range(size)}
        if documents and rng.random() < 0.3:
            document = dict(rng.choice(documents))
            for feature in rng.sample(sorted(document), len(document) // 5):
                del document[feature]
        documents.append({feature: rng.randint(1, heaviest) for feature in document})
    return documents


def check(
    documents: list[Document],
    measure: str,
    queries: list[int],
    k: int,
    *,
    weighted: bool,
    threads: int = 1,
) -> None:
    vectors = vectors_of(documents, weighted=weighted)
    found = nearest(vectors, measure, np.array(queries), k, threads=threads)
    expected = []
    for q in queries:
        others = [d for d in range(len(documents)) if d != q]
        ranking = naive_ranking(documents, documents[q], others, measure, weighted=weighted)
        expected += [(q, d, counts) for d, counts in ranking[:k]]
    assert rows_of(found) == expected
    assert found.similarity.tolist() == similarities(measure, found.counts).tolist()


small_documents = st.lists(st.dictionaries(st.integers(1, 12), st.integers(1, 5), max_size=8), min_size=1, max_size=25)


@given(documents=small_documents, data=st.data())
def test_nearest_is_what_comparing_all_gives(documents: list[Document], data: st.DataObject) -> None:
    weighted = data.draw(st.booleans())
    if weighted and not any(documents):
        return
    places = st.integers(0, len(documents) - 1)
    check(
        documents,
        data.draw(st.sampled_from(WEIGHTS if weighted else SETS)),
        data.draw(st.lists(places, unique=True)),
        data.draw(st.integers(1, len(documents) + 2)),
        weighted=weighted,
        threads=data.draw(st.sampled_from([1, 2])),
    )


@pytest.mark.parametrize(
    ("measure", "k", "heaviest"),
    [
        *((name, 2, 0) for name in SETS),
        *((name, 2, 3) for name in WEIGHTS),
        ("cosine", 2, LARGE),
        ("weighted_jaccard", 2, LARGE),
    ],
)
def test_pruning_loses_nothing(measure: str, k: int, heaviest: int) -> None:
    rng = random.Random(f"{measure} {heaviest}")
    documents = zipfian(rng, 150, 4 if heaviest == LARGE else 60, max(heaviest, 1))
    check(documents, measure, rng.sample(range(150), 20), k, weighted=heaviest > 0)


def test_equally_close_documents_come_in_their_order() -> None:
    documents = [{1: 1, 2: 1}] * 500 + [{1: 1, 2: 1, 3: 1}] * 500
    found = nearest(vectors_of(documents, weighted=False), "jaccard", np.array([999, 3]), 5)
    assert found.query.tolist() == [999] * 5 + [3] * 5
    assert found.document.tolist() == [500, 501, 502, 503, 504, 0, 1, 2, 4, 5]
    assert found.similarity.tolist() == [1.0] * 10


@pytest.mark.parametrize("threads", [1, 3])
def test_pieces_of_queries_change_nothing(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest_module, "_MIN_LISTED", 50)
    monkeypatch.setattr(nearest_module, "_QUERIES_PER_PIECE", 2)
    monkeypatch.setattr(nearest_module, "_CAPACITY", 1)
    documents = zipfian(random.Random(7), 80, 30)
    check(documents, "jaccard", list(range(79, -1, -1)), 3, weighted=False, threads=threads)


@given(
    values=st.lists(st.one_of(st.none(), st.integers(0, 7), st.integers(0, 2**64 - 1)), min_size=1, max_size=30),
    k=st.integers(1, 32),
    threads=st.sampled_from([1, 2]),
)
def test_nearest_values_are_those_of_all_compared(values: list[int | None], k: int, threads: int) -> None:
    heads = np.cumsum([0, *(value is not None for value in values)]).astype(np.int64)
    vectors = Vectors(heads, np.array([v for v in values if v is not None], np.uint64), NO_WEIGHTS)
    found = nearest(vectors, "hamming", np.arange(len(values)), k, threads=threads)
    expected = []
    for q, value in enumerate(values):
        if value is None:
            continue
        others = [(d, v) for d, v in enumerate(values) if v is not None and d != q]
        common = sorted((-(64 - (value ^ v).bit_count()), d) for d, v in others)
        expected += [(q, d, (-less, 64, 64)) for less, d in common[:k]]
    assert rows_of(found) == expected


@given(
    documents=small_documents, new=st.dictionaries(st.integers(1, 12), st.integers(1, 5), min_size=1), data=st.data()
)
def test_a_new_document_matches_what_comparing_all_gives(
    documents: list[Document], new: Document, data: st.DataObject
) -> None:
    weighted = any(documents) and data.draw(st.booleans())
    measure = data.draw(st.sampled_from(WEIGHTS if weighted else SETS))
    if measure == "euclidean":
        threshold = Fraction(data.draw(st.integers(1, 50)), 10)
    else:
        threshold = Fraction(data.draw(st.integers(1, 10)), 10)
    floor = Fraction(0 if weighted else data.draw(st.integers(0, 10)), 10)
    vectors = vectors_of(documents, weighted=weighted)
    features = np.array(list(new), np.uint64)
    weights = np.array(list(new.values()), np.int64) if weighted else NO_WEIGHTS
    ranking = naive_ranking(documents, new, list(range(len(documents))), measure, weighted=weighted)

    def reaches(counts: Counts) -> bool:
        bound = MEASURES[measure].bound(threshold, 1)
        return MEASURES[measure].reaches(*counts, bound) and MEASURES["jaccard"].reaches(*counts, floor)

    found = matching_documents(vectors, features, weights, measure, threshold, jaccard_floor=floor)
    assert matches_of(found) == [(d, counts) for d, counts in ranking if reaches(counts)]
    k = data.draw(st.integers(1, 30))
    assert matches_of(closest_documents(vectors, features, weights, measure, k)) == ranking[:k]


def test_units_of_weights_are_divided_out_of_distances() -> None:
    vectors = vectors_of([{1: 4, 2: 4}, {1: 4}, {1: 2}], weighted=True)
    found = nearest(vectors, "euclidean", np.array([0]), 2, unit=16)
    assert found.similarity.tolist() == [0.5, 1 / (1 + np.sqrt(20 / 16))]


large = st.integers(1, 2**61)
near = st.integers(-2, 2)


@given(a=large, first=st.tuples(large, large), second=st.tuples(large, large), shift=st.tuples(near, near))
@pytest.mark.parametrize("measure", SETS)
def test_the_closer_one_is_decided_by_fractions(
    measure: str, a: int, first: tuple[int, int], second: tuple[int, int], shift: tuple[int, int]
) -> None:
    o, b = first[0] % min(a, first[1]) + 1, first[1]
    for p, c in (second, (max(first[0] + shift[0], 1), max(b + shift[1], 1))):
        p = p % min(a, c) + 1
        left, right = closeness(measure, o, a, b), closeness(measure, p, a, c)
        for place, other_place in ((0, 1), (1, 0)):
            expected = left > right or (left == right and place < other_place)
            assert is_closer(MEASURES[measure].code, a, o, b, place, p, c, other_place) == expected


def test_wrong_measures_and_weights_are_refused() -> None:
    sets, heavy = (vectors_of([{1: w}, {1: 1}], weighted=w > 1) for w in (1, 1 << 31))
    query = np.array([0])
    with pytest.raises(RecipeError, match="measure 'weighted_jaccard' does not compare sets"):
        nearest(sets, "weighted_jaccard", query, 1)
    with pytest.raises(RecipeError, match="measure 'jaccard' does not compare weights"):
        nearest(heavy, "jaccard", query, 1)
    with pytest.raises(NeardupError, match=r"2\*\*61.*weights 'idf'"):
        nearest(heavy, "cosine", query, 1)
