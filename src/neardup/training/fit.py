"""The fit of support vector machines (ICGICT 2014, 3.2.3), and scores of pairs out of fold.

A score is g, the decision function of a machine; out of fold, it comes from a machine not trained on the pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from neardup.classifier.classifier import Machine, platt_probability
from neardup.errors import NeardupError
from neardup.kernels import Bools, Floats, Integers
from neardup.training.folds import Split, draw_groups, select_rows


class MachineOptions(NamedTuple):
    """Options of a support vector machine."""

    kernel: str  #: ``linear`` or ``rbf``
    #: The penalty C of formula (6). Raising it fits the training pairs more closely.
    c: float
    #: The RBF kernel is exp(-gamma / r |u - v|**2) with r measures; 0 for the linear kernel. Raising it shortens the
    #: reach of each training pair.
    gamma: float = 0.0
    balanced: bool = False  #: whether both classes get the same total weight


def quick_scorer(x: Floats, labels: Bools) -> Callable[[Floats], Floats]:
    """Return the score function of a linear machine fitted without a search, for active learning."""
    fitted = fit(x, np.asarray(labels, np.bool_), MachineOptions("linear", 1.0, balanced=True))
    return lambda x: np.asarray(fitted.decision_function(x), np.float64)


def fit(x: Floats, labels: Bools, options: MachineOptions) -> Any:
    """Return a fitted scikit-learn pipeline with the steps "impute", "scale" and "svm"."""
    pipeline = load_sklearn().pipeline.Pipeline([*_scaling(), ("svm", _svm(options, x.shape[1]))])
    return pipeline.fit(x, labels)


class ScaledSplit(NamedTuple):
    """A split with measures standardized on its training rows."""

    #: float64[t, r], float64[u, r]: standardized measures.
    train: Floats
    test: Floats
    labels: Bools  #: bool[t]: labels of the training rows
    rows: Integers  #: int64[u]: the judged rows


def scale_splits(x: Floats, labels: Bools, splits: Sequence[Split]) -> list[ScaledSplit]:
    """Return the splits with standardized measures, on which many machines can be tried."""
    scaled: list[ScaledSplit] = []
    for train, test in splits:
        scaling = load_sklearn().pipeline.Pipeline(_scaling()).fit(x[train])
        scaled.append(ScaledSplit(scaling.transform(x[train]), scaling.transform(x[test]), labels[train], test))
    return scaled


def out_of_fold_scores(splits: Sequence[ScaledSplit], options: MachineOptions, count: int) -> Floats:
    """Return the out-of-fold score of each of ``count`` rows, NaN for rows that no split judges."""
    scores = np.full(count, np.nan)
    for split in splits:
        svm = _svm(options, split.train.shape[1]).fit(split.train, split.labels)
        scores[split.rows] = svm.decision_function(split.test)
    return scores


def extract_machine(estimator: Any, a: float, b: float, offset: float = 0.0) -> Machine:
    """Return a fitted pipeline as arrays, with the a and b of Platt's sigmoid and ``offset`` added to the score."""
    impute, scale, svm = (estimator.named_steps[name] for name in ("impute", "scale", "svm"))
    support, dual = np.asarray(svm.support_vectors_, np.float64), np.asarray(svm.dual_coef_, np.float64).ravel()
    linear = svm.kernel == "linear"
    if linear:
        # One sum in a fixed order gives the same bits on every computer.
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


def _svm(options: MachineOptions, measures: int) -> Any:
    # A number rather than "scale", so that gamma is known without scikit-learn; the linear kernel ignores it.
    gamma = options.gamma / measures if options.kernel == "rbf" else 1.0
    weights = "balanced" if options.balanced else None
    return load_sklearn().svm.SVC(kernel=options.kernel, C=options.c, gamma=gamma, class_weight=weights, cache_size=400)


def _scaling() -> list[tuple[str, Any]]:
    impute = load_sklearn().impute.SimpleImputer(strategy="median", keep_empty_features=True)
    return [("impute", impute), ("scale", load_sklearn().preprocessing.StandardScaler())]


