"""The window's order of features, frozen for a while: how rare each one was in a sample of documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.arranging import DIGIT, arrange, count_features, enter_words

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_MOST_RANKS = 1 << 21
_FEWEST_SLOTS = 1 << 10


class Vocabulary(NamedTuple):
    """Features with their ranks, the rarest 0; all others count as rarer still.

    Attributes
    ----------
    keys, ranks : uint64[t], uint32[t]
        An open table from features to ranks; of one slot where there is none.
    features : uint64[v]
        The feature of each rank.
    """

    keys: Words
    ranks: npt.NDArray[np.uint32]
    features: Words

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return self.keys.nbytes + self.ranks.nbytes + self.features.nbytes

    def arranged(self, features: Words, heads: Integers) -> tuple[Words, Integers]:
        """Return documents' features in this order, and how many of each it does not know."""
        order = np.empty(len(features), np.uint64)
        raws = np.empty(len(heads) - 1, np.int64)
        longest = int(np.diff(heads).max(initial=0))
        digits = np.empty((2, 1 << DIGIT), np.int64)
        arrange(features, heads, self.keys, self.ranks, order, raws, np.empty(longest, np.uint64), digits)
        return order, raws


def empty_vocabulary() -> Vocabulary:
    """Return one that knows nothing: features are in the order of their hashes."""
    return Vocabulary(np.zeros(1, np.uint64), np.zeros(1, np.uint32), np.zeros(0, np.uint64))


def vocabulary_of(features: Words) -> Vocabulary:
    """Return the features that occur more than once among those of a sample of documents, rare first."""
    slots = _FEWEST_SLOTS
    while True:
        keys, counts = np.zeros(slots, np.uint64), np.zeros(slots, np.uint32)
        if 4 * count_features(features, keys, counts) < 3 * slots:
            break
        slots *= 4
    repeated = np.flatnonzero(counts > 1)
    order = np.lexsort((keys[repeated], counts[repeated]))[-_MOST_RANKS:]
    words = keys[repeated[order]]
    if not len(words):
        return empty_vocabulary()
    size = 1 << int(2 * len(words)).bit_length()
    table, ranks = np.zeros(size, np.uint64), np.zeros(size, np.uint32)
    enter_words(words, table, ranks)
    return Vocabulary(table, ranks, words)
