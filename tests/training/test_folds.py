"""Folds and draws of groups: no document on both sides, figures equal to plain loops, quick figures of a few labels."""

from __future__ import annotations

from typing import Any

import naive_learning as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.folds import (
    MIN_PER_CLASS,
    Folds,
    Split,
    assign_folds,
    draw_groups,
    make_folds,
    pair_groups,
    select_rows,
)
from neardup.training.training import MIN_LABELS, quick_evaluation

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


def test_a_group_of_most_pairs_is_divided_by_documents() -> None:
    # A path of 34 pairs, and 26 pairs of their own; groups alone would leave enough to train on.
    left = np.array([*range(34), *range(100, 126)])
    right = np.array([*range(1, 35), *range(200, 226)])
    labels = np.arange(60) % 3 == 0
    folds = make_folds(left, right, labels, count=3, seed=0)
    assert folds is not None
    assert (folds.unit, folds.fold_count) == ("documents", 3)
    assert folds.largest_share == pytest.approx(34 / 60)


def test_splits_of_some_rows_are_renumbered() -> None:
    splits = [Split(np.array([0, 1, 2]), np.array([3, 4])), Split(np.array([3, 4]), np.array([0, 1, 2]))]
    (only,) = select_rows(splits, np.array([0, 3]), 5)[:1]
    assert (only.train.tolist(), only.test.tolist()) == ([0], [1])
    assert [split.test.tolist() for split in select_rows(splits, np.array([0, 1]), 5)] == [[0, 1]]


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


def test_a_family_of_most_documents_is_divided() -> None:
    # Twelve copies in all their pairs, and eight other documents, each different from three copies.
    copies = [(i, j, True) for i in range(12) for j in range(i + 1, 12)]
    others = [(i, 100 + j, False) for j in range(8) for i in (j, j + 2, j + 4)]
    left, right, labels = arrays([*copies, *others])
    folds = make_folds(left, right, labels, count=3, seed=0)
    assert folds is not None
    assert (folds.unit, folds.fold_count) == ("documents", 3)
    check(folds, left, right, labels, np.ones(len(labels), np.bool_))


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


ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30)


def plain_draws(labels: list[bool], groups: list[int], verdicts: list[list[bool]], seed: int) -> list[list[int]]:
    """The counts of all groups and of 12 draws, by loops over groups and kinds of groups."""

    def cells(group: int) -> tuple[int, ...]:
        rows = [i for i, g in enumerate(groups) if g == group]
        counts: list[int] = []
        for verdict in verdicts:
            counts += [sum(verdict[i] and labels[i] for i in rows), sum(verdict[i] and not labels[i] for i in rows)]
        return (*counts, sum(labels[i] for i in rows), sum(not labels[i] for i in rows))

    by_group = [cells(group) for group in sorted(set(groups))]
    kinds = sorted(set(by_group))
    shares = [by_group.count(kind) / len(by_group) for kind in kinds]
    drawn = np.random.default_rng(seed).multinomial(len(by_group), shares, size=12).tolist()
    columns = range(len(kinds[0]))
    return [
        [sum(counts[c] for counts in by_group) for c in columns],
        *([sum(n * kind[c] for n, kind in zip(draw, kinds, strict=True)) for c in columns] for draw in drawn),
    ]


@given(ROWS, st.integers(0, 2))
def test_draws_equal_loops_over_groups(rows: list[tuple[bool, int, bool, bool]], seed: int) -> None:
    labels, groups, one, other = (list(column) for column in zip(*rows, strict=True))
    drawn = draw_groups(np.array(labels), np.array(groups), [np.array(one), np.array(other)], count=12, seed=seed)
    assert drawn.table.tolist() == plain_draws(labels, groups, [one, other], seed)
    differing = 0
    for group in set(groups):
        places = [i for i, g in enumerate(groups) if g == group]
        sums = [[sum(v[i] for i in places if labels[i] == kind) for kind in (True, False)] for v in (one, other)]
        differing += sums[0] != sums[1]
    assert drawn.differing_groups[0, 1] == drawn.differing_groups[1, 0] == differing


def test_a_gain_is_measured_on_the_same_draws() -> None:
    labels = np.array([1, 0] * 60, np.bool_)
    drawn = draw_groups(labels, np.arange(120), [labels, np.ones(120, np.bool_)])
    gain, loss = drawn.gain(0, 1), drawn.gain(1, 0)
    assert gain.difference.value == pytest.approx(1 - 2 / 3)
    assert loss.difference.value == pytest.approx(2 / 3 - 1)
    assert (gain.beyond_chance, loss.beyond_chance, drawn.gain(0, 0).beyond_chance) == (True, True, False)
    # Six groups are enough, five are not.
    for count, expected in ((6, True), (5, False)):
        some = np.arange(120) < 120 - 2 * count
        drawn = draw_groups(labels, np.arange(120) // 2, [labels, labels & some])
        assert drawn.gain(0, 1).beyond_chance == expected


def test_figures_follow_from_their_counts() -> None:
    labels, verdict = np.arange(20) < 8, (np.arange(20) >= 2) & (np.arange(20) < 11)
    found = draw_groups(labels, np.arange(20), [verdict]).figures(0)
    assert (found.correct, found.wrong, found.missed, found.rejected) == (6, 3, 2, 9)
    values = [found.precision.value, found.recall.value, found.f1.value, found.accuracy.value]
    assert values == pytest.approx([6 / 9, 6 / 8, 12 / 17, 15 / 20])
    assert draw_groups(np.zeros(9, np.bool_), np.arange(9), [np.ones(9, np.bool_)]).figures(0).f1.value is None


def separable(count: int, share: float = 0.5, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) < share * count
    return rng.normal(np.where(labels, 1.0, -1.0)[:, np.newaxis], 1.0, (count, 4)), labels


def test_few_labels_give_no_quick_figures() -> None:
    x, labels = separable(40, (MIN_LABELS - 1) / 40)
    assert quick_evaluation(x, labels, np.arange(40)) is None
    assert quick_evaluation(x, ~labels, np.arange(40)) is None
    x, labels = separable(40, MIN_LABELS / 40)
    assert quick_evaluation(x, labels, np.arange(40)) is not None
    assert quick_evaluation(np.empty((0, 4)), np.empty(0, np.bool_), np.empty(0, np.int64)) is None


def test_a_machine_on_several_measures_beats_one_threshold() -> None:
    x, labels = separable(200)
    found = quick_evaluation(x, labels, np.arange(200))
    assert found is not None
    assert not found.shares_documents
    assert (found.learned.f1.low or 0) > (found.threshold.f1.value or 1)
    assert found.learned.correct + found.learned.missed == 100
    assert quick_evaluation(x, labels, np.arange(200)) == found
