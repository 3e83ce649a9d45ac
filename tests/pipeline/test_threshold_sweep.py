"""A search beyond the threshold changes no result, and the sweep over thresholds equals a run at each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from classifiers import SETS, make_classifier, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from sentences import says
from threshold_recipes import MARGINS, TEXTS, dedup, with_threshold

from neardup.errors import RecipeError
from neardup.pages.report import BINS, bin_similarities
from neardup.pages.sweep import SweepResult, sweep_thresholds
from neardup.pipeline.result import Result
from neardup.pipeline.run_report import known_pairs, run_verdicts
from neardup.recipe import Recipe
from neardup.search.margin import criterion_of, relaxed_recipe


def assert_same(one: Result, other: Result) -> None:
    assert one.kept == other.kept
    assert list(one.dropped) == list(other.dropped)
    assert one.families == other.families
    assert one.pairs.to_arrow().equals(other.pairs.to_arrow())
    assert one.duplicates().equals(other.duplicates())
    summaries = [{name: value for name, value in run.summary.items() if name != "stages"} for run in (one, other)]
    assert summaries[0] == summaries[1]


def margin_of(result: Result) -> Any:
    assert result.findings.margin is not None
    return result.findings.margin


def sweep_of(result: Result, watched: Any) -> SweepResult:
    found = result.findings
    return sweep_thresholds(run_verdicts(found), found.criterion, known_pairs(found), watched=watched)


@pytest.mark.parametrize("name", MARGINS)
@given(TEXTS, st.booleans(), st.data())
@settings(max_examples=5)
def test_a_margin_changes_no_result_and_its_sweep_equals_runs(
    name: str, documents: list[str], has_margin: bool, data: Any
) -> None:
    recipe, margin = MARGINS[name]
    result = dedup(documents, recipe, margin=margin if has_margin else None)
    if has_margin:
        assert_same(dedup(documents, recipe), result)
        found = margin_of(result)
        wider = with_threshold(recipe, float(found.relaxed_threshold))
        relaxed = dedup(documents, wider)
        matches, criterion = relaxed.findings.matches, result.findings.criterion
        assert np.array_equal(found.matches.left, matches.left)
        assert np.array_equal(found.matches.right, matches.right)
        assert np.array_equal(criterion.similarities(found.matches), criterion.similarities(matches))
        if not recipe.second_step:
            other = result.at(wider.threshold)
            assert other.kept == relaxed.kept
            assert list(other.dropped) == list(relaxed.dropped)
            assert other.families == relaxed.families
    names = result.pairs.names
    swept = sweep_of(result, np.arange(len(names)))
    sweep, own = swept.sweep, swept.sweep.own_index
    assert sweep.thresholds[own] == float(criterion_of(recipe).threshold)
    indices = range(len(sweep.thresholds))
    for at in {0, own, len(indices) - 1, *data.draw(st.lists(st.sampled_from(indices), max_size=3))}:
        run = dedup(documents, with_threshold(recipe, sweep.thresholds[at]))
        assert (sweep.kept[at], sweep.dropped[at], sweep.pairs[at]) == (
            len(run.kept),
            len(run.dropped),
            len(run.pairs),
        )
        dropped = {drop.id for drop in run.dropped}
        assert [names.name_at(row) in dropped for row in range(len(names))] == swept.dropped[at].tolist()


@given(st.integers(0, 50), st.sampled_from([None, 0.8]))
@settings(max_examples=4)
def test_the_margin_of_a_classifier_changes_no_decision_and_its_sweep_equals_runs(
    seed: int, precision: float | None
) -> None:
    classifier, table = make_classifier(SETS), texts(30, seed).table
    if precision is not None:
        classifier = classifier.at_precision(precision)
    plain = dedup(table, classifier.recipe, classifier=classifier)
    result = dedup(table, classifier.recipe, classifier=classifier, margin=0.2)
    assert_same(plain, result)
    assert np.array_equal(plain.vectors, result.vectors)  # type: ignore[arg-type]
    every = classifier.without_cut()
    found, candidates = margin_of(result), dedup(table, every.recipe, classifier=every).findings.matches
    assert np.array_equal(found.matches.left, candidates.left)
    assert np.array_equal(found.matches.second, candidates.second)  # type: ignore[arg-type]
    sweep = sweep_of(result, np.arange(30)).sweep
    assert sweep.dropped[sweep.own_index] == len(result.dropped)
    cuts = np.linspace(-60, 60, 1_000_001)
    probabilities = classifier.probability(cuts)
    for at in (0, 20, sweep.own_index, 60, len(sweep.thresholds) - 2):
        # The least cut of the score at which the probability reaches the threshold.
        cut = cuts[np.searchsorted(probabilities, sweep.thresholds[at])]
        other = replace(classifier, cut=classifier.cut if at == sweep.own_index else float(cut))
        run = dedup(table, other.recipe, classifier=other)
        assert (sweep.dropped[at], sweep.pairs[at]) == (len(run.dropped), len(run.pairs))


@pytest.mark.parametrize(
    ("recipe", "margin", "note"),
    [
        (Recipe(search="lsh", threshold=0.8), 0.2, "LSH makes its bands for one threshold"),
        (Recipe(features="checksum:sha1", threshold=1.0), 0.2, "one value in common or none"),
        (Recipe(features="words:1", signature="imatch:2", threshold=1.0), 0.2, "one value in common or none"),
        (Recipe(features="words:1", threshold=0.9), 0.5, "pairs_per_document"),
        (Recipe(features="words:1", weights="tf", measure="cosine", threshold=0.95), 0.5, "pairs_per_document"),
        (Recipe(features="words:1", signature="simhash", measure="hamming", threshold=0), 30, "pairs_per_document"),
    ],
)
def test_a_search_without_a_margin_says_why(
    recipe: Recipe, margin: float, note: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("neardup.search.engines._ALWAYS_ALLOWED_PAIRS", 3)
    documents = [f"fox dog owl ran number {i} of them" for i in range(9)] + ["fox dog owl ran number 3 of us"]
    result = dedup(documents, recipe, pairs_per_document=0.3, margin=margin)
    assert_same(dedup(documents, recipe, pairs_per_document=0.3), result)
    found = margin_of(result)
    assert (found.matches, found.relaxed_threshold) == (None, recipe.exact_threshold)
    assert note in found.note
    if note == "pairs_per_document":
        with pytest.raises(RecipeError, match="such pairs are unknown"):
            result.at(30 if recipe.measure == "hamming" else 0.4)


BITS = Recipe(signature="simhash", measure="hamming", threshold=3)


@pytest.mark.parametrize(
    ("recipe", "margin", "parts"),
    [
        (Recipe(), 0.85, ("margin 0.85", "nothing of threshold 0.85", "such as 0.2")),
        (Recipe(), -0.1, ("margin -0.1", "not above 0")),
        (Recipe(), float("nan"), ("margin nan", "not a number")),
        (BITS, 0.5, ("margin 0.5", "Hamming distance")),
        (BITS, 61, ("margin 61", "Hamming distance")),
        (Recipe(threshold=0.3, second_step="edit >= 0.2"), 0.2, ("margin 0.2", "nothing of threshold 0.2")),
    ],
)
def test_a_wrong_margin_is_refused(recipe: Recipe, margin: float, parts: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError) as caught:
        relaxed_recipe(recipe, margin)
    assert says(caught.value, *parts)


@given(st.lists(st.integers(0, 1000)))
def test_similarities_are_binned_by_whole_numbers(thousandths: list[int]) -> None:
    counts = [0] * BINS
    for value in thousandths:
        counts[min(value // 10, BINS - 1)] += 1
    assert bin_similarities(np.array(thousandths, np.float64) / 1000) == counts
