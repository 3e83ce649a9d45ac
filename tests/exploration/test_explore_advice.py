"""Where the valley lies, and which features and threshold are advised, on distributions made up by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

from neardup.exploration.advice import Advice, advise, choose_features, measure_separation
from neardup.exploration.curve import Curve, Point
from neardup.exploration.valley import find_valley
from neardup.exploration.views import BINS, View
from neardup.recipe import Recipe


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


def test_two_kinds_have_a_clear_valley_between_them_however_the_sample_is_drawn() -> None:
    shape = plus(falling(3e5, 0.45), hump(200, 0.85, 0.08))
    dice = np.random.default_rng(5)
    lows = []
    for counts in (shape, *(dice.poisson(shape).tolist() for _ in range(20))):
        found = find_valley(above(counts, zero=1e6))
        assert found is not None
        assert found.clear
        assert found.low <= found.at <= found.high
        assert 0.5 <= found.high <= 0.75
        assert found.depth < 50
        lows.append(found.low)
    assert max(lows) - min(lows) <= 0.05
    assert 0.05 <= min(lows) <= 0.25


def test_other_shapes_have_no_valley_or_none_that_is_clear() -> None:
    for pace in (0.2, 0.5, 0.8, 0.9):
        assert find_valley(above(falling(1e6, pace), zero=1e7)) is None
    found = find_valley(above(plus(falling(1e6, 0.5), [20.0] * 100), zero=1e6))
    assert found is not None
    assert (found.clear, found.sparse, found.high) == (False, False, 0.9)
    assert found.low < 0.3


@given(st.lists(st.integers(0, 10**6), min_size=100, max_size=100), st.integers(0, 10**9), st.integers(0, 100))
def test_any_counts_give_a_valley_inside_or_none(counts: list[int], zero: int, equal: int) -> None:
    pairs = above(counts, zero, equal)
    found = find_valley(pairs)
    if found is not None:
        assert 0 < found.low <= found.at <= found.high <= 0.9
        assert found.high - found.low >= 0.07 - 1e-9
        assert found.before == pairs[0] - pairs[round(100 * found.low)]
        assert found.after == pairs[round(100 * found.high)]
        assert not found.clear or found.sparse
        assert found == find_valley(np.array(pairs))


DOCUMENTS = 2000
PAIRS = DOCUMENTS * (DOCUMENTS - 1) // 2


def view(features: str, pace: float, alike: float, pairs: int = 400, *, name: str = "") -> View:
    """Unrelated pairs fall tenfold every ``pace``; related ones lie around a similarity."""
    unrelated = [10 ** (-at / BINS / pace) - 10 ** (-(at + 1) / BINS / pace) for at in range(BINS)]
    related = [math.exp(-(((at + 0.5) / BINS - alike) ** 2) / 0.005) for at in range(BINS)]
    counts = tuple(
        round(PAIRS * one) + round(pairs * other / sum(related)) for one, other in zip(unrelated, related, strict=True)
    )
    number = features.split(":")[1] if ":" in features else ""
    return View(
        name=name or features,
        recipe=Recipe(name="explored", features=features),
        n=int(number) if number and not name else None,
        documents=DOCUMENTS,
        empty=0,
        pairs=sum(counts),
        zero=0,
        counts=counts,
        edges=(0,) * (BINS + 1),
        valley=None,
        typical=200,
    )


def words(*shapes: tuple[float, float], pairs: int = 400) -> list[View]:
    return [view(f"words:{n}", *shape, pairs) for n, shape in enumerate(shapes, 1)]


def advised(views: Sequence[View], whole: Curve | None = None, documents: int = DOCUMENTS) -> Advice:
    choice = choose_features(views, documents * (documents - 1) // 2)
    return advise(choice, whole, lowest=0.2, documents=documents, inputs=("a b.jsonl",))


def test_the_reach_follows_from_the_decline_of_unrelated_pairs() -> None:
    """Pairs that fall tenfold every 0.02 are 2 million at 0, and one at 0.02 times 6.3."""
    found = measure_separation(view("words:4", 0.02, 0.9, 0), 0, PAIRS)
    assert found.reach == pytest.approx(0.02 * math.log10(PAIRS), abs=0.01)
    more = measure_separation(view("words:4", 0.02, 0.9, 0), 0, 1000 * PAIRS)
    assert more.reach == pytest.approx(found.reach + 0.06, abs=0.01)
    assert (found.level, found.gap) == (None, None)
    # A quarter of all pairs shares one passage, 0.25 of their features; nothing else is shared.
    counts = [0] * BINS
    counts[0], counts[24], counts[85] = PAIRS // 2, PAIRS // 4, 100
    found = measure_separation(replace(view("words:4", 0.02, 0.8), counts=tuple(counts), zero=PAIRS // 4), 100, PAIRS)
    assert found.level is not None
    assert 0.24 <= found.reach <= 0.3 < 0.8 < found.level


def test_the_longest_of_the_widest_gaps_is_advised_and_qgrams_only_for_a_wider_one() -> None:
    found = advised(words((0.1, 0.95), (0.03, 0.9), (0.012, 0.85), (0.0105, 0.84), (0.01, 0.7)))
    assert found.features == "words:4"
    assert says(found.reason, "words:4 separates pairs best")
    assert [name for name, _ in found.separations] == [f"words:{n}" for n in range(1, 6)]
    for pace, features in ((0.028, "words:2"), (0.01, "qgrams:5")):
        grams = words((0.05, 0.9), (0.03, 0.88))
        assert advised([*grams, view("qgrams:5", pace, 0.88)]).features == features


def test_the_threshold_lies_in_the_valley() -> None:
    found = advised(words((0.1, 0.95), (0.015, 0.85)))
    assert found.valley is not None
    assert found.valley == find_valley(words((0.1, 0.95), (0.015, 0.85))[1].cumulative())
    assert found.valley.low <= found.threshold <= found.valley.high
    assert says(found.reason, "The sample", "clear valley")
    assert round(found.threshold * 100) % 5 == 0
    threshold = f"{found.threshold:g}"
    options = ("--features", "words:2", "--threshold", threshold, "-o", "kept.jsonl")
    assert found.command == ("dedup", "a b.jsonl", *options)


def test_the_threshold_comes_from_the_whole_corpus_if_it_is_known() -> None:
    """The sample sees no related pairs; the corpus has them."""
    exact = [2000 if at < 60 else 1900 - 10 * (at - 60) for at in range(20, 101)]
    points = tuple(Point(threshold=at / BINS, dropped=0, pairs=count) for at, count in enumerate(exact, 20))
    recipe = Recipe(features="words:2")
    whole = Curve(recipe=recipe, documents=10**6, asked=0.2, complete=True, most_pairs=10**6, points=points)
    found = advised(words((0.1, 0.95), (0.015, 0.85), pairs=0), whole, documents=10**6)
    assert found.whole
    assert found.valley is not None
    assert found.valley.low >= 0.2
    assert says(found.reason, "The whole corpus", "clear valley")
    assert f"{exact[round(100 * found.threshold) - 20]:,} pairs" in found.reason


def test_without_a_valley_the_default_threshold_or_the_reach_is_advised() -> None:
    found = advised(words((0.015, 0.85), pairs=0))
    assert (found.threshold, found.valley) == (0.5, None)
    assert says(found.reason, "There is no valley to cut in", "no pair scores at least 0.5")
    assert 0.65 <= advised(words((0.11, 0.85), pairs=0)).threshold <= 0.75


def test_a_distance_keeps_its_own_threshold() -> None:
    recipe = Recipe(features="words:1", signature="simhash", weights="tf", measure="hamming", threshold=3)
    found = advised([replace(view("words:1", 0.02, 0.8, name="simhash"), recipe=recipe)])
    assert found.threshold == 3
    assert "hamming is a distance" in found.reason
    assert {"--set", "--measure"} <= set(found.command)
