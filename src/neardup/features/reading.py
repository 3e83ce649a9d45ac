"""Pass one over a corpus: texts in pieces for the threads, the columns beside them, and document frequencies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from neardup.documents import Batch, Corpus, join_ids
from neardup.documents.records import Names
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block, GrowingArray
from neardup.kernels import Integers, Words
from neardup.kernels.grams import COUNTED
from neardup.recipe import Recipe
from neardup.runtime import check_budget, default_threads, map_in_order
from neardup.text.bulk import text_buffers

#: Bytes of text per piece: small enough for the processor's cache, large enough to keep a thread busy.
_PIECE = 1 << 20

Progress = Callable[[str, int, int | None], None]


def ignore_progress(stage: str, done: int, total: int | None) -> None:
    """Ignore a progress report."""


def pieces(
    corpus: Corpus,
    stage: str,
    progress: Progress | None = None,
    on_batch: Callable[[Batch], None] | None = None,
    *,
    again: bool = False,
    content: str = "",
) -> Iterator[pa.LargeStringArray]:
    """Yield the texts of a corpus, ``again`` if it was read before; ``on_batch`` gets each batch before its texts.

    Pages whose ``content`` is to be extracted come in smaller pieces.
    """
    consumed = 0
    for batch in corpus.rescan() if again else corpus.scan():
        if on_batch is not None:
            on_batch(batch)
        consumed += batch.bytes_read
        if progress is not None:
            progress(stage, consumed, corpus.total_bytes)
        yield from text_pieces(batch, content)


def text_pieces(batch: Batch, content: str = "") -> Iterator[pa.LargeStringArray]:
    """Yield the texts of a batch in pieces of about 1 MB, and of at most some pages if there is a ``content``."""
    texts, begin = batch.texts, 0
    most = len(texts)
    if content:
        from neardup.text.contents import BATCH_PAGES

        most = BATCH_PAGES
    _, ends = text_buffers(texts)
    while begin < len(texts):
        end = int(np.searchsorted(ends, ends[begin] + _PIECE))
        end = min(max(end, begin + 1), len(texts), begin + most)
        yield texts.slice(begin, end - begin)
        begin = end


class DocumentColumns:
    """Collects the columns beside the texts: rows, ids, and in ``order`` the order column, batch by batch."""

    def __init__(self) -> None:
        self._rows = GrowingArray(np.int64)
        self._ids: list[tuple[int, pa.Array]] = []
        self.order: list[pa.Array] = []

    def add(self, batch: Batch) -> None:
        """Add the rows, ids and order values of a batch."""
        self._rows.extend(batch.rows)
        if batch.ids is not None:
            self._ids.append((int(batch.rows[0]), batch.ids))
        if batch.order is not None:
            self.order.append(batch.order)

    def names(self, first: int | None = None) -> Names:
        """Return the names of the documents; rows from ``first`` on belong to the reference."""
        parts, self._ids = self._ids, []
        ids = [part for row, part in parts if first is None or row < first]
        reference_ids = [part for _, part in parts[len(ids) :]]
        names = Names(self._rows.rows, join_ids(ids) if ids else None)
        if first is None:
            return names
        if reference_ids:
            return replace(names, reference_names=join_ids(reference_ids))
        reference_rows = names.rows[np.searchsorted(names.rows, first) :]
        return replace(names, reference_names=pa.array(reference_rows - first))


def gather_statistics(
    corpus: Corpus,
    recipe: Recipe,
    *,
    threads: int | None = None,
    memory: int | None = None,
    progress: Progress | None = None,
) -> Statistics:
    """Return the document frequencies of a recipe's features in a corpus, before clipping and signatures.

    The corpus is read once. A memory budget (bytes) that is too small for the table of frequencies is refused.
    """
    return gather_text_statistics(
        pieces(corpus, "count", progress, content=recipe.content), recipe, threads=threads, memory=memory
    )


def gather_text_statistics(
    batches: Iterable[pa.LargeStringArray], recipe: Recipe, *, threads: int | None = None, memory: int | None = None
) -> Statistics:
    """Return the document frequencies of a recipe's features in texts; how they are batched does not matter."""
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if weighs else None)
    builder = StatisticsBuilder(memory)
    for counts in map_in_order(partial(_batch_frequencies, extractor), batches, threads or default_threads()):
        builder.add(*counts)
    return builder.build()


def _batch_frequencies(extractor: Extractor, texts: pa.LargeStringArray) -> tuple[int, int, Words, Integers]:
    """Return the number of texts, the largest sum of squared counts, and the distinct features with their df."""
    block = extractor(texts)
    features, df = np.unique(block.features, return_counts=True)
    return len(texts), largest_square_sum(block), features, df.astype(np.int64)


def largest_square_sum(block: Block) -> int:
    """Return the largest sum over a document of squared feature counts; for sets, the largest set size."""
    counts = block.weights if len(block.weights) else np.ones(len(block.features), np.int64)
    squares = np.concatenate([[0], np.cumsum(counts * counts)])
    ends = np.cumsum(block.sizes)
    return int((squares[ends] - squares[ends - block.sizes]).max(initial=0))


#: Bytes per counted feature, including those not yet merged (measured).
_BYTES_PER_COUNT = 160
#: Counts that may wait to be merged, beside twice those that are.
_MAX_PENDING = 1 << 20


class StatisticsBuilder:
    """Adds up the document frequencies of a collection, batch by batch."""

    def __init__(self, memory: int | None = None) -> None:
        self._documents, self._memory = 0, memory
        self._square_sum = 0
        self._pending: list[tuple[Words, Integers]] = []
        self._size, self._merged = 0, 0

    def add(self, documents: int, square_sum: int, features: Words, df: Integers) -> None:
        """Add the df of distinct features in a batch of ``documents`` documents."""
        self._documents += documents
        self._square_sum = max(self._square_sum, square_sum)
        self._pending.append((features, df))
        self._size += len(features)
        if self._size > 2 * self._merged + _MAX_PENDING:
            self._merge()

    def _merge(self) -> None:
        features = np.concatenate([np.empty(0, np.uint64), *(features for features, _ in self._pending)])
        df = np.concatenate([np.empty(0, np.int64), *(df for _, df in self._pending)])
        distinct, index = np.unique(features, return_inverse=True)
        total = np.bincount(index, weights=df, minlength=len(distinct)).astype(np.int64)
        self._pending = [(distinct, total)]
        self._size = self._merged = len(distinct)
        needed = _BYTES_PER_COUNT * len(distinct)
        check_budget(self._memory, needed, f"the table of {len(distinct):,} or more features, which stays in memory")

    def build(self) -> Statistics:
        """Return the statistics of everything added."""
        self._merge()
        ((features, df),) = self._pending
        is_shared = df > 1
        return Statistics(self._documents, len(features), self._square_sum, features[is_shared], df[is_shared])


def compared_texts(texts: Sequence[str], recipe: Recipe, threads: int) -> Sequence[str]:
    """Return what a recipe compares: the texts themselves, or their contents."""
    if not recipe.content:
        return texts
    from neardup.text.contents import BATCH_PAGES, contents_of

    batches = [texts[begin : begin + BATCH_PAGES] for begin in range(0, len(texts), BATCH_PAGES)]
    parts = map_in_order(partial(contents_of, name=recipe.content), batches, threads)
    return [content for part in parts for content in part]
