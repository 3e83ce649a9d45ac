"""Minima to features, and the marks of sets that are made outside ``_kernels.shingles``."""

import numpy as np
from numba import uint64

from neardup._kernels.compiling import kernel
from neardup._kernels.grams import placed
from neardup._kernels.sets import mark


@kernel
def place_minima(minima, sizes, out):
    """Write the features (i, minimum i) of each document to out, K or none; sizes holds K or 0 for each.

    minima: uint64[d, K]; out: uint64, room for all. Returns the number of features written.
    """
    at = 0
    for d in range(sizes.shape[0]):
        for i in range(sizes[d]):
            out[at] = max(placed(minima[d, i], i), uint64(1))
            at += 1
    return at


@kernel
def mark_sets(features, sizes, marks):
    """Write the marks of sets that lie one behind the other: uint64[d, 2]."""
    none = np.empty(0, np.int64)
    at = 0
    for d in range(sizes.shape[0]):
        marks[d, 0], marks[d, 1] = mark(features, none, at, sizes[d])
        at += sizes[d]
