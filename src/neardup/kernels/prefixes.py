"""The exact join proper: an index of prefixes, its probing, and the verification of what it brings.

Sets are numbered by rank, from the smallest to the largest, so that each looks for partners among those
before it (AllPairs and PPJoin: Mann, Augsten & Bouros, PVLDB 9 (2016), 3-4; bitmaps: Sandes, Teodoro & Melo,
arXiv 1711.07295).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int32, int64, njit, uint8, uint32, uint64

from neardup.kernels.bits import load_u64, mix, popcount, prefetch, trailing_zeros
from neardup.kernels.bounds import largest_partner, required_overlap, smallest_partner
from neardup.kernels.compilation import inner_kernel, kernel, leaf_kernel
from neardup.kernels.counts import prefixes, sort_prefix
from neardup.kernels.tables import clear_table, contains_key, find_slot, table_buffer

#: An entry of the index: the rank, a tag of the key, the place of the key among the set's shared ones.
_RANK_SHIFT = uint64(32)
_TAG_SHIFT = uint64(16)
LOW = uint64(0xFFFF)
LAST_PLACE = 0xFFFF
#: Odd, so that no two features fall together.
_MULTIPLIER = uint64(0xD6E8FEB86659FD93)
#: In a list of more entries the first one of a rank is searched for.
_LONG_LIST = 8
#: How many sets ahead the index asks for memory while it is filled.
_RANKS_AHEAD = 4


class Sets(NamedTuple):
    """The sets of a join by rank.

    addresses: uint64[r]; sizes, shared, lengths: int64[r]; bitmaps: uint64[r, 8]; starts: int64[r] into keys;
    keys: uint64, the prefixes. Where features are not held, sizes, shared and lengths are int32, bitmaps may have fewer
    words, and there are no addresses, starts and keys.
    """

    addresses: np.ndarray
    sizes: np.ndarray
    shared: np.ndarray
    lengths: np.ndarray
    bitmaps: np.ndarray
    starts: np.ndarray
    keys: np.ndarray


class Index(NamedTuple):
    """Lists of entries: those of bucket first + b are entries[heads[b]:heads[b + 1]], in rank order.

    It has all 2**bits buckets, or those of a part of the key space, or of a share of the lists while these are filled.
    """

    heads: np.ndarray
    entries: np.ndarray
    bits: int
    first: int


@njit(inline="always")
def mixed(key):
    """Return what a key's bucket and tag are taken from: of equally rare features small ones come first."""
    return (key << uint64(8)) * _MULTIPLIER


@njit(inline="always")
def bucket_of(key, bits):
    """Return the bucket of a key."""
    return int64(mixed(key) >> uint64(64 - bits))


@njit(inline="always")
def tag_of(key, bits):
    """Return 16 bits of a key below those that choose its bucket."""
    return (mixed(key) >> uint64(48 - bits)) & LOW


@njit(inline="always")
def entry_of(rank, tag, place):
    """Return the entry of a rank's key; a place too high for it is lowered, which loosens the bound."""
    return (uint64(rank) << _RANK_SHIFT) | (tag << _TAG_SHIFT) | uint64(min(place, LAST_PLACE))


@njit(inline="always")
def rank_of(entry):
    """Return the rank of an entry."""
    return int64(entry >> _RANK_SHIFT)


@njit(inline="always")
def tag_of_entry(entry):
    """Return the tag of an entry."""
    return (entry >> _TAG_SHIFT) & LOW


@njit(inline="always")
def place_of(entry):
    """Return the place of an entry's key among the shared ones of its set."""
    return int64(entry & LOW)


@kernel
def index_lengths(sets, rule, out):
    """Write how many keys of each set the index must hold: those that a partner no smaller can meet."""
    for rank in range(sets.sizes.shape[0]):
        size = sets.sizes[rank]
        out[rank] = min(max(sets.shared[rank] - required_overlap(rule, size, size) + 1, 0), sets.lengths[rank])


