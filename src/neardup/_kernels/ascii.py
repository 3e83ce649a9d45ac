"""ASCII text to comparable text; what is not ASCII is left to ``_kernels.unicode``."""

import numpy as np
from numba import njit, uint64

from neardup._kernels.bits import fold_words, high_mask


@njit(nogil=True, cache=True)
def is_ascii(data, lo, hi):
    """Return whether all bytes of [lo, hi) are below 128."""
    base = uint64(data.ctypes.data)
    block = lo
    while block + 64 <= hi:
        if high_mask(base + uint64(block)) != uint64(0):
            return False
        block += 64
    high = np.uint8(0)
    for i in range(block, hi):
        high |= data[i]
    return high < np.uint8(128)


@njit(nogil=True, cache=True)
def fold_ascii(data, lo, hi, table, out, at):
    """Write [lo, hi) to out[at:], letters lower-cased and each byte that is no word's turned into a space."""
    source = uint64(data.ctypes.data)
    target = uint64(out.ctypes.data)
    block = 0
    length = hi - lo
    while block + 64 <= length:
        fold_words(source + uint64(lo + block), target + uint64(at + block))
        block += 64
    for i in range(block, length):
        out[at + i] = table[data[lo + i]]
    return length


@njit(nogil=True, cache=True)
def map_ascii(data, lo, hi, table, out, at):
    """Write [lo, hi) to out[at:] by a table of 256 bytes, leaving out those that map to 0; return how many stay."""
    end = at
    for i in range(lo, hi):
        byte = table[data[i]]
        out[end] = byte
        end += byte != 0
    return end - at
