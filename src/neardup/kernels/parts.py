"""What lies by part of the key space, in files that are read once each: counts of features, and keys of prefixes.

A hash chooses the slot of a feature among those of all parts; its upper bits are the part. The part of a key of a
prefix is the upper bits of the hash that chooses its list in an index.
"""

from __future__ import annotations

import numpy as np
from numba import int32, int64, njit, uint8, uint32, uint64

from neardup.kernels.bits import popcount, prefetch, trailing_zeros
from neardup.kernels.bounds import required_overlap
from neardup.kernels.compilation import kernel
from neardup.kernels.counts import AHEAD, incremented
from neardup.kernels.prefixes import (
    LAST_PLACE,
    LOW,
    Index,
    begin_lists,
    close_lists,
    entry_of,
    forget,
    list_from,
    mixed,
    most_shared,
    note_meeting,
    partners_of,
    place_of,
    rank_of,
    tag_of_entry,
)

#: Odd, and another one than that of keys.
_SLOTS = uint64(0xC2B2AE3D27D4EB4F)
#: The most bits of a place in a part: above them there is room for a count.
SLOT_BITS = 26


@njit(inline="always")
def _global_slot(feature, shift):
    """Return the slot of a feature among those of all parts of the key space."""
    return (feature * _SLOTS) >> shift


@kernel
def slots_by_part(features, sizes, shift, part_bits, lengths, out):
    """Write the slot of each feature by part of the key space and then by set.

    features: uint64, the sets one behind the other; shift leaves as many bits as choose a slot of all parts, each of
    which has 2**part_bits. lengths: uint32[p, d], zeros on entry, gets how many slots of each set lie in each part;
    out: uint32, with room for all features, gets their places in their parts.
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
    """Count one more in counts[place] for each place of each counted set.

    places: uint32, those of consecutive sets, lengths[d] each; counted: bool[d]; first: the number of the first set.
    """
    base = uint64(counts.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    for d in range(lengths.shape[0]):
        end = at + int64(lengths[d])
        if included[d]:
            for i in range(at, end):
                prefetch(base + uint64(slots[min(i + AHEAD, last)]))
                counts[slots[i]] = incremented(counts[slots[i]], uint64(slots[i]), first + d)
        at = end


@kernel
def record_slots(slots, lengths, included, seen):
    """Note each place of each counted set in two bits of seen: the lower one for the first set, the upper for others.

    places, lengths, counted: as for ``count_slots``; seen: uint64, with two bits for each place.
    """
    base = uint64(seen.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    for d in range(lengths.shape[0]):
        end = at + int64(lengths[d])
        if included[d]:
            for i in range(at, end):
                prefetch(base + uint64(8) * uint64(slots[min(i + AHEAD, last)] >> uint32(5)))
                word, first = int64(slots[i] >> uint32(5)), uint64(1) << (uint64(2) * uint64(slots[i] & uint32(31)))
                seen[word] |= first | ((seen[word] & first) << uint64(1))
        at = end


@kernel
def count_unshared(slots, lengths, seen, unshared):
    """Add to alone[d], int32, how many of the lengths[d] places of set d were noted once at most."""
    base = uint64(seen.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    for d in range(lengths.shape[0]):
        found = int32(0)
        for i in range(at, at + int64(lengths[d])):
            prefetch(base + uint64(8) * uint64(slots[min(i + AHEAD, last)] >> uint32(5)))
            word, upper = int64(slots[i] >> uint32(5)), uint64(2) * uint64(slots[i] & uint32(31)) + uint64(1)
            found += int32(~(seen[word] >> upper) & uint64(1))
        unshared[d] += found
        at += int64(lengths[d])


@njit(inline="always")
def _in_six_bits(count):
    """Return a count in six bits: as it is below 32, in steps of about seven from there on."""
    count = uint32(count)
    return count if count < uint32(32) else uint32(32) + (((count - uint32(32)) * uint32(36)) >> uint32(8))


@kernel
def copy_counted_slots(slots, lengths, chosen, counts, unshared, out):
    """Write each place of each chosen set, and its count above, one behind the other; return how many there are.

    places: uint32, below 2**PLACE_BITS; those of consecutive sets, lengths[d] each; chosen: bool[d]; counts: uint8;
    alone: int32[d], to which those of a set are added that are counted once; out: uint32, with room for all places; it
    may be the same array.
    """
    base = uint64(counts.ctypes.data)
    last = slots.shape[0] - 1
    at = 0
    written = 0
    for d in range(lengths.shape[0]):
        end = at + int64(lengths[d])
        if chosen[d]:
            for i in range(at, end):
                prefetch(base + uint64(slots[min(i + AHEAD, last)]))
                count = counts[slots[i]]
                unshared[d] += int32(count < uint8(2))
                out[written] = slots[i] | (_in_six_bits(count) << uint32(SLOT_BITS))
                written += 1
        at = end
    return written


@kernel
def slots_by_set(lengths, words, part_bits, features, counts):
    """Write for each feature of some sets a number that stands for its slot, and in six bits its count, set by set.

    lengths: uint32[p, d], how many slots of each set lie in each part; words: uint32, those of each part one behind the
    other, as ``copy_counted_slots`` writes them; features: uint64 and counts: uint8, with room for as many. Two
    features of a set may have one slot, and then one number.
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
                features[at] = slot * _SLOTS
                counts[at] = uint8(words[i] >> uint32(SLOT_BITS))
                at += 1
            heads[part] += int64(lengths[part, d])


