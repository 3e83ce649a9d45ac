"""Bands of sketches: their keys, and the verified pairs of documents that share one."""

from numba import int64, uint64

from neardup._kernels.bits import mix
from neardup._kernels.bounds import need
from neardup._kernels.compiling import kernel
from neardup._kernels.matching import enter_set, overlap_with

_BAND = uint64(0x9FB21C651E98DF25)


@kernel
def band_keys(minima, rows, out):
    """Write a hash of each band of ``rows`` consecutive minima: minima uint64[d, K], out uint64[d, K // rows]."""
    for d in range(out.shape[0]):
        for band in range(out.shape[1]):
            value = uint64(band + 1) * _BAND
            for i in range(band * rows, (band + 1) * rows):
                value = mix(value ^ minima[d, i]) + _BAND
            out[d, band] = value


@kernel
def band_pairs(band, begin, end, order, keys, vectors, rule, table, pairs):
    """Verify the pairs of documents order[i], order[j] with i in [begin, end), j > i and equal keys of this band.

    order: int64[n], by the keys of this band; keys: uint64[n, bands]; vectors: (addresses, sizes) of the n sets; table:
    uint64, a power of two of slots, twice the largest size; pairs: int64[p, 3], room for (one, other, overlap) of all
    partners of a set at least. Pairs that share an earlier band are left out: they were found there.
    Returns (place to go on from, pairs written, candidates, verified).
    """
    addresses, sizes = vectors
    count = order.shape[0]
    written = 0
    candidates = 0
    verified = 0
    for i in range(begin, end):
        one = order[i]
        j = i + 1
        while j < count and keys[order[j], band] == keys[one, band]:
            j += 1
        if written + j - i > pairs.shape[0]:
            return i, written, candidates, verified
        bits = 0
        for k in range(i + 1, j):
            other = order[k]
            earlier = 0
            while earlier < band and keys[one, earlier] != keys[other, earlier]:
                earlier += 1
            if earlier < band:
                continue
            candidates += 1
            least = need(rule, sizes[one], sizes[other])
            if least > min(sizes[one], sizes[other]):
                continue
            if bits == 0:
                bits = 2
                while (1 << bits) < 2 * sizes[one]:
                    bits += 1
                enter_set(addresses[one], sizes[one], table, bits)
            verified += 1
            overlap = overlap_with(addresses[other], sizes[other], table, bits, least)
            if overlap >= least:
                pairs[written, 0] = one
                pairs[written, 1] = other
                pairs[written, 2] = int64(overlap)
                written += 1
    return end, written, candidates, verified
