"""Bands from a stated recall: their numbers by brute force, the recall by counting, the pairs by comparing all."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.errors import RecipeError
from neardup.features.extraction import extract_features
from neardup.features.store import FeatureStore
from neardup.recipe import Recipe
from neardup.search import lsh
from neardup.search.lsh import bands_for, bands_of, lsh_join
from neardup.search.matches import Matches


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
        ({"threshold": 0.7}, 0.7),
        ({"measure": "overlap", "threshold": 0.8}, 0.8 / 1.2),
        ({"measure": "dice", "threshold": 0.9}, 0.9 / 1.1),
        ({"measure": "cosine", "threshold": 0.9}, 0.81),
        ({"measure": "extended_jaccard", "threshold": 0.6}, 0.6),
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


def joined(texts: Sequence[str], recipe: Recipe, threads: int = 1, split: int = 5000) -> Matches:
    with FeatureStore() as store:
        for begin in range(0, len(texts), split):
            block = extract_features(
                pa.array(list(texts[begin : begin + split]), pa.large_string()), recipe, allocate=store.allocate
            )
            store.add(block)
        return lsh_join(store, recipe, threads=threads, excluded=np.zeros(len(texts), np.bool_))


def pairs_at(shared: int, own: tuple[int, int], count: int) -> list[str]:
    """Twice as many texts of words: each two have so many in common and so many of their own; no others share any."""
    texts, word = [], 0
    for _ in range(count):
        common = range(word, word + shared)
        word += shared
        for more in own:
            texts.append(" ".join(f"w{x}" for x in [*common, *range(word, word + more)]))
            word += more
    return texts


#: A threshold, and the words that two texts share and have alone, of exactly that Jaccard.
AT_THE_THRESHOLD = [(0.5, 60, (40, 20)), (0.5, 2, (1, 1)), (0.7, 14, (3, 3)), (0.8, 80, (0, 20)), (0.9, 18, (1, 1))]


@pytest.mark.parametrize(("threshold", "shared", "own"), AT_THE_THRESHOLD)
@pytest.mark.parametrize("recall", [0.8, 0.99])
def test_the_stated_recall_is_reached_at_the_threshold(
    threshold: float, shared: int, own: tuple[int, int], recall: float
) -> None:
    count = 1000
    assert Fraction(shared, shared + sum(own)) == Fraction(str(threshold))
    recipe = Recipe(features="words:1", search="lsh", threshold=threshold, recall=recall)
    found = joined(pairs_at(shared, own, count), recipe)
    stated = found.statistics["recall_at_threshold"]
    assert stated >= recall
    assert (found.right - found.left == 1).all()
    assert (found.counts == [shared, shared + own[0], shared + own[1]]).all()
    # Minima of one sketch lean against each other, so that a little more is found than of independent ones.
    assert len(found.left) / count >= stated - 4 * math.sqrt(stated * (1 - stated) / count)
    assert len(found.left) / count < 1 or recall == 0.99


def edited(count: int, seed: int) -> list[str]:
    rng = random.Random(seed)
    texts: list[str] = []
    for _ in range(count):
        if texts and rng.random() < 0.6:
            words = rng.choice(texts).split()
            for _ in range(rng.choice([0, 1, 1, 2, 3])):
                words[rng.randrange(len(words))] = f"w{rng.randrange(60)}"
        else:
            words = [f"w{rng.randrange(60)}" for _ in range(rng.choice([1, 2, 5, 12, 30]))]
        texts.append(" ".join(words))
    return [*texts, "", texts[0]]


@given(st.lists(st.text("ab ", max_size=12), max_size=12), st.sampled_from([0.3, 0.5, 1.0]), st.integers(0, 50))
def test_no_pair_is_wrong_or_listed_twice(texts: list[str], threshold: float, seed: int) -> None:
    result = nd.dedup(texts, features="qgrams:2", search="lsh", threshold=threshold, seed=seed)
    sets = [naive.grams(text, "compact", "qgrams", 2, False) for text in texts]
    expected = naive.all_pairs(sets, "jaccard", Fraction(str(threshold)))
    listed = [((p.left, p.right), p.similarity) for p in result.pairs]
    assert listed == sorted(listed)
    assert len(dict(listed)) == len(listed)
    assert dict(listed).items() <= expected.items()
    assert {pair for pair, s in expected.items() if s == 1} <= dict(listed).keys()


def test_threads_splits_and_room_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = edited(200, 3)
    recipe = Recipe(features="words:1", search="lsh", threshold=0.5)
    once = joined(texts, recipe)
    monkeypatch.setattr(lsh, "_PIECE", 13)
    monkeypatch.setattr(lsh, "_CAPACITY", 1)
    for threads, split in [(1, 400), (2, 7), (3, 1), (4, 90)]:
        again = joined(texts, recipe, threads, split)
        for name in ("representative", "left", "right", "counts"):
            assert np.array_equal(getattr(once, name), getattr(again, name)), name
        assert once.statistics == again.statistics
    assert once.statistics["pairs"] == len(once.left) > 20


@pytest.mark.parametrize(("threshold", "words"), [(0.3, 12), (0.5, 40), (0.8, 40)])
def test_as_many_candidates_come_as_were_expected(threshold: float, words: int) -> None:
    rng = random.Random(5)
    base = [f"w{i}" for i in range(words)]
    texts = []
    for _ in range(600):
        kept = [word for word in base if rng.random() < 0.6]
        texts.append(" ".join([*kept, *(f"o{rng.randrange(10**6)}" for _ in range(rng.randrange(words // 2)))]))
    found = joined(texts, Recipe(features="words:1", search="lsh", threshold=threshold))
    expected, came = found.statistics["expected_candidates"], found.statistics["candidates"]
    assert came > 200
    assert expected / 2 <= came <= 2 * expected
    assert found.statistics["distinct_sets"] == len(set(texts))
