"""One pass over a collection for its statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.sets import COUNTED
from neardup.documents import Corpus
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.parallel import default_threads, in_order
from neardup.reading import pieces
from neardup.recipe import Recipe

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Report = Callable[[str, int, int | None], None]


def gather(corpus: Corpus, recipe: Recipe, *, threads: int | None = None, report: Report | None = None) -> Statistics:
    """Return the document frequencies of a recipe's features in a corpus, before clipping and signatures.

    Parameters
    ----------
    corpus : Corpus
        It is read once.
    recipe : Recipe
        Its ``content``, ``normalize``, ``features`` and ``stop_words``.
    threads : int, optional
        They change the time, never the answer.
    report : callable, optional
        Told ("count", bytes done, bytes in all or None).
    """
    return gather_texts(pieces(corpus, "count", report), recipe, threads=threads)


def gather_texts(batches: Iterable[pa.LargeStringArray], recipe: Recipe, *, threads: int | None = None) -> Statistics:
    """Return the document frequencies of a recipe's features in texts, however they are parted into batches.

    Parameters
    ----------
    batches : iterable of pyarrow.LargeStringArray
        Valid UTF-8, no nulls; one is some piece of work for a thread.
    recipe, threads
        As in ``gather``.
    """
    weighs = bool(recipe.weights) or recipe.parsed_features.kind == "terms"
    extractor = Extractor(recipe.without_statistics(), None, COUNTED if weighs else None)
    gathering = Gathering()
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


class Gathering:
    """Adds up the document frequencies of a collection, batch by batch."""

    def __init__(self) -> None:
        self._documents = 0
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

    def done(self) -> Statistics:
        """Return the statistics of all that was added."""
        self._merge()
        ((features, df),) = self._waiting
        several = df > 1
        return Statistics(self._documents, len(features), self._heaviest, features[several], df[several])
