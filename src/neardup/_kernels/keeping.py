"""Keepers without all pairs: one set after the other, against an index of those that stay.

Where very many sets match each other, the pairs among them are most of the work, and none is needed to know
who stays: each set is compared with kept ones only. The bounds are those of ``_kernels.matching``.
"""

from numba import int32

from neardup._kernels.bounds import need
from neardup._kernels.compiling import kernel
from neardup._kernels.matching import bucket_of, entry_of, forget, place_of, rank_of, tag_of, tag_of_entry, verify


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
def match_with_kept(ranks, settled, sets, chains, used, rule, scratch):
    """Match ranks, which are in keep order, with those kept before them, and keep those that match none.

    settled: all verdicts are given, and dropped ranks are matched with those kept after them. chains: (heads,
    following, entries, bits), an index of linked lists: int32[2**bits] of -1 at first, int32[k], uint64[k]; used: how
    many entries are taken. scratch: as for ``matching.match``, whose pairs get (kept, dropped, overlap).
    Returns (how many ranks are done, entries used, pairs written).
    """
    heads, following, entries, bits = chains
    written = 0
    done = 0
    while done < ranks.shape[0]:
        rank = ranks[done]
        count = _kept_candidates(rank, sets, chains, rule, scratch[0], scratch[1])
        if written + count > scratch[3].shape[0]:
            forget(count, scratch)
            break
        before = written
        written, _, _ = verify(rank, count, rank + 1 if settled else 0, sets, rule, scratch, written)
        if written == before and not settled:
            for i in range(sets.lengths[rank]):
                key = sets.keys[sets.starts[rank] + i]
                bucket = bucket_of(key, bits)
                entries[used] = entry_of(rank, tag_of(key, bits), i)
                following[used] = heads[bucket]
                heads[bucket] = used
                used += 1
        done += 1
    return done, used, written
