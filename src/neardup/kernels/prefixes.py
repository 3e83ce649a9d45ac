"""The exact join: an index of prefixes, its lookup, and the verification of candidates.

Sets are numbered by rank, from the smallest to the largest, so that each set searches for partners among those before
it (AllPairs and PPJoin: Mann, Augsten & Bouros, PVLDB 9 (2016), 3-4; bitmaps: Sandes, Teodoro & Melo, arXiv
1711.07295).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, int64, uint8, uint32, uint64

from neardup.kernels.bits import load_u64, mix, popcount, prefetch, trailing_zeros
from neardup.kernels.blocks import are_intact, check_slots
from neardup.kernels.bounds import largest_partner, required_overlap, smallest_partner
from neardup.kernels.compilation import inlined, inner_kernel, kernel, leaf_kernel
from neardup.kernels.counts import sort_prefix, write_prefixes
from neardup.kernels.tables import clear_table, contains_key, find_slot, table_buffer

#: The fields of an index entry: rank, tag of the key, position of the key among the set's shared features.
_RANK_SHIFT = uint64(32)
_TAG_SHIFT = uint64(16)
LOW_BITS = uint64(0xFFFF)
LAST_POSITION = 0xFFFF
#: Odd, so that multiplication is a bijection.
_MULTIPLIER = uint64(0xD6E8FEB86659FD93)
#: Lists with more entries are searched by bisection for their first rank.
_LONG_LIST = 8
#: How many sets ahead memory is prefetched while the index is filled.
_PREFETCH_RANKS = 4
#: How many entries ahead memory is prefetched while those of a key are compared.
_PREFETCH_ENTRIES = 16


class RankedSets(NamedTuple):
    """The sets of a join by rank.

    addresses: uint64[r]; sizes, shared (how many features other sets have, too), lengths (of prefixes): int64[r];
    bitmaps: uint64[r, 8]; starts: int64[r], into keys; keys: uint64, the prefixes. If features are not stored, sizes,
    shared and lengths are int32, bitmaps may have fewer words, and addresses, starts and keys are empty.
    """

    addresses: np.ndarray
    sizes: np.ndarray
    shared: np.ndarray
    lengths: np.ndarray
    bitmaps: np.ndarray
    starts: np.ndarray
    keys: np.ndarray


class PrefixIndex(NamedTuple):
    """Inverted lists: bucket first + b has the entries entries[heads[b]:heads[b + 1]], in rank order.

    An entry is a rank, a tag of the key, and the position of the key in the set's prefix. The index covers all 2**bits
    buckets, those of one part of the key space, or a share of them while it is filled.
    """

    heads: np.ndarray
    entries: np.ndarray
    bits: int
    first: int


@inlined
def scrambled_key(key):
    """Return the bits from which the bucket and tag of a key are taken; the key's leading count is dropped."""
    return (key << uint64(8)) * _MULTIPLIER


@inlined
def bucket_of_key(key, bits):
    """Return the bucket of a key."""
    return int64(scrambled_key(key) >> uint64(64 - bits))


@inlined
def tag_of_key(key, bits):
    """Return the 16 bits of a key below those of its bucket."""
    return (scrambled_key(key) >> uint64(48 - bits)) & LOW_BITS


@inlined
def pack_entry(rank, tag, position):
    """Return the entry of a key; a position above LAST_POSITION is lowered to it, which only loosens the bound."""
    return (uint64(rank) << _RANK_SHIFT) | (tag << _TAG_SHIFT) | uint64(min(position, LAST_POSITION))


@inlined
def entry_rank(entry):
    """Return the rank of an entry."""
    return int64(entry >> _RANK_SHIFT)


@inlined
def entry_tag(entry):
    """Return the tag of an entry."""
    return (entry >> _TAG_SHIFT) & LOW_BITS


@inlined
def entry_position(entry):
    """Return the position of an entry's key among the shared features of its set."""
    return int64(entry & LOW_BITS)


@kernel
def index_lengths(sets, rule, out):
    """Write how many keys of each set to index: those that a partner no smaller than it can share."""
    for rank in range(sets.sizes.shape[0]):
        size = sets.sizes[rank]
        out[rank] = min(max(sets.shared[rank] - required_overlap(rule, size, size) + 1, 0), sets.lengths[rank])


