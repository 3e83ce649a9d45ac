"""Texts and sets that differ are never taken for equal, even if somebody constructed them for that.

A fast mix of words of eight bytes can be inverted, so a text can be constructed with the mix of another one. Sets of
features are found by two sums, which whoever chooses the features can make equal: the words of ``SUMS`` have the
features 1 and 4, 2 and 3.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import neardup as nd
from neardup.documents import corpus_of
from neardup.exploration.sample import draw_sample
from neardup.features.extraction import extract_features
from neardup.features.store import FeatureStore
from neardup.recipe import Recipe
from neardup.search.matches import set_representatives
from neardup.spark.features import digest_batches

_WORD = (1 << 64) - 1
_FACTOR = 0xD6E8FEB86659FD93
_INVERSE = pow(_FACTOR, -1, 1 << 64)

NORWAY = (
    "The central bank of Norway raised its key rate by half a point on Thursday and said that it would watch the price "
    "of crude oil."
).ljust(128)
#: A text on another subject, and one that is nearly the same, whose last two words of eight bytes were chosen so that
#: their mixes are that of NORWAY.
CLIMBERS = (
    "Fourteen climbers were brought down from the north face by helicopter after a night of snow, rescuers said"
    "      aaaalbcpRQgp!Po0"
)
PENCE = (
    "The central bank of Norway raised its key rate by half a pence on Thursday and said that it would watch the pric"
    "aaaambaa/J6~Hjxq"
)
#: Words of 16 letters whose features are 1 and 4, and 2 and 3.
SUMS = ["vkqctxeldgouxpam lsevlbpfqweltdcd", "qfojxtmiryyxegsk leievfwwrotkowva"]


def words_of(text: str) -> list[int]:
    data = text.encode()
    return [int.from_bytes(data[at : at + 8], "little") for at in range(0, len(data), 8)]


def mixed(text: str, length: int) -> int:
    """The mix after the words of a text that begins a text of ``length`` bytes."""
    value = (length + 0x9E3779B97F4A7C15) & _WORD
    for _ in range(2):
        value = ((value ^ value >> 32) * _FACTOR) & _WORD
    value ^= value >> 32
    for word in words_of(text):
        value = ((value ^ word) * _FACTOR) & _WORD
        value ^= value >> 29
    return value


def test_the_forgeries_have_equal_mixes_and_sums() -> None:
    for text in (CLIMBERS, PENCE):
        assert text != NORWAY
        assert text.isprintable()
        assert mixed(text, 128) == mixed(NORWAY, 128)
    assert len(nd.dedup([NORWAY, CLIMBERS], threshold=0.01).pairs) == 0
    sums = extract_features(pa.array(SUMS, pa.large_string()), Recipe(features="words:1"))
    assert sorted(sums.features.tolist()) == [1, 2, 3, 4]
    assert len({tuple(mark) for mark in sums.set_digests.tolist()}) == 1


@pytest.mark.parametrize("then", ["edit >= 0.9", "jaccard(words:1) >= 0.9"])
def test_a_second_step_merges_no_text_on_another_subject(then: str) -> None:
    result = nd.dedup([NORWAY, CLIMBERS, NORWAY], threshold=0.5, second_step=then)
    assert result.kept == [0, 1]
    assert [tuple(pair) for pair in result.pairs] == [(0, 2, 1.0)]
    assert result.summary["exact_copies"] == 1


def test_a_pair_with_equal_mixes_passes_the_second_step_by_its_texts() -> None:
    choices: dict[str, Any] = {"features": "words:1", "threshold": 0.5, "second_step": "edit >= 0.99"}
    strict = nd.dedup([NORWAY, PENCE], **choices)
    assert strict.kept == [0, 1]
    assert strict.summary["search"]["first_step_pairs"] == 1
    index = nd.Index(**choices)
    index.add(nd.Document("norway", NORWAY, 0))
    assert index.add(nd.Document("pence", PENCE, 1)).kind == "original"


def test_only_equal_texts_are_exact_copies() -> None:
    result = nd.dedup([NORWAY, CLIMBERS, PENCE, NORWAY], features="words:1", threshold=0.5)
    assert result.kept == [0, 1]
    assert result.summary["exact_copies"] == 1
    assert result.texts.tolist() == [0, 1, 2, 0]
    with corpus_of([NORWAY, CLIMBERS, NORWAY]) as corpus:
        assert len(np.unique(draw_sample(corpus, sample=2000)[1].text_digests, axis=0)) == 2
    for second_step in ("", "edit >= 0.5"):
        index = nd.Index(features="words:1", threshold=0.5, second_step=second_step)
        index.add(nd.Document("norway", NORWAY, 0))
        near = index.add(nd.Document("pence", PENCE, 1))
        assert (near.kind, near.of) == ("near", "norway")
        assert (near.similarity or 0) < 1
        assert index.add(nd.Document("again", NORWAY, 2)).kind == "exact"


def test_digests_of_spark_workers_differ_for_different_texts_and_sets() -> None:
    texts = [NORWAY, CLIMBERS, NORWAY, *SUMS, " ".join(reversed(SUMS[0].split()))]
    batch = pa.RecordBatch.from_pydict({"row": list(range(len(texts))), "text": texts})
    recipe = Recipe(features="words:1", threshold=0.3, second_step="edit >= 0.9")
    (found,) = digest_batches(recipe, None, [], np.array([1, 2], np.uint64), 0, iter([batch]))
    marks = list(zip(found["text_digest0"].to_pylist(), found["text_digest1"].to_pylist(), strict=True))
    assert marks[0] == marks[2]
    assert len(set(marks)) == 5
    marks = list(zip(found["digest0"].to_pylist(), found["digest1"].to_pylist(), strict=True))
    assert marks[0] == marks[2]
    assert marks[3] == marks[5]
    assert len(set(marks)) == 4


@pytest.mark.parametrize("choices", [{}, {"weights": "tf", "measure": "cosine"}, {"search": "lsh"}])
def test_sets_with_equal_sums_stay_apart(choices: dict[str, Any]) -> None:
    result = nd.dedup([*SUMS, SUMS[1]], features="words:1", threshold=0.5, **choices)
    assert result.kept == [0, 1]
    assert [tuple(pair) for pair in result.pairs] == [(1, 2, 1.0)]


@pytest.mark.parametrize(
    ("sets", "weights", "expected"),
    [
        ([[1, 4], [2, 3], [4, 1], [3, 2], [1, 2, 3], [], [3, 1, 2], [5], [2, 3]], [], [0, 1, 0, 1, 4, -1, 4, 7, 1]),
        ([[1, 4], [4, 1], [4, 1]], [7, 9, 9, 7, 7, 9], [0, 0, 2]),
    ],
)
def test_features_and_weights_decide_if_digests_are_equal(
    sets: list[list[int]], weights: list[int], expected: list[int]
) -> None:
    block = extract_features(pa.array([], pa.large_string()), Recipe())._replace(
        features=np.array(list(itertools.chain(*sets)), np.uint64),
        sizes=np.array([len(features) for features in sets]),
        set_digests=np.zeros((len(sets), 2), np.uint64),
        weights=np.array(weights, np.int64),
    )
    with FeatureStore() as store:
        store.add(block)
        assert set_representatives(store).tolist() == expected
