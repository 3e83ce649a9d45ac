"""Training on labels that people made: the figures hold on pairs that had no part in it."""

from __future__ import annotations

import csv
import os

import numpy as np
import pytest
from paths import SHARED as DATA

from neardup.documents import open_corpus
from neardup.training.pairs import LabelOptions, labelled_pairs
from neardup.training.training import train

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not in ../shared/data beside the project"),
]

RULE = "jaccard(words:1) >= 0.1"


@pytest.mark.skipif(os.environ.get("NEARDUP_LONG") != "1", reason="ten seconds; make test-long runs it")
def test_sentences_that_say_the_same() -> None:
    with (DATA / "msrp" / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    learned_from = [(row["id1"], row["id2"], row["label"]) for row in rows if row["split"] == "train"][:600]
    with open_corpus([DATA / "msrp" / "msrp.jsonl.gz"]) as corpus:
        training = train(corpus, learned_from, vector="short", candidate_rule=RULE, kernels=["linear"])
        classifier = training.classifier
        pairs = labelled_pairs(
            corpus,
            DATA / "msrp" / "pairs.csv",
            classifier.vector,
            classifier.candidate_rule,
            LabelOptions(only="split=val"),
            threads=1,
            report=lambda stage, done, total: None,
        )
    assert training.summary["folds"]["by"] == "groups"
    verdict = pairs.has_equal_texts | (pairs.is_candidate & classifier.passes(classifier.score(pairs.x)))
    accuracy = float((verdict == pairs.is_duplicate).mean())
    f1 = 2 * float((verdict & pairs.is_duplicate).sum()) / float(verdict.sum() + pairs.is_duplicate.sum())
    assert accuracy >= 0.72
    assert f1 >= 0.80
    # What training promised holds on others, within the error of 500 pairs and of itself.
    promised = training.figures.accuracy
    assert promised.low is not None
    assert promised.high is not None
    assert promised.low - 0.05 <= accuracy <= promised.high + 0.05


def test_answers_that_were_copied() -> None:
    with open_corpus([DATA / "clough" / "clough.jsonl"]) as corpus:
        training = train(corpus, DATA / "clough" / "pairs.csv", positive=1, candidate_rule=RULE)
    folds = training.summary["folds"]
    assert (folds["by"], folds["number"], folds["largest"]) == ("groups", 5, pytest.approx(0.2))
    assert (training.figures.f1.value or 0) >= 0.88
    assert not (training.gain.beyond_chance and (training.gain.difference.value or 0) < 0)
    assert np.isfinite(training.classifier.scores).all()
    assert any("in 5 groups" in warning for warning in training.warnings)
