"""The few lines that say what a document has otherwise than its keeper."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from saying import says

from neardup.pages.diff import Shown
from neardup.pages.diff_view import beginning, change_of
from neardup.pages.html import macro_of


def texts_of(look: str, tag: str) -> list[str]:
    return [html.unescape(re.sub("<[^>]*>", "", found)) for found in re.findall(f"<{tag}>(.*?)</{tag}>", look, re.S)]


def plain(look: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", look))


def differ(left: str, right: str) -> str:
    return macro_of("change.html", "changed", change_of(Shown("l", "", left), Shown("r", "", right)))


def test_what_went_and_what_came_stand_among_the_words_around_them() -> None:
    words = [f"w{i}" for i in range(60)]
    other = [*words[:20], "new", *words[21:50], "added", *words[50:]]
    look = differ(" ".join(words), " ".join(other))
    assert texts_of(look, "del") == ["w20"]
    assert texts_of(look, "ins") == ["new", "added"]
    assert plain(look).split() == [
        *("…", "w14", "w15", "w16", "w17", "w18", "w19", "w20", "new", "w21", "w22", "w23", "w24", "w25", "w26"),
        *("…", "w44", "w45", "w46", "w47", "w48", "w49", "added", "w50", "w51", "w52", "w53", "w54", "w55", "…"),
    ]
    assert change_of(Shown("l", "", " ".join(words)), Shown("r", "", " ".join(other))).passage == 29


def test_long_and_many_changes_are_cut_and_counted() -> None:
    long = " ".join(f"n{i}" for i in range(100))
    look = differ("a b c", f"a b c {long}")
    assert "60 more words" in plain(look)
    many = [f"w{i}" for i in range(400)]
    other = [f"x{i}" if i % 20 == 10 else word for i, word in enumerate(many)]
    look = differ(" ".join(many), " ".join(other))
    assert len(texts_of(look, "ins")) == 6
    assert "14 more changes are not shown" in plain(look)
    assert says(plain(differ("a " * 20_000, "a " * 20_000 + "b")), "the same text,", "as far as")
    assert len(differ("a" * 50_000, "b" * 50_000)) < 3_000


@pytest.mark.parametrize(
    ("left", "right", "said"),
    [
        ("a rose", "a rose", ("the same text",)),
        ("A rose.", "a  rose!", ("the same words", "another form")),
        ("", "", ("the same text",)),
        ("...", "!!", ("the same words", "another form")),
    ],
)
def test_texts_of_the_same_words_say_so(left: str, right: str, said: tuple[str, ...]) -> None:
    assert says(plain(differ(left, right)), *said)


def test_other_directions_and_scripts() -> None:
    look = differ("صباح يوم الثلاثاء بحضور", "صباح يوم الأربعاء بحضور")
    assert 'dir="rtl"' in look
    assert texts_of(look, "ins") == ["الأربعاء"]
    assert texts_of(differ("火曜日、開いた。", "水曜日、開いた。"), "ins") != []


ANY = st.text(alphabet=st.characters(codec=None), max_size=60) | st.sampled_from(
    ["<b>&amp;", "</p><script>", "\ud800 x", "\0\x07", "a\nb\r\nc", "🦊🦊", "ก่อนหน้านี้"]
)


@given(ANY, ANY)
def test_any_two_texts_are_escaped_and_can_be_written(left: str, right: str) -> None:
    for look in (differ(left, right), beginning(Shown("x", "", left))):
        look.encode()
        assert set(re.findall(r"</?([a-z]+)", look)) <= {"p", "del", "ins", "span", "bdi"}
        assert not re.search("[\x00-\x08\x0b-\x1f]", look)
