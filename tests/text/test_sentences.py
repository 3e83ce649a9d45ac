"""Sentences and clauses: the kernel and `cut_text` compared with a loop over characters."""

from __future__ import annotations

import itertools
import unicodedata
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.text.sentences import Unit, cut_text, segment_texts

UNITS = get_args(Unit)
TERMINATORS = (
    "FULL STOP, EXCLAMATION MARK, QUESTION MARK, HORIZONTAL ELLIPSIS, IDEOGRAPHIC FULL STOP,"
    "FULLWIDTH EXCLAMATION MARK, FULLWIDTH QUESTION MARK, FULLWIDTH FULL STOP, HALFWIDTH IDEOGRAPHIC FULL STOP,"
    "ARABIC QUESTION MARK, ARABIC FULL STOP, DEVANAGARI DANDA, DEVANAGARI DOUBLE DANDA, ETHIOPIC FULL STOP,"
    "ARMENIAN FULL STOP, MYANMAR SIGN SECTION"
)
PAUSES = (
    "COMMA, SEMICOLON, COLON, LEFT PARENTHESIS, RIGHT PARENTHESIS, LEFT SQUARE BRACKET, RIGHT SQUARE BRACKET,"
    "LEFT CURLY BRACKET, RIGHT CURLY BRACKET, QUOTATION MARK, ARABIC COMMA, ARABIC SEMICOLON, IDEOGRAPHIC COMMA,"
    "FULLWIDTH COMMA, FULLWIDTH SEMICOLON, FULLWIDTH COLON, EM DASH, EN DASH, LEFT DOUBLE QUOTATION MARK,"
    "RIGHT DOUBLE QUOTATION MARK, LEFT-POINTING DOUBLE ANGLE QUOTATION MARK,"
    "RIGHT-POINTING DOUBLE ANGLE QUOTATION MARK, LEFT CORNER BRACKET, RIGHT CORNER BRACKET,"
    "FULLWIDTH LEFT PARENTHESIS, FULLWIDTH RIGHT PARENTHESIS"
)


def named(names: str) -> set[str]:
    return {unicodedata.lookup(name.strip()) for name in names.split(",")}


BREAKS = {"sentence": named(TERMINATORS), "clause": named(TERMINATORS) | named(PAUSES)}
ODD = "".join(sorted(BREAKS["clause"])) + "\n\n\n\r\t  aZ09_é٣字😀\u0085\u2028\x0b\x00'-/|©¼°،⁄⸮"
TEXTS = st.text(st.one_of(st.sampled_from(ODD), st.characters(exclude_categories=["Cs"])), max_size=60) | st.one_of(
    st.text("\n \r\ta.", max_size=30), st.text("1a,.:x ", max_size=30), st.text(max_size=300)
)


def naive(text: str, unit: Unit) -> list[str]:
    found = [""]
    line: str | None = None  # what stands since the last line feed, None before the first
    for i, character in enumerate(text):
        found[-1] += character
        following = text[i + 1 : i + 2]
        ends = character in BREAKS[unit] and not (character.isascii() and following.isascii() and following.isalnum())
        if character == "\n":
            ends = line is not None and not line.strip(" \t\r")
            line = ""
        elif line is not None:
            line += character
        if ends and following:
            found.append("")
    return found


def by_kernel(texts: list[str], unit: Unit) -> list[list[str]]:
    encoded = [text.encode() for text in texts]
    data = np.frombuffer(b"\xd8" + b"".join(encoded) + b".\n\n", np.uint8)
    offsets = np.cumsum([1, *map(len, encoded)], dtype=np.int64)
    ends, heads = segment_texts(data, offsets, unit)
    assert {ends.dtype, heads.dtype} == {np.dtype(np.int64)}
    assert ends[heads].tolist() == offsets.tolist()
    assert len(ends) == heads[-1] + 1
    pieces = [data[lo:hi].tobytes().decode() for lo, hi in itertools.pairwise(ends)]
    return [pieces[lo:hi] for lo, hi in itertools.pairwise(heads)]


@given(texts=st.lists(TEXTS, max_size=6), unit=st.sampled_from(UNITS))
def test_kernel_and_cut_text_equal_the_twin(texts: list[str], unit: Unit) -> None:
    want = [naive(text, unit) for text in texts]
    assert by_kernel(texts, unit) == want
    assert [[text[lo:hi] for lo, hi in cut_text(text, unit)] for text in texts] == want


@pytest.mark.parametrize("unit", UNITS)
def test_exactly_the_listed_characters_are_breaks(unit: Unit) -> None:
    # All punctuation, and one in 64 of the others.
    kinds = ((chr(c), unicodedata.category(chr(c))) for c in range(0x110000))
    known = [c for c, kind in kinds if kind != "Cs" and (kind[0] == "P" or c < "\u0250" or ord(c) % 64 == 0)]
    texts = [f"é{character}é" for character in known]
    wanted = {f"é{character}" for character in BREAKS[unit]}
    found = {pieces[0] for pieces in by_kernel(texts, unit) if len(pieces) > 1}
    assert found == wanted
    assert {text[: spans[0][1]] for text in texts if len(spans := cut_text(text, unit)) > 1} == wanted


@pytest.mark.parametrize(
    ("unit", "text", "want"),
    [
        ("sentence", "Pay 3.14 at example.com. Now", ["Pay 3.14 at example.com.", " Now"]),
        ("sentence", "Nr.é", ["Nr.", "é"]),
        ("sentence", "东西。南北", ["东西。", "南北"]),
        ("sentence", "Title\n \t\r\nText\nmore", ["Title\n \t\r\n", "Text\nmore"]),
        ("sentence", " \na", [" \na"]),
        ("clause", "At 10:30, (1,000) [x]", ["At 10:30,", " (1,000)", " [x]"]),
        ("clause", "« oui »", ["«", " oui »"]),
    ],
)
def test_worked_examples(unit: Unit, text: str, want: list[str]) -> None:
    assert [text[lo:hi] for lo, hi in cut_text(text, unit)] == want == naive(text, unit)
    assert by_kernel([text], unit) == [want]


def test_any_number_of_texts_and_segments_is_cut() -> None:
    assert by_kernel([], "clause") == []
    assert by_kernel(["." * 1000, "", "\n" * 1000], "sentence") == [["."] * 1000, [""], ["\n\n"] + ["\n"] * 998]
