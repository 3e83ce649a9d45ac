"""``neardup watch --engine spark``: what it refuses before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from saying import says
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed")

SPARK = ("--engine", "spark", "--verdicts", "verdicts", "--checkpoint-dir", "stages")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--verdicts", "v", "--originals", "o", "--store", "s"), ("--verdicts", "--engine spark")),
        (("--batch-files", "3", "--originals", "o", "--store", "s"), ("--batch-files", "--engine spark")),
        (("--checkpoint-dir", "x", "--originals", "o", "--store", "s"), ("--checkpoint-dir", "--engine spark")),
        (("--store", "s"), ("--originals",)),
        (("--originals", "o"), ("--store",)),
        ((*SPARK, "--originals", "o"), ("--originals", "engine in memory")),
        ((*SPARK, "--store", "news.db"), ("--store", "engine in memory")),
        ((*SPARK, "--settle", "3"), ("--settle", "engine in memory")),
        ((*SPARK, "--report", "a.html"), ("--report", "engine in memory")),
        ((*SPARK, "--place", "link"), ("--place", "engine in memory")),
        ((*SPARK, "--resume"), ("--resume", "the same command")),
        (("--engine", "spark", "--checkpoint-dir", "s"), ("name one", "--verdicts DIR")),
        (("--engine", "spark", "--verdicts", "v"), ("name one", "--checkpoint-dir DIR")),
        ((*SPARK, "--batch-files", "0"), ("--batch-files", "0")),
        ((*SPARK, "--shards", "some"), ("--shards", "'some'", "whole number")),
        ((*SPARK, "--recipe", "terms", "--sample", "in"), ("'tfidf'", "no keys", "simhash")),
        ((*SPARK, "--recipe", "imatch"), ("name a corpus", "--sample")),
        ((*SPARK, "--window", "soon"), ("window", "'soon'", "no length")),
        (("--engine", "spark", "--verdicts", "in/v", "--checkpoint-dir", "s"), ("in/v", "--verdicts", "inbox")),
        (
            ("--engine", "spark", "--verdicts", "v", "--checkpoint-dir", "v"),
            ("--verdicts", "--checkpoint-dir", "two folders"),
        ),
        (("--engine", "spark", "--verdicts", "file", "--checkpoint-dir", "s"), ("file", "is a file")),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: tuple[str, ...], parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neardup.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "in").mkdir()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["watch", "in", *options])
    said = " ".join((done.output + str(done.exception or "")).split())
    assert done.exit_code != 0
    assert says(said, *parts)
    assert not (tmp_path / "stages").exists()
