"""UTF-8 bytes to comparable text, one document at a time; and fast hashes of texts."""

from __future__ import annotations

import numpy as np
from numba import uint64

from neardup.kernels.bits import decode_character, fold_ascii_block, load_u64, mix, non_ascii_mask
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.unicode_tables import (
    COMPOSES,
    DROPPED,
    IGNORABLE,
    KIND_MASK,
    MAPPED,
    MARK,
    REORDERS,
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


@inner_kernel
def _encode_character(out, n, cp):
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


@inner_kernel
def _compose(first, second, pairs):
    """Return the NFC composite of two code points, or 0 if there is none."""
    if JAMO_VOWELS <= second < JAMO_VOWELS + 21:
        if JAMO_INITIALS <= first < JAMO_INITIALS + 19:
            return SYLLABLES + ((first - JAMO_INITIALS) * 21 + (second - JAMO_VOWELS)) * 28
        return 0
    if JAMO_FINALS <= second < JAMO_FINALS + 27:
        if SYLLABLES <= first < SYLLABLES + 19 * 21 * 28 and (first - SYLLABLES) % 28 == 0:
            return first + 1 + (second - JAMO_FINALS)
        return 0
    key = first << 21 | second
    low = 0
    high = pairs.size
    while low < high:
        middle = (low + high) >> 1
        if pairs[middle] >> 21 < key:
            low = middle + 1
        else:
            high = middle
    return pairs[low] & 0x1FFFFF if low < pairs.size and pairs[low] >> 21 == key else 0


@inner_kernel
def _write_jamo(out, n, state, jamo, pairs):
    """Write a conjoining vowel or final, composed with the character before if possible; return where it ends."""
    if state == WORD:
        base = n - 1
        while out[base] & 0xC0 == 0x80:
            base -= 1
        syllable = _compose(decode_character(out, base)[0], jamo, pairs)
        if syllable:
            return _encode_character(out, base, syllable)
    elif state == SINGLE:
        out[n] = SPACE
        n += 1
    return _encode_character(out, n, jamo)


@inner_kernel
def _write_mark(out, n, reordered_end, cp, tables):
    """Write a mark that reorders or composes into the token that ends at out[n], in canonical order.

    Returns where the token then ends, or -1 if the mark might compose with the token's last starter in a way that is
    not implemented: across other marks, or with a replacement that ends at out[reordered_end].
    """
    kinds, orders, _, _, pairs, _ = tables
    order = orders[cp]
    insertion_point = n
    end = n
    for _ in range(MAX_MARKS):
        base = end - 1
        while out[base] & 0xC0 == 0x80:
            base -= 1
        starter, _ = decode_character(out, base)
        if kinds[starter] & REORDERS == 0:
            break
        if orders[starter] > order:
            insertion_point = base
        end = base
    else:
        return -1
    if kinds[cp] & COMPOSES and (order > 0 or end == n):
        if 0 < order < orders[starter]:
            return -1
        composite = _compose(starter, cp, pairs)
        if composite:
            alike = kinds[composite] == kinds[starter]
            return _encode_character(out, base, composite) if alike and end == n and end != reordered_end else -1
    if order == 0 or insertion_point == n:
        return _encode_character(out, n, cp)
    width = 2 if cp < 0x800 else 3 if cp < 0x10000 else 4
    for j in range(n - 1, insertion_point - 1, -1):
        out[j + width] = out[j]
    _encode_character(out, insertion_point, cp)
    return n + width


@inner_kernel
def _write_replacement(out, n, state, at, tables):
    """Write the replacement that begins at blob[at]; return where it ends, and the state."""
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
                n = _encode_character(out, n, cp)
        elif kinds[cp] == WORD | COMPOSES and j == begin:
            n = _write_jamo(out, n, state, cp, pairs)
            state = WORD
        else:
            if state == SINGLE or (kind == SINGLE and state != SEPARATOR):
                out[n] = SPACE
                n += 1
            n = _encode_character(out, n, cp)
            state = WORD if kind == WORD else SINGLE
    return n, state


@inner_kernel
def normalize_utf8(data, lo, hi, tables, out):
    """Write the comparable text of data[lo:hi], valid UTF-8, to out; return the number of bytes.

    tables: UnicodeTables; out: uint8, at least ``MAX_EXPANSION * (hi - lo) + 64`` bytes, gets tokens separated by one
    space, without spaces at the ends. Returns -1 if marks compose out of order, more than 30 follow one base, or
    replacements outgrow `out`. Then the text needs `neardup.text.normalize.normalize`, and `out` is undefined.
    """
    kinds, orders, slots, blob, pairs, ascii_bytes = tables
    # Typed, so that callees are not compiled a second time for a literal 0.
    n = np.int64(0)
    reordered_end = np.int64(0)  # the end of the last replacement whose marks may have been reordered
    state = np.int64(SEPARATOR)  # the kind of the last token of out[:n]; after a separator, its space is written
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
        cp, width = decode_character(data, i)
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
                n = _encode_character(out, n, cp)
        elif kind & KIND_MASK == MARK:
            if state != SEPARATOR:
                n = _write_mark(out, n, reordered_end, cp, tables)
                if n < 0:
                    return -1
        elif kind == MAPPED:
            # The rest needs at most twice its bytes, unless it contains mapped characters, too.
            if n + blob[slots[cp] + 1] + 2 * (hi - i - width) > out.size:
                return -1
            n, state = _write_replacement(out, n, state, slots[cp], tables)
            if orders[cp] > 0:
                reordered_end = n
        elif kind == WORD | COMPOSES:
            n = _write_jamo(out, n, state, cp, pairs)
            state = WORD
        elif kind != IGNORABLE:
            return -1
        i += width
    if n > 0 and out[n - 1] == SPACE:
        n -= 1
    return n


@kernel
def unicode_texts(data, offsets, rows, begin, tables, out, out_length, spans):
    """Append the comparable texts of rows[begin:] to out[out_length:] and set their spans.

    A text that needs Python keeps its span of -1. Stops before a text for which ``out`` may be too short: it needs
    twice the text and 64 more bytes. Returns (index in rows to continue from, length of out).
    """
    for i in range(begin, rows.shape[0]):
        d = rows[i]
        lo = offsets[d]
        hi = offsets[d + 1]
        if out_length + 2 * (hi - lo) + 64 > out.shape[0]:
            return i, out_length
        written = normalize_utf8(data, lo, hi, tables, out[out_length:])
        if written >= 0:
            spans[d, 0] = out_length
            spans[d, 1] = out_length + written
            out_length += written
    return rows.shape[0], out_length


@inner_kernel
def _is_ascii(data, lo, hi):
    base = uint64(data.ctypes.data)
    block = lo
    while block + 64 <= hi:
        if non_ascii_mask(base + uint64(block)) != uint64(0):
            return False
        block += 64
    high = np.uint8(0)
    for i in range(block, hi):
        high |= data[i]
    return high < np.uint8(128)


@kernel
def ascii_texts(data, offsets, fold, table, out, spans):
    """Write the ASCII texts to out, concatenated; return the number of bytes and the number of other texts.

    data: uint8, UTF-8 texts; offsets: int64[d + 1]; fold: whether the table is that of ``fold_ascii_block``, which does
    64 bytes at once; table: uint8[256], what each byte becomes, or DROPPED; out: uint8, as long as the texts; spans:
    int64[d, 2], gets the span of each text in ``out``, or -1 if it is not ASCII.
    """
    source = uint64(data.ctypes.data)
    target = uint64(out.ctypes.data)
    at = 0
    non_ascii = 0
    for d in range(spans.shape[0]):
        lo = offsets[d]
        hi = offsets[d + 1]
        if not _is_ascii(data, lo, hi):
            spans[d, 0] = -1
            spans[d, 1] = -1
            non_ascii += 1
            continue
        spans[d, 0] = at
        block = lo
        if fold:
            while block + 64 <= hi:
                fold_ascii_block(source + uint64(block), target + uint64(at))
                at += 64
                block += 64
        for i in range(block, hi):
            byte = table[data[i]]
            out[at] = byte
            at += byte != DROPPED
        spans[d, 1] = at
    return at, non_ascii


@kernel
def hash_texts(data, offsets, hashes):
    """Write a fast hash of each text to hashes: uint64[d, 2], the second word 0.

    Equal texts have equal hashes. Different texts that nobody chose collide with probability 2**-64, but every step is
    invertible, so anyone can construct collisions. Good enough to count copies among documents with equal features;
    where a result depends on it, use the digests of ``neardup.features.extraction``.
    """
    base = uint64(data.ctypes.data)
    for d in range(hashes.shape[0]):
        lo = offsets[d]
        hi = offsets[d + 1]
        value = mix(uint64(hi - lo) + uint64(0x9E3779B97F4A7C15))
        while lo + 8 <= hi:
            value = (value ^ load_u64(base + uint64(lo))) * uint64(0xD6E8FEB86659FD93)
            value ^= value >> uint64(29)
            lo += 8
        rest = uint64(0)
        for i in range(lo, hi):
            rest = (rest << uint64(8)) | uint64(data[i])
        hashes[d, 0] = mix(value ^ rest)
        hashes[d, 1] = 0
