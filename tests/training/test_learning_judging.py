"""Nested folds: nothing that is judged has a say in what judges it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from neardup.classifier.classifier import find_cut
from neardup.training import fit as searching
from neardup.training.fit import MachineOptions, extract_machine, fit, search
from neardup.training.folds import Folds, make_folds, pair_groups
from neardup.training.pairs import LabelledPairs
from neardup.training.training import PRECISIONS, FittedMachine, fit_and_judge


@pytest.fixture(autouse=True)
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few points: what is tested is who judges whom."""
    grid = {"linear": [MachineOptions("linear", 0.25)], "rbf": [MachineOptions("rbf", 1.0, 0.25)]}
    monkeypatch.setattr(searching, "_COARSE", grid)


def made(count: int = 90, seed: int = 0) -> LabelledPairs:
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < 0.4
    x = rng.normal(np.where(labels, 1.0, -1.0)[:, np.newaxis], 1.2, (count, 3))
    kind = np.arange(count) % 15
    return LabelledPairs(
        document_ids=[str(name) for name in range(2 * count)],
        left=np.arange(count),
        right=np.arange(count, 2 * count),
        is_duplicate=labels,
        family=np.arange(count),
        x=x,
        has_equal_texts=kind == 0,
        similarity=np.zeros(count),
        is_candidate=kind != 1,
        texts=[""] * 2 * count,
        statistics={},
        documents=2 * count,
        warnings=(),
    )


def folds(task: LabelledPairs) -> Folds:
    found = make_folds(task.left, task.right, task.is_duplicate, count=3, seed=0, decided=task.is_decided)
    assert found is not None
    return found


def learned(task: LabelledPairs, parted: Folds) -> FittedMachine:
    return fit_and_judge(task, parted, kernels=("linear", "rbf"), seed=0, report=lambda done, total: None)


def test_each_fold_is_judged_by_what_the_others_choose() -> None:
    task = made()
    parted = folds(task)
    held_out = learned(task, parted).held_out
    for train, test in parted.splits:
        train, test = train[task.is_decided[train]], test[task.is_decided[test]]
        x, labels, left, right = task.x[train], task.is_duplicate[train], task.left[train], task.right[train]
        inner = make_folds(left, right, labels, count=3, seed=0)
        assert inner is not None
        chosen = search(x, labels, pair_groups(left, right), inner.splits, kernels=("linear", "rbf"), seed=0)
        estimator = fit(x, labels, chosen.options)
        machine = extract_machine(estimator, chosen.sigmoid.a, chosen.sigmoid.b, chosen.offset)
        g = machine.score(task.x[test])
        assert np.array_equal(held_out.scores[test], g)
        assert np.array_equal(held_out.probabilities[test], machine.probability(g))
        assert np.array_equal(held_out.contributions[test], machine.contributions(task.x[test]))
        assert np.array_equal(held_out.verdicts[test], g >= 0)
        for precision in PRECISIONS:
            cut, _ = find_cut(chosen.scores, labels, precision)
            assert np.array_equal(
                held_out.precision_verdicts[precision][test], np.zeros(len(test), bool) if cut is None else g >= cut
            )


def test_labels_that_are_judged_have_no_say() -> None:
    task = made()
    parted = folds(task)
    before = learned(task, parted).held_out
    train, test = parted.splits[0]
    turned = task.is_duplicate.copy()
    turned[test] = ~turned[test]
    after = learned(replace(task, is_duplicate=turned), parted).held_out
    assert np.array_equal(before.scores[test], after.scores[test], equal_nan=True)
    assert np.array_equal(before.verdicts[test], after.verdicts[test])
    assert np.array_equal(before.threshold_verdicts[test], after.threshold_verdicts[test])
    assert not np.array_equal(before.scores[train], after.scores[train], equal_nan=True)


def test_the_final_machine_is_of_all_decided_pairs() -> None:
    task = made()
    found = learned(task, folds(task))
    x, labels = task.x[task.is_decided], task.is_duplicate[task.is_decided]
    estimator = fit(x, labels, found.search.options)
    assert found.machine.score(x) == pytest.approx(estimator.decision_function(x) + found.search.offset, abs=1e-9)
    assert found.support_vectors == len(estimator.named_steps["svm"].support_)
    assert len(found.search.scores) == int(task.is_decided.sum())
    assert (found.machine.a, found.machine.b) == (found.search.sigmoid.a, found.search.sigmoid.b)