@leaf_kernel
def _fetch_heads(rank, sets, count, index):
    """Ask for the list heads of the first count keys of a rank."""
    base, keys, start = uint64(index.heads.ctypes.data), sets.keys, sets.starts[rank]
    for i in range(start, start + count):
        prefetch(base + uint64(4 * (bucket_of(keys[i], index.bits) - index.first)))


@kernel
def count_entries(ranks, sets, held, index):
    """Add to heads[b + 1] how many of the first held[r] keys of the ranks belong to list b: zeros at first."""
    heads, keys, starts = index.heads, sets.keys, sets.starts
    for m in range(ranks.shape[0]):
        rank = ranks[m]
        if m + _RANKS_AHEAD < ranks.shape[0]:
            _fetch_heads(ranks[m + _RANKS_AHEAD], sets, held[ranks[m + _RANKS_AHEAD]], index)
        for i in range(held[rank]):
            place = bucket_of(keys[starts[rank] + i], index.bits) - index.first
            if 0 <= place < heads.shape[0] - 1:
                heads[place + 1] += uint32(1)


@kernel
def begin_lists(heads):
    """Turn counts into places: list b begins at heads[b]; return how many entries there are."""
    entries = int64(0)
    for b in range(heads.shape[0]):
        entries += int64(heads[b])
        heads[b] = uint32(entries)
    return entries


@kernel
def enter_entries(ranks, sets, held, index):
    """Enter the first held[r] keys of the ranks; heads[b] is where the next entry of list b goes."""
    heads, entries, keys, starts = index.heads, index.entries, sets.keys, sets.starts
    for m in range(ranks.shape[0]):
        rank = ranks[m]
        if m + _RANKS_AHEAD < ranks.shape[0]:
            _fetch_heads(ranks[m + _RANKS_AHEAD], sets, held[ranks[m + _RANKS_AHEAD]], index)
        for i in range(held[rank]):
            key = keys[starts[rank] + i]
            place = bucket_of(key, index.bits) - index.first
            if 0 <= place < heads.shape[0] - 1:
                entries[heads[place]] = entry_of(rank, tag_of(key, index.bits), i)
                heads[place] += uint32(1)


@kernel
def close_lists(index):
    """Make heads[b] the begin of list b again, which is where the one before it ends now, and sort lists by rank.

    Returns the length of the longest list, and how many pairs of entries share a list.
    """
    heads, entries = index.heads, index.entries
    longest = int64(0)
    meetings = int64(0)
    for b in range(heads.shape[0] - 1, 0, -1):
        heads[b] = heads[b - 1]
    heads[0] = uint32(0)
    for b in range(heads.shape[0] - 1):
        length = int64(heads[b + 1]) - int64(heads[b])
        longest = max(longest, length)
        meetings += length * (length - 1) // 2
        for place in range(int64(heads[b]) + 1, int64(heads[b + 1])):
            # The rank is what an entry begins with.
            if entries[place - 1] > entries[place]:
                # NumPy's sort would take a second to compile.
                sort_prefix(entries[heads[b] : heads[b + 1]], length)
                break
    return longest, meetings


@leaf_kernel
def _first_at_least(entries, low, high, rank):
    """Return the first place in [low, high) whose entry has that rank or a higher one."""
    while low < high:
        middle = (low + high) // 2
        if rank_of(entries[middle]) < rank:
            low = middle + 1
        else:
            high = middle
    return low


@leaf_kernel
def _fetch(following, later, sets, index):
    """Ask for the lists that the following rank will read, and the list heads that a later one will look at."""
    _fetch_heads(later, sets, sets.lengths[later], index)
    entries, heads, keys, start = uint64(index.entries.ctypes.data), index.heads, sets.keys, sets.starts[following]
    for i in range(start, start + sets.lengths[following]):
        prefetch(entries + uint64(8) * uint64(heads[bucket_of(keys[i], index.bits)]))


