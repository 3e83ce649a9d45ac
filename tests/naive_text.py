"""Naive twins of the normalizers: definitions on whole strings, without tables or regular expressions.

Scripts, points and ignorable code points are recognized by names and categories, where the library lists ranges.
"""

from __future__ import annotations

import string
import unicodedata
from functools import cache
from itertools import filterfalse, groupby

from neardup.kernels.unicode_tables import UNASSIGNED_RANGES, UNSPACED_RANGES

UNASSIGNED = {c for first, last in UNASSIGNED_RANGES for c in range(first, last + 1)}
# Unassigned characters have no names, only blocks.
_UNSPACED_BLOCKS = {c for first, last in UNSPACED_RANGES for c in range(first, last + 1)}

# Default_Ignorable_Code_Point is Cf, variation selectors and these, less _VISIBLE_FORMATS [UAX #44].
_OTHER_IGNORABLE = (
    {0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x3164, 0xFFA0}
    | set(range(0xFFF0, 0xFFF9))
    | set(range(0xE0000, 0xE1000))
)
_VISIBLE_FORMATS = (
    "ARABIC NUMBER",
    "ARABIC SIGN",
    "ARABIC FOOTNOTE",
    "ARABIC END OF AYAH",
    "ARABIC DISPUTED END OF AYAH",
    "ARABIC POUND MARK",
    "ARABIC PIASTRE MARK",
    "SYRIAC ABBREVIATION MARK",
    "KAITHI NUMBER SIGN",
    "INTERLINEAR ANNOTATION",
    "EGYPTIAN HIEROGLYPH",
)
_UNSPACED_NAMES = (
    "THAI ",
    "LAO ",
    "TIBETAN ",
    "MYANMAR ",
    "KHMER ",
    "TAI LE ",
    "NEW TAI LUE ",
    "TAI THAM ",
    "TAI VIET ",
    "AHOM ",
    "BALINESE ",
    "JAVANESE ",
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC ",
    "HANGZHOU NUMERAL",
    "VERTICAL IDEOGRAPHIC",
    "VERTICAL KANA",
    "MASU MARK",
    "HIRAGANA ",
    "KATAKANA",
    "HENTAIGANA ",
    "BOPOMOFO ",
    "YI SYLLABLE",
    "TANGUT ",
    "NUSHU ",
    "KHITAN SMALL SCRIPT ",
    "OLD CHINESE ",
)


# Points that are newer than Unicode 14.0, and so have no name in every version of Python.
_NEWER_POINTS = {0x0897, *range(0x10EFA, 0x10F00)}
# Blocks of punctuation and symbols, whose newer characters are not letters.
_NEWER_SYMBOLS = {
    *range(0x2000, 0x2C00),
    *range(0x2E00, 0x2E80),
    *range(0x2FF0, 0x3000),
    *range(0x1CC00, 0x1CEC0),
    *range(0x1FB00, 0x1FC00),
}


@cache
def is_point(character: str) -> bool:
    """Whether a character is a vowel mark, accent or recitation mark of an abjad, or such marks on a space."""
    name, category = unicodedata.name(character, ""), unicodedata.category(character)
    if ord(character) in UNASSIGNED:
        return ord(character) in _NEWER_POINTS
    if name.startswith("ARABIC ") and category in ("Mn", "Lm"):
        return "HAMZA" not in name and "MADDAH" not in name
    if name.startswith(("HEBREW ", "SYRIAC ")) and category == "Mn":
        return True
    parts = set(unicodedata.normalize("NFKD", character)) - {" "}
    return parts != {character} and bool(parts) and all(map(is_point, parts))


@cache
def is_ignorable(character: str) -> bool:
    if is_point(character):
        return True
    name = unicodedata.name(character, "")
    if ord(character) in _OTHER_IGNORABLE or "VARIATION SELECTOR" in name:
        return True
    if ord(character) in UNASSIGNED:
        return False
    return unicodedata.category(character) == "Cf" and not name.startswith(_VISIBLE_FORMATS)


@cache
def is_newer(character: str) -> bool:
    """Whether a character was or will be assigned after Unicode 14.0."""
    return ord(character) in UNASSIGNED and not is_ignorable(character)


@cache
def is_letter(character: str) -> bool:
    """Whether a character is a letter or a number; most newer ones are."""
    if is_newer(character):
        return ord(character) not in _NEWER_SYMBOLS and not 0x1F000 <= ord(character) <= 0x1FAFF
    return character.isalnum()


def naive_fold(text: str) -> str:
    parts = (("".join(part), newer) for newer, part in groupby(text, is_newer))
    return "".join(part if newer else _naive_fold(part) for part, newer in parts)


def _naive_fold(text: str) -> str:
    before = None
    while text != before:
        before = text
        text = "".join(c for c in text if not is_ignorable(c))
        text = unicodedata.normalize("NFKC", text)
        text = unicodedata.normalize("NFKC", text.casefold())
    return text


def naive_composed(text: str) -> str:
    """NFKC without points."""
    for _ in range(2):
        parts = (("".join(part), newer) for newer, part in groupby(filterfalse(is_point, text), is_newer))
        text = "".join(part if newer else unicodedata.normalize("NFKC", part) for part, newer in parts)
    return text


def is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me") and not is_newer(character)


def is_pictograph(character: str) -> bool:
    return 0x1F000 <= ord(character) <= 0x1FAFF and (unicodedata.category(character) == "So" or is_newer(character))


def is_single(character: str) -> bool:
    if is_newer(character):
        return is_pictograph(character) or (is_letter(character) and ord(character) in _UNSPACED_BLOCKS)
    if character.isalnum():
        # The ideographs of Tangut have no names in unicodedata.
        name = unicodedata.name(character, "TANGUT " if 0x17000 <= ord(character) <= 0x18DFF else "")
        return name.startswith(_UNSPACED_NAMES) and not name.startswith("IDEOGRAPHIC TALLY")
    return is_pictograph(character)


def naive_tokens(text: str, normalizer: str = "words") -> list[str]:
    if normalizer == "whitespace":
        return text.split()
    if normalizer == "compact":
        return [c for token in naive_tokens(text) for c in token if c != "_"]
    if normalizer == "strip":
        return _strip_tokens(text)
    if normalizer == "raw":
        return [text] if text else []
    tokens: list[str] = []
    before = "separator"
    for character in naive_fold(text):
        if is_single(character):
            tokens.append(character)
            before = "single"
        elif character == "_" or is_letter(character):
            if before == "word":
                tokens[-1] += character
            else:
                tokens.append(character)
            before = "word"
        elif not is_mark(character):
            before = "separator"
        elif before != "separator":
            tokens[-1] += character
    return tokens


def naive_normalize(text: str, normalizer: str = "words") -> str:
    return ("" if normalizer == "compact" else " ").join(naive_tokens(text, normalizer))


def _strip_tokens(text: str) -> list[str]:
    while text and (text[0].isspace() or text[0] in string.punctuation):
        text = text[1:]
    while text and (text[-1].isspace() or text[-1] in string.punctuation):
        text = text[:-1]
    tokens: list[list[str]] = [[]] if text else []
    for character in text:
        if character == " ":
            tokens.append([])
        else:
            tokens[-1].append(character)
    return ["".join(token) or "\N{SYMBOL FOR SPACE}" for token in tokens]
