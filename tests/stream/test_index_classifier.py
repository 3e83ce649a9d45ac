"""A flow by a classifier: the endless window against ``run``, and what a verdict carries."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from deciding import classifier_of
from hypothesis import given, settings
from hypothesis import strategies as st
from streaming import CLASSIFIERS, TEXTS, documents, examples

import neardup as nd
from neardup.classifier.classifier import Classifier
from neardup.classifier.values import Measurer, Records
from neardup.documents import corpus_of
from neardup.pipeline.pipeline import run

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
