"""The chain in memory, the one place where the steps meet: read, normalize, features, join, keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import __version__
from neardup.clock import Clock
from neardup.documents import REPEATED_ID, Batch, Corpus, join_ids, join_order, repeated_ids
from neardup.errors import RecipeError
from neardup.features import FeatureStore, extract
from neardup.join import self_join
from neardup.measures import rule
from neardup.ordering import keep_order
from neardup.pairs import Names
from neardup.parallel import default_threads, in_order
from neardup.recipe import Recipe
from neardup.result import Documents, Result, recipe_details
from neardup.spill import Memory

#: The bytes of text in a piece of work: small enough for the processor's cache, large enough for a thread.
_PIECE = 1 << 20

#: More pairs of distinct texts than this a document are too many to find them all, unless they are below a million.
PAIRS_PER_DOCUMENT = 20.0
_ALWAYS_ALLOWED_PAIRS = 1_000_000

Report = Callable[[str, int, int | None], None]


def _silent(stage: str, done: int, total: int | None) -> None:
    return None


class _Reading:
    """Collects what pass one leaves behind besides the features."""

    def __init__(self, corpus: Corpus, report: Report) -> None:
        self._corpus, self._report, self._consumed = corpus, report, 0
        self._rows: list[np.ndarray[Any, np.dtype[np.int64]]] = [np.zeros(0, np.int64)]
        self._ids: list[pa.Array] = []
        self._order: list[pa.Array] = []

    def pieces(self) -> Iterator[pa.LargeStringArray]:
        """Yield the texts of all batches in pieces for the threads."""
        for batch in self._corpus.scan():
            self._rows.append(batch.rows)
            if batch.ids is not None:
                self._ids.append(batch.ids)
            if batch.order is not None:
                self._order.append(batch.order)
            self._consumed += batch.consumed
            self._report("read", self._consumed, self._corpus.total_bytes)
            yield from _pieces(batch)

    def names(self) -> Names:
        """Return what the documents are called."""
        return Names(np.concatenate(self._rows), join_ids(self._ids) if self._ids else None)

    def order(self) -> pa.Array | None:
        """Return the values of the order column."""
        column = self._corpus.order_column
        return join_order(self._order, column) if column and self._order else None


def _pieces(batch: Batch) -> Iterator[pa.LargeStringArray]:
    texts = batch.texts
    ends = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    begin = 0
    while begin < len(texts):
        end = int(np.searchsorted(ends, ends[begin] + _PIECE))
        end = min(max(end, begin + 1), len(texts))
        yield texts.slice(begin, end - begin)
        begin = end


def run(
    corpus: Corpus,
    recipe: Recipe,
    *,
    threads: int | None = None,
    memory: int | None = None,
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT,
    progress: Report | None = None,
) -> Result:
    """Find the near-duplicates of a corpus.

    Parameters
    ----------
    corpus : Corpus
        From ``documents.open_corpus`` or ``documents.corpus_of``; it must stay open as long as the result is
        asked.
    recipe : Recipe
        What to do.
    threads : int, optional
        Threads to use, all processors by default. It changes the time, never the answer.
    memory : int, optional
        A budget in bytes: feature sets, prefixes and index beyond it go to a temporary file.
    pairs_per_document : float or None
        Where more pairs of distinct texts match than this times the documents (and than a million), only those of
        dropped documents with kept ones are found. It changes no verdict, but what is known of pairs and families.
        None finds all pairs, whatever they cost: a thousand slightly different copies have half a million.
    progress : callable, optional
        Told (stage, done, total or None) from time to time.

    Raises
    ------
    NeardupError
        If the input cannot be read or an option does not fit.
    """
    threads = default_threads() if threads is None else threads
    if threads < 1:
        raise RecipeError(f"threads {threads} is below 1")
    report = progress or _silent
    clock = Clock()
    with FeatureStore(Memory(memory)) as store:
        reading = _Reading(corpus, report)
        with clock.stage("read and features"):
            for block in in_order(partial(extract, recipe=recipe, allocate=store.allocate), reading.pieces(), threads):
                store.add(block)
        pa.default_memory_pool().release_unused()
        names = reading.names()
        present = _first_of_their_id(corpus, names)
        order, missing = keep_order(recipe.keep, store.text_bytes, reading.order())
        with clock.stage("join"):
            joined = self_join(
                store,
                rule(recipe.measure, recipe.threshold, recipe.jaccard_floor),
                threads=threads,
                excluded=~present,
                keep_order=order,
                most_pairs=_most_pairs(pairs_per_document, len(names)),
                progress=lambda done, total: report("join", done, total),
            )
        spilled = store.memory.spilled_bytes
    with clock.stage("keep"):
        documents = Documents(names, order, store.text_marks, store.text_bytes, present)
        details = {
            "without_keep_value": missing,
            "search": joined.statistics | {"spilled_bytes": spilled},
            "threads": threads,
            "version": __version__,
        } | recipe_details(recipe)
        return Result(corpus, recipe, documents, joined, details, clock)


def _most_pairs(per_document: float | None, documents: int) -> int | None:
    if per_document is None:
        return None
    if not per_document >= 0:
        raise RecipeError(f"pairs per document {per_document} is below 0")
    return max(int(per_document * documents), _ALWAYS_ALLOWED_PAIRS)


def _first_of_their_id(corpus: Corpus, names: Names) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which documents have an id that none before them has; the others are set aside."""
    present = np.ones(len(names), np.bool_)
    if names.ids is not None:
        repeated = repeated_ids(names.ids)
        present[repeated] = False
        if len(repeated):
            corpus.set_aside_rows(names.rows[repeated], REPEATED_ID)
    return present
