"""The page of a replay."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from browser import draw, opened

from neardup.pages.report import Report
from neardup.recipe import load_recipe
from neardup.stream.replay import Hour, ReplaySettings, ReplayTotals
from neardup.stream.replay_report import page_content, replay_page

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def content(hours: int = 3, *, window: str = "2h", **changes: Any) -> dict[str, Any]:
    settings = ReplaySettings(load_recipe("ddd").changed(name=HOSTILE), window).as_dict() | {
        "inputs": [HOSTILE],
        "batch": 1,
    }
    told = [Hour(400_000 + 5 * at, 10, 8, 2, 30, 4000 * at, 120.0 * at, 900.0) for at in range(hours)]
    totals = ReplayTotals(30, 1, 5, first=0, last=10**15, cpu=10**6, wall=2 * 10**6)
    made = page_content(settings | changes, told, totals.as_dict(10))
    return made if hours else made | {"totals": ReplayTotals().as_dict(10)}


#: What arrived is another matter, in tests/reporting.
REPORT = Report(title="Replayed", documents=0, kept=0)


@pytest.mark.parametrize("width", [1280, 360] if os.environ.get("NEARDUP_LONG") else [360])
def test_a_page_in_a_browser(width: int, tmp_path: Path) -> None:
    path = tmp_path / "replay.html"
    path.write_text(replay_page(content(40), REPORT), "utf-8")
    with opened(path, width=width) as page:
        draw(page)
        assert page.locator(".chart svg.marks").count() == page.locator("figure details table").count() == 2
        assert page.title() == "Replayed - neardup"
        assert HOSTILE in page.locator("#made").text_content()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
