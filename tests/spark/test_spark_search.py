"""What the workers find together, against the engine in memory, for any cut of the input."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import workers
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.features.extraction import extract
from neardup.features.store import FeatureStore
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, measure, similarities
from neardup.search.engines import find_pairs
from neardup.spark import candidates as prefixes
from neardup.spark import features as packing

THRESHOLDS = [0.1, 0.3, 0.5, 0.66, 0.7, 0.8, 0.9, 0.95, 1.0]


def in_memory(texts: list[str], recipe: Recipe) -> tuple[dict[int, int], dict[tuple[int, int], Any]]:
    with FeatureStore() as store:
        store.add(extract(pa.array(texts, pa.large_string()), recipe, allocate=store.allocate))
        found = find_pairs(
            store,
            recipe,
            None,
            threads=1,
            excluded=np.zeros(len(texts), np.bool_),
            keep_order=np.arange(len(texts)),
            most_pairs=None,
            progress=lambda done, total: None,
        )
    standing = {d: int(r) for d, r in enumerate(found.representative) if r >= 0}
    similar = similarities(recipe.measure, found.counts)
    pairs = zip(found.left.tolist(), found.right.tolist(), strict=True)
    return standing, {
        pair: (*counts, s) for pair, counts, s in zip(pairs, found.counts.tolist(), similar.tolist(), strict=True)
    }


def in_order(edges: dict[tuple[int, int], tuple[int, int, int, float]]) -> dict[tuple[int, int], Any]:
    """The smaller row on the left, as in memory; the workers put the smaller set there."""
    return {
        (min(pair), max(pair)): (o, a, b, s) if pair[0] < pair[1] else (o, b, a, s)
        for pair, (o, a, b, s) in edges.items()
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


@settings(max_examples=60)
@given(
    RECIPES,
    st.integers(0, 10**9),
    st.integers(0, 60),
    st.sampled_from([1, 3, 7]),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([2, 3, 4096]),
    st.sampled_from([10, 16]),
    st.booleans(),
)
def test_any_cut_gives_what_memory_gives(
    recipe: Recipe, seed: int, count: int, partitions: int, homes: int, block: int, bits: int, sketched: bool
) -> None:
    rng = random.Random(seed)
    texts = corpus(rng, count, rng.choice([3, 10, 100]))
    cut = {"partitions": partitions, "homes": homes, "block": block, "bits": bits}
    standing, edges = workers.edges_of(texts, recipe, **cut, sketched=sketched)
    assert (standing, in_order(edges)) == in_memory(texts, recipe)


@settings(max_examples=15)
@given(st.integers(0, 10**9), st.sampled_from([0.5, 0.8, 0.95]), st.sampled_from([2, 4096]))
def test_bands_give_what_bands_in_memory_give(seed: int, threshold: float, block: int) -> None:
    rng = random.Random(seed)
    texts = corpus(rng, 50, 30)
    recipe = Recipe(features="words:1", threshold=threshold, search="lsh", num_perm=128, recall=0.9)
    standing, edges = workers.edges_of(texts, recipe, homes=3, block=block)
    assert (standing, in_order(edges)) == in_memory(texts, recipe)


@pytest.mark.parametrize("recipe", ["supershingle", "manber", "spotsigs", "checksum"])
def test_signatures_that_are_sets_are_sets(recipe: str) -> None:
    from neardup.recipe.named import load_recipe

    texts = corpus(random.Random(recipe), 60, 40)
    wanted = load_recipe(recipe)
    standing, edges = workers.edges_of(texts, wanted)
    assert (standing, in_order(edges)) == in_memory(texts, wanted)


def test_a_hot_key_is_cut_into_cells_and_nothing_is_lost() -> None:
    # One word in all documents, and many documents of few words: every prefix holds frequent words.
    rng = random.Random(1)
    texts = ["common " + " ".join(rng.sample("abcdefghij", rng.choice([1, 2, 3]))) for _ in range(400)]
    recipe = Recipe(features="words:1", threshold=0.5)
    expected = in_memory(texts, recipe)
    for block in (3, 16, 4096):
        standing, edges = workers.edges_of(texts, recipe, block=block, homes=4)
        assert (standing, in_order(edges)) == expected


def test_small_blobs_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup.spark import verify as items
    from neardup.spark import verify as verifying

    texts = corpus(random.Random(5), 80, 12)
    recipe = Recipe(features="words:1", threshold=0.4)
    expected = workers.edges_of(texts, recipe, homes=4)
    for module, name, value in (
        (packing, "FLUSH_BYTES", 100),
        (packing, "BLOB_BYTES", 64),
        (items, "BLOB_BYTES", 64),
        (verifying, "_PAIRS_AT_A_TIME", 3),
        (prefixes, "_AT_A_TIME", 2),
    ):
        monkeypatch.setattr(module, name, value)
    assert workers.edges_of(texts, recipe, homes=4) == expected
    assert workers.edges_of(texts, recipe, homes=4, sketched=True) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 200])
def test_labels_are_one_for_each_partition(count: int) -> None:
    labels = packing.labels(count)
    assert len(np.unique(labels)) == count
    assert np.array_equal(np.sort(packing._hash_of(labels.astype(np.int64)).astype(np.int64) % count), np.arange(count))


def test_blobs_give_back_their_arrays() -> None:
    arrays = [np.arange(5, dtype="<u8"), np.arange(5, dtype="<i4") - 2, np.linspace(0, 1, 5)]
    blob = pa.py_buffer(packing.pack(*arrays))
    for given_back, array in zip(packing.unpack(blob, ("<u8", "<i4", "<f8")), arrays, strict=True):
        assert np.array_equal(given_back, array)
