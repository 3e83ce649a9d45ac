"""Signatures compared with naive twins: minima by Python integers, hashes by hashlib, majorities by sums."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import combinations
from math import isqrt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from naive_sketches import naive_minhash, naive_simhash, naive_supershingles
from naive_text import naive_normalize

from neardup.documents import corpus_of
from neardup.features.extraction import extract_features, gram_hashes
from neardup.features.reading import gather_statistics
from neardup.features.signatures import Signer, closest_prime, is_prime
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.kernels.sketches import linear_minima
from neardup.recipe import Recipe

VOCABULARY = [f"w{i}" for i in range(12)]
TEXTS = st.lists(st.lists(st.sampled_from(VOCABULARY), max_size=20).map(" ".join), min_size=1, max_size=8)


def statistics_of(texts: Sequence[str], recipe: Recipe) -> Statistics:
    return gather_statistics(corpus_of(list(texts), text_column=None, id_column=None, order_column=None), recipe)


def block_of(texts: Sequence[str], recipe: Recipe) -> Block:
    statistics = statistics_of(texts, recipe) if recipe.needs_statistics else None
    return extract_features(pa.array(texts, pa.large_string()), recipe, statistics)


def rows(block: Block) -> list[list[int]]:
    ends = np.cumsum(block.sizes).tolist()
    return [block.features[end - size : end].tolist() for size, end in zip(block.sizes.tolist(), ends, strict=True)]


def plain(recipe: Recipe) -> Recipe:
    return recipe.changed(signature="", measure="jaccard", threshold=0.5)


def numbers_of(signer: Signer) -> tuple[int, list[int], list[int]]:
    return signer._prime, signer._factors.tolist(), signer._shifts.tolist()


def sketches_of(texts: Sequence[str], recipe: Recipe) -> list[list[int]]:
    """Cornell's steps 2 to 4: for each document, the least (a x + b) mod p for each a and b."""
    sets = rows(block_of(texts, plain(recipe)))
    p, a, b = numbers_of(Signer(recipe, statistics_of(texts, recipe)))
    assert p == closest_prime(len({x for features in sets for x in features}))
    return [[min((i * x + j) % p for x in s) for i, j in zip(a, b, strict=True)] if s else [] for s in sets]