def load_sklearn() -> Any:
    """Return scikit-learn with the modules that training uses.

    Raises ``NeardupError`` if it is not installed.
    """
    try:
        import sklearn
        import sklearn.impute
        import sklearn.pipeline
        import sklearn.preprocessing
        import sklearn.svm
    except ImportError as error:
        package = "scikit-learn" if str(error.name).startswith("sklearn") else error.name
        raise NeardupError(
            f"training needs {package}, which is not installed; pip install 'neardup[learn]' brings it"
        ) from None
    return sklearn


class MeasureThreshold(NamedTuple):
    """A threshold on one measure."""

    #: The measure's position in the vector.
    measure: int
    value: float
    #: Whether duplicates lie at or below it, as for the hours between two times, instead of at or above.
    is_maximum: bool

    def passes(self, x: Floats) -> Bools:
        """Return which rows of x pass; an unknown measure does not."""
        column = x[:, self.measure]
        return np.asarray(column <= self.value if self.is_maximum else column >= self.value, np.bool_)


def best_threshold(x: Floats, labels: Bools) -> MeasureThreshold:
    """Return the threshold with the highest F1, halfway between two values; of equals the first and strictest."""
    best, highest = MeasureThreshold(0, float("inf"), False), -1.0
    for measure in range(x.shape[1]):
        for is_maximum in (False, True):
            column = -x[:, measure] if is_maximum else x[:, measure]
            is_known = ~np.isnan(column)
            value, f1 = _best_minimum(column[is_known], labels[is_known], int(labels.sum()))
            if f1 > highest:
                best, highest = MeasureThreshold(measure, -value if is_maximum else value, is_maximum), f1
    return best


def _best_minimum(column: Floats, labels: Bools, duplicates: int) -> tuple[float, float]:
    """Return the smallest value to pass that gives the highest F1, and that F1; ``duplicates`` is their total."""
    order = np.argsort(-column, kind="stable")
    values, correct = column[order], np.cumsum(labels[order])
    ends = np.flatnonzero(np.append(values[1:] != values[:-1], len(values) > 0))
    if not len(ends):
        return float("inf"), -1.0
    f1 = 2 * correct[ends] / (ends + 1 + duplicates)
    last = int(ends[np.argmax(f1)])
    if last + 1 == len(values):
        return float(values[last]), float(f1.max())
    halfway = float((values[last] + values[last + 1]) / 2)
    # Between neighbouring floats there is no other: then the upper one is the threshold.
    return halfway if halfway > values[last + 1] else float(values[last]), float(f1.max())


def out_of_fold_threshold(x: Floats, labels: Bools, splits: Sequence[Split]) -> Bools:
    """Return which rows pass the best threshold on the training rows of their split."""
    passed = np.zeros(len(labels), np.bool_)
    for train, test in splits:
        passed[test] = best_threshold(x[train], labels[train]).passes(x[test])
    return passed


_MAX_STEPS, _MIN_STEP = 100, 1e-10
_RIDGE, _GRADIENT_TOLERANCE = 1e-12, 1e-5
_SUFFICIENT_DECREASE = 1e-4
#: The slope of the sigmoid where scores do not rise with the labels: nearly flat, but still rising.
MIN_SLOPE = 1e-6


class Sigmoid(NamedTuple):
    """Platt's sigmoid: the probability of a duplicate with score g is 1 / (1 + exp(a g + b))."""

    #: Negative, so that the probability rises with the score.
    a: float
    b: float
    is_informative: bool  #: whether higher scores mean more duplicates

    def probability(self, scores: Floats) -> Floats:
        """Return the probability for each score."""
        return platt_probability(self.a * scores + self.b)

    def loss(self, scores: Floats, labels: Bools) -> Floats:
        """Return minus the logarithm of the probability of each pair's label."""
        return _cross_entropy(self.a * scores + self.b, labels.astype(np.float64))


