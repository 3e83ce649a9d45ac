"""The join of sets whose features are frequent: partners are counted, list by list, in the index of the window.

Where a rare-first prefix leads to thousands of sets, most of what it finds is no match, and comparing them is what
takes the time. So a partner must be met in several lists here (ScanCount: Li, Lu & Lu, ICDE 2008, 3), and large sets
are found by signatures of two features.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from neardup.kernels.counts import copy_sets
from neardup.kernels.window import BY_PREFIX, Items
from neardup.runtime import in_order
from neardup.search.join import Steps
from neardup.search.window import ENDLESS, Epoch, Scratch, Vocabulary, items_of, vocabulary_of

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: The order of features is that of so many sets, taken at equal distances.
_SAMPLE = 8192
#: Sets that enter before they ask, and sets that a thread takes at a time. A segment of the index has _SEGMENT of them.
_AT_ONCE, _A_PIECE, _SEGMENT = 4096, 128, 1 << 14
#: Slots of the table of lists for each set, at least.
_SLOTS_A_SET = 16
_FEWEST_SLOTS = 1 << 18


def scan_count_pairs(
    steps: Steps,
    members: Integers,
    of_input: npt.NDArray[np.bool_],
    most_pairs: int | None,
    progress: Callable[[int, int], None],
) -> tuple[Integers, Integers] | None:
    """Return int64[k, 2] ranks that match and int64[k] overlaps, or None if they are too many.

    Parameters
    ----------
    steps : Steps
        Of the join; its addresses hold the features.
    members : int64[r]
        The sets by rank, the smallest first.
    of_input : bool[r]
        Which are not of the reference, whose pairs are not looked for.
    most_pairs : int, optional
        More are too many.
    progress : callable
        Told (sets done, sets in all) from time to time.
    """
    index = _Index(steps, members)
    found = [np.zeros((0, 3), np.int64)]
    own, others = np.flatnonzero(of_input), np.flatnonzero(~of_input)
    total = done = 0
    for pairs, count in (*index.among(own), *index.with_entered(others)) if len(others) else index.among(own):
        found.append(pairs)
        total, done = total + len(pairs), done + count
        if most_pairs is not None and total > most_pairs:
            return None
        progress(done, len(members))
    every = np.concatenate(found)
    every[:, :2].sort(axis=1)
    return every[:, :2], every[:, 2]


class _Index:
    """The index of a join's sets."""

    def __init__(self, steps: Steps, members: Integers) -> None:
        self._steps, self._members = steps, members
        sample = members[np.linspace(0, len(members) - 1, min(_SAMPLE, len(members))).astype(np.int64)]
        vocabulary = vocabulary_of(self._features(sample)[0])
        slots = max(_FEWEST_SLOTS, 1 << (_SLOTS_A_SET * len(members)).bit_length())
        self._epoch = Epoch(vocabulary, steps.rule, BY_PREFIX, slots, 0)

    def among(self, ranks: Integers) -> Iterator[tuple[Integers, int]]:
        """Enter sets; yield the pairs of each few thousand with those before them, and how many these are."""
        for begin in range(0, len(ranks), _AT_ONCE):
            if begin % _SEGMENT == 0:
                self._epoch.begin_segment(begin // _SEGMENT)
            some = ranks[begin : begin + _AT_ONCE]
            pieces = [some[at : at + _A_PIECE] for at in range(0, len(some), _A_PIECE)]
            items = list(in_order(self._items, pieces, self._steps.threads))
            for each in items:
                count = len(each.serials)
                always = np.full(count, 2, np.int8)
                self._epoch.flow(each, False, always, np.empty((count, 6), np.int64), np.empty(count), ENDLESS)
            yield self._pairs(items), len(some)

    def with_entered(self, ranks: Integers) -> Iterator[tuple[Integers, int]]:
        """Yield the pairs of sets with all that have entered, as ``among`` does."""
        for begin in range(0, len(ranks), _AT_ONCE):
            some = ranks[begin : begin + _AT_ONCE]
            pieces = [some[at : at + _A_PIECE] for at in range(0, len(some), _A_PIECE)]
            items = list(in_order(self._items, pieces, self._steps.threads))
            yield self._pairs([each._replace(least=each.least - ENDLESS) for each in items]), len(some)

    def _pairs(self, items: list[Items]) -> Integers:
        """Return (rank, rank, overlap) of all that items match among what has entered."""
        free = queue.SimpleQueue[Scratch]()
        for _ in range(self._steps.threads):
            free.put(self._epoch.scratch())

        def ask(each: Items) -> Integers:
            scratch = free.get()
            places, found = self._epoch.matches(each, 0, len(each.serials), ENDLESS, scratch)
            free.put(scratch)
            return np.column_stack([found.serials, each.serials[places], found.counts[:, 0]])

        return np.concatenate(list(in_order(ask, items, self._steps.threads)))

    def _items(self, ranks: Integers) -> Items:
        """Return sets as the kernels take them: each leaves before the next one looks for older ones."""
        features, heads = self._features(self._members[ranks])
        none = np.zeros(len(ranks), np.int64)
        digests = np.zeros((len(ranks), 2), np.int64)
        keys = np.empty((len(ranks), 0), np.uint64)
        arranged = self._epoch.vocabulary.arranged(features, heads)
        return items_of(features, heads, arranged, keys, (none, -ranks, 1 - ranks, ranks, digests))

    def _features(self, members: Integers) -> tuple[Words, Integers]:
        heads = np.concatenate([[0], np.cumsum(self._steps.sizes[members])])
        features = np.empty(int(heads[-1]), np.uint64)
        copy_sets(self._steps.addresses[members], heads, features)
        return features, heads
