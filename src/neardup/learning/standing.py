"""What the labels can say so far, cheaply, for whoever is still labelling."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.learning.baseline import best_threshold, out_of_fold_threshold
from neardup.learning.figures import Figures, Gain, draw
from neardup.learning.fitting import Point, fit
from neardup.learning.folds import LEAST_OF_A_CLASS, Split, deal

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: With fewer labels of a class there is nothing to say, and nothing is trained.
LEAST_LABELS = 5
_FOLDS, _DRAWS = 5, 500
_MACHINE = Point("linear", 0.1)


class Standing(NamedTuple):
    """How well the labelled pairs can be told apart, each judged by what was learned from others.

    Attributes
    ----------
    duplicates, others : int
        Labels of each class.
    learned, threshold : Figures
        Of a linear machine without search, and of the best threshold on one measure.
    measure : int
        The place in the vector of the measure with the best threshold.
    gain : Gain
        Of the machine over the threshold, in F1.
    shared : bool
        Whether one group holds more than half of the pairs: then its documents are on both sides, and the figures
        may flatter.
    """

    duplicates: int
    others: int
    learned: Figures
    threshold: Figures
    measure: int
    gain: Gain
    shared: bool

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return {
            name: value.to_dict() if isinstance(value, Figures | Gain) else value
            for name, value in self._asdict().items()
        }


def standing(x: Floats, labels: Bools, groups: Integers) -> Standing | None:
    """Return what can be said of labels; None while there are too few.

    Parameters
    ----------
    x : float64[n, r]
        A row of measures for each labelled pair; NaN for what is not known.
    labels : bool[n]
        Whether they are duplicates.
    groups : int64[n]
        The group of each pair, as ``folds.connected`` gives them: those that hang together over shared documents.
    """
    labels = np.asarray(labels, np.bool_)
    if min(labels.sum(), (~labels).sum()) < LEAST_LABELS:
        return None
    shared = np.unique(groups, return_counts=True)[1].max() > len(labels) / 2
    units = np.arange(len(labels)) if shared else groups
    splits = _splits(units, labels)
    if splits is None:
        shared, units = True, np.arange(len(labels))
        splits = _splits(units, labels)
    if splits is None:
        return None
    drawn = draw(labels, units, [_learned(x, labels, splits), out_of_fold_threshold(x, labels, splits)], count=_DRAWS)
    return Standing(
        duplicates=int(labels.sum()),
        others=int((~labels).sum()),
        learned=drawn.figures(0),
        threshold=drawn.figures(1),
        measure=best_threshold(x, labels).measure,
        gain=drawn.gain(0, 1),
        shared=bool(shared),
    )


def _learned(x: Floats, labels: Bools, splits: list[Split]) -> Bools:
    """Return what linear machines say of the pairs they were not trained on.

    Each cuts where its F1 on the pairs it was trained on is highest, for whether one class is rarer is not known.
    """
    passed = np.zeros(len(labels), np.bool_)
    for train, test in splits:
        machine = fit(x[train], labels[train], _MACHINE)
        cut = best_threshold(machine.decision_function(x[train])[:, np.newaxis], labels[train])
        passed[test] = cut.passes(machine.decision_function(x[test])[:, np.newaxis])
    return passed


def _splits(units: Integers, labels: Bools) -> list[Split] | None:
    """Return folds of units, as many as leave both classes to train on, five at most."""
    for count in range(min(_FOLDS, len(np.unique(units))), 1, -1):
        fold = deal(units, labels, count, 0)
        splits = [Split(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(count)]
        counts = [np.bincount(labels[split.train].astype(np.int64), minlength=2) for split in splits]
        if min(map(min, counts)) >= LEAST_OF_A_CLASS and all(len(split.test) for split in splits):
            return splits
    return None
