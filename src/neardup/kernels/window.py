"""Features in the window's order: rare first, by a vocabulary that was frozen some time ago.

A feature of the vocabulary has a rank, the rarest 0; one that is not in it counts as rarer than all of them, and those
are in the order of their hashes. Any fixed order is right; only speed depends on how well it fits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import float64, int64, njit, types, uint8, uint16, uint32, uint64
from numba.extending import intrinsic

from neardup.kernels.bits import (
    load_u8,
    load_u16,
    load_u32,
    load_u64,
    mix,
    pointer_to,
    popcount,
    prefetch,
    store_u8,
    store_u16,
    store_u32,
    store_u64,
    trailing_zeros,
)
from neardup.kernels.bounds import CONTAINMENT, COSINE, DICE, JACCARD, OVERLAP, required_overlap, smallest_partner
from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import EMPTY_TABLE_SIZE, find_slot, home_slot

#: Ranks are below 2**22: two digits of eleven bits sort them.
DIGIT = 11
_AHEAD = 12


@inner_kernel
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
        The vocabulary, a table from features to ranks.
    order : uint64[m]
        Gets, for each document, the unknown features ascending, then the ranks of the others ascending.
    raws : int64[n]
        Gets how many of each document's features are unknown.
    other, digits : uint64[at least the longest document], int64[2, 2**11]
        Room.
    """
    known = keys.shape[0] > EMPTY_TABLE_SIZE
    at, rank_at = uint64(keys.ctypes.data), uint64(ranks.ctypes.data)
    for d in range(heads.shape[0] - 1):
        begin, end = heads[d], heads[d + 1]
        raw = int64(0)
        count = int64(0)
        for i in range(begin, end):
            feature = features[i]
            slot = int64(0)
            if known:
                if i + _AHEAD < features.shape[0]:
                    ahead = home_slot(features[i + _AHEAD], keys)
                    prefetch(at + uint64(8 * ahead))
                    prefetch(rank_at + uint64(4 * ahead))
                slot = find_slot(feature, keys)
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
    """Add each feature to an open table (uint64 and uint32[a power of two]); return how many were not there before."""
    distinct = int64(0)
    at = uint64(keys.ctypes.data)
    for i in range(features.shape[0]):
        if i + _AHEAD < features.shape[0]:
            prefetch(at + uint64(8 * home_slot(features[i + _AHEAD], keys)))
        slot = find_slot(features[i], keys)
        distinct += keys[slot] == 0
        keys[slot] = features[i]
        counts[slot] += uint32(1)
    return distinct


#: Places in ``counters``.
CURSOR, END, SEGMENT, OLDEST, FIRST, NEXT, LARGEST, COPIES, MERGES = range(9)
#: And: the bytes that a document wants, how many keys were entered on buckets, after how many these are too short, the
#: first bit of a key's tag.
WANTED, SIGNATURES, MOST_SIGNATURES, TAG = range(9, 13)
#: Places in a record: time, time of leaving, address, size, unknown features below the bits of wide ranks, arrival, and
#: the two words of the text's digest.
TIME, LEAVES, AT, SIZE, SHAPE, SERIAL, DIGEST, DIGEST_END = range(8)
_SHAPE_BITS = 32
#: The most entries of a block, and the bytes before them: the link, how many are used, how many fit.
BLOCK = 128
HEADER = 12
#: An entry has 26 bits for the document's number, so an index holds no more than this; the others are what remains.
DOCUMENT_BITS = 26
DOCUMENT = uint32((1 << DOCUMENT_BITS) - 1)
_PARTS = 64
#: Of a set of so many features, one more must be met; never more than _MOST_MEETINGS.
_FEATURES_A_MEETING = 32
_MOST_MEETINGS = 32
#: Meetings are counted up to here.
MOST_COUNTED = uint8(127)
_EIGHT_ONES = uint64(0x0101010101010101)
_EIGHT_TOPS = uint64(0x8080808080808080)
_FIRST_FIT = 8
HALF_WAY = uint32(1 << (DOCUMENT_BITS - 1))
#: Features whose lists are asked for before any of them is read.
_AT_ONCE = 32


class Lists(NamedTuple):
    """The index of documents under one vocabulary.

    bases: uint64[c], see ``addresses``; heads: uint64[a power of two], the newest block of each list; records:
    int64[a power of two, 8], a ring by document number; met: uint8 like records, how often each was met by the one that
    arrives, zeros before and afterwards; counters: int64[13]; classes: int64[k], the smallest size of each size class.
    plan: int64[r, 4], r = 0 unless large sets are entered by signatures, see ``signatures_of``; salt: uint64, odd;
    buckets: uint32[16 times a power of two], see ``enter_in_buckets``.
    """

    bases: np.ndarray
    heads: np.ndarray
    records: np.ndarray
    met: np.ndarray
    counters: np.ndarray
    classes: np.ndarray
    plan: np.ndarray
    salt: np.uint64
    buckets: np.ndarray


