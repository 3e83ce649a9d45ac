"""``neardup query``: the near-duplicates of a new document, from a file or stdin, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from calling import FOX, RULES, neardup, refused


@pytest.fixture
def document(tmp_path: Path) -> Path:
    """A text that is not in the corpus."""
    path = tmp_path / "new.txt"
    path.write_text(f"{FOX} today\n", "utf-8")
    return path


def test_the_most_similar_first(corpus: Path, document: Path) -> None:
    result = neardup("query", corpus, "--document", document, *RULES)
    header, *lines = result.stdout.splitlines()
    assert header == "document\tsimilarity"
    assert [line.split("\t")[0] for line in lines] == ["fox-edited", "fox", "fox-again"]
    assert [float(line.split("\t")[1]) for line in lines] == [1.0, pytest.approx(17 / 18), pytest.approx(17 / 18)]
    assert f"3 near-duplicates of {document} among 5 documents" in result.stderr


def test_from_stdin(corpus: Path, document: Path) -> None:
    by_file = neardup("query", corpus, "-d", document, *RULES)
    by_stdin = neardup("query", corpus, "-d", "-", *RULES, stdin=document.read_bytes())
    assert by_stdin.stdout == by_file.stdout
    assert "of the document on stdin" in by_stdin.stderr
    assert neardup("query", "-", "-d", document, *RULES, stdin=corpus.read_bytes()).stdout == by_file.stdout


def test_a_byte_order_mark_is_no_text(corpus: Path, document: Path, tmp_path: Path) -> None:
    marked = tmp_path / "marked.txt"
    marked.write_bytes(b"\xef\xbb\xbf" + document.read_bytes())
    assert (
        neardup("query", corpus, "-d", marked, *RULES).stdout == neardup("query", corpus, "-d", document, *RULES).stdout
    )


def test_json_and_tables(corpus: Path, document: Path, tmp_path: Path) -> None:
    table = tmp_path / "found.parquet"
    result = neardup("query", corpus, "-d", document, "-o", table, *RULES)
    assert result.stdout == ""
    assert f"they are in {table}" in result.stderr
    objects = neardup("query", corpus, "-d", document, "--json", *RULES).stdout.splitlines()
    assert [json.loads(line) for line in objects] == pq.read_table(table).to_pylist()


def test_none_is_said(corpus: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("nothing of the kind was ever written")
    result = neardup("query", corpus, "-d", other, *RULES)
    assert result.stdout == "document\tsimilarity\n"
    assert f"no near-duplicate of {other} among 5 documents; --k 3 shows the three nearest" in result.stderr


def test_the_nearest_below_the_threshold(corpus: Path, tmp_path: Path) -> None:
    near = tmp_path / "near.txt"
    near.write_text("The quick brown fox eats a rose by any other name")
    result = neardup("query", corpus, "-d", near, "--k", "2", *RULES)
    assert [line.split("\t")[0] for line in result.stdout.splitlines()[1:]] == ["rose", "fox"]
    assert f"2 nearest documents of {near} among 5 documents" in result.stderr


def test_a_second_step_decides(corpus: Path, document: Path) -> None:
    result = neardup("query", corpus, "-d", document, "--then", "edit >= 0.99", *RULES)
    assert [line.split("\t")[0] for line in result.stdout.splitlines()[1:]] == ["fox-edited"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-d", "missing.txt"], "missing.txt cannot be read (no such file or directory): give a text file"),
        (["-d", "folder"], "folder cannot be read (is a directory): give a text file, or - for stdin"),
        (["-d", "empty.txt"], "empty.txt is empty, so nothing can match it; give one with words"),
        (["-d", "dots.txt"], "dots.txt has no features by words:5, so nothing can match it; give a longer one"),
        (["-d", "latin1.txt"], "latin1.txt is not UTF-8 at byte 3: convert it first, as with iconv"),
        (["-d", "new.txt", "--k", "0"], "--k '0' is not a whole number from 1 on"),
        (["-d", "new.txt", "--k", "6"], "k 6 is more than a collection of 5 documents can give; ask for at most 5"),
        (["-d", "new.txt", "--threshold", "2"], "threshold 2.0 is outside (0, 1]"),
        (["-d", "new.txt", "-o", "new.txt"], "new.txt"),
        (["-d", "new.txt", "-o", "out.jsonl", "--then", "semantic >= 0.9"], "needs an encoder"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_refusals(
    arguments: list[str],
    message: str,
    corpus: Path,
    document: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "dots.txt").write_text("... !\n")
    (tmp_path / "latin1.txt").write_bytes("caf\u00e9".encode("latin-1"))
    assert message in refused("query", corpus, *arguments)
    assert document.read_text("utf-8").startswith(FOX)


def test_stdin_is_one_thing(corpus: Path) -> None:
    message = "stdin is both an input and the document: name a file for one of them"
    assert refused("query", "-", "-d", "-") == message


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_no_permission(corpus: Path, document: Path) -> None:
    document.chmod(0)
    assert "cannot be read (permission denied)" in refused("query", corpus, "-d", document)


def test_a_document_must_be_named(corpus: Path) -> None:
    assert "Missing option '--document'" in neardup("query", corpus, code=2).stderr
