"""One set against another of the window: what they share, and how similar that makes them."""

import numpy as np
from numba import float64, int64, uint64

from neardup._kernels.addresses import load_u16, load_u32, place_of
from neardup._kernels.bits import load_u64
from neardup._kernels.bounds import CONTAINMENT, COSINE, DICE, JACCARD, OVERLAP
from neardup._kernels.compiling import kernel
from neardup._kernels.posting import AT, FIRST, NEXT, SHAPE, SIZE, raws_of, wide_of

_AT_ONCE = 128
#: So many of the most frequent features have ranks of two bytes.
NARROW = 1 << 16


@kernel
def similarity(code, o, a, b):
    """Return the similarity of ``neardup.measures``, in the same operations on the same numbers."""
    if code == JACCARD:
        return float64(o) / float64(a + b - o)
    if code == OVERLAP:
        return float64(o) / float64(max(a, b))
    if code == DICE:
        return float64(2 * o) / float64(a + b)
    if code == COSINE:
        return min(float64(o) / np.sqrt(float64(a) * float64(b)), 1.0)
    if code == CONTAINMENT:
        return float64(o) / float64(min(a, b))
    return 1.0 / (1.0 + np.sqrt(float64(a + b) - float64(2 * o)))


@kernel
def shared(order, raws, place, record, narrow, least, known):
    """Return how many features two sets share, or a smaller number than least once it cannot be reached.

    order, raws: one set in the window's order; place: where the other's features are; record: its record; narrow: the
    rank from which on ranks take two bytes; known: 1 for the ranks of order.
    """
    count = int64(0)
    i = int64(0)
    k = int64(0)
    theirs = raws_of(record[SHAPE])
    while i < raws and k < theirs:
        other = load_u64(place + uint64(8 * k))
        own = order[i]
        count += own == other
        i += own <= other
        k += other <= own
    if order.shape[0] == raws:
        return count
    place += uint64(8 * theirs)
    wide = wide_of(record[SHAPE])
    rest = record[SIZE] - theirs
    for k in range(wide):
        count += known[load_u32(place + uint64(4 * k))]
    place += uint64(4 * wide)
    rest -= wide
    for begin in range(0, rest, _AT_ONCE):
        if count + rest - begin < least:
            return count
        for k in range(begin, min(begin + _AT_ONCE, rest)):
            count += known[narrow + int64(load_u16(place + uint64(2 * k)))]
    return count


@kernel
def overlap_with_all(items, lists, known, out):
    """Write to out[r, 3] the o, a and b of the first document with each row of the records, o = 0 for none."""
    order, raws = items.order, items.raws[0]
    mask = lists.records.shape[0] - 1
    for k in range(order.shape[0] - raws):
        known[order[raws + k]] = 1
    for d in range(lists.counters[FIRST], lists.counters[NEXT]):
        record = lists.records[d & mask]
        if record[SIZE] > 0:
            place = place_of(lists.bases, record[AT])
            out[d & mask, 0] = shared(order, raws, place, record, max(known.shape[0] - NARROW, 0), int64(0), known)
            out[d & mask, 1] = order.shape[0]
            out[d & mask, 2] = record[SIZE]
    for k in range(order.shape[0] - raws):
        known[order[raws + k]] = 0
