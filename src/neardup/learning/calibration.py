"""Platt's sigmoid: from g(x) to a probability.

Source: Platt 1999, with targets and Newton's method of Lin, Lin & Weng, "A note on Platt's probabilistic outputs for
support vector machines", Machine Learning 68, 2007, appendix.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

_MOST_STEPS, _SMALLEST_STEP = 100, 1e-10
_RIDGE, _FLAT = 1e-12, 1e-5
_SUFFICIENT = 1e-4
#: Where g tells nothing, or the wrong thing, the sigmoid rises by this little all the same.
LEAST_SLOPE = 1e-6


class Sigmoid(NamedTuple):
    """The probability of a duplicate is 1 / (1 + exp(a g + b)).

    Attributes
    ----------
    a, b : float
        a is below 0, so that the probability rises with g.
    informed : bool
        Whether higher g meant more duplicates at all.
    """

    a: float
    b: float
    informed: bool

    def probability(self, g: Floats) -> Floats:
        """Return the probability for each g."""
        return np.asarray(1 / (1 + np.exp(np.clip(self.a * g + self.b, -700, 700))), np.float64)

    def loss(self, g: Floats, labels: Bools) -> Floats:
        """Return for each pair minus the logarithm of the probability that was given to the truth."""
        return _losses(self.a * g + self.b, labels.astype(np.float64))


def sigmoid_of(g: Floats, labels: Bools) -> Sigmoid:
    """Fit the sigmoid to g of pairs that the machine was not trained on, and their labels.

    The targets are (n+ + 1) / (n+ + 2) and 1 / (n- + 2) in the place of 1 and 0, so that few labels give no certainty.

    Parameters
    ----------
    g : float64[n]
        Out-of-fold values.
    labels : bool[n]
        Whether the pairs are duplicates.
    """
    many, few = int(labels.sum()), int((~labels).sum())
    targets = np.where(labels, (many + 1) / (many + 2), 1 / (few + 2))
    a, b = 0.0, math.log((few + 1) / (many + 1))
    value = float(_losses(b + a * g, targets).sum())
    for _ in range(_MOST_STEPS):
        p = _falling(a * g + b)
        weight = p * (1 - p)
        h11, h22, h21 = float((g * g * weight).sum()) + _RIDGE, float(weight.sum()) + _RIDGE, float((g * weight).sum())
        slope = targets - p
        g1, g2 = float((g * slope).sum()), float(slope.sum())
        if abs(g1) < _FLAT and abs(g2) < _FLAT:
            break
        determinant = h11 * h22 - h21 * h21
        da, db = -(h22 * g1 - h21 * g2) / determinant, -(-h21 * g1 + h11 * g2) / determinant
        downhill, step = g1 * da + g2 * db, 1.0
        while step >= _SMALLEST_STEP:
            lower = float(_losses((a + step * da) * g + b + step * db, targets).sum())
            if lower < value + _SUFFICIENT * step * downhill:
                a, b, value = a + step * da, b + step * db, lower
                break
            step /= 2
        else:
            break
    if a > -LEAST_SLOPE:
        return Sigmoid(-LEAST_SLOPE, math.log((few + 1) / (many + 1)), False)
    return Sigmoid(a, b, True)


def _falling(f: Floats) -> Floats:
    """Return 1 / (1 + exp(f)), without overflow."""
    e = np.exp(-np.abs(f))
    return np.asarray(np.where(f >= 0, e / (1 + e), 1 / (1 + e)), np.float64)


def _losses(f: Floats, targets: Floats) -> Floats:
    """Return the cross entropy of targets and 1 / (1 + exp(f)), without overflow."""
    # log(1 + exp(-|f|)) is added to what is exact for large |f|.
    exact = np.where(f >= 0, targets * f, (targets - 1) * f)
    return np.asarray(exact + np.log1p(np.exp(-np.abs(f))), np.float64)
