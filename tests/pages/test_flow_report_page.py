"""The pages of a replay and of a watcher in a real browser, with items that would do harm if they could."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import browser
import pytest
from markup import Markup, asks_for_nothing
from saying import says
from typer.testing import CliRunner

from neardup.cli.app import app

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

EVIL = '<script>window.harm=1</script><img src=x onerror="window.harm=2">"\'></style></script><!--'
BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"
ARABIC = "افتتح رئيس الوزراء الجسر الجديد فوق النهر صباح يوم الثلاثاء بحضور عدد كبير من السكان والمسؤولين"
CHINESE = "東京都は火曜日、新しい図書館を開いた。蔵書は四十万冊で、誰でも無料で利用できる。"
TEXTS = {
    "first": BASE,
    "again": BASE,
    "capitals": BASE.upper() + "!",
    "wednesday": BASE.replace("tuesday", "wednesday"),
    "dearer": BASE.replace("forty", "fifty").replace("tuesday", "friday"),
    "half": BASE.replace("forty million crowns this year", "who knows how many of them"),
    EVIL: f"{EVIL} {BASE} {EVIL}",
    "evil-2": f"{EVIL} {BASE} once more {EVIL} \x1b[31m\u202e",
    "arabic": ARABIC,
    "arabic-2": ARABIC.replace("الثلاثاء", "الأربعاء"),
    "chinese": CHINESE,
    "chinese-2": CHINESE.replace("火", "水"),
    "emoji": "🦊" * 400,
    "long": "w" * 3000,
    "empty": "",
    "one": "one",
}
RULES = ("--features", "qgrams:4", "--threshold", "0.7", "--window", "24h")


def neardup(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="neardup")
    assert result.exit_code == 0, result.output
    return result.stderr


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a replay, one item an hour."""
    folder = tmp_path_factory.mktemp("replay")
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    rows = [
        {"id": name, "text": text, "title": f"Title of {name}", "time": (begin + timedelta(hours=at)).isoformat()}
        for at, (name, text) in enumerate(TEXTS.items())
    ]
    corpus = folder / "flow <i>.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows) + "{broken\n", "utf-8")
    neardup("replay", corpus, *RULES, "--report", folder / "page.html", "-o", folder / "verdicts.jsonl")
    return folder / "page.html"


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a watcher."""
    folder = tmp_path_factory.mktemp("watch")
    inbox = folder / "in"
    (inbox / "wire").mkdir(parents=True)
    for at, (name, text) in enumerate(TEXTS.items()):
        file = inbox / ("wire" if at % 2 else ".") / f"{at:02}.json"
        file.write_text(json.dumps({"id": name, "title": f"Title of {name}", "text": text}))
        os.utime(file, (at, at))
    (inbox / "broken.json").write_text('{"id": "cut')
    options = (
        "--store",
        folder / "news.db",
        "--originals",
        folder / "out",
        "--settle",
        "0",
        "--patience",
        "0",
        "--once",
    )
    neardup("watch", inbox, *RULES, *options)
    neardup("report", folder / "news.db", "-o", folder / "page.html")
    return folder / "page.html"


@pytest.fixture(scope="module", params=["replayed", "watched"])
def page(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def put(view: Any, value: int) -> None:
    view.evaluate(
        "value => { const one = document.getElementById('threshold'); one.value = value;"
        "one.dispatchEvent(new Event('input')); }",
        value,
    )


def test_the_page_opens_alone_and_items_stay_text(page: Path) -> None:
    asks_for_nothing(Markup(page.read_text("utf-8")))
    with browser.opened(page) as view:
        for chart in view.locator(".chart").all():
            chart.scroll_into_view_if_needed()
            chart.locator("svg.marks").wait_for()
        assert view.evaluate("window.harm") is None
        assert view.locator("img").count() == 0
        for details in view.locator("main details").all():
            details.evaluate("one => one.open = true")
        text = view.inner_text("main")
        for words in (EVIL, "wednesday", "الأربعاء", "水曜日", "Title of first", "page.html", 'features = "qgrams:4"'):
            assert words in text
        assert view.locator('[dir="rtl"]').count() > 0
        assert {"tuesday", "wednesday"} <= set(view.locator(".members del, .members ins").all_inner_texts())
        tiles = dict(
            zip(view.locator(".tiles dt").all_inner_texts(), view.locator(".value").all_inner_texts(), strict=True)
        )
        assert tiles["read"] == "17"
        assert int(tiles["passed"]) + int(tiles["stopped"]) == 16


@pytest.mark.parametrize("options", [{"width": 360, "dark": True}, {"script": False}])
def test_on_a_phone_in_the_dark_and_without_scripts(page: Path, options: dict[str, Any]) -> None:
    with browser.opened(page, **options) as view:
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        view.locator(".family summary").first.click()
        assert view.locator(".members li.kept").first.is_visible()


def test_search_finds_families_and_duplicates(page: Path) -> None:
    with browser.opened(page) as view:
        view.fill("#family-list-search", "WEDNESDAY")
        view.locator("#families output:not(:empty)").wait_for()
        assert view.locator("#families output").inner_text() == "1 of 4 families shown"
        view.fill("#dropped-list-search", "arabic-2")
        view.locator("#dropped output:not(:empty)").wait_for()
        assert view.locator("#dropped tbody tr:visible").count() == 1


def test_the_slider_of_a_replay_is_a_replay_at_each_threshold(replayed: Path) -> None:
    corpus = next(replayed.parent.glob("flow*.jsonl"))
    with browser.opened(replayed) as view:
        sweep = view.evaluate("window.neardup.data.sweep")
        said = view.locator("#threshold-said")
        assert sweep["thresholds"][0] == 0.5
        assert sweep["thresholds"][sweep["own"]] == 0.7
        assert says(said.inner_text(), "jaccard ≥ 0.7", "as in this flow", "10 passed, 6 duplicates")
        assert "exactly as separate runs would give" in view.inner_text("#threshold-section")
        for threshold in (0.5, 0.6, 0.9, 1.0):
            put(view, sweep["thresholds"].index(threshold))
            again = neardup("replay", corpus, *RULES, "--threshold", threshold)
            duplicates = int(again.split(" originals, ")[1].split(" duplicate")[0])
            assert f"{16 - duplicates} passed, {duplicates} duplicates" in said.inner_text()
            moved = view.locator(".members > li.otherwise .about .fate").all_text_contents()
            assert all(word in (f"passes at {threshold:g}", f"is stopped at {threshold:g}") for word in moved)
        view.click("#threshold-back")
        assert "as in this flow" in said.inner_text()
        assert view.locator("text=Nearly a match").count() == 1


def test_the_slider_of_a_watcher_only_rises_and_says_what_it_means(watched: Path) -> None:
    with browser.opened(watched) as view:
        sweep = view.evaluate("window.neardup.data.sweep")
        assert (sweep["own"], sweep["thresholds"][0]) == (0, 0.7)
        put(view, len(sweep["thresholds"]) - 1)
        assert "16 passed, 0 duplicates (-5)" in view.inner_text("#threshold-said")
        meaning = view.inner_text("#threshold-section")
        for words in ("pairs of this flow", "matched nothing", "replay it to know"):
            assert words in meaning
        for words in ("below the threshold", "Nothing is known"):
            assert words in view.inner_text("#borderline")
        for words in ("rejected", "ends in the middle"):
            assert words in view.inner_text("#reasons")
        assert "wire" in (view.text_content("#similarity-section") or "")
