"""Strata, the pairs that are drawn, limits and figures beside loops and fractions; how often intervals hold."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import naive_audit as naive
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.documents.records import Names
from neardup.evaluation.estimates import (
    MAX_RETURNED_STRATA,
    MAX_UNRETURNED_STRATA,
    MIN_DRAWN,
    Stratum,
    StratumCounts,
    ThresholdDirections,
    allocate,
    duplicates,
    estimate_duplicates,
    exact_limits,
    label_deviation,
    limits,
    number,
    points,
    precision,
    recall,
    stratify,
)
from neardup.evaluation.population import draw_pairs
from neardup.evaluation.scores import Figure

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


@given(some_strata(), st.integers(1, 400))
def test_numbers_are_those_of_loops(strata: list[Stratum], sample: int) -> None:
    drawn = allocate(strata, sample)
    assert drawn == naive.allocate([(s.returned, s.pairs, s.weight) for s in strata], sample, MIN_DRAWN)
    assert sum(drawn) == min(sample, sum(stratum.pairs for stratum in strata))
    assert all(count <= stratum.pairs for count, stratum in zip(drawn, strata, strict=True))


@given(some_strata(), st.integers(1, 300), st.integers(1, 50))
def test_a_larger_sample_draws_no_fewer_from_any_stratum(strata: list[Stratum], sample: int, more: int) -> None:
    pairs = zip(allocate(strata, sample), allocate(strata, sample + more), strict=True)
    assert all(fewer <= larger for fewer, larger in pairs)


@st.composite
def scored(draw: st.DrawFn) -> tuple[list[float], list[bool]]:
    scores = draw(st.lists(st.sampled_from([0.3, 0.31, 0.4, 0.5, 0.55, 0.62, 0.7, 0.8, 0.99, 1.0]), min_size=1))
    return scores, [score >= 0.6 for score in scores]


@given(scored(), st.randoms(use_true_random=False))
def test_strata_part_all_pairs_by_their_scores(given_pairs: tuple[list[float], list[bool]], random: object) -> None:
    scores, sides = given_pairs
    score, returned = np.array(scores), np.array(sides)
    strata, place = stratify(score, returned, label_deviation(score), EDGES, EDGES)
    for at, stratum in enumerate(strata):
        inside = place == at
        assert inside.sum() == stratum.pairs > 0
        assert (returned[inside] == stratum.returned).all()
        assert stratum.low <= score[inside].min()
        assert score[inside].max() < stratum.high or stratum.high == 1.0 == score[inside].max()
    ends = [(not stratum.returned, -stratum.low) for stratum in strata]
    assert ends == sorted(ends)
    for side, most in ((True, MAX_RETURNED_STRATA), (False, MAX_UNRETURNED_STRATA)):
        assert sum(stratum.returned == side for stratum in strata) <= most
    # Another order of the pairs changes nothing.
    order = np.random.default_rng(1).permutation(len(score))
    again, moved = stratify(score[order], returned[order], label_deviation(score)[order], EDGES, EDGES)
    assert [stratum[:4] for stratum in again] == [stratum[:4] for stratum in strata]
    assert np.array_equal(moved, place[order])


def names_of(ids: list[str]) -> Names:
    return Names(np.arange(len(ids)), pa.array(ids))


IDS = ["ant", "bee", "cow", "dog", "eel", "fox", "gnu", "hen"]
PAIRS = [(i, j) for i in range(8) for j in range(i + 1, 8)]


def drawn_pairs(
    ids: list[str], strata: dict[frozenset[str], int], counts: list[int], seed: int
) -> list[frozenset[str]]:
    left, right = (np.array([pair[side] for pair in PAIRS]) for side in (0, 1))
    pairs = [frozenset((ids[i], ids[j])) for i, j in PAIRS]
    place = np.array([strata[pair] for pair in pairs])
    return [pairs[at] for at in draw_pairs(names_of(ids), left, right, place, counts, seed)]


@given(st.permutations(IDS), st.integers(0, 12), st.integers(0, 12), st.integers(0, 3))
def test_who_is_drawn_depends_on_ids_and_seed_alone(ids: list[str], first: int, second: int, seed: int) -> None:
    strata = {
        frozenset((one, other)): (ord(one[0]) + ord(other[0])) % 2 for one in IDS for other in IDS if one != other
    }
    members = [[pair for pair, at in strata.items() if at == stratum] for stratum in (0, 1)]
    counts = [min(first, len(members[0])), min(second, len(members[1]))]

    def by(purpose: int, pair: frozenset[str]) -> int:
        one, other = sorted(pair)
        return naive.pair_hash(one, other, seed, purpose)

    chosen = [sorted(mine, key=lambda pair: by(0, pair))[:count] for mine, count in zip(members, counts, strict=True)]
    assert drawn_pairs(ids, strata, counts, seed) == sorted(chosen[0] + chosen[1], key=lambda pair: by(1, pair))


@st.composite
def cells(draw: st.DrawFn) -> StratumCounts:
    pairs = draw(st.integers(1, 40))
    judged = draw(st.integers(1, pairs))
    return StratumCounts(pairs, judged, draw(st.integers(0, judged)))


def close(figure: Figure, expected: tuple[Fraction | float, float, float]) -> None:
    assert figure == pytest.approx(tuple(map(float, expected)), abs=1e-7)


@given(cells())
def test_limits_of_a_stratum_are_those_of_exact_fractions(cell: StratumCounts) -> None:
    assert exact_limits(cell) == naive.exact_limits(*cell)
    assert limits(cell) == pytest.approx(naive.limits(*cell), abs=1e-7)


@given(st.lists(cells(), min_size=1, max_size=4), st.lists(cells(), max_size=4))
def test_figures_are_those_of_exact_fractions(returned: list[StratumCounts], others: list[StratumCounts]) -> None:
    inside, outside = ([(n, judged, same) for n, judged, same in cells] for cells in (returned, others))
    close(number(estimate_duplicates([*returned, *others])), naive.number([*inside, *outside]))
    size = sum(cell.pairs for cell in returned)
    value, low, high = naive.number(inside)
    close(precision(estimate_duplicates(returned), size), (value / size, low / size, high / size))
    expected = naive.recall(inside, outside)
    found = recall(estimate_duplicates(returned), estimate_duplicates(others))
    if expected is None:
        assert found == Figure(None, None, None)
    else:
        close(found, expected)


#: How scores lie between the candidate rule and 1 (by a beta distribution), and how probable a duplicate is at each.
CORPORA: dict[str, tuple[float, float, float, Callable[[Any], Any]]] = {
    "a steep rise": (0.3, 0.7, 3, lambda score: 1 / (1 + np.exp((0.65 - score) / 0.03))),
    "a slow rise": (0.3, 0.7, 2, lambda score: 1 / (1 + np.exp((0.6 - score) / 0.1))),
    "templates everywhere": (0.3, 1.0, 1.5, lambda score: 0.05 + 0.9 * (score - 0.3) / 0.7),
    "few mistakes": (0.3, 0.8, 2, lambda score: np.where(score >= 0.7, 0.99, 0.01)),
    "a wide candidate rule, few duplicates": (
        0.1,
        0.5,
        4,
        lambda score: np.maximum(1 / (1 + np.exp((0.6 - score) / 0.05)), 0.002),
    ),
}


@pytest.mark.parametrize("name", CORPORA)
def test_intervals_hold_the_truth_about_95_times_in_100(name: str) -> None:
    """200 corpora each: strata, sample, labels and figures as an audit makes them, beside the truth."""
    least, first, second, probable = CORPORA[name]
    random = np.random.default_rng(7)
    held = {"duplicates": 0, "precision": 0, "recall": 0}
    counted = dict.fromkeys(held, 0)
    for _ in range(200):
        pairs = int(random.integers(800, 3000))
        score = least + (1 - least) * random.beta(first, second, pairs)
        truth = random.random(pairs) < probable(score)
        returned = score >= 0.7
        if not returned.any():
            continue
        deviations = label_deviation(1 / (1 + np.exp((0.7 - score) / 0.05)))
        strata, place = stratify(score, returned, deviations, EDGES, EDGES)
        known = []
        for at, (stratum, count) in enumerate(zip(strata, allocate(strata, 120), strict=True)):
            drawn = random.choice(np.flatnonzero(place == at), count, replace=False)
            known.append(StratumCounts(stratum.pairs, count, int(truth[drawn].sum())))
        point = points(strata, known, 0.7, ThresholdDirections(stricter=False, looser=False))[0]
        truths = {
            "duplicates": (duplicates(known), truth.sum()),
            "precision": (point.precision, truth[returned].mean()),
            "recall": (point.recall, truth[returned].sum() / max(truth.sum(), 1)),
        }
        for what, (figure, true) in truths.items():
            if figure.low is not None and figure.high is not None:
                counted[what] += 1
                held[what] += figure.low - 1e-9 <= true <= figure.high + 1e-9
    assert min(counted.values()) > 160
    for what in held:
        assert held[what] / counted[what] >= 0.92, what