@kernel
def keys_by_part(keys, lengths, parts, part_lengths, out):
    """Write the keys of prefixes as words, by part of the key space and then by set.

    A word has the 48 bits of a key that buckets and tags are taken from, and below them its place in its prefix.
    keys: uint64, the prefixes one behind the other; lengths: int64[s]; parts: a power of two; of_each: uint32[p, s],
    zeros on entry, gets how many words of each set are in each part; out: uint64, with room for all keys.
    """
    shift = uint64(64) - trailing_zeros(uint64(2 * parts))
    heads = np.zeros(parts + 1, np.int64)
    for i in range(keys.shape[0]):
        heads[int64((mixed(keys[i]) >> uint64(1)) >> shift) + 1] += 1
    for part in range(parts):
        heads[part + 1] += heads[part]
    at = 0
    for s in range(lengths.shape[0]):
        for i in range(lengths[s]):
            word = mixed(keys[at + i])
            part = int64((word >> uint64(1)) >> shift)
            out[heads[part]] = (word & ~LOW) | uint64(min(i, LAST_PLACE))
            heads[part] += 1
            part_lengths[part, s] += uint32(1)
        at += lengths[s]


@kernel
def index_keys(part, ranks, indexed, bounds, index):
    """Enter the words of a part whose places are below held[s] into an index of zeros with no entries.

    In the place of a place an entry has how many of the set's shared features stand there or behind it, LAST_PLACE at
    most. part: (lengths uint32[s], words), as ``keys_by_part`` leaves them; ranks, held: int32[s], of the sets; asked:
    int32[s, 4], as ``probe_bounds`` writes it.
    Returns the entries, the length of the longest list, and how many pairs of entries share a list.
    """
    lengths, words = part
    heads, first, shift = index.heads, index.first, uint64(64 - index.bits)
    at = 0
    for s in range(ranks.shape[0]):
        for i in range(at, at + int64(lengths[s])):
            if place_of(words[i]) < indexed[s]:
                heads[int64(words[i] >> shift) - first + 1] += uint32(1)
        at += int64(lengths[s])
    entries = np.empty(begin_lists(heads), np.uint64)
    at = 0
    for s in range(ranks.shape[0]):
        for i in range(at, at + int64(lengths[s])):
            if place_of(words[i]) < indexed[s]:
                place = int64(words[i] >> shift) - first
                tag = (words[i] >> (shift - uint64(16))) & LOW
                entries[heads[place]] = entry_of(ranks[s], tag, int64(bounds[s, 1]) - place_of(words[i]))
                heads[place] += uint32(1)
        at += int64(lengths[s])
    longest, shared_list_pairs = close_lists(Index(index.heads, entries, index.bits, index.first))
    return entries, longest, shared_list_pairs


