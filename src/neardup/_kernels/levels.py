"""Keepers and families at many thresholds at once, from pairs of which it is known how strict a threshold they reach.

Thresholds are numbered from 0, the loosest. A pair of level k matches at thresholds 0 to k.
"""

import numpy as np
from numba import int64, uint64

from neardup._kernels.compiling import kernel

_ONE = uint64(1)
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
            a = one[order[i]]
            b = other[order[i]]
            while root[a] != a:
                root[a] = root[root[a]]
                a = root[a]
            while root[b] != b:
                root[b] = root[root[b]]
                b = root[b]
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
