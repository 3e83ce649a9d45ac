"""The next epoch of a window, made beside the newest one a slice at a time, so that no document waits for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from neardup.kernels.window import DIGEST, EXPIRY, SERIAL, TIME
from neardup.search.epoch import ENDLESS, Epoch, FeatureCounts, Vocabulary, items_of

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

#: Features and documents of a slice, which takes a few milliseconds.
_SLICE, _MOST_DOCUMENTS = 1 << 14, 256
#: An order is made from so many features at most.
_MOST_FEATURES = 1 << 21


class Renewal:
    """An epoch in the making: its order of features from an older one, then its documents.

    Meanwhile the older one answers, and takes what arrives. Documents are copied in their order, those that arrived
    since at the end; then both hold the same.

    Parameters
    ----------
    old : Epoch
        What it is made from.
    make : callable
        Gives an epoch by its order, and by how many signatures lead to documents of the old one.
    keys : callable
        Gives documents' keys from features and sizes.
    sample : int
        The order is made from so many of the last documents.
    copies : bool
        Whether documents are copied; else there is nothing but the order.

    Attributes
    ----------
    epoch : Epoch or None
        What is made, once it has an order.
    is_done : bool
        Whether it is complete.
    """

    def __init__(
        self,
        old: Epoch,
        make: Callable[[Vocabulary, int], Epoch],
        keys: Callable[[Words, Integers], Words],
        sample: int,
        *,
        copies: bool,
    ) -> None:
        self.copies, self.is_done = copies, False
        self.epoch: Epoch | None = None
        self._old, self._make, self._keys, self._sample = old, make, keys, sample
        self._slices, self._due = self._each_slice(), 0

    def advance(self, documents: int) -> None:
        """Read so many documents of the old epoch, to the next end of a slice."""
        self._due += documents
        while self._due > 0 and not self.is_done:
            self._due -= next(self._slices, 0)

    def _each_slice(self) -> Iterator[int]:
        """Do the work; yield after each slice of how many documents it was."""
        old, counts = self._old, FeatureCounts()
        begin, end = max(old.entered - self._sample, old.first), old.entered
        newest_first = old.sizes(begin, end)[::-1].cumsum()
        begin = end - int(np.searchsorted(newest_first, _MOST_FEATURES, side="right"))
        while (begin := max(begin, old.first)) < end:
            after = self._slice_end(begin, end)
            counts.add(old.read(begin, after)[0])
            yield after - begin
            begin = after
        self.epoch = epoch = self._make(counts.vocabulary(), old.signatures)
        # That takes as long as several slices, and so does the first use of its table: the system clears the pages.
        yield _MOST_DOCUMENTS
        for pages in epoch.pages():
            pages[:] = 0
            yield _MOST_DOCUMENTS // 4
        begin = 0
        while self.copies and (begin := max(begin, old.first)) < old.entered:
            after = self._slice_end(begin, self._follow(epoch, begin))
            self._copy(epoch, begin, after)
            yield after - begin
            begin = after
        if self.copies:
            self._follow(epoch, begin)
        self.is_done = True

    def _slice_end(self, begin: int, end: int) -> int:
        """Return where a slice that begins at a document ends, before ``end``."""
        sizes = self._old.sizes(begin, min(begin + _MOST_DOCUMENTS, end))
        return begin + max(int(np.searchsorted(sizes.cumsum(), _SLICE, side="right")), 1)

    def _follow(self, epoch: Epoch, document: int) -> int:
        """Begin the segment of a document of the old epoch as it did, and drop those that it has dropped.

        Returns where that segment ends.
        """
        segments = [*self._old.segments]
        if not segments:
            return self._old.entered
        place = max(bisect_right(segments, document, key=lambda segment: segment.document) - 1, 0)
        if not epoch.segments or epoch.segments[-1].key < segments[place].key:
            epoch.begin_segment(segments[place].key)
        epoch.drop_segments(segments[0].key, whole=False)
        return segments[place + 1].document if place + 1 < len(segments) else self._old.entered

    def _copy(self, epoch: Epoch, begin: int, end: int) -> None:
        """Enter the documents [begin, end) of the old epoch that are there."""
        features, heads, records = self._old.read(begin, end)
        sizes = np.diff(heads)
        # Of one piece each, as those of arrivals: the kernel is compiled for each layout by itself.
        times, leaves, serials = records[:, [TIME, EXPIRY, SERIAL]].T.copy()
        columns = (times, leaves, leaves, serials, records[:, DIGEST:].copy())
        arranged = epoch.vocabulary.arranged(features, heads)
        items = items_of(features, heads, arranged, self._keys(features, sizes), columns)
        always = np.full(len(sizes), 2, np.int8)
        epoch.flow(items, False, always, np.empty((0, 6), np.int64), np.empty(0), ENDLESS)
