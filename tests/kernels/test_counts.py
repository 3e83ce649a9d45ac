"""Counts of features, in one table and by part of the key space, and parities, compared with plain counting."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.counts import _SIZES, add_counts, count_features, flag_sets_by_size
from neardup.kernels.key_parts import (
    _SLOT_FACTOR,
    copy_counted_slots,
    count_slots,
    count_unshared,
    flag_pairs_by_parities,
    parity_lengths,
    record_slots,
    slots_by_part,
    slots_by_set,
    write_parities,
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


def test_large_counts_are_right_on_average_and_can_be_added() -> None:
    features, number = 60, 5_000
    total = table_of([list(range(features))] * number)
    sizes = _SIZES[total[:features]]
    assert sizes.mean() == pytest.approx(number, rel=0.1)
    assert sizes.std() < 0.35 * number
    add_counts(total, table_of([[7]] * 3_000))
    assert _SIZES[total[7]] == pytest.approx(8_000, rel=0.5)
    assert total[features] == 0
    just_inexact = table_of([[7]] * 100)
    add_counts(just_inexact, just_inexact.copy())
    assert _SIZES[just_inexact[7]] == pytest.approx(200, rel=0.06)
    full = np.full(4, 255, np.uint8)
    add_counts(full, full.copy())
    assert full.tolist() == [255] * 4


@given(
    st.lists(st.tuples(st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=40), st.booleans()), max_size=20),
    st.sampled_from([4, 9, 16]),
    st.sampled_from([0.3, 0.5, 0.8]),
    st.sampled_from([0, 1, 30, 100, 250]),
)
def test_counts_by_part_equal_plain_counting(
    given_sets: list[tuple[list[int], bool]], bits: int, threshold: float, more: int
) -> None:
    common = list(range(1, 9))
    sets = [sorted({*own, *common[: len(own) % 8]}) for own, _ in given_sets]
    counted = np.array([chosen for _, chosen in given_sets], np.bool_)
    features = np.array([f for s in sets for f in s] or [0], np.uint64)[: sum(map(len, sets))]
    sizes = np.array([len(s) for s in sets], np.int64)

    def slot(feature: int) -> int:
        return (feature * int(_SLOT_FACTOR) % 2**64) >> (64 - bits)

    plain = Counter(slot(f) for s, chosen in zip(sets, counted, strict=True) for f in s if chosen)
    part_bits, shift = bits - 3, np.uint64(64 - bits)
    alone, among = np.zeros((2, len(sets)), np.int32)
    lengths, places = np.zeros((8, len(sets)), np.uint32), np.empty(len(features), np.uint32)
    slots_by_part(features, sizes, shift, part_bits, lengths, places)
    assert lengths.sum(axis=0).tolist() == [len(s) for s in sets]
    ends, found = np.cumsum(lengths.sum(axis=1)), []
    for begin, end, of_each in zip(ends - lengths.sum(axis=1), ends, lengths, strict=True):
        counts = np.zeros(1 << part_bits, np.uint8)
        count_slots(places[begin:end], of_each, counted, 0, counts)
        noted = np.zeros((1 << part_bits) // 32 + 1, np.uint64)
        record_slots(places[begin:end], of_each, counted, noted)
        count_unshared(places[begin:end], of_each, noted, alone)
        # Simulates more frequent features.
        counts = np.where(counts > 0, np.minimum(counts.astype(np.int64) + more, 255), 0).astype(np.uint8)
        out = places[begin:end].copy()
        found.append(out[: copy_counted_slots(out, of_each, counted, counts, among, out)])
    of_chosen = zip(sets, counted.tolist(), strict=True)
    assert among.tolist() == [chosen * sum(plain[slot(f)] + more < 2 for f in s) for s, chosen in of_chosen]
    assert alone.tolist() == [sum(plain[slot(f)] < 2 for f in s) for s in sets]

    able, by = np.empty(len(sets), np.bool_), rule("overlap", threshold, 0.0)
    flag_sets_by_size(sizes, alone, by, able)
    # The size of the smallest set that can match, if all of its features are shared.
    least = [min(m for m in range(1, len(s) + 1) if m >= threshold * len(s)) if s else 0 for s in sets]
    assert able.tolist() == [len(s) > 0 and len(s) - n >= m for s, n, m in zip(sets, alone, least, strict=True)]

    # Features in equal slots get equal numbers, others different ones, and counts keep their order.
    words = np.concatenate([np.zeros(0, np.uint32), *found])
    numbers, seen = np.empty(len(words), np.uint64), np.empty(len(words), np.uint8)
    slots_by_set(lengths * counted, words, part_bits, numbers, seen)
    assert len(words) == int(sizes[counted].sum())
    ends, of_number = np.cumsum(sizes[counted]).tolist(), dict[int, int]()
    chosen_sets = [s for s, chosen in zip(sets, counted, strict=True) if chosen]
    for s, begin, end in zip(chosen_sets, [0, *ends], ends, strict=False):
        by_slot = sorted((slot(f) >> part_bits, position, slot(f)) for position, f in enumerate(s))
        for (_, _, own), number, count in zip(
            by_slot, numbers[begin:end].tolist(), seen[begin:end].tolist(), strict=True
        ):
            assert of_number.setdefault(own, number) == number
            exact = min(plain[own] + more, 255)
            assert count == (exact if exact < 32 else 32 + (exact - 32) * 36 // 256) < 64
    assert len({*of_number.values()}) == len(of_number)


def parity(features: list[int], size: int) -> int:
    """The parities of a set in ``size`` bits, as one number."""
    found = 0
    for feature in features:
        found ^= 1 << feature % size
    return found


@given(
    # Repeats stand for two features of a set in one slot; some sets need more than one word.
    st.lists(st.lists(st.integers(0, 400).map(lambda n: n * 0x9E3779B97F4A7C15 % 2**64), max_size=300), max_size=6),
    st.sampled_from([0.3, 0.6, 0.9]),
)
def test_parities_exclude_no_matching_pair(sets: list[list[int]], threshold: float) -> None:
    sets = [found for found in sets if found]
    by = rule("overlap", threshold, 0.0)
    sizes = np.array([len(found) for found in sets], np.int64)
    lengths = np.empty(len(sets), np.int64)
    parity_lengths(sizes, lengths)
    assert lengths.tolist() == [next(w for w in (1, 2, 4, 8) if 64 * w >= len(found)) for found in sets]
    words = np.empty(int(lengths.sum()), np.uint64)
    write_parities(np.array([f for found in sets for f in found] or [0], np.uint64), sizes, lengths, words)
    pairs = [*combinations(range(len(sets)), 2)]
    able = np.empty(len(pairs), np.bool_)
    parities = np.cumsum(lengths) - lengths, lengths, words
    flag_pairs_by_parities(np.array(pairs, np.int64).reshape(-1, 2), sizes, parities, by, able)
    for (one, other), found in zip(pairs, able.tolist(), strict=True):
        bits = 64 * int(min(lengths[one], lengths[other]))
        apart = (parity(sets[one], bits) ^ parity(sets[other], bits)).bit_count()
        least = int(np.ceil(threshold * max(sizes[one], sizes[other]) - 1e-9))
        assert found == ((sizes[one] + sizes[other] - apart) // 2 >= least)
        assert found or (Counter(sets[one]) & Counter(sets[other])).total() < least
