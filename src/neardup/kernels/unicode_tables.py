"""What the normalizers know about code points (`neardup.kernels.characters`), as arrays for the kernel."""

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
    loud,
    properties,
    without_ignorables,
)

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

#: The versions of Unicode from which the tables are known to come out the same.
KNOWN_VERSIONS = frozenset({"14.0.0", "15.0.0", "15.1.0", "16.0.0", "17.0.0"})

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


@functools.cache
def composites() -> dict[tuple[str, str], str]:
    """Return the primary composites but for Hangul: what NFC makes of (first, second)."""
    found = {}
    for c in loud():
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
    for c in loud():
        if c < 0x80 or known.ignorable[c]:
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
    kinds[in_ranges(IGNORABLE_RANGES + POINT_RANGES, N_CODE_POINTS)] = IGNORABLE
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


def digest_of(tables: Iterable[npt.NDArray[Any]]) -> str:
    """Return sixteen hex digits of arrays of whole numbers, whatever the machine."""
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


def _stages(character: str, seconds: set[str]) -> tuple[str, int, bool]:
    """Follow a character through the stages of `fold`.

    Returns
    -------
    tuple[str, int, bool]
        The folded character; the greatest combining class that a stage's decomposition ends with; and
        whether the character folds alone, whatever stands beside it. For that no stage may begin with
        something that moves or joins (but for a single conjoining jamo, which the kernel compares with what
        precedes), and none but the last may end, but for points, with something that moves.
    """
    order, alone = 0, True
    stage = unicodedata.normalize("NFKC", character)
    while True:
        decomposed = unicodedata.normalize("NFKD", stage)
        first = decomposed[0]
        order = max(order, unicodedata.combining(decomposed[-1]))
        jamo = len(decomposed) == 1 and _JAMO_VOWELS.start <= ord(first) < _JAMO_FINALS.stop
        alone = alone and not unicodedata.combining(first) and (first not in seconds or jamo)
        bare = without_ignorables(stage)
        following = unicodedata.normalize("NFKC", bare.casefold())
        if following == stage:
            return stage, order, alone
        alone = alone and not (unicodedata.combining(bare[-1]) and not unicodedata.combining(following[-1]))
        stage = following