@leaf_kernel
def _prefetch_heads(rank, sets, count, index):
    """Prefetch the list heads of the first ``count`` keys of a rank."""
    base, keys, start = uint64(index.heads.ctypes.data), sets.keys, sets.starts[rank]
    for i in range(start, start + count):
        prefetch(base + uint64(4 * (bucket_of_key(keys[i], index.bits) - index.first)))


@kernel
def count_entries(ranks, sets, lengths, index):
    """Add to heads[b + 1] (zeros at first) how many of the first lengths[r] keys of the ranks belong to list b."""
    heads, keys, starts = index.heads, sets.keys, sets.starts
    for m in range(ranks.shape[0]):
        rank = ranks[m]
        if m + _PREFETCH_RANKS < ranks.shape[0]:
            _prefetch_heads(ranks[m + _PREFETCH_RANKS], sets, lengths[ranks[m + _PREFETCH_RANKS]], index)
        for i in range(lengths[rank]):
            list_number = bucket_of_key(keys[starts[rank] + i], index.bits) - index.first
            if 0 <= list_number < heads.shape[0] - 1:
                heads[list_number + 1] += uint32(1)


@kernel
def begin_lists(heads):
    """Turn counts into offsets: list b begins at heads[b]. Return the number of entries."""
    entries = int64(0)
    for b in range(heads.shape[0]):
        entries += int64(heads[b])
        heads[b] = uint32(entries)
    return entries


@kernel
def insert_entries(ranks, sets, lengths, index):
    """Insert the first lengths[r] keys of the ranks; heads[b] is where the next entry of list b goes."""
    heads, entries, keys, starts = index.heads, index.entries, sets.keys, sets.starts
    for m in range(ranks.shape[0]):
        rank = ranks[m]
        if m + _PREFETCH_RANKS < ranks.shape[0]:
            _prefetch_heads(ranks[m + _PREFETCH_RANKS], sets, lengths[ranks[m + _PREFETCH_RANKS]], index)
        for i in range(lengths[rank]):
            key = keys[starts[rank] + i]
            list_number = bucket_of_key(key, index.bits) - index.first
            if 0 <= list_number < heads.shape[0] - 1:
                entries[heads[list_number]] = pack_entry(rank, tag_of_key(key, index.bits), i)
                heads[list_number] += uint32(1)


@kernel
def finish_lists(index):
    """Move heads[b] back to the beginning of list b, which is the end of the previous list, and sort lists by rank.

    Returns the length of the longest list, and the number of pairs of entries that share a list.
    """
    heads, entries = index.heads, index.entries
    longest = int64(0)
    shared_list_pairs = int64(0)
    for b in range(heads.shape[0] - 1, 0, -1):
        heads[b] = heads[b - 1]
    heads[0] = uint32(0)
    for b in range(heads.shape[0] - 1):
        length = int64(heads[b + 1]) - int64(heads[b])
        longest = max(longest, length)
        shared_list_pairs += length * (length - 1) // 2
        for i in range(int64(heads[b]) + 1, int64(heads[b + 1])):
            # An entry begins with its rank.
            if entries[i - 1] > entries[i]:
                # NumPy's sort would take a second to compile.
                sort_prefix(entries[heads[b] : heads[b + 1]], length)
                break
    return longest, shared_list_pairs


@leaf_kernel
def _first_at_least(entries, low, high, rank):
    """Return the first index in [low, high) of an entry with this rank or a higher one."""
    while low < high:
        middle = (low + high) // 2
        if entry_rank(entries[middle]) < rank:
            low = middle + 1
        else:
            high = middle
    return low


@leaf_kernel
def _prefetch_lists(following, later, sets, index):
    """Prefetch the lists of the following rank, and the list heads of a later one."""
    _prefetch_heads(later, sets, sets.lengths[later], index)
    entries, heads, keys, start = uint64(index.entries.ctypes.data), index.heads, sets.keys, sets.starts[following]
    for i in range(start, start + sets.lengths[following]):
        prefetch(entries + uint64(8) * uint64(heads[bucket_of_key(keys[i], index.bits)]))


@inlined
def add_candidate(candidate, remaining, size, sizes, rule, flags, candidates, count):
    """Add a set that shares a key to the candidates, once, if enough features remain for a match; return their number.

    remaining: how many features can be shared from this key on; size: of the set that searches; sizes: of the others;
    flags: 1 for candidates. Two matching sets share nothing before their first common key, so the bound holds there,
    and each match is found; a key that is equal by chance excludes nothing.
    """
    if flags[candidate] == 0 and remaining >= required_overlap(rule, int64(sizes[candidate]), size):
        flags[candidate] = int32(1)
        candidates[count] = candidate
        count += 1
    return count


