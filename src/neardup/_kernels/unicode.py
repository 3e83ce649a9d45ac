"""Comparable text from UTF-8 bytes, one document at a time."""

import numpy as np

from neardup._kernels.compiling import kernel
from neardup.text.unicode_tables import (
    DROPPED,
    IGNORABLE,
    JOINS,
    KIND_MASK,
    MAPPED,
    MARK,
    MOVES,
    SEPARATOR,
    SINGLE,
    WORD,
)

SPACE = 0x20
# Hangul composes by arithmetic [Unicode Standard, section 3.12].
SYLLABLES = 0xAC00
JAMO_INITIALS = 0x1100
JAMO_VOWELS = 0x1161
JAMO_FINALS = 0x11A8
MAX_MARKS = 30  # non-starters in a row: the limit of the Stream-Safe Text Format [UAX #15, section 13]


@kernel
def _decode(data, i):
    """Return the code point that begins at data[i]."""
    b = np.int64(data[i])
    if b < 0x80:
        return b
    if b < 0xE0:
        return (b & 0x1F) << 6 | (np.int64(data[i + 1]) & 0x3F)
    if b < 0xF0:
        return (b & 0x0F) << 12 | (np.int64(data[i + 1]) & 0x3F) << 6 | (np.int64(data[i + 2]) & 0x3F)
    high = (b & 0x07) << 18 | (np.int64(data[i + 1]) & 0x3F) << 12
    return high | (np.int64(data[i + 2]) & 0x3F) << 6 | (np.int64(data[i + 3]) & 0x3F)


@kernel
def _encode(out, n, cp):
    """Write a code point at out[n]; return where it ends."""
    if cp < 0x80:
        out[n] = cp
        return n + 1
    if cp < 0x800:
        out[n] = 0xC0 | cp >> 6
        out[n + 1] = 0x80 | cp & 0x3F
        return n + 2
    if cp < 0x10000:
        out[n] = 0xE0 | cp >> 12
        out[n + 1] = 0x80 | cp >> 6 & 0x3F
        out[n + 2] = 0x80 | cp & 0x3F
        return n + 3
    out[n] = 0xF0 | cp >> 18
    out[n + 1] = 0x80 | cp >> 12 & 0x3F
    out[n + 2] = 0x80 | cp >> 6 & 0x3F
    out[n + 3] = 0x80 | cp & 0x3F
    return n + 4


@kernel
def _compose(first, second, pairs):
    """Return what NFC makes of two code points, or 0 where they stay two."""
    if JAMO_VOWELS <= second < JAMO_VOWELS + 21:
        if JAMO_INITIALS <= first < JAMO_INITIALS + 19:
            return SYLLABLES + ((first - JAMO_INITIALS) * 21 + (second - JAMO_VOWELS)) * 28
        return 0
    if JAMO_FINALS <= second < JAMO_FINALS + 27:
        if SYLLABLES <= first < SYLLABLES + 19 * 21 * 28 and (first - SYLLABLES) % 28 == 0:
            return first + 1 + (second - JAMO_FINALS)
        return 0
    key = first << 21 | second
    at = np.searchsorted(pairs, key << 21)
    if at < pairs.size and pairs[at] >> 21 == key:
        return pairs[at] & 0x1FFFFF
    return 0


@kernel
def _put_jamo(out, n, state, jamo, pairs):
    """Write a conjoining vowel or final, melted into what precedes where it can; return where it ends."""
    if state == WORD:
        base = n - 1
        while out[base] & 0xC0 == 0x80:
            base -= 1
        syllable = _compose(_decode(out, base), jamo, pairs)
        if syllable:
            return _encode(out, base, syllable)
    elif state == SINGLE:
        out[n] = SPACE
        n += 1
    return _encode(out, n, jamo)


@kernel
def _attach(out, n, sealed, cp, tables):
    """Write a mark that moves or joins into the token that ends at out[n], in canonical order.

    Returns where the token then ends, or -1 where the mark might melt into the token's last starter in a way
    not followed here: across other marks, or into what ends at out[sealed].
    """
    kinds, orders, _, _, pairs, _ = tables
    order = orders[cp]
    place = n
    end = n
    for _ in range(MAX_MARKS):
        base = end - 1
        while out[base] & 0xC0 == 0x80:
            base -= 1
        starter = _decode(out, base)
        if kinds[starter] & MOVES == 0:
            break
        if orders[starter] > order:
            place = base
        end = base
    else:
        return -1
    if kinds[cp] & JOINS and (order > 0 or end == n):
        if 0 < order < orders[starter]:
            return -1
        composite = _compose(starter, cp, pairs)
        if composite:
            alike = kinds[composite] == kinds[starter]
            return _encode(out, base, composite) if alike and end == n and end != sealed else -1
    if order == 0 or place == n:
        return _encode(out, n, cp)
    width = 2 if cp < 0x800 else 3 if cp < 0x10000 else 4
    for j in range(n - 1, place - 1, -1):
        out[j + width] = out[j]
    _encode(out, place, cp)
    return n + width


