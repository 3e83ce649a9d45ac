"""Pairs of 64-bit values that differ in few bits: move blocks of bits to the front, compare runs of equal fronts."""

from __future__ import annotations

from numba import int64, uint64

from neardup.kernels.bits import popcount
from neardup.kernels.compilation import inner_kernel, kernel

#: Values per chunk: a chunk fits into the first-level cache.
_CHUNK = 1024


@kernel
def rearrange_bits(values, moves, out):
    """Move blocks of bits: out[i] = sum over (from, to, mask) in moves of ((values[i] >> from) & mask) << to.

    values, out: uint64[n]; moves: uint64[b, 3].
    """
    for begin in range(0, values.shape[0], _CHUNK):
        part = values[begin : begin + _CHUNK]
        moved = out[begin : begin + _CHUNK]
        moved[:] = uint64(0)
        for m in range(moves.shape[0]):
            source = moves[m, 0]
            target = moves[m, 1]
            mask = moves[m, 2]
            for i in range(part.shape[0]):
                moved[i] |= ((part[i] >> source) & mask) << target


@inner_kernel
def _differs_in_all(difference, masks):
    """Return whether a difference has bits in every mask: then no earlier choice of blocks has found the pair."""
    differs = True
    for b in range(masks.shape[0]):
        differs &= difference & masks[b] != uint64(0)
    return differs


@kernel
def pairs_within_distance(values, begin, end, front, masks, k, max_run, pairs):
    """Find the pairs i < j, i in [begin, end), with equal fronts that differ in at most k bits.

    values: uint64[n], those with equal fronts adjacent; front: the mask of the bits that must agree; masks: uint64[q],
    the pair must differ in each of them; max_run: longer runs of equal fronts are skipped; pairs: int64[p, 2], gets (i,
    j). Stops if the pairs of a row may not fit. Returns (row to continue from, pairs written).
    """
    count = values.shape[0]
    written = 0
    stop = begin
    skipped = False
    for i in range(begin, end):
        value = values[i]
        if i >= stop:
            stop = i + 1
            while stop < count and (values[stop] ^ value) & front == uint64(0):
                stop += 1
            skipped = stop - i > max_run
        if skipped:
            continue
        run = values[i + 1 : stop]
        hits = 0
        for j in range(run.shape[0]):
            hits += int64(popcount(run[j] ^ value) <= uint64(k))
        if hits == 0:
            continue
        if written + hits > pairs.shape[0]:
            return i, written
        for j in range(run.shape[0]):
            difference = run[j] ^ value
            if popcount(difference) <= uint64(k) and _differs_in_all(difference, masks):
                pairs[written, 0] = i
                pairs[written, 1] = i + 1 + j
                written += 1
    return end, written


@kernel
def expand_group_pairs(pairs, distances, starts, members, left, right, distance):
    """Write the pairs of members of pairs of groups, the smaller member to the left.

    pairs: int64[p, 2], groups; a group paired with itself stands for all pairs inside it; distances: int64[p]; the
    members of group g are members[starts[g]:starts[g + 1]]; left, right, distance: int64, long enough for all.
    """
    written = 0
    for p in range(pairs.shape[0]):
        first = pairs[p, 0]
        second = pairs[p, 1]
        for i in range(starts[first], starts[first + 1]):
            for j in range(i + 1 if first == second else starts[second], starts[second + 1]):
                left[written] = min(members[i], members[j])
                right[written] = max(members[i], members[j])
                distance[written] = distances[p]
                written += 1