@inlined
def list_range(heads, entries, bucket, first):
    """Return where a list begins, in long lists at the first entry of this rank or a higher one, and where it ends."""
    at, high = int64(heads[bucket]), int64(heads[bucket + 1])
    if high - at > _LONG_LIST:
        at = _first_at_least(entries, at, high, first)
    return at, high


@inner_kernel
def partner_ranks(rank, sets, rule, ranks_of_size):
    """Return the range of earlier ranks that can match a set: from the first to before the last."""
    size = sets.sizes[rank]
    smallest = smallest_partner(rule, size)
    largest = largest_partner(rule, size, sets.shared[rank], smallest)
    return int64(ranks_of_size[smallest]), int64(min(ranks_of_size[largest + 1], rank))


@leaf_kernel
def _find_candidates(rank, sets, index, rule, ranks_of_size, flags, candidates):
    """Write to candidates the earlier ranks that share a prefix key and pass the length and position bounds.

    flags: int32[r], zeros at first, then 1 for the candidates.
    """
    first, last = partner_ranks(rank, sets, rule, ranks_of_size)
    sizes, shared, keys = sets.sizes, sets.shared, sets.keys
    heads, entries, bits = index.heads, index.entries, index.bits
    size, n_shared, start = int64(sizes[rank]), int64(shared[rank]), sets.starts[rank]
    count = 0
    for i in range(sets.lengths[rank]):
        bucket, tag = bucket_of_key(keys[start + i], bits), tag_of_key(keys[start + i], bits)
        at, high = list_range(heads, entries, bucket, first)
        while at < high:
            entry = entries[at]
            at += 1
            other = entry_rank(entry)
            if other >= last:
                break
            if other < first or entry_tag(entry) != tag:
                continue
            remaining = min(n_shared - i, shared[other] - entry_position(entry))
            count = add_candidate(other, remaining, size, sizes, rule, flags, candidates, count)
    return count


@inner_kernel
def set_table(address, size, room):
    """Return a hash table, in the front of a buffer, of the features at an address."""
    table = clear_table(room, size)
    for i in range(size):
        feature = load_u64(address + uint64(8 * i))
        table[find_slot(feature, table)] = feature
    return table


@inner_kernel
def count_overlap(address, size, table, required):
    """Count the features at an address that a hash table contains; stop once ``required`` cannot be reached."""
    misses = size - required
    hits = 0
    for i in range(size):
        if contains_key(table, load_u64(address + uint64(8 * i))):
            hits += 1
        else:
            misses -= 1
            if misses < 0:
                return hits
    return hits


@inner_kernel
def clear_candidates(count, flags, candidates):
    """Reset the flags of the first ``count`` candidates."""
    for c in range(count):
        flags[candidates[c]] = 0


@inlined
def hamming_distance(row, bitmaps, other_row, other_bitmaps):
    """Return the number of bits in which bitmaps[row] and other_bitmaps[other_row] differ."""
    distance = uint64(0)
    for w in range(bitmaps.shape[1]):
        distance += popcount(bitmaps[row, w] ^ other_bitmaps[other_row, w])
    return int64(distance)


@leaf_kernel
def overlap_bound(left, right, sizes, bitmaps):
    """Return an upper bound of the overlap of two sets, by their bitmaps and sizes."""
    return (sizes[left] + sizes[right] - hamming_distance(left, bitmaps, right, bitmaps)) // 2


