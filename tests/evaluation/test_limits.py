"""Limits, sums and shares beside exact fractions, and how often intervals hold the truth."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import naive_audit as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.evaluation.estimates import (
    Cell,
    Moves,
    allocate,
    doubt,
    duplicates,
    exact_limits,
    limits,
    number,
    points,
    precision,
    recall,
    stratify,
    summed,
)
from neardup.evaluation.scores import Figure


@st.composite
def cells(draw: st.DrawFn) -> Cell:
    pairs = draw(st.integers(1, 40))
    judged = draw(st.integers(1, pairs))
    return Cell(pairs, judged, draw(st.integers(0, judged)))


def close(figure: Figure, expected: tuple[Fraction | float, float, float]) -> None:
    assert figure == pytest.approx(tuple(map(float, expected)), abs=1e-7)


@given(cells())
def test_limits_of_a_stratum_are_those_of_exact_fractions(cell: Cell) -> None:
    assert exact_limits(cell) == naive.exact_limits(*cell)
    assert limits(cell) == pytest.approx(naive.limits(*cell), abs=1e-7)


@given(st.lists(cells(), min_size=1, max_size=4), st.lists(cells(), max_size=4))
def test_figures_are_those_of_exact_fractions(returned: list[Cell], others: list[Cell]) -> None:
    inside, outside = ([(n, judged, same) for n, judged, same in cells] for cells in (returned, others))
    close(number(summed([*returned, *others])), naive.number([*inside, *outside]))
    size = sum(cell.pairs for cell in returned)
    value, low, high = naive.number(inside)
    close(precision(summed(returned), size), (value / size, low / size, high / size))
    expected = naive.recall(inside, outside)
    found = recall(summed(returned), summed(others))
    if expected is None:
        assert found == Figure(None, None, None)
    else:
        close(found, expected)


EDGES = [k / 20 for k in range(21)]
#: How scores lie between the candidate rule and 1 (by a beta distribution), and how probable a duplicate is at each.
CORPORA: dict[str, tuple[float, float, float, Callable[[Any], Any]]] = {
    "a steep rise": (0.3, 0.7, 3, lambda score: 1 / (1 + np.exp((0.65 - score) / 0.03))),
    "a slow rise": (0.3, 0.7, 2, lambda score: 1 / (1 + np.exp((0.6 - score) / 0.1))),
    "templates everywhere": (0.3, 1.0, 1.5, lambda score: 0.05 + 0.9 * (score - 0.3) / 0.7),
    "few mistakes": (0.3, 0.8, 2, lambda score: np.where(score >= 0.7, 0.99, 0.01)),
    "a wide candidate rule, few duplicates": (
        0.1,
        0.5,
        4,
        lambda score: np.maximum(1 / (1 + np.exp((0.6 - score) / 0.05)), 0.002),
    ),
}


@pytest.mark.parametrize("name", CORPORA)
def test_intervals_hold_the_truth_about_95_times_in_100(name: str) -> None:
    """200 corpora each: strata, sample, labels and figures as an audit makes them, beside the truth."""
    least, first, second, probable = CORPORA[name]
    random = np.random.default_rng(7)
    held = {"duplicates": 0, "precision": 0, "recall": 0}
    counted = dict.fromkeys(held, 0)
    for _ in range(200):
        pairs = int(random.integers(800, 3000))
        score = least + (1 - least) * random.beta(first, second, pairs)
        truth = random.random(pairs) < probable(score)
        returned = score >= 0.7
        if not returned.any():
            continue
        doubts = doubt(1 / (1 + np.exp((0.7 - score) / 0.05)))
        strata, place = stratify(score, returned, doubts, EDGES, EDGES)
        known = []
        for at, (stratum, count) in enumerate(zip(strata, allocate(strata, 120), strict=True)):
            drawn = random.choice(np.flatnonzero(place == at), count, replace=False)
            known.append(Cell(stratum.pairs, count, int(truth[drawn].sum())))
        point = points(strata, known, 0.7, Moves(stricter=False, looser=False))[0]
        truths = {
            "duplicates": (duplicates(known), truth.sum()),
            "precision": (point.precision, truth[returned].mean()),
            "recall": (point.recall, truth[returned].sum() / max(truth.sum(), 1)),
        }
        for what, (figure, true) in truths.items():
            if figure.low is not None and figure.high is not None:
                counted[what] += 1
                held[what] += figure.low - 1e-9 <= true <= figure.high + 1e-9
    assert min(counted.values()) > 160
    for what in held:
        assert held[what] / counted[what] >= 0.92, what
