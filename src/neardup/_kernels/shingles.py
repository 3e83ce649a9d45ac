"""From comparable text to feature sets: token hashes, n-grams, sets and multisets, a document at a time.

Comparable text is UTF-8 in which tokens are parted by spaces (see ``neardup.normalize``). The arrays of bytes
given here must have 64 readable bytes behind the last text.
"""

import numpy as np
from numba import int64, uint64

from neardup._kernels.bits import load_u64, mix, token_mask, trailing_zeros
from neardup._kernels.compiling import kernel

#: Odd constants; each kind of feature starts from another, so that no two kinds meet by construction.
_SHORT_TOKEN = uint64(0x9E3779B97F4A7C15)
_LONG_TOKEN = uint64(0xC2B2AE3D27D4EB4F)
_CHAIN = uint64(0x165667B19E3779F9)
_GRAM = uint64(0xD1342543DE82EF95)
_PARTIAL = uint64(0xA0761D6478BD642F)
_REPEAT = uint64(0x8EBC6AF09C88C6E3)
_SECOND = uint64(0x589965CC75374CC3)


@kernel
def _boundaries(text, lo, hi, edges):
    """Write the offsets where a run of non-spaces in [lo, hi) starts and ends, in turn; return how many."""
    base = uint64(text.ctypes.data)
    count = 0
    before = uint64(0)
    for block in range(lo, hi, 64):
        mask = token_mask(base + uint64(block))
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


@kernel
def _token_hash(base, start, end):
    """Hash the bytes [start, end): one to one up to eight bytes, chained beyond."""
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
def _grams(tokens, count, n, grams):
    """Write the hashes of the contiguous n-grams of count tokens; return how many.

    Fewer tokens than n make one gram of them all, which equals no gram of another length.
    """
    if count == 0:
        return 0
    if count < n:
        value = uint64(0)
        for i in range(count):
            value = value * _GRAM + tokens[i]
        grams[0] = mix(value + uint64(count) * _PARTIAL)
        return 1
    leaving = uint64(1)
    for _ in range(n):
        leaving *= _GRAM
    value = uint64(0)
    for i in range(n - 1):
        value = value * _GRAM + tokens[i]
    oldest = uint64(0)
    for i in range(n - 1, count):
        value = value * _GRAM + tokens[i] - oldest * leaving
        grams[i - n + 1] = mix(value)
        oldest = tokens[i - n + 1]
    return count - n + 1


@kernel
def _slot_of(gram, table, shift, mask):
    """Return where a gram is in an open table, or the free slot where it would be; 0 stands for a free slot."""
    slot = int64(gram >> shift)
    while table[slot] != uint64(0) and table[slot] != gram:
        slot = (slot + 1) & mask
    return slot


@kernel
def _as_set(grams, count, table, out, at):
    """Write the distinct grams, by first occurrence, to out[at:]; return how many."""
    bits = 0
    while (1 << bits) < 2 * count:
        bits += 1
    shift = uint64(64 - max(bits, 1))
    mask = (1 << max(bits, 1)) - 1
    table[: mask + 1] = uint64(0)
    size = 0
    for i in range(count):
        gram = max(grams[i], uint64(1))
        slot = _slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            out[at + size] = gram
            size += 1
    return size


@kernel
def _as_multiset(grams, count, table, seen, out, at):
    """Write (gram, i) for the i-th repeat of each gram: set algebra then gives multiset measures."""
    bits = 0
    while (1 << bits) < 2 * count:
        bits += 1
    shift = uint64(64 - max(bits, 1))
    mask = (1 << max(bits, 1)) - 1
    table[: mask + 1] = uint64(0)
    for i in range(count):
        gram = max(grams[i], uint64(1))
        slot = _slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = 0
            out[at + i] = gram
        else:
            seen[slot] += 1
            out[at + i] = mix(gram + uint64(seen[slot]) * _REPEAT)
    return count


@kernel
def _characters(text, lo, hi, edges):
    """Write where each character in [lo, hi) starts and ends, in turn; return how many offsets.

    A run of spaces is one space, and none at either end.
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


@kernel
def feature_sets(text, spans, by_character, n, multiset, out, sizes, marks):
    """Fill out with the feature sets of the texts, one behind the other.

    text: uint8 comparable texts; spans: int64[d, 2], where each begins and ends; by_character: q-grams of
    characters instead of n-grams of tokens; out: uint64, room for one a byte of text and one a text; sizes:
    int64[d]; marks: uint64[d, 2], two sums over the set that are equal for equal sets. Returns the number of
    features written.
    """
    base = uint64(text.ctypes.data)
    longest = 0
    for d in range(sizes.shape[0]):
        longest = max(longest, spans[d, 1] - spans[d, 0])
    edges = np.empty((2 if by_character else 1) * longest + 66, np.int64)
    tokens = np.empty(longest + 1, np.uint64)
    grams = np.empty(longest + 1, np.uint64)
    width = 2
    while width < 2 * (longest + 1):
        width *= 2
    table = np.empty(width, np.uint64)
    seen = np.empty(width if multiset else 1, np.int64)
    at = 0
    for d in range(sizes.shape[0]):
        lo = spans[d, 0]
        hi = spans[d, 1]
        if by_character:
            count = _characters(text, lo, hi, edges) // 2
        else:
            count = _boundaries(text, lo, hi, edges) // 2
        for i in range(count):
            tokens[i] = _token_hash(base, edges[2 * i], edges[2 * i + 1])
        count = _grams(tokens, count, n, grams)
        if multiset:
            size = _as_multiset(grams, count, table, seen, out, at)
        else:
            size = _as_set(grams, count, table, out, at)
        first = uint64(0)
        second = uint64(0)
        for i in range(at, at + size):
            first += out[i]
            second += (out[i] ^ (out[i] >> uint64(31))) * _SECOND
        sizes[d] = size
        marks[d, 0] = first
        marks[d, 1] = second
        at += size
    return at
