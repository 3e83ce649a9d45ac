"""The longest run of words that two texts share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.text.normalize import normalize, tokens

Integers = npt.NDArray[np.int64]

#: Of longer texts only so many characters are looked through.
LONGEST = 200_000


class SharedRun(NamedTuple):
    """A run of words that two texts share.

    Attributes
    ----------
    place : int
        From which word of the left text on.
    words : tuple of str
        As the normalizer ``words`` makes them.
    """

    place: int
    words: tuple[str, ...]

    def written(self, left: str) -> str:
        """Return it as the left text writes it."""
        if not self.words:
            return ""
        found = tokens(left[:LONGEST])[self.place : self.place + len(self.words)]
        return left[found[0].start : found[-1].end]


def longest_shared(left: str, right: str) -> SharedRun:
    """Return the longest run of words that two texts share, the first of equals; an empty one where they share no word.

    Of texts longer than 200,000 characters the beginnings are compared.
    """
    sides = normalize(left[:LONGEST]).split(), normalize(right[:LONGEST]).split()
    numbers: dict[str, int] = {}
    first, second = (np.array([numbers.setdefault(word, len(numbers)) for word in side], np.int64) for side in sides)
    # Names of all runs of 1, 2, 4 ... words, as long as there are shared ones [Karp, Miller & Rosenberg 1972].
    levels: list[_Names] = []
    names = _Names(first, second)
    while names.place >= 0:
        levels.append(names)
        names = names.followed_by(names, 1 << (len(levels) - 1))
    if not levels:
        return SharedRun(0, ())
    best, length = levels[-1], 1 << (len(levels) - 1)
    for step in range(len(levels) - 2, -1, -1):
        longer = best.followed_by(levels[step], length)
        if longer.place >= 0:
            best, length = longer, length + (1 << step)
    return SharedRun(best.place, tuple(sides[0][best.place : best.place + length]))


class _Names:
    """Numbers for the runs of so many words of two texts, from each place on: equal for equal runs.

    Attributes
    ----------
    place : int
        Where the first run of the left text begins that the right one has, too; -1 where there is none.
    """

    def __init__(self, left: Integers, right: Integers) -> None:
        self._sides = left, right
        shared = np.flatnonzero(np.isin(left, right))
        self.place = int(shared[0]) if len(shared) else -1

    def followed_by(self, other: _Names, length: int) -> _Names:
        """Return names of runs of this kind, which have so many words, with those of the other kind behind them."""
        sizes = [max(len(side) - length, 0) for side in other._sides]
        begins = np.concatenate([side[:size] for side, size in zip(self._sides, sizes, strict=True)])
        ends = np.concatenate([side[length:] for side in other._sides])
        _, names = np.unique(begins * (int(ends.max(initial=0)) + 1) + ends, return_inverse=True)
        names = names.reshape(-1)
        return _Names(names[: sizes[0]], names[sizes[0] :])