@njit(inline="always")
def shape_of(raws, wide):
    """Return how many unknown features and wide ranks a document has as one number; each is below 2**31."""
    return raws | (wide << _SHAPE_BITS)


@njit(inline="always")
def raws_of(shape):
    """Return how many unknown features a document has."""
    return shape & ((int64(1) << _SHAPE_BITS) - 1)


@njit(inline="always")
def wide_of(shape):
    """Return how many wide ranks a document has."""
    return shape >> _SHAPE_BITS


@njit(inline="always")
def class_of(classes, size):
    """Return the size class of a size."""
    low = int64(0)
    high = int64(classes.shape[0])
    while high - low > 1:
        middle = (low + high) // 2
        if classes[middle] <= size:
            low = middle
        else:
            high = middle
    return low


@njit(inline="always")
def slot_of(key, which, heads):
    """Return the place of a list: those of one feature and neighbouring size classes share a cache line."""
    return int64((mix(key) + uint64(which)) & uint64(heads.shape[0] - 1))


@njit(inline="always")
def meetings(classes, which):
    """Return how often a document of a size class must be met."""
    return min(1 + classes[which] // _FEATURES_A_MEETING, _MOST_MEETINGS)


@njit(inline="always")
def _part_remaining(classes, which, remaining):
    """Return what remains in 64ths, rounded up, less 1."""
    most = classes[which + 1] - 1
    return (_PARTS * remaining + most - 1) // most - 1


@inner_kernel
def held_prefix(rule, size, classes):
    """Return how many features of a document, the rarest, lead to it."""
    least = required_overlap(rule, smallest_partner(rule, size), size)
    return min(size - least + meetings(classes, class_of(classes, size)), size)


@inner_kernel
def room_for(rule, size, keys, classes):
    """Return the most bytes that a document may take."""
    prefix = keys if keys > 0 else held_prefix(rule, size, classes)
    return 8 * (size + 2 + keys) + prefix * (HEADER + 4 * BLOCK)


@njit(inline="always")
def meet(head, least, lists):
    """Count one more meeting with each document of a list of which enough remains."""
    oldest = uint64(lists.counters[OLDEST])
    mask = uint32(lists.records.shape[0] - 1) & DOCUMENT
    low = uint32(least) << uint32(DOCUMENT_BITS)
    met = uint64(lists.met.ctypes.data)
    address = head
    while address >= oldest:
        place = pointer_to(lists.bases, address)
        before = load_u64(place)
        if before >= oldest:
            prefetch(pointer_to(lists.bases, before))
        used = uint64(load_u16(place + uint64(8)))
        place += uint64(HEADER)
        for k in range(used):
            entry = load_u32(place + uint64(4) * k)
            row = met + uint64(entry & mask)
            if entry >= low:
                seen = load_u8(row) + uint8(1)
                store_u8(row, min(seen, MOST_COUNTED))
        address = before


@inner_kernel
def met_often(often, lists, found):
    """Write to found the rows that were met often enough, and forget all meetings; return how many."""
    # Eight counts, each below 128, are compared at once: adding 128 - often carries into the top bit.
    carry = uint64(128 - often) * _EIGHT_ONES
    count = int64(0)
    at = uint64(lists.met.ctypes.data)
    for word in range(0, lists.met.shape[0], 8):
        counts = load_u64(at + uint64(word))
        if (counts + carry) & _EIGHT_TOPS:
            for row in range(word, word + 8):
                if lists.met[row] >= often:
                    found[count] = row
                    count += 1
    lists.met[:] = 0
    return count


@inner_kernel
def meet_by_prefix(order, size, rule, lists, needs, slots):
    """Count meetings with the documents that were entered by single features.

    order: uint64[size], features in the window's order; needs: int64[classes, 2], room; slots: int64[32 * classes],
    room. Returns how often one that matches was met at least, 0 where there can be none.
    """
    below = lists.plan[0, 0] if lists.plan.shape[0] > 0 else lists.classes[lists.classes.shape[0] - 1]
    smallest = smallest_partner(rule, size)
    first = class_of(lists.classes, smallest)
    last = first
    largest = lists.counters[LARGEST]
    prefix = int64(0)
    often = int64(0)
    for c in range(first, lists.classes.shape[0] - 1):
        low = max(lists.classes[c], smallest)
        least = required_overlap(rule, size, low)
        if low > largest or least > size or lists.classes[c] >= below:
            break
        if c == first:
            # All classes ask for the same: a document may also be met by chance, in a list of another class.
            often = min(meetings(lists.classes, c), least)
        needs[c, 0] = least - often + 1
        needs[c, 1] = _part_remaining(lists.classes, c, needs[c, 0])
        prefix = max(prefix, size - needs[c, 0] + 1)
        last = c + 1
    heads = uint64(lists.heads.ctypes.data)
    oldest = uint64(lists.counters[OLDEST])
    width = last - first
    for begin in range(0, prefix, _AT_ONCE):
        end = min(begin + _AT_ONCE, prefix)
        for i in range(begin, end):
            for c in range(first, last):
                at = (i - begin) * width + c - first
                slots[at] = -1
                if size - i >= needs[c, 0]:
                    slots[at] = slot_of(order[i], c, lists.heads)
                    prefetch(heads + uint64(8 * slots[at]))
        for at in range((end - begin) * width):
            if slots[at] >= 0:
                head = lists.heads[slots[at]]
                if head >= oldest:
                    place = pointer_to(lists.bases, head)
                    prefetch(place)
                    prefetch(place + uint64(64))
                else:
                    slots[at] = -1
        for i in range(begin, end):
            for c in range(first, last):
                slot = slots[(i - begin) * width + c - first]
                if slot >= 0:
                    meet(lists.heads[slot], needs[c, 1], lists)
    return often


@inner_kernel
def meet_by_keys(keys, lists, found):
    """Write to found the rows of all documents that have one of the keys, as bands or blocks; return how many."""
    for i in range(keys.shape[0]):
        meet(lists.heads[slot_of(keys[i], 0, lists.heads)], int64(0), lists)
    return met_often(int64(1), lists, found)


@inner_kernel
def append(slots, entries, lists):
    """Add an entry to each of some lists: to its newest block, or to a new one that takes over what a small one held.

    So a short list is one block, however many segments its documents are from. Entries of documents that have left
    since may stay behind in such a block: they lead to nothing, or to a document that is compared for nothing.
    """
    # All in one loop: a call for each entry would count references to every array of the lists.
    bases, heads, counters = lists.bases, lists.heads, lists.counters
    at = uint64(heads.ctypes.data)
    first, segment, oldest = uint32(counters[FIRST]), uint64(counters[SEGMENT]), uint64(counters[OLDEST])
    copies, merges = counters[COPIES], counters[MERGES]
    cursor = uint64(counters[CURSOR])
    count = slots.shape[0]
    for i in range(count):
        if i + 16 < count:
            prefetch(at + uint64(8 * slots[i + 16]))
        if i + 8 < count and heads[slots[i + 8]] >= oldest:
            prefetch(pointer_to(bases, heads[slots[i + 8]]))
        slot, entry = slots[i], entries[i]
        address = heads[slot]
        fit, copied = int64(1), int64(0)
        before = uint64(0)
        place = uint64(0)
        if address >= oldest:
            place = pointer_to(bases, address)
            used = int64(load_u16(place + uint64(8)))
            capacity = int64(load_u16(place + uint64(10)))
            if address >= segment and used < capacity:
                store_u32(place + uint64(HEADER + 4 * used), entry)
                store_u16(place + uint64(8), uint16(used + 1))
                continue
            if used <= (merges if address >= segment else copies):
                before = load_u64(place)
                copied = used
                fit = used + max(used // 2, 1)
            else:
                before = address
                fit = min(2 * capacity, BLOCK) if address >= segment else min(capacity, _FIRST_FIT)
        target = pointer_to(bases, cursor)
        kept = int64(0)
        for k in range(copied):
            old = load_u32(place + uint64(HEADER + 4 * k))
            # Numbers of documents wrap around: less than half the way behind the first one means not gone.
            if ((old - first) & DOCUMENT) < HALF_WAY:
                store_u32(target + uint64(HEADER + 4 * kept), old)
                kept += 1
        store_u64(target, before)
        store_u32(target + uint64(HEADER + 4 * kept), entry)
        store_u16(target + uint64(8), uint16(kept + 1))
        store_u16(target + uint64(10), uint16(fit))
        heads[slot] = cursor
        cursor += uint64(HEADER + 4 * fit)
    counters[CURSOR] = int64(cursor)


@inner_kernel
def enter_prefix(order, size, rule, document, lists):
    """Enter a document into the lists of the features by which any partner must meet it."""
    classes, heads = lists.classes, lists.heads
    prefix = held_prefix(rule, size, classes)
    which = class_of(classes, size)
    slots, entries = np.empty(prefix, np.int64), np.empty(prefix, np.uint32)
    for i in range(prefix):
        slots[i] = slot_of(order[i], which, heads)
        part = uint32(_part_remaining(classes, which, size - i))
        entries[i] = (part << uint32(DOCUMENT_BITS)) | (uint32(document) & DOCUMENT)
    append(slots, entries, lists)
    lists.counters[LARGEST] = max(lists.counters[LARGEST], size)


@inner_kernel
def enter_keys(keys, document, lists):
    """Enter a document into the lists of its keys."""
    slots, entries = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], np.uint32)
    for i in range(keys.shape[0]):
        slots[i] = slot_of(keys[i], 0, lists.heads)
        entries[i] = uint32(document) & DOCUMENT
    append(slots, entries, lists)


