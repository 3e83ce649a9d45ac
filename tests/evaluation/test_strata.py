"""Strata, drawn pairs, figures and kappa equal those of loops and exact fractions; intervals contain the truth."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import naive_audit as naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.records import Names
from neardup.evaluation.agreement import Agreement, pairwise_agreements
from neardup.evaluation.intervals import (
    Figure,
    StratumCounts,
    duplicate_figure,
    duplicate_limits,
    estimate_duplicates,
    exact_limits,
    precision_figure,
    recall_figure,
)
from neardup.evaluation.population import draw_pairs
from neardup.evaluation.strata import (
    MAX_RETURNED_STRATA,
    MAX_UNRETURNED_STRATA,
    MIN_DRAWN,
    Stratum,
    ThresholdDirections,
    allocate,
    label_deviations,
    stratify,
    threshold_points,
)

EDGES = [k / 20 for k in range(21)]


@st.composite
def some_strata(draw: st.DrawFn) -> list[Stratum]:
    sizes = st.integers(1, 200)
    weights = st.floats(0.1, 50)
    return [
        Stratum(returned, 0.0, 1.0, draw(sizes), draw(weights))
        for returned in (True, False)
        for _ in range(draw(st.integers(0, 5)))
    ]


@given(some_strata(), st.integers(1, 400), st.integers(1, 50))
def test_counts_of_drawn_pairs_equal_loops_and_grow_with_the_sample(
    strata: list[Stratum], sample: int, more: int
) -> None:
    counts = allocate(strata, sample)
    assert counts == naive.allocate([(s.returned, s.pairs, s.weight) for s in strata], sample, MIN_DRAWN)
    assert sum(counts) == min(sample, sum(stratum.pairs for stratum in strata))
    assert all(fewer <= larger for fewer, larger in zip(counts, allocate(strata, sample + more), strict=True))


@given(st.lists(st.sampled_from([0.3, 0.31, 0.4, 0.5, 0.55, 0.62, 0.7, 0.8, 0.99, 1.0]), min_size=1))
def test_strata_divide_all_pairs_by_score_in_any_order(scores: list[float]) -> None:
    score = np.array(scores)
    returned = score >= 0.6
    strata, pair_strata = stratify(score, returned, label_deviations(score), EDGES, EDGES)
    for at, stratum in enumerate(strata):
        inside = pair_strata == at
        assert inside.sum() == stratum.pairs > 0
        assert (returned[inside] == stratum.returned).all()
        assert stratum.low <= score[inside].min()
        assert score[inside].max() < stratum.high or stratum.high == 1.0 == score[inside].max()
    ends = [(not stratum.returned, -stratum.low) for stratum in strata]
    assert ends == sorted(ends)
    for side, most in ((True, MAX_RETURNED_STRATA), (False, MAX_UNRETURNED_STRATA)):
        assert sum(stratum.returned == side for stratum in strata) <= most
    order = np.random.default_rng(1).permutation(len(score))
    again, moved = stratify(score[order], returned[order], label_deviations(score)[order], EDGES, EDGES)
    assert [stratum[:4] for stratum in again] == [stratum[:4] for stratum in strata]
    assert np.array_equal(moved, pair_strata[order])


IDS = ["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen"]


@given(st.permutations(IDS), st.integers(0, 12), st.integers(0, 12), st.integers(0, 3))
def test_drawn_pairs_depend_on_ids_and_seed_alone(ids: list[str], first: int, second: int, seed: int) -> None:
    pairs = list(combinations(ids, 2))
    left, right = np.array(list(combinations(range(8), 2))).T
    strata = [(ord(one[0]) + ord(other[0])) % 2 for one, other in pairs]
    counts = [min(first, strata.count(0)), min(second, strata.count(1))]

    def by_hash(purpose: int, members: list[tuple[str, str]]) -> list[tuple[str, str]]:
        return sorted(members, key=lambda pair: naive.pair_hash(pair[0], pair[1], seed, purpose))

    drawn = [by_hash(0, [pair for pair, at in zip(pairs, strata, strict=True) if at == side]) for side in (0, 1)]
    expected = by_hash(1, [*drawn[0][: counts[0]], *drawn[1][: counts[1]]])
    rows = draw_pairs(Names(np.arange(8), pa.array(ids)), left, right, np.array(strata), counts, seed)
    assert [pairs[row] for row in rows] == expected


@st.composite
def cells(draw: st.DrawFn) -> StratumCounts:
    pairs = draw(st.integers(1, 40))
    judged = draw(st.integers(1, pairs))
    return StratumCounts(pairs, judged, draw(st.integers(0, judged)))


def close(figure: Figure, expected: tuple[Fraction | float, float, float]) -> None:
    assert figure == pytest.approx(tuple(map(float, expected)), abs=1e-7)


@given(cells())
def test_limits_of_a_stratum_equal_exact_fractions(cell: StratumCounts) -> None:
    assert exact_limits(cell) == naive.exact_limits(*cell)
    assert duplicate_limits(cell) == pytest.approx(naive.limits(*cell), abs=1e-7)


@given(st.lists(cells(), min_size=1, max_size=4), st.lists(cells(), max_size=4))
def test_figures_equal_exact_fractions(returned: list[StratumCounts], others: list[StratumCounts]) -> None:
    inside, outside = ([(n, judged, same) for n, judged, same in cells] for cells in (returned, others))
    close(duplicate_figure(estimate_duplicates([*returned, *others])), naive.number([*inside, *outside]))
    size = sum(cell.pairs for cell in returned)
    value, low, high = naive.number(inside)
    close(precision_figure(estimate_duplicates(returned), size), (value / size, low / size, high / size))
    expected = naive.recall(inside, outside)
    found = recall_figure(estimate_duplicates(returned), estimate_duplicates(others))
    if expected is None:
        assert found == Figure(None, None, None)
    else:
        close(found, expected)


#: The least score, the beta distribution of scores above it, and the probability of a duplicate at each score.
CORPORA: dict[str, tuple[float, float, float, Callable[[Any], Any]]] = {
    "a steep rise": (0.3, 0.7, 3, lambda score: 1 / (1 + np.exp((0.65 - score) / 0.03))),
    "templates everywhere": (0.3, 1.0, 1.5, lambda score: 0.05 + 0.9 * (score - 0.3) / 0.7),
    "few mistakes": (0.3, 0.8, 2, lambda score: np.where(score >= 0.7, 0.99, 0.01)),
    "few duplicates": (0.1, 0.5, 4, lambda score: np.maximum(1 / (1 + np.exp((0.6 - score) / 0.05)), 0.002)),
}


@pytest.mark.parametrize("name", CORPORA)
def test_intervals_contain_the_truth_in_at_least_92_of_100_samples(name: str) -> None:
    """Strata, samples and figures of 120 corpora, as an audit makes them, beside the truth."""
    least, first, second, probability = CORPORA[name]
    random = np.random.default_rng(7)
    held = []
    for _ in range(120):
        pairs = int(random.integers(800, 3000))
        score = least + (1 - least) * random.beta(first, second, pairs)
        truth = random.random(pairs) < probability(score)
        returned = score >= 0.7
        deviations = label_deviations(1 / (1 + np.exp((0.7 - score) / 0.05)))
        strata, pair_strata = stratify(score, returned, deviations, EDGES, EDGES)
        known = []
        for at, (stratum, count) in enumerate(zip(strata, allocate(strata, 120), strict=True)):
            drawn = random.choice(np.flatnonzero(pair_strata == at), count, replace=False)
            known.append(StratumCounts(stratum.pairs, count, int(truth[drawn].sum())))
        point = threshold_points(strata, known, 0.7, ThresholdDirections(stricter=False, looser=False))[0]
        figures = duplicate_figure(estimate_duplicates(known)), point.precision, point.recall
        truths = truth.sum(), truth[returned].mean(), truth[returned].sum() / max(truth.sum(), 1)
        ends = np.array(figures, np.float64)[:, 1:]
        held.append([low - 1e-9 <= true <= high + 1e-9 for (low, high), true in zip(ends, truths, strict=True)])
    assert (np.mean(held, axis=0) >= 0.92).all()


def kappa_and_variance(table: dict[tuple[int, int], int]) -> tuple[float, float]:
    """Kappa and its variance by Fleiss, Cohen & Everitt 1969, formula (13), over any classes."""
    n = sum(table.values())
    p = {cell: count / n for cell, count in table.items()}
    classes = {one for one, _ in p}
    row = {i: sum(p[i, j] for j in classes) for i in classes}
    column = {j: sum(p[i, j] for i in classes) for j in classes}
    chance = sum(row[i] * column[i] for i in classes)
    kappa = (sum(p[i, i] for i in classes) - chance) / (1 - chance)
    on = sum(
        p[i, i] * ((1 - chance) - (column[i] + row[i]) * (1 - sum(p[k, k] for k in classes))) ** 2 for i in classes
    )
    seen = sum(p[k, k] for k in classes)
    off = (1 - seen) ** 2 * sum(p[i, j] * (column[i] + row[j]) ** 2 for i, j in product(classes, classes) if i != j)
    last = (seen * chance - 2 * chance + seen) ** 2
    return kappa, (on + off - last) / (n * (1 - chance) ** 4)


@given(st.tuples(*[st.integers(0, 40)] * 4))
def test_kappa_and_its_interval_equal_the_papers_formulas(table: tuple[int, int, int, int]) -> None:
    found = Agreement(("anna", "bob"), table)
    both, first, second, none = table
    n = sum(table)
    if not n or both == n or none == n:
        assert found.kappa is None
        assert found.interval is None
        return
    kappa, variance = kappa_and_variance({(1, 1): both, (1, 0): first, (0, 1): second, (0, 0): none})
    half = 1.959964 * math.sqrt(max(variance, 0))
    assert found.kappa == pytest.approx(kappa, abs=1e-12)
    assert found.interval == pytest.approx((max(kappa - half, -1), min(kappa + half, 1)), abs=1e-6)


def test_every_two_labellers_are_compared_on_the_pairs_that_both_are_sure_of() -> None:
    answers = {
        "p": {"anna": "same", "bob": "same", "eve": "unsure"},
        "q": {"anna": "same", "bob": "different"},
        "r": {"anna": "different", "eve": "different"},
        "s": {"bob": "same"},
    }
    assert pairwise_agreements(answers) == [
        Agreement(("anna", "bob"), (1, 1, 0, 0)),
        Agreement(("anna", "eve"), (0, 0, 0, 1), 1),
        Agreement(("bob", "eve"), (0, 0, 0, 0), 1),
    ]
    assert pairwise_agreements({}) == []
