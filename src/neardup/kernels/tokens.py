"""Comparable text to hashes of its tokens or characters.

Comparable text is UTF-8 with tokens separated by spaces (``neardup.text.normalize``). Byte arrays must have 64 readable
bytes behind the last text.
"""

from __future__ import annotations

import numpy as np
from numba import int64, uint64

from neardup.kernels.bits import decode_character, load_u64, mix, nonspace_mask, trailing_zeros
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import contains_key

_SHORT_TOKEN = uint64(0x9E3779B97F4A7C15)
_LONG_TOKEN = uint64(0xC2B2AE3D27D4EB4F)
_CHAIN = uint64(0x165667B19E3779F9)


@inner_kernel
def _token_edges(text, lo, hi, edges):
    """Write the start and end of each token in [lo, hi), alternating; return the number of offsets."""
    base = uint64(text.ctypes.data)
    count = 0
    before = uint64(0)
    for block in range(lo, hi, 64):
        mask = nonspace_mask(base + uint64(block))
        left = hi - block
        if left < 64:
            mask &= (uint64(1) << uint64(left)) - uint64(1)
        turns = mask ^ ((mask << uint64(1)) | before)
        before = mask >> uint64(63)
        while turns != uint64(0):
            edges[count] = block + int64(trailing_zeros(turns))
            count += 1
            turns &= turns - uint64(1)
    if count & 1:
        edges[count] = hi
        count += 1
    return count


@inner_kernel
def _character_edges(text, lo, hi, edges):
    """Write the start and end of each character in [lo, hi), alternating; return the number of offsets.

    A run of spaces counts as one space, and spaces at the ends do not count.
    """
    count = 0
    gap = False
    i = lo
    while i < hi:
        end = i + 1
        while end < hi and text[end] & 0xC0 == 0x80:
            end += 1
        if text[i] == 0x20:
            gap = True
        else:
            if gap and count > 0:
                edges[count] = i - 1
                edges[count + 1] = i
                count += 2
            gap = False
            edges[count] = i
            edges[count + 1] = end
            count += 2
        i = end
    return count


@inner_kernel
def _token_hash(base, start, end):
    """Hash the bytes [start, end): a bijection up to eight bytes, chained beyond."""
    length = end - start
    address = base + uint64(start)
    word = load_u64(address)
    if length < 8:
        return mix((word & ((uint64(1) << uint64(8 * length)) - uint64(1))) ^ _SHORT_TOKEN)
    value = mix(word ^ _LONG_TOKEN)
    done = 8
    while done + 8 <= length:
        value = mix((value * _CHAIN) ^ load_u64(address + uint64(done)))
        done += 8
    rest = length - done
    tail = load_u64(address + uint64(done)) & ((uint64(1) << uint64(8 * rest)) - uint64(1))
    return mix((value * _CHAIN) ^ tail ^ (uint64(length) << uint64(56)))


@kernel
def hash_tokens(text, lo, hi, by_character, edges, tokens):
    """Write the hashes of the tokens (or characters) of text[lo:hi] to ``tokens``; return how many there are."""
    base = uint64(text.ctypes.data)
    count = (_character_edges(text, lo, hi, edges) if by_character else _token_edges(text, lo, hi, edges)) // 2
    for i in range(count):
        tokens[i] = _token_hash(base, edges[2 * i], edges[2 * i + 1])
    return count


@inner_kernel
def drop_tokens(table, tokens, count):
    """Drop those of the first ``count`` tokens that a hash table contains; return how many remain."""
    kept = 0
    for i in range(count):
        if not contains_key(table, tokens[i]):
            tokens[kept] = tokens[i]
            kept += 1
    return kept


#: The break that a byte may begin, in ``leads``; 0 for none.
ASCII_BREAK = 1
LINE_FEED = 2
WIDE_BREAK = 3


@inner_kernel
def _is_letter_or_digit(byte):
    lower = byte | np.uint8(0x20)
    return (np.uint8(97) <= lower <= np.uint8(122)) or (np.uint8(48) <= byte <= np.uint8(57))


@inner_kernel
def _ends_blank_line(data, lo, line_feed):
    """Return whether only spaces, tabs and CR separate a line feed from the previous one."""
    i = line_feed - 1
    while i >= lo and (data[i] == 0x20 or data[i] == 0x09 or data[i] == 0x0D):
        i -= 1
    return i >= lo and data[i] == 0x0A


@kernel
def cut_texts(data, offsets, leads, wide, ends, heads):
    """Cut texts after their breaks; return the number of entries of ``ends``, even if it is too short for them.

    data: uint8, valid UTF-8; offsets: int64[d + 1]; leads: uint8[256], the break that a byte may begin; wide:
    uint8[0x10000], 1 for the code points beyond ASCII that are breaks; ends: int64, gets the start of the first segment
    and the end of each, as far as there is space; heads: int64[d + 1], gets the first segment of each text.
    """
    room = ends.shape[0]
    ends[0] = offsets[0]
    at = 1
    for d in range(heads.shape[0] - 1):
        lo = offsets[d]
        hi = offsets[d + 1]
        heads[d] = at - 1
        i = lo
        while i < hi:
            byte = data[i]
            lead = leads[byte]
            i += 1
            if lead == 0:
                continue
            if lead == WIDE_BREAK:
                character, width = decode_character(data, i - 1)
                i += width - 1
                if wide[character] == 0:
                    continue
            elif lead == LINE_FEED:
                if not _ends_blank_line(data, lo, i - 1):
                    continue
            elif i < hi and _is_letter_or_digit(data[i]):
                continue
            if i < hi:
                if at < room:
                    ends[at] = i
                at += 1
        if at < room:
            ends[at] = hi
        at += 1
    heads[heads.shape[0] - 1] = at - 1
    return at
