"""Sentences and clauses, compared with a loop over characters; stop words by language."""

from __future__ import annotations

import itertools
import unicodedata
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_text import naive_tokens

from neardup.errors import RecipeError
from neardup.text.sentences import Unit, cut_text, segment_texts
from neardup.text.stop_words import ANTECEDENTS, antecedents, languages, stop_words

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
    # All punctuation, and one in 256 of the others.
    kinds = ((chr(c), unicodedata.category(chr(c))) for c in range(0x110000))
    known = [c for c, kind in kinds if kind != "Cs" and (kind[0] == "P" or c < "\u0250" or ord(c) % 256 == 0)]
    texts = [f"é{character}é" for character in known]
    wanted = {f"é{character}" for character in BREAKS[unit]}
    found = {pieces[0] for pieces in by_kernel(texts, unit) if len(pieces) > 1}
    assert found == wanted
    assert {text[: spans[0][1]] for text in texts if len(spans := cut_text(text, unit)) > 1} == wanted


def test_any_number_of_texts_and_segments_is_cut() -> None:
    assert by_kernel([], "clause") == []
    assert by_kernel(["." * 1000, "", "\n" * 1000], "sentence") == [["."] * 1000, [""], ["\n\n"] + ["\n"] * 998]


def test_many_languages_are_supported_by_code_and_name() -> None:
    known = languages()
    assert len(known) >= 30
    assert list(known) == sorted(known)
    assert all(len(code) == 2 and name.istitle() for code, name in known.items())
    assert (known["en"], known["no"], known["nb"]) == ("English", "Norwegian", "Norwegian")


def test_every_language_has_words_that_are_tokens() -> None:
    for code in languages():
        words = stop_words(code)
        assert len(words) > 30
        assert all(naive_tokens(word) == [word] for word in words)


def test_languages_combine_in_any_order() -> None:
    assert stop_words("en,de") == stop_words(" de , en ") == stop_words("en") | stop_words("de")
    assert stop_words("no") == stop_words("nb")
    assert stop_words("") == stop_words(" ") == antecedents("") == frozenset()


def test_antecedents_are_few_english_words_and_all_stop_words_of_other_languages() -> None:
    assert antecedents("en") == frozenset(ANTECEDENTS) < stop_words("en")
    assert antecedents("fr,en") == frozenset(ANTECEDENTS) | stop_words("fr")


@pytest.mark.parametrize(("given", "wrong"), [("xx", "'xx'"), ("en,,de", "''"), ("EN", "'EN'")])
def test_an_unknown_language_error_lists_the_supported_ones(given: str, wrong: str) -> None:
    for function in (stop_words, antecedents):
        with pytest.raises(RecipeError, match=f"language {wrong};.*ar, bg, .*zh$"):
            function(given)
