"""The inverted index of a window, in segments: documents are matched and inserted in order of arrival.

An epoch is an index with one order of features. Expired documents leave it a whole segment at a time. An epoch builder
prepares the next epoch, with a new order, in slices beside the newest one, so that no document waits for it.
"""

from __future__ import annotations

import mmap
import secrets
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import NeardupError
from neardup.kernels import Bools, Bytes, Integers, Words
from neardup.kernels import window as kw
from neardup.kernels.bits import CHUNK_BITS
from neardup.kernels.bounds import required_overlap, smallest_partner
from neardup.kernels.tables import EMPTY_TABLE_SIZE, insert_values, table_size
from neardup.recipe.measures import Rule

#: Larger than any difference of times.
ENDLESS = 1 << 61
CHUNK = 1 << CHUNK_BITS
#: Private pages may become large pages; Windows has no such flag.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
#: The largest number of live chunks: 512 GB.
_MAX_CHUNKS = 1 << 16
_MAX_SPARE = 4


class Chunks:
    """Chunks of memory at increasing virtual addresses; a segment's chunks are freed when it is dropped.

    Up to four chunks (32 MB) are kept for the next segment. ``bases`` has the address of each, in a ring by number.
    """

    def __init__(self) -> None:
        self.bases: Words = np.zeros(_MAX_CHUNKS, np.uint64)
        self._next = 1
        self._alive: deque[tuple[int, npt.NDArray[Any]]] = deque()
        #: Chunks for the next segment: pages that were used before need no page faults.
        self._spare: list[npt.NDArray[Any]] = []
        #: The bytes used of each stretch but the last.
        self._used_bytes: deque[int] = deque()

    def extend(self, min_bytes: int, cursor: int = 0, *, large_pages: bool = False) -> tuple[int, int]:
        """Return the begin and end addresses of a new stretch of at least ``min_bytes`` bytes.

        The last stretch is used up to the cursor; pages after it were never written to, so they cost nothing. Large
        pages are faster to read, but their first use takes milliseconds: they pay if the flow fills them.
        """
        if self._alive:
            self._used_bytes.append(cursor - self._alive[-1][0] * CHUNK)
        count = max((min_bytes + CHUNK - 1) // CHUNK, 1)
        stretch = self._spare.pop() if count == 1 and self._spare else map_memory(count * CHUNK, large_pages)
        first = self._next
        for i in range(count):
            self.bases[(first + i) % _MAX_CHUNKS] = stretch.ctypes.data + i * CHUNK
        self._alive.append((first, stretch))
        self._next += count
        return first * CHUNK, self._next * CHUNK

    def drop_below(self, address: int) -> None:
        """Free all stretches that end at or below an address."""
        while self._alive and self._alive[0][0] * CHUNK + len(self._alive[0][1]) <= address:
            stretch = self._alive.popleft()[1]
            if len(stretch) == CHUNK and len(self._spare) < _MAX_SPARE:
                self._spare.append(stretch)
            if self._used_bytes:
                self._used_bytes.popleft()

    def used_bytes(self, cursor: int) -> int:
        """Return the bytes in use, with the last stretch used up to the cursor."""
        last = cursor - self._alive[-1][0] * CHUNK if self._alive else 0
        return sum(self._used_bytes) + last


def map_memory(size: int, large_pages: bool) -> npt.NDArray[Any]:
    """Map memory and return it: its pages cost nothing until written to, and are freed as a whole."""
    pages = mmap.mmap(-1, size, **_PRIVATE)
    if large_pages and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)


_MAX_RANKS = 1 << 21
_MIN_SLOTS = 1 << 10
_COUNTED_AT_ONCE = 1 << 14


