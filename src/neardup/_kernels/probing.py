"""The second half of the join of weighted vectors: probing the index, and adding up what is in common.

Each vector looks for partners among those before it (Bayardo, Ma & Srikant, WWW 2007, 4; Anastasiu & Karypis,
ICDE 2014, III): places where two prefixes meet are added up while what has been found and the extents of what
follows may still suffice; the terms behind the prefixes are added for those that are left.
"""

from typing import NamedTuple

import numpy as np
from numba import float64, int32, int64, njit, uint32

from neardup._kernels.compiling import kernel
from neardup._kernels.weighting import PLACE_SHIFT, WEIGHT, last_place

_GOLDEN = uint32(0x9E3779B1)


class Needs(NamedTuple):
    """How much a pair must have in common: fixed[x] + slopes[x] * extents[y], float64[r] each.

    That is a little less than what the measure asks for; with sure_fixed and sure_slopes it is a little more.
    first: int64[r], the first rank whose total is large enough.
    """

    extents: np.ndarray
    fixed: np.ndarray
    slopes: np.ndarray
    sure_fixed: np.ndarray
    sure_slopes: np.ndarray
    first: np.ndarray


@njit(inline="always")
def _bound(minima, x, y):
    """Return the most that terms of extents x and y have in common."""
    return min(x, y) if minima else x * y


@kernel
def _first_at_least(entries, low, high, rank):
    """Return the first place in [low, high) whose entry has that rank or a higher one."""
    while low < high:
        middle = (low + high) // 2
        if entries[middle, 0] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _candidates(rank, sets, postings, needs, minima, met, found):
    """Write to found the earlier ranks that meet rank in a feature of both prefixes and can still suffice.

    met: int64[r], zeros on entry, and then what is in common so far, or -1 for ruled out, for the ranks in found.
    """
    start = sets.starts[rank]
    first = needs.first[rank]
    fixed, slope = needs.fixed[rank], needs.slopes[rank]
    count = 0
    for i in range(start, start + sets.probed[rank]):
        feature = sets.terms[i] >> PLACE_SHIFT
        weight = sets.terms[i] & WEIGHT
        rest = float64(sets.after[i])
        place, high = postings.heads[feature], postings.heads[feature + 1]
        if first > 0:
            place = _first_at_least(postings.entries, place, high, first)
        while place < high:
            other = int64(postings.entries[place, 0])
            if other >= rank:
                break
            already = met[other]
            if already >= 0:
                theirs = int64(postings.entries[place, 1])
                total = already + (min(weight, theirs) if minima else weight * theirs)
                most = float64(total) + _bound(minima, rest, float64(postings.rests[place, 2]))
                if most >= fixed + slope * needs.extents[other]:
                    met[other] = total
                    if already == 0:
                        found[count] = other
                        count += 1
                elif already > 0:
                    met[other] = -1
            place += 1
    return count


@kernel
def _first_after(terms, low, high, last):
    """Return the first place in [low, high) whose term has a place after last."""
    while low < high:
        middle = (low + high) // 2
        if terms[middle] >> PLACE_SHIFT <= last:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _enter(terms, keys, weights, bits):
    """Make keys and weights (2**bits, more than the terms) a table from places + 1 to weights."""
    keys[: 1 << bits] = int32(0)
    mask = (1 << bits) - 1
    shift = uint32(32 - bits)
    for i in range(terms.shape[0]):
        key = int32(terms[i] >> PLACE_SHIFT) + int32(1)
        slot = int64(uint32(uint32(key) * _GOLDEN) >> shift)
        while keys[slot] != 0:
            slot = (slot + 1) & mask
        keys[slot] = key
        weights[slot] = terms[i] & WEIGHT


@kernel
def _common(total, rest, least, terms, after, table, minima):
    """Return total and what the terms have in common with the table, or -1 once that cannot reach least.

    rest: at least the sum or norm of what the table may still give.
    """
    keys, weights, bits = table
    mask = (1 << bits) - 1
    shift = uint32(32 - bits)
    for i in range(terms.shape[0]):
        key = int32(terms[i] >> PLACE_SHIFT) + int32(1)
        slot = int64(uint32(uint32(key) * _GOLDEN) >> shift)
        while keys[slot] != 0 and keys[slot] != key:
            slot = (slot + 1) & mask
        if keys[slot] == key:
            weight = terms[i] & WEIGHT
            total += min(weight, weights[slot]) if minima else weight * weights[slot]
        if float64(total) + _bound(minima, rest, float64(after[i])) < least:
            return int64(-1)
    return total


@kernel
def _verify(rank, count, sets, needs, minima, scratch, written):
    """Append (other, rank, what they have in common, whether it surely suffices) to the pairs.

    It is done for those of the first count ranks found that may match; met is zeros again.
    Returns (pairs written in all, candidates, verified).
    """
    met, found, keys, weights, pairs = scratch
    begin = sets.starts[rank]
    end = begin + sets.lengths[rank]
    probed = begin + sets.probed[rank]
    last = last_place(sets, rank, sets.probed[rank])
    bits = 0
    candidates = 0
    verified = 0
    for c in range(count):
        other = found[c]
        total = met[other]
        met[other] = 0
        if total < 0:
            continue
        candidates += 1
        least = needs.fixed[rank] + needs.slopes[rank] * needs.extents[other]
        if sets.last[other] <= last:
            rest = float64(sets.after[_first_after(sets.terms, begin, probed, sets.last[other]) - 1])
            if float64(total) + _bound(minima, rest, float64(sets.tails[other])) < least:
                continue
            low = sets.starts[other] + sets.held[other]
        else:
            rest = float64(sets.after[probed - 1])
            low = sets.starts[other]
            low = _first_after(sets.terms, low, low + sets.held[other], last)
            if float64(total) + _bound(minima, rest, float64(sets.after[low - 1])) < least:
                continue
        high = sets.starts[other] + sets.lengths[other]
        if bits == 0:
            bits = 2
            while (1 << bits) < 2 * (end - begin):
                bits += 1
            _enter(sets.terms[begin:end], keys, weights, bits)
        verified += 1
        table = keys, weights, bits
        total = _common(total, rest, least, sets.terms[low:high], sets.after[low:high], table, minima)
        if float64(total) >= least and total > 0:
            pairs[written, 0] = other
            pairs[written, 1] = rank
            pairs[written, 2] = total
            sure = needs.sure_fixed[rank] + needs.sure_slopes[rank] * needs.extents[other]
            pairs[written, 3] = float64(total) >= sure
            written += 1
    return written, candidates, verified


@kernel
def match_vectors(begin, end, sets, postings, needs, minima, scratch):
    """Find all partners before them of the ranks in [begin, end).

    scratch: (met, found, keys, weights, pairs): int64[r] zeros; int64[r]; int32 and int64 [a power of two >= twice the
    longest vector]; int64[p, 4] with room for r pairs at least, to be filled with (earlier, later, what they have in
    common, whether it surely suffices). Stops early when the room may not suffice for one more rank.
    Returns (rank to go on with, pairs written, candidates, verified).
    """
    written = 0
    candidates = 0
    verified = 0
    rank = begin
    while rank < end:
        count = _candidates(rank, sets, postings, needs, minima, scratch[0], scratch[1])
        if written + count > scratch[4].shape[0]:
            for c in range(count):
                scratch[0][scratch[1][c]] = 0
            break
        written, more, done = _verify(rank, count, sets, needs, minima, scratch, written)
        candidates += more
        verified += done
        rank += 1
    return rank, written, candidates, verified
