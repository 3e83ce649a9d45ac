"""The sweep of a flow's report: at each threshold what a replay at that threshold does, or an honest count."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from simple_classifiers import make_classifier

from neardup.pages.sweep import SweepResult, sweep_thresholds
from neardup.pages.verdicts import ORIGINAL, KnownPairs, Verdicts
from neardup.recipe import Recipe
from neardup.search.margin import Criterion, criterion_of
from neardup.stream.document import Document
from neardup.stream.index import Index, latest_time
from neardup.stream.replay import Item, ReplaySettings
from neardup.stream.replay_report import find_relaxed_pairs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
HOUR = 3_600_000_000
RECIPE = Recipe(features="words:1", threshold=0.6)

#: Hours between arrivals, and texts of few words, so that many are alike.
flows = st.lists(
    st.tuples(st.integers(0, 9), st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True)),
    min_size=1,
    max_size=24,
)


def items_of(drawn: list[tuple[int, list[str]]]) -> list[Item]:
    """The documents of a flow, in order of time."""
    items, time = [], 10**15
    for place, (hours, words) in enumerate(drawn):
        time += hours * HOUR
        text = " ".join(words)
        items.append(Item(place, f"id-{place}", text, time, len(text)))
    return items


def verdicts_of(items: list[Item], wanted: ReplaySettings) -> list[Any]:
    """What a replay says of each."""
    recipe = None if wanted.classifier else wanted.recipe
    choices: dict[str, Any] = {"window": wanted.window, "window_by": wanted.window_by, "against": wanted.against}
    with Index(recipe, classifier=wanted.classifier, now=latest_time, **choices) as index:
        return [index.add(Document(item.id, item.text, EPOCH + timedelta(microseconds=item.time))) for item in items]


def flow_of(items: list[Item], verdicts: list[Any]) -> Verdicts:
    place = {item.id: at for at, item in enumerate(items)}
    return Verdicts(
        ids=None,
        times=np.array([item.time for item in items], np.int64),
        keeper_rows=np.array([ORIGINAL if v.of is None else place[v.of] for v in verdicts], np.int64),
        similarity=np.array([v.similarity or 0.0 for v in verdicts]),
        exact=np.array([v.kind == "exact" for v in verdicts], np.bool_),
        equal=np.array([v.kind == "exact" for v in verdicts], np.bool_),
    )


def sweep_of(flow: Verdicts, scale: Criterion, known: KnownPairs, *, everything: bool = False) -> SweepResult:
    return sweep_thresholds(flow, scale, known, watched=np.arange(len(flow)), everything=everything)


def silent(stage: str, done: int, total: int | None) -> None:
    """Tell nobody."""


def around(items: list[Item], wanted: ReplaySettings, far: float) -> KnownPairs:
    return find_relaxed_pairs(items, wanted, far, len(items), report=silent)


@settings(max_examples=25)
@given(flows, st.sampled_from(["6h", "12h", "endless", "4 documents"]), st.sampled_from(["originals", "everything"]))
def test_at_each_threshold_it_is_a_replay(drawn: list[tuple[int, list[str]]], window: str, against: str) -> None:
    items = items_of(drawn)
    wanted = ReplaySettings(RECIPE, window, against=against)
    verdicts = verdicts_of(items, wanted)
    flow = flow_of(items, verdicts)
    everything = against == "everything"
    found = sweep_of(flow, criterion_of(RECIPE), around(items, wanted, 0.3), everything=everything)
    assert found.sweep.is_exact
    assert found.sweep.thresholds[0] == 0.3
    assert found.sweep.thresholds[found.sweep.own_index] == 0.6
    for at, threshold in list(enumerate(found.sweep.thresholds))[::17]:
        other = ReplaySettings(RECIPE.changed(threshold=threshold), window, against=against)
        gone = [verdict.is_duplicate for verdict in verdicts_of(items, other)]
        assert found.dropped[at].tolist() == gone
        assert found.sweep.dropped[at] == sum(gone)
        assert found.sweep.kept[at] == len(items) - sum(gone)


@settings(max_examples=20)
@given(flows, st.sampled_from(["originals", "everything"]))
def test_without_more_pairs_stricter_thresholds_are_counted(drawn: list[tuple[int, list[str]]], against: str) -> None:
    items = items_of(drawn)
    wanted = ReplaySettings(RECIPE, "12h", against=against)
    verdicts = verdicts_of(items, wanted)
    flow, everything = flow_of(items, verdicts), against == "everything"
    nothing = KnownPairs.empty(criterion_of(RECIPE).threshold, "not looked for")
    sweep = sweep_of(flow, criterion_of(RECIPE), nothing, everything=everything).sweep
    assert (sweep.own_index, sweep.thresholds[0], sweep.is_exact) == (0, 0.6, everything)
    assert "stricter thresholds only" in sweep.note
    for threshold, dropped in zip(sweep.thresholds, sweep.dropped, strict=True):
        assert dropped == sum(v.is_duplicate and v.similarity >= threshold for v in verdicts)
    if everything:
        stricter = ReplaySettings(RECIPE.changed(threshold=0.8), "12h", against=against)
        assert sweep.dropped[sweep.thresholds.index(0.8)] == sum(
            verdict.is_duplicate for verdict in verdicts_of(items, stricter)
        )


def test_a_classifier_is_moved_by_its_probability() -> None:
    classifier = make_classifier(candidate_rule="jaccard(words:1) >= 0.2")
    items = items_of([(0, list("abcd")), (1, list("abcde")), (0, list("abxy")), (0, list("mnop")), (0, list("abcd"))])
    wanted = ReplaySettings(classifier.recipe, "12h", classifier=classifier)
    verdicts = verdicts_of(items, wanted)
    flow = flow_of(items, verdicts)
    found = sweep_of(flow, criterion_of(classifier.recipe, classifier), around(items, wanted, 0.2))
    assert found.sweep.threshold_name == "probability"
    assert found.sweep.is_exact
    assert found.sweep.dropped[found.sweep.own_index] == sum(verdict.is_duplicate for verdict in verdicts)
    assert found.sweep.dropped[0] >= found.sweep.dropped[-1]
