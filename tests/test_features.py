"""Feature sets against plain n-grams of plain tokens."""

from __future__ import annotations

import ctypes

import naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup import comparable as comparable_module
from neardup._kernels.shingles import feature_sets
from neardup.comparable import comparable, text_buffers
from neardup.features import FeatureStore, extract
from neardup.normalize import normalize
from neardup.recipe import Recipe
from neardup.spill import Memory

CHAINS = [
    (f"{kind}:{n}{multiset}", normalizer)
    for kind in ("words", "qgrams")
    for n in (1, 2, 5)
    for multiset in ("", ":multiset")
    for normalizer in ("words", "whitespace", "compact")
    if (kind, normalizer) != ("words", "compact")
]
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.text("ab ", max_size=200),
        st.text("aé ß日本ไทยकि😀\u0301\u00ad.", max_size=60),
        st.lists(st.sampled_from(["longer-than-eight", "exactly8", "a", "nine-char", "x" * 70]), max_size=30).map(
            " ".join
        ),
    ),
    max_size=8,
)


def sets_of(texts: list[str], recipe: Recipe) -> list[list[int]]:
    block = extract(pa.array(texts, pa.large_string()), recipe)
    ends = np.cumsum(block.sizes)
    return [block.features[e - s : e].tolist() for s, e in zip(block.sizes.tolist(), ends.tolist(), strict=True)]


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(CHAINS))
def test_features_stand_for_the_grams_of_naive(texts: list[str], chain: tuple[str, str]) -> None:
    spec, normalizer = chain
    recipe = Recipe(features=spec, normalize=normalizer)
    wanted = recipe.parsed_features
    expected = [naive.grams(t, normalizer, wanted.kind, wanted.n, wanted.multiset) for t in texts]
    found = sets_of(texts, recipe)
    assert [len(s) for s in found] == [len(s) for s in expected]
    assert all(len(set(s)) == len(s) for s in found)
    for i in range(len(texts)):
        for j in range(i):
            assert len(set(found[i]) & set(found[j])) == len(expected[i] & expected[j])


@settings(max_examples=200, deadline=None)
@given(TEXTS, st.sampled_from(["words", "whitespace", "compact"]), st.booleans())
def test_bulk_text_is_that_of_normalize(texts: list[str], normalizer: str, few: bool) -> None:
    data, offsets = text_buffers(pa.array(texts, pa.large_string()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparable_module._few, "_left", 10**9 if few else 0)
        found = comparable(data, offsets, normalizer)
    for text, (begin, end) in zip(texts, found.spans.tolist(), strict=True):
        assert " ".join(found.text[begin:end].tobytes().decode().split(" ")).split() == (
            normalize(text, normalizer).split()
        )


@settings(max_examples=50, deadline=None)
@given(TEXTS, st.integers(0, 5))
def test_slices_of_arrow_arrays_are_read_where_they_lie(texts: list[str], skip: int) -> None:
    recipe = Recipe(features="words:2")
    padded = pa.array(["something else"] * skip + texts + ["the end"], pa.large_string())
    sliced = extract(padded.slice(skip, len(texts)), recipe)
    whole = extract(pa.array(texts, pa.large_string()), recipe)
    for name in sliced._fields:
        assert np.array_equal(getattr(sliced, name), getattr(whole, name)), name


def test_equal_sets_have_equal_marks_whatever_the_order() -> None:
    texts = ["b c a b c", "a b c a b", "a b c", "x y"]
    marks = extract(pa.array(texts, pa.large_string()), Recipe(features="words:2")).marks
    assert len({tuple(m) for m in marks[:2].tolist()}) == 1
    assert len({tuple(m) for m in marks.tolist()}) == 3


def test_text_marks_tell_texts_apart_that_are_equal_in_content() -> None:
    texts = ["Hello, world", "hello world", "Hello, world", "", "a", "a" * 8, "a" * 9]
    marks = extract(pa.array(texts, pa.large_string()), Recipe()).text_marks.tolist()
    assert marks[0] == marks[2]
    assert len(set(marks)) == len(texts) - 1


def test_large_documents_grow_the_buffers() -> None:
    text = " ".join(f"word{i}" for i in range(300_000))
    foreign = " ".join(f"wörd{i} 日本" for i in range(100_000))
    block = extract(pa.array(["short", text, foreign, text], pa.large_string()), Recipe(features="words:3"))
    assert block.sizes.tolist() == [1, 299_998, 299_998, 299_998]
    assert block.marks[1].tolist() == block.marks[3].tolist()


@pytest.mark.parametrize("budget", [None, 0, 250_000_100, 10**9])
def test_a_store_holds_what_was_added_wherever_it_lies(budget: int | None) -> None:
    recipe = Recipe(features="words:1")
    with FeatureStore(Memory(budget)) as store:
        expected = []
        for i in range(20):
            texts = pa.array([f"a{i} b{i} c{j}" for j in range(i % 4)], pa.large_string())
            block = extract(texts, recipe, store.allocate)
            expected.append(block.features.copy())
            store.add(block)
        addresses, sizes = store.addresses(), store.sizes
        assert len(store) == len(sizes) == sum(i % 4 for i in range(20))
        found = [
            np.ctypeslib.as_array((ctypes.c_uint64 * int(s)).from_address(int(a))).copy()
            for a, s in zip(addresses, sizes, strict=True)
        ]
        assert np.array_equal(np.concatenate(found), np.concatenate(expected))
        assert (store.memory.spilled_bytes > 0) == (budget is not None and budget < 10**9)
        store.memory.release()
        assert store.sizes.tolist() == sizes.tolist()


def test_kernel_takes_no_features_from_no_text() -> None:
    spans, sizes, marks = np.zeros((1, 2), np.int64), np.ones(1, np.int64), np.ones((1, 2), np.uint64)
    assert feature_sets(np.full(64, 32, np.uint8), spans, False, 5, False, np.empty(1, np.uint64), sizes, marks) == 0
    assert sizes[0] == 0
    assert marks.tolist() == [[0, 0]]
