"""``--report`` of every command: what a page says, and what is refused before any work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import DOCUMENTS, FOX, ROSE, RULES, names_in, neardup, read_lines, refused, write_lines
from page_markup import Markup
from sentences import says

import neardup as nd

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")


@pytest.fixture
def news(tmp_path: Path) -> Path:
    folder = tmp_path / "in it"
    folder.mkdir()
    return write_lines(folder / "news.jsonl", DOCUMENTS)


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
    assert "not looked for" in none
    assert "1 of 2 are listed." in told("--report-rows", "1")
    assert "0 of 1 families are shown" in told("--report-families", "0")
    assert '<strong><bdi dir="auto">2024-01-03' in told("--title-column", "date")


pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")


#: Empty texts match nothing, so those after the first are no copies that were dropped.
TEXTS = [FOX, "", FOX, ROSE, "", "...", "...", FOX.upper() + "!", FOX + " today", ROSE, "", FOX.upper() + "!"]


WORDS_3 = ("--features", "words:3", "--threshold", "0.8")


INSIDE = ("--features", "words:1", "--measure", "containment", "--threshold", "0.9")


def rows_of(texts: list[str]) -> list[dict[str, str]]:
    return [{"id": f"d{at}", "text": text, "time": f"2024-01-01T00:{at:02}:00Z"} for at, text in enumerate(texts)]


def text_of_page(page: Path) -> str:
    """The text of a page, in one line."""
    return " ".join(Markup(page.read_text("utf-8")).text.split())


def test_copies_are_counted_alike_everywhere(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(TEXTS))
    page, summary = tmp_path / "page.html", tmp_path / "summary.json"
    outputs = "-o", tmp_path / "kept.jsonl", "--report", page, "--summary", summary
    shown = neardup("dedup", corpus, *WORDS_3, *outputs).stderr
    found = json.loads(summary.read_text("utf-8"))
    assert (found["dropped"], found["undecidable"]) == (5, 5)
    assert (found["exact_copies"], found["equal_content"]) == (3, 4)
    assert re.search(r"exact copies +3,", shown)
    cells = re.search(r"<th [^>]*>exact copy<small>[^<]*</small></th><td>(\d+)<", page.read_text("utf-8"))
    assert cells is not None
    assert cells[1] == "3"
    assert text_of_page(page).count("exact copy") >= 2
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
    text = text_of_page(page)
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
    assert "wholly contained" in text_of_page(page)
    assert "1.0000 of d0" in text_of_page(page)
    assert "all equal" not in text_of_page(page)


def test_an_exploration_counts_the_copies_that_a_run_would_drop(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(TEXTS))
    out = tmp_path / "explored.json"
    neardup("explore", corpus, "-o", out)
    assert json.loads(out.read_text("utf-8"))["profile"]["copies"]["copies"] == 3


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


WORDS_2 = ("--features", "words:2", "--threshold", "0.7")


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


def test_the_page_of_a_replay_has_the_report_and_the_table(flow: Path) -> None:
    result = neardup("replay", "flow.jsonl", *WORDS_2, "--report", "page.html", "-o", "v.jsonl")
    assert "report        page.html" in result.stderr
    text = text_of("page.html")
    for words in ("What a flow would have stopped", "fox-again", "Time by hour", "exactly as separate runs"):
        assert words in text
    assert " ".join(("replay flow.jsonl", *WORDS_2, "--report", "page.html")) in text
    assert [row["kind"] for row in read_lines(Path("v.jsonl"))] == ["original", "near", "original", "near", "original"]


def test_the_page_of_a_replay_into_a_store_names_earlier_items(flow: Path) -> None:
    neardup("replay", "flow.jsonl", *WORDS_2, "--store", "news.db")
    later = [row | {"id": f"{row['id']}-later", "time": row["time"].replace("T0", "T1")} for row in ROWS]
    write_lines(Path("later.jsonl"), later)
    neardup("replay", "later.jsonl", *WORDS_2, "--store", "news.db", "--report", "page.html")
    text = text_of("page.html")
    assert "This item was in the store before the corpus" in text
    assert "It moves to stricter thresholds only" in text


def test_the_page_of_a_replay_shows_what_a_classifier_measured(flow: Path) -> None:
    from simple_classifiers import saved

    saved(Path("d.neardup"))
    neardup("replay", "flow.jsonl", "--classifier", "d.neardup", "--report", "page.html")
    text = text_of("page.html")
    assert "probability ≥" in text or "probability" in text
    assert "jaccard(words:2) +" in text


def test_the_page_of_an_audit_shows_wrong_and_unsure_pairs(flow: Path) -> None:
    options = (
        "audit",
        "flow.jsonl",
        *WORDS_2,
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
    for words in ("Returned, but judged different (1)", "Judged the same, but not returned (1)", "Nobody is sure (1)"):
        assert words in text
    assert "--candidate-rule 0.2 --labels labels.jsonl --report page.html" in text
    neardup(*options, "--force", "--report-pairs", "0")
    assert "0 of 1 are shown" in text_of("page.html")


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("replay", *WORDS_2, "--report", "page.txt"), ("page.txt", ".html")),
        (("replay", *WORDS_2, "--report", "v.html", "-o", "v.html"), ("v.html",)),
        (("replay", *WORDS_2, "--report", "none/p.html"), ("folder none ", "exist", "make it")),
        (("replay", *WORDS_2, "--report", "mine.html"), ("mine.html", "exists", "--force")),
        (
            ("replay", *WORDS_2, "--report", "s.html", "--store", "s.html"),
            ("s.html", "--report", "--store", "two files"),
        ),
        (("replay", *WORDS_2, "--report-families", "5"), ("--report-families 5", "--report FILE.html")),
        (
            ("replay", *WORDS_2, "--report", "p.html", "--report-margin", "x"),
            ("--report-margin", "'x'", "not a number"),
        ),
        (("compare", "--labels", "sure.jsonl", "--report", "page.json"), ("page.json", ".html")),
        (("compare", "--labels", "sure.jsonl", "--report", "p.html", "-o", "p.html"), ("p.html", "two files")),
        (("compare", "--labels", "sure.jsonl", "--report", "mine.html"), ("mine.html", "exists", "--force")),
        (("audit", *WORDS_2, "--report", "page"), ("page ", ".html")),
        (("audit", *WORDS_2, "--report", "mine.html"), ("mine.html", "exists", "--force")),
        (("audit", *WORDS_2, "--report-pairs", "3"), ("--report-pairs 3", "--report FILE.html")),
    ],
)
def test_reports_that_cannot_be_written_are_refused_by_every_command(
    flow: Path, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    Path("mine.html").write_text("mine")
    command, *options = arguments
    assert says(refused(command, "flow.jsonl", *options), *parts)
    assert Path("mine.html").read_text() == "mine"
    assert not list(Path().glob("*.partial*"))