def fit_sigmoid(g: Floats, labels: Bools) -> Sigmoid:
    """Fit the sigmoid to out-of-fold scores and labels (Lin, Lin & Weng 2007, appendix: Newton with backtracking).

    The targets are (n+ + 1) / (n+ + 2) and 1 / (n- + 2) instead of 1 and 0, so that few labels give no certainty.
    """
    positives, negatives = int(labels.sum()), int((~labels).sum())
    targets = np.where(labels, (positives + 1) / (positives + 2), 1 / (negatives + 2))
    a, b = 0.0, math.log((negatives + 1) / (positives + 1))
    value = float(_cross_entropy(b + a * g, targets).sum())
    for _ in range(_MAX_STEPS):
        p = _falling_sigmoid(a * g + b)
        weight = p * (1 - p)
        h11, h22, h21 = float((g * g * weight).sum()) + _RIDGE, float(weight.sum()) + _RIDGE, float((g * weight).sum())
        slope = targets - p
        g1, g2 = float((g * slope).sum()), float(slope.sum())
        if abs(g1) < _GRADIENT_TOLERANCE and abs(g2) < _GRADIENT_TOLERANCE:
            break
        determinant = h11 * h22 - h21 * h21
        da, db = -(h22 * g1 - h21 * g2) / determinant, -(-h21 * g1 + h11 * g2) / determinant
        downhill, step = g1 * da + g2 * db, 1.0
        while step >= _MIN_STEP:
            lower = float(_cross_entropy((a + step * da) * g + b + step * db, targets).sum())
            if lower < value + _SUFFICIENT_DECREASE * step * downhill:
                a, b, value = a + step * da, b + step * db, lower
                break
            step /= 2
        else:
            break
    if a > -MIN_SLOPE:
        return Sigmoid(-MIN_SLOPE, math.log((negatives + 1) / (positives + 1)), False)
    return Sigmoid(a, b, True)


def _falling_sigmoid(f: Floats) -> Floats:
    """Return 1 / (1 + exp(f)) without overflow, exact also where it is tiny."""
    e = np.exp(-np.abs(f))
    return np.asarray(np.where(f >= 0, e / (1 + e), 1 / (1 + e)), np.float64)


def _cross_entropy(f: Floats, targets: Floats) -> Floats:
    """Return the cross entropy of targets and 1 / (1 + exp(f)) without overflow."""
    linear = np.where(f >= 0, targets * f, (targets - 1) * f)
    return np.asarray(linear + np.log1p(np.exp(-np.abs(f))), np.float64)


KERNELS = ("linear", "rbf")
#: The coarse grid. Gamma is divided by the number of measures, whose mean square is 1.
_COARSE = {
    "linear": [MachineOptions("linear", 2.0**c) for c in (-6, -2, 2)],
    "rbf": [MachineOptions("rbf", 2.0**c, 2.0**gamma) for c in (-2, 2, 6) for gamma in (-6, -4, -2, 0)],
}
#: Factors of C and gamma for the neighbours of the best coarse options.
_FINE_C, _FINE_GAMMA = (0.25, 4.0), (0.5, 2.0)
#: The coarse search looks at this number of pairs at most, the fine one at all.
COARSE_PAIRS = 1500
_DRAWS = 500


class SearchResult(NamedTuple):
    """The chosen options of a machine, and its out-of-fold scores."""

    options: MachineOptions
    scores: Floats  #: float64[n]: out-of-fold scores plus ``offset``
    sigmoid: Sigmoid  #: of these scores
    offset: float  #: added to the scores, so that a pair is a duplicate from 0 on
    zero_probability: float  #: the probability at score 0
    options_tried: int  #: the number of options compared
    coarse_pairs: int  #: the number of pairs in the coarse search


class _Trial(NamedTuple):
    options: MachineOptions
    scores: Floats
    sigmoid: Sigmoid
    losses: Floats

    @property
    def loss(self) -> float:
        return float(self.losses.mean())


def search(
    x: Floats, labels: Bools, groups: Integers, splits: Sequence[Split], *, kernels: Sequence[str], seed: int
) -> SearchResult:
    """Return the options with the least cross-validated log loss, and the scores that they give.

    A coarse grid is followed by the neighbours of its best options, and by balanced class weights. Of two kernels, the
    linear one wins unless the other is clearly better. Pairs of one group (``groups``, int64[n]) depend on each other.
    """
    scaled, coarse, rows = scale_splits(x, labels, splits), None, np.arange(len(labels))
    if len(labels) > COARSE_PAIRS:
        rows = _coarse_rows(labels, seed)
        coarse = scale_splits(x[rows], labels[rows], select_rows(splits, rows, len(labels)))
    best: list[_Trial] = []
    options_tried = 0
    for kernel in KERNELS:
        if kernel not in kernels:
            continue
        grid = _COARSE[kernel]
        if coarse is not None:
            grid = [_best_trial(coarse, labels[rows], grid).options]
        first = _best_trial(scaled, labels, grid)
        neighbours = _neighbours(first.options)
        second = min(first, _best_trial(scaled, labels, neighbours), key=lambda trial: trial.loss)
        balanced = _trial(scaled, labels, second.options._replace(balanced=True))
        best.append(min(second, balanced, key=lambda trial: trial.loss))
        options_tried += len(_COARSE[kernel]) + len(neighbours) + 1
    chosen = best[0]
    if len(best) == 2 and _is_clearly_lower(best[1].losses, best[0].losses, groups):
        chosen = best[1]
    cut, zero_probability = _natural_cut(chosen, labels, groups)
    sigmoid = chosen.sigmoid._replace(b=chosen.sigmoid.b + chosen.sigmoid.a * cut)
    return SearchResult(chosen.options, chosen.scores - cut, sigmoid, -cut, zero_probability, options_tried, len(rows))


