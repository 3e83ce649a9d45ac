"""``--report`` of every command: what a page says, and what is refused before any work."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import FOX, ROSE, RULES, names_in, neardup, read_lines, write_lines
from page_markup import Markup

import neardup as nd

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")


#: Empty texts match nothing, so those after the first are no copies that were dropped.
TEXTS = [FOX, "", FOX, ROSE, "", "...", "...", FOX.upper() + "!", FOX + " today", ROSE, "", FOX.upper() + "!"]


INSIDE = ("--features", "words:1", "--measure", "containment", "--threshold", "0.9")


def rows_of(texts: list[str]) -> list[dict[str, str]]:
    return [{"id": f"d{at}", "text": text, "time": f"2024-01-01T00:{at:02}:00Z"} for at, text in enumerate(texts)]


def text_of_page(page: Path) -> str:
    """The text of a page, in one line."""
    return " ".join(Markup(page.read_text("utf-8")).text.split())


def test_copies_are_counted_alike_everywhere(tmp_path: Path) -> None:
    corpus = write_lines(tmp_path / "corpus.jsonl", rows_of(TEXTS))
    page = tmp_path / "page.html"
    done = neardup("dedup", corpus, *RULES, "--dry-run", "--report", page, "--json")
    assert names_in(tmp_path) == {"corpus.jsonl", "page.html"}
    found = json.loads(done.stdout)
    assert (found["dropped"], found["undecidable"]) == (5, 5)
    assert (found["exact_copies"], found["equal_content"]) == (3, 4)
    assert re.search(r"exact copies +3,", done.stderr)
    assert re.search(r"little text +5 documents with no features", done.stderr)
    assert "little text5 with too little" in text_of_page(page)
    assert "undecidable" not in done.stderr + text_of_page(page)
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
    page = tmp_path / "page.html"
    found = json.loads(neardup("dedup", corpus, "--dry-run", *INSIDE, "--report", page, "--json").stdout)
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
    reasons = r"<th [^>]*>(exact copy|equal features|near-duplicate)<small>[^<]*</small></th><td>(\d+)<"
    counts = dict(re.findall(reasons, page.read_text("utf-8")))
    assert counts == {"exact copy": "1", "equal features": "1", "near-duplicate": "1"}
    assert "wholly contained" in text_of_page(page)
    assert "1.0000 of d0" in text_of_page(page)
    assert "all equal" not in text_of_page(page)


def test_options_set_the_margin_and_the_length_of_a_report(corpus: Path, tmp_path: Path) -> None:
    for options, sentences in {
        (): ("thresholds from 0.6 to 1",),
        ("--report-margin", "0.5"): ("thresholds from 0.3 to 1",),
        ("--report-margin", "none"): ("thresholds from 0.8 to 1", "were not searched"),
        ("--report-rows", "1", "--report-families", "0"): ("1 of 2 are listed.", "0 of 1 families are shown"),
        ("--title-column", "date"): ('<strong><bdi dir="auto">2024-01-03',),
    }.items():
        page = tmp_path / "page.html"
        neardup("dedup", corpus, *RULES, "--dry-run", "--report", page, "--force", *options)
        assert all(sentence in page.read_text("utf-8") for sentence in sentences), options


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


COARSE = ("--features", "words:2", "--threshold", "0.7")


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "labels.jsonl", LABELS)
    write_lines(tmp_path / "sure.jsonl", LABELS[:3])
    return write_lines(tmp_path / "flow.jsonl", ROWS)


def test_the_page_of_a_replay_has_the_report_and_the_table(flow: Path) -> None:
    result = neardup("replay", "flow.jsonl", *COARSE, "--report", "page.html", "-o", "v.jsonl")
    assert "report        page.html" in result.stderr
    text = text_of_page(Path("page.html"))
    for words in ("What a flow would have stopped", "fox-again", "Time by hour", "exactly as separate runs"):
        assert words in text
    assert " ".join(("replay flow.jsonl", *COARSE, "--report", "page.html")) in text
    assert [row["kind"] for row in read_lines(Path("v.jsonl"))] == ["original", "near", "original", "near", "original"]


def test_the_page_of_a_replay_into_a_store_names_earlier_items(flow: Path) -> None:
    neardup("replay", "flow.jsonl", *COARSE, "--store", "news.db")
    later = [row | {"id": f"{row['id']}-later", "time": row["time"].replace("T0", "T1")} for row in ROWS]
    write_lines(Path("later.jsonl"), later)
    neardup("replay", "later.jsonl", *COARSE, "--store", "news.db", "--report", "page.html")
    text = text_of_page(Path("page.html"))
    assert "This item was in the store before the corpus" in text
    assert "Only stricter thresholds are shown" in text


def test_the_page_of_a_replay_shows_what_a_classifier_measured(flow: Path) -> None:
    from simple_classifiers import saved

    saved(Path("d.neardup"))
    neardup("replay", "flow.jsonl", "--classifier", "d.neardup", "--report", "page.html")
    text = text_of_page(Path("page.html"))
    assert "probability ≥" in text or "probability" in text
    assert "jaccard(words:2) +" in text


def test_the_page_of_an_audit_shows_wrong_and_unsure_pairs(flow: Path) -> None:
    options: tuple[str, ...] = ("audit", "flow.jsonl", *COARSE, "--candidate-rule", "0.2")
    options += ("--labels", "labels.jsonl", "--report", "page.html")
    result = neardup(*options)
    assert "neardup: written: page.html" in result.stderr
    text = text_of_page(Path("page.html"))
    for words in ("Returned, but judged different (1)", "Judged the same, but not returned (1)", "Unsure (1)"):
        assert words in text
    assert "--candidate-rule 0.2 --labels labels.jsonl --report page.html" in text
    neardup(*options, "--force", "--report-pairs", "0")
    assert "0 of 1 are shown" in text_of_page(Path("page.html"))
