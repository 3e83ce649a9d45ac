"""Couples of features: the keys of large sets, many of which any two sets that match have in common.

A feature belongs to one of B buckets, the same one in each document. A document takes features in the window's order,
the rarest first, until its credit is miss + l. Credit: the sum of t - 1 over the buckets that t > 0 of those taken are
in. miss: how many of its features a match may lack. Its keys are all couples of taken features of one bucket.

Let two documents match, and let what the first one took end no later in the order than what the second one took. At
most miss of the features that the first one took are not in the second document; the others were taken by that one,
too. To leave out a feature lowers the credit by 1 at most, so what both took has a credit of l at least; and t features
of a bucket make t (t - 1) / 2 couples, never fewer than t - 1. So l keys are equal (k-wise signatures: Wang, Xiao, Qin,
Wang & Zhang, SIGMOD 2016). A set of n features has a credit of n - B at least, so it always finds enough where B + l is
at most n - miss, the least overlap of a match.
"""

import numpy as np
from numba import int64, njit, uint64

from neardup._kernels.bits import mix
from neardup._kernels.bounds import need, smallest_partner
from neardup._kernels.compiling import kernel

#: Columns of a plan: the least size of a row's documents, the bits of a bucket, l, how many documents ever entered.
LEAST, BITS, EQUAL, ENTERED = range(4)
_FACTOR = uint64(0x9E3779B97F4A7C15)


@njit(inline="always")
def row_of(plan, size):
    """Return the row of the plan that a document of some size enters by, or -1: by single features."""
    row = int64(-1)
    while row + 1 < plan.shape[0] and plan[row + 1, LEAST] <= size:
        row += 1
    return row


@njit(inline="always")
def credit_to_enter(rule, size, equal):
    """Return the credit that a document needs so that any partner shares so many keys with it."""
    return size - need(rule, smallest_partner(rule, size), size) + equal


@kernel
def couples_of(order, credit, bits, salt):
    """Return the keys of a document: couples of features that are in one of 2**bits buckets.

    Parameters
    ----------
    order : uint64
        Its features in an order that all documents share.
    credit : int
        Features are taken until they are worth so much, or all are. Raising it makes more keys, and more frequent ones.
    bits : int
        Raising it makes fewer keys, and more frequent ones.
    salt : uint64
        Odd. Of all salts, at most 2 in B let two features share a bucket (multiply-shift: Dietzfelbinger et al. 1997).
        So n features make n * n / B keys at most in the mean, whoever chose them, as long as nobody knows the salt.
    """
    hashed = np.empty(order.shape[0], np.uint64)
    counts = np.zeros(1 << bits, np.int64)
    shift = uint64(63 - bits)
    taken = int64(0)
    worth = int64(0)
    keys = int64(0)
    while taken < order.shape[0] and worth < credit:
        hashed[taken] = mix(order[taken]) * salt
        bucket = int64((hashed[taken] >> shift) >> uint64(1))
        worth += counts[bucket] > 0
        keys += counts[bucket]
        counts[bucket] += 1
        taken += 1
    begins = np.empty(1 << bits, np.int64)
    begin = int64(0)
    for bucket in range(1 << bits):
        begins[bucket] = begin
        begin += counts[bucket]
        counts[bucket] = 0
    members = np.empty(taken, np.uint64)
    found = np.empty(keys, np.uint64)
    at = int64(0)
    for i in range(taken):
        value = hashed[i]
        bucket = int64((value >> shift) >> uint64(1))
        begin = begins[bucket]
        end = begin + counts[bucket]
        # The earlier feature of the order comes first, so a couple has the same key in each document.
        for k in range(begin, end):
            found[at] = mix(members[k] * _FACTOR + value)
            at += 1
        members[end] = value
        counts[bucket] += 1
    return found
