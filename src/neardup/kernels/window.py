"""The index of a window: documents in a fixed order of features, candidates by counted list hits, exact overlaps.

Features are ordered rare first, by a vocabulary that was frozen some time ago. A feature of the vocabulary has a rank,
the rarest 0; a feature outside it is unranked and counts as rarer than all ranks, in the order of hashes. Any fixed
order gives correct results; how well it fits affects speed alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import float64, int64, types, uint8, uint16, uint32, uint64
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
from neardup.kernels.compilation import inlined, inner_kernel, kernel
from neardup.kernels.tables import EMPTY_TABLE_SIZE, find_slot, home_slot

#: Ranks are below 2**22 and are sorted by two digits of 11 bits.
DIGIT_BITS = 11
_PREFETCH_DISTANCE = 12


@inner_kernel
def _sort_ranks(ranks, count, buffer, digits):
    """Sort ranks[:count] with buffers: buffer (uint64) and digits (int64[2, 2**11])."""
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
    low = uint64((1 << DIGIT_BITS) - 1)
    for i in range(count):
        digits[0, int64(ranks[i] & low)] += 1
        digits[1, int64(ranks[i] >> uint64(DIGIT_BITS))] += 1
    first = int64(0)
    second = int64(0)
    for d in range(1 << DIGIT_BITS):
        a, b = digits[0, d], digits[1, d]
        digits[0, d] = first
        digits[1, d] = second
        first += a
        second += b
    for i in range(count):
        d = int64(ranks[i] & low)
        buffer[digits[0, d]] = ranks[i]
        digits[0, d] += 1
    for i in range(count):
        d = int64(buffer[i] >> uint64(DIGIT_BITS))
        ranks[digits[1, d]] = buffer[i]
        digits[1, d] += 1


@kernel
def order_features(features, heads, keys, ranks, order, unranked, buffer, digits):
    """Write each document's features in the window's order.

    features: uint64[m], distinct within a document; keys, ranks: uint64[t], uint32[t], the vocabulary, a hash table;
    order: uint64[m], gets for each document the unranked features, ascending, then the ranks of the others, ascending;
    unranked: int64[n], gets how many are unranked; buffer: uint64, as long as the longest document; digits: int64[2,
    2**11].
    """
    has_vocabulary = keys.shape[0] > EMPTY_TABLE_SIZE
    at, rank_at = uint64(keys.ctypes.data), uint64(ranks.ctypes.data)
    for d in range(heads.shape[0] - 1):
        begin, end = heads[d], heads[d + 1]
        n_unranked = int64(0)
        count = int64(0)
        for i in range(begin, end):
            feature = features[i]
            slot = int64(0)
            if has_vocabulary:
                if i + _PREFETCH_DISTANCE < features.shape[0]:
                    ahead = home_slot(features[i + _PREFETCH_DISTANCE], keys)
                    prefetch(at + uint64(8 * ahead))
                    prefetch(rank_at + uint64(4 * ahead))
                slot = find_slot(feature, keys)
            if has_vocabulary and keys[slot] == feature:
                buffer[count] = uint64(ranks[slot])
                count += 1
            else:
                order[begin + n_unranked] = feature
                n_unranked += 1
        unranked[d] = n_unranked
        if n_unranked > 1:
            order[begin : begin + n_unranked] = np.sort(order[begin : begin + n_unranked])
        ranked = order[begin + n_unranked : end]
        ranked[:] = buffer[:count]
        _sort_ranks(ranked, count, buffer, digits)


@kernel
def count_features(features, keys, counts):
    """Insert each feature into a hash table (uint64), count it (uint32), and return how many are new."""
    distinct = int64(0)
    at = uint64(keys.ctypes.data)
    for i in range(features.shape[0]):
        if i + _PREFETCH_DISTANCE < features.shape[0]:
            prefetch(at + uint64(8 * home_slot(features[i + _PREFETCH_DISTANCE], keys)))
        slot = find_slot(features[i], keys)
        distinct += keys[slot] == 0
        keys[slot] = features[i]
        counts[slot] += uint32(1)
    return distinct


#: Indices of ``counters``: write position, end of memory, first address of the newest segment, oldest valid address,
#: first and next document, largest size, limits of copied and merged entries.
CURSOR, END, SEGMENT, OLDEST, FIRST, NEXT, LARGEST, COPY_LIMIT, MERGE_LIMIT = range(9)
#: Further indices: the bytes that a document needs, the number of keys in buckets, its limit before the table is
#: doubled, and the first bit of a key's tag.
REQUESTED, SIGNATURES, MAX_SIGNATURES, TAG_SHIFT = range(9, 13)
#: Columns of a record: time, expiry, address, size, layout (``_layout_of``), serial number, and the two words of the
#: text's digest.
TIME, EXPIRY, ADDRESS, SIZE, LAYOUT, SERIAL, DIGEST, DIGEST_END = range(8)
_LAYOUT_SHIFT = 32
#: The most entries of a block, and the bytes of its header: link, number of entries, capacity.
BLOCK_ENTRIES = 128
HEADER_BYTES = 12
#: An entry has 26 bits for the document number, which limits the index, and 6 bits for the remaining features.
DOCUMENT_BITS = 26
DOCUMENT_MASK = uint32((1 << DOCUMENT_BITS) - 1)
_REMAINING_STEPS = 64
#: A set must be hit once more per this many features, up to _MAX_REQUIRED_HITS.
_FEATURES_PER_HIT = 32
_MAX_REQUIRED_HITS = 32
#: Hits are counted up to here.
MAX_HITS = uint8(127)
_EIGHT_ONES = uint64(0x0101010101010101)
_EIGHT_SIGN_BITS = uint64(0x8080808080808080)
_FIRST_CAPACITY = 8
HALF_RANGE = uint32(1 << (DOCUMENT_BITS - 1))
#: Features whose lists are prefetched before any of them is read.
_FEATURES_PER_BATCH = 32


class WindowIndex(NamedTuple):
    """The index of documents under one vocabulary.

    bases: uint64[c], the machine address of each chunk (``bits.pointer_to``); heads: uint64[a power of two], the newest
    block of each list; records: int64[a power of two, 8], a ring by document number; hits: uint8, as long as records,
    the list hits of each document for the current query, zeros between queries; counters: int64[13]; classes: int64[k],
    the smallest size of each size class. plan: int64[r, 4], r = 0 unless large sets are indexed by signatures, see
    ``pair_signatures``; salt: uint64, odd; buckets: uint32[16 times a power of two], see ``insert_in_buckets``.
    """

    bases: np.ndarray
    heads: np.ndarray
    records: np.ndarray
    hits: np.ndarray
    counters: np.ndarray
    classes: np.ndarray
    plan: np.ndarray
    salt: np.uint64
    buckets: np.ndarray


@inlined
def _layout_of(record):
    """Return how many features of a document are unranked, how many ranks have four bytes, and how many have two.

    The first two, each below 2**31, are packed into one number.
    """
    unranked, wide = record[LAYOUT] & ((int64(1) << _LAYOUT_SHIFT) - 1), record[LAYOUT] >> _LAYOUT_SHIFT
    return unranked, wide, record[SIZE] - unranked - wide


@inlined
def size_class_of(classes, size):
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


@inlined
def list_slot(key, size_class, heads):
    """Return the slot of a list head: one feature in neighbouring size classes shares a cache line."""
    return int64((mix(key) + uint64(size_class)) & uint64(heads.shape[0] - 1))


@inlined
def required_hits(classes, size_class):
    """Return how often a document of a size class must be hit to become a candidate."""
    return min(1 + classes[size_class] // _FEATURES_PER_HIT, _MAX_REQUIRED_HITS)


@inlined
def _remaining_code(classes, size_class, remaining):
    """Return the number of remaining features in 64ths of the class's largest size, rounded up, minus 1."""
    largest = classes[size_class + 1] - 1
    return (_REMAINING_STEPS * remaining + largest - 1) // largest - 1


