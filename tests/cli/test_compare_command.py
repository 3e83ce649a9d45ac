"""``neardup compare``: what it prints, writes and refuses."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from classifiers import make_classifier
from commands import neardup, refused
from sentences import says


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    path = tmp_path / "labels.csv"
    path.write_text("id1,id2,label\nfox,fox-again,1\nfox-edited,fox,1\nrose,fox,0\n")
    return path


def test_names_and_counts_are_not_broken_on_80_columns(corpus: Path, labels: Path) -> None:
    options = "--labels", labels, "--recipes", "supershingle, simhash", "--thresholds", ".5,.9"
    result = neardup("compare", corpus, *options)
    lines = result.stdout.splitlines()
    assert says(lines[0], "5 documents", "2 labelled duplicates", "1 labelled as different", "95%")
    assert all(len(line) <= 80 for line in lines[1:-1])
    (row,) = [line for line in lines if line.startswith("supershingle ")]
    assert re.search(r" \d+/\d+ ", row)
    assert "Few labels: 2 duplicates" in result.stderr


def test_latex_is_printed_as_it_is_written(corpus: Path, labels: Path, tmp_path: Path) -> None:
    options = "--labels", labels, "--recipes", "jaccard", "--latex"
    result = neardup("compare", corpus, *options, "-o", tmp_path / "c.tex")
    assert result.stdout.strip() == (tmp_path / "c.tex").read_text().strip()
    assert r"\begin{tabular}" in result.stdout
    assert says(refused("compare", corpus, *options, "--json"), "--latex and --json", "leave out one")


def test_classifiers_are_compared_with_recipes(corpus: Path, labels: Path, tmp_path: Path) -> None:
    classifier = tmp_path / "mine.neardup"
    make_classifier().save(classifier)
    options = "--labels", labels, "--recipes", "jaccard", "--thresholds", ".5,.9", "--classifier", classifier
    output = neardup("compare", corpus, *options).stdout
    assert says(output.replace("\n", " "), "accuracy", "own", "mine")
    twice = json.loads(neardup("compare", corpus, *options, "--classifier", classifier, "--json").stdout)
    assert [recipe["name"] for recipe in twice["recipes"]] == ["jaccard", "mine", "mine (2)"]
    assert twice["recipes"][1]["rows"] == twice["recipes"][2]["rows"]
