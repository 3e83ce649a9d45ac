"""Document frequencies, sets that can have a partner, equal sets, and the rare-first prefix of each set.

Set d is ``sizes[d]`` features (uint64) at the memory address ``addresses[d]``. The table of counts is approximate in
one direction: two features may share a slot, so a count is never too low. Any fixed order of features gives correct
prefixes, so this affects speed alone.

A count is one byte: exact up to 127, then in steps of an eighth of an octave, each taken with the probability that
makes it right on average (R. Morris, Comm. ACM 21 (1978) 840). The dice are a hash of the feature and the set.
"""

from __future__ import annotations

from math import log2

import numpy as np
from numba import int64, uint8, uint32, uint64

from neardup.kernels.bits import at_most_mask, load_u64, mix, popcount, prefetch, trailing_zeros
from neardup.kernels.bounds import required_overlap, smallest_partner
from neardup.kernels.compilation import inlined, inner_kernel, kernel
from neardup.kernels.tables import clear_table, find_slot, home_slot, table_buffer

#: The last exact count, the steps per octave beyond it, and the count that each byte stands for.
_LAST_EXACT, _STEPS = 127, 8
_SIZES = np.concatenate([np.arange(128.0), 127 * 2.0 ** (np.arange(1, 129) / _STEPS)])
#: For each byte, how many of 2**53 dice increment it: one in as many as the step is wide.
_CHANCES = (2.0**53 / np.maximum(np.append(np.diff(_SIZES), np.inf), 1)).astype(np.uint64)
_DICE_FACTOR = uint64(0x9E6C63D0876A9A47)
#: The order of features: the count in the upper bits, the feature in the lower ones.
_COUNT_SHIFT = uint64(56)
#: How many features ahead slots are prefetched.
PREFETCH_DISTANCE = 64


@inner_kernel
def _prefetch_slots(address, size, shift, base):
    """Prefetch the slots of a set's first features: waiting for memory is most of the cost of a feature."""
    for i in range(min(size, PREFETCH_DISTANCE)):
        prefetch(base + (load_u64(address + uint64(8 * i)) >> shift))


@inner_kernel
def increment_count(count, feature, d):
    """Return a count after one more set, d, with the feature."""
    if count < uint8(_LAST_EXACT):
        return count + uint8(1)
    dice = mix(feature ^ (uint64(d) * _DICE_FACTOR)) >> uint64(11)
    return count + uint8(count < uint8(255) and dice < _CHANCES[count])


@kernel
def count_features(addresses, sizes, members, shift, counts):
    """Add one to counts[feature >> shift] for each feature of each member set."""
    base = uint64(counts.ctypes.data)
    for m in range(members.shape[0]):
        d = members[m]
        if m + 1 < members.shape[0]:
            _prefetch_slots(addresses[members[m + 1]], sizes[members[m + 1]], shift, base)
        address = addresses[d]
        size = sizes[d]
        for i in range(size):
            if i + PREFETCH_DISTANCE < size:
                prefetch(base + (load_u64(address + uint64(8 * (i + PREFETCH_DISTANCE))) >> shift))
            feature = load_u64(address + uint64(8 * i))
            slot = int64(feature >> shift)
            counts[slot] = increment_count(counts[slot], feature, d)


@kernel
def add_counts(total, addend):
    """Add a table of counts to a total."""
    for i in range(total.shape[0]):
        combined = int64(total[i]) + int64(addend[i])
        if combined > _LAST_EXACT:
            size = _SIZES[total[i]] + _SIZES[addend[i]]
            combined = min(_LAST_EXACT + int64(round(_STEPS * log2(size / _LAST_EXACT))), 255)
        total[i] = uint8(combined)


@inner_kernel
def _sift_down(keys, root, end):
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
    """Sort the first ``count`` keys in place: by insertion if they are few, by heap otherwise."""
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
        _sift_down(keys, root, count)
    for end in range(count - 1, 0, -1):
        keys[0], keys[end] = keys[end], keys[0]
        _sift_down(keys, 0, end)


