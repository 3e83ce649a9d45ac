"""Document frequencies, clipping and weights compared with counters, fractions and logarithms."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import naive_features as naive
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sentences import says

from neardup.documents import corpus_of
from neardup.errors import NeardupError, RecipeError
from neardup.features import reading
from neardup.features.extraction import extract_features, gram_hashes
from neardup.features.reading import StatisticsBuilder, gather_statistics
from neardup.features.statistics import Statistics
from neardup.kernels.tables import lookup_value
from neardup.recipe import Recipe

Words = npt.NDArray[np.uint64]

KINDS = ["words:2", "qgrams:3", "clauses", "spots:1:1", "windows:3:3", "words:1:multiset", "qgrams:2:positional"]
KINDS += ["terms:1", "terms:64", "terms:2:sentence", "terms:3:positional"]
WORDS = ["a", "the", "is", "fox", "dog", "ran", "and", "owl.", "sat,", "42", "was", "said", "élan", "東京"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join), max_size=12)


def gathered(texts: Sequence[str], recipe: Recipe, threads: int = 1) -> Statistics:
    corpus = corpus_of(list(texts), text_column=None, id_column=None, order_column=None)
    return gather_statistics(corpus, recipe, threads=threads)


def as_array(numbers: Sequence[int]) -> Words:
    return np.array(numbers, np.uint64)


@given(TEXTS, st.sampled_from(KINDS))
def test_frequencies_equal_those_of_a_counter(texts: list[str], features: str) -> None:
    recipe = Recipe(features=features)

    def features_of(text: str) -> list[int]:
        # Terms are counted before selection, with repeats.
        if features.startswith("terms"):
            return list(gram_hashes(text, recipe).tolist())
        return list(extract_features(pa.array([text], pa.large_string()), recipe).features.tolist())

    documents = list(map(features_of, texts))
    df = Counter(feature for document in documents for feature in set(document))
    found = gathered(texts, recipe)
    assert (found.documents, found.distinct) == (len(texts), len(df))
    assert found.features.tolist() == sorted(feature for feature, count in df.items() if count > 1)
    assert found.df.tolist() == [df[feature] for feature in found.features.tolist()]
    squares = [sum(n * n for n in Counter(document).values()) for document in documents]
    assert found.largest_square_sum == max(squares, default=0)


@pytest.mark.parametrize("features", ["words:2", "terms:5"])
def test_pieces_and_threads_change_nothing(features: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(7)
    texts = [" ".join(rng.choices(WORDS, k=rng.randrange(15))) for _ in range(150)]
    recipe = Recipe(features=features)
    once = gathered(texts, recipe)
    monkeypatch.setattr(reading, "_PIECE", 40)
    again = gathered(texts, recipe, threads=3)
    for name in ("documents", "distinct", "largest_square_sum", "features", "df"):
        assert np.array_equal(getattr(once, name), getattr(again, name)), name


@given(st.lists(st.dictionaries(st.integers(1, 30), st.integers(1, 5)), max_size=8), st.integers(0, 40))
def test_batches_add_up_whenever_they_are_merged(parts: list[dict[int, int]], pending: int) -> None:
    builder, whole = StatisticsBuilder(), Counter[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_MAX_PENDING", pending)
        for number, part in enumerate(parts):
            builder.add(3, number, as_array(sorted(part)), np.array([part[x] for x in sorted(part)], np.int64))
            whole.update(part)
    found = builder.build()
    several = sorted(feature for feature, df in whole.items() if df > 1)
    assert (found.documents, found.distinct) == (3 * len(parts), len(whole))
    assert found.largest_square_sum == max(len(parts) - 1, 0)
    assert found.features.tolist() == several
    assert found.df.tolist() == [whole[feature] for feature in several]


def statistics_with_each_df(documents: int, singles: bool, bits_for: int = 1) -> tuple[Statistics, list[int]]:
    """Statistics with one feature for each df from 2 on: 1000003 df."""
    frequencies = list(range(2, documents + 1))
    features = [1_000_003 * df for df in frequencies]
    distinct = len(features) + (documents if singles else 0)
    return Statistics(documents, distinct, bits_for, as_array(features), np.array(frequencies, np.int64)), features


CLIPS = ["df:1:3", "df:2:0.5", "df:0.25:0.75", "df:0.1:4", "df:0:1.0", "df:3:100", "df:2:2", "df:0.5:0.5", "df:1:1"]
CLIPS += ["df:0.07:0.29", "idf:0.2:0.8", "idf:0:1", "idf:0.5:0.5", "idf:0.25:0.75", "idf:0.3:0.7", "idf:0:0.1"]


@pytest.mark.parametrize("clip", CLIPS)
def test_clipping_keeps_features_within_its_bounds(clip: str) -> None:
    for documents in (1, 2, 3, 16, 27, 32, 60, 100):
        for singles in (False, True):
            check_clip(clip, documents, singles)


def check_clip(clip: str, documents: int, singles: bool) -> None:
    statistics, features = statistics_with_each_df(documents, singles)
    recipe = Recipe(features="words:1", clip=clip)
    kept = [naive.passes_clip(clip, df, documents) for df in range(1, documents + 1)]
    if statistics.distinct and not any(kept[0 if singles else 1 :]):
        with pytest.raises(RecipeError) as refused:
            statistics.lookup(recipe)
        assert says(refused.value, f"clip {clip!r}", f"none of the {statistics.distinct} ", f"of {documents} documents")
        assert says(refused.value, "widen its bounds")
        return
    keys, values, unseen = statistics.lookup(recipe)
    assert unseen.tolist() == [int(kept[0])]
    found = [lookup_value(np.uint64(feature), keys, values, unseen[0]) for feature in features]
    assert found == [int(stays) for stays in kept[1:]]
    assert lookup_value(np.uint64(77), keys, values, unseen[0]) == int(kept[0])


@given(st.integers(1, 300), st.sampled_from([1, 1000, 10**9, 2**40, 2**50]), st.sampled_from(["idf", "tfidf"]))
def test_weights_are_logarithms_in_fixed_point(documents: int, square_sum: int, weights: str) -> None:
    statistics, features = statistics_with_each_df(documents, True, square_sum)
    recipe = Recipe(features="words:1", weights=weights, measure="cosine")
    scale = 2 ** statistics.idf_bits(recipe)
    keys, values, unseen = statistics.lookup(recipe)
    expected = [max(round(scale * math.log(1 + documents / df)), 1) for df in range(1, documents + 1)]
    assert [int(unseen[0]), *(lookup_value(np.uint64(x), keys, values, unseen[0]) for x in features)] == expected
    assert statistics.idf(1) == pytest.approx(math.log(1 + documents))


# No machine holds 2**50 features.
@given(st.integers(1, 10**15), st.integers(1, 2**62), st.integers(1, 2**50), st.sampled_from(["idf", "tfidf"]))
@example(documents=1, square_sum=56936522560, distinct=2**50, weights="tfidf")
@example(documents=10**15, square_sum=2**50, distinct=1, weights="tfidf")
def test_the_square_of_a_vector_fits_into_61_bits(documents: int, square_sum: int, distinct: int, weights: str) -> None:
    statistics = Statistics(documents, distinct, square_sum, as_array([]), np.empty(0, np.int64))
    recipe = Recipe(features="words:1", weights=weights, measure="cosine")
    squares = square_sum if weights == "tfidf" else min(square_sum, distinct)

    def longest(bits: int) -> int:
        rarest = max(round((1 << bits) * math.log(1 + documents)), 1)
        return squares * rarest * rarest

    if longest(0) >= 2**61:
        assert weights == "tfidf"
        with pytest.raises(NeardupError, match=f"{square_sum:,}.*choose weights 'idf'"):
            statistics.idf_bits(recipe)
        return
    bits = statistics.idf_bits(recipe)
    assert 0 <= bits <= 16
    assert longest(bits) < 2**61
    # No bit is wasted.
    assert bits == 16 or longest(bits + 1) >= 2**61


@pytest.mark.parametrize(
    ("choices", "bits", "unit"),
    [
        ({"features": "words:1"}, 0, 1),
        ({"features": "terms:4"}, 16, 1),
        ({"weights": "tf", "measure": "cosine"}, 0, 1),
        ({"weights": "idf", "measure": "cosine"}, 16, 2**32),
        ({"weights": "tfidf", "measure": "weighted_jaccard"}, 16, 2**16),
    ],
)
def test_only_idf_weights_have_fractional_bits(choices: dict[str, Any], bits: int, unit: int) -> None:
    statistics, _ = statistics_with_each_df(50, True)
    recipe = Recipe(**choices)
    assert (statistics.idf_bits(recipe), statistics.unit(recipe)) == (bits, unit)
