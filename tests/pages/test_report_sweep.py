"""What a report says of other thresholds is what runs at those thresholds do."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trained import SETS, texts, trained
from ways import TEXTS, WAYS, moved

from neardup.documents import corpus_of
from neardup.pages.batch_report import known_pairs, verdicts_of
from neardup.pages.report import BINS, binned
from neardup.pages.sweep import Swept, swept
from neardup.pipeline.pipeline import run
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.search.margin import scale_of


def found(documents: Any, recipe: Recipe, **options: Any) -> Result:
    return run(corpus_of(documents), recipe, threads=1, **options)


def sweep_of(result: Result, watched: Any, edges: Any) -> Swept:
    seen = result.findings
    return swept(verdicts_of(seen), seen.scale, known_pairs(seen), watched=watched, edges=edges)


@pytest.mark.parametrize("way", WAYS)
@given(TEXTS, st.data())
@settings(max_examples=5)
def test_every_threshold_is_as_a_run_of_its_own(way: str, documents: list[str], data: Any) -> None:
    recipe, around = WAYS[way]
    result = found(documents, recipe, margin=data.draw(st.sampled_from([around, None])))
    count = len(result.pairs.names)
    watched = np.arange(count)
    told = sweep_of(result, watched, np.zeros(0, np.int64))
    sweep = told.sweep
    assert sweep.thresholds[sweep.own] == float(scale_of(recipe).threshold)
    assert (sweep.kept[sweep.own], sweep.dropped[sweep.own]) == (result.summary["kept"], result.summary["dropped"])
    assert sweep.pairs[sweep.own] == len(result.pairs)
    places = range(len(sweep.thresholds))
    for at in {0, len(places) - 1, *data.draw(st.lists(st.sampled_from(places), max_size=4))}:
        again = found(documents, moved(recipe, sweep.thresholds[at]))
        assert (sweep.kept[at], sweep.dropped[at]) == (len(again.kept), len(again.dropped))
        assert sweep.pairs[at] == len(again.pairs)
        names = result.pairs.names
        gone = {drop.id for drop in again.dropped}
        assert [names.one(place) in gone for place in watched.tolist()] == told.gone[at].tolist()


@given(st.integers(0, 40))
@settings(max_examples=5)
def test_every_probability_is_as_a_run_with_that_cut(seed: int) -> None:
    classifier, table = trained(SETS), texts(30, seed).table
    result = found(table, classifier.recipe, classifier=classifier, margin=0.2)
    every = result._found.margin
    assert every is not None
    assert every.matches is not None
    edges = np.arange(len(every.matches.left))
    told = sweep_of(result, np.arange(30), edges)
    sweep = told.sweep
    assert sweep.dropped[sweep.own] == len(result.dropped)
    assert int(told.matches[sweep.own].sum()) == len(result._joined.left)
    for at in (0, 20, sweep.own, 60, len(sweep.thresholds) - 2):
        # The cut of g at which the probability is the threshold.
        low, high = -60.0, 60.0
        for _ in range(80):
            middle = (low + high) / 2
            below = classifier.probability(np.array([middle]))[0] < sweep.thresholds[at]
            low, high = (middle, high) if below else (low, middle)
        cut = classifier.cut if at == sweep.own else high
        again = replace(classifier, cut=cut)
        other = found(table, again.recipe, classifier=again)
        assert (sweep.dropped[at], sweep.pairs[at]) == (len(other.dropped), len(other.pairs))


@given(st.lists(st.integers(0, 1000)))
def test_similarities_are_counted_by_whole_numbers(thousandths: list[int]) -> None:
    counts = [0] * BINS
    for value in thousandths:
        counts[min(value // 10, BINS - 1)] += 1
    assert binned(np.array(thousandths, np.float64) / 1000) == counts
