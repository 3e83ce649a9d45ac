"""``--report`` of every command: what a page says, and what is refused before any work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from classifiers import make_classifier
from commands import FOX, ROSE, RULES, names_in, neardup, refused, write_lines
from page_markup import Markup
from sentences import says

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
    corpus, page, explored = (tmp_path / name for name in ("corpus.jsonl", "page.html", "explored.json"))
    write_lines(corpus, rows_of(TEXTS))
    done = neardup("dedup", corpus, *RULES, "--dry-run", "--report", page, "--json")
    found = json.loads(done.stdout)
    assert (found["dropped"], found["undecidable"]) == (5, 5)
    assert (found["exact_copies"], found["equal_content"]) == (3, 4)
    assert re.search(r"exact copies +3,", done.stderr)
    assert re.search(r"little text +5 documents with no features", done.stderr)
    assert "little text5 with too little" in text_of_page(page)
    assert "undecidable" not in done.stderr + text_of_page(page)
    assert re.search(r"<th [^>]*>exact copy<small>[^<]*</small></th><td>3<", page.read_text("utf-8"))
    result = nd.dedup(TEXTS, features="words:3", threshold=0.8)
    assert re.search(r"exact copy</th><td [^>]*>3</td>", result._repr_html_() or "")
    neardup("explore", corpus, "-o", explored)
    assert json.loads(explored.read_text("utf-8"))["profile"]["copies"]["copies"] == 3


def test_a_document_inside_another_is_not_called_equal(tmp_path: Path) -> None:
    texts = [FOX + " " + ROSE, FOX, (FOX + " " + ROSE).upper(), FOX]
    corpus, page, flow = (tmp_path / name for name in ("corpus.jsonl", "page.html", "flow.html"))
    write_lines(corpus, rows_of(texts))
    found = json.loads(neardup("dedup", corpus, "--dry-run", *INSIDE, "--report", page, "--json").stdout)
    assert (found["dropped"], found["exact_copies"], found["equal_content"]) == (3, 1, 2)
    neardup("replay", corpus, *INSIDE, "--time-column", "time", "--report", flow)
    for text in (text_of_page(page), text_of_page(flow)):
        assert "all equal" not in text
        assert "equal in all" not in text
        assert "wholly contained" in text
        assert "1.0000 of d0" in text
    # What is a copy of another dropped one is no copy of its keeper.
    assert text_of_page(page).count("copy of a dropped one") == 1


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        (("--report-margin", "0.5", "--title-column", "date"), ("from 0.3 to 1", '<strong><bdi dir="auto">2024-01-03')),
        (
            ("--report-margin", "none", "--time-column", "score"),
            ("from 0.8 to 1", "were not searched", '<span class="dim">3<'),
        ),
        (("--report-rows", "1", "--report-families", "0"), ("1 of 2 are listed.", "0 of 1 families are shown")),
    ],
)
def test_options_set_the_margin_and_the_length_of_a_report(
    options: tuple[str, ...], sentences: tuple[str, ...], corpus: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    neardup("dedup", corpus, *RULES, "--dry-run", "--report", page, *options)
    assert all(sentence in page.read_text("utf-8") for sentence in sentences)


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
    return write_lines(tmp_path / "flow.jsonl", ROWS)


def test_the_page_of_a_replay_into_a_store_names_earlier_items(flow: Path) -> None:
    neardup("replay", "flow.jsonl", *COARSE, "--store", "news.db")
    later = [row | {"id": f"{row['id']}-later", "time": row["time"].replace("T0", "T1")} for row in ROWS]
    write_lines(Path("later.jsonl"), later)
    command = "replay", "later.jsonl", *COARSE, "--store", "news.db", "--report", "page.html"
    neardup(*command)
    text = text_of_page(Path("page.html"))
    assert says(text, "What a flow would have stopped", "fox-again", "Time by hour", " ".join(command))
    assert says(text, "This item was in the store before the corpus", "Only stricter thresholds are shown")


def test_the_page_of_a_replay_shows_what_a_classifier_measured(flow: Path) -> None:
    make_classifier().save(Path("d.neardup"))
    neardup("replay", "flow.jsonl", "--classifier", "d.neardup", "--report", "page.html")
    assert says(text_of_page(Path("page.html")), "probability", "jaccard(words:1) +")


def test_the_page_of_an_audit_shows_wrong_and_unsure_pairs(flow: Path) -> None:
    options: tuple[str, ...] = ("audit", "flow.jsonl", *COARSE, "--candidate-rule", "0.2")
    options += ("--labels", "labels.jsonl", "--report", "page.html")
    neardup(*options)
    text = text_of_page(Path("page.html"))
    assert says(text, "Returned, but judged different (1)", "Judged the same, but not returned (1)", "Unsure (1)")
    assert "--candidate-rule 0.2 --labels labels.jsonl --report page.html" in text
    neardup(*options, "--force", "--report-pairs", "0")
    assert "0 of 1 are shown" in text_of_page(Path("page.html"))


def test_a_report_that_cannot_be_written_leaves_no_output(
    tmp_path: Path, full_disk: Callable[[int | None], None]
) -> None:
    path = write_lines(tmp_path / "in.jsonl", [{"id": n, "text": f"{FOX} {n}"} for n in range(9)])
    before = names_in(tmp_path)
    outputs = ("-o", tmp_path / "k.jsonl", "--duplicates", tmp_path / "d.csv", "--summary", tmp_path / "s.json")
    # A page has hundreds of kilobytes, and the others few.
    full_disk(20_000)
    message = refused("dedup", path, *outputs, "--report", tmp_path / "page.html")
    full_disk(None)
    assert says(message, "page.html cannot be written", "the disk is full")
    assert names_in(tmp_path) == before
    neardup("dedup", path, *outputs, "--report", tmp_path / "page.html")
    assert len(names_in(tmp_path)) == len(before) + 4
