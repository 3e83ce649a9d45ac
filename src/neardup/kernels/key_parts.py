"""Data by part of the key space, in files that are read once each: counts of features, and keys of prefixes.

A hash selects the slot of a feature among those of all parts; its upper bits are the part. The part of a prefix key is
the upper bits of the hash that selects its list in an index.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, uint8, uint32, uint64

from neardup.kernels.bits import popcount, prefetch, trailing_zeros
from neardup.kernels.bounds import required_overlap
from neardup.kernels.compilation import inlined, kernel
from neardup.kernels.counts import PREFETCH_DISTANCE, increment_count
from neardup.kernels.prefixes import (
    LAST_POSITION,
    LOW_BITS,
    PrefixIndex,
    add_candidate,
    begin_lists,
    clear_candidates,
    entry_position,
    entry_rank,
    entry_tag,
    finish_lists,
    list_range,
    overlap_bound,
    pack_entry,
    partner_ranks,
    scrambled_key,
)

#: Odd, and different from the multiplier of keys.
_SLOT_FACTOR = uint64(0xC2B2AE3D27D4EB4F)
#: The most bits of a slot within a part; the bits above hold a count.
SLOT_BITS = 26


@inlined
def _global_slot(feature, shift):
    """Return the slot of a feature among those of all parts."""
    return (feature * _SLOT_FACTOR) >> shift


@kernel
def slots_by_part(features, sizes, shift, part_bits, lengths, out):
    """Write the slot of each feature, by part of the key space and then by set.

    features: uint64, concatenated sets; shift leaves the bits that select a slot of all parts, 2**part_bits in each
    part. lengths: uint32[p, d], zeros at first, gets the number of slots of each set in each part; out: uint32, long
    enough for all features, gets the slots within their parts.
    """
    mask = (uint64(1) << uint64(part_bits)) - uint64(1)
    parts, documents = lengths.shape
    heads = np.zeros(parts + 1, np.int64)
    for i in range(features.shape[0]):
        heads[int64(_global_slot(features[i], shift) >> uint64(part_bits)) + 1] += 1
    for part in range(parts):
        heads[part + 1] += heads[part]
    at = 0
    for d in range(documents):
        for i in range(at, at + sizes[d]):
            slot = _global_slot(features[i], shift)
            part = int64(slot >> uint64(part_bits))
            out[heads[part]] = uint32(slot & mask)
            heads[part] += 1
            lengths[part, d] += uint32(1)
        at += sizes[d]


@kernel
def count_slots(slots, lengths, included, first, counts):
    """Add one to counts[slot] for each slot of each included set.

    slots: uint32, those of consecutive sets, lengths[d] each; included: bool[d]; first: the number of the first set.
    """
    base = uint64(counts.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    for d in range(lengths.shape[0]):
        end = at + int64(lengths[d])
        if included[d]:
            for i in range(at, end):
                prefetch(base + uint64(slots[min(i + PREFETCH_DISTANCE, last)]))
                counts[slots[i]] = increment_count(counts[slots[i]], uint64(slots[i]), first + d)
        at = end


@kernel
def record_slots(slots, lengths, included, slot_bits):
    """Record each slot of each included set in two bits: the lower one for the first set, the upper one for others.

    slots, lengths, included: as for ``count_slots``; slot_bits: uint64, two bits per slot.
    """
    base = uint64(slot_bits.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    for d in range(lengths.shape[0]):
        end = at + int64(lengths[d])
        if included[d]:
            for i in range(at, end):
                prefetch(base + uint64(8) * uint64(slots[min(i + PREFETCH_DISTANCE, last)] >> uint32(5)))
                word, first = int64(slots[i] >> uint32(5)), uint64(1) << (uint64(2) * uint64(slots[i] & uint32(31)))
                slot_bits[word] |= first | ((slot_bits[word] & first) << uint64(1))
        at = end


@kernel
def count_unshared(slots, lengths, slot_bits, unshared):
    """Add to unshared[d], int32, how many of the lengths[d] slots of set d were recorded at most once."""
    base = uint64(slot_bits.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    for d in range(lengths.shape[0]):
        found = int32(0)
        for i in range(at, at + int64(lengths[d])):
            prefetch(base + uint64(8) * uint64(slots[min(i + PREFETCH_DISTANCE, last)] >> uint32(5)))
            word, upper = int64(slots[i] >> uint32(5)), uint64(2) * uint64(slots[i] & uint32(31)) + uint64(1)
            found += int32(~(slot_bits[word] >> upper) & uint64(1))
        unshared[d] += found
        at += int64(lengths[d])


@inlined
def _six_bit_count(count):
    """Return a count in six bits: exact below 32, in steps of about seven from there on."""
    count = uint32(count)
    return count if count < uint32(32) else uint32(32) + (((count - uint32(32)) * uint32(36)) >> uint32(8))


@kernel
def copy_counted_slots(slots, lengths, chosen, counts, unshared, out):
    """Write each slot of each chosen set with its count in the upper bits, concatenated; return how many.

    slots: uint32, below 2**SLOT_BITS, those of consecutive sets, lengths[d] each; chosen: bool[d]; counts: uint8;
    unshared: int32[d], increased by the slots of a set that are counted once; out: uint32, long enough for all slots;
    it may be the same array.
    """
    base = uint64(counts.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    written = 0
    for d in range(lengths.shape[0]):
        end = at + int64(lengths[d])
        if chosen[d]:
            for i in range(at, end):
                prefetch(base + uint64(slots[min(i + PREFETCH_DISTANCE, last)]))
                count = counts[slots[i]]
                unshared[d] += int32(count < uint8(2))
                out[written] = slots[i] | (_six_bit_count(count) << uint32(SLOT_BITS))
                written += 1
        at = end
    return written


@kernel
def slots_by_set(lengths, words, part_bits, features, counts):
    """Write for each feature of some sets a number that stands for its slot, and its count in six bits, set by set.

    lengths: uint32[p, d], the number of slots of each set in each part; words: uint32, those of each part,
    concatenated, from ``copy_counted_slots``; features: uint64 and counts: uint8, as long. Two features of a set may
    have the same slot, and then the same number.
    """
    parts, documents = lengths.shape
    heads = np.zeros(parts, np.int64)
    for part in range(1, parts):
        heads[part] = heads[part - 1]
        for d in range(documents):
            heads[part] += int64(lengths[part - 1, d])
    mask = (uint32(1) << uint32(SLOT_BITS)) - uint32(1)
    at = 0
    for d in range(documents):
        for part in range(parts):
            for i in range(heads[part], heads[part] + int64(lengths[part, d])):
                slot = (uint64(part) << uint64(part_bits)) | uint64(words[i] & mask)
                features[at] = slot * _SLOT_FACTOR
                counts[at] = uint8(words[i] >> uint32(SLOT_BITS))
                at += 1
            heads[part] += int64(lengths[part, d])


@kernel
def keys_by_part(keys, lengths, parts, part_lengths, out):
    """Write the keys of prefixes as words, by part of the key space and then by set.

    A word has the 48 bits of a key that buckets and tags are taken from, and below them the key's position in its
    prefix. keys: uint64, concatenated prefixes; lengths: int64[s]; parts: a power of two; part_lengths: uint32[p, s],
    zeros at first, gets the number of words of each set in each part; out: uint64, long enough for all keys.
    """
    shift = uint64(64) - trailing_zeros(uint64(2 * parts))
    heads = np.zeros(parts + 1, np.int64)
    for i in range(keys.shape[0]):
        heads[int64((scrambled_key(keys[i]) >> uint64(1)) >> shift) + 1] += 1
    for part in range(parts):
        heads[part + 1] += heads[part]
    at = 0
    for s in range(lengths.shape[0]):
        for i in range(lengths[s]):
            word = scrambled_key(keys[at + i])
            part = int64((word >> uint64(1)) >> shift)
            out[heads[part]] = (word & ~LOW_BITS) | uint64(min(i, LAST_POSITION))
            heads[part] += 1
            part_lengths[part, s] += uint32(1)
        at += lengths[s]


@kernel
def index_keys(part, ranks, indexed, bounds, index):
    """Index the words of a part whose positions are below indexed[s]; ``index`` has zeros and no entries at first.

    Instead of a position, an entry has the number of the set's shared features from there on, at most LAST_POSITION.
    part: (lengths uint32[s], words), from ``keys_by_part``; ranks, indexed: int32[s], of the sets; bounds: int32[s, 4],
    from ``probe_bounds``. Returns the entries, the length of the longest list, and the number of pairs of entries that
    share a list.
    """
    lengths, words = part
    heads, first, shift = index.heads, index.first, uint64(64 - index.bits)
    at = 0
    for s in range(ranks.shape[0]):
        for i in range(at, at + int64(lengths[s])):
            if entry_position(words[i]) < indexed[s]:
                heads[int64(words[i] >> shift) - first + 1] += uint32(1)
        at += int64(lengths[s])
    entries = np.empty(begin_lists(heads), np.uint64)
    at = 0
    for s in range(ranks.shape[0]):
        for i in range(at, at + int64(lengths[s])):
            if entry_position(words[i]) < indexed[s]:
                list_number = int64(words[i] >> shift) - first
                tag = (words[i] >> (shift - uint64(16))) & LOW_BITS
                entries[heads[list_number]] = pack_entry(ranks[s], tag, int64(bounds[s, 1]) - entry_position(words[i]))
                heads[list_number] += uint32(1)
        at += int64(lengths[s])
    longest, shared_list_pairs = finish_lists(PrefixIndex(index.heads, entries, index.bits, index.first))
    return entries, longest, shared_list_pairs


@kernel
def probe_bounds(ranks, sets, rule, ranks_of_size, out):
    """Write the bounds of the lookup of each set: int32[s, 4], in the order of ranks.

    Its size, the number of its shared features, the first rank that may be a partner, and the one after the last.
    """
    for s in range(ranks.shape[0]):
        rank = int64(ranks[s])
        out[s, 0], out[s, 1] = sets.sizes[rank], sets.shared[rank]
        out[s, 2], out[s, 3] = partner_ranks(rank, sets, rule, ranks_of_size)


@kernel
def list_candidates(begin, part, ranks, sets, bounds, index, rule, scratch):
    """Find the earlier candidates of the sets of a part; write (earlier, later).

    Two matching sets are found in the part of their first common key, because all that they share follows there. begin:
    (set, word) to continue from; part, ranks: as for ``index_keys``; bounds: int32[s, 4], from ``probe_bounds``, with
    an empty range for a set that is not looked up. scratch: (flags, candidates, pairs): int32[r] zeros; int32[r];
    int32[p, 2] with space for at least r. Stops if the pairs of the next set may not fit. Returns ((set, word) to
    continue from, pairs written).
    """
    lengths, words = part
    flags, candidates, pairs = scratch
    sizes, bitmaps = sets.sizes, sets.bitmaps
    heads, entries, start, shift = index.heads, index.entries, index.first, uint64(64 - index.bits)
    width = bitmaps.shape[1]
    at_heads, at_entries = uint64(heads.ctypes.data), uint64(entries.ctypes.data)
    at_bitmaps, end_of_words = uint64(bitmaps.ctypes.data), words.shape[0] - 1
    written = 0
    s, at = begin
    while s < ranks.shape[0]:
        rank, end = int64(ranks[s]), at + int64(lengths[s])
        size, shared, first, last = int64(bounds[s, 0]), int64(bounds[s, 1]), int64(bounds[s, 2]), int64(bounds[s, 3])
        if end > at and last > first:
            count = 0
            for i in range(at, end):
                # The lists of the following words, and the list heads of later ones.
                prefetch(at_heads + uint64(4) * ((words[min(i + 16, end_of_words)] >> shift) - uint64(start)))
                ahead = int64(words[min(i + 8, end_of_words)] >> shift) - start
                prefetch(at_entries + uint64(8) * uint64(heads[ahead]))
                bucket, n_remaining = int64(words[i] >> shift) - start, shared - entry_position(words[i])
                tag = (words[i] >> (shift - uint64(16))) & LOW_BITS
                e, high = list_range(heads, entries, bucket, first)
                while e < high:
                    entry = entries[e]
                    e += 1
                    other = entry_rank(entry)
                    if other >= last:
                        break
                    if other < first or entry_tag(entry) != tag:
                        continue
                    other_remaining = entry_position(entry)
                    other_remaining = (
                        min(n_remaining, other_remaining) if other_remaining < LAST_POSITION else n_remaining
                    )
                    count = add_candidate(other, other_remaining, size, sizes, rule, flags, candidates, count)
            if written + count > pairs.shape[0]:
                clear_candidates(count, flags, candidates)
                break
            for c in range(count):
                other = int64(candidates[c])
                flags[other] = 0
                if c + 2 < count:
                    prefetch(at_bitmaps + uint64(8 * width) * uint64(candidates[c + 2]))
                if overlap_bound(rank, other, sizes, bitmaps) >= required_overlap(rule, sizes[other], size):
                    pairs[written, 0] = other
                    pairs[written, 1] = rank
                    written += 1
        at = end
        s += 1
    return (s, at), written


@kernel
def parity_lengths(sizes, out):
    """Write the number of words of each set's parities: a power of two, with at least one bit per feature."""
    for s in range(sizes.shape[0]):
        out[s] = 1
        while 64 * out[s] < sizes[s]:
            out[s] *= 2


