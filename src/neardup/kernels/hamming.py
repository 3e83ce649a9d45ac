"""Pairs of 64-bit values that differ in few bits: blocks of bits to the front, and runs of equal fronts compared."""

from __future__ import annotations

from numba import int64, uint64

from neardup.kernels.bits import popcount
from neardup.kernels.compilation import inner_kernel, kernel

#: How many values are moved in one go: they stay in the first cache.
_PART = 1024


@kernel
def rearrange(values, moves, out):
    """Move blocks of bits: out[i] = sum over (from, to, mask) in moves of ((values[i] >> from) & mask) << to.

    values, out: uint64[n]; moves: uint64[b, 3].
    """
    for begin in range(0, values.shape[0], _PART):
        part = values[begin : begin + _PART]
        moved = out[begin : begin + _PART]
        moved[:] = uint64(0)
        for m in range(moves.shape[0]):
            source = moves[m, 0]
            target = moves[m, 1]
            mask = moves[m, 2]
            for i in range(part.shape[0]):
                moved[i] |= ((part[i] >> source) & mask) << target


@inner_kernel
def _new_to_this_choice(difference, left_out):
    """Return whether two values differ in every block that an earlier choice would have taken in place of one."""
    new = True
    for b in range(left_out.shape[0]):
        new &= difference & left_out[b] != uint64(0)
    return new


@kernel
def near_in_runs(values, begin, end, front, left_out, k, longest, pairs):
    """Find the pairs i < j, i in [begin, end), with equal fronts that differ in at most k bits.

    values: uint64[n], those of one front side by side; front: the mask of the bits that must agree; left_out:
    uint64[q], masks of which the two must differ in each; longest: longer runs of equal fronts are passed over; pairs:
    int64[room, 2], gets (i, j). Stops early when a row might not find room. Returns (row to go on with, pairs written).
    """
    count = values.shape[0]
    written = 0
    stop = begin
    passed_over = False
    for i in range(begin, end):
        value = values[i]
        if i >= stop:
            stop = i + 1
            while stop < count and (values[stop] ^ value) & front == uint64(0):
                stop += 1
            passed_over = stop - i > longest
        if passed_over:
            continue
        others = values[i + 1 : stop]
        hits = 0
        for j in range(others.shape[0]):
            hits += int64(popcount(others[j] ^ value) <= uint64(k))
        if hits == 0:
            continue
        if written + hits > pairs.shape[0]:
            return i, written
        for j in range(others.shape[0]):
            difference = others[j] ^ value
            if popcount(difference) <= uint64(k) and _new_to_this_choice(difference, left_out):
                pairs[written, 0] = i
                pairs[written, 1] = i + 1 + j
                written += 1
    return end, written


@kernel
def pairs_of_members(pairs, distances, starts, members, left, right, distance):
    """Write the pairs of members of pairs of groups, the smaller member to the left.

    pairs: int64[p, 2], groups; one with itself stands for all pairs inside; distances: int64[p]; members of group g:
    members[starts[g]:starts[g + 1]]; left, right, distance: int64, with room for all.
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
