"""Texts in bulk to comparable text: the step ``normalize`` for a whole batch.

Each text takes the first way that it fits: the ASCII kernel (nearly the speed of memory), the Unicode kernel,
or Python for the few texts whose characters must be reordered or composed. All three give the bytes of
``normalize.normalize``. A normalizer without tables takes Python for every text.
"""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.kernels.compilation import kept_arrays, kernels_are_compiled
from neardup.kernels.unicode import LEFT_OUT, ascii_texts, unicode_texts
from neardup.kernels.unicode_tables import Tables
from neardup.runtime import SCRATCH
from neardup.text.normalize import MAX_EXPANSION, has_kernel, kernel_tables, normalize

Bytes = npt.NDArray[np.uint8]
Spans = npt.NDArray[np.int64]
#: The kernels read whole blocks of 64 bytes, past the end of the last text.
_MARGIN = 64


class Comparable(NamedTuple):
    """Comparable texts: those of text d are text[spans[d, 0]:spans[d, 1]], tokens parted by spaces.

    The text is the thread's scratch: it lasts until the thread makes other texts comparable.
    """

    text: Bytes
    spans: Spans


@cache
def ascii_table(normalizer: str) -> Bytes:
    """Return what each ASCII byte becomes: a byte, a space that parts tokens, or LEFT_OUT."""
    # Not 0 for what is left out: a NUL may stay one.
    table = np.full(256, LEFT_OUT, np.uint8)
    for byte in range(128):
        text = normalize(f"x{chr(byte)}x", normalizer)
        if text == "xx":
            continue
        table[byte] = 0x20 if text == "x x" else ord(text[1])
    return table


@cache
def _tables(normalizer: str) -> Tables:
    """Return the kernel's tables, which take a tenth of a second to build."""
    return Tables(*kept_arrays(normalizer, partial(kernel_tables, normalizer)))


def text_buffers(texts: pa.LargeStringArray) -> tuple[Bytes, Spans]:
    """Return the UTF-8 bytes and the int64[d + 1] offsets of texts without copying them."""
    _, offsets, data = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1] if offsets else np.zeros(1, int)
    )
    return (np.frombuffer(data, np.uint8) if data and data.size else np.zeros(_MARGIN, np.uint8)), ends


def comparable(data: Bytes, offsets: Spans, normalizer: str) -> Comparable:
    """Return the comparable texts of a batch, of uint8 UTF-8 and the int64[d + 1] offsets of its texts."""
    count = len(offsets) - 1
    spans = np.empty((count, 2), np.int64)
    out = SCRATCH.take("comparable", np.uint8, int(offsets[-1] - offsets[0]) + _MARGIN)
    by_kernel = has_kernel(normalizer)
    if by_kernel:
        used, others = ascii_texts(data, offsets, normalizer == "words", ascii_table(normalizer), out, spans)
    else:
        used, others = 0, count
        spans[:] = -1
    # Without others, too, in the first run: so all kernels are compiled by the one that says that it compiles.
    if others or (by_kernel and not _unicode_is_compiled()):
        out, used = _not_ascii(data, offsets, normalizer, np.flatnonzero(spans[:, 0] < 0), out[:used], spans)
    out[used : used + _MARGIN] = 0x20
    return Comparable(out, spans)


@cache
def _unicode_is_compiled() -> bool:
    return kernels_are_compiled("unicode.unicode_texts")


def _not_ascii(
    data: Bytes, offsets: Spans, normalizer: str, others: Spans, done: Bytes, spans: Spans
) -> tuple[Bytes, int]:
    """Append the texts of others to done, set their spans; return the bytes and how many are used."""
    lengths = offsets[others + 1] - offsets[others]
    used = len(done)
    out = _grown(done, used, used + 2 * int(lengths.sum()) + MAX_EXPANSION * int(lengths.max(initial=0)))
    at, by_kernel = 0, has_kernel(normalizer)
    while by_kernel:
        at, used = unicode_texts(data, offsets, others, at, _tables(normalizer), out, used, spans)
        by_kernel = at < len(others)
        if by_kernel:
            out = _grown(out, used, 2 * len(out) + MAX_EXPANSION * int(lengths[at]))
    for d in others[spans[others, 0] < 0]:
        text = data[offsets[d] : offsets[d + 1]].tobytes().decode("utf-8")
        encoded = np.frombuffer(normalize(text, normalizer).encode("utf-8"), np.uint8)
        if used + len(encoded) + _MARGIN > len(out):
            out = _grown(out, used, 2 * (used + len(encoded)))
        out[used : used + len(encoded)] = encoded
        spans[d] = used, used + len(encoded)
        used += len(encoded)
    return out, used


def _grown(out: Bytes, used: int, room: int) -> Bytes:
    """Return out with room for so many bytes and a margin."""
    larger = SCRATCH.take("comparable", np.uint8, room + 2 * _MARGIN)
    if larger.ctypes.data != out.ctypes.data:
        larger[:used] = out[:used]
    return larger
