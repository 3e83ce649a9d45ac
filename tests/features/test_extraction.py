"""Feature sets compared with naive n-grams of naive tokens."""

from __future__ import annotations

import ctypes
import hashlib

import naive_features as plain
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from neardup.errors import RecipeError
from neardup.features.extraction import Extractor, extract_features, gram_hashes
from neardup.features.reading import gather_text_statistics
from neardup.features.store import FeatureStore
from neardup.recipe import Recipe
from neardup.runtime import Memory
from neardup.text.bulk import text_buffers
from neardup.text.stop_words import antecedents, stop_words

#: Kinds of features, each with its normalizers.
KINDS = {
    **{f"words:{n}{m}": ("words", "whitespace", "strip") for n in (1, 2, 5) for m in ("", ":multiset")},
    **{f"qgrams:{n}{m}": ("words", "whitespace", "compact") for n in (1, 2, 5) for m in ("", ":multiset")},
    "qgrams:3:positional": ("compact", "words"),
    "qgrams:2:multiset:positional": ("compact",),
    "skips:2:1": ("words", "whitespace"),
    "skips:3:2:multiset": ("words",),
    "clauses": ("words", "whitespace"),
    "clauses:multiset": ("words",),
    "sentence_words:1": ("words",),
    "sentence_words:3": ("words", "whitespace"),
    "sentence_words:2:multiset": ("words",),
    "spots:1:2": ("words",),
    "spots:2:1:multiset": ("words",),
    "windows:4:1": ("compact",),
    "windows:3:3": ("compact",),
    "windows:2:2:multiset": ("compact", "words"),
}
#: Kinds of features that drop stop words.
STOPPED = ["words:2", "skips:2:1", "sentence_words:2", "terms:3", "terms:2:sentence", "terms:2:positional"]
SENTENCE = ["the", "is", "of", "a", "it", "said", "Cat", "dog", "3.5", "runs", ". ", ", ", "\n\n", "! "]
TEXTS = st.lists(
    st.one_of(
        st.text(max_size=80),
        st.text("ab ", max_size=200),
        st.text("aé ß日本ไทยकि😀\u0301\u00ad.", max_size=60),
        st.lists(st.sampled_from(["longer-than-eight", "exactly8", "a", "nine-char", "x" * 70])).map(" ".join),
        st.lists(st.sampled_from(SENTENCE)).map(" ".join),
    ),
    max_size=8,
)


def sets_of(texts: list[str], recipe: Recipe) -> list[list[int]]:
    block = extract_features(pa.array(texts, pa.large_string()), recipe)
    ends = np.cumsum(block.sizes)
    return [block.features[e - s : e].tolist() for s, e in zip(block.sizes.tolist(), ends.tolist(), strict=True)]


def words_of(recipe: Recipe) -> tuple[frozenset[str], frozenset[str]]:
    """The stop words and antecedents of a recipe."""
    languages = "" if recipe.stop_words == "none" else recipe.stop_words
    return stop_words(languages), antecedents(languages) if recipe.features.startswith("spots") else frozenset()


def hashes_of(texts: list[str], recipe: Recipe) -> dict[plain.Gram, int]:
    """The kernels' hash of every naive gram: exactly one each, without collisions."""
    known: dict[plain.Gram, int] = {}
    bare = ":".join(part for part in recipe.features.split(":") if part != "positional")
    for text in texts:
        found = plain.grams(text, bare, recipe.normalize, *words_of(recipe))
        grams = [gram for segment in found for gram in segment]
        hashes = gram_hashes(text, recipe).tolist()
        assert len(grams) == len(hashes)
        for gram, value in zip(grams, hashes, strict=True):
            assert known.setdefault(gram, value) == value
    assert len(set(known.values())) == len(known)
    return known


class GuardedScratch:
    """Arrays of exactly the requested size, with bytes behind them that no kernel may overwrite."""

    def __init__(self) -> None:
        self._arrays: list[tuple[int, np.ndarray]] = []

    def array(self, name: str, dtype: type[np.generic], size: int) -> np.ndarray:
        whole = np.full(size + 64, 77, dtype)
        self._arrays.append((size, whole))
        return whole[:size]

    def is_intact(self) -> bool:
        return all(bool((whole[size:] == 77).all()) for size, whole in self._arrays)


