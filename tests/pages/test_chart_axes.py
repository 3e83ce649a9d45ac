"""The axes of charts in a browser: readable labels, no number twice, and no chart without figures."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser import draw, opened
from commands import neardup, write_lines

pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")

WORDS = [f"word{at}" for at in range(200)]
WHOLE = re.compile(r"\d{1,3}(,\d{3})*")
READABLE = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?[kM%]?|\d\d:\d\d(:\d\d)?|[A-Z][a-z]{2}( \d\d)?|\d{4}|[A-Za-z0-9 ]{3,}")


def text(seed: int) -> str:
    return " ".join(random.Random(seed).sample(WORDS, 12))


def corpus(folder: Path, texts: list[str], minutes: int) -> Path:
    """Write documents that are dated this many minutes apart."""
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        {"id": f"d{at}", "text": text, "time": (begin + timedelta(minutes=at * minutes)).isoformat()}
        for at, text in enumerate(texts)
    ]
    return write_lines(folder / "corpus.jsonl", rows)


def axes_of(path: Path) -> tuple[dict[str, list[list[str]]], Any, str]:
    """Return the labels of each axis of each drawn chart, the labels of bars of the lags, and the text of a page."""
    with opened(path) as page:
        draw(page)
        axes: dict[str, list[list[str]]] = page.evaluate(
            """() => Object.fromEntries([...document.querySelectorAll(".chart")].map((chart) => [chart.id,
            [...chart.querySelectorAll(".role-axis-label")].map((axis) =>
            [...axis.querySelectorAll("text")].map((one) => one.textContent).filter(Boolean))]))"""
        )
        shares = page.locator("#lag svg .mark-text.role-mark text").all_text_contents()
        content = str(page.inner_text("main"))
    for name, labels in axes.items():
        for axis in labels:
            numbers = [label for label in axis if ":" not in label]
            assert len(set(numbers)) == len(numbers), (name, axis)
            assert all(READABLE.fullmatch(label) for label in axis), (name, axis)
            # Either all thousands of an axis are written with k or none: 0.2k is no count.
            assert not [label for label in axis if re.fullmatch(r"0(\.\d)?k", label)], (name, axis)
    return axes, shares, content


def test_axes_of_a_large_replay_are_readable(tmp_path: Path) -> None:
    path = corpus(tmp_path, [text(at // 5) for at in range(1300)], 2)
    neardup("replay", path, "--window", "1h", "--time-column", "time", "--report", tmp_path / "page.html")
    axes, shares, _ = axes_of(tmp_path / "page.html")
    assert {"lag", "thresholds", "memory"} <= set(axes)
    assert all(WHOLE.fullmatch(label) for label in (*axes["lag"][0], *axes["thresholds"][1]))
    assert "1,000" in axes["lag"][0]
    # Percentages on bars are shares of all, not added up.
    assert 95 <= sum(int(share.removesuffix("%")) for share in shares) <= 105


LABELS = "id1,id2,label\nd0,d1,1\nd2,d3,0\n"


@pytest.mark.parametrize(
    ("command", "options", "missing"),
    [
        ("dedup", ("--dry-run",), "thresholds"),
        ("replay", ("--time-column", "time"), "thresholds"),
        ("compare", ("--labels", "labels.csv", "--recipes", "default,jaccard"), "recall"),
    ],
)
def test_a_result_without_matches_draws_no_empty_chart(
    command: str, options: tuple[str, ...], missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text(LABELS, "utf-8")
    neardup(command, corpus(tmp_path, [text(at) for at in range(4)], 60), *options, "--report", "page.html")
    axes, _, content = axes_of(tmp_path / "page.html")
    assert missing not in axes
    assert "Nothing to show" in content
