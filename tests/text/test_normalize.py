"""Text to comparable text: the kernel, `normalize` and `tokens` compared with the naive twin."""

from __future__ import annotations

import os
import random
import time
import unicodedata
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive_text import UNASSIGNED, is_newer, is_point, naive_normalize, naive_tokens

from neardup.kernels import unicode_tables
from neardup.kernels.unicode import unicode_texts
from neardup.kernels.unicode_tables import UNASSIGNED_RANGES, compose, fold, normalize_unicode, properties
from neardup.text.bulk import normalize_texts, text_buffers
from neardup.text.normalize import (
    EMPTY_PLACEHOLDER,
    MAX_EXPANSION,
    NORMALIZERS,
    _word_pattern,
    has_kernel,
    kernel_tables,
    normalize,
    tables_digest,
    tokens,
)

ALPHABETS = {
    "ascii": "abzAZ09_ .,-=<\t\n\x1f",
    "latin": "éÉßſÅİıŉǰſﬁﬃªº²½©®´¨\xa0\x85ẞḍ̇Ǆ",
    "marks": "\u0300\u0301\u0307\u0308\u0316\u0323\u0327\u0338\u0345\u034f\u0360\u20dd\u20e3",
    "greek": "ΑαΣςσΐᾳᾼΆ\u037a\u0390\u1fbe\u0313",
    "jamo": "\u1100\u1112\u1161\u1175\u11a8\u11c2\u1160\uac00\uac01\ud7a3\u3131\u314f\u3133\uffc2\u3260",
    "arabic": "ابتأإآ\u0627\u0653\u0654\u064b\u064e\u0651\u0652\u0670ـﷺﷲﻻﺍ٠۹\u0600\u06dd\u06de",
    "recited": "اويى\u0654\u065f\u0656\u06d6\u06e3\u06e5\u08f0\u08d3\u0610\ufc5e\ufcf2\ufe70\ufe71\ufe7f\ufd3c\ufc5d",
    "hebrew": "אבש\u05b0\u05bc\u05c1שּׁיִ\u0591\u05bd\u05be\u05bf\u05c7\ufb1e\u0301",
    "syriac": "ܐܒܪ\u0711\u0730\u0742\u0308\u070f",
    "later": "\u0378\u0897\u0cf3\u0ece\u1c89\u209d\u2b96\u31e4\ua7cb\U0001e030\U0001fae8\U0001cc00\U0001ccd6\U0002ebf0",
    "han": "漢字々〇豈﨎㈱㍿⼀⺀、。\U00020000\U0002f800",
    "kana": "かカーｶﾞﾟ\u3099\u309a゛ガ゙・ヿ",
    "thai": "กน้ำ\u0e4d\u0e31\u0e38\u0e48ๆ๐ຳໜ",
    "indic": "हिन्दी\u093c\u0958ক\u09c7\u09be\u09d7\u09dcகொ\u0bbe\u0bd7",
    "tibetan": "ཀྵ\u0f40\u0f71\u0f72\u0f73\u0f77་༠",
    "burmese": "မြန်\u1025\u102e\u1b05\u1b35",
    "emoji": "👍\U0001f3fd\u200d\ufe0f👩🇫🇷🅰🄰☀\U0001fbf0\U0001f100",
    "ignorable": "\xad\u200b\u200c\u200d\ufeff\u061c\u180e\U000e0061\U000e0101\U0001d173\uffa0\u3164",
}
LETTERS = sorted(set("".join(ALPHABETS.values())) - {chr(c) for c in range(0xD800, 0xE000)})
ANY = st.characters(exclude_categories=["Cs"])
TEXTS = st.text(st.one_of(st.sampled_from(LETTERS), ANY), max_size=30) | st.one_of(
    [st.text(alphabet, max_size=20) for alphabet in ALPHABETS.values()]
)
WITH_KERNEL = [name for name in NORMALIZERS if has_kernel(name)]
GUARD = 0xFF  # never a byte of UTF-8
#: Whether every code point is tried: ``make test-long``.
AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"
#: Ideographs, Hangul syllables, private use and Tangut; from U+40000 on there are only ignorables and private use.
UNIFORM = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA000, 0xA48C), (0xAC00, 0xD7A3), (0xE000, 0xF8FF)]
UNIFORM += [(0x17000, 0x18DFF), (0x20000, 0x2F7FF), (0x2FA20, 0x3FFFF), (0x40000, 0x10FFFF)]


