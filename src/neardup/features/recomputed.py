"""Features that are made again instead of kept: what pass one leaves of them, and the passes that follow.

Features of word n-grams take more room than the text, and making them again costs less than the file that would hold
them. Pass one counts, in two bits a slot, which features may be in two documents, and leaves a mark of each set; a
later pass makes the features of some documents only. Where there is no room for so many slots, pass one writes each
feature's slot, in four bytes, to a file of its part of the key space, and the parts are counted one after the other.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedRandom
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Corpus
from neardup.errors import InputError, NeardupError, OutputError, option
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, texts_again
from neardup.features.store import Block, Column, Features64, FeatureStore, Needs
from neardup.kernels.counts import (
    NO_CELLS,
    add_alone,
    count_cells_to_two,
    count_to_two,
    find_able,
    find_able_by_size,
    keyed_marks,
    note_first,
    part_cells,
)
from neardup.recipe.measures import Rule
from neardup.runtime import SCRATCH, Memory, in_order, trim_memory

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Booleans = npt.NDArray[np.bool_]
Made = TypeVar("Made")

_FREE = np.uint32(0xFFFFFFFF)
_MOST_DOCUMENTS = (1 << 32) - 2
#: The least number of bits that choose a slot.
_FEWEST_BITS = 16
#: Slots for each feature that is expected: more would find few more features that no other document has. With fewer
#: than the least, most features of a document seem to be in others, and they are counted part by part.
_SLOTS_FOR_EACH, _LEAST_FOR_EACH = 2, 0.75
#: Features whose slots are written to the files of their parts at a time, and the most files.
_FEATURES_AT_A_TIME, _MOST_PARTS = 1 << 21, 256


class Recomputed:
    """Feature sets that are not kept: each pass reads the corpus and makes them again.

    With ``serves_once``, when pairs are looked for only once, the counts are dropped after use.
    """

    def __init__(
        self,
        corpus: Corpus,
        extractor: Extractor,
        threads: int,
        report: Progress | None = None,
        *,
        serves_once: bool = False,
    ) -> None:
        self.serves_once = serves_once
        self._corpus, self._extractor, self._threads, self._report = corpus, extractor, threads, report
        self._keys = np.frombuffer(os.urandom(16), np.uint64)
        self._bits = _FEWEST_BITS
        self._cells, self._parts, self._alone = NO_CELLS, list[CountedPart](), np.empty(0, np.int32)
        self._waiting = list[tuple[Words, Integers, Booleans]]()
        self.sizes, self._marks, self._first = Column(np.int64), Column(np.uint64, 2), Column(np.uint32)
        self._table = np.full(1 << 11, _FREE, np.uint32)
        self.passes = 1

    @property
    def cells(self) -> tuple[np.uint64, npt.NDArray[np.uint8]]:
        """What ``kernels.counts`` takes of the counts: how far a feature is shifted, and uint8, four counts each.

        There are none where features were counted part by part.
        """
        return np.uint64(64 - self._bits), self._cells

    @property
    def nbytes(self) -> int:
        """Bytes that the counts take."""
        return self._cells.nbytes + self._alone.nbytes

    def begin(self, expected: float, most_bytes: float, memory: Memory) -> None:
        """Make room to count so many features, in at most so many bytes; what goes to files is counted in memory."""
        wanted = max(int(_SLOTS_FOR_EACH * expected), 1).bit_length()
        self._bits = _bits_that_fit(wanted, most_bytes)
        if 1 << self._bits >= _LEAST_FOR_EACH * expected:
            self._cells = np.zeros((1 << self._bits) // 4, np.uint8)
            return
        # Nothing else is held while they are counted, but each thread counts a part of its own.
        self._part_bits = _bits_that_fit(wanted, 2 * most_bytes / self._threads)
        self._bits = min(wanted, self._part_bits + _MOST_PARTS.bit_length() - 1)
        self._parts = [CountedPart(self._part_bits, memory) for _ in range(1 << (self._bits - self._part_bits))]

    def count(self, features: Words, sizes: Integers) -> None:
        """Count the features of further documents; of each a mark is kept, and which is the first with its set."""
        begin, end = len(self.sizes), len(self.sizes) + len(sizes)
        if end > _MOST_DOCUMENTS:
            raise NeardupError(f"there are more than {_MOST_DOCUMENTS:,} documents; split the corpus")
        marks = np.empty((len(sizes), 2), np.uint64)
        keyed_marks(features, sizes, self._keys, marks)
        self.sizes.extend(sizes)
        self._marks.extend(marks)
        self._first.extend(np.empty(len(sizes), np.uint32))
        if 3 * end > 2 * len(self._table):
            size, self._table = 1 << (3 * end).bit_length(), np.empty(0, np.uint32)
            self._table = np.full(size, _FREE, np.uint32)
            self._note_first(0, begin)
        self._note_first(begin, end)
        first = self._first.array[begin:end] == np.arange(begin, end)
        if not self._parts:
            count_to_two(features, sizes, first, *self.cells)
            return
        self._waiting.append((features, sizes, first))
        if sum(len(features) for features, _, _ in self._waiting) >= _FEATURES_AT_A_TIME:
            self._add_to_parts()

    def _add_to_parts(self) -> None:
        features, sizes, first = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        lengths, places = np.zeros((len(self._parts), len(sizes)), np.uint32), np.empty(len(features), np.uint32)
        part_cells(features, sizes, first, np.uint64(64 - self._bits), self._part_bits, lengths, places)
        end = 0
        for part, of_each in zip(self._parts, lengths, strict=True):
            begin, end = end, end + int(of_each.sum())
            part.add(of_each, places[begin:end])

    def _note_first(self, begin: int, end: int) -> None:
        bits = len(self._table).bit_length() - 1
        note_first(self._marks.array, self.sizes.array, begin, end, self._table, bits, self._first.array)

    def close_count(self) -> None:
        """End pass one: let go of what only it needs."""
        self._table, self._marks = np.empty(0, np.uint32), Column(np.uint64, 2)
        if not self._parts:
            return
        if self._waiting:
            self._add_to_parts()
        self._alone = np.zeros(len(self.sizes), np.int32)
        for found in in_order(CountedPart.alone, self._parts, self._threads):
            self._alone += found
        self._parts = []

    def close(self) -> None:
        """Let go of the counts."""
        self._cells, self._alone = NO_CELLS, np.empty(0, np.int32)
        for part in self._parts:
            part.close()

    def first_equal(self, alone: Booleans) -> Integers:
        """Return for each document the first with its set, -1 where alone[d]: int64[n]."""
        found = self._first.rows.astype(np.int64)
        able = np.flatnonzero(~alone)
        if alone[found[able]].any():
            _, first, of = np.unique(found[able], return_index=True, return_inverse=True)
            found[able] = able[first][of]
        found[alone] = -1
        return found

    def each(self, chosen: Booleans, make: Callable[[Integers, Block], Made]) -> Iterator[Made]:
        """Yield make(documents, block) of the chosen documents, in order; make is called in threads.

        The features of the block are overwritten when make has returned: it copies what is to stay. A corpus that is no
        longer what pass one read is refused.
        """
        self.passes += 1

        def made(piece: tuple[Integers, pa.LargeStringArray]) -> Made:
            documents, texts = piece
            block = self._extractor(texts, _scratch)
            if not np.array_equal(block.sizes, self.sizes.rows[documents]):
                raise _changed()
            return make(documents, block)

        yield from in_order(made, self._pieces(chosen), self._threads)
        trim_memory()

    def _pieces(self, chosen: Booleans) -> Iterator[tuple[Integers, pa.LargeStringArray]]:
        first = 0
        for texts in texts_again(self._corpus, self._report):
            here = np.flatnonzero(chosen[first : first + len(texts)])
            if len(here) == len(texts):
                yield first + here, texts
            elif len(here):
                yield first + here, texts.take(pa.array(here))
            first += len(texts)
        if first != len(self.sizes):
            raise _changed()

    def able(self, rule: Rule) -> Booleans:
        """Return which documents may share enough features for a partner, as far as that is known: bool[n]."""
        found = np.ones(len(self.sizes), np.bool_)
        if len(self._alone):
            find_able_by_size(self.sizes.rows, self._alone, rule, found)
        return found

    def able_of(self, block: Block, rule: Rule) -> Booleans:
        """Return which sets of a block share enough features, by the counts, for a partner."""
        found = np.ones(len(block.sizes), np.bool_)
        if len(self._cells):
            find_able(block.features, block.sizes, *self.cells, rule, found)
        return found


def _bits_that_fit(wanted: int, most_bytes: float) -> int:
    """Return how many bits choose a slot of two bits where so many are wanted, and all slots take so many bytes."""
    bits = _FEWEST_BITS
    while bits < wanted and (1 << (bits + 1)) // 4 <= most_bytes:
        bits += 1
    return bits


class CountedPart:
    """The slots of a part of the key space, of document after document, in a file that is read in order.

    Parameters
    ----------
    bits : int
        The part has 2**bits slots.
    memory : Memory
        Counts what goes to the file.
    """

    def __init__(self, bits: int, memory: Memory) -> None:
        self._bits, self._memory = bits, memory
        self._file, self._blocks = scratch_file(), list[int]()

    def add(self, lengths: npt.NDArray[np.uint32], places: npt.NDArray[np.uint32]) -> None:
        """Add further documents, each with so many of the places."""
        self._blocks.append(len(lengths))
        append(lengths, self._file, self._memory)
        append(places, self._file, self._memory)

    def alone(self) -> npt.NDArray[np.int32]:
        """Return how many places of each document no other one has: int32[n]; the file is gone then."""
        cells, found = np.zeros((1 << self._bits) // 4, np.uint8), np.zeros(sum(self._blocks), np.int32)
        for _, _, places in self._each():
            count_cells_to_two(places, cells)
        for begin, lengths, places in self._each():
            add_alone(places, lengths, cells, found[begin : begin + len(lengths)])
        self.close()
        return found

    def _each(self) -> Iterator[tuple[int, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]]:
        begin = at = 0
        for documents in self._blocks:
            lengths = np.empty(documents, np.uint32)
            read(self._file, at, lengths, self._memory)
            places = np.empty(int(lengths.sum()), np.uint32)
            read(self._file, at + lengths.nbytes, places, self._memory)
            yield begin, lengths, places
            begin, at = begin + documents, at + lengths.nbytes + places.nbytes

    def close(self) -> None:
        """Remove the file."""
        self._file.close()


def scratch_file() -> BufferedRandom:
    """Return a file without a name, which is gone when the process is."""
    return tempfile.TemporaryFile(prefix="neardup-")


def append(array: npt.NDArray[Any], file: BufferedRandom, memory: Memory) -> None:
    """Write an array to the end of a file, and count it as spilled.

    Raises
    ------
    OutputError
        If the disk is full.
    """
    memory.spilled_bytes += array.nbytes
    with _disk_is_large_enough(memory):
        file.write(array.data)


def read(file: BufferedRandom, begin: int, array: npt.NDArray[Any], memory: Memory) -> None:
    """Fill an array with what begins at a byte of a file that was written to its end."""
    with _disk_is_large_enough(memory):
        file.seek(begin)
        file.readinto(array.view(np.uint8).data)


@contextmanager
def _disk_is_large_enough(memory: Memory) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"{memory.spilled_bytes:,} bytes of features beyond the memory budget do not fit into "
            f"{tempfile.gettempdir()} ({error.strerror}); free space there, set TMPDIR to a larger place or give more "
            "memory"
        ) from None


def _scratch(size: int) -> Words:
    found: Words = SCRATCH.take("features made again", np.uint64, size)[:size]
    return found


def _changed() -> InputError:
    return InputError(
        "the input changed while it was read, and it is read more than once where features do not fit into memory; "
        f"let it be finished first, or give more {option('--memory')}"
    )


class BoundedStore(FeatureStore):
    """A store that holds features up to a number of bytes; beyond it lets go of all and has them made again.

    Raising the bytes saves passes over the corpus and changes no answer. ``recomputed`` is None while features are
    held.
    """

    def __init__(self, memory: Memory, needs: Needs, most_bytes: float, recomputed: Recomputed) -> None:
        super().__init__(memory, needs)
        self.most_bytes, self._in_reserve = most_bytes, recomputed
        self.recomputed: Recomputed | None = None

    def allocate(self, size: int) -> Features64:
        """Return a uint64 array for a block that is to be added; from any thread."""
        return super().allocate(size) if self.recomputed is None else np.empty(size, np.uint64)

    def add(self, block: Block) -> None:
        """Append a block, or what is kept of it."""
        if self.recomputed is not None:
            self.recomputed.count(block.features, block.sizes)
            self._note(block)
            return
        super().add(block)
        if 8 * self._held > self.most_bytes:
            self._let_go()

    def _let_go(self) -> None:
        self.recomputed = self._in_reserve
        self.recomputed.begin(self._held * self._growth, self.most_bytes / 2, self.memory)
        for features, sizes in self.parts():
            self.recomputed.count(features, sizes)
        self._sizes, self._marks, self._parts = self.recomputed.sizes, Column(np.uint64, 2), []
        self._slab = np.empty(0, np.uint64)
        self.memory.take_back(8 * self._held)
        self._held = 0

    def close(self) -> None:
        """Let go of the feature sets, and of what makes them again."""
        super().close()
        self._in_reserve.close()

    def close_count(self) -> None:
        """Say that all blocks are added."""
        if self.recomputed is not None:
            self.recomputed.close_count()

    def first_equal(self, alone: Booleans) -> Integers:
        """Return for each document the first with the same features."""
        return super().first_equal(alone) if self.recomputed is None else self.recomputed.first_equal(alone)
