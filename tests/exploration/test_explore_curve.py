"""What each threshold would give on the whole corpus: the figures of a run of its own, from one join."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup as nd
from neardup.documents import corpus_of
from neardup.exploration.curve import Point, ThresholdSearch
from neardup.recipe import Recipe
from neardup.runtime import Clock
from neardup.search.matches import Matches
from neardup.search.thresholds import count_at_thresholds

MEASURES = ("jaccard", "overlap", "dice", "cosine", "containment")


def search(data: Any, recipe: Recipe, lowest: float = 0.2) -> ThresholdSearch:
    return ThresholdSearch(
        corpus_of(data), recipe, lowest, threads=2, memory=None, clock=Clock(), progress=lambda *_: None
    )


def small_corpus(seed: int, count: int = 40, words: int = 12) -> list[str]:
    """Return texts with copies, edited copies, empty ones and ones of a single word."""
    drawn = random.Random(seed)
    texts: list[str] = []
    for _ in range(count):
        kind = drawn.random()
        if texts and kind < 0.1:
            texts.append(drawn.choice(texts))
        elif texts and kind < 0.6:
            some = drawn.choice(texts).split() or ["one"]
            for _ in range(drawn.choice([1, 1, 2, 4])):
                some[drawn.randrange(len(some))] = f"w{drawn.randrange(40)}"
            texts.append(" ".join(some))
        else:
            texts.append(" ".join(f"w{drawn.randrange(40)}" for _ in range(drawn.choice([0, 1, words, 2 * words]))))
    return texts


def expected(texts: Sequence[str], recipe: Recipe, threshold: Fraction) -> tuple[int, int, int, int]:
    """Pairs, dropped documents, families and the largest family at one threshold, slow and plain."""
    features = recipe.parsed_features
    sets = [naive.grams(text, recipe.normalize, features.kind, features.n, features.multiset) for text in texts]
    pairs = naive.all_pairs(sets, recipe.measure, threshold)
    places = range(len(texts))
    order = {
        "first": list(places),
        "longest": sorted(places, key=lambda d: -len(texts[d])),
        "shortest": sorted(places, key=lambda d: len(texts[d])),
    }[recipe.keep]
    families = naive.families(len(texts), pairs)
    return len(pairs), len(naive.keepers(len(texts), pairs, order)), len(families), max(map(len, families), default=0)


def figures(point: Point) -> tuple[int | None, ...]:
    return point.pairs, point.dropped, point.families, point.largest_family


@settings(max_examples=12)
@given(
    seed=st.integers(0, 1 << 30),
    features=st.sampled_from(["words:1", "words:3:multiset", "qgrams:3"]),
    measure=st.sampled_from(MEASURES),
    keep=st.sampled_from(["first", "longest", "shortest"]),
    lowest=st.sampled_from([0.05, 0.2, 0.25, 1 / 3, 0.6]),
)
def test_each_point_equals_a_plain_computation(
    seed: int, features: str, measure: str, keep: str, lowest: float
) -> None:
    texts = small_corpus(seed, 25)
    recipe = Recipe(features=features, measure=measure, keep=keep)
    with search(texts, recipe, lowest) as found:
        curve = found.curve()
    assert curve.complete
    assert (curve.documents, curve.asked) == (len(texts), lowest)
    assert [point.threshold for point in curve.points] == sorted(
        {lowest, *(k / 100 for k in range(1, 101) if k / 100 > lowest)}
    )
    for point in curve.table[::2]:
        at = Fraction(str(point.threshold)).limit_denominator(10**9)
        assert figures(point) == expected(texts, recipe, at), point


@given(
    counts=st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 50), st.integers(0, 50)).map(
            lambda c: (c[0], c[0] + c[1], c[0] + c[2])
        ),
        min_size=1,
        max_size=30,
    ),
    measure=st.sampled_from(MEASURES),
    thresholds=st.sets(st.fractions(Fraction(1, 60), 1, max_denominator=60), min_size=1, max_size=60),
    near=st.booleans(),
)
def test_pairs_are_counted_exactly_at_each_threshold(
    counts: list[tuple[int, int, int]], measure: str, thresholds: set[Fraction], near: bool
) -> None:
    if near:  # thresholds that pairs reach exactly, and ones that are hardly higher
        exact = {Fraction(o, a + b - o) for o, a, b in counts[:20]}
        thresholds |= exact | {min(one + Fraction(1, 10**9), Fraction(1)) for one in exact}
    ascending = sorted(thresholds)
    joined = [row for row in counts if naive.reaches(measure, *row, ascending[0])]
    left = np.arange(len(joined), dtype=np.int64)
    matches = Matches(np.arange(2 * len(joined)), left, left + len(joined), np.array(joined, np.int64).reshape(-1, 3))
    found = count_at_thresholds(matches, measure, np.arange(2 * len(joined)), ascending)
    assert found.pairs.tolist() == [sum(naive.reaches(measure, *row, t) for row in joined) for t in ascending]


@settings(max_examples=15)
@given(
    seed=st.integers(0, 1 << 30),
    most=st.integers(0, 60),
    own=st.sampled_from([0.2, 0.4, 0.8, 1.0]),
    measure=st.sampled_from(["jaccard", "containment"]),
)
def test_the_advised_threshold_is_exact_even_with_too_many_pairs(
    seed: int, most: int, own: float, measure: str
) -> None:
    texts = small_corpus(seed, 30)
    recipe = Recipe(features="words:1", threshold=own, measure=measure)
    distinct = list({frozenset(text.split()): text for text in texts}.values())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.exploration.curve.PAIRS_PER_DOCUMENT", 0)
        patch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", most)
        with search(texts, recipe) as found:
            curve, (findings, point) = found.curve(), found.at(recipe)
    assert curve.complete == (expected(distinct, recipe, Fraction(1, 5))[0] <= most)
    assert (curve.points == ()) == (found.pairs is None) == (not curve.complete)
    assert findings is not None
    assert point is not None
    pairs, dropped, families, largest = expected(texts, recipe, Fraction(str(own)))
    assert point.dropped == dropped == findings.dropped_mask.sum()
    if point.pairs is not None:
        assert figures(point) == (pairs, dropped, families, largest)
    assert curve.at(own) in (point, None)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [
        (Recipe(measure="euclidean", threshold=3), "measure 'euclidean' is no similarity"),
        (Recipe(second_step="edit >= 0.9"), "second_step 'edit >= 0.9' has its own threshold; leave it out"),
        (Recipe(search="lsh"), "search 'lsh' finds other pairs at each threshold; choose search 'exact'"),
    ],
    ids=["distance", "second step", "lsh"],
)
def test_recipes_without_a_curve_are_refused(recipe: Recipe, message: str) -> None:
    with pytest.raises(nd.RecipeError, match=message):
        search(["a b c"], recipe)
