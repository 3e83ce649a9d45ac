"""The reports of a run, a replay and a watcher in a browser, with hostile documents."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import browser
import pytest
from browser import draw, opened
from commands import neardup
from page_markup import Markup, check_loads_nothing
from sentences import says

import neardup as nd

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")
expect = sync_api.expect

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
CHOICES: dict[str, Any] = {"features": "qgrams:4", "threshold": 0.7}
RULES = ("--features", "qgrams:4", "--threshold", "0.7")


def rows() -> list[dict[str, str]]:
    """Documents with titles, one an hour."""
    begin = datetime(2024, 3, 1, tzinfo=UTC)
    return [
        {"id": name, "text": text, "title": f"Title of {name}", "time": (begin + timedelta(hours=at)).isoformat()}
        for at, (name, text) in enumerate(TEXTS.items())
    ]


def result_of() -> Any:
    return nd.dedup([row["text"] for row in rows()], margin=0.3, **CHOICES)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("pages <i>")
    lines = "".join(json.dumps(row) + "\n" for row in rows())
    (made / "flow.jsonl").write_text(lines + "{broken\n", "utf-8")
    return made


@pytest.fixture(scope="module")
def run(folder: Path) -> Path:
    neardup(
        "dedup", folder / "flow.jsonl", *RULES, "--dry-run", "--report", folder / "run.html", "--report-margin", "0.3"
    )
    return folder / "run.html"


@pytest.fixture(scope="module")
def replayed(folder: Path) -> Path:
    neardup("replay", folder / "flow.jsonl", *RULES, "--window", "24h", "--report", folder / "replay.html")
    return folder / "replay.html"


@pytest.fixture(scope="module")
def watched(folder: Path) -> Path:
    inbox = folder / "in"
    (inbox / "wire").mkdir(parents=True)
    for at, row in enumerate(rows()):
        file = inbox / ("wire" if at % 2 else ".") / f"{at:02}.json"
        file.write_text(json.dumps({name: row[name] for name in ("id", "title", "text")}))
        os.utime(file, (at, at))
    (inbox / "broken.json").write_text('{"id": "cut')
    places = ("--store", folder / "news.db", "--originals", folder / "out")
    neardup("watch", inbox, *RULES, "--window", "24h", *places, "--settle", "0", "--patience", "0", "--once")
    neardup("report", folder / "news.db", "-o", folder / "watch.html")
    return folder / "watch.html"


def open_all(page: Any) -> None:
    page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")


def put(view: Any, value: int) -> None:
    view.evaluate(
        "value => { const one = document.getElementById('threshold'); one.value = value;"
        "one.dispatchEvent(new Event('input')); }",
        value,
    )


@pytest.mark.parametrize("kind", ["run", "replayed", "watched"])
def test_a_page_is_drawn_fits_its_window_and_escapes_texts(kind: str, request: pytest.FixtureRequest) -> None:
    path: Path = request.getfixturevalue(kind)
    check_loads_nothing(Markup(path.read_text("utf-8")))
    for width, dark in ((1280, False), (360, True)) if kind == "run" else ((360, True),):
        with opened(path, width=width, dark=dark) as page:
            draw(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            open_all(page)
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
            assert all(part < 64 for part in back) == dark
            label = page.locator("#similarity svg .role-axis-label text").first.evaluate("e => e.getAttribute('fill')")
            assert label == ("#a1a9b4" if dark else "#5a626d")
            assert page.evaluate("window.harm") is None
            assert page.locator("main img, main script").count() == 0
            text = page.inner_text("main")
            for words in (EVIL, "الأربعاء", "水曜日", "Title of first", 'features = "qgrams:4"'):
                assert words in text
            assert page.locator('[dir="rtl"]').first.evaluate("e => getComputedStyle(e).direction") == "rtl"
            assert {"tuesday", "wednesday"} <= set(page.locator(".members del, .members ins").all_inner_texts())
            tiles = page.locator(".tiles dt").all_inner_texts()
            values = dict(zip(tiles, page.locator(".value").all_inner_texts(), strict=True))
            assert values["read"] == "17"


def test_the_policy_blocks_foreign_scripts_styles_and_requests(run: Path) -> None:
    wrong: list[str] = []
    with opened(run, wrong=wrong) as page:
        title = page.title()
        page.evaluate("window.refused = 0; addEventListener('securitypolicyviolation', () => { refused += 1; })")
        attempts = """() => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'taken'";
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          const image = document.createElement("img");
          image.src = "http://127.0.0.1:9/image";
          document.body.append(script, style, image);
          return fetch("http://127.0.0.1:9/fetch").then(() => "reached", (error) => error.name);
        }"""
        assert page.evaluate(attempts) == "TypeError"
        page.wait_for_function("() => refused >= 4")
        assert page.title() == title
        expect(page.locator("h1")).to_be_visible()
    assert sum("Content Security Policy" in message for message in wrong) >= 4


def test_search_and_links_find_families_and_documents(run: Path) -> None:
    with opened(run) as page:
        families, said = page.locator("#family-list .family:visible"), page.locator("#families output")
        every = families.count()
        page.fill("#family-list-search", "WEDNESDAY harbour")
        expect(said).to_have_text(f"1 of {every} families shown")
        expect(families).to_have_count(1)
        # A link to what is hidden shows it, and opens it.
        page.locator("#dropped-list a").last.click()
        name = page.evaluate("location.hash.slice(1)")
        page.wait_for_function("name => document.getElementById(name).open", arg=name)
        page.fill("#family-list-search", "")
        expect(said).to_be_empty()
        expect(families).to_have_count(every)
        page.fill("#dropped-list-search", "arabic-2")
        expect(page.locator("#dropped-list tbody tr:visible")).to_have_count(1)
        page.fill("#dropped-list-search", "<script> nothing has this")
        expect(page.locator("#dropped-list tbody tr:visible")).to_have_count(0)


def test_the_slider_shows_the_results_at_other_thresholds(run: Path) -> None:
    result, names = result_of(), list(TEXTS)
    with opened(run) as page:
        sweep = page.evaluate("window.neardup.data.sweep")
        own, said, thresholds = (
            sweep["own_index"],
            page.locator("#threshold-said"),
            [float(one) for one in sweep["names"]],
        )
        assert thresholds[own] == 0.7
        assert f"{len(result.kept)} kept" in said.inner_text()
        page.locator("#pairs").scroll_into_view_if_needed()
        for at in (0, len(thresholds) - 1, own + 10):
            put(page, at)
            other = result.at(thresholds[at])
            assert f"{len(other.kept)} kept, {len(other.dropped)} dropped" in said.inner_text()
            assert page.get_attribute("#threshold", "aria-valuetext") == said.inner_text()
            moved = {names[place] for place in set(result.kept) ^ set(other.kept)}
            kept = {names[place] for place in other.kept}
            for one in page.locator(".members > li").all():
                name, fate = one.locator(".about > span").first.text_content(), one.locator(".about .fate")
                assert fate.evaluate("one => !one.hidden") == (name in moved)
                word = "kept" if name in kept else "dropped"
                assert name not in moved or fate.text_content() == f"{word} at {thresholds[at]:g}"
            page.wait_for_function(
                "at => Math.abs((window.neardup.views.pairs?.signal('cut') ?? -1) - at) < 1e-9",
                arg=sweep["similarities"][at],
            )
        page.locator("#threshold").focus()
        page.keyboard.press("Home")
        assert f"{thresholds[0]:g}" in said.inner_text()
        page.keyboard.press("ArrowRight")
        assert f"{thresholds[1]:g}" in said.inner_text()
        page.locator("#threshold-back").press("Enter")
        assert "as in this run" in said.inner_text()
        assert page.locator(".fate:visible").count() == 0
        assert page.evaluate("document.activeElement.id") == "threshold"


def test_the_slider_of_a_replay_equals_a_replay_at_each_threshold(replayed: Path, folder: Path) -> None:
    with opened(replayed) as view:
        sweep, said = view.evaluate("window.neardup.data.sweep"), view.locator("#threshold-said")
        assert (sweep["names"][0], sweep["names"][sweep["own_index"]]) == ("0.5", "0.7")
        assert says(said.inner_text(), "jaccard ≥ 0.7", "as in this flow", "10 passed, 6 stopped")
        for threshold in ("0.5", "0.9"):
            put(view, sweep["names"].index(threshold))
            again = neardup("replay", folder / "flow.jsonl", *RULES, "--window", "24h", "--threshold", threshold).stderr
            duplicates = int(again.split(" originals, ")[1].split(" duplicate")[0])
            assert f"{16 - duplicates} passed, {duplicates} stopped" in said.inner_text()
            moved = view.locator(".members > li.otherwise .about .fate").all_text_contents()
            assert all(word in (f"passes at {threshold}", f"is stopped at {threshold}") for word in moved)


def test_the_slider_of_a_watcher_has_only_stricter_thresholds(watched: Path) -> None:
    with opened(watched) as view:
        sweep = view.evaluate("window.neardup.data.sweep")
        assert (sweep["own_index"], sweep["names"][0]) == (0, "0.7")
        put(view, len(sweep["names"]) - 1)
        assert "16 passed, 0 stopped (-5)" in view.inner_text("#threshold-said")
        meaning = view.inner_text("#threshold-section")
        assert all(
            words in meaning for words in ("pairs of this flow", "item without a match", "neardup replay tells exactly")
        )
        assert "Pairs below the threshold are unknown" in view.inner_text("#borderline")
        assert "rejected" in view.inner_text("#reasons")


def test_charts_have_tooltips_and_can_be_saved(run: Path, tmp_path: Path) -> None:
    with opened(run, dark=True, accept_downloads=True) as page:
        draw(page)
        page.locator("#similarity .mark-rect path").first.hover()
        expect(page.locator("#vg-tooltip-element")).to_contain_text("dropped documents")
        for kind in ("svg", "png"):
            with page.expect_download() as waiting:
                page.locator(f"figure:has(#similarity) [data-save={kind}]").click()
            assert waiting.value.suggested_filename == f"similarity.{kind}"
            waiting.value.save_as(tmp_path / kind)
        assert (tmp_path / "png").read_bytes().startswith(b"\x89PNG")
        saved = (tmp_path / "svg").read_text("utf-8")
        # On slides it is drawn in dark on white.
        assert all(part in saved for part in ("Similarity of dropped documents", 'fill="white"', "#5a626d"))
        assert not page.locator("html.paper").count()


def test_keys_reach_everything_with_a_visible_focus(run: Path) -> None:
    with opened(run) as page:
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        reached: set[str] = set()
        for _ in range(150):
            page.keyboard.press("Tab")
            told = page.evaluate("""() => {
              const one = document.activeElement, style = getComputedStyle(one);
              const name = one.className || one.dataset.save || one.tagName;
              return [name, style.outlineStyle, parseFloat(style.outlineWidth)];
            }""")
            if told[0] == "BODY":
                break
            reached.add(told[0])
            assert told[1:] == ["solid", 3], told
        assert {"SUMMARY", "svg", "png", "command", "INPUT", "anchor", "scroll", "scroll tall"} <= reached
        page.locator(".family summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".members li.kept").first).to_be_visible()


def test_landmarks_and_names_for_a_screen_reader(run: Path) -> None:
    with opened(run) as page:
        draw(page)
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("navigation", name="Contents")).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        for name in ("Close calls", "Families", "Dropped documents"):
            expect(page.get_by_role("region", name=name, exact=True)).to_have_count(1)
        images = page.get_by_role("img")
        assert images.count() == page.locator("figure").count() == page.locator("figure details table").count() == 3
        assert all(image.get_attribute("aria-label") for image in images.all())
        ids = page.evaluate("[...document.querySelectorAll('main [id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        assert page.evaluate("[...document.querySelectorAll('table')].every(t => t.querySelector('th[scope=col]'))")
        assert page.evaluate("[...document.querySelectorAll('input')].every(one => one.labels.length)")


def test_the_contents_stand_beside_the_page_or_above_it_on_a_phone(run: Path) -> None:
    with opened(run, width=1400) as page:
        links = page.locator(".contents a")
        main, nav = page.locator("main").bounding_box(), page.locator(".contents").bounding_box()
        assert nav["x"] + nav["width"] < main["x"]
        links.filter(has_text="Dropped documents").click()
        expect(page.locator("#dropped h2")).to_be_in_viewport()
        expect(links.first).to_be_in_viewport()
    with opened(run, width=360) as page:
        expect(page.locator(".contents a").first).to_be_hidden()
        page.locator(".contents summary").click()
        page.locator(".contents a").filter(has_text="Families").click()
        expect(page.locator("#families h2")).to_be_in_viewport()
        expect(page.locator(".contents a").first).to_be_hidden()


def test_print_is_dark_on_white_with_open_folds(run: Path) -> None:
    with opened(run, dark=True, reduced_motion="reduce") as page:
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        expect(page.locator("#similarity svg.marks")).to_be_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function("() => Object.keys(neardup.views).length === 3")
        assert page.evaluate("document.querySelectorAll('main details:not([open]):not([data-print=no])').length") == 0
        for gone in (".contents", ".skip", ".search", ".saves", ".anchor"):
            expect(page.locator(gone).first).to_be_hidden()
        filled = "document.querySelector('#similarity .role-axis-label text').getAttribute('fill')"
        page.wait_for_function(f"() => {filled} === '#5a626d'")
        assert page.evaluate("getComputedStyle(document.querySelector('.tall')).overflowY") == "visible"
        text = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).map(Number)")
        assert all(part < 64 for part in text)
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        page.wait_for_function(f"() => {filled} === '#a1a9b4'")


def test_without_scripts_the_figures_and_texts_are_there(run: Path) -> None:
    with opened(run, script=False) as page:
        page.locator("figure:has(#similarity) summary").click()
        expect(page.locator("figure:has(#similarity) table")).to_be_visible()
        page.locator(".family summary").first.click()
        expect(page.locator(".members li.kept").first).to_be_visible()
        assert "Title of" in page.inner_text("#dropped-list")
        expect(page.locator(".search").first).to_be_hidden()
        expect(page.locator("#threshold")).to_be_hidden()


def test_errors_and_requests_of_a_page_are_found(tmp_path: Path) -> None:
    wrong = {"error": "<script>throw new Error('oh')</script>", "request": "<img src='http://127.0.0.1:9/x.png'>"}
    for kind, body in wrong.items():
        made = tmp_path / f"{kind}.html"
        made.write_text(f"<!DOCTYPE html><title>t</title>{body}", "utf-8")
        with pytest.raises(AssertionError, match=kind), opened(made) as page:
            page.wait_for_load_state("networkidle")
    assert browser.chromium() is browser.chromium()


def cell_of(shown: Any) -> str:
    """Return what a notebook makes of a value, as HTML: the richest of what it offers."""
    bundle = shown._repr_mimebundle_() if hasattr(shown, "_repr_mimebundle_") else {"text/html": shown._repr_html_()}
    bundle = bundle[0] if isinstance(bundle, tuple) else bundle
    return str(bundle.get("text/html") or bundle["image/svg+xml"])


def test_notebook_cells_are_drawn_and_load_nothing(tmp_path: Path) -> None:
    result, explored = result_of(), nd.explore(list(TEXTS.values())[:4], lengths=[1, 2])
    plot = result.plot_similarity()
    shown = {
        "": (result, explored),
        "svg .mark-rect path": (plot, plot.properties(title="mine", width=300)),
        "svg text": (nd.dedup(["a rose", "a tulip"]).plot_similarity(),),
        "svg .mark-line path": (explored.plot_similarity(),),
    }
    cells = [(drawn, cell_of(one)) for drawn, ones in shown.items() for one in ones]
    assert sum(row["count"] for row in plot.to_dict()["data"]["values"]) == len(result.dropped)
    assert "<script" not in cells[0][1]
    assert f"{len(result.kept)} kept, {len(result.dropped)} dropped" in cells[0][1]
    body = "".join(f"<div id=cell{at}>{cell}</div>" for at, (_, cell) in enumerate(cells))
    (tmp_path / "cells.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><title>t</title><body>{body}", "utf-8")
    with opened(tmp_path / "cells.html") as page:
        for at, (drawn, _) in enumerate(cells):
            page.wait_for_selector(f"#cell{at} {drawn}".strip())
    plot.save(str(tmp_path / "plot.html"))
    with opened(tmp_path / "plot.html") as page:
        page.wait_for_selector(".marks")
    plot.save(str(tmp_path / "plot.svg"))
    assert (tmp_path / "plot.svg").read_text("utf-8").startswith("<svg")
    alt = pytest.importorskip("altair")
    with alt.renderers.enable("json"):
        assert "application/json" in plot._repr_mimebundle_()[0]
