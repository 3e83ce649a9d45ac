"""The page of an exploration of hostile documents in a browser, and its notebook cell."""

from __future__ import annotations

import html
import random
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from browser import draw, expect, opened
from page_markup import Markup, check_loads_nothing

import neardup as nd
from neardup.exploration.exploration import Exploration

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
HOSTILE = (
    "<script>document.title='taken'</script><img src=x onerror=\"document.title='taken'\"> <b>bold</b> </style></main>"
    "</details></script> --> ]]> \u202e desrever \u0000 end"
)
ARABIC = "قال المتحدث باسم الوزارة إن الميناء سيفتح أبوابه يوم الأحد المقبل"
CHINESE = "港口将于星期日重新开放，发言人说。"
PLACES = ("Leeds", "York", "Hull", "Bath", "Ely", "Wells", "Ripon", HOSTILE)


def documents() -> list[str]:
    """Texts with pairs at most cutoffs, a shared passage, a template, copies, and several scripts."""
    dice = random.Random(3)

    def words(count: int) -> str:
        return " ".join(f"w{dice.randrange(400)}" for _ in range(count))

    texts = [words(40) for _ in range(90)]
    texts += [f"{words(5 * at)} {texts[at]}" for at in range(1, 20)]
    texts += [f"{words(20)} {HOSTILE} {words(20)}" for _ in range(8)]
    form = words(50)
    texts += [f"Nurse in {place} {form} {place}." for place in PLACES]
    return [*texts, *[texts[0]] * 4, *[HOSTILE] * 2, ARABIC * 2, ARABIC * 3, CHINESE * 3, CHINESE * 4, ""]


def page_of(exploration: Exploration, folder: Path) -> Path:
    path = folder / "explore.html"
    exploration.write(path, force=True)
    return path


@pytest.fixture(scope="module")
def exploration() -> Exploration:
    texts = documents()
    names = [f"d{at} {HOSTILE}" for at in range(len(texts))]
    found = nd.explore({"id": names, "title": [f"Title of {name}" for name in names], "text": texts}, lengths=[1, 2, 3])
    # No path contains NUL.
    return replace(found, notes=(HOSTILE,), inputs=(f"it's here.jsonl {HOSTILE}".replace("\0", ""),))


def titles(page: Any) -> list[str]:
    return [title.removesuffix("#") for title in page.locator("h2").all_text_contents()]


def test_the_page_shows_every_part_and_its_texts_stay_texts(exploration: Exploration, tmp_path: Path) -> None:
    path, advice = page_of(exploration, tmp_path), exploration.advice
    content = path.read_bytes()
    assert len(content) < 2_000_000
    assert page_of(exploration, tmp_path).read_bytes() == content
    with opened(path) as page:
        assert page.evaluate("document.documentElement.scrollHeight") < 6000
        assert titles(page) == page.locator(".contents a").all_text_contents() == SECTIONS
        tiles = page.locator(".tiles .value").all_text_contents()
        assert tiles[:3] == [f"{len(documents())}", "9,180", advice.features]
        assert page.locator(".tiles small").last.inner_text() == "copies of 2 texts"
        # The weighted view has no separation.
        cells = page.locator("#histograms > .scroll tbody tr").last.locator("td")
        assert cells.all_inner_texts()[:3] == ["–"] * 3
        assert page.locator("pre.command").inner_text().startswith("neardup dedup ")
        text = page.inner_text("#advice")
        for words in ("runs of 2 words", "What this advice is not sure of", f"{tiles[3]} of all documents"):
            assert words in text
        assert page.locator("#suspects details").count() == len(exploration.suspects) > 0
        page.evaluate("document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
        draw(page)
        charts = ["over-words", "pairs-by-threshold", "dropped-by-threshold", "lengths"]
        assert [chart.get_attribute("id") for chart in page.locator("figure [role=img][aria-label]").all()] == charts
        assert all(chart.locator("table tbody tr").count() for chart in page.locator("figure").all())
        assert page.locator("tr.best").first.inner_text().startswith(advice.features)
        pair = page.locator("#examples details.fold details.fold").nth(1)
        assert "longest shared run (" in pair.inner_text()
        assert pair.locator(".pair mark").count() > 0
        assert "0 pairs" in page.locator(".band").first.inner_text()
        contents = page.inner_text("#contents")
        for words in ("Arabic", "Han", "Templates", "Leeds", "Passages that many documents share", "largest families"):
            assert words in contents
        assert page.locator("main script, main img, main b").count() == 0
        assert page.title().endswith("explored - neardup")
        assert page.inner_text("main").count("<b>bold</b>") > 30
        # On a phone, where a legend shows one line alone, also if the chart is drawn again.
        page.set_viewport_size({"width": 360, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        buttons = page.locator("#histograms .legend button")
        assert buttons.all_inner_texts() == ["words:1", "words:2", "words:3", "words:2, idf"]
        buttons.nth(2).click()
        assert buttons.nth(2).get_attribute("aria-pressed") == "true"
        expect(page.locator('#over-words path[stroke][opacity="0.12"]')).to_have_count(3)
        page.emulate_media(color_scheme="dark")
        expect(page.locator('#over-words .role-axis-label text[fill="#a1a9b4"]').first).to_be_visible()
        page.wait_for_function("() => neardup.views['over-words'].signal('highlight') === 'words:3'")
        buttons.nth(2).click()
        assert page.locator("[aria-pressed=true]").count() == 0


def section_of(content: str, key: str) -> str:
    return Markup(content[content.index(f'<section id="{key}"') :].partition("</section>")[0]).text


def test_unknown_parts_are_left_out(exploration: Exploration) -> None:
    content = replace(exploration, curve=None, examples=(), suspects=(), notes=(), stages=(), inputs=()).to_html()
    found = [html.unescape(title) for title in re.findall(r'data-contents="([^"]*)"', content)]
    assert found == [SECTIONS[at] for at in (0, 1, 2, 5, 6, 7)]
    assert content.count('<bdi class="value') == 4
    curve = exploration.curve
    assert curve is not None
    point = curve.at(exploration.advice.threshold)
    assert point is not None
    partial = replace(curve, complete=False, most_pairs=1_000_000, points=(replace(point, pairs=None),))
    content = replace(exploration, curve=partial).to_html()
    assert "1,000,000 pairs" in section_of(content, "thresholds")
    assert content.partition('<section id="thresholds"')[2].partition("</section>")[0].count('<th scope="row"') == 1


@pytest.mark.parametrize("texts", [[""] * 4, [f"the same {HOSTILE} for all of them"] * 20])
def test_few_documents_get_a_page_without_advice(texts: list[str]) -> None:
    found = nd.explore(texts, lengths=[1, 3])
    content = found.to_html()
    page = Markup(content)
    check_loads_nothing(page)
    assert "No advice" in section_of(content, "advice")
    assert not [one for one in page.elements if one[1].get("class") == "command" or one[1].get("id") == "suspects"]
    assert page.text.count("Nothing to show") == 3 * (not any(texts))
    cell = found._repr_html_()
    assert "<script>" not in cell
    # What is wider than a notebook scrolls by itself.
    assert cell.startswith('<div class="neardup" style="overflow-x:auto">')