@kernel
def _replace(out, n, state, at, tables):
    """Write the replacement that begins at blob[at]; return where it ends and the state."""
    kinds, _, _, blob, pairs, _ = tables
    begin = at + 2
    for j in range(begin, begin + blob[at]):
        cp = np.int64(blob[j])
        kind = kinds[cp] & KIND_MASK
        if kind == SEPARATOR:
            if state != SEPARATOR:
                out[n] = SPACE
                n += 1
                state = SEPARATOR
        elif kind == MARK:
            if state != SEPARATOR:
                n = _encode(out, n, cp)
        elif kinds[cp] == WORD | JOINS and j == begin:
            n = _put_jamo(out, n, state, cp, pairs)
            state = WORD
        else:
            if state == SINGLE or (kind == SINGLE and state != SEPARATOR):
                out[n] = SPACE
                n += 1
            n = _encode(out, n, cp)
            state = WORD if kind == WORD else SINGLE
    return n, state


@kernel
def normalize_utf8(data, lo, hi, tables, out):
    """Write the comparable text of data[lo:hi] to out.

    Parameters
    ----------
    data : uint8[:]
        Valid UTF-8.
    lo, hi : int
        The document's first byte and the one after its last.
    tables : Tables
        From `neardup.text.normalize.kernel_tables`.
    out : uint8[:]
        Scratch of at least ``MAX_EXPANSION * (hi - lo) + 64`` bytes.

    Returns
    -------
    int
        Bytes written: tokens with one space between, none at the ends. -1 where marks compose out of
        order, more than 30 follow one base, or replacements outgrow `out`: then the text needs
        `neardup.text.normalize.normalize`, and `out` holds nothing of use.
    """
    kinds, orders, slots, blob, pairs, ascii_bytes = tables
    n = 0
    sealed = 0  # where the last replacement ends whose marks may have come in another order
    state = SEPARATOR  # the kind of the token that out[:n] ends in; after a separator, the space is written
    i = lo
    while i < hi:
        b = np.int64(data[i])
        if b < 0x80:
            if state == SINGLE:
                out[n] = SPACE
                n += 1
                state = SEPARATOR
            while b < 0x80:
                written = ascii_bytes[b]
                out[n] = written
                n += 0 if written == DROPPED or (written == SPACE and state == SEPARATOR) else 1
                state = SEPARATOR if written == SPACE else WORD
                i += 1
                b = np.int64(data[i]) if i < hi else 0x80
            continue
        width = 2 if b < 0xE0 else 3 if b < 0xF0 else 4
        cp = _decode(data, i)
        kind = kinds[cp]
        if kind in (WORD, SINGLE):
            if state == SINGLE or (kind == SINGLE and state != SEPARATOR):
                out[n] = SPACE
                n += 1
            for j in range(width):
                out[n + j] = data[i + j]
            n += width
            state = SINGLE if kind == SINGLE else WORD
        elif kind == SEPARATOR:
            if state != SEPARATOR:
                out[n] = SPACE
                n += 1
                state = SEPARATOR
        elif kind == MARK:
            if state != SEPARATOR:
                n = _encode(out, n, cp)
        elif kind & KIND_MASK == MARK:
            if state != SEPARATOR:
                n = _attach(out, n, sealed, cp, tables)
                if n < 0:
                    return -1
        elif kind == MAPPED:
            # What follows needs at most twice its bytes, unless it is mapped too.
            if n + blob[slots[cp] + 1] + 2 * (hi - i - width) > out.size:
                return -1
            n, state = _replace(out, n, state, slots[cp], tables)
            if orders[cp] > 0:
                sealed = n
        elif kind == WORD | JOINS:
            n = _put_jamo(out, n, state, cp, pairs)
            state = WORD
        elif kind != IGNORABLE:
            return -1
        i += width
    if n > 0 and out[n - 1] == SPACE:
        n -= 1
    return n