@inner_kernel
def indexed_prefix_length(rule, size, classes):
    """Return how many features of a document, the rarest ones, are indexed."""
    required = required_overlap(rule, smallest_partner(rule, size), size)
    return min(size - required + required_hits(classes, size_class_of(classes, size)), size)


@inner_kernel
def max_bytes(rule, size, keys, classes):
    """Return an upper bound of the bytes that a document takes."""
    prefix = keys if keys > 0 else indexed_prefix_length(rule, size, classes)
    return 8 * (size + 2 + keys) + prefix * (HEADER_BYTES + 4 * BLOCK_ENTRIES)


@inlined
def count_list_hits(head, min_remaining, index):
    """Add a hit to each document of a list whose remaining features suffice."""
    oldest = uint64(index.counters[OLDEST])
    mask = uint32(index.records.shape[0] - 1) & DOCUMENT_MASK
    low = uint32(min_remaining) << uint32(DOCUMENT_BITS)
    hits = uint64(index.hits.ctypes.data)
    address = head
    while address >= oldest:
        pointer = pointer_to(index.bases, address)
        previous = load_u64(pointer)
        if previous >= oldest:
            prefetch(pointer_to(index.bases, previous))
        used = uint64(load_u16(pointer + uint64(8)))
        pointer += uint64(HEADER_BYTES)
        for k in range(used):
            entry = load_u32(pointer + uint64(4) * k)
            row = hits + uint64(entry & mask)
            if entry >= low:
                new_hits = load_u8(row) + uint8(1)
                store_u8(row, min(new_hits, MAX_HITS))
        address = previous


@inner_kernel
def take_frequent_rows(min_hits, index, rows):
    """Write the rows with at least ``min_hits`` hits, and reset all hits; return how many."""
    # Eight counts, each below 128, are compared at once: adding 128 - min_hits carries into the top bit.
    carry = uint64(128 - min_hits) * _EIGHT_ONES
    count = int64(0)
    at = uint64(index.hits.ctypes.data)
    for word in range(0, index.hits.shape[0], 8):
        counts = load_u64(at + uint64(word))
        if (counts + carry) & _EIGHT_SIGN_BITS:
            for row in range(word, word + 8):
                if index.hits[row] >= min_hits:
                    rows[count] = row
                    count += 1
    index.hits[:] = 0
    return count


