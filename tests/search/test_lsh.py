"""Bands from a stated recall: their numbers by brute force, the recall by counting, the pairs by comparing all."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

import naive
import pytest
from compared import edited_texts, naive_pairs, numbered_words, pairs_of
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.errors import RecipeError
from neardup.features import reading
from neardup.recipe import Recipe
from neardup.search import lsh
from neardup.search.lsh import bands_for, bands_of


def naive_bands(jaccard: float, recall: float, num_perm: int) -> tuple[int, int] | None:
    """The longest rows, and for them the fewest bands, by trying all."""
    for rows in range(num_perm, 0, -1):
        for bands in range(1, num_perm // rows + 1):
            if 1 - (1 - jaccard**rows) ** bands >= recall:
                return bands, rows
    return None


@given(
    st.integers(1, 99).map(lambda x: x / 100 + 0.00017),
    st.integers(1, 999).map(lambda x: x / 1000 + 0.000013),
    st.integers(1, 150),
)
def test_bands_are_those_with_the_longest_rows(jaccard: float, recall: float, num_perm: int) -> None:
    expected = naive_bands(jaccard, recall, num_perm)
    if expected is None:
        with pytest.raises(RecipeError) as refused:
            bands_for(jaccard, recall, num_perm)
        needed = next(bands for bands in range(1, 10**7) if 1 - (1 - jaccard) ** bands >= recall)
        assert says(refused.value, f"num_perm {num_perm} is", f"recall {recall} ", f"takes {needed:,};")
        assert says(refused.value, "raise num_perm", "threshold", "search 'exact'")
        return
    plan = bands_for(jaccard, recall, num_perm)
    assert (plan.bands, plan.rows) == expected
    assert plan.jaccard == jaccard
    assert plan.recall == pytest.approx(1 - (1 - jaccard**plan.rows) ** plan.bands)
    assert plan.recall >= recall
    assert plan.bands * plan.rows <= num_perm


@pytest.mark.parametrize(
    ("choices", "jaccard"),
    [
        ({"measure": "overlap", "threshold": 0.8}, 0.8 / 1.2),
        ({"measure": "containment", "threshold": 0.9, "jaccard_floor": 0.4}, 0.4),
        ({"measure": "cosine", "threshold": 0.7, "jaccard_floor": 0.6}, 0.6),
        ({"measure": "cosine", "threshold": 0.9, "jaccard_floor": 0.6}, 0.81),
    ],
)
def test_bands_are_for_the_least_jaccard_of_a_match(choices: dict[str, Any], jaccard: float) -> None:
    recipe = Recipe(search="lsh", **choices)
    plan = bands_of(recipe)
    assert plan.jaccard == pytest.approx(jaccard)
    assert (plan.bands, plan.rows) == naive_bands(plan.jaccard, 0.99, 256)


@given(st.integers(1, 30), st.integers(1, 30), st.data(), st.sampled_from(["overlap", "dice", "cosine", "jaccard"]))
def test_no_match_has_less_than_the_least_jaccard(a: int, b: int, data: st.DataObject, name: str) -> None:
    o = data.draw(st.integers(1, min(a, b)))
    t = Fraction(naive.similarity(name, o, a, b)).limit_denominator(10**6) - Fraction(1, 10**5)
    if t > 0 and naive.reaches(name, o, a, b, t):
        least = bands_of(Recipe(search="lsh", measure=name, threshold=float(t), num_perm=4096, recall=0.01)).jaccard
        assert o / (a + b - o) >= least - 1e-9


def texts_in_pairs(shared: int, alone: tuple[int, int], count: int) -> list[str]:
    """Twice as many texts: each two share so many words and have so many alone; no others share any."""
    texts, word = [], 0
    for _ in range(count):
        common = range(word, word + shared)
        word += shared
        for size in alone:
            texts.append(" ".join(f"w{x}" for x in [*common, *range(word, word + size)]))
            word += size
    return texts


#: A threshold, and the words that two texts share and have alone, of exactly that Jaccard.
AT_THE_THRESHOLD = [(0.5, 2, (1, 1), 0.99), (0.5, 60, (40, 20), 0.8), (0.8, 80, (0, 20), 0.99)]


@pytest.mark.parametrize(("threshold", "shared", "alone", "recall"), AT_THE_THRESHOLD)
def test_the_stated_recall_is_reached_at_the_threshold(
    threshold: float, shared: int, alone: tuple[int, int], recall: float
) -> None:
    count = 1000
    result = nd.dedup(
        texts_in_pairs(shared, alone, count), features="words:1", search="lsh", threshold=threshold, recall=recall
    )
    stated = result.summary["search"]["recall_at_threshold"]
    assert stated >= recall
    assert all(right - left == 1 and similarity == threshold for left, right, similarity in result.pairs)
    # Minima of one sketch depend on each other, so slightly more are found than with independent ones.
    assert len(result.pairs) / count >= stated - 4 * math.sqrt(stated * (1 - stated) / count)
    assert len(result.pairs) / count < 1 or recall == 0.99


@given(st.lists(st.text("ab ", max_size=12), max_size=12), st.sampled_from([0.3, 0.5, 1.0]), st.integers(0, 50))
def test_no_pair_is_wrong_or_listed_twice(texts: list[str], threshold: float, seed: int) -> None:
    recipe = Recipe(features="qgrams:2", search="lsh", threshold=threshold, seed=seed)
    found, expected = pairs_of(nd.dedup(texts, recipe=recipe)), naive_pairs(texts, recipe)
    assert found.items() <= expected.items()
    assert {pair for pair, similarity in expected.items() if similarity == 1} <= found.keys()


def test_threads_pieces_and_capacities_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = edited_texts(random.Random(3), 200, numbered_words(60))
    recipe = Recipe(features="words:1", search="lsh", threshold=0.5)
    expected = nd.dedup(texts, recipe=recipe, threads=1)
    assert len(expected.pairs) > 20
    monkeypatch.setattr(lsh, "_PIECE", 13)
    monkeypatch.setattr(lsh, "_CAPACITY", 1)
    for threads, size in [(1, 4000), (2, 90), (3, 1)]:
        monkeypatch.setattr(reading, "_PIECE", size)
        found = nd.dedup(texts, recipe=recipe, threads=threads)
        assert pairs_of(found) == pairs_of(expected)
        assert found.summary["search"] == expected.summary["search"]


def test_the_number_of_candidates_is_about_the_expected_one() -> None:
    rng = random.Random(5)
    texts = []
    for _ in range(600):
        shared = [word for word in numbered_words(12) if rng.random() < 0.6]
        texts.append(" ".join([*shared, *(f"o{rng.randrange(10**6)}" for _ in range(rng.randrange(6)))]))
    statistics = nd.dedup(texts, features="words:1", search="lsh", threshold=0.3).summary["search"]
    expected, candidates = statistics["expected_candidates"], statistics["candidates"]
    assert candidates > 200
    assert expected / 2 <= candidates <= 2 * expected
    assert statistics["distinct_sets"] == len(set(texts))
