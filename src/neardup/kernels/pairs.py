"""Computations on pairs of documents: overlaps, edit distances, discriminants."""

from __future__ import annotations

from math import exp

import numpy as np
from numba import float64, int64, uint64

from neardup.kernels.compilation import inner_kernel, kernel
from neardup.kernels.tables import clear_table, find_slot, lookup_value, number_keys, table_buffer

_ALL = ~uint64(0)
_BIT = uint64(1)
_LARGEST_SQUARE = 2.0**61


@kernel
def sort_rows(heads, features, weights):
    """Sort the features of each document, with their weights unless these are empty.

    heads: int64[n + 1]; features: uint64; weights: int64, as long as features, or empty.
    """
    for d in range(heads.shape[0] - 1):
        row = features[heads[d] : heads[d + 1]]
        if weights.shape[0] > 0:
            order = np.argsort(row)
            row_weights = weights[heads[d] : heads[d + 1]]
            row[:] = row[order]
            row_weights[:] = row_weights[order]
        else:
            row.sort()


@kernel
def weight_sums(heads, weights, sums, squares):
    """Set sums[d] to the sum of a document's weights, and squares[d] to the sum of their squares, -1 from 2**61 on."""
    for d in range(sums.shape[0]):
        sums[d] = 0
        squares[d] = 0
        approximate = 0.0
        for i in range(heads[d], heads[d + 1]):
            sums[d] += weights[i]
            squares[d] += weights[i] * weights[i]
            approximate += float64(weights[i]) * float64(weights[i])
        if approximate >= _LARGEST_SQUARE:
            squares[d] = -1


@kernel
def count_overlaps(heads, features, weights, squares, left, right, out):
    """Set out[i] to the dot product of two documents' weights, or to the sum of the smaller weights.

    heads: int64[n + 1]; features: uint64, ascending within each document; weights: int64, or empty for weights of 1;
    left, right, out: int64[k].
    """
    weighted = weights.shape[0] > 0
    for i in range(out.shape[0]):
        a = heads[left[i]]
        b = heads[right[i]]
        end_a = heads[left[i] + 1]
        end_b = heads[right[i] + 1]
        total = 0
        # Without a branch on which one is smaller, which no processor can predict.
        while a < end_a and b < end_b:
            feature_a = features[a]
            feature_b = features[b]
            if not weighted:
                total += int64(feature_a == feature_b)
            elif feature_a == feature_b:
                total += weights[a] * weights[b] if squares else min(weights[a], weights[b])
            a += int64(feature_a <= feature_b)
            b += int64(feature_b <= feature_a)
        out[i] = total


@inner_kernel
def _levenshtein(rows, columns, masks, ups, downs):
    """Return the Levenshtein distance of two sequences of numbers (Hyyroe 2003: 64 rows at a time, column by column).

    rows: int64, -1 for numbers that columns do not contain; columns: int64; masks: uint64 zeros, one per number; ups,
    downs: uint64, as long as columns.
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
                masks[rows[begin + i]] |= _BIT << uint64(i)
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
            ups[j] = (rise >> last) & _BIT
            downs[j] = (fall >> last) & _BIT
            rise = (rise << _BIT) | rise_in
            fall = (fall << _BIT) | fall_in
            up = fall | ~(vertical | rise)
            down = rise & vertical
        for i in range(size):
            if rows[begin + i] >= 0:
                masks[rows[begin + i]] = 0
    for j in range(columns.shape[0]):
        distance += int64(ups[j]) - int64(downs[j])
    return distance


@inner_kernel
def _lcs_length(rows, columns, masks, carries):
    """Return the length of the longest common subsequence of two sequences (Hyyroe 2004); arguments as above."""
    length = 0
    carries[: columns.shape[0]] = 0
    for begin in range(0, rows.shape[0], 64):
        size = min(rows.shape[0] - begin, 64)
        for i in range(size):
            if rows[begin + i] >= 0:
                masks[rows[begin + i]] |= _BIT << uint64(i)
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
            length += int64((~free >> uint64(i)) & _BIT)
    return length


@kernel
def edit_distances(heads, tokens, left, right, distances, lengths):
    """Set the Levenshtein distance and the length of the longest common subsequence of pairs of token sequences.

    heads: int64[n + 1]; tokens: uint64, none of them 0; left, right: int64[k]; distances, lengths: int64[k], or empty
    if not needed.
    """
    longest = 0
    for i in range(left.shape[0]):
        for d in (left[i], right[i]):
            longest = max(longest, heads[d + 1] - heads[d])
    keys = table_buffer(longest)
    ids = np.empty(keys.shape[0], np.int64)
    masks = np.zeros(longest, np.uint64)
    rows = np.empty(longest, np.int64)
    columns = np.empty(longest, np.int64)
    ups = np.empty(longest, np.uint64)
    downs = np.empty(longest, np.uint64)
    for i in range(left.shape[0]):
        a, b = heads[left[i]], heads[right[i]]
        end_a, end_b = heads[left[i] + 1], heads[right[i] + 1]
        equal_ends = 0
        while a < end_a and b < end_b and tokens[a] == tokens[b]:
            a += 1
            b += 1
            equal_ends += 1
        while a < end_a and b < end_b and tokens[end_a - 1] == tokens[end_b - 1]:
            end_a -= 1
            end_b -= 1
            equal_ends += 1
        if end_a - a > end_b - b:
            a, end_a, b, end_b = b, end_b, a, end_a
        # The shorter sequence makes the rows, for fewer blocks of 64.
        table = clear_table(keys, end_b - b)
        number_keys(tokens[b:end_b], table, ids)
        for j in range(b, end_b):
            columns[j - b] = ids[find_slot(tokens[j], table)]
        for j in range(a, end_a):
            rows[j - a] = lookup_value(tokens[j], table, ids, -1)
        shorter, longer = rows[: end_a - a], columns[: end_b - b]
        if distances.shape[0] > 0:
            distances[i] = _levenshtein(shorter, longer, masks, ups, downs) if end_a > a else end_b - b
        if lengths.shape[0] > 0:
            lengths[i] = equal_ends + _lcs_length(shorter, longer, masks, ups)


@kernel
def discriminant(x, skipped, fill, center, scale, gamma, support, dual, intercept, out):
    """Set out[i] to the discriminant g of row i of x; if skipped = j >= 0, as if measure j had the value center[j].

    x: float64[n, r], nan for unknown values; fill, center, scale: float64[r]; gamma: 0 for the linear kernel; support:
    float64[s, r], standardized; dual: float64[s]; out: float64[n].
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