@inner_kernel
def verify_candidates(rank, count, floor, sets, rule, scratch, written):
    """Append (other, rank, overlap) to the pairs for the first ``count`` candidates that match and are >= floor.

    scratch: (flags, candidates, room, pairs): int32[r], zeros afterwards; int64[r]; uint64, ``table_size`` of the
    largest set; int64[p, 3], with space for count more pairs. Returns (pairs written in all, candidates, verified).
    """
    flags, candidates, room, pairs = scratch
    sizes, addresses, bitmaps = sets.sizes, sets.addresses, sets.bitmaps
    table = room[:0]
    at_bitmaps = uint64(bitmaps.ctypes.data)
    size = sizes[rank]
    n_candidates = 0
    n_verified = 0
    for c in range(count):
        other = candidates[c]
        flags[other] = 0
        if other < floor:
            continue
        if c + 2 < count:
            prefetch(at_bitmaps + uint64(64 * candidates[c + 2]))
        n_candidates += 1
        other_size = sizes[other]
        required = required_overlap(rule, other_size, size)
        if overlap_bound(rank, other, sizes, bitmaps) < required:
            continue
        if table.shape[0] == 0:
            table = set_table(addresses[rank], size, room)
        n_verified += 1
        overlap = count_overlap(addresses[other], other_size, table, required)
        if overlap >= required:
            pairs[written, 0] = other
            pairs[written, 1] = rank
            pairs[written, 2] = overlap
            written += 1
    return written, n_candidates, n_verified


@kernel
def match_ranks(begin, end, sets, index, rule, ranks_of_size, scratch):
    """Find all earlier partners of the ranks in [begin, end); write (earlier, later, overlap) to the pairs.

    ranks_of_size[m]: the first rank of size m or more. scratch: as for ``verify_candidates``, with space for at least r
    pairs. Stops if the pairs of the next rank may not fit. Returns (rank to continue from, pairs written, candidates,
    verified).
    """
    written = int64(0)
    n_candidates = 0
    n_verified = 0
    rank = begin
    last = sets.sizes.shape[0] - 1
    while rank < end:
        _prefetch_lists(min(rank + 1, last), min(rank + 2, last), sets, index)
        count = _find_candidates(rank, sets, index, rule, ranks_of_size, scratch[0], scratch[1])
        if written + count > scratch[3].shape[0]:
            clear_candidates(count, scratch[0], scratch[1])
            break
        written, new_candidates, new_verified = verify_candidates(rank, count, int64(0), sets, rule, scratch, written)
        n_candidates += new_candidates
        n_verified += new_verified
        rank += 1
    return rank, written, n_candidates, n_verified


#: The files of an index on disk that its kernels read, by their numbers in ``CheckedFiles``.
SIZES, BITMAPS, COUNTS, HEADS, ENTRIES = range(5)


@kernel
def find_partners(begin, end, queries, indexed, index, files, rule, scratch, out):
    """Find the indexed sets of any size that may match the queries [begin, end); write (query, indexed set) to out.

    queries: RankedSets, whose addresses are not used. indexed: (sizes uint32[n], bitmaps uint64[n, 8]) of the indexed
    sets, whose whole prefixes are in the index, and all of whose features count as shared. files: CheckedFiles, of
    which ``indexed`` and ``index`` are the arrays. scratch: (flags, candidates): int32[n] zeros, int64[n]. out:
    int64[p, 2], with space for at least n. Stops if the results of the next query may not fit. Returns (query to
    continue from, pairs written); or (query, -1 - number of a file) if that file is damaged, and scratch may not be
    used again.
    """
    sizes, bitmaps = indexed
    flags, candidates = scratch
    keys, query_bitmaps, heads, entries, bits = queries.keys, queries.bitmaps, index.heads, index.entries, index.bits
    written = 0
    query = begin
    while query < end:
        size = queries.sizes[query]
        shared = queries.shared[query]
        start = queries.starts[query]
        count = 0
        for i in range(queries.lengths[query]):
            key = keys[start + i]
            bucket = bucket_of_key(key, bits)
            tag = tag_of_key(key, bits)
            if not are_intact(files, HEADS, 4 * bucket, 4 * bucket + 8):
                return query, -1 - HEADS
            first, last = int64(heads[bucket]), int64(heads[bucket + 1])
            if first == last:
                continue
            if first > last or last > entries.shape[0]:
                return query, -1 - HEADS
            if not are_intact(files, ENTRIES, 8 * first, 8 * last):
                return query, -1 - ENTRIES
            for e in range(first, last):
                entry = entries[e]
                other = entry_rank(entry)
                if entry_tag(entry) != tag:
                    continue
                if other >= sizes.shape[0]:
                    return query, -1 - ENTRIES
                if not are_intact(files, SIZES, 4 * other, 4 * other + 4):
                    return query, -1 - SIZES
                remaining = min(shared - i, int64(sizes[other]) - entry_position(entry))
                count = add_candidate(other, remaining, size, sizes, rule, flags, candidates, count)
        if written + count > out.shape[0]:
            clear_candidates(count, flags, candidates)
            break
        for c in range(count):
            other = candidates[c]
            flags[other] = 0
            other_size = int64(sizes[other])
            if not are_intact(files, BITMAPS, 64 * other, 64 * other + 64):
                return query, -1 - BITMAPS
            apart = hamming_distance(query, query_bitmaps, other, bitmaps)
            if (size + other_size - apart) // 2 >= required_overlap(rule, other_size, size):
                out[written, 0] = query
                out[written, 1] = other
                written += 1
        query += 1
    return query, written


