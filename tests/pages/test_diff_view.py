"""Which words of two texts differ, how they stand side by side, and the short description of a change."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.pages.diff import Mark, ShownDocument, View, build_view, compare_texts
from neardup.pages.diff_view import beginning, changed, describe_change, side_by_side
from neardup.text.normalize import tokens

#: Words, separators, and characters that may be no part of a word.
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


def document(text: str, title: str = "") -> ShownDocument:
    return ShownDocument("x", title, text)


def text_of(markup: str) -> str:
    return html.unescape(re.sub("<[^>]*>", "", markup))


@example("a", "a a")
@example("a a. a", "a")
@given(PROSE, PROSE)
def test_unmarked_words_are_the_same_on_both_sides(left: str, right: str) -> None:
    found = compare_texts(left, right)
    equal = [
        [token.text for token, mark in zip(words, marks, strict=True) if mark == Mark.EQUAL]
        for words, marks in ((found.left, found.left_marks), (found.right, found.right_marks))
    ]
    assert equal[0] == equal[1]
    assert found.blocks[-1] == (len(found.left), len(found.right), 0)
    assert sum(block.length for block in found.blocks) == len(equal[0])


@pytest.mark.parametrize(
    ("left", "right", "marked"),
    [
        # Words are those of the normalizer.
        ("The STRASSE is wet, in 1998!", "the Straße -- is 'dry' in 1999", "wet 1998"),
        ("央行下调十个基点", "央行下调五个基点", "十"),
        # An insertion begins with a sentence or a line.
        (
            "It rose. The bank saw it. The bank said so. It fell.",
            "It rose. The bank said so. It fell.",
            "the bank saw it",
        ),
        (
            "of wool\na line of wool\na line of tin\na line of wool",
            "of wool\na line of wool",
            "a line of tin a line of wool",
        ),
        # A word shared by chance belongs to the change.
        ("said by one two three in four five six that all", "said by ten eleven in forty fifty sixty that all", None),
    ],
)
def test_the_words_that_differ_are_marked(left: str, right: str, marked: str | None) -> None:
    found = compare_texts(left, right)
    words = [token.text for token, mark in zip(found.left, found.left_marks, strict=True) if mark]
    assert " ".join(words) == (marked or "one two three in four five six")


@pytest.mark.parametrize(
    ("left", "right", "signs"),
    [
        ("It paid $5 each", "It paid £5 each", ["$"]),
        ("It fell to -5 degrees", "It fell to 5 degrees", ["-"]),
        ("1.5 pct", "1,5 pct", ["."]),
        ("It is, he said, “over”.", "It is he said 'over'", []),
        ("a 1.21-dlr raise", "a 1.21 dlr raise", []),
    ],
)
def test_signs_between_equal_words_count_if_they_change_a_number(left: str, right: str, signs: list[str]) -> None:
    view = build_view(document(left), document(right))
    found = [text for row in view.groups[0].rows for text, mark in view.pieces(row)[0] if mark == Mark.BETWEEN]
    assert found == signs


def sides(view: View) -> tuple[str, str]:
    rows = [view.pieces(row) for group in view.groups for row in group.rows]
    left, right = ("".join(text for pieces in rows for text, _ in pieces[side]) for side in (0, 1))
    return left, right


@given(PROSE, PROSE)
def test_a_view_loses_and_adds_nothing(left: str, right: str) -> None:
    view = build_view(document(left), document(right))
    assert sides(view) == (left, right)
    for group in view.groups:
        for row in group.rows:
            pieces = [piece for side in view.pieces(row) for piece in side]
            assert not (row.equal and {mark for _, mark in pieces} - {Mark.EQUAL})
            assert all(text for text, _ in pieces)


def test_long_equal_passages_are_folded() -> None:
    sentences = [f"Sentence number {at} of this text says what it says, and no more than that." for at in range(400)]
    new = "Here is one that is only on the right."
    # Between the two there are too few words to fold.
    changed = [*sentences[:200], new, *sentences[200:211], new, *sentences[211:]]
    left, right = "  ".join(sentences), "\n".join(changed)
    view = build_view(document(left), document(right))
    assert sides(view) == (left, right)
    assert [(group.folded, group.equal) for group in view.groups] == [(0, 1), (1, 1), (0, 0), (1, 1)]
    assert sum(row.words[0] for row in view.groups[1].rows) > 2000
    pieces = [piece for row in view.groups[2].rows for piece in view.pieces(row)[1]]
    assert "".join(text for text, mark in pieces if mark == Mark.CHANGED) == 2 * new[:-1]
    assert len(tokens(text_of(side_by_side(document(left), document(right), words=100)))) < 500
    # Of very many changes the last are folded.
    every = build_view(document(2 * f"{left} "), document(2 * f"{left} ".replace("no more", "nothing less")))
    assert [group.folded for group in every.groups] == [False, True]


@given(st.text(st.sampled_from("ab. \n"), max_size=60), st.integers(0, 12) | st.just(10_000))
def test_side_by_side_shows_both_texts_and_counts_what_it_leaves_out(text: str, most: int) -> None:
    other = " ".join(reversed(text.split()))
    markup = side_by_side(document(text), document(other), words=most)
    cells: dict[str, list[str]] = {"left": [], "right": []}
    for side, cell in re.findall('<div class="cell (left|right)" dir="[^"]*">(.*?)</div>', markup, re.S):
        cells[side].append(text_of(cell))
    rests = " ".join(re.findall(r'class="rest dim">([^<]*)<', markup))
    equal, *hidden = (
        sum(map(int, re.findall(pattern, rests)))
        for pattern in (r"(\d+) more equal", r"(\d+) more words? on the left", r"left, (\d+) on the right")
    )
    for side, whole, missing in zip(cells, (text, other), hidden, strict=True):
        assert len(tokens("\n".join(cells[side]))) + missing + equal == len(tokens(whole))
        assert cells[side]
        assert most < 10_000 or "".join(cells[side]) == whole


ANY = st.text(alphabet=st.characters(codec=None), max_size=60) | st.sampled_from(
    ["<b>&amp;", "</p><script>", "\ud800 x", "\0\x07", "a\nb\r\nc", "🦊🦊", "ก่อนหน้านี้"]
)


def change_html(left: str, right: str) -> str:
    return changed(describe_change(document(left), document(right)))


@given(ANY, ANY)
@example("</div><script>alert(1)</script><img src=x> \0 \ud800 &lt;", "more")
def test_any_texts_are_escaped_and_can_be_encoded(left: str, right: str) -> None:
    views = (change_html(left, right), beginning(document(left)), side_by_side(document(left, right), document(right)))
    for markup in views:
        markup.encode()
        assert set(re.findall(r"</?([a-z]+)", markup)) <= {*("p", "del", "ins", "span", "bdi"), "div", "strong", "mark"}
        assert not re.search("[\x00-\x08\x0b-\x1f]", markup)


def test_a_title_is_not_repeated_at_the_beginning_of_its_text() -> None:
    for text, rest in (
        ("The port\n\nThe port is open.", "The port is open."),
        ("The ports are open.", "The ports are open."),
        ("The port\n", "The port"),
    ):
        assert text_of(beginning(document(text, "The port"))) == rest
    change = describe_change(document("The port\nis open.", "The port"), document("The port\nis closed.", "The port"))
    assert [(kind, words) for kind, words, _ in change.pieces] == [("equal", "is"), ("del", "open"), ("ins", "closed")]


def tagged(markup: str, tag: str) -> list[str]:
    return [text_of(found) for found in re.findall(f"<{tag}>(.*?)</{tag}>", markup, re.S)]


def test_changes_stand_among_the_words_around_them() -> None:
    words = [f"w{i}" for i in range(60)]
    left, right = " ".join(words), " ".join([*words[:20], "new", *words[21:50], "added", *words[50:]])
    markup = change_html(left, right)
    assert (tagged(markup, "del"), tagged(markup, "ins")) == (["w20"], ["new", "added"])
    around = ["…", *words[14:21], "new", *words[21:27], "…", *words[44:50], "added", *words[50:56], "…"]
    assert text_of(markup).split() == around
    assert describe_change(document(left), document(right)).passage == 29


def test_long_and_many_changes_are_cut_and_counted() -> None:
    assert "60 more words" in text_of(change_html("a b c", "a b c " + " ".join(f"n{i}" for i in range(100))))
    many = [f"w{i}" for i in range(400)]
    markup = change_html(" ".join(many), " ".join(f"x{i}" if i % 20 == 10 else word for i, word in enumerate(many)))
    assert len(tagged(markup, "ins")) == 6
    assert "14 more changes are not shown" in text_of(markup)
    assert "the same text in the first 16,000 characters" in text_of(change_html("a " * 20_000, "a " * 20_000 + "b"))
    assert len(change_html("a" * 50_000, "b" * 50_000)) < 3_000
    assert "the same words in another form" in text_of(change_html("A rose.", "a  rose!"))
