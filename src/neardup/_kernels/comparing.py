"""One set against another of the window: what they share, and how similar that makes them."""

import numpy as np
from numba import float64, int64, uint64

from neardup._kernels.addresses import load_u32
from neardup._kernels.bits import load_u64
from neardup._kernels.bounds import CONTAINMENT, COSINE, DICE, JACCARD, OVERLAP
from neardup._kernels.compiling import kernel

_AT_ONCE = 128


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
def shared(order, raws, place, other_raws, other, least, known):
    """Return how many features two sets share, or a smaller number than least once it cannot be reached.

    place: where the other's features are; known: 1 for the ranks of order.
    """
    count = int64(0)
    i = int64(0)
    k = int64(0)
    while i < raws and k < other_raws:
        theirs = load_u64(place + uint64(8 * k))
        own = order[i]
        count += own == theirs
        i += own <= theirs
        k += theirs <= own
    place += uint64(8 * other_raws)
    ranked = other - other_raws
    if order.shape[0] == raws:
        return count
    for begin in range(0, ranked, _AT_ONCE):
        if count + ranked - begin < least:
            return count
        for k in range(begin, min(begin + _AT_ONCE, ranked)):
            count += known[load_u32(place + uint64(4 * k))]
    return count
