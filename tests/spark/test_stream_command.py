"""``neardup watch --engine spark``: what it refuses before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="PySpark is not installed")

SPARK = ("--engine", "spark", "--verdicts", "verdicts", "--stages", "stages")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--verdicts", "v", "--originals", "o", "--store", "s"), "--verdicts is for --engine spark"),
        (("--batch-files", "3", "--originals", "o", "--store", "s"), "--batch-files is for --engine spark"),
        (("--stages", "x", "--originals", "o", "--store", "s"), "--stages is for --engine spark"),
        (("--store", "s"), "--originals"),
        (("--originals", "o"), "--store"),
        ((*SPARK, "--originals", "o"), "--originals is for the engine in memory"),
        ((*SPARK, "--store", "news.db"), "--store is for the engine in memory"),
        ((*SPARK, "--settle", "3"), "--settle is for the engine in memory"),
        ((*SPARK, "--report", "a.html"), "--report is for the engine in memory"),
        ((*SPARK, "--place", "link"), "--place is for the engine in memory"),
        ((*SPARK, "--resume"), "the same command goes on where the last run ended"),
        (("--engine", "spark", "--stages", "s"), "name one with --verdicts DIR"),
        (("--engine", "spark", "--verdicts", "v"), "name one with --stages DIR"),
        ((*SPARK, "--batch-files", "0"), "--batch-files"),
        ((*SPARK, "--shards", "some"), "--shards"),
        ((*SPARK, "--recipe", "terms", "--sample", "in"), "have no keys"),
        ((*SPARK, "--recipe", "imatch"), "name a corpus with --sample"),
        ((*SPARK, "--window", "soon"), "is no length"),
        (("--engine", "spark", "--verdicts", "in/v", "--stages", "s"), "lies in the inbox"),
        (("--engine", "spark", "--verdicts", "v", "--stages", "v"), "name two folders"),
        (("--engine", "spark", "--verdicts", "file", "--stages", "s"), "is a file"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from neardup.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    (tmp_path / "in").mkdir()
    (tmp_path / "file").touch()
    done = CliRunner().invoke(app, ["watch", "in", *options])
    said = " ".join((done.output + str(done.exception or "")).split())
    assert done.exit_code != 0
    assert message in said
    assert not (tmp_path / "stages").exists()
