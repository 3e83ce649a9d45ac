"""Keepers without all pairs: one set after the other, against an index of those that stay.

Where very many sets match each other, the pairs among them are most of the work, and none is needed to know
who stays: each set is compared with kept ones only. The bounds are those of ``_kernels.matching``.
"""

from numba import int32, int64, uint64

from neardup._kernels.bits import popcount
from neardup._kernels.bounds import need
from neardup._kernels.compiling import kernel
from neardup._kernels.matching import (
    bucket_of,
    enter,
    entry_of,
    overlap_with,
    place_of,
    rank_of,
    tag_of,
    tag_of_entry,
)


@kernel
def _kept_candidates(rank, sets, chains, rule, met, found):
    """Write to found the kept ranks that share a prefix key and pass the bounds; met as in matching."""
    heads, following, entries, bits = chains
    size = sets.sizes[rank]
    shared = sets.shared[rank]
    count = 0
    for i in range(sets.lengths[rank]):
        key = sets.keys[sets.starts[rank] + i]
        tag = tag_of(key, bits)
        at = heads[bucket_of(key, bits)]
        while at >= 0:
            entry = entries[at]
            at = following[at]
            if tag_of_entry(entry) != tag:
                continue
            other = rank_of(entry)
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
def match_with_kept(ranks, settled, sets, chains, used, rule, scratch, pairs):
    """Match ranks, which are in keep order, with those kept before them, and keep those that match none.

    chains: (heads, following, entries, bits), an index of linked lists: int32[2**bits] of -1 at first,
    int32[k], uint64[k]; used: how many entries are taken. scratch: of ``matching.match``. pairs: int64[p, 3] gets
    (kept, dropped, overlap). Stops early when pairs may be too short for one more rank.
    settled: all verdicts are given, and dropped ranks are matched with those kept after them.
    Returns (how many ranks are done, entries used, pairs written).
    """
    heads, following, entries, bits = chains
    met, found, table = scratch
    written = 0
    done = 0
    while done < ranks.shape[0]:
        rank = ranks[done]
        count = _kept_candidates(rank, sets, chains, rule, met, found)
        if written + count > pairs.shape[0] and written > 0:
            for c in range(count):
                met[found[c]] = 0
            break
        size = sets.sizes[rank]
        table_bits = 0
        stays = True
        for c in range(count):
            other = found[c]
            passed = met[other] > 0
            met[other] = 0
            if not passed or (settled and other < rank):
                continue
            other_size = sets.sizes[other]
            least = need(rule, other_size, size)
            apart = uint64(0)
            for w in range(8):
                apart += popcount(sets.bitmaps[rank, w] ^ sets.bitmaps[other, w])
            if (size + other_size - int64(apart)) // 2 < least:
                continue
            if table_bits == 0:
                table_bits = 2
                while (1 << table_bits) < 2 * size:
                    table_bits += 1
                enter(sets.addresses[rank], size, table, table_bits)
            overlap = overlap_with(sets.addresses[other], other_size, table, table_bits, least)
            if overlap >= least:
                pairs[written, 0] = other
                pairs[written, 1] = rank
                pairs[written, 2] = overlap
                written += 1
                stays = False
        if stays and not settled:
            for i in range(sets.lengths[rank]):
                key = sets.keys[sets.starts[rank] + i]
                bucket = bucket_of(key, bits)
                entries[used] = entry_of(rank, tag_of(key, bits), i)
                following[used] = heads[bucket]
                heads[bucket] = used
                used += 1
        done += 1
    return done, used, written
