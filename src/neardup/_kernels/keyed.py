"""Pairs of sets that share a key, where each machine sees the keys of its part alone and no set whole.

An entry says of a set: the key, the set's size, and how many of its shared features stand at the key's place or
behind it. At the first key that two matching sets share, all that they share lies at that place or behind it in both,
so the smaller of the two rests is no less than what they need. At a later key a pair may fail that; then the first one
has brought it (prefix and position filters as in ``matching``, without what was met before).

Near copies share one key after the other. So an entry also says which key its set has right before: where two entries
agree on that, their sets met there, or earlier, with larger rests, and are not listed again.
"""

import numpy as np
from numba import int64

from neardup._kernels.bounds import largest_partner, need, smallest_partner
from neardup._kernels.compiling import kernel

#: Runs up to this length are sorted by insertion.
_FEW = 48


@kernel
def _comes_after(size, row, other_size, other_row):
    return size > other_size or (size == other_size and row > other_row)


@kernel
def sort_runs(heads, sizes, rests, rows, befores):
    """Order the entries of each run by size, then by row, in place: run r is [heads[r], heads[r + 1])."""
    for r in range(heads.shape[0] - 1):
        begin, end = heads[r], heads[r + 1]
        if end - begin > _FEW:
            by_row = np.argsort(rows[begin:end])
            order = by_row[np.argsort(sizes[begin:end][by_row], kind="mergesort")]
            sizes[begin:end] = sizes[begin:end][order]
            rests[begin:end] = rests[begin:end][order]
            rows[begin:end] = rows[begin:end][order]
            befores[begin:end] = befores[begin:end][order]
            continue
        for i in range(begin + 1, end):
            size, rest, row, before = sizes[i], rests[i], rows[i], befores[i]
            j = i - 1
            while j >= begin and _comes_after(sizes[j], rows[j], size, row):
                sizes[j + 1], rests[j + 1], rows[j + 1], befores[j + 1] = sizes[j], rests[j], rows[j], befores[j]
                j -= 1
            sizes[j + 1], rests[j + 1], rows[j + 1], befores[j + 1] = size, rest, row, before


@kernel
def _first_of_size(sizes, low, high, size):
    """Return the first place in [low, high) with that size or more."""
    while low < high:
        middle = (low + high) // 2
        if sizes[middle] < size:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def meet_in_runs(run, at, heads, splits, sizes, rests, rows, befores, rule, pairs):
    """List the pairs of entries of one run that can match: (row of the earlier one, row of the later one).

    run, at: where to go on; (0, 0) at first. heads: int64[r + 1], the runs of entries with equal keys, each in order of
    size. splits: int64[r], 0, or how many entries of a run are looked for alone, by those behind them alone; then each
    of the two parts is in order of size. rests: int32, positive where the set is looked for at this key, negative where
    it only looks for others. befores: uint64, the key that the set has before this one, 0 for none. pairs: int64[p, 2]
    with room for the longest run at least.
    Returns (run, at) to go on with, which is (r, 0) at the end, and how many pairs were written.
    """
    written = 0
    while run < heads.shape[0] - 1:
        begin, end, split = heads[run], heads[run + 1], splits[run]
        for later in range(max(begin + max(split, 1), at), end):
            if written + later - begin > pairs.shape[0]:
                return run, later, written
            size = int64(sizes[later])
            rest = int64(abs(rests[later]))
            before = befores[later]
            stop = begin + split if split else later
            low = smallest_partner(rule, size)
            # A partner must not need more than what the later set has left.
            high = largest_partner(rule, size, rest, low)
            for earlier in range(_first_of_size(sizes, begin, stop, low), stop):
                other = int64(sizes[earlier])
                if other > high:
                    break
                if before != 0 and befores[earlier] == before:
                    continue
                if rests[earlier] > 0 and need(rule, other, size) <= int64(rests[earlier]):
                    pairs[written, 0] = rows[earlier]
                    pairs[written, 1] = rows[later]
                    written += 1
        run += 1
        at = 0
    return run, 0, written
