"""The first half of the join of weighted vectors: their terms in order, and an index of the prefixes.

Vectors are numbered by rank, from the smallest total to the largest. A term is (place of the feature in the
rare-first order, weight) in one int64. The extent of some terms is their sum where minima are added up
(``minima``), else the root of the sum of their squares: what two vectors have in common is at most the smaller
extent, or the product of both (Cauchy and Schwarz).
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import float32, float64, int32, int64, njit, uint64

from neardup._kernels.bits import prefetch
from neardup._kernels.compiling import kernel

PLACE_SHIFT = 32
WEIGHT = (1 << PLACE_SHIFT) - 1
_GOLDEN = uint64(0x9E3779B97F4A7C15)
#: Makes a number greater than its rounding to float32 may lose.
_ROUNDED_UP = 1 + 2.0**-22


class Terms(NamedTuple):
    """The vectors of a join by rank.

    starts: int64[r] into terms and after; lengths: int64[r], features that other vectors have too; terms: int64,
    place << 32 | weight, ascending; after: float32, at least the sum or norm of a vector's terms after this one;
    probed, held: int64[r], how many terms look for partners before it, and are in the index; last: int64[r], the last
    place that the terms held cover, all if there are no others; tails: float32[r], their ``after``.
    """

    starts: np.ndarray
    lengths: np.ndarray
    terms: np.ndarray
    after: np.ndarray
    probed: np.ndarray
    held: np.ndarray
    last: np.ndarray
    tails: np.ndarray


class Postings(NamedTuple):
    """Place f's list is entries[heads[f]:heads[f + 1]], in rank order.

    entries: int32[k, 3], rank, weight, and the bits of its ``after``; rests: the same memory as float32.
    """

    heads: np.ndarray
    entries: np.ndarray
    rests: np.ndarray


@njit(inline="always")
def _slot(feature, bits):
    return int64((feature * _GOLDEN) >> uint64(64 - bits))


@njit(inline="always")
def _extent(minima, total):
    return float64(total) if minima else sqrt(float64(total))


@kernel
def totals(members, heads, weights, minima, out):
    """Write each member's sum of weights (minima) or of their squares; return the largest sum of squares."""
    largest = 0.0
    for m in range(members.shape[0]):
        total = 0
        squares = 0.0
        for i in range(heads[members[m]], heads[members[m] + 1]):
            weight = weights[i]
            total += weight if minima else weight * weight
            squares += float64(weight) * float64(weight)
        out[m] = total
        largest = max(largest, squares)
    return largest


@kernel
def enter_features(features, places, bits, keys, values):
    """Make keys and values (2**bits zeros each, more than the features) a table from features to places."""
    mask = (1 << bits) - 1
    for f in range(features.shape[0]):
        slot = _slot(features[f], bits)
        while keys[slot] != uint64(0):
            slot = (slot + 1) & mask
        keys[slot] = features[f]
        values[slot] = places[f]


@njit(inline="always")
def last_place(sets, rank, count):
    """Return the last place that the first count terms of a rank cover, all if there are no others."""
    if count == sets.lengths[rank]:
        return int64(WEIGHT)
    return sets.terms[sets.starts[rank] + count - 1] >> PLACE_SHIFT


@kernel
def arrange(begin, end, members, vectors, table, minima, least, sets):
    """Fill the terms of ranks [begin, end), whose starts are set, and their lengths.

    members: int64[r], the document of each rank. table: (bits, keys, values), the features of several vectors.
    least: float64[2, r], what probed and held prefixes may leave: less than that suffices for no partner.
    """
    heads, features, weights = vectors
    bits, keys, values = table
    mask = (1 << bits) - 1
    base = uint64(keys.ctypes.data)
    for rank in range(begin, end):
        start = sets.starts[rank]
        low, high = heads[members[rank]], heads[members[rank] + 1]
        for i in range(low, high):
            prefetch(base + uint64(8 * _slot(features[i], bits)))
        length = 0
        for i in range(low, high):
            slot = _slot(features[i], bits)
            while keys[slot] != uint64(0) and keys[slot] != features[i]:
                slot = (slot + 1) & mask
            if keys[slot] != uint64(0):
                sets.terms[start + length] = (int64(values[slot]) << PLACE_SHIFT) | weights[i]
                length += 1
        sets.terms[start : start + length].sort()
        sets.lengths[rank] = length
        sets.probed[rank] = 0
        sets.held[rank] = 0
        remaining = 0
        extent = 0.0
        for i in range(length - 1, -1, -1):
            sets.after[start + i] = float32(extent * _ROUNDED_UP)
            weight = sets.terms[start + i] & WEIGHT
            remaining += weight if minima else weight * weight
            extent = _extent(minima, remaining)
            if extent >= least[0, rank]:
                sets.probed[rank] = max(sets.probed[rank], i + 1)
            if extent >= least[1, rank]:
                sets.held[rank] = max(sets.held[rank], i + 1)
        if sets.held[rank] > 0:
            sets.last[rank] = last_place(sets, rank, sets.held[rank])
            sets.tails[rank] = sets.after[start + sets.held[rank] - 1]


@kernel
def count_held(sets, heads):
    """Make heads (zeros on entry, one more than the places) the beginnings of the lists."""
    for rank in range(sets.starts.shape[0]):
        start = sets.starts[rank]
        for i in range(sets.held[rank]):
            heads[(sets.terms[start + i] >> PLACE_SHIFT) + 1] += 1
    for f in range(heads.shape[0] - 1):
        heads[f + 1] += heads[f]


@kernel
def fill_postings(sets, postings):
    """Fill the entries of the lists."""
    filled = postings.heads.copy()
    for rank in range(sets.starts.shape[0]):
        start = sets.starts[rank]
        for i in range(sets.held[rank]):
            term = sets.terms[start + i]
            place = filled[term >> PLACE_SHIFT]
            filled[term >> PLACE_SHIFT] += 1
            postings.entries[place, 0] = int32(rank)
            postings.entries[place, 1] = int32(term & WEIGHT)
            postings.rests[place, 2] = sets.after[start + i]