@inner_kernel
def count_prefix_hits(order, size, rule, index, bounds, slots):
    """Count hits of documents that are indexed by single features.

    order: uint64[size], features in the window's order; bounds: int64[classes, 2] and slots: int64[32 * classes],
    buffers. Returns the least number of hits of a matching document, 0 if there can be none.
    """
    plan_begins = index.plan[0, 0] if index.plan.shape[0] > 0 else index.classes[index.classes.shape[0] - 1]
    smallest = smallest_partner(rule, size)
    first = size_class_of(index.classes, smallest)
    last = first
    largest = index.counters[LARGEST]
    prefix = int64(0)
    min_hits = int64(0)
    for c in range(first, index.classes.shape[0] - 1):
        low = max(index.classes[c], smallest)
        required = required_overlap(rule, size, low)
        if low > largest or required > size or index.classes[c] >= plan_begins:
            break
        if c == first:
            # Equal for all classes, because a list slot may be shared with another class by chance.
            min_hits = min(required_hits(index.classes, c), required)
        bounds[c, 0] = required - min_hits + 1
        bounds[c, 1] = _remaining_code(index.classes, c, bounds[c, 0])
        prefix = max(prefix, size - bounds[c, 0] + 1)
        last = c + 1
    heads = uint64(index.heads.ctypes.data)
    oldest = uint64(index.counters[OLDEST])
    width = last - first
    for begin in range(0, prefix, _FEATURES_PER_BATCH):
        end = min(begin + _FEATURES_PER_BATCH, prefix)
        for i in range(begin, end):
            for c in range(first, last):
                at = (i - begin) * width + c - first
                slots[at] = -1
                if size - i >= bounds[c, 0]:
                    slots[at] = list_slot(order[i], c, index.heads)
                    prefetch(heads + uint64(8 * slots[at]))
        for at in range((end - begin) * width):
            if slots[at] >= 0:
                head = index.heads[slots[at]]
                if head >= oldest:
                    pointer = pointer_to(index.bases, head)
                    prefetch(pointer)
                    prefetch(pointer + uint64(64))
                else:
                    slots[at] = -1
        for i in range(begin, end):
            for c in range(first, last):
                slot = slots[(i - begin) * width + c - first]
                if slot >= 0:
                    count_list_hits(index.heads[slot], bounds[c, 1], index)
    return min_hits


@inner_kernel
def find_by_keys(keys, index, rows):
    """Write the rows of all documents that share a key, such as a band or block; return how many."""
    for i in range(keys.shape[0]):
        count_list_hits(index.heads[list_slot(keys[i], 0, index.heads)], int64(0), index)
    return take_frequent_rows(int64(1), index, rows)


@inner_kernel
def append_entries(slots, entries, index):
    """Append an entry to each of some lists: to its newest block, or to a new block that takes over a small old one.

    So a short list stays one block, however many segments its documents are from. Entries of expired documents may
    remain in such a block: they lead to no document, or to one that is compared in vain.
    """
    # All in one loop: a call per entry would count references to every array of the index.
    bases, heads, counters = index.bases, index.heads, index.counters
    at = uint64(heads.ctypes.data)
    first, segment, oldest = uint32(counters[FIRST]), uint64(counters[SEGMENT]), uint64(counters[OLDEST])
    copies, merges = counters[COPY_LIMIT], counters[MERGE_LIMIT]
    cursor = uint64(counters[CURSOR])
    count = slots.shape[0]
    for i in range(count):
        if i + 16 < count:
            prefetch(at + uint64(8 * slots[i + 16]))
        if i + 8 < count and heads[slots[i + 8]] >= oldest:
            prefetch(pointer_to(bases, heads[slots[i + 8]]))
        slot, entry = slots[i], entries[i]
        address = heads[slot]
        new_capacity, n_copied = int64(1), int64(0)
        previous = uint64(0)
        pointer = uint64(0)
        if address >= oldest:
            pointer = pointer_to(bases, address)
            used = int64(load_u16(pointer + uint64(8)))
            capacity = int64(load_u16(pointer + uint64(10)))
            if address >= segment and used < capacity:
                store_u32(pointer + uint64(HEADER_BYTES + 4 * used), entry)
                store_u16(pointer + uint64(8), uint16(used + 1))
                continue
            if used <= (merges if address >= segment else copies):
                previous = load_u64(pointer)
                n_copied = used
                new_capacity = used + max(used // 2, 1)
            else:
                previous = address
                new_capacity = min(2 * capacity, BLOCK_ENTRIES)
                if address < segment:
                    new_capacity = min(capacity, _FIRST_CAPACITY)
        new_pointer = pointer_to(bases, cursor)
        n_kept = int64(0)
        for k in range(n_copied):
            old_entry = load_u32(pointer + uint64(HEADER_BYTES + 4 * k))
            # Document numbers wrap around: within half the range of the first one, a document is current.
            if ((old_entry - first) & DOCUMENT_MASK) < HALF_RANGE:
                store_u32(new_pointer + uint64(HEADER_BYTES + 4 * n_kept), old_entry)
                n_kept += 1
        store_u64(new_pointer, previous)
        store_u32(new_pointer + uint64(HEADER_BYTES + 4 * n_kept), entry)
        store_u16(new_pointer + uint64(8), uint16(n_kept + 1))
        store_u16(new_pointer + uint64(10), uint16(new_capacity))
        heads[slot] = cursor
        cursor += uint64(HEADER_BYTES + 4 * new_capacity)
    counters[CURSOR] = int64(cursor)


@inner_kernel
def insert_by_prefix(order, size, rule, document, index):
    """Insert a document into the lists of its prefix, one feature of which any partner shares."""
    classes, heads = index.classes, index.heads
    prefix = indexed_prefix_length(rule, size, classes)
    size_class = size_class_of(classes, size)
    slots, entries = np.empty(prefix, np.int64), np.empty(prefix, np.uint32)
    for i in range(prefix):
        slots[i] = list_slot(order[i], size_class, heads)
        part = uint32(_remaining_code(classes, size_class, size - i))
        entries[i] = (part << uint32(DOCUMENT_BITS)) | (uint32(document) & DOCUMENT_MASK)
    append_entries(slots, entries, index)
    index.counters[LARGEST] = max(index.counters[LARGEST], size)


@inner_kernel
def insert_by_keys(keys, document, index):
    """Insert a document into the lists of its keys."""
    slots, entries = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], np.uint32)
    for i in range(keys.shape[0]):
        slots[i] = list_slot(keys[i], 0, index.heads)
        entries[i] = uint32(document) & DOCUMENT_MASK
    append_entries(slots, entries, index)


