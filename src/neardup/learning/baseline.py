"""What a learned decision must beat: the best threshold on one measure alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.learning.folds import Split

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


class Threshold(NamedTuple):
    """A threshold on one measure.

    Attributes
    ----------
    measure : int
        Its place in the vector.
    at : float
        Where it lies.
    below : bool
        Whether pairs at or below it are duplicates, as with hours between them, in place of those at or above.
    """

    measure: int
    at: float
    below: bool

    def passes(self, x: Floats) -> Bools:
        """Return which rows pass; those whose measure is not known do not."""
        column = x[:, self.measure]
        return np.asarray(column <= self.at if self.below else column >= self.at, np.bool_)


def best_threshold(x: Floats, labels: Bools) -> Threshold:
    """Return the threshold with the highest F1, halfway between two values; of equals the first, strictest one.

    Parameters
    ----------
    x : float64[n, r]
        Measures of labelled pairs; NaN for what is not known.
    labels : bool[n]
        Whether they are duplicates.
    """
    best, highest = Threshold(0, float("inf"), False), -1.0
    for measure in range(x.shape[1]):
        for below in (False, True):
            column = -x[:, measure] if below else x[:, measure]
            at, f1 = _best_at(column[~np.isnan(column)], labels[~np.isnan(column)], int(labels.sum()))
            if f1 > highest:
                best, highest = Threshold(measure, -at if below else at, below), f1
    return best


def _best_at(column: Floats, labels: Bools, duplicates: int) -> tuple[float, float]:
    """Return the threshold of a column with the highest F1, and that F1."""
    order = np.argsort(-column, kind="stable")
    values, right = column[order], np.cumsum(labels[order])
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], len(values) > 0))
    if not len(ends):
        return float("inf"), -1.0
    f1 = 2 * right[ends] / (ends + 1 + duplicates)
    at = int(ends[np.argmax(f1)])
    if at + 1 == len(values):
        return float(values[at]), float(f1.max())
    halfway = float((values[at] + values[at + 1]) / 2)
    # Between neighbouring floats there is nothing; the upper one then is the threshold.
    return halfway if halfway > values[at + 1] else float(values[at]), float(f1.max())


def out_of_fold_threshold(x: Floats, labels: Bools, splits: Sequence[Split]) -> Bools:
    """Return which rows pass the best threshold of the pairs that their split trains on."""
    passed = np.zeros(len(labels), np.bool_)
    for train, test in splits:
        passed[test] = best_threshold(x[train], labels[train]).passes(x[test])
    return passed
