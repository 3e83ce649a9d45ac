"""Figures and their intervals beside counting by hand, and what labels say while they are still being made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.figures import Draws, draw_groups
from neardup.training.training import LEAST_LABELS, quick_evaluation

ROWS = st.lists(st.tuples(st.booleans(), st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=30)


def plain(labels: list[bool], groups: list[int], verdicts: list[list[bool]], seed: int, count: int) -> list[list[int]]:
    """Counts as they are and in draws, by loops over groups and kinds of groups."""

    def cells(group: int) -> tuple[int, ...]:
        rows = [i for i, g in enumerate(groups) if g == group]
        found: list[int] = []
        for verdict in verdicts:
            found += [sum(verdict[i] and labels[i] for i in rows), sum(verdict[i] and not labels[i] for i in rows)]
        return (*found, sum(labels[i] for i in rows), sum(not labels[i] for i in rows))

    held = [cells(group) for group in sorted(set(groups))]
    kinds = sorted(set(held))
    shares = [held.count(kind) / len(held) for kind in kinds]
    drawn = np.random.default_rng(seed).multinomial(len(held), shares, size=count)
    whole = [[sum(cell[c] for cell in held) for c in range(len(held[0]))]]
    return whole + [
        [sum(int(n) * k[c] for n, k in zip(d, kinds, strict=True)) for c in range(len(held[0]))] for d in drawn
    ]


@given(ROWS, st.integers(0, 2))
def test_draws_are_those_of_loops(rows: list[tuple[bool, int, bool, bool]], seed: int) -> None:
    labels, groups, one, other = (list(column) for column in zip(*rows, strict=True))
    drawn = draw_groups(np.array(labels), np.array(groups), [np.array(one), np.array(other)], count=12, seed=seed)
    assert drawn.table.tolist() == plain(labels, groups, [one, other], seed, 12)
    apart = {
        g
        for kind in (True, False)
        for g in groups
        if sum(v for v, h, t in zip(one, groups, labels, strict=True) if h == g and t == kind)
        != sum(v for v, h, t in zip(other, groups, labels, strict=True) if h == g and t == kind)
    }
    assert drawn.differing_groups[0, 1] == drawn.differing_groups[1, 0] == len(apart)


def drawn_of(labels: list[int], *verdicts: list[int], groups: list[int] | None = None) -> Draws:
    truth = np.array(labels, np.bool_)
    return draw_groups(
        truth, np.arange(len(labels)) if groups is None else np.array(groups), [np.array(v) > 0 for v in verdicts]
    )


def test_a_gain_is_measured_on_the_same_draws() -> None:
    labels = [1, 0] * 60
    right, half = list(labels), [1, 1] * 60
    drawn = drawn_of(labels, right, half)
    gain = drawn.gain(0, 1)
    assert gain.difference.value == pytest.approx(1 - 2 / 3)
    assert gain.beyond_chance
    assert drawn.gain(1, 0).beyond_chance
    assert (drawn.gain(1, 0).difference.value or 0) < 0
    assert not drawn.gain(0, 0).beyond_chance


def made(count: int, share: float = 0.5, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) < share * count
    return rng.normal(np.where(labels, 1.0, -1.0)[:, np.newaxis], 1.0, (count, 4)), labels


def test_none_while_there_are_too_few() -> None:
    x, labels = made(40, (LEAST_LABELS - 1) / 40)
    assert quick_evaluation(x, labels, np.arange(40)) is None
    assert quick_evaluation(x, ~labels, np.arange(40)) is None
    x, labels = made(40, LEAST_LABELS / 40)
    assert quick_evaluation(x, labels, np.arange(40)) is not None
    assert quick_evaluation(np.empty((0, 4)), np.empty(0, np.bool_), np.empty(0, np.int64)) is None


def test_several_measures_beat_one() -> None:
    x, labels = made(200)
    found = quick_evaluation(x, labels, np.arange(200))
    assert found is not None
    assert not found.shares_documents
    assert (found.learned.f1.low or 0) > (found.threshold.f1.value or 1)
    assert found.learned.correct + found.learned.missed == 100
    assert quick_evaluation(x, labels, np.arange(200)) == found