@njit(inline="always")
def note_meeting(other, left, size, sizes, rule, met, found, count):
    """Add a set that shares a key with another one to those found, once, if what may follow there is enough.

    left: how many features may follow, this one included; size: of the set; sizes: of those it may meet; met: 1 for
    those found. All that two matching sets share follows the first key that both have, so each is found there; a key
    that is equal by chance rules nothing out. Returns how many are found so far.
    """
    if met[other] == 0 and left >= required_overlap(rule, int64(sizes[other]), size):
        met[other] = int32(1)
        found[count] = other
        count += 1
    return count


@njit(inline="always")
def list_from(heads, entries, bucket, first):
    """Return where a list has its first entry of that rank or a higher one, or begins if it is short, and its end."""
    at, high = int64(heads[bucket]), int64(heads[bucket + 1])
    if high - at > _LONG_LIST:
        at = _first_at_least(entries, at, high, first)
    return at, high


@inner_kernel
def partners_of(rank, sets, rule, ranks_of_size):
    """Return which ranks may be partners of a set before it: from the first to before the last."""
    size = sets.sizes[rank]
    smallest = smallest_partner(rule, size)
    largest = largest_partner(rule, size, sets.shared[rank], smallest)
    return int64(ranks_of_size[smallest]), int64(min(ranks_of_size[largest + 1], rank))


@leaf_kernel
def _candidates(rank, sets, index, rule, ranks_of_size, met, found):
    """Write to found the earlier ranks that share a prefix key and pass the length and position bounds.

    met: int32[r] zeros on entry, and then 1 for the ranks in found.
    """
    first, last = partners_of(rank, sets, rule, ranks_of_size)
    sizes, shared, keys = sets.sizes, sets.shared, sets.keys
    heads, entries, bits = index.heads, index.entries, index.bits
    size, own, start = int64(sizes[rank]), int64(shared[rank]), sets.starts[rank]
    count = 0
    for i in range(sets.lengths[rank]):
        bucket, tag = bucket_of(keys[start + i], bits), tag_of(keys[start + i], bits)
        at, high = list_from(heads, entries, bucket, first)
        while at < high:
            entry = entries[at]
            at += 1
            other = rank_of(entry)
            if other >= last:
                break
            if other < first or tag_of_entry(entry) != tag:
                continue
            left = min(own - i, shared[other] - place_of(entry))
            count = note_meeting(other, left, size, sizes, rule, met, found, count)
    return count


@inner_kernel
def enter_set(address, size, room):
    """Return a table of the features at address, in the front of room."""
    table = clear_table(room, size)
    for i in range(size):
        feature = load_u64(address + uint64(8 * i))
        table[find_slot(feature, table)] = feature
    return table


@inner_kernel
def overlap_with(address, size, table, least):
    """Count the features at address that the table holds; stop short once least cannot be reached."""
    misses = size - least
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
def forget(count, met, found):
    """Take back what was noted of the first count ranks found."""
    for c in range(count):
        met[found[c]] = 0


@njit(inline="always")
def bits_apart(one, bitmaps, other, others):
    """Return in how many bits bitmaps[one] and others[other] differ."""
    apart = uint64(0)
    for w in range(bitmaps.shape[1]):
        apart += popcount(bitmaps[one, w] ^ others[other, w])
    return int64(apart)


@leaf_kernel
def most_shared(rank, other, sizes, bitmaps):
    """Return the most features that two sets share, as their bitmaps and their sizes have it."""
    return (sizes[rank] + sizes[other] - bits_apart(rank, bitmaps, other, bitmaps)) // 2


