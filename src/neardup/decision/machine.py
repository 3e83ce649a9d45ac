"""The support vector machine as plain arrays, so that deciding needs no library and gives the same bits everywhere."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.deciding import discriminant
from neardup.errors import InputError

Floats = npt.NDArray[np.float64]


class Machine(NamedTuple):
    """What g(x) = sum of dual_s K(support_s, z) + intercept is made of, with z = (x - center) / scale.

    K is the dot product (linear) or exp(-gamma |u - z|**2) (RBF). Source: ICGICT 2014, 3.2.3 and formula (12).

    Attributes
    ----------
    fill : float64[r]
        Taken for a measure that is not known of a pair: the median in training.
    center, scale : float64[r]
        Mean and standard deviation of each measure in training.
    gamma : float
        Of the RBF kernel; 0 for the linear kernel. Raising it makes g follow single training pairs more closely.
    support : float64[s, r]
        Support vectors, standardised; for the linear kernel the one row of weights w.
    dual : float64[s]
        alpha_s t_s of each; 1 for the row of weights.
    intercept : float
        The constant term.
    a, b : float
        Platt's sigmoid: the probability is 1 / (1 + exp(a g + b)); a is below 0, so it rises with g.
    """

    fill: Floats
    center: Floats
    scale: Floats
    gamma: float
    support: Floats
    dual: Floats
    intercept: float
    a: float
    b: float

    def g(self, x: Floats, skipped: int = -1) -> Floats:
        """Return g of each row of x; with ``skipped`` = j, as if measure j had its mean."""
        out = np.empty(len(x))
        shape = self.fill, self.center, self.scale, self.gamma, self.support, self.dual, self.intercept
        discriminant(np.ascontiguousarray(x, np.float64), skipped, *shape, out)
        return out

    def probability(self, g: Floats) -> Floats:
        """Return how probable it is that pairs with such a g are near-duplicates."""
        return np.asarray(1 / (1 + np.exp(np.clip(self.a * g + self.b, -700, 700))), np.float64)

    def pushes(self, x: Floats) -> Floats:
        """Return by how much each measure moves g away from where its mean would leave it: float64[n, r].

        With the linear kernel that is w_j z_j, and the pushes and the intercept add up to g.
        """
        whole = self.g(x)
        return np.column_stack([whole - self.g(x, skipped=j) for j in range(x.shape[1])])


def machine_of(estimator: Any, a: float, b: float) -> Machine:
    """Return a fitted pipeline of imputer, scaler and SVC as arrays.

    Parameters
    ----------
    estimator : sklearn.pipeline.Pipeline
        Of the steps "impute" (SimpleImputer), "scale" (StandardScaler) and "svm" (SVC, linear or RBF), fitted on
        labels False and True.
    a, b : float
        Platt's sigmoid.

    Raises
    ------
    InputError
        If it is anything else.
    """
    try:
        impute, scale, svm = (estimator.named_steps[name] for name in ("impute", "scale", "svm"))
        support, dual = np.asarray(svm.support_vectors_, np.float64), np.asarray(svm.dual_coef_, np.float64).ravel()
        if svm.kernel not in ("linear", "rbf") or list(svm.classes_) != [False, True]:
            raise ValueError(f"kernel {svm.kernel!r}, classes {list(svm.classes_)}")
        linear = svm.kernel == "linear"
        if linear:
            # In the order of the support vectors, as one sum: the same bits on every machine.
            weights = np.zeros(support.shape[1])
            for alpha, row in zip(dual, support, strict=True):
                weights += alpha * row
            support, dual = weights[np.newaxis], np.ones(1)
        return Machine(
            np.asarray(impute.statistics_, np.float64),
            np.asarray(scale.mean_, np.float64),
            np.asarray(scale.scale_, np.float64),
            0.0 if linear else float(svm._gamma),
            np.ascontiguousarray(support),
            np.ascontiguousarray(dual),
            float(svm.intercept_[0]),
            float(a),
            float(b),
        )
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise InputError(f"the model is no SVM of neardup ({error}); train it with neardup train") from None
