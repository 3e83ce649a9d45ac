"""What pages are put together from: texts stay texts, what is cut is counted, and numbers are what they say."""

from __future__ import annotations

import html
import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from page_markup import Markup

from neardup.pages import html as parts
from neardup.pages import numbers
from neardup.pages.charts import COLOURS, log_count_axis
from neardup.pages.page import page

HOSTILE = "</script><script>alert(1)</script>\"'><img src=x onerror=alert(1)> &lt;"
#: Any characters, halves of surrogate pairs among them, and often those that mean something.
anything = st.text(st.characters(exclude_categories=()) | st.sampled_from("<>&\"'\r\0"))


@given(anything)
def test_an_escaped_text_can_be_written_and_is_read_again(value: str) -> None:
    found = parts.escape(value)
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


def test_every_part_escapes_its_texts() -> None:
    for part in (
        parts.text(HOSTILE),
        parts.opening(HOSTILE, HOSTILE),
        parts.closing(HOSTILE),
        parts.command(HOSTILE),
        parts.bar(0.5, HOSTILE),
        parts.join_html([HOSTILE, HOSTILE], HOSTILE),
        parts.table([HOSTILE] * 2, [[HOSTILE] * 2], caption=HOSTILE, search_texts=[HOSTILE]),
        parts.facts({HOSTILE: HOSTILE}),
        parts.tiles([(HOSTILE, HOSTILE, HOSTILE)]),
        parts.notes([HOSTILE], title=HOSTILE),
        parts.section("key", HOSTILE, HOSTILE, intro=HOSTILE),
        parts.figures([parts.Chart("key", HOSTILE, HOSTILE, HOSTILE, {})]),
        parts.legend([HOSTILE], [HOSTILE], label=HOSTILE),
        parts.fold(HOSTILE, HOSTILE, search_text=HOSTILE),
        parts.search_field(HOSTILE, label=HOSTILE, noun=HOSTILE),
    ):
        found = Markup(part)
        assert not {"script", "img"} & {tag for tag, _ in found.elements}
        assert all(re.fullmatch("[a-z-]+", name) for _, attributes in found.elements for name in attributes)
        values = [value or "" for _, attributes in found.elements for value in attributes.values()]
        assert any(HOSTILE in value for value in (found.text, *values))
        # Nothing is escaped twice.
        assert "&amp;lt;script" not in part


def test_commands_do_not_break_inside_options() -> None:
    found = parts.command("neardup dedup my-news.jsonl --keep-order x-y -o '--no <b>'")
    assert re.findall('<span class="option">([^<]*)</span>', found) == ["--keep-order", "-o"]


@pytest.mark.parametrize("most", [1, 34, 99, 100, 1001])
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


def test_colours_have_enough_contrast_in_light_and_dark() -> None:
    """WCAG 2.2, AA: 4.5 to 1 for text, 3 to 1 for what is drawn."""
    modes: dict[str, dict[str, str]] = {}
    style = Markup(page("t", "")).style
    for mode, block in re.findall(r":root(:not\(\.paper\))? \{([^}]*)\}", style):
        modes.setdefault(mode, {}).update(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    assert len(modes) == 2
    backs = {"text": "back soft mark notes", "dim": "back soft mark", "accent": "back", "between": "back"}
    pairs = [(front, back, 7 if front == "text" else 4.5) for front in backs for back in backs[front].split()]
    pairs += [("text", "left", 4.5), ("text", "right", 4.5)]
    pairs += [(front, "back", 3) for front in ("firm", "left-line", "right-line", "notes-line", "series", *COLOURS)]
    for colours in modes.values():
        for front, back, least in pairs:
            dark, light = sorted((luminance(colours.get(front, front)), luminance(colours[back])))
            assert (light + 0.05) / (dark + 0.05) >= least, (front, back)


NOTE = re.compile(r"<bdi[^>]*> … ([\d,]+) [a-z ]+ not shown … </bdi>")
PIECES = st.sampled_from(
    ["a", "wide ", "\u0301", "e\u0301\u0323", "x" * 300, "\u0301" * 20, " " * 100, "\n", "東京", "🦊" * 250, "<b>"]
)


@given(st.lists(PIECES, max_size=12).map("".join), st.integers(0, 900))
def test_an_excerpt_shows_or_counts_every_character(whole: str, most: int) -> None:
    shown = parts.excerpt(whole, most)
    hidden = sum(int(number.replace(",", "")) for number in NOTE.findall(shown))
    left = html.unescape(NOTE.sub("", shown))
    assert len(left) + hidden == len(whole)
    assert len(left) <= most


@pytest.mark.parametrize(
    "kept",
    [
        "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft",
        "東京都は火曜日、新しい図書館を開いた。" * 20,
        "שָׁלוֹם עֲלֵיכֶם",
        "กรุงเทพมหานคร" * 40,
        "a\u0323\u0302\u0301 tiếng Việt\n\nparagraphs",
    ],
)
def test_ordinary_texts_stay_whole(kept: str) -> None:
    assert html.unescape(parts.excerpt(kept, 10_000)) == kept
    assert parts.clip(kept, 10_000) == " ".join(kept.split())


@given(st.floats(0, 9e14))
def test_short_numbers_are_short_and_near(value: float) -> None:
    written = numbers.format_short(value)
    assert len(written) <= 4
    if written == "<.1":
        assert 0 < value < 0.05
    else:
        thousands = "kMGT".find(written[-1]) + 1
        number = float(written.rstrip("kMGT")) * 1000**thousands
        assert number == pytest.approx(value, rel=0.06, abs=0.051)


@given(st.integers(0, 10_000), st.integers(1, 10_000))
@example(9_999, 10_000)
def test_shares_are_rounded_neither_to_0_nor_to_100_percent(part: int, of: int) -> None:
    written = numbers.format_share(min(part, of), of)
    assert (written == "0%") == (part == 0)
    assert (written == "100%") == (part >= of)


@given(st.lists(st.integers(0, 10**12), min_size=100, max_size=100), st.sampled_from([10, 20, 50]))
@example([0] * 100, 10)
def test_sparklines_rise_with_the_counts(counts: list[int], cells: int) -> None:
    line = numbers.sparkline(counts, cells)
    sums = np.array(counts, object).reshape(cells, -1).sum(axis=1)
    assert [one == " " for one in line] == [not total for total in sums]
    levels = [" ▁▂▃▄▅▆▇█".index(one) for one in line]
    # More pairs are never lower.
    assert [level for _, level in sorted(zip(sums.tolist(), levels, strict=True))] == sorted(levels)
    assert [" .:-=+*#@".index(one) for one in numbers.sparkline(counts, cells, blocks=False)] == levels
    if max(sums) > 1:
        assert max(levels) == 8
