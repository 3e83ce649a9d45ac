"""The page of an exploration in a real browser, and what a notebook shows of one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from browser import opened
from explored import ARABIC, CHINESE, HOSTILE, curve, explored, falling, view

import neardup
from neardup.exploration.charts import RAMP, cutoffs_chart, similarity_chart, views_colours
from neardup.exploration.exploration import Exploration
from neardup.exploration.page import grouped
from neardup.exploration.views import CUTOFFS, per_million
from neardup.pages.charts import COLOURS
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
    exploration.write(path)
    return path


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("page"), explored())


def titles(page: Any) -> list[str]:
    return [title.removesuffix("#") for title in page.locator("h2").all_text_contents()]


def draw_all(page: Any) -> None:
    """Bring every chart near the window, and wait until it is drawn."""
    page.set_viewport_size({"width": page.viewport_size["width"], "height": 20_000})
    expect(page.locator(".chart:not(:has(svg))")).to_have_count(0)


def test_every_part_is_there(whole: Path) -> None:
    assert whole.stat().st_size < 2_000_000
    with opened(whole) as page:
        assert titles(page) == SECTIONS
        assert page.locator(".contents a").all_text_contents() == SECTIONS
        draw_all(page)
        charts = page.locator("figure").all()
        # One for each view, and one over each other; cutoffs; pairs, dropped; two of lengths.
        assert len(charts) == 5 + 1 + 1 + 2 + 2
        for chart in charts:
            assert chart.locator("figcaption").inner_text().strip()
            assert chart.locator("[role=img]").get_attribute("aria-label")
            assert chart.locator("svg .role-axis-title, svg .role-axis").count() > 0
            chart.locator("summary").first.click()
            assert chart.locator("table tbody tr").count() > 0
            assert chart.locator("table caption").count() > 0
        values = page.locator(".tiles .value").all_text_contents()
        assert values == ["40", "703", "words:3", "38 %", "5"]
        assert page.locator("tr.best").first.inner_text().startswith("words:3")
        assert page.locator("pre.command").inner_text() == (
            "neardup dedup 'it'\"'\"'s here.jsonl' --features words:3 --threshold 0.35 -o x.jsonl"
        )


def test_hostile_texts_stay_text(whole: Path) -> None:
    with opened(whole) as page:
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.locator("main script, main img, main b").count() == 0
        assert "taken" not in page.title().partition(" explored")[2]
        assert page.evaluate("document.title").endswith("explored - neardup")
        bold = page.locator("main").inner_text().count("<b>bold</b>")
        # In every place where a text of a document, a name or a file can stand.
        assert bold > 30
        assert page.locator("blockquote").first.inner_text().startswith("<script>document.title='taken'</script>")
        assert "\ufffd" in page.locator("blockquote").first.inner_text()


def test_the_search_finds_pairs_by_id_and_word(whole: Path) -> None:
    with opened(whole) as page:
        field, said = page.locator("#examples-search"), page.locator("[for=examples-search][aria-live]")
        assert page.locator("#examples details.fold:visible").count() == 12
        for asked, found in (("RIGHT-0.5-1", 1), ("left-0.3", 2), (ARABIC.split()[0], 12), ("no such thing", 0)):
            field.fill(asked)
            expect(said).to_have_text(f"{found} of 12 pairs shown")
            expect(page.locator("#examples details.fold:visible")).to_have_count(found)
        field.fill("")
        expect(said).to_have_text("")
        expect(page.locator("#examples details.fold:visible")).to_have_count(12)


def test_pairs_are_read_side_by_side(whole: Path) -> None:
    with opened(whole) as page:
        # The first pair of the cutoff nearest to the advised threshold, 0.35, is open.
        folds = page.locator("#examples details.fold[open]")
        assert folds.count() == 1
        assert "0.300" in folds.locator("summary").first.inner_text()
        assert folds.locator(".pair .heads .cell").count() == 2
        assert folds.locator(".pair mark").count() > 0
        bands = page.locator(".band h3").all_text_contents()
        assert bands == [f"Near {cutoff}" for cutoff in ("0.05", "0.1", "0.2", "0.3", "0.5", "0.7", "0.9")]
        last = page.locator(".band").last
        assert "0 pairs" in last.inner_text()
        page.keyboard.press("Tab")
        second = page.locator("#examples details.fold").nth(1)
        second.locator("summary").first.focus()
        page.keyboard.press("Enter")
        assert second.get_attribute("open") is not None
        assert "longest shared run (6 words)" in second.inner_text()
        assert "from one.jsonl and two.jsonl" in second.inner_text()


def test_one_line_can_be_shown_alone(whole: Path) -> None:
    with opened(whole) as page:
        draw_all(page)
        buttons = page.locator("#histograms .legend button")
        assert buttons.all_inner_texts() == ["words:1", "words:2", "words:3", "words:4", "words:3, idf"]
        buttons.nth(1).click()
        assert buttons.nth(1).get_attribute("aria-pressed") == "true"
        expect(page.locator('#over-words path[stroke][opacity="0.12"]')).to_have_count(4)
        buttons.nth(1).click()
        assert page.locator("[aria-pressed=true]").count() == 0


@pytest.mark.parametrize(("width", "dark"), [(360, False), (820, True)])
def test_narrow_and_dark(whole: Path, width: int, dark: bool) -> None:
    with opened(whole, width=width, dark=dark) as page:
        draw_all(page)
        page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_scripts_all_figures_can_be_read(whole: Path) -> None:
    with opened(whole, script=False) as page:
        assert titles(page) == SECTIONS
        assert page.locator("#thresholds > .scroll tr.best th").inner_text() == "0.35"
        assert page.locator("#examples details.fold:visible").count() == 12


def test_what_is_not_known_is_not_there(tmp_path: Path) -> None:
    less = explored(curve=None, examples=(), notes=(), stages=(), inputs=())
    with opened(written(tmp_path, less)) as page:
        assert titles(page) == [SECTIONS[at] for at in (0, 1, 2, 5, 6, 7)]
        assert page.locator(".tiles .value").count() == 4
        assert page.locator(".notes").count() == 0
        draw_all(page)


def test_pairs_that_are_too_many_are_said_to_be(tmp_path: Path) -> None:
    found = curve(Recipe(name="explored", features="words:3", threshold=0.35), complete=False)
    with opened(written(tmp_path, explored(curve=found))) as page:
        told = page.locator("#thresholds").inner_text()
        assert "1,000,000 pairs" in told
        assert page.locator("#thresholds tbody tr").count() == 1
        draw_all(page)


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
def test_corpora_with_little_to_draw(kind: str, tmp_path: Path) -> None:
    found = neardup.explore([text.replace("\ud800", "") for text in ODD[kind]], lengths=[1, 3])
    with opened(written(tmp_path, found)) as page:
        draw_all(page)
        assert page.locator("#advice").count() == 1
        assert page.locator("main script, main img").count() == 0
    assert "<script>" not in found._repr_html_()


def test_the_page_is_the_same_every_time(tmp_path: Path, whole: Path) -> None:
    assert written(tmp_path, explored()).read_bytes() == whole.read_bytes()


def test_a_notebook_shows_the_advice_and_escapes_texts() -> None:
    shown = explored()._repr_html_()
    assert "words:3, jaccard &gt;= 0.35" in shown
    assert "words:3 (advised)" in shown
    assert not re.search("<(script|img|b)[ >]", shown)
    assert shown.count("<tr>") == 6


def test_views_are_grouped_by_what_they_compare() -> None:
    words = [view(f"words:{n}", falling(n), 703) for n in (1, 2, 3)]
    grams = view("qgrams:5", falling(2), 703)
    recipe = view("words:3", falling(2), 703, name="cornell", n=None)
    assert grouped([*words, grams, recipe]) == {"words": words, "qgrams": [grams], "": [recipe]}
    assert views_colours(words) == [RAMP[0], RAMP[3], RAMP[6]]
    assert views_colours([recipe, recipe]) == list(COLOURS[:2])
    assert views_colours([grams]) == [RAMP[0]]
    weighted = view("words:3", falling(2), 703, recipe={"weights": "idf", "measure": "weighted_jaccard"})
    assert views_colours([*words, weighted]) == [RAMP[0], RAMP[3], RAMP[6], COLOURS[2]]


def test_what_charts_draw_are_the_counts() -> None:
    few = view("words:2", falling(2), 703)
    drawn = similarity_chart([few], advised=few, threshold=0.3).to_dict()
    steps = drawn["datasets"]["steps"]
    # 703 pairs are few: five hundredths are a step. A last row ends the line.
    assert [step["pairs"] for step in steps[:-1]] == [sum(few.counts[at : at + 5]) for at in range(0, 100, 5)]
    assert all(step["shown"] == (step["pairs"] or 0.5) for step in steps)
    assert steps[-1]["low"] == 1
    many = view("words:2", tuple(1000 * count for count in falling(2)), 703_000)
    assert len(similarity_chart([many]).to_dict()["datasets"]["steps"]) == 51
    above = cutoffs_chart("above", [few], None)
    rows = above.specification["datasets"]["rows"]
    assert {row["cutoff"]: row["rate"] for row in rows} == {
        at / 100: per_million(few.at_least(at), 703) for at in range(101)
    }
    assert [row["cutoff"] for row in rows if row["told"]] == list(CUTOFFS)
    assert f"<td>{few.at_least(50)}</td>" in above.behind
