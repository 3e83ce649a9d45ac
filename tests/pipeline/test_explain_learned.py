"""Explanations of classifiers: candidates or not, what pushed, and what would turn the verdict."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentences import says
from trained_classifiers import DATED, FACTS, SETS, texts, trained

from neardup.classifier.classifier import Classifier, parse_candidate_rule
from neardup.classifier.measurer import Measurer
from neardup.classifier.records import NO_TIME, Records
from neardup.pipeline.explanation import Explanation, explain
from neardup.pipeline.learned_explanation import ClassifierResult

PORT = "oslo port: 412 ships came in, up 17 from last week"
OTHER = "oslo port: 398 ships came in, up 25 from last week"
FAR = "a late frost has damaged the cherry crop"
CORPUS = [str(row["text"]) for row in texts(50, seed=31).rows]


def explain_learned(left: str, right: str, classifier: Classifier) -> Explanation:
    return explain(left, right, classifier.recipe, classifier=classifier)


def step_of(why: Explanation) -> ClassifierResult:
    assert why.learned is not None
    return why.learned


@given(
    st.sampled_from(CORPUS),
    st.sampled_from(CORPUS),
    st.sampled_from([SETS, FACTS]),
    st.sampled_from(["linear", "rbf"]),
    st.sampled_from([0.0, -0.6, 0.9]),
)
def test_verdicts_are_those_of_the_definition(left: str, right: str, vector: str, kernel: str, cut: float) -> None:
    classifier = replace(trained(vector, kernel), cut=cut)
    why, measurer = explain_learned(left, right, classifier), Measurer(classifier.vector, {})
    x = measurer.measure(measurer.prepare(Records([left, right])), np.array([0]), np.array([1]))
    g, step = classifier.score(x)[0], step_of(why)
    one, other = (set(text.replace(":", "").replace(",", "").split()) for text in (left, right))
    is_candidate = len(one & other) / len(one | other) >= 0.2
    assert step.is_candidate == why.passed == is_candidate
    assert step.equal == (left == right)
    assert step.passed == (left == right or g >= cut)
    assert why.match == (is_candidate and step.passed)
    assert why.similarity == (1.0 if left == right else classifier.probability(np.array([g]))[0])
    if left == right:
        assert step.evidence.score is None
        assert says(why.reason, "equal texts", "no classifier is asked")
    else:
        assert step.evidence.score == g
        sign = ">=" if step.passed else "<"
        assert says(why.reason, f"score {g:.4f} {sign} {cut:g},", "probability")
    assert json.loads(json.dumps(why.as_dict(), allow_nan=False))["second_step"]["is_candidate"] == is_candidate


@given(st.sampled_from(CORPUS), st.sampled_from(CORPUS), st.sampled_from(["linear", "rbf"]))
def test_the_counterfactual_is_the_smallest_change_of_one_measure(left: str, right: str, kernel: str) -> None:
    classifier = trained(FACTS, kernel)
    step = step_of(explain_learned(left, right, classifier))
    if step.equal or not step.is_candidate:
        assert step.measure_flip is None
        return
    best: tuple[float, str, float] | None = None
    for j, name in enumerate(classifier.vector.names):
        for hundredths in range(101):
            x = step.vector.copy()
            x[j] = hundredths / 100
            size = abs(x[j] - step.vector[j]) / classifier.machine.scale[j]
            turned = bool(classifier.score(x[np.newaxis])[0] >= classifier.cut) != step.passed
            if turned and (best is None or size < best[0] - 1e-12):
                best = size, name, hundredths / 100
    assert step.measure_flip == (None if best is None else best[1:])


def test_pairs_outside_the_candidate_rule_are_described_as_such() -> None:
    classifier = trained(FACTS)
    why = explain_learned(PORT, FAR, classifier)
    assert not why.match
    assert not step_of(why).is_candidate
    assert why.reason.startswith("jaccard 0.0000 < 0.2")
    assert says(why.reason, " 0 features shared", "of 11 and 8", "outside the candidate rule", "not asked (score -")
    assert str(why).startswith("no near-duplicates: ")
    threshold, shared = why.sentences
    assert says(threshold, "No threshold", "become candidates", "share no feature")
    assert says(shared, "become candidates", " 4 or more shared features")
    assert says(
        explain_learned(PORT, OTHER, classifier).sentences[0], "They are no longer candidates at a threshold of "
    )
    narrow = replace(classifier, candidate_rule=parse_candidate_rule("jaccard(words:1) >= 0.9"), cut=-100.0)
    why = explain_learned(PORT, OTHER, narrow)
    assert not why.match
    assert step_of(why).passed
    assert says(why.reason, "outside the candidate rule", "not asked (score ")
    assert why.as_dict()["second_step"]["passed"]
    assert not why.as_dict()["match"]


def test_known_titles_and_times_are_measured() -> None:
    classifier = trained(DATED)
    unknown = step_of(explain_learned(PORT, OTHER, classifier))
    values = {push.measure: push.value for push in unknown.evidence.contributions}
    assert values["title"] is None
    assert values["hours_apart"] is None
    records = Records(["", ""], ["Ships", "ships!"], np.array([0, 3_600_000_000]))
    known = step_of(explain(PORT, OTHER, classifier.recipe, classifier=classifier, records=records))
    values = {push.measure: push.value for push in known.evidence.contributions}
    assert values["title"] == 1.0
    assert values["hours_apart"] == pytest.approx(np.log(2))
    none = Records(["", ""], ["Ships", None], np.array([0, NO_TIME]))
    again = step_of(explain(PORT, OTHER, classifier.recipe, classifier=classifier, records=none))
    assert again.evidence == unknown.evidence
