"""A segment of an index: documents, and arrays that find those that may match new ones.

Each document is indexed by the rare-first prefix of its features, in the order of the segment's own counts: every
document that matches it shares a feature of that prefix (``search.join.find_prefixes``). Features take more space
than text, so they are recomputed from the texts of the few candidates.

What is read of a file is compared with the sum of its block before it is used (``kernels.blocks``); the manifest has
the digest of the sums. Lengths and places are checked besides, since sums may be written to match.
"""

from __future__ import annotations

import mmap
import os
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from neardup.errors import RecipeError, StoreError
from neardup.features.store import Block, set_addresses
from neardup.files import flush_file
from neardup.index.manifest import FileEntry, SegmentEntry, digest_of
from neardup.kernels import Bytes, Integers, Words
from neardup.kernels.blocks import BLOCK_BYTES, CheckedFiles, block_sums, check_bytes, check_counts
from neardup.kernels.counts import count_features
from neardup.kernels.prefixes import (
    COUNTS,
    PrefixIndex,
    RankedSets,
    begin_lists,
    count_entries,
    find_partners,
    find_partners_of_one,
    finish_lists,
    insert_entries,
    overlap_bounds_with_one,
)
from neardup.recipe import Recipe
from neardup.recipe.measures import Rule, rule
from neardup.runtime import Memory
from neardup.search.hamming import hamming_pairs
from neardup.search.join import JoinContext, find_prefixes
from neardup.text.bulk import text_buffers

#: A segment ends with the document that brings it to this number of features or documents. Raising it makes queries
#: faster, and takes 12 bytes of memory per feature while a segment is written.
MAX_FEATURES = 1 << 25
MAX_DOCUMENTS = 1 << 22
#: Each text is compressed alone, with a dictionary of this size, trained on this number of first texts of the segment,
#: this number of bytes of each: as small as ten texts compressed together, but a query reads only one. Segments with
#: fewer texts have no dictionary.
_DICTIONARY_BYTES, _SAMPLED_TEXTS, _SAMPLED_BYTES = 1 << 15, 1 << 10, 1 << 12
_LEVEL = 1
_MIN_BITS, _MAX_BITS = 10, 26
_MAX_COUNT = 254
#: The array files and their element types. The kernels know the first ones by their places (``kernels.prefixes``).
_OF_SETS = {"sizes": "<u4", "bitmaps": "<u8", "counts": "u1", "heads": "<u4", "entries": "<u8"}
_OF_FINGERPRINTS = {"sizes": "<u4", "values": "<u8"}
_OF_TEXTS = {"frames": "<u8", "ends": "<u8", "texts.zstd": "u1", "dictionary": "u1"}
#: Ids are whole numbers, or texts that end at ``id_ends``.
_NUMBERED, _NAMED = {"ids": "<i8"}, {"ids": "u1", "id_ends": "<i8"}
_SUMS = "sums"
_TYPES = _OF_SETS | _OF_FINGERPRINTS | _OF_TEXTS | {"id_ends": "<i8"}
#: How much longer than its frame a text may be: Zstandard's shortest block, of 4 bytes, gives 128 KB.
_MAX_RATIO = 1 << 15
_REMOVED = "<u4"
#: So many places of texts are compared with their sums together.
_PLACES_AT_A_TIME = BLOCK_BYTES // 8
#: Texts per batch.
_TEXTS_PER_BATCH = 1 << 10
#: The minimum capacity for pairs of one kernel call.
_CAPACITY = 1 << 14


def check_recipe(recipe: Recipe) -> None:
    """Check that an index on disk can be built with a recipe; raises ``RecipeError`` with the reason if not."""
    step = recipe.parsed_second_step
    if recipe.needs_statistics:
        reason = "takes frequencies from the whole collection, which change with every document"
    elif recipe.is_weighted:
        reason = f"compares weights ({recipe.weights!r})"
    elif recipe.measure == "semantic" or (step is not None and step.measure == "semantic"):
        reason = "compares embeddings"
    elif step is not None and step.measure == "learned":
        reason = "belongs to a classifier"
    else:
        return
    raise RecipeError(
        f"recipe {recipe.name!r} {reason}, and an index on disk holds sets of features: choose another recipe, or "
        "compare with the files"
    )


