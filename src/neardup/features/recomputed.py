"""Features that are recomputed instead of stored: what pass one keeps of them, and the later passes.

Features of word n-grams take more memory than the text, and recomputing them costs less than the file that would hold
them. Pass one keeps a digest of each set and writes each feature's slot, 4 bytes, to a file for its part of the key
space. The parts are then counted one by one; each slot's count says how many documents have the feature, which is
enough to choose prefixes. Later passes recompute only the features of documents that may match.
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
from neardup.features.reading import Progress, pieces
from neardup.features.store import Block, FeatureStore, GrowingArray, MemoryNeeds
from neardup.kernels import Bools, Bytes, Integers, Words
from neardup.kernels.counts import flag_sets_by_size, keyed_digests, record_first_equal
from neardup.kernels.key_parts import (
    SLOT_BITS,
    copy_counted_slots,
    count_slots,
    count_unshared,
    record_slots,
    slots_by_part,
    slots_by_set,
)
from neardup.recipe.measures import Rule
from neardup.runtime import SCRATCH, Memory, file_limit, map_in_order, trim_memory

Narrow = npt.NDArray[np.int32]
Lengths = npt.NDArray[np.uint32]
Value = TypeVar("Value")

_FREE = np.uint32(0xFFFFFFFF)
_MAX_DOCUMENTS = (1 << 32) - 2
#: The minimum number of bits that choose a slot of a part.
_MIN_BITS = 16
#: Slots per expected feature. More slots would find few more features that are unique to a document.
_SLOTS_PER_FEATURE = 2
#: Features per write to the files of their parts, and the maximum number of files.
_FEATURES_PER_WRITE, _MAX_PARTS = 1 << 21, 256
#: Unshared features are first counted in one part of 16. If more than 90 % of the documents stay matchable by that
#: estimate, counting the other parts would exclude too few documents to pay.
_SAMPLED_PARTS, _USELESS_SHARE = 16, 0.9
#: Bytes of a part per read, where its blocks are smaller, and per truncation.
_READ_SIZE, _TRUNCATION_STEP = 1 << 18, 1 << 23


class _FileBlock(NamedTuple):
    """Consecutive documents of a part: the length of each document's items, then, from byte ``begin``, the items."""

    first: int
    documents: int
    kind: npt.DTypeLike
    begin: int
    items: int
    bytes: int


