"""How many features the documents of given pairs share."""

from __future__ import annotations

from math import exp

import numpy as np
from numba import float64, int64, uint64

from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.graph import root_of
from neardup.kernels.tables import cleared, enter_places, find, room_for, value_of


@kernel
def overlaps(heads, features, left, right, out):
    """Set out[i] to the number of features that documents left[i] and right[i] share.

    heads: int64[n + 1]; features: uint64, ascending within each document; left, right, out: int64[k].
    """
    for i in range(out.shape[0]):
        a = heads[left[i]]
        b = heads[right[i]]
        end_a = heads[left[i] + 1]
        end_b = heads[right[i] + 1]
        shared = 0
        while a < end_a and b < end_b:
            if features[a] == features[b]:
                shared += 1
                a += 1
                b += 1
            elif features[a] < features[b]:
                a += 1
            else:
                b += 1
        out[i] = shared


_ALL = ~uint64(0)
_ONE = uint64(1)
_LARGEST_SQUARE = 2.0**61


@kernel
def sort_rows(heads, features, weights):
    """Sort the features of each document, and their weights with them where there are any.

    heads: int64[n + 1]; features: uint64; weights: int64, as long or empty.
    """
    for d in range(heads.shape[0] - 1):
        row = features[heads[d] : heads[d + 1]]
        if weights.shape[0] > 0:
            order = np.argsort(row)
            own = weights[heads[d] : heads[d + 1]]
            row[:] = row[order]
            own[:] = own[order]
        else:
            row.sort()


@kernel
def add_up(heads, weights, sums, squares):
    """Set sums[d] to the sum of a document's weights, and squares[d] to that of their squares, -1 from 2**61 on."""
    for d in range(sums.shape[0]):
        sums[d] = 0
        squares[d] = 0
        about = 0.0
        for i in range(heads[d], heads[d + 1]):
            sums[d] += weights[i]
            squares[d] += weights[i] * weights[i]
            about += float64(weights[i]) * float64(weights[i])
        if about >= _LARGEST_SQUARE:
            squares[d] = -1


@kernel
def add_shared(heads, features, weights, squares, left, right, out):
    """Set out[i] to the dot product of two documents' weights, or to the sum of the smaller weights.

    heads: int64[n + 1]; features: uint64, ascending within each document; weights: int64; left, right, out: int64[k].
    """
    for i in range(out.shape[0]):
        a = heads[left[i]]
        b = heads[right[i]]
        end_a = heads[left[i] + 1]
        end_b = heads[right[i] + 1]
        total = 0
        # No branch on which one is smaller: it cannot be foretold.
        while a < end_a and b < end_b:
            one = features[a]
            other = features[b]
            if one == other:
                total += weights[a] * weights[b] if squares else min(weights[a], weights[b])
            a += int64(one <= other)
            b += int64(other <= one)
        out[i] = total


@inner_kernel
def _distance(rows, columns, masks, ups, downs):
    """Return the Levenshtein distance of two sequences of numbers (Hyyroe 2003: 64 rows at a time, column by column).

    rows: int64, -1 for what no column has; columns: int64; masks: uint64 zeros, one for each number; ups, downs: uint64
    as long as columns.
    """
    count = rows.shape[0]
    distance = count
    for j in range(columns.shape[0]):
        ups[j] = 1
        downs[j] = 0
    for begin in range(0, count, 64):
        size = min(count - begin, 64)
        for i in range(size):
            if rows[begin + i] >= 0:
                masks[rows[begin + i]] |= _ONE << uint64(i)
        last = uint64(size - 1)
        up = _ALL
        down = uint64(0)
        for j in range(columns.shape[0]):
            equal = masks[columns[j]]
            vertical = equal | down
            equal |= downs[j]
            horizontal = (((equal & up) + up) ^ up) | equal
            rise = down | ~(horizontal | up)
            fall = up & horizontal
            rise_in, fall_in = ups[j], downs[j]
            ups[j] = (rise >> last) & _ONE
            downs[j] = (fall >> last) & _ONE
            rise = (rise << _ONE) | rise_in
            fall = (fall << _ONE) | fall_in
            up = fall | ~(vertical | rise)
            down = rise & vertical
        for i in range(size):
            if rows[begin + i] >= 0:
                masks[rows[begin + i]] = 0
    for j in range(columns.shape[0]):
        distance += int64(ups[j]) - int64(downs[j])
    return distance


@inner_kernel
def _common(rows, columns, masks, carries):
    """Return the length of the longest common subsequence of two sequences (Hyyroe 2004); parameters as above."""
    length = 0
    carries[: columns.shape[0]] = 0
    for begin in range(0, rows.shape[0], 64):
        size = min(rows.shape[0] - begin, 64)
        for i in range(size):
            if rows[begin + i] >= 0:
                masks[rows[begin + i]] |= _ONE << uint64(i)
        free = _ALL
        for j in range(columns.shape[0]):
            matched = free & masks[columns[j]]
            total = free + matched
            carry = total < free
            total += carries[j]
            carries[j] = carry | (total < carries[j])
            free = total | (free - matched)
        for i in range(size):
            if rows[begin + i] >= 0:
                masks[rows[begin + i]] = 0
            length += int64((~free >> uint64(i)) & _ONE)
    return length