def default_search_result(x: Floats, labels: Bools) -> SearchResult:
    """Return a linear machine for pairs too few to divide, calibrated on its own training pairs."""
    options, rows = MachineOptions("linear", 0.1), np.arange(len(labels))
    trial = _trial(scale_splits(x, labels, [Split(rows, rows)]), labels, options)
    zero_probability = float(trial.sigmoid.probability(np.zeros(1))[0])
    return SearchResult(options, trial.scores, trial.sigmoid, 0.0, zero_probability, 1, len(labels))


def _coarse_rows(labels: Bools, seed: int) -> Integers:
    """Return rows for the coarse search, half of them of the rarer class if it has enough."""
    order = np.random.default_rng(seed).permutation(len(labels))
    is_rarer = (labels if 2 * labels.sum() <= len(labels) else ~labels)[order]
    rarer = order[is_rarer][: COARSE_PAIRS // 2]
    return np.sort(np.concatenate([rarer, order[~is_rarer][: COARSE_PAIRS - len(rarer)]]))


def _trial(splits: Sequence[ScaledSplit], labels: Bools, options: MachineOptions) -> _Trial:
    scores = out_of_fold_scores(splits, options, len(labels))
    sigmoid = fit_sigmoid(scores, labels)
    return _Trial(options, scores, sigmoid, sigmoid.loss(scores, labels))


def _best_trial(splits: Sequence[ScaledSplit], labels: Bools, grid: Sequence[MachineOptions]) -> _Trial:
    return min((_trial(splits, labels, options) for options in grid), key=lambda trial: trial.loss)


def _neighbours(options: MachineOptions) -> list[MachineOptions]:
    neighbours = [options._replace(c=options.c * factor) for factor in _FINE_C]
    if options.kernel == "rbf":
        neighbours += [options._replace(gamma=options.gamma * factor) for factor in _FINE_GAMMA]
    return neighbours


def _is_clearly_lower(losses: Floats, reference: Floats, groups: Integers) -> bool:
    """Return whether losses are lower by more than their difference's standard error (Breiman et al. 1984, 3.4.3)."""
    gains = np.bincount(np.unique(groups, return_inverse=True)[1], reference - losses)
    return bool(gains.sum() > np.sqrt((gains**2).sum()))


def _natural_cut(trial: _Trial, labels: Bools, groups: Integers) -> tuple[float, float]:
    """Return the score from which a pair counts as a duplicate, and the probability at this score.

    It is the score of probability 1/2, unless a lower one has a higher F1 beyond chance: at half of the highest F1
    (Lipton, Elkan & Narayanaswamy 2014). If scores are not informative, it is 0.
    """
    scores, sigmoid = trial.scores, trial.sigmoid
    if not sigmoid.is_informative:
        return 0.0, float(sigmoid.probability(np.zeros(1))[0])
    half = -sigmoid.b / sigmoid.a
    best = best_threshold(scores[:, np.newaxis], labels).passes(scores[:, np.newaxis])
    highest_f1 = float(2 * (best & labels).sum() / (best.sum() + labels.sum()))
    lower = (np.log(2 / highest_f1 - 1) - sigmoid.b) / sigmoid.a
    gain = draw_groups(labels, groups, [scores >= lower, scores >= half], count=_DRAWS).gain(0, 1)
    if gain.beyond_chance and (gain.difference.value or 0.0) > 0:
        return float(lower), highest_f1 / 2
    return half, 0.5
