"""The first half of the join of weighted vectors: their terms in order, and an index of the prefixes.

Vectors are numbered by rank, from the smallest total to the largest. A term is (place of the feature in the
rare-first order, weight) in one int64. The extent of some terms is their sum where minima are added up
(``minima``), else the root of the sum of their squares: what two vectors have in common is at most the smaller
extent, or the product of both (Cauchy and Schwarz).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import float32, float64, int32, int64, njit, uint64

from neardup.kernels.bits import prefetch
from neardup.kernels.compilation import inner_kernel, kernel, leaf_kernel
from neardup.kernels.tables import clear_table, find_slot, home_slot

PLACE_SHIFT = 32
WEIGHT = (1 << PLACE_SHIFT) - 1
_GOLDEN = uint64(0x9E3779B97F4A7C15)
#: Makes a number greater than its rounding to float32 may lose.
_ROUNDED_UP = 1 + 2.0**-22


class Terms(NamedTuple):
    """The vectors of a join by rank.

    starts: int64[r] into terms and after; lengths: int64[r], features that other vectors have too; terms: int64,
    place << 32 | weight, ascending; after: float32, at least the sum or norm of a vector's terms after this one;
    probed, held: int64[r], how many terms look for partners before it, and are in the index; last: int64[r], the last
    place that the terms held cover, all if there are no others; tails: float32[r], their ``after``.
    """

    starts: np.ndarray
    lengths: np.ndarray
    terms: np.ndarray
    after: np.ndarray
    probed: np.ndarray
    held: np.ndarray
    last: np.ndarray
    tails: np.ndarray


class Postings(NamedTuple):
    """Place f's list is entries[heads[f]:heads[f + 1]], in rank order.

    entries: int32[k, 3], rank, weight, and the bits of its ``after``; rests: the same memory as float32.
    """

    heads: np.ndarray
    entries: np.ndarray
    rests: np.ndarray


@njit(inline="always")
def _extent(minima, total):
    return float64(total) if minima else sqrt(float64(total))


@kernel
def totals(members, heads, weights, minima, out):
    """Write each member's sum of weights (minima) or of their squares; return the largest sum of squares."""
    largest = 0.0
    for m in range(members.shape[0]):
        total = 0
        squares = 0.0
        for i in range(heads[members[m]], heads[members[m] + 1]):
            weight = weights[i]
            total += weight if minima else weight * weight
            squares += float64(weight) * float64(weight)
        out[m] = total
        largest = max(largest, squares)
    return largest


@njit(inline="always")
def last_place(sets, rank, count):
    """Return the last place that the first count terms of a rank cover, all if there are no others."""
    if count == sets.lengths[rank]:
        return int64(WEIGHT)
    return sets.terms[sets.starts[rank] + count - 1] >> PLACE_SHIFT


@kernel
def arrange(begin, end, members, vectors, table, minima, least, sets):
    """Fill the terms of ranks [begin, end), whose starts are set, and their lengths.

    members: int64[r], the document of each rank. table: (keys, places), the features of several vectors.
    least: float64[2, r], what probed and held prefixes may leave: less than that suffices for no partner.
    """
    heads, features, weights = vectors
    keys, places = table
    base = uint64(keys.ctypes.data)
    for rank in range(begin, end):
        start = sets.starts[rank]
        low, high = heads[members[rank]], heads[members[rank] + 1]
        for i in range(low, high):
            prefetch(base + uint64(8 * home_slot(features[i], keys)))
        length = 0
        for i in range(low, high):
            slot = find_slot(features[i], keys)
            if keys[slot] != uint64(0):
                sets.terms[start + length] = (int64(places[slot]) << PLACE_SHIFT) | weights[i]
                length += 1
        sets.terms[start : start + length].sort()
        sets.lengths[rank] = length
        sets.probed[rank] = 0
        sets.held[rank] = 0
        remaining = 0
        extent = 0.0
        for i in range(length - 1, -1, -1):
            sets.after[start + i] = float32(extent * _ROUNDED_UP)
            weight = sets.terms[start + i] & WEIGHT
            remaining += weight if minima else weight * weight
            extent = _extent(minima, remaining)
            if extent >= least[0, rank]:
                sets.probed[rank] = max(sets.probed[rank], i + 1)
            if extent >= least[1, rank]:
                sets.held[rank] = max(sets.held[rank], i + 1)
        if sets.held[rank] > 0:
            sets.last[rank] = last_place(sets, rank, sets.held[rank])
            sets.tails[rank] = sets.after[start + sets.held[rank] - 1]


@kernel
def count_held(sets, heads):
    """Make heads (zeros on entry, one more than the places) the beginnings of the lists."""
    starts, held, terms = sets.starts, sets.held, sets.terms
    for rank in range(starts.shape[0]):
        for i in range(starts[rank], starts[rank] + held[rank]):
            heads[(terms[i] >> PLACE_SHIFT) + 1] += 1
    for f in range(heads.shape[0] - 1):
        heads[f + 1] += heads[f]


