"""The approximate table of counts compared with exact counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.counts import (
    _SIZES,
    add_counts,
    count_features,
    prefix_capacities,
    write_counted_prefixes,
    write_prefixes,
)
from neardup.recipe.measures import rule

BITS = 16
SHIFT = np.uint64(64 - BITS)


def table_of(sets: list[list[int]]) -> np.ndarray:
    """Count features that equal their slots: feature f is in the upper bits, so that no two share a slot."""
    features = np.array([f << 48 | f for s in sets for f in s] or [0], np.uint64)
    sizes = np.array([len(s) for s in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    addresses = np.uint64(features.ctypes.data) + np.uint64(8) * starts.astype(np.uint64)
    counts = np.zeros(1 << BITS, np.uint8)
    count_features(addresses, sizes, np.arange(len(sets)), SHIFT, counts)
    return counts


SETS = st.lists(st.lists(st.integers(0, 40), unique=True, max_size=150), max_size=100)


@given(SETS, SETS)
def test_small_counts_are_exact_before_and_after_adding(first: list[list[int]], second: list[list[int]]) -> None:
    total, other = table_of(first), table_of(second)
    plain, more = (Counter(f for s in sets for f in s) for sets in (first, second))
    assert {f: total[f] for f in plain} == plain
    add_counts(total, other)
    both = plain + more
    for feature, number in both.items():
        if number <= 127:
            assert total[feature] == number
        else:
            assert _SIZES[total[feature]] == pytest.approx(number, rel=0.06)
    assert int((total > 0).sum()) == len(both)


@pytest.mark.parametrize("number", [200, 2_000, 50_000])
def test_large_counts_are_right_on_average(number: int) -> None:
    features = 60
    counts = table_of([list(range(features))] * number)
    sizes = _SIZES[counts[:features]]
    assert sizes.mean() == pytest.approx(number, rel=0.05)
    assert sizes.std() < 0.35 * number


def test_large_counts_can_be_added() -> None:
    total = table_of([[7]] * 3_000)
    add_counts(total, table_of([[7]] * 5_000))
    assert _SIZES[total[7]] == pytest.approx(8_000, rel=0.5)
    assert total[8] == 0


def test_counts_saturate_at_the_last_step() -> None:
    total = np.full(4, 255, np.uint8)
    add_counts(total, np.full(4, 255, np.uint8))
    assert total.tolist() == [255] * 4


@given(SETS, st.sampled_from([0.3, 0.6, 0.9]))
def test_prefixes_by_given_counts_equal_those_by_a_table(sets: list[list[int]], threshold: float) -> None:
    sets = [s for s in sets if s]
    features = np.array([f << 48 | f for s in sets for f in s] or [0], np.uint64)
    sizes, by = np.array([len(s) for s in sets], np.int64), rule("jaccard", threshold, 0.0)
    addresses = np.uint64(features.ctypes.data) + np.uint64(8) * (np.cumsum(sizes) - sizes).astype(np.uint64)
    table, rooms = table_of(sets), np.empty(len(sets), np.int64)
    prefix_capacities(sizes, by, rooms)

    def results() -> tuple[np.ndarray, ...]:
        shared, lengths, starts = (np.zeros(len(sets), np.int64) for _ in range(3))
        return shared, lengths, np.zeros((len(sets), 8), np.uint64), starts, np.zeros(int(rooms.sum()), np.uint64)

    one, other = results(), results()
    write_prefixes(addresses, sizes, np.arange(len(sets)), SHIFT, table, by, (*one, 0))
    write_counted_prefixes(features[: int(sizes.sum())], sizes, table[features >> SHIFT], by, (*other, 0))
    assert all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))
