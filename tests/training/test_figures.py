"""Figures and draws of groups equal plain loops; quick figures of a few labels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.folds import draw_groups
from neardup.training.training import MIN_LABELS, quick_evaluation

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
    assert gain.beyond_chance
    assert loss.beyond_chance
    assert loss.difference.value == pytest.approx(2 / 3 - 1)
    assert not drawn.gain(0, 0).beyond_chance


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
