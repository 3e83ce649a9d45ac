"""The Unicode kernel over many texts, into one growing buffer."""

from neardup._kernels.compiling import kernel
from neardup._kernels.unicode import normalize_utf8


@kernel
def unicode_texts(data, offsets, wanted, begin, tables, out, used, spans):
    """Append the comparable texts of wanted[begin:] to out[used:] and set their spans.

    A text that needs Python keeps its span of -1. Stops before a text for which out may be too short: it must
    hold twice the text and 64 bytes more. Returns (place in wanted to go on from, bytes used).
    """
    for i in range(begin, wanted.shape[0]):
        d = wanted[i]
        lo = offsets[d]
        hi = offsets[d + 1]
        if used + 2 * (hi - lo) + 64 > out.shape[0]:
            return i, used
        written = normalize_utf8(data, lo, hi, tables, out[used:])
        if written >= 0:
            spans[d, 0] = used
            spans[d, 1] = used + written
            used += written
    return wanted.shape[0], used
