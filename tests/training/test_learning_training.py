"""Training from texts and labels: what comes out, that it is the same again, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelled_stories import Row, labelled
from sentences import says
from trained_classifiers import Texts

import neardup as nd
from neardup.classifier.classifier import parse_candidate_rule
from neardup.classifier.vector import Vector
from neardup.documents import corpus_of
from neardup.training import fit as searching
from neardup.training.fit import MachineOptions
from neardup.training.pairs import LabelOptions, labelled_pairs
from neardup.training.training import Training, train

VECTOR = "jaccard(words:1), containment(words:2), numbers, cosine(words:1:tfidf)"
RULE = "jaccard(words:1) >= 0.2"


@pytest.fixture(autouse=True)
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small grid: what it is for is tested elsewhere."""
    grid = {"linear": [MachineOptions("linear", 0.25)], "rbf": [MachineOptions("rbf", 1.0, 0.25)]}
    monkeypatch.setattr(searching, "_COARSE", grid)


@pytest.fixture(scope="module")
def made() -> tuple[Texts, list[Row]]:
    return labelled(mistakes=9)


def trained(made: tuple[Texts, list[Row]], **options: Any) -> Training:
    known, rows = made
    chosen = {"vector": VECTOR, "candidate_rule": RULE} | options
    return train(corpus_of(known.table), chosen.pop("rows", rows), **chosen)


def test_what_comes_out(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made)
    rows = made[1]
    assert training.summary["pairs"] == len(rows)
    assert training.summary["duplicates"] == sum(label for *_, label in rows)
    decided = training.summary["trained_on"]
    assert len(training.classifier.scores) == len(training.classifier.labels) == decided
    undecided = training.summary["equal_texts"] + len(training.outside) + training.summary["others_outside_the_rule"]
    assert decided + undecided == len(rows)
    figures = training.figures
    assert figures.correct + figures.missed == training.summary["duplicates"]
    assert figures.wrong + figures.rejected == training.summary["others"]
    assert len(training.wrong) + len(training.outside) == figures.wrong + figures.missed
    assert (figures.f1.value or 0) > 0.7
    assert training.summary["folds"]["by"] == "groups"
    assert {weight.measure for weight in training.weights} == set(training.classifier.vector.names)
    assert [weight.contribution for weight in training.weights] == sorted(
        (w.contribution for w in training.weights), reverse=True
    )
    assert {w.measure: w.direction for w in training.weights}["numbers"] == "for"
    assert json.loads(json.dumps(training.summary))["fingerprint"] == training.classifier.fingerprint
    assert repr(training).endswith(f"F1 {figures.f1.value:.3f}>")


def test_what_is_judged_wrongly_is_said(made: tuple[Texts, list[Row]]) -> None:
    labels = {row[:2]: bool(row[2]) for row in made[1]}
    training = trained(made)
    assert training.wrong
    for one in training.wrong:
        assert labels[one.id1, one.id2] == one.duplicate
        if one.score is None or one.probability is None:
            continue
        assert (one.score >= 0) != one.duplicate
        strengths = [abs(push) for push in one.contributions.values()]
        assert strengths == sorted(strengths, reverse=True)
        assert list(one.contributions) == list(one.measures)
    sure = [max(o.probability, 1 - o.probability) for o in training.wrong if o.probability is not None]
    assert sure == sorted(sure, reverse=True)


