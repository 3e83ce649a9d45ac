"""What is the user's to mend: one sentence, exit code 2, never half an output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import FOX, names_in, refused, write_lines
from sentences import says

from neardup.cli.screen import EXIT_CODES


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["bare"], ("bare", "no document")),
        (["*.nothing"], ("*.nothing", "no file")),
        (["corpus.jsonl", "--text-column", "body"], ("corpus.jsonl", "'body'", "--text-column", "columns are id")),
        (["corpus.jsonl", "--text-column", "text,text"], ("'text,text'", "--text-column", "once")),
        (["corpus.jsonl", "--ignore", "missing.txt"], ("missing.txt", "--ignore", "text file")),
        (["corpus.jsonl", "--ignore", "blank.txt"], ("blank.txt", "no text", "--ignore")),
        (["corpus.jsonl", "--ignore", "bare"], ("bare", "--ignore", "text file")),
        (["corpus.jsonl", "--ignore", "odd.txt"], ("odd.txt", "UTF-8", "byte 0")),
        (["corpus.jsonl", "--ignore", "taken.jsonl", "--features", "checksum"], ("ignore", "checksum", "words")),
        (["corpus.jsonl", "--set", "ignore=a b"], ("--ignore FILE",)),
        (["corpus.jsonl", "-o", "file:///kept.jsonl"], ("file:///kept.jsonl", "path")),
        (["corpus.jsonl", "--id-column", "key"], ("corpus.jsonl", "'key'", "--id-column", "columns are id")),
        (["corpus.jsonl", "--threshold", "1.2"], ("threshold", "1.2", "(0, 1]")),
        (["corpus.jsonl", "--measure", "jacard"], ("measure", "'jacard'", " jaccard, ", "cosine", "mean jaccard?")),
        (["corpus.jsonl", "--features", "word:5"], ("features", "'word:5'", "qgrams", "mean words?")),
        (["corpus.jsonl", "--recipe", "nws"], ("recipe", "'nws'", "file", "checksum, cornell, ")),
        (["corpus.jsonl", "--recipe", "defualt"], ("recipe", "'defualt'", "checksum, cornell, ", "mean default?")),
        (["corpus.jsonl", "--keep", "newst"], ("column 'newst'", "--keep", "longest", "newest", "columns are id")),
        (["corpus.jsonl", "--keep", "newest", "--time-column", "tiem"], ("column 'tiem' for --time-column;", "date")),
        (["corpus.jsonl", "--time-column", "date"], ("--time-column", "--keep", "newest", "oldest")),
        (["corpus.jsonl", "-o", "taken.jsonl"], ("taken.jsonl", "exists", "another name", "--force")),
        (["corpus.jsonl", "-o", "corpus.jsonl", "--force"], ("corpus.jsonl", "input", "another file")),
        (["folder", "-o", "folder/out.jsonl"], ("folder/out.jsonl", "input folder folder")),
        (["corpus.jsonl", "-o", "no/out.jsonl"], ("folder no ", "exist", "make it")),
        (["corpus.jsonl", "--duplicates", "taken.jsonl"], ("taken.jsonl", "exists", "--force")),
        (["corpus.jsonl", "--summary", "summary.txt"], ("summary.txt", ".json")),
        (["corpus.jsonl", "--quarantine", "bad.csv"], ("bad.csv", ".jsonl")),
        (["broken.jsonl", "--strict"], ("broken.jsonl", "line 2", "JSON")),
        (["corpus.jsonl", "-o", "-", "--json"], ("-o -", "--json", "stdout")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input(
    arguments: list[str], parts: tuple[str, ...], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("bare", "folder"):
        (tmp_path / folder).mkdir()
    write_lines(tmp_path / "folder" / "a.jsonl", [{"id": 1, "text": FOX}])
    (tmp_path / "taken.jsonl").write_text("mine")
    (tmp_path / "blank.txt").write_text("\ufeff \n", "utf-8")
    (tmp_path / "odd.txt").write_bytes(b"\xff")
    (tmp_path / "broken.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2\n')
    before = names_in(tmp_path), names_in(tmp_path / "folder")
    output = [] if "-o" in arguments else ["-o", "out.jsonl"]
    assert says(refused("dedup", *arguments, *output), *parts)
    assert (names_in(tmp_path), names_in(tmp_path / "folder")) == before
    assert (tmp_path / "taken.jsonl").read_text() == "mine"


def test_a_wrong_column_is_refused_by_the_option_that_named_it(corpus: Path) -> None:
    message = refused("compare", corpus, "--clusters", "famly")
    assert says(message, "column 'famly' for --clusters;", "columns are id")
    assert says(
        refused("replay", corpus, "--time-column", "tiem"), "column 'tiem' for --time-column;", "columns are id"
    )


def test_a_missing_time_column_is_asked_for(tmp_path: Path) -> None:
    bare = write_lines(tmp_path / "bare.jsonl", [{"id": 1, "text": FOX}])
    message = refused("replay", bare)
    assert says(message, "obviously the time", "--time-column")
    assert "keep" not in message


def test_an_output_must_be_named(corpus: Path) -> None:
    assert says(refused("dedup", corpus), "no output", "-o FILE", "--dry-run")
    assert says(refused("pairs", corpus), "no output", "-o FILE", "--print")


def test_refusals_of_pairs_come_first(corpus: Path, tmp_path: Path) -> None:
    taken = tmp_path / "taken.parquet"
    taken.write_text("mine")
    assert says(refused("pairs", corpus, "-o", taken), str(taken), "exists")
    message = refused("pairs", tmp_path / "missing.jsonl", "--print", "--threshold", "7")
    assert says(message, "threshold", "7.0", "(0, 1]")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_no_permission(corpus: Path, tmp_path: Path) -> None:
    corpus.chmod(0)
    assert says(refused("dedup", corpus, "--dry-run"), str(corpus), "read", "user")
    corpus.chmod(0o600)
    locked = tmp_path / "locked"
    locked.mkdir(0o500)
    assert says(refused("dedup", corpus, "-o", locked / "out.jsonl"), str(locked), "written", "user")


def test_the_documented_exit_codes_are_those_of_the_help() -> None:
    """Who presses Ctrl-C to end what runs until then has not interrupted it."""
    page = (Path(__file__).parents[2] / "docs" / "input.md").read_text("utf-8").replace("`", "")
    assert "label, serve and watch end with 0" in EXIT_CODES[130]
    assert f"| 130 | {EXIT_CODES[130]} |" in page
