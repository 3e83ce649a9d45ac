"""The table of counts against plain counting."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.counts import (
    _CELLS,
    _SIZES,
    NO_CELLS,
    add_alone,
    add_counts,
    count_cells_to_two,
    count_features,
    count_shared,
    count_to_two,
    find_able,
    find_able_by_size,
    part_cells,
)
from neardup.recipe.measures import rule

BITS = 16
SHIFT = np.uint64(64 - BITS)


def table_of(sets: list[list[int]]) -> np.ndarray:
    """Count features that are slots: feature f lies in the upper bits, so that no two share a slot."""
    features = np.array([f << 48 | f for s in sets for f in s] or [0], np.uint64)
    sizes = np.array([len(s) for s in sets], np.int64)
    starts = np.cumsum(sizes) - sizes
    addresses = np.uint64(features.ctypes.data) + np.uint64(8) * starts.astype(np.uint64)
    counts = np.zeros(1 << BITS, np.uint8)
    count_features(addresses, sizes, np.arange(len(sets)), SHIFT, counts)
    return counts


SETS = st.lists(st.lists(st.integers(0, 40), unique=True, max_size=150), max_size=100)


@given(SETS, SETS)
def test_small_counts_are_exact_alone_and_added(first: list[list[int]], second: list[list[int]]) -> None:
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


def test_large_counts_add_up() -> None:
    total = table_of([[7]] * 3_000)
    add_counts(total, table_of([[7]] * 5_000))
    assert _SIZES[total[7]] == pytest.approx(8_000, rel=0.5)
    assert total[8] == 0


def test_counts_end_at_the_last_step() -> None:
    total = np.full(4, 255, np.uint8)
    add_counts(total, np.full(4, 255, np.uint8))
    assert total.tolist() == [255] * 4


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=40), st.booleans()), max_size=20),
    st.integers(4, 16),
    st.sampled_from([0.3, 0.5, 0.8]),
)
def test_cells_know_what_is_in_two_sets_as_plain_counting_does(
    given_sets: list[tuple[list[int], bool]], bits: int, threshold: float
) -> None:
    common = list(range(1, 9))
    sets = [sorted({*own, *common[: len(own) % 8]}) for own, _ in given_sets]
    counted = np.array([chosen for _, chosen in given_sets], np.bool_)
    features = np.array([f for s in sets for f in s] or [0], np.uint64)[: sum(map(len, sets))]
    sizes = np.array([len(s) for s in sets], np.int64)
    cells, cell_shift = np.zeros((1 << bits) // 4, np.uint8), np.uint64(64 - bits)
    count_to_two(features, sizes, counted, cell_shift, cells)

    def cell(feature: int) -> int:
        return (feature * int(_CELLS) % 2**64) >> (64 - bits)

    plain = Counter(cell(f) for s, chosen in zip(sets, counted, strict=True) for f in s if chosen)
    assert [int(cells[c // 4] >> (2 * (c % 4)) & 3) for c in range(1 << bits)] == [
        min(plain[c], 2) for c in range(1 << bits)
    ]

    able = np.empty(len(sets), np.bool_)
    find_able(features, sizes, cell_shift, cells, rule("overlap", threshold, 0.0), able)
    shared = [sum(plain[cell(f)] > 1 for f in s) for s in sets]
    # Of sets of one size and smaller ones the smallest that matches has this many, all of them shared.
    least = [min(m for m in range(1, len(s) + 1) if m >= threshold * len(s)) if s else 0 for s in sets]
    assert able.tolist() == [len(s) > 0 and n >= m for s, n, m in zip(sets, shared, least, strict=True)]

    counts = np.zeros(1 << BITS, np.uint8)
    count_shared(features, cell_shift, cells, SHIFT, counts)
    expected = Counter(f >> 64 - BITS for s in sets for f in s if plain[cell(f)] > 1)
    # Beyond 127 counts go on in steps.
    exact = {slot: min(count, 127) for slot, count in expected.items()}
    assert {slot: min(int(counts[slot]), 127) for slot in np.flatnonzero(counts).tolist()} == exact

    count_shared(features, cell_shift, NO_CELLS, SHIFT, every := np.zeros(1 << BITS, np.uint8))
    expected = Counter(f >> 64 - BITS for s in sets for f in s)
    assert {slot: min(int(every[slot]), 127) for slot in np.flatnonzero(every).tolist()} == {
        slot: min(count, 127) for slot, count in expected.items()
    }

    # The same cells part by part: what is counted of each is what all of them count at once.
    part_bits, alone = bits - 3, np.zeros(len(sets), np.int32)
    lengths, places = np.zeros((8, len(sets)), np.uint32), np.empty(len(features), np.uint32)
    part_cells(features, sizes, counted, cell_shift, part_bits, lengths, places)
    assert lengths.sum(axis=0).tolist() == [len(s) * chosen for s, chosen in zip(sets, counted, strict=True)]
    for begin, end, of_each in zip(
        np.cumsum(lengths.sum(axis=1)) - lengths.sum(axis=1), np.cumsum(lengths.sum(axis=1)), lengths, strict=True
    ):
        part = np.zeros(max((1 << part_bits) // 4, 1), np.uint8)
        count_cells_to_two(places[begin:end], part)
        add_alone(places[begin:end], of_each, part, alone)
    expected_alone = [sum(plain[cell(f)] < 2 for f in s) * chosen for s, chosen in zip(sets, counted, strict=True)]
    assert alone.tolist() == expected_alone
    find_able_by_size(sizes, alone, rule("overlap", threshold, 0.0), able)
    assert able.tolist() == [
        len(s) > 0 and len(s) - n >= m for s, n, m in zip(sets, expected_alone, least, strict=True)
    ]
