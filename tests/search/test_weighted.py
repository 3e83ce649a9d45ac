"""The exact join of weighted vectors against a plain comparison of all pairs, in whole numbers and fractions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.errors import NeardupError
from neardup.features.store import Vectors
from neardup.search import weighted
from neardup.search.weighted import WEIGHTED_MEASURES, WeightedPairs, weighted_join

Vector = dict[int, int]
Found = dict[tuple[int, int], tuple[int, int, int]]


def stored(documents: Sequence[Vector]) -> Vectors:
    return Vectors(
        np.cumsum([0] + [len(d) for d in documents]).astype(np.int64),
        np.array([feature for d in documents for feature in d], np.uint64),
        np.array([weight for d in documents for weight in d.values()], np.int64),
    )


def listed(result: WeightedPairs | None) -> Found:
    assert result is not None
    assert result.left.dtype == result.right.dtype == result.counts.dtype == np.int64
    pairs = list(zip(result.left.tolist(), result.right.tolist(), strict=True))
    assert pairs == sorted(set(pairs))
    assert all(left < right for left, right in pairs)
    assert result.statistics["pairs"] == len(pairs)
    return {pair: (o, a, b) for pair, (o, a, b) in zip(pairs, result.counts.tolist(), strict=True)}


def exact_value(measure: str, o: int, a: int, b: int) -> Fraction:
    """The measure of a pair; the square of cosine and euclidean."""
    return {
        "cosine": lambda: Fraction(o * o, a * b),
        "dice": lambda: Fraction(2 * o, a + b),
        "euclidean": lambda: Fraction(a + b - 2 * o),
    }.get(measure, lambda: Fraction(o, a + b - o))()


def naive_join(documents: Sequence[Vector], measure: str, threshold: Fraction) -> Found:
    found = {}
    for right, g in enumerate(documents):
        for left in range(right):
            counts = naive.vector_counts(measure, documents[left], g)
            if counts[0]:
                value = exact_value(measure, *counts)
                if value <= threshold if measure == "euclidean" else value >= threshold ** (1 + (measure == "cosine")):
                    found[left, right] = counts
    return found


weights = st.one_of(st.integers(1, 4), st.integers(1, 1000), st.integers(2**28, 2**29), st.integers(2**30 - 9, 2**30))
features = st.one_of(st.integers(1, 8), st.integers(2**64 - 3, 2**64 - 1))
vectors = st.dictionaries(features, weights, max_size=7).filter(
    lambda vector: sum(weight * weight for weight in vector.values()) < 1 << 61
)
collections = st.lists(vectors, max_size=12)
thresholds = st.one_of(st.fractions(Fraction(1, 20), 1, max_denominator=1000), st.sampled_from([Fraction(1, 20), 1]))


@given(collections, st.sampled_from(WEIGHTED_MEASURES), thresholds, st.sampled_from([1, 2]))
def test_all_pairs_that_reach_a_threshold_are_found_and_no_others(
    documents: list[Vector], measure: str, threshold: Fraction, threads: int
) -> None:
    threshold = Fraction(threshold)
    if measure == "euclidean":
        threshold *= 2**60
    # The order of features in a document does not matter.
    shuffled = [dict(sorted(document.items(), key=lambda item: item[1] % 7)) for document in documents]
    result = weighted_join(stored(shuffled), measure, threshold, threads=threads)
    assert listed(result) == naive_join(documents, measure, threshold)


@given(collections, st.sampled_from(WEIGHTED_MEASURES), st.data())
def test_a_pair_at_exactly_the_threshold_matches_and_one_just_below_does_not(
    documents: list[Vector], measure: str, data: st.DataObject
) -> None:
    pairs = naive_join(documents, measure, Fraction(1 << 80 if measure == "euclidean" else 0))
    values = {exact_value(measure, *counts) for counts in pairs.values() if measure != "cosine"}
    if not values:
        return
    at = data.draw(st.sampled_from(sorted(values)))
    tiny = Fraction(1, 10**40)
    for threshold in (at, at - tiny, at + tiny):
        if (measure == "euclidean" and threshold >= 0) or 0 < threshold <= 1:
            assert listed(weighted_join(stored(documents), measure, threshold)) == naive_join(
                documents, measure, threshold
            )


@given(st.lists(vectors, min_size=2, max_size=12), st.integers(1, 20), st.integers(1, 20))
def test_a_cosine_at_exactly_the_threshold_matches(documents: list[Vector], p: int, q: int) -> None:
    """Vectors of whole length, such as (3, 4) and (1, 2, 2), have cosines that are fractions."""
    documents = [*documents, {1: 3 * p, 2: 4 * p}, {1: q}, {2: q, 3: 2 * q, 4: 2 * q}, {4: p}]
    for threshold in (Fraction(3, 5), Fraction(4, 5), Fraction(2, 3), Fraction(1)):
        assert listed(weighted_join(stored(documents), "cosine", threshold)) == naive_join(
            documents, "cosine", threshold
        )


def edited_vectors(seed: int, count: int) -> list[Vector]:
    """Vectors with a few frequent and many rare features, some of them changed copies of others."""
    rng = random.Random(seed)
    documents: list[Vector] = []
    for _ in range(count):
        vector = dict(rng.choice(documents)) if documents and rng.random() < 0.4 else {}
        for feature in rng.sample(sorted(vector), min(len(vector), rng.randint(0, 6))):
            vector[feature] = vector[feature] * rng.randint(0, 4) // 2
            if not vector[feature]:
                del vector[feature]
        for _ in range(rng.randint(0, 5) if vector else rng.randint(1, 40)):
            feature = int(2000 ** rng.random()) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
            vector[feature] = rng.randint(1, 1 + int(2000 / (1 + len(vector))))
        documents.append(vector)
    return documents


@pytest.mark.parametrize(
    ("measure", "threshold"),
    [
        ("weighted_jaccard", Fraction(7, 10)),
        ("cosine", Fraction(1, 20)),
        ("euclidean", Fraction(500**2)),
    ],
)
def test_threads_pieces_and_capacities_change_nothing(
    measure: str, threshold: Fraction, monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = edited_vectors(7, 160)
    expected = naive_join(documents, measure, threshold)
    assert len(expected) > 10
    first = weighted_join(stored(documents), measure, threshold)
    monkeypatch.setattr(weighted, "_PIECE", 37)
    monkeypatch.setattr(weighted, "_CAPACITY", 1)
    second = weighted_join(stored(documents), measure, threshold, threads=2)
    assert listed(first) == listed(second) == expected
    assert first is not None
    assert second is not None
    assert first.statistics == second.statistics
    assert first.statistics["index_entries"] <= sum(map(len, documents))
    assert first.statistics["verified"] <= first.statistics["candidates"]


def test_the_search_stops_at_a_limit_of_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "_PIECE", 16)
    documents = stored(edited_vectors(3, 100))
    pairs = len(listed(weighted_join(documents, "cosine", Fraction(1, 2))))
    reports: list[tuple[int, int]] = []
    found = weighted_join(
        documents, "cosine", Fraction(1, 2), max_pairs=pairs, progress=lambda *report: reports.append(report)
    )
    assert len(listed(found)) == pairs
    assert reports == sorted(reports)
    assert reports[-1] == (100, 100)
    for limit in (0, pairs - 1):
        assert weighted_join(documents, "cosine", Fraction(1, 2), max_pairs=limit, threads=2) is None


def test_too_heavy_documents_are_refused() -> None:
    with pytest.raises(NeardupError, match=r"2\*\*61 or more"):
        weighted_join(stored([{1: 2**30, 2: 2**30}]), "cosine", Fraction(1, 2))