class MatchRule(NamedTuple):
    """The part of a recipe that determines which documents may match."""

    rule: Rule  #: the measure and its threshold, for sets
    distance: int  #: the largest Hamming distance of fingerprints; -1 for sets

    @classmethod
    def from_recipe(cls, recipe: Recipe) -> MatchRule:
        """Return the match rule of a recipe."""
        if recipe.measure == "hamming":
            return cls(Rule(0, 1, 1, 0, 1), int(recipe.threshold))
        return cls(rule(recipe.measure, recipe.threshold, recipe.jaccard_floor), -1)


class IndexPiece(NamedTuple):
    """Documents in order: ids, texts and features."""

    ids: pa.Array
    texts: pa.LargeStringArray
    block: Block

    def between(self, begin: int, end: int, heads: Integers) -> IndexPiece:
        """Return the documents [begin, end); ``heads`` are the offsets of their features."""
        block = self.block._replace(
            features=self.block.features[heads[begin] : heads[end]],
            sizes=self.block.sizes[begin:end],
            text_bytes=self.block.text_bytes[begin:end],
        )
        return IndexPiece(self.ids.slice(begin, end - begin), self.texts.slice(begin, end - begin), block)


def is_full(features: int, documents: int) -> bool:
    """Return whether a segment of this size is full."""
    return features >= MAX_FEATURES or documents >= MAX_DOCUMENTS


