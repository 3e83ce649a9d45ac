"""The features of a corpus: the store that holds them, in memory or beyond a budget in a file."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.kernels.counts import group_equal
from neardup.runtime import Memory, check_budget

#: Features in a slab: 64 MB.
_SLAB = 1 << 23
#: From this share of a corpus on, what it needs as a whole is known well enough to refuse what falls short of so much
#: of it.
_SHARE_THAT_TELLS, _CERTAIN = 1 / 16, 0.75

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


def heads_of(sizes: Integers) -> Integers:
    """Return where each of some consecutive sets begins, and where the last one ends: int64[d + 1]."""
    heads = np.zeros(len(sizes) + 1, np.int64)
    sizes.cumsum(out=heads[1:])
    return heads


def addresses_of(array: npt.NDArray[Any], sizes: Integers) -> Features64:
    """Return where each set begins in memory, of sets one behind the other in an array of 8 bytes each."""
    return np.uint64(array.ctypes.data) + np.uint64(8) * (np.cumsum(sizes) - sizes).astype(np.uint64)


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


class Needs(NamedTuple):
    """Bytes that a search takes: for each document, each feature that is held and each byte of text, and what for."""

    document: float = 0
    feature: float = 0
    text: float = 0
    what: str = "what is known of each document"


class _Part(NamedTuple):
    """The features and weights of a block, and how many documents they are of."""

    documents: int
    features: Features64
    weights: Integers


class Column:
    """Rows of numbers that grow at the end, by an eighth and without a copy: what is known of each document.

    ``array`` has the rows, and room for more behind them; when more are added it may move.
    """

    def __init__(self, dtype: type[np.generic], *width: int) -> None:
        self.array: npt.NDArray[Any] = np.empty((0, *width), dtype)
        self._count, self._is_read = 0, False

    def __len__(self) -> int:
        return self._count

    def extend(self, rows: npt.NDArray[Any]) -> None:
        """Add rows."""
        begin, self._count = self._count, self._count + len(rows)
        if self._count > len(self.array):
            self._resize(self._count + self._count // 8)
        self.array[begin : self._count] = rows

    @property
    def rows(self) -> npt.NDArray[Any]:
        """All rows."""
        if len(self.array) > self._count:
            self._resize(self._count)
        self._is_read = True
        return self.array

    def _resize(self, rows: int) -> None:
        if self._is_read:
            self.array, self._is_read = self.array.copy(), False
        # The system moves the pages of a large array; views of it are not handed out before they are complete.
        self.array.resize((rows, *self.array.shape[1:]), refcheck=False)


class FeatureStore:
    """The feature sets of a corpus, in the order in which blocks are added, in a memory with a budget.

    A budget below what follows needs is refused.

    Attributes
    ----------
    documents : float
        How many documents will be added in all, as far as one can tell: whoever reads them sets it; 0 where nobody
        knows.
    names_bytes, reader_bytes : int
        Bytes of ids that are strings, of the documents so far, and the most that reading took at one time: whoever
        reads them says so.
    """

    def __init__(self, memory: Memory | None = None, needs: Needs | None = None) -> None:
        self.memory, self._needs = memory or Memory(), needs or Needs()
        self.documents, self.names_bytes, self.reader_bytes = 0.0, 0, 0
        self._held, self._bytes = 0, 0
        self._parts: list[_Part] = []
        self._sizes, self._marks = Column(np.int64), Column(np.uint64, 2)
        self._text_marks, self._text_bytes = Column(np.uint64, 2), Column(np.int64)
        self._lock = threading.Lock()
        self._slab = np.empty(0, np.uint64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._sizes)

    def close(self) -> None:
        """Let go of the feature sets; what is known of each document stays."""
        self._slab = np.empty(0, np.uint64)
        none, no_weights = np.empty(0, np.uint64), np.empty(0, np.int64)
        self._parts = [part._replace(features=none, weights=no_weights) for part in self._parts]
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
        """Append the sets of a block, whose features come from ``allocate``; refuse a budget that is too little."""
        self._held += len(block.features)
        self._parts.append(_Part(len(block.sizes), block.features, block.weights))
        self._sizes.extend(block.sizes)
        self._marks.extend(block.marks)
        self._note(block)

    def _note(self, block: Block) -> None:
        self._text_marks.extend(block.text_marks)
        self._text_bytes.extend(block.text_bytes)
        self._bytes += int(block.text_bytes.sum())
        needs = self._needs
        needed = needs.document * len(self) + needs.feature * self._held + needs.text * self._bytes + self.names_bytes
        whole = needed * self._growth
        if _SHARE_THAT_TELLS * self._growth <= 1:
            needed = max(needed, _CERTAIN * whole)
        check_budget(self.memory.budget, needed, needs.what, all_of_it=whole)

    @property
    def _growth(self) -> float:
        """How many times as many documents there will be."""
        return max(self.documents / max(len(self), 1), 1.0)

    def expect(self, documents: int) -> None:
        """Refuse a budget that is too little for so many documents, before they are read."""
        check_budget(self.memory.budget, self._needs.document * documents, self._needs.what)

    @property
    def sizes(self) -> Integers:
        """int64[n], the number of features of each document."""
        return self._sizes.rows

    @property
    def text_marks(self) -> Features64:
        """uint64[n, 2], equal for equal texts."""
        return self._text_marks.rows

    @property
    def text_bytes(self) -> Integers:
        """int64[n], the length of each text."""
        return self._text_bytes.rows

    @property
    def room(self) -> float:
        """How many bytes of the budget are left for more than is known of each document; infinity without one."""
        return self.memory.room - self._needs.document * len(self) - self.names_bytes

    def first_equal(self, alone: npt.NDArray[np.bool_]) -> Integers:
        """Return for each document the first with equal features and weights, -1 for those in ``alone``: int64[n]."""
        found = np.empty(len(self), np.int64)
        group_equal(self._marks.rows, self.sizes, alone, self.addresses(), self.weight_addresses(), found)
        return found

    def parts(self) -> Iterator[tuple[Features64, Integers]]:
        """Yield the features of consecutive documents with the number of each one's, block by block."""
        for part, sizes in self._with_sizes():
            yield part.features, sizes

    def _with_sizes(self) -> Iterator[tuple[_Part, Integers]]:
        first = 0
        for part in self._parts:
            yield part, self.sizes[first : first + part.documents]
            first += part.documents

    def chosen(self, documents: Integers) -> tuple[Features64, Integers]:
        """Return the features of some documents, ascending, with the number of each one's."""
        found = [np.empty(0, np.uint64)]
        first = 0
        for features, sizes in self.parts():
            ends = np.cumsum(sizes)
            here = documents[(documents >= first) & (documents < first + len(ends))] - first
            found += [features[ends[d] - sizes[d] : ends[d]] for d in here.tolist()]
            first += len(ends)
        return np.concatenate(found), self.sizes[documents]

    def vectors(self) -> Vectors:
        """Return the features of all documents as rows, in memory."""
        heads = heads_of(self.sizes)
        if len(self._parts) != 1:
            features, weights = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
            features += [part.features for part in self._parts]
            weights += [part.weights for part in self._parts]
            # From here on the store holds them as one part, for nobody has room for them twice.
            self._parts = [_Part(len(self), np.concatenate(features), np.concatenate(weights))]
            self._slab = np.empty(0, np.uint64)
            self.memory.forget()
        return Vectors(heads, self._parts[0].features, self._parts[0].weights)

    def addresses(self) -> Features64:
        """Return uint64[n], where the features of each document begin in memory while the store is open."""
        return self._addresses(part.features for part in self._parts)

    def weight_addresses(self) -> Features64:
        """Return the same of the weights; empty for sets."""
        weighted = any(len(part.weights) for part in self._parts)
        return self._addresses(part.weights for part in self._parts) if weighted else np.empty(0, np.uint64)

    def _addresses(self, arrays: Iterable[npt.NDArray[Any]]) -> Features64:
        found = [np.empty(0, np.uint64)]
        for array, (_, sizes) in zip(arrays, self._with_sizes(), strict=True):
            found.append(addresses_of(array, sizes))
        return np.concatenate(found)
