"""Signatures of features: matching documents share enough of them, and their table keeps every document."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import examples, small_plans

from neardup.kernels.bits import mix
from neardup.kernels.bounds import required_overlap, smallest_partner
from neardup.kernels.compilation import kernel
from neardup.kernels.window import (
    BUCKETS,
    CELL_BITS,
    FIRST,
    FURTHER_LIMIT,
    LEVEL,
    MIN_SIZE,
    NEXT,
    SHARED_KEYS,
    TAG_SHIFT,
    add_buckets,
    find_by_signatures,
    insert_in_buckets,
    insertion_credit,
    pair_signatures,
    plan_row,
)
from neardup.recipe import load_recipe
from neardup.recipe.measures import Rule, rule
from neardup.search.window import kind_of
from neardup.search.window_index import Epoch, empty_vocabulary, plan_of

_ALL = (1 << 64) - 1
Words = npt.NDArray[np.uint64]


@kernel
def insert(keys: Any, document: Any, index: Any) -> Any:
    """Insert a document under its keys."""
    insert_in_buckets(keys, document, index)


@kernel
def grow(keys: Any, index: Any) -> Any:
    """Add buckets for a number of keys."""
    return add_buckets(keys, index)


@kernel
def find(keys: Any, min_hits: Any, index: Any, buffers: Any) -> Any:
    """Find the documents with ``min_hits`` of the keys."""
    further, entries = np.empty(len(keys), np.uint64), np.empty(len(keys), np.uint32)
    return find_by_signatures(keys, min_hits, further, entries, index, buffers, 0)


def naive_signatures(order: list[int], unranked: int, credit: int, bits: int, salt: int) -> Counter[int]:
    """Return the signatures of a document, feature by feature and cell by cell."""

    def mixed(x: int) -> int:
        for _ in range(2):
            x = (x ^ x >> 32) * 0xD6E8FEB86659FD93 & _ALL
        return x ^ x >> 32

    cells: dict[int, list[int]] = defaultdict(list)
    single: list[int] = []
    for at, feature in enumerate(order):
        if len(single) + sum(len(cell) - 1 for cell in cells.values()) >= credit:
            break
        value = mixed(feature) * salt & _ALL
        (single if at < unranked or bits < 0 else cells[value >> (64 - bits)]).append(value)
    pairs = (pair for cell in cells.values() for pair in combinations(cell, 2))
    return Counter(map(mixed, [*single, *((a * 0x9E3779B97F4A7C15 + b) & _ALL for a, b in pairs)]))


RULES = st.one_of(
    st.builds(
        rule, st.sampled_from(["jaccard", "overlap", "dice", "cosine"]), st.integers(30, 100).map(lambda x: x / 100)
    ),
    st.builds(rule, st.just("containment"), st.sampled_from([0.5, 0.75, 0.9, 1.0]), st.sampled_from([0.3, 0.5, 0.8])),
    st.builds(rule, st.just("euclidean"), st.sampled_from([1.0, 2.0, 3.5, 9.0])),
)
SALTS = st.integers(0, (1 << 63) - 1).map(lambda x: 2 * x + 1)


def query_signatures(order: Words, unranked: int, found: Rule, plan: Any, row: int, salt: int) -> Words:
    """Return the keys by which a document looks up those of a row, as ``find_candidates`` does."""
    size, equal = len(order), int(plan[row, SHARED_KEYS])
    low = max(int(plan[row, MIN_SIZE]), smallest_partner(found, size))
    entering = plan_row(plan, size) == row
    credit = insertion_credit(found, size, equal) if entering else size - required_overlap(found, size, low) + equal
    keys: Words = pair_signatures(order, unranked, credit, int(plan[row, CELL_BITS]), np.uint64(salt))
    return keys


@settings(max_examples=examples(100))
@given(RULES, st.integers(1, 24), st.data(), SALTS)
def test_matching_documents_share_enough_signatures(found: Rule, first: int, data: st.DataObject, salt: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        small_plans(patch, first)
        plan = plan_of(found)
    size = data.draw(st.integers(1, 500))
    row = plan_row(plan, size)
    partners = [m for m in range(1, 2 * size) if required_overlap(found, size, m) <= min(size, m)]
    other = data.draw(st.sampled_from(partners))
    least = required_overlap(found, size, other)
    shared = data.draw(st.integers(least, min(size, other, least + 2)))
    # Features of one side only may come first in the order, last, or anywhere.
    seed = data.draw(st.integers(0, 1 << 30))
    lead = data.draw(st.sampled_from(["first", "last", "mixed", "own first, other last"]))
    rng = random.Random(seed)
    place = {"first": (0, 0), "last": (2, 2), "mixed": (1, 1), "own first, other last": (0, 2)}[lead]
    span = (1 << 40) if lead != "mixed" else 1
    marks = rng.sample(range(1 << 30), size + other - shared)
    common = [x + span for x in marks[:shared]]
    left = common + [x + place[0] * span for x in marks[shared:size]]
    right = common + [x + place[1] * span for x in marks[size:]]
    inserted, query = np.array(sorted(left), np.uint64), np.array(sorted(right), np.uint64)
    equal = int(plan[row, SHARED_KEYS])
    credit = insertion_credit(found, size, equal)
    # Whether a feature is ranked is the same for all documents.
    bound = data.draw(st.sampled_from([0, 1 << 29, span, span + (1 << 29), 1 << 62]))
    unranked, other_unranked = int((inserted < bound).sum()), int((query < bound).sum())
    keys = pair_signatures(inserted, unranked, credit, int(plan[row, CELL_BITS]), np.uint64(salt))
    naive = naive_signatures(inserted.tolist(), unranked, credit, int(plan[row, CELL_BITS]), salt)
    assert Counter(keys.tolist()) == naive
    found_keys = query_signatures(query, other_unranked, found, plan, row, salt)
    shared_keys = Counter(keys.tolist()) & Counter(found_keys.tolist())
    assert shared_keys.total() >= equal >= 1


@settings(max_examples=examples(60))
@given(st.data())
def test_buckets_keep_every_document_in_the_window(data: st.DataObject) -> None:
    kind, found, _ = kind_of(load_recipe("ddd"))
    epoch = Epoch(empty_vocabulary(), found, kind, 64, 0)
    epoch.begin_segment(0)
    # Documents are entered here without their features.
    epoch._add_bucket_chunk(FURTHER_LIMIT)
    lists, buffers, epoch._lists.counters[[BUCKETS, LEVEL, TAG_SHIFT]] = epoch._lists, epoch._buffers, [2, 1, 1]
    pool = [int(mix(np.uint64(x))) for x in range(1, data.draw(st.integers(2, 90)))]
    key_counts: dict[int, Counter[int]] = {}
    for document in range(data.draw(st.integers(1, 40))):
        keys = data.draw(st.lists(st.sampled_from(pool), min_size=1, max_size=30))
        assert grow(0, lists)
        insert(np.array(keys, np.uint64), document, lists)
        key_counts[document] = Counter(keys)
        lists.counters[NEXT] = document + 1
        action = data.draw(st.sampled_from(["", "", "grow", "drop"]))
        if action == "grow":
            grow(data.draw(st.integers(0, 500)), lists)
        elif action == "drop":
            first = data.draw(st.integers(int(lists.counters[FIRST]), document))
            lists.counters[FIRST] = first
            key_counts = {d: c for d, c in key_counts.items() if d >= first}
        query = data.draw(st.sets(st.sampled_from(pool), min_size=1))
        least = data.draw(st.integers(1, 5))
        count = find(np.array(sorted(query), np.uint64), least, lists, buffers)
        candidates = buffers.candidates[:count].tolist()
        assert len(set(candidates)) == count
        # Documents found are marked, so that another row of the plan does not find them again.
        assert np.flatnonzero(lists.hits).tolist() == sorted(candidates)
        lists.hits[:] = 0
        for d, left in key_counts.items():
            assert d in candidates or sum(left[key] for key in query) < least