#: Words of a bucket.
WORDS = 16
#: How often a table can be made longer.
TAG_BITS = 5
_TAGS = uint64((1 << TAG_BITS) - 1)
_SET = uint32(1 << 31)
_ALL = uint32(0xFFFFFFFF)
_ENTRIES = uint64(0xFFFE)
_LANES = ir.VectorType(ir.IntType(32), WORDS)
#: Buckets, and then lists, that are asked for before one is read.
_PREFETCHED = 16


@intrinsic
def _words_below(typing, address, less, kept, bound):
    """Return bit i set where (word i - less) & kept < bound, for the 16 words of a bucket."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _LANES.as_pointer()))
        load.align = 4
        unknown = ir.Constant(_LANES, ir.Undefined)

        def all_of(value):
            first = builder.insert_element(unknown, value, ir.IntType(32)(0))
            return builder.shuffle_vector(first, unknown, ir.Constant(_LANES, [0] * WORDS))

        words = builder.and_(builder.sub(load, all_of(args[1])), all_of(args[2]))
        below = builder.icmp_unsigned("<", words, all_of(args[3]))
        return builder.zext(builder.bitcast(below, ir.IntType(WORDS)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint32, types.uint32, types.uint32), emit


@njit(inline="always")
def _entry(key, document, lists):
    tag = uint32((key >> uint64(lists.counters[TAG])) & _TAGS)
    return _SET | (tag << uint32(DOCUMENT_BITS)) | document


@njit(inline="always")
def _bucket(key, lists):
    buckets = uint64(lists.buckets.shape[0] // WORDS - 1)
    return uint64(lists.buckets.ctypes.data) + (key & buckets) * uint64(4 * WORDS)


@njit(inline="always")
def _is_held(document, lists):
    """Numbers of documents wrap around: less than half the way behind the first one means not gone."""
    return ((document - uint32(lists.counters[FIRST])) & DOCUMENT) < HALF_WAY


@kernel
def meet_in_buckets(keys, lists):
    """Count one more meeting with each document for each of the keys (uint64) that it has."""
    mask = uint32(lists.records.shape[0] - 1) & DOCUMENT
    met = uint64(lists.met.ctypes.data)
    heads = uint64(lists.heads.ctypes.data)
    count = keys.shape[0]
    slots = np.empty(count, np.int64)
    listed = int64(0)
    for i in range(count):
        if i + _PREFETCHED < count:
            prefetch(_bucket(keys[i + _PREFETCHED], lists))
        bucket = _bucket(keys[i], lists)
        equal = _words_below(bucket, _entry(keys[i], uint32(0), lists), _ALL, uint32(1 << DOCUMENT_BITS)) & _ENTRIES
        while equal:
            entry = load_u32(bucket + uint64(4) * trailing_zeros(equal))
            row = met + uint64(entry & mask)
            store_u8(row, min(load_u8(row) + uint8(1), MOST_COUNTED))
            equal &= equal - uint64(1)
        last = load_u32(bucket)
        if last != 0 and _is_held(last, lists):
            slots[listed] = slot_of(keys[i], 0, lists.heads)
            prefetch(heads + uint64(8 * slots[listed]))
            listed += 1
    for i in range(listed + _PREFETCHED):
        if i < listed:
            head = lists.heads[slots[i]]
            if head >= uint64(lists.counters[OLDEST]):
                place = pointer_to(lists.bases, head)
                prefetch(place)
                prefetch(place + uint64(64))
        if i >= _PREFETCHED:
            meet(lists.heads[slots[i - _PREFETCHED]], int64(0), lists)


@kernel
def enter_in_buckets(keys, document, lists):
    """Enter a document under its keys."""
    own = uint32(document) & DOCUMENT
    first = uint32(lists.counters[FIRST])
    count = keys.shape[0]
    full = np.empty(count, np.uint64)
    listed = int64(0)
    for i in range(count):
        if i + _PREFETCHED < count:
            prefetch(_bucket(keys[i + _PREFETCHED], lists))
        bucket = _bucket(keys[i], lists)
        gone = ~_words_below(bucket, first, DOCUMENT, HALF_WAY)
        free = (gone | _words_below(bucket, uint32(0), _ALL, uint32(1))) & _ENTRIES
        if free:
            store_u32(bucket + uint64(4) * trailing_zeros(free), _entry(keys[i], own, lists))
        else:
            store_u32(bucket, _SET | own)
            full[listed] = keys[i]
            listed += 1
    if listed:
        enter_keys(full[:listed], document, lists)


@kernel
def lengthen(bit, lists, longer):
    """Move all entries to a table that is twice as long (zeros): to its second half where their bit is set."""
    half = lists.buckets.shape[0]
    for begin in range(0, half, WORDS):
        longer[begin] = longer[half + begin] = lists.buckets[begin]
        low, high = begin, half + begin
        for at in range(begin + 1, begin + WORDS):
            entry = lists.buckets[at]
            if entry != 0 and _is_held(entry, lists):
                if (entry >> uint32(DOCUMENT_BITS + bit)) & uint32(1):
                    high += 1
                    longer[high] = entry
                else:
                    low += 1
                    longer[low] = entry


#: Columns of a plan: the least size of a row's documents, the bits of a cell, l, how many documents ever entered.
LEAST, BITS, EQUAL, ENTERED = range(4)
_FACTOR = uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def row_of(plan, size):
    """Return the row of the plan that a document of some size enters by, or -1: by single features."""
    row = int64(-1)
    while row + 1 < plan.shape[0] and plan[row + 1, LEAST] <= size:
        row += 1
    return row


@njit(inline="always")
def credit_to_enter(rule, size, equal):
    """Return the credit that a document needs so that any partner shares so many keys with it."""
    return size - required_overlap(rule, smallest_partner(rule, size), size) + equal


@kernel
def signatures_of(order, credit, bits, salt):
    """Return the keys of a document: signatures of two features that are in one of 2**bits cells.

    Parameters
    ----------
    order : uint64
        Its features in an order that all documents share.
    credit : int
        Features are taken until they are worth so much, or all are. Raising it makes more keys, and more frequent ones.
    bits : int
        Raising it makes fewer keys, and more frequent ones.
    salt : uint64
        Odd. Of all salts, at most 2 in B let two features share a cell (multiply-shift: Dietzfelbinger et al. 1997).
        So n features make n * n / B keys at most in the mean, whoever chose them, as long as nobody knows the salt.
    """
    hashed = np.empty(order.shape[0], np.uint64)
    counts = np.zeros(1 << bits, np.int64)
    shift = uint64(63 - bits)
    taken = int64(0)
    worth = int64(0)
    keys = int64(0)
    while taken < order.shape[0] and worth < credit:
        hashed[taken] = mix(order[taken]) * salt
        cell = int64((hashed[taken] >> shift) >> uint64(1))
        worth += counts[cell] > 0
        keys += counts[cell]
        counts[cell] += 1
        taken += 1
    begins = np.empty(1 << bits, np.int64)
    begin = int64(0)
    for cell in range(1 << bits):
        begins[cell] = begin
        begin += counts[cell]
        counts[cell] = 0
    members = np.empty(taken, np.uint64)
    found = np.empty(keys, np.uint64)
    at = int64(0)
    for i in range(taken):
        value = hashed[i]
        cell = int64((value >> shift) >> uint64(1))
        begin = begins[cell]
        end = begin + counts[cell]
        # The earlier feature of the order comes first, so a signature has the same key in each document.
        for k in range(begin, end):
            found[at] = mix(members[k] * _FACTOR + value)
            at += 1
        members[end] = value
        counts[cell] += 1
    return found


_CELLS_AT_ONCE = 128
#: So many of the most frequent features have ranks of two bytes.
NARROW = 1 << 16


@kernel
def similarity(code, o, a, b):
    """Return the similarity of ``neardup.recipe.measures``, in the same operations on the same numbers."""
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
    for begin in range(0, rest, _CELLS_AT_ONCE):
        if count + rest - begin < least:
            return count
        for k in range(begin, min(begin + _CELLS_AT_ONCE, rest)):
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
            place = pointer_to(lists.bases, record[AT])
            out[d & mask, 0] = shared(order, raws, place, record, max(known.shape[0] - NARROW, 0), int64(0), known)
            out[d & mask, 1] = order.shape[0]
            out[d & mask, 2] = record[SIZE]
    for k in range(order.shape[0] - raws):
        known[order[raws + k]] = 0


@inner_kernel
def keys_to_enter(order, size, rule, enters, lists):
    """Return the signatures (uint64) by which a document is entered; none where it is entered by single features.

    None either where it is not entered and nobody ever was by such keys.
    """
    row = row_of(lists.plan, size)
    if row < 0 or not (enters or lists.plan[row, ENTERED]):
        return np.empty(0, np.uint64)
    plan = lists.plan[row]
    return signatures_of(order, credit_to_enter(rule, size, plan[EQUAL]), plan[BITS], lists.salt + uint64(2 * row))


@kernel
def meet_sets(order, size, rule, own, lists, found, needs, slots):
    """Write to found the rows of all documents that may match one with the given features; return how many.

    order: uint64[size], features in the window's order; own: its ``keys_to_enter``; needs, slots: room, see
    ``meet_by_prefix``.
    """
    plan = lists.plan
    often = meet_by_prefix(order, size, rule, lists, needs, slots)
    smallest = smallest_partner(rule, size)
    asks = often > 0
    for row in range(plan.shape[0]):
        low = max(plan[row, LEAST], smallest)
        if low > lists.counters[LARGEST] or required_overlap(rule, size, low) > size:
            break
        if plan[row, ENTERED] == 0 or (row + 1 < plan.shape[0] and plan[row + 1, LEAST] <= smallest):
            continue
        equal = plan[row, EQUAL]
        if row == row_of(plan, size):
            meet_in_buckets(own, lists)
        else:
            credit = size - required_overlap(rule, size, low) + equal
            meet_in_buckets(signatures_of(order, credit, plan[row, BITS], lists.salt + uint64(2 * row)), lists)
        often = min(often, equal) if asks else equal
        asks = True
    return met_often(often, lists, found) if asks else int64(0)


@inner_kernel
def enter_set(order, size, rule, own, document, lists):
    """Enter a document into the lists of the features, or under the signatures, by which any partner must meet it."""
    row = row_of(lists.plan, size)
    if row < 0:
        enter_prefix(order, size, rule, document, lists)
        return
    enter_in_buckets(own, document, lists)
    lists.plan[row, ENTERED] += 1
    lists.counters[SIGNATURES] += own.shape[0]
    lists.counters[LARGEST] = max(lists.counters[LARGEST], size)


#: How a call ended: all done; more memory, more records or a longer table of buckets are needed.
DONE, NEEDS_MEMORY, NEEDS_RECORDS, NEEDS_BUCKETS = range(4)
#: What the window holds: sets by their rare features; sets by keys; 64-bit fingerprints by keys.
BY_PREFIX, BY_KEYS, FINGERPRINTS = range(3)


class Items(NamedTuple):
    """Documents in order of arrival.

    features, order: uint64[m], their features as they came and in the window's order; heads: int64[n + 1]; raws:
    int64[n]; keys: uint64[n, k], k = 0 for sets by their rare features; times, leaves, least, serials: int64[n], when
    each one happened, when it leaves, the least time of leaving that a partner must have, and its number; digests:
    int64[n, 2], those of the texts.
    """

    features: np.ndarray
    order: np.ndarray
    heads: np.ndarray
    raws: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    leaves: np.ndarray
    least: np.ndarray
    serials: np.ndarray
    digests: np.ndarray


class Room(NamedTuple):
    """Scratch: found int64[r]; needs int64[k, 2]; slots int64[32 k]; known uint8[ranks], zeros."""

    found: np.ndarray
    needs: np.ndarray
    slots: np.ndarray
    known: np.ndarray


@njit(inline="always")
def narrow_from(room):
    """Return the rank from which on ranks are stored in two bytes: the most frequent features have them."""
    return max(room.known.shape[0] - NARROW, 0)


@njit(inline="always")
def _share_a_key(keys, place):
    """Return whether two documents share a key: band b of one is compared with band b of the other."""
    count = keys.shape[0]
    found = False
    for k in range(count):
        found |= keys[k] == load_u64(place - uint64(8 * (count - k)))
    return found


@inner_kernel
def _compare(i, count, items, rule, window, lists, room, kind, listing, out, at):
    """Compare document i with the found rows; write (row, o, a, b) of the best match, or of all, to out[at:].

    Returns how many were written, or -1 if they do not fit.
    """
    begin, end = items.heads[i], items.heads[i + 1]
    order, raws, size = items.order[begin:end], items.raws[i], end - begin
    best = -1.0
    written = int64(0)
    records = uint64(lists.records.ctypes.data)
    for c in range(count):
        if c + 12 < count:
            prefetch(records + uint64(64 * room.found[c + 12]))
        if c + 5 < count:
            prefetch(pointer_to(lists.bases, lists.records[room.found[c + 5], AT]))
        row = room.found[c]
        record = lists.records[row]
        other = record[SIZE]
        # Removed, dropped with its segment (its record stays until the ring comes round), or out of the window.
        if other == 0 or record[AT] < lists.counters[OLDEST]:
            continue
        if record[LEAVES] < items.least[i] or abs(record[TIME] - items.times[i]) > window:
            continue
        place = pointer_to(lists.bases, record[AT])
        if kind == FINGERPRINTS:
            o = 64 - int64(popcount(items.features[begin] ^ load_u64(place)))
            if 64 - o > rule[1]:
                continue
            own = theirs = int64(64)
            score = float64(o)
        else:
            own, theirs = size, other
            least = required_overlap(rule, size, other)
            if least > min(size, other):
                continue
            if kind == BY_KEYS and not _share_a_key(items.keys[i], place):
                continue
            o = shared(order, raws, place, record, narrow_from(room), least, room.known)
            if o < least:
                continue
            score = similarity(rule[0], o, size, other)
        if listing:
            if at + written >= out.shape[0]:
                return int64(-1)
        elif score < best or (score == best and record[SERIAL] > lists.records[out[at, 0], SERIAL]):
            continue
        slot = at + written if listing else at
        out[slot, 0] = row
        out[slot, 1] = o
        out[slot, 2] = own
        out[slot, 3] = theirs
        best = score
        written = written + 1 if listing else int64(1)
    return written


@inner_kernel
def _mark(items, i, known, value):
    for k in range(items.heads[i] + items.raws[i], items.heads[i + 1]):
        known[items.order[k]] = value


@inner_kernel
def _own_keys(i, items, rule, enters, lists, kind):
    if kind != BY_PREFIX:
        return np.empty(0, np.uint64)
    begin, end = items.heads[i], items.heads[i + 1]
    return keys_to_enter(items.order[begin:end], end - begin, rule, enters, lists)


@inner_kernel
def _find(i, items, own, rule, window, lists, room, kind, listing, out, at):
    """Write what document i matches as ``_compare`` does; return how many, and how many were compared."""
    begin, end = items.heads[i], items.heads[i + 1]
    if kind == BY_PREFIX:
        order = items.order[begin:end]
        count = meet_sets(order, end - begin, rule, own, lists, room.found, room.needs, room.slots)
    else:
        count = meet_by_keys(items.keys[i], lists, room.found)
    if count == 0:
        return int64(0), count
    if kind != FINGERPRINTS:
        _mark(items, i, room.known, 1)
    written = _compare(i, count, items, rule, window, lists, room, kind, listing, out, at)
    if kind != FINGERPRINTS:
        _mark(items, i, room.known, 0)
    return written, count


@inner_kernel
def _enter(i, items, own, rule, lists, room, kind):
    """Write document i behind the cursor, and enter it into the lists."""
    counters = lists.counters
    begin, end = items.heads[i], items.heads[i + 1]
    size, raws = end - begin, items.raws[i]
    document = counters[NEXT]
    counters[NEXT] += 1
    row = document & (lists.records.shape[0] - 1)
    address = counters[CURSOR]
    place = pointer_to(lists.bases, address)
    wide = int64(0)
    if kind == BY_KEYS:
        # The keys stand before the features: lists are found by hashes, and only equal keys make partners.
        keys = items.keys.shape[1]
        for k in range(keys):
            store_u64(place + uint64(8 * k), items.keys[i, k])
        counters[CURSOR] += 8 * keys
        address += 8 * keys
        place += uint64(8 * keys)
    if kind == FINGERPRINTS:
        store_u64(place, items.features[begin])
        counters[CURSOR] += 8
    else:
        for k in range(raws):
            store_u64(place + uint64(8 * k), items.order[begin + k])
        place += uint64(8 * raws)
        narrow = narrow_from(room)
        while wide < size - raws and items.order[begin + raws + wide] < narrow:
            store_u32(place + uint64(4 * wide), uint32(items.order[begin + raws + wide]))
            wide += 1
        place += uint64(4 * wide)
        for k in range(size - raws - wide):
            store_u16(place + uint64(2 * k), uint16(int64(items.order[begin + raws + wide + k]) - narrow))
        counters[CURSOR] += 8 * raws + (4 * wide + 2 * (size - raws - wide) + 7) // 8 * 8
    record = lists.records[row]
    record[TIME] = items.times[i]
    record[LEAVES] = items.leaves[i]
    record[AT] = address
    record[SIZE] = size
    record[SHAPE] = shape_of(raws, wide)
    record[SERIAL] = items.serials[i]
    record[DIGEST] = items.digests[i, 0]
    record[DIGEST_END] = items.digests[i, 1]
    if kind == BY_PREFIX:
        enter_set(items.order[begin:end], size, rule, own, document, lists)
    else:
        enter_keys(items.keys[i], document, lists)


@kernel
def flow(begin, items, rule, window, lists, room, kind, asks, enters, best, scores):
    """Take documents from begin on, one after the other: find the best match of each, and enter it if it may.

    Parameters
    ----------
    window : int
        The most that two partners' times may differ.
    asks : bool
        Whether partners are looked for.
    enters : int8[n]
        0: never; 1: if nothing matches it; 2: always.
    best : int64[n, 6]
        For each document, what is known already and then what is found: arrival of the best match (-1 for none),
        o, a, b, and the digest of its text.
    scores : float64[n]
        The similarities that go with it.

    Returns
    -------
    tuple
        The first document that is not done, and how the call ended.
    """
    counters = lists.counters
    out = np.empty((1, 4), np.int64)
    for i in range(begin, items.heads.shape[0] - 1):
        size = items.heads[i + 1] - items.heads[i]
        if size == 0:
            continue
        own = _own_keys(i, items, rule, enters[i] > 0, lists, kind)
        if enters[i]:
            if counters[NEXT] - counters[FIRST] >= lists.records.shape[0]:
                return i, NEEDS_RECORDS
            counters[WANTED] = room_for(rule, size, max(items.keys.shape[1], own.shape[0]), lists.classes)
            if counters[END] - counters[CURSOR] < counters[WANTED]:
                return i, NEEDS_MEMORY
            if own.shape[0] > 0 and counters[SIGNATURES] + own.shape[0] > counters[MOST_SIGNATURES]:
                return i, NEEDS_BUCKETS
        if asks and _find(i, items, own, rule, window, lists, room, kind, False, out, 0)[0]:
            record = lists.records[out[0, 0]]
            score = float64(out[0, 1]) / 64.0
            if kind != FINGERPRINTS:
                score = similarity(rule[0], out[0, 1], out[0, 2], out[0, 3])
            if score > scores[i] or (score == scores[i] and record[SERIAL] < best[i, 0]):
                scores[i] = score
                best[i, 0] = record[SERIAL]
                best[i, 1:4] = out[0, 1:]
                best[i, 4] = record[DIGEST]
                best[i, 5] = record[DIGEST_END]
        if enters[i] == 2 or (enters[i] == 1 and best[i, 0] < 0):
            _enter(i, items, own, rule, lists, room, kind)
    return items.heads.shape[0] - 1, DONE


@kernel
def list_matches(begin, end, items, rule, window, lists, room, kind, places, out):
    """Write all matches of the documents [begin, end): to places (int64[r]) which one, to out (int64[r, 4]) its match.

    A match is (row, o, a, b). Returns the first document that is not done, for which there was no room, how many
    matches were written, and how many documents were compared for them.
    """
    at = int64(0)
    compared = int64(0)
    for i in range(begin, end):
        if items.heads[i + 1] == items.heads[i]:
            continue
        own = _own_keys(i, items, rule, False, lists, kind)
        written, count = _find(i, items, own, rule, window, lists, room, kind, True, out, at)
        if written < 0:
            return i, at, compared
        places[at : at + written] = i
        at += written
        compared += count
    return end, at, compared


@kernel
def read_back(first, last, lists, words, heads, features):
    """Write the features of the documents [first, last) to features, and where each one's begin to heads.

    words: uint64[ranks], the feature of each rank. Features may be too short (0): then only heads is filled.
    """
    at = int64(0)
    mask = lists.records.shape[0] - 1
    for d in range(first, last):
        record = lists.records[d & mask]
        heads[d - first] = at
        size, raws = record[SIZE], raws_of(record[SHAPE])
        if features.shape[0] > 0 and size > 0:
            place = pointer_to(lists.bases, record[AT])
            for k in range(raws):
                features[at + k] = load_u64(place + uint64(8 * k))
            place += uint64(8 * raws)
            wide = wide_of(record[SHAPE])
            for k in range(wide):
                features[at + raws + k] = words[load_u32(place + uint64(4 * k))]
            place += uint64(4 * wide)
            narrow = max(words.shape[0] - NARROW, 0)
            for k in range(size - raws - wide):
                features[at + raws + wide + k] = words[narrow + int64(load_u16(place + uint64(2 * k)))]
        at += size
    heads[last - first] = at
