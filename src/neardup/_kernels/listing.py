"""Which documents hold the features of some queries, and what a document has in common with one of them.

o is what a query and a document have in common, a and b are their own totals (``neardup.measures``).
"""

from typing import NamedTuple

import numpy as np
from numba import int32, int64, njit, uint64

from neardup._kernels.bits import prefetch
from neardup._kernels.compiling import kernel

#: What two documents have in common: the number of shared features, sums of smaller weights, or sums of products.
COUNTS, MINIMA, PRODUCTS = 0, 1, 2
#: How many features ahead a table is asked for memory.
_AHEAD = 16
_GOLDEN = uint64(0x9E3779B97F4A7C15)


class Rows(NamedTuple):
    """The documents: heads int64[n + 1], features uint64[m], weights int64[m] or empty, totals and roots [n].

    totals: int64, b; -1 for those that nothing may match. roots: float64, square roots of these. smallest: the least.
    """

    heads: np.ndarray
    features: np.ndarray
    weights: np.ndarray
    totals: np.ndarray
    roots: np.ndarray
    smallest: int


class Table(NamedTuple):
    """An open table of 2**bits slots: keys uint64, 0 for none, and values int64."""

    keys: np.ndarray
    values: np.ndarray
    bits: int


class Lists(NamedTuple):
    """Which documents hold the queries' features: those of place p are documents[heads[p]:heads[p + 1]], ascending.

    documents: int32; weights: int64 or empty.
    """

    heads: np.ndarray
    documents: np.ndarray
    weights: np.ndarray


@njit(inline="always")
def _slot(feature, bits):
    return int64((feature * _GOLDEN) >> uint64(64 - bits))


@njit(inline="always")
def find(feature, keys, bits):
    """Return the slot of a feature, or the empty one where it would be."""
    mask = (1 << bits) - 1
    slot = _slot(feature, bits)
    while keys[slot] != feature and keys[slot] != uint64(0):
        slot = (slot + 1) & mask
    return slot


@njit(inline="always")
def in_common(kind, weight, theirs):
    if kind == COUNTS:
        return 1
    return min(weight, theirs) if kind == MINIMA else weight * theirs


@kernel
def enter_places(features, table):
    """Enter features, repeats among them, into a table of zeros with a number each; return how many are distinct."""
    count = 0
    for i in range(features.shape[0]):
        slot = find(features[i], table.keys, table.bits)
        if table.keys[slot] == uint64(0):
            table.keys[slot] = features[i]
            table.values[slot] = count
            count += 1
    return count


@kernel
def enter_weights(features, weights, table):
    """Make a table, of zeros on entry, from features to weights; to 1 where there are no weights."""
    weighted = weights.shape[0] > 0
    for i in range(features.shape[0]):
        slot = find(features[i], table.keys, table.bits)
        table.keys[slot] = features[i]
        table.values[slot] = weights[i] if weighted else 1


@kernel
def list_lengths(rows, table, heads):
    """Make heads (zeros on entry, one more than the places) the beginnings of the lists."""
    keys = uint64(table.keys.ctypes.data)
    last = rows.features.shape[0] - 1
    for d in range(rows.totals.shape[0]):
        if rows.totals[d] < 0:
            continue
        for i in range(rows.heads[d], rows.heads[d + 1]):
            prefetch(keys + uint64(8 * _slot(rows.features[min(i + _AHEAD, last)], table.bits)))
            slot = find(rows.features[i], table.keys, table.bits)
            if table.keys[slot] != uint64(0):
                heads[table.values[slot] + 1] += 1
    for place in range(heads.shape[0] - 1):
        heads[place + 1] += heads[place]


@kernel
def fill_lists(rows, table, lists):
    """Fill the lists, whose heads are there."""
    keys = uint64(table.keys.ctypes.data)
    last = rows.features.shape[0] - 1
    weighted = rows.weights.shape[0] > 0
    filled = lists.heads.copy()
    for d in range(rows.totals.shape[0]):
        if rows.totals[d] < 0:
            continue
        for i in range(rows.heads[d], rows.heads[d + 1]):
            prefetch(keys + uint64(8 * _slot(rows.features[min(i + _AHEAD, last)], table.bits)))
            slot = find(rows.features[i], table.keys, table.bits)
            if table.keys[slot] != uint64(0):
                place = table.values[slot]
                lists.documents[filled[place]] = int32(d)
                if weighted:
                    lists.weights[filled[place]] = rows.weights[i]
                filled[place] += 1


@kernel
def common_with(kind, document, rows, table):
    """Return what a document has in common with the features and weights of a table."""
    total = 0
    for i in range(rows.heads[document], rows.heads[document + 1]):
        slot = find(rows.features[i], table.keys, table.bits)
        if table.keys[slot] != uint64(0):
            total += in_common(kind, table.values[slot], rows.weights[i]) if kind != COUNTS else 1
    return total


@kernel
def common_with_all(kind, rows, table, out):
    """Write what each document has in common with the features of a table, 0 for those that nothing may match."""
    for d in range(out.shape[0]):
        out[d] = common_with(kind, d, rows, table) if rows.totals[d] >= 0 else 0
