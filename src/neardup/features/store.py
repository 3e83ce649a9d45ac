"""The features of a corpus: the store that holds them, in memory or beyond a budget in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.runtime import Memory

#: Features in a slab: 64 MB.
_SLAB = 1 << 23

Features64 = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class Block(NamedTuple):
    """The feature sets of consecutive documents.

    Attributes
    ----------
    features : uint64[k]
        The sets one behind the other; a feature is the 64-bit hash of a gram (of a gram and its repeat, for
        multisets), or a word of a signature. Two grams that nobody chose have one feature with probability 2**-64.
        The hash is fast and its steps can be undone: whoever writes texts for it finds words that have one feature, and
        his texts match by them. He can make texts match that should not, but hide no match of texts by others.
    sizes : int64[d]
        The number of features of each document.
    marks : uint64[d, 2]
        Equal for equal sets, and for sets that somebody made so: those with equal marks are compared.
    text_marks : uint64[d, 2]
        Equal for texts (of a recipe with ``content``, for contents) that are equal byte for byte. Different ones differ
        where the extractor was asked for digests, else unless somebody made them so.
    text_bytes : int64[d]
        The length of each text (or content) in bytes of UTF-8.
    weights : int64[k]
        The weight of each feature, at least 1; empty for sets.
    """

    features: Features64
    sizes: Integers
    marks: Features64
    text_marks: Features64
    text_bytes: Integers
    weights: Integers


class Vectors(NamedTuple):
    """Documents as rows: those of d are features[heads[d]:heads[d + 1]].

    Attributes
    ----------
    heads : int64[n + 1]
        Where the features of each document begin.
    features : uint64[m]
        Distinct within a document, none of them 0 (but a simhash may be).
    weights : int64[m]
        At least 1; empty for sets.
    """

    heads: Integers
    features: Features64
    weights: Integers


class FeatureStore:
    """The feature sets of a corpus, in the order in which blocks are added.

    Parameters
    ----------
    memory : Memory, optional
        Where the features lie; without one all are in memory.

    Attributes
    ----------
    marks_decide : bool
        Whether sets with equal marks are equal, so that nobody need compare them.
    """

    marks_decide = False

    def __init__(self, memory: Memory | None = None) -> None:
        self.memory = memory or Memory()
        self._blocks: list[Block] = []
        self._lock = threading.Lock()
        self._slab = np.empty(0, np.uint64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return sum(len(block.sizes) for block in self._blocks)

    def close(self) -> None:
        """Let go of the feature sets; what is known of each document stays."""
        self._slab = np.empty(0, np.uint64)
        none, no_weights = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._blocks = [block._replace(features=none, weights=no_weights) for block in self._blocks]
        self.memory.forget()

    def allocate(self, size: int) -> Features64:
        """Return a uint64 array for a block that is to be added; from any thread.

        Blocks share large slabs, which the system hands out in few large pages: page by page, fresh memory
        costs more than the features themselves.
        """
        with self._lock:
            if size > len(self._slab):
                self.memory.release()
                self._slab = self.memory.array(np.uint64, max(size, _SLAB))
            given, self._slab = self._slab[:size], self._slab[size:]
            return given

    def add(self, block: Block) -> None:
        """Append the sets of a block, whose features come from ``allocate``."""
        self._blocks.append(block)

    def _joined(self, field: str, empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.concatenate([empty, *(getattr(block, field) for block in self._blocks)])

    @property
    def sizes(self) -> Integers:
        """int64[n], the number of features of each document."""
        return self._joined("sizes", np.empty(0, np.int64))

    @property
    def marks(self) -> Features64:
        """uint64[n, 2], equal for equal sets."""
        return self._joined("marks", np.empty((0, 2), np.uint64))

    @property
    def text_marks(self) -> Features64:
        """uint64[n, 2], equal for equal texts."""
        return self._joined("text_marks", np.empty((0, 2), np.uint64))

    @property
    def text_bytes(self) -> Integers:
        """int64[n], the length of each text."""
        return self._joined("text_bytes", np.empty(0, np.int64))

    def parts(self) -> Iterator[tuple[Features64, Integers]]:
        """Yield the features of consecutive documents with the number of each one's, block by block."""
        for block in self._blocks:
            yield block.features, block.sizes

    def chosen(self, documents: Integers) -> tuple[Features64, Integers]:
        """Return the features of some documents, ascending, with the number of each one's."""
        found = [np.empty(0, np.uint64)]
        first = 0
        for block in self._blocks:
            ends = np.cumsum(block.sizes)
            here = documents[(documents >= first) & (documents < first + len(ends))] - first
            found += [block.features[ends[d] - block.sizes[d] : ends[d]] for d in here.tolist()]
            first += len(ends)
        return np.concatenate(found), self.sizes[documents]

    def vectors(self) -> Vectors:
        """Return the features of all documents as rows, in memory."""
        heads = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        return Vectors(
            heads, self._joined("features", np.empty(0, np.uint64)), self._joined("weights", np.empty(0, np.int64))
        )

    def addresses(self) -> Features64:
        """Return uint64[n], where the features of each document begin in memory while the store is open."""
        return self._addresses("features")

    def weight_addresses(self) -> Features64:
        """Return the same of the weights; empty for sets."""
        weighted = any(len(block.weights) for block in self._blocks)
        return self._addresses("weights") if weighted else np.empty(0, np.uint64)

    def _addresses(self, field: str) -> Features64:
        found = [np.empty(0, np.uint64)]
        for block in self._blocks:
            before = np.cumsum(block.sizes) - block.sizes
            found.append(np.uint64(getattr(block, field).ctypes.data) + np.uint64(8) * before.astype(np.uint64))
        return np.concatenate(found)