@inner_kernel
def verify(rank, count, floor, sets, rule, scratch, written):
    """Append (other, rank, overlap) to the pairs for those of the first count ranks found that match and are >= floor.

    scratch: (met, found, room, pairs), int32[r] as the search for candidates leaves it, zeros afterwards; int64[r];
    uint64, ``slots_for`` the largest size; int64[p, 3] with room for count more pairs.
    Returns (pairs written in all, candidates, verified).
    """
    met, found, room, pairs = scratch
    sizes, addresses, bitmaps = sets.sizes, sets.addresses, sets.bitmaps
    table = room[:0]
    at_bitmaps = uint64(bitmaps.ctypes.data)
    size = sizes[rank]
    candidates = 0
    verified = 0
    for c in range(count):
        other = found[c]
        met[other] = 0
        if other < floor:
            continue
        if c + 2 < count:
            prefetch(at_bitmaps + uint64(64 * found[c + 2]))
        candidates += 1
        other_size = sizes[other]
        least = required_overlap(rule, other_size, size)
        if most_shared(rank, other, sizes, bitmaps) < least:
            continue
        if table.shape[0] == 0:
            table = enter_set(addresses[rank], size, room)
        verified += 1
        overlap = overlap_with(addresses[other], other_size, table, least)
        if overlap >= least:
            pairs[written, 0] = other
            pairs[written, 1] = rank
            pairs[written, 2] = overlap
            written += 1
    return written, candidates, verified


@kernel
def match(begin, end, sets, index, rule, ranks_of_size, scratch):
    """Find all partners before them of the ranks in [begin, end); write (earlier, later, overlap) to the pairs.

    ranks_of_size[m]: the first rank of size m or more. scratch: as for ``verify``, with room for r pairs at least;
    stops early when they may not suffice for one more rank.
    Returns (rank to go on with, pairs written, candidates, verified).
    """
    written = int64(0)
    candidates = 0
    verified = 0
    rank = begin
    last = sets.sizes.shape[0] - 1
    while rank < end:
        _fetch(min(rank + 1, last), min(rank + 2, last), sets, index)
        count = _candidates(rank, sets, index, rule, ranks_of_size, scratch[0], scratch[1])
        if written + count > scratch[3].shape[0]:
            forget(count, scratch[0], scratch[1])
            break
        written, more, done = verify(rank, count, int64(0), sets, rule, scratch, written)
        candidates += more
        verified += done
        rank += 1
    return rank, written, candidates, verified


@kernel
def look_up(begin, end, asking, held, index, rule, scratch, out):
    """Find the held sets that may match the asking ones [begin, end), larger or smaller; write (asking, held) to out.

    asking: Sets, whose addresses are not looked at. held: (sizes uint32[n], bitmaps uint64[n, 8]) of the sets whose
    whole prefixes the index holds; all of their features are shared. scratch: met, int32[n] zeros, and found, int64[n].
    out: int64[p, 2] with room for n at least; stops early when it may not suffice for one more set.
    Returns (asking set to go on with, pairs written).
    """
    sizes, bitmaps = held
    met, found = scratch
    keys, own_bitmaps, heads, entries, bits = asking.keys, asking.bitmaps, index.heads, index.entries, index.bits
    written = 0
    at = begin
    while at < end:
        size = asking.sizes[at]
        shared = asking.shared[at]
        start = asking.starts[at]
        count = 0
        for i in range(asking.lengths[at]):
            key = keys[start + i]
            bucket = bucket_of(key, bits)
            tag = tag_of(key, bits)
            for place in range(int64(heads[bucket]), int64(heads[bucket + 1])):
                entry = entries[place]
                other = rank_of(entry)
                if tag_of_entry(entry) != tag:
                    continue
                left = min(shared - i, int64(sizes[other]) - place_of(entry))
                count = note_meeting(other, left, size, sizes, rule, met, found, count)
        if written + count > out.shape[0]:
            forget(count, met, found)
            break
        for c in range(count):
            other = found[c]
            met[other] = 0
            other_size = int64(sizes[other])
            apart = bits_apart(at, own_bitmaps, other, bitmaps)
            if (size + other_size - apart) // 2 >= required_overlap(rule, other_size, size):
                out[written, 0] = at
                out[written, 1] = other
                written += 1
        at += 1
    return at, written