def check_shared(block: Block, signatures: Sequence[Sequence[object]]) -> None:
    """Check that documents share as many features as their signatures have equal positions."""
    found = rows(block)
    assert [len(features) for features in found] == [len(signature) for signature in signatures]
    for i in range(len(found)):
        assert 0 not in found[i]
        for j in range(i):
            equal = sum(x == y for x, y in zip(signatures[i], signatures[j], strict=False))
            assert len(set(found[i]) & set(found[j])) == (equal if found[i] and found[j] else 0)


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=9), st.integers(1, 2**31 - 1), st.integers(0, 2**62))
@example([102], 103, 0)  # the product by the rounded inverse is below 1
def test_linear_minima_equal_their_twin(features: list[int], p: int, salt: int) -> None:
    a, b, out = [salt % p, 1 % p, p - 1], [(salt // 7) % p, 1 % p, p - 1], np.empty((1, 3), np.int64)
    heads = np.array([0, len(features)])
    linear_minima(np.array(features, np.uint64), heads, np.array(a), np.array(b), p, out)
    assert out[0].tolist() == [min((f * x + g) % p for x in features) for f, g in zip(a, b, strict=True)]


@given(TEXTS, st.sampled_from(["sketch:25", "sketch:3", "sketch:1"]), st.integers(0, 2**32 - 1))
def test_sketches_are_minima_of_linear_functions(texts: list[str], signature: str, seed: int) -> None:
    recipe = Recipe(features="words:2", signature=signature, measure="overlap", seed=seed)
    check_shared(block_of(texts, recipe), sketches_of(texts, recipe))


@given(TEXTS, st.integers(1, 40), st.integers(0, 2**32 - 1))
def test_minhash_features_are_minima_with_their_slots(texts: list[str], slots: int, seed: int) -> None:
    recipe = Recipe(features="words:2", signature=f"minhash:{slots}", measure="overlap", seed=seed)
    sets = rows(block_of(texts, plain(recipe)))
    check_shared(block_of(texts, recipe), [naive_minhash(s, slots, seed) if s else [] for s in sets])


@given(TEXTS, st.integers(1, 6), st.integers(1, 4), st.integers(0, 99))
def test_supershingles_are_hashes_of_groups_of_minima(texts: list[str], groups: int, size: int, seed: int) -> None:
    recipe = Recipe(features="words:1", signature=f"supershingle:{groups}:{size}", measure="overlap", seed=seed)
    sets = rows(block_of(texts, plain(recipe)))
    minima = [naive_minhash(s, groups * size, seed) if s else [] for s in sets]
    check_shared(block_of(texts, recipe), [naive_supershingles(m, size) for m in minima])
    cut = [[tuple(m[i : i + size]) for i in range(0, len(m), size)] for m in minima]
    check_shared(block_of(texts, recipe), cut)


@given(TEXTS, st.sampled_from(["", "tf", "idf", "tfidf"]), st.sampled_from(["", "df:1:1.0"]))
def test_a_simhash_is_the_majority_by_weight(texts: list[str], weights: str, clip: str) -> None:
    recipe = Recipe(features="words:1", weights=weights, clip=clip, signature="simhash", measure="hamming", threshold=3)
    source = recipe.changed(signature="", measure="cosine" if weights else "jaccard", threshold=0.5)
    block = block_of(texts, source)
    given = block.weights.tolist() if weights else [1] * len(block.features)
    expected, at = [], 0
    for features in rows(block):
        if features:
            expected.append([naive_simhash(features, given[at : at + len(features)])])
        else:
            expected.append([])
        at += len(features)
    found = block_of(texts, recipe)
    assert rows(found) == expected
    assert len(found.weights) == 0


def test_the_numbers_of_a_sketch_are_in_range_and_never_change() -> None:
    recipe = Recipe(signature="sketch:2000", measure="overlap")
    statistics = Statistics(5, 12, 1, np.empty(0, np.uint64), np.empty(0, np.int64))
    p, a, b = numbers_of(Signer(recipe, statistics))
    assert p == 11
    assert (set(a), set(b)) == (set(range(1, 11)), set(range(11)))
    assert (len(a), len(b)) == (2000, 2000)
    assert numbers_of(Signer(recipe, statistics)) == (p, a, b)
    assert numbers_of(Signer(recipe.changed(seed=2), statistics)) != (p, a, b)
    assert (a[:6], b[:6]) == FIRST


#: The first a and b for the seed 1 and p = 11.
FIRST = ([8, 6, 10, 9, 5, 4], [5, 3, 4, 8, 2, 6])


@pytest.mark.parametrize("distinct", [0, 3, 2**31 - 2, 2**33])
def test_a_collection_of_any_size_gets_a_prime(distinct: int) -> None:
    statistics = Statistics(5, distinct, 1, np.empty(0, np.uint64), np.empty(0, np.int64))
    recipe = Recipe(features="words:1", signature="sketch:9", measure="overlap")
    p, a, b = numbers_of(Signer(recipe, statistics))
    assert p <= 2**31 - 1
    assert p in (2, 3, 2**31 - 1)
    features = block_of(["x y z"], plain(recipe)).features.tolist()
    minima = [min((i * x + j) % p for x in features) for i, j in zip(a, b, strict=True)]
    one = extract_features(pa.array(["x y z", "y z x"], pa.large_string()), recipe, statistics)
    check_shared(one, [minima, minima])


@given(TEXTS, st.integers(1, 6))
def test_imatch_is_one_hash_of_the_sorted_distinct_terms(texts: list[str], least: int) -> None:
    recipe = Recipe(features="words:1", signature=f"imatch:{least}", threshold=1.0)
    hashes = {word: int(gram_hashes(word, recipe)[0]) for word in VOCABULARY}
    expected = []
    for text in texts:
        terms = sorted({hashes[word] for word in text.split()})
        whole = b"".join(term.to_bytes(8, "little") for term in terms)
        digest = hashlib.sha1(whole, usedforsecurity=False).digest()
        expected.append([int.from_bytes(digest[:8], "little")] if len(terms) >= least else [])
    assert rows(block_of(texts, recipe)) == expected


PROSE = ["A  rose, is\ta rose.", "a rose is a rose", "Ünïcode — ＦＵＬＬ width", " ", "...", "", "a\n\nb"]


@given(
    st.lists(st.text(max_size=30) | st.sampled_from(PROSE), max_size=8),
    st.sampled_from(["md5", "sha1", "sha256"]),
    st.sampled_from(["raw", "words", "whitespace", "compact", "strip"]),
)
@example(PROSE, "sha1", "words")
def test_a_checksum_is_a_prefix_of_the_hash_of_the_text(texts: list[str], algorithm: str, normalizer: str) -> None:
    block = block_of(texts, Recipe(features=f"checksum:{algorithm}", normalize=normalizer, threshold=1.0))
    normal = [naive_normalize(text, normalizer).encode() for text in texts]
    digests = [hashlib.new(algorithm, text, usedforsecurity=False).digest()[:8] if text else b"" for text in normal]
    assert rows(block) == [[int.from_bytes(digest, "little")] if digest else [] for digest in digests]
    marks = [tuple(mark) for mark in block.set_digests.tolist()]
    for i, j in combinations(range(len(texts)), 2):
        assert (marks[i] == marks[j]) == (normal[i] == normal[j])


@given(TEXTS, st.sampled_from(["minhash:4", "sketch:4", "supershingle:2:2", "simhash", "imatch:2"]), st.data())
def test_equal_sets_have_equal_signatures_and_digests(texts: list[str], signature: str, data: st.DataObject) -> None:
    shuffled = [" ".join(data.draw(st.permutations(text.split()))) for text in texts]
    measure = {"simhash": "hamming", "imatch:2": "jaccard"}.get(signature, "overlap")
    recipe = Recipe(features="words:1", signature=signature, measure=measure, threshold=1)
    block, half = block_of(texts + shuffled, recipe), len(texts)
    assert rows(block)[:half] == rows(block)[half:]
    assert block.set_digests[:half].tolist() == block.set_digests[half:].tolist()


PRIMES = [number for number in range(2, 5000) if all(number % divisor for divisor in range(2, isqrt(number) + 1))]


def test_small_primes_are_found() -> None:
    assert [number for number in range(-7, 5000) if is_prime(number)] == PRIMES
    for number in (*range(-5, 100), 4000):
        assert closest_prime(number) == min(PRIMES, key=lambda prime: (abs(prime - number), prime))
    assert [number for number in range(1, 100) if is_prime(2**31 - number)] == [1, 19, 61, 69, 85, 99]
