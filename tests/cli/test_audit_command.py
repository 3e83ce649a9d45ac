"""``neardup audit``: what it prints, writes, asks and refuses."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from commands import neardup, read_lines, write_lines
from sentences import says

import neardup.labelling.server as serving
from neardup.labelling.session import Session
from neardup.labels.store import LabelStore

WORDS = [f"word{at:02d}" for at in range(30)]


def version(number: int, changed: int) -> str:
    """A text of 30 words, the first of which are its own."""
    return " ".join([*(f"own{number}x{at}" for at in range(changed)), *WORDS[changed:]])


DOCUMENTS = [{"id": f"d{number}", "text": version(number, number % 10)} for number in range(24)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "corpus.jsonl", DOCUMENTS)


def filled(sample: Path, path: Path) -> Path:
    """The sample with labels: pairs of documents with a digit in common are the same."""
    rows = list(csv.DictReader(io.StringIO(sample.read_text())))
    for row in rows:
        row["label"] = str(int(row["id1"][-1] == row["id2"][-1]))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


OPTIONS = ("--features", "words:2", "--threshold", "0.6", "--sample", "40")


def test_labels_of_a_sample_give_figures(corpus: Path, tmp_path: Path) -> None:
    sample, again = tmp_path / "sample.csv", tmp_path / "again.jsonl"
    first = neardup("audit", corpus, *OPTIONS, "--sample-to", sample)
    assert "40 pairs drawn, 0 judged" in first.stdout
    assert f"fill in its column label and give it with --labels {sample}" in first.stderr
    labels = filled(sample, tmp_path / "labels.csv")
    second = neardup("audit", corpus, *OPTIONS, "--labels", labels)
    rule, candidate_rule = second.stdout.partition("candidate rule: ")[::2]
    assert "words:2 (words), jaccard >= 0.6" in rule
    assert "words:2 (words), jaccard >= 0.3" in candidate_rule
    assert says(second.stdout.replace("\n", " "), "40 judged", ">= 0.6 (audited)", "candidates: about", "yes", " no ")
    # A larger sample holds the smaller one with its labels.
    options = [option if option != "40" else "60" for option in OPTIONS]
    neardup("audit", corpus, *options, "--labels", labels, "--sample-to", again)
    rows = read_lines(again)
    assert (sum(row["label"] != "" for row in rows), len(rows)) == (40, 60)


def test_the_page_serves_the_sample_until_all_is_labelled(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "audit.db"
    opened: list[dict[str, Any]] = []

    def judge(session: Session, **options: Any) -> None:
        """What a person would do in the browser."""
        opened.append(options)
        options["announce_first_link"]("http://127.0.0.1:1/?token=x")
        state = session.state("ann")
        while state["pair"] is not None:
            one, other = state["pair"]["ids"]
            state = session.answer("ann", (one, other), "same" if one[-1] == other[-1] else "different")

    monkeypatch.setattr(serving, "serve", judge)
    first = neardup("audit", corpus, *OPTIONS, "--store", store, "--no-browser", "--port", "8123")
    assert "judge the sample at http://127.0.0.1:1/?token=x" in first.stderr
    assert f"40 labels given, written to {store}" in first.stderr
    assert "40 pairs drawn, 40 judged" in first.stdout
    assert (opened[0]["port"], opened[0]["open_browser"]) == (8123, False)
    second = neardup("audit", corpus, *OPTIONS, "--store", store)
    assert len(opened) == 1
    assert "none is left" in second.stderr
    assert second.stdout == first.stdout
    assert neardup("audit", corpus, *OPTIONS, "--labels", store).stdout == first.stdout
    # Labels of a table count beside those given on the page.
    monkeypatch.setattr(serving, "serve", lambda *arguments, **options: None)
    both = neardup("audit", corpus, *OPTIONS, "--labels", store, "--store", tmp_path / "empty.db")
    assert both.stdout == first.stdout
    with LabelStore(store) as labels:
        assert labels.labellers == ["ann"]


def test_an_unlabelled_sample_has_no_labels_for_any_command(corpus: Path, tmp_path: Path) -> None:
    sheet, store = tmp_path / "sheet.csv", tmp_path / "labels.db"
    neardup("audit", corpus, "--candidate-rule", "0.2", "--sample", "12", "--sample-to", sheet)
    stderr = neardup("label", corpus, "--store", store, "--import", sheet, "--labeller", "anna").stderr
    assert "0 labels" in stderr
    assert "12 without a label" in stderr
    with LabelStore(store) as labels:
        assert labels.labels == {}
    assert "no label" in neardup("compare", corpus, "--labels", sheet, "--recipes", "jaccard", code=2).stderr
    audited = neardup("audit", corpus, "--candidate-rule", "0.2", "--sample", "12", "--labels", sheet, "--json")
    assert json.loads(audited.stdout)["missing"] == 12
