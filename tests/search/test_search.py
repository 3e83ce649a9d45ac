"""The engines through the interface: simhashes, weighted vectors and distances against all pairs by the formulas."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import naive
import naive_features
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.features import reading
from neardup.features.extraction import extract_features
from neardup.features.reading import gather_statistics
from neardup.recipe import Recipe
from neardup.text.stop_words import stop_words

WORDS = ["fox", "dog", "owl", "ran", "sat", "the", "a", "élan", "hen", "東"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join), max_size=9)
Vector = Mapping[Any, float]


def corpus(count: int, seed: int = 6, words: int = 60) -> list[str]:
    rng = random.Random(seed)
    # Some words are frequent, as in texts.
    vocabulary = [f"w{min(rng.randrange(words), rng.randrange(words))}" for _ in range(4 * words)]
    texts: list[str] = []
    for _ in range(count):
        if texts and rng.random() < 0.6:
            chosen = rng.choice(texts).split()
            for _ in range(rng.choice([0, 1, 1, 2, 4])):
                if chosen:
                    chosen[rng.randrange(len(chosen))] = rng.choice(vocabulary)
        else:
            chosen = rng.choices(vocabulary, k=rng.choice([0, 1, 3, 10, 40]))
        texts.append(" ".join(chosen))
    return texts


def found_by(result: nd.Result) -> dict[tuple[int, int], float]:
    listed = [(p.left, p.right, p.similarity) for p in result.pairs]
    assert listed == sorted(listed)
    assert len(listed) == len(result.pairs)
    return {(left, right): similarity for left, right, similarity in listed}


def pairs_of(count: int, pair: Callable[[int, int], float | None]) -> dict[tuple[int, int], float]:
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
        one, other = hashes[i], hashes[j]
        if one is None or other is None or naive.hamming(one, other) > k:
            return None
        return 1 - naive.hamming(one, other) / 64

    return pairs_of(len(hashes), pair)


@pytest.mark.parametrize("weights", ["", "tf", "idf", "tfidf"])
@pytest.mark.parametrize("k", [0, 3, 10])
def test_hamming_pairs_are_those_of_all_simhashes(weights: str, k: int) -> None:
    texts = corpus(250)
    recipe = Recipe(features="words:1", weights=weights, signature="simhash", measure="hamming", threshold=k)
    result = nd.dedup(texts, recipe=recipe, threads=1)
    expected = by_hamming(simhashes(texts, recipe), k)
    assert found_by(result) == expected
    assert len({value for value in expected.values() if value < 1}) > min(k, 1) - 1
    dropped = naive.keepers(len(texts), expected, range(len(texts)))
    assert {d.id: (d.keeper, d.similarity) for d in result.dropped} == dropped
    assert result.summary["undecidable"] == texts.count("")
    assert found_by(nd.dedup(texts, recipe=recipe, threads=3)) == expected


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

    return pairs_of(len(weighted), pair)


WEIGHTED = ["cosine", "dice", "extended_jaccard", "euclidean", "weighted_jaccard"]


def check_weighted(texts: list[str], recipe: Recipe, threads: int = 1) -> dict[tuple[int, int], float]:
    result = nd.dedup(texts, recipe=recipe, threads=threads)
    found = found_by(result)
    weighted = vectors(texts, recipe)
    # Rounding to fixed point moves a weight by 2**-17; what is as close to the threshold as that may go either way.
    sure = by_formula(weighted, recipe.measure, recipe.threshold, 1e-3)
    possible = by_formula(weighted, recipe.measure, recipe.threshold, -1e-3)
    assert sure.keys() <= found.keys() <= possible.keys()
    # Two that are the same differ by a root of rounding errors at most.
    assert found == pytest.approx(
        {pair: possible[pair] for pair in found}, abs=1e-3 if "idf" in recipe.weights else 1e-9
    )
    return sure


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("weights", ["tf", "idf", "tfidf"])
@pytest.mark.parametrize("clip", ["", "df:2:0.3"])
def test_weighted_pairs_are_those_of_the_formula(name: str, weights: str, clip: str) -> None:
    threshold = 6.5 if name == "euclidean" else 0.6
    recipe = Recipe(features="words:1", weights=weights, clip=clip, measure=name, threshold=threshold)
    assert len(check_weighted(corpus(150), recipe, threads=2)) > 20


@given(
    TEXTS,
    st.sampled_from(WEIGHTED),
    st.sampled_from(["tf", "idf", "tfidf"]),
    st.sampled_from([0.313, 0.617, 0.913]),
    st.sampled_from(["words:1", "words:2", "qgrams:2", "skips:2:1"]),
)
def test_weighted_pairs_of_any_texts(texts: list[str], name: str, weights: str, t: float, features: str) -> None:
    t = 3 * t if name == "euclidean" else t
    check_weighted(texts, Recipe(features=features, weights=weights, measure=name, threshold=t))


@pytest.mark.parametrize("threshold", [0.5, 1.0, 1.5, 2.0, 2.5, 3.0])
@pytest.mark.parametrize("features", ["words:1", "words:1:multiset"])
def test_euclidean_pairs_of_sets(features: str, threshold: float) -> None:
    texts = corpus(200)
    result = nd.dedup(texts, features=features, measure="euclidean", threshold=threshold)
    bags: list[Counter[Any]] = [Counter(naive_features.features(text, features, "words")) for text in texts]
    sets = [frozenset(bag) for bag in bags]
    expected = naive.all_pairs(sets, "euclidean", Fraction(str(threshold)))
    assert found_by(result) == expected
    assert len(expected) > 10
    for i, j in expected:
        assert len(sets[i] ^ sets[j]) <= threshold**2


DISTANCES: list[tuple[dict[str, Any], list[float]]] = [
    ({"features": "words:1", "measure": "euclidean"}, [3.0, 2.5, 1.7320, 1.0, 0.5]),
    ({"features": "words:1", "weights": "tf", "measure": "euclidean"}, [4.0, 3.0, 2.4495, 2.4494, 1.0, 0.5]),
    ({"features": "words:1", "weights": "tfidf", "measure": "euclidean"}, [9.0, 6.0, 3.3, 0.5]),
    ({"features": "words:1", "signature": "simhash", "measure": "hamming"}, [12, 7, 3, 1, 0]),
]


@pytest.mark.parametrize(("choices", "thresholds"), DISTANCES, ids=[str(choices) for choices, _ in DISTANCES])
def test_stricter_is_less_for_a_distance(choices: dict[str, Any], thresholds: list[float]) -> None:
    texts = corpus(150)
    loose = nd.dedup(texts, threshold=thresholds[0], **choices)
    sizes = []
    for threshold in thresholds:
        again, narrowed = nd.dedup(texts, threshold=threshold, **choices), loose.at(threshold)
        assert found_by(narrowed) == found_by(again)
        assert narrowed.kept == again.kept
        assert narrowed.families == again.families
        assert narrowed.summary["fingerprint"] == again.summary["fingerprint"]
        sizes.append(len(narrowed.pairs))
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) >= 3
    strict = loose.at(thresholds[1])
    asked = thresholds[0]
    with pytest.raises(RecipeError) as refused:
        strict.at(asked)
    assert says(refused.value, f"threshold {asked} is above", f"run's {thresholds[1]}:", "unknown")
    assert str(refused.value).endswith(f"run again with threshold={asked}")


@pytest.mark.parametrize("name", WEIGHTED[:3] + WEIGHTED[4:])
def test_a_stricter_threshold_of_weights_equals_another_run(name: str) -> None:
    texts = corpus(150)
    choices: dict[str, Any] = {"features": "words:1", "weights": "tfidf", "measure": name}
    loose = nd.dedup(texts, threshold=0.3, **choices)
    for threshold in (0.3, 0.5, 0.77, 1.0):
        again = nd.dedup(texts, threshold=threshold, **choices)
        assert found_by(loose.at(threshold)) == found_by(again)


@pytest.mark.parametrize(
    "choices",
    [
        {"weights": "tfidf", "measure": "cosine", "threshold": 0.6},
        {"weights": "idf", "measure": "weighted_jaccard", "threshold": 0.5},
        {"features": "terms:5", "weights": "tfidf", "measure": "euclidean", "threshold": 5},
        {"signature": "sketch:25", "measure": "overlap", "threshold": 0.5},
        {"signature": "simhash", "weights": "tfidf", "measure": "hamming", "threshold": 6},
        {"search": "lsh", "threshold": 0.5},
        {"clip": "df:2:0.5", "signature": "imatch:3", "threshold": 1},
        {"second_step": "edit >= 0.6", "threshold": 0.3},
    ],
    ids=lambda choices: " ".join(map(str, choices.values())),
)
def test_threads_pieces_and_memory_change_nothing(choices: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    texts = corpus(200)
    choices = {"features": "words:1"} | choices
    once = nd.dedup(texts, threads=1, **choices)
    monkeypatch.setattr(reading, "_PIECE", 50)
    for threads, memory in [(2, None), (3, 1_000_000), (1, 1_000_000)]:
        again = nd.dedup(texts, threads=threads, memory=memory, **choices)
        assert found_by(again) == found_by(once)
        assert again.kept == once.kept
        assert again.summary["undecidable"] == once.summary["undecidable"]
    assert len(once.pairs) > 0
