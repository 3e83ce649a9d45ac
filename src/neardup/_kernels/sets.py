"""Grams to sets, multisets and counts, and what a lookup table of the collection makes of them."""

import numpy as np
from numba import int64, uint64

from neardup._kernels.bits import mix
from neardup._kernels.compiling import kernel
from neardup._kernels.grams import placed

#: What becomes of a document's grams; ``LISTED`` leaves them as they are.
SET, MULTISET, COUNTED, LISTED = 0, 1, 2, 3
#: Where a weight comes from.
NO_WEIGHTS, BY_COUNT, BY_VALUE, BY_BOTH = 0, 1, 2, 3

_REPEAT = uint64(0x8EBC6AF09C88C6E3)
_SECOND = uint64(0x589965CC75374CC3)


@kernel
def _slot_of(gram, table, shift, mask):
    """Return where a gram is in an open table, or the free slot where it would be; 0 stands for a free slot."""
    slot = int64(gram >> shift)
    while table[slot] != uint64(0) and table[slot] != gram:
        slot = (slot + 1) & mask
    return slot


@kernel
def _cleared(count, table):
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
    shift, mask = _cleared(end - begin, table)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = _slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            out[at + size] = gram
            size += 1
    return size


@kernel
def as_multiset(grams, count, table, seen, out, at):
    """Write (gram, i) for the i-th repeat of each gram: set algebra then gives multiset measures."""
    shift, mask = _cleared(count, table)
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
def as_counts(grams, begin, end, table, seen, out, counts, at):
    """Write the distinct grams[begin:end], by first occurrence, and how often each stands there; return how many."""
    shift, mask = _cleared(end - begin, table)
    size = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = _slot_of(gram, table, shift, mask)
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
def value_of(gram, keys, values, unseen):
    """Return what an open table of the collection says of a gram, ``unseen`` where it does not know it."""
    mask = keys.shape[0] - 1
    slot = int64(gram >> uint64(20)) & mask
    while keys[slot] != uint64(0):
        if keys[slot] == gram:
            return values[slot]
        slot = (slot + 1) & mask
    return unseen


@kernel
def enter_values(grams, given, keys, values):
    """Enter grams with their values into an open table of zeros with more slots than grams."""
    mask = keys.shape[0] - 1
    for i in range(grams.shape[0]):
        slot = int64(grams[i] >> uint64(20)) & mask
        while keys[slot] != uint64(0):
            slot = (slot + 1) & mask
        keys[slot] = grams[i]
        values[slot] = given[i]


@kernel
def clip_and_weigh(out, weights, at, size, lookup, weighing):
    """Drop the features of out[at:at + size] whose value is 0, and weigh the others; return how many stay.

    weights: int64, counts on entry where weighing is by count; lookup: (keys, values, unseen), no keys for none.
    """
    keys, values, unseen = lookup
    if keys.shape[0] == 0:
        return size
    kept = at
    for i in range(at, at + size):
        value = value_of(out[i], keys, values, unseen[0])
        if value == 0:
            continue
        out[kept] = out[i]
        if weighing == BY_COUNT:
            weights[kept] = weights[i]
        elif weighing == BY_VALUE:
            weights[kept] = value
        elif weighing == BY_BOTH:
            weights[kept] = weights[i] * value
        kept += 1
    return kept - at


@kernel
def heaviest(out, weights, at, size, most, order):
    """Move the ``most`` heaviest of out[at:at + size] to its front, heaviest first, of equals the smaller gram.

    order: int64 scratch. Returns how many they are.
    """
    if size == 0:
        return 0
    by_gram = np.argsort(out[at : at + size])
    for i in range(size):
        order[i] = -weights[at + by_gram[i]]
    by_weight = np.argsort(order[:size], kind="mergesort")
    chosen = min(most, size)
    front = np.empty(chosen, np.uint64)
    for i in range(chosen):
        front[i] = out[at + by_gram[by_weight[i]]]
    out[at : at + chosen] = front
    return chosen


@kernel
def add_ranks(out, at, size):
    """Make the rank of each feature of out[at:at + size] part of it."""
    for i in range(size):
        out[at + i] = placed(out[at + i], i)


@kernel
def counts_of(grams, count, table, seen, counts, out, weights, at, size):
    """Write how often each feature of out[at:at + size] stands among the grams to weights.

    counts: int64 scratch as long as the grams.
    """
    shift, mask = _cleared(count, table)
    found = 0
    for i in range(count):
        gram = max(grams[i], uint64(1))
        slot = _slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = found
            counts[found] = 1
            found += 1
        else:
            counts[seen[slot]] += 1
    for i in range(at, at + size):
        weights[i] = counts[seen[_slot_of(out[i], table, shift, mask)]]


@kernel
def mark(out, weights, at, size):
    """Return two sums over out[at:at + size] that are equal for equal sets, with equal weights where there are any."""
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
