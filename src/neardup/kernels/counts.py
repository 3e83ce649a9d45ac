"""Which features are shared, which sets can have a partner or are equal, and the rare-first prefix of each.

Sets are addressed: ``addresses[d]`` is where the uint64 features of set d begin, ``sizes[d]`` says how many.
The table of counts is approximate in one direction: two features may share a slot, so a count is never too
low. Any fixed order of features makes a right prefix, so this costs speed alone, never a pair.

A count is one byte: as it is up to 127, from there on in steps of an eighth of an octave, each taken with the chance
that makes it right on average (R. Morris, Comm. ACM 21 (1978) 840). The dice are the feature and the set.
"""

from __future__ import annotations

from math import log2

import numpy as np
from numba import int64, njit, uint8, uint32, uint64

from neardup.kernels.bits import at_most_mask, load_u64, mix, popcount, prefetch, trailing_zeros
from neardup.kernels.bounds import required_overlap, smallest_partner
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import clear_table, find_slot, home_slot, table_buffer

#: The last count that stands for itself, the steps of an octave beyond, and what each byte stands for.
_LAST_EXACT, _STEPS = 127, 8
_SIZES = np.concatenate([np.arange(128.0), 127 * 2.0 ** (np.arange(1, 129) / _STEPS)])
#: Of 2**53 dice those that count a set: one in as many as a step is wide.
_CHANCES = (2.0**53 / np.maximum(np.append(np.diff(_SIZES), np.inf), 1)).astype(np.uint64)
_DICE = uint64(0x9E6C63D0876A9A47)
#: A feature's place in the order: its count above, its own bits below.
_COUNT_SHIFT = uint64(56)
#: How many features ahead the slots are asked for.
AHEAD = 64


@inner_kernel
def _fetch(address, size, shift, base):
    """Ask for the slots of a set's first features: waiting for them is most of what a feature costs."""
    for i in range(min(size, AHEAD)):
        prefetch(base + (load_u64(address + uint64(8 * i)) >> shift))


@inner_kernel
def incremented(seen, feature, d):
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
            if i + AHEAD < size:
                prefetch(base + (load_u64(address + uint64(8 * (i + AHEAD))) >> shift))
            feature = load_u64(address + uint64(8 * i))
            slot = int64(feature >> shift)
            counts[slot] = incremented(counts[slot], feature, d)


@kernel
def add_counts(total, other):
    """Add other counts to total."""
    for i in range(total.shape[0]):
        both = int64(total[i]) + int64(other[i])
        if both > _LAST_EXACT:
            size = _SIZES[total[i]] + _SIZES[other[i]]
            both = min(_LAST_EXACT + int64(round(_STEPS * log2(size / _LAST_EXACT))), 255)
        total[i] = uint8(both)


@inner_kernel
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


@inner_kernel
def sort_prefix(keys, count):
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


@inner_kernel
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


@inner_kernel
def _at_most(base, size, bound):
    """Count the bytes at base, in whole blocks of 64, that are at most bound."""
    count = 0
    for block in range(0, size, 64):
        count += int64(popcount(at_most_mask(base + uint64(block), uint8(bound))))
    return count


@njit(inline="always")
def _key(address, place, count):
    return (uint64(count) << _COUNT_SHIFT) | (load_u64(address + uint64(8 * place)) >> uint64(8))


@inner_kernel
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
    rare = int64(0)
    ties = int64(0)
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
    sort_prefix(out, wanted)


@kernel
def prefix_rooms(sizes, rule, out):
    """Set out[m] to the length of the whole probe prefix of a set of sizes[m] features: size - need + 1."""
    for m in range(sizes.shape[0]):
        size = sizes[m]
        out[m] = size - required_overlap(rule, smallest_partner(rule, size), size) + 1


@inner_kernel
def _prefix(m, address, size, seen, equal, rule, results, at):
    """Write what ``prefixes`` writes of set m, whose features have the counts seen; return where the next one goes."""
    shared, lengths, bitmaps, starts, out, _ = results
    for i in range(8):
        bitmaps[m, i] = uint64(0)
    several = 0
    for i in range(size):
        feature = load_u64(address + uint64(8 * i))
        several += int64(seen[i] > uint8(1))
        bitmaps[m, int64((feature >> uint64(6)) & uint64(7))] |= uint64(1) << (feature & uint64(63))
    seen[size : size + 64] = uint8(0)
    shared[m] = several
    starts[m] = at
    least = required_overlap(rule, smallest_partner(rule, size), size)
    if several < least:
        lengths[m] = -1
        return at
    wanted = several - least + 1
    _rarest(address, seen, size, wanted, equal, out[at:])
    lengths[m] = wanted
    return at + wanted


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
    longest = 1
    for m in range(members.shape[0]):
        longest = max(longest, sizes[members[m]])
    seen = np.empty(longest + 64, np.uint8)
    equal = np.empty(longest, np.uint64)
    base = uint64(counts.ctypes.data)
    at = results[5]
    for m in range(members.shape[0]):
        d = members[m]
        size = sizes[d]
        address = addresses[d]
        if m + 1 < members.shape[0]:
            _fetch(addresses[members[m + 1]], sizes[members[m + 1]], shift, base)
        for i in range(size):
            if i + AHEAD < size:
                prefetch(base + (load_u64(address + uint64(8 * (i + AHEAD))) >> shift))
            seen[i] = counts[int64(load_u64(address + uint64(8 * i)) >> shift)]
        at = _prefix(m, address, size, seen, equal, rule, results, at)


