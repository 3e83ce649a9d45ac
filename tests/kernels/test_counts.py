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
    add_alone,
    add_counts,
    count_features,
    count_places,
    counted_prefixes,
    counts_in_order,
    counts_of_places,
    find_able_by_size,
    part_slots,
    prefix_rooms,
    prefixes,
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
def test_parts_of_the_key_space_know_what_plain_counting_does(
    given_sets: list[tuple[list[int], bool]], bits: int, threshold: float
) -> None:
    common = list(range(1, 9))
    sets = [sorted({*own, *common[: len(own) % 8]}) for own, _ in given_sets]
    counted = np.array([chosen for _, chosen in given_sets], np.bool_)
    features = np.array([f for s in sets for f in s] or [0], np.uint64)[: sum(map(len, sets))]
    sizes = np.array([len(s) for s in sets], np.int64)

    def slot(feature: int) -> int:
        return (feature * int(_CELLS) % 2**64) >> (64 - bits)

    plain = Counter(slot(f) for s, chosen in zip(sets, counted, strict=True) for f in s if chosen)
    part_bits, shift, alone = bits - 3, np.uint64(64 - bits), np.zeros(len(sets), np.int32)
    lengths, places = np.zeros((8, len(sets)), np.uint32), np.empty(len(features), np.uint32)
    part_slots(features, sizes, shift, part_bits, lengths, places)
    assert lengths.sum(axis=0).tolist() == [len(s) for s in sets]
    ends, found = np.cumsum(lengths.sum(axis=1)), []
    for begin, end, of_each in zip(ends - lengths.sum(axis=1), ends, lengths, strict=True):
        counts = np.zeros(1 << part_bits, np.uint8)
        count_places(places[begin:end], of_each, counted, 0, counts)
        add_alone(places[begin:end], of_each, counts, alone)
        out = np.empty(end - begin, np.uint8)
        found.append(out[: counts_of_places(places[begin:end], of_each, counted, counts, out)])
    assert alone.tolist() == [sum(plain[slot(f)] < 2 for f in s) for s in sets]

    able, by = np.empty(len(sets), np.bool_), rule("overlap", threshold, 0.0)
    find_able_by_size(sizes, alone, by, able)
    # Of sets of one size and smaller ones the smallest that matches has this many, all of them shared.
    least = [min(m for m in range(1, len(s) + 1) if m >= threshold * len(s)) if s else 0 for s in sets]
    assert able.tolist() == [len(s) > 0 and len(s) - n >= m for s, n, m in zip(sets, alone, least, strict=True)]

    # The counts of the chosen sets come back in the order of their features, unless a set has others by now.
    heads = np.zeros((8, len(sets) + 1), np.int64)
    heads[:, 1:] = np.cumsum(lengths * counted, axis=1)
    heads += np.cumsum([0, *map(len, found)])[:-1, None]
    chosen = np.flatnonzero(counted)
    these = np.array([f for d in chosen for f in sets[d]] or [0], np.uint64)[: int(sizes[chosen].sum())]
    seen = np.empty(len(these), np.uint8)
    given_counts = heads, np.concatenate([np.zeros(0, np.uint8), *found])
    assert counts_in_order(these, sizes[chosen], chosen, shift, part_bits, *given_counts, seen)
    assert seen.tolist() == [plain[slot(f)] for d in chosen for f in sets[d]]
    if len({slot(int(f)) >> part_bits for f in these}) > 1:
        others = np.full(len(these), these[0])
        assert not counts_in_order(others, sizes[chosen], chosen, shift, part_bits, *given_counts, seen.copy())


@given(SETS, st.sampled_from([0.3, 0.6, 0.9]))
def test_prefixes_by_known_counts_are_those_by_a_table(sets: list[list[int]], threshold: float) -> None:
    sets = [s for s in sets if s]
    features = np.array([f << 48 | f for s in sets for f in s] or [0], np.uint64)
    sizes, by = np.array([len(s) for s in sets], np.int64), rule("jaccard", threshold, 0.0)
    addresses = np.uint64(features.ctypes.data) + np.uint64(8) * (np.cumsum(sizes) - sizes).astype(np.uint64)
    table, rooms = table_of(sets), np.empty(len(sets), np.int64)
    prefix_rooms(sizes, by, rooms)

    def results() -> tuple[np.ndarray, ...]:
        shared, lengths, starts = (np.zeros(len(sets), np.int64) for _ in range(3))
        return shared, lengths, np.zeros((len(sets), 8), np.uint64), starts, np.zeros(int(rooms.sum()), np.uint64)

    one, other = results(), results()
    prefixes(addresses, sizes, np.arange(len(sets)), SHIFT, table, by, (*one, 0))
    counted_prefixes(features[: int(sizes.sum())], sizes, table[features >> SHIFT], by, (*other, 0))
    assert all(np.array_equal(left, right) for left, right in zip(one, other, strict=True))