@cache
def characters() -> list[str]:
    """Every assigned or newer character; of uniform blocks and runs of newer ones the ends and one in 61.

    The digests of the tables show the others.
    """
    skipped = np.zeros(0x110000, np.bool_)
    skipped[0x10000:0x20000] = np.arange(0x10000) % 3 != 0
    for first, last in (*UNIFORM, *UNASSIGNED_RANGES):
        skipped[first + 3 : max(last - 2, first)] = True
    skipped[::61] = False
    if AT_LENGTH:
        skipped[:] = False
    chosen = map(chr, np.flatnonzero(~skipped).tolist())
    return [c for c in chosen if unicodedata.category(c) not in ("Cs", "Cn") or ord(c) in UNASSIGNED]


def kernel(text: str, normalizer: str = "words") -> str | None:
    data = np.frombuffer(b"\xe2" + text.encode() + b"\x80", dtype=np.uint8)
    room = MAX_EXPANSION * (len(data) - 2) + 64
    out, spans = np.full(room + 8, GUARD, dtype=np.uint8), np.full((1, 2), -1)
    bounds, rows = np.array([1, len(data) - 1]), np.zeros(1, np.int64)
    assert unicode_texts(data, bounds, rows, 0, kernel_tables(normalizer), out[:room], 0, spans)[0] == 1
    assert (out[room:] == GUARD).all()
    if spans[0, 0] < 0:
        return None
    written = out[spans[0, 0] : spans[0, 1]].tobytes().decode()
    return written.replace(" ", "").replace("_", "") if normalizer == "compact" else written


def all_forms(text: str, normalizer: str = "words") -> set[str]:
    """Normalize by all implementations; all results must be equal."""
    glue = "" if normalizer == "compact" else " "
    ways = {normalize(text, normalizer), glue.join(t.text for t in tokens(text, normalizer))}
    by_kernel = kernel(text, normalizer) if has_kernel(normalizer) else None
    return ways if by_kernel is None else ways | {by_kernel}


@given(text=TEXTS, normalizer=st.sampled_from(sorted(NORMALIZERS)))
def test_kernel_normalize_and_tokens_equal_the_twin(text: str, normalizer: str) -> None:
    normal = naive_normalize(text, normalizer)
    assert all_forms(text, normalizer) == {normal}
    if normalizer != "compact":  # which may bring a mark to a letter that it composes with
        assert all_forms(normal, normalizer) == {normal}
    assert [t.text for t in tokens(text, normalizer)] == naive_tokens(text, normalizer)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_every_code_point_equals_the_twin(normalizer: str) -> None:
    # A line feed composes with nothing, so one text can contain all cases; q is part of no composite.
    unsure = set()
    if has_kernel(normalizer):
        kinds = kernel_tables(normalizer).kinds
        unsure = {c for c in characters() if kinds[ord(c)] == unicode_tables.UNSUPPORTED}
        assert len(unsure) < 50
        for c in unsure:
            assert all_forms(f"q{c}q", normalizer) == {naive_normalize(f"q{c}q", normalizer)}
    text = "\n".join(f"q{c}q" for c in characters() if c not in unsure)
    wanted = naive_tokens(text, normalizer)
    assert [t.text for t in tokens(text, normalizer)] == wanted
    assert all_forms(text, normalizer) == {("" if normalizer == "compact" else " ").join(wanted)}


def test_tables_are_those_that_fingerprints_name(monkeypatch: pytest.MonkeyPatch) -> None:
    named = [tables_digest(normalizer) for normalizer in NORMALIZERS]
    monkeypatch.setattr(unicode_tables, "KNOWN_VERSIONS", ())
    assert [tables_digest(normalizer) for normalizer in NORMALIZERS] == named
    assert [bool(digest) for digest in named] == [True, True, True, True, False]


