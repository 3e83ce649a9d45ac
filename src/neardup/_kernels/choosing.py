"""What a collection makes of features: a lookup table clips and weighs them, and chooses the heaviest terms."""

import numpy as np
from numba import int64, uint64

from neardup._kernels.compiling import kernel
from neardup._kernels.grams import placed
from neardup._kernels.listed import most_of
from neardup._kernels.sets import as_counts, as_set, cleared, mark, slot_of
from neardup._kernels.shingles import table_for

#: Where a weight comes from.
NO_WEIGHTS, BY_COUNT, BY_VALUE, BY_BOTH = 0, 1, 2, 3


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

    weights: int64, counts on entry where weighing is by count; lookup: (keys, values, unseen).
    """
    keys, values, unseen = lookup
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
def counts_of(grams, begin, end, table, seen, counts, out, weights, at, size):
    """Write how often each feature of out[at:at + size] stands among grams[begin:end] to weights.

    counts: int64 scratch as long as those.
    """
    shift, mask = cleared(end - begin, table)
    found = 0
    for i in range(begin, end):
        gram = max(grams[i], uint64(1))
        slot = slot_of(gram, table, shift, mask)
        if table[slot] == uint64(0):
            table[slot] = gram
            seen[slot] = found
            counts[found] = 1
            found += 1
        else:
            counts[seen[slot]] += 1
    for i in range(at, at + size):
        weights[i] = counts[seen[slot_of(out[i], table, shift, mask)]]


@kernel
def clip_sets(out, weights, lookup, weighing, sizes, marks):
    """Clip and weigh the features of documents that lie one behind the other, in place; return how many stay.

    weights: int64, counts on entry where weighing is by count, empty where there are none; lookup: as for
    ``clip_and_weigh``; sizes: int64[d] and marks: uint64[d, 2], those of the sets on entry and on return.
    """
    begin = 0
    at = 0
    weighted = weights.shape[0] > 0
    for d in range(sizes.shape[0]):
        size = sizes[d]
        for i in range(size):
            out[at + i] = out[begin + i]
            if weighted:
                weights[at + i] = weights[begin + i]
        begin += size
        size = clip_and_weigh(out, weights, at, size, lookup, weighing)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
    return at


@kernel
def choose_terms(grams, lengths, heads, plan, lookup, out, weights, sizes, marks):
    """Write the heaviest terms of each document's segments, united, one document behind the other; return how many.

    grams: uint64, the terms of all segments, repeats repeated; lengths: int64[s], how many of each segment; heads:
    int64[d + 1], the segments of each document; plan: (terms of a segment, positional, weighing); out: uint64, as long
    as grams; weights: int64, as long, or empty where there are none; sizes: int64[d]; marks: uint64[d, 2].
    """
    most, positional, weighing = plan
    longest = most_of(lengths, heads)
    table = table_for(longest)
    seen = np.empty(table.shape[0], np.int64)
    picked = np.empty(longest + 1, np.uint64)
    counts = np.empty(longest + 1, np.int64)
    order = np.empty(longest + 1, np.int64)
    at = 0
    first = 0
    for d in range(sizes.shape[0]):
        begin = first
        chosen = 0
        for s in range(heads[d], heads[d + 1]):
            end = begin + lengths[s]
            size = as_counts(grams, begin, end, table, seen, picked, counts, chosen)
            # The heaviest by tf * idf, whatever the weights are that documents are compared by.
            size = clip_and_weigh(picked, counts, chosen, size, lookup, BY_BOTH)
            size = heaviest(picked, counts, chosen, size, most, order)
            if positional:
                add_ranks(picked, chosen, size)
            chosen += size
            begin = end
        size = as_set(picked, 0, chosen, table, out, at)
        if weighing != NO_WEIGHTS:
            counts_of(grams, first, begin, table, seen, counts, out, weights, at, size)
            size = clip_and_weigh(out, weights, at, size, lookup, weighing)
        sizes[d] = size
        marks[d, 0], marks[d, 1] = mark(out, weights, at, size)
        at += size
        first = begin
    return at