@kernel
def look_up_one(features, counts, held, index, rule, scratch, out):
    """Write to out the held sets that may match one, as ``prefixes`` and ``look_up`` find them; return how many.

    features: uint64[s] of the set; counts: of the held ones; out: int64[n, 2] with room for all of them.
    """
    size = features.shape[0]
    shift = uint64(64) - trailing_zeros(uint64(counts.shape[0]))
    sizes = np.full(1, size, np.int64)
    asking = Sets(
        np.full(1, uint64(features.ctypes.data), np.uint64),
        sizes,
        np.empty(1, np.int64),
        np.empty(1, np.int64),
        np.empty((1, 8), np.uint64),
        np.empty(1, np.int64),
        np.empty(size + 1, np.uint64),
    )
    results = asking.shared, asking.lengths, asking.bitmaps, asking.starts, asking.keys, 0
    prefixes(asking.addresses, sizes, np.zeros(1, np.int64), shift, counts, rule, results)
    return look_up(0, 1, asking, held, index, rule, scratch, out)[1]


@kernel
def most_shared_with_one(features, counts, sizes, bitmaps):
    """Return the most features that each of some sets shares with one, as their bitmaps have it: int64[n].

    features: uint64[s] of the one; counts: uint8, of all features of the others by their slots; sizes: uint32[n] and
    bitmaps: uint64[n, 8] of the others.
    """
    shift = uint64(64) - trailing_zeros(uint64(counts.shape[0]))
    bits = np.zeros(8, np.uint64)
    known, distinct = int64(0), int64(0)
    for i in range(features.shape[0]):
        if counts[int64(features[i] >> shift)] > uint8(0):
            word, bit = int64((features[i] >> uint64(6)) & uint64(7)), uint64(1) << (features[i] & uint64(63))
            known += 1
            distinct += int64(bits[word] & bit == uint64(0))
            bits[word] |= bit
    most = np.empty(sizes.shape[0], np.int64)
    for d in range(sizes.shape[0]):
        found = uint64(0)
        for w in range(8):
            found += popcount(bits[w] & bitmaps[d, w])
        # Of features that share a bit all may be there where it is.
        shared = int64(found) + known - distinct if found != uint64(0) else int64(0)
        most[d] = min(shared, int64(sizes[d]))
    return most


@kernel
def overlaps_with_one(features, others, sizes, rule):
    """Return the overlap of each of some sets with one, and the sizes of both: int64[n, 3]; -1 below the threshold.

    features: uint64[s] of the one; others: uint64, one behind the other; sizes: int64[n], theirs.
    """
    size = features.shape[0]
    room = table_buffer(size)
    table = enter_set(uint64(features.ctypes.data), size, room)
    counts = np.empty((sizes.shape[0], 3), np.int64)
    address = uint64(others.ctypes.data)
    for d in range(sizes.shape[0]):
        least = required_overlap(rule, sizes[d], size)
        overlap = overlap_with(address, sizes[d], table, least)
        counts[d] = overlap if overlap >= least else -1, size, sizes[d]
        address += uint64(8 * sizes[d])
    return counts


