"""Texts as pages show them: what people read stays as it is, and of what is cut every character is counted."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.pages.html import clipped, excerpt

NOTE = re.compile(r"<bdi[^>]*> … ([\d,]+) [a-z ]+ not shown … </bdi>")
PARTS = st.sampled_from(
    ["a", "wide ", "\u0301", "e\u0301\u0323", "x" * 300, "\u0301" * 20, " " * 100, "\n", "東京", "🦊" * 250, "<b>"]
)


@given(st.lists(PARTS, max_size=12).map("".join), st.integers(0, 900))
def test_what_is_shown_and_what_is_counted_are_the_text(whole: str, most: int) -> None:
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
def test_what_people_write_stays_whole(kept: str) -> None:
    assert html.unescape(excerpt(kept, 10_000)) == kept
    assert clipped(kept, 10_000) == " ".join(kept.split())
