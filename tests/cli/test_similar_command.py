"""``neardup similar`` and ``compare``: what they print, and what they refuse."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from classifiers import make_classifier
from commands import FOX, ROSE, RULES, neardup, refused, write_lines
from sentences import says


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A text that is not in the corpus."""
    path = tmp_path / "new.txt"
    path.write_text(f"{FOX} today\n", "utf-8")
    return path


def test_query_prints_the_most_similar_document_first(corpus: Path, document: Path) -> None:
    result = neardup("similar", corpus, "--document", document, *RULES)
    header, *lines = result.stdout.splitlines()
    assert header == "document\tsimilarity"
    assert [line.split("\t")[0] for line in lines] == ["fox-edited", "fox", "fox-again"]
    assert [float(line.split("\t")[1]) for line in lines] == [1.0, pytest.approx(17 / 18), pytest.approx(17 / 18)]
    assert says(result.stderr.splitlines()[-1], "3 near-duplicates", str(document), "5 documents")
    # A byte order mark is no text.
    document.write_bytes(b"\xef\xbb\xbf" + document.read_bytes())
    assert neardup("similar", corpus, "-d", document, *RULES).stdout == result.stdout
    document.write_text("nothing of the kind was ever written")
    result = neardup("similar", corpus, "-d", document, *RULES)
    assert result.stdout == "document\tsimilarity\n"
    assert says(result.stderr.splitlines()[-1], "no near-duplicate", str(document), "5 documents", "--k 3")
    document.write_text("The quick brown fox eats a rose by any other name")
    result = neardup("similar", corpus, "-d", document, "--k", "2", *RULES)
    assert [line.split("\t")[0] for line in result.stdout.splitlines()[1:]] == ["rose", "fox"]
    assert says(result.stderr.splitlines()[-1], "2 nearest", str(document), "5 documents")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_an_unreadable_document_is_refused(corpus: Path, document: Path) -> None:
    document.chmod(0)
    assert says(refused("similar", corpus, "-d", document), str(document), "permission denied")


def test_neighbors_prints_the_neighbours_of_every_document(corpus: Path) -> None:
    result = neardup("similar", corpus, *RULES)
    rows = [line.split("\t")[:3] for line in result.stdout.splitlines()[1:]]
    foxes = ["fox", "fox-again", "fox-edited"]
    assert rows == [
        [fox, str(rank), other] for fox in foxes for rank, other in enumerate([o for o in foxes if o != fox], 1)
    ]
    counts, fewer = result.stderr.splitlines()[-2:]
    assert says(counts, "6 neighbours of 5 documents", "among 5")
    assert says(fewer, "9 fewer", "no other document")


def test_repeated_ids_are_refused_unless_ids_name_the_file_or_the_row(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": FOX}, {"id": "b", "text": ROSE}]
    shards = [write_lines(tmp_path / f"{number}.jsonl", rows) for number in (1, 2)]
    command: list[str | Path] = ["similar", *shards, "--print", "--k", "1", *RULES]
    assert says(
        refused(*command), "2 documents", "'a'", "1.jsonl, record 1", "2.jsonl, record 1", "--ids rows", "file+id"
    )
    assert "name each file once" in refused("similar", shards[0], shards[0], "--print")
    one, two = (f"{shard}:a" for shard in shards)
    assert f"{one}\t1\t{two}\t1.0" in neardup(*command, "--ids", "file+id").stdout.splitlines()
    assert "0\t1\t2\t1.0" in neardup(*command, "--ids", "rows").stdout.splitlines()


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


def test_a_document_that_never_begins_or_ends_is_refused_at_once(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "corpus.jsonl", [{"id": 1, "text": FOX}])
    os.mkfifo(tmp_path / "pipe")
    for name in ("/dev/zero", tmp_path / "pipe"):
        assert says(refused("similar", corpus, "--document", name), str(name), "cannot be read", "give a text file")