@kernel
def write_parities(features, sizes, lengths, out):
    """Write the parities of sets: bit b says whether an odd number of the features end in the bits of b.

    features: uint64, concatenated sets; lengths: from ``parity_lengths``; out: uint64, long enough for all words. A
    feature that only one of two sets has flips one bit, so parities differ in no more bits than the sets differ in
    features. This also holds if the longer parities are folded by XOR of their halves until both have the same length.
    """
    out[:] = uint64(0)
    feature, word = 0, 0
    for s in range(sizes.shape[0]):
        mask = int64(lengths[s]) - 1
        for _ in range(sizes[s]):
            bit = features[feature]
            out[word + (int64(bit >> uint64(6)) & mask)] ^= uint64(1) << (bit & uint64(63))
            feature += 1
        word += mask + 1


@kernel
def flag_pairs_by_parities(pairs, sizes, parities, rule, matchable):
    """Set matchable[p] to whether the sets of a pair may match, by the bits in which their parities differ.

    pairs: int64[p, 2], of sets; parities: (starts int64[s], lengths int64[s], words uint64), those of each set.
    """
    starts, lengths, words = parities
    for p in range(pairs.shape[0]):
        short, long = pairs[p, 0], pairs[p, 1]
        if lengths[short] > lengths[long]:
            short, long = long, short
        differing = uint64(0)
        for w in range(lengths[short]):
            word = words[starts[short] + w]
            for v in range(w, lengths[long], lengths[short]):
                word ^= words[starts[long] + v]
            differing += popcount(word)
        size, other_size = int64(sizes[short]), int64(sizes[long])
        matchable[p] = (size + other_size - int64(differing)) // 2 >= required_overlap(rule, size, other_size)
