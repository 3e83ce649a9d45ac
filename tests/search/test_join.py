"""The exact join against a plain comparison of all pairs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import naive
import numpy as np
import pyarrow as pa
import pytest
from compared import PairsByPlace, edited_texts, naive_pairs
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.records import Names
from neardup.features.extraction import extract_features
from neardup.features.store import Block, FeatureStore
from neardup.keep.keepers import build_graph, find_families, find_keepers
from neardup.keep.pairs import Pairs
from neardup.kernels.bounds import largest_partner, required_overlap, smallest_partner
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, exact_fraction, measure, parse_threshold, rule, similarities
from neardup.runtime import Memory
from neardup.search import join as join_module
from neardup.search.join import JoinRequest, self_join
from neardup.search.matches import Matches, set_representatives

ALPHABETS = ["ab", "abcd", "abcdefghijklmnopqrst"]
THRESHOLDS = [0.1, 0.3, 0.5, 0.66, 0.7, 0.8, 0.9, 0.95, 1.0]


def joined(
    texts: list[str],
    recipe: Recipe,
    threads: int = 1,
    split: int = 3,
    budget: int | None = None,
    **choices: Any,
) -> Matches:
    with FeatureStore(Memory(budget)) as store:
        for begin in range(0, len(texts), split):
            part = pa.array(texts[begin : begin + split], pa.large_string())
            store.add(extract_features(part, recipe, allocate=store.allocate))
        request = JoinRequest(set_representatives(store), **choices)
        return self_join(store, rule(recipe.measure, recipe.threshold, recipe.jaccard_floor), request, threads=threads)


def rows_of(found: Matches, recipe: Recipe) -> PairsByPlace:
    names = Names(np.arange(len(found.representative)), None)
    pairs = Pairs(names, found.representative, found.left, found.right, similarities(recipe.measure, found.counts))
    rows = [tuple(pair) for pair in pairs]
    assert rows == sorted(set(rows))
    assert len(rows) == len(pairs)
    return {(left, right): similarity for left, right, similarity in rows}


def random_texts(rng: random.Random, count: int, words: int, alphabet: str) -> list[str]:
    return edited_texts(rng, count, ["".join(rng.choices(alphabet, k=rng.randint(1, 9))) for _ in range(words)])


def recipe_of(kind: str, n: int, multiset: bool, name: str, threshold: float, floor: float) -> Recipe:
    """A recipe of any set measure; a distance takes another threshold and no floor."""
    distance = measure(name).distance
    return Recipe(
        features=f"{kind}:{n}" + (":multiset" if multiset else ""),
        measure=name,
        threshold=round(6 * threshold, 4) if distance else threshold,
        jaccard_floor=0.0 if distance else floor,
    )


RECIPES = st.builds(
    recipe_of,
    st.sampled_from(["words", "qgrams"]),
    st.integers(1, 6),
    st.booleans(),
    st.sampled_from(SET_MEASURES),
    st.sampled_from(THRESHOLDS),
    st.sampled_from([0.0, 0.0, 0.25, 0.6]),
)


@given(RECIPES, st.integers(0, 10**9), st.sampled_from(ALPHABETS), st.integers(0, 60), st.integers(1, 3))
def test_pairs_are_those_of_naive(recipe: Recipe, seed: int, alphabet: str, count: int, threads: int) -> None:
    rng = random.Random(seed)
    texts = random_texts(rng, count, rng.choice([3, 10, 100]), alphabet)
    assert rows_of(joined(texts, recipe, threads), recipe) == naive_pairs(texts, recipe)


@pytest.mark.parametrize("name", SET_MEASURES)
@pytest.mark.parametrize("threshold", [0.05, 1 / 3, 0.8, 1.0])
@pytest.mark.parametrize("floor", [0.0, 0.4])
def test_bounds_are_those_of_naive(name: str, threshold: float, floor: float) -> None:
    bound = rule(name, threshold, floor)
    t, f = parse_threshold(name, threshold), exact_fraction(floor, "floor", zero=True)
    sizes = range(1, 25)
    needed = {
        (a, b): naive.required_overlap(name, a, b, t, f) if _possible(name, a, b, t, f) else 99
        for a in sizes
        for b in sizes
    }
    for a in sizes:
        for b in sizes:
            assert min(required_overlap(bound, a, b), min(a, b) + 1) == min(needed[a, b], min(a, b) + 1)
        partners = [m for m in range(1, a + 1) if needed[m, a] <= m]
        assert smallest_partner(bound, a) == partners[0]
        for shared in range(1, a + 1):
            fitting = [m for m in partners if needed[m, a] <= shared]
            assert largest_partner(bound, a, shared, partners[0]) == (fitting[-1] if fitting else partners[0] - 1)


def _possible(name: str, a: int, b: int, t: Fraction, floor: Fraction) -> bool:
    o = min(a, b)
    return naive.reaches(name, o, a, b, t) and (floor == 0 or naive.reaches("jaccard", o, a, b, floor))


def test_bounds_are_exact_for_huge_sets() -> None:
    for name in SET_MEASURES:
        for text in ("9999.5", "0.3333", "4000") if measure(name).distance else ("0.7", "0.333333333", "0.999999999"):
            bound = rule(name, float(text))
            for a, b in [(10**7, 10**7 + 1), (99_999_989, 100_000_007), (7, 10**8)]:
                o = required_overlap(bound, a, b)
                assert naive.reaches(name, o, a, b, Fraction(text))
                assert o == 1 or not naive.reaches(name, o - 1, a, b, Fraction(text))


def keepers_of(found: Matches, recipe: Recipe, order: Sequence[int]) -> dict[int, tuple[int, float]]:
    """Each dropped document with its keeper and their similarity."""
    similarity = similarities(recipe.measure, found.counts)
    graph = build_graph(len(order), found.left, found.right, similarity)
    kept = find_keepers(found.representative, graph, np.array(order, np.int64))
    return {int(d): (int(kept.keeper[d]), float(kept.similarity[d])) for d in np.flatnonzero(kept.dropped)}


@given(RECIPES, st.integers(0, 10**9), st.sampled_from(ALPHABETS), st.integers(1, 50))
def test_keepers_and_families_are_those_of_naive(recipe: Recipe, seed: int, alphabet: str, count: int) -> None:
    rng = random.Random(seed)
    texts = random_texts(rng, count, rng.choice([3, 10, 100]), alphabet)
    order = rng.sample(range(count), count)
    expected = naive_pairs(texts, recipe)
    found = joined(texts, recipe)
    dropped = keepers_of(found, recipe, order)
    assert dropped == naive.keepers(count, expected, order)
    # Pairs of kept documents decide as much, where all would be too many.
    few = joined(texts, recipe, keep_order=np.array(order, np.int64), max_pairs=-1)
    assert not few.complete or few.statistics["sets_with_enough_shared_features"] == 0
    assert keepers_of(few, recipe, order) == dropped
    grouped = find_families(found.representative, found.left, found.right, similarities(recipe.measure, found.counts))
    groups = naive.families(count, expected)
    assert [np.flatnonzero(grouped.family == f + 1).tolist() for f in range(len(grouped.documents))] == groups
    for f, members in enumerate(groups):
        inside = [s for (i, j), s in expected.items() if i in members and j in members]
        assert (grouped.pairs[f], grouped.smallest[f]) == (len(inside), min(inside))
        assert grouped.mean[f] == pytest.approx(sum(inside) / len(inside))


def test_a_repeated_set_meets_sets_kept_after_its_first_document() -> None:
    texts = ["a b c d e f", "a b c d x y", "b c d x y", "a b c d x y"]
    recipe = Recipe(features="words:1", threshold=0.5)
    few = joined(texts, recipe, max_pairs=0)
    assert not few.complete
    assert keepers_of(few, recipe, range(4)) == {1: (0, 0.5), 3: (2, 5 / 6)}


def test_threads_pieces_and_spilling_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_module, "SETS_AT_A_TIME", 7)
    monkeypatch.setattr(join_module, "_CAPACITY", 1)
    texts = random_texts(random.Random(5), 400, 30, "abcdef")
    recipe = Recipe(features="words:2", threshold=0.5)
    first = joined(texts, recipe)
    for threads, split, budget in [(2, 3, None), (3, 50, 0), (1, 1, 250_000_100), (4, 400, 320_000_000)]:
        again = joined(texts, recipe, threads, split, budget)
        for name in ("representative", "left", "right", "counts"):
            assert np.array_equal(getattr(first, name), getattr(again, name)), name
    assert rows_of(first, recipe) == naive_pairs(texts, recipe)


def test_many_copies_cost_their_number_not_its_square() -> None:
    bodies = [" ".join(f"w{d}x{i}" for i in range(40)) for d in range(10)]
    texts = [bodies[i % 10] for i in range(5_000)]
    found = joined(texts, Recipe(), split=1000)
    assert found.statistics["distinct_sets"] == 10
    assert len(found.left) == 0
    pairs = Pairs(Names(np.arange(len(texts)), None), found.representative, found.left, found.right, np.zeros(0))
    assert len(pairs) == 10 * (500 * 499 // 2)


def test_a_shared_footer_makes_no_candidates() -> None:
    rng = random.Random(1)
    footer = " ".join(f"legal{i}" for i in range(300))
    texts = [
        " ".join(f"w{rng.randrange(10**9)}" for _ in range(rng.randint(130, 300))) + " " + footer for _ in range(1000)
    ]
    found = joined(texts, Recipe(threshold=0.7), split=100)
    assert found.statistics["candidates"] == 0
    assert found.statistics["longest_list"] < 50


def colliding(rng: random.Random, count: int) -> list[int]:
    """Features that the index of prefixes takes for one another, some of each kind: bucket and tag have 26 bits."""
    inverse = pow(0xD6E8FEB86659FD93, -1, 2**64)
    kinds = [rng.getrandbits(26) for _ in range(max(count // 5, 1))]
    # A key drops the last eight bits of a feature.
    return [((rng.choice(kinds) << 38) + (rng.getrandbits(20) << 8)) * inverse % 2**64 | 1 for _ in range(count)]


@given(st.integers(0, 10**9), st.sampled_from([0.3, 0.5, 0.7, 0.8]), st.sampled_from(["jaccard", "overlap"]))
def test_keys_that_are_equal_by_chance_rule_nothing_out(seed: int, threshold: float, name: str) -> None:
    rng = random.Random(seed)
    pool = colliding(rng, 40)
    distinct = {frozenset(rng.sample(pool, rng.randint(2, 14))) for _ in range(30)}
    distinct |= {frozenset([*rng.sample(sorted(one), len(one) - 1), rng.choice(pool)]) for one in distinct}
    sets = list(distinct)
    features = np.array([feature for one in sets for feature in sorted(one, key=lambda f: (f * 7) % 1009)], np.uint64)
    sizes = np.array([len(one) for one in sets], np.int64)
    digests = np.arange(2 * len(sets), dtype=np.uint64).reshape(-1, 2)
    with FeatureStore() as store:
        stored = store.allocate(len(features))
        stored[:] = features
        store.add(Block(stored, sizes, digests, digests, sizes, np.empty(0, np.int64)))
        found = self_join(store, rule(name, threshold, 0.0), JoinRequest(set_representatives(store)))
    grams = [frozenset((feature,) for feature in one) for one in sets]
    expected = naive.all_pairs(grams, name, exact_fraction(threshold, "threshold"))
    assert list(zip(found.left.tolist(), found.right.tolist(), strict=True)) == sorted(expected)
