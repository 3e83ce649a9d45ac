"""A memory budget: large arrays are in memory as long as it lasts, and then in a temporary file."""

from __future__ import annotations

import math
import mmap
import os
import tempfile
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from neardup.errors import OutputError, option

#: What the interpreter, its libraries and the compiled kernels take before the first document is read.
_BASE = 250_000_000
_PIECE = 1 << 20


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the space of a file on the disk, where the system cannot simply promise it by writing zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for begin in range(0, size, _PIECE):
        file.write(bytes(min(_PIECE, size - begin)))
    file.flush()


class Memory:
    """Gives large arrays, from memory up to a budget and from a temporary file beyond it.

    The file has no name: it is gone when the process is, however it ends. The system keeps in memory what it
    has room for.

    Parameters
    ----------
    budget : int or None
        Bytes for the whole process; None for no budget.
    """

    def __init__(self, budget: int | None = None) -> None:
        self._left = math.inf if budget is None else max(budget - _BASE, 0)
        self._maps: list[mmap.mmap] = []
        self.spilled_bytes = 0

    @property
    def room(self) -> float:
        """How many bytes of the budget are left, infinity without one."""
        return self._left

    def array(self, dtype: type[np.generic], *shape: int) -> npt.NDArray[Any]:
        """Return an uninitialised array.

        Raises
        ------
        OutputError
            If it must go to the file and the disk has no room for it.
        """
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size <= self._left or size == 0:
            self._left -= size
            return np.empty(shape, dtype)
        self.spilled_bytes += size
        with tempfile.TemporaryFile(prefix="neardup-") as file:
            try:
                # Space is taken now: a page without a place on the disk would end the process when written.
                _reserve(file, size)
            except OSError as error:
                raise OutputError(
                    f"{size:,} bytes beyond {option('--memory')} do not fit into {tempfile.gettempdir()} "
                    f"({error.strerror}); free space there, set TMPDIR to a larger place or raise {option('--memory')}"
                ) from None
            mapped = mmap.mmap(file.fileno(), size)
        self._maps.append(mapped)
        return np.frombuffer(mapped, dtype).reshape(shape)

    def give_back(self, array: npt.NDArray[Any]) -> None:
        """Take back an array that nobody reads any more."""
        before = len(self._maps)
        self._maps = [mapped for mapped in self._maps if not np.shares_memory(np.frombuffer(mapped, np.uint8), array)]
        if len(self._maps) == before:
            self._left += array.nbytes

    def release(self) -> None:
        """Let the system have the memory of what lies in the file; it comes back when it is read."""
        for mapped in self._maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def forget(self) -> None:
        """Forget the arrays given so far: their memory and space go when nobody holds them any more."""
        self._maps.clear()
