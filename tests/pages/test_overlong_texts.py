"""Texts that no page can show whole, such as one endless word: pages stay small and say what is not shown."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from commands import neardup

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"
WORD, MARKS, LINES, SIGNS = "w" * 300_000, "a" + "\u0301" * 30_000, "\n" * 20_000, "\U0001f98a" * 50_000
LONG = {
    "word": f"{BASE} {WORD}",
    "marks": f"{BASE} {MARKS} {MARKS}",
    "lines": f"{BASE}{LINES}and then it was over",
    "signs": f"{BASE} {SIGNS} and then it was over",
    "many": " ".join([BASE, *(f"{at}{'x' * 3000}" for at in range(300))]),
}


def rows() -> list[dict[str, Any]]:
    """Each text with a near-duplicate, whose long word is another one, and titles that are as long."""
    found: list[dict[str, Any]] = []
    for name, text in LONG.items():
        for at, other in enumerate((text, text.replace("tuesday", "friday") + " it said")):
            time = f"2024-01-01T{len(found):02}:00:00Z"
            found.append({"id": f"{name}-{at}", "text": other, "title": f"{name} {MARKS[:5000]}", "time": time})
    found.append(
        {"id": "i" * 30_000, "text": LONG["word"] + " once more", "title": WORD, "time": "2024-01-02T00:00:00Z"}
    )
    return found


RULES = ("--features", "words:2", "--threshold", "0.5")


def dedup(corpus: Path, page: Path) -> None:
    neardup("dedup", corpus, "-o", page.with_suffix(".jsonl"), "--report", page, "--report-margin", "0.3", *RULES)


def replay(corpus: Path, page: Path) -> None:
    neardup("replay", corpus, "--time-column", "time", "--report", page, *RULES)


def explore(corpus: Path, page: Path) -> None:
    neardup("explore", corpus, "-o", page, "--lengths", "1,2")


def audit(corpus: Path, page: Path) -> None:
    sheet = page.with_suffix(".csv")
    neardup("audit", corpus, *RULES, "--candidate-rule", "0.2", "--sample-to", sheet)
    csv.field_size_limit(10_000_000)
    with sheet.open(encoding="utf-8", newline="") as file:
        drawn = list(csv.DictReader(file))
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["id1", "id2", "label"])
        writer.writeheader()
        writer.writerows({"id1": row["id1"], "id2": row["id2"], "label": "0"} for row in drawn)
    neardup("audit", corpus, *RULES, "--candidate-rule", "0.2", "--labels", sheet, "--report", page)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("overlong") / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), "utf-8")
    return path


@pytest.mark.parametrize("command", [dedup, replay, explore, audit])
def test_a_page_of_texts_that_are_too_long(command: Any, corpus: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command(corpus, page)
    # The scripts that draw charts are more than a million of it.
    assert page.stat().st_size < 1_600_000
    with opened(page) as view:
        view.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
        assert view.evaluate("document.documentElement.scrollHeight") < 25_000
        heights = "[...document.querySelectorAll('.pair, .members > li')].map(one => one.offsetHeight)"
        assert max(view.evaluate(heights)) < 4_000
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shown = view.inner_text("main")
    assert "characters not shown" in shown
    assert "marks not shown" in shown
    assert BASE.split()[-2] in shown
