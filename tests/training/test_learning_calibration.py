"""Platt's sigmoid, held to the pseudo-code it comes from."""

from __future__ import annotations

import math

import naive_learning as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.fit import LEAST_SLOPE, sigmoid_of

SCORED = st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=4, max_size=40).filter(
    lambda rows: 0 < sum(label for _, label in rows) < len(rows)
)


@given(SCORED)
def test_the_sigmoid_is_that_of_the_paper(rows: list[tuple[float, bool]]) -> None:
    g, labels = [score for score, _ in rows], [label for _, label in rows]
    a, b = naive.sigmoid(g, labels)
    found = sigmoid_of(np.array(g), np.array(labels))
    if a > -LEAST_SLOPE:
        assert not found.informed
        assert found.a == -LEAST_SLOPE
    else:
        # Where g hardly differs, many a and b give these probabilities.
        assert found.informed
        assert found.probability(np.array(g)) == pytest.approx([1 / (1 + math.exp(a * v + b)) for v in g], abs=1e-6)


@given(SCORED)
def test_nothing_nearby_is_likelier(rows: list[tuple[float, bool]]) -> None:
    g, labels = np.array([score for score, _ in rows]), np.array([label for _, label in rows])
    found = sigmoid_of(g, labels)
    if not found.informed:
        return
    high, low = (labels.sum() + 1) / (labels.sum() + 2), 1 / ((~labels).sum() + 2)
    targets = np.where(labels, high, low)

    def loss(a: float, b: float) -> float:
        p = np.clip(1 / (1 + np.exp(np.clip(a * g + b, -700, 700))), 1e-300, 1 - 1e-16)
        return float(-(targets * np.log(p) + (1 - targets) * np.log1p(-p)).sum())

    least = loss(found.a, found.b)
    for da, db in ((0.01, 0), (-0.01, 0), (0, 0.01), (0, -0.01)):
        assert least <= loss(found.a + da, found.b + db) + 1e-6


def test_huge_values_overflow_nothing() -> None:
    found = sigmoid_of(np.array([-1e6, 1e6, -1.0, 1.0] * 5), np.array([False, True, False, True] * 5))
    assert np.isfinite(found.probability(np.array([-1e9, 1e9]))).all()
    assert np.isfinite(found.loss(np.array([-1e9, 1e9]), np.array([True, False]))).all()
