"""Fitting a support vector machine (ICGICT 2014, 3.2.3), and its values on pairs that it was not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError
from neardup.learning.folds import Split

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Point(NamedTuple):
    """The options of a machine.

    Attributes
    ----------
    kernel : str
        ``linear`` or ``rbf``.
    c : float
        The penalty C of formula (6). Raising it fits the training pairs more closely.
    gamma : float
        Of the RBF kernel exp(-gamma |u - v|**2), over the number of measures; 0 for the linear one. Raising it lets
        each training pair reach less far.
    balanced : bool
        Whether the rarer class weighs as much as the other one.
    """

    kernel: str
    c: float
    gamma: float = 0.0
    balanced: bool = False


def quick(x: Floats, labels: Bools) -> Callable[[Floats], Floats]:
    """Return g of a linear machine, fitted with no search: for choosing which pair to ask about next.

    Parameters
    ----------
    x : float64[n, r]
        A row of measures for each labelled pair; NaN for what is not known.
    labels : bool[n]
        Whether they are duplicates; both classes must be there.
    """
    fitted = fit(x, np.asarray(labels, np.bool_), Point("linear", 1.0, balanced=True))
    return lambda others: np.asarray(fitted.decision_function(others), np.float64)


def fit(x: Floats, labels: Bools, point: Point) -> Any:
    """Return a fitted scikit-learn pipeline of the steps "impute", "scale" and "svm"."""
    pipeline = _library().pipeline.Pipeline([*_scaling(), ("svm", _svm(point, x.shape[1]))])
    return pipeline.fit(x, labels)


class Piece(NamedTuple):
    """A split with its rows standardised by those to train on.

    Attributes
    ----------
    train, test : float64[t, r], float64[u, r]
        Standardised measures.
    labels : bool[t]
        Of the rows to train on.
    rows : int64[u]
        Which rows are judged.
    """

    train: Floats
    test: Floats
    labels: Bools
    rows: Integers


def pieces_of(x: Floats, labels: Bools, splits: Sequence[Split]) -> list[Piece]:
    """Return the splits with their measures, so that many machines can be tried on them."""
    pieces: list[Piece] = []
    for train, test in splits:
        scaling = _library().pipeline.Pipeline(_scaling()).fit(x[train])
        pieces.append(Piece(scaling.transform(x[train]), scaling.transform(x[test]), labels[train], test))
    return pieces


def out_of_fold(pieces: Sequence[Piece], point: Point, count: int) -> Floats:
    """Return g of each of ``count`` rows from the machine that was not trained on it; NaN for rows of no piece."""
    g = np.full(count, np.nan)
    for piece in pieces:
        g[piece.rows] = _svm(point, piece.train.shape[1]).fit(piece.train, piece.labels).decision_function(piece.test)
    return g


def moved(estimator: Any, by: float) -> None:
    """Add a number to g of a fitted pipeline."""
    svm = estimator.named_steps["svm"]
    # libsvm has its constant with the other sign, and decision_function reads that one.
    svm.intercept_ = svm.intercept_ + by
    svm._intercept_ = svm._intercept_ - by


def _svm(point: Point, measures: int) -> Any:
    gamma = point.gamma / measures if point.kernel == "rbf" else "scale"
    weights = "balanced" if point.balanced else None
    return _library().svm.SVC(kernel=point.kernel, C=point.c, gamma=gamma, class_weight=weights, cache_size=400)


def _scaling() -> list[tuple[str, Any]]:
    impute = _library().impute.SimpleImputer(strategy="median", keep_empty_features=True)
    return [("impute", impute), ("scale", _library().preprocessing.StandardScaler())]


def _library() -> Any:
    """Return scikit-learn with the parts that are used here.

    Raises
    ------
    NeardupError
        If it is not installed.
    """
    try:
        import sklearn
        import sklearn.impute
        import sklearn.pipeline
        import sklearn.preprocessing
        import sklearn.svm
    except ImportError as error:
        raise NeardupError(
            f"training is done by scikit-learn, and {error.name} is not installed; "
            "pip install 'neardup[learn]' brings it"
        ) from None
    return sklearn