@inner_kernel
def _select(keys, count, needed):
    """Move the ``needed`` smallest of ``count`` keys to the front, in any order."""
    low = 0
    high = count - 1
    while low < high and 0 < needed < count:
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
        if needed - 1 <= j:
            high = j
        elif needed - 1 >= i:
            low = i
        else:
            return


@inner_kernel
def _count_at_most(base, size, bound):
    """Count the bytes at ``base``, in whole blocks of 64, that are at most ``bound``."""
    count = 0
    for block in range(0, size, 64):
        count += int64(popcount(at_most_mask(base + uint64(block), uint8(bound))))
    return count


@inlined
def _order_key(address, index, count):
    return (uint64(count) << _COUNT_SHIFT) | (load_u64(address + uint64(8 * index)) >> uint64(8))


@inner_kernel
def _write_rarest(address, counts, size, needed, ties_buffer, out):
    """Write to out the ``needed`` smallest keys (count, feature) among those with counts[i] > 1, ascending.

    counts: uint8, 0 from size on to a multiple of 64; at least ``needed`` of them are above 1.
    """
    base = uint64(counts.ctypes.data)
    unique = _count_at_most(base, size, 1)
    low = 2
    high = 255
    while low < high:
        middle = (low + high) // 2
        if _count_at_most(base, size, middle) - unique >= needed:
            high = middle
        else:
            low = middle + 1
    rare = int64(0)
    ties = int64(0)
    for block in range(0, size, 64):
        below = at_most_mask(base + uint64(block), uint8(high - 1))
        mask = at_most_mask(base + uint64(block), uint8(high)) & ~below
        while mask != uint64(0):
            ties_buffer[ties] = _order_key(address, block + int64(trailing_zeros(mask)), high)
            ties += 1
            mask &= mask - uint64(1)
        mask = below & ~at_most_mask(base + uint64(block), uint8(1))
        while mask != uint64(0):
            index = block + int64(trailing_zeros(mask))
            out[rare] = _order_key(address, index, counts[index])
            rare += 1
            mask &= mask - uint64(1)
    _select(ties_buffer, ties, needed - rare)
    for i in range(needed - rare):
        out[rare + i] = ties_buffer[i]
    sort_prefix(out, needed)


@kernel
def prefix_capacities(sizes, rule, out):
    """Set out[m] to the length of the whole probe prefix of a set of sizes[m] features: size - required overlap + 1."""
    for m in range(sizes.shape[0]):
        size = sizes[m]
        out[m] = size - required_overlap(rule, smallest_partner(rule, size), size) + 1


@inner_kernel
def _write_prefix(m, address, size, counts, ties_buffer, rule, results, at):
    """Write the prefix of set m, given the counts of its features; return where the next one goes."""
    shared, lengths, bitmaps, starts, out, _ = results
    for i in range(8):
        bitmaps[m, i] = uint64(0)
    shared_count = 0
    for i in range(size):
        feature = load_u64(address + uint64(8 * i))
        shared_count += int64(counts[i] > uint8(1))
        bitmaps[m, int64((feature >> uint64(6)) & uint64(7))] |= uint64(1) << (feature & uint64(63))
    counts[size : size + 64] = uint8(0)
    shared[m] = shared_count
    starts[m] = at
    required = required_overlap(rule, smallest_partner(rule, size), size)
    if shared_count < required:
        lengths[m] = -1
        return at
    length = shared_count - required + 1
    _write_rarest(address, counts, size, length, ties_buffer, out[at:])
    lengths[m] = length
    return at + length


