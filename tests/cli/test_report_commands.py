"""``--report`` of replay, compare and audit: what is written, and what is refused before any work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import FOX, ROSE, neardup, read_lines, refused, write_lines
from sentences import says

ROWS = [
    {"id": "fox", "text": FOX, "time": "2024-01-01T00:00:00Z"},
    {"id": "fox-again", "text": f"{FOX} today", "time": "2024-01-01T01:00:00Z"},
    {"id": "rose", "text": ROSE, "time": "2024-01-01T02:00:00Z"},
    {"id": "rose-again", "text": f"{ROSE} once more", "time": "2024-01-01T03:00:00Z"},
    {"id": "fox-half", "text": " ".join(FOX.split()[:12] + ROSE.split()[12:]), "time": "2024-01-01T04:00:00Z"},
]
LABELS = [
    {"id1": "fox", "id2": "fox-again", "label": "0"},
    {"id1": "rose", "id2": "rose-again", "label": "1"},
    {"id1": "fox", "id2": "fox-half", "label": "1"},
    {"id1": "fox-again", "id2": "fox-half", "label": "?"},
]
RULES = ("--features", "words:2", "--threshold", "0.7")


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "labels.jsonl", LABELS)
    write_lines(tmp_path / "sure.jsonl", LABELS[:3])
    return write_lines(tmp_path / "flow.jsonl", ROWS)


def text_of(page: str) -> str:
    """The text of a page, without its scripts and style."""
    body = re.sub(r"<(script|style)\b.*?</\1>", "", Path(page).read_text("utf-8"), flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_a_replay_writes_one_page_with_both(flow: Path) -> None:
    result = neardup("replay", "flow.jsonl", *RULES, "--report", "page.html", "-o", "v.jsonl")
    assert "report        page.html" in result.stderr
    text = text_of("page.html")
    for words in ("What a flow would have stopped", "fox-again", "Time by hour", "exactly as separate runs"):
        assert words in text
    assert " ".join(("replay flow.jsonl", *RULES, "--report", "page.html")) in text
    assert [row["kind"] for row in read_lines(Path("v.jsonl"))] == ["original", "near", "original", "near", "original"]


def test_a_replay_into_a_store_that_holds_more(flow: Path) -> None:
    neardup("replay", "flow.jsonl", *RULES, "--store", "news.db")
    later = [row | {"id": f"{row['id']}-later", "time": row["time"].replace("T0", "T1")} for row in ROWS]
    write_lines(Path("later.jsonl"), later)
    neardup("replay", "later.jsonl", *RULES, "--store", "news.db", "--report", "page.html")
    text = text_of("page.html")
    assert "This item was in the store before the corpus" in text
    assert "Only stricter thresholds are shown" in text


def test_a_classifier_in_a_replay(flow: Path) -> None:
    from simple_classifiers import saved

    saved(Path("d.neardup"))
    neardup("replay", "flow.jsonl", "--classifier", "d.neardup", "--report", "page.html")
    text = text_of("page.html")
    assert "probability ≥" in text or "probability" in text
    assert "jaccard(words:2) +" in text


def test_an_audit_shows_what_was_wrong(flow: Path) -> None:
    options = (
        "audit",
        "flow.jsonl",
        *RULES,
        "--candidate-rule",
        "0.2",
        "--labels",
        "labels.jsonl",
        "--report",
        "page.html",
    )
    result = neardup(*options)
    assert "neardup: written: page.html" in result.stderr
    text = text_of("page.html")
    for words in ("Returned, but judged different (1)", "Judged the same, but not returned (1)", "Unsure (1)"):
        assert words in text
    assert "--candidate-rule 0.2 --labels labels.jsonl --report page.html" in text
    neardup(*options, "--force", "--report-pairs", "0")
    assert "0 of 1 are shown" in text_of("page.html")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("replay", *RULES, "--report", "page.txt"), ("page.txt", ".html")),
        (("replay", *RULES, "--report", "v.html", "-o", "v.html"), ("v.html",)),
        (("replay", *RULES, "--report", "none/p.html"), ("folder none ", "exist", "make it")),
        (("replay", *RULES, "--report", "mine.html"), ("mine.html", "exists", "--force")),
        (("replay", *RULES, "--report", "s.html", "--store", "s.html"), ("s.html", "--report", "--store", "two files")),
        (("replay", *RULES, "--report-families", "5"), ("--report-families 5", "--report FILE.html")),
        (("replay", *RULES, "--report", "p.html", "--report-margin", "x"), ("--report-margin", "'x'", "not a number")),
        (("compare", "--labels", "sure.jsonl", "--report", "page.json"), ("page.json", ".html")),
        (("compare", "--labels", "sure.jsonl", "--report", "p.html", "-o", "p.html"), ("p.html", "two files")),
        (("compare", "--labels", "sure.jsonl", "--report", "mine.html"), ("mine.html", "exists", "--force")),
        (("audit", *RULES, "--report", "page"), ("page ", ".html")),
        (("audit", *RULES, "--report", "mine.html"), ("mine.html", "exists", "--force")),
        (("audit", *RULES, "--report-pairs", "3"), ("--report-pairs 3", "--report FILE.html")),
    ],
)
def test_refusals(flow: Path, arguments: tuple[str, ...], parts: tuple[str, ...]) -> None:
    Path("mine.html").write_text("mine")
    command, *options = arguments
    assert says(refused(command, "flow.jsonl", *options), *parts)
    assert Path("mine.html").read_text() == "mine"
    assert not list(Path().glob("*.partial*"))
