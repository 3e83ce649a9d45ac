"""Texts to feature sets, and the store that holds them, in memory or beyond a budget in a file."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.ascii import text_marks
from neardup._kernels.shingles import feature_sets
from neardup.comparable import comparable, text_buffers
from neardup.recipe import FEATURE_KINDS, Recipe
from neardup.scratch import SCRATCH
from neardup.spill import Memory

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
        multisets).
    sizes : int64[d]
        The number of features of each document.
    marks : uint64[d, 2]
        Equal for equal sets.
    text_marks : uint64[d]
        Equal for texts that are equal byte for byte.
    text_bytes : int64[d]
        The length of each text in bytes of UTF-8.
    """

    features: Features64
    sizes: Integers
    marks: Features64
    text_marks: Features64
    text_bytes: Integers


def _fresh(size: int) -> Features64:
    return np.empty(size, np.uint64)


def extract(texts: pa.LargeStringArray, recipe: Recipe, allocate: Callable[[int], Features64] = _fresh) -> Block:
    """Return the feature sets of texts.

    A text with fewer tokens than n is one gram of all of them; a text without tokens has the empty set.

    Parameters
    ----------
    texts : pyarrow.LargeStringArray
        Valid UTF-8, no nulls.
    recipe : Recipe
        Its ``normalize`` and ``features``.
    allocate : callable
        Gives a uint64 array of a size for the features, as ``FeatureStore.allocate`` does.
    """
    wanted = recipe.parsed_features
    data, offsets = text_buffers(texts)
    count = len(texts)
    normal = comparable(data, offsets, recipe.normalize)
    lengths = normal.spans[:, 1] - normal.spans[:, 0]
    by_character = FEATURE_KINDS[wanted.kind].by_character
    room = int(lengths.sum()) if by_character else int((lengths + 1).sum()) // 2
    out = SCRATCH.take("features", np.uint64, room + count)
    block = Block(
        out,
        np.empty(count, np.int64),
        np.empty((count, 2), np.uint64),
        np.empty(count, np.uint64),
        np.diff(offsets),
    )
    used = feature_sets(
        normal.text, normal.spans, by_character, wanted.n, wanted.multiset, out, block.sizes, block.marks
    )
    text_marks(data, offsets, block.text_marks)
    features = allocate(used)
    features[:] = out[:used]
    return block._replace(features=features)


class FeatureStore:
    """The feature sets of a corpus, in the order in which blocks are added.

    Parameters
    ----------
    memory : Memory, optional
        Where the features lie; without one all are in memory.
    """

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
        self._blocks = [block._replace(features=np.empty(0, np.uint64)) for block in self._blocks]
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
        """uint64[n], equal for equal texts."""
        return self._joined("text_marks", np.empty(0, np.uint64))

    @property
    def text_bytes(self) -> Integers:
        """int64[n], the length of each text."""
        return self._joined("text_bytes", np.empty(0, np.int64))

    def addresses(self) -> Features64:
        """Return uint64[n], where the features of each document begin in memory while the store is open."""
        found = [np.empty(0, np.uint64)]
        for block in self._blocks:
            before = np.cumsum(block.sizes) - block.sizes
            found.append(np.uint64(block.features.ctypes.data) + np.uint64(8) * before.astype(np.uint64))
        return np.concatenate(found)
