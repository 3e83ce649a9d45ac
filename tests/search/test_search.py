"""The engines through the interface: simhashes, weighted vectors and distances against all pairs by the formulas."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import naive
import naive_features
import pyarrow as pa
import pytest
from compared import edited_texts, keepers_of, pairs_of
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.features.extraction import extract_features
from neardup.features.reading import gather_statistics
from neardup.recipe import Recipe
from neardup.text.stop_words import stop_words

WORDS = ["fox", "dog", "owl", "ran", "sat", "the", "a", "élan", "hen", "東"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=12)
Vector = Mapping[Any, float]


def corpus(count: int) -> list[str]:
    """Texts in which some words are frequent."""
    rng = random.Random(6)
    words = [f"w{min(rng.randrange(60), rng.randrange(60))}" for _ in range(240)]
    return edited_texts(rng, count, words, sizes=(0, 1, 3, 10, 40), edits=(0, 1, 1, 2, 4))


def pairs_by(count: int, pair: Callable[[int, int], float | None]) -> dict[tuple[int, int], float]:
    """All pairs of so many documents for which ``pair`` has a similarity."""
    found = {}
    for i in range(count):
        for j in range(i + 1, count):
            value = pair(i, j)
            if value is not None:
                found[i, j] = value
    return found


def simhashes(texts: Sequence[str], recipe: Recipe) -> list[int | None]:
    gathered = corpus_of(list(texts), text_column=None, id_column=None, order_column=None)
    statistics = gather_statistics(gathered, recipe) if recipe.needs_statistics else None
    block = extract_features(pa.array(texts, pa.large_string()), recipe, statistics)
    values = iter(block.features.tolist())
    return [next(values) if size else None for size in block.sizes.tolist()]


def by_hamming(hashes: Sequence[int | None], k: int) -> dict[tuple[int, int], float]:
    def pair(i: int, j: int) -> float | None:
        left, right = hashes[i], hashes[j]
        if left is None or right is None or naive.hamming(left, right) > k:
            return None
        return 1 - naive.hamming(left, right) / 64

    return pairs_by(len(hashes), pair)


@pytest.mark.parametrize(("weights", "k"), [("", 0), ("idf", 10)])
def test_hamming_pairs_are_those_of_all_simhashes(weights: str, k: int) -> None:
    texts = corpus(150)
    recipe = Recipe(features="words:1", weights=weights, signature="simhash", measure="hamming", threshold=k)
    result = nd.dedup(texts, recipe=recipe, threads=3)
    expected = by_hamming(simhashes(texts, recipe), k)
    assert pairs_of(result) == expected
    assert len({value for value in expected.values() if value < 1}) > min(k, 1) - 1
    assert keepers_of(result) == naive.keepers(len(texts), expected, range(len(texts)))
    assert result.summary["undecidable"] == texts.count("")


def vectors(texts: Sequence[str], recipe: Recipe) -> list[Vector]:
    """Each text's features with their weights in floating point, by the definitions."""
    stops = stop_words("" if recipe.stop_words == "none" else recipe.stop_words)
    spec = "words:1" if recipe.features.startswith("terms") else recipe.features
    documents = [naive_features.features(text, spec, recipe.normalize, stops) for text in texts]
    df = naive_features.frequencies(documents)
    weighted: list[Vector] = [naive_features.weights(d, recipe.weights, df, len(texts)) for d in documents]
    if recipe.clip:
        kept = {gram for gram in df if naive_features.passes_clip(recipe.clip, df[gram], len(texts))}
        weighted = [{gram: w for gram, w in vector.items() if gram in kept} for vector in weighted]
    return weighted


def by_formula(weighted: Sequence[Vector], name: str, t: float, margin: float) -> dict[tuple[int, int], float]:
    """All pairs that reach t by at least a margin (are short of it by at most that, if it is negative)."""

    def pair(i: int, j: int) -> float | None:
        if not weighted[i].keys() & weighted[j].keys():
            return None
        value = naive.vector_measure(name, weighted[i], weighted[j])
        if name == "euclidean":
            return 1 / (1 + value) if value <= t - margin else None
        return value if value >= t + margin else None

    return pairs_by(len(weighted), pair)


WEIGHTED = ["cosine", "dice", "extended_jaccard", "euclidean", "weighted_jaccard"]


@given(
    TEXTS,
    st.sampled_from(WEIGHTED),
    st.sampled_from(["tf", "idf", "tfidf"]),
    st.sampled_from([0.313, 0.617, 0.913]),
    st.sampled_from(["words:1", "words:2", "qgrams:2", "skips:2:1"]),
    st.sampled_from(["", "", "df:1:0.6"]),
)
def test_weighted_pairs_are_those_of_the_formula(
    texts: list[str], name: str, weights: str, t: float, features: str, clip: str
) -> None:
    texts, t = [*texts, "pony pig", "pony cow"], 3 * t if name == "euclidean" else t
    recipe = Recipe(features=features, weights=weights, clip=clip, measure=name, threshold=t)
    found, weighted = pairs_of(nd.dedup(texts, recipe=recipe)), vectors(texts, recipe)
    # Rounding to fixed point moves a weight by 2**-17: pairs as close to the threshold as that may go either way.
    sure = by_formula(weighted, name, t, 1e-3)
    possible = by_formula(weighted, name, t, -1e-3)
    assert sure.keys() <= found.keys() <= possible.keys()
    # Equal vectors differ by a root of rounding errors at most.
    assert found == pytest.approx({pair: possible[pair] for pair in found}, abs=1e-3 if "idf" in weights else 1e-9)


LOOSE: list[tuple[dict[str, Any], list[float]]] = [
    ({"weights": "tf", "measure": "euclidean"}, [4.0, 2.4495, 0.5]),
    ({"signature": "simhash", "measure": "hamming"}, [12, 7, 3]),
    ({"weights": "tfidf", "measure": "cosine"}, [0.3, 0.5, 1.0]),
]


@pytest.mark.parametrize(("choices", "thresholds"), LOOSE, ids=[" ".join(choices.values()) for choices, _ in LOOSE])
def test_a_stricter_threshold_of_a_result_equals_another_run(choices: dict[str, Any], thresholds: list[float]) -> None:
    texts, choices = corpus(150), {"features": "words:1"} | choices
    loose = nd.dedup(texts, threshold=thresholds[0], **choices)
    sizes = []
    for threshold in thresholds:
        again, narrowed = nd.dedup(texts, threshold=threshold, **choices), loose.at(threshold)
        assert pairs_of(narrowed) == pairs_of(again)
        assert (narrowed.kept, narrowed.families) == (again.kept, again.families)
        assert narrowed.summary["fingerprint"] == again.summary["fingerprint"]
        sizes.append(len(narrowed.pairs))
    assert sizes == sorted(set(sizes), reverse=True)
    relation = "above" if choices["measure"] in ("euclidean", "hamming") else "below"
    with pytest.raises(RecipeError) as refused:
        loose.at(thresholds[1]).at(thresholds[0])
    assert says(refused.value, f"threshold {thresholds[0]} is {relation}", f"run's {thresholds[1]}:", "run again")
