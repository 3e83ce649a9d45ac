"""Normalization in bulk: a batch of texts to comparable text.

Each text takes the first path that can handle it: the ASCII kernel (nearly memory speed), the Unicode kernel, or Python
for the few texts whose characters must be reordered or composed. All three give the bytes of ``normalize.normalize``. A
normalizer without kernel tables uses Python for every text.
"""

from __future__ import annotations

from functools import cache, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.kernels import Bytes, Integers
from neardup.kernels.compilation import cached_arrays, kernels_are_compiled
from neardup.kernels.unicode import ascii_texts, unicode_texts
from neardup.kernels.unicode_tables import DROPPED, UnicodeTables
from neardup.runtime import SCRATCH
from neardup.text.normalize import MAX_EXPANSION, has_kernel, kernel_tables, normalize

#: The kernels read whole blocks of 64 bytes, beyond the end of the last text.
_MARGIN = 64


class ComparableTexts(NamedTuple):
    """Comparable texts: text d is text[spans[d, 0]:spans[d, 1]], tokens separated by spaces.

    ``text`` is a buffer of the thread: it is overwritten when the thread normalizes other texts.
    """

    text: Bytes
    spans: Integers


@cache
def ascii_table(normalizer: str) -> Bytes:
    """Return what each ASCII byte becomes: a byte, a space between tokens, or DROPPED."""
    # DROPPED is not 0, because a normalizer may keep a NUL.
    table = np.full(256, DROPPED, np.uint8)
    for byte in range(128):
        text = normalize(f"x{chr(byte)}x", normalizer)
        if text == "xx":
            continue
        table[byte] = 0x20 if text == "x x" else ord(text[1])
    return table


@cache
def _kernel_tables_of(normalizer: str) -> UnicodeTables:
    """Return the tables of the Unicode kernel, from the cache folder: building them takes 0.1 s."""
    return UnicodeTables(*cached_arrays(normalizer, partial(kernel_tables, normalizer)))


def text_buffers(texts: pa.LargeStringArray) -> tuple[Bytes, Integers]:
    """Return the UTF-8 bytes of texts and their int64[d + 1] offsets, without a copy."""
    _, offsets, data = texts.buffers()
    ends = (
        np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1] if offsets else np.zeros(1, int)
    )
    return (np.frombuffer(data, np.uint8) if data and data.size else np.zeros(_MARGIN, np.uint8)), ends


def normalize_texts(data: Bytes, offsets: Integers, normalizer: str) -> ComparableTexts:
    """Return the comparable texts of a batch, given as uint8 UTF-8 and int64[d + 1] offsets."""
    count = len(offsets) - 1
    spans = np.empty((count, 2), np.int64)
    out = SCRATCH.array("comparable", np.uint8, int(offsets[-1] - offsets[0]) + _MARGIN)
    by_kernel = has_kernel(normalizer)
    if by_kernel:
        used, remaining = ascii_texts(data, offsets, normalizer == "words", ascii_table(normalizer), out, spans)
    else:
        used, remaining = 0, count
        spans[:] = -1
    # In the first run even without such texts, so that all kernels compile while the user sees the message.
    if remaining or (by_kernel and not _unicode_is_compiled()):
        rows = np.flatnonzero(spans[:, 0] < 0)
        if normalizer == "compact":
            begin = used
            out, used = _append_non_ascii(data, offsets, "words", rows, out[:used], spans)
            used = _drop_separators(out, begin, used, rows, spans)
        else:
            out, used = _append_non_ascii(data, offsets, normalizer, rows, out[:used], spans)
    out[used : used + _MARGIN] = 0x20
    return ComparableTexts(out, spans)


def _drop_separators(out: Bytes, begin: int, end: int, rows: Integers, spans: Integers) -> int:
    """Turn out[begin:end], ``words`` of some rows, into ``compact``; return where it ends."""
    written = out[begin:end]
    is_dropped = (written == ord(" ")) | (written == ord("_"))
    spans[rows] -= np.searchsorted(np.flatnonzero(is_dropped) + begin, spans[rows])
    kept = written[~is_dropped]
    out[begin : begin + len(kept)] = kept
    return begin + len(kept)


@cache
def _unicode_is_compiled() -> bool:
    return kernels_are_compiled("unicode.unicode_texts")


def _append_non_ascii(
    data: Bytes, offsets: Integers, normalizer: str, rows: Integers, written: Bytes, spans: Integers
) -> tuple[Bytes, int]:
    """Append the texts of some rows to ``written`` and set their spans; return the buffer and its used length."""
    lengths = offsets[rows + 1] - offsets[rows]
    used = len(written)
    out = _grow_buffer(written, used, used + 2 * int(lengths.sum()) + MAX_EXPANSION * int(lengths.max(initial=0)))
    next_row, by_kernel = 0, has_kernel(normalizer)
    while by_kernel:
        next_row, used = unicode_texts(data, offsets, rows, next_row, _kernel_tables_of(normalizer), out, used, spans)
        by_kernel = next_row < len(rows)
        if by_kernel:
            out = _grow_buffer(out, used, 2 * len(out) + MAX_EXPANSION * int(lengths[next_row]))
    for d in rows[spans[rows, 0] < 0]:
        text = data[offsets[d] : offsets[d + 1]].tobytes().decode("utf-8")
        encoded = np.frombuffer(normalize(text, normalizer).encode("utf-8"), np.uint8)
        if used + len(encoded) + _MARGIN > len(out):
            out = _grow_buffer(out, used, 2 * (used + len(encoded)))
        out[used : used + len(encoded)] = encoded
        spans[d] = used, used + len(encoded)
        used += len(encoded)
    return out, used


def _grow_buffer(out: Bytes, used: int, room: int) -> Bytes:
    """Return the buffer enlarged to ``room`` bytes and a margin."""
    larger = SCRATCH.array("comparable", np.uint8, room + 2 * _MARGIN)
    if larger.ctypes.data != out.ctypes.data:
        larger[:used] = out[:used]
    return larger
