"""The window's inverted index: lists of documents, newest first, in blocks that fall away with their hour.

A list is a chain of blocks, each linked to the one before it. Addresses only grow, so the first link that is older
than ``counters[OLDEST]`` ends a list: an hour is dropped by moving that number, without touching a list. The table of
lists has no keys: two features may share a slot, which costs time and nothing else, for all that is found is verified.

Two sets of sizes n and m that share ``need`` features share l of them within the first n - need + l and the first
m - need + l in the window's order (Wang, Li & Feng, SIGMOD 2012, 3). With l well above 1, few documents but true
partners are met l times. An entry is (what remains, document): how many features of the document stand at or behind
this one in the order, in 64ths of the most in its size class, rounded up. Enough must remain on both sides.

Large sets are entered by couples of features instead (``coupling``), on shelves (``shelving``); what finds no place
there is in these lists, too.
"""

from typing import NamedTuple

import numpy as np
from numba import int64, njit, uint8, uint16, uint32, uint64

from neardup._kernels.addresses import load_u8, load_u16, load_u32, place_of, store_u8, store_u16, store_u32, store_u64
from neardup._kernels.bits import load_u64, mix, prefetch
from neardup._kernels.bounds import need, smallest_partner
from neardup._kernels.compiling import kernel

#: Places in ``counters``.
CURSOR, END, HOUR, OLDEST, FIRST, NEXT, LARGEST, COPIES, MERGES = range(9)
#: And: the bytes that a document wants, how many keys were entered on shelves, after how many these are too short, the
#: first bit of a key's tag.
WANTED, COUPLES, MOST_COUPLES, TAG = range(9, 13)
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
    plan: int64[r, 4], r = 0 unless large sets are entered by couples, see ``coupling``; salt: uint64, odd; shelves:
    uint32[16 times a power of two], see ``shelving``.
    """

    bases: np.ndarray
    heads: np.ndarray
    records: np.ndarray
    met: np.ndarray
    counters: np.ndarray
    classes: np.ndarray
    plan: np.ndarray
    salt: np.uint64
    shelves: np.ndarray


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


@kernel
def held_prefix(rule, size, classes):
    """Return how many features of a document, the rarest, lead to it."""
    least = need(rule, smallest_partner(rule, size), size)
    return min(size - least + meetings(classes, class_of(classes, size)), size)


@kernel
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
        place = place_of(lists.bases, address)
        before = load_u64(place)
        if before >= oldest:
            prefetch(place_of(lists.bases, before))
        used = uint64(load_u16(place + uint64(8)))
        place += uint64(HEADER)
        for k in range(used):
            entry = load_u32(place + uint64(4) * k)
            row = met + uint64(entry & mask)
            if entry >= low:
                seen = load_u8(row) + uint8(1)
                store_u8(row, min(seen, MOST_COUNTED))
        address = before


@kernel
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


@kernel
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
        least = need(rule, size, low)
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
                    place = place_of(lists.bases, head)
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


@kernel
def meet_by_keys(keys, lists, found):
    """Write to found the rows of all documents that have one of the keys, as bands or blocks; return how many."""
    for i in range(keys.shape[0]):
        meet(lists.heads[slot_of(keys[i], 0, lists.heads)], int64(0), lists)
    return met_often(int64(1), lists, found)


@njit(inline="always")
def append(slot, entry, lists):
    """Add an entry to a list: to its newest block, or to a new one that takes over what a small one held.

    So a short list is one block, however many hours its documents are from. Entries of documents that have left since
    may stay behind in such a block: they lead to nothing, or to a document that is compared for nothing.
    """
    counters = lists.counters
    address = lists.heads[slot]
    fit, copied = int64(1), int64(0)
    before = uint64(0)
    place = uint64(0)
    if address >= uint64(counters[OLDEST]):
        place = place_of(lists.bases, address)
        used = int64(load_u16(place + uint64(8)))
        capacity = int64(load_u16(place + uint64(10)))
        if address >= uint64(counters[HOUR]) and used < capacity:
            store_u32(place + uint64(HEADER + 4 * used), entry)
            store_u16(place + uint64(8), uint16(used + 1))
            fit = 0
        elif used <= (counters[MERGES] if address >= uint64(counters[HOUR]) else counters[COPIES]):
            before = load_u64(place)
            copied = used
            fit = used + max(used // 2, 1)
        else:
            before = address
            fit = min(2 * capacity, BLOCK) if address >= uint64(counters[HOUR]) else min(capacity, _FIRST_FIT)
    if fit > 0:
        new = uint64(counters[CURSOR])
        counters[CURSOR] += HEADER + 4 * fit
        target = place_of(lists.bases, new)
        kept = int64(0)
        first = uint32(counters[FIRST])
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
        lists.heads[slot] = new


@kernel
def enter_prefix(order, size, rule, document, lists):
    """Enter a document into the lists of the features by which any partner must meet it."""
    prefix = held_prefix(rule, size, lists.classes)
    which = class_of(lists.classes, size)
    heads = uint64(lists.heads.ctypes.data)
    oldest = uint64(lists.counters[OLDEST])
    for i in range(prefix):
        if i + 16 < prefix:
            prefetch(heads + uint64(8 * slot_of(order[i + 16], which, lists.heads)))
        if i + 8 < prefix:
            head = lists.heads[slot_of(order[i + 8], which, lists.heads)]
            if head >= oldest:
                prefetch(place_of(lists.bases, head))
        part = uint32(_part_remaining(lists.classes, which, size - i))
        entry = (part << uint32(DOCUMENT_BITS)) | (uint32(document) & DOCUMENT)
        append(slot_of(order[i], which, lists.heads), entry, lists)
    lists.counters[LARGEST] = max(lists.counters[LARGEST], size)


@kernel
def enter_keys(keys, document, lists):
    """Enter a document into the lists of its keys."""
    for i in range(keys.shape[0]):
        append(slot_of(keys[i], 0, lists.heads), uint32(document) & DOCUMENT, lists)
