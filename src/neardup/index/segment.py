"""A segment of an index: documents, and arrays that find those that may match new ones.

Each document is indexed by the rare-first prefix of its features, in the order of the segment's own counts: every
document that matches it shares a feature of that prefix (``search.join.find_prefixes``). Features take more space
than text, so they are recomputed from the texts of the few candidates.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from neardup.errors import RecipeError, StoreError
from neardup.features.store import Block, set_addresses
from neardup.files import flush_file
from neardup.index.manifest import FileEntry, SegmentEntry, digest_of
from neardup.kernels import Bytes, Integers, Words
from neardup.kernels.counts import count_features
from neardup.kernels.prefixes import (
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
#: The element types of the array files.
_TYPES = {
    "texts.zstd": "u1",
    "dictionary": "u1",
    "frames": "<u8",
    "ends": "<u8",
    "sizes": "<u4",
    "bitmaps": "<u8",
    "counts": "u1",
    "heads": "<u4",
    "entries": "<u8",
    "values": "<u8",
}
_REMOVED = "<u4"
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
        ids = pa.concat_arrays(self._ids)
        with pa.OSFile(os.path.join(self._folder, "ids.arrow"), "wb") as sink:
            table = pa.table({"id": ids})
            with pa.ipc.new_file(sink, table.schema) as writer:
                writer.write_table(table)
        features = np.concatenate([np.empty(0, np.uint64), *(block.features for block in self._blocks)])
        sizes = np.concatenate([np.empty(0, np.int64), *(block.sizes for block in self._blocks)])
        self._blocks.clear()
        by_bits = self._match_rule.distance >= 0
        arrays = self._fingerprint_arrays(features, sizes) if by_bits else self._feature_sets(features, sizes)
        ends = np.cumsum(np.concatenate([[0], *self._lengths]))
        arrays |= {"frames": np.cumsum(np.concatenate(self._frames)), "ends": ends}
        for file_name, array in arrays.items():
            array.astype(_TYPES[file_name], copy=False).tofile(os.path.join(self._folder, file_name))
        names = sorted(os.listdir(self._folder))
        files = {f"{name}/{file_name}": sync_file(os.path.join(self._folder, file_name)) for file_name in names}
        return SegmentEntry(name, self.documents, 0, int(ends[-1]), self.features, files)

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
    return FileEntry(os.path.getsize(path), digest_of(path))


def _ranked_sets(features: Words, sizes: Integers, shift: np.uint64, counts: Bytes, match_rule: Rule) -> RankedSets:
    """Return sets with their prefixes by a table of counts, without features that do not occur in the table."""
    context = JoinContext(set_addresses(features, sizes), sizes, match_rule, 1, Memory())
    return RankedSets(context.addresses, sizes, *find_prefixes(context, np.arange(len(sizes)), shift, counts))


class Segment:
    """A written segment with memory-mapped arrays; ``removed`` are its removed documents, int64[r] ascending.

    Raises ``StoreError`` if a file is missing or has another size.
    """

    def __init__(self, folder: str, part: SegmentEntry, match_rule: MatchRule) -> None:
        self.part, self._folder, self._match_rule = part, folder, match_rule
        self.removed = _read_removed(folder, part)
        self.sizes: npt.NDArray[np.uint32] = self._map_array("sizes")
        self._local = threading.local()
        # Everything is mapped now, since a writer that merges segments removes the files.
        with pa.memory_map(self._path("ids.arrow")) as file:
            self._ids = file.read_buffer()
        self._texts, self._dictionary = self._map_array("texts.zstd"), self._map_array("dictionary")
        self._frames, self._ends = self._map_array("frames"), self._map_array("ends")
        if match_rule.distance >= 0:
            self.values: Words = self._map_array("values")
            return
        self._size_bitmaps = self.sizes, self._map_array("bitmaps").reshape(-1, 8)
        self.counts: Bytes = self._map_array("counts")
        heads = self._map_array("heads")
        self.index = PrefixIndex(heads, self._map_array("entries"), int(len(heads) - 1).bit_length() - 1, 0)

    def __len__(self) -> int:
        return self.part.documents

    def _path(self, name: str) -> str:
        return segment_path(self._folder, f"{self.part.name}/{name}", self.part)

    def _map_array(self, name: str) -> npt.NDArray[Any]:
        path = self._path(name)
        if not self.part.files[f"{self.part.name}/{name}"].bytes:
            return np.empty(0, _TYPES[name])
        # Mode "c" gives writable arrays, which nobody writes to: kernels are compiled for writable arrays only.
        return np.asarray(np.memmap(path, _TYPES[name], mode="c"))

    def candidates(self, block: Block) -> tuple[Integers, Integers]:
        """Return pairs of places in a block and documents of the segment that may match, in order of place.

        All matching pairs are among them; removed documents are left out.
        """
        if self._match_rule.distance >= 0:
            return self._fingerprint_candidates(block)
        shift = np.uint64(64 - (len(self.counts).bit_length() - 1))
        sets = _ranked_sets(block.features, block.sizes, shift, self.counts, self._match_rule.rule)
        scratch, out = self._scratch()
        at, found = 0, [np.empty((0, 2), np.int64)]
        while at < len(block.sizes):
            at, written = find_partners(
                at, len(block.sizes), sets, self._size_bitmaps, self.index, self._match_rule.rule, scratch, out
            )
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

    def candidates_of(self, features: Words) -> list[int]:
        """Return the documents that a set may match, ascending; see ``candidates``."""
        scratch, out = self._scratch()
        count = find_partners_of_one(
            features, self.counts, self._size_bitmaps, self.index, self._match_rule.rule, scratch, out
        )
        documents = sorted(out[:count, 1].tolist())
        if len(self.removed):
            documents = np.setdiff1d(documents, self.removed).tolist()
        return documents

    def shared_bounds(self, features: Words) -> Integers:
        """Return an upper bound of the features that each document shares with a set; 0 for removed documents."""
        bounds: Integers = overlap_bounds_with_one(features, self.counts, *self._size_bitmaps)
        bounds[self.removed] = 0
        return bounds

    def _fingerprint_candidates(self, block: Block) -> tuple[Integers, Integers]:
        queries = np.flatnonzero(block.sizes)
        if len(queries) == 1:
            is_near = np.bitwise_count(self.values ^ block.features[0]) <= self._match_rule.distance
            documents = np.flatnonzero(is_near & (self.sizes > 0))
            return self._drop_removed(np.repeat(queries, len(documents)), documents)
        documents = np.flatnonzero(self.sizes)
        found = hamming_pairs(np.concatenate([block.features, self.values[documents]]), self._match_rule.distance)
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
            try:
                table = pa.ipc.open_file(pa.BufferReader(self._ids)).read_all()
            except (pa.ArrowException, OSError):
                raise damage_error(os.path.join(self._folder, self.part.name, "ids.arrow")) from None
            self._local.ids = table["id"].combine_chunks()
        ids: pa.Array = self._local.ids
        return ids

    def _text(self, document: int) -> bytes:
        begin, end = self._frames[document : document + 2].tolist()
        first, last = self._ends[document : document + 2].tolist()
        if first == last:
            return b""
        if not hasattr(self._local, "decompressor"):
            dictionary = _compression_dictionary(self._dictionary.tobytes())
            self._local.decompressor = zstandard.ZstdDecompressor(dictionary)
        try:
            text: bytes = self._local.decompressor.decompress(self._texts[begin:end], last - first)
        except zstandard.ZstdError:
            text = b""
        if len(text) != last - first:
            raise damage_error(os.path.join(self._folder, self.part.name, "texts.zstd"))
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


def segment_path(folder: str, path: str, part: SegmentEntry) -> str:
    """Return the path of a file of a segment; raises ``StoreError`` if it is missing or has another size."""
    absolute = os.path.join(folder, path)
    try:
        size = os.path.getsize(absolute)
    except OSError as error:
        raise StoreError(
            f"{absolute} cannot be read ({error.strerror}): restore it from a copy, or build the index again"
        ) from None
    if path not in part.files or size != part.files[path].bytes:
        raise damage_error(absolute)
    return absolute


def damage_error(path: str) -> StoreError:
    """Return the error for a file whose bytes have changed."""
    return StoreError(f"{path} is damaged: restore it from a copy, or build the index again")


def _read_removed(folder: str, part: SegmentEntry) -> Integers:
    removal_lists: Sequence[str] = [path for path in part.files if not path.startswith(f"{part.name}/")]
    if not removal_lists:
        return np.empty(0, np.int64)
    return np.fromfile(segment_path(folder, removal_lists[0], part), _REMOVED).astype(np.int64)


def removed_bytes(removed: Integers) -> bytes:
    """Return the removed documents of a segment as the bytes of their file."""
    return removed.astype(_REMOVED).tobytes()
