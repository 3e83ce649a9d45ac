"""Pass one over a corpus: its texts in pieces for the threads, and what is kept of each document besides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents import Batch, Corpus, join_ids
from neardup.pairs import Names

#: The bytes of text in a piece of work: small enough for the processor's cache, large enough for a thread.
_PIECE = 1 << 20

Report = Callable[[str, int, int | None], None]


def pieces(
    corpus: Corpus, stage: str, report: Report | None = None, see: Callable[[Batch], None] | None = None
) -> Iterator[pa.LargeStringArray]:
    """Yield the texts of a corpus in pieces; show each batch to ``see`` before.

    Parameters
    ----------
    stage : str
        What ``report`` is told.
    """
    consumed = 0
    for batch in corpus.scan():
        if see is not None:
            see(batch)
        consumed += batch.consumed
        if report is not None:
            report(stage, consumed, corpus.total_bytes)
        yield from _cut(batch)


def _cut(batch: Batch) -> Iterator[pa.LargeStringArray]:
    texts = batch.texts
    ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin = 0
    while begin < len(texts):
        end = int(np.searchsorted(ends, ends[begin] + _PIECE))
        end = min(max(end, begin + 1), len(texts))
        yield texts.slice(begin, end - begin)
        begin = end


class Remembered:
    """Collects what pass one leaves behind besides the features.

    Attributes
    ----------
    order : list of pyarrow.Array
        The values of the order column, batch by batch.
    """

    def __init__(self) -> None:
        self._rows: list[np.ndarray[Any, np.dtype[np.int64]]] = [np.zeros(0, np.int64)]
        self._ids: list[pa.Array] = []
        self.order: list[pa.Array] = []

    def see(self, batch: Batch) -> None:
        """Keep a batch's rows, ids and values of the order column."""
        self._rows.append(batch.rows)
        if batch.ids is not None:
            self._ids.append(batch.ids)
        if batch.order is not None:
            self.order.append(batch.order)

    def names(self) -> Names:
        """Return what the documents are called."""
        return Names(np.concatenate(self._rows), join_ids(self._ids) if self._ids else None)
