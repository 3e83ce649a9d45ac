"""All pairs of a sample against fractions: how many lie between which hundredths, and which are close."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import combinations

import naive
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.exploration.views import all_pairs
from neardup.features.store import Vectors
from neardup.kernels.bounds import COSINE, EUCLIDEAN, JACCARD
from neardup.kernels.postings import similarity_hundredths

Document = dict[int, int]
Counts = tuple[int, int, int]

SETS = ["jaccard", "overlap", "dice", "cosine", "containment", "euclidean", "extended_jaccard"]
WEIGHTS = ["weighted_jaccard", "cosine", "dice", "extended_jaccard", "euclidean"]
LARGE = 1 << 28

small = st.dictionaries(st.integers(1, 12), st.integers(1, 5), max_size=8)
large = st.dictionaries(st.integers(1, 4), st.integers(LARGE - 3, LARGE), max_size=4)


def extract_vectors(documents: list[Document], *, weighted: bool) -> Vectors:
    heads = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    features = np.array([feature for document in documents for feature in document], np.uint64)
    weights = np.array([w for document in documents for w in document.values()], np.int64)
    return Vectors(heads, features, weights if weighted else np.empty(0, np.int64))


def counts_of(measure: str, f: Document, g: Document, *, weighted: bool) -> Counts:
    shared = f.keys() & g.keys()
    if not weighted:
        return len(shared), len(f), len(g)
    if measure == "weighted_jaccard":
        return sum(min(f[x], g[x]) for x in shared), sum(f.values()), sum(g.values())
    return sum(f[x] * g[x] for x in shared), sum(w * w for w in f.values()), sum(w * w for w in g.values())


def reaches(measure: str, o: int, a: int, b: int, bound: Fraction, unit: int = 1) -> bool:
    """Whether a similarity, or what is shown in the place of a distance, is a bound or more."""
    if measure != "euclidean":
        return naive.reaches(measure, o, a, b, bound)
    return bound <= 1 and Fraction(a + b - 2 * o, unit) <= (1 / bound - 1) ** 2


def naive_pairs(
    documents: list[Document], measure: str, *, weighted: bool, unit: int = 1
) -> tuple[int, list[int], list[int]]:
    zero, counts, edges = 0, [0] * 100, [0] * 101
    for f, g in combinations(documents, 2):
        o, a, b = counts_of(measure, f, g, weighted=weighted)
        if o == 0:
            zero += 1
            continue
        # The number of hundredths that the similarity reaches, and of those that it passes.
        reached = sum(reaches(measure, o, a, b, Fraction(i, 100), unit) for i in range(1, 101))
        edge = reached > 0 and not reaches(measure, o, a, b, Fraction(reached, 100) + Fraction(1, 10**30), unit)
        counts[reached - edge] += 1
        edges[reached] += edge
    return zero, counts, edges


@given(st.lists(small, max_size=9), st.sampled_from(SETS), st.integers(0, 101))
def test_pairs_of_sets_are_counted_exactly(documents: list[Document], measure: str, least: int) -> None:
    found = all_pairs(extract_vectors(documents, weighted=False), measure, least=least)
    counted = found.zero, found.counts.tolist(), found.edges.tolist()
    assert counted == naive_pairs(documents, measure, weighted=False)
    close = []
    for (i, f), (j, g) in combinations(enumerate(documents), 2):
        o, a, b = counts_of(measure, f, g, weighted=False)
        if least <= 100 and o and (least == 0 or reaches(measure, o, a, b, Fraction(least, 100))):
            close.append((i, j, naive.similarity(measure, o, a, b)))
    rows = [*zip(*(column.tolist() for column in found.close), strict=True)]
    assert [row[:2] for row in rows] == [row[:2] for row in close]
    assert [row[2] for row in rows] == pytest.approx([row[2] for row in close])


@given(st.lists(small | large, max_size=7), st.sampled_from(WEIGHTS), st.sampled_from([1, 7, LARGE]))
def test_pairs_of_weights_are_counted_exactly(documents: list[Document], measure: str, unit: int) -> None:
    found = all_pairs(extract_vectors(documents, weighted=True), measure, unit=unit)
    counted = found.zero, found.counts.tolist(), found.edges.tolist()
    assert counted == naive_pairs(documents, measure, weighted=True, unit=unit)


numbers = st.integers(1, (1 << 61) - 1)


@given(numbers, numbers, numbers)
@example(1, 5, 5)
@example((1 << 61) // 100 * 7, (1 << 61) // 100 * 50, (1 << 61) // 100 * 57)
def test_large_numbers_fall_into_the_right_bin(o: int, more: int, others: int) -> None:
    a, b = min(o + more, (1 << 61) - 1), min(o + others, (1 << 61) - 1)
    for measure, power, similarity in (
        (JACCARD, 1, Fraction(o, a + b - o)),
        (COSINE, 2, Fraction(o * o, a * b)),
    ):
        q, edge = similarity_hundredths(measure, o, a, b, 1)
        assert Fraction(q, 100) ** power < similarity <= Fraction(q + 1, 100) ** power
        assert edge == (similarity == Fraction(q + 1, 100) ** power)


@given(st.integers(1, 1 << 61), st.integers(1, 1 << 32))
@example(16, 1)
@example(1 << 40, 1 << 38)
def test_distances_fall_into_the_right_bin(square: int, unit: int) -> None:
    q, edge = similarity_hundredths(EUCLIDEAN, 1, square + 1, 1, unit)
    squared, last = Fraction(square, unit), (Fraction(100, q + 1) - 1) ** 2
    # s = 1 / (1 + d) > q/100 where d < 100/q - 1.
    assert q == 0 or squared < (Fraction(100, q) - 1) ** 2
    assert squared >= last
    assert edge == (squared == last)


def test_threads_and_buffer_sizes_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(1)
    documents = [{dice.randrange(1, 300): dice.randrange(1, 4) for _ in range(dice.randrange(40))} for _ in range(700)]
    for weighted, measure in ((False, "jaccard"), (True, "weighted_jaccard"), (True, "cosine")):
        vectors = extract_vectors(documents, weighted=weighted)
        one = all_pairs(vectors, measure, least=1)
        with monkeypatch.context() as changed:
            changed.setattr("neardup.exploration.views._PAIR_CAPACITY", 1)
            three = all_pairs(vectors, measure, least=1, threads=3)
        assert one.zero == three.zero
        for left, right in zip((*one[1:3], *one.close), (*three[1:3], *three.close), strict=True):
            assert left.tolist() == right.tolist()
        assert one.zero + one.counts.sum() == 700 * 699 // 2
        assert len(one.close.left) == one.counts[1:].sum() + one.edges[1]


@given(st.lists(st.one_of(st.none(), st.integers(0, (1 << 64) - 1)), max_size=9))
def test_simhashes_are_compared_by_their_bits(values: list[int | None]) -> None:
    sizes = [value is not None for value in values]
    features = np.array([value for value in values if value is not None], np.uint64)
    vectors = Vectors(np.cumsum([0, *sizes]).astype(np.int64), features, np.empty(0, np.int64))
    found = all_pairs(vectors, "hamming", least=50)
    zero, counts, close = 0, [0] * 100, []
    for (i, one), (j, other) in combinations(enumerate(values), 2):
        alike = 0 if one is None or other is None else 64 - (one ^ other).bit_count()
        if alike:
            counts[-(-100 * alike // 64) - 1] += 1
        zero += alike == 0
        if alike >= 32:
            close.append((i, j, alike / 64))
    assert (found.zero, found.counts.tolist()) == (zero, counts)
    assert [*zip(*(column.tolist() for column in found.close), strict=True)] == close
