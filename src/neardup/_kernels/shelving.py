"""A table from keys to documents that many keys of each document enter: a shelf is a line of memory, read at one go.

Of the 16 words of a shelf, fifteen are entries: a bit that is set, 5 bits of the key and 26 of the document's number.
Nothing is taken out: the place of a document that has left is free again. An entry that finds no place goes to the
lists (``posting``), and the shelf's first word then has the last such document. So a key of few documents costs one
miss of the cache, and one of many has a list. A table that gets full is made twice as long, by one of the five bits.
"""

import numpy as np
from llvmlite import ir
from numba import int64, njit, types, uint8, uint32, uint64
from numba.extending import intrinsic

from neardup._kernels.addresses import load_u8, load_u32, place_of, store_u8, store_u32
from neardup._kernels.bits import prefetch, trailing_zeros
from neardup._kernels.compiling import kernel
from neardup._kernels.posting import (
    DOCUMENT,
    DOCUMENT_BITS,
    FIRST,
    HALF_WAY,
    MOST_COUNTED,
    OLDEST,
    TAG,
    append,
    meet,
    slot_of,
)

#: Words of a shelf.
WORDS = 16
#: How often a table can be made longer.
TAG_BITS = 5
_TAGS = uint64((1 << TAG_BITS) - 1)
_SET = uint32(1 << 31)
_ALL = uint32(0xFFFFFFFF)
_ENTRIES = uint64(0xFFFE)
_LANES = ir.VectorType(ir.IntType(32), WORDS)
#: Shelves, and then lists, that are asked for before one is read.
_AHEAD = 16


@intrinsic
def _words_below(typing, address, less, kept, bound):
    """Return bit i set where (word i - less) & kept < bound, for the 16 words of a shelf."""

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
def _shelf(key, lists):
    shelves = uint64(lists.shelves.shape[0] // WORDS - 1)
    return uint64(lists.shelves.ctypes.data) + (key & shelves) * uint64(4 * WORDS)


@njit(inline="always")
def _is_held(document, lists):
    """Numbers of documents wrap around: less than half the way behind the first one means not gone."""
    return ((document - uint32(lists.counters[FIRST])) & DOCUMENT) < HALF_WAY


@kernel
def meet_shelved(keys, lists):
    """Count one more meeting with each document for each of the keys (uint64) that it has."""
    mask = uint32(lists.records.shape[0] - 1) & DOCUMENT
    met = uint64(lists.met.ctypes.data)
    heads = uint64(lists.heads.ctypes.data)
    count = keys.shape[0]
    slots = np.empty(count, np.int64)
    listed = int64(0)
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(_shelf(keys[i + _AHEAD], lists))
        shelf = _shelf(keys[i], lists)
        equal = _words_below(shelf, _entry(keys[i], uint32(0), lists), _ALL, uint32(1 << DOCUMENT_BITS)) & _ENTRIES
        while equal:
            entry = load_u32(shelf + uint64(4) * trailing_zeros(equal))
            row = met + uint64(entry & mask)
            store_u8(row, min(load_u8(row) + uint8(1), MOST_COUNTED))
            equal &= equal - uint64(1)
        last = load_u32(shelf)
        if last != 0 and _is_held(last, lists):
            slots[listed] = slot_of(keys[i], 0, lists.heads)
            prefetch(heads + uint64(8 * slots[listed]))
            listed += 1
    for i in range(listed + _AHEAD):
        if i < listed:
            head = lists.heads[slots[i]]
            if head >= uint64(lists.counters[OLDEST]):
                place = place_of(lists.bases, head)
                prefetch(place)
                prefetch(place + uint64(64))
        if i >= _AHEAD:
            meet(lists.heads[slots[i - _AHEAD]], int64(0), lists)


@kernel
def shelve(keys, document, lists):
    """Enter a document under its keys."""
    own = uint32(document) & DOCUMENT
    first = uint32(lists.counters[FIRST])
    count = keys.shape[0]
    for i in range(count):
        if i + _AHEAD < count:
            prefetch(_shelf(keys[i + _AHEAD], lists))
        shelf = _shelf(keys[i], lists)
        gone = ~_words_below(shelf, first, DOCUMENT, HALF_WAY)
        free = (gone | _words_below(shelf, uint32(0), _ALL, uint32(1))) & _ENTRIES
        if free:
            store_u32(shelf + uint64(4) * trailing_zeros(free), _entry(keys[i], own, lists))
        else:
            store_u32(shelf, _SET | own)
            append(slot_of(keys[i], 0, lists.heads), own, lists)


@kernel
def lengthen(bit, lists, longer):
    """Move all entries to a table that is twice as long (zeros): to its second half where their bit is set."""
    half = lists.shelves.shape[0]
    for begin in range(0, half, WORDS):
        longer[begin] = longer[half + begin] = lists.shelves[begin]
        low, high = begin, half + begin
        for at in range(begin + 1, begin + WORDS):
            entry = lists.shelves[at]
            if entry != 0 and _is_held(entry, lists):
                if (entry >> uint32(DOCUMENT_BITS + bit)) & uint32(1):
                    high += 1
                    longer[high] = entry
                else:
                    low += 1
                    longer[low] = entry
