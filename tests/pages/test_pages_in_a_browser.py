"""The reports of a run, a replay and a watcher in a browser, with hostile documents; and notebook cells."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from browser import draw, expect, opened
from commands import neardup, write_lines
from page_markup import Markup, check_loads_nothing
from sentences import says

import neardup as nd

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
VOCABULARY = [f"word{at}" for at in range(200)]
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
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    page = tmp_path_factory.mktemp("pages <i>") / "run.html"
    with write_lines(page.with_name("run.jsonl"), rows()).open("a") as file:
        file.write("{broken\n")
    neardup("dedup", page.with_name("run.jsonl"), *RULES, "--dry-run", "--report", page, "--report-margin", "0.3")
    return page


@pytest.fixture(scope="module")
def replayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a flow of the same items, and of 26 others that come fifty times each."""
    page, words, begin = (
        tmp_path_factory.mktemp("flows") / "replay.html",
        random.Random(0),
        datetime(2024, 3, 2, tzinfo=UTC),
    )
    texts = [text for text in ([" ".join(words.sample(VOCABULARY, 12)) for _ in range(26)]) for _ in range(50)]
    copies = [
        {"id": f"d{at}", "text": text, "time": (begin + timedelta(seconds=10 * at)).isoformat()}
        for at, text in enumerate(texts)
    ]
    neardup(
        "replay",
        write_lines(page.with_name("flow.jsonl"), rows() + copies),
        *RULES,
        "--window",
        "24h",
        "--report",
        page,
    )
    return page


#: A label of an axis that people can read: a number, a time, a date or a name.
READABLE = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?[kM%]?|\d\d:\d\d(:\d\d)?|[A-Z][a-z]{2}( \d\d)?|\d{4}|[A-Za-z0-9 ]{3,}")


