"""A flow by a classifier: the endless window against ``run``, streams against the twin, restarts, refusals."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from deciding import LearnedIndex, classifier_of
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import DAY, NOON, TEXTS, SetClock, asked, documents, examples, held, same
from test_index_properties import STREAMS, WINDOWS, Step, Timed, timed

import neardup as nd
from neardup.classifier.classifier import Classifier
from neardup.classifier.values import Measurer, Records
from neardup.documents import corpus_of
from neardup.pipeline.pipeline import run
from neardup.stream import second_step as pool

#: Linear and RBF, with cuts that let some candidates pass and some not.
CLASSIFIERS = {
    "sets": classifier_of("sets"),
    "sets, bent": classifier_of("sets", gamma=0.7, bias=-0.1),
    "facts": classifier_of("facts", bias=-0.2),
    "facts, bent": classifier_of("facts", gamma=0.4, bias=0.0),
    "weights": classifier_of("weights"),
    "everything": classifier_of("sets").everything(),
}
TIMED = classifier_of("times", weights=(1.0, -0.6, 0.5), bias=0.0)

FACTS = st.sampled_from(
    [
        "Profit of Acme rose to 1,000 crowns",
        "Profit of Acme rose to 1000 crowns",
        "Profit of Acme rose to ١٠٠٠ crowns",
        "Profit of Borealis rose to 17 crowns",
        "profit rose to CROWNS",
        "اسعار النفط ارتفعت 17",
        "اسعار النفط ارتفعت",
        "naïve café",
        "naive cafe\u0301",
        "\x00",
    ]
)
ITEMS = st.one_of(TEXTS, FACTS)


def dropped(verdicts: Sequence[nd.Verdict]) -> dict[str, tuple[str | None, float | None]]:
    return {v.id: (v.of, v.similarity) for v in verdicts if v.is_duplicate}


def of_run(items: Sequence[nd.Document], classifier: Classifier) -> dict[str, tuple[str, float]]:
    """What a run in memory keeps of the same documents."""
    table = pa.table(
        {
            "id": pa.array([item.id for item in items], pa.string()),
            "text": pa.array([item.text for item in items], pa.string()),
            "title": pa.array([item.title for item in items], pa.string()),
            "timestamp": pa.array([item.timestamp for item in items], pa.float64()),
        }
    )
    found = run(
        corpus_of(table, text_column="text", id_column="id"), classifier.recipe, classifier=classifier, threads=1
    )
    return {drop.id: (drop.keeper, drop.similarity) for drop in found.dropped}


@pytest.mark.parametrize("name", CLASSIFIERS)
@settings(max_examples=examples(25))
@given(st.lists(ITEMS, max_size=24))
def test_an_endless_window_is_a_deduplication(name: str, texts: list[str]) -> None:
    items, classifier = documents(texts), CLASSIFIERS[name]
    index = nd.Index(classifier=classifier, window=None)
    assert dropped(index.add_many(items)) == of_run(items, classifier)


def given_titles(items: Sequence[nd.Document]) -> list[nd.Document]:
    titles = ["", "Fox runs", "Fox runs again", "東京"]
    return [nd.Document(item.id, item.text, item.timestamp, item.origin, titles[i % 4]) for i, item in enumerate(items)]


@pytest.mark.parametrize("name", ["sets", "facts, bent", "everything", "times"])
@settings(max_examples=examples(25))
@given(STREAMS, st.sampled_from(WINDOWS), st.sampled_from(["originals", "everything"]), st.data())
def test_streams_give_what_the_rules_say(
    name: str, stream: list[Step], window: tuple[Any, str, int], against: str, data: st.DataObject
) -> None:
    classifier = CLASSIFIERS.get(name, TIMED)
    if classifier is TIMED:
        # Every item says its time, so that none is taken for that of its arrival.
        stream = [step._replace(aside=step.aside or 0, now=10**9) for step in stream]
    choices: dict[str, Any] = {"window": window[0], "window_by": window[1], "against": against, "now": SetClock()}
    with patch.object(pool, "DOCUMENTS", data.draw(st.sampled_from([0, 3, 4096]), "remembered")):
        follow(classifier, choices, timed(stream, window[2]), data)


def follow(classifier: Classifier, choices: dict[str, Any], rest: list[Timed], data: st.DataObject) -> None:
    """Do the same with an index and its twin, and hold every answer equal."""
    index, twin = nd.Index(classifier=classifier, **choices), LearnedIndex(classifier, **choices)
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        batch, rest = rest[:size], rest[size:]
        choices["now"].time = batch[-1][2]
        items = given_titles([document for _, document, _ in batch])
        same(index.add_many(items), twin.add_many(items), counts=False)
        alive = list(twin)
        if batch[0][0].does == "remove" and alive:
            index.remove(alive[size % len(alive)])
            twin.remove(alive[size % len(alive)])
        assert held(index, twin) == list(twin)
        if classifier is not TIMED:
            assert asked(index.query(items[0].text)) == twin.query(items[0].text)


@settings(max_examples=examples(30))
@given(STREAMS, st.sampled_from(WINDOWS), st.sampled_from(["originals", "everything"]), st.data())
def test_closing_and_opening_changes_nothing(
    stream: list[Step], window: tuple[Any, str, int], against: str, data: st.DataObject
) -> None:
    clock, known = SetClock(NOON + 9999 * DAY), dict[str, nd.Verdict]()
    choices: dict[str, Any] = {"window": window[0], "window_by": window[1], "against": against, "now": clock}
    rest = timed(stream, window[2])
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as opened:
        path = Path(folder) / "news.db"
        whole = nd.Index(classifier=TIMED, **choices)
        index = nd.Index(classifier=TIMED, path=path, **choices)
        opened.callback(lambda: index.close())
        while rest:
            size = data.draw(st.integers(1, len(rest)))
            batch, rest = rest[:size], rest[size:]
            items = given_titles([document for _, document, _ in batch])
            verdicts = index.add_many(items)
            assert verdicts == whole.add_many(items)
            known |= {verdict.id: verdict for verdict in verdicts}
            index.close()
            index = nd.Index(classifier=TIMED, path=path, **choices)
            assert {name: index.verdict_of(name) for name in known} == known


def test_a_verdict_carries_what_it_went_by() -> None:
    classifier = classifier_of("facts", bias=0.5)
    texts = ["Acme paid 5 crowns to Borealis today", "Acme paid 6 crowns to Borealis today"]
    _, near, exact, last = nd.Index(classifier=classifier, window=None).add_many(
        documents([*texts, texts[0], "nothing"])
    )
    measurer = Measurer(classifier.vector, classifier.statistics)
    x = measurer.measure(measurer.prepare(Records(texts)), np.array([0]), np.array([1]))
    (g,) = classifier.score(x).tolist()
    assert (near.kind, near.score) == ("near", g)
    assert near.similarity == pytest.approx(float(classifier.probability(np.array([g]))[0]), abs=1e-9)
    assert near.counts == (round((near.similarity or 0) * 10**9), 10**9, 10**9)
    contributions = dict(zip(classifier.vector.names, classifier.contributions(x)[0].tolist(), strict=True))
    assert {push.measure: push.amount for push in near.measures} == contributions
    assert {push.measure: push.value for push in near.measures} == dict(zip(classifier.vector.names, x[0], strict=True))
    assert sorted(near.measures, key=lambda push: -abs(push.amount)) == list(near.measures)
    assert near.evidence.startswith(f"{near.measures[0].measure} {near.measures[0].amount:+.2f}, ")
    assert (exact.kind, exact.similarity, exact.score, exact.measures, exact.evidence) == ("exact", 1.0, None, (), "")
    assert (last.kind, last.score, last.measures) == ("original", None, ())
