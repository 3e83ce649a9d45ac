"""Which words of two texts differ, how they stand side by side, and the few lines that say it."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from page_markup import Markup
from sentences import says

from neardup.pages.diff import Mark, ShownDocument, compare_texts, sign_between
from neardup.pages.diff_view import beginning, describe_change, side_by_side
from neardup.pages.document_view import View, build_view
from neardup.pages.html import escape, render_macro
from neardup.text.normalize import tokens

#: Words, with all that may stand between them and much that may not be a word at all.
PROSE = st.lists(
    st.sampled_from(
        [
            *("rose", "Rose", "tulip", "in", "5", "4.2", "$", "£", "-", "–", "...", "中国", "央行", "العربية", "ไทย"),
            *("👩\u200d👧", "é", "e\u0301", " ", "  ", "\n", "\n\n", "\n    ", "\t", ". ", ", ", "\u200b", "<b>"),
            *("&amp;", "\x00", "\u202e"),
        ]
    ),
    max_size=60,
).map("".join)


@example("a", "a a")
@example("a a. a", "a")
@given(PROSE, PROSE)
def test_words_without_a_mark_are_the_same_on_both_sides(left: str, right: str) -> None:
    found = compare_texts(left, right)
    kept = [
        [token.text for token, mark in zip(words, marks, strict=True) if mark == Mark.EQUAL]
        for words, marks in ((found.left, found.left_marks), (found.right, found.right_marks))
    ]
    assert kept[0] == kept[1]
    assert found.blocks[-1] == (len(found.left), len(found.right), 0)
    assert sum(block.length for block in found.blocks) == len(kept[0])


def marked(text: str, other: str) -> list[str]:
    found = compare_texts(text, other)
    return [token.text for token, mark in zip(found.left, found.left_marks, strict=True) if mark]


def test_words_are_those_of_the_normalizer() -> None:
    assert marked("The STRASSE is wet, in 1998!", "the Straße -- is 'dry' in 1999") == ["wet", "1998"]
    assert marked("央行下调十个基点", "央行下调五个基点") == ["十"]
    assert marked("ลด 0.25", "ขึ้น 0.50")[0] == "ล"


def test_a_word_that_both_have_by_chance_is_part_of_the_change() -> None:
    left = "It was said by one two three in four five six seven that all is well"
    right = "It was said by ten eleven twelve in thirty forty fifty sixty that all is well"
    assert "in" in marked(left, right)
    assert "that" not in marked(left, right)


def sides(view: View) -> tuple[str, str]:
    rows = [view.pieces(row) for group in view.groups for row in group.rows]
    left, right = ("".join(text for pieces in rows for text, _ in pieces[side]) for side in (0, 1))
    return left, right


def shown(text: str, title: str = "") -> ShownDocument:
    return ShownDocument("x", title, text)


@given(PROSE, PROSE)
def test_nothing_of_a_text_is_lost_or_added(left: str, right: str) -> None:
    view = build_view(shown(left), shown(right))
    assert sides(view) == (left, right)
    for group in view.groups:
        for row in group.rows:
            pieces = [piece for side in view.pieces(row) for piece in side]
            assert not (row.equal and {mark for _, mark in pieces} - {Mark.EQUAL})
            assert all(text for text, _ in pieces)


def test_long_texts_are_laid_out_without_loss_and_folded() -> None:
    sentences = [f"Sentence number {at} of this text says what it says, and no more than that." for at in range(400)]
    changed = [*sentences[:200], "Here is one that is only on the right.", *sentences[200:]]
    left, right = "  ".join(sentences), "\n".join(changed)
    view = build_view(shown(left), shown(right))
    assert sides(view) == (left, right)
    groups = view.groups
    assert [group.folded for group in groups] == [False, True, False, True]
    assert groups[1].equal
    words = [[sum(row.words[side] for row in group.rows) for group in groups] for side in (0, 1)]
    assert words[0][1] == words[1][1] > 2000
    assert [sum(counts) for counts in words] == [len(side.words) for side in view.sides]
    text = "".join(piece for row in groups[2].rows for piece, mark in view.pieces(row)[1] if mark == Mark.CHANGED)
    assert text == "Here is one that is only on the right"


def test_signs_between_equal_words_count_where_they_make_another_number() -> None:
    def signs(left: str, right: str) -> list[str]:
        view = build_view(shown(left), shown(right))
        return [text for row in view.groups[0].rows for text, mark in view.pieces(row)[0] if mark == Mark.BETWEEN]

    assert signs("It paid $5 each", "It paid £5 each") == ["$"]
    assert signs("It fell to -5 degrees", "It fell to 5 degrees") == ["-"]
    assert signs("1.5 pct", "1,5 pct") == ["."]
    assert signs("It is, he said, “over”.", "It is he said 'over'") == []
    assert signs("a 1.21-dlr raise", "a 1.21 dlr raise") == []
    assert sign_between(" -", "o", "5") == "-"
    assert sign_between("-", "o", "5") == ""


def test_an_insertion_begins_where_a_sentence_does() -> None:
    left = "It rose. The bank said so. It fell."
    assert marked("It rose. The bank saw it. The bank said so. It fell.", left) == ["the", "bank", "saw", "it"]
    lines = "a line of words\na line of wool\na line of words\n"
    assert marked(lines + "a line of wool\nend", lines + "end") == ["a", "line", "of", "wool"]


words = st.text(st.sampled_from("ab. \n"), max_size=60)


class Cells(Markup):
    """The texts of the cells below the heads, and the marks in them."""

    def __init__(self, text: str) -> None:
        self.found: dict[str, list[str]] = {"left": [], "right": []}
        self.marks: list[tuple[str, str]] = []
        self._side = ""
        self._depth = 0
        self._mark = ""
        super().__init__(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        kind = dict(attrs).get("class") or ""
        if tag == "div" and kind.startswith("cell") and "dir" in dict(attrs):
            self._side = kind.removeprefix("cell ")
            self.found[self._side].append("")
        elif tag == "mark":
            self._mark = kind

    def handle_endtag(self, tag: str) -> None:
        super().handle_endtag(tag)
        if tag == "div":
            self._side = ""
        elif tag == "mark":
            self._mark = ""

    def handle_data(self, data: str) -> None:
        super().handle_data(data)
        if self._side:
            self.found[self._side][-1] += data
            if self._mark:
                self.marks.append((self._side, data))


def called(text: str, name: str = "a") -> ShownDocument:
    return ShownDocument(name, "", text)


@given(words, words)
def test_both_texts_are_there_from_end_to_end(left: str, right: str) -> None:
    cells = Cells(side_by_side(called(left), called(right, "b"), words=10_000))
    assert "".join(cells.found["left"]) == left
    assert "".join(cells.found["right"]) == right


@given(words, st.integers(0, 12))
def test_what_is_left_out_is_counted(text: str, most: int) -> None:
    other = " ".join(reversed(text.split()))
    found = side_by_side(called(text), called(other, "b"), words=most)
    cells = Cells(found)
    rests = re.findall(r'class="rest dim">([^<]*)<', found)
    both = [sum(int(number) for number in re.findall(r"(\d+) more equal", " ".join(rests)))] * 2
    both[0] += sum(int(number) for number in re.findall(r"(\d+) more words on the left", " ".join(rests)))
    both[1] += sum(int(number) for number in re.findall(r"left, (\d+) on the right", " ".join(rests)))
    for side, whole, missing in zip(("left", "right"), (text, other), both, strict=True):
        assert len(tokens("\n".join(cells.found[side]))) + missing == len(tokens(whole))
    assert len(cells.found["left"]) >= 1


def test_hostile_texts_stay_texts() -> None:
    text = "</div><script>alert(1)</script><img src=x> \0 \ud800 &lt;"
    found = side_by_side(ShownDocument(text, text, text), ShownDocument(text, "", text + " more"))
    assert not {"script", "img"} & {tag for tag, _ in Markup(found).elements}
    assert escape("</div><script>alert(1)</script>") in found
    found.encode("utf-8")


def test_a_title_is_not_said_again_where_the_text_begins() -> None:
    assert (
        Markup(beginning(ShownDocument("a", "The port", "The port\n\nThe port is open."))).text == "The port is open."
    )
    assert Markup(beginning(ShownDocument("a", "The port", "The ports are open."))).text == "The ports are open."
    assert Markup(beginning(ShownDocument("a", "The port", "The port\n"))).text == "The port"
    change = describe_change(
        ShownDocument("a", "The port", "The port\nis open."), ShownDocument("b", "The port", "The port\nis closed.")
    )
    assert [(kind, words) for kind, words, _ in change.pieces] == [("equal", "is"), ("del", "open"), ("ins", "closed")]


def test_empty_lines_at_the_end_of_a_side_can_be_left_out() -> None:
    look = side_by_side(shown("one fox\n\nand a dog"), shown("one owl\n\nand a dog"))
    assert look.count('<span class="end">\n\n</span></div>') == 2


def texts_of(look: str, tag: str) -> list[str]:
    return [html.unescape(re.sub("<[^>]*>", "", found)) for found in re.findall(f"<{tag}>(.*?)</{tag}>", look, re.S)]


def plain(look: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", look))


def differ(left: str, right: str) -> str:
    return render_macro(
        "change.html", "changed", describe_change(ShownDocument("l", "", left), ShownDocument("r", "", right))
    )


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
    assert (
        describe_change(ShownDocument("l", "", " ".join(words)), ShownDocument("r", "", " ".join(other))).passage == 29
    )


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
    for look in (differ(left, right), beginning(ShownDocument("x", "", left))):
        look.encode()
        assert set(re.findall(r"</?([a-z]+)", look)) <= {"p", "del", "ins", "span", "bdi"}
        assert not re.search("[\x00-\x08\x0b-\x1f]", look)
