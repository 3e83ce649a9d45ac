"""Folds: whole groups, no document on both sides, and what is said where that cannot be."""

from __future__ import annotations

from typing import Any

import naive_learning as naive
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.folds import LEAST_OF_A_CLASS, Folds, connected, deal, folds_of

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
    """What holds of all folds."""
    assert sorted(np.concatenate([split.test for split in folds.splits]).tolist()) == list(range(len(labels)))
    for train, test in folds.splits:
        assert not set(train.tolist()) & set(test.tolist())
        usable = labels[train[decided[train]]]
        assert min(usable.sum(), (~usable).sum()) >= LEAST_OF_A_CLASS
        if folds.by != "pairs":
            seen = set(left[train].tolist()) | set(right[train].tolist())
            assert not seen & (set(left[test].tolist()) | set(right[test].tolist()))


@given(PAIRS, st.integers(2, 6), st.integers(0, 3), st.integers(1, 3))
def test_no_document_is_on_both_sides(pairs: list[tuple[int, int, bool]], count: int, seed: int, some: int) -> None:
    left, right, labels = arrays(pairs)
    decided = np.arange(len(labels)) % 3 < some
    folds = folds_of(left, right, labels, count=count, seed=seed, decided=decided)
    again = folds_of(left, right, labels, count=count, seed=seed, decided=decided)
    if folds is None or again is None:
        assert folds is again
        return
    check(folds, left, right, labels, decided)
    for one, other in zip(folds.splits, again.splits, strict=True):
        assert np.array_equal(one.train, other.train)
        assert np.array_equal(one.test, other.test)


@given(PAIRS)
def test_groups_are_those_found_by_walking(pairs: list[tuple[int, int, bool]]) -> None:
    left, right, _ = arrays(pairs)
    expected = naive.groups([pair[:2] for pair in pairs])
    found = connected(left, right).tolist()
    assert [found.index(f) for f in found] == [expected.index(e) for e in expected]


@given(PAIRS, st.integers(2, 6), st.integers(0, 3))
def test_groups_are_dealt_as_plainly(pairs: list[tuple[int, int, bool]], count: int, seed: int) -> None:
    left, _, labels = arrays(pairs)
    groups = left % 7
    shuffled = np.random.default_rng(seed).permutation(len(np.unique(groups))).tolist()
    expected = naive.dealt(groups.tolist(), labels.tolist(), count, shuffled)
    assert deal(groups, labels, count, seed).tolist() == expected


def test_none_where_a_class_is_too_small() -> None:
    left, right = np.arange(0, 20, 2), np.arange(1, 20, 2)
    assert folds_of(left, right, np.arange(10) < 2, count=5, seed=0) is None