@kernel
def align(heads, tokens, left, right, distances, lengths):
    """Set, for pairs of token sequences, their Levenshtein distance and the length of their longest common subsequence.

    heads: int64[n + 1]; tokens: uint64, none of them 0; left, right: int64[k]; distances, lengths: int64[k], empty
    where not wanted.
    """
    longest = 0
    for i in range(left.shape[0]):
        for d in (left[i], right[i]):
            longest = max(longest, heads[d + 1] - heads[d])
    keys = room_for(longest)
    ids = np.empty(keys.shape[0], np.int64)
    masks = np.zeros(longest, np.uint64)
    rows = np.empty(longest, np.int64)
    columns = np.empty(longest, np.int64)
    ups = np.empty(longest, np.uint64)
    downs = np.empty(longest, np.uint64)
    for i in range(left.shape[0]):
        a, b = heads[left[i]], heads[right[i]]
        end_a, end_b = heads[left[i] + 1], heads[right[i] + 1]
        alike = 0
        while a < end_a and b < end_b and tokens[a] == tokens[b]:
            a += 1
            b += 1
            alike += 1
        while a < end_a and b < end_b and tokens[end_a - 1] == tokens[end_b - 1]:
            end_a -= 1
            end_b -= 1
            alike += 1
        if end_a - a > end_b - b:
            a, end_a, b, end_b = b, end_b, a, end_a
        # The shorter one makes the rows: the fewer blocks of 64.
        table = cleared(keys, end_b - b)
        enter_places(tokens[b:end_b], table, ids)
        for j in range(b, end_b):
            columns[j - b] = ids[find(tokens[j], table)]
        for j in range(a, end_a):
            rows[j - a] = value_of(tokens[j], table, ids, -1)
        one, other = rows[: end_a - a], columns[: end_b - b]
        if distances.shape[0] > 0:
            distances[i] = _distance(one, other, masks, ups, downs) if end_a > a else end_b - b
        if lengths.shape[0] > 0:
            lengths[i] = alike + _common(one, other, masks, ups)


#: So many thresholds go into a word.
WORD = 64


@kernel
def rows_of_earlier(one, other, level, heads, earlier, levels):
    """Write for each node its neighbours of smaller number, and the levels of those pairs.

    one, other: int64[e], the nodes of each pair; level: int16[e]; heads: int64[k + 1], zeros on entry, then where the
    rows begin; earlier: int32[e] and levels: int16[e], written.
    """
    for e in range(one.shape[0]):
        heads[max(one[e], other[e]) + 1] += 1
    for node in range(heads.shape[0] - 1):
        heads[node + 1] += heads[node]
    at = heads[:-1].copy()
    for e in range(one.shape[0]):
        later = max(one[e], other[e])
        earlier[at[later]] = min(one[e], other[e])
        levels[at[later]] = level[e]
        at[later] += 1


@kernel
def keep_at_levels(heads, earlier, levels, begin, stays, kept):
    """Go through the nodes in keep order, once for 64 thresholds, and keep one unless an earlier kept one matches it.

    Bit k of a word is for threshold begin + k. heads, earlier, levels: from ``rows_of_earlier``, of nodes that are
    numbered in keep order; stays: uint64[k], written; kept: int64[64], zeros on entry, then how many stay at each.
    """
    for node in range(stays.shape[0]):
        matched = uint64(0)
        for e in range(heads[node], heads[node + 1]):
            upto = levels[e] - begin
            if upto >= WORD - 1:
                matched |= stays[earlier[e]]
            elif upto >= 0:
                matched |= stays[earlier[e]] & ((_ONE << uint64(upto + 1)) - _ONE)
        stays[node] = ~matched
        for k in range(WORD):
            kept[k] += int64((stays[node] >> uint64(k)) & _ONE)


@kernel
def join_at_levels(one, other, order, heads, documents, families, largest):
    """Count, at each threshold, the components of more than one document, and the documents of the largest.

    one, other: int64[e], the nodes of each pair; order: int64[e], the pairs by level; heads: int64[l + 1], where each
    level begins in it; documents: int64[k], how many each node stands for, overwritten; families, largest: int64[l],
    written.
    """
    root = np.arange(documents.shape[0])
    several = 0
    most = 0
    for node in range(documents.shape[0]):
        if documents[node] > 1:
            several += 1
            most = max(most, documents[node])
    for level in range(families.shape[0] - 1, -1, -1):
        for i in range(heads[level], heads[level + 1]):
            a = root_of(one[order[i]], root)
            b = root_of(other[order[i]], root)
            if a == b:
                continue
            several += 1 - int64(documents[a] > 1) - int64(documents[b] > 1)
            if documents[a] < documents[b]:
                a, b = b, a
            root[b] = a
            documents[a] += documents[b]
            most = max(most, documents[a])
        families[level] = several
        largest[level] = most


@kernel
def discriminant(x, skipped, fill, center, scale, gamma, support, dual, intercept, out):
    """Set out[i] to g of row i of x; with ``skipped`` = j >= 0, as if measure j had the value center[j].

    x: float64[n, r], nan for what is not known; fill, center, scale: float64[r]; gamma: 0 for the linear kernel;
    support: float64[s, r], standardised; dual: float64[s]; out: float64[n].
    """
    width = x.shape[1]
    row = np.empty(width)
    for i in range(x.shape[0]):
        for j in range(width):
            value = x[i, j]
            if np.isnan(value):
                value = fill[j]
            row[j] = 0.0 if j == skipped else (value - center[j]) / scale[j]
        total = intercept
        for s in range(support.shape[0]):
            inner = 0.0
            if gamma > 0:
                for j in range(width):
                    difference = row[j] - support[s, j]
                    inner += difference * difference
                total += dual[s] * exp(-gamma * inner)
            else:
                for j in range(width):
                    inner += row[j] * support[s, j]
                total += dual[s] * inner
        out[i] = total
