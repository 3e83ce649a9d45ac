"""Pairs of rows, each once, however often they come."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]

#: A pair: the rows of the smaller and of the larger set.
PAIR = ("<i8", "<i8")
#: So many pairs may wait before those that came again are thrown out.
_WAITING = 1 << 22


def distinct(left: Integers, right: Integers) -> tuple[Integers, Integers]:
    """Return pairs in order, each once."""
    order = np.lexsort((right, left))
    left, right = left[order], right[order]
    fresh = np.ones(len(left), np.bool_)
    fresh[1:] = (left[1:] != left[:-1]) | (right[1:] != right[:-1])
    return left[fresh], right[fresh]


class Gathered:
    """Pairs that come in pieces, near copies once for each run of keys that they share: that takes no room."""

    def __init__(self) -> None:
        self._left, self._right = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        self._known = self._waiting = 0

    def add(self, left: Integers, right: Integers) -> None:
        """Take some pairs."""
        self._left.append(left)
        self._right.append(right)
        self._waiting += len(left)
        if self._waiting > max(_WAITING, self._known):
            self.all()

    def all(self) -> tuple[Integers, Integers]:
        """Return all pairs so far, in order, each once."""
        left, right = distinct(np.concatenate(self._left), np.concatenate(self._right))
        self._left, self._right = [left], [right]
        self._known, self._waiting = len(left), 0
        return left, right
