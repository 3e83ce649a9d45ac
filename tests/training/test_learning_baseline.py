"""The best threshold on one measure, held to trying all of them."""

from __future__ import annotations

import math

import naive_learning as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.training.fit import best_threshold, out_of_fold_threshold
from neardup.training.folds import Split

VALUES = st.one_of(st.integers(0, 4).map(lambda v: v / 4), st.just(math.nan))
TABLES = st.lists(st.tuples(VALUES, VALUES, st.booleans()), min_size=2, max_size=20).filter(
    lambda rows: any(row[2] for row in rows) and not all(math.isnan(v) for row in rows for v in row[:2])
)


@given(TABLES)
def test_no_threshold_is_better(rows: list[tuple[float, float, bool]]) -> None:
    x, labels = np.array([row[:2] for row in rows]), np.array([row[2] for row in rows])
    found = best_threshold(x, labels)
    passed = found.passes(x).tolist()
    assert naive.f1(passed, labels.tolist()) == pytest.approx(naive.highest_f1(x.tolist(), labels.tolist()))


def test_folds_are_judged_by_the_thresholds_of_others() -> None:
    x, labels = np.array([[0.1], [0.9], [0.5], [0.7]]), np.array([False, True, True, False])
    splits = [Split(np.array([0, 1]), np.array([2, 3])), Split(np.array([2, 3]), np.array([0, 1]))]
    passed = out_of_fold_threshold(x, labels, splits)
    assert passed.tolist()[2:] == best_threshold(x[:2], labels[:2]).passes(x[2:]).tolist()
    assert passed.tolist()[:2] == best_threshold(x[2:], labels[2:]).passes(x[:2]).tolist()
