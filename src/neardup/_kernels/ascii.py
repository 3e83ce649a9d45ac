"""ASCII texts to comparable text; texts that are not ASCII are left to ``_kernels.unicode``."""

import numpy as np
from numba import uint64

from neardup._kernels.bits import fold_words, high_mask, load_u64, mix
from neardup._kernels.compiling import kernel

#: What an ASCII byte becomes that is left out; no ASCII byte itself.
LEFT_OUT = 255


@kernel
def _is_ascii(data, lo, hi):
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


@kernel
def ascii_texts(data, offsets, fold, table, out, spans):
    """Write the texts that are ASCII to out, one behind the other; return how many bytes.

    data: uint8 UTF-8 texts; offsets: int64[d + 1] into it; table: uint8[256], what each byte becomes, or
    LEFT_OUT; fold: the table is that of ``fold_words``, which does 64 bytes at once; out: uint8, as long
    as the texts; spans: int64[d, 2] gets where each text lies in out, or -1 where it is not ASCII.
    """
    source = uint64(data.ctypes.data)
    target = uint64(out.ctypes.data)
    at = 0
    for d in range(spans.shape[0]):
        lo = offsets[d]
        hi = offsets[d + 1]
        if not _is_ascii(data, lo, hi):
            spans[d, 0] = -1
            spans[d, 1] = -1
            continue
        spans[d, 0] = at
        block = lo
        if fold:
            while block + 64 <= hi:
                fold_words(source + uint64(block), target + uint64(at))
                at += 64
                block += 64
        for i in range(block, hi):
            byte = table[data[i]]
            out[at] = byte
            at += byte != LEFT_OUT
        spans[d, 1] = at
    return at


@kernel
def text_marks(data, offsets, marks):
    """Write a fast hash of the bytes of each text to marks: uint64[d, 2], with zeros behind it.

    Equal texts have equal marks. Of texts that nobody chose, two that differ have one mark with probability 2**-64; but
    every step can be undone, so that anyone can write two texts with one mark. It is for counts of what has equal
    features as well; where an answer depends on it, ``neardup.features.digests`` tells texts apart.
    """
    base = uint64(data.ctypes.data)
    for d in range(marks.shape[0]):
        lo = offsets[d]
        hi = offsets[d + 1]
        value = mix(uint64(hi - lo) + uint64(0x9E3779B97F4A7C15))
        while lo + 8 <= hi:
            value = (value ^ load_u64(base + uint64(lo))) * uint64(0xD6E8FEB86659FD93)
            value ^= value >> uint64(29)
            lo += 8
        rest = uint64(0)
        for i in range(lo, hi):
            rest = (rest << uint64(8)) | uint64(data[i])
        marks[d, 0] = mix(value ^ rest)
        marks[d, 1] = 0