def _round_up(size: int) -> int:
    """Round a size up to a multiple of 8, so that what follows can be read as numbers."""
    return -(-size // 8) * 8


def _groups(blocks: Iterable[_FileBlock]) -> Iterator[list[_FileBlock]]:
    """Yield the blocks in order, grouped into reads of about ``_READ_SIZE`` bytes."""
    group, size = list[_FileBlock](), 0
    for block in blocks:
        if group and size + block.bytes > _READ_SIZE:
            yield group
            group, size = [], 0
        group.append(block)
        size += block.bytes
    if group:
        yield group


class PartFile:
    """Items of consecutive documents in one part of the key space, in a temporary file that is read in order.

    ``memory`` counts the bytes that are written.
    """

    def __init__(self, dtype: type[np.generic], memory: Memory) -> None:
        self._dtype, self._memory = dtype, memory
        self._file, self._blocks = open_scratch_file(), list[_FileBlock]()
        self._documents = self._items = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def add(self, lengths: Lengths, items: npt.NDArray[Any]) -> None:
        """Append documents: ``lengths`` says how many of the items each one has."""
        # With many parts, most documents have few items in each, and 4 bytes for each length would dominate the file.
        narrow: npt.NDArray[Any] = lengths.astype(np.uint8) if lengths.max(initial=0) < 256 else lengths
        begin = _round_up(narrow.nbytes)
        buffer = np.zeros(begin + _round_up(items.nbytes), np.uint8)
        buffer[: narrow.nbytes] = narrow.view(np.uint8)
        buffer[begin : begin + items.nbytes] = items.view(np.uint8)
        self._blocks.append(_FileBlock(self._documents, len(lengths), narrow.dtype, begin, len(items), len(buffer)))
        self._documents += len(lengths)
        self._items += len(items)
        append_array(buffer, self._file, self._memory)

    def __iter__(self) -> Iterator[tuple[int, Lengths, npt.NDArray[Any]]]:
        """Yield (first document, lengths, items) of each block."""
        at = 0
        for group in _groups(self._blocks):
            buffer = self._read_group(at, group)
            at += len(buffer)
            yield from self._split(group, buffer)

    def blocks_from_last(self) -> Iterator[tuple[int, Lengths, npt.NDArray[Any]]]:
        """Yield the blocks from last to first, truncating the file behind what was read to free disk space."""
        at = end = sum(block.bytes for block in self._blocks)
        for group in _groups(reversed(self._blocks)):
            at -= sum(block.bytes for block in group)
            buffer = self._read_group(at, group)
            if end - at >= _TRUNCATION_STEP:
                end = self._file.truncate(at)
            yield from reversed(list(self._split(group[::-1], buffer)))

    def _read_group(self, at: int, group: list[_FileBlock]) -> Bytes:
        buffer = np.empty(sum(block.bytes for block in group), np.uint8)
        read_array(self._file, at, buffer, self._memory)
        return buffer

    def _split(self, group: list[_FileBlock], buffer: Bytes) -> Iterator[tuple[int, Lengths, npt.NDArray[Any]]]:
        """Yield the consecutive blocks of a buffer."""
        at = 0
        for block in group:
            narrow, items = buffer[at : at + block.begin], buffer[at + block.begin : at + block.bytes]
            lengths = narrow.view(block.kind)[: block.documents].astype(np.uint32, copy=False)
            yield block.first, lengths, items.view(self._dtype)[: block.items]
            at += block.bytes

    def read_all(self) -> tuple[Lengths, npt.NDArray[Any]]:
        """Return the length of each document and all items."""
        lengths, items, at = np.empty(self._documents, np.uint32), np.empty(self._items, self._dtype), 0
        for begin, block_lengths, block_items in self:
            lengths[begin : begin + len(block_lengths)] = block_lengths
            items[at : at + len(block_items)] = block_items
            at += len(block_items)
        return lengths, items

    def close(self) -> None:
        """Remove the file."""
        close_scratch_file(self._file)


class RecomputedFeatures:
    """Feature sets that are not stored: each pass reads the corpus and computes them again.

    single_use: whether pairs are searched only once; then the files of pass one are deleted after use. with_counts:
    whether slots are counted; without counts, no files are written. sizes: the number of features of each document;
    passes: how often the corpus has been read.
    """

    def __init__(
        self,
        corpus: Corpus,
        extractor: Extractor,
        threads: int,
        progress: Progress | None = None,
        *,
        single_use: bool = False,
        with_counts: bool = True,
    ) -> None:
        self.single_use, self._with_counts = single_use, with_counts
        self._corpus, self._extractor, self._threads, self._progress = corpus, extractor, threads, progress
        self._digest_keys = np.frombuffer(os.urandom(16), np.uint64)
        self._part_bits, self._parts, self._unshared = 0, list[PartFile](), np.empty(0, np.int32)
        self._pending = list[tuple[Words, Integers]]()
        self.sizes, self._digests, self._first_equal = (
            GrowingArray(np.int64),
            GrowingArray(np.uint64, 2),
            GrowingArray(np.uint32),
        )
        self._table = np.full(1 << 11, _FREE, np.uint32)
        self.passes = 1

    @property
    def _slot_shift(self) -> np.uint64:
        """How far to shift a feature's hash to get its slot among those of all parts."""
        return np.uint64(65 - self._part_bits - len(self._parts).bit_length())

    def start_count(self, expected: float, max_bytes: float, memory: Memory) -> None:
        """Prepare to count about ``expected`` features with tables of at most ``max_bytes``.

        ``memory`` counts the bytes that are written to files.
        """
        if not self._with_counts:
            return
        bits = max(int(_SLOTS_PER_FEATURE * expected).bit_length(), _MIN_BITS)
        self._part_bits = _MIN_BITS
        # Each thread counts a part of its own.
        while self._part_bits < min(bits, SLOT_BITS) and self._threads << (self._part_bits + 1) <= max_bytes:
            self._part_bits += 1
        self._memory = memory
        parts = min(1 << (bits - self._part_bits), file_limit(_MAX_PARTS))
        for _ in range(parts):
            self._parts.append(PartFile(np.uint32, memory))

    def count_features(self, features: Words, sizes: Integers) -> None:
        """Count the features of further documents, and record each set's size, digest and first equal set."""
        begin, end = len(self.sizes), len(self.sizes) + len(sizes)
        if end > _MAX_DOCUMENTS:
            raise NeardupError(f"there are more than {_MAX_DOCUMENTS:,} documents; split the corpus")
        digests = np.empty((len(sizes), 2), np.uint64)
        keyed_digests(features, sizes, self._digest_keys, digests)
        self.sizes.extend(sizes)
        self._digests.extend(digests)
        self._first_equal.extend(np.empty(len(sizes), np.uint32))
        if 3 * end > 2 * len(self._table):
            size, self._table = 1 << (3 * end).bit_length(), np.empty(0, np.uint32)
            self._table = np.full(size, _FREE, np.uint32)
            self._record_first(0, begin)
        self._record_first(begin, end)
        if not self._parts:
            return
        self._pending.append((features, sizes))
        if sum(len(features) for features, _ in self._pending) >= _FEATURES_PER_WRITE:
            self._add_to_parts()

    def _add_to_parts(self) -> None:
        features = np.concatenate([features for features, _ in self._pending])
        sizes = np.concatenate([sizes for _, sizes in self._pending])
        self._pending = []
        lengths, slots = np.zeros((len(self._parts), len(sizes)), np.uint32), np.empty(len(features), np.uint32)
        slots_by_part(features, sizes, self._slot_shift, self._part_bits, lengths, slots)
        end = 0
        for part, part_lengths in zip(self._parts, lengths, strict=True):
            begin, end = end, end + int(part_lengths.sum())
            part.add(part_lengths, slots[begin:end])

    def _record_first(self, begin: int, end: int) -> None:
        bits = len(self._table).bit_length() - 1
        record_first_equal(
            self._digests.array, self.sizes.array, begin, end, self._table, bits, self._first_equal.array
        )

    def finish_count(self) -> None:
        """End pass one, and free what only it needs."""
        self._table, self._digests = np.empty(0, np.uint32), GrowingArray(np.uint64, 2)
        if self._pending:
            self._add_to_parts()
        trim_memory()

    def _slot_counts(self, part: PartFile, chosen: Bools) -> Bytes:
        """Return how many of the chosen documents have each slot of a part: uint8[slots]."""
        counts = np.zeros(1 << self._part_bits, np.uint8)
        for begin, lengths, slots in part:
            count_slots(slots, lengths, chosen[begin : begin + len(lengths)], begin, counts)
        return counts

    def _unshared_in(self, parts: list[PartFile]) -> Narrow:
        """Return how many features of each document in some parts no other set has: int32[n]."""
        is_first = self._first_equal.rows == np.arange(len(self.sizes), dtype=np.uint32)

        def count(part: PartFile) -> Narrow:
            seen, found = np.zeros(max((1 << self._part_bits) // 32, 1), np.uint64), np.zeros(len(is_first), np.int32)
            for begin, lengths, slots in part:
                record_slots(slots, lengths, is_first[begin : begin + len(lengths)], seen)
            for begin, lengths, slots in part:
                count_unshared(slots, lengths, seen, found[begin : begin + len(lengths)])
            return found

        unshared = np.zeros(len(is_first), np.int32)
        for found in map_in_order(count, parts, self._threads):
            unshared += found
        return unshared

    def count_among(self, chosen: Bools, rule: Rule, files: ExitStack) -> tuple[list[PartFile], Bools]:
        """Count slots among the chosen documents alone.

        Returns for each part of the key space the slots of the chosen documents with their counts, and which of these
        documents share enough features with the others to match one: bool[n].
        """

        def count(work: tuple[PartFile, PartFile]) -> Narrow:
            part, found = work
            counts, unshared = self._slot_counts(part, chosen), np.zeros(len(chosen), np.int32)
            for begin, lengths, slots in part:
                rows = slice(begin, begin + len(lengths))
                written = copy_counted_slots(slots, lengths, chosen[rows], counts, unshared[rows], slots)
                found.add(lengths * chosen[rows], slots[:written])
            if self.single_use:
                part.close()
            return unshared

        results = [files.enter_context(PartFile(np.uint32, self._memory)) for _ in self._parts]
        unshared = np.zeros(len(chosen), np.int32)
        for found in map_in_order(count, zip(self._parts, results, strict=True), self._threads):
            unshared += found
        return results, chosen & self._matchable(unshared, rule)

    def map_counted(
        self, chosen: Bools, slots: list[PartFile], make: Callable[[Integers, Integers, Words, Bytes], Value]
    ) -> Iterator[Value]:
        """Yield make(documents, sizes, features, counts) for blocks of the chosen documents, in any order.

        ``features`` are numbers that stand for slots: equal features have equal numbers, and two features of a set may
        fall together. ``counts`` order them, rare first. ``slots`` comes from ``count_among`` and can be read once.
        """

        def make_group(blocks: tuple[tuple[int, Lengths, npt.NDArray[np.uint32]], ...]) -> Value:
            first = blocks[0][0]
            lengths, words = np.stack([block[1] for block in blocks]), np.concatenate([block[2] for block in blocks])
            documents = first + np.flatnonzero(chosen[first : first + lengths.shape[1]])
            features, counts = _scratch(len(words)), np.empty(len(words), np.uint8)
            slots_by_set(lengths, words, self._part_bits, features, counts)
            return make(documents, self.sizes.rows[documents], features, counts)

        blocks = (part.blocks_from_last() for part in slots)
        yield from map_in_order(make_group, zip(*blocks, strict=True), self._threads)
        for part in slots:
            part.close()
        trim_memory()

    def close(self) -> None:
        """Delete the files of pass one."""
        self._pending, self._unshared = [], np.empty(0, np.int32)
        for part in self._parts:
            part.close()

    def first_equal(self, excluded: Bools) -> Integers:
        """Return for each document the first one with an equal set, -1 where ``excluded``: int64[n]."""
        found = self._first_equal.rows.astype(np.int64)
        included = np.flatnonzero(~excluded)
        if excluded[found[included]].any():
            _, first, group = np.unique(found[included], return_index=True, return_inverse=True)
            found[included] = included[first][group]
        found[excluded] = -1
        return found

    def map_blocks(self, chosen: Bools, make: Callable[[Integers, Block], Value]) -> Iterator[Value]:
        """Yield make(documents, block) for the chosen documents, in order; ``make`` runs in threads.

        ``make`` must copy what it keeps: the features of the block are overwritten after it returns. Raises
        ``InputError`` if the corpus has changed since pass one.
        """
        self.passes += 1
        yield from map_in_order(lambda piece: make(piece[0], self._block(*piece)), self._pieces(chosen), self._threads)
        trim_memory()

    def _block(self, documents: Integers, texts: pa.LargeStringArray) -> Block:
        block = self._extractor(texts, _scratch)
        if not np.array_equal(block.sizes, self.sizes.rows[documents]):
            raise _change_error()
        return block

    def _pieces(self, chosen: Bools) -> Iterator[tuple[Integers, pa.LargeStringArray]]:
        first = 0
        for texts in pieces(self._corpus, "read again", self._progress, again=True, content=self._extractor.content):
            rows = np.flatnonzero(chosen[first : first + len(texts)])
            if len(rows) == len(texts):
                yield first + rows, texts
            elif len(rows):
                yield first + rows, texts.take(pa.array(rows))
            first += len(texts)
        if first != len(self.sizes):
            raise _change_error()

    def matchable(self, rule: Rule) -> Bools:
        """Return which documents may share enough features with another one to match it: bool[n]."""
        if not len(self._unshared):
            sampled = -(-len(self._parts) // _SAMPLED_PARTS)
            unshared = self._unshared_in(self._parts[:sampled])
            # In a homogeneous corpus nearly all documents share enough features: reading all files is not worth it.
            estimate = np.minimum(unshared.astype(np.int64) * len(self._parts) // max(sampled, 1), self.sizes.rows)
            if self._matchable(estimate.astype(np.int32), rule).mean() > _USELESS_SHARE:
                return self._matchable(np.zeros(len(unshared), np.int32), rule)
            self._unshared = unshared + self._unshared_in(self._parts[sampled:])
        return self._matchable(self._unshared, rule)

    def _matchable(self, unshared: Narrow, rule: Rule) -> Bools:
        found = np.empty(len(unshared), np.bool_)
        flag_sets_by_size(self.sizes.rows, unshared, rule, found)
        return found


def open_scratch_file() -> BufferedRandom:
    """Open a temporary file without a name, which the system removes when the process ends."""
    try:
        return tempfile.TemporaryFile(prefix="neardup-")
    except OSError as error:
        raise OutputError(
            f"no scratch file can be opened in {tempfile.gettempdir()} ({error.strerror}); allow more open files "
            f"(ulimit -n), set TMPDIR to a place that can be written, or raise {option('--memory')}"
        ) from None


def close_scratch_file(file: BufferedRandom) -> None:
    """Close a scratch file; its contents are no longer needed, so a failed write does not matter."""
    with suppress(OSError):
        file.close()


def append_array(array: npt.NDArray[Any], file: BufferedRandom, memory: Memory) -> None:
    """Append an array to a file, and count it as spilled; raise ``OutputError`` if the disk is full."""
    memory.count_spilled(array.nbytes)
    with _disk_is_large_enough(memory):
        file.write(array.data)


def read_array(file: BufferedRandom, begin: int, array: npt.NDArray[Any], memory: Memory) -> None:
    """Fill an array with the bytes of a file from ``begin`` on."""
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
            f"{tempfile.gettempdir()} ({error.strerror}); free some space there, set TMPDIR to a larger place or give "
            "more memory"
        ) from None


def _scratch(size: int) -> Words:
    found: Words = SCRATCH.array("recomputed features", np.uint64, size)[:size]
    return found


def _change_error() -> InputError:
    return InputError(
        "the input changed while it was read, and is read more than once because its features do not fit into memory; "
        f"wait until the input is complete, or raise {option('--memory')}"
    )


class BoundedStore(FeatureStore):
    """A store that keeps features up to a number of bytes; beyond it drops all of them and recomputes them on demand.

    Raising ``max_bytes`` saves passes over the corpus and changes no result. ``recomputed`` is None while features are
    stored.
    """

    def __init__(self, memory: Memory, needs: MemoryNeeds, max_bytes: float, recomputed: RecomputedFeatures) -> None:
        super().__init__(memory, needs)
        self.max_bytes, self._recomputation = max_bytes, recomputed
        self.recomputed: RecomputedFeatures | None = None

    def allocate(self, size: int) -> Words:
        """Return a uint64 array for the features of a block to be added. Thread-safe."""
        return super().allocate(size) if self.recomputed is None else np.empty(size, np.uint64)

    def add(self, block: Block) -> None:
        """Append a block, or count its features once they are no longer stored."""
        if self.recomputed is not None:
            self.recomputed.count_features(block.features, block.sizes)
            self._record(block)
            return
        super().add(block)
        if 8 * self._feature_count > self.max_bytes:
            self._drop_features()

    def _drop_features(self) -> None:
        self.recomputed = self._recomputation
        self.recomputed.start_count(self._feature_count * self._growth, self.max_bytes, self.memory)
        for features, sizes in self.set_blocks():
            self.recomputed.count_features(features, sizes)
        self._sizes, self._digests, self._blocks = self.recomputed.sizes, GrowingArray(np.uint64, 2), []
        self._slab = np.empty(0, np.uint64)
        self.memory.release_bytes(8 * self._feature_count)
        self._feature_count = 0

    def close(self) -> None:
        """Release the feature sets and the files of pass one."""
        super().close()
        self._recomputation.close()

    def finish_count(self) -> None:
        """End pass one: all blocks have been added."""
        if self.recomputed is not None:
            self.recomputed.finish_count()

    def first_equal(self, excluded: Bools) -> Integers:
        """Return for each document the first one with an equal set, -1 where ``excluded``: int64[n]."""
        return super().first_equal(excluded) if self.recomputed is None else self.recomputed.first_equal(excluded)