def test_marks_on_composing_and_decomposing_characters_equal_the_twin() -> None:
    kinds, orders = kernel_tables("words")[:2]
    bases = [c for c in characters() if unicodedata.normalize("NFKD", c) != c]
    bases = bases[::97] + sorted({first for first, _ in unicode_tables.composites()})[::3]
    clinging = np.flatnonzero(kinds & (unicode_tables.REORDERS | unicode_tables.COMPOSES))
    one_of_a_class = {(orders[c], c if kinds[c] & unicode_tables.COMPOSES else 0): chr(c) for c in clinging.tolist()}
    assert len(one_of_a_class) > 100
    for mark in list(one_of_a_class.values())[:: 1 if AT_LENGTH else 3]:
        lines = [f"{base}{mark}q" for base in bases]
        want = [" ".join(naive_tokens(line)) for line in lines[::16]]
        assert [normalize(line) for line in lines[::16]] == want
        assert all(kernel(line) in (None, normalize(line)) for line in lines)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("Hello, World! don't stop_me 3.14", "hello world don t stop_me 3 14"),
        ("Die Straße — GROẞ", "die strasse gross"),
        ("L’E\u0301te\u0301 à l'École", "l été à l école"),
        ("ﬁne ﬂow … co\xadoperate", "fine flow cooperate"),
        ("مُحَمَّدٌ ﷺ", "محمد صلى الله عليه وسلم"),
        ("\u0627\u064e\u0654", "\u0623"),
        ("بﹷب ﹰ بﱞبﳲب", "بب ببب"),
        ("بِسْمِ ٱللَّهِ ٱلرَّحْمَـٰنِ ۝١", "بسم ٱلله ٱلرحمن ١"),
        ("می\u200cخواهم", "میخواهم"),
        ("שּׁלום בְּרֵאשִׁ֖ית־בָּרָ֣א", "שלום בראשית ברא"),
        ("スーパーマン、ガｶﾞ", "ス ー パ ー マ ン ガ ガ"),
        ("น้ำไทย ๒๕", "น้ํ า ไ ท ย ๒ ๕"),
        ("한국어 문서, \u1112\u1161\u11ab", "한국어 문서 한"),
        ("ok👍🏽👩\u200d👧 ❤\ufe0f 🇫🇷 1\ufe0f\u20e3", "ok 👍 👩 👧 🇫 🇷 1\u20e3"),
        ("\u0301a \u0301b", "a b"),
    ],
)
def test_worked_examples_of_words(text: str, want: str) -> None:
    want = unicodedata.normalize("NFKC", want)
    assert all_forms(text) == {want} == {naive_normalize(text)}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        # Unicode 15 has a mapping for the first, 16 a small letter for the second.
        ("\U0001e030x \u1c89\u0301Y", "\U0001e030x \u1c89\u0301y"),
        ("a\u0cf3b \u0897c", "a\u0cf3b c"),
        ("\U0001fae8! \U0002ebf0\U0002ebf1 \u0ece", "\U0001fae8 \U0002ebf0 \U0002ebf1 \u0ece"),
        ("a\u20c1b \U0001ccd6c", "a b c"),
    ],
)
def test_characters_newer_than_unicode_14_are_letters_without_case(text: str, want: str) -> None:
    assert all_forms(text) == {want} == {naive_normalize(text)}


@given(text=TEXTS, normalizer=st.sampled_from(sorted(NORMALIZERS)))
def test_offsets_enclose_the_source_of_a_token(text: str, normalizer: str) -> None:
    before = 0
    for token in tokens(text, normalizer):
        assert 0 <= before <= token.start < token.end <= len(text)
        source = text[token.start : token.end]
        if normalizer == "strip":  # which would strip a token of its own punctuation
            assert token.text == (EMPTY_PLACEHOLDER if source == " " else source)
        else:
            # Of characters one by one, a mark counts only behind the character that it belongs to.
            behind = naive_tokens(f"0{source}", normalizer) if normalizer == "compact" else []
            assert token.text in naive_tokens(source, normalizer) + behind
        before = token.start


