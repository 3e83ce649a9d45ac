"""Arrays that a thread uses again and again: fresh memory for each piece of work costs more than the work."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import numpy.typing as npt

#: Arrays above this many bytes are given back after use.
_LARGEST_KEPT = 1 << 26


class Scratch(threading.local):
    """Uninitialised arrays by name, each thread its own."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}

    def take(self, name: str, dtype: type[np.generic], size: int) -> npt.NDArray[Any]:
        """Return an array of at least that size; what it held under the same name before is lost."""
        array = self._arrays.get(name)
        if array is None or len(array) < size:
            array = np.empty(size + size // 4, dtype)
            if array.nbytes <= _LARGEST_KEPT:
                self._arrays[name] = array
        return array


SCRATCH = Scratch()
