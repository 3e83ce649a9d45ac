"""Training: the classifier, its figures and file, nested folds, labels from files and stores, labelled corpora."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from classifiers import labelled
from paths import SHARED as DATA
from sentences import says

import neardup as nd
from neardup.classifier.classifier import Machine, find_cut, parse_candidate_rule
from neardup.classifier.vector import Vector
from neardup.documents import corpus_of, open_corpus
from neardup.labels.store import Judgement, LabelStore
from neardup.training import fit as fitting
from neardup.training import training as training_module
from neardup.training.fit import MachineOptions, extract_machine, fit, search
from neardup.training.folds import Folds, make_folds, pair_groups
from neardup.training.pairs import LabelledPairs, LabelOptions, labelled_pairs
from neardup.training.training import (
    PRECISIONS,
    FittedMachine,
    MeasureWeight,
    Training,
    fit_and_judge,
    measure_weights,
    train,
)

VECTOR = "jaccard(words:1), containment(words:2), numbers, cosine(words:1:tfidf)"
RULE = "jaccard(words:1) >= 0.2"
STORIES, ROWS = labelled(mistakes=9)
TEXTS = {row["id"]: row["text"] for row in STORIES.rows}


@pytest.fixture(scope="module", autouse=True)
def small_grid() -> Iterator[None]:
    """Few options: ``test_fit.py`` tests the search."""
    grid = {"linear": [MachineOptions("linear", 0.25)], "rbf": [MachineOptions("rbf", 1.0, 0.25)]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fitting, "_COARSE", grid)
        yield


def trained(labels: Any = ROWS, **options: Any) -> Training:
    chosen: dict[str, Any] = {"vector": VECTOR, "candidate_rule": RULE, "kernels": ["linear"], "folds": 3}
    return train(corpus_of(STORIES.table), labels, **chosen | options)


@pytest.fixture(scope="module")
def training(small_grid: None) -> Training:
    return nd.train(STORIES.table, ROWS, vector=VECTOR, candidate_rule=RULE, kernels=["linear"], folds=3, threads=1)


def test_counts_figures_and_weights_agree(training: Training) -> None:
    summary, figures = training.summary, training.figures
    assert summary["pairs"] == len(ROWS)
    assert summary["duplicates"] == sum(label for *_, label in ROWS)
    assert summary["equal_texts"] == sum(TEXTS[left] == TEXTS[right] for left, right, _ in ROWS) > 0
    decided = summary["trained_on"]
    assert len(training.classifier.scores) == len(training.classifier.labels) == decided
    assert decided + summary["equal_texts"] + len(training.outside) + summary["others_outside_the_rule"] == len(ROWS)
    assert figures.correct + figures.missed == summary["duplicates"]
    assert figures.wrong + figures.rejected == summary["others"]
    assert len(training.wrong) + len(training.outside) == figures.wrong + figures.missed
    assert (figures.f1.value or 0) > 0.7
    assert summary["folds"]["by"] == "groups"
    assert {weight.measure for weight in training.weights} == set(training.classifier.vector.names)
    contributions = [weight.contribution for weight in training.weights]
    assert contributions == sorted(contributions, reverse=True)
    assert {weight.measure: weight.direction for weight in training.weights}["numbers"] == "for"
    assert json.loads(json.dumps(summary))["fingerprint"] == training.classifier.fingerprint
    assert repr(training).endswith(f"F1 {figures.f1.value:.3f}>")


def test_weights_say_for_what_a_measure_speaks() -> None:
    def machine(gamma: float, support: Any) -> Machine:
        ones = np.ones(len(support))
        return Machine(5 * ones, 0 * ones, ones, gamma, np.array([support]), np.ones(1), 0.0, -1.0, 0.0)

    # An unknown value counts as the fill, 5.
    x = np.array([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0], [np.nan, np.nan]])
    straight = measure_weights(machine(0.0, [1.0, -1.0]), ("a", "b"), x)
    assert straight == (MeasureWeight("a", 2.0, "for", 1.0), MeasureWeight("b", 2.0, "against", -1.0))
    # The correlation of values and contributions is 0.76, then 0.47.
    directions = [
        measure_weights(machine(1.0, [0.5]), ("a",), np.linspace(-1, end, 9)[:, np.newaxis])[0].direction
        for end in (1.2, 1.5)
    ]
    assert directions == ["for", "both"]


def test_misjudged_pairs_have_their_contributions(training: Training) -> None:
    labels = {row[:2]: bool(row[2]) for row in ROWS}
    assert training.wrong
    for pair in training.wrong:
        assert labels[pair.id1, pair.id2] == pair.duplicate
        if pair.score is None or pair.probability is None:
            continue
        assert (pair.score >= 0) != pair.duplicate
        strengths = [abs(contribution) for contribution in pair.contributions.values()]
        assert strengths == sorted(strengths, reverse=True)
        assert list(pair.contributions) == list(pair.measures)
    certainty = [max(p.probability, 1 - p.probability) for p in training.wrong if p.probability is not None]
    assert certainty == sorted(certainty, reverse=True)


def test_the_same_labels_give_the_same_file_which_decides(training: Training, tmp_path: Path) -> None:
    first, second = tmp_path / "first.neardup", tmp_path / "second.neardup"
    training.classifier.save(first)
    trained([(right, left, label) for left, right, label in reversed(ROWS)], threads=3).classifier.save(second)
    assert first.read_bytes() == second.read_bytes()
    loaded = nd.load_classifier(first)
    assert loaded.fingerprint == training.classifier.fingerprint
    assert loaded.training["figures"]["f1"]["value"] == training.figures.f1.value
    assert "wrong" not in loaded.training
    result = nd.dedup(STORIES.table, classifier=loaded)
    assert result.dropped
    assert result.recipe.second_step == f"learned({loaded.fingerprint})"


def test_a_comparison_on_its_training_labels_says_so(training: Training, tmp_path: Path) -> None:
    training.classifier.save(tmp_path / "stories.neardup")
    options: dict[str, Any] = {"recipes": ["default"], "classifiers": [tmp_path / "stories.neardup"]}
    documents = len({name for left, right, _ in ROWS for name in (left, right)})
    warnings = nd.compare(STORIES.table, ROWS, **options, thresholds=".5,.7").warnings
    assert says(warnings[-1], f"stories was trained on {documents} of the {documents} labelled documents", "too high")
    others = pa.Table.from_pylist([row | {"text": f"{row['text']} More follows."} for row in STORIES.rows])
    warnings = nd.compare(others, ROWS, **options, thresholds=".5,.7").warnings
    assert not any("was trained on" in warning for warning in warnings)


def test_duplicates_outside_the_rule_are_missed_and_equal_texts_need_no_classifier() -> None:
    equal = next(row for row in ROWS if TEXTS[row[0]] == TEXTS[row[1]])
    rows = [(*row[:2], 0) if row == equal else row for row in ROWS]
    training = trained(rows, candidate_rule="jaccard(words:1) >= 0.5", folds=2)
    first = training.wrong[0]
    assert (first.id1, first.id2, first.score, first.probability) == (*equal[:2], None, None)
    assert training.outside
    assert training.figures.missed >= len(training.outside)
    count = f"{len(training.outside)} of "
    assert says(training.warnings[-1], count, "outside the candidate rule", "jaccard(words:1) >= 0.5", "as missed")
    assert [list(ids) for ids in training.outside] == training.summary["outside"]


def test_the_default_rule_begins_at_the_labels_and_a_chosen_one_stays() -> None:
    rules = [trained(candidate_rule=rule, folds=2).summary["candidate_rule"] for rule in (None, RULE)]
    assert rules == ["jaccard(words:3) >= 0.11", "jaccard(words:1) >= 0.2"]


#: Pairs of a path of 35 documents and 26 pairs of their own, of four groups, and of one document with all others. The
#: figures draw groups of connected pairs; where these are divided, they draw families of duplicates.
CONNECTED = {
    "so documents are assigned": ([(i, i + 1) for i in range(34)] + [(100 + i, 200 + i) for i in range(26)], 17 + 26),
    "4 folds instead of 5": ([(10 * group + i, 10 * group + i + 1) for group in range(4) for i in range(4)], 4),
    "judge each other": ([(0, i) for i in range(1, 30)], 1),
}


@pytest.mark.parametrize("caveat", CONNECTED)
def test_connected_and_indistinct_pairs_bring_caveats(caveat: str) -> None:
    pairs, groups = CONNECTED[caveat]
    names = sorted({name for pair in pairs for name in pair})
    stories = corpus_of({"id": list(map(str, names)), "text": [f"fox dog x{name}" for name in names]})
    rows = [(str(i), str(j), at % 2) for at, (i, j) in enumerate(pairs)]
    training = train(stories, rows, vector="jaccard(words:1)", candidate_rule=RULE, kernels=["linear"])
    assert [caveat in warning for warning in training.warnings].count(True) == 1
    assert any("so this classifier is useless" in warning for warning in training.warnings)
    assert training.summary["groups"] == groups


def test_unknown_measures_bring_a_caveat() -> None:
    (warning,) = trained(vector="jaccard(words:1), title", candidate_rule=RULE, folds=2).warnings
    assert warning == "title is unknown for 37% of the pairs, which get its median instead."


def measured(labels: Any = ROWS, **options: Any) -> LabelledPairs:
    return labelled_pairs(
        corpus_of(STORIES.table),
        labels,
        Vector.parse(VECTOR),
        parse_candidate_rule(RULE),
        LabelOptions(**options),
        threads=1,
        progress=lambda stage, done, total: None,
    )


def test_training_measures_pairs_as_a_run_does(training: Training) -> None:
    pairs, classifier = measured(), training.classifier.without_cut()
    result = nd.dedup(STORIES.table, classifier=classifier)
    found = {(left, right) for left, right, _ in result.pairs}
    left, right = (np.array([int(pairs.ids(row)[side][1:]) for row in range(len(pairs))]) for side in (0, 1))
    assert [pairs.ids(row) in found for row in range(len(pairs))] == pairs.is_candidate.tolist()
    decided = pairs.is_decided
    evidence = result.evidence(left[decided], right[decided])
    assert evidence is not None
    assert np.array_equal(evidence.vectors, pairs.x[decided])
    assert np.array_equal(evidence.score, classifier.score(pairs.x[decided]))


def test_texts_without_features_are_no_candidates() -> None:
    corpus = corpus_of({"id": list("abcd"), "text": ["fox dog", "fox dog owl", "...", "!"]})
    rows = [("a", "b", 1), ("a", "c", 0), ("c", "d", 1)]
    rule = parse_candidate_rule(RULE)
    pairs = labelled_pairs(
        corpus, rows, Vector.parse("numbers"), rule, LabelOptions(), threads=1, progress=lambda stage, done, total: None
    )
    assert (pairs.is_candidate.tolist(), pairs.similarity.tolist()) == ([True, False, False], [2 / 3, 0.0, 0.0])


def test_labels_are_read_from_files_and_stores(tmp_path: Path) -> None:
    path = tmp_path / "l.csv"
    lines = [f"{i},{j},{label},{'a' if at % 3 else 'b'}" for at, (i, j, label) in enumerate(ROWS)]
    path.write_text("id1,id2,level,part\n" + "\n".join(lines) + "\n")
    assert len(measured(path, only="part=a")) == len([i for i in range(len(ROWS)) if i % 3])
    with LabelStore(tmp_path / "labels.db") as store:
        answers = ("different", "same")
        store.record([Judgement((min(i, j), max(i, j)), "anna", answers[label]) for i, j, label in ROWS])
    given, stored = measured(), measured(tmp_path / "labels.db")
    assert np.array_equal(given.x, stored.x, equal_nan=True)
    assert np.array_equal(given.is_duplicate, stored.is_duplicate)


def random_pairs(count: int = 90) -> LabelledPairs:
    rng = np.random.default_rng(0)
    labels = rng.random(count) < 0.4
    x = rng.normal(np.where(labels, 1.0, -1.0)[:, np.newaxis], 1.2, (count, 3))
    kind = np.arange(count) % 15
    return LabelledPairs(
        document_ids=[str(name) for name in range(2 * count)],
        left=np.arange(count),
        right=np.arange(count, 2 * count),
        is_duplicate=labels,
        family=np.arange(count),
        x=x,
        has_equal_texts=kind == 0,
        similarity=np.zeros(count),
        is_candidate=kind != 1,
        texts=[""] * 2 * count,
        statistics={},
        documents=2 * count,
        warnings=(),
    )


def folds_of(pairs: LabelledPairs, count: int = 3) -> Folds:
    folds = make_folds(pairs.left, pairs.right, pairs.is_duplicate, count=count, seed=0, decided=pairs.is_decided)
    assert folds is not None
    return folds


@cache
def fitted_once() -> tuple[LabelledPairs, Folds, FittedMachine]:
    """Random pairs, their folds, and what is fitted to them."""
    pairs = random_pairs()
    folds = folds_of(pairs)
    return pairs, folds, fitted(pairs, folds)


def fitted(pairs: LabelledPairs, folds: Folds) -> FittedMachine:
    return fit_and_judge(pairs, folds, kernels=("linear", "rbf"), seed=0, progress=lambda done, total: None)


@pytest.mark.parametrize("inner_folds", [5, 3])
def test_each_fold_is_judged_by_options_that_the_others_choose(
    inner_folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = random_pairs()
    folds = folds_of(pairs, 5)
    sizes = [int(pairs.is_decided[train].sum()) for train, _ in folds.splits]
    # Of more training pairs than this, fewer inner folds choose the options.
    monkeypatch.setattr(training_module, "_MANY_PAIRS", max(sizes) if inner_folds == 5 else min(sizes) - 1)
    held_out = fitted(pairs, folds).held_out
    for split in folds.splits:
        rows, test = (side[pairs.is_decided[side]] for side in split)
        x, labels, left, right = pairs.x[rows], pairs.is_duplicate[rows], pairs.left[rows], pairs.right[rows]
        inner = make_folds(left, right, labels, count=inner_folds, seed=0)
        assert inner is not None
        chosen = search(x, labels, pair_groups(left, right), inner.splits, kernels=("linear", "rbf"), seed=0)
        estimator = fit(x, labels, chosen.options)
        machine = extract_machine(estimator, chosen.sigmoid.a, chosen.sigmoid.b, chosen.offset)
        g = machine.score(pairs.x[test])
        assert np.array_equal(held_out.scores[test], g)
        assert np.array_equal(held_out.probabilities[test], machine.probability(g))
        assert np.array_equal(held_out.contributions[test], machine.contributions(pairs.x[test]))
        assert np.array_equal(held_out.verdicts[test], g >= 0)
        for precision in PRECISIONS:
            cut, _ = find_cut(chosen.scores, labels, precision)
            assert np.array_equal(
                held_out.precision_verdicts[precision][test], np.zeros(len(test), bool) if cut is None else g >= cut
            )


def test_labels_of_judged_pairs_have_no_influence() -> None:
    pairs, folds, once = fitted_once()
    before = once.held_out
    rows, test = folds.splits[0]
    flipped = pairs.is_duplicate.copy()
    flipped[test] = ~flipped[test]
    after = fitted(replace(pairs, is_duplicate=flipped), folds).held_out
    assert np.array_equal(before.scores[test], after.scores[test], equal_nan=True)
    assert np.array_equal(before.verdicts[test], after.verdicts[test])
    assert np.array_equal(before.threshold_verdicts[test], after.threshold_verdicts[test])
    assert not np.array_equal(before.scores[rows], after.scores[rows], equal_nan=True)


def test_the_final_machine_is_trained_on_all_decided_pairs() -> None:
    pairs, _, result = fitted_once()
    x, labels = pairs.x[pairs.is_decided], pairs.is_duplicate[pairs.is_decided]
    estimator = fit(x, labels, result.search.options)
    assert result.machine.score(x) == pytest.approx(estimator.decision_function(x) + result.search.offset, abs=1e-9)
    assert result.support_vectors == len(estimator.named_steps["svm"].support_)
    assert len(result.search.scores) == int(pairs.is_decided.sum())
    assert (result.machine.a, result.machine.b) == (result.search.sigmoid.a, result.search.sigmoid.b)


WIDE_RULE = "jaccard(words:1) >= 0.1"
needs_corpora = pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not in ../shared/data beside the project")


@pytest.mark.shared
@needs_corpora
@pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="ten seconds; make test-long runs it")
def test_figures_of_training_hold_on_paraphrases_held_out() -> None:
    with (DATA / "msrp" / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    train_rows = [(row["id1"], row["id2"], row["label"]) for row in rows if row["split"] == "train"][:600]
    with open_corpus([DATA / "msrp" / "msrp.jsonl.gz"]) as corpus:
        training = train(corpus, train_rows, vector="short", candidate_rule=WIDE_RULE, kernels=["linear"])
        classifier = training.classifier
        pairs = labelled_pairs(
            corpus,
            DATA / "msrp" / "pairs.csv",
            classifier.vector,
            classifier.candidate_rule,
            LabelOptions(only="split=val"),
            threads=1,
            progress=lambda stage, done, total: None,
        )
    assert training.summary["folds"]["by"] == "groups"
    verdict = pairs.has_equal_texts | (pairs.is_candidate & classifier.passes(classifier.score(pairs.x)))
    accuracy = float((verdict == pairs.is_duplicate).mean())
    f1 = 2 * float((verdict & pairs.is_duplicate).sum()) / float(verdict.sum() + pairs.is_duplicate.sum())
    assert accuracy >= 0.72
    assert f1 >= 0.80
    # The accuracy of training holds on other pairs, within its error and that of 500 pairs.
    estimate = training.figures.accuracy
    assert estimate.low is not None
    assert estimate.high is not None
    assert estimate.low - 0.05 <= accuracy <= estimate.high + 0.05


@pytest.mark.shared
@needs_corpora
def test_copied_answers_are_learned_in_folds_of_their_tasks() -> None:
    with open_corpus([DATA / "clough" / "clough.jsonl"]) as corpus:
        training = train(corpus, DATA / "clough" / "pairs.csv", positive=1, candidate_rule=WIDE_RULE)
    folds = training.summary["folds"]
    assert (folds["by"], folds["number"], folds["largest"]) == ("groups", 5, pytest.approx(0.2))
    assert (training.figures.f1.value or 0) >= 0.88
    assert not (training.gain.beyond_chance and (training.gain.difference.value or 0) < 0)
    assert np.isfinite(training.classifier.scores).all()
    assert any("in 5 groups" in warning for warning in training.warnings)
