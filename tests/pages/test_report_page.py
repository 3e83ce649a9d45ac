"""The page of a report in a real browser, with documents that would do harm if they could."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser
import pyarrow as pa
import pytest

import neardup as nd
from neardup.errors import NeardupError
from neardup.pages.batch_report import report_of
from neardup.pages.report import Report
from neardup.pages.report_page import report_page
from neardup.pipeline.result import Result

pytest.importorskip("vl_convert", reason="the packages that draw charts are not installed")

EVIL = '<script>window.harm=1</script><img src=x onerror="window.harm=2">"\'></style></script><!--'
BASE = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million crowns this year"
TALES = [
    (BASE, "Harbour"),
    (BASE, "Harbour again"),
    (BASE.upper() + "!", "HARBOUR"),
    (BASE.replace("tuesday", "wednesday"), "Harbour on wednesday"),
    (BASE.replace("forty", "fifty").replace("tuesday", "friday"), "Harbour, dearer"),
    (f"{EVIL} {BASE}", EVIL),
    (f"{EVIL} {BASE} \0\x1b[31m\u202e", f"{EVIL}\0"),
    ("افتتح رئيس الوزراء الجسر الجديد فوق النهر صباح يوم الثلاثاء بحضور عدد كبير من السكان والمسؤولين", "الجسر"),
    ("افتتح رئيس الوزراء الجسر الجديد فوق النهر صباح يوم الأربعاء بحضور عدد كبير من السكان والمسؤولين", "الجسر"),
    ("東京都は火曜日、新しい図書館を開いた。蔵書は四十万冊で、誰でも無料で利用できる。", "図書館"),
    ("東京都は水曜日、新しい図書館を開いた。蔵書は四十万冊で、誰でも無料で利用できる。", "図書館"),
    ("🦊" * 400, "emoji"),
    ("w" * 3000, "long"),
    ("", ""),
    ("one", "one word"),
]
TABLE = pa.table(
    {
        "id": [f"d{place}" if place != 5 else EVIL for place in range(len(TALES))],
        "text": [text for text, _ in TALES],
        "title": [title for _, title in TALES],
        "date": ["2024-03-01T10:00:00Z"] * len(TALES),
    }
)


def result_of(**options: Any) -> Result:
    return nd.dedup(TABLE, features="words:2", threshold=0.75, margin=0.4, **options)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    name = tmp_path_factory.mktemp("report") / "report.html"
    result_of().report(name, command="neardup dedup 'a b.jsonl' -o out.jsonl", title=f"A report {EVIL}")
    return name


def put(view: Any, value: int) -> None:
    view.evaluate(
        "value => { const one = document.getElementById('threshold'); one.value = value;"
        "one.dispatchEvent(new Event('input')); }",
        value,
    )


def test_the_page_opens_alone_and_documents_stay_text(page: Path) -> None:
    with browser.opened(page) as view:
        view.wait_for_selector("#similarity svg")
        assert view.evaluate("window.harm") is None
        assert view.locator("img").count() == 0
        assert EVIL in view.inner_text("h1")
        assert view.locator("h2").all_inner_texts()[:3] == [
            "What was kept, and what was removed#",
            "How similar#",
            "Another threshold#",
        ]
        view.locator(".family summary").first.click()
        assert view.locator(".members li.kept").first.is_visible()
        for details in view.locator("main details").all():
            details.evaluate("one => one.open = true")
        text = view.inner_text("main")
        assert EVIL in text
        assert "neardup dedup 'a b.jsonl' -o out.jsonl" in text
        assert 'features = "words:2"' in text
        assert "d4" in text
        names = view.evaluate("[...document.querySelectorAll('input')].map(one => one.labels.length)")
        assert names
        assert all(names)
        marked = view.locator(".members del, .members ins").all_inner_texts()
        assert {"tuesday", "wednesday"} <= set(marked)


def test_the_slider_says_what_another_threshold_would_do(page: Path) -> None:
    result = result_of()
    with browser.opened(page) as view:
        sweep = view.evaluate("window.neardup.data.sweep")
        own, said = sweep["own"], view.locator("#threshold-said")
        assert sweep["thresholds"][own] == 0.75
        assert f"{len(result.kept)} kept" in said.inner_text()
        assert view.locator("#threshold-back").is_disabled()
        view.locator("#pairs").scroll_into_view_if_needed()
        for at in (0, len(sweep["thresholds"]) - 1, own + 10):
            put(view, at)
            other = result.at(sweep["thresholds"][at])
            assert f"{len(other.kept)} kept, {len(other.dropped)} removed" in said.inner_text()
            assert view.get_attribute("#threshold", "aria-valuetext") == said.inner_text()
            members = view.locator(".members > li").all()
            told = {one.locator(".about > span").first.text_content(): one for one in members}
            moved = set(result.kept) ^ set(other.kept)
            for name, one in told.items():
                fate = one.locator(".about .fate")
                assert fate.evaluate("one => !one.hidden") == (name in moved)
                word = "kept" if name in other.kept else "removed"
                assert name not in moved or fate.text_content() == f"{word} at {sweep['thresholds'][at]:g}"
            assert at > own or moved
            view.wait_for_function(
                "at => Math.abs((window.neardup.views.pairs?.signal('cut') ?? -1) - at) < 1e-9",
                arg=sweep["similarities"][at],
            )
        view.locator("#threshold").focus()
        view.keyboard.press("Home")
        assert "0.35" in said.inner_text()
        view.keyboard.press("ArrowRight")
        assert "0.36" in said.inner_text()
        view.locator("#threshold-back").press("Enter")
        assert "as in this run" in said.inner_text()
        assert view.locator(".fate:visible").count() == 0
        assert view.evaluate("document.activeElement.id") == "threshold"


def test_families_and_dropped_documents_are_found_by_id_and_word(page: Path) -> None:
    with browser.opened(page) as view:
        families = view.locator("#family-list .family")
        every = families.count()
        view.fill("#family-list-search", "wednesday harbour")
        view.wait_for_function(
            "() => document.querySelector('output[for=\"family-list-search\"]').textContent.includes(' of ')"
        )
        assert [one.is_visible() for one in families.all()].count(True) == 1
        view.fill("#family-list-search", "")
        view.wait_for_function("() => document.querySelector('output[for=\"family-list-search\"]').textContent === ''")
        assert [one.is_visible() for one in families.all()].count(True) == every
        view.fill("#dropped-list-search", "D3")
        view.wait_for_function(
            "() => document.querySelector('output[for=\"dropped-list-search\"]').textContent.includes(' of ')"
        )
        shown = view.locator("#dropped-list tbody tr:visible").all_inner_texts()
        assert len(shown) == 1
        assert shown[0].startswith("d3")
        view.fill("#dropped-list-search", "<script>")
        view.wait_for_function(
            "() => [...document.querySelectorAll('#dropped-list tbody tr')]"
            ".every(row => row.offsetParent === null || row.innerText.includes('<script>'))"
        )


@pytest.mark.parametrize(("width", "dark"), [(360, True), (1280, False)])
def test_it_fits_a_phone_and_the_dark(page: Path, width: int, dark: bool) -> None:
    with browser.opened(page, width=width, dark=dark) as view:
        for details in view.locator("main details").all():
            details.evaluate("one => one.open = true")
        view.wait_for_selector("#similarity svg")
        assert view.evaluate("document.documentElement.scrollWidth") <= width
        assert view.evaluate("getComputedStyle(document.body).backgroundColor") == (
            "rgb(20, 23, 27)" if dark else "rgb(255, 255, 255)"
        )


def test_without_scripts_it_can_still_be_read(page: Path) -> None:
    with browser.opened(page, script=False) as view:
        assert "Harbour" in view.inner_text("#dropped-list")
        assert not view.locator("#threshold").is_visible()


def test_a_row_leads_to_its_family(page: Path) -> None:
    with browser.opened(page) as view:
        view.locator("#dropped-list a").first.click()
        name = view.evaluate("location.hash.slice(1)")
        view.wait_for_function("name => document.getElementById(name).open", arg=name)


def shown(result: Result) -> str:
    report: Report = report_of(result._found, result.summary)
    assert len(report.stages) == 4
    return report_page(replace(report, stages=(), facts={}))


def test_the_same_run_has_the_same_page_with_any_threads(tmp_path: Path) -> None:
    pages = [shown(result_of(threads=threads)) for threads in (1, 2)]
    assert pages[0] == pages[1]
    lines = tmp_path / "in.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    with nd.dedup_files(str(lines), features="words:2", threshold=0.75, margin=0.4) as result:
        told = shown(result).replace(str(lines), "")
    assert re.sub("<header.*?</header>", "", told) == re.sub("<header.*?</header>", "", pages[0])


def test_a_page_that_must_not_be_written_is_refused(tmp_path: Path) -> None:
    result = result_of()
    there = tmp_path / "there.html"
    there.write_text("mine")
    for name, said in (("report.pdf", "does not end in .html"), ("there.html", "exists"), ("no/r.html", "no/r.html")):
        with pytest.raises(NeardupError, match=said):
            result.report(tmp_path / name)
    assert there.read_text() == "mine"
    result.report(there, force=True)
    assert there.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert [one.name for one in tmp_path.iterdir()] == ["there.html"]


def test_a_page_without_anything_to_tell_opens(tmp_path: Path) -> None:
    nd.dedup([]).report(tmp_path / "none.html")
    nd.dedup(["a rose", "a tulip"], margin=0.2).report(tmp_path / "few.html")
    for name in ("none.html", "few.html"):
        with browser.opened(tmp_path / name) as view:
            assert "How this was made" in view.inner_text("main")


def test_a_notebook_shows_a_result_in_short_and_escaped() -> None:
    result = result_of()
    cell = result._repr_html_()
    assert cell is not None
    assert "<script" not in cell
    assert "<img" not in cell
    assert "&lt;script&gt;" in cell
    assert len(cell) < 20_000
    assert f"{len(result.kept)} kept, {len(result.dropped)} removed" in cell
    assert (nd.dedup([])._repr_html_() or "").startswith("<div")


def test_similarities_can_be_drawn_as_an_altair_chart() -> None:
    import altair as alt

    result = result_of()
    chart = result.plot_similarity()
    assert isinstance(chart, alt.LayerChart)
    values = chart.to_dict()["data"]["values"]
    assert sum(row["count"] for row in values) == len(result.dropped)
    chart.properties(title="mine", width=300).to_dict()
