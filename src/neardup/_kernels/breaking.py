"""UTF-8 texts to segments: where the sentences or clauses of each end (see ``neardup.text.breaks``)."""

import numpy as np

from neardup._kernels.compiling import kernel

#: What a byte may begin, as ``leads`` says it; 0 is no break.
ASCII_BREAK = 1
LINE_FEED = 2
WIDE_BREAK = 3


@kernel
def _is_letter_or_digit(byte):
    lower = byte | np.uint8(0x20)
    return (np.uint8(97) <= lower <= np.uint8(122)) or (np.uint8(48) <= byte <= np.uint8(57))


@kernel
def _ends_blank_line(data, lo, line_feed):
    """Return whether nothing but spaces, tabs and CR stand between a line feed and the one before it."""
    i = line_feed - 1
    while i >= lo and (data[i] == 0x20 or data[i] == 0x09 or data[i] == 0x0D):
        i -= 1
    return i >= lo and data[i] == 0x0A


@kernel
def cut_texts(data, offsets, leads, wide, ends, heads):
    """Cut texts after their breaks; return how many entries of ends there are, even if it has room for fewer.

    data: uint8, valid UTF-8; offsets: int64[d + 1] into it; leads: uint8[256], what a byte may begin; wide:
    uint8[0x10000], 1 for the code points beyond ASCII that are breaks; ends: int64 gets where the first segment
    begins and where each ends, as far as there is room; heads: int64[d + 1] gets the first segment of each text.
    """
    room = ends.shape[0]
    ends[0] = offsets[0]
    at = 1
    for d in range(heads.shape[0] - 1):
        lo = offsets[d]
        hi = offsets[d + 1]
        heads[d] = at - 1
        i = lo
        while i < hi:
            byte = data[i]
            lead = leads[byte]
            i += 1
            if lead == 0:
                continue
            if lead == WIDE_BREAK:
                if byte < 0xE0:
                    character = (byte & 0x1F) << 6 | (data[i] & 0x3F)
                    i += 1
                else:
                    character = (byte & 0x0F) << 12 | (data[i] & 0x3F) << 6 | (data[i + 1] & 0x3F)
                    i += 2
                if wide[character] == 0:
                    continue
            elif lead == LINE_FEED:
                if not _ends_blank_line(data, lo, i - 1):
                    continue
            elif i < hi and _is_letter_or_digit(data[i]):
                continue
            if i < hi:
                if at < room:
                    ends[at] = i
                at += 1
        if at < room:
            ends[at] = hi
        at += 1
    heads[heads.shape[0] - 1] = at - 1
    return at