@kernel
def counted_prefixes(features, sizes, counts, rule, results):
    """Write what ``prefixes`` writes, of sets one behind the other, where the count of each feature is known: uint8."""
    longest = 1
    for d in range(sizes.shape[0]):
        longest = max(longest, sizes[d])
    seen = np.empty(longest + 64, np.uint8)
    equal = np.empty(longest, np.uint64)
    address = uint64(features.ctypes.data)
    begin, at = 0, results[5]
    for d in range(sizes.shape[0]):
        size = sizes[d]
        seen[:size] = counts[begin : begin + size]
        at = _prefix(d, address, size, seen, equal, rule, results, at)
        begin += size
        address += uint64(8 * size)


@inner_kernel
def _same_set(left, right, left_weights, right_weights, size):
    """Return whether two sets of one size, given by their addresses, hold the same; weights: addresses, or 0."""
    weighted = left_weights != uint64(0)
    i = int64(0)
    while i < size:
        at = uint64(8 * i)
        if load_u64(left + at) != load_u64(right + at):
            break
        if weighted and load_u64(left_weights + at) != load_u64(right_weights + at):
            break
        i += 1
    if i == size:
        return True
    # The same features may stand in another order, which is seldom: sets of most copies end above.
    table = clear_table(table_buffer(size), size)
    values = np.empty(table.shape[0], np.uint64)
    for i in range(size):
        feature = load_u64(left + uint64(8 * i))
        slot = find_slot(feature, table)
        table[slot] = feature
        values[slot] = load_u64(left_weights + uint64(8 * i)) if weighted else uint64(0)
    for i in range(size):
        feature = load_u64(right + uint64(8 * i))
        slot = find_slot(feature, table)
        if table[slot] != feature:
            return False
        if weighted and values[slot] != load_u64(right_weights + uint64(8 * i)):
            return False
    return True


@kernel
def group_equal(digests, sizes, excluded, addresses, weights, representative):
    """Set representative[d] to the first document that equals d, and to -1 where alone[d].

    Equal ones have equal marks and sizes. addresses: uint64[n], where the features of each lie, so that those with
    equal marks are compared; none where marks decide. weights: uint64[n], the same of their weights; none for sets.
    """
    count = sizes.shape[0]
    compares = addresses.shape[0] > 0
    weighted = weights.shape[0] > 0
    # Of documents, not of keys: those with one mark lie side by side.
    table = clear_table(table_buffer(count), count)
    for d in range(count):
        if excluded[d]:
            representative[d] = -1
            continue
        slot = home_slot(digests[d, 0], table)
        while True:
            first = int64(table[slot]) - 1
            if first < 0:
                table[slot] = uint64(d + 1)
                representative[d] = d
                break
            same = (
                digests[first, 0] == digests[d, 0] and digests[first, 1] == digests[d, 1] and sizes[first] == sizes[d]
            )
            if same and compares:
                first_weights, weights_address = uint64(0), uint64(0)
                if weighted:
                    first_weights, weights_address = weights[first], weights[d]
                same = _same_set(addresses[first], addresses[d], first_weights, weights_address, sizes[d])
            if same:
                representative[d] = first
                break
            slot = (slot + 1) & (table.shape[0] - 1)


@kernel
def keyed_digests(features, sizes, keys, digests):
    """Write to marks two sums over each set that lies behind the other in features: uint64[d, 2].

    Sets with equal marks are equal: whoever does not know the keys (uint64[2], drawn for each run) finds no others, and
    of sets that nobody chose two have one mark with probability 2**-128.
    """
    at = 0
    for d in range(sizes.shape[0]):
        first = uint64(0)
        second = uint64(0)
        for i in range(at, at + sizes[d]):
            first += mix(features[i] ^ keys[0])
            second += mix(features[i] + keys[1])
        digests[d, 0] = first
        digests[d, 1] = second
        at += sizes[d]


@kernel
def record_first_equal(digests, sizes, begin, end, table, bits, representative):
    """Set representative[d] of d in [begin, end) to the first document with its mark and size.

    representative: uint32; table: uint32[2**bits], more than the documents so far, all ones where it is free; it gets
    those that are first.
    """
    mask = (1 << bits) - 1
    for d in range(begin, end):
        slot = int64(digests[d, 0] >> uint64(64 - bits))
        while True:
            first = table[slot]
            if first == uint32(0xFFFFFFFF):
                table[slot] = uint32(d)
                representative[d] = uint32(d)
                break
            if digests[first, 0] == digests[d, 0] and digests[first, 1] == digests[d, 1] and sizes[first] == sizes[d]:
                representative[d] = first
                break
            slot = (slot + 1) & mask


@kernel
def flag_sets_by_size(sizes, unshared, rule, matchable):
    """Write to able what ``find_able`` does, where it is known how many features of each set no other one has."""
    for d in range(sizes.shape[0]):
        size = sizes[d]
        matchable[d] = size > 0 and size - unshared[d] >= required_overlap(rule, smallest_partner(rule, size), size)


@kernel
def copy_chosen_sets(features, sizes, chosen, out):
    """Copy the chosen sets to out, one behind the other; return how many features they have."""
    at = 0
    written = 0
    for d in range(sizes.shape[0]):
        if chosen[d]:
            out[written : written + sizes[d]] = features[at : at + sizes[d]]
            written += sizes[d]
        at += sizes[d]
    return written


@kernel
def copy_sets(addresses, heads, out):
    """Copy the set at each address (uint64[d]) to out[heads[d]:heads[d + 1]]."""
    for d in range(addresses.shape[0]):
        for i in range(heads[d + 1] - heads[d]):
            out[heads[d] + i] = load_u64(addresses[d] + uint64(8 * i))
