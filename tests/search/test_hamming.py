"""Pairs within a Hamming distance against a comparison of all with all."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.hamming import rearrange_bits
from neardup.search import hamming
from neardup.search.hamming import NearPairs, hamming_pairs, plan_blocks

Words = npt.NDArray[np.uint64]


def naive_pairs(values: Words, k: int) -> list[tuple[int, int, int]]:
    listed = [int(value) for value in values]
    found = []
    for i, left in enumerate(listed):
        for j in range(i + 1, len(listed)):
            distance = (left ^ listed[j]).bit_count()
            if distance <= k:
                found.append((i, j, distance))
    return found


def as_list(near: NearPairs) -> list[tuple[int, int, int]]:
    return list(zip(near.left.tolist(), near.right.tolist(), near.distance.tolist(), strict=True))


def clustered(seed: int, count: int, centres: int, flips: int) -> Words:
    """Values around a few others, many of them equal; those of odd seeds use few of the bits."""
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 2**64, centres, dtype=np.uint64)[rng.integers(0, centres, count)]
    if seed % 2:
        values &= np.uint64(0xFF00000000000FFF)
    for _ in range(flips):
        bits = np.uint64(1) << rng.integers(0, 64, count, dtype=np.uint64)
        values = values ^ np.where(rng.random(count) < 0.5, bits, np.uint64(0))
    return values


@pytest.fixture(params=["cheapest", "blocks", "blocks in blocks"])
def cost(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the cheapest way, or blocks whatever they cost, which small collections never would."""
    if request.param != "cheapest":
        monkeypatch.setattr(hamming, "_SORT_COST", 0)
        monkeypatch.setattr(hamming, "_MAX_TABLES", 30)
    if request.param == "blocks in blocks":
        monkeypatch.setattr(hamming, "_MAX_RUN", 3)


@pytest.mark.usefixtures("cost")
@pytest.mark.parametrize("k", [0, 1, 3, 6, 20, 63])
@pytest.mark.parametrize(("count", "centres", "flips"), [(0, 1, 0), (1, 1, 0), (60, 3, 4), (90, 40, 9)])
def test_no_pair_is_missed(count: int, centres: int, flips: int, k: int) -> None:
    for seed in range(2):
        values = clustered(seed, count, centres, flips)
        assert as_list(hamming_pairs(values, k)) == naive_pairs(values, k)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=40), st.integers(0, 63))
def test_any_values_and_any_distance(listed: list[int], k: int) -> None:
    values = np.array(listed, np.uint64)
    assert as_list(hamming_pairs(values, k)) == naive_pairs(values, k)


@pytest.mark.usefixtures("cost")
def test_threads_change_nothing_and_progress_comes_to_its_end() -> None:
    values = clustered(2, 1500, 300, 3)
    told: list[tuple[int, int]] = []
    one = hamming_pairs(values, 3)
    three = hamming_pairs(values, 3, threads=3, progress=lambda done, total: told.append((done, total)))
    assert as_list(one) == as_list(three)
    assert told[-1][0] == told[-1][1] == len(told)


def test_more_pairs_than_a_piece_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hamming, "_CAPACITY", 2)
    values = clustered(4, 200, 2, 3)
    assert as_list(hamming_pairs(values, 8)) == naive_pairs(values, 8)


def test_values_with_the_same_front_are_searched_by_the_rest() -> None:
    values = np.random.default_rng(1).integers(0, 2**22, 20_000, dtype=np.uint64)
    near = hamming_pairs(values, 1)
    listed = values.tolist()
    places: dict[int, list[int]] = {}
    for place, value in enumerate(listed):
        places.setdefault(value, []).append(place)
    expected = sorted(
        (i, j, (value ^ listed[j]).bit_count())
        for i, value in enumerate(listed)
        for mask in [0, *(1 << bit for bit in range(64))]
        for j in places.get(value ^ mask, ())
        if i < j
    )
    assert as_list(near) == expected


@given(st.integers(0, 63), st.integers(0, 10**7))
def test_choices_are_possible_and_no_dearer_than_all_with_all(k: int, count: int) -> None:
    choices = plan_blocks(count, k)
    pairs = count * (count - 1) // 2
    assert choices.comparisons <= pairs
    if choices.blocks:
        assert choices.blocks > k
        assert choices.tables == math.comb(choices.blocks, k)
        assert choices.key_bits >= (64 // choices.blocks) * (choices.blocks - k)
    else:
        assert choices.comparisons == pairs


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.permutations(range(8)))
def test_blocks_move_there_and_back(listed: list[int], order: list[int]) -> None:
    values = np.array(listed, np.uint64)
    moves = np.array([(8 * source, 8 * target, 255) for target, source in enumerate(order)], np.uint64)
    moved, back = np.empty_like(values), np.empty_like(values)
    rearrange_bits(values, moves, moved)
    for value, other in zip(listed, moved.tolist(), strict=True):
        assert other == sum((value >> 8 * source & 255) << 8 * target for target, source in enumerate(order))
    rearrange_bits(moved, np.ascontiguousarray(moves[:, [1, 0, 2]]), back)
    assert back.tolist() == listed
