"""The join of sets with frequent features: partners are counted, list by list, in the index of the window.

Where rare-first prefixes lead to thousands of sets, most of those do not match, and comparing them takes the time. Here
a partner must share several keys before it is compared (ScanCount: Li, Lu & Lu, ICDE 2008): signatures of two features.
"""

from __future__ import annotations

import queue
from collections.abc import Iterator

import numpy as np

from neardup.features.store import row_heads
from neardup.kernels import Bools, Integers, Words
from neardup.kernels.counts import copy_sets
from neardup.kernels.window import BY_PREFIX, WindowDocuments
from neardup.recipe.measures import Rule
from neardup.runtime import map_in_order
from neardup.search.window_index import ENDLESS, Epoch, FeatureCounts, QueryScratch

#: The number of sets, at equal distances, whose counts determine the order of features.
_SAMPLE = 8192
#: Sets that are inserted before they are searched, sets per piece of work, and sets per segment of the index.
_BATCH, _PIECE, _SEGMENT = 4096, 128, 1 << 14
#: Slots of the table of lists: per set, and the minimum.
_SLOTS_PER_SET, _MIN_SLOTS = 16, 1 << 18


class ScanCount:
    """Sets by rank, and the index that they are inserted into.

    Sizes ascend: a set is only matched with those before it, so larger ones are skipped.
    """

    def __init__(self, addresses: Words, sizes: Integers, rule: Rule, threads: int) -> None:
        self._addresses, self._sizes, self._threads = addresses, sizes, threads
        sample = np.linspace(0, len(sizes) - 1, min(_SAMPLE, len(sizes))).astype(np.int64)
        slots = max(_MIN_SLOTS, 1 << (_SLOTS_PER_SET * len(sizes)).bit_length())
        features, _ = self._features(sample)
        # Computed from the features: the same input is always searched in the same way, and to foresee the cells an
        # attacker needs all of it.
        salt = np.bitwise_xor.reduce(features) | np.uint64(1)
        counts = FeatureCounts()
        counts.add(features)
        self._epoch = Epoch(counts.vocabulary(), rule, BY_PREFIX, slots, salt=salt)

    def pairs(self, of_input: Bools) -> Iterator[tuple[Integers, int, int]]:
        """Yield matching pairs of some thousand sets at a time, of which at least one is of the input (bool[r]).

        Each time (int64[k, 3], the lower rank, the higher rank and the overlap; sets compared; sets searched).
        """
        input_ranks, reference_ranks = np.flatnonzero(of_input), np.flatnonzero(~of_input)
        for begin in range(0, len(input_ranks), _BATCH):
            if begin % _SEGMENT == 0:
                self._epoch.begin_segment(begin // _SEGMENT)
            ranks = input_ranks[begin : begin + _BATCH]
            pieces = self._pieces(ranks)
            for piece in pieces:
                self._insert(piece)
            yield *self._matches(pieces), len(ranks)
        for begin in range(0, len(reference_ranks), _BATCH):
            ranks = reference_ranks[begin : begin + _BATCH]
            # With these expiries, sets of any rank are partners.
            pieces = [piece._replace(least_expiries=piece.least_expiries - ENDLESS) for piece in self._pieces(ranks)]
            yield *self._matches(pieces), len(ranks)

    def _insert(self, sets: WindowDocuments) -> None:
        count = len(sets.serials)
        always, best, scores = np.full(count, 2, np.int8), np.empty((count, 6), np.int64), np.empty(count)
        self._epoch.match_and_insert(sets, False, always, best, scores, ENDLESS)

    def _matches(self, pieces: list[WindowDocuments]) -> tuple[Integers, int]:
        """Return the pairs of sets with inserted ones, and how many were compared."""
        free = queue.SimpleQueue[QueryScratch]()
        for _ in range(self._threads):
            free.put(self._epoch.scratch())

        def match(sets: WindowDocuments) -> tuple[Integers, int]:
            scratch = free.get()
            places, found, compared = self._epoch.matches(sets, ENDLESS, scratch)
            free.put(scratch)
            ranks = np.column_stack([found.serials, sets.serials[places]])
            ranks.sort(axis=1)
            return np.column_stack([ranks, found.counts[:, 0]]), compared

        found, compared = zip(*map_in_order(match, pieces, self._threads), strict=True)
        return np.concatenate(found), sum(compared)

    def _pieces(self, ranks: Integers) -> list[WindowDocuments]:
        """Return sets in pieces, as the kernels take them: a set has expired for sets of lower rank."""

        def make(begin: int) -> WindowDocuments:
            piece = ranks[begin : begin + _PIECE]
            features, heads = self._features(piece)
            zeros, digests = np.zeros(len(piece), np.int64), np.zeros((len(piece), 2), np.int64)
            columns = zeros, -piece, 1 - piece, piece, digests
            return self._epoch.documents(features, heads, np.empty((len(piece), 0), np.uint64), columns)

        return list(map_in_order(make, range(0, len(ranks), _PIECE), self._threads))

    def _features(self, ranks: Integers) -> tuple[Words, Integers]:
        """Return the features of sets, and the offsets of each one's."""
        heads = row_heads(self._sizes[ranks])
        features = np.empty(int(heads[-1]), np.uint64)
        copy_sets(self._addresses[ranks], heads, features)
        return features, heads
