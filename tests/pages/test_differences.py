"""Which words differ, and how two texts are laid out side by side."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from neardup.pages.diff import Mark, Shown, differences, sign_between, soft_breaks
from neardup.pages.document_view import BETWEEN, SOFT, looks_of

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
    found = differences(left, right)
    kept = [
        [token.text for token, mark in zip(words, marks, strict=True) if mark == Mark.EQUAL]
        for words, marks in ((found.left, found.left_marks), (found.right, found.right_marks))
    ]
    assert kept[0] == kept[1]
    assert found.blocks[-1] == (len(found.left), len(found.right), 0)
    assert sum(block.length for block in found.blocks) == len(kept[0])


def marked(text: str, other: str, mark: int = Mark.CHANGED) -> list[str]:
    found = differences(text, other)
    return [token.text for token, one in zip(found.left, found.left_marks, strict=True) if one == mark]


def test_words_are_those_of_the_normalizer() -> None:
    assert marked("The STRASSE is wet, in 1998!", "the Straße -- is 'dry' in 1999") == ["wet", "1998"]
    assert marked("央行下调十个基点", "央行下调五个基点") == ["十"]
    assert marked("ลด 0.25", "ขึ้น 0.50")[0] == "ล"


def test_a_word_that_both_have_by_chance_is_part_of_the_change() -> None:
    left = "It was said by one two three in four five six seven that all is well"
    right = "It was said by ten eleven twelve in thirty forty fifty sixty that all is well"
    assert "in" in marked(left, right)
    assert "that" not in marked(left, right)


def test_what_was_moved_is_told_from_what_is_new() -> None:
    one, other = "alpha beta gamma delta epsilon", "some words that stand between the two of them, quite many."
    moved = ["alpha", "beta", "gamma", "delta", "epsilon"]
    assert marked(f"{one} {other}", f"{other} {one}", Mark.MOVED) == moved
    assert marked(f"{one} {other}", f"{other} {one}") == []


def sides(looks: dict[str, Any]) -> tuple[str, str]:
    rows = [row for group in looks["groups"] for row in group["rows"]]
    left, right = ("".join(text for row in rows for text, _ in row[side]) for side in ("left", "right"))
    return left, right


def shown(text: str, title: str = "") -> Shown:
    return Shown("x", title, text)


@given(PROSE, PROSE)
def test_nothing_of_a_text_is_lost_or_added(left: str, right: str) -> None:
    looks = looks_of(shown(left), shown(right))
    assert sides(looks) == (left, right)
    for group in looks["groups"]:
        for row in group["rows"]:
            marks = {mark for side in ("left", "right") for _, mark in row[side]} - {Mark.EQUAL, SOFT}
            assert not (row["equal"] and marks)
            assert all(text for side in ("left", "right") for text, _ in row[side])


def test_long_texts_are_laid_out_without_loss_and_folded() -> None:
    sentences = [f"Sentence number {at} of this text says what it says, and no more than that." for at in range(400)]
    changed = [*sentences[:200], "Here is one that is only on the right.", *sentences[200:]]
    left, right = "  ".join(sentences), "\n".join(changed)
    looks = looks_of(shown(left), shown(right))
    assert sides(looks) == (left, right)
    groups = looks["groups"]
    assert [group["folded"] for group in groups] == [False, True, False, True]
    assert groups[1]["equal"]
    assert groups[1]["words"][0] == groups[1]["words"][1] > 2000
    assert sum(group["words"][0] for group in groups) == looks["left"]["words"]
    assert sum(group["words"][1] for group in groups) == looks["right"]["words"]
    text = "".join(piece for row in groups[2]["rows"] for piece, mark in row["right"] if mark == Mark.CHANGED)
    assert text == "Here is one that is only on the right"


def test_signs_between_equal_words_count_where_they_make_another_number() -> None:
    def signs(left: str, right: str) -> list[str]:
        looks = looks_of(shown(left), shown(right))
        return [text for row in looks["groups"][0]["rows"] for text, mark in row["left"] if mark == BETWEEN]

    assert signs("It paid $5 each", "It paid £5 each") == ["$"]
    assert signs("It fell to -5 degrees", "It fell to 5 degrees") == ["-"]
    assert signs("1.5 pct", "1,5 pct") == ["."]
    assert signs("It is, he said, “over”.", "It is he said 'over'") == []
    assert signs("a 1.21-dlr raise", "a 1.21 dlr raise") == []
    assert sign_between(" -", "o", "5") == "-"
    assert sign_between("-", "o", "5") == ""


def test_only_lines_that_are_cut_to_a_length_are_joined_on_a_narrow_page() -> None:
    cut = "The quick brown fox jumps over the lazy dog and runs\naway from it.\n    A new paragraph.\nshort\nlines"
    assert soft_breaks(cut) == [52]
    assert soft_breaks("a paragraph " * 20 + "\nanother one") == []
    looks = looks_of(shown(cut), shown(cut))
    assert [text for row in looks["groups"][0]["rows"] for text, mark in row["left"] if mark == SOFT] == ["\n"]


def test_an_insertion_begins_where_a_sentence_does() -> None:
    left = "It rose. The bank said so. It fell."
    assert marked("It rose. The bank saw it. The bank said so. It fell.", left) == ["the", "bank", "saw", "it"]
    lines = "a line of words\na line of wool\na line of words\n"
    assert marked(lines + "a line of wool\nend", lines + "end") == ["a", "line", "of", "wool"]
