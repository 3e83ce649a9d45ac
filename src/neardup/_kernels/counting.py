"""Which features are shared, which sets can have a partner, and the rare-first prefix of each.

Sets are addressed: ``addresses[d]`` is where the uint64 features of set d begin, ``sizes[d]`` says how many. The table of
counts is approximate in one direction: two features may share a slot, so a count is never too low. Any fixed order of
features makes a right prefix, so this costs speed alone, never a pair.
"""

import numpy as np
from numba import int64, njit, uint8, uint64

from neardup._kernels.bits import load_u64
from neardup._kernels.bounds import need, smallest_partner

#: A feature's place in the order: its count above, its own bits below.
_COUNT_SHIFT = uint64(56)


@njit(nogil=True, cache=True)
def count_features(addresses, sizes, members, shift, counts):
    """Add one to counts[feature >> shift] for each feature of each member set, stopping at 255."""
    for m in range(members.shape[0]):
        d = members[m]
        address = addresses[d]
        for i in range(sizes[d]):
            slot = int64(load_u64(address + uint64(8 * i)) >> shift)
            seen = counts[slot]
            counts[slot] = seen + uint8(seen < uint8(255))


@njit(nogil=True, cache=True)
def add_counts(total, other):
    """Add other to total, stopping at 255."""
    for i in range(total.shape[0]):
        total[i] = uint8(min(int64(total[i]) + int64(other[i]), 255))


@njit(nogil=True, cache=True)
def _sift(keys, root, end):
    while True:
        child = 2 * root + 1
        if child >= end:
            return
        if child + 1 < end and keys[child + 1] > keys[child]:
            child += 1
        if keys[root] >= keys[child]:
            return
        keys[root], keys[child] = keys[child], keys[root]
        root = child


@njit(nogil=True, cache=True)
def _smallest_first(keys, count, wanted):
    """Bring the wanted smallest of count distinct keys to the front, ascending."""
    if wanted <= 0:
        return
    if count > 3 * wanted or count > 48:
        low = 0
        high = count - 1
        while low < high and wanted < count:
            middle = (low + high) // 2
            a, b, c = keys[low], keys[middle], keys[high]
            pivot = max(min(a, b), min(max(a, b), c))
            i = low
            j = high
            while i <= j:
                while keys[i] < pivot:
                    i += 1
                while keys[j] > pivot:
                    j -= 1
                if i <= j:
                    keys[i], keys[j] = keys[j], keys[i]
                    i += 1
                    j -= 1
            if wanted - 1 <= j:
                high = j
            elif wanted - 1 >= i:
                low = i
            else:
                break
        count = wanted
    if count <= 48:
        for i in range(1, count):
            key = keys[i]
            j = i - 1
            while j >= 0 and keys[j] > key:
                keys[j + 1] = keys[j]
                j -= 1
            keys[j + 1] = key
        return
    for root in range(count // 2 - 1, -1, -1):
        _sift(keys, root, count)
    for end in range(count - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        _sift(keys, 0, end)


@njit(nogil=True, cache=True)
def prefixes(addresses, sizes, members, shift, counts, rule, results):
    """Write each member set's probe prefix without the features that no other set holds.

    Of a set of s features of which c are shared, the s - c others come first in the rare-first order and cannot meet
    anything; of the prefix of s - need + 1 features that a partner must meet, lengths[d] are left for out. A set whose c
    features are too few for its smallest partner has length -1: it matches nothing. bitmaps: uint64[d, 8], bit h mod 512
    of each feature h. shared: int64[d] gets c. results: (shared, lengths, bitmaps, out). Returns how much of out is used.
    """
    shared, lengths, bitmaps, out = results
    longest = 1
    for m in range(members.shape[0]):
        longest = max(longest, sizes[members[m]])
    keys = np.empty(longest, np.uint64)
    at = 0
    for m in range(members.shape[0]):
        d = members[m]
        size = sizes[d]
        address = addresses[d]
        for i in range(8):
            bitmaps[m, i] = uint64(0)
        several = 0
        for i in range(size):
            feature = load_u64(address + uint64(8 * i))
            count = counts[int64(feature >> shift)]
            keys[several] = (uint64(count) << _COUNT_SHIFT) | (feature >> uint64(8))
            several += int64(count > uint8(1))
            bitmaps[m, int64((feature >> uint64(6)) & uint64(7))] |= uint64(1) << (feature & uint64(63))
        shared[m] = several
        least = need(rule, smallest_partner(rule, size), size)
        if several < least:
            lengths[m] = -1
            continue
        wanted = several - least + 1
        _smallest_first(keys, several, wanted)
        out[at : at + wanted] = keys[:wanted]
        lengths[m] = wanted
        at += wanted
    return at
