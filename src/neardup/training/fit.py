"""Fitting a support vector machine (ICGICT 2014, 3.2.3), and its values on pairs that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.classifier.classifier import Machine, platt_probability
from neardup.errors import NeardupError
from neardup.kernels import Bools, Floats, Integers
from neardup.training.figures import draw
from neardup.training.folds import Split, among


class Point(NamedTuple):
    """The options of a machine."""

    #: ``linear`` or ``rbf``.
    kernel: str
    #: The penalty C of formula (6). Raising it fits the training pairs more closely.
    c: float
    #: Of the RBF kernel exp(-gamma |u - v|**2), over the number of measures; 0 for the linear one. Raising it lets each
    #: training pair reach less far.
    gamma: float = 0.0
    #: Whether the rarer class weighs as much as the other one.
    balanced: bool = False


def quick(x: Floats, labels: Bools) -> Callable[[Floats], Floats]:
    """Return g of a linear machine, fitted with no search: for choosing which pair to ask about next."""
    fitted = fit(x, np.asarray(labels, np.bool_), Point("linear", 1.0, balanced=True))
    return lambda others: np.asarray(fitted.decision_function(others), np.float64)


def fit(x: Floats, labels: Bools, point: Point) -> Any:
    """Return a fitted scikit-learn pipeline of the steps "impute", "scale" and "svm"."""
    pipeline = library().pipeline.Pipeline([*_scaling(), ("svm", _svm(point, x.shape[1]))])
    return pipeline.fit(x, labels)


class Piece(NamedTuple):
    """A split with its rows standardised by those to train on."""

    #: float64[t, r], float64[u, r]: standardised measures.
    train: Floats
    test: Floats
    #: bool[t]: of the rows to train on.
    labels: Bools
    #: int64[u]: which rows are judged.
    rows: Integers


def pieces_of(x: Floats, labels: Bools, splits: Sequence[Split]) -> list[Piece]:
    """Return the splits with their measures, so that many machines can be tried on them."""
    pieces: list[Piece] = []
    for train, test in splits:
        scaling = library().pipeline.Pipeline(_scaling()).fit(x[train])
        pieces.append(Piece(scaling.transform(x[train]), scaling.transform(x[test]), labels[train], test))
    return pieces


def out_of_fold(pieces: Sequence[Piece], point: Point, count: int) -> Floats:
    """Return g of each of ``count`` rows from the machine that was not trained on it; NaN for rows of no piece."""
    g = np.full(count, np.nan)
    for piece in pieces:
        g[piece.rows] = _svm(point, piece.train.shape[1]).fit(piece.train, piece.labels).decision_function(piece.test)
    return g


def machine_of(estimator: Any, a: float, b: float, offset: float = 0.0) -> Machine:
    """Return a fitted pipeline as arrays.

    ``a`` and ``b`` are those of Platt's sigmoid, and ``offset`` is added to g.
    """
    impute, scale, svm = (estimator.named_steps[name] for name in ("impute", "scale", "svm"))
    support, dual = np.asarray(svm.support_vectors_, np.float64), np.asarray(svm.dual_coef_, np.float64).ravel()
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
        0.0 if linear else float(svm.gamma),
        np.ascontiguousarray(support),
        np.ascontiguousarray(dual),
        float(svm.intercept_[0] + offset),
        float(a),
        float(b),
    )


def _svm(point: Point, measures: int) -> Any:
    # A number, so that the machine's gamma is known without scikit-learn; the linear kernel has none.
    gamma = point.gamma / measures if point.kernel == "rbf" else 1.0
    weights = "balanced" if point.balanced else None
    return library().svm.SVC(kernel=point.kernel, C=point.c, gamma=gamma, class_weight=weights, cache_size=400)


def _scaling() -> list[tuple[str, Any]]:
    impute = library().impute.SimpleImputer(strategy="median", keep_empty_features=True)
    return [("impute", impute), ("scale", library().preprocessing.StandardScaler())]


def library() -> Any:
    """Return scikit-learn with the parts that are used here."""
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


class Threshold(NamedTuple):
    """A threshold on one measure."""

    #: Its place in the vector.
    measure: int
    at: float
    #: Whether pairs at or below it are duplicates, as with hours between them, in place of those at or above.
    below: bool

    def passes(self, x: Floats) -> Bools:
        """Return which rows pass; those whose measure is not known do not."""
        column = x[:, self.measure]
        return np.asarray(column <= self.at if self.below else column >= self.at, np.bool_)


def best_threshold(x: Floats, labels: Bools) -> Threshold:
    """Return the threshold with the highest F1, halfway between two values; of equals the first, strictest one."""
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


_MOST_STEPS, _SMALLEST_STEP = 100, 1e-10
_RIDGE, _FLAT = 1e-12, 1e-5
_SUFFICIENT = 1e-4
#: Where g tells nothing, or the wrong thing, the sigmoid rises by this little all the same.
LEAST_SLOPE = 1e-6


class Sigmoid(NamedTuple):
    """The probability of a duplicate is 1 / (1 + exp(a g + b))."""

    #: a is below 0, so that the probability rises with g.
    a: float
    b: float
    #: Whether higher g meant more duplicates at all.
    informed: bool

    def probability(self, g: Floats) -> Floats:
        """Return the probability for each g."""
        return platt_probability(self.a * g + self.b)

    def loss(self, g: Floats, labels: Bools) -> Floats:
        """Return for each pair minus the logarithm of the probability that was given to the truth."""
        return _losses(self.a * g + self.b, labels.astype(np.float64))


def sigmoid_of(g: Floats, labels: Bools) -> Sigmoid:
    """Fit the sigmoid to g of pairs that the machine was not trained on, and their labels.

    The targets are (n+ + 1) / (n+ + 2) and 1 / (n- + 2) in the place of 1 and 0, so that few labels give no certainty.
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


