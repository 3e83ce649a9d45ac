"""What summaries and reports call copies and equal: one count everywhere, and only where nothing differs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import FOX, ROSE, neardup, write_lines
from page_markup import Markup

import neardup as nd

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

#: Empty texts match nothing, so those after the first are no copies that were dropped.
TEXTS = [FOX, "", FOX, ROSE, "", "...", "...", FOX.upper() + "!", FOX + " today", ROSE, "", FOX.upper() + "!"]
RULES = ("--features", "words:3", "--threshold", "0.8")
INSIDE = ("--features", "words:1", "--measure", "containment", "--threshold", "0.9")


def rows_of(texts: list[str]) -> list[dict[str, str]]:
    return [{"id": f"d{at}", "text": text, "time": f"2024-01-01T00:{at:02}:00Z"} for at, text in enumerate(texts)]


def said_of(page: Path) -> str:
    """The text of a page, in one line."""
    return " ".join(Markup(page.read_text("utf-8")).text.split())


def test_copies_are_counted_alike_everywhere(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(TEXTS))
    page, summary = tmp_path / "page.html", tmp_path / "summary.json"
    outputs = "-o", tmp_path / "kept.jsonl", "--report", page, "--summary", summary
    shown = neardup("dedup", corpus, *RULES, *outputs).stderr
    found = json.loads(summary.read_text("utf-8"))
    assert (found["dropped"], found["undecidable"]) == (5, 5)
    assert (found["exact_copies"], found["equal_content"]) == (3, 4)
    assert re.search(r"exact copies +3,", shown)
    cells = re.search(r"<th [^>]*>exact copy<small>[^<]*</small></th><td>(\d+)<", page.read_text("utf-8"))
    assert cells is not None
    assert cells[1] == "3"
    assert said_of(page).count("exact copy") >= 2
    result = nd.dedup(TEXTS, features="words:3", threshold=0.8)
    assert result.summary["exact_copies"] == 3
    assert re.search(r"exact copy</th><td [^>]*>3</td>", result._repr_html_() or "")


def test_a_document_inside_another_is_not_called_equal(tmp_path: Path) -> None:
    texts = [FOX + " " + ROSE, FOX, ROSE.upper(), FOX]
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(texts))
    page, summary = tmp_path / "page.html", tmp_path / "summary.json"
    neardup("dedup", corpus, "-o", tmp_path / "kept.jsonl", *INSIDE, "--report", page, "--summary", summary)
    found = json.loads(summary.read_text("utf-8"))
    assert (found["dropped"], found["exact_copies"], found["equal_content"]) == (3, 1, 1)
    text = said_of(page)
    assert "all equal" not in text
    assert "equal in all" not in text
    assert "wholly contained" in text
    assert text.count("1.0000 of d0") == 3
    # What is a copy of another dropped one is no copy of its keeper.
    assert text.count("copy of a dropped one") == 1


def test_a_flow_does_not_call_an_item_inside_another_equal(tmp_path: Path) -> None:
    texts = [FOX + " " + ROSE, FOX, (FOX + " " + ROSE).upper(), FOX + " " + ROSE]
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(texts))
    page = tmp_path / "page.html"
    neardup("replay", corpus, *INSIDE, "--time-column", "time", "--report", page)
    text = page.read_text("utf-8")
    reasons = r"<th [^>]*>(exact copy|equal features|near-duplicate)<small>[^<]*</small></th><td>(\d+)<"
    counted = dict(re.findall(reasons, text))
    assert counted == {"exact copy": "1", "equal features": "1", "near-duplicate": "1"}
    assert "wholly contained" in said_of(page)
    assert "1.0000 of d0" in said_of(page)
    assert "all equal" not in said_of(page)


def test_an_exploration_counts_the_copies_that_a_run_would_drop(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(TEXTS))
    out = tmp_path / "explored.json"
    neardup("explore", corpus, "-o", out)
    assert json.loads(out.read_text("utf-8"))["profile"]["copies"]["copies"] == 3
