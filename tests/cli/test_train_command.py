"""``neardup train``: what it prints, saves and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from classifiers import labelled, write_labels
from commands import neardup, write_lines
from sentences import says

import neardup as nd
from neardup.training import fit as searching
from neardup.training.fit import MachineOptions

CHOICES = ("--vector", "jaccard(words:1), containment(words:2), numbers", "--candidate-rule", "jaccard(words:1) >= 0.2")


@pytest.fixture(autouse=True)
def small_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small grid: what it is for is tested elsewhere."""
    grid = {"linear": [MachineOptions("linear", 0.25)], "rbf": [MachineOptions("rbf", 1.0, 0.25)]}
    monkeypatch.setattr(searching, "_COARSE", grid)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "corpus.jsonl", labelled(mistakes=9)[0].rows)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path: Path = write_labels(tmp_path / "labels.csv", labelled(mistakes=9)[1])
    return path


def test_the_tables_fit_80_columns(corpus: Path, labels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = neardup("train", corpus, "--labels", labels, *CHOICES, "--kernel", "linear")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("189 labelled pairs of 160 documents: ")
    assert says(" ".join(result.stdout.split()), "misjudged", "the 10 most confident", "--summary FILE")
    assert sum(": labelled " in line for line in lines) == 10
    assert max(map(len, lines)) <= 80
    assert says(result.stderr.splitlines()[-1], "no classifier was written", "-o FILE")


def test_the_classifier_and_the_summary_are_saved(corpus: Path, labels: Path, tmp_path: Path) -> None:
    place, whole = tmp_path / "d.neardup", tmp_path / "s.json"
    result = neardup("train", corpus, "--labels", labels, *CHOICES, "-o", place, "--summary", whole, "--json")
    found = json.loads(result.stdout)
    assert found == json.loads(whole.read_text())
    classifier = nd.load_classifier(place)
    assert (classifier.fingerprint, classifier.candidate_rule.threshold) == (found["fingerprint"], 0.2)
    assert result.stderr.splitlines()[-2:] == [f"neardup: written: {place}", f"neardup: written: {whole}"]
    printed = neardup("train", corpus, "--labels", labels, *CHOICES, "-o", place, "--force").stdout
    point = classifier.working_point
    figures = f"precision {point.precision:.3f} and recall {point.recall:.3f}"
    pairs = "out of fold on the pairs it was trained on"
    assert says(" ".join(printed.split()), f"all {found['pairs']} labelled pairs", f"{figures}: {pairs}")
    run = neardup("dedup", corpus, "--classifier", place, "--dry-run")
    assert f"{figures} {pairs}" in run.stderr


def test_document_ids_cannot_control_the_terminal(tmp_path: Path) -> None:
    known, rows = labelled(mistakes=9)
    evil = {row["id"]: f"\x1b[31m{row['id']}\n" for row in known.rows}
    corpus = write_lines(tmp_path / "c.jsonl", [row | {"id": evil[row["id"]]} for row in known.rows])
    path = write_lines(tmp_path / "l.jsonl", [{"id1": evil[i], "id2": evil[j], "label": label} for i, j, label in rows])
    output = neardup("train", corpus, "--labels", path, *CHOICES, "--kernel", "linear").stdout
    assert "\x1b" not in output
    assert "␛[31md" in output
