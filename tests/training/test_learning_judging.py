"""Nested folds: nothing that is judged has a say in what judges it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neardup.classifier.classifier import cut_of
from neardup.training import fit as searching
from neardup.training.fit import Point, fit, machine_of, search
from neardup.training.folds import Folds, connected, folds_of
from neardup.training.labelled import LabelledPairs
from neardup.training.training import PRECISIONS, FittedMachine, learn


@pytest.fixture(autouse=True)
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few points: what is tested is who judges whom."""
    grid = {"linear": [Point("linear", 0.25)], "rbf": [Point("rbf", 1.0, 0.25)]}
    monkeypatch.setattr(searching, "_COARSE", grid)


def made(count: int = 90, seed: int = 0) -> LabelledPairs:
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < 0.4
    x = rng.normal(np.where(labels, 1.0, -1.0)[:, np.newaxis], 1.2, (count, 3))
    kind = np.arange(count) % 15
    return LabelledPairs(
        names=[str(name) for name in range(2 * count)],
        left=np.arange(count),
        right=np.arange(count, 2 * count),
        duplicate=labels,
        family=np.arange(count),
        x=x,
        equal=kind == 0,
        similarity=np.zeros(count),
        inside=kind != 1,
        texts=[""] * 2 * count,
        statistics={},
        documents=2 * count,
        warnings=(),
    )


def folds(task: LabelledPairs) -> Folds:
    found = folds_of(task.left, task.right, task.duplicate, count=3, seed=0, decided=task.decided)
    assert found is not None
    return found


def learned(task: LabelledPairs, parted: Folds) -> FittedMachine:
    return learn(task, parted, kernels=("linear", "rbf"), seed=0, report=lambda done, total: None)


def test_each_fold_is_judged_by_what_the_others_choose() -> None:
    task = made()
    parted = folds(task)
    held_out = learned(task, parted).held_out
    for train, test in parted.splits:
        train, test = train[task.decided[train]], test[task.decided[test]]
        x, labels, left, right = task.x[train], task.duplicate[train], task.left[train], task.right[train]
        inner = folds_of(left, right, labels, count=3, seed=0)
        assert inner is not None
        chosen = search(x, labels, connected(left, right), inner.splits, kernels=("linear", "rbf"), seed=0)
        estimator = fit(x, labels, chosen.point)
        machine = machine_of(estimator, chosen.sigmoid.a, chosen.sigmoid.b, chosen.offset)
        g = machine.score(task.x[test])
        assert np.array_equal(held_out.score[test], g)
        assert np.array_equal(held_out.probability[test], machine.probability(g))
        assert np.array_equal(held_out.contributions[test], machine.contributions(task.x[test]))
        assert np.array_equal(held_out.verdict[test], g >= 0)
        for precision in PRECISIONS:
            cut, _ = cut_of(chosen.g, labels, precision)
            assert np.array_equal(held_out.at[precision][test], np.zeros(len(test), bool) if cut is None else g >= cut)


def test_labels_that_are_judged_have_no_say() -> None:
    task = made()
    parted = folds(task)
    before = learned(task, parted).held_out
    train, test = parted.splits[0]
    turned = task.duplicate.copy()
    turned[test] = ~turned[test]
    after = learned(replace(task, duplicate=turned), parted).held_out
    assert np.array_equal(before.score[test], after.score[test], equal_nan=True)
    assert np.array_equal(before.verdict[test], after.verdict[test])
    assert np.array_equal(before.threshold[test], after.threshold[test])
    assert not np.array_equal(before.score[train], after.score[train], equal_nan=True)


def test_the_final_machine_is_of_all_decided_pairs() -> None:
    task = made()
    found = learned(task, folds(task))
    x, labels = task.x[task.decided], task.duplicate[task.decided]
    estimator = fit(x, labels, found.chosen.point)
    assert found.machine.score(x) == pytest.approx(estimator.decision_function(x) + found.chosen.offset, abs=1e-9)
    assert found.support_vectors == len(estimator.named_steps["svm"].support_)
    assert len(found.chosen.g) == int(task.decided.sum())
    assert (found.machine.a, found.machine.b) == (found.chosen.sigmoid.a, found.chosen.sigmoid.b)
