"""Machines: what is judged out of fold, the move of the zero, and the quick one."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from saying import says

from neardup.errors import NeardupError
from neardup.training.fit import Point, fit, out_of_fold, pieces_of, quick
from neardup.training.folds import folds_of

POINTS = [
    Point("linear", 0.5),
    Point("linear", 2.0, balanced=True),
    Point("rbf", 4.0, 0.5),
    Point("rbf", 1.0, 2.0, True),
]


def made(count: int = 80, seed: int = 0) -> tuple[Any, Any]:
    """Vectors of two classes that overlap; some measures are not known, one is never, one never differs."""
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < 0.4
    x = rng.normal(np.where(labels, 0.7, -0.7)[:, np.newaxis], 1.0, (count, 5))
    x[rng.random(count) < 0.2, 1] = np.nan
    x[:, 3], x[:, 4] = 1.0, np.nan
    return x, labels


@pytest.mark.parametrize("point", POINTS)
def test_out_of_fold_is_fitting_on_the_others(point: Point) -> None:
    x, labels = made()
    folds = folds_of(np.arange(80), np.arange(80, 160), labels, count=4, seed=0)
    assert folds is not None
    g = out_of_fold(pieces_of(x, labels, folds.splits), point, 80)
    for train, test in folds.splits:
        assert np.array_equal(g[test], fit(x[train], labels[train], point).decision_function(x[test]))
    part = out_of_fold(pieces_of(x, labels, folds.splits[:1]), point, 80)
    assert np.isnan(part[folds.splits[1].test]).all()


def test_a_quick_machine_ranks() -> None:
    x, labels = made()
    g = quick(x, labels)
    others, truth = made(seed=1)
    assert g(others)[truth].mean() > g(others)[~truth].mean() + 0.5
    assert np.array_equal(g(others), quick(x, labels)(others))
    assert g(np.full((1, 5), np.nan)).shape == (1,)


def test_scikit_learn_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(NeardupError) as caught:
        quick(*made())
    assert says(caught.value, "sklearn is not installed", "pip install 'neardup[learn]'")
