"""The exact join proper: an index of prefixes, its probing, and the verification of what it brings.

Sets are numbered by rank, from the smallest to the largest, so that each looks for partners among those
before it (AllPairs and PPJoin: Mann, Augsten & Bouros, PVLDB 9 (2016), 3-4; bitmaps: Sandes, Teodoro & Melo,
arXiv 1711.07295).
"""

from typing import NamedTuple

import numpy as np
from numba import int32, int64, njit, uint32, uint64

from neardup._kernels.bits import load_u64, popcount, prefetch
from neardup._kernels.bounds import largest_partner, need, smallest_partner
from neardup._kernels.compiling import kernel

#: An entry of the index: the rank, a tag of the key, the place of the key among the set's shared ones.
_RANK_SHIFT = uint64(32)
_TAG_SHIFT = uint64(16)
_LOW = uint64(0xFFFF)
_LAST_PLACE = 0xFFFF
#: How many sets ahead the index asks for memory while it is filled.
_RANKS_AHEAD = 4


class Sets(NamedTuple):
    """The sets of a join by rank.

    addresses: uint64[r]; sizes, shared, lengths: int64[r]; bitmaps: uint64[r, 8]; starts: int64[r] into keys;
    keys: uint64, the prefixes.
    """

    addresses: np.ndarray
    sizes: np.ndarray
    shared: np.ndarray
    lengths: np.ndarray
    bitmaps: np.ndarray
    starts: np.ndarray
    keys: np.ndarray


class Index(NamedTuple):
    """2**bits lists of entries: those of bucket b are entries[heads[b]:heads[b + 1]], in rank order."""

    heads: np.ndarray
    entries: np.ndarray
    bits: int


@njit(inline="always")
def bucket_of(key, bits):
    """Return the bucket of a key, by the top bits of its feature."""
    return int64((key << uint64(8)) >> uint64(64 - bits))


@njit(inline="always")
def tag_of(key, bits):
    """Return 16 bits of a key below those that choose its bucket."""
    return (key >> uint64(40 - bits)) & _LOW


@njit(inline="always")
def entry_of(rank, tag, place):
    """Return the entry of a rank's key; a place too high for it is lowered, which loosens the bound."""
    return (uint64(rank) << _RANK_SHIFT) | (tag << _TAG_SHIFT) | uint64(min(place, _LAST_PLACE))


@njit(inline="always")
def rank_of(entry):
    """Return the rank of an entry."""
    return int64(entry >> _RANK_SHIFT)


@njit(inline="always")
def tag_of_entry(entry):
    """Return the tag of an entry."""
    return (entry >> _TAG_SHIFT) & _LOW


@njit(inline="always")
def place_of(entry):
    """Return the place of an entry's key among the shared ones of its set."""
    return int64(entry & _LOW)


@kernel
def index_lengths(sets, rule, out):
    """Write how many keys of each set the index must hold: those that a partner no smaller can meet."""
    for rank in range(sets.sizes.shape[0]):
        size = sets.sizes[rank]
        out[rank] = min(max(sets.shared[rank] - need(rule, size, size) + 1, 0), sets.lengths[rank])


@kernel
def _fetch_counts(rank, sets, held, bits, heads):
    start = sets.starts[rank]
    base = uint64(heads.ctypes.data)
    for i in range(held[rank]):
        prefetch(base + uint64(4 * bucket_of(sets.keys[start + i], bits)))


@kernel
def fill_index(sets, held, bits, heads, entries):
    """Fill heads (2**bits + 1 zeros on entry) and entries with the first held[r] keys of each set."""
    count = held.shape[0]
    for rank in range(count):
        start = sets.starts[rank]
        if rank + _RANKS_AHEAD < count:
            _fetch_counts(rank + _RANKS_AHEAD, sets, held, bits, heads)
        for i in range(held[rank]):
            heads[bucket_of(sets.keys[start + i], bits) + 1] += uint32(1)
    for b in range(heads.shape[0] - 1):
        heads[b + 1] += heads[b]
    for rank in range(count):
        start = sets.starts[rank]
        if rank + _RANKS_AHEAD < count:
            _fetch_counts(rank + _RANKS_AHEAD, sets, held, bits, heads)
        for i in range(held[rank]):
            key = sets.keys[start + i]
            bucket = bucket_of(key, bits)
            entries[heads[bucket]] = entry_of(rank, tag_of(key, bits), i)
            heads[bucket] += uint32(1)
    for b in range(heads.shape[0] - 1, 0, -1):
        heads[b] = heads[b - 1]
    heads[0] = uint32(0)


@kernel
def _first_at_least(entries, low, high, rank):
    """Return the first place in [low, high) whose entry has that rank or a higher one."""
    while low < high:
        middle = (low + high) // 2
        if rank_of(entries[middle]) < rank:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _fetch_heads(rank, sets, index, heads):
    """Ask for the list heads that rank will look at."""
    start = sets.starts[rank]
    for i in range(sets.lengths[rank]):
        prefetch(heads + uint64(4 * bucket_of(sets.keys[start + i], index.bits)))