def test_the_same_labels_give_the_same_bytes(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    known, rows = made
    one, other = tmp_path / "one.neardup", tmp_path / "other.neardup"
    trained(made, threads=1).classifier.save(one)
    turned = [(right, left, label) for left, right, label in reversed(rows)]
    train(corpus_of(known.table), turned, vector=VECTOR, candidate_rule=RULE, threads=3).classifier.save(other)
    assert one.read_bytes() == other.read_bytes()


def test_what_is_saved_decides(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    known, rows = made
    training = nd.train(known.table, rows, vector=VECTOR, candidate_rule=RULE)
    training.classifier.save(tmp_path / "d.neardup")
    again = nd.load_classifier(tmp_path / "d.neardup")
    assert again.fingerprint == training.classifier.fingerprint
    assert again.training["figures"]["f1"]["value"] == training.figures.f1.value
    assert "wrong" not in again.training
    result = nd.dedup(known.table, classifier=again)
    assert result.dropped
    assert result.recipe.second_step == f"learned({again.fingerprint})"


def test_duplicates_outside_the_rule_count_as_missed(made: tuple[Texts, list[Row]]) -> None:
    training = trained(made, candidate_rule="jaccard(words:1) >= 0.5")
    assert training.outside
    assert training.figures.missed >= len(training.outside)
    warning = training.warnings[-1]
    assert says(
        warning, f"{len(training.outside)} of ", "outside the candidate rule", "jaccard(words:1) >= 0.5", "as missed"
    )
    assert [list(ids) for ids in training.outside] == training.summary["outside"]


def test_equal_texts_are_not_learned_from(made: tuple[Texts, list[Row]]) -> None:
    known, rows = made
    text = {row["id"]: row["text"] for row in known.rows}
    equal = [row for row in rows if text[row[0]] == text[row[1]]]
    assert equal
    training = trained(made)
    assert training.summary["equal_texts"] == len(equal)
    contrary = [(*row[:2], 0) if row == equal[0] else row for row in rows]
    wrong = trained(made, rows=contrary).wrong[0]
    assert (wrong.id1, wrong.id2, wrong.score, wrong.probability) == (*equal[0][:2], None, None)


@pytest.mark.parametrize("candidate_rule", [RULE, "containment(words:2) >= 0.5"])
def test_training_sees_what_a_run_sees(made: tuple[Texts, list[Row]], candidate_rule: str) -> None:
    known, rows = made
    vector = Vector.parse(VECTOR)
    pairs = labelled_pairs(
        corpus_of(known.table),
        rows,
        vector,
        parse_candidate_rule(candidate_rule),
        LabelOptions(),
        threads=1,
        report=lambda stage, done, total: None,
    )
    classifier = trained(made, candidate_rule=candidate_rule).classifier.without_cut()
    result = nd.dedup(known.table, classifier=classifier)
    found = {(left, right) for left, right, _ in result.pairs}
    left, right = (np.array([int(pairs.ids(row)[side][1:]) for row in range(len(pairs))]) for side in (0, 1))
    assert [pairs.ids(row) in found for row in range(len(pairs))] == pairs.is_candidate.tolist()
    rest = pairs.is_decided
    went_by = result.evidence(left[rest], right[rest])
    assert went_by is not None
    assert np.array_equal(went_by.vectors, pairs.x[rest])
    assert np.array_equal(went_by.score, classifier.score(pairs.x[rest]))


def test_labels_from_files_and_stores(made: tuple[Texts, list[Row]], tmp_path: Path) -> None:
    from neardup.labels.store import Judgement, LabelStore

    known, rows = made
    path = tmp_path / "l.csv"
    lines = [f"{i},{j},{label},{'a' if at % 3 else 'b'}" for at, (i, j, label) in enumerate(rows)]
    path.write_text("id1,id2,level,part\n" + "\n".join(lines) + "\n")
    some = train(corpus_of(known.table), path, vector=VECTOR, candidate_rule=RULE, only="part=a")
    assert some.summary["pairs"] == len([i for i in range(len(rows)) if i % 3])
    place = tmp_path / "labels.db"
    with LabelStore(place) as store:
        said = ("different", "same")
        store.record([Judgement((min(i, j), max(i, j)), "anna", said[label]) for i, j, label in rows])
    stored = train(corpus_of(known.table), place, vector=VECTOR, candidate_rule=RULE)
    assert stored.classifier.fingerprint == trained(made).classifier.fingerprint