@pytest.mark.parametrize("features", KINDS)
@settings(max_examples=6)
@example(texts=["\x00", "ab", "a. b c. d"], choice=1)
@given(texts=TEXTS, choice=st.integers(0, 5))
def test_features_are_the_hashes_of_the_naive_grams(features: str, texts: list[str], choice: int) -> None:
    normalizer = KINDS[features][choice % len(KINDS[features])]
    recipe = Recipe(features=features, normalize=normalizer)
    known = hashes_of(texts, recipe)
    expected = [
        set(plain.features(t, recipe.features, normalizer, *words_of(recipe), hashed=known.__getitem__)) for t in texts
    ]
    scratch = GuardedScratch()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("neardup.features.extraction.SCRATCH", scratch)
        found = sets_of(texts, recipe)
    assert scratch.is_intact()
    assert [len(s) for s in found] == [len(s) for s in expected]
    assert all(len(set(s)) == len(s) for s in found)
    for i in range(len(texts)):
        for j in range(i):
            assert len(set(found[i]) & set(found[j])) == len(expected[i] & expected[j])
    if not (recipe.parsed_features.multiset or recipe.parsed_features.positional):
        assert [set(s) for s in found] == [{known[gram] for gram in document} for document in expected]
    array = pa.array(texts, pa.large_string())
    block, few = extract_features(array, recipe), Extractor(recipe).sets(*text_buffers(array))
    assert all(map(np.array_equal, few, (block.features, block.sizes)))


@given(TEXTS, st.sampled_from(STOPPED), st.sampled_from(["", "tf", "idf", "tfidf"]), st.sampled_from(["", "df:2:0.9"]))
def test_terms_weights_and_clipping_equal_the_naive_ones(texts: list[str], spec: str, kind: str, clip: str) -> None:
    texts = [*texts, "the cat sat on the mat", "a dog sat. A dog ran!"]
    positional = spec.endswith("positional")
    recipe = Recipe(features=spec, stop_words="en", clip=clip, weights="" if positional else kind, measure="cosine")
    known = hashes_of(texts, recipe)
    statistics = (
        gather_text_statistics([pa.array(texts, pa.large_string())], recipe) if recipe.needs_statistics else None
    )
    stops = words_of(recipe)[0]
    bare = "words:1" if spec.startswith("terms") else spec
    every = [plain.features(t, bare, "words", stops) for t in texts]
    df = plain.frequencies(every)
    stays = {gram: not clip or plain.passes_clip(clip, df[gram], len(texts)) for gram in df}
    if statistics is not None and not any(stays.values()) and any(every):
        with pytest.raises(RecipeError, match="leaves none"):
            extract_features(pa.array(texts, pa.large_string()), recipe, statistics)
        return
    bits = statistics.idf_bits(recipe) if statistics else 0
    block = extract_features(pa.array(texts, pa.large_string()), recipe, statistics)
    ends = np.cumsum(block.sizes)

    def idf(gram: plain.Gram) -> float:
        return max(round(plain.idf(df[gram], len(texts)) * 2**bits), 1) if stays[gram] else 0

    for number, text in enumerate(texts):
        chosen = plain.features(text, spec, "words", stops, hashed=known.__getitem__, idf=idf)
        part = slice(ends[number] - block.sizes[number], ends[number])
        if positional:
            assert block.sizes[number] == len(set(chosen))
            continue
        kept = [gram for gram in every[number] if gram in set(chosen) and stays[gram]]
        assert set(block.features[part].tolist()) == {known[gram] for gram in kept}
        if recipe.weights:
            expected = plain.fixed_point_weights(kept, kind, df, len(texts), bits)
            found = dict(zip(block.features[part].tolist(), block.weights[part].tolist(), strict=True))
            assert found == {known[gram]: weight for gram, weight in expected.items()}


@given(TEXTS, st.integers(0, 5))
def test_slices_of_arrow_arrays_give_the_features_of_their_texts(texts: list[str], skip: int) -> None:
    recipe = Recipe(features="words:2")
    padded = pa.array(["something else"] * skip + texts + ["the end"], pa.large_string())
    sliced = extract_features(padded.slice(skip, len(texts)), recipe)
    whole = extract_features(pa.array(texts, pa.large_string()), recipe)
    for name in sliced._fields:
        assert np.array_equal(getattr(sliced, name), getattr(whole, name)), name


def test_digests_are_those_of_hashlib() -> None:
    texts = ["Hello, world", "", "日本"]
    digests = Extractor(Recipe(), digests=True)(pa.array(texts, pa.large_string())).text_digests
    expected = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
    assert [each.astype("<u8").tobytes() for each in digests] == expected


@pytest.mark.parametrize("budget", [None, 0, 250_000_100, 10**9])
def test_a_store_returns_all_features_within_any_budget(budget: int | None) -> None:
    recipe = Recipe(features="words:1")
    with FeatureStore(Memory(budget)) as store:
        expected = []
        for i in range(20):
            texts = pa.array([f"a{i} b{i} c{j}" for j in range(i % 4)], pa.large_string())
            block = extract_features(texts, recipe, allocate=store.allocate)
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
        store.memory.evict()
        assert store.sizes.tolist() == sizes.tolist()