def test_an_empty_token_has_the_offsets_of_the_space_after_it() -> None:
    assert tokens("(a  bc d)", "strip") == [("a", 1, 2), (EMPTY_PLACEHOLDER, 3, 4), ("bc", 4, 6), ("d", 7, 8)]


#: Arabic, Hebrew and Syriac letters with and without hamza and madda, which stay, and what parts words.
LETTERS_OF_ABJADS = "ابتسلموىيأإآؤئءٱ\u0653\u0654\u0655\u065fﻻﷲאבשםﬠܐܒ\u0308 ،.-a1漢"


@cache
def points() -> list[str]:
    return [c for c in characters() if is_point(c)]


@given(st.data())
def test_points_are_ignored_and_belong_to_the_letter_before(data: st.DataObject) -> None:
    text = data.draw(st.text(LETTERS_OF_ABJADS, max_size=20))
    some = st.text(st.sampled_from(points()), max_size=3)
    pointed = "".join(data.draw(some) + character for character in text) + data.draw(some)
    for normalizer in ("words", "compact"):
        assert all_forms(pointed, normalizer) == all_forms(text, normalizer) == {naive_normalize(text, normalizer)}
    for normalizer in ("whitespace", "strip", "raw"):
        assert normalize(f"a{pointed}a", normalizer).count("a") == pointed.count("a") + 2
    for token in tokens(pointed):
        assert normalize(pointed[token.start : token.end]).split().count(token.text)
        assert token.end == len(pointed) or not is_point(pointed[token.end])


@pytest.mark.parametrize("normalizer", WITH_KERNEL)
def test_output_fits_the_stated_maximum(normalizer: str) -> None:
    # `kernel` checks the bytes behind the buffer; each ideograph needs a space on either side.
    for start in range(0, len(characters()), 512):
        kernel("漢".join(characters()[start : start + 512]), normalizer)
        kernel("a".join(characters()[start : start + 512]), normalizer)


def test_the_kernel_leaves_only_rare_texts_to_python() -> None:
    for text in ("Été à Besançon", "Việt Nam ở", "ガギグ プ", "한국어 문서", "й ё ї́", "ভালো কৌ", "آأؤ"):
        assert kernel(unicodedata.normalize("NFD", text)) == kernel(text) == normalize(text)
    for text in ("a" + "\u0316" * 30, "ﷺ", "و" * 50 + "ﷺ"):
        assert kernel(text) == normalize(text)
    # Marks that compose out of order, too many marks, and replacements that outgrow the buffer.
    for text in ("e\u0308\u0323", "ᾳ\u0301", "ｶﾞ", "x\u0344", "a" + "\u0316" * 31, "ﷺ" * 100):
        assert kernel(text) is None


def test_what_unicode_14_leaves_unassigned_is_listed() -> None:
    every = {c for c in range(0x40000) if unicodedata.category(chr(c)) == "Cn"}
    noncharacters = {c for c in every if c & 0xFFFE == 0xFFFE or 0xFDD0 <= c <= 0xFDEF}
    if unicodedata.unidata_version == "14.0.0":
        assert every - noncharacters == UNASSIGNED
    else:
        assert every - noncharacters < UNASSIGNED


def test_newer_characters_are_never_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    class Unicode14:
        """A newer version of `unicodedata` that refuses characters newer than Unicode 14.0."""

        def __getattr__(self, name: str) -> Any:
            def asked(*given: str) -> Any:
                assert not any(map(is_newer, given[-1]))
                return getattr(unicodedata, name)(*given)

            return asked

    monkeypatch.setattr("neardup.kernels.unicode_tables.unicodedata", Unicode14())
    monkeypatch.setattr("neardup.kernels.unicode_tables.unicodedata", Unicode14())
    text = "".join(map(chr, sorted(UNASSIGNED)))[:1000] + "é\U0001e030\U0002ebf0\U0001fae8\u0301"
    assert fold(text).endswith("é\U0001e030\U0002ebf0\U0001fae8\u0301")
    assert compose(text).endswith("é\U0001e030\U0002ebf0\U0001fae8\u0301")
    for function in (properties, unicode_tables.composites, unicode_tables.word_tables):
        assert function.__wrapped__() is not None


