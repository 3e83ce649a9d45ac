"""Which features are shared, which sets can have a partner, and the rare-first prefix of each.

Sets are addressed: ``addresses[d]`` is where the uint64 features of set d begin, ``sizes[d]`` says how many.
The table of counts is approximate in one direction: two features may share a slot, so a count is never too
low. Any fixed order of features makes a right prefix, so this costs speed alone, never a pair.

A count is one byte: as it is up to 127, from there on in steps of an eighth of an octave, each taken with the chance
that makes it right on average (R. Morris, Comm. ACM 21 (1978) 840). The dice are the feature and the set.
"""

from math import log2

import numpy as np
from numba import int64, njit, uint8, uint64

from neardup._kernels.bits import at_most_mask, load_u64, mix, popcount, prefetch, trailing_zeros
from neardup._kernels.bounds import need, smallest_partner
from neardup._kernels.compiling import kernel

#: The last count that stands for itself, the steps of an octave beyond, and what each byte stands for.
_LAST_EXACT, _STEPS = 127, 8
_SIZES = np.concatenate([np.arange(128.0), 127 * 2.0 ** (np.arange(1, 129) / _STEPS)])
#: Of 2**53 dice those that count a set: one in as many as a step is wide.
_CHANCES = (2.0**53 / np.maximum(np.append(np.diff(_SIZES), np.inf), 1)).astype(np.uint64)
_DICE = uint64(0x9E6C63D0876A9A47)
#: A feature's place in the order: its count above, its own bits below.
_COUNT_SHIFT = uint64(56)
#: How many features ahead the slots are asked for.
_AHEAD = 64


@kernel
def _fetch(address, size, shift, base):
    """Ask for the slots of a set's first features: waiting for them is most of what a feature costs."""
    for i in range(min(size, _AHEAD)):
        prefetch(base + (load_u64(address + uint64(8 * i)) >> shift))


@kernel
def _one_more(seen, feature, d):
    """Return a count after one more set, d, with the feature."""
    if seen < uint8(_LAST_EXACT):
        return seen + uint8(1)
    dice = mix(feature ^ (uint64(d) * _DICE)) >> uint64(11)
    return seen + uint8(seen < uint8(255) and dice < _CHANCES[seen])


@kernel
def count_features(addresses, sizes, members, shift, counts):
    """Count one more in counts[feature >> shift] for each feature of each member set."""
    base = uint64(counts.ctypes.data)
    for m in range(members.shape[0]):
        d = members[m]
        if m + 1 < members.shape[0]:
            _fetch(addresses[members[m + 1]], sizes[members[m + 1]], shift, base)
        address = addresses[d]
        size = sizes[d]
        for i in range(size):
            if i + _AHEAD < size:
                prefetch(base + (load_u64(address + uint64(8 * (i + _AHEAD))) >> shift))
            feature = load_u64(address + uint64(8 * i))
            slot = int64(feature >> shift)
            counts[slot] = _one_more(counts[slot], feature, d)


@kernel
def add_counts(total, other):
    """Add other counts to total."""
    for i in range(total.shape[0]):
        both = int64(total[i]) + int64(other[i])
        if both > _LAST_EXACT:
            size = _SIZES[total[i]] + _SIZES[other[i]]
            both = min(_LAST_EXACT + int64(round(_STEPS * log2(size / _LAST_EXACT))), 255)
        total[i] = uint8(both)


@kernel
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


@kernel
def _sort(keys, count):
    """Sort the first count keys: by insertion when they are few, by heap otherwise, in place."""
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


@kernel
def _select(keys, count, wanted):
    """Bring the wanted smallest of count keys to the front, in any order."""
    low = 0
    high = count - 1
    while low < high and 0 < wanted < count:
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
            return


@kernel
def _at_most(base, size, bound):
    """Count the bytes at base, in whole blocks of 64, that are at most bound."""
    count = 0
    for block in range(0, size, 64):
        count += int64(popcount(at_most_mask(base + uint64(block), uint8(bound))))
    return count