@kernel
def write_prefixes(addresses, sizes, members, shift, counts, rule, results):
    """Write each member set's probe prefix, without the features that no other set contains.

    Of a set of s features of which c are shared, the s - c others come first in the rare-first order and cannot match
    anything. Of the prefix of s - overlap + 1 features, in which any partner must share one, lengths[m] remain. A set
    whose c shared features are too few for its smallest partner has length -1: it matches nothing. results: (shared,
    lengths, bitmaps, starts, out, begin). shared: int64[m], gets c; bitmaps: uint64[m, 8], gets bit h mod 512 of each
    feature h; starts: int64[m], gets where each prefix begins in out; out: uint64, from ``begin`` on long enough for
    all probe prefixes.
    """
    longest = 1
    for m in range(members.shape[0]):
        longest = max(longest, sizes[members[m]])
    set_counts = np.empty(longest + 64, np.uint8)
    ties_buffer = np.empty(longest, np.uint64)
    base = uint64(counts.ctypes.data)
    at = results[5]
    for m in range(members.shape[0]):
        d = members[m]
        size = sizes[d]
        address = addresses[d]
        if m + 1 < members.shape[0]:
            _prefetch_slots(addresses[members[m + 1]], sizes[members[m + 1]], shift, base)
        for i in range(size):
            if i + PREFETCH_DISTANCE < size:
                prefetch(base + (load_u64(address + uint64(8 * (i + PREFETCH_DISTANCE))) >> shift))
            set_counts[i] = counts[int64(load_u64(address + uint64(8 * i)) >> shift)]
        at = _write_prefix(m, address, size, set_counts, ties_buffer, rule, results, at)


@kernel
def write_counted_prefixes(features, sizes, counts, rule, results):
    """Do what ``write_prefixes`` does for concatenated sets whose counts (uint8) are given per feature."""
    longest = 1
    for d in range(sizes.shape[0]):
        longest = max(longest, sizes[d])
    set_counts = np.empty(longest + 64, np.uint8)
    ties_buffer = np.empty(longest, np.uint64)
    address = uint64(features.ctypes.data)
    begin, at = 0, results[5]
    for d in range(sizes.shape[0]):
        size = sizes[d]
        set_counts[:size] = counts[begin : begin + size]
        at = _write_prefix(d, address, size, set_counts, ties_buffer, rule, results, at)
        begin += size
        address += uint64(8 * size)


@inner_kernel
def _are_equal_sets(left, right, left_weights, right_weights, size):
    """Return whether two sets of equal size have equal elements, and weights if their addresses are not 0."""
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
    # Equal features in another order are rare: most equal sets return above.
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
def group_equal_sets(digests, sizes, excluded, addresses, weights, representative):
    """Set representative[d] to the first document equal to d, or to -1 if excluded[d].

    Equal documents have equal digests and sizes. addresses: uint64[n], where the features of each document are, to
    compare those with equal digests; empty if digests decide. weights: uint64[n], the same for weights; empty for sets.
    """
    count = sizes.shape[0]
    compares = addresses.shape[0] > 0
    weighted = weights.shape[0] > 0
    # A table of documents instead of keys: those with equal digests are adjacent.
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
            is_equal = (
                digests[first, 0] == digests[d, 0] and digests[first, 1] == digests[d, 1] and sizes[first] == sizes[d]
            )
            if is_equal and compares:
                first_weights, weights_address = uint64(0), uint64(0)
                if weighted:
                    first_weights, weights_address = weights[first], weights[d]
                is_equal = _are_equal_sets(addresses[first], addresses[d], first_weights, weights_address, sizes[d])
            if is_equal:
                representative[d] = first
                break
            slot = (slot + 1) & (table.shape[0] - 1)


@kernel
def keyed_digests(features, sizes, keys, digests):
    """Write two keyed sums over each of the concatenated sets to digests: uint64[d, 2].

    Sets with equal digests are equal: without the keys (uint64[2], drawn for each run) nobody can construct collisions,
    and sets that nobody chose collide with probability 2**-128.
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
    """Set representative[d], for d in [begin, end), to the first document with its digest and size.

    representative: uint32; table: uint32[2**bits], more than the documents so far, all ones where free; it gets the
    documents that are first.
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
    """Set matchable[d] to whether a set, given how many of its features no other set has, can have a partner."""
    for d in range(sizes.shape[0]):
        size = sizes[d]
        matchable[d] = size > 0 and size - unshared[d] >= required_overlap(rule, smallest_partner(rule, size), size)


@kernel
def copy_chosen_sets(features, sizes, chosen, out):
    """Copy the chosen sets to out, concatenated; return their number of features."""
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
