"""Features that are made again instead of kept: what pass one leaves of them, and the passes that follow.

Features of word n-grams take more room than the text, and making them again costs less than the file that would hold
them. Pass one leaves a mark of each set, and writes each feature's slot, in four bytes, to a file of its part of the
key space. The parts are counted one after the other, and then each slot says how many documents have it. That is enough
to choose prefixes by; later passes make the features of those documents only that may match.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedRandom
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents import Corpus
from neardup.errors import InputError, NeardupError, OutputError, option
from neardup.features.extraction import Extractor
from neardup.features.reading import Progress, texts_again
from neardup.features.store import Block, Column, Features64, FeatureStore, Needs
from neardup.kernels.counts import find_able_by_size, keyed_marks, note_first
from neardup.kernels.parts import (
    PLACE_BITS,
    add_alone,
    count_places,
    counted_places,
    note_places,
    part_slots,
    slots_of_sets,
)
from neardup.recipe.measures import Rule
from neardup.runtime import SCRATCH, Memory, files_at_once, in_order, trim_memory

Integers = npt.NDArray[np.int64]
Narrow = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]
Booleans = npt.NDArray[np.bool_]
Lengths = npt.NDArray[np.uint32]
Counts8 = npt.NDArray[np.uint8]
Work = TypeVar("Work")
Made = TypeVar("Made")

_FREE = np.uint32(0xFFFFFFFF)
_MOST_DOCUMENTS = (1 << 32) - 2
#: The least number of bits that choose a slot of a part.
_FEWEST_BITS = 16
#: Slots for each feature that is expected: more would find few more features that no other document has.
_SLOTS_FOR_EACH = 2
#: Features whose slots are written to the files of their parts at a time, and the most files.
_FEATURES_AT_A_TIME, _MOST_PARTS = 1 << 21, 256
#: One part in so many tells whether features that one set has rule documents out; they do not where this share stays.
_ONE_IN, _TOO_MANY_ABLE = 16, 0.9
#: Bytes of a part that are read at once, where its blocks are smaller, and given back to the disk at once.
_READ_AT_ONCE, _FREED_AT_ONCE = 1 << 18, 1 << 23


class _Block(NamedTuple):
    """Consecutive documents of a part: how many items each has, and from the byte ``begin`` on these."""

    first: int
    documents: int
    kind: npt.DTypeLike
    begin: int
    items: int
    bytes: int


def _aligned(size: int) -> int:
    """Return so many bytes, or a few more, so that whatever lies behind them can be read as numbers."""
    return -(-size // 8) * 8


def _groups(blocks: Iterable[_Block]) -> Iterator[list[_Block]]:
    """Yield the blocks, as many together as are read at once, in their order."""
    group, room = list[_Block](), 0
    for block in blocks:
        if group and room + block.bytes > _READ_AT_ONCE:
            yield group
            group, room = [], 0
        group.append(block)
        room += block.bytes
    if group:
        yield group


class Part:
    """What consecutive documents have in a part of the key space, in a file that is read in order.

    Parameters
    ----------
    dtype : type
        Of what they have.
    memory : Memory
        Counts what goes to the file.

    Attributes
    ----------
    documents, items : int
        How many documents, and of what they have, there are by now.
    """

    def __init__(self, dtype: type[np.generic], memory: Memory) -> None:
        self._dtype, self._memory = dtype, memory
        self._file, self._blocks = scratch_file(), list[_Block]()
        self.documents = self.items = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, lengths: Lengths, items: npt.NDArray[Any]) -> None:
        """Add further documents, each with so many of the items."""
        # Of many parts most documents have a few items in each, and four bytes for their number would be most of it.
        narrow: npt.NDArray[Any] = lengths.astype(np.uint8) if lengths.max(initial=0) < 256 else lengths
        begin = _aligned(narrow.nbytes)
        room = np.zeros(begin + _aligned(items.nbytes), np.uint8)
        room[: narrow.nbytes] = narrow.view(np.uint8)
        room[begin : begin + items.nbytes] = items.view(np.uint8)
        self._blocks.append(_Block(self.documents, len(lengths), narrow.dtype, begin, len(items), len(room)))
        self.documents += len(lengths)
        self.items += len(items)
        append(room, self._file, self._memory)

    def __iter__(self) -> Iterator[tuple[int, Lengths, npt.NDArray[Any]]]:
        """Yield the first document of each block, how many items each has, and these."""
        at = 0
        for group in _groups(self._blocks):
            room = self._read(at, group)
            at += len(room)
            yield from self._in(group, room)

    def from_last(self) -> Iterator[tuple[int, Lengths, npt.NDArray[Any]]]:
        """Yield the blocks from the last one to the first; the disk has room again for what was read."""
        at = end = sum(block.bytes for block in self._blocks)
        for group in _groups(reversed(self._blocks)):
            at -= sum(block.bytes for block in group)
            room = self._read(at, group)
            if end - at >= _FREED_AT_ONCE:
                end = self._file.truncate(at)
            yield from reversed(list(self._in(group[::-1], room)))

    def _read(self, at: int, group: list[_Block]) -> npt.NDArray[np.uint8]:
        room = np.empty(sum(block.bytes for block in group), np.uint8)
        read(self._file, at, room, self._memory)
        return room

    def _in(self, group: list[_Block], room: npt.NDArray[np.uint8]) -> Iterator[tuple[int, Lengths, npt.NDArray[Any]]]:
        """Yield the blocks that lie one behind the other in some bytes."""
        at = 0
        for block in group:
            narrow, items = room[at : at + block.begin], room[at + block.begin : at + block.bytes]
            lengths = narrow.view(block.kind)[: block.documents].astype(np.uint32, copy=False)
            yield block.first, lengths, items.view(self._dtype)[: block.items]
            at += block.bytes

    def whole(self) -> tuple[Lengths, npt.NDArray[Any]]:
        """Return how many items each document has, and all of them."""
        lengths, items, at = np.empty(self.documents, np.uint32), np.empty(self.items, self._dtype), 0
        for begin, of_each, some in self:
            lengths[begin : begin + len(of_each)] = of_each
            items[at : at + len(some)] = some
            at += len(some)
        return lengths, items

    def close(self) -> None:
        """Remove the file."""
        close_scratch(self._file)


class Recomputed:
    """Feature sets that are not kept: each pass reads the corpus and makes them again.

    With ``serves_once``, when pairs are looked for only once, what pass one left is dropped after use; without
    ``counts`` it leaves nothing to count.
    """

    def __init__(
        self,
        corpus: Corpus,
        extractor: Extractor,
        threads: int,
        report: Progress | None = None,
        *,
        serves_once: bool = False,
        counts: bool = True,
    ) -> None:
        self.serves_once, self._counts = serves_once, counts
        self._corpus, self._extractor, self._threads, self._report = corpus, extractor, threads, report
        self._keys = np.frombuffer(os.urandom(16), np.uint64)
        self._part_bits, self._parts, self._alone = 0, list[Part](), np.empty(0, np.int32)
        self._waiting = list[tuple[Words, Integers]]()
        self.sizes, self._marks, self._first = Column(np.int64), Column(np.uint64, 2), Column(np.uint32)
        self._table = np.full(1 << 11, _FREE, np.uint32)
        self.passes = 1

    @property
    def _shift(self) -> np.uint64:
        """How far the hash of a feature is shifted to give its slot among those of all parts."""
        return np.uint64(65 - self._part_bits - len(self._parts).bit_length())

    def begin(self, expected: float, most_bytes: float, memory: Memory) -> None:
        """Make room to count so many features, in at most so many bytes; what goes to files is counted in memory."""
        if not self._counts:
            return
        bits = max(int(_SLOTS_FOR_EACH * expected).bit_length(), _FEWEST_BITS)
        self._part_bits = _FEWEST_BITS
        # Each thread counts a part of its own.
        while self._part_bits < min(bits, PLACE_BITS) and self._threads << (self._part_bits + 1) <= most_bytes:
            self._part_bits += 1
        self._memory = memory
        parts = min(1 << (bits - self._part_bits), files_at_once(_MOST_PARTS))
        self._parts = [Part(np.uint32, memory) for _ in range(parts)]

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
        if not self._parts:
            return
        self._waiting.append((features, sizes))
        if sum(len(features) for features, _ in self._waiting) >= _FEATURES_AT_A_TIME:
            self._add_to_parts()

    def _add_to_parts(self) -> None:
        features, sizes = map(np.concatenate, zip(*self._waiting, strict=True))
        self._waiting = []
        lengths, places = np.zeros((len(self._parts), len(sizes)), np.uint32), np.empty(len(features), np.uint32)
        part_slots(features, sizes, self._shift, self._part_bits, lengths, places)
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
        if self._waiting:
            self._add_to_parts()
        trim_memory()

    def _counted(self, part: Part, chosen: Booleans) -> Counts8:
        """Return in how many of the chosen documents the features of each slot of a part occur."""
        counts = np.zeros(1 << self._part_bits, np.uint8)
        for begin, lengths, places in part:
            count_places(places, lengths, chosen[begin : begin + len(lengths)], begin, counts)
        return counts

    def _alone_in(self, parts: list[Part]) -> Narrow:
        """Return how many features of each document in some parts only one set has: int32[n]."""
        first = self._first.rows == np.arange(len(self.sizes), dtype=np.uint32)

        def count(part: Part) -> Narrow:
            seen, found = np.zeros(max((1 << self._part_bits) // 32, 1), np.uint64), np.zeros(len(first), np.int32)
            for begin, lengths, places in part:
                note_places(places, lengths, first[begin : begin + len(lengths)], seen)
            for begin, lengths, places in part:
                add_alone(places, lengths, seen, found[begin : begin + len(lengths)])
            return found

        alone = np.zeros(len(first), np.int32)
        for found in in_order(count, parts, self._threads):
            alone += found
        return alone

    def counted_among(self, chosen: Booleans, rule: Rule, files: ExitStack) -> tuple[list[Part], Booleans]:
        """Return the slots of the chosen documents, each with how many of these have it, by part of the key space.

        And which of these documents share enough features among each other for a partner: bool[n]. What pass one left
        of the features is gone then, where pairs are looked for only once.
        """

        def count(work: tuple[Part, Part]) -> Narrow:
            part, found = work
            counts, alone = self._counted(part, chosen), np.zeros(len(chosen), np.int32)
            for begin, lengths, places in part:
                here = slice(begin, begin + len(lengths))
                written = counted_places(places, lengths, chosen[here], counts, alone[here], places)
                found.add(lengths * chosen[here], places[:written])
            if self.serves_once:
                part.close()
            return alone

        results = [files.enter_context(Part(np.uint32, self._memory)) for _ in self._parts]
        alone = np.zeros(len(chosen), np.int32)
        for found in in_order(count, zip(self._parts, results, strict=True), self._threads):
            alone += found
        return results, chosen & self._able(alone, rule)

    def each_counted(
        self, chosen: Booleans, slots: list[Part], make: Callable[[Integers, Integers, Words, Counts8], Made]
    ) -> Iterator[Made]:
        """Yield make(documents, sizes, features, counts) of the chosen documents, some at a time, in any order.

        Numbers that stand for slots take the place of features: equal features have equal ones, and two of a set may be
        equal. The counts of those few bits put the rare ones first. slots: as ``counted_among`` left them; they serve
        once.
        """

        def made(blocks: tuple[tuple[int, Lengths, npt.NDArray[np.uint32]], ...]) -> Made:
            first = blocks[0][0]
            lengths, words = np.stack([block[1] for block in blocks]), np.concatenate([block[2] for block in blocks])
            documents = first + np.flatnonzero(chosen[first : first + lengths.shape[1]])
            features, counts = _scratch(len(words)), np.empty(len(words), np.uint8)
            slots_of_sets(lengths, words, self._part_bits, features, counts)
            return make(documents, self.sizes.rows[documents], features, counts)

        blocks = (part.from_last() for part in slots)
        yield from in_order(made, zip(*blocks, strict=True), self._threads)
        for part in slots:
            part.close()
        trim_memory()

    def close(self) -> None:
        """Let go of what pass one left of the features."""
        self._waiting, self._alone = [], np.empty(0, np.int32)
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
        yield from self._each(lambda piece: make(piece[0], self._block(*piece)), self._pieces(chosen))

    def _each(self, made: Callable[[Work], Made], pieces: Iterator[Work]) -> Iterator[Made]:
        self.passes += 1
        yield from in_order(made, pieces, self._threads)
        trim_memory()

    def _block(self, documents: Integers, texts: pa.LargeStringArray) -> Block:
        block = self._extractor(texts, _scratch)
        if not np.array_equal(block.sizes, self.sizes.rows[documents]):
            raise _changed()
        return block

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
        if not len(self._alone):
            some = -(-len(self._parts) // _ONE_IN)
            alone = self._alone_in(self._parts[:some])
            # In a large corpus of one kind nearly all documents share enough, and the files need not be read for that.
            likely = np.minimum(alone.astype(np.int64) * len(self._parts) // max(some, 1), self.sizes.rows)
            if self._able(likely.astype(np.int32), rule).mean() > _TOO_MANY_ABLE:
                return self._able(np.zeros(len(alone), np.int32), rule)
            self._alone = alone + self._alone_in(self._parts[some:])
        return self._able(self._alone, rule)

    def _able(self, alone: Narrow, rule: Rule) -> Booleans:
        found = np.empty(len(alone), np.bool_)
        find_able_by_size(self.sizes.rows, alone, rule, found)
        return found


def scratch_file() -> BufferedRandom:
    """Return a file without a name, which is gone when the process is."""
    return tempfile.TemporaryFile(prefix="neardup-")


def close_scratch(file: BufferedRandom) -> None:
    """Remove such a file; what it could not hold is not needed any more."""
    with suppress(OSError):
        file.close()


def append(array: npt.NDArray[Any], file: BufferedRandom, memory: Memory) -> None:
    """Write an array to the end of a file, and count it as spilled.

    Raises
    ------
    OutputError
        If the disk is full.
    """
    memory.count_spilled(array.nbytes)
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
        self.recomputed.begin(self._held * self._growth, self.most_bytes, self.memory)
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
