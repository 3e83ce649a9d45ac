"""``neardup dedup --report``: a page beside the outputs, which stay what they are without it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import DOCUMENTS, RULES, names_in, neardup, refused, write_lines
from sentences import says

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")


@pytest.fixture
def news(tmp_path: Path) -> Path:
    folder = tmp_path / "in it"
    folder.mkdir()
    return write_lines(folder / "news.jsonl", DOCUMENTS)


def outputs(folder: Path) -> tuple[str, ...]:
    return (
        "-o",
        str(folder / "kept.jsonl"),
        "--duplicates",
        str(folder / "gone.csv"),
        "--summary",
        str(folder / "s.json"),
    )


def test_a_dry_run_writes_only_the_report(news: Path, tmp_path: Path) -> None:
    done = neardup("dedup", news, *RULES, "--dry-run", "--report", tmp_path / "look.html", "--json")
    assert json.loads(done.stdout)["dropped"] == 2
    assert names_in(tmp_path) == {"in it", "look.html"}


def test_reports_that_cannot_be_written_are_refused_before_the_work(news: Path, tmp_path: Path) -> None:
    there = tmp_path / "there.html"
    there.write_text("mine")
    assert says(refused("dedup", news, "--dry-run", "--report", "report.txt"), "report.txt", ".html", "name it")
    assert says(refused("dedup", news, "--dry-run", "--report", there), str(there), "exists", "--force")
    assert there.read_text() == "mine"
    message = refused("dedup", news, "--dry-run", "--report", tmp_path / "no" / "r.html")
    assert says(message, str(tmp_path / "no"), "exist", "make it")
    for option, value in (("--report-families", "3"), ("--report-rows", "3"), ("--report-margin", "0.1")):
        assert says(refused("dedup", news, "--dry-run", option, value), f"{option} {value}", "--report FILE.html")
    page = ("--dry-run", "--report", tmp_path / "new.html")
    assert says(refused("dedup", news, *page, "--report-margin", "far"), "--report-margin", "'far'", "not a number")
    assert says(refused("dedup", news, *page, "--report-margin", "0.9"), "margin 0.9", "nothing")
    message = refused("dedup", news, "--dry-run", "--title-column", "id")
    assert says(message, "--title-column id", "classifier", "--classifier FILE")
    assert names_in(tmp_path) == {"in it", "there.html"}


def test_options_set_the_margin_and_the_length_of_a_report(news: Path, tmp_path: Path) -> None:
    page = tmp_path / "r.html"

    def told(*more: str) -> str:
        neardup("dedup", news, *RULES, "--dry-run", "--report", page, "--force", *more)
        return page.read_text("utf-8")

    assert "thresholds from 0.6 to 1" in told()
    assert "thresholds from 0.3 to 1" in told("--report-margin", "0.5")
    none = told("--report-margin", "none")
    assert "thresholds from 0.8 to 1" in none
    assert "were not searched" in none
    assert "1 of 2 are listed." in told("--report-rows", "1")
    assert "0 of 1 families are shown" in told("--report-families", "0")
    assert '<strong><bdi dir="auto">2024-01-03' in told("--title-column", "date")
