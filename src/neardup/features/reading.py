"""Pass one over a corpus: its texts in pieces for the threads, and what is kept of each document besides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Batch, Corpus, join_ids
from neardup.documents.records import Names
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block, Column
from neardup.kernels.grams import COUNTED
from neardup.recipe import Recipe
from neardup.runtime import check_budget, default_threads, in_order
from neardup.text.html import content_of

#: The bytes of text in a piece of work: small enough for the processor's cache, large enough for a thread.
_PIECE = 1 << 20

Progress = Callable[[str, int, int | None], None]


def silent(stage: str, done: int, total: int | None) -> None:
    """Take what is told of progress, and tell nobody."""


def pieces(
    corpus: Corpus, stage: str, report: Progress | None = None, see: Callable[[Batch], None] | None = None
) -> Iterator[pa.LargeStringArray]:
    """Yield the texts of a corpus in pieces; ``see`` gets each batch before, ``report`` the stage and the bytes."""
    consumed = 0
    for batch in corpus.scan():
        if see is not None:
            see(batch)
        consumed += batch.consumed
        if report is not None:
            report(stage, consumed, corpus.total_bytes)
        yield from cut(batch)


def texts_again(corpus: Corpus, report: Progress | None = None) -> Iterator[pa.LargeStringArray]:
    """Yield the texts once more, after ``pieces``, in pieces."""
    consumed = 0
    for batch in corpus.scan_again():
        consumed += batch.consumed
        if report is not None:
            report("read again", consumed, corpus.total_bytes)
        yield from cut(batch)


def cut(batch: Batch) -> Iterator[pa.LargeStringArray]:
    """Yield the texts of a batch in pieces for the threads."""
    texts = batch.texts
    ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin = 0
    while begin < len(texts):
        end = int(np.searchsorted(ends, ends[begin] + _PIECE))
        end = min(max(end, begin + 1), len(texts))
        yield texts.slice(begin, end - begin)
        begin = end


class Remembered:
    """Collects what pass one leaves besides the features; ``order`` holds the order column, batch by batch."""

    def __init__(self) -> None:
        self._rows = Column(np.int64)
        self._ids: list[tuple[int, pa.Array]] = []
        self.order: list[pa.Array] = []

    def see(self, batch: Batch) -> None:
        """Keep a batch's rows, ids and values of the order column."""
        self._rows.extend(batch.rows)
        if batch.ids is not None:
            self._ids.append((int(batch.rows[0]), batch.ids))
        if batch.order is not None:
            self.order.append(batch.order)

    def names(self, first: int | None = None) -> Names:
        """Return what the documents are called; rows from ``first`` on are those of a reference."""
        parts, self._ids = self._ids, []
        ids = [part for row, part in parts if first is None or row < first]
        others = [part for _, part in parts[len(ids) :]]
        found = Names(self._rows.rows, join_ids(ids) if ids else None)
        if first is None:
            return found
        called = join_ids(others) if others else pa.array(found.rows[np.searchsorted(found.rows, first) :] - first)
        return replace(found, reference_names=called)


Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


def gather(
    corpus: Corpus,
    recipe: Recipe,
    *,
    threads: int | None = None,
    memory: int | None = None,
    report: Progress | None = None,
) -> Statistics:
    """Return the document frequencies of a recipe's features in a corpus, before clipping and signatures.

    The corpus is read once. A budget of memory that is too little for the table is refused.
    """
    return gather_texts(pieces(corpus, "count", report), recipe, threads=threads, memory=memory)


def gather_texts(
    batches: Iterable[pa.LargeStringArray], recipe: Recipe, *, threads: int | None = None, memory: int | None = None
) -> Statistics:
    """Return the document frequencies of a recipe's features in texts, however they are parted into batches."""
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if weighs else None)
    gathering = Gathering(memory)
    for part in in_order(partial(_count, extractor), batches, threads or default_threads()):
        gathering.add(*part)
    return gathering.done()


def _count(extractor: Extractor, texts: pa.LargeStringArray) -> tuple[int, int, Words, Integers]:
    """Return the number of texts, the largest sum of squared counts, and the distinct features with their df."""
    block = extractor(texts)
    features, df = np.unique(block.features, return_counts=True)
    return len(texts), heaviest_of(block), features, df.astype(np.int64)


def heaviest_of(block: Block) -> int:
    """Return the largest sum over a document of squared counts of features; of sets, the number of features."""
    counts = block.weights if len(block.weights) else np.ones(len(block.features), np.int64)
    squares = np.concatenate([[0], np.cumsum(counts * counts)])
    ends = np.cumsum(block.sizes)
    return int((squares[ends] - squares[ends - block.sizes]).max(initial=0))


#: Bytes of each feature whose documents are counted, with those that wait to be added, as they were measured.
_BYTES_A_COUNT = 160


class Gathering:
    """Adds up the document frequencies of a collection, batch by batch."""

    def __init__(self, memory: int | None = None) -> None:
        self._documents, self._memory = 0, memory
        self._heaviest = 0
        self._waiting: list[tuple[Words, Integers]] = []
        self._size, self._merged = 0, 0

    def add(self, documents: int, heaviest: int, features: Words, df: Integers) -> None:
        """Add documents with the df of their distinct features."""
        self._documents += documents
        self._heaviest = max(self._heaviest, heaviest)
        self._waiting.append((features, df))
        self._size += len(features)
        if self._size > 2 * self._merged + (1 << 20):
            self._merge()

    def _merge(self) -> None:
        features = np.concatenate([np.empty(0, np.uint64), *(part[0] for part in self._waiting)])
        df = np.concatenate([np.empty(0, np.int64), *(part[1] for part in self._waiting)])
        distinct, place = np.unique(features, return_inverse=True)
        total = np.bincount(place, weights=df, minlength=len(distinct)).astype(np.int64)
        self._waiting = [(distinct, total)]
        self._size = self._merged = len(distinct)
        needed = _BYTES_A_COUNT * len(distinct)
        check_budget(self._memory, needed, f"the table of {len(distinct):,} features and more, which is held")

    def done(self) -> Statistics:
        """Return the statistics of all that was added."""
        self._merge()
        ((features, df),) = self._waiting
        several = df > 1
        return Statistics(self._documents, len(features), self._heaviest, features[several], df[several])


def contents_of(texts: Sequence[str], recipe: Recipe, threads: int) -> Sequence[str]:
    """Return what a recipe compares of texts: themselves, or their contents."""
    if not recipe.content:
        return texts
    return list(in_order(lambda text: content_of(text, recipe.content), texts, threads))