class Vocabulary(NamedTuple):
    """Features with their ranks, from 0 for the rarest; unknown features count as rarer still.

    ``keys`` and ``ranks`` are a hash table from features to ranks; ``features`` has the feature of each rank.
    """

    keys: Words
    ranks: npt.NDArray[np.uint32]
    features: Words

    @property
    def bytes(self) -> int:
        """The bytes of memory in use."""
        return self.keys.nbytes + self.ranks.nbytes + self.features.nbytes

    def arrange(self, features: Words, heads: Integers) -> tuple[Words, Integers]:
        """Return the features of documents in this order, and the number of unknown ones of each document."""
        order = np.empty(len(features), np.uint64)
        raws = np.empty(len(heads) - 1, np.int64)
        kw.order_features(features, heads, self.keys, self.ranks, order, raws, np.empty_like(order))
        return order, raws


def empty_vocabulary() -> Vocabulary:
    """Return a vocabulary without features, which orders features by their hashes."""
    size = EMPTY_TABLE_SIZE
    return Vocabulary(np.zeros(size, np.uint64), np.zeros(size, np.uint32), np.zeros(0, np.uint64))


class FeatureCounts:
    """The counts of the features of a sample."""

    def __init__(self) -> None:
        self._distinct = 0
        self._keys, self._counts = np.zeros(_MIN_SLOTS, np.uint64), np.zeros(_MIN_SLOTS, np.uint32)

    def add(self, features: Words) -> None:
        """Count the features of further documents."""
        for begin in range(0, len(features), _COUNTED_AT_ONCE):
            part = features[begin : begin + _COUNTED_AT_ONCE]
            if 2 * (self._distinct + len(part)) > len(self._keys):
                self._make_room(self._distinct + len(part))
            self._distinct += kw.count_features(part, self._keys, self._counts)

    def _make_room(self, distinct: int) -> None:
        occupied = np.flatnonzero(self._counts)
        keys, counts, slots = self._keys[occupied], self._counts[occupied], table_size(distinct)
        self._keys, self._counts = np.zeros(slots, np.uint64), np.zeros(slots, np.uint32)
        insert_values(keys, counts, self._keys, self._counts)

    def vocabulary(self) -> Vocabulary:
        """Return the features that occur more than once, rare first."""
        repeated = np.flatnonzero(self._counts > 1)
        order = np.lexsort((self._keys[repeated], self._counts[repeated]))[-_MAX_RANKS:]
        words = self._keys[repeated[order]]
        if not len(words):
            return empty_vocabulary()
        slots = table_size(len(words))
        table, ranks = np.zeros(slots, np.uint64), np.zeros(slots, np.uint32)
        insert_values(words, np.arange(len(words)), table, ranks)
        return Vocabulary(table, ranks, words)


#: The minimum size of sets that are indexed by signatures of two features; smaller ones have too few.
_MIN_SIGNATURE_SIZE = 8
#: A set must share one key more per this many features, up to _MAX_SHARED_KEYS. Raising it compares more sets in vain,
#: and makes fewer keys.
_FEATURES_PER_KEY, _MAX_SHARED_KEYS = 64, 32
#: The largest credit per cell for which signatures are used: each credit takes 3.6 of them then.
_MAX_CREDIT = 5