@kernel
def overlaps_of_pairs(left, right, addresses, sizes, rule, overlaps):
    """Write the overlap of each pair of documents, or -1 where it does not reach the threshold.

    left, right: int64[p], pairs with the same right one together; addresses, sizes: of all documents; of those in pairs
    the addresses hold.
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
            table = enter_set(addresses[entered], size, room)
        least = required_overlap(rule, sizes[left[p]], size)
        overlap = overlap_with(addresses[left[p]], sizes[left[p]], table, least)
        overlaps[p] = overlap if overlap >= least else -1


@leaf_kernel
def _kept_candidates(rank, sets, chains, rule, met, found):
    """Write to found the kept ranks that share a prefix key and pass the bounds; met as in matching."""
    heads, following, entries, bits = chains
    sizes, shared, keys, start = sets.sizes, sets.shared, sets.keys, sets.starts[rank]
    count = 0
    for i in range(sets.lengths[rank]):
        key = keys[start + i]
        tag = tag_of(key, bits)
        at = heads[bucket_of(key, bits)]
        while at >= 0:
            entry = entries[at]
            at = following[at]
            if tag_of_entry(entry) != tag:
                continue
            other = rank_of(entry)
            left = min(shared[rank] - i, shared[other] - place_of(entry))
            count = note_meeting(other, left, sizes[rank], sizes, rule, met, found, count)
    return count


@kernel
def enter_kept(ranks, sets, chains, used):
    """Enter the prefixes of ranks into the index of ``match_with_kept``; return how many entries are taken then."""
    heads, following, entries, bits = chains
    keys, starts, lengths = sets.keys, sets.starts, sets.lengths
    for r in range(ranks.shape[0]):
        rank = ranks[r]
        for i in range(lengths[rank]):
            key = keys[starts[rank] + i]
            bucket = bucket_of(key, bits)
            entries[used] = entry_of(rank, tag_of(key, bits), i)
            following[used] = heads[bucket]
            heads[bucket] = used
            used += 1
    return used


@kernel
def match_with_kept(ranks, settled, sets, chains, used, rule, scratch):
    """Match ranks, which are in keep order, with those kept before them, and keep those that match none.

    settled: all verdicts are given, and dropped ranks are matched with those kept after them. chains: (heads,
    following, entries, bits), an index of linked lists: int32[2**bits] of -1 at first, int32[k], uint64[k]; used: how
    many entries are taken. scratch: as for ``matching.match``, whose pairs get (kept, dropped, overlap).
    Returns (how many ranks are done, entries used, pairs written).
    """
    written = int64(0)
    done = 0
    while done < ranks.shape[0]:
        rank = ranks[done]
        count = _kept_candidates(rank, sets, chains, rule, scratch[0], scratch[1])
        if written + count > scratch[3].shape[0]:
            forget(count, scratch[0], scratch[1])
            break
        before = written
        written, _, _ = verify(rank, count, rank + 1 if settled else int64(0), sets, rule, scratch, written)
        if written == before and not settled:
            used = enter_kept(ranks[done : done + 1], sets, chains, used)
        done += 1
    return done, used, written


#: No set has more features.
_LARGEST_SIZE = 1 << 28


@kernel
def partner_sizes(sizes, rests, rule, high, reach):
    """Write which sizes entries at a key may meet, from their own.

    sizes: of the sets. rests: how many features of each stand at the key or behind it, negative where the set is not
    looked for there. Of two sets the smaller one is looked for. The larger one reaches the threshold with what it has
    left if the smaller one has high[i] features at most, 0 for none; and the smaller one does if the larger one has
    reach[i] at most, 0 where it is not looked for.
    """
    for i in range(sizes.shape[0]):
        size, rest = int64(sizes[i]), int64(abs(rests[i]))
        low = smallest_partner(rule, size)
        high[i] = largest_partner(rule, size, rest, low)
        if high[i] < low:
            high[i] = 0
        reach[i] = 0
        if rests[i] < 0 or required_overlap(rule, size, size) > rest:
            continue
        least, most = size, int64(_LARGEST_SIZE)
        while least < most:
            middle = (least + most + 1) // 2
            if required_overlap(rule, size, middle) <= rest:
                least = middle
            else:
                most = middle - 1
        reach[i] = least


class Entries(NamedTuple):
    """Sets at keys, those of one key behind each other and from the smallest to the largest.

    keys, befores: uint64[e], the keys, and that before each in its set's prefix, 0 for none; rows: int64[e], which sets
    they are; sizes: int32[e]; high, reach: int64[e], as ``partner_sizes`` writes them.
    """

    keys: np.ndarray
    befores: np.ndarray
    rows: np.ndarray
    sizes: np.ndarray
    high: np.ndarray
    reach: np.ndarray


@kernel
def key_pairs(begin, entries, second, own, pairs):
    """Write the rows of two sets that meet at a key and may match by their sizes, the smaller row first: int64[p, 2].

    second: bool[e], of which two that are equal are not compared, or none; own: two rows from this number on are not.
    Two that share the key before meet there, too, and are left to it. pairs has room for the largest group of one key.
    Returns (entry to go on from, pairs written).
    """
    keys, befores, rows, sizes, high, reach = entries
    count = keys.shape[0]
    written = 0
    end = begin
    for i in range(begin, count):
        if i == end:
            while end < count and keys[end] == keys[i]:
                end += 1
        if written + end - i > pairs.shape[0]:
            return i, written
        for j in range(i + 1, end):
            if sizes[j] > sizes[i] and sizes[j] > reach[i]:
                break
            one, other = i, j
            if sizes[i] == sizes[j] and rows[i] > rows[j]:
                one, other = j, i
            if sizes[one] > high[other] or sizes[other] > reach[one]:
                continue
            if befores[other] != 0 and befores[one] == befores[other]:
                continue
            left, right = min(rows[i], rows[j]), max(rows[i], rows[j])
            if left >= own or left == right or (second.shape[0] > 0 and second[i] == second[j]):
                continue
            pairs[written, 0] = left
            pairs[written, 1] = right
            written += 1
    return count, written


_BAND = uint64(0x9FB21C651E98DF25)


@kernel
def band_keys(minima, rows, out):
    """Write a hash of each band of ``rows`` consecutive minima: minima uint64[d, K], out uint64[d, K // rows]."""
    for d in range(out.shape[0]):
        for band in range(out.shape[1]):
            value = uint64(band + 1) * _BAND
            for i in range(band * rows, (band + 1) * rows):
                value = mix(value ^ minima[d, i]) + _BAND
            out[d, band] = value


@kernel
def band_pairs(band, begin, end, order, keys, vectors, own, rule, room, pairs):
    """Verify the pairs of documents order[i], order[j] with i in [begin, end), j > i and equal keys of this band.

    order: int64[n], by the keys of this band and then by number; keys: uint64[n, bands]; vectors: (addresses, sizes) of
    the n sets, or no addresses where they are not held: then pairs are listed with an overlap of -1, not verified; own:
    two sets from this number on are not compared; room: uint64, ``slots_for`` the largest size; pairs: int64[p, 3],
    room for (one, other, overlap) of all partners of a set at least. Pairs that share an earlier band are left out:
    they were found there.
    Returns (place to go on from, pairs written, candidates, verified).
    """
    addresses, sizes = vectors
    count = order.shape[0]
    written = 0
    candidates = 0
    verified = 0
    for i in range(begin, end):
        one = order[i]
        if one >= own:
            continue
        j = i + 1
        while j < count and keys[order[j], band] == keys[one, band]:
            j += 1
        if written + j - i > pairs.shape[0]:
            return i, written, candidates, verified
        table = room[:0]
        for k in range(i + 1, j):
            other = order[k]
            earlier = 0
            while earlier < band and keys[one, earlier] != keys[other, earlier]:
                earlier += 1
            if earlier < band:
                continue
            candidates += 1
            least = required_overlap(rule, sizes[one], sizes[other])
            if least > min(sizes[one], sizes[other]):
                continue
            verified += 1
            if addresses.shape[0] == 0:
                pairs[written, 0] = one
                pairs[written, 1] = other
                pairs[written, 2] = -1
                written += 1
                continue
            if table.shape[0] == 0:
                table = enter_set(addresses[one], sizes[one], room)
            overlap = overlap_with(addresses[other], sizes[other], table, least)
            if overlap >= least:
                pairs[written, 0] = one
                pairs[written, 1] = other
                pairs[written, 2] = int64(overlap)
                written += 1
    return end, written, candidates, verified