@kernel
def probe_bounds(ranks, sets, rule, ranks_of_size, out):
    """Write what is asked for each set: int32[s, 4], in the order of ranks.

    Its size, how many of its features are shared, the first rank that may be a partner, and the one after the last.
    """
    for s in range(ranks.shape[0]):
        rank = int64(ranks[s])
        out[s, 0], out[s, 1] = sets.sizes[rank], sets.shared[rank]
        out[s, 2], out[s, 3] = partners_of(rank, sets, rule, ranks_of_size)


@kernel
def list_candidates(begin, part, ranks, sets, bounds, index, rule, scratch):
    """Find the candidates before them of the sets of a part; write (earlier, later).

    Two sets that match are found in the part of the first key that both have, for all that they share follows there.
    begin: (set, word) to go on from; part, ranks: as for ``index_keys``; asked: int32[s, 4], as ``probe_bounds`` writes
    it, but without partners for a set that is not looked up.
    scratch: (met, found, pairs), int32[r] zeros; int32[r]; int32[p, 2] with room for r at least. Stops early when they
    may not suffice for one more set.
    Returns ((set, word) to go on from, pairs written).
    """
    lengths, words = part
    met, found, pairs = scratch
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
                # The lists of the words that follow, and the heads of those behind them.
                prefetch(at_heads + uint64(4) * ((words[min(i + 16, end_of_words)] >> shift) - uint64(start)))
                ahead = int64(words[min(i + 8, end_of_words)] >> shift) - start
                prefetch(at_entries + uint64(8) * uint64(heads[ahead]))
                bucket, own = int64(words[i] >> shift) - start, shared - place_of(words[i])
                tag = (words[i] >> (shift - uint64(16))) & LOW
                place, high = list_from(heads, entries, bucket, first)
                while place < high:
                    entry = entries[place]
                    place += 1
                    other = rank_of(entry)
                    if other >= last:
                        break
                    if other < first or tag_of_entry(entry) != tag:
                        continue
                    left = place_of(entry)
                    left = min(own, left) if left < LAST_PLACE else own
                    count = note_meeting(other, left, size, sizes, rule, met, found, count)
            if written + count > pairs.shape[0]:
                forget(count, met, found)
                break
            for c in range(count):
                other = int64(found[c])
                met[other] = 0
                if c + 2 < count:
                    prefetch(at_bitmaps + uint64(8 * width) * uint64(found[c + 2]))
                if most_shared(rank, other, sizes, bitmaps) >= required_overlap(rule, sizes[other], size):
                    pairs[written, 0] = other
                    pairs[written, 1] = rank
                    written += 1
        at = end
        s += 1
    return (s, at), written


@kernel
def parity_lengths(sizes, out):
    """Write how many words the parities of a set take, with a bit for each feature at least: a power of two."""
    for s in range(sizes.shape[0]):
        out[s] = 1
        while 64 * out[s] < sizes[s]:
            out[s] *= 2


@kernel
def write_parities(features, sizes, lengths, out):
    """Write the parities of sets: bit b says whether an odd number of the features end in the bits of b.

    features: uint64, the sets one behind the other; lengths: as ``parity_lengths`` has them; out: uint64, with room for
    all words. A feature that only one of two sets has turns over one bit, so parities differ in no more bits than sets
    in features; and so they do where the halves of the longer ones are added until there are as many of both.
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
    """Set able[p] to whether the sets of a pair may match, by the bits in which their parities differ.

    pairs: int64[p, 2], of sets; parities: (starts int64[s], lengths int64[s], words uint64), where those of each are.
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