@kernel
def find_partners_of_one(features, counts, indexed, index, files, rule, scratch, out):
    """Write to out the indexed sets that may match one set; return how many, or -1 - number of a damaged file.

    It calls ``write_prefixes`` and ``find_partners``. features: uint64[s], the set; counts: those of the indexed sets;
    out: int64[n, 2].
    """
    size = features.shape[0]
    shift = uint64(64) - trailing_zeros(uint64(counts.shape[0]))
    if not check_slots(files, COUNTS, features, shift):
        return -1 - COUNTS
    sizes = np.full(1, size, np.int64)
    query = RankedSets(
        np.full(1, uint64(features.ctypes.data), np.uint64),
        sizes,
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty((1, 8), np.uint64),
        np.empty(1, np.int64),
        np.empty(size + 1, np.uint64),
    )
    results = query.shared, query.lengths, query.bitmaps, query.starts, query.keys, 0
    write_prefixes(query.addresses, sizes, np.zeros(1, np.int64), shift, counts, rule, results)
    return find_partners(0, 1, query, indexed, index, files, rule, scratch, out)[1]


@kernel
def overlap_bounds_with_one(features, counts, sizes, bitmaps):
    """Return an upper bound of the overlap of each of some sets with one set, by their bitmaps: int64[n].

    features: uint64[s], the one set; counts: uint8, of all features of the others by slot; sizes: uint32[n] and
    bitmaps: uint64[n, 8] of the others.
    """
    shift = uint64(64) - trailing_zeros(uint64(counts.shape[0]))
    bits = np.zeros(8, np.uint64)
    n_known, distinct = int64(0), int64(0)
    for i in range(features.shape[0]):
        if counts[int64(features[i] >> shift)] > uint8(0):
            word, bit = int64((features[i] >> uint64(6)) & uint64(7)), uint64(1) << (features[i] & uint64(63))
            n_known += 1
            distinct += int64(bits[word] & bit == uint64(0))
            bits[word] |= bit
    bounds = np.empty(sizes.shape[0], np.int64)
    for d in range(sizes.shape[0]):
        common_bits = uint64(0)
        for w in range(8):
            common_bits += popcount(bits[w] & bitmaps[d, w])
        # If several features share a bit, all of them may be in the set.
        shared = int64(common_bits) + n_known - distinct if common_bits != uint64(0) else int64(0)
        bounds[d] = min(shared, int64(sizes[d]))
    return bounds


@kernel
def overlaps_with_one(features, other_features, sizes, rule):
    """Return int64[n, 3]: the overlap of each of some sets with one set, -1 below the threshold, and both sizes.

    features: uint64[s], the one set; other_features: uint64, the other sets, concatenated; sizes: int64[n], theirs.
    """
    size = features.shape[0]
    room = table_buffer(size)
    table = set_table(uint64(features.ctypes.data), size, room)
    counts = np.empty((sizes.shape[0], 3), np.int64)
    address = uint64(other_features.ctypes.data)
    for d in range(sizes.shape[0]):
        required = required_overlap(rule, sizes[d], size)
        overlap = count_overlap(address, sizes[d], table, required)
        counts[d] = overlap if overlap >= required else -1, size, sizes[d]
        address += uint64(8 * sizes[d])
    return counts


@kernel
def overlaps_of_pairs(left, right, addresses, sizes, rule, overlaps):
    """Write the overlap of each pair of documents, or -1 if it is below the threshold.

    left, right: int64[p], pairs with equal right sides adjacent; addresses, sizes: of all documents; the addresses of
    those in pairs must be valid.
    """
    longest = 1
    for p in range(right.shape[0]):
        longest = max(longest, sizes[right[p]])
    room = table_buffer(longest)
    table = room
    entered = int64(-1)
    for p in range(left.shape[0]):
        size = sizes[right[p]]
        if right[p] != entered:
            entered = right[p]
            table = set_table(addresses[entered], size, room)
        required = required_overlap(rule, sizes[left[p]], size)
        overlap = count_overlap(addresses[left[p]], sizes[left[p]], table, required)
        overlaps[p] = overlap if overlap >= required else -1


