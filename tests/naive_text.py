"""The normalizers again, slow and plain: definitions on whole strings, no tables, no regexes.

Scripts and ignorable code points are told by the characters' names and categories, where the library
lists ranges.
"""

from __future__ import annotations

import string
import unicodedata

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


def is_ignorable(character: str) -> bool:
    name = unicodedata.name(character, "")
    if ord(character) in _OTHER_IGNORABLE or "VARIATION SELECTOR" in name:
        return True
    return unicodedata.category(character) == "Cf" and not name.startswith(_VISIBLE_FORMATS)


def naive_fold(text: str) -> str:
    before = None
    while text != before:
        before = text
        text = "".join(c for c in text if not is_ignorable(c))
        text = unicodedata.normalize("NFKC", text)
        text = unicodedata.normalize("NFKC", text.casefold())
    return text


def is_mark(character: str) -> bool:
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


def is_single(character: str) -> bool:
    if character.isalnum():
        # The ideographs of Tangut have no names in unicodedata.
        name = unicodedata.name(character, "TANGUT " if 0x17000 <= ord(character) <= 0x18DFF else "")
        return name.startswith(_UNSPACED_NAMES) and not name.startswith("IDEOGRAPHIC TALLY")
    return 0x1F000 <= ord(character) <= 0x1FAFF and unicodedata.category(character) == "So"


def naive_tokens(text: str, normalizer: str = "words") -> list[str]:
    if normalizer == "whitespace":
        return text.split()
    if normalizer == "compact":
        return [c for c in text if _is_kept(c)]
    if normalizer == "strip":
        return _between_spaces(text)
    if normalizer == "raw":
        return [text] if text else []
    tokens: list[str] = []
    before = "separator"
    for character in naive_fold(text):
        if is_single(character):
            tokens.append(character)
            before = "single"
        elif character == "_" or character.isalnum():
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


def _between_spaces(text: str) -> list[str]:
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


def _is_kept(character: str) -> bool:
    if is_ignorable(character):
        return False
    pictograph = ord(character) >= 0x1F000 and unicodedata.category(character) == "So"
    return character.isalnum() or is_mark(character) or pictograph
