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
)

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