def check_axes(page: Any) -> dict[str, list[list[str]]]:
    """Return the labels of each axis of each drawn chart: readable, and no number twice."""
    axes: dict[str, list[list[str]]] = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll(".chart")].map((chart) => [chart.id,
        [...chart.querySelectorAll(".role-axis-label")].map((axis) =>
        [...axis.querySelectorAll("text")].map((one) => one.textContent).filter(Boolean))]))"""
    )
    for name, labels in axes.items():
        for axis in labels:
            numbers = [label for label in axis if ":" not in label]
            assert len(set(numbers)) == len(numbers), (name, axis)
            # Either all thousands of an axis are written with k or none: 0.2k is no count.
            assert all(READABLE.fullmatch(label) and not re.fullmatch(r"0(\.\d)?k", label) for label in axis), (
                name,
                axis,
            )
    return axes


@pytest.mark.parametrize(
    ("command", "options", "missing"),
    [
        ("dedup", ("--dry-run",), "thresholds"),
        ("compare", ("--labels", "labels.csv", "--recipes", "default,jaccard"), "recall"),
    ],
)
def test_a_result_without_matches_draws_no_empty_chart(
    command: str, options: tuple[str, ...], missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("labels.csv").write_text("id1,id2,label\narabic,chinese,1\nfirst,one,0\n", "utf-8")
    corpus = write_lines(
        Path("corpus.jsonl"), [row for row in rows() if row["id"] in ("first", "arabic", "chinese", "one")]
    )
    neardup(command, corpus, *options, "--report", "page.html")
    with opened(tmp_path / "page.html") as page:
        draw(page)
        assert missing not in check_axes(page)
        text = page.inner_text("main")
    assert "Nothing to show" in text
    assert "The families below" not in text


@pytest.mark.parametrize(("kind", "width"), [("run", 1280), ("replayed", 360)])
def test_a_page_is_drawn_fits_its_window_and_escapes_texts(
    kind: str, width: int, request: pytest.FixtureRequest
) -> None:
    path: Path = request.getfixturevalue(kind)
    check_loads_nothing(Markup(path.read_text("utf-8")))
    dark = width == 360
    with opened(path, width=width, dark=dark) as page:
        draw(page)
        axes = check_axes(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        back = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
        assert all(part < 64 for part in back) == dark
        label = page.locator("#similarity svg .role-axis-label text").first.get_attribute("fill")
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
        assert values["read"] == ("17" if kind == "run" else "1,316")
        if kind == "replayed":
            assert {"lag", "thresholds", "memory"} <= set(axes)
            assert "1,000" in axes["lag"][0]
            # Percentages on bars are shares of all, not added up.
            shares = page.locator("#lag svg .mark-text.role-mark text").all_text_contents()
            assert 95 <= sum(int(share.removesuffix("%")) for share in shares) <= 105


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
    # So `opened` sees what goes wrong, and fails other tests for it.
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
        for words, found in (("arabic-2", 1), ("<script> nothing has this", 0)):
            page.fill("#dropped-list-search", words)
            expect(page.locator("#dropped-list tbody tr:visible")).to_have_count(found)


def put(page: Any, name: str) -> str:
    """Move the slider to a threshold, and return what the page says of it."""
    at = page.evaluate("neardup.data.sweep.names").index(name)
    page.locator("#threshold").evaluate("(one, at) => { one.value = at; one.dispatchEvent(new Event('input')); }", at)
    return str(page.inner_text("#threshold-said"))


def test_the_slider_shows_the_results_at_other_thresholds(run: Path) -> None:
    result, names = result_of(), list(TEXTS)
    with opened(run) as page:
        sweep, said = page.evaluate("neardup.data.sweep"), page.locator("#threshold-said")
        assert sweep["names"][sweep["own_index"]] == "0.7"
        assert f"{len(result.kept)} kept" in said.inner_text()
        page.locator("#pairs").scroll_into_view_if_needed()
        for threshold in ("0.4", "0.8"):
            other = result.at(float(threshold))
            assert f"{len(other.kept)} kept, {len(other.dropped)} dropped" in put(page, threshold)
            assert page.get_attribute("#threshold", "aria-valuetext") == said.inner_text()
            moved = {names[place] for place in set(result.kept) ^ set(other.kept)}
            kept = {names[place] for place in other.kept}
            for one in page.locator(".members > li").all():
                name, fate = one.locator(".about > span").first.text_content(), one.locator(".about .fate")
                assert fate.evaluate("one => !one.hidden") == (name in moved)
                word = "kept" if name in kept else "dropped"
                assert name not in moved or fate.text_content() == f"{word} at {threshold}"
            page.wait_for_function(f"() => Math.abs((neardup.views.pairs?.signal('cut') ?? -1) - {threshold}) < 1e-9")
        page.locator("#threshold").focus()
        for key, at in (("Home", 0), ("ArrowRight", 1)):
            page.keyboard.press(key)
            assert sweep["rules"][at] in said.inner_text()
        page.locator("#threshold-back").press("Enter")
        assert "as in this run" in said.inner_text()
        assert page.locator(".fate:visible").count() == 0
        assert page.evaluate("document.activeElement.id") == "threshold"


def test_the_slider_of_a_flow_says_what_passes(replayed: Path) -> None:
    with opened(replayed) as page:
        assert says(page.inner_text("#threshold-said"), "jaccard ≥ 0.7", "as in this flow", "35 passed, 1,281 stopped")
        for threshold, fate in (("0.5", "is stopped at 0.5"), ("0.9", "passes at 0.9")):
            assert "passed" in put(page, threshold)
            assert set(page.locator(".members > li.otherwise .about .fate").all_text_contents()) == {fate}


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


def test_keys_and_screen_readers_reach_everything(run: Path) -> None:
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
            # The focus is visible.
            assert told[1:] == ["solid", 3], told
        assert {"SUMMARY", "svg", "png", "command", "INPUT", "anchor", "scroll", "scroll tall"} <= reached
        page.locator(".family summary").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator(".members li.kept").first).to_be_visible()
        draw(page)
        for role, name in (
            ("main", None),
            ("navigation", "Contents"),
            ("region", "Close calls"),
            ("region", "Families"),
        ):
            expect(page.get_by_role(role, name=name, exact=True)).to_have_count(1)
        expect(page.get_by_role("heading", level=1)).to_have_count(1)
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
        page.set_viewport_size({"width": 360, "height": 900})
        page.reload()
        expect(links.first).to_be_hidden()
        page.locator(".contents summary").click()
        links.filter(has_text="Families").click()
        expect(page.locator("#families h2")).to_be_in_viewport()
        expect(links.first).to_be_hidden()


def test_print_is_dark_on_white_with_open_folds(run: Path) -> None:
    with opened(run, dark=True, reduced_motion="reduce") as page:
        assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
        expect(page.locator("#similarity svg.marks")).to_be_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        page.emulate_media(media="print")
        page.wait_for_function("() => Object.keys(neardup.views).length === 3")
        assert page.locator("main details:not([open]):not([data-print=no])").count() == 0
        for gone in (".contents", ".skip", ".search", ".saves", ".anchor"):
            expect(page.locator(gone).first).to_be_hidden()
        label = page.locator("#similarity .role-axis-label text").first
        expect(label).to_have_attribute("fill", "#5a626d")
        expect(page.locator(".tall").first).to_have_css("overflow-y", "visible")
        text = page.evaluate("getComputedStyle(document.body).color.match(/\\d+/g).map(Number)")
        assert all(part < 64 for part in text)
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        expect(label).to_have_attribute("fill", "#a1a9b4")


def test_without_scripts_the_figures_and_texts_are_there(run: Path) -> None:
    with opened(run, script=False) as page:
        page.locator("figure:has(#similarity) summary").click()
        expect(page.locator("figure:has(#similarity) table")).to_be_visible()
        page.locator(".family summary").first.click()
        expect(page.locator(".members li.kept").first).to_be_visible()
        assert "Title of" in page.inner_text("#dropped-list")
        expect(page.locator(".search").first).to_be_hidden()
        expect(page.locator("#threshold")).to_be_hidden()


def test_notebook_cells_are_drawn_and_load_nothing(tmp_path: Path) -> None:
    result, explored = result_of(), nd.explore(list(TEXTS.values())[:4], lengths=[1, 2])
    plot = result.plot_similarity()
    assert sum(row["count"] for row in plot.to_dict()["data"]["values"]) == len(result.dropped)
    cells = {
        "p": result._repr_html_(),
        "p strong, p + p": explored._repr_html_(),
        "svg .mark-rect path": plot.properties(title="mine", width=300)._repr_mimebundle_()["image/svg+xml"],
        "svg .mark-line path": explored.plot_similarity()._repr_mimebundle_()["image/svg+xml"],
    }
    assert f"{len(result.kept)} kept, {len(result.dropped)} dropped" in cells["p"]
    body = "".join(f"<div id=cell{at}>{cell}</div>" for at, cell in enumerate(cells.values()))
    (tmp_path / "cells.html").write_text(f"<!DOCTYPE html><meta charset=utf-8><title>t</title><body>{body}", "utf-8")
    plot.save(str(tmp_path / "plot.html"))
    with opened(tmp_path / "cells.html") as page:
        for at, drawn in enumerate(cells):
            page.wait_for_selector(f"#cell{at} :is({drawn})")
    with opened(tmp_path / "plot.html") as page:
        page.wait_for_selector(".marks")
    with pytest.importorskip("altair").renderers.enable("json"):
        assert "application/json" in plot._repr_mimebundle_()[0]


WORD, MARKS, LINES, SIGNS = "w" * 100_000, "a" + "\u0301" * 10_000, "\n" * 8_000, "\U0001f98a" * 20_000
#: Texts that no page can show whole.
OVERLONG = {
    "word": f"{BASE} {WORD}",
    "marks": f"{BASE} {MARKS} {MARKS}",
    "lines": f"{BASE}{LINES}and then it was over",
    "signs": f"{BASE} {SIGNS} and then it was over",
    "many": " ".join([BASE, *(f"{at}{'x' * 3000}" for at in range(100))]),
}


def test_a_page_of_overlong_texts_stays_small_and_counts_what_it_leaves_out(tmp_path: Path) -> None:
    found = [
        {"id": f"{name}-{at}", "text": version, "title": f"{name} {MARKS[:5000]}"}
        for name, text in OVERLONG.items()
        for at, version in enumerate((text, text.replace("tuesday", "friday") + " it said"))
    ]
    found.append({"id": "i" * 10_000, "text": OVERLONG["word"] + " once more", "title": WORD})
    page, corpus = tmp_path / "page.html", write_lines(tmp_path / "corpus.jsonl", found)
    options = ("--dry-run", "--report-margin", "0.3", "--features", "words:2", "--threshold", "0.5")
    neardup("dedup", corpus, *options, "--report", page)
    # The scripts that draw charts are more than a million of it.
    assert page.stat().st_size < 1_600_000
    with opened(page) as view:
        view.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
        assert view.evaluate("document.documentElement.scrollHeight") < 25_000
        heights = "[...document.querySelectorAll('.pair, .members > li')].map(one => one.offsetHeight)"
        assert max(view.evaluate(heights)) < 4_000
        assert view.evaluate("document.documentElement.scrollWidth <= innerWidth")
        text = view.inner_text("main")
    for words in ("characters not shown", "marks not shown", BASE.split()[-2]):
        assert words in text
