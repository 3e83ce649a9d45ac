"""Checksums of blocks of files, each compared when something in its block is first read.

A file that is mapped into memory may be much larger than what a search reads of it. So a search pays for the blocks
that it reads, once. Sums show what a disk or a copy has changed. Whoever means to deceive writes matching sums: so
what kernels take from a file as a place is also compared with the size of the array that it points into.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import int64, uint8, uint64

from neardup.kernels.bits import load_u8, load_u64
from neardup.kernels.compilation import inlined, kernel, leaf_kernel

#: Bytes of a block. A search reads some hundred blocks; the sums take 0.05 % of the files.
BLOCK_BYTES = 1 << 14
_LANE_BYTES = 32
#: Odd, so that multiplication is a bijection: one changed word always changes the sum.
_FACTOR = uint64(0x9E3779B97F4A7C15)


class CheckedFiles(NamedTuple):
    """Mapped files: addresses uint64[f], sizes int64[f], and the blocks of file i from firsts[i] on (int64[f + 1]).

    sums: uint64[b], of all blocks; is_intact: uint8[b], 1 for blocks whose sum was compared.
    """

    addresses: np.ndarray
    sizes: np.ndarray
    firsts: np.ndarray
    sums: np.ndarray
    is_intact: np.ndarray


@inlined
def _mixed(sum_so_far, word):
    """Return a sum with another word; the rotation carries each bit away from the top."""
    product = (sum_so_far ^ word) * _FACTOR
    return (product << uint64(29)) | (product >> uint64(35))


@leaf_kernel
def _sum_of(address, size):
    """Return the sum of bytes. Four lanes at a time: one would wait for each multiplication."""
    a, b, c, d = uint64(1), uint64(2), uint64(3), uint64(size)
    whole = size // _LANE_BYTES * _LANE_BYTES
    for at in range(0, whole, _LANE_BYTES):
        first = address + uint64(at)
        a = _mixed(a, load_u64(first))
        b = _mixed(b, load_u64(first + uint64(8)))
        c = _mixed(c, load_u64(first + uint64(16)))
        d = _mixed(d, load_u64(first + uint64(24)))
    for at in range(whole, size):
        a = _mixed(a, uint64(load_u8(address + uint64(at))))
    return _mixed(_mixed(_mixed(_mixed(uint64(0), a), b), c), d)


@kernel
def block_sums(data):
    """Return the sums of the blocks of some bytes (uint8[n]), the last of which may be shorter."""
    count = (data.shape[0] + BLOCK_BYTES - 1) // BLOCK_BYTES
    sums = np.empty(count, np.uint64)
    for block in range(count):
        begin = block * BLOCK_BYTES
        sums[block] = _sum_of(uint64(data.ctypes.data) + uint64(begin), min(BLOCK_BYTES, data.shape[0] - begin))
    return sums


@leaf_kernel
def _compare_block(files, number, block):
    """Compare a block of a file with its sum; return whether they agree."""
    begin = block * BLOCK_BYTES
    at = files.firsts[number] + block
    found = _sum_of(files.addresses[number] + uint64(begin), min(BLOCK_BYTES, files.sizes[number] - begin))
    if found != files.sums[at]:
        return False
    # Threads may compare one block at a time, and write the same.
    files.is_intact[at] = uint8(1)
    return True


@leaf_kernel
def are_intact(files, number, begin, end):
    """Return whether the bytes [begin, end) of a file, at least one of them, are what was written."""
    for block in range(begin // BLOCK_BYTES, (end - 1) // BLOCK_BYTES + 1):
        if files.is_intact[files.firsts[number] + block] == uint8(0) and not _compare_block(files, number, block):
            return False
    return True


@kernel
def check_bytes(files, number, begin, end):
    """Return whether the bytes [begin, end) of a file are what was written."""
    return are_intact(files, number, int64(begin), int64(end)) if begin < end else True


@leaf_kernel
def check_slots(files, number, features, shift):
    """Return whether the bytes of a file at the top bits of features are what was written."""
    for i in range(features.shape[0]):
        slot = int64(features[i] >> shift)
        if not are_intact(files, number, slot, slot + 1):
            return False
    return True


@kernel
def check_counts(files, number, features, shift):
    """Do what ``check_slots`` does, for a call from Python."""
    return check_slots(files, number, features, shift)