#: Words per bucket.
BUCKET_WORDS = 16
#: Tag bits of an entry, each of which allows one doubling of the table.
TAG_BITS = 5
_TAG_MASK = uint64((1 << TAG_BITS) - 1)
_ENTRY_FLAG = uint32(1 << 31)
_ALL_BITS = uint32(0xFFFFFFFF)
_ENTRY_LANES = uint64(0xFFFE)
_LANES = ir.VectorType(ir.IntType(32), BUCKET_WORDS)
#: How many buckets, or lists, ahead memory is prefetched.
_PREFETCH_BUCKETS = 16


@intrinsic
def _words_below(typing, address, less, kept, bound):
    """Return bit i set if (word i - less) & kept < bound, for the 16 words of a bucket."""

    def emit(context, builder, signature, args):
        load = builder.load(builder.inttoptr(args[0], _LANES.as_pointer()))
        load.align = 4
        unknown = ir.Constant(_LANES, ir.Undefined)

        def all_of(value):
            first = builder.insert_element(unknown, value, ir.IntType(32)(0))
            return builder.shuffle_vector(first, unknown, ir.Constant(_LANES, [0] * BUCKET_WORDS))

        words = builder.and_(builder.sub(load, all_of(args[1])), all_of(args[2]))
        below = builder.icmp_unsigned("<", words, all_of(args[3]))
        return builder.zext(builder.bitcast(below, ir.IntType(BUCKET_WORDS)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint32, types.uint32, types.uint32), emit


@inlined
def _bucket_entry(key, document, index):
    tag = uint32((key >> uint64(index.counters[TAG_SHIFT])) & _TAG_MASK)
    return _ENTRY_FLAG | (tag << uint32(DOCUMENT_BITS)) | document


@inlined
def _bucket_address(key, index):
    buckets = uint64(index.buckets.shape[0] // BUCKET_WORDS - 1)
    return uint64(index.buckets.ctypes.data) + (key & buckets) * uint64(4 * BUCKET_WORDS)


@inlined
def _is_current(document, index):
    """Return whether a document is still indexed: numbers wrap around, so it is within half the range of the first."""
    return ((document - uint32(index.counters[FIRST])) & DOCUMENT_MASK) < HALF_RANGE


@kernel
def count_bucket_hits(keys, index):
    """Add a hit to each document for each of the keys (uint64) that it has."""
    mask = uint32(index.records.shape[0] - 1) & DOCUMENT_MASK
    hits = uint64(index.hits.ctypes.data)
    heads = uint64(index.heads.ctypes.data)
    count = keys.shape[0]
    slots = np.empty(count, np.int64)
    n_lists = int64(0)
    for i in range(count):
        if i + _PREFETCH_BUCKETS < count:
            prefetch(_bucket_address(keys[i + _PREFETCH_BUCKETS], index))
        bucket = _bucket_address(keys[i], index)
        first_entry = _bucket_entry(keys[i], uint32(0), index)
        lanes = _words_below(bucket, first_entry, _ALL_BITS, uint32(1 << DOCUMENT_BITS)) & _ENTRY_LANES
        while lanes:
            entry = load_u32(bucket + uint64(4) * trailing_zeros(lanes))
            row = hits + uint64(entry & mask)
            store_u8(row, min(load_u8(row) + uint8(1), MAX_HITS))
            lanes &= lanes - uint64(1)
        bucket_head = load_u32(bucket)
        if bucket_head != 0 and _is_current(bucket_head, index):
            slots[n_lists] = list_slot(keys[i], 0, index.heads)
            prefetch(heads + uint64(8 * slots[n_lists]))
            n_lists += 1
    for i in range(n_lists + _PREFETCH_BUCKETS):
        if i < n_lists:
            head = index.heads[slots[i]]
            if head >= uint64(index.counters[OLDEST]):
                pointer = pointer_to(index.bases, head)
                prefetch(pointer)
                prefetch(pointer + uint64(64))
        if i >= _PREFETCH_BUCKETS:
            count_list_hits(index.heads[slots[i - _PREFETCH_BUCKETS]], int64(0), index)


@kernel
def insert_in_buckets(keys, document, index):
    """Insert a document under its keys.

    A bucket has 16 words: the last document that overflowed, or 0, then 15 entries of a tag of the key and a document.
    An entry of an expired document is overwritten; an entry without space goes to the list of its key.
    """
    document_bits = uint32(document) & DOCUMENT_MASK
    first = uint32(index.counters[FIRST])
    count = keys.shape[0]
    full = np.empty(count, np.uint64)
    n_full = int64(0)
    for i in range(count):
        if i + _PREFETCH_BUCKETS < count:
            prefetch(_bucket_address(keys[i + _PREFETCH_BUCKETS], index))
        bucket = _bucket_address(keys[i], index)
        expired = ~_words_below(bucket, first, DOCUMENT_MASK, HALF_RANGE)
        free = (expired | _words_below(bucket, uint32(0), _ALL_BITS, uint32(1))) & _ENTRY_LANES
        if free:
            store_u32(bucket + uint64(4) * trailing_zeros(free), _bucket_entry(keys[i], document_bits, index))
        else:
            store_u32(bucket, _ENTRY_FLAG | document_bits)
            full[n_full] = keys[i]
            n_full += 1
    if n_full:
        insert_by_keys(full[:n_full], document, index)


@kernel
def double_buckets(bit, index, new_buckets):
    """Copy all entries to a table (zeros) twice as long: to its second half if bit ``bit`` of their tag is set."""
    half = index.buckets.shape[0]
    for begin in range(0, half, BUCKET_WORDS):
        new_buckets[begin] = new_buckets[half + begin] = index.buckets[begin]
        low, high = begin, half + begin
        for at in range(begin + 1, begin + BUCKET_WORDS):
            entry = index.buckets[at]
            if entry != 0 and _is_current(entry, index):
                if (entry >> uint32(DOCUMENT_BITS + bit)) & uint32(1):
                    high += 1
                    new_buckets[high] = entry
                else:
                    low += 1
                    new_buckets[low] = entry


#: Columns of a plan: the least size of a row's documents, the bits of a cell, the keys that matches share, and the
#: number of documents ever inserted.
MIN_SIZE, CELL_BITS, SHARED_KEYS, ENTERED = range(4)
_SIGNATURE_FACTOR = uint64(0x9E3779B97F4A7C15)


@inlined
def plan_row(plan, size):
    """Return the row of the plan for documents of some size, or -1 if they are indexed by single features."""
    row = int64(-1)
    while row + 1 < plan.shape[0] and plan[row + 1, MIN_SIZE] <= size:
        row += 1
    return row


@inlined
def insertion_credit(rule, size, shared_keys):
    """Return the credit that a document needs so that any partner shares that many keys with it."""
    return size - required_overlap(rule, smallest_partner(rule, size), size) + shared_keys


@kernel
def pair_signatures(order, credit, bits, salt):
    """Return the keys of a document: signatures of two features in the same one of 2**bits cells.

    order: uint64, its features, in an order that all documents share. credit: features are taken until they earn it, or
    all are taken; raising it makes more, and more frequent, keys. bits: raising it makes fewer keys, from more frequent
    features. salt: uint64, odd. For at most 2 in B salts, two given features share a cell (multiply-shift:
    Dietzfelbinger et al. 1997). So n features make at most n * n / B keys on average, whoever chose them, as long as
    the salt is secret.
    """
    hashed = np.empty(order.shape[0], np.uint64)
    counts = np.zeros(1 << bits, np.int64)
    shift = uint64(63 - bits)
    n_features = int64(0)
    credit_so_far = int64(0)
    n_signatures = int64(0)
    while n_features < order.shape[0] and credit_so_far < credit:
        hashed[n_features] = mix(order[n_features]) * salt
        cell = int64((hashed[n_features] >> shift) >> uint64(1))
        credit_so_far += counts[cell] > 0
        n_signatures += counts[cell]
        counts[cell] += 1
        n_features += 1
    cell_begins = np.empty(1 << bits, np.int64)
    begin = int64(0)
    for cell in range(1 << bits):
        cell_begins[cell] = begin
        begin += counts[cell]
        counts[cell] = 0
    members = np.empty(n_features, np.uint64)
    signatures = np.empty(n_signatures, np.uint64)
    at = int64(0)
    for i in range(n_features):
        value = hashed[i]
        cell = int64((value >> shift) >> uint64(1))
        begin = cell_begins[cell]
        end = begin + counts[cell]
        # The earlier feature comes first, so that a signature has the same key in each document.
        for k in range(begin, end):
            signatures[at] = mix(members[k] * _SIGNATURE_FACTOR + value)
            at += 1
        members[end] = value
        counts[cell] += 1
    return signatures


_RANKS_PER_CHECK = 128
#: This many of the most frequent features are stored in two bytes.
NARROW_RANKS = 1 << 16


@inlined
def first_narrow_rank(ranks):
    """Return the first of all ranks that is stored in two bytes."""
    return max(ranks - NARROW_RANKS, 0)


@kernel
def similarity(code, o, a, b):
    """Return the similarity of ``neardup.recipe.measures``, by the same operations on the same numbers."""
    if code == JACCARD:
        return float64(o) / float64(a + b - o)
    if code == OVERLAP:
        return float64(o) / float64(max(a, b))
    if code == DICE:
        return float64(2 * o) / float64(a + b)
    if code == COSINE:
        return min(np.sqrt(float64(o) * float64(o) / (float64(a) * float64(b))), 1.0)
    if code == CONTAINMENT:
        return float64(o) / float64(min(a, b))
    return 1.0 / (1.0 + np.sqrt(float64(a + b) - float64(2 * o)))


@kernel
def overlap_with_record(order, unranked, pointer, record, first_narrow, required, flags):
    """Return the overlap of two sets, or a number smaller than ``required`` once that cannot be reached.

    order, unranked: one set in the window's order; pointer: where the other's features are; record: its record;
    first_narrow: the first rank that is stored in two bytes; flags: 1 for the ranks of order.
    """
    count = int64(0)
    i = int64(0)
    k = int64(0)
    other_unranked, wide, n_narrow = _layout_of(record)
    while i < unranked and k < other_unranked:
        other_feature = load_u64(pointer + uint64(8 * k))
        feature = order[i]
        count += feature == other_feature
        i += feature <= other_feature
        k += other_feature <= feature
    if order.shape[0] == unranked:
        return count
    pointer += uint64(8 * other_unranked)
    for k in range(wide):
        count += flags[load_u32(pointer + uint64(4 * k))]
    pointer += uint64(4 * wide)
    for begin in range(0, n_narrow, _RANKS_PER_CHECK):
        if count + n_narrow - begin < required:
            return count
        for k in range(begin, min(begin + _RANKS_PER_CHECK, n_narrow)):
            count += flags[first_narrow + int64(load_u16(pointer + uint64(2 * k)))]
    return count


@kernel
def overlaps_with_records(documents, index, flags, out):
    """Write to out[r, 3] o, a and b of the first document with each row of the records; o = 0 without a document."""
    order, unranked = documents.order, documents.unranked[0]
    mask = index.records.shape[0] - 1
    for k in range(order.shape[0] - unranked):
        flags[order[unranked + k]] = 1
    for d in range(index.counters[FIRST], index.counters[NEXT]):
        record = index.records[d & mask]
        if record[SIZE] > 0:
            pointer = pointer_to(index.bases, record[ADDRESS])
            first_narrow = first_narrow_rank(flags.shape[0])
            out[d & mask, 0] = overlap_with_record(order, unranked, pointer, record, first_narrow, int64(0), flags)
            out[d & mask, 1] = order.shape[0]
            out[d & mask, 2] = record[SIZE]
    for k in range(order.shape[0] - unranked):
        flags[order[unranked + k]] = 0


@inner_kernel
def insertion_signatures(i, documents, rule, is_inserted, index):
    """Return the signatures (uint64) of document i; none if it is indexed otherwise.

    Empty, too, if the document is not inserted and no document of its size range has been inserted by signatures.
    """
    begin, end = documents.heads[i], documents.heads[i + 1]
    row = plan_row(index.plan, end - begin)
    if row < 0 or not (is_inserted or index.plan[row, ENTERED]):
        return np.empty(0, np.uint64)
    plan = index.plan[row]
    credit = insertion_credit(rule, end - begin, plan[SHARED_KEYS])
    return pair_signatures(documents.order[begin:end], credit, plan[CELL_BITS], index.salt + uint64(2 * row))


@kernel
def find_candidates(order, size, rule, signatures, index, buffers):
    """Write the rows of all documents that may match a set to buffers.candidates; return how many.

    order: uint64[size], features in the window's order; signatures: from ``insertion_signatures``.
    """
    plan = index.plan
    min_hits = count_prefix_hits(order, size, rule, index, buffers.bounds, buffers.slots)
    smallest = smallest_partner(rule, size)
    searches = min_hits > 0
    for row in range(plan.shape[0]):
        low = max(plan[row, MIN_SIZE], smallest)
        if low > index.counters[LARGEST] or required_overlap(rule, size, low) > size:
            break
        if plan[row, ENTERED] == 0 or (row + 1 < plan.shape[0] and plan[row + 1, MIN_SIZE] <= smallest):
            continue
        shared_keys = plan[row, SHARED_KEYS]
        if row == plan_row(plan, size):
            count_bucket_hits(signatures, index)
        else:
            credit = size - required_overlap(rule, size, low) + shared_keys
            salt = index.salt + uint64(2 * row)
            count_bucket_hits(pair_signatures(order, credit, plan[row, CELL_BITS], salt), index)
        min_hits = min(min_hits, shared_keys) if searches else shared_keys
        searches = True
    return take_frequent_rows(min_hits, index, buffers.candidates) if searches else int64(0)


@inner_kernel
def insert_set(order, size, rule, signatures, document, index):
    """Insert a document into the lists of its prefix, or under its signatures, one of which any partner shares."""
    row = plan_row(index.plan, size)
    if row < 0:
        insert_by_prefix(order, size, rule, document, index)
        return
    insert_in_buckets(signatures, document, index)
    index.plan[row, ENTERED] += 1
    index.counters[SIGNATURES] += signatures.shape[0]
    index.counters[LARGEST] = max(index.counters[LARGEST], size)


#: How a call ended: done, or it needs more memory, more records or more buckets.
DONE, NEEDS_MEMORY, NEEDS_RECORDS, NEEDS_BUCKETS = range(4)
#: What the window contains: sets by rare features; sets by keys; 64-bit fingerprints by keys.
BY_PREFIX, BY_KEYS, FINGERPRINTS = range(3)


class WindowDocuments(NamedTuple):
    """Documents in order of arrival.

    features, order: uint64[m], their features as given and in the window's order; heads: int64[n + 1]; unranked:
    int64[n]; keys: uint64[n, k], k = 0 for sets that are indexed by rare features; times, expiries, least_expiries,
    serials: int64[n], the time of each document, when it expires, the least expiry of its partners, and its serial
    number; digests: int64[n, 2], those of the texts.
    """

    features: np.ndarray
    order: np.ndarray
    heads: np.ndarray
    unranked: np.ndarray
    keys: np.ndarray
    times: np.ndarray
    expiries: np.ndarray
    least_expiries: np.ndarray
    serials: np.ndarray
    digests: np.ndarray


class WindowBuffers(NamedTuple):
    """Buffers: candidates int64[r]; bounds int64[k, 2]; slots int64[32 k]; flags uint8[ranks], zeros."""

    candidates: np.ndarray
    bounds: np.ndarray
    slots: np.ndarray
    flags: np.ndarray


@inlined
def _share_a_key(keys, pointer):
    """Return whether two documents share a key: key k of one is compared with key k of the other."""
    count = keys.shape[0]
    is_shared = False
    for k in range(count):
        is_shared |= keys[k] == load_u64(pointer - uint64(8 * (count - k)))
    return is_shared


@inner_kernel
def _compare_candidates(i, count, documents, rule, window, index, buffers, kind, list_all, out, at):
    """Compare document i with the candidates; write (row, o, a, b) of the best match, or of all, to out[at:].

    Returns how many were written, or -1 if they do not fit.
    """
    begin, end = documents.heads[i], documents.heads[i + 1]
    order, unranked, size = documents.order[begin:end], documents.unranked[i], end - begin
    best = -1.0
    written = int64(0)
    records, first_narrow = uint64(index.records.ctypes.data), first_narrow_rank(buffers.flags.shape[0])
    for c in range(count):
        if c + 12 < count:
            prefetch(records + uint64(64 * buffers.candidates[c + 12]))
        if c + 5 < count:
            prefetch(pointer_to(index.bases, index.records[buffers.candidates[c + 5], ADDRESS]))
        row = buffers.candidates[c]
        record = index.records[row]
        other_size = record[SIZE]
        # Removed, dropped with its segment (its record stays until the ring wraps around), or out of the window.
        if other_size == 0 or record[ADDRESS] < index.counters[OLDEST]:
            continue
        if record[EXPIRY] < documents.least_expiries[i] or abs(record[TIME] - documents.times[i]) > window:
            continue
        pointer = pointer_to(index.bases, record[ADDRESS])
        own_total, other_total = size, other_size
        if kind == FINGERPRINTS:
            o = 64 - int64(popcount(documents.features[begin] ^ load_u64(pointer)))
            if 64 - o > rule[1]:
                continue
            own_total = other_total = int64(64)
        else:
            required = required_overlap(rule, size, other_size)
            if required > min(size, other_size):
                continue
            if kind == BY_KEYS and not _share_a_key(documents.keys[i], pointer):
                continue
            o = overlap_with_record(order, unranked, pointer, record, first_narrow, required, buffers.flags)
            if o < required:
                continue
        score = similarity(rule[0], o, own_total, other_total)
        if list_all:
            if at + written >= out.shape[0]:
                return int64(-1)
        elif score < best or (score == best and record[SERIAL] > index.records[out[at, 0], SERIAL]):
            continue
        slot = at + written if list_all else at
        out[slot, 0] = row
        out[slot, 1] = o
        out[slot, 2] = own_total
        out[slot, 3] = other_total
        best = score
        written = written + 1 if list_all else int64(1)
    return written


@inner_kernel
def _set_flags(documents, i, flags, value):
    for k in range(documents.heads[i] + documents.unranked[i], documents.heads[i + 1]):
        flags[documents.order[k]] = value


@inner_kernel
def _find_matches(i, documents, signatures, rule, window, index, buffers, kind, list_all, out, at):
    """Write the matches of document i as ``_compare_candidates`` does; return how many, and how many were compared."""
    begin, end = documents.heads[i], documents.heads[i + 1]
    if kind == BY_PREFIX:
        count = find_candidates(documents.order[begin:end], end - begin, rule, signatures, index, buffers)
    else:
        count = find_by_keys(documents.keys[i], index, buffers.candidates)
    if count == 0:
        return int64(0), count
    _set_flags(documents, i, buffers.flags, 1)
    written = _compare_candidates(i, count, documents, rule, window, index, buffers, kind, list_all, out, at)
    _set_flags(documents, i, buffers.flags, 0)
    return written, count


@inner_kernel
def _insert(i, documents, signatures, rule, index, buffers, kind):
    """Write document i at the cursor, and insert it into the lists."""
    counters = index.counters
    begin, end = documents.heads[i], documents.heads[i + 1]
    size, unranked = end - begin, documents.unranked[i]
    document = counters[NEXT]
    counters[NEXT] += 1
    row = document & (index.records.shape[0] - 1)
    address = counters[CURSOR]
    pointer = pointer_to(index.bases, address)
    wide = int64(0)
    if kind == BY_KEYS:
        # Keys are stored before the features, to verify them: a list slot may mix keys.
        keys = documents.keys.shape[1]
        for k in range(keys):
            store_u64(pointer + uint64(8 * k), documents.keys[i, k])
        counters[CURSOR] += 8 * keys
        address += 8 * keys
        pointer += uint64(8 * keys)
    for k in range(unranked):
        store_u64(pointer + uint64(8 * k), documents.order[begin + k])
    pointer += uint64(8 * unranked)
    first_narrow = first_narrow_rank(buffers.flags.shape[0])
    while wide < size - unranked and documents.order[begin + unranked + wide] < first_narrow:
        store_u32(pointer + uint64(4 * wide), uint32(documents.order[begin + unranked + wide]))
        wide += 1
    pointer += uint64(4 * wide)
    for k in range(size - unranked - wide):
        rank = int64(documents.order[begin + unranked + wide + k])
        store_u16(pointer + uint64(2 * k), uint16(rank - first_narrow))
    counters[CURSOR] += 8 * unranked + (4 * wide + 2 * (size - unranked - wide) + 7) // 8 * 8
    record = index.records[row]
    record[TIME] = documents.times[i]
    record[EXPIRY] = documents.expiries[i]
    record[ADDRESS] = address
    record[SIZE] = size
    record[LAYOUT] = unranked | (wide << _LAYOUT_SHIFT)
    record[SERIAL] = documents.serials[i]
    record[DIGEST] = documents.digests[i, 0]
    record[DIGEST_END] = documents.digests[i, 1]
    if kind == BY_PREFIX:
        insert_set(documents.order[begin:end], size, rule, signatures, document, index)
    else:
        insert_by_keys(documents.keys[i], document, index)


@kernel
def match_and_insert(begin, documents, rule, window, index, buffers, kind, searches, entry_modes, best, scores):
    """Process documents from ``begin`` on in order: find the best match of each, then insert it if its mode says so.

    window: the largest difference between the times of two partners; searches: whether partners are searched;
    entry_modes: int8[n], 0: never insert, 1: insert if nothing matches, 2: always insert; best: int64[n, 6], for each
    document, the best match so far, updated: its serial number (-1 for none), o, a, b, and its digest; scores:
    float64[n], the similarities of the best matches. Returns the first unprocessed document, and how the call ended.
    """
    counters = index.counters
    out = np.empty((1, 4), np.int64)
    for i in range(begin, documents.heads.shape[0] - 1):
        size = documents.heads[i + 1] - documents.heads[i]
        if size == 0:
            continue
        signatures = insertion_signatures(i, documents, rule, entry_modes[i] > 0, index)
        if entry_modes[i]:
            if counters[NEXT] - counters[FIRST] >= index.records.shape[0]:
                return i, NEEDS_RECORDS
            keys = max(documents.keys.shape[1], signatures.shape[0])
            counters[REQUESTED] = max_bytes(rule, size, keys, index.classes)
            if counters[END] - counters[CURSOR] < counters[REQUESTED]:
                return i, NEEDS_MEMORY
            if signatures.shape[0] > 0 and counters[SIGNATURES] + signatures.shape[0] > counters[MAX_SIGNATURES]:
                return i, NEEDS_BUCKETS
        if searches and _find_matches(i, documents, signatures, rule, window, index, buffers, kind, False, out, 0)[0]:
            record = index.records[out[0, 0]]
            score = similarity(rule[0], out[0, 1], out[0, 2], out[0, 3])
            if score > scores[i] or (score == scores[i] and record[SERIAL] < best[i, 0]):
                scores[i] = score
                best[i, 0] = record[SERIAL]
                best[i, 1:4] = out[0, 1:]
                best[i, 4] = record[DIGEST]
                best[i, 5] = record[DIGEST_END]
        if entry_modes[i] == 2 or (entry_modes[i] == 1 and best[i, 0] < 0):
            _insert(i, documents, signatures, rule, index, buffers, kind)
    return documents.heads.shape[0] - 1, DONE


@kernel
def list_all_matches(begin, end, documents, rule, window, index, buffers, kind, queries, out):
    """Write all matches of the documents [begin, end): the document to queries, the match to out.

    queries: int64[r]; out: int64[r, 4], gets (row, o, a, b). Returns the first document whose matches did not fit, the
    number of matches, and how many documents were compared.
    """
    at = int64(0)
    compared = int64(0)
    for i in range(begin, end):
        if documents.heads[i + 1] == documents.heads[i]:
            continue
        signatures = insertion_signatures(i, documents, rule, False, index)
        written, count = _find_matches(i, documents, signatures, rule, window, index, buffers, kind, True, out, at)
        if written < 0:
            return i, at, compared
        queries[at : at + written] = i
        at += written
        compared += count
    return end, at, compared


@kernel
def read_features(first, last, index, feature_of_rank, heads, features):
    """Write the features of the documents [first, last) to features, and the beginning of each to heads.

    feature_of_rank: uint64[ranks]. If features is empty, only heads is filled.
    """
    at = int64(0)
    mask = index.records.shape[0] - 1
    for d in range(first, last):
        record = index.records[d & mask]
        heads[d - first] = at
        size = record[SIZE]
        if features.shape[0] > 0 and size > 0:
            unranked, wide, n_narrow = _layout_of(record)
            pointer = pointer_to(index.bases, record[ADDRESS])
            for k in range(unranked):
                features[at + k] = load_u64(pointer + uint64(8 * k))
            pointer += uint64(8 * unranked)
            for k in range(wide):
                features[at + unranked + k] = feature_of_rank[load_u32(pointer + uint64(4 * k))]
            pointer += uint64(4 * wide)
            first_narrow = first_narrow_rank(feature_of_rank.shape[0])
            for k in range(n_narrow):
                rank = first_narrow + int64(load_u16(pointer + uint64(2 * k)))
                features[at + unranked + wide + k] = feature_of_rank[rank]
        at += size
    heads[last - first] = at
