"""The exact join of weighted vectors: terms in rare-first order, an index of their prefixes, and verification.

Vectors are numbered by rank, from the smallest total to the largest. A term is one int64: the position of its feature
in the rare-first order, and its weight. The extent of some terms is their sum if minima are added up (``minima``), else
the root of the sum of their squares. The overlap of two vectors is at most the smaller extent, or the product of both
extents (Cauchy and Schwarz).
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numba import float32, float64, int32, int64, uint64

from neardup.kernels.bits import prefetch
from neardup.kernels.compilation import inlined, inner_kernel, kernel, leaf_kernel
from neardup.kernels.tables import clear_table, find_slot, home_slot

POSITION_SHIFT = 32
WEIGHT_MASK = (1 << POSITION_SHIFT) - 1
_GOLDEN = uint64(0x9E3779B97F4A7C15)
#: Compensates for rounding to float32, so that bounds stay upper bounds.
_ROUND_UP = 1 + 2.0**-22


class RankedVectors(NamedTuple):
    """The vectors of a join by rank.

    starts: int64[r], into the arrays of terms; lengths: int64[r], how many features other vectors have, too; terms:
    int64, position << 32 | weight, ascending; remaining_extents: float32, an upper bound of the extent of a vector's
    terms after this one; probe_lengths, index_lengths: int64[r], how many terms look for partners and how many are
    indexed; last_positions: int64[r], the last position that the indexed terms cover, the largest number if all terms
    are indexed; index_remaining: float32[r], the remaining extent after the indexed terms.
    """

    starts: np.ndarray
    lengths: np.ndarray
    terms: np.ndarray
    remaining_extents: np.ndarray
    probe_lengths: np.ndarray
    index_lengths: np.ndarray
    last_positions: np.ndarray
    index_remaining: np.ndarray


class WeightedLists(NamedTuple):
    """Inverted lists: the feature at position f has entries[heads[f]:heads[f + 1]], in rank order.

    entries: int32[k, 3]: rank, weight, and the bits of its remaining extent; remaining_extents: the same memory as
    float32.
    """

    heads: np.ndarray
    entries: np.ndarray
    remaining_extents: np.ndarray


@inlined
def _extent(minima, total):
    return float64(total) if minima else sqrt(float64(total))


@kernel
def weight_totals(members, heads, weights, minima, out):
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


@inlined
def last_position(sets, rank, count):
    """Return the last position that the first ``count`` terms of a rank cover; the maximum if these are all terms."""
    if count == sets.lengths[rank]:
        return int64(WEIGHT_MASK)
    return sets.terms[sets.starts[rank] + count - 1] >> POSITION_SHIFT


@kernel
def arrange_terms(begin, end, members, vectors, table, minima, remaining_limits, sets):
    """Fill the terms of the ranks [begin, end), whose starts are set, and their lengths.

    members: int64[r], the document of each rank. table: (keys, positions), the features that several vectors have.
    remaining_limits: float64[2, r], the extents below which the terms after the probe and the index prefix suffice for
    no partner.
    """
    heads, features, weights = vectors
    keys, positions = table
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
                sets.terms[start + length] = (int64(positions[slot]) << POSITION_SHIFT) | weights[i]
                length += 1
        sets.terms[start : start + length].sort()
        sets.lengths[rank] = length
        sets.probe_lengths[rank] = 0
        sets.index_lengths[rank] = 0
        remaining = 0
        extent = 0.0
        for i in range(length - 1, -1, -1):
            sets.remaining_extents[start + i] = float32(extent * _ROUND_UP)
            weight = sets.terms[start + i] & WEIGHT_MASK
            remaining += weight if minima else weight * weight
            extent = _extent(minima, remaining)
            if extent >= remaining_limits[0, rank]:
                sets.probe_lengths[rank] = max(sets.probe_lengths[rank], i + 1)
            if extent >= remaining_limits[1, rank]:
                sets.index_lengths[rank] = max(sets.index_lengths[rank], i + 1)
        if sets.index_lengths[rank] > 0:
            sets.last_positions[rank] = last_position(sets, rank, sets.index_lengths[rank])
            sets.index_remaining[rank] = sets.remaining_extents[start + sets.index_lengths[rank] - 1]


@kernel
def weighted_lists(sets, count):
    """Return the lists of the indexed terms, for ``count`` positions."""
    starts, lengths, terms, extents = sets.starts, sets.index_lengths, sets.terms, sets.remaining_extents
    heads = np.zeros(count + 1, np.int64)
    for rank in range(starts.shape[0]):
        for i in range(starts[rank], starts[rank] + lengths[rank]):
            heads[(terms[i] >> POSITION_SHIFT) + 1] += 1
    for f in range(count):
        heads[f + 1] += heads[f]
    ends, entries = heads.copy(), np.empty((heads[count], 3), np.int32)
    remaining_extents = entries.view(np.float32)
    for rank in range(starts.shape[0]):
        start = starts[rank]
        for i in range(lengths[rank]):
            at = ends[terms[start + i] >> POSITION_SHIFT]
            ends[terms[start + i] >> POSITION_SHIFT] += 1
            entries[at, 0] = int32(rank)
            entries[at, 1] = int32(terms[start + i] & WEIGHT_MASK)
            remaining_extents[at, 2] = extents[start + i]
    return WeightedLists(heads, entries, remaining_extents)


class RequiredOverlaps(NamedTuple):
    """The overlap that a pair x, y needs: fixed[x] + slopes[x] * extents[y], float64[r] each.

    It is rounded down, so pairs below it cannot match; with sure_fixed and sure_slopes it is rounded up, so pairs above
    it match. first: int64[r], the first rank whose total is large enough.
    """

    extents: np.ndarray
    fixed: np.ndarray
    slopes: np.ndarray
    sure_fixed: np.ndarray
    sure_slopes: np.ndarray
    first: np.ndarray


@inlined
def _overlap_bound(minima, x, y):
    """Return an upper bound of the overlap of terms of extents x and y."""
    return min(x, y) if minima else x * y


@leaf_kernel
def _first_at_least(entries, low, high, rank):
    """Return the first index in [low, high) of an entry with this rank or a higher one."""
    while low < high:
        middle = (low + high) // 2
        if entries[middle, 0] < rank:
            low = middle + 1
        else:
            high = middle
    return low


@leaf_kernel
def _find_candidates(rank, sets, postings, needs, minima, partial_overlaps, candidates):
    """Write to candidates the earlier ranks that share a feature of both prefixes and may still reach the threshold.

    partial_overlaps: int64[r], zeros at first, then the overlap so far, or -1 if excluded, for the candidates.
    """
    start = sets.starts[rank]
    first = needs.first[rank]
    fixed, slope = needs.fixed[rank], needs.slopes[rank]
    count = 0
    for i in range(start, start + sets.probe_lengths[rank]):
        feature = sets.terms[i] >> POSITION_SHIFT
        weight = sets.terms[i] & WEIGHT_MASK
        remaining = float64(sets.remaining_extents[i])
        at, high = postings.heads[feature], postings.heads[feature + 1]
        if first > 0:
            at = _first_at_least(postings.entries, at, high, first)
        while at < high:
            other = int64(postings.entries[at, 0])
            if other >= rank:
                break
            overlap_so_far = partial_overlaps[other]
            if overlap_so_far >= 0:
                other_weight = int64(postings.entries[at, 1])
                total = overlap_so_far + (min(weight, other_weight) if minima else weight * other_weight)
                bound = float64(total) + _overlap_bound(minima, remaining, float64(postings.remaining_extents[at, 2]))
                if bound >= fixed + slope * needs.extents[other]:
                    partial_overlaps[other] = total
                    if overlap_so_far == 0:
                        candidates[count] = other
                        count += 1
                elif overlap_so_far > 0:
                    partial_overlaps[other] = -1
            at += 1
    return count


@leaf_kernel
def _first_term_after(terms, low, high, last):
    """Return the first index in [low, high) of a term whose position is after ``last``."""
    while low < high:
        middle = (low + high) // 2
        if terms[middle] >> POSITION_SHIFT <= last:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _position_key(term):
    """Return the hash table key of a term's position: a small number must be spread."""
    return uint64((term >> POSITION_SHIFT) + 1) * _GOLDEN


