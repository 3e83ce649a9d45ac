"""Texts to feature sets, and the store that holds them, in memory or beyond a budget in a file."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from typing import IO, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.ascii import text_marks
from neardup._kernels.shingles import feature_sets
from neardup.comparable import comparable, text_buffers
from neardup.errors import OutputError
from neardup.recipe import FEATURE_KINDS, Recipe
from neardup.scratch import SCRATCH

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


def extract(
    texts: pa.LargeStringArray, recipe: Recipe, allocate: Callable[[int], Features64] = _fresh
) -> Block:
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
    budget : int or None
        Bytes of features to hold in memory; the blocks beyond go to a temporary file that vanishes with the
        process. None holds all of them.
    """

    def __init__(self, budget: int | None = None) -> None:
        self._budget = budget
        self._held = 0
        self._blocks: list[Block] = []
        self._places: list[int | None] = []
        self._file: IO[bytes] | None = None
        self._spilled = 0
        self._mapped: Features64 | None = None
        self._lock = threading.Lock()
        self._slab = np.empty(0, np.uint64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return sum(len(block.sizes) for block in self._blocks)

    def close(self) -> None:
        """Let go of the feature sets, in memory and in the file; what is known of each document stays."""
        self._mapped = None
        self._slab = np.empty(0, np.uint64)
        self._blocks = [block._replace(features=block.features[:0].copy()) for block in self._blocks]
        if self._file is not None:
            self._file.close()
            self._file = None

    @property
    def spilled_bytes(self) -> int:
        """How many bytes of features lie in the temporary file."""
        return self._spilled

    def allocate(self, size: int) -> Features64:
        """Return a uint64 array for a block that is to be added; from any thread.

        Blocks share large slabs, which the system hands out in few large pages: page by page, fresh memory
        costs more than the features themselves.
        """
        with self._lock:
            if self._budget is not None and self._held + 8 * size > self._budget:
                return np.empty(size, np.uint64)
            self._held += 8 * size
            if size > len(self._slab):
                self._slab = np.empty(max(size, _SLAB), np.uint64)
            given, self._slab = self._slab[:size], self._slab[size:]
            return given

    def add(self, block: Block) -> None:
        """Append the sets of a block, whose features come from ``allocate``."""
        size = block.features.nbytes
        if block.features.base is not None or size == 0:
            self._places.append(None)
        else:
            self._spill(block.features)
            self._places.append(self._spilled - size)
            block = block._replace(features=block.features[:0])
        self._blocks.append(block)

    def _spill(self, features: Features64) -> None:
        if self._file is None:
            self._file = tempfile.TemporaryFile(prefix="neardup-features-")  # noqa: SIM115 (closed with the store)
        try:
            self._file.write(features.data)
        except OSError as error:
            raise OutputError(
                f"the features beyond --memory do not fit into {tempfile.gettempdir()} ({error.strerror}); "
                "free space there, set TMPDIR to a larger place or raise --memory"
            ) from None
        self._spilled += features.nbytes

    def _joined(self, field: str, empty: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        return np.concatenate([empty, *(getattr(block, field) for block in self._blocks)])

    @property
    def sizes(self) -> Integers:
        """int64[n], the number of features of each document."""
        return self._joined("sizes", np.zeros(0, np.int64)).astype(np.int64, copy=False)

    @property
    def marks(self) -> Features64:
        """uint64[n, 2], equal for equal sets."""
        return self._joined("marks", np.zeros((0, 2), np.uint64)).astype(np.uint64, copy=False)

    @property
    def text_marks(self) -> Features64:
        """uint64[n], equal for equal texts."""
        return self._joined("text_marks", np.zeros(0, np.uint64)).astype(np.uint64, copy=False)

    @property
    def text_bytes(self) -> Integers:
        """int64[n], the length of each text."""
        return self._joined("text_bytes", np.zeros(0, np.int64)).astype(np.int64, copy=False)

    def addresses(self) -> Features64:
        """Return uint64[n], where the features of each document begin in memory while the store is open."""
        if self._file is not None and self._mapped is None:
            self._file.flush()
            self._mapped = np.asarray(np.memmap(self._file, np.uint64, "r"))
        found = [np.zeros(0, np.uint64)]
        for block, place in zip(self._blocks, self._places, strict=True):
            base = block.features.ctypes.data if place is None else self._base() + place
            before = np.cumsum(block.sizes) - block.sizes
            found.append(np.uint64(base) + np.uint64(8) * before.astype(np.uint64))
        return np.concatenate(found)

    def _base(self) -> int:
        return 0 if self._mapped is None else int(self._mapped.ctypes.data)
