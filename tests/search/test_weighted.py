"""The exact join of weighted vectors against a plain comparison of all pairs, in whole numbers and fractions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says

from neardup.errors import NeardupError, RecipeError
from neardup.features.store import Vectors
from neardup.search import weighted
from neardup.search.weighted import WEIGHTED_MEASURES, WeightedPairs, weighted_join

Vector = dict[int, int]
Found = dict[tuple[int, int], tuple[int, int, int]]
LARGEST_SQUARE = 1 << 61


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


def counts(measure: str, f: Vector, g: Vector) -> tuple[int, int, int]:
    if measure == "weighted_jaccard":
        return sum(min(f[x], g[x]) for x in f.keys() & g.keys()), sum(f.values()), sum(g.values())
    return sum(f[x] * g[x] for x in f.keys() & g.keys()), sum(x * x for x in f.values()), sum(x * x for x in g.values())


def square_or_value(measure: str, o: int, a: int, b: int) -> Fraction:
    """The measure of a pair; the square of cosine and euclidean."""
    if measure == "cosine":
        return Fraction(o * o, a * b)
    if measure == "dice":
        return Fraction(2 * o, a + b)
    if measure == "euclidean":
        return Fraction(a + b - 2 * o)
    return Fraction(o, a + b - o)


def naive_join(documents: Sequence[Vector], measure: str, threshold: Fraction) -> Found:
    found = {}
    for right, g in enumerate(documents):
        for left in range(right):
            o, a, b = counts(measure, documents[left], g)
            if o == 0:
                continue
            value = square_or_value(measure, o, a, b)
            if measure == "euclidean":
                matches = value <= threshold
            else:
                matches = value >= (threshold**2 if measure == "cosine" else threshold)
            if matches:
                found[left, right] = o, a, b
    return found


def fits(vector: Vector) -> bool:
    return sum(weight * weight for weight in vector.values()) < LARGEST_SQUARE


weights = st.one_of(st.integers(1, 4), st.integers(1, 1000), st.integers(2**28, 2**29), st.integers(2**30 - 9, 2**30))
features = st.one_of(st.integers(1, 8), st.integers(2**64 - 3, 2**64 - 1))
vectors = st.dictionaries(features, weights, max_size=7).filter(fits)
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
    values = set()
    for right, g in enumerate(documents):
        for left in range(right):
            o, a, b = counts(measure, documents[left], g)
            if o and measure != "cosine":
                values.add(square_or_value(measure, o, a, b))
    if not values:
        return
    at = data.draw(st.sampled_from(sorted(values)))
    tiny = Fraction(1, 10**40)
    for threshold in (at, at - tiny, at + tiny):
        if (measure == "euclidean" and threshold >= 0) or 0 < threshold <= 1:
            assert listed(weighted_join(stored(documents), measure, threshold)) == naive_join(
                documents, measure, threshold
            )


@settings(max_examples=30)
@given(st.lists(vectors, min_size=2, max_size=12), st.integers(1, 20), st.integers(1, 20))
def test_a_cosine_at_exactly_the_threshold_matches(documents: list[Vector], p: int, q: int) -> None:
    """Vectors of whole length, such as (3, 4) and (1, 2, 2), have cosines that are fractions."""
    documents = [*documents, {1: 3 * p, 2: 4 * p}, {1: q}, {2: q, 3: 2 * q, 4: 2 * q}, {4: p}]
    for threshold in (Fraction(3, 5), Fraction(4, 5), Fraction(2, 3), Fraction(1)):
        assert listed(weighted_join(stored(documents), "cosine", threshold)) == naive_join(
            documents, "cosine", threshold
        )


def texts_like(seed: int, count: int) -> list[Vector]:
    """Documents with a few frequent and many rare features, some of them changed copies of others."""
    generator = random.Random(seed)
    documents: list[Vector] = []
    for _ in range(count):
        if documents and generator.random() < 0.4:
            vector = dict(generator.choice(documents))
            for feature in generator.sample(sorted(vector), min(len(vector), generator.randint(0, 6))):
                if generator.random() < 0.5:
                    del vector[feature]
                else:
                    vector[feature] = max(1, vector[feature] * generator.randint(1, 4) // 2)
        else:
            vector = {}
        for _ in range(generator.randint(0, 5) if vector else generator.randint(1, 40)):
            feature = int(2000 ** generator.random()) * 0x9E3779B97F4A7C15 & (1 << 64) - 1
            vector[feature] = generator.randint(1, 1 + int(2000 / (1 + len(vector))))
        documents.append(vector)
    return documents


@pytest.mark.parametrize(
    ("measure", "threshold"),
    [
        ("weighted_jaccard", Fraction(1, 20)),
        ("weighted_jaccard", Fraction(7, 10)),
        ("cosine", Fraction(1, 20)),
        ("cosine", Fraction(4, 5)),
        ("dice", Fraction(4, 5)),
        ("extended_jaccard", Fraction(7, 10)),
        ("euclidean", Fraction(500**2)),
    ],
)
def test_many_documents(measure: str, threshold: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = texts_like(7, 160)
    expected = naive_join(documents, measure, threshold)
    assert len(expected) > 10
    one = weighted_join(stored(documents), measure, threshold)
    assert listed(one) == expected
    assert one is not None
    assert one.statistics["index_entries"] <= sum(map(len, documents))
    assert one.statistics["verified"] <= one.statistics["candidates"]
    monkeypatch.setattr(weighted, "_PIECE", 37)
    monkeypatch.setattr(weighted, "_CAPACITY", 1)
    two = weighted_join(stored(documents), measure, threshold, threads=2)
    assert listed(two) == expected
    assert two is not None
    assert two.statistics == one.statistics


def test_a_limit_of_pairs_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weighted, "_PIECE", 16)
    documents = texts_like(3, 100)
    pairs = len(naive_join(documents, "cosine", Fraction(1, 2)))
    done: list[tuple[int, int]] = []
    found = weighted_join(
        stored(documents), "cosine", Fraction(1, 2), max_pairs=pairs, progress=lambda *at: done.append(at)
    )
    assert len(listed(found)) == pairs
    assert done[-1] == (100, 100)
    assert done == sorted(done)
    for most in (0, 1, pairs - 1):
        assert weighted_join(stored(documents), "cosine", Fraction(1, 2), max_pairs=most, threads=2) is None


def test_what_cannot_be_joined_is_said() -> None:
    documents = stored([{1: 1}, {1: 2}])
    with pytest.raises(RecipeError) as caught:
        weighted_join(documents, "overlap", Fraction(1, 2))
    assert says(caught.value, "measure 'overlap'", "not take weights", "choose one of")
    for threshold in (Fraction(0), Fraction(11, 10)):
        with pytest.raises(RecipeError, match=r"is outside \(0, 1\]"):
            weighted_join(documents, "cosine", threshold)
    with pytest.raises(RecipeError, match="is negative"):
        weighted_join(documents, "euclidean", Fraction(-1))
    with pytest.raises(NeardupError, match=r"2\*\*61 or more"):
        weighted_join(stored([{1: 2**30, 2: 2**30}]), "cosine", Fraction(1, 2))
