"""Texts that no page can show whole, such as one endless word: pages stay small and count what they leave out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.csv
import pytest
from browser import opened
from commands import neardup

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"
WORD, MARKS, LINES, SIGNS = "w" * 100_000, "a" + "\u0301" * 10_000, "\n" * 8_000, "\U0001f98a" * 20_000
LONG = {
    "word": f"{BASE} {WORD}",
    "marks": f"{BASE} {MARKS} {MARKS}",
    "lines": f"{BASE}{LINES}and then it was over",
    "signs": f"{BASE} {SIGNS} and then it was over",
    "many": " ".join([BASE, *(f"{at}{'x' * 3000}" for at in range(100))]),
}


def rows() -> list[dict[str, Any]]:
    """Each text with a near-duplicate, whose long word is another one, and titles that are as long."""
    found: list[dict[str, Any]] = []
    for name, text in LONG.items():
        for at, other in enumerate((text, text.replace("tuesday", "friday") + " it said")):
            time = f"2024-01-01T{len(found):02}:00:00Z"
            found.append({"id": f"{name}-{at}", "text": other, "title": f"{name} {MARKS[:5000]}", "time": time})
    found.append(
        {"id": "i" * 10_000, "text": LONG["word"] + " once more", "title": WORD, "time": "2024-01-02T00:00:00Z"}
    )
    return found


RULES = ("--features", "words:2", "--threshold", "0.5")
COMMANDS = {
    "dedup": ("--dry-run", "--report", "page.html", "--report-margin", "0.3", *RULES),
    "replay": ("--time-column", "time", "--report", "page.html", *RULES),
    "explore": ("-o", "page.html", "--lengths", "1,2"),
    "audit": ("--labels", "labels.csv", "--report", "page.html", "--candidate-rule", "0.2", *RULES),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("overlong") / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()), "utf-8")
    return path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_page_of_overlong_texts_stays_small(
    command: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if command == "audit":
        neardup("audit", corpus, *RULES, "--candidate-rule", "0.2", "--sample-to", "sheet.csv")
        drawn = pyarrow.csv.read_csv("sheet.csv", parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
        sheet = drawn.select(["id1", "id2"]).append_column("label", [["0"] * len(drawn)])
        pyarrow.csv.write_csv(sheet, "labels.csv")
    neardup(command, corpus, *COMMANDS[command])
    # The scripts that draw charts are more than a million of it.
    assert Path("page.html").stat().st_size < 1_600_000
    with opened(tmp_path / "page.html") as view:
        view.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
        assert view.evaluate("document.documentElement.scrollHeight") < 25_000
        heights = "[...document.querySelectorAll('.pair, .members > li')].map(one => one.offsetHeight)"
        assert max(view.evaluate(heights)) < 4_000
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        text = view.inner_text("main")
    for words in ("characters not shown", "marks not shown", BASE.split()[-2]):
        assert words in text