class SegmentWriter:
    """Writes documents into a new folder; ``finish`` writes the arrays that find them."""

    def __init__(self, folder: str, match_rule: MatchRule) -> None:
        self._folder, self._match_rule = folder, match_rule
        self.features, self.documents = 0, 0
        self._ids: list[pa.Array] = []
        self._blocks: list[Block] = []
        self._pending_texts: list[pa.LargeStringArray] = []
        self._compressor: zstandard.ZstdCompressor | None = None
        self._dictionary = b""
        self._file = open(os.path.join(folder, "texts.zstd"), "wb")  # noqa: SIM115
        self._frames, self._lengths = [np.zeros(1, np.int64)], list[Integers]()

    def room(self, sizes: Integers) -> int:
        """Return how many of some documents fit into the segment, from their numbers of features."""
        by_features = int(np.searchsorted(np.cumsum(sizes), MAX_FEATURES - self.features)) + 1
        return min(by_features, len(sizes), MAX_DOCUMENTS - self.documents)

    def add(self, piece: IndexPiece) -> None:
        """Add documents."""
        self.features += len(piece.block.features)
        self.documents += len(piece.ids)
        self._lengths.append(np.diff(text_buffers(piece.texts)[1]))
        self._ids.append(piece.ids)
        self._blocks.append(piece.block)
        self._pending_texts.append(piece.texts)
        if self.documents >= _SAMPLED_TEXTS:
            self._write_texts()

    def _write_texts(self) -> None:
        texts = [text for piece in self._pending_texts for text in _text_views(piece)]
        self._pending_texts.clear()
        if self._compressor is None:
            if self.documents >= _SAMPLED_TEXTS:
                self._dictionary = _dictionary_of(texts[:_SAMPLED_TEXTS])
            self._compressor = zstandard.ZstdCompressor(
                _LEVEL,
                _compression_dictionary(self._dictionary),
                write_checksum=True,
                write_content_size=False,
                write_dict_id=False,
            )
        frames = [self._compressor.compress(text) if text else b"" for text in texts]
        self._file.write(b"".join(frames))
        self._frames.append(np.array([len(frame) for frame in frames], np.int64))

    def close(self) -> None:
        """Close the open file."""
        self._file.close()

    def finish(self, name: str) -> SegmentEntry:
        """Write and sync all files; return the manifest entry of the segment."""
        self._write_texts()
        self._file.close()
        with open(os.path.join(self._folder, "dictionary"), "wb") as file:
            file.write(self._dictionary)
        features = np.concatenate([np.empty(0, np.uint64), *(block.features for block in self._blocks)])
        sizes = np.concatenate([np.empty(0, np.int64), *(block.sizes for block in self._blocks)])
        self._blocks.clear()
        by_bits = self._match_rule.distance >= 0
        arrays = self._fingerprint_arrays(features, sizes) if by_bits else self._feature_sets(features, sizes)
        ends = np.cumsum(np.concatenate([[0], *self._lengths]))
        arrays |= {"frames": np.cumsum(np.concatenate(self._frames)), "ends": ends}
        arrays |= _id_arrays(pa.concat_arrays(self._ids))
        for file_name, array in arrays.items():
            array.astype(_TYPES.get(file_name, array.dtype), copy=False).tofile(os.path.join(self._folder, file_name))
        self._write_sums(named="id_ends" in arrays)
        names = sorted(os.listdir(self._folder))
        files = {f"{name}/{file_name}": sync_file(os.path.join(self._folder, file_name)) for file_name in names}
        return SegmentEntry(name, self.documents, 0, int(ends[-1]), self.features, files)

    def _write_sums(self, named: bool) -> None:
        """Write the sums of the blocks of all files, one file after the other in the order of ``_types_of``."""
        with open(os.path.join(self._folder, _SUMS), "wb") as file:
            for name in _types_of(self._match_rule, named):
                data = np.fromfile(os.path.join(self._folder, name), np.uint8)
                file.write(block_sums(data).astype("<u8", copy=False).tobytes())

    def _fingerprint_arrays(self, features: Words, sizes: Integers) -> dict[str, npt.NDArray[Any]]:
        values = np.zeros(len(sizes), np.uint64)
        values[sizes > 0] = features
        return {"values": values, "sizes": sizes}

    def _feature_sets(self, features: Words, sizes: Integers) -> dict[str, npt.NDArray[Any]]:
        bits = _slot_bits(self.features // 2)
        counts = np.zeros(1 << bits, np.uint8)
        addresses, members, shift = set_addresses(features, sizes), np.arange(len(sizes)), np.uint64(64 - bits)
        count_features(addresses, sizes, members, shift, counts)
        # A feature that occurs once may be shared with a new document, so all features count as shared.
        counts = np.where(counts > 0, np.minimum(counts, _MAX_COUNT) + 1, 0).astype(np.uint8)
        sets = _ranked_sets(features, sizes, shift, counts, self._match_rule.rule)
        lengths = np.maximum(sets.lengths, 0)
        bits = _slot_bits(int(lengths.sum()))
        index = PrefixIndex(np.zeros((1 << bits) + 1, np.uint32), np.empty(0, np.uint64), bits, 0)
        ranks = np.arange(len(sizes))
        count_entries(ranks, sets, lengths, index)
        index = index._replace(entries=np.empty(begin_lists(index.heads), np.uint64))
        insert_entries(ranks, sets, lengths, index)
        finish_lists(index)
        heads, entries = index.heads, index.entries
        return {"sizes": sizes, "bitmaps": sets.bitmaps, "counts": counts, "heads": heads, "entries": entries}


def _types_of(match_rule: MatchRule, named: bool) -> dict[str, str]:
    """Return the array files of a segment, in the order of their sums, with their element types."""
    return (_OF_FINGERPRINTS if match_rule.distance >= 0 else _OF_SETS) | _OF_TEXTS | (_NAMED if named else _NUMBERED)


def _id_arrays(ids: pa.Array) -> dict[str, npt.NDArray[Any]]:
    if pa.types.is_large_string(ids.type):
        data, ends = text_buffers(ids)
        return {"ids": data[ends[0] : ends[-1]], "id_ends": ends - ends[0]}
    return {"ids": ids.cast(pa.int64()).to_numpy(zero_copy_only=False)}


def _text_views(texts: pa.LargeStringArray) -> list[memoryview]:
    data, offsets = text_buffers(texts)
    return [data.data[begin:end] for begin, end in pairwise(offsets.tolist())]


def _dictionary_of(texts: Sequence[memoryview]) -> bytes:
    """Train a compression dictionary on texts; empty if they have too little in common."""
    samples: list[Any] = [bytes(text[:_SAMPLED_BYTES]) for text in texts]
    with suppress(zstandard.ZstdError):
        return zstandard.train_dictionary(_DICTIONARY_BYTES, samples).as_bytes()
    return b""


def _compression_dictionary(data: bytes) -> zstandard.ZstdCompressionDict | None:
    return zstandard.ZstdCompressionDict(data) if data else None


def _slot_bits(number: int) -> int:
    """Return the number of bits that address about this number of slots."""
    return min(max(number.bit_length() - 1, _MIN_BITS), _MAX_BITS)


def sync_file(path: str) -> FileEntry:
    """Sync a file to disk; return its size and digest."""
    flush_file(path)
    with open(path, "rb") as file:
        return FileEntry(os.path.getsize(path), digest_of(file))


def _ranked_sets(features: Words, sizes: Integers, shift: np.uint64, counts: Bytes, match_rule: Rule) -> RankedSets:
    """Return sets with their prefixes by a table of counts, without features that do not occur in the table."""
    context = JoinContext(set_addresses(features, sizes), sizes, match_rule, 1, Memory())
    return RankedSets(context.addresses, sizes, *find_prefixes(context, np.arange(len(sizes)), shift, counts))


class Segment:
    """A written segment with memory-mapped arrays; ``removed`` are its removed documents, int64[r] ascending.

    Raises ``StoreError`` if a file is missing, has another size, or contains what was not written.
    """

    def __init__(self, folder: str, part: SegmentEntry, match_rule: MatchRule) -> None:
        self.part, self._folder, self._match_rule = part, folder, match_rule
        self._local = threading.local()
        self.removed = self._read_removed()
        # Everything is mapped now, since a writer that merges segments removes the files.
        types = _types_of(match_rule, f"{part.name}/id_ends" in part.files)
        self._arrays = {name: self._map(name, kind) for name, kind in types.items()}
        self._check_lengths()
        arrays = self._arrays.values()
        firsts = np.cumsum([0, *(-(-array.nbytes // BLOCK_BYTES) for array in arrays)])
        sums = self._read_sums(int(firsts[-1]))
        self._checked_places = set[int]()
        #: Of each block, whether it was compared with its sum; kernels and Python see the same bytes.
        self._is_intact = bytearray(len(sums))
        self._files = CheckedFiles(
            np.array([array.ctypes.data for array in arrays], np.uint64),
            np.array([array.nbytes for array in arrays]),
            firsts,
            sums,
            np.frombuffer(self._is_intact, np.uint8),
        )
        self._places = {
            name: (number, array.itemsize, int(firsts[number]))
            for number, (name, array) in enumerate(self._arrays.items())
        }
        if match_rule.distance < 0:
            heads, entries = self._arrays["heads"], self._arrays["entries"]
            self._index = PrefixIndex(heads, entries, int(len(heads) - 1).bit_length() - 1, 0)
            self._size_bitmaps = self._arrays["sizes"], self._arrays["bitmaps"].reshape(-1, 8)
        self._texts, self._frames, self._ends = (self._arrays[name] for name in ("texts.zstd", "frames", "ends"))

    def __len__(self) -> int:
        return self.part.documents

    def _map(self, name: str, kind: str) -> npt.NDArray[Any]:
        path = f"{self.part.name}/{name}"
        with _open_file(self._folder, path, self.part) as file:
            size = self.part.files[path].bytes
            if size % np.dtype(kind).itemsize:
                raise self._damage(name)
            # A private copy gives writable arrays, which nobody writes to: kernels are compiled for these only.
            return np.frombuffer(mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY) if size else bytearray(), kind)

    def _check_lengths(self) -> None:
        """Check that the arrays are as long as the number of documents demands."""
        count, lengths = len(self), {name: len(array) for name, array in self._arrays.items()}
        expected = dict.fromkeys(("sizes", "values"), count) | dict.fromkeys(("frames", "ends", "id_ends"), count + 1)
        expected["bitmaps"] = 8 * count
        expected["ids"] = lengths["ids"] if "id_ends" in lengths else count
        for name, slots in (("counts", 0), ("heads", 1)):
            bits = (lengths.get(name, 0) - slots).bit_length() - 1
            expected[name] = (1 << min(max(bits, _MIN_BITS), _MAX_BITS)) + slots
        for name, length in lengths.items():
            if length != expected.get(name, length):
                raise self._damage(name)

    def _read_sums(self, count: int) -> Words:
        data = self._read_whole(f"{self.part.name}/{_SUMS}")
        if len(data) != 8 * count:
            raise self._damage(_SUMS)
        return np.frombuffer(bytearray(data), "<u8")

    def _read_whole(self, path: str) -> bytes:
        """Return the bytes of a small file, compared with their digest."""
        with _open_file(self._folder, path, self.part) as file:
            data = file.read()
        if digest_of(data) != self.part.files[path].digest:
            raise damage_error(os.path.join(self._folder, path))
        return data

    def _read_removed(self) -> Integers:
        lists = [path for path in self.part.files if not path.startswith(f"{self.part.name}/")]
        if not lists:
            return np.empty(0, np.int64)
        data = self._read_whole(lists[0])
        removed = np.frombuffer(data[: len(data) // 4 * 4], _REMOVED).astype(np.int64)
        is_list = len(data) == 4 * self.part.removed and np.all(np.diff(removed) > 0)
        if not is_list or np.any(removed >= self.part.documents):
            raise damage_error(os.path.join(self._folder, lists[0]))
        return removed

    def _damage(self, name: str) -> StoreError:
        return damage_error(os.path.join(self._folder, self.part.name, name))

    def _check(self, name: str, begin: int, end: int) -> None:
        """Check that the elements [begin, end) of an array are what was written."""
        number, size, first = self._places[name]
        begin, end = size * begin, size * end
        blocks = self._is_intact[first + begin // BLOCK_BYTES : first - (-end // BLOCK_BYTES)]
        if 0 in blocks and not check_bytes(self._files, number, begin, end):
            raise self._damage(name)

    def _whole(self, name: str) -> npt.NDArray[Any]:
        """Return an array all of which is what was written."""
        array = self._arrays[name]
        self._check(name, 0, len(array))
        return array

    @property
    def sizes(self) -> npt.NDArray[np.uint32]:
        """The number of features of each document."""
        return self._whole("sizes")

    def candidates(self, block: Block) -> tuple[Integers, Integers]:
        """Return pairs of places in a block and documents of the segment that may match, in order of place.

        All matching pairs are among them; removed documents are left out.
        """
        if self._match_rule.distance >= 0:
            return self._fingerprint_candidates(block)
        counts, rule = self._arrays["counts"], self._match_rule.rule
        shift = np.uint64(64 - (len(counts).bit_length() - 1))
        if not check_counts(self._files, COUNTS, block.features, shift):
            raise self._damage("counts")
        sets = _ranked_sets(block.features, block.sizes, shift, counts, rule)
        scratch, out = self._scratch()
        at, found = 0, [np.empty((0, 2), np.int64)]
        while at < len(block.sizes):
            at, written = find_partners(
                at, len(block.sizes), sets, self._size_bitmaps, self._index, self._files, rule, scratch, out
            )
            self._check_written(written)
            found.append(out[:written].copy())
        pairs = found[1] if len(found) == 2 else np.concatenate(found)
        return self._drop_removed(pairs[:, 0], pairs[:, 1])

    def _scratch(self) -> tuple[Any, Integers]:
        """Return the scratch and output arrays of the lookup kernel, one set per thread."""
        if not hasattr(self._local, "buffers"):
            count = len(self)
            out = np.empty((max(count, _CAPACITY), 2), np.int64)
            self._local.buffers = (np.zeros(count, np.int32), np.empty(count, np.int64)), out
        buffers: tuple[Any, Integers] = self._local.buffers
        return buffers

    def _check_written(self, count: int) -> None:
        """Check that a lookup has found no damage."""
        if count < 0:
            # They are unfinished.
            del self._local.buffers
            raise self._damage([*self._arrays][-1 - count])

    def candidates_of(self, features: Words) -> list[int]:
        """Return the documents that a set may match, ascending; see ``candidates``."""
        scratch, out = self._scratch()
        count = find_partners_of_one(
            features,
            self._arrays["counts"],
            self._size_bitmaps,
            self._index,
            self._files,
            self._match_rule.rule,
            scratch,
            out,
        )
        self._check_written(count)
        documents = sorted(out[:count, 1].tolist())
        if len(self.removed):
            documents = np.setdiff1d(documents, self.removed).tolist()
        return documents

    def shared_bounds(self, features: Words) -> Integers:
        """Return an upper bound of the features that each document shares with a set; 0 for removed documents."""
        counts, bitmaps = self._whole("counts"), self._whole("bitmaps").reshape(-1, 8)
        bounds: Integers = overlap_bounds_with_one(features, counts, self.sizes, bitmaps)
        bounds[self.removed] = 0
        return bounds

    def _fingerprint_candidates(self, block: Block) -> tuple[Integers, Integers]:
        queries, values = np.flatnonzero(block.sizes), self._whole("values")
        if len(queries) == 1:
            is_near = np.bitwise_count(values ^ block.features[0]) <= self._match_rule.distance
            documents = np.flatnonzero(is_near & (self.sizes > 0))
            return self._drop_removed(np.repeat(queries, len(documents)), documents)
        documents = np.flatnonzero(self.sizes)
        found = hamming_pairs(np.concatenate([block.features, values[documents]]), self._match_rule.distance)
        across = (found.left < len(queries)) & (found.right >= len(queries))
        return self._drop_removed(queries[found.left[across]], documents[found.right[across] - len(queries)])

    def _drop_removed(self, places: Integers, documents: Integers) -> tuple[Integers, Integers]:
        if not len(self.removed):
            return places, documents
        is_present = ~np.isin(documents, self.removed)
        return places[is_present], documents[is_present]

    def present_documents(self) -> Integers:
        """Return the documents that were not removed, ascending."""
        is_present = np.ones(len(self), np.bool_)
        is_present[self.removed] = False
        return np.flatnonzero(is_present)

    def ids(self) -> pa.Array:
        """Return the ids of all documents, removed ones included; memory-mapped."""
        if not hasattr(self._local, "ids"):
            data = pa.py_buffer(self._whole("ids"))
            buffers = [None, data]
            kind = pa.int64()
            if "id_ends" in self._arrays:
                buffers, kind = [None, pa.py_buffer(self._whole("id_ends")), data], pa.large_string()
            try:
                ids = pa.Array.from_buffers(kind, len(self), buffers)
                ids.validate(full=True)
            except pa.ArrowInvalid:
                raise self._damage("ids") from None
            self._local.ids = ids
        found: pa.Array = self._local.ids
        return found

    def _check_places(self, group: int) -> None:
        """Check that the places of the texts of some documents are what was written; texts have sums of their own."""
        begin = group * _PLACES_AT_A_TIME
        for name in ("frames", "ends"):
            self._check(name, begin, min(begin + _PLACES_AT_A_TIME, len(self)) + 1)
        self._checked_places.add(group)

    def _text(self, document: int) -> bytes:
        if document // _PLACES_AT_A_TIME not in self._checked_places:
            self._check_places(document // _PLACES_AT_A_TIME)
        begin, end = self._frames[document : document + 2].tolist()
        first, last = self._ends[document : document + 2].tolist()
        if first == last:
            return b""
        length = last - first
        if not begin < end <= len(self._texts) or not 0 < length <= _MAX_RATIO * (end - begin):
            raise self._damage("frames")
        if not hasattr(self._local, "decompressor"):
            dictionary = _compression_dictionary(self._whole("dictionary").tobytes())
            self._local.decompressor = zstandard.ZstdDecompressor(dictionary)
        try:
            text: bytes = self._local.decompressor.decompress(self._texts[begin:end], length)
            # Kernels that read texts trust that they are UTF-8.
            text.decode()
        except (zstandard.ZstdError, UnicodeDecodeError, MemoryError):
            text = b""
        if len(text) != length:
            raise self._damage("texts.zstd")
        return text

    def text_bytes_of(self, documents: Sequence[int]) -> tuple[Bytes, Integers]:
        """Return the texts of some documents as bytes, and the offsets of their ends, from 0."""
        texts = [self._text(document) for document in documents]
        return np.frombuffer(b"".join(texts), np.uint8), np.cumsum([0, *map(len, texts)])

    def texts(self, documents: Integers) -> Iterator[pa.LargeStringArray]:
        """Yield the texts of some documents in batches."""
        for begin in range(0, len(documents), _TEXTS_PER_BATCH):
            data, ends = self.text_bytes_of(documents[begin : begin + _TEXTS_PER_BATCH].tolist())
            yield pa.LargeStringArray.from_buffers(len(ends) - 1, pa.py_buffer(ends), pa.py_buffer(data))


def _open_file(folder: str, path: str, part: SegmentEntry) -> BinaryIO:
    """Open a file of a segment; raises ``StoreError`` if it is missing, no ordinary file, or has another size."""
    absolute = os.path.join(folder, path)
    if path not in part.files:
        raise damage_error(absolute)
    try:
        # Opening a pipe would wait for its other end.
        file = os.fdopen(os.open(absolute, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    except OSError as error:
        raise StoreError(
            f"{absolute} cannot be read ({error.strerror}): restore it from a copy, or build the index again"
        ) from None
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_size != part.files[path].bytes:
        file.close()
        raise damage_error(absolute)
    return file


def check_part(folder: str, part: SegmentEntry) -> None:
    """Read every byte of a segment; raises ``StoreError``, which names the first file that has changed."""
    for path, entry in part.files.items():
        with _open_file(folder, path, part) as file:
            if digest_of(file) != entry.digest:
                raise damage_error(os.path.join(folder, path))


def damage_error(path: str) -> StoreError:
    """Return the error for a file whose bytes have changed."""
    return StoreError(f"{path} is damaged: restore it from a copy, or build the index again")


def removed_bytes(removed: Integers) -> bytes:
    """Return the removed documents of a segment as the bytes of their file."""
    return removed.astype(_REMOVED).tobytes()
