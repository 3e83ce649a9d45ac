"""Sketches compared with naive twins in Python integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_sketches import MASK, naive_minhash, naive_simhash

from neardup.errors import InputError, RecipeError
from neardup.features.sketches import MinHash, SimHash, item_id
from neardup.kernels.sketches import EMPTY

WORDS = st.one_of(st.integers(0, MASK), st.integers(0, 9), st.integers(0, 2**16 - 1).map(lambda x: x << 48))


def minhash_of(*things: str | bytes | int, num_perm: int = 128, seed: int = 1) -> MinHash:
    sketch = MinHash(num_perm, seed=seed)
    sketch.update(things)
    return sketch


@given(st.lists(WORDS, max_size=30), st.lists(WORDS, max_size=30), st.integers(1, 60), st.integers(0, MASK))
def test_sketches_equal_their_twins_and_survive_merging_and_bytes(
    features: list[int], others: list[int], num_perm: int, seed: int
) -> None:
    sketch, other = (minhash_of(*items, num_perm=num_perm, seed=seed) for items in (features, others))
    assert sketch.hashvalues.tolist() == naive_minhash(features, num_perm, seed)
    assert sketch | other == minhash_of(*features, *others, num_perm=num_perm, seed=seed)
    assert MinHash.from_bytes(sketch.to_bytes()) == sketch
    one = SimHash.of(features)
    assert one.value == naive_simhash(features, [1] * len(features))
    near = SimHash(one.value ^ 0b10011)
    assert (one.distance(near), one.similarity(near)) == (3, 61 / 64)
    assert one.near(near) > one.near(near, 2)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("shared", "alone"), [(5, 95), (300, 300), (90, 15), (1000, 20)])
def test_estimates_are_within_four_standard_errors(shared: int, alone: int, seed: int) -> None:
    left, right = (minhash_of(*range(at, at + shared + alone), num_perm=256, seed=seed) for at in (0, alone))
    jaccard = shared / (shared + 2 * alone)
    assert abs(left.jaccard(right) - jaccard) <= 4 * left.standard_error(jaccard)


def test_the_largest_sketch_fills_all_slots() -> None:
    of_one, of_many = minhash_of(7, num_perm=4096).hashvalues, minhash_of(*range(50_000), num_perm=4096).hashvalues
    assert EMPTY not in of_one.tolist()
    assert (of_one >> np.uint64(48)).max() > 4096
    assert (of_many >> np.uint64(48)).max() < 10


@pytest.mark.parametrize("size", [7, 8, 255, 256, 513])
def test_simhash_is_correct_at_block_boundaries(size: int) -> None:
    features = [x**3 for x in range(size)]
    assert int(SimHash.of(features)) == naive_simhash(features, [1] * size)
    assert int(SimHash.of([5] * size)) == naive_simhash([5], [1])


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
        (lambda: SimHash.of(5), InputError, "is one item"),  # type: ignore[arg-type]
        *((lambda wrong=wrong: MinHash().update(wrong), InputError, "outside") for wrong in ([-1], [2**64])),
        (lambda: MinHash().update(np.array([1])), InputError, "holds no ids"),
    ],
)
def test_wrong_numbers_and_items_are_refused(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_the_bytes_of_a_sketch_never_change() -> None:
    assert item_id("a rose") == 15179905382024134128
    assert minhash_of("a rose", num_perm=2).hashvalues.tolist() == [54891860626940, 939980974087241]


def test_bytes_that_are_not_a_sketch_are_refused() -> None:
    data = minhash_of("a", num_perm=3).to_bytes()
    for wrong in (b"", data[:8], data[:-1], data + b"0", data * 2000):
        with pytest.raises(InputError, match=f"{len(wrong)} bytes.*to_bytes"):
            MinHash.from_bytes(wrong)
