"""Memory that is given out forwards and taken back from behind, an hour at a time."""

from __future__ import annotations

import mmap
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup._kernels.addresses import CHUNK_BITS

CHUNK = 1 << CHUNK_BITS
#: Private pages may become large ones; Windows has no such choice.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
#: So many chunks can be alive at once: 512 GB.
_MOST_CHUNKS = 1 << 16
_MOST_SPARE = 4


class Chunks:
    """Chunks of memory under addresses that only grow; those of an hour go back to the system as soon as it ends.

    Up to four of them (32 MB) wait for the next hour instead.

    Attributes
    ----------
    bases : uint64[65536]
        Where each chunk lies, a ring by chunk number.
    """

    def __init__(self) -> None:
        self.bases: npt.NDArray[np.uint64] = np.zeros(_MOST_CHUNKS, np.uint64)
        self._next = 1
        self._alive: deque[tuple[int, npt.NDArray[Any]]] = deque()
        #: What the next hour takes before it asks the system: pages that were used before are there at once.
        self._spare: list[npt.NDArray[Any]] = []
        #: How much of each stretch but the last is used.
        self._used: deque[int] = deque()

    def extend(self, least: int, cursor: int = 0, *, large_pages: bool = False) -> tuple[int, int]:
        """Return the first address of a new stretch of at least so many bytes, and the one behind its end.

        The last stretch is used up to the cursor; pages behind it were never written to, so they cost nothing. Large
        pages are faster to read, and their first use takes milliseconds: they are for flows that fill them.
        """
        if self._alive:
            self._used.append(cursor - self._alive[-1][0] * CHUNK)
        count = max((least + CHUNK - 1) // CHUNK, 1)
        stretch = self._spare.pop() if count == 1 and self._spare else mapped(count * CHUNK, large_pages)
        first = self._next
        for i in range(count):
            self.bases[(first + i) % _MOST_CHUNKS] = stretch.ctypes.data + i * CHUNK
        self._alive.append((first, stretch))
        self._next += count
        return first * CHUNK, self._next * CHUNK

    def drop_below(self, address: int) -> None:
        """Give back all stretches that end at or below an address."""
        while self._alive and self._alive[0][0] * CHUNK + len(self._alive[0][1]) <= address:
            stretch = self._alive.popleft()[1]
            if len(stretch) == CHUNK and len(self._spare) < _MOST_SPARE:
                self._spare.append(stretch)
            if self._used:
                self._used.popleft()

    def used(self, cursor: int) -> int:
        """Return the bytes that are in use, where the last stretch is used up to the cursor."""
        last = cursor - self._alive[-1][0] * CHUNK if self._alive else 0
        return sum(self._used) + last


def mapped(size: int, large_pages: bool) -> npt.NDArray[Any]:
    """Return memory that is mapped, not allocated: pages cost nothing until written to, and go back as a whole."""
    pages = mmap.mmap(-1, size, **_PRIVATE)
    if large_pages and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)
