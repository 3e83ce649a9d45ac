"""A machine for labelled pairs, and what machines that had not seen a pair say of it.

The figures come from outer folds; kernel, C, gamma and the zero are chosen anew for each by inner folds of what it
trains on, so that nothing that is judged has had a say (Varma & Simon 2006). The final machine is trained on all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.decision.decision import cut_of
from neardup.decision.machine import Machine, machine_of
from neardup.learning.baseline import out_of_fold_threshold
from neardup.learning.fitting import fit, moved
from neardup.learning.folds import Folds, among, connected, folds_of
from neardup.learning.searching import Chosen, search, unsearched

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: The precisions whose working points are judged.
PRECISIONS = (0.9, 0.95, 0.99)
#: With more pairs to train on, inner folds are fewer.
_MANY_PAIRS, _FEW_FOLDS = 1500, 3


class Task(NamedTuple):
    """n labelled pairs to learn from.

    Attributes
    ----------
    x : float64[n, r]
        Measures.
    labels : bool[n]
        Whether they are duplicates.
    left, right : int64[n]
        Their documents.
    decided : bool[n]
        Those that a machine is asked about.
    equal : bool[n]
        Those that are duplicates unasked; all others that are not decided are none.
    """

    x: Floats
    labels: Bools
    left: Integers
    right: Integers
    decided: Bools
    equal: Bools


class Judged(NamedTuple):
    """What was said of the n pairs by what had not seen them.

    Attributes
    ----------
    verdict : bool[n]
        Of the learned decision.
    g, probability : float64[n]
        NaN where nothing was decided.
    pushes : float64[n, r]
        Of each measure on g; NaN where nothing was decided.
    at : dict of float to bool[n]
        The verdicts of cuts that had a precision on the pairs trained on.
    threshold : bool[n]
        Of the best threshold on one measure.
    """

    verdict: Bools
    g: Floats
    probability: Floats
    pushes: Floats
    at: dict[float, Bools]
    threshold: Bools


class Learned(NamedTuple):
    """A fitted machine and how it was come by.

    Attributes
    ----------
    estimator : Pipeline
        scikit-learn's.
    machine : Machine
        The same as arrays.
    chosen : Chosen
        Its options, and what the machines of the folds with these options say of the decided pairs.
    folds : Folds
        Of all labelled pairs.
    judged : Judged
        By the machines of the folds, each with options of its own.
    """

    estimator: Any
    machine: Machine
    chosen: Chosen
    folds: Folds
    judged: Judged


def learn(
    task: Task, folds: Folds, *, kernels: Sequence[str], seed: int, report: Callable[[int, int], None]
) -> Learned:
    """Fit a machine, and judge the pairs by machines that have not seen them.

    Parameters
    ----------
    task : Task
        The pairs.
    folds : Folds
        How they are parted.
    kernels : sequence of str
        Those that are tried.
    seed : int
        Of inner folds and of the pairs that searches look at first.
    report : callable
        Told how many of all machines are done.
    """
    judged = _nothing_judged(task)
    for done, (train, test) in enumerate(folds.splits):
        report(done, len(folds.splits) + 1)
        _judge(task, train, test, folds.number, kernels, seed, judged)
    judged.threshold[:] = out_of_fold_threshold(task.x, task.labels, folds.splits)
    report(len(folds.splits), len(folds.splits) + 1)
    rows = np.flatnonzero(task.decided)
    x, labels = task.x[rows], task.labels[rows]
    groups = connected(task.left[rows], task.right[rows])
    chosen = search(x, labels, groups, among(folds.splits, rows, len(task.labels)), kernels=kernels, seed=seed)
    return Learned(*_fitted(x, labels, chosen), chosen, folds, judged)


def _nothing_judged(task: Task) -> Judged:
    count, measures = task.x.shape
    unknown = np.full(count, np.nan)
    return Judged(
        verdict=task.equal.copy(),
        g=unknown.copy(),
        probability=unknown.copy(),
        pushes=np.full((count, measures), np.nan),
        at={precision: task.equal.copy() for precision in PRECISIONS},
        threshold=np.zeros(count, np.bool_),
    )


def _judge(
    task: Task, train: Integers, test: Integers, count: int, kernels: Sequence[str], seed: int, judged: Judged
) -> None:
    """Train on some pairs, and write down what that says of others."""
    train, test = train[task.decided[train]], test[task.decided[test]]
    x, labels, left, right = task.x[train], task.labels[train], task.left[train], task.right[train]
    inner = folds_of(left, right, labels, count=count if len(train) <= _MANY_PAIRS else _FEW_FOLDS, seed=seed)
    if inner is None:
        chosen = unsearched(x, labels)
    else:
        chosen = search(x, labels, connected(left, right), inner.splits, kernels=kernels, seed=seed)
    _, machine = _fitted(x, labels, chosen)
    g = machine.g(task.x[test])
    judged.verdict[test] = g >= 0
    judged.g[test] = g
    judged.probability[test] = machine.probability(g)
    judged.pushes[test] = machine.pushes(task.x[test])
    for precision, verdict in judged.at.items():
        cut, _ = cut_of(chosen.g, labels, precision)
        verdict[test] = False if cut is None else g >= cut


def _fitted(x: Floats, labels: Bools, chosen: Chosen) -> tuple[Any, Machine]:
    estimator = fit(x, labels, chosen.point)
    moved(estimator, chosen.moved)
    return estimator, machine_of(estimator, chosen.sigmoid.a, chosen.sigmoid.b)
