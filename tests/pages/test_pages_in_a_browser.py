"""The page of all parts in a real browser: nothing fetched, nothing run, found by keys, on paper and on a phone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import browser
import pytest
from browser import opened
from demo import HOSTILE, NAMES, PAIRS, demo

sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
expect = sync_api.expect

TITLE = "What was dropped, and why - neardup"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("demo") / "demo.html"
    made.write_text(demo(), "utf-8")
    assert made.stat().st_size < 2_500_000
    return made


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    """A server that notes what it is asked for."""
    asked: list[str] = []

    class Noting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), Noting) as made:
        thread = threading.Thread(target=made.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}/", asked
        made.shutdown()
        thread.join()


def through(page: Any) -> None:
    """Scroll to the end and wait until all charts are drawn."""
    for chart in page.locator(".chart").all():
        chart.scroll_into_view_if_needed()
        expect(chart.locator("svg.marks")).to_be_visible()


@pytest.mark.parametrize("width", [1400, 360])
@pytest.mark.parametrize("dark", [False, True])
def test_a_page_draws_itself_and_fits_its_window(path: Path, width: int, dark: bool) -> None:
    with opened(path, width=width, dark=dark) as page:
        through(page)
        assert page.title() == TITLE
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for summary in page.locator("#families > details > summary").all():
            summary.click()
        page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert all(part < 64 for part in back) == dark
        label = page.locator("#similar svg .role-axis-label text").first.evaluate("e => e.getAttribute('fill')")
        assert label == ("#a1a9b4" if dark else "#5a626d")


def test_hostile_texts_stay_texts(path: Path) -> None:
    with opened(path) as page:
        through(page)
        assert page.title() == TITLE
        assert page.locator("main img, main script, main b").count() == 0
        assert page.evaluate("neardup.data.hostile") == HOSTILE
        cells = page.locator("#texts tbody tr td:nth-child(2)").all_text_contents()
        for name in ("attack", "Arabic", "Hebrew", "Chinese", "Thai", "emoji", "empty"):
            assert cells[list(NAMES).index(name)] == NAMES[name]
        long = cells[list(NAMES).index("long")]
        assert "characters not shown" in long
        assert NAMES["long"].startswith(long.split(" … ")[0])
        assert cells[list(NAMES).index("surrogate")] == "half \ufffd of a pair"
        assert cells[list(NAMES).index("controls")].startswith("nul \u2400 bell \u2407")
        left = page.locator("#pairs .pair").nth(list(PAIRS).index("attack")).locator(".row:not(.heads) .left")
        assert left.text_content() == PAIRS["attack"][0].text.replace("\0", "\u2400")


def test_the_policy_holds_back_what_is_not_of_the_page(path: Path, server: tuple[str, list[str]]) -> None:
    home, asked = server
    wrong: list[str] = []
    with opened(path, wrong=wrong) as page:
        page.evaluate("window.refused = 0; addEventListener('securitypolicyviolation', () => { refused += 1; })")
        tried = """(home) => {
          const script = document.createElement("script");
          script.textContent = "document.title = 'taken'";
          const style = document.createElement("style");
          style.textContent = "body { display: none }";
          const image = document.createElement("img");
          image.src = home + "image";
          document.body.append(script, style, image);
          return fetch(home + "fetch").then(() => "reached", (error) => error.name);
        }"""
        assert page.evaluate(tried, home) == "TypeError"
        page.wait_for_function("() => refused >= 4")
        assert page.title() == TITLE
        expect(page.locator("h1")).to_be_visible()
    assert sum("Content Security Policy" in one for one in wrong) >= 4
    assert asked == []


def test_a_right_to_left_text_runs_from_the_right(path: Path) -> None:
    with opened(path) as page:
        pair = page.locator("#pairs .pair").nth(list(PAIRS).index("Arabic"))
        cell = pair.locator(".row.differs .left")
        assert cell.evaluate("e => getComputedStyle(e).direction") == "rtl"
        box, word = cell.bounding_box(), cell.locator("mark").bounding_box()
        assert word["x"] + word["width"] / 2 > box["x"] + box["width"] / 4
        assert pair.locator("mark").first.evaluate("e => getComputedStyle(e, '::before').content") == '" [only here: "'


def test_a_search_shows_what_has_all_its_words(path: Path) -> None:
    with opened(path) as page:
        field, said = page.get_by_label("Search by id or word"), page.locator("#families output")
        families = page.locator("#families > details")
        field.fill("FAMILY-3")
        expect(said).to_have_text("1 of 12 families shown")
        expect(page.locator("#families > details:visible")).to_have_id("family-3")
        field.fill("3-1")
        expect(said).to_have_text("1 of 12 families shown")
        expect(page.locator("#family-4 details.found")).to_have_count(1)
        field.fill("הבנק  family")
        expect(said).to_have_text("1 of 12 families shown")
        field.fill("<img nothing has this")
        expect(said).to_have_text("0 of 12 families shown")
        # A link to what is hidden shows it.
        page.evaluate("location.hash = 'family-2'")
        expect(page.locator("#family-2 > summary")).to_be_visible()
        assert page.locator("#family-2").evaluate("e => e.open")
        field.fill("")
        expect(said).to_be_empty()
        expect(families.filter(visible=True)).to_have_count(12)
        expect(page.locator("details.found")).to_have_count(0)


def test_a_legend_brings_out_one_line(path: Path) -> None:
    with opened(path) as page:
        through(page)
        button = page.get_by_role("button", name="words:4")
        button.click()
        expect(button).to_have_attribute("aria-pressed", "true")
        assert page.evaluate("neardup.views.dropped.signal('highlight')") == "words:4"
        faint = "[...document.querySelectorAll('#dropped .mark-line path')].map(e => e.getAttribute('opacity') ?? '1')"
        page.wait_for_function(f"() => {faint}.filter(value => value < 1).length === 2")
        # What is drawn anew knows it, too.
        page.emulate_media(color_scheme="dark")
        page.wait_for_function(
            "() => document.querySelector('#similar .role-axis-label text').getAttribute('fill') === '#a1a9b4'"
        )
        page.wait_for_function("() => neardup.views.dropped.signal('highlight') === 'words:4'")
        button.click()
        page.wait_for_function("() => neardup.views.dropped.signal('highlight') === ''")


def test_a_chart_tells_what_the_pointer_is_on(path: Path) -> None:
    with opened(path) as page:
        through(page)
        page.locator("#similar .mark-rect path").nth(3).hover()
        tooltip = page.locator("#vg-tooltip-element")
        expect(tooltip).to_be_visible()
        expect(tooltip).to_contain_text("0.06")


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_chart_can_be_saved_for_slides(path: Path, kind: str, tmp_path: Path) -> None:
    with opened(path, dark=True, accept_downloads=True) as page:
        through(page)
        with page.expect_download() as waiting:
            page.locator(f"figure:has(#dropped) [data-save={kind}]").click()
        download = waiting.value
        assert download.suggested_filename == f"dropped.{kind}"
        download.save_as(tmp_path / "saved")
        saved = (tmp_path / "saved").read_bytes()
        if kind == "svg":
            text = saved.decode()
            assert "Dropped documents by threshold" in text
            assert "words:4" in text
            assert 'fill="white"' in text
            assert "#5a626d" in text
        else:
            assert saved.startswith(b"\x89PNG")
        assert not page.locator("html.paper").count()


def test_keys_reach_everything_and_it_shows(path: Path) -> None:
    with opened(path) as page:
        page.keyboard.press("Tab")
        skip = page.get_by_role("link", name="Skip to the content")
        expect(skip).to_be_focused()
        expect(skip).to_be_in_viewport()
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        reached: set[str] = set()
        for _ in range(120):
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
        assert {"SUMMARY", "svg", "png", "command", "INPUT", "anchor", "BUTTON", "scroll", "scroll tall"} <= reached
        page.locator("#family-1 > summary").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#family-1 .facts")).to_be_visible()


def test_landmarks_and_names_for_a_screen_reader(path: Path) -> None:
    with opened(path) as page:
        through(page)
        expect(page.get_by_role("main")).to_have_count(1)
        expect(page.get_by_role("navigation", name="Contents")).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
        for name in ("How similar the corpus is", "Families", "The run"):
            expect(page.get_by_role("region", name=name, exact=True)).to_have_count(1)
        images = page.get_by_role("img")
        assert images.count() == 3
        assert all(image.get_attribute("aria-label") for image in images.all())
        # Each chart has its figures in a table behind it.
        assert page.locator("figure").count() == page.locator("figure details table").count() == 3
        ids = page.evaluate("[...document.querySelectorAll('main [id]')].map(e => e.id)")
        assert len(ids) == len(set(ids))
        assert page.evaluate("[...document.querySelectorAll('table')].every(t => t.querySelector('th[scope=col]'))")
        nameless = (
            "[...document.querySelectorAll('[tabindex=\"0\"]')].filter(e => !e.ariaLabel && !e.textContent).length"
        )
        assert page.evaluate(nameless) == 0


def test_contents_beside_the_page_and_above_it_on_a_phone(path: Path) -> None:
    with opened(path, width=1400) as page:
        links = page.locator(".contents a")
        expect(links).to_have_count(5)
        main, nav = page.locator("main").bounding_box(), page.locator(".contents").bounding_box()
        assert nav["x"] + nav["width"] < main["x"]
        links.filter(has_text="All sorts of texts").click()
        expect(page.locator("#texts h2")).to_be_in_viewport()
        expect(page.locator(".contents a[aria-current]")).to_have_text("All sorts of texts")
        expect(links.first).to_be_in_viewport()
    with opened(path, width=360) as page:
        expect(page.locator(".contents a").first).to_be_hidden()
        page.locator(".contents summary").click()
        page.locator(".contents a").nth(2).click()
        expect(page.locator("#families h2")).to_be_in_viewport()
        expect(page.locator(".contents a").first).to_be_hidden()


def test_heads_of_long_tables_stay_in_sight(path: Path) -> None:
    with opened(path) as page:
        box = page.locator("#texts .tall")
        box.scroll_into_view_if_needed()
        box.evaluate("e => e.scrollTo(500, 700)")
        head, first = box.locator("thead th").nth(9), box.locator("tbody th").nth(20)
        expect(head).to_be_in_viewport()
        top, edge = box.bounding_box(), first.bounding_box()
        assert abs(head.bounding_box()["y"] - top["y"]) < 3
        assert abs(edge["x"] - top["x"]) < 3


def test_on_paper_all_is_open_and_dark_on_white(path: Path) -> None:
    with opened(path, dark=True) as page:
        expect(page.locator("#similar svg.marks")).to_be_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function("() => Object.keys(neardup.views).length === 3")
        assert page.evaluate("document.querySelectorAll('main details.fold:not([open])').length") == 0
        expect(page.locator("#family-12 .facts").last).to_be_visible()
        for gone in (".contents", ".skip", ".search", ".saves", ".anchor"):
            expect(page.locator(gone).first).to_be_hidden()
        label = page.locator("#scripts .role-axis-label text").first
        page.wait_for_function(
            "() => document.querySelector('#scripts .role-axis-label text').getAttribute('fill') === '#5a626d'"
        )
        assert label.is_visible()
        assert page.evaluate("getComputedStyle(document.querySelector('#texts .tall')).overflowY") == "visible"
        assert page.evaluate("getComputedStyle(document.querySelector('thead th')).position") == "static"
        text = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).map(Number)")
        assert all(part < 64 for part in text)
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(page.locator("#family-12 > .inside")).to_be_hidden()
        page.wait_for_function(
            "() => document.querySelector('#similar .role-axis-label text').getAttribute('fill') === '#a1a9b4'"
        )
    with opened(path) as page:
        assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_without_scripts_the_figures_are_there(path: Path) -> None:
    with opened(path, script=False) as page:
        page.locator("figure:has(#similar) summary").click()
        expect(page.locator("figure:has(#similar) table")).to_be_visible()
        page.locator("#family-1 > summary").click()
        expect(page.locator("#family-1 .facts")).to_be_visible()
        expect(page.locator(".search")).to_be_hidden()
        expect(page.locator(".contents a").first).to_be_visible()


def test_calm_for_who_asks_for_it(path: Path) -> None:
    with opened(path, reduced_motion="reduce") as page:
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    with opened(path, forced_colors="active") as page:
        expect(page.locator("#pairs mark").first).to_be_visible()


def test_what_is_wrong_with_a_page_is_found(tmp_path: Path) -> None:
    wrong = {"error": "<script>throw new Error('oh')</script>", "request": "<img src='http://127.0.0.1:9/x.png'>"}
    for kind, body in wrong.items():
        made = tmp_path / f"{kind}.html"
        made.write_text(f"<!DOCTYPE html><title>t</title>{body}", "utf-8")
        with pytest.raises(AssertionError, match=kind), opened(made) as page:
            page.wait_for_load_state("networkidle")
    assert browser.chromium() is browser.chromium()
