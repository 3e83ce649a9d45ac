"""The features of a corpus: the store that holds them, in memory or, beyond a budget, in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.kernels import Bools, Integers, Words
from neardup.kernels.counts import copy_sets, group_equal_sets
from neardup.runtime import Memory, check_budget

#: Features in a slab: 64 MB.
_SLAB = 1 << 23
#: Once this share of a corpus is read, its total needs are extrapolated: a budget below `_SAFETY` of them is refused.
_RELIABLE_SHARE, _SAFETY = 1 / 16, 0.75


_NOTHING_FAILED: Mapping[int, str] = {}


class Block(NamedTuple):
    """The feature sets of consecutive documents.

    Attributes
    ----------
    features : uint64[k]
        The concatenated sets. A feature is the 64-bit hash of a gram (of a gram and its repeat number, for multisets),
        or a word of a signature. Two grams that nobody chose share a feature with probability 2**-64. The hash is fast
        and invertible, so an attacker can construct words with equal features: he can make texts match that should not,
        but cannot hide a match between texts of others.
    sizes : int64[d]
        The number of features of each document.
    set_digests : uint64[d, 2]
        Equal for equal sets. Different sets can be constructed to have equal digests, so sets with equal digests are
        compared.
    text_digests : uint64[d, 2]
        Equal for texts that are equal byte for byte (for contents, if the recipe has ``content``). Different texts have
        different digests if the extractor was created with ``digests=True``; otherwise collisions can be constructed.
    text_bytes : int64[d]
        The length of each text (or content) in bytes of UTF-8.
    weights : int64[k]
        The weight of each feature, at least 1; empty for sets.
    failed : dict of int to str
        Why the extraction of a page failed, by the place of its document in the block.
    """

    features: Words
    sizes: Integers
    set_digests: Words
    text_digests: Words
    text_bytes: Integers
    weights: Integers
    failed: Mapping[int, str] = _NOTHING_FAILED


def row_heads(sizes: Integers) -> Integers:
    """Return where each of consecutive rows begins, and where the last one ends: int64[d + 1]."""
    heads = np.zeros(len(sizes) + 1, np.int64)
    sizes.cumsum(out=heads[1:])
    return heads


def set_addresses(array: npt.NDArray[Any], sizes: Integers) -> Words:
    """Return the memory address of each set in an array of concatenated sets, 8 bytes per feature: uint64[d]."""
    return np.uint64(array.ctypes.data) + np.uint64(8) * (np.cumsum(sizes) - sizes).astype(np.uint64)


class Vectors(NamedTuple):
    """Documents as rows: row d is features[heads[d]:heads[d + 1]].

    features: distinct within a document, none of them 0 (except that a SimHash may be 0); weights: at least 1, or empty
    for sets.
    """

    heads: Integers
    features: Words
    weights: Integers


class MemoryNeeds(NamedTuple):
    """Bytes that a search holds per document, per stored feature and per byte of text, and what it holds them for."""

    document: float = 0
    feature: float = 0
    text: float = 0
    purpose: str = "the sizes and digests of each document"


class _StoredBlock(NamedTuple):
    """The features and weights of a block of documents."""

    documents: int
    features: Words
    weights: Integers


class GrowingArray:
    """An array of rows that grows at the end, by an eighth and without a copy.

    ``array`` holds the rows and spare room behind them; it may move when rows are added.
    """

    def __init__(self, dtype: type[np.generic], *width: int) -> None:
        self.array: npt.NDArray[Any] = np.empty((0, *width), dtype)
        self._count, self._has_views = 0, False

    def __len__(self) -> int:
        return self._count

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Append rows."""
        begin, self._count = self._count, self._count + len(rows)
        if self._count > len(self.array):
            self._resize(self._count + self._count // 8)
        self.array[begin : self._count] = rows

    @property
    def rows(self) -> npt.NDArray[Any]:
        """All rows, without spare room."""
        if len(self.array) > self._count:
            self._resize(self._count)
        self._has_views = True
        return self.array

    def _resize(self, rows: int) -> None:
        if self._has_views:
            self.array, self._has_views = self.array.copy(), False
        # `realloc` moves the pages of a large array instead of copying; no views exist here, so NumPy need not check.
        self.array.resize((rows, *self.array.shape[1:]), refcheck=False)


class FeatureStore:
    """The feature sets of a corpus, in the order in which blocks are added, within a memory budget.

    A budget below what the search needs is refused. The caller updates while it reads: expected_documents, an estimate
    of how many will be added, 0 if unknown; id_bytes, those of string ids so far; reader_bytes, the reader's peak.
    """

    def __init__(self, memory: Memory | None = None, needs: MemoryNeeds | None = None) -> None:
        self.memory, self._needs = memory or Memory(), needs or MemoryNeeds()
        self.expected_documents, self.id_bytes, self.reader_bytes = 0.0, 0, 0
        self._feature_count, self._text_bytes_total = 0, 0
        self._blocks: list[_StoredBlock] = []
        self._sizes, self._digests = GrowingArray(np.int64), GrowingArray(np.uint64, 2)
        self._text_digests, self._text_bytes = GrowingArray(np.uint64, 2), GrowingArray(np.int64)
        self._lock = threading.Lock()
        self._slab = np.empty(0, np.uint64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._sizes)

    def close(self) -> None:
        """Release the feature sets; sizes and digests stay."""
        self._slab = np.empty(0, np.uint64)
        none, no_weights = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._blocks = [block._replace(features=none, weights=no_weights) for block in self._blocks]
        self.memory.forget()

    def allocate(self, size: int) -> Words:
        """Return a uint64 array for the features of a block to be added. Thread-safe.

        Blocks share large slabs, which the system maps in a few large pages: fresh memory page by page costs more than
        computing the features.
        """
        with self._lock:
            if size > len(self._slab):
                self.memory.evict()
                self._slab = self.memory.array(np.uint64, max(size, _SLAB))
            array, self._slab = self._slab[:size], self._slab[size:]
            return array

    def add(self, block: Block) -> None:
        """Append a block whose features come from ``allocate``; raise an error if the budget is too small."""
        self._feature_count += len(block.features)
        self._blocks.append(_StoredBlock(len(block.sizes), block.features, block.weights))
        self._sizes.extend(block.sizes)
        self._digests.extend(block.set_digests)
        self._record(block)

    def _record(self, block: Block) -> None:
        self._text_digests.extend(block.text_digests)
        self._text_bytes.extend(block.text_bytes)
        self._text_bytes_total += int(block.text_bytes.sum())
        needs = self._needs
        needed = (
            needs.document * len(self)
            + needs.feature * self._feature_count
            + needs.text * self._text_bytes_total
            + self.id_bytes
        )
        expected = needed * self._growth
        if _RELIABLE_SHARE * self._growth <= 1:
            needed = max(needed, _SAFETY * expected)
        reserved = self.memory.reserved
        check_budget(self.memory.budget, needed + reserved, needs.purpose, final_need=expected + reserved)

    @property
    def _growth(self) -> float:
        """The expected number of documents divided by the number so far, at least 1."""
        return max(self.expected_documents / max(len(self), 1), 1.0)

    def check_document_count(self, documents: int) -> None:
        """Raise an error if the budget is too small for this many documents."""
        needed = self._needs.document * documents + self.memory.reserved
        check_budget(self.memory.budget, needed, self._needs.purpose)

    @property
    def sizes(self) -> Integers:
        """The number of features of each document: int64[n]."""
        return self._sizes.rows

    @property
    def text_digests(self) -> Words:
        """Digests that are equal for equal texts: uint64[n, 2]."""
        return self._text_digests.rows

    @property
    def text_bytes(self) -> Integers:
        """The length of each text: int64[n]."""
        return self._text_bytes.rows

    @property
    def spare_bytes(self) -> float:
        """The bytes of the budget left beside the needs of each document; infinity without a budget."""
        return self.memory.free_bytes - self._needs.document * len(self) - self.id_bytes

    def first_equal(self, excluded: Bools) -> Integers:
        """Return for each document the first one with equal features and weights, -1 if ``excluded``: int64[n]."""
        found = np.empty(len(self), np.int64)
        group_equal_sets(self._digests.rows, self.sizes, excluded, self.addresses(), self.weight_addresses(), found)
        return found

    def set_blocks(self) -> Iterator[tuple[Words, Integers]]:
        """Yield the features of consecutive documents and the size of each set, block by block."""
        for block, sizes in self._blocks_with_sizes():
            yield block.features, sizes

    def _blocks_with_sizes(self) -> Iterator[tuple[_StoredBlock, Integers]]:
        first = 0
        for block in self._blocks:
            yield block, self.sizes[first : first + block.documents]
            first += block.documents

    def sets_of(self, documents: Integers) -> tuple[Words, Integers]:
        """Return the features of some documents, concatenated, and the size of each set."""
        sizes = self.sizes[documents]
        features = np.empty(int(sizes.sum()), np.uint64)
        copy_sets(self.addresses()[documents], row_heads(sizes), features)
        return features, sizes

    def vectors(self) -> Vectors:
        """Return the features of all documents as rows, in memory."""
        heads = row_heads(self.sizes)
        if len(self._blocks) != 1:
            features, weights = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
            features += [block.features for block in self._blocks]
            weights += [block.weights for block in self._blocks]
            # The store keeps the concatenation as its only block: there is no room for a second copy.
            self._blocks = [_StoredBlock(len(self), np.concatenate(features), np.concatenate(weights))]
            self._slab = np.empty(0, np.uint64)
            self.memory.forget()
        return Vectors(heads, self._blocks[0].features, self._blocks[0].weights)

    def addresses(self) -> Words:
        """Return the memory address of each document's features, valid while the store is open: uint64[n]."""
        return self._addresses(block.features for block in self._blocks)

    def weight_addresses(self) -> Words:
        """Return the memory address of each document's weights: uint64[n]; empty for sets."""
        weighted = any(len(block.weights) for block in self._blocks)
        return self._addresses(block.weights for block in self._blocks) if weighted else np.empty(0, np.uint64)

    def _addresses(self, arrays: Iterable[npt.NDArray[Any]]) -> Words:
        found = [np.empty(0, np.uint64)]
        for array, (_, sizes) in zip(arrays, self._blocks_with_sizes(), strict=True):
            found.append(set_addresses(array, sizes))
        return np.concatenate(found)
