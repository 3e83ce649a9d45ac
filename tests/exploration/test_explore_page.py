"""The page of an exploration in a real browser, and what a notebook shows of one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browser import opened
from explored import ARABIC, CHINESE, HOSTILE, curve, explored

import neardup
from neardup.exploration.exploration import Exploration
from neardup.recipe import Recipe

expect = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed").expect
pytest.importorskip("altair", reason="Altair is not installed")
pytest.importorskip("vl_convert", reason="vl-convert is not installed")

SECTIONS = [
    "Where to begin",
    "How similar are two documents?",
    "How many pairs are above each cutoff?",
    "What would each threshold do?",
    "Read pairs at each cutoff",
    "What is the corpus made of?",
    "How to read this",
    "About this page",
]


def written(tmp_path: Path, exploration: Exploration) -> Path:
    path = tmp_path / "explore.html"
    exploration.write(path, force=True)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page"), explored())


def titles(page: Any) -> list[str]:
    return [title.removesuffix("#") for title in page.locator("h2").all_text_contents()]


def open_all(page: Any) -> None:
    """Open all that is folded, bring every chart near the window, and wait until it is drawn."""
    page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 25_000})
    expect(page.locator(".chart:not(:has(svg))")).to_have_count(0)


def test_the_page_is_short_before_and_whole_after_it_is_opened(whole: Path, tmp_path: Path) -> None:
    assert whole.stat().st_size < 2_000_000
    assert written(tmp_path, explored()).read_bytes() == whole.read_bytes()
    with opened(whole) as page:
        assert page.evaluate("document.documentElement.scrollHeight") < 6000
        assert titles(page) == page.locator(".contents a").all_text_contents() == SECTIONS
        assert page.locator(".tiles .value").all_text_contents() == ["40", "703", "words:3", "38%", "5"]
        assert page.locator(".tiles small").last.inner_text() == "copies of 2 texts"
        # What says nothing of a view has a dash.
        cells = page.locator("#histograms > .scroll tbody tr").last.locator("td")
        assert cells.all_inner_texts()[:3] == ["–"] * 3
        assert page.locator("pre.command").inner_text().startswith("neardup dedup 'it'\"'\"'s here.jsonl' --features")
        advice = page.inner_text("#advice")
        for words in (
            "runs of 3 words",
            "35% of the runs",
            "What this advice is not sure of",
            "38% of all documents",
        ):
            assert words in advice
        assert page.locator("#suspects details").count() == 2
        open_all(page)
        charts = page.locator("figure").all()
        # Views over each other; pairs, dropped; lengths.
        assert len(charts) == 1 + 2 + 1
        for chart in charts:
            assert chart.locator("[role=img]").get_attribute("aria-label")
            assert chart.locator("table tbody tr").count() > 0
        assert page.locator("tr.best").first.inner_text().startswith("words:3")
        pair = page.locator("#examples details.fold details.fold").nth(1)
        for words in ("longest shared run (6 words)", "from one.jsonl and two.jsonl"):
            assert words in pair.inner_text()
        assert pair.locator(".pair mark").count() > 0
        # Texts stay texts, wherever one of a document, a name or a file can stand.
        assert page.locator("main script, main img, main b").count() == 0
        assert page.title().endswith("explored - neardup")
        assert page.inner_text("main").count("<b>bold</b>") > 30
        assert "\ufffd" in page.locator("blockquote").first.inner_text()


def test_the_search_opens_what_it_finds(whole: Path) -> None:
    with opened(whole) as page:
        field, said = page.locator("#examples-search"), page.locator("[for=examples-search][aria-live]")
        found = page.locator("#examples [data-search]:visible")
        for asked, count in (("RIGHT-0.5-1", 1), ("left-0.3", 2), (ARABIC.split()[0], 12), ("no such thing", 0)):
            field.fill(asked)
            expect(said).to_have_text(f"{count} of 12 pairs shown")
            expect(found).to_have_count(count)
        field.fill("")
        expect(said).to_have_text("")
        assert "0 pairs" in page.locator(".band").inner_text()


def test_one_line_can_be_shown_alone(whole: Path) -> None:
    with opened(whole) as page:
        page.locator("#over-words").scroll_into_view_if_needed()
        buttons = page.locator("#histograms .legend button")
        assert buttons.all_inner_texts() == ["words:1", "words:2", "words:3", "words:4", "words:3, idf"]
        buttons.nth(1).click()
        assert buttons.nth(1).get_attribute("aria-pressed") == "true"
        expect(page.locator('#over-words path[stroke][opacity="0.12"]')).to_have_count(4)
        # What is drawn anew knows it, too.
        page.emulate_media(color_scheme="dark")
        expect(page.locator('#over-words .role-axis-label text[fill="#a1a9b4"]').first).to_be_visible()
        page.wait_for_function("() => neardup.views['over-words'].signal('highlight') === 'words:2'")
        buttons.nth(1).click()
        assert page.locator("[aria-pressed=true]").count() == 0


@pytest.mark.parametrize(("width", "dark"), [(360, False), (820, True)])
def test_narrow_and_dark(whole: Path, width: int, dark: bool) -> None:
    with opened(whole, width=width, dark=dark) as page:
        open_all(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_all_figures_can_be_read(whole: Path) -> None:
    with opened(whole, script=False) as page:
        assert titles(page) == SECTIONS
        page.locator("#thresholds details summary").first.click()
        assert page.locator("#thresholds details[open] tr.best th").inner_text() == "0.35"


def test_what_is_not_known_is_not_there(tmp_path: Path) -> None:
    less = explored(curve=None, examples=(), suspects=(), notes=(), stages=(), inputs=())
    with opened(written(tmp_path, less)) as page:
        assert titles(page) == [SECTIONS[at] for at in (0, 1, 2, 5, 6, 7)]
        assert page.locator(".tiles .value").count() == 4
        assert page.locator(".notes").count() == 0
    found = curve(Recipe(name="explored", features="words:3", threshold=0.35), complete=False)
    with opened(written(tmp_path, explored(curve=found))) as page:
        assert "1,000,000 pairs" in page.inner_text("#thresholds")
        assert page.locator("#thresholds tbody tr").count() == 1


ODD = {
    "nothing": [""] * 4,
    "the same": ["the same text for all of them and nothing else in it"] * 20,
    "scripts": [
        ARABIC * 3,
        ARABIC * 3 + " today",
        CHINESE * 5,
        CHINESE * 5 + "今天",
        HOSTILE * 2,
        "ไทย " + HOSTILE * 2,
    ],
}


@pytest.mark.parametrize("kind", ODD)
def test_few_documents_and_little_to_draw(kind: str, tmp_path: Path) -> None:
    found = neardup.explore([text.replace("\ud800", "") for text in ODD[kind]], lengths=[1, 3])
    with opened(written(tmp_path, found)) as page:
        assert "No advice" in page.inner_text("#advice")
        assert page.locator("pre.command, #suspects").count() == 0
        open_all(page)
        assert page.locator("main script, main img").count() == 0
        if kind == "nothing":
            assert page.inner_text("main").count("Nothing to show") >= 2
    cell = found._repr_html_()
    assert "<script>" not in cell
    # What is wider than a notebook scrolls by itself.
    assert cell.startswith('<div class="neardup" style="overflow-x:auto">')
