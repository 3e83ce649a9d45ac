"""Sketches compared with naive twins in Python integers, and their estimates with the theory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_sketches import MASK, naive_minhash, naive_simhash

from neardup.errors import InputError, RecipeError
from neardup.features.sketches import MinHash, SimHash, item_id
from neardup.kernels.sketches import EMPTY, linear_minima, minhash, minhash_update, simhash

WORDS = st.one_of(st.integers(0, MASK), st.integers(0, 9), st.integers(0, 2**16 - 1).map(lambda x: x << 48))
DOCUMENTS = st.lists(st.lists(WORDS, max_size=40), min_size=1, max_size=5)


def flat(documents: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    heads = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    return np.array([x for document in documents for x in document], np.uint64), heads


def sketched(documents: Sequence[Sequence[int]], slots: int, seed: int = 1) -> npt.NDArray[np.uint64]:
    out = np.empty((len(documents), slots), np.uint64)
    minhash(*flat(documents), np.uint64(seed), out)
    return out


@given(DOCUMENTS, st.integers(1, 20), st.integers(0, MASK))
def test_minhash_equals_its_twin(documents: list[list[int]], slots: int, seed: int) -> None:
    expected = [naive_minhash(document, slots, seed) for document in documents]
    assert sketched(documents, slots, seed).tolist() == expected


@given(st.lists(WORDS, max_size=60), st.lists(WORDS, max_size=60), st.integers(1, 200))
def test_the_slotwise_minimum_is_the_sketch_of_the_union(a: list[int], b: list[int], slots: int) -> None:
    of_a, of_b, union = sketched([a, b, a + b], slots)
    assert np.array_equal(np.minimum(of_a, of_b), union)
    minhash_update(flat([b])[0], of_a, np.uint64(1))
    assert np.array_equal(of_a, union)


def test_the_largest_sketch_fills_all_slots() -> None:
    of_one, of_many = sketched([[7], list(range(50_000))], 4096)
    assert EMPTY not in of_one.tolist()
    assert (of_one >> np.uint64(48)).max() > 4096
    assert (of_many >> np.uint64(48)).max() < 10


@given(DOCUMENTS, st.integers(1, 2**31 - 1), st.integers(0, 2**62))
def test_linear_minima_equal_their_twin(documents: list[list[int]], p: int, salt: int) -> None:
    a, b = [salt % p, 1 % p, p - 1, salt], [(salt // 7) % p, 0, p - 1, salt]
    out = np.empty((len(documents), len(a)), np.int64)
    linear_minima(*flat(documents), np.array(a), np.array(b), p, out)
    expected = [
        [min(((f * x + g) % p for x in document), default=p) for f, g in zip(a, b, strict=True)]
        for document in documents
    ]
    assert out.tolist() == expected


@given(DOCUMENTS, st.data())
def test_simhash_equals_its_twin(documents: list[list[int]], data: st.DataObject) -> None:
    weights = [[data.draw(st.integers(0, 5)) for _ in document] for document in documents]
    features, heads = flat(documents)
    out = np.empty(len(documents), np.uint64)
    simhash(features, np.empty(0, np.int64), heads, out)
    assert out.tolist() == [naive_simhash(document, [1] * len(document)) for document in documents]
    simhash(features, np.array([w for some in weights for w in some], np.int64), heads, out)
    assert out.tolist() == [naive_simhash(*pair) for pair in zip(documents, weights, strict=True)]


@pytest.mark.parametrize("size", [7, 8, 255, 256, 513])
def test_simhash_is_correct_at_block_boundaries(size: int) -> None:
    features = [x**3 for x in range(size)]
    assert int(SimHash.of(features)) == naive_simhash(features, [1] * size)
    assert int(SimHash.of([5] * size)) == naive_simhash([5], [1])


def minhash_of(*things: str | bytes | int, num_perm: int = 128, seed: int = 1) -> MinHash:
    sketch = MinHash(num_perm, seed=seed)
    sketch.update(things)
    return sketch


def test_items_are_text_bytes_and_integers() -> None:
    assert item_id("rose") == item_id(b"rose")
    assert item_id("rosé") == item_id("rosé".encode())
    assert item_id("\ud800") != item_id("?")
    assert item_id(0) == 0
    assert item_id(int(np.uint64(MASK))) == MASK
    assert minhash_of("a", "b") == minhash_of(item_id("b"), item_id("a"), "a")
    array = MinHash()
    array.update(np.array([item_id("a"), item_id("b")], np.uint64))
    assert array == minhash_of("a", "b")


def test_minhashes_can_be_updated_merged_and_compared() -> None:
    a, b, empty = MinHash(64), minhash_of("y", "z", num_perm=64), MinHash(64)
    for item in ("x", "y"):
        a.insert(item)
    assert (empty.is_empty, a.is_empty, len(a), a.num_perm) == (True, False, 64, 64)
    assert a | b == minhash_of("x", "y", "z", num_perm=64)
    assert a == minhash_of("x", "y", num_perm=64) != b
    twin = a.copy()
    twin.merge(b)
    assert twin == a | b != a
    assert 0 < a.jaccard(b) == b.jaccard(a) < a.jaccard(a) == 1
    assert a.jaccard(empty) == empty.jaccard(empty) == 0
    assert a.standard_error(0.5) == 1 / 16
    assert repr(a) == "MinHash(num_perm=64, seed=1)"
    with pytest.raises(ValueError, match="read-only"):
        a.hashvalues[0] = 1
    with pytest.raises(TypeError):
        hash(a)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: MinHash(0), RecipeError, "num_perm"),
        (lambda: MinHash(4097), RecipeError, "num_perm"),
        (lambda: MinHash(seed=-1), RecipeError, "seed"),
        (lambda: MinHash().standard_error(1.1), RecipeError, "jaccard"),
        (lambda: MinHash(3).jaccard(MinHash(4)), InputError, "same parameters"),
        (lambda: MinHash(3).merge(MinHash(3, seed=2)), InputError, "same parameters"),
        (lambda: SimHash(2**64), RecipeError, "simhash"),
        (lambda: SimHash.of(["a"], [1, 2]), InputError, "weights do not fit"),
        (lambda: SimHash.of(["a"], [-1]), RecipeError, "weight"),
        (lambda: SimHash.of(["a", "b"], [2**62, 1]), InputError, "scale them down"),
        (lambda: MinHash().update("abc"), InputError, "is one item"),
        *((lambda wrong=wrong: MinHash().update(wrong), InputError, "outside") for wrong in ([-1], [2**64])),
        (lambda: MinHash().update(np.array([1])), InputError, "holds no ids"),
    ],
)
def test_wrong_numbers_and_items_are_refused(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@given(st.lists(WORDS, max_size=30), st.integers(1, 40), st.integers(0, MASK))
def test_bytes_give_the_same_sketch_back(features: list[int], num_perm: int, seed: int) -> None:
    sketch = minhash_of(*features, num_perm=num_perm, seed=seed)
    back = MinHash.from_bytes(sketch.to_bytes())
    assert back == sketch
    one = SimHash.of(features)
    assert SimHash(int(one)) == one
    other = SimHash(one.value ^ 0b10011)
    assert (one.distance(other), one.similarity(other), one.near(other), one.near(other, 2)) == (
        3,
        61 / 64,
        True,
        False,
    )


def test_the_bytes_of_a_sketch_never_change() -> None:
    assert item_id("a rose") == 15179905382024134128
    assert minhash_of("a rose", num_perm=2).hashvalues.tolist() == [54891860626940, 939980974087241]


def test_bytes_that_are_not_a_sketch_are_refused() -> None:
    data = minhash_of("a", num_perm=3).to_bytes()
    for wrong in (b"", data[:8], data[:-1], data + b"0", data * 2000):
        with pytest.raises(InputError, match=f"{len(wrong)} bytes.*to_bytes"):
            MinHash.from_bytes(wrong)
