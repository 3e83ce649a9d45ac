"""The page of a replay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from markup import Markup, asks_for_nothing

from neardup.pages.report import Report
from neardup.recipe import load_recipe
from neardup.stream.replay import Hour, ReplaySettings, Totals
from neardup.stream.replay_report import page_content, replay_page

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def content(hours: int = 3, *, window: str = "2h", **changes: Any) -> dict[str, Any]:
    settings = ReplaySettings(load_recipe("ddd").changed(name=HOSTILE), window).as_dict() | {
        "inputs": [HOSTILE],
        "batch": 1,
    }
    told = [Hour(400_000 + 5 * at, 10, 8, 2, 30, 4000 * at, 120.0 * at, 900.0) for at in range(hours)]
    totals = Totals(30, 1, 5, first=0, last=10**15, cpu=10**6, wall=2 * 10**6)
    made = page_content(settings | changes, told, totals.as_dict(10))
    return made if hours else made | {"totals": Totals().as_dict(10)}


#: What arrived is another matter, in tests/reporting.
REPORT = Report(title="Replayed", documents=0, kept=0)


def test_a_page_asks_the_network_for_nothing() -> None:
    page = Markup(replay_page(content(), REPORT))
    asks_for_nothing(page)
    assert page.text.count(HOSTILE) == 2


def values_of(chart: dict[str, Any]) -> list[list[dict[str, Any]]]:
    return [layer["data"]["values"] for layer in chart["layer"] if "data" in layer] + [
        data for data in [chart.get("data", {}).get("values")] if data
    ]


def test_every_curve() -> None:
    page = Markup(replay_page(content(), REPORT))
    charts = page.charts
    assert set(charts) == {"hour", "held", "memory"}
    assert {a.get("id") for _, a in page.elements if a.get("class") == "chart"} == set(charts)
    hours = [row for values in values_of(charts["memory"]) for row in values if "mb" in row]
    assert [row["mb"] for row in hours[:3]] == [0.0, 0.004, 0.008]
    assert "30,000 times t_check" in page.text


@pytest.mark.parametrize(
    ("window", "full"),
    [
        ("90m", "2015-08-19T17:30Z"),
        ("7d", None),
        ("8000 documents", None),
    ],
)
def test_where_the_window_is_full(window: str, full: str | None) -> None:
    page = Markup(replay_page(content(window=window), REPORT))
    rules = [values for values in values_of(page.charts["memory"]) if "mb" not in values[0]]
    assert rules == ([[{"hour": full}]] if full else [])
    assert ("dashed: the window is full" in page.text) == (full is not None)


@pytest.mark.parametrize("width", [1280, 360] if os.environ.get("NEARDUP_LONG") else [360])
def test_a_page_in_a_browser(width: int, tmp_path: Path) -> None:
    path = tmp_path / "replay.html"
    path.write_text(replay_page(content(40), REPORT), "utf-8")
    with opened(path, width=width) as page:
        for chart in page.locator(".chart").all():
            chart.scroll_into_view_if_needed()
            chart.locator("svg.marks").wait_for()
        assert page.locator(".chart svg.marks").count() == page.locator("figure details table").count() == 3
        assert page.title() == "Replayed - neardup"
        assert HOSTILE in page.locator("#made").text_content()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hours_are_thinned_where_they_are_many() -> None:
    page = Markup(replay_page(content(1300), REPORT))
    hours = [row["hour"] for values in values_of(page.charts["hour"]) for row in values]
    assert len(hours) == 434
    assert hours[-1] == Hour(400_000 + 5 * 1299, 0, 0, 0, 0, 0, 0.0, 0.0).begins
    assert page.text.count("very third hour") == 4
