"""The join that counts, taken for every input, against a plain comparison of all pairs."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import naive
import pytest
from hypothesis import HealthCheck, given, settings
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


def corpus(rng: random.Random, count: int, longest: int) -> list[str]:
    """Texts of few letters, so that grams are frequent; many are edited copies of others."""
    found: list[str] = []
    for _ in range(count):
        if found and rng.random() < 0.5:
            letters = list(rng.choice(found))
            for _ in range(rng.choice([0, 1, 1, 3])):
                if letters:
                    letters[rng.randrange(len(letters))] = rng.choice("abcde")
            found.append("".join(letters))
        else:
            found.append("".join(rng.choices("abcde", k=rng.choice([0, 2, 10, 40, longest]))))
    return found


def plain_pairs(texts: list[str], recipe: Recipe) -> dict[tuple[int, int], float]:
    wanted = recipe.parsed_features
    sets = [naive.grams(text, recipe.normalize, wanted.kind, wanted.n, wanted.multiset) for text in texts]
    return naive.all_pairs(sets, recipe.measure, recipe.exact_threshold, Fraction(0))


def found_pairs(result: nd.Result) -> dict[tuple[int, int], float]:
    return {(pair.left, pair.right): pair.similarity for pair in result.pairs}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    name=st.sampled_from(SET_MEASURES),
    n=st.integers(1, 4),
    multiset=st.booleans(),
    threshold=st.sampled_from([0.2, 0.5, 0.7, 0.9, 1.0]),
    seed=st.integers(0, 10**9),
    count=st.integers(0, 70),
)
def test_pairs_are_those_of_all_compared(
    name: str, n: int, multiset: bool, threshold: float, seed: int, count: int
) -> None:
    threshold = 6 * threshold if measure(name).distance else threshold
    features = f"qgrams:{n}" + (":multiset" if multiset else "")
    choices: dict[str, Any] = {"features": features, "measure": name, "threshold": threshold}
    texts = corpus(random.Random(seed), count, 150)
    for threads in (1, 2):
        result = nd.dedup(texts, threads=threads, **choices)
        assert found_pairs(result) == plain_pairs(texts, Recipe(**choices))


def test_sets_that_are_found_by_signatures() -> None:
    # Above some 1,400 features a set has keys of two features each; those of edited copies are of all sizes below.
    rng = random.Random(3)
    words = [f"w{number}" for number in range(4000)]
    texts: list[str] = []
    for size in (1200, 1500, 2500, 6000):
        own = rng.choices(words, k=size)
        for part in (1.0, 0.95, 0.8, 0.6):
            kept = own[: int(part * size)]
            texts.append(" ".join(word if rng.random() > 0.02 else rng.choice(words) for word in kept))
    choices: dict[str, Any] = {"features": "words:1", "measure": "overlap", "threshold": 0.6}
    pairs = plain_pairs(texts, Recipe(**choices))
    assert len(pairs) > 10
    assert found_pairs(nd.dedup(texts, **choices)) == pairs


def test_a_reference_is_not_compared_with_itself() -> None:
    rng = random.Random(7)
    texts = corpus(rng, 160, 100)
    choices: dict[str, Any] = {"features": "qgrams:3", "measure": "jaccard", "threshold": 0.5}
    pairs = {pair: s for pair, s in plain_pairs(texts, Recipe(**choices)).items() if pair[0] < 60}
    drops = naive.keepers(len(texts), pairs, [*range(60, len(texts)), *range(60)])
    for threads in (1, 2):
        result = nd.dedup(texts[:60], against=texts[60:], threads=threads, **choices)
        assert {drop.id: drop.similarity for drop in result.dropped} == {d: s for d, (_, s) in drops.items() if d < 60}


def test_too_many_pairs_are_those_of_kept_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 10)
    texts = corpus(random.Random(11), 200, 100)
    choices: dict[str, Any] = {"features": "qgrams:3", "measure": "jaccard", "threshold": 0.5}
    few, every = (nd.dedup(texts, pairs_per_document=limit, **choices) for limit in (0, None))
    assert not few.summary["all_pairs"]
    assert few.kept == every.kept


def test_threads_change_nothing_in_the_summary() -> None:
    texts = corpus(random.Random(5), 300, 200)
    counts = [
        json.dumps(nd.dedup(texts, features="qgrams:4", measure="overlap", threshold=0.7, threads=n).summary["search"])
        for n in (1, 2, 3, 1)
    ]
    assert len(set(counts)) == 1
