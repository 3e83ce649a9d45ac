"""The index of a window: documents in a fixed order of features, candidates by counted keys, exact overlaps.

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
from neardup.kernels.compilation import inlined, inner_kernel, kernel, leaf_kernel
from neardup.kernels.tables import EMPTY_TABLE_SIZE, find_slot, home_slot

_PREFETCH_DISTANCE = 12


@inner_kernel
def _sort_ranks(ranks, count, bits, buffer, digits):
    """Sort ranks[:count], below 4**bits, with buffers: buffer (uint64) and digits (int64[2, 2**bits])."""
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
    low = uint64((1 << bits) - 1)
    for i in range(count):
        digits[0, int64(ranks[i] & low)] += 1
        digits[1, int64(ranks[i] >> uint64(bits))] += 1
    first = int64(0)
    second = int64(0)
    for d in range(1 << bits):
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
        d = int64(buffer[i] >> uint64(bits))
        ranks[digits[1, d]] = buffer[i]
        digits[1, d] += 1


@kernel
def order_features(features, heads, keys, ranks, order, unranked, buffer):
    """Write each document's features in the window's order.

    features: uint64[m], distinct within a document; keys, ranks: uint64[t], uint32[t], the vocabulary, a hash table;
    order: uint64[m], gets for each document the unranked features, ascending, then the ranks of the others, ascending;
    unranked: int64[n], gets how many are unranked; buffer: uint64, as long as the longest document.
    """
    # Ranks are below half the slots, and are sorted by two digits: few values of a digit are faster for small sets.
    bits = 1
    while keys.shape[0] >> (2 * bits + 1):
        bits += 1
    digits = np.empty((2, 1 << bits), np.int64)
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
        _sort_ranks(ranked, count, bits, buffer, digits)


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
#: first and next document, limits of copied and merged entries, and the bytes that a document needs.
CURSOR, END, SEGMENT, OLDEST, FIRST, NEXT, COPY_LIMIT, MERGE_LIMIT, REQUESTED = range(9)
#: Further indices: keys in buckets, those of dropped segments among them, buckets, how many have memory, the power of
#: two that they have reached, the first bit of a key's tag; of the buckets that others continue in, the next one, how
#: many have memory, and the first that is free again.
KEYS, DROPPED_KEYS, BUCKETS, BUCKET_LIMIT, LEVEL, TAG_SHIFT, FURTHER, FURTHER_LIMIT, FREE = range(9, 18)
#: Columns of a record: time, expiry, address, size, layout (``_layout_of``), serial number, and the two words of the
#: text's digest.
TIME, EXPIRY, ADDRESS, SIZE, LAYOUT, SERIAL, DIGEST, DIGEST_END = range(8)
_LAYOUT_SHIFT = 32
#: The most entries of a block, and the bytes of its header: link, number of entries, capacity.
BLOCK_ENTRIES = 128
HEADER_BYTES = 12
#: The bits of a document number, which limit the index.
DOCUMENT_BITS = 26
DOCUMENT_MASK = uint32((1 << DOCUMENT_BITS) - 1)
HALF_RANGE = uint32(1 << (DOCUMENT_BITS - 1))
#: Hits are counted up to here.
MAX_HITS = uint8(127)
_FIRST_CAPACITY = 8


class WindowIndex(NamedTuple):
    """The index of documents under one vocabulary.

    bases: uint64[c], the machine address of each chunk (``bits.pointer_to``); heads: uint64[a power of two], the newest
    block of each list; records: int64[a power of two, 8], a ring by document number; hits: uint8, as long as records,
    the hits of each document for the current query, zeros between queries; counters: int64[18]; plan: int64[r, 4], how
    sets of some sizes are indexed, r = 0 if they are indexed by keys that they come with; salt: uint64, odd; buckets:
    uint64[c], the machine address of each chunk of the table of keys, see ``insert_in_buckets``.
    """

    bases: np.ndarray
    heads: np.ndarray
    records: np.ndarray
    hits: np.ndarray
    counters: np.ndarray
    plan: np.ndarray
    salt: np.uint64
    buckets: np.ndarray


class WindowBuffers(NamedTuple):
    """Buffers: touched, candidates: int64[r + 1], for rows of r records; flags: uint8[ranks], zeros."""

    touched: np.ndarray
    candidates: np.ndarray
    flags: np.ndarray


@inlined
def _layout_of(record):
    """Return how many features of a document are unranked, how many ranks have four bytes, and how many have two.

    The first two, each below 2**31, are packed into one number.
    """
    unranked, wide = record[LAYOUT] & ((int64(1) << _LAYOUT_SHIFT) - 1), record[LAYOUT] >> _LAYOUT_SHIFT
    return unranked, wide, record[SIZE] - unranked - wide


@inlined
def list_slot(key, heads):
    """Return the slot of a list head."""
    return int64(mix(key) & uint64(heads.shape[0] - 1))


@inlined
def _count_hit(row, min_hits, index, buffers, touched, found):
    """Add a hit to a row: with its first hit it is touched, with hit ``min_hits`` a candidate; return how many are."""
    at = uint64(index.hits.ctypes.data) + row
    hits = load_u8(at) + uint8(1)
    store_u8(at, min(hits, MAX_HITS))
    buffers.touched[touched] = row
    buffers.candidates[found] = row
    return touched + int64(hits == 1), found + int64(hits == min_hits)


@inlined
def _count_list_hits(head, min_hits, index, buffers, touched, found):
    """Add a hit to each document of a list; see ``_count_hit``."""
    oldest = uint64(index.counters[OLDEST])
    mask = uint32(index.records.shape[0] - 1) & DOCUMENT_MASK
    address = head
    while address >= oldest:
        pointer = pointer_to(index.bases, address)
        address = load_u64(pointer)
        if address >= oldest:
            prefetch(pointer_to(index.bases, address))
        used = uint64(load_u16(pointer + uint64(8)))
        pointer += uint64(HEADER_BYTES)
        for k in range(used):
            row = uint64(load_u32(pointer + uint64(4) * k) & mask)
            touched, found = _count_hit(row, min_hits, index, buffers, touched, found)
    return touched, found


@inner_kernel
def find_by_keys(keys, index, buffers):
    """Write the rows of all documents that share a key, such as a band or block, to candidates; return how many."""
    touched, found = int64(0), int64(0)
    for i in range(keys.shape[0]):
        head = index.heads[list_slot(keys[i], index.heads)]
        touched, found = _count_list_hits(head, 1, index, buffers, touched, found)
    for k in range(touched):
        index.hits[buffers.touched[k]] = 0
    return found


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
def insert_by_keys(keys, document, index):
    """Insert a document into the lists of its keys."""
    slots, entries = np.empty(keys.shape[0], np.int64), np.empty(keys.shape[0], np.uint32)
    for i in range(keys.shape[0]):
        slots[i] = list_slot(keys[i], index.heads)
        entries[i] = uint32(document) & DOCUMENT_MASK
    append_entries(slots, entries, index)


#: Words per bucket.
BUCKET_WORDS = 16
#: Entries per bucket, on average, above which buckets are added; a bucket has room for 15, and those that are still to
#: give to a new bucket have twice as many as the others. Raising it saves memory, and makes more of them continue.
ENTRIES_PER_BUCKET = 8
#: The number of the first bucket that another one continues in, and of their chunk.
FIRST_FURTHER = 1 << 29
#: Tag bits of an entry, each of which allows one doubling of the table.
TAG_BITS = 5
#: A chunk of the table has 2**17 buckets, 8 MB.
BUCKETS_PER_CHUNK = 1 << 17
_CHUNK_BITS = 17
_IN_CHUNK = uint64(BUCKETS_PER_CHUNK - 1)
_TAG_MASK = uint64((1 << TAG_BITS) - 1)
_ENTRY_FLAG = uint32(1 << 31)
_ALL_BITS = uint32(0xFFFFFFFF)
_ENTRY_LANES = uint64(0xFFFE)
_LANES = ir.VectorType(ir.IntType(32), BUCKET_WORDS)
#: How many buckets ahead memory is prefetched.
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
def _address_of_bucket(bucket, index):
    return index.buckets[bucket >> uint64(_CHUNK_BITS)] + (bucket & _IN_CHUNK) * uint64(4 * BUCKET_WORDS)


@inlined
def _bucket_address(key, index):
    # Linear hashing: buckets from 2**level on are halves of the first ones.
    bit = uint64(1) << uint64(index.counters[LEVEL])
    bucket = key & (bit + bit - uint64(1))
    if bucket >= uint64(index.counters[BUCKETS]):
        bucket -= bit
    return _address_of_bucket(bucket, index)


@inlined
def _prefetch_bucket(keys, i, index):
    """Prefetch the bucket of a key some places ahead; at the first key, those of all up to it."""
    for k in range(i + _PREFETCH_BUCKETS if i > 0 else 0, min(i + _PREFETCH_BUCKETS + 1, keys.shape[0])):
        prefetch(_bucket_address(keys[k], index))


@inlined
def _next_bucket(bucket, index):
    return _address_of_bucket(uint64(load_u32(bucket)), index)


@inlined
def _is_current(document, index):
    """Return whether a document is still indexed: numbers wrap around, so it is within half the range of the first."""
    return ((document - uint32(index.counters[FIRST])) & DOCUMENT_MASK) < HALF_RANGE


@inlined
def _count_bucket_hits(bucket, first_entry, min_hits, index, buffers, touched, found):
    """Add a hit to each document of a bucket with the tag of an entry; see ``_count_hit``."""
    mask = uint32(index.records.shape[0] - 1) & DOCUMENT_MASK
    lanes = _words_below(bucket, first_entry, _ALL_BITS, uint32(1 << DOCUMENT_BITS)) & _ENTRY_LANES
    while lanes:
        row = uint64(load_u32(bucket + uint64(4) * trailing_zeros(lanes)) & mask)
        touched, found = _count_hit(row, min_hits, index, buffers, touched, found)
        lanes &= lanes - uint64(1)
    return touched, found


@leaf_kernel
def find_by_signatures(keys, min_hits, further, entries, index, buffers, found):
    """Add the rows of all documents with ``min_hits`` of the keys to the candidates; return how many there are.

    keys, further, entries: uint64[k], uint64[k], uint32[k], the last two buffers.
    """
    n_further, touched = int64(0), int64(0)
    for i in range(keys.shape[0]):
        _prefetch_bucket(keys, i, index)
        bucket, entry = _bucket_address(keys[i], index), _bucket_entry(keys[i], uint32(0), index)
        touched, found = _count_bucket_hits(bucket, entry, min_hits, index, buffers, touched, found)
        if load_u32(bucket):
            further[n_further], entries[n_further] = _next_bucket(bucket, index), entry
            prefetch(further[n_further])
            n_further += 1
    # All second buckets, then all third ones: so the next one of each has time to arrive.
    while n_further:
        n_left = int64(0)
        for i in range(n_further):
            bucket, entry = further[i], entries[i]
            touched, found = _count_bucket_hits(bucket, entry, min_hits, index, buffers, touched, found)
            if load_u32(bucket):
                further[n_left], entries[n_left] = _next_bucket(bucket, index), entry
                prefetch(further[n_left])
                n_left += 1
        n_further = n_left
    for k in range(touched):
        index.hits[buffers.touched[k]] = 0
    for k in range(found):
        # It must not become a candidate once more.
        index.hits[buffers.candidates[k]] = MAX_HITS
    return found


@inlined
def _free_lanes(bucket, first):
    expired = ~_words_below(bucket, first, DOCUMENT_MASK, HALF_RANGE)
    return (expired | _words_below(bucket, uint32(0), _ALL_BITS, uint32(1))) & _ENTRY_LANES


@inlined
def _add_entry(bucket, entry, first, index):
    """Add an entry to a bucket, the second one that it continues in, or a new second one."""
    lanes = _free_lanes(bucket, first)
    if not lanes:
        second = uint64(load_u32(bucket))
        at = _address_of_bucket(second, index)
        if second:
            lanes = _free_lanes(at, first)
        if not lanes:
            new = uint64(index.counters[FREE])
            if new:
                at = _address_of_bucket(new, index)
                index.counters[FREE] = load_u32(at)
            else:
                new = uint64(index.counters[FURTHER])
                index.counters[FURTHER] += 1
                at = _address_of_bucket(new, index)
            store_u32(at, uint32(second))
            store_u32(bucket, uint32(new))
            lanes = uint64(2)
        bucket = at
    store_u32(bucket + uint64(4) * trailing_zeros(lanes), entry)


@leaf_kernel
def insert_in_buckets(keys, document, index):
    """Insert a document under its keys.

    A bucket has 16 words: the number of the bucket that it continues in, or 0, then 15 entries of a tag of the key and
    a document. An entry of an expired document is overwritten.
    """
    first = uint32(index.counters[FIRST])
    for i in range(keys.shape[0]):
        _prefetch_bucket(keys, i, index)
        entry = _bucket_entry(keys[i], uint32(document) & DOCUMENT_MASK, index)
        _add_entry(_bucket_address(keys[i], index), entry, first, index)
    index.counters[KEYS] += keys.shape[0]


@inlined
def _split_bucket(index, counters):
    """Add a bucket, which gets the entries of another one whose next bit of the tag is set."""
    first = uint32(counters[FIRST])
    bit = uint32(DOCUMENT_BITS + counters[LEVEL] - counters[TAG_SHIFT])
    low = _address_of_bucket(uint64(counters[BUCKETS] - (int64(1) << counters[LEVEL])), index)
    high = _address_of_bucket(uint64(counters[BUCKETS]), index)
    number = load_u32(low)
    store_u32(low, uint32(0))
    n_low, n_high = uint64(0), uint64(0)
    for at in range(uint64(4), uint64(4 * BUCKET_WORDS), uint64(4)):
        entry = load_u32(low + at)
        store_u32(low + at, uint32(0))
        if entry != 0 and _is_current(entry, index):
            if (entry >> bit) & uint32(1):
                n_high += uint64(4)
                store_u32(high + n_high, entry)
            else:
                n_low += uint64(4)
                store_u32(low + n_low, entry)
    while number:
        bucket = _address_of_bucket(uint64(number), index)
        for at in range(uint64(4), uint64(4 * BUCKET_WORDS), uint64(4)):
            entry = load_u32(bucket + at)
            store_u32(bucket + at, uint32(0))
            if entry != 0 and _is_current(entry, index):
                _add_entry(high if (entry >> bit) & uint32(1) else low, entry, first, index)
        following = load_u32(bucket)
        store_u32(bucket, uint32(counters[FREE]))
        counters[FREE] = number
        number = following
    counters[BUCKETS] += 1
    counters[LEVEL] += counters[BUCKETS] == int64(2) << counters[LEVEL]


@leaf_kernel
def add_buckets(keys, index):
    """Add buckets until a number of further keys fits well; return whether there is memory for them.

    One after the other, so that no document waits for a table to be copied, and there are never two tables.
    """
    counters = index.counters
    # The entries of a bucket that is split are in three others at most before it is free.
    while counters[FURTHER] + keys + 4 <= counters[FURTHER_LIMIT]:
        fits = counters[KEYS] - counters[DROPPED_KEYS] + keys <= ENTRIES_PER_BUCKET * counters[BUCKETS]
        if fits or counters[LEVEL] - counters[TAG_SHIFT] == TAG_BITS:
            return True
        if counters[BUCKETS] == counters[BUCKET_LIMIT]:
            return False
        _split_bucket(index, counters)
    return False


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
def pair_signatures(order, unranked, credit, bits, salt):
    """Return the keys of a document: its rarest features, and signatures of two others in the same cell of 2**bits.

    order: uint64, its features, in an order that all documents share; unranked: how many are keys by themselves, all of
    them if bits < 0. credit: features are taken until they earn it, or all are taken; raising it makes more, and more
    frequent, keys. bits: raising it makes fewer keys, from more frequent features. salt: uint64, odd. For at most 2 in
    B salts, two given features share a cell (multiply-shift: Dietzfelbinger et al. 1997). So n features make at most
    n * n / B keys on average, whoever chose them, as long as the salt is secret.
    """
    size = order.shape[0]
    singles = size if bits < 0 else unranked
    hashed = np.empty(size, np.uint64)
    # The last feature of each cell, the one before it, and how many there are before it.
    last = np.full(1 << max(bits, 0), -1)
    previous = np.empty(size, np.int64)
    before = np.empty(size, np.int64)
    shift = uint64(63 - bits)
    taken = int64(0)
    credit_so_far = int64(0)
    n_signatures = int64(0)
    while taken < size and credit_so_far < credit:
        hashed[taken] = mix(order[taken]) * salt
        if taken < singles:
            credit_so_far += 1
            n_signatures += 1
        else:
            cell = int64((hashed[taken] >> shift) >> uint64(1))
            previous[taken] = last[cell]
            before[taken] = 0 if last[cell] < 0 else before[last[cell]] + 1
            credit_so_far += last[cell] >= 0
            n_signatures += before[taken]
            last[cell] = taken
        taken += 1
    signatures = np.empty(n_signatures, np.uint64)
    singles = min(singles, taken)
    for i in range(singles):
        signatures[i] = mix(hashed[i])
    at = singles
    for i in range(singles, taken):
        k = previous[i]
        while k >= 0:
            # The earlier feature comes first, so that a signature has the same key in each document.
            signatures[at] = mix(hashed[k] * _SIGNATURE_FACTOR + hashed[i])
            at += 1
            k = previous[k]
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
    """Return the signatures (uint64) of document i.

    Empty if the document comes with keys, or is not inserted and no document of its size range has been.
    """
    begin, end = documents.heads[i], documents.heads[i + 1]
    row = plan_row(index.plan, end - begin)
    if row < 0 or not (is_inserted or index.plan[row, ENTERED]):
        return np.empty(0, np.uint64)
    plan = index.plan[row]
    credit = insertion_credit(rule, end - begin, plan[SHARED_KEYS])
    salt = index.salt + uint64(2 * row)
    return pair_signatures(documents.order[begin:end], documents.unranked[i], credit, plan[CELL_BITS], salt)


@kernel
def find_candidates(order, unranked, rule, signatures, index, buffers):
    """Write the rows of all documents that may match a set to buffers.candidates; return how many.

    order: uint64, features in the window's order; signatures: from ``insertion_signatures``.
    """
    plan, size = index.plan, order.shape[0]
    own_row, smallest = plan_row(plan, size), smallest_partner(rule, size)
    found = int64(0)
    for row in range(plan_row(plan, smallest), plan.shape[0]):
        low = max(plan[row, MIN_SIZE], smallest)
        required = required_overlap(rule, size, low)
        if required > size:
            break
        if plan[row, ENTERED] == 0:
            continue
        shared_keys = plan[row, SHARED_KEYS]
        keys = signatures
        if row != own_row:
            salt = index.salt + uint64(2 * row)
            keys = pair_signatures(order, unranked, size - required + shared_keys, plan[row, CELL_BITS], salt)
        further, entries = np.empty(keys.shape[0], np.uint64), np.empty(keys.shape[0], np.uint32)
        found = find_by_signatures(keys, shared_keys, further, entries, index, buffers, found)
    for k in range(found):
        index.hits[buffers.candidates[k]] = 0
    return found


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
        count = find_candidates(documents.order[begin:end], documents.unranked[i], rule, signatures, index, buffers)
    else:
        count = find_by_keys(documents.keys[i], index, buffers)
    if count == 0:
        return int64(0), count
    _set_flags(documents, i, buffers.flags, 1)
    written = _compare_candidates(i, count, documents, rule, window, index, buffers, kind, list_all, out, at)
    _set_flags(documents, i, buffers.flags, 0)
    return written, count


@inner_kernel
def _insert(i, documents, signatures, index, buffers, kind):
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
        insert_in_buckets(signatures, document, index)
        index.plan[plan_row(index.plan, size), ENTERED] += 1
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
            keys = documents.keys.shape[1]
            counters[REQUESTED] = 8 * (size + 2 + keys) + keys * (HEADER_BYTES + 4 * BLOCK_ENTRIES)
            if counters[END] - counters[CURSOR] < counters[REQUESTED]:
                return i, NEEDS_MEMORY
            if kind == BY_PREFIX and not add_buckets(signatures.shape[0], index):
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
            _insert(i, documents, signatures, index, buffers, kind)
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
