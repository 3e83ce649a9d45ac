"""The kernel, C and gamma of a machine, chosen by cross-validation; and where its zero lies.

What is compared is the logarithmic loss of the probabilities that Platt's sigmoid gives to pairs a machine was not
trained on. It tells machines apart with few labels and with rare classes, where counts of wrong verdicts do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.learning.baseline import best_threshold
from neardup.learning.calibration import Sigmoid, sigmoid_of
from neardup.learning.figures import draw
from neardup.learning.fitting import Piece, Point, out_of_fold, pieces_of
from neardup.learning.folds import Split, among

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

KERNELS = ("linear", "rbf")
#: What is tried at first; gamma is over the number of measures, whose mean square is 1.
_COARSE = {
    "linear": [Point("linear", 2.0**c) for c in (-6, -2, 2)],
    "rbf": [Point("rbf", 2.0**c, 2.0**gamma) for c in (-2, 2, 6) for gamma in (-6, -4, -2, 0)],
}
#: Then the neighbours of the best: C and gamma times these.
_FINE_C, _FINE_GAMMA = (0.25, 4.0), (0.5, 2.0)
#: The coarse search looks at so many pairs at most; the rest of the search at all.
COARSE_PAIRS = 1500
_DRAWS = 500


class Chosen(NamedTuple):
    """What a search chose, and what its machines said of the pairs they were not trained on.

    Attributes
    ----------
    point : Point
        The options.
    g : float64[n]
        Out of fold, the move of the zero included.
    sigmoid : Sigmoid
        Of this g.
    moved : float
        What was added to g, so that a pair is a duplicate from 0 on.
    zero : float
        The probability where g is 0.
    tried : int
        How many points were compared.
    coarse : int
        How many pairs the coarse search looked at.
    """

    point: Point
    g: Floats
    sigmoid: Sigmoid
    moved: float
    zero: float
    tried: int
    coarse: int


class _Tried(NamedTuple):
    point: Point
    g: Floats
    sigmoid: Sigmoid
    losses: Floats

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def search(
    x: Floats, labels: Bools, groups: Integers, splits: Sequence[Split], *, kernels: Sequence[str], seed: int
) -> Chosen:
    """Choose a machine for pairs.

    Parameters
    ----------
    x : float64[n, r]
        Measures.
    labels : bool[n]
        Whether the pairs are duplicates.
    groups : int64[n]
        Pairs of one group depend on each other.
    splits : sequence of Split
        Each row is judged by one of them.
    kernels : sequence of str
        Some of ``KERNELS``.
    seed : int
        Of the pairs that the coarse search looks at.
    """
    whole, some, rows = pieces_of(x, labels, splits), None, np.arange(len(labels))
    if len(labels) > COARSE_PAIRS:
        rows = _some(labels, seed)
        some = pieces_of(x[rows], labels[rows], among(splits, rows, len(labels)))
    best: list[_Tried] = []
    tried = 0
    for kernel in KERNELS:
        if kernel not in kernels:
            continue
        points = _COARSE[kernel]
        if some is not None:
            points = [min((_tried(some, labels[rows], point) for point in points), key=lambda one: one.loss).point]
        first = min((_tried(whole, labels, point) for point in points), key=lambda one: one.loss)
        finer = [_tried(whole, labels, point) for point in _around(first.point)]
        second = min([first, *finer], key=lambda one: one.loss)
        weighted = _tried(whole, labels, second.point._replace(balanced=True))
        best.append(min([second, weighted], key=lambda one: one.loss))
        tried += len(_COARSE[kernel]) + len(finer) + 1
    chosen = best[0]
    if len(best) == 2 and _clearly_lower(best[1].losses, best[0].losses, groups):
        chosen = best[1]
    cut, zero = _zero(chosen, labels, groups)
    sigmoid = chosen.sigmoid._replace(b=chosen.sigmoid.b + chosen.sigmoid.a * cut)
    return Chosen(chosen.point, chosen.g - cut, sigmoid, -cut, zero, tried, len(rows))


def unsearched(x: Floats, labels: Bools) -> Chosen:
    """Return a linear machine for pairs too few to part, calibrated on what it was trained on."""
    point, every = Point("linear", 0.1), np.arange(len(labels))
    tried = _tried(pieces_of(x, labels, [Split(every, every)]), labels, point)
    return Chosen(point, tried.g, tried.sigmoid, 0.0, float(tried.sigmoid.probability(np.zeros(1))[0]), 1, len(labels))


def _some(labels: Bools, seed: int) -> Integers:
    """Return rows for the coarse search: half of them of the rarer class, if it has so many."""
    order = np.random.default_rng(seed).permutation(len(labels))
    rarer = (labels if 2 * labels.sum() <= len(labels) else ~labels)[order]
    rare = order[rarer][: COARSE_PAIRS // 2]
    return np.sort(np.concatenate([rare, order[~rarer][: COARSE_PAIRS - len(rare)]]))


def _tried(pieces: Sequence[Piece], labels: Bools, point: Point) -> _Tried:
    g = out_of_fold(pieces, point, len(labels))
    sigmoid = sigmoid_of(g, labels)
    return _Tried(point, g, sigmoid, sigmoid.loss(g, labels))


def _around(point: Point) -> list[Point]:
    finer = [point._replace(c=point.c * factor) for factor in _FINE_C]
    if point.kernel == "rbf":
        finer += [point._replace(gamma=point.gamma * factor) for factor in _FINE_GAMMA]
    return finer


def _clearly_lower(one: Floats, other: Floats, groups: Integers) -> bool:
    """Return whether losses are lower than others by more than the standard error of their difference.

    Where they are not, the simpler machine is taken (Breiman et al. 1984, 3.4.3: the rule of one standard error).
    """
    gains = np.bincount(np.unique(groups, return_inverse=True)[1], other - one)
    return bool(gains.sum() > np.sqrt((gains**2).sum()))


def _zero(chosen: _Tried, labels: Bools, groups: Integers) -> tuple[float, float]:
    """Return from which g on a pair is a duplicate, and the probability there.

    That is one half, unless F1 is higher beyond chance where it is highest for true probabilities: at half of the
    highest F1 (Lipton, Elkan & Narayanaswamy 2014). Where g tells nothing it stays as it is.
    """
    g, sigmoid = chosen.g, chosen.sigmoid
    if not sigmoid.informed:
        return 0.0, float(sigmoid.probability(np.zeros(1))[0])
    half = -sigmoid.b / sigmoid.a
    highest = best_threshold(g[:, np.newaxis], labels).passes(g[:, np.newaxis])
    share = float(2 * (highest & labels).sum() / (highest.sum() + labels.sum()))
    lower = (np.log(2 / share - 1) - sigmoid.b) / sigmoid.a
    drawn = draw(labels, groups, [g >= lower, g >= half], count=_DRAWS)
    gain = drawn.gain(0, 1)
    if gain.beyond_chance and (gain.difference.value or 0.0) > 0:
        return float(lower), share / 2
    return half, 0.5