class SearchResult(NamedTuple):
    """What a search chose, and what its machines said of the pairs they were not trained on."""

    point: Point
    #: float64[n]: out of fold, the move of the zero included.
    g: Floats
    #: Of this g.
    sigmoid: Sigmoid
    #: What was added to g, so that a pair is a duplicate from 0 on.
    offset: float
    #: The probability where g is 0.
    zero: float
    #: How many points were compared.
    tried: int
    #: How many pairs the coarse search looked at.
    coarse: int


class _Trial(NamedTuple):
    point: Point
    g: Floats
    sigmoid: Sigmoid
    losses: Floats

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def search(
    x: Floats, labels: Bools, groups: Integers, splits: Sequence[Split], *, kernels: Sequence[str], seed: int
) -> SearchResult:
    """Choose a machine for pairs.

    Pairs of one group (``groups``, int64[n]) depend on each other; each row is judged by one of the splits.
    """
    whole, some, rows = pieces_of(x, labels, splits), None, np.arange(len(labels))
    if len(labels) > COARSE_PAIRS:
        rows = _sample(labels, seed)
        some = pieces_of(x[rows], labels[rows], among(splits, rows, len(labels)))
    best: list[_Trial] = []
    tried = 0
    for kernel in KERNELS:
        if kernel not in kernels:
            continue
        points = _COARSE[kernel]
        if some is not None:
            points = [min((_trial(some, labels[rows], point) for point in points), key=lambda one: one.loss).point]
        first = min((_trial(whole, labels, point) for point in points), key=lambda one: one.loss)
        finer = [_trial(whole, labels, point) for point in _neighbours(first.point)]
        second = min([first, *finer], key=lambda one: one.loss)
        weighted = _trial(whole, labels, second.point._replace(balanced=True))
        best.append(min([second, weighted], key=lambda one: one.loss))
        tried += len(_COARSE[kernel]) + len(finer) + 1
    chosen = best[0]
    if len(best) == 2 and _clearly_lower(best[1].losses, best[0].losses, groups):
        chosen = best[1]
    cut, zero = _zero(chosen, labels, groups)
    sigmoid = chosen.sigmoid._replace(b=chosen.sigmoid.b + chosen.sigmoid.a * cut)
    return SearchResult(chosen.point, chosen.g - cut, sigmoid, -cut, zero, tried, len(rows))


def unsearched_machine(x: Floats, labels: Bools) -> SearchResult:
    """Return a linear machine for pairs too few to part, calibrated on what it was trained on."""
    point, every = Point("linear", 0.1), np.arange(len(labels))
    tried = _trial(pieces_of(x, labels, [Split(every, every)]), labels, point)
    return SearchResult(
        point, tried.g, tried.sigmoid, 0.0, float(tried.sigmoid.probability(np.zeros(1))[0]), 1, len(labels)
    )


def _sample(labels: Bools, seed: int) -> Integers:
    """Return rows for the coarse search: half of them of the rarer class, if it has so many."""
    order = np.random.default_rng(seed).permutation(len(labels))
    rarer = (labels if 2 * labels.sum() <= len(labels) else ~labels)[order]
    rare = order[rarer][: COARSE_PAIRS // 2]
    return np.sort(np.concatenate([rare, order[~rarer][: COARSE_PAIRS - len(rare)]]))


def _trial(pieces: Sequence[Piece], labels: Bools, point: Point) -> _Trial:
    g = out_of_fold(pieces, point, len(labels))
    sigmoid = sigmoid_of(g, labels)
    return _Trial(point, g, sigmoid, sigmoid.loss(g, labels))


def _neighbours(point: Point) -> list[Point]:
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


def _zero(chosen: _Trial, labels: Bools, groups: Integers) -> tuple[float, float]:
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