@leaf_kernel
def _find_kept_candidates(rank, sets, chains, rule, flags, candidates):
    """Write to candidates the kept ranks that share a prefix key and pass the bounds, as ``_find_candidates`` does."""
    heads, following, entries, bits = chains
    sizes, shared, keys, start = sets.sizes, sets.shared, sets.keys, sets.starts[rank]
    count = 0
    for i in range(sets.lengths[rank]):
        key = keys[start + i]
        tag = tag_of_key(key, bits)
        at = heads[bucket_of_key(key, bits)]
        while at >= 0:
            entry = entries[at]
            at = following[at]
            if entry_tag(entry) != tag:
                continue
            other = entry_rank(entry)
            remaining = min(shared[rank] - i, shared[other] - entry_position(entry))
            count = add_candidate(other, remaining, sizes[rank], sizes, rule, flags, candidates, count)
    return count


@kernel
def insert_kept(ranks, sets, chains, entry_count):
    """Insert the prefixes of ranks into the index of ``match_with_kept``; return the number of entries."""
    heads, following, entries, bits = chains
    keys, starts, lengths = sets.keys, sets.starts, sets.lengths
    for r in range(ranks.shape[0]):
        rank = ranks[r]
        for i in range(lengths[rank]):
            key = keys[starts[rank] + i]
            bucket = bucket_of_key(key, bits)
            entries[entry_count] = pack_entry(rank, tag_of_key(key, bits), i)
            following[entry_count] = heads[bucket]
            heads[bucket] = entry_count
            entry_count += 1
    return entry_count


@kernel
def match_with_kept(ranks, verdicts_known, sets, chains, entry_count, rule, scratch):
    """Match ranks, in keep order, with those kept before them, and keep those that match none.

    verdicts_known: all verdicts are given, and dropped ranks are matched with those kept after them. chains: (heads,
    following, entries, bits), an index of linked lists: int32[2**bits], -1 at first; int32[k]; uint64[k]. used: the
    number of entries used. scratch: as for ``match_ranks``; the pairs are (kept, dropped, overlap). Returns (ranks
    done, entries used, pairs written).
    """
    written = int64(0)
    done = 0
    while done < ranks.shape[0]:
        rank = ranks[done]
        count = _find_kept_candidates(rank, sets, chains, rule, scratch[0], scratch[1])
        if written + count > scratch[3].shape[0]:
            clear_candidates(count, scratch[0], scratch[1])
            break
        before = written
        written, _, _ = verify_candidates(
            rank, count, rank + 1 if verdicts_known else int64(0), sets, rule, scratch, written
        )
        if written == before and not verdicts_known:
            entry_count = insert_kept(ranks[done : done + 1], sets, chains, entry_count)
        done += 1
    return done, entry_count, written


class KeyEntries(NamedTuple):
    """Sets at keys, in any order.

    keys, previous_keys: uint64[e], the key, and the key before it in the set's prefix, 0 for none; rows: int64[e], the
    sets; sizes: int32[e]; remaining: int32[e], how many features of each set are at the key or after it, negative if
    the set does not look for larger ones there.
    """

    keys: np.ndarray
    previous_keys: np.ndarray
    rows: np.ndarray
    sizes: np.ndarray
    remaining: np.ndarray


@inner_kernel
def _sort_by_size(order, sizes, buffer):
    """Sort the numbers of some entries by the sizes of their sets; buffer: uint64."""
    for i in range(order.shape[0]):
        buffer[i] = (uint64(sizes[order[i]]) << uint64(32)) | uint64(order[i])
    sort_prefix(buffer, order.shape[0])
    for i in range(order.shape[0]):
        order[i] = int64(buffer[i] & uint64(0xFFFFFFFF))


