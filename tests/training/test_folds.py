"""Folds: whole groups, no document on both sides, and the unit that is assigned if this is impossible."""

from __future__ import annotations

from typing import Any

import naive_learning as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.folds import MIN_PER_CLASS, Folds, assign_folds, make_folds, pair_groups

PAIRS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(31, 60), st.booleans()),
    min_size=4,
    max_size=60,
    unique_by=lambda p: p[:2],
)


def arrays(pairs: list[tuple[int, int, bool]]) -> tuple[Any, Any, Any]:
    left, right, labels = zip(*pairs, strict=True)
    return np.array(left, np.int64), np.array(right, np.int64), np.array(labels, np.bool_)


def check(folds: Folds, left: Any, right: Any, labels: Any, decided: Any) -> None:
    assert sorted(np.concatenate([split.test for split in folds.splits]).tolist()) == list(range(len(labels)))
    for train, test in folds.splits:
        assert not set(train.tolist()) & set(test.tolist())
        usable = labels[train[decided[train]]]
        assert min(usable.sum(), (~usable).sum()) >= MIN_PER_CLASS
        if folds.unit != "pairs":
            seen = set(left[train].tolist()) | set(right[train].tolist())
            assert not seen & (set(left[test].tolist()) | set(right[test].tolist()))


@given(PAIRS, st.integers(2, 6), st.integers(0, 3), st.integers(1, 3))
def test_no_document_is_on_both_sides(pairs: list[tuple[int, int, bool]], count: int, seed: int, part: int) -> None:
    left, right, labels = arrays(pairs)
    decided = np.arange(len(labels)) % 3 < part
    folds = make_folds(left, right, labels, count=count, seed=seed, decided=decided)
    again = make_folds(left, right, labels, count=count, seed=seed, decided=decided)
    if folds is None or again is None:
        assert folds is again
        return
    check(folds, left, right, labels, decided)
    for one, other in zip(folds.splits, again.splits, strict=True):
        assert np.array_equal(one.train, other.train)
        assert np.array_equal(one.test, other.test)


@given(PAIRS)
def test_groups_equal_a_plain_walk(pairs: list[tuple[int, int, bool]]) -> None:
    left, right, _ = arrays(pairs)
    expected = naive.groups([pair[:2] for pair in pairs])
    found = pair_groups(left, right).tolist()
    assert [found.index(f) for f in found] == [expected.index(e) for e in expected]


@given(PAIRS, st.integers(2, 6), st.integers(0, 3))
def test_assigned_folds_equal_plain_sums(pairs: list[tuple[int, int, bool]], count: int, seed: int) -> None:
    left, _, labels = arrays(pairs)
    groups = left % 7
    shuffled = np.random.default_rng(seed).permutation(len(np.unique(groups))).tolist()
    expected = naive.assigned_folds(groups.tolist(), labels.tolist(), count, shuffled)
    assert assign_folds(groups, labels, count, seed).tolist() == expected


def test_small_groups_are_assigned_whole() -> None:
    left, right = np.arange(0, 60, 2), np.arange(1, 60, 2)
    folds = make_folds(left, right, np.arange(30) % 2 == 0, count=5, seed=0)
    assert folds is not None
    assert (folds.unit, folds.fold_count, len(folds.splits), folds.left_out_share) == ("groups", 5, 5, 0.0)
    assert folds.largest_share == pytest.approx(1 / 30)
    few = make_folds(left[:8], right[:8], np.arange(8) % 2 == 0, count=5, seed=0)
    assert few is not None
    assert few.fold_count == 5


def test_documents_are_assigned_if_one_group_is_too_large() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.integers(0, 40, 200), rng.integers(40, 80, 200)
    labels = left % 5 == right % 5
    folds = make_folds(left, right, labels, count=4, seed=0)
    assert folds is not None
    assert (folds.unit, folds.fold_count) == ("documents", 4)
    assert folds.largest_share > 0.9
    assert len(folds.splits) <= 4 * 5 // 2
    check(folds, left, right, labels, np.ones(200, np.bool_))
    judged = np.array([len(split.train) + len(split.test) for split in folds.splits]) / 200
    assert folds.left_out_share == pytest.approx(1 - judged.mean())
    assert folds.left_out_share > 0.2


def test_families_stay_together_if_documents_are_assigned() -> None:
    # Families of three documents, and different pairs that connect all families.
    families = [(3 * f + a, 3 * f + b, True) for f in range(20) for a, b in ((0, 1), (1, 2))]
    between = [(3 * f, 3 * ((f + 1) % 20) + 1, False) for f in range(20)]
    left, right, labels = arrays([*families, *between])
    folds = make_folds(left, right, labels, count=4, seed=0)
    assert folds is not None
    assert folds.unit == "documents"
    for _, test in folds.splits:
        for family in range(20):
            rows = np.flatnonzero((left // 3 == family) & labels)
            assert len(set(rows.tolist()) & set(test.tolist())) in (0, 2)


def test_pairs_are_assigned_if_one_document_is_in_all() -> None:
    left, right = np.zeros(40, np.int64), np.arange(1, 41)
    folds = make_folds(left, right, np.arange(40) % 2 == 0, count=5, seed=0)
    assert folds is not None
    assert (folds.unit, folds.largest_share) == ("pairs", 1.0)
    # The other document of each pair is on one side only.
    for train, test in folds.splits:
        assert not set(right[train].tolist()) & set(right[test].tolist())


def test_a_class_that_is_too_small_gives_no_folds() -> None:
    left, right = np.arange(0, 20, 2), np.arange(1, 20, 2)
    assert make_folds(left, right, np.arange(10) < 2, count=5, seed=0) is None
