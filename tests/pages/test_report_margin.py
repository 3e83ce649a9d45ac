"""Pairs beyond the threshold change nothing of a run, and what a report says of other thresholds is what runs do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says
from trained_classifiers import SETS, texts, trained
from ways import TEXTS, WAYS, moved, without_times

from neardup.documents import corpus_of
from neardup.errors import RecipeError
from neardup.pages.batch_report import known_pairs, run_verdicts
from neardup.pages.report import BINS, bin_similarities
from neardup.pages.sweep import SweepResult, sweep_thresholds
from neardup.pipeline.pipeline import run
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.search.margin import criterion_of, relaxed_recipe


def found(documents: Any, recipe: Recipe, **options: Any) -> Result:
    return run(corpus_of(documents), recipe, threads=1, **options)


def assert_same(one: Result, other: Result) -> None:
    assert one.kept == other.kept
    assert list(one.dropped) == list(other.dropped)
    assert one.families == other.families
    assert one.pairs.to_arrow().equals(other.pairs.to_arrow())
    assert one.duplicates().equals(other.duplicates())


@pytest.mark.parametrize("way", WAYS)
@given(TEXTS)
@settings(max_examples=5)
def test_a_run_is_the_same_whether_it_looks_around_or_not(way: str, documents: list[str]) -> None:
    recipe, around = WAYS[way]
    plain, looked = found(documents, recipe), found(documents, recipe, margin=around)
    assert_same(plain, looked)
    assert without_times(plain.summary) == without_times(looked.summary)
    beyond = looked._found.margin
    assert beyond is not None
    assert beyond.matches is not None
    wider = moved(recipe, float(beyond.relaxed_threshold))
    loose = found(documents, wider)._joined
    assert np.array_equal(beyond.matches.left, loose.left)
    assert np.array_equal(beyond.matches.right, loose.right)
    scale = looked._found.criterion
    assert np.array_equal(scale.similarities(beyond.matches), scale.similarities(loose))
    if not recipe.second_step:
        assert_same(looked.at(wider.threshold), found(documents, wider))


@pytest.mark.parametrize("precision", [None, 0.8])
@given(st.integers(0, 50))
@settings(max_examples=6)
def test_a_classifier_decides_the_same_whether_the_run_looks_around_or_not(precision: float | None, seed: int) -> None:
    classifier = trained(SETS)
    if precision is not None:
        classifier = classifier.at_precision(precision)
    table = texts(30, seed).table
    plain = found(table, classifier.recipe, classifier=classifier)
    looked = found(table, classifier.recipe, classifier=classifier, margin=0.2)
    assert_same(plain, looked)
    assert without_times(plain.summary) == without_times(looked.summary)
    assert plain.pairs.to_arrow().equals(looked.pairs.to_arrow())
    assert np.array_equal(plain.vectors, looked.vectors)  # type: ignore[arg-type]
    every = classifier.everything()
    beyond = looked._found.margin
    assert beyond is not None
    assert beyond.matches is not None
    all_candidates = found(table, every.recipe, classifier=every)._joined
    assert np.array_equal(beyond.matches.left, all_candidates.left)
    assert np.array_equal(beyond.matches.second, all_candidates.second)  # type: ignore[arg-type]


def test_what_cannot_be_loosened_is_not_and_says_so() -> None:
    documents = ["fox dog owl ran", "fox dog owl sat"]
    ways: list[tuple[dict[str, Any], str]] = [
        ({"search": "lsh", "threshold": 0.8}, "LSH makes its bands for one threshold"),
        ({"features": "checksum:sha1", "threshold": 1.0}, "one value in common or none"),
        ({"features": "words:1", "signature": "imatch:2", "threshold": 1.0}, "one value in common or none"),
    ]
    for choices, said in ways:
        recipe = Recipe(**choices)
        looked = found(documents, recipe, margin=0.2)
        assert_same(looked, found(documents, recipe))
        beyond = looked._found.margin
        assert beyond is not None
        assert beyond.matches is None
        assert said in beyond.note
        assert beyond.relaxed_threshold == recipe.exact_threshold


def test_too_many_pairs_around_the_threshold_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from neardup.search import engines

    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 3)
    documents = [f"fox dog owl ran number {i} of them" for i in range(9)] + ["fox dog owl ran number 3 of us"]
    for recipe in (
        Recipe(features="words:1", threshold=0.9),
        Recipe(features="words:1", weights="tf", measure="cosine", threshold=0.95),
        Recipe(features="words:1", signature="simhash", measure="hamming", threshold=0),
    ):
        around = 30 if recipe.signature else 0.5
        plain = found(documents, recipe, pairs_per_document=0.3)
        looked = found(documents, recipe, pairs_per_document=0.3, margin=around)
        assert_same(plain, looked)
        beyond = looked._found.margin
        assert beyond is not None
        assert beyond.matches is None
        assert "pairs_per_document" in beyond.note
        with pytest.raises(RecipeError, match="such pairs are unknown"):
            looked.at(30 if recipe.signature else 0.4)


@pytest.mark.parametrize(
    ("recipe", "around", "said"),
    [
        (Recipe(), 0.85, ("margin 0.85", "nothing of threshold 0.85", "such as 0.2")),
        (Recipe(), 0, ("margin 0 ", "not above 0")),
        (Recipe(), -0.1, ("margin -0.1", "not above 0")),
        (Recipe(), float("nan"), ("margin nan", "not a number")),
        (Recipe(signature="simhash", measure="hamming", threshold=3), 0.5, ("margin 0.5", "Hamming distance")),
        (Recipe(signature="simhash", measure="hamming", threshold=3), 61, ("margin 61", "Hamming distance")),
        (Recipe(threshold=0.3, second_step="edit >= 0.2"), 0.2, ("margin 0.2", "nothing of threshold 0.2")),
    ],
)
def test_how_far_to_look_is_checked_before_anything_is_read(
    recipe: Recipe, around: float, said: tuple[str, ...]
) -> None:
    with pytest.raises(RecipeError) as caught:
        relaxed_recipe(recipe, around)
    assert says(caught.value, *said)


def sweep_of(result: Result, watched: Any) -> SweepResult:
    seen = result.findings
    return sweep_thresholds(run_verdicts(seen), seen.criterion, known_pairs(seen), watched=watched)


@pytest.mark.parametrize("way", WAYS)
@given(TEXTS, st.data())
@settings(max_examples=5)
def test_every_threshold_is_as_a_run_of_its_own(way: str, documents: list[str], data: Any) -> None:
    recipe, around = WAYS[way]
    result = found(documents, recipe, margin=data.draw(st.sampled_from([around, None])))
    count = len(result.pairs.names)
    watched = np.arange(count)
    told = sweep_of(result, watched)
    sweep = told.sweep
    assert sweep.thresholds[sweep.own_index] == float(criterion_of(recipe).threshold)
    assert (sweep.kept[sweep.own_index], sweep.dropped[sweep.own_index]) == (
        result.summary["kept"],
        result.summary["dropped"],
    )
    assert sweep.pairs[sweep.own_index] == len(result.pairs)
    places = range(len(sweep.thresholds))
    for at in {0, len(places) - 1, *data.draw(st.lists(st.sampled_from(places), max_size=4))}:
        again = found(documents, moved(recipe, sweep.thresholds[at]))
        assert (sweep.kept[at], sweep.dropped[at]) == (len(again.kept), len(again.dropped))
        assert sweep.pairs[at] == len(again.pairs)
        names = result.pairs.names
        gone = {drop.id for drop in again.dropped}
        assert [names.name_at(place) in gone for place in watched.tolist()] == told.dropped[at].tolist()


@given(st.integers(0, 40))
@settings(max_examples=5)
def test_every_probability_is_as_a_run_with_that_cut(seed: int) -> None:
    classifier, table = trained(SETS), texts(30, seed).table
    result = found(table, classifier.recipe, classifier=classifier, margin=0.2)
    sweep = sweep_of(result, np.arange(30)).sweep
    assert sweep.dropped[sweep.own_index] == len(result.dropped)
    for at in (0, 20, sweep.own_index, 60, len(sweep.thresholds) - 2):
        # The cut of g at which the probability is the threshold.
        low, high = -60.0, 60.0
        for _ in range(80):
            middle = (low + high) / 2
            below = classifier.probability(np.array([middle]))[0] < sweep.thresholds[at]
            low, high = (middle, high) if below else (low, middle)
        cut = classifier.cut if at == sweep.own_index else high
        again = replace(classifier, cut=cut)
        other = found(table, again.recipe, classifier=again)
        assert (sweep.dropped[at], sweep.pairs[at]) == (len(other.dropped), len(other.pairs))


@given(st.lists(st.integers(0, 1000)))
def test_similarities_are_counted_by_whole_numbers(thousandths: list[int]) -> None:
    counts = [0] * BINS
    for value in thousandths:
        counts[min(value // 10, BINS - 1)] += 1
    assert bin_similarities(np.array(thousandths, np.float64) / 1000) == counts