def plan_of(rule: Rule) -> Integers:
    """Return the plan (``kernels.window``): a row for each range of sizes, each twice as large as the one before.

    With 2**bits cells and l required keys, a document has enough keys if any match shares 2**bits + l features with it.
    The smallest document of a row shares fewest, with its smallest partner. Where matches may share too little, keys
    are single features.
    """
    rows = []
    for power in range(31):
        size, largest = 1 << power, (2 << power) - 1
        shared = int(required_overlap(rule, smallest_partner(rule, size), size))
        keys = min(1 + size // _FEATURES_PER_KEY, _MAX_SHARED_KEYS, shared)
        bits = min(power - 1, (shared - keys).bit_length() - 1)
        if size < _MIN_SIGNATURE_SIZE or bits < 1 or kw.insertion_credit(rule, largest, keys) > _MAX_CREDIT << bits:
            bits = -1
        rows.append([size, bits, keys, 0])
    return np.array(rows, np.int64)


#: The most chunks of a table of keys, 32 GB, and the buckets of a table that is soon in need of large pages.
_MAX_BUCKET_CHUNKS, _MIN_LARGE_PAGES = 1 << 12, 1 << 13


def initial_bucket_count(slots: int, keys: int) -> int:
    """Return the first number of buckets of an epoch, given the slots of its lists and the keys to expect.

    The table can grow to 32 times as many buckets.
    """
    return max(slots >> 5, 1 << (keys // (8 * kw.ENTRIES_PER_BUCKET)).bit_length(), 2)


_FIRST_RECORDS = 1 << 10
#: Slots of the table of lists in a large page of memory.
_SLOTS_IN_PAGE = 1 << 18
#: Address space is reserved for this many times the records of the first ring.
_RINGS = 64
#: The first capacity for matches.
_FIRST_MATCHES = 64
#: (documents, a, b): with fewer documents, lists of up to ``a`` entries move as a whole into a new segment's block, and
#: lists of up to ``b`` into a larger block within a segment. Longer lists are faster, shorter ones save memory.
_COPIES = ((1 << 14, 64, 16), (1 << 16, 16, 16), (1 << 62, 4, 0))


class Segment(NamedTuple):
    """A segment: its key, its first document and address, and how many keys were inserted in buckets before it."""

    key: int
    document: int
    address: int
    keys: int


class WindowMatches(NamedTuple):
    """The matches of a document: serials, o, a and b (int64[k, 3]), and digests of texts (int64[k, 2])."""

    serials: Integers
    counts: Integers
    digests: Integers


class QueryScratch(NamedTuple):
    """The buffers of a thread that searches an epoch: zeros like ``WindowIndex.hits``, and the kernels' own."""

    hits: Bytes
    buffers: kw.WindowBuffers


class Epoch:
    """An inverted index of documents, in segments that are dropped whole.

    kind: as in ``kernels.window``. slots: the size of the table of lists, a power of two; raising it costs 8 bytes each
    and makes chance collisions rarer. keys: the expected number of those in buckets, whose first table it sizes. salt:
    a secret odd number that determines which features share a cell, and changes no result; random by default.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rule: Rule,
        kind: int,
        slots: int,
        keys: int = 0,
        salt: np.uint64 | None = None,
    ) -> None:
        self.vocabulary, self.rule, self.kind = vocabulary, rule, kind
        self.segments: deque[Segment] = deque()
        self._chunks = Chunks()
        counters = np.zeros(18, np.int64)
        counters[kw.CURSOR], counters[kw.END] = self._chunks.extend(1)
        counters[kw.SEGMENT] = counters[kw.OLDEST] = counters[kw.CURSOR]
        self._records = _new_records(_RINGS * _FIRST_RECORDS)
        hits = np.zeros(_FIRST_RECORDS, np.uint8)
        uses_buckets = kind == kw.BY_PREFIX
        self._lists = kw.WindowIndex(
            self._chunks.bases,
            np.zeros(1 if uses_buckets else slots, np.uint64),
            self._records[:_FIRST_RECORDS],
            hits,
            counters,
            plan_of(rule) if uses_buckets else np.empty((0, 4), np.int64),
            np.uint64(secrets.randbits(64) | 1) if salt is None else salt,
            np.zeros(2 * _MAX_BUCKET_CHUNKS, np.uint64),
        )
        self._bucket_chunks: list[Bytes] = []
        if uses_buckets:
            counters[kw.BUCKETS] = initial_bucket_count(slots, keys)
            counters[kw.LEVEL] = counters[kw.TAG_SHIFT] = int(counters[kw.BUCKETS]).bit_length() - 1
            counters[kw.FURTHER] = counters[kw.FURTHER_LIMIT] = kw.FIRST_FURTHER
            while counters[kw.BUCKET_LIMIT] < counters[kw.BUCKETS]:
                self._add_bucket_chunk(kw.BUCKET_LIMIT)
        self._buffers = self._new_buffers()

    @property
    def inserted_count(self) -> int:
        """The number of documents ever inserted."""
        return int(self._lists.counters[kw.NEXT])

    @property
    def first(self) -> int:
        """The number of the oldest present document."""
        return int(self._lists.counters[kw.FIRST])

    @property
    def document_count(self) -> int:
        """The number of present documents, with removed ones until their segment is dropped."""
        return self.inserted_count - self.first

    @property
    def keys(self) -> int:
        """The number of keys of present documents in buckets."""
        return int(self._lists.counters[kw.KEYS] - self._lists.counters[kw.DROPPED_KEYS])

    @property
    def bytes(self) -> int:
        """The bytes of memory in use: documents, lists, tables."""
        counters, lists = self._lists.counters, self._lists
        tables = lists.heads.nbytes + lists.records.nbytes + lists.hits.nbytes
        buckets = counters[kw.BUCKETS] + counters[kw.FURTHER] % kw.FIRST_FURTHER
        tables += 4 * kw.BUCKET_WORDS * int(buckets) + self.vocabulary.bytes
        return self._chunks.used_bytes(int(counters[kw.CURSOR])) + tables

    def begin_segment(self, key: int) -> None:
        """Begin a segment, with memory of its own."""
        counters = self._lists.counters
        if self.segments and counters[kw.CURSOR] == counters[kw.SEGMENT]:
            self.segments.pop()
        else:
            busy = int(counters[kw.CURSOR] - counters[kw.SEGMENT]) > CHUNK
            counters[kw.CURSOR], counters[kw.END] = self._chunks.extend(1, int(counters[kw.CURSOR]), large_pages=busy)
        counters[kw.SEGMENT] = counters[kw.CURSOR]
        counters[kw.COPY_LIMIT], counters[kw.MERGE_LIMIT] = next(
            copies for limit, *copies in _COPIES if self.document_count < limit
        )
        if not self.segments:
            counters[kw.OLDEST] = counters[kw.SEGMENT]
        self.segments.append(Segment(key, *(int(counters[at]) for at in (kw.NEXT, kw.SEGMENT, kw.KEYS))))

    def drop_segments(self, oldest: int, *, drops_last: bool) -> Integers:
        """Drop the segments with a key below ``oldest``; return the serials of their documents.

        The last segment is dropped only if ``drops_last``: then no more documents arrive here.
        """
        counters = self._lists.counters
        first = int(counters[kw.FIRST])
        while len(self.segments) > (0 if drops_last else 1) and self.segments[0].key < oldest:
            self.segments.popleft()
        end = self.segments[0].document if self.segments else int(counters[kw.NEXT])
        records = self._rows(first, end)
        dropped: Integers = records[records[:, kw.SIZE] > 0, kw.SERIAL]
        if self.segments and end > first:
            counters[kw.FIRST], counters[kw.OLDEST] = end, self.segments[0].address
            self._chunks.drop_below(self.segments[0].address)
            counters[kw.DROPPED_KEYS] = self.segments[0].keys
        return dropped

    def documents(
        self,
        features: Words,
        heads: Integers,
        keys: Words,
        columns: tuple[Integers, Integers, Integers, Integers, Integers],
    ) -> kw.WindowDocuments:
        """Return documents for the kernels; columns: times, expiries, least expiries, serials, digests."""
        arranged, raws = self.vocabulary.arrange(features, heads)
        return kw.WindowDocuments(features, arranged, heads, raws, keys, *columns)

    def match_and_insert(
        self,
        documents: kw.WindowDocuments,
        searches: bool,
        entry_modes: npt.NDArray[np.int8],
        best: Integers,
        scores: Any,
        window: int,
    ) -> None:
        """Match and insert documents in order; see ``kernels.window.match_and_insert``."""
        if self.document_count + len(documents.serials) > kw.HALF_RANGE:
            # Entries could not tell more documents apart, and matches would be lost.
            raise NeardupError(f"a window holds at most {int(kw.HALF_RANGE):,} documents; choose a shorter one")
        at = 0
        while True:
            index, buffers, kind = self._lists, self._buffers, self.kind
            at, status = kw.match_and_insert(
                at, documents, self.rule, window, index, buffers, kind, searches, entry_modes, best, scores
            )
            if status == kw.DONE:
                return
            if status == kw.NEEDS_MEMORY:
                counters = self._lists.counters
                size, cursor = int(counters[kw.REQUESTED]), int(counters[kw.CURSOR])
                counters[kw.CURSOR], counters[kw.END] = self._chunks.extend(size, cursor, large_pages=True)
            elif status == kw.NEEDS_BUCKETS:
                counters = self._lists.counters
                is_full = counters[kw.BUCKETS] == counters[kw.BUCKET_LIMIT]
                self._add_bucket_chunk(kw.BUCKET_LIMIT if is_full else kw.FURTHER_LIMIT)
            else:
                self._grow()

    def matches(
        self, documents: kw.WindowDocuments, window: int, scratch: QueryScratch | None = None
    ) -> tuple[Integers, WindowMatches, int]:
        """Return the matches of documents: places, ascending; matches; the number compared.

        Each of several threads needs its own scratch.
        """
        hits, buffers = scratch or (self._lists.hits, self._buffers)
        lists = self._lists._replace(hits=hits)
        query_places, found, size = [np.empty(0, np.int64)], [np.empty((0, 4), np.int64)], _FIRST_MATCHES
        begin, end, compared = 0, len(documents.serials), 0
        while begin < end:
            places, out = np.empty(size, np.int64), np.empty((size, 4), np.int64)
            begin, count, comparisons = kw.list_all_matches(
                begin, end, documents, self.rule, window, lists, buffers, self.kind, places, out
            )
            compared += comparisons
            query_places.append(places[:count])
            found.append(out[:count])
            size *= 8
        rows = np.concatenate(found)
        records = lists.records[rows[:, 0]]
        return (
            np.concatenate(query_places),
            WindowMatches(records[:, kw.SERIAL], rows[:, 1:], records[:, kw.DIGEST :]),
            compared,
        )

    def overlaps(self, documents: kw.WindowDocuments, time: int, least_expiry: int, window: int) -> WindowMatches:
        """Return the partners in time that share a feature with the first document, with their overlaps."""
        records = self._lists.records
        out = np.zeros((len(records), 3), np.int64)
        kw.overlaps_with_records(documents, self._lists, self._buffers.flags, out)
        rows = np.flatnonzero((out[:, 0] > 0) & _are_partners(records, time, least_expiry, window))
        return WindowMatches(records[rows, kw.SERIAL], out[rows], records[rows, kw.DIGEST :])

    def values(self, time: int, least_expiry: int, window: int) -> tuple[Integers, Words]:
        """Return the serials and the fingerprints of all partners in time."""
        features, _, records = self.read(self.first, self.inserted_count)
        alive = _are_partners(records, time, least_expiry, window)
        return records[alive, kw.SERIAL], features[alive]

    def remove(self, serial: int) -> None:
        """Remove a document, if it is present."""
        rows = np.arange(self.first, self.inserted_count) & (len(self._lists.records) - 1)
        self._lists.records[rows[self._lists.records[rows, kw.SERIAL] == serial], kw.SIZE] = 0

    def remove_from(self, serial: int) -> None:
        """Remove the documents from ``serial`` on."""
        self._lists.records[self._lists.records[:, kw.SERIAL] >= serial, kw.SIZE] = 0

    def read(self, first: int, last: int) -> tuple[Words, Integers, Integers]:
        """Return the features of the present documents of [first, last), their offsets, and the documents' records."""
        heads = np.empty(last - first + 1, np.int64)
        words = self.vocabulary.features
        kw.read_features(first, last, self._lists, words, heads, np.empty(0, np.uint64))
        features = np.empty(int(heads[-1]), np.uint64)
        if len(features):
            kw.read_features(first, last, self._lists, words, heads, features)
        records = self._rows(first, last)
        present = np.append(records[:, kw.SIZE] > 0, True)
        return features, heads[present], records[present[:-1]]

    def pages(self) -> Iterator[Words]:
        """Yield the table of lists in parts of 2 MB."""
        heads = self._lists.heads
        for begin in range(0, len(heads), _SLOTS_IN_PAGE):
            yield heads[begin : begin + _SLOTS_IN_PAGE]

    def sizes(self, first: int, last: int) -> Integers:
        """Return the feature counts of the documents [first, last), 0 for a removed one."""
        return self._rows(first, last)[:, kw.SIZE]

    def _rows(self, first: int, last: int) -> Integers:
        rows: Integers = self._lists.records[np.arange(first, last) & (len(self._lists.records) - 1)]
        return rows

    def scratch(self) -> QueryScratch:
        """Return the buffers for a thread that searches beside others; valid until documents are inserted."""
        return QueryScratch(np.zeros_like(self._lists.hits), self._new_buffers())

    def _new_buffers(self) -> kw.WindowBuffers:
        rows = len(self._lists.records) + 1
        return kw.WindowBuffers(
            np.empty(rows, np.int64),
            np.empty(rows, np.int64),
            np.zeros(max(len(self.vocabulary.features), 1), np.uint8),
        )

    def _add_bucket_chunk(self, limit: int) -> None:
        """Add memory for buckets, or for those that others continue in: ``limit`` is the counter of how many it has."""
        counters, large = self._lists.counters, self._lists.counters[kw.BUCKETS] > _MIN_LARGE_PAGES
        chunk = map_memory(4 * kw.BUCKET_WORDS * kw.BUCKETS_PER_CHUNK, large_pages=bool(large))
        self._lists.buckets[counters[limit] // kw.BUCKETS_PER_CHUNK] = chunk.ctypes.data
        self._bucket_chunks.append(chunk)
        counters[limit] += kw.BUCKETS_PER_CHUNK

    def _grow(self) -> None:
        """Double the ring of records, and move records to their new places."""
        lists = self._lists
        size = len(lists.records)
        if 2 * size > len(self._records):
            # Much more than is used, so that a large ring grows where it is: pages cost nothing until written to.
            self._records = _new_records(_RINGS * size)
            self._records[:size] = lists.records
        records, documents = self._records[: 2 * size], np.arange(self.first, self.inserted_count)
        moving = documents[(documents & size) > 0]
        records[moving & (2 * size - 1)] = lists.records[moving & (size - 1)]
        records[moving & (size - 1)] = 0
        self._lists = lists._replace(records=records, hits=np.zeros(2 * size, np.uint8))
        self._buffers = self._new_buffers()


def _new_records(records: int) -> Integers:
    ring: Integers = map_memory(64 * records, large_pages=False).view(np.int64).reshape(-1, 8)
    return ring


def _are_partners(records: Integers, time: int, least_expiry: int, window: int) -> Bools:
    alive: Bools = (records[:, kw.EXPIRY] >= least_expiry) & (np.abs(records[:, kw.TIME] - time) <= window)
    return alive


#: The maximum features and documents of a slice of the builder's work, which takes a few milliseconds.
_SLICE_FEATURES, _SLICE_DOCUMENTS = 1 << 14, 256
#: The maximum number of features in the sample that determines an order.
_MAX_SAMPLE_FEATURES = 1 << 21


class EpochBuilder:
    """Builds an epoch in slices: computes an order of features from an old epoch, then copies its documents.

    Meanwhile the old epoch is searched and receives new documents. They are copied last; then both epochs are equal.

    make: makes an empty epoch, given the order of features and the number of keys in buckets of the old one. keys:
    returns the keys of documents, given features and sizes. sample: from how many of the latest documents the order is
    computed. copies: otherwise the new epoch only has the order. epoch: None until its order is computed.
    """

    def __init__(
        self,
        old: Epoch,
        make: Callable[[Vocabulary, int], Epoch],
        keys: Callable[[Words, Integers], Words],
        sample: int,
        *,
        copies: bool,
    ) -> None:
        self.copies, self.is_complete = copies, False
        self.epoch: Epoch | None = None
        self._old, self._make, self._keys, self._sample = old, make, keys, sample
        self._slices, self._due = self._work_slices(), 0

    def advance(self, documents: int) -> None:
        """Read about this number of documents of the old epoch: always whole slices."""
        self._due += documents
        while self._due > 0 and not self.is_complete:
            self._due -= next(self._slices, 0)

    def _work_slices(self) -> Iterator[int]:
        """Build the epoch; yield the number of documents after each slice."""
        old, counts = self._old, FeatureCounts()
        begin, end = max(old.inserted_count - self._sample, old.first), old.inserted_count
        newest_first = old.sizes(begin, end)[::-1].cumsum()
        begin = end - int(np.searchsorted(newest_first, _MAX_SAMPLE_FEATURES, side="right"))
        while (begin := max(begin, old.first)) < end:
            after = self._slice_end(begin, end)
            counts.add(old.read(begin, after)[0])
            yield after - begin
            begin = after
        self.epoch = epoch = self._make(counts.vocabulary(), old.keys)
        # This takes as long as several slices; so does the first use of its table, whose pages the system clears.
        yield _SLICE_DOCUMENTS
        for pages in epoch.pages():
            pages[:] = 0
            yield _SLICE_DOCUMENTS // 4
        begin = 0
        while self.copies and (begin := max(begin, old.first)) < old.inserted_count:
            after = self._slice_end(begin, self._follow(epoch, begin))
            self._copy(epoch, begin, after)
            yield after - begin
            begin = after
        if self.copies:
            self._follow(epoch, begin)
        self.is_complete = True

    def _slice_end(self, begin: int, end: int) -> int:
        """Return where a slice that begins at a document ends, before ``end``."""
        sizes = self._old.sizes(begin, min(begin + _SLICE_DOCUMENTS, end))
        return begin + max(int(np.searchsorted(sizes.cumsum(), _SLICE_FEATURES, side="right")), 1)

    def _follow(self, epoch: Epoch, document: int) -> int:
        """Begin and drop segments like the old epoch, up to the segment of a document.

        Returns the end of that segment.
        """
        segments = [*self._old.segments]
        if not segments:
            return self._old.inserted_count
        place = max(bisect_right(segments, document, key=lambda segment: segment.document) - 1, 0)
        if not epoch.segments or epoch.segments[-1].key < segments[place].key:
            epoch.begin_segment(segments[place].key)
        epoch.drop_segments(segments[0].key, drops_last=False)
        return segments[place + 1].document if place + 1 < len(segments) else self._old.inserted_count

    def _copy(self, epoch: Epoch, begin: int, end: int) -> None:
        """Insert the present documents of [begin, end) of the old epoch."""
        features, heads, records = self._old.read(begin, end)
        sizes = np.diff(heads)
        # Contiguous, like those of arrivals: the kernel is compiled separately for each memory layout.
        times, expiries, serials = records[:, [kw.TIME, kw.EXPIRY, kw.SERIAL]].T.copy()
        columns = (times, expiries, expiries, serials, records[:, kw.DIGEST :].copy())
        documents = epoch.documents(features, heads, self._keys(features, sizes), columns)
        always = np.full(len(sizes), 2, np.int8)
        epoch.match_and_insert(documents, False, always, np.empty((0, 6), np.int64), np.empty(0), ENDLESS)
