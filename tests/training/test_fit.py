"""The best threshold on a measure, Platt's sigmoid, machines out of fold and the search of options, beside twins."""

from __future__ import annotations

import math
import sys
from typing import Any

import naive_learning as naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.errors import NeardupError
from neardup.training import fit as fit_module
from neardup.training.fit import (
    KERNELS,
    MIN_SLOPE,
    MachineOptions,
    MeasureThreshold,
    SearchResult,
    best_threshold,
    extract_machine,
    fit,
    fit_sigmoid,
    out_of_fold_scores,
    out_of_fold_threshold,
    quick_scorer,
    scale_splits,
    search,
)
from neardup.training.folds import Split, make_folds

VALUES = st.one_of(st.integers(0, 4).map(lambda v: v / 4), st.just(math.nan))
TABLES = st.lists(st.tuples(VALUES, VALUES, st.booleans()), min_size=2, max_size=20).filter(
    lambda rows: any(row[2] for row in rows) and not all(math.isnan(v) for row in rows for v in row[:2])
)


@given(TABLES)
def test_the_best_threshold_has_the_highest_f1(rows: list[tuple[float, float, bool]]) -> None:
    x, labels = np.array([row[:2] for row in rows]), np.array([row[2] for row in rows])
    found = best_threshold(x, labels)
    passed = found.passes(x).tolist()
    assert naive.f1(passed, labels.tolist()) == pytest.approx(naive.highest_f1(x.tolist(), labels.tolist()))


def test_the_best_threshold_lies_halfway_between_two_values() -> None:
    x, labels = np.array([[0.2], [0.4], [0.8], [0.9]]), np.array([False, False, True, True])
    assert best_threshold(x, labels) == MeasureThreshold(0, (0.4 + 0.8) / 2, False)
    assert best_threshold(-x, labels) == MeasureThreshold(0, -(0.4 + 0.8) / 2, True)
    # Of equals, the first measure.
    assert best_threshold(np.hstack([x, x, -x]), labels) == best_threshold(x, labels)
    close = np.array([[1.0], [np.nextafter(1.0, 2.0)]])
    assert best_threshold(close, np.array([False, True])).passes(close).tolist() == [False, True]


def test_unknown_values_do_not_pass() -> None:
    x = np.array([[math.nan], [0.3], [0.1]])
    for is_maximum in (False, True):
        assert not MeasureThreshold(0, 0.2, is_maximum).passes(x)[0]
    unknown = best_threshold(np.full((3, 1), math.nan), np.array([True, False, True]))
    assert not unknown.passes(np.array([[1.0]]))[0]


def test_each_fold_is_judged_by_the_threshold_of_the_others() -> None:
    x, labels = np.array([[0.1], [0.9], [0.5], [0.7]]), np.array([False, True, True, False])
    splits = [Split(np.array([0, 1]), np.array([2, 3])), Split(np.array([2, 3]), np.array([0, 1]))]
    passed = out_of_fold_threshold(x, labels, splits)
    assert passed.tolist()[2:] == best_threshold(x[:2], labels[:2]).passes(x[2:]).tolist()
    assert passed.tolist()[:2] == best_threshold(x[2:], labels[2:]).passes(x[:2]).tolist()


SCORED = st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=4, max_size=40).filter(
    lambda rows: 0 < sum(label for _, label in rows) < len(rows)
)


@given(SCORED)
def test_the_sigmoid_equals_the_papers_algorithm(rows: list[tuple[float, bool]]) -> None:
    g, labels = [score for score, _ in rows], [label for _, label in rows]
    a, b = naive.sigmoid(g, labels)
    found = fit_sigmoid(np.array(g), np.array(labels))
    if a > -MIN_SLOPE:
        assert not found.is_informative
        assert found.a == -MIN_SLOPE
    else:
        # If g hardly differs, many a and b give these probabilities.
        assert found.is_informative
        assert found.probability(np.array(g)) == pytest.approx([1 / (1 + math.exp(a * v + b)) for v in g], abs=1e-6)


def test_the_sigmoid_does_not_overflow() -> None:
    found = fit_sigmoid(np.array([-1e6, 1e6, -1.0, 1.0] * 5), np.array([False, True, False, True] * 5))
    assert np.isfinite(found.probability(np.array([-1e9, 1e9]))).all()
    assert np.isfinite(found.loss(np.array([-1e9, 1e9]), np.array([True, False]))).all()


OPTIONS = [
    MachineOptions("linear", 0.5),
    MachineOptions("linear", 2.0, balanced=True),
    MachineOptions("rbf", 4.0, 0.5),
    MachineOptions("rbf", 1.0, 2.0, True),
]


def random_pairs(count: int = 80, seed: int = 0) -> tuple[Any, Any]:
    """Vectors of two classes that overlap; one measure is sometimes unknown, one always, one is constant."""
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < 0.4
    x = rng.normal(np.where(labels, 0.7, -0.7)[:, np.newaxis], 1.0, (count, 5))
    x[rng.random(count) < 0.2, 1] = np.nan
    x[:, 3], x[:, 4] = 1.0, np.nan
    return x, labels


