"""The join that counts overlaps, for every input, against a comparison of all pairs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import naive
import pytest
from compared import edited_texts, naive_pairs, numbered_words, pairs_of
from hypothesis import given
from hypothesis import strategies as st

import neardup as nd
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, measure
from neardup.search import join, scan_count


@pytest.fixture(autouse=True, scope="module")
def _always() -> Iterator[None]:
    """Count whatever the features are, in pieces that end within every corpus."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(join, "MIN_MEETINGS", -1)
        patch.setattr(join, "_MEETINGS_PER_FEATURE", 0)
        patch.setattr(scan_count, "_PIECE", 5)
        patch.setattr(scan_count, "_BATCH", 16)
        patch.setattr(scan_count, "_SEGMENT", 48)
        patch.setattr(scan_count, "_SAMPLE", 20)
        yield


def letter_texts(rng: random.Random, count: int) -> list[str]:
    """Texts of few letters, so that grams are frequent."""
    return edited_texts(rng, count, "abcde", sizes=(0, 2, 10, 40, 120))


@given(
    name=st.sampled_from(SET_MEASURES),
    n=st.integers(1, 4),
    multiset=st.booleans(),
    threshold=st.sampled_from([0.2, 0.5, 0.7, 0.9, 1.0]),
    seed=st.integers(0, 10**9),
    count=st.integers(0, 70),
    threads=st.integers(1, 2),
)
def test_pairs_are_those_of_all_compared(
    name: str, n: int, multiset: bool, threshold: float, seed: int, count: int, threads: int
) -> None:
    threshold = 6 * threshold if measure(name).distance else threshold
    recipe = Recipe(features=f"qgrams:{n}{':multiset' * multiset}", measure=name, threshold=threshold)
    texts = letter_texts(random.Random(seed), count)
    assert pairs_of(nd.dedup(texts, recipe=recipe, threads=threads)) == naive_pairs(texts, recipe)


def test_large_sets_are_found_by_signatures() -> None:
    # Above some 1,400 features a set has keys of two features each; edited copies are of all sizes below.
    rng = random.Random(3)
    vocabulary = numbered_words(4000)
    texts: list[str] = []
    for size in (1200, 1500, 2500, 6000):
        words = rng.choices(vocabulary, k=size)
        for part in (1.0, 0.95, 0.8, 0.6):
            copy = words[: int(part * size)]
            texts.append(" ".join(word if rng.random() > 0.02 else rng.choice(vocabulary) for word in copy))
    recipe = Recipe(features="words:1", measure="overlap", threshold=0.6)
    pairs = naive_pairs(texts, recipe)
    assert len(pairs) > 10
    assert pairs_of(nd.dedup(texts, recipe=recipe)) == pairs


def test_a_reference_is_not_compared_with_itself() -> None:
    texts = letter_texts(random.Random(7), 160)
    recipe = Recipe(features="qgrams:3", threshold=0.5)
    pairs = {pair: s for pair, s in naive_pairs(texts, recipe).items() if pair[0] < 60}
    drops = naive.keepers(len(texts), pairs, [*range(60, len(texts)), *range(60)])
    result = nd.dedup(texts[:60], against=texts[60:], threads=2, recipe=recipe)
    assert {drop.id: drop.similarity for drop in result.dropped} == {d: s for d, (_, s) in drops.items() if d < 60}


def test_too_many_pairs_are_those_of_kept_documents(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    texts = letter_texts(random.Random(11), 200)
    some, all_pairs = (
        nd.dedup(texts, pairs_per_document=limit, features="qgrams:3", threshold=0.5) for limit in (0, None)
    )
    assert not some.summary["all_pairs"]
    assert some.kept == all_pairs.kept


def test_threads_change_nothing_in_the_summary() -> None:
    texts = letter_texts(random.Random(5), 300)
    recipe = Recipe(features="qgrams:4", measure="overlap", threshold=0.7)
    counts = {json.dumps(nd.dedup(texts, recipe=recipe, threads=n).summary["search"]) for n in (1, 2, 3)}
    assert len(counts) == 1