@kernel
def _fetch_lists(rank, sets, index, entries):
    """Ask for the beginnings of the lists that rank will read."""
    start = sets.starts[rank]
    for i in range(sets.lengths[rank]):
        prefetch(entries + uint64(8) * uint64(index.heads[bucket_of(sets.keys[start + i], index.bits)]))


@kernel
def _candidates(rank, sets, index, rule, ranks_of_size, met, found):
    """Write to found the earlier ranks that share a prefix key and pass the length and position bounds.

    met: int32[r] zeros on entry, and then the keys met so far or -1 for ruled out, for the ranks in found.
    """
    size = sets.sizes[rank]
    shared = sets.shared[rank]
    smallest = smallest_partner(rule, size)
    largest = largest_partner(rule, size, shared, smallest)
    first = ranks_of_size[smallest]
    last = min(ranks_of_size[largest + 1], rank)
    start = sets.starts[rank]
    count = 0
    for i in range(sets.lengths[rank]):
        key = sets.keys[start + i]
        bucket = bucket_of(key, index.bits)
        tag = tag_of(key, index.bits)
        high = int64(index.heads[bucket + 1])
        place = int64(index.heads[bucket])
        if high - place > 8:
            place = _first_at_least(index.entries, place, high, first)
        while place < high:
            entry = index.entries[place]
            place += 1
            other = rank_of(entry)
            if other >= last:
                break
            if other < first or tag_of_entry(entry) != tag:
                continue
            already = met[other]
            if already < 0:
                continue
            if already == 0:
                found[count] = other
                count += 1
            left = min(shared - i, sets.shared[other] - place_of(entry))
            if already + left >= need(rule, sets.sizes[other], size):
                met[other] = already + int32(1)
            else:
                met[other] = -1
    return count


@kernel
def enter_set(address, size, table, bits):
    """Make table a hash set of the features at address: 2**bits >= 2 size slots."""
    table[: 1 << bits] = uint64(0)
    mask = (1 << bits) - 1
    shift = uint64(64 - bits)
    for i in range(size):
        feature = load_u64(address + uint64(8 * i))
        slot = int64(feature >> shift)
        while table[slot] != uint64(0):
            slot = (slot + 1) & mask
        table[slot] = feature


@kernel
def overlap_with(address, size, table, bits, least):
    """Count the features at address that the table holds; stop short once least cannot be reached."""
    mask = (1 << bits) - 1
    shift = uint64(64 - bits)
    misses = size - least
    hits = 0
    for i in range(size):
        feature = load_u64(address + uint64(8 * i))
        slot = int64(feature >> shift)
        while table[slot] != uint64(0) and table[slot] != feature:
            slot = (slot + 1) & mask
        if table[slot] == feature:
            hits += 1
        else:
            misses -= 1
            if misses < 0:
                return hits
    return hits


@kernel
def forget(count, scratch):
    """Take back what was noted of the first count ranks found."""
    met, found = scratch[0], scratch[1]
    for c in range(count):
        met[found[c]] = 0


@kernel
def verify(rank, count, floor, sets, rule, scratch, written):
    """Append (other, rank, overlap) to the pairs for those of the first count ranks found that match and are >= floor.

    scratch: (met, found, table, pairs), int32[r] as the search for candidates leaves it, zeros afterwards; int64[r];
    uint64[power of two >= 2 largest size]; int64[p, 3] with room for count more pairs.
    Returns (pairs written in all, candidates, verified).
    """
    met, found, table, pairs = scratch
    bitmaps = uint64(sets.bitmaps.ctypes.data)
    size = sets.sizes[rank]
    bits = 0
    candidates = 0
    verified = 0
    for c in range(count):
        other = found[c]
        passed = met[other] > 0
        met[other] = 0
        if not passed or other < floor:
            continue
        if c + 2 < count:
            prefetch(bitmaps + uint64(64 * found[c + 2]))
        candidates += 1
        other_size = sets.sizes[other]
        least = need(rule, other_size, size)
        apart = uint64(0)
        for w in range(8):
            apart += popcount(sets.bitmaps[rank, w] ^ sets.bitmaps[other, w])
        if (size + other_size - int64(apart)) // 2 < least:
            continue
        if bits == 0:
            bits = 2
            while (1 << bits) < 2 * size:
                bits += 1
            enter_set(sets.addresses[rank], size, table, bits)
        verified += 1
        overlap = overlap_with(sets.addresses[other], other_size, table, bits, least)
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
    written = 0
    candidates = 0
    verified = 0
    rank = begin
    heads = uint64(index.heads.ctypes.data)
    entries = uint64(index.entries.ctypes.data)
    last = sets.sizes.shape[0] - 1
    while rank < end:
        _fetch_heads(min(rank + 2, last), sets, index, heads)
        _fetch_lists(min(rank + 1, last), sets, index, entries)
        count = _candidates(rank, sets, index, rule, ranks_of_size, scratch[0], scratch[1])
        if written + count > scratch[3].shape[0]:
            forget(count, scratch)
            break
        written, more, done = verify(rank, count, 0, sets, rule, scratch, written)
        candidates += more
        verified += done
        rank += 1
    return rank, written, candidates, verified