@kernel
def pairs_by_key(begin, order, entries, groups, first_reference, rule, pairs):
    """Write the rows of two sets that share a key and may match by their sizes, the smaller row first: int64[p, 2].

    order: int64[e], the numbers of the entries by key; those of one key are sorted further, by size. groups: sets with
    equal groups are not compared, or empty; first_reference: two rows from this number on are not compared. Two sets
    that also share the previous key are left to that key. pairs must have space for the largest group of one key.
    Returns (position in ``order`` to continue from, pairs written).
    """
    keys, previous_keys, rows, sizes, remaining = entries
    count = order.shape[0]
    base, stride = uint64(keys.ctypes.data), uint64(keys.strides[0])
    buffer = np.empty(64, np.uint64)
    written = 0
    end = begin
    for at in range(begin, count):
        if at + _PREFETCH_ENTRIES < count:
            prefetch(base + stride * uint64(order[at + _PREFETCH_ENTRIES]))
        if at == end:
            while end < count and keys[order[end]] == keys[order[at]]:
                end += 1
            if end - at > buffer.shape[0]:
                buffer = np.empty(end - at, np.uint64)
            if end - at > 1:
                _sort_by_size(order[at:end], sizes, buffer)
        if written + end - at > pairs.shape[0]:
            return at, written
        i = order[at]
        for j in order[at + 1 : end]:
            smaller, larger = i, j
            if sizes[i] == sizes[j] and rows[i] > rows[j]:
                smaller, larger = j, i
            least = required_overlap(rule, int64(sizes[smaller]), int64(sizes[larger]))
            if remaining[smaller] < least:
                if sizes[j] > sizes[i]:
                    # Larger sets need an overlap at least as large.
                    break
                continue
            if abs(remaining[larger]) < least:
                continue
            if previous_keys[larger] != 0 and previous_keys[smaller] == previous_keys[larger]:
                continue
            left, right = min(rows[i], rows[j]), max(rows[i], rows[j])
            if left >= first_reference or left == right or (groups.shape[0] > 0 and groups[i] == groups[j]):
                continue
            pairs[written, 0] = left
            pairs[written, 1] = right
            written += 1
    return count, written


_BAND_FACTOR = uint64(0x9FB21C651E98DF25)


@kernel
def band_keys(minima, rows, out):
    """Write a hash of each band of ``rows`` consecutive minima: minima uint64[d, K], out uint64[d, K // rows]."""
    for d in range(out.shape[0]):
        for band in range(out.shape[1]):
            value = uint64(band + 1) * _BAND_FACTOR
            for i in range(band * rows, (band + 1) * rows):
                value = mix(value ^ minima[d, i]) + _BAND_FACTOR
            out[d, band] = value


@kernel
def pairs_by_band(band, begin, end, order, keys, vectors, first_reference, rule, room, pairs):
    """Verify the pairs of documents order[i], order[j] with i in [begin, end), j > i and equal keys in this band.

    order: int64[n], by the keys of this band and then by number; keys: uint64[n, bands]; vectors: (addresses, sizes) of
    the n sets, or no addresses if features are not stored: then pairs are listed with an overlap of -1 and not
    verified; first_reference: two sets from this number on are not compared; room: uint64, ``table_size`` of the
    largest set; pairs: int64[p, 3], with space for (left, right, overlap) of all partners of a set. Pairs that share an
    earlier band were found there and are skipped. Returns (index to continue from, pairs written, candidates,
    verified).
    """
    addresses, sizes = vectors
    count = order.shape[0]
    written = 0
    n_candidates = 0
    n_verified = 0
    for i in range(begin, end):
        left = order[i]
        if left >= first_reference:
            continue
        j = i + 1
        while j < count and keys[order[j], band] == keys[left, band]:
            j += 1
        if written + j - i > pairs.shape[0]:
            return i, written, n_candidates, n_verified
        table = room[:0]
        for k in range(i + 1, j):
            right = order[k]
            earlier = 0
            while earlier < band and keys[left, earlier] != keys[right, earlier]:
                earlier += 1
            if earlier < band:
                continue
            n_candidates += 1
            required = required_overlap(rule, sizes[left], sizes[right])
            if required > min(sizes[left], sizes[right]):
                continue
            n_verified += 1
            if addresses.shape[0] == 0:
                pairs[written, 0] = left
                pairs[written, 1] = right
                pairs[written, 2] = -1
                written += 1
                continue
            if table.shape[0] == 0:
                table = set_table(addresses[left], sizes[left], room)
            overlap = count_overlap(addresses[right], sizes[right], table, required)
            if overlap >= required:
                pairs[written, 0] = left
                pairs[written, 1] = right
                pairs[written, 2] = int64(overlap)
                written += 1
    return end, written, n_candidates, n_verified
