"""What pages are put together from: texts stay texts, what is cut is counted, and numbers are what they say."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_markup import Markup

from neardup.pages import numbers
from neardup.pages.charts import COLOURS, log_count_axis
from neardup.pages.html import (
    Chart,
    Html,
    bar,
    clip,
    closing,
    command,
    escape,
    excerpt,
    facts,
    figures,
    fold,
    join_html,
    legend,
    notes,
    opening,
    search_field,
    section,
    table,
    text,
    tiles,
)
from neardup.pages.page import page

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)> &lt;"
#: Any characters, halves of surrogate pairs among them, and often those that mean something.
anything = st.text(st.characters(exclude_categories=()) | st.sampled_from("<>&\"'\r\0"))


@given(anything)
def test_an_escaped_text_can_be_written_and_is_read_again(value: str) -> None:
    found = escape(value)
    found.encode("utf-8")
    assert not set(found) & set("<>\"'")
    read = html.unescape(found)
    assert len(read) == len(value)
    for one, other in zip(value, read, strict=True):
        code = ord(one)
        if one == "\r":
            assert other == "\n"
        elif one not in "\t\n" and (code < 0x20 or code == 0x7F):
            assert 0x2400 <= ord(other) <= 0x2421
        elif 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or code in (0xFFFE, 0xFFFF):
            assert other == "\ufffd"
        else:
            assert other == one


PARTS = {
    "text": text(HOSTILE),
    "opening": opening(HOSTILE, HOSTILE),
    "closing": closing(HOSTILE),
    "command": command(HOSTILE),
    "bar": bar(0.5, HOSTILE),
    "joined": join_html([HOSTILE, HOSTILE], HOSTILE),
    "table": table([HOSTILE] * 2, [[HOSTILE] * 2], caption=HOSTILE, search_texts=[HOSTILE]),
    "facts": facts({HOSTILE: HOSTILE}),
    "tiles": tiles([(HOSTILE, HOSTILE, HOSTILE)]),
    "notes": notes([HOSTILE], title=HOSTILE),
    "section": section("key", HOSTILE, HOSTILE, intro=HOSTILE),
    "figures": figures([Chart("key", HOSTILE, HOSTILE, HOSTILE, {})]),
    "legend": legend([HOSTILE], [HOSTILE], label=HOSTILE),
    "fold": fold(HOSTILE, HOSTILE, search_text=HOSTILE),
    "search": search_field(HOSTILE, label=HOSTILE, noun=HOSTILE),
}


@pytest.mark.parametrize("name", PARTS)
def test_every_part_escapes_its_texts(name: str) -> None:
    found = Markup(PARTS[name])
    assert isinstance(PARTS[name], Html)
    assert not {"script", "img"} & {tag for tag, _ in found.elements}
    assert all(re.fullmatch("[a-z-]+", name) for _, attributes in found.elements for name in attributes)
    told = [value for _, attributes in found.elements for value in attributes.values()]
    assert HOSTILE in found.text or any(HOSTILE in (value or "") for value in told)
    assert found.text.count("alert") % found.text.count(HOSTILE) == 0 if HOSTILE in found.text else True
    # Nothing is escaped twice.
    assert "&amp;lt;script" not in PARTS[name]


def test_commands_do_not_break_inside_options() -> None:
    found = command("neardup dedup my-news.jsonl --keep-order x-y -o '--no <b>'")
    assert re.findall('<span class="option">([^<]*)</span>', found) == ["--keep-order", "-o"]
    assert Markup(found).text == "neardup dedup my-news.jsonl --keep-order x-y -o '--no <b>'"


@pytest.mark.parametrize("most", [1, 3, 34, 99, 100, 340, 1001, 10**6])
def test_a_logarithmic_axis_ends_above_all_counts(most: int) -> None:
    axis = log_count_axis("count", "pairs", most=most).to_dict()
    marks, (low, top) = axis["axis"]["values"], axis["scale"]["domain"]
    assert low < 1 <= most <= top == marks[-1] < 3 * most
    assert marks == sorted(set(marks))
    assert all(10**power in marks for power in range(len(str(most)) - (most == 1)))


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def palette(style: str) -> list[dict[str, str]]:
    """Return the colours of the light and of the dark page, by their names."""
    names: dict[str, dict[str, str]] = {}
    for mode, block in re.findall(r":root(:not\(\.paper\))? \{([^}]*)\}", style):
        names.setdefault(mode, {}).update(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    return list(names.values())


def test_colours_have_enough_contrast_in_light_and_dark() -> None:
    colours = palette(Markup(page("t", "", {})).style)
    assert len(colours) == 2
    for one in colours:
        # WCAG 2.2, AA: 4.5 to 1 for text, 3 to 1 for what is drawn.
        for back in ("back", "soft", "mark", "notes"):
            assert contrast(one["text"], one[back]) >= 7, back
        for back in ("back", "soft", "mark"):
            assert contrast(one["dim"], one[back]) >= 4.5, back
        for front, back in (
            ("accent", "back"),
            ("between", "back"),
            ("text", "left"),
            ("text", "right"),
        ):
            assert contrast(one[front], one[back]) >= 4.5, front
        for front in ("firm", "left-line", "right-line", "notes-line", "series"):
            assert contrast(one[front], one["back"]) >= 3, front
        for colour in COLOURS:
            assert contrast(colour, one["back"]) >= 3, colour


NOTE = re.compile(r"<bdi[^>]*> … ([\d,]+) [a-z ]+ not shown … </bdi>")
PIECES = st.sampled_from(
    ["a", "wide ", "\u0301", "e\u0301\u0323", "x" * 300, "\u0301" * 20, " " * 100, "\n", "東京", "🦊" * 250, "<b>"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.integers(0, 900))
def test_an_excerpt_shows_or_counts_every_character(whole: str, most: int) -> None:
    shown = excerpt(whole, most)
    hidden = sum(int(number.replace(",", "")) for number in NOTE.findall(shown))
    left = html.unescape(NOTE.sub("", shown))
    assert len(left) + hidden == len(whole)
    assert len(left) <= most


@pytest.mark.parametrize(
    "kept",
    [
        "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
        "https://example.org/" + "path/" * 40,
        "東京都は火曜日、新しい図書館を開いた。" * 20,
        "שָׁלוֹם עֲלֵיכֶם",
        "กรุงเทพมหานคร" * 40,
        "a\u0323\u0302\u0301 tiếng Việt",
        "two\n\nparagraphs",
    ],
)
def test_ordinary_texts_stay_whole(kept: str) -> None:
    assert html.unescape(excerpt(kept, 10_000)) == kept
    assert clip(kept, 10_000) == " ".join(kept.split())


@given(st.floats(0, 9e14))
def test_short_numbers_are_short_and_near(value: float) -> None:
    written = numbers.format_short(value)
    assert len(written) <= 4
    if written == "<.1":
        assert 0 < value < 0.05
        return
    number = float(written.rstrip("kMGT")) * 1000 ** "kMGT".find(written[-1]) * (1000 if written[-1] in "kMGT" else 1)
    number = float(written) if written[-1].isdigit() else number
    assert number == pytest.approx(value, rel=0.06, abs=0.051)


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_shares_are_rounded_neither_to_0_nor_to_100_percent(part: int, of: int) -> None:
    written = numbers.format_share(min(part, of), of)
    assert (written == "0%") == (part == 0)
    assert (written == "100%") == (part >= of)


@given(st.lists(st.integers(0, 10**12), min_size=100, max_size=100), st.sampled_from([10, 20, 50]))
def test_sparklines_rise_with_the_counts(counts: list[int], cells: int) -> None:
    line = numbers.sparkline(counts, cells)
    sums = np.array(counts, object).reshape(cells, -1).sum(axis=1)
    assert len(line) == cells
    assert [one == " " for one in line] == [not total for total in sums]
    levels = [" ▁▂▃▄▅▆▇█".index(one) for one in line]
    # More pairs are never lower.
    assert [level for _, level in sorted(zip(sums.tolist(), levels, strict=True))] == sorted(levels)
    plain = numbers.sparkline(counts, cells, blocks=False)
    assert [" .:-=+*#@".index(one) for one in plain] == levels
    if max(sums) > 1:
        assert max(levels) == 8
