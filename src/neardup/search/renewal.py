"""Build the next epoch of a window in slices, beside the newest one, so that no document waits for it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from neardup.kernels.window import DIGEST, EXPIRY, SERIAL, TIME
from neardup.search.epoch import ENDLESS, Epoch, FeatureCounts, Vocabulary, items_of

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

#: The maximum features and documents of a slice, which takes a few milliseconds.
_SLICE, _MOST_DOCUMENTS = 1 << 14, 256
#: The maximum number of features in the sample for an order.
_MOST_FEATURES = 1 << 21


class Renewal:
    """An epoch under construction: its order of features is computed from an old epoch, then documents are copied.

    Meanwhile the old epoch is searched and receives new documents, which are copied last; then both are equal.

    Parameters
    ----------
    old : Epoch
        The epoch to renew.
    make : callable
        Makes an empty epoch, given the order of features and the number of signatures in the old one.
    keys : callable
        Returns the keys of documents, given features and sizes.
    sample : int
        The number of latest documents from which the order is computed.
    copies : bool
        Whether documents are copied; otherwise the new epoch only has the order.

    Attributes
    ----------
    epoch : Epoch or None
        The new epoch, once its order is computed.
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
        self._slices, self._due = self._work_slices(), 0

    def advance(self, documents: int) -> None:
        """Read so many documents of the old epoch, up to the next end of a slice."""
        self._due += documents
        while self._due > 0 and not self.is_done:
            self._due -= next(self._slices, 0)

    def _work_slices(self) -> Iterator[int]:
        """Build the epoch; yield the number of documents after each slice."""
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
        # This takes as long as several slices; so does the first use of its table, whose pages the system clears.
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
        """Begin and drop segments like the old epoch, up to the segment of a document.

        Returns the end of that segment.
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
        """Insert the present documents of [begin, end) of the old epoch."""
        features, heads, records = self._old.read(begin, end)
        sizes = np.diff(heads)
        # Contiguous, like those of arrivals: the kernel is compiled separately for each memory layout.
        times, expiries, serials = records[:, [TIME, EXPIRY, SERIAL]].T.copy()
        columns = (times, expiries, expiries, serials, records[:, DIGEST:].copy())
        arranged = epoch.vocabulary.arranged(features, heads)
        items = items_of(features, heads, arranged, self._keys(features, sizes), columns)
        always = np.full(len(sizes), 2, np.int8)
        epoch.match_and_insert(items, False, always, np.empty((0, 6), np.int64), np.empty(0), ENDLESS)
