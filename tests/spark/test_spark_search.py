"""The pairs of all workers, against the engine in memory, for any partitions of the input."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import workers
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.features.extraction import extract_features
from neardup.features.store import FeatureStore
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, Rule, measure, rule, similarities
from neardup.search.engines import PairSearch
from neardup.spark import features, search

THRESHOLDS = [0.1, 0.3, 0.5, 0.66, 0.7, 0.8, 0.9, 0.95, 1.0]


def in_memory(texts: list[str], recipe: Recipe) -> tuple[dict[int, int], dict[tuple[int, int], Any]]:
    with FeatureStore() as store:
        store.add(extract_features(pa.array(texts, pa.large_string()), recipe, allocate=store.allocate))
        find = PairSearch(store=store, statistics=None, keep_order=np.arange(len(texts)), threads=1)
        found = find(recipe, None, lambda done, total: None)
    representatives = {d: int(r) for d, r in enumerate(found.representative) if r >= 0}
    similar = similarities(recipe.measure, found.counts)
    pairs = zip(found.left.tolist(), found.right.tolist(), strict=True)
    return representatives, {
        pair: (*counts, s) for pair, counts, s in zip(pairs, found.counts.tolist(), similar.tolist(), strict=True)
    }


def corpus(rng: random.Random, count: int, words: int) -> list[str]:
    """Copies, near copies, chains of edits, empty and one-word texts, several scripts."""
    letters = rng.choice(["ab", "abcdefgh", "абвгд", "語文字漢", "نصوص", "é̈ñö"])
    vocabulary = ["".join(rng.choices(letters, k=rng.randint(1, 6))) for _ in range(words)]
    texts: list[str] = []
    for _ in range(count):
        tokens = rng.choices(vocabulary, k=rng.choice([0, 1, 2, 5, 12, 40]))
        if texts and rng.random() < 0.6:
            tokens = rng.choice(texts[-9:]).split()
            for _ in range(rng.choice([0, 0, 1, 1, 3])):
                if tokens:
                    tokens[rng.randrange(len(tokens))] = rng.choice(vocabulary)
        texts.append(rng.choice([" ", ", "]).join(tokens))
    return texts


def recipe_of(features: str, name: str, threshold: float, floor: float) -> Recipe:
    distance = measure(name).distance
    return Recipe(
        features=features,
        measure=name,
        threshold=round(6 * threshold, 4) if distance else threshold,
        jaccard_floor=0.0 if distance else floor,
    )


RECIPES = st.builds(
    recipe_of,
    st.sampled_from(["words:1", "words:2", "words:3:multiset", "qgrams:3", "qgrams:2:multiset", "skips:2:1"]),
    st.sampled_from(SET_MEASURES),
    st.sampled_from(THRESHOLDS),
    st.sampled_from([0.0, 0.0, 0.25, 0.6]),
)


@settings(max_examples=40)
@given(
    RECIPES,
    st.integers(0, 10**9),
    st.integers(0, 60),
    st.sampled_from([1, 3, 7]),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([10, 16]),
)
def test_any_partitions_give_the_pairs_of_memory(
    recipe: Recipe, seed: int, count: int, partitions: int, parts: int, bits: int
) -> None:
    rng = random.Random(seed)
    texts = corpus(rng, count, rng.choice([3, 10, 100]))
    assert workers.find_edges(texts, recipe, partitions=partitions, parts=parts, bits=bits) == in_memory(texts, recipe)


@settings(max_examples=15)
@given(st.integers(0, 10**9), st.sampled_from([0.5, 0.8, 0.95]))
def test_bands_give_the_pairs_of_bands_in_memory(seed: int, threshold: float) -> None:
    rng = random.Random(seed)
    texts = corpus(rng, 50, 30)
    recipe = Recipe(features="words:1", threshold=threshold, search="lsh", num_perm=128, recall=0.9)
    assert workers.find_edges(texts, recipe, parts=3) == in_memory(texts, recipe)


@pytest.mark.parametrize("recipe", ["supershingle", "manber", "spotsigs", "checksum"])
def test_signatures_that_are_sets_give_the_pairs_of_memory(recipe: str) -> None:
    from neardup.recipe.named import load_recipe

    texts = corpus(random.Random(recipe), 60, 40)
    set_rule = load_recipe(recipe)
    assert workers.find_edges(texts, set_rule) == in_memory(texts, set_rule)


def test_the_size_of_pieces_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(random.Random(5), 80, 12)
    recipe = Recipe(features="words:1", threshold=0.4)
    expected = workers.find_edges(texts, recipe)
    for name, value in (("_PIECE_BYTES", 50), ("_SLICE", 1 << 10)):
        monkeypatch.setattr(features, name, value)
    assert workers.find_edges(texts, recipe, partitions=3) == expected


RULES = st.sampled_from(
    [rule(name, 3.0 if measure(name).distance else threshold) for name in SET_MEASURES for threshold in (0.2, 0.7, 1.0)]
)


ENTRIES = st.tuples(st.integers(1, 4), st.integers(0, 3), st.integers(0, 12), st.integers(1, 12), st.integers(1, 12))


@settings(max_examples=80)
@given(RULES, st.lists(st.tuples(ENTRIES, st.booleans()), max_size=40), st.booleans(), st.integers(1, 5))
def test_pairs_of_a_key_are_those_of_a_plain_loop(
    set_rule: Rule, drawn: list[tuple[Any, bool]], has_sides: bool, room: int
) -> None:
    # A set stands at a key once, and has one size; some are of a reference.
    sizes = {entry[2]: entry[3] for entry, _ in drawn}
    once = {
        (key, row): (
            key,
            before,
            row + features.FIRST_REFERENCE_ROW * (row > 8),
            sizes[row],
            min(sizes[row], rest) * (1 if own else -1),
        )
        for (key, before, row, _, rest), own in drawn
    }
    entries = list(once.values())
    rows = sorted({entry[2] for entry in entries})
    second = {row: row % 2 == 0 for row in rows}
    some = search.Sides(np.array(rows, np.int64), np.array(list(second.values())))
    batch = pa.record_batch({"data": [np.array(entries, search._ENTRY).tobytes()]})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_PAIRS_PER_BATCH", room)
        found = list(
            search.candidate_batches(set_rule, workers.local_value(some) if has_sides else None, None, iter([batch]))
        )
    pairs = sorted({(row["left"], row["right"]) for row in workers.rows_of([found])})
    assert pairs == workers.naive_candidates(entries, set_rule, second if has_sides else None)


def test_candidates_beyond_the_limit_are_cut_off_with_a_marker() -> None:
    entries = np.array([(7, 0, row, 5, 5) for row in range(5)], search._ENTRY)
    batch = pa.record_batch({"data": [entries.tobytes()]})
    set_rule = rule("jaccard", 0.9)
    every = workers.rows_of([list(search.candidate_batches(set_rule, None, 10, iter([batch])))])
    assert [(row["left"], row["right"]) for row in every] == [(i, j) for i in range(5) for j in range(i + 1, 5)]
    cut_off = workers.rows_of([list(search.candidate_batches(set_rule, None, 4, iter([batch])))])
    assert cut_off == [*every[:4], {"left": -1, "right": -1}]
