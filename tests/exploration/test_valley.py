"""Where the valley lies, on made-up distributions: two kinds, one kind, copies alone, templates, few pairs."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from neardup.exploration.valley import valley_of


def above(counts: Sequence[float], zero: float = 0, equal: float = 0) -> list[float]:
    """Pairs at or above each hundredth: of 100 bins, pairs that share nothing, and equal ones."""
    found = [float(equal)]
    for count in reversed(counts):
        found.append(found[-1] + count)
    found.reverse()
    return [found[0] + zero, *found[1:]]


def falling(pairs: float, pace: float) -> list[float]:
    """So many pairs in the first bin, and each hundredth a part of those before."""
    return [pairs * pace**at for at in range(100)]


def plus(*parts: Sequence[float]) -> list[float]:
    return [sum(values) for values in zip(*parts, strict=True)]


def hump(pairs: float, middle: float, width: float) -> list[float]:
    values = [math.exp(-(((at + 0.5) / 100 - middle) ** 2) / (2 * width * width)) for at in range(100)]
    return [pairs * value / sum(values) for value in values]


def test_two_kinds_have_a_clear_valley_between_them() -> None:
    found = valley_of(above(plus(falling(1e6, 0.4), hump(500, 0.85, 0.06)), zero=1e6))
    assert found is not None
    assert found.clear
    assert found.sparse
    assert 0.05 <= found.low <= 0.25
    assert 0.55 <= found.high <= 0.75
    assert found.low <= found.at <= found.high
    assert found.depth < 50
    assert found.after >= 450


def test_unrelated_pairs_alone_have_none() -> None:
    for pace in (0.2, 0.5, 0.8, 0.9):
        assert valley_of(above(falling(1e6, pace), zero=1e7)) is None


def test_pairs_that_lie_evenly_give_a_valley_that_is_not_clear() -> None:
    found = valley_of(above(plus(falling(1e6, 0.5), [20.0] * 100), zero=1e6))
    assert found is not None
    assert not found.clear
    assert not found.sparse
    assert found.low < 0.3
    assert found.high == 0.9


def test_chance_moves_it_little() -> None:
    """The same distribution drawn again and again, with some hundred related pairs."""
    dice = np.random.default_rng(5)
    shape = plus(falling(3e5, 0.45), hump(200, 0.85, 0.08))
    lows = []
    for _ in range(20):
        found = valley_of(above(dice.poisson(shape).tolist(), zero=1e6))
        assert found is not None
        assert found.clear
        lows.append(found.low)
    assert max(lows) - min(lows) <= 0.05


@given(st.lists(st.integers(0, 10**6), min_size=100, max_size=100), st.integers(0, 10**9), st.integers(0, 100))
def test_any_counts_give_a_valley_inside_or_none(counts: list[int], zero: int, equal: int) -> None:
    pairs = above(counts, zero, equal)
    found = valley_of(pairs)
    if found is not None:
        assert 0 < found.low <= found.at <= found.high <= 0.9
        assert found.high - found.low >= 0.07 - 1e-9
        assert found.before == pairs[0] - pairs[round(100 * found.low)]
        assert found.after == pairs[round(100 * found.high)]
        assert not found.clear or found.sparse
        assert found == valley_of(np.array(pairs))
