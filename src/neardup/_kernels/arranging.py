"""Features in the window's order: rare first, by a vocabulary that was frozen some time ago.

A feature of the vocabulary has a rank, the rarest 0; one that is not in it counts as rarer than all of them, and those
are in the order of their hashes. Any fixed order is right; only speed depends on how well it fits.
"""

import numpy as np
from numba import int64, njit, uint32, uint64

from neardup._kernels.bits import mix, prefetch
from neardup._kernels.compiling import kernel

#: Ranks are below 2**22: two digits of eleven bits sort them.
DIGIT = 11
_AHEAD = 12


@njit(inline="always")
def _slot(feature, keys):
    return int64(mix(feature) & uint64(keys.shape[0] - 1))


@kernel
def enter_words(features, keys, ranks):
    """Make keys (uint64 zeros[a power of two, more than the features]) and ranks a table from features to places."""
    for rank in range(features.shape[0]):
        slot = _slot(features[rank], keys)
        while keys[slot] != 0:
            slot = (slot + 1) & (keys.shape[0] - 1)
        keys[slot] = features[rank]
        ranks[slot] = rank


@kernel
def _sorted_ranks(ranks, count, other, digits):
    """Sort ranks[:count] with room in other (uint64) and digits (int64[2, 2**11])."""
    if count < 48:
        for i in range(1, count):
            value = ranks[i]
            k = i
            while k > 0 and ranks[k - 1] > value:
                ranks[k] = ranks[k - 1]
                k -= 1
            ranks[k] = value
        return
    digits[:] = 0
    low = uint64((1 << DIGIT) - 1)
    for i in range(count):
        digits[0, int64(ranks[i] & low)] += 1
        digits[1, int64(ranks[i] >> uint64(DIGIT))] += 1
    first = int64(0)
    second = int64(0)
    for d in range(1 << DIGIT):
        a, b = digits[0, d], digits[1, d]
        digits[0, d] = first
        digits[1, d] = second
        first += a
        second += b
    for i in range(count):
        d = int64(ranks[i] & low)
        other[digits[0, d]] = ranks[i]
        digits[0, d] += 1
    for i in range(count):
        d = int64(other[i] >> uint64(DIGIT))
        ranks[digits[1, d]] = other[i]
        digits[1, d] += 1


@kernel
def arrange(features, heads, keys, ranks, order, raws, other, digits):
    """Write each document's features in the window's order.

    Parameters
    ----------
    features : uint64[m]
        Distinct in a document; those of d are features[heads[d]:heads[d + 1]].
    keys, ranks : uint64[t], uint32[t]
        The vocabulary, by ``enter_words``.
    order : uint64[m]
        Gets, for each document, the unknown features ascending, then the ranks of the others ascending.
    raws : int64[n]
        Gets how many of each document's features are unknown.
    other, digits : uint64[the longest document], int64[2, 2**11]
        Room.
    """
    known = keys.shape[0] > 1
    at = uint64(keys.ctypes.data)
    for d in range(heads.shape[0] - 1):
        begin, end = heads[d], heads[d + 1]
        raw = int64(0)
        count = int64(0)
        for i in range(begin, end):
            feature = features[i]
            slot = int64(0)
            if known:
                if i + _AHEAD < features.shape[0]:
                    prefetch(at + uint64(8 * _slot(features[i + _AHEAD], keys)))
                slot = _slot(feature, keys)
                while keys[slot] != 0 and keys[slot] != feature:
                    slot = (slot + 1) & (keys.shape[0] - 1)
            if known and keys[slot] == feature:
                other[count] = uint64(ranks[slot])
                count += 1
            else:
                order[begin + raw] = feature
                raw += 1
        raws[d] = raw
        if raw > 1:
            order[begin : begin + raw] = np.sort(order[begin : begin + raw])
        ranked = order[begin + raw : end]
        ranked[:] = other[:count]
        _sorted_ranks(ranked, count, other, digits)


@kernel
def count_features(features, keys, counts):
    """Add each feature to an open table (uint64 and uint32 zeros[a power of two]); return how many are distinct.

    Stops when the table is three quarters full: then what is returned is 3/4 of its size or more.
    """
    distinct = int64(0)
    at = uint64(keys.ctypes.data)
    for i in range(features.shape[0]):
        if i + _AHEAD < features.shape[0]:
            prefetch(at + uint64(8 * _slot(features[i + _AHEAD], keys)))
        slot = _slot(features[i], keys)
        while keys[slot] != 0 and keys[slot] != features[i]:
            slot = (slot + 1) & (keys.shape[0] - 1)
        if keys[slot] == 0:
            if 4 * distinct >= 3 * keys.shape[0]:
                return distinct
            keys[slot] = features[i]
            distinct += 1
        counts[slot] += uint32(1)
    return distinct
