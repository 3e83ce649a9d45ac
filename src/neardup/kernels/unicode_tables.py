"""Unicode data of the normalizers (`neardup.kernels.characters`) as arrays for the kernel."""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.kernels.characters import (
    IGNORABLE_RANGES,
    N_CHARACTERS,
    N_CODE_POINTS,
    PICTOGRAPHS,
    POINT_RANGES,
    UNSPACED_RANGES,
    in_ranges,
    irregular_code_points,
    properties,
    strip_ignorables,
)

# The low three bits of an entry of `UnicodeTables.kinds`: how a code point affects tokens.
KIND_MASK = 7
SEPARATOR = 0  # ends a token
WORD = 1  # continues a word or begins one
SINGLE = 2  # a token of its own
MARK = 3  # belongs to the token before it; dropped if there is none
IGNORABLE = 4  # skipped
MAPPED = 5  # replaced by code points in `UnicodeTables.blob`
UNSUPPORTED = 6  # depends on its neighbours in a way that the kernel does not implement
# Two flags.
REORDERS = 8  # canonical combining class other than 0: may be reordered among its neighbours
COMPOSES = 16  # the second half of a primary composite: may compose with the character before
DROPPED = 0xFF  # in tables of ASCII bytes: nothing is written

#: Versions of Unicode that are known to give the same tables.
KNOWN_VERSIONS = frozenset({"14.0.0", "15.0.0", "15.1.0", "16.0.0", "17.0.0"})

_JAMO_VOWELS = range(0x1161, 0x1176)
_JAMO_FINALS = range(0x11A8, 0x11C3)


class UnicodeTables(NamedTuple):
    """The Unicode data of the kernel `normalize_utf8`, built by `neardup.text.normalize.kernel_tables`.

    Attributes
    ----------
    kinds : uint8[0x110000]
        A kind (`SEPARATOR` to `UNSUPPORTED`), with the flags `REORDERS` and `COMPOSES`.
    orders : uint8[0x110000]
        The canonical combining class; of a starter, that of the last code point of its decomposition.
    slots : uint16[:]
        The position in `blob` of the replacement of a `MAPPED` code point.
    blob : int32[:]
        Replacements: the number of code points, their maximum bytes with a space beside each, and the code
        points, none of them mapped.
    pairs : int64[:]
        The primary composites as ``first << 42 | second << 21 | composite``, sorted.
    ascii_bytes : uint8[128]
        The byte written for an ASCII character: a letter, 0x20 for a separator, or `DROPPED`.
    """

    kinds: npt.NDArray[np.uint8]
    orders: npt.NDArray[np.uint8]
    slots: npt.NDArray[np.uint16]
    blob: npt.NDArray[np.int32]
    pairs: npt.NDArray[np.int64]
    ascii_bytes: npt.NDArray[np.uint8]


@functools.cache
def composites() -> dict[tuple[str, str], str]:
    """Return the primary composites except Hangul: (first, second) and what NFC makes of them."""
    found = {}
    for c in irregular_code_points():
        halves = unicodedata.decomposition(chr(c)).split()
        if len(halves) == 2 and halves[0][0] != "<" and unicodedata.is_normalized("NFC", chr(c)):
            found[chr(int(halves[0], 16)), chr(int(halves[1], 16))] = chr(c)
    return found


@functools.cache
def word_tables() -> UnicodeTables:
    """Build the tables of the normalizer ``words``."""
    classes = properties()
    kinds = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    orders = np.zeros(N_CODE_POINTS, dtype=np.uint8)
    plain = kinds[:N_CHARACTERS]
    plain[classes.alnum] = WORD
    plain[classes.mark] = MARK
    plain[ord("_")] = WORD
    plain[classes.alnum & in_ranges(UNSPACED_RANGES, N_CHARACTERS)] = SINGLE
    plain[classes.symbol & in_ranges((PICTOGRAPHS,), N_CHARACTERS)] = SINGLE

    seconds = {second for _, second in composites()}.union(map(chr, _JAMO_VOWELS), map(chr, _JAMO_FINALS))
    slots = np.zeros(N_CHARACTERS, dtype=np.uint16)
    blob = [0]
    for c in irregular_code_points():
        if c < 0x80 or classes.ignorable[c]:
            continue
        character = chr(c)
        if unicodedata.is_normalized("NFKD", character) and character.casefold() == character:
            order = unicodedata.combining(character)
            joins = character in seconds
            if order or joins:
                orders[c] = order
                kinds[c] |= REORDERS * (order > 0) | COMPOSES * joins
            continue
        folded, orders[c], stands_alone = _fold_stages(character, seconds)
        if not stands_alone:
            kinds[c] = UNSUPPORTED
        elif folded != character:
            kinds[c] = MAPPED
            slots[c] = len(blob)
            room = len(folded.encode()) + len(folded)
            blob += [len(folded), room, *map(ord, folded)]
    kinds[in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CODE_POINTS)] = IGNORABLE
    pairs = np.array(sorted(ord(a) << 42 | ord(b) << 21 | ord(c) for (a, b), c in composites().items()), dtype=np.int64)
    return UnicodeTables(kinds, orders, slots, np.array(blob, dtype=np.int32), pairs, _ascii_bytes(kinds, str.lower))


def plain_tables(kinds: npt.NDArray[np.uint8]) -> UnicodeTables:
    """Build the tables of a normalizer that changes no character: kinds alone."""
    return UnicodeTables(
        kinds,
        np.zeros(1, dtype=np.uint8),
        np.zeros(1, dtype=np.uint16),
        np.zeros(1, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        _ascii_bytes(kinds, str),
    )


def arrays_digest(tables: Iterable[npt.NDArray[Any]]) -> str:
    """Return sixteen hex digits that identify arrays of integers, on every machine."""
    digest = hashlib.sha256()
    for table in tables:
        digest.update(np.ascontiguousarray(table, table.dtype.newbyteorder("<")).tobytes())
    return digest.hexdigest()[:16]


def _ascii_bytes(kinds: npt.NDArray[np.uint8], case: Callable[[str], str]) -> npt.NDArray[np.uint8]:
    """Return the byte that each ASCII character becomes."""
    written: dict[int, Callable[[int], int]] = {
        WORD: lambda c: ord(case(chr(c))),
        SEPARATOR: lambda c: 0x20,
        IGNORABLE: lambda c: DROPPED,
    }
    return np.array([written[int(kinds[c])](c) for c in range(128)], dtype=np.uint8)


def _fold_stages(character: str, seconds: set[str]) -> tuple[str, int, bool]:
    """Follow a character through the stages of `fold`.

    Returns
    -------
    tuple[str, int, bool]
        The folded character; the largest combining class at the end of a stage's decomposition; and whether the
        character folds independently of its neighbours. For that no stage may begin with a character that reorders
        or composes (except a single conjoining jamo, which the kernel compares with the character before), and none
        but the last may end, apart from points, with a character that reorders.
    """
    order, independent = 0, True
    stage = unicodedata.normalize("NFKC", character)
    while True:
        decomposed = unicodedata.normalize("NFKD", stage)
        first = decomposed[0]
        order = max(order, unicodedata.combining(decomposed[-1]))
        jamo = len(decomposed) == 1 and _JAMO_VOWELS.start <= ord(first) < _JAMO_FINALS.stop
        independent = independent and not unicodedata.combining(first) and (first not in seconds or jamo)
        bare = strip_ignorables(stage)
        following = unicodedata.normalize("NFKC", bare.casefold())
        if following == stage:
            return stage, order, independent
        independent = independent and not (unicodedata.combining(bare[-1]) and not unicodedata.combining(following[-1]))
        stage = following
