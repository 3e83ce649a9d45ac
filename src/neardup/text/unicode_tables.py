"""What the normalizers know about code points, as arrays for the kernel and as sets for the regexes.

Everything derives from `unicodedata` of the running Python, save two lists of facts that it lacks: the
default-ignorable code points and the blocks of the scripts that are written without spaces.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

# The low three bits of an entry of `Tables.kinds`: what a code point does to the tokens.
KIND_MASK = 7
SEPARATOR = 0  # ends a token
WORD = 1  # continues a word or begins one
SINGLE = 2  # a token of its own
MARK = 3  # stays with the token before it; dropped where there is none
IGNORABLE = 4  # as if it were not there
MAPPED = 5  # stands for the code points in `Tables.blob`
UNSURE = 6  # depends on its neighbours in a way the kernel does not follow
# Two flags beside them.
MOVES = 8  # canonical combining class other than 0: may change places with its neighbours
JOINS = 16  # the second half of a primary composite: may melt into what precedes
DROPPED = 0xFF  # in `Tables.ascii_bytes`: nothing is written

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
_JAMO_VOWELS = range(0x1161, 0x1176)
_JAMO_FINALS = range(0x11A8, 0x11C3)


class Tables(NamedTuple):
    """What the kernel `normalize_utf8` knows of code points; built by `kernel_tables`.

    Attributes
    ----------
    kinds : uint8[0x110000]
        A kind (`SEPARATOR` to `UNSURE`), with the flags `MOVES` and `JOINS`.
    orders : uint8[0x110000]
        The canonical combining class; of a starter, that of the last code point of its decomposition.
    slots : uint16[:]
        Where in `blob` the replacement of a `MAPPED` code point stands.
    blob : int32[:]
        Replacements: how many code points, the bytes they take at most with a space beside each, and the
        code points, none of them mapped.
    pairs : int64[:]
        The primary composites as ``first << 42 | second << 21 | composite``, sorted.
    ascii_bytes : uint8[128]
        What is written for an ASCII character: a letter, 0x20 for a separator, or `DROPPED`.
    """

    kinds: npt.NDArray[np.uint8]
    orders: npt.NDArray[np.uint8]
    slots: npt.NDArray[np.uint16]
    blob: npt.NDArray[np.int32]
    pairs: npt.NDArray[np.int64]
    ascii_bytes: npt.NDArray[np.uint8]


class Properties(NamedTuple):
    """One truth value per code point of planes 0 to 3."""

    alnum: Flags
    mark: Flags
    symbol: Flags  # category So
    ignorable: Flags


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
def ignorables() -> re.Pattern[str]:
    """Return the pattern of a run of default-ignorable code points."""
    return re.compile(f"[{character_class(in_ranges(IGNORABLE_RANGES, N_CODE_POINTS))}]+")


@functools.cache
def properties() -> Properties:
    """Look up the properties that the normalizers are defined by."""
    characters = [chr(c) for c in range(N_CHARACTERS)]
    alnum = np.fromiter(map(str.isalnum, characters), dtype=np.bool_, count=N_CHARACTERS)
    mark = np.zeros(N_CHARACTERS, dtype=np.bool_)
    symbol = np.zeros(N_CHARACTERS, dtype=np.bool_)
    for c in _loud():
        category = unicodedata.category(characters[c])
        mark[c] = category[0] == "M"
        symbol[c] = category == "So"
    return Properties(alnum, mark, symbol, in_ranges(IGNORABLE_RANGES, N_CHARACTERS))


def fold(text: str) -> str:
    """Fold compatibility and case: the fixed point of NFKC, full case folding, NFKC, without ignorables.

    Of a single character this is NFKC_Casefold [UAX #44, UAX #31 section 5.1]. Of a text it may differ
    from the mapping of its characters one by one: canonical order is restored before the case is folded.
    """
    while True:
        folded = unicodedata.normalize("NFKC", ignorables().sub("", text))
        folded = unicodedata.normalize("NFKC", folded.casefold())
        if folded == text:
            return folded
        text = folded


@functools.cache
def composites() -> dict[tuple[str, str], str]:
    """Return the primary composites but for Hangul: what NFC makes of (first, second)."""
    found = {}
    for c in _loud():
        halves = unicodedata.decomposition(chr(c)).split()
        if len(halves) == 2 and halves[0][0] != "<" and unicodedata.is_normalized("NFC", chr(c)):
            found[chr(int(halves[0], 16)), chr(int(halves[1], 16))] = chr(c)
    return found


@functools.cache
def word_tables() -> Tables:
    """Build the tables of the normalizer ``words``."""
    known = properties()
    kinds = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    orders = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    plain = kinds[:N_CHARACTERS]
    plain[known.alnum] = WORD
    plain[known.mark] = MARK
    plain[ord("_")] = WORD
    plain[known.alnum & in_ranges(UNSPACED_RANGES, N_CHARACTERS)] = SINGLE
    plain[known.symbol & in_ranges((PICTOGRAPHS,), N_CHARACTERS)] = SINGLE

    seconds = {second for _, second in composites()}.union(map(chr, _JAMO_VOWELS), map(chr, _JAMO_FINALS))
    slots = np.zeros(N_CHARACTERS, dtype=np.uint16)
    blob = [0]
    for c in _loud():
        if c < 0x80:
            continue
        character = chr(c)
        if unicodedata.is_normalized("NFKD", character) and character.casefold() == character:
            order = unicodedata.combining(character)
            joins = character in seconds
            if order or joins:
                orders[c] = order
                kinds[c] |= MOVES * (order > 0) | JOINS * joins
            continue
        folded, orders[c], stands_alone = _stages(character, seconds)
        if not stands_alone:
            kinds[c] = UNSURE
        elif folded != character:
            kinds[c] = MAPPED
            slots[c] = len(blob)
            room = len(folded.encode()) + len(folded)
            blob += [len(folded), room, *map(ord, folded)]
    kinds[in_ranges(IGNORABLE_RANGES, N_CODE_POINTS)] = IGNORABLE
    pairs = np.array(sorted(ord(a) << 42 | ord(b) << 21 | ord(c) for (a, b), c in composites().items()), dtype=np.int64)
    return Tables(kinds, orders, slots, np.array(blob, dtype=np.int32), pairs, _ascii_bytes(kinds, str.lower))


def unmapped_tables(kinds: npt.NDArray[np.uint8]) -> Tables:
    """Make the tables of a normalizer that changes no character: kinds alone."""
    return Tables(
        kinds,
        np.zeros(1, dtype=np.uint8),
        np.zeros(1, dtype=np.uint16),
        np.zeros(1, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        _ascii_bytes(kinds, str),
    )


def _ascii_bytes(kinds: npt.NDArray[np.uint8], case: Callable[[str], str]) -> npt.NDArray[np.uint8]:
    """Return the byte that each ASCII character becomes."""
    written: dict[int, Callable[[int], int]] = {
        WORD: lambda c: ord(case(chr(c))),
        SEPARATOR: lambda c: 0x20,
        IGNORABLE: lambda c: DROPPED,
    }
    return np.array([written[int(kinds[c])](c) for c in range(128)], dtype=np.uint8)


def _loud() -> list[int]:
    """Return the code points of planes 0 to 3 outside the quiet blocks."""
    loud: list[int] = np.flatnonzero(~in_ranges(_QUIET_RANGES, N_CHARACTERS)).tolist()
    return loud


def _stages(character: str, seconds: set[str]) -> tuple[str, int, bool]:
    """Follow a character through the stages of `fold`.

    Returns
    -------
    tuple[str, int, bool]
        The folded character; the greatest combining class that a stage's decomposition ends with; and
        whether the character folds alone, whatever stands beside it. For that no stage may begin with
        something that moves or joins (but for a single conjoining jamo, which the kernel compares with what
        precedes), and none but the last may end with something that moves.
    """
    order, alone = 0, True
    stage = unicodedata.normalize("NFKC", character)
    while True:
        decomposed = unicodedata.normalize("NFKD", stage)
        first = decomposed[0]
        order = max(order, unicodedata.combining(decomposed[-1]))
        jamo = len(decomposed) == 1 and _JAMO_VOWELS.start <= ord(first) < _JAMO_FINALS.stop
        alone = alone and not unicodedata.combining(first) and (first not in seconds or jamo)
        following = unicodedata.normalize("NFKC", stage.casefold())
        if following == stage:
            return stage, order, alone
        alone = alone and not (unicodedata.combining(stage[-1]) and not unicodedata.combining(following[-1]))
        stage = following
