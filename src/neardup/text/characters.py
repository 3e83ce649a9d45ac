"""What the normalizers know of characters: classes, what counts as not there, and folding.

It derives from `unicodedata` of the running Python, save the facts that it lacks (default-ignorable code points, the
blocks of the scripts that are written without spaces, the points of Hebrew, Arabic and Syriac), and is the same for
every Python: characters that came after Unicode 14.0 are not looked up (`neardup.text.unassigned`).
"""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.text.unassigned import UNASSIGNED_RANGES

N_CODE_POINTS = 0x110000
N_CHARACTERS = 0x40000  # planes 0 to 3; above are only ignorables and private use

Flags = npt.NDArray[np.bool_]

#: Default_Ignorable_Code_Point, first and last [DerivedCoreProperties.txt, Unicode 14 to 17].
IGNORABLE_RANGES = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180B, 0x180F),  # Mongolian variation selectors
    (0x200B, 0x200F),  # zero-width space, joiners, direction marks
    (0x202A, 0x202E),  # direction embeddings
    (0x2060, 0x206F),  # word joiner, invisible operators, isolates
    (0x3164, 0x3164),  # Hangul filler
    (0xFE00, 0xFE0F),  # variation selectors
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFF8),  # unassigned specials
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE0FFF),  # tags, variation selectors supplement
)

#: Points and their like, first and last: vowel points, accents and recitation marks of Hebrew, Arabic and Syriac, which
#: some write and most leave to the reader, and tatweel, which stretches a word. Hamza and madda (U+0653-0655, U+065F)
#: tell letters apart and are not among them.
POINT_RANGES = (
    (0x0591, 0x05BD),  # Hebrew accents and points
    (0x05BF, 0x05BF),  # rafe
    (0x05C1, 0x05C2),  # shin dot, sin dot
    (0x05C4, 0x05C5),  # upper dot, lower dot
    (0x05C7, 0x05C7),  # qamats qatan
    (0x0610, 0x061A),  # honorifics, small high letters, small vowels
    (0x0640, 0x0640),  # tatweel
    (0x064B, 0x0652),  # fathatan to sukun
    (0x0656, 0x065E),  # subscript alef to fatha with two dots
    (0x0670, 0x0670),  # superscript alef
    (0x06D6, 0x06DC),  # recitation marks; U+06DD, 06DE and 06E9 are symbols between words
    (0x06DF, 0x06E8),
    (0x06EA, 0x06ED),
    (0x0711, 0x0711),  # Syriac superscript alaph
    (0x0730, 0x074A),  # Syriac points
    (0x0897, 0x089F),  # pepet and recitation marks
    (0x08C9, 0x08E1),
    (0x08E3, 0x08FF),
    (0xFB1E, 0xFB1E),  # varika
    (0xFC5E, 0xFC63),  # points on a space or a tatweel
    (0xFCF2, 0xFCF4),
    (0xFE70, 0xFE72),
    (0xFE74, 0xFE74),
    (0xFE76, 0xFE7F),
    (0x10EFA, 0x10EFF),  # points of African Arabic, and recitation marks
)

#: Blocks of the scripts written without spaces between words, first and last: what UAX #14 breaks as
#: ideographic or by dictionary (classes ID, CJ, SA), Tibetan, and the aksara scripts Balinese and Javanese.
UNSPACED_RANGES = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x197F),  # Tai Le
    (0x1980, 0x19DF),  # New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x1B00, 0x1B7F),  # Balinese
    (0x2E80, 0x2FDF),  # CJK Radicals Supplement, Kangxi Radicals
    (0x3000, 0x303F),  # CJK Symbols and Punctuation: iteration marks, ideographic zero, Hangzhou numerals
    (0x3040, 0x309F),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana, with the prolonged sound mark
    (0x3100, 0x312F),  # Bopomofo
    (0x31A0, 0x31BF),  # Bopomofo Extended
    (0x31F0, 0x31FF),  # Katakana Phonetic Extensions
    (0x3400, 0x4DBF),  # CJK Unified Ideographs Extension A
    (0x4E00, 0x9FFF),  # CJK Unified Ideographs
    (0xA000, 0xA48F),  # Yi Syllables
    (0xA980, 0xA9DF),  # Javanese
    (0xA9E0, 0xA9FF),  # Myanmar Extended-B
    (0xAA60, 0xAA7F),  # Myanmar Extended-A
    (0xAA80, 0xAADF),  # Tai Viet
    (0xF900, 0xFAFF),  # CJK Compatibility Ideographs: the twelve that NFKC leaves
    (0x116D0, 0x116FF),  # Myanmar Extended-C
    (0x11700, 0x1174F),  # Ahom
    (0x16FE0, 0x16FFF),  # Ideographic Symbols and Punctuation
    (0x17000, 0x18DFF),  # Tangut, Tangut Components, Khitan Small Script, Tangut Supplements
    (0x1AFF0, 0x1AFFF),  # Kana Extended-B
    (0x1B000, 0x1B16F),  # Kana Supplement, Kana Extended-A, Small Kana Extension
    (0x1B170, 0x1B2FF),  # Nushu
    (0x20000, 0x3FFFF),  # CJK Unified Ideographs Extension B and later: planes 2 and 3
)