@kernel
def fill_postings(sets, postings):
    """Fill the entries of the lists."""
    filled, entries, rests = postings.heads.copy(), postings.entries, postings.rests
    starts, held, terms, after = sets.starts, sets.held, sets.terms, sets.after
    for rank in range(starts.shape[0]):
        start = starts[rank]
        for i in range(held[rank]):
            place = filled[terms[start + i] >> PLACE_SHIFT]
            filled[terms[start + i] >> PLACE_SHIFT] += 1
            entries[place, 0] = int32(rank)
            entries[place, 1] = int32(terms[start + i] & WEIGHT)
            rests[place, 2] = after[start + i]


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


@leaf_kernel
def _first_at_least(entries, low, high, rank):
    """Return the first place in [low, high) whose entry has that rank or a higher one."""
    while low < high:
        middle = (low + high) // 2
        if entries[middle, 0] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@leaf_kernel
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


@leaf_kernel
def _first_after(terms, low, high, last):
    """Return the first place in [low, high) whose term has a place after last."""
    while low < high:
        middle = (low + high) // 2
        if terms[middle] >> PLACE_SHIFT <= last:
            low = middle + 1
        else:
            high = middle
    return low


@njit(inline="always")
def _key(term):
    """Return the key of a term's place, which is a number and must be spread."""
    return uint64((term >> PLACE_SHIFT) + 1) * _GOLDEN


@leaf_kernel
def _common(total, rest, least, terms, after, table, minima):
    """Return total and what the terms have in common with the table, or -1 once that cannot reach least.

    rest: at least the sum or norm of what the table may still give.
    """
    keys, weights = table
    for i in range(terms.shape[0]):
        slot = find_slot(_key(terms[i]), keys)
        if keys[slot] != uint64(0):
            weight = terms[i] & WEIGHT
            total += min(weight, weights[slot]) if minima else weight * weights[slot]
        if float64(total) + _bound(minima, rest, float64(after[i])) < least:
            return int64(-1)
    return total


@inner_kernel
def _verify(rank, count, sets, needs, minima, scratch, written):
    """Append (other, rank, what they have in common, whether it surely suffices) to the pairs.

    It is done for those of the first count ranks found that may match; met is zeros again.
    Returns (pairs written in all, candidates, verified).
    """
    met, found, room, weights, pairs = scratch
    starts, held, lengths, lasts, tails, terms, after = (
        sets.starts,
        sets.held,
        sets.lengths,
        sets.last,
        sets.tails,
        sets.terms,
        sets.after,
    )
    extents = needs.extents
    keys = room[:0]
    begin = sets.starts[rank]
    end = begin + sets.lengths[rank]
    probed = begin + sets.probed[rank]
    last = last_place(sets, rank, sets.probed[rank])
    candidates = 0
    verified = 0
    for c in range(count):
        other = found[c]
        total = met[other]
        met[other] = 0
        if total < 0:
            continue
        candidates += 1
        least = needs.fixed[rank] + needs.slopes[rank] * extents[other]
        if lasts[other] <= last:
            rest = float64(after[_first_after(terms, begin, probed, lasts[other]) - 1])
            if float64(total) + _bound(minima, rest, float64(tails[other])) < least:
                continue
            low = starts[other] + held[other]
        else:
            rest = float64(after[probed - 1])
            low = starts[other]
            low = _first_after(terms, low, low + held[other], last)
            if float64(total) + _bound(minima, rest, float64(after[low - 1])) < least:
                continue
        high = starts[other] + lengths[other]
        if keys.shape[0] == 0:
            keys = clear_table(room, end - begin)
            for i in range(begin, end):
                slot = find_slot(_key(terms[i]), keys)
                keys[slot] = _key(terms[i])
                weights[slot] = terms[i] & WEIGHT
        verified += 1
        total = _common(total, rest, least, terms[low:high], after[low:high], (keys, weights), minima)
        if float64(total) >= least and total > 0:
            pairs[written, 0] = other
            pairs[written, 1] = rank
            pairs[written, 2] = total
            sure = needs.sure_fixed[rank] + needs.sure_slopes[rank] * extents[other]
            pairs[written, 3] = float64(total) >= sure
            written += 1
    return written, candidates, verified


@kernel
def match_vectors(begin, end, sets, postings, needs, minima, scratch):
    """Find all partners before them of the ranks in [begin, end).

    scratch: (met, found, room, weights, pairs): int64[r] zeros; int64[r]; uint64 and int64, ``slots_for`` the longest
    vector; int64[p, 4] with room for r pairs at least, to be filled with (earlier, later, what they have in
    common, whether it surely suffices). Stops early when the room may not suffice for one more rank.
    Returns (rank to go on with, pairs written, candidates, verified).
    """
    written = int64(0)
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