@pytest.mark.parametrize("options", OPTIONS)
def test_an_extracted_machine_scores_as_scikit_learn(options: MachineOptions) -> None:
    x, labels = random_pairs()
    estimator = fit(x, labels, options)
    svm = estimator.named_steps["svm"]
    assert (svm.C, svm.class_weight == "balanced") == (options.c, options.balanced)
    assert svm.kernel == "linear" or svm.gamma == options.gamma / 5
    others = np.concatenate([x, random_pairs(seed=3)[0], np.full((1, 5), np.nan)])
    machine = extract_machine(estimator, -1.0, 0.0, 0.5)
    assert machine.score(others) == pytest.approx(estimator.decision_function(others) + 0.5, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("options", OPTIONS)
def test_out_of_fold_scores_are_those_of_a_fit_on_the_other_folds(options: MachineOptions) -> None:
    x, labels = random_pairs()
    folds = make_folds(np.arange(80), np.arange(80, 160), labels, count=4, seed=0)
    assert folds is not None
    g = out_of_fold_scores(scale_splits(x, labels, folds.splits), options, 80)
    for train, test in folds.splits:
        assert np.array_equal(g[test], fit(x[train], labels[train], options).decision_function(x[test]))
    part = out_of_fold_scores(scale_splits(x, labels, folds.splits[:1]), options, 80)
    assert np.isnan(part[folds.splits[1].test]).all()


def test_a_quick_machine_ranks_duplicates_first() -> None:
    x, labels = random_pairs()
    g = quick_scorer(x, labels)
    others, truth = random_pairs(seed=1)
    assert g(others)[truth].mean() > g(others)[~truth].mean() + 0.5
    assert np.array_equal(g(others), quick_scorer(x, labels)(others))
    assert g(np.full((1, 5), np.nan)).shape == (1,)


def test_missing_scikit_learn_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(NeardupError) as caught:
        quick_scorer(*random_pairs())
    assert says(caught.value, "needs scikit-learn, which is not installed", "pip install 'neardup[learn]'")


def splits_of(labels: Any) -> Any:
    count = len(labels)
    folds = make_folds(np.arange(count), np.arange(count, 2 * count), labels, count=3, seed=0)
    assert folds is not None
    return folds.splits


def search_options(x: Any, labels: Any, *kernels: str) -> SearchResult:
    return search(x, labels, np.arange(len(labels)), splits_of(labels), kernels=kernels, seed=0)


def overlapping(count: int, share: float, apart: float = 0.8, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < share
    return rng.normal(np.where(labels, apart, -apart)[:, np.newaxis], 1.0, (count, 3)), labels


def test_a_ring_gets_the_rbf_kernel() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (200, 2))
    labels = (x**2).sum(axis=1) < 1.2
    chosen = search_options(x, labels, *KERNELS)
    assert chosen.options.kernel == "rbf"
    assert ((chosen.scores >= 0) == labels).mean() > 0.9
    assert search_options(x, labels, "linear").options.kernel == "linear"


def test_the_search_is_refined_and_prefers_the_simpler_kernel() -> None:
    x, labels = overlapping(120, 0.4, seed=1)
    linear, bent, both = (search_options(x, labels, *kernels) for kernels in (["linear"], ["rbf"], KERNELS))
    # The other kernel has less loss, but not clearly.
    assert bent.sigmoid.loss(bent.scores, labels).mean() < linear.sigmoid.loss(linear.scores, labels).mean()
    assert both.options == linear.options
    assert (linear.options_tried, bent.options_tried, both.options_tried) == (6, 17, 23)
    # Its C lies between those of the coarse grid.
    assert search_options(*overlapping(120, 0.4), "linear").options.c == 2.0**-8


def test_a_coarse_search_takes_as_many_pairs_of_the_rarer_class(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[tuple[int, int]] = []

    def counted(x: Any, labels: Any, splits: Any) -> Any:
        counts.append((len(labels), int(labels.sum())))
        return scale_splits(x, labels, splits)

    monkeypatch.setattr(fit_module, "COARSE_PAIRS", 40)
    monkeypatch.setattr(fit_module, "scale_splits", counted)
    x, labels = overlapping(120, 0.3)
    for truth, duplicates in ((labels, 20), (~labels, 20)):
        counts.clear()
        assert search_options(x, truth, "linear").coarse_pairs == 40
        assert counts == [(120, int(truth.sum())), (40, duplicates)]


def test_scores_are_moved_so_that_probability_one_half_is_at_0() -> None:
    x, labels = overlapping(150, 0.3)
    chosen = search_options(x, labels, "linear")
    g = out_of_fold_scores(scale_splits(x, labels, splits_of(labels)), chosen.options, 150)
    assert chosen.scores == pytest.approx(g + chosen.offset, abs=1e-12)
    assert chosen.sigmoid.probability(chosen.scores) == pytest.approx(fit_sigmoid(g, labels).probability(g), abs=1e-9)
    assert chosen.sigmoid.probability(np.zeros(1))[0] == pytest.approx(chosen.zero_probability)


def test_rare_and_difficult_duplicates_move_the_cut_below_one_half() -> None:
    x, labels = overlapping(1200, 0.08, apart=0.35, seed=2)
    chosen = search_options(x, labels, "linear")
    assert chosen.zero_probability < 0.45
    assert chosen.sigmoid.probability(np.zeros(1))[0] == pytest.approx(chosen.zero_probability)
    # Here a lower cut is better by chance only.
    assert search_options(*overlapping(120, 0.4, seed=4), "linear").zero_probability == 0.5
    assert (chosen.scores >= 0).sum() > (chosen.sigmoid.probability(chosen.scores) >= 0.5).sum()