PICTOGRAPHS = (0x1F000, 0x1FAFF)  # Mahjong Tiles to Symbols and Pictographs Extended-A

#: Blocks of punctuation and symbols, where later characters are neither letters nor pictographs, first and last.
_SYMBOL_RANGES = (
    (0x2000, 0x2BFF),  # General Punctuation to Miscellaneous Symbols and Arrows
    (0x2E00, 0x2E7F),  # Supplemental Punctuation
    (0x2FF0, 0x2FFF),  # Ideographic Description Characters
    (0x1CC00, 0x1CEBF),  # Symbols for Legacy Computing Supplement, Miscellaneous Symbols Supplement
    (0x1FB00, 0x1FBFF),  # Symbols for Legacy Computing
)

# Large uniform blocks in which no code point has a mapping, a combining class or a mark.
_QUIET_RANGES = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xAC00, 0xD7A3),
    (0xD800, 0xF8FF),
    (0x17000, 0x18DFF),
    (0x20000, 0x2F7FF),
    (0x2FA20, 0x3FFFF),
)


class Properties(NamedTuple):
    """One truth value per code point of planes 0 to 3."""

    alnum: Flags
    mark: Flags
    symbol: Flags  # category So
    ignorable: Flags  # by default, or as points
    later: Flags  # assigned after Unicode 14.0, or not yet, and not ignorable


def in_ranges(ranges: tuple[tuple[int, int], ...], size: int) -> Flags:
    """Mark the code points below `size` that lie in one of the ranges, both ends included."""
    flags = np.zeros(size, dtype=np.bool_)
    for first, last in ranges:
        flags[first : last + 1] = True
    return flags


def character_class(flags: Flags) -> str:
    """Write the marked code points as the inside of a regular expression's ``[...]``."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    return "".join(rf"\U{first:08x}-\U{end - 1:08x}" for first, end in edges.tolist())


@functools.cache
def properties() -> Properties:
    """Look up the properties that the normalizers are defined by.

    A later character is a letter without case and mappings, save in blocks of symbols, where it separates, and of
    pictographs, where it is one.
    """
    ignorable = in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CHARACTERS)
    later = in_ranges(UNASSIGNED_RANGES, N_CHARACTERS) & ~ignorable
    pictographs = in_ranges((PICTOGRAPHS,), N_CHARACTERS)
    alnum = np.fromiter(map(str.isalnum, map(chr, range(N_CHARACTERS))), dtype=np.bool_, count=N_CHARACTERS)
    alnum[later] = ~(pictographs | in_ranges(_SYMBOL_RANGES, N_CHARACTERS))[later]
    mark = np.zeros(N_CHARACTERS, dtype=np.bool_)
    symbol = later & pictographs
    for c in loud():
        category = unicodedata.category(chr(c))
        mark[c] = category[0] == "M"
        symbol[c] = category == "So"
    return Properties(alnum, mark, symbol, ignorable, later)


def loud() -> list[int]:
    """Return the code points of planes 0 to 3 that may have a mapping, a combining class, or be a mark or a symbol."""
    quiet = in_ranges(_QUIET_RANGES + UNASSIGNED_RANGES, N_CHARACTERS)
    found: list[int] = np.flatnonzero(~quiet).tolist()
    return found


def fold(text: str) -> str:
    """Fold compatibility and case: the fixed point of NFKC, full case folding, NFKC, without ignorables and points.

    Of a single character this is NFKC_Casefold [UAX #44, UAX #31 section 5.1]. Of a text it may differ
    from the mapping of its characters one by one: canonical order is restored before the case is folded.
    """
    # Nothing composes with a later character or changes places with it.
    parts = _later().split(text)
    parts[::2] = map(_folded, parts[::2])
    return "".join(parts)


def composed(text: str) -> str:
    """Return the compatibility composition (NFKC) of a text, without points."""
    parts = _later().split(_points().sub("", text))
    parts[::2] = [_points().sub("", unicodedata.normalize("NFKC", part)) for part in parts[::2]]
    return "".join(parts)


def without_ignorables(text: str) -> str:
    """Return a text without what counts as not there."""
    return _ignorables().sub("", text)


def _folded(text: str) -> str:
    while True:
        folded = unicodedata.normalize("NFKC", without_ignorables(text))
        folded = unicodedata.normalize("NFKC", folded.casefold())
        if folded == text:
            return folded
        text = folded


@functools.cache
def _ignorables() -> re.Pattern[str]:
    return re.compile(f"[{character_class(in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CODE_POINTS))}]+")


@functools.cache
def _points() -> re.Pattern[str]:
    return re.compile(f"[{character_class(in_ranges(POINT_RANGES, N_CODE_POINTS))}]+")


@functools.cache
def _later() -> re.Pattern[str]:
    """Return the pattern of a run of later characters, as a group."""
    later = properties().later
    # Python tries ranges above U+FFFF one after the other; looking ahead spares the characters below.
    ahead = rf"{character_class(later[:0x10000])}\U00010000-\U0003ffff"
    return re.compile(f"(?=[{ahead}])([{character_class(later)}]+)")