@njit(inline="always")
def _key(address, place, count):
    return (uint64(count) << _COUNT_SHIFT) | (load_u64(address + uint64(8 * place)) >> uint64(8))


@kernel
def _rarest(address, seen, size, wanted, equal, out):
    """Write to out the wanted smallest keys (count, feature) among those with seen[i] > 1, ascending.

    seen: uint8, 0 from size on to a whole block of 64; at least wanted of the others are above 1.
    """
    base = uint64(seen.ctypes.data)
    alone = _at_most(base, size, 1)
    low = 2
    high = 255
    while low < high:
        middle = (low + high) // 2
        if _at_most(base, size, middle) - alone >= wanted:
            high = middle
        else:
            low = middle + 1
    rare = 0
    ties = 0
    for block in range(0, size, 64):
        below = at_most_mask(base + uint64(block), uint8(high - 1))
        mask = at_most_mask(base + uint64(block), uint8(high)) & ~below
        while mask != uint64(0):
            equal[ties] = _key(address, block + int64(trailing_zeros(mask)), high)
            ties += 1
            mask &= mask - uint64(1)
        mask = below & ~at_most_mask(base + uint64(block), uint8(1))
        while mask != uint64(0):
            place = block + int64(trailing_zeros(mask))
            out[rare] = _key(address, place, seen[place])
            rare += 1
            mask &= mask - uint64(1)
    _select(equal, ties, wanted - rare)
    for i in range(wanted - rare):
        out[rare + i] = equal[i]
    _sort(out, wanted)


@kernel
def prefix_rooms(sizes, rule, out):
    """Set out[m] to the length of the whole probe prefix of a set of sizes[m] features: size - need + 1."""
    for m in range(sizes.shape[0]):
        size = sizes[m]
        out[m] = size - need(rule, smallest_partner(rule, size), size) + 1


@kernel
def prefixes(addresses, sizes, members, shift, counts, rule, results):
    """Write each member set's probe prefix without the features that no other set holds.

    Of a set of s features of which c are shared, the s - c others come first in the rare-first order and
    cannot meet anything; of the prefix of s - need + 1 features that a partner must meet, lengths[m] are left
    for out. A set whose c features are too few for its smallest partner has length -1: it matches nothing.
    shared: int64[m] gets c. bitmaps: uint64[m, 8] gets bit h mod 512 of each feature h. starts: int64[m] gets
    where in out each prefix begins. results: (shared, lengths, bitmaps, starts, out, begin), with room in
    out[begin:] for all probe prefixes of the members.
    """
    shared, lengths, bitmaps, starts, out, begin = results
    longest = 1
    for m in range(members.shape[0]):
        longest = max(longest, sizes[members[m]])
    seen = np.empty(longest + 64, np.uint8)
    equal = np.empty(longest, np.uint64)
    base = uint64(counts.ctypes.data)
    at = begin
    for m in range(members.shape[0]):
        d = members[m]
        size = sizes[d]
        address = addresses[d]
        if m + 1 < members.shape[0]:
            _fetch(addresses[members[m + 1]], sizes[members[m + 1]], shift, base)
        for i in range(8):
            bitmaps[m, i] = uint64(0)
        several = 0
        for i in range(size):
            if i + _AHEAD < size:
                prefetch(base + (load_u64(address + uint64(8 * (i + _AHEAD))) >> shift))
            feature = load_u64(address + uint64(8 * i))
            count = counts[int64(feature >> shift)]
            seen[i] = count
            several += int64(count > uint8(1))
            bitmaps[m, int64((feature >> uint64(6)) & uint64(7))] |= uint64(1) << (feature & uint64(63))
        seen[size : size + 64] = uint8(0)
        shared[m] = several
        starts[m] = at
        least = need(rule, smallest_partner(rule, size), size)
        if several < least:
            lengths[m] = -1
            continue
        wanted = several - least + 1
        _rarest(address, seen, size, wanted, equal, out[at:])
        lengths[m] = wanted
        at += wanted
