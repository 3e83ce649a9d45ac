"""Pairs within a Hamming distance against a comparison of all with all."""

from __future__ import annotations

import naive
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.search import hamming
from neardup.search.hamming import NearPairs, hamming_pairs

Words = npt.NDArray[np.uint64]
Rows = list[tuple[int, int, int]]


def naive_pairs(values: Words, k: int) -> Rows:
    numbers = values.tolist()
    pairs = [(i, j, naive.hamming(numbers[i], numbers[j])) for j in range(len(numbers)) for i in range(j)]
    return sorted(pair for pair in pairs if pair[2] <= k)


def rows_of(near: NearPairs) -> Rows:
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
def _plan(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the cheapest plan, or blocks, which cost too much for small collections; pairs grow beyond their room."""
    monkeypatch.setattr(hamming, "_CAPACITY", 2)
    if request.param != "cheapest":
        monkeypatch.setattr(hamming, "_SORT_COST", 0)
        monkeypatch.setattr(hamming, "_MAX_TABLES", 30)
    if request.param == "blocks in blocks":
        monkeypatch.setattr(hamming, "_MAX_RUN", 3)


@pytest.mark.usefixtures("_plan")
@pytest.mark.parametrize("k", [0, 1, 3, 6, 20])
@pytest.mark.parametrize(("count", "centres", "flips"), [(50, 3, 4), (70, 30, 9)])
def test_no_pair_is_missed(count: int, centres: int, flips: int, k: int) -> None:
    for seed in range(2):
        values = clustered(seed, count, centres, flips)
        assert rows_of(hamming_pairs(values, k)) == naive_pairs(values, k)


@given(st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 40), max_size=40), st.integers(0, 63))
def test_pairs_of_any_values_are_those_of_all_compared(numbers: list[int], k: int) -> None:
    values = np.array(numbers, np.uint64)
    assert rows_of(hamming_pairs(values, k)) == naive_pairs(values, k)


@pytest.mark.usefixtures("_plan")
def test_threads_change_nothing_and_progress_reaches_its_total() -> None:
    values = clustered(2, 500, 100, 3)
    reports: list[tuple[int, int]] = []
    threaded = hamming_pairs(values, 3, threads=3, progress=lambda done, total: reports.append((done, total)))
    assert rows_of(threaded) == rows_of(hamming_pairs(values, 3))
    assert reports[-1] == (len(reports), len(reports))
