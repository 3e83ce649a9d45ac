"""The join of sets whose features are frequent: partners are counted, list by list, in the index of the window.

Where rare-first prefixes lead to thousands of sets, most of those are no match, and comparing them takes the time. Here
a partner must be met in several lists before it is compared (ScanCount: Li, Lu & Lu, ICDE 2008), and large sets are
found by signatures of two features.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neardup.features.store import row_heads
from neardup.kernels.counts import copy_sets
from neardup.kernels.window import BY_PREFIX, WindowDocuments
from neardup.recipe.measures import Rule
from neardup.runtime import map_in_order
from neardup.search.epoch import ENDLESS, Epoch, QueryScratch, items_of, vocabulary_of

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
#: The order of features is by their counts in so many sets, taken at equal distances.
_SAMPLE = 8192
#: Sets that enter before they ask, and those that a thread takes at a time; a segment of the index has _SEGMENT.
_AT_ONCE, _PIECE, _SEGMENT = 4096, 128, 1 << 14
#: Slots of the table of lists for each set, and at least.
_SLOTS_A_SET, _FEWEST_SLOTS = 16, 1 << 18


class ScanCount:
    """Sets by rank, and the index that they enter.

    Parameters
    ----------
    addresses : uint64[r]
        Where the features of each lie.
    sizes : int64[r]
        How many these are, ascending: a set is only looked up among those before it, so larger ones are passed over.
    rule : Rule
        The measure with its threshold.
    threads : int
        Changes the time, never the answer.
    """

    def __init__(self, addresses: Words, sizes: Integers, rule: Rule, threads: int) -> None:
        self._addresses, self._sizes, self._threads = addresses, sizes, threads
        sample = np.linspace(0, len(sizes) - 1, min(_SAMPLE, len(sizes))).astype(np.int64)
        slots = max(_FEWEST_SLOTS, 1 << (_SLOTS_A_SET * len(sizes)).bit_length())
        features, _ = self._features(sample)
        # Of the features, so that the same input is searched in the same way, and nobody plans it without them all.
        salt = np.bitwise_xor.reduce(features) | np.uint64(1)
        self._epoch = Epoch(vocabulary_of(features), rule, BY_PREFIX, slots, salt=salt)

    def pairs(self, of_input: npt.NDArray[np.bool_]) -> Iterator[tuple[Integers, int, int]]:
        """Yield the pairs of some thousand sets at a time, all but those of two that are not of the input.

        Yields
        ------
        tuple
            int64[k, 3], the lower rank, the higher one and the overlap of each; how many sets were compared for them;
            how many sets are done.
        """
        own, others = np.flatnonzero(of_input), np.flatnonzero(~of_input)
        for begin in range(0, len(own), _AT_ONCE):
            if begin % _SEGMENT == 0:
                self._epoch.begin_segment(begin // _SEGMENT)
            ranks = own[begin : begin + _AT_ONCE]
            items = self._items(ranks)
            for piece in items:
                self._enter(piece)
            yield *self._matches(items), len(ranks)
        for begin in range(0, len(others), _AT_ONCE):
            ranks = others[begin : begin + _AT_ONCE]
            yield (
                *self._matches(
                    [piece._replace(least_expiries=piece.least_expiries - ENDLESS) for piece in self._items(ranks)]
                ),
                len(ranks),
            )

    def _enter(self, items: WindowDocuments) -> None:
        count = len(items.serials)
        always, best, scores = np.full(count, 2, np.int8), np.empty((count, 6), np.int64), np.empty(count)
        self._epoch.match_and_insert(items, False, always, best, scores, ENDLESS)

    def _matches(self, pieces: list[WindowDocuments]) -> tuple[Integers, int]:
        """Return the pairs of items with what has entered, and how many were compared."""
        free = queue.SimpleQueue[QueryScratch]()
        for _ in range(self._threads):
            free.put(self._epoch.scratch())

        def ask(items: WindowDocuments) -> tuple[Integers, int]:
            scratch = free.get()
            places, found, compared = self._epoch.matches(items, 0, len(items.serials), ENDLESS, scratch)
            free.put(scratch)
            ranks = np.column_stack([found.serials, items.serials[places]])
            ranks.sort(axis=1)
            return np.column_stack([ranks, found.counts[:, 0]]), compared

        found, compared = zip(*map_in_order(ask, pieces, self._threads), strict=True)
        return np.concatenate(found), sum(compared)

    def _items(self, ranks: Integers) -> list[WindowDocuments]:
        """Return sets in pieces, as the kernels take them: each has left when a lower rank asks."""

        def make(begin: int) -> WindowDocuments:
            some = ranks[begin : begin + _PIECE]
            features, heads = self._features(some)
            none, digests = np.zeros(len(some), np.int64), np.zeros((len(some), 2), np.int64)
            arranged = self._epoch.vocabulary.arranged(features, heads)
            keys = np.empty((len(some), 0), np.uint64)
            return items_of(features, heads, arranged, keys, (none, -some, 1 - some, some, digests))

        return list(map_in_order(make, range(0, len(ranks), _PIECE), self._threads))

    def _features(self, ranks: Integers) -> tuple[Words, Integers]:
        """Return the features of sets, and where each one's begin."""
        heads = row_heads(self._sizes[ranks])
        features = np.empty(int(heads[-1]), np.uint64)
        copy_sets(self._addresses[ranks], heads, features)
        return features, heads
