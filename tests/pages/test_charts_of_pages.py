"""The charts of pages in a real browser: axes that can be read, percentages that are what they say, none empty."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from browser import draw, opened
from commands import neardup, write_lines

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

WORDS = [f"word{at}" for at in range(400)]
#: How a label of an axis of whole numbers may look, and one of any other axis.
WHOLE = re.compile(r"\d{1,3}(,\d{3})*")
READABLE = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?[kM%]?|\d\d:\d\d(:\d\d)?|[A-Z][a-z]{2}( \d\d)?|\d{4}|[A-Za-z0-9 ]{3,}")


def told(at: int) -> str:
    return " ".join(random.Random(at).sample(WORDS, 30))


def flow(texts: list[str], minutes: int) -> list[dict[str, Any]]:
    """Items, so many minutes apart."""
    return [
        {
            "id": f"d{at}",
            "text": text,
            "time": f"2024-01-{1 + at * minutes // 1440:02}T{at * minutes // 60 % 24:02}:{at * minutes % 60:02}:00Z",
        }
        for at, text in enumerate(texts)
    ]


def axes_of(path: Path) -> dict[str, list[list[str]]]:
    """The labels of each axis that are not blank, by the charts of a page; charts that are not drawn have none."""
    with opened(path) as page:
        draw(page)
        found: dict[str, list[list[str]]] = page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll(".chart")].map((chart) => [chart.id,
            [...chart.querySelectorAll(".role-axis-label")].map((axis) =>
            [...axis.querySelectorAll("text")].map((one) => one.textContent).filter(Boolean))]))"""
        )
    return found


def check(axes: dict[str, list[list[str]]]) -> None:
    """Check that no axis says a number twice, or as nobody writes it."""
    for name, labels in axes.items():
        for axis in labels:
            numbers = [label for label in axis if ":" not in label]
            assert len(set(numbers)) == len(numbers), (name, axis)
            assert all(READABLE.fullmatch(label) for label in axis), (name, axis)
            # A thousand is one of all numbers of an axis, or of none: 0.2k is no count.
            assert not [label for label in axis if re.fullmatch(r"0(\.\d)?k", label)], (name, axis)


def text_of(path: Path) -> str:
    with opened(path) as page:
        return str(page.inner_text("main"))


def test_axes_of_a_replay_with_hundreds_of_duplicates(tmp_path: Path) -> None:
    texts = [told(at // 8) for at in range(1800)]
    corpus, page = write_lines(tmp_path / "corpus.jsonl", flow(texts, 2)), tmp_path / "page.html"
    neardup("replay", corpus, "--time-column", "time", "--report", page)
    axes = axes_of(page)
    check(axes)
    assert {"lag", "thresholds", "memory"} <= set(axes)
    counts = [*axes["lag"][0], *axes["thresholds"][1]]
    assert all(WHOLE.fullmatch(label) for label in counts)
    assert "1,000" in axes["lag"][0]
    with opened(page) as view:
        view.locator("#lag").scroll_into_view_if_needed()
        view.wait_for_selector("#lag svg.marks")
        shares = view.locator("#lag svg .mark-text.role-mark text").all_text_contents()
    # Percentages on bars are shares of all, not added up.
    assert 95 <= sum(int(share.removesuffix("%")) for share in shares) <= 105


@pytest.mark.parametrize("command", ["dedup", "replay"])
def test_a_run_that_drops_nothing_draws_no_empty_chart(command: str, tmp_path: Path) -> None:
    corpus, page = write_lines(tmp_path / "corpus.jsonl", flow([told(0), told(1)], 60)), tmp_path / "page.html"
    more = ("--time-column", "time") if command == "replay" else ("-o", tmp_path / "kept.jsonl")
    neardup(command, corpus, *more, "--report", page)
    axes = axes_of(page)
    check(axes)
    assert "thresholds" not in axes
    assert "Nothing to show" in text_of(page)


def test_a_comparison_of_recipes_that_find_nothing(tmp_path: Path) -> None:
    texts = ["a rose is red", "the harbour board voted", "two ships left", "one more text"]
    corpus = write_lines(tmp_path / "corpus.jsonl", [{"id": f"d{at}", "text": text} for at, text in enumerate(texts)])
    labels = tmp_path / "labels.csv"
    labels.write_text("id1,id2,label\nd0,d1,1\nd2,d3,0\n", "utf-8")
    page = tmp_path / "page.html"
    neardup("compare", corpus, "--labels", labels, "--recipes", "default,jaccard", "--report", page)
    axes = axes_of(page)
    check(axes)
    assert "recall" not in axes
    assert "Nothing to show" in text_of(page)