BULK_TEXTS = st.text(ANY, max_size=80) | st.text("a é.\n漢", max_size=200)


def in_bulk(texts: list[str], normalizer: str) -> list[str]:
    data, offsets = text_buffers(pa.array(["before", *texts], pa.large_string())[1:])
    found = normalize_texts(data, offsets, normalizer)
    assert found.text[found.spans.max(initial=0) :][:64].tobytes() == b" " * 64
    return [found.text[begin:end].tobytes().decode() for begin, end in found.spans.tolist()]


@given(texts=st.lists(BULK_TEXTS, max_size=8), normalizer=st.sampled_from(list(NORMALIZERS)))
def test_bulk_text_equals_the_twin(texts: list[str], normalizer: str) -> None:
    found = in_bulk(texts, normalizer)
    if has_kernel(normalizer):
        # Kernels may leave several spaces between tokens, and some at the ends.
        found = [" ".join(filter(None, text.split(" "))) for text in found]
    assert found == [naive_normalize(text, normalizer) for text in texts]


@pytest.mark.parametrize("count", [1, 50])
def test_text_that_grows_enlarges_the_buffer(count: int) -> None:
    spaces = "a" + " " * 5000 + "b"
    assert in_bulk([spaces] * count, "strip") == ["a " + "␠ " * 4999 + "b"] * count


#: Marks, what decomposes into marks, and what marks compose with.
_MARKS = [chr(c) for c in range(0x300, 0x370)] + list(
    "\u0344\u0340\u0f71\u0f72\u0f73\u0f75\u0f81\u3099ﾞﾟ\u05b7\u0651\u0e38\U0001d165"
)
_BASES = ["", *"eaσΐİßﬃ가각ｶか\u1100\u1161\u11a8\u200d \ufdfa"]


@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
@given(st.lists(st.tuples(st.sampled_from(_BASES), st.integers(0, 150), st.randoms(use_true_random=False)), max_size=4))
def test_long_runs_of_marks_are_normalized_as_python_does(form: Any, runs: list[Any]) -> None:
    text = "".join(base + "".join(draw.choices(_MARKS, k=count)) for base, count, draw in runs)
    assert normalize_unicode(form, text) == unicodedata.normalize(form, text)


#: Texts that take quadratic time if anything is scanned or sorted from each of its places.
HOSTILE = {
    "marks": "e" + "\u0301\u0323" * 62_500,
    "decomposing marks": "e" + "\u0344\u0323" * 62_500,
    "halfwidth marks": "ｶ" + "ﾞ\u0323\u0301" * 40_000,
    "Tibetan": "\u0f73\u0f71" * 40_000,
    "jamo": "\u1100\u1161\u11a8" * 25_000,
    "vowels": "\u1161" * 75_000,
    "joiners": "\u200d" * 75_000,
    "joiners with marks": "\u200d\u200d\u0301" * 25_000,
    "flags": "🇩" * 62_500,
    "tags": "\U000e0061" * 62_500,
    "newer": "\U0001fae0e\u0301" * 25_000,
    "mixed": "eß\u0301\u0323\u1100\u1161\u200d🇩 .\u0344ﾞ" * 10_000,
    "a.b.": "a.b." * 62_500,
    "A. B.": "A. B. " * 40_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_take_linear_time(name: str) -> None:
    text = HOSTILE[name]
    begin = time.process_time()
    for normalizer in NORMALIZERS:
        normalize(text, normalizer)
        tokens(text, normalizer)
        data, offsets = text_buffers(pa.array([text], pa.large_string()))
        normalize_texts(data, offsets, normalizer)
    # Half a second on a usual machine; in quadratic time it would be a minute.
    assert time.process_time() - begin < 12


def test_a_text_is_folded_in_parts_as_at_once() -> None:
    parts = [*_BASES, *_MARKS, "word ", "\u00ad", "\u05d0\u05b7", "\U0001e4d0", "I\u0307", "ﾊ\u200d\u200dﾞ"]
    text = "".join(random.Random(5).choices(parts, k=200_000))
    assert normalize(text) == " ".join(_word_pattern().findall(fold(text)))