@leaf_kernel
def _complete_overlap(total, remaining, required, terms, other_remaining, table, minima):
    """Return total plus the overlap of the terms with a hash table, or -1 once it cannot reach ``required``.

    remaining: an upper bound of the extent of the terms of the table.
    """
    keys, weights = table
    for i in range(terms.shape[0]):
        slot = find_slot(_position_key(terms[i]), keys)
        if keys[slot] != uint64(0):
            weight = terms[i] & WEIGHT_MASK
            total += min(weight, weights[slot]) if minima else weight * weights[slot]
        if float64(total) + _overlap_bound(minima, remaining, float64(other_remaining[i])) < required:
            return int64(-1)
    return total


@inner_kernel
def _verify_candidates(rank, count, sets, needs, minima, scratch, written):
    """Append (other, rank, overlap, whether it surely suffices) to the pairs for those candidates that may match.

    partial_overlaps are zeros again afterwards. Returns (pairs written in all, candidates, verified).
    """
    partial_overlaps, candidates, room, weights, pairs = scratch
    starts, index_lengths, lengths, last_positions, index_remaining, terms, remaining_extents = (
        sets.starts,
        sets.index_lengths,
        sets.lengths,
        sets.last_positions,
        sets.index_remaining,
        sets.terms,
        sets.remaining_extents,
    )
    extents = needs.extents
    keys = room[:0]
    begin = sets.starts[rank]
    end = begin + sets.lengths[rank]
    probe_end = begin + sets.probe_lengths[rank]
    last_probed = last_position(sets, rank, sets.probe_lengths[rank])
    n_candidates = 0
    n_verified = 0
    for c in range(count):
        other = candidates[c]
        total = partial_overlaps[other]
        partial_overlaps[other] = 0
        if total < 0:
            continue
        n_candidates += 1
        required = needs.fixed[rank] + needs.slopes[rank] * extents[other]
        if last_positions[other] <= last_probed:
            remaining = float64(
                remaining_extents[_first_term_after(terms, begin, probe_end, last_positions[other]) - 1]
            )
            if float64(total) + _overlap_bound(minima, remaining, float64(index_remaining[other])) < required:
                continue
            low = starts[other] + index_lengths[other]
        else:
            remaining = float64(remaining_extents[probe_end - 1])
            low = starts[other]
            low = _first_term_after(terms, low, low + index_lengths[other], last_probed)
            if float64(total) + _overlap_bound(minima, remaining, float64(remaining_extents[low - 1])) < required:
                continue
        high = starts[other] + lengths[other]
        if keys.shape[0] == 0:
            keys = clear_table(room, end - begin)
            for i in range(begin, end):
                slot = find_slot(_position_key(terms[i]), keys)
                keys[slot] = _position_key(terms[i])
                weights[slot] = terms[i] & WEIGHT_MASK
        n_verified += 1
        total = _complete_overlap(
            total, remaining, required, terms[low:high], remaining_extents[low:high], (keys, weights), minima
        )
        if float64(total) >= required and total > 0:
            pairs[written, 0] = other
            pairs[written, 1] = rank
            pairs[written, 2] = total
            sure = needs.sure_fixed[rank] + needs.sure_slopes[rank] * extents[other]
            pairs[written, 3] = float64(total) >= sure
            written += 1
    return written, n_candidates, n_verified


@kernel
def match_vectors(begin, end, sets, postings, needs, minima, scratch):
    """Find all earlier partners of the ranks in [begin, end).

    scratch: (partial_overlaps, candidates, room, weights, pairs): int64[r] zeros; int64[r]; uint64 and int64,
    ``table_size`` of the longest vector; int64[p, 4] with space for at least r pairs, gets (earlier, later, overlap,
    whether it surely suffices). Stops if the pairs of the next rank may not fit. Returns (rank to continue from, pairs
    written, candidates, verified).
    """
    written = int64(0)
    n_candidates = 0
    n_verified = 0
    rank = begin
    while rank < end:
        count = _find_candidates(rank, sets, postings, needs, minima, scratch[0], scratch[1])
        if written + count > scratch[4].shape[0]:
            for c in range(count):
                scratch[0][scratch[1][c]] = 0
            break
        written, new_candidates, new_verified = _verify_candidates(rank, count, sets, needs, minima, scratch, written)
        n_candidates += new_candidates
        n_verified += new_verified
        rank += 1
    return rank, written, n_candidates, n_verified
