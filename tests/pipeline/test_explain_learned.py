"""Classifiers in explanations and queries: candidates, contributions, and what would reverse the verdict."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from classifiers import DATED, FACTS, SETS, WEIGHED, make_classifier, texts
from hypothesis import given
from hypothesis import strategies as st
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Classifier
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import NO_TIME, Records
from neardup.errors import RecipeError
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
    classifier = replace(make_classifier(vector, kernel), cut=cut)
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
        assert says(why.reason, "equal texts", "no classifier judges")
    else:
        assert step.evidence.score == g
        sign = ">=" if step.passed else "<"
        assert says(why.reason, f"score {g:.4f} {sign} {cut:g},", "probability")
    assert json.loads(json.dumps(why.as_dict(), allow_nan=False))["second_step"]["is_candidate"] == is_candidate


@given(st.sampled_from(CORPUS), st.sampled_from(CORPUS), st.sampled_from(["linear", "rbf"]))
def test_the_counterfactual_is_the_smallest_change_of_one_measure(left: str, right: str, kernel: str) -> None:
    classifier = make_classifier(FACTS, kernel)
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
    classifier = make_classifier(FACTS)
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


def test_known_titles_and_times_are_measured() -> None:
    classifier = make_classifier(DATED)

    def values(records: Records | None) -> list[float | None]:
        why = explain(PORT, OTHER, classifier.recipe, classifier=classifier, records=records)
        found = {push.measure: push.value for push in step_of(why).evidence.contributions}
        return [found["title"], found["hours_apart"]]

    assert values(None) == values(Records(["", ""], ["Ships", None], np.array([0, NO_TIME]))) == [None, None]
    known = Records(["", ""], ["Ships", "ships!"], np.array([0, 3_600_000_000]))
    assert values(known) == [1.0, pytest.approx(np.log(2))]


KNOWN = texts(70, seed=41)
TABLE = KNOWN.table
NEW = [*texts(70, seed=42).rows, *KNOWN.rows[::9]]
#: In a run, equal texts stand for each other, with the title and the time of the first.
DISTINCT = pa.Table.from_pylist(list({row["text"]: row for row in KNOWN.rows}.values()), TABLE.schema)
LATER = [row for row in NEW if row["text"] not in {known["text"] for known in KNOWN.rows}]


@given(
    st.tuples(st.just(TABLE), st.sampled_from(NEW), st.sampled_from([SETS, FACTS, WEIGHED]))
    | st.tuples(st.just(DISTINCT), st.sampled_from(LATER), st.just(DATED)),
    st.sampled_from(["linear", "rbf"]),
    st.sampled_from([0.0, -1.5, float("-inf")]),
    st.integers(1, 2),
)
def test_a_query_finds_what_a_run_finds(
    question: tuple[pa.Table, dict[str, Any], str], kernel: str, cut: float, threads: int
) -> None:
    table, row, vector = question
    classifier = replace(make_classifier(vector, kernel), cut=cut)
    about = {"title": row["title"], "time": row["time"]} if vector == DATED else {}
    answer = nd.query(table, row["text"], classifier=classifier, threads=threads, **about)
    more = pa.concat_tables([table, pa.Table.from_pylist([row | {"id": "new"}], TABLE.schema)])
    result = nd.dedup(more, classifier=classifier)
    expected = [r for r in result.pairs.to_arrow().to_pylist() if r["right"] == "new"]
    order = {name: at for at, name in enumerate(table["id"].to_pylist())}
    expected.sort(key=lambda r: (-r["similarity"], order[r["left"]]))
    assert answer.to_arrow().to_pylist() == [
        {"document": r["left"], **{name: r[name] for name in ("similarity", "score", "evidence")}} for r in expected
    ]
    assert [tuple(one) for one in answer] == [(r["left"], r["similarity"]) for r in expected]
    assert answer.documents == len(table)
    assert answer.candidates >= len(answer)
    assert answer.to_arrow(full=True).column_names == ["document", "similarity", "score", "evidence", "measures"]


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"classifier": SETS, "k": 3}, ("k 3", "the nearest", "a classifier")),
        ({"classifier": SETS, "threshold": 0.4}, ("threshold=0.4", "a classifier")),
        ({"classifier": SETS, "title": "A"}, ("title 'A'", "classifier", "compares titles", "leave it out")),
        ({"time": 3}, ("time 3", "classifier", "compares times", "leave it out")),
        ({"classifier": DATED, "time": "soon"}, ("time 'soon'", "is not a time", "ISO 8601")),
        ({"classifier": DATED, "title_column": "x"}, ("no column 'x'", "id, text, title")),
        ({"second_step": SETS}, ("needs the classifier", "fingerprint", "there is none")),
    ],
)
def test_options_that_do_not_fit_are_refused(options: dict[str, Any], parts: tuple[str, ...]) -> None:
    """A classifier, and the second step of one, stand here as its measures."""
    if "classifier" in options:
        options = options | {"classifier": make_classifier(options["classifier"])}
    if "second_step" in options:
        options = {"second_step": make_classifier(options["second_step"]).recipe.second_step}
    with pytest.raises(RecipeError) as error:
        nd.query(TABLE, str(KNOWN.rows[0]["text"]), **options)
    assert says(error.value, *parts)
