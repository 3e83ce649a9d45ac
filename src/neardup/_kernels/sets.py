"""Grams to sets, multisets and counts."""

from numba import int64, uint64

from neardup._kernels.bits import mix
from neardup._kernels.compiling import kernel

#: What becomes of a document's grams; ``LISTED`` leaves them as they are.
SET, MULTISET, COUNTED, LISTED = 0, 1, 2, 3

_REPEAT = uint64(0x8EBC6AF09C88C6E3)
_SECOND = uint64(0x589965CC75374CC3)


@kernel
def slot_of(gram, table, shift, mask):
    """Return where a gram is in an open table, or the free slot where it would be; 0 stands for a free slot."""
    slot = int64(gram >> shift)
    while table[slot] != uint64(0) and table[slot] != gram:
        slot = (slot + 1) & mask
    return slot


@kernel
def cleared(count, table):
    """Free the slots that a table for count grams takes; return (shift, mask)."""
    bits = 1
    while (1 << bits) < 2 * count:
        bits += 1
    mask = (1 << bits) - 1
    table[: mask + 1] = uint64(0)
    return uint64(64 - bits), mask


@kernel
def as_set(grams, begin, end, table, out, at):
    """Write the distinct grams[begin:end], by first occurrence, to out[at:]; return how many."""
    shift, mask = cleared(end - begin, table)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            out[at + size] = gram
            size += 1
    return size


@kernel
def as_multiset(grams, begin, end, table, seen, out, at):
    """Write (gram, i) for the i-th repeat of each of grams[begin:end]: set algebra then gives multiset measures."""
    shift, mask = cleared(end - begin, table)
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = 0
        else:
            seen[slot] += 1
            gram = mix(gram + uint64(seen[slot]) * _REPEAT)
        out[at + i - begin] = gram
    return end - begin


@kernel
def as_counts(grams, begin, end, table, seen, out, counts, at):
    """Write the distinct grams[begin:end], by first occurrence, and how often each stands there; return how many."""
    shift, mask = cleared(end - begin, table)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = at + size
            out[at + size] = gram
            counts[at + size] = 1
            size += 1
        else:
            counts[seen[slot]] += 1
    return size


@kernel
def mark(out, weights, at, size):
    """Return two sums over out[at:at + size] that are equal for equal sets, with equal weights where there are any.

    Sums of what anyone can choose are easily met: they find sets that may be equal, and whoever takes them for equal
    compares them (``_kernels.grouping.group_equal``).
    """
    first = uint64(0)
    second = uint64(0)
    weighted = weights.shape[0] > 0
    for i in range(at, at + size):
        value = out[i]
        if weighted:
            value = mix(value + uint64(weights[i]) * _REPEAT)
        first += value
        second += (value ^ (value >> uint64(31))) * _SECOND
    return first, second
