"""The sliding window: documents of the recent past, and whom a new one matches among them."""

from __future__ import annotations

import mmap
import re
import secrets
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.features.store import Block
from neardup.kernels.bits import CHUNK_BITS
from neardup.kernels.bounds import need, smallest_partner
from neardup.kernels.tables import EMPTY_TABLE, enter_values, slots_for
from neardup.kernels.window import (
    BY_KEYS,
    BY_PREFIX,
    COPIES,
    CURSOR,
    DIGEST,
    DIGIT,
    DONE,
    END,
    FINGERPRINTS,
    FIRST,
    LEAVES,
    MERGES,
    MOST_SIGNATURES,
    NEEDS_BUCKETS,
    NEEDS_MEMORY,
    NEXT,
    OLDEST,
    SEGMENT,
    SERIAL,
    SIGNATURES,
    SIZE,
    TAG,
    TAG_BITS,
    TIME,
    WANTED,
    WORDS,
    Items,
    Lists,
    Room,
    arrange,
    count_features,
    flow,
    lengthen,
    list_matches,
    meetings,
    overlap_with_all,
    read_back,
)
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, Rule, rule, similarities
from neardup.search.lsh import bands_of, keys_of

CHUNK = 1 << CHUNK_BITS
#: Private pages may become large ones; Windows has no such choice.
_PRIVATE = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
#: So many chunks can be alive at once: 512 GB.
_MOST_CHUNKS = 1 << 16
_MOST_SPARE = 4


class Chunks:
    """Chunks of memory under addresses that only grow; those of a segment go back to the system as soon as it ends.

    Up to four of them (32 MB) wait for the next segment instead.

    Attributes
    ----------
    bases : uint64[65536]
        Where each chunk lies, a ring by chunk number.
    """

    def __init__(self) -> None:
        self.bases: npt.NDArray[np.uint64] = np.zeros(_MOST_CHUNKS, np.uint64)
        self._next = 1
        self._alive: deque[tuple[int, npt.NDArray[Any]]] = deque()
        #: What the next segment takes before it asks the system: pages that were used before are there at once.
        self._spare: list[npt.NDArray[Any]] = []
        #: How much of each stretch but the last is used.
        self._used: deque[int] = deque()

    def extend(self, least: int, cursor: int = 0, *, large_pages: bool = False) -> tuple[int, int]:
        """Return the first address of a new stretch of at least so many bytes, and the one behind its end.

        The last stretch is used up to the cursor; pages behind it were never written to, so they cost nothing. Large
        pages are faster to read, and their first use takes milliseconds: they are for flows that fill them.
        """
        if self._alive:
            self._used.append(cursor - self._alive[-1][0] * CHUNK)
        count = max((least + CHUNK - 1) // CHUNK, 1)
        stretch = self._spare.pop() if count == 1 and self._spare else mapped(count * CHUNK, large_pages)
        first = self._next
        for i in range(count):
            self.bases[(first + i) % _MOST_CHUNKS] = stretch.ctypes.data + i * CHUNK
        self._alive.append((first, stretch))
        self._next += count
        return first * CHUNK, self._next * CHUNK

    def drop_below(self, address: int) -> None:
        """Give back all stretches that end at or below an address."""
        while self._alive and self._alive[0][0] * CHUNK + len(self._alive[0][1]) <= address:
            stretch = self._alive.popleft()[1]
            if len(stretch) == CHUNK and len(self._spare) < _MOST_SPARE:
                self._spare.append(stretch)
            if self._used:
                self._used.popleft()

    def used(self, cursor: int) -> int:
        """Return the bytes that are in use, where the last stretch is used up to the cursor."""
        last = cursor - self._alive[-1][0] * CHUNK if self._alive else 0
        return sum(self._used) + last


def mapped(size: int, large_pages: bool) -> npt.NDArray[Any]:
    """Return memory that is mapped, not allocated: pages cost nothing until written to, and go back as a whole."""
    pages = mmap.mmap(-1, size, **_PRIVATE)
    if large_pages and hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(pages, np.uint8)


Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_MOST_RANKS = 1 << 21
_FEWEST_SLOTS = 1 << 10


class Vocabulary(NamedTuple):
    """Features with their ranks, the rarest 0; all others count as rarer still.

    Attributes
    ----------
    keys, ranks : uint64[t], uint32[t]
        An open table from features to ranks; of one slot where there is none.
    features : uint64[v]
        The feature of each rank.
    """

    keys: Words
    ranks: npt.NDArray[np.uint32]
    features: Words

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return self.keys.nbytes + self.ranks.nbytes + self.features.nbytes

    def arranged(self, features: Words, heads: Integers) -> tuple[Words, Integers]:
        """Return documents' features in this order, and how many of each it does not know."""
        order = np.empty(len(features), np.uint64)
        raws = np.empty(len(heads) - 1, np.int64)
        longest = int(np.diff(heads).max(initial=0))
        digits = np.empty((2, 1 << DIGIT), np.int64)
        arrange(features, heads, self.keys, self.ranks, order, raws, np.empty(longest, np.uint64), digits)
        return order, raws


def empty_vocabulary() -> Vocabulary:
    """Return one that knows nothing: features are in the order of their hashes."""
    return Vocabulary(np.zeros(EMPTY_TABLE, np.uint64), np.zeros(EMPTY_TABLE, np.uint32), np.zeros(0, np.uint64))


def vocabulary_of(features: Words) -> Vocabulary:
    """Return the features that occur more than once among those of a sample of documents, rare first."""
    slots = _FEWEST_SLOTS
    while True:
        keys, counts = np.zeros(slots, np.uint64), np.zeros(slots, np.uint32)
        if 4 * count_features(features, keys, counts) < 3 * slots:
            break
        slots *= 4
    repeated = np.flatnonzero(counts > 1)
    order = np.lexsort((keys[repeated], counts[repeated]))[-_MOST_RANKS:]
    words = keys[repeated[order]]
    if not len(words):
        return empty_vocabulary()
    slots = slots_for(len(words))
    table, ranks = np.zeros(slots, np.uint64), np.zeros(slots, np.uint32)
    enter_values(words, np.arange(len(words)), table, ranks)
    return Vocabulary(table, ranks, words)


#: Sets of so many features or more, a size class's least, are entered by signatures. Below, single features take less
#: memory, and their lists are not long.
_LEAST = 1448
#: A row has so many size classes: sizes grow fourfold. Raising it makes the largest documents of a row have more keys,
#: and fewer documents ask by the keys of two rows.
_CLASSES_A_ROW = 8
#: A bucket has room for 15 entries; of so many a table is made longer. Raising it saves memory and fills more buckets.
_ENTRIES_A_BUCKET = 10
_ENDLESS = 1 << 62


def plan_of(rule: Rule, classes: Integers) -> Integers:
    """Return the plan (``kernels.window``): a row for each range of sizes, none where matches may share too little.

    With 2**bits cells and l keys to be shared, 2**bits + l features must be common to any match of a document of the
    row: then each document has keys enough. The fewest are those of the smallest document with its smallest partner.
    """
    rows: list[list[int]] = []
    for which in range(int(np.searchsorted(classes, _LEAST)), len(classes) - 1, _CLASSES_A_ROW):
        least = int(classes[which])
        bits, equal = max(least.bit_length() - 2, 0), int(meetings(classes, which))
        if need(rule, smallest_partner(rule, least), least) < (1 << bits) + equal:
            rows.clear()
        else:
            rows.append([least, bits, equal, 0])
    return np.array(rows, np.int64).reshape(-1, 4)


def new_salt() -> np.uint64:
    """Return an odd number that nobody can guess: it says which features share a cell, and changes no answer."""
    return np.uint64(secrets.randbits(64) | 1)


def no_buckets() -> npt.NDArray[np.uint32]:
    """Return the table of buckets of a window that has entered no signatures."""
    return np.zeros(WORDS, np.uint32)


def longer(lists: Lists, first: int) -> Lists:
    """Return lists with a table of so many buckets in place of none, or with one twice as long as theirs."""
    buckets = len(lists.buckets) // WORDS
    if buckets == 1:
        lists.counters[TAG] = first.bit_length() - 1
        return lists._replace(buckets=_table(first))
    table = _table(2 * buckets)
    lengthen(buckets.bit_length() - 1 - int(lists.counters[TAG]), lists, table)
    return lists._replace(buckets=table)


def allow(lists: Lists, gone: int) -> None:
    """Say after how many signatures ever entered a longer table is wanted, of which so many are gone."""
    buckets = len(lists.buckets) // WORDS
    most = gone + _ENTRIES_A_BUCKET * buckets if buckets > 1 else 0
    if buckets > 1 and buckets >> int(lists.counters[TAG]) == 1 << TAG_BITS:
        most = _ENDLESS
    lists.counters[MOST_SIGNATURES] = most


def first_buckets(slots: int, signatures: int) -> int:
    """Return how many buckets an epoch begins with, by the slots of its lists and the signatures that are there."""
    wanted = signatures // _ENTRIES_A_BUCKET
    return max(slots >> 5, 1 << wanted.bit_length(), 2)


def _table(buckets: int) -> npt.NDArray[np.uint32]:
    found: npt.NDArray[np.uint32] = mapped(4 * WORDS * buckets, large_pages=True).view(np.uint32)
    return found


Keys = Callable[[Words, Integers], Words]

_BITS = 64


def check_keys(recipe: Recipe) -> None:
    """Refuse a recipe that no window can serve.

    Raises
    ------
    RecipeError
        If documents have no keys by the recipe, so that a window could only compare with all of them.
    """
    if recipe.measure == "semantic" or (recipe.parsed_second_step and recipe.parsed_second_step.measure == "semantic"):
        raise RecipeError(
            "measure 'semantic' has no keys to find documents in a window by; choose a measure of sets, or simhash"
        )
    if recipe.is_weighted:
        raise RecipeError(
            f"weights {recipe.weights!r} have no keys to find documents in a window by; leave weights empty, or choose "
            "the recipe simhash"
        )


def kind_of(recipe: Recipe) -> tuple[int, Rule, Keys]:
    """Return what a window holds for a recipe, its rule, and what gives documents' keys from features and sizes.

    Raises
    ------
    RecipeError
        As ``check_keys`` does.
    """
    check_keys(recipe)
    if recipe.measure == "hamming":
        most = int(recipe.threshold)
        return FINGERPRINTS, Rule(0, most, 1, 0, 1), partial(block_keys, most=most)
    found = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    if recipe.search == "lsh":
        plan = bands_of(recipe)
        return BY_KEYS, found, lambda features, sizes: keys_of((features, sizes), plan, recipe.seed)
    return BY_PREFIX, found, lambda features, sizes: np.empty((len(sizes), 0), np.uint64)


def block_keys(features: Words, sizes: Integers, most: int) -> Words:
    """Return the most + 1 blocks of each fingerprint, with their places.

    Of two fingerprints that differ in at most so many bits, one block at least is equal (Manku, Jain & Das Sarma, WWW
    2007, 3). Raising ``most`` makes blocks shorter, so that more documents share one.
    """
    values = np.zeros(len(sizes), np.uint64)
    values[sizes > 0] = features
    blocks = most + 1
    ends = np.arange(blocks + 1) * _BITS // blocks
    keys = np.empty((len(values), blocks), np.uint64)
    for b in range(blocks):
        width = int(ends[b + 1] - ends[b])
        mask = np.uint64((1 << width) - 1)
        keys[:, b] = (values >> np.uint64(ends[b])) & mask
        # Places go above the bits; a block of all 64 bits is the only one.
        keys[:, b] += np.uint64(b) << np.uint64(min(width, _BITS - 7)) if blocks > 1 else np.uint64(0)
    return keys


_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
_UNITS = {"s": _SECOND, "m": 60 * _SECOND, "h": _HOUR, "d": 24 * _HOUR, "w": 7 * 24 * _HOUR}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?) ?([smhdw])")
_DOCUMENTS = re.compile(r"(\d[\d_,]*) ?documents?")
_WAYS = "give a time as 24h, 90m or 7d, a number of documents as '8000 documents', or endless"
#: A window has so many segments, which are hours for a window of a day.
_PARTS = 24
_FEWEST_DOCUMENTS = 64
_ENDLESS_PART = 1 << 14
#: Timestamps further than this behind the clock on the wall are not believed.
_BELIEVED = _HOUR


class Length(NamedTuple):
    """How long a window is.

    Attributes
    ----------
    unit : str
        ``time`` (microseconds), ``hour``, ``documents`` or ``endless``.
    value : int or None
        How many of them; None for endless.
    """

    unit: str
    value: int | None

    @classmethod
    def parse(cls, window: object, by: str = "time") -> Self:
        """Return what a user wrote.

        Raises
        ------
        RecipeError
            If it is no length above 0, or not of whole hours where time is counted by the hour.
        """
        if by not in ("time", "hour"):
            raise RecipeError(f"window_by {by!r} is not known; choose time or hour")
        if window is None or window == "endless":
            return cls("endless", None)
        if isinstance(window, bool):
            raise RecipeError(f"window {window!r} is no length; {_WAYS}")
        if isinstance(window, str) and (found := _DOCUMENTS.fullmatch(window.strip())):
            window = int(re.sub("[_,]", "", found[1]))
        if isinstance(window, int):
            if window < 1:
                raise RecipeError(f"window {window} is below 1 document; {_WAYS}")
            return cls("documents", window)
        if isinstance(window, timedelta):
            length = window // timedelta(microseconds=1)
        elif isinstance(window, str) and (found := _LENGTH.fullmatch(window.strip())):
            length = round(float(found[1]) * _UNITS[found[2]])
        else:
            raise RecipeError(f"window {window!r} is no length; {_WAYS}")
        if not 0 < length < 1 << 60:
            raise RecipeError(f"window {window!r} is no length above 0 and below 36,000 years; {_WAYS}")
        if by == "time":
            return cls("time", length)
        if length % _HOUR:
            raise RecipeError(f"window {window!r} is no whole number of hours, which window_by 'hour' counts")
        return cls("hour", length // _HOUR)

    def __str__(self) -> str:
        if self.value is None:
            return "endless"
        if self.unit == "documents":
            return f"{self.value} documents"
        length = self.value * (_HOUR if self.unit == "hour" else 1)
        unit = next((u for u in "hms" if length % _UNITS[u] == 0), "s")
        return f"{length / _UNITS[unit]:g}{unit}"

    @property
    def part(self) -> int:
        """How much of time a segment spans: a 24th of the window."""
        if self.value is None:
            return _ENDLESS_PART
        return max(self.value // _PARTS, _FEWEST_DOCUMENTS if self.unit == "documents" else 1)


class EventTime(NamedTuple):
    """When a document arrives, as the window takes it.

    Attributes
    ----------
    time, leaves, least : int
        Its time, the time by which it leaves, and the least such time of its partners, in the window's unit.
    real : int
        Its time in microseconds since 1970.
    flag : str
        As in a ``Verdict``.
    part : int
        The number of the segment for what arrives now; it only grows.
    oldest : int
        Sub-indexes with smaller numbers have nothing in the window.
    confirms : bool
        Whether it confirms the document that was ahead before it: that one's time counts from now on.
    """

    time: int
    leaves: int
    least: int
    real: int
    flag: str
    part: int
    oldest: int
    confirms: bool = False


class FlowClock:
    """Turns timestamps into moments.

    The clock is the latest time that is believed. A document more than a window ahead of it is not believed until a
    second one is there: so one wrong date empties no window.

    Parameters
    ----------
    length : Length
        The window.
    now : callable
        The clock on the wall, in seconds since 1970.

    Attributes
    ----------
    clock : int or None
        In the window's unit; None before the first document.
    pending : int or None
        The time of the document that is ahead and not confirmed, until that one leaves the window.
    """

    def __init__(self, length: Length, now: Callable[[], float]) -> None:
        self.length, self._now = length, now
        self.clock: int | None = None
        self.pending: int | None = None
        self._pending_leaves = 0
        self._arrival = -(1 << 62)
        self._count = 0

    def see(self, timestamp: int | None) -> EventTime:
        """Return the moment of the next document, from its timestamp in microseconds, or None for its arrival."""
        wall = round(self._now() * _SECOND)
        real = wall if timestamp is None else timestamp
        if timestamp is None:
            real = self._arrival = max(self._arrival, wall)
        if self.length.unit in ("documents", "endless"):
            return self._by_number(real)
        return self._by_time(real, wall, given=timestamp is not None)

    def _by_number(self, real: int) -> EventTime:
        number, self._count = self._count, self._count + 1
        self.clock = number
        part = self.length.part
        least = -1 if self.length.value is None else number - self.length.value
        return EventTime(number, number, least, real, "", number // part, least // part)

    def _by_time(self, real: int, wall: int, *, given: bool) -> EventTime:
        length = self.length.value or 0
        scale = _HOUR if self.length.unit == "hour" else 1
        time, flag, confirms = real // scale, "", False
        if given and time > (wall + _BELIEVED) // scale:
            time = wall // scale if self.clock is None else self.clock
            flag, real = "future", time * scale
        clock = time if self.clock is None else self.clock
        leaves = time
        if time > clock + length:
            if self.pending is not None and abs(time - self.pending) <= length:
                clock, self.pending, confirms = max(time, self.pending), None, True
            else:
                self.pending, leaves, flag = time, clock, "ahead"
                self._pending_leaves = clock
        elif time < clock - length:
            flag = "late"
        else:
            clock = max(clock, time)
        self.clock = clock
        part = self.length.part
        least = clock - length
        if self.pending is not None and self._pending_leaves < least:
            self.pending = None
        return EventTime(time, leaves, least, real, flag, clock // part, least // part, confirms)

    def next_event_time(self) -> EventTime:
        """Return the moment of a question: a document that would arrive now, by the flow's clock."""
        clock = self.clock or 0
        if self.length.unit in ("documents", "endless"):
            clock = self._count
        least = -1 if self.length.value is None else clock - self.length.value
        return EventTime(clock, clock, least, 0, "", 0, 0)

    @property
    def seconds(self) -> float | None:
        """The clock in seconds since 1970; None before the first document, and where time is counted in documents."""
        if self.clock is None or self.length.unit in ("documents", "endless"):
            return None
        return self.clock * (_HOUR if self.length.unit == "hour" else 1) / _SECOND

    def state(self) -> dict[str, Any]:
        """Return all that ``restore`` needs."""
        return {
            "clock": self.clock,
            "pending": self.pending,
            "pending_leaves": self._pending_leaves,
            "arrival": self._arrival,
            "count": self._count,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state."""
        self.clock, self.pending = state["clock"], state["pending"]
        self._pending_leaves = state["pending_leaves"]
        self._arrival, self._count = state["arrival"], state["count"]


_FIRST_RECORDS = 1 << 10
#: Room for so many matches is made first.
_FIRST_MATCHES = 64
#: Where fewer documents than the first are held, lists of up to the second move into a new segment's block as a whole,
#: and those of up to the third into a larger block within a segment: many for speed, few for memory.
_COPIES = ((1 << 14, 64, 16), (1 << 16, 16, 16), (1 << 62, 4, 0))
#: Size classes grow by a fourth root of two: four of them span sizes that double.
_CLASSES = np.unique(np.floor(2.0 ** (np.arange(4 * 31) / 4)).astype(np.int64))


class Segment(NamedTuple):
    """A segment: its key, its first document and address, and how many signatures were entered before it."""

    key: int
    document: int
    address: int
    signatures: int


class Found(NamedTuple):
    """What a document matches: arrivals, o, a and b (int64[k, 3]), digests of texts (int64[k, 2])."""

    serials: Integers
    counts: Integers
    digests: Integers


class Scratch(NamedTuple):
    """What a thread that asks an epoch counts and notes in: zeros like ``Lists.met``, and the kernels' room."""

    met: npt.NDArray[np.uint8]
    room: Room


class Epoch:
    """An inverted index of documents, in segments that are dropped whole.

    Parameters
    ----------
    vocabulary : Vocabulary
        The order of features.
    rule : Rule
        The measure and its threshold, in the integers of the kernels.
    kind : int
        What is held (``kernels.window``).
    slots : int
        The size of the table of lists, a power of two. Raising it costs 8 bytes each and makes chance meetings rarer.
    signatures : int
        How many keys of large sets are expected. Raising it makes the first table of their keys longer.
    salt : uint64, optional
        Odd; it says which features share a cell. One that nobody can guess by default.

    Attributes
    ----------
    entered : int
        How many documents were ever entered.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        rule: Rule,
        kind: int,
        slots: int,
        signatures: int = 0,
        salt: np.uint64 | None = None,
    ) -> None:
        self.vocabulary, self.rule, self.kind = vocabulary, rule, kind
        self.segments: deque[Segment] = deque()
        self._chunks = Chunks()
        counters = np.zeros(13, np.int64)
        counters[CURSOR], counters[END] = self._chunks.extend(1)
        counters[SEGMENT] = counters[OLDEST] = counters[CURSOR]
        records = np.zeros((_FIRST_RECORDS, 8), np.int64)
        met = np.zeros(_FIRST_RECORDS, np.uint8)
        plan = plan_of(rule, _CLASSES) if kind == BY_PREFIX else np.empty((0, 4), np.int64)
        self._lists = Lists(
            self._chunks.bases,
            np.zeros(slots, np.uint64),
            records,
            met,
            counters,
            _CLASSES,
            plan,
            new_salt() if salt is None else salt,
            no_buckets(),
        )
        self._first_buckets = first_buckets(slots, signatures)
        self._room = self._scratch()

    @property
    def entered(self) -> int:
        """How many documents were ever entered."""
        return int(self._lists.counters[NEXT])

    @property
    def held(self) -> int:
        """How many documents are there, those that were removed by hand included."""
        return int(self._lists.counters[NEXT] - self._lists.counters[FIRST])

    @property
    def signatures(self) -> int:
        """How many signatures of two features lead to documents that are there."""
        return int(self._lists.counters[SIGNATURES]) - self._signatures_gone

    @property
    def bytes(self) -> int:
        """What it takes of memory: documents, lists, tables."""
        counters, lists = self._lists.counters, self._lists
        tables = lists.heads.nbytes + lists.records.nbytes + lists.met.nbytes + lists.buckets.nbytes
        tables += self.vocabulary.bytes
        return self._chunks.used(int(counters[CURSOR])) + tables

    def begin_segment(self, key: int) -> None:
        """Begin a segment, with memory of its own."""
        counters = self._lists.counters
        if self.segments and counters[CURSOR] == counters[SEGMENT]:
            self.segments.pop()
        else:
            busy = int(counters[CURSOR] - counters[SEGMENT]) > CHUNK
            counters[CURSOR], counters[END] = self._chunks.extend(1, int(counters[CURSOR]), large_pages=busy)
        counters[SEGMENT] = counters[CURSOR]
        counters[COPIES], counters[MERGES] = next(copies for most, *copies in _COPIES if self.held < most)
        if not self.segments:
            counters[OLDEST] = counters[SEGMENT]
        self.segments.append(Segment(key, int(counters[NEXT]), int(counters[SEGMENT]), int(counters[SIGNATURES])))

    def drop_segments(self, least: int, *, whole: bool) -> Integers:
        """Drop the segments whose key is below least; return the arrivals of their documents.

        Parameters
        ----------
        whole : bool
            Whether the last one may go, too: then nothing arrives here any more, and nothing is left.
        """
        counters = self._lists.counters
        first = int(counters[FIRST])
        while len(self.segments) > (0 if whole else 1) and self.segments[0].key < least:
            self.segments.popleft()
        end = self.segments[0].document if self.segments else int(counters[NEXT])
        records = self._rows(first, end)
        gone: Integers = records[records[:, SIZE] > 0, SERIAL]
        if self.segments and end > first:
            counters[FIRST], counters[OLDEST] = end, self.segments[0].address
            self._chunks.drop_below(self.segments[0].address)
            allow(self._lists, self._signatures_gone)
        return gone

    def reopen(self, key: int | None) -> None:
        """Go back to the last segment whose key is at most that, or to none: what arrives goes there again."""
        while self.segments and (key is None or self.segments[-1].key > key):
            self.segments.pop()
        if self.segments:
            self._lists.counters[SEGMENT] = self.segments[-1].address

    def flow(
        self, items: Items, asks: bool, enters: npt.NDArray[np.int8], best: Integers, scores: Any, window: int
    ) -> None:
        """Take documents one after the other; see ``kernels.window.flow``."""
        at = 0
        while True:
            at, status = flow(
                at, items, self.rule, window, self._lists, self._room, self.kind, asks, enters, best, scores
            )
            if status == DONE:
                return
            if status == NEEDS_MEMORY:
                counters = self._lists.counters
                wanted, cursor = int(counters[WANTED]), int(counters[CURSOR])
                counters[CURSOR], counters[END] = self._chunks.extend(wanted, cursor, large_pages=True)
            elif status == NEEDS_BUCKETS:
                self._lists = longer(self._lists, self._first_buckets)
                allow(self._lists, self._signatures_gone)
            else:
                self._grow()

    def matches(
        self, items: Items, begin: int, end: int, window: int, scratch: Scratch | None = None
    ) -> tuple[Integers, Found, int]:
        """Return all that the items [begin, end) match: which item, ascending, what, and how many were compared.

        Parameters
        ----------
        scratch : Scratch, optional
            Where several threads ask, that of this one; ``scratch`` gives it.
        """
        met, room = scratch or (self._lists.met, self._room)
        lists = self._lists._replace(met=met)
        asking, found, size = [np.empty(0, np.int64)], [np.empty((0, 4), np.int64)], _FIRST_MATCHES
        compared = 0
        while begin < end:
            places, out = np.empty(size, np.int64), np.empty((size, 4), np.int64)
            begin, count, some = list_matches(begin, end, items, self.rule, window, lists, room, self.kind, places, out)
            compared += some
            asking.append(places[:count])
            found.append(out[:count])
            size *= 8
        rows = np.concatenate(found)
        records = lists.records[rows[:, 0]]
        return np.concatenate(asking), Found(records[:, SERIAL], rows[:, 1:], records[:, DIGEST:]), compared

    def overlaps(self, items: Items, moment: EventTime, window: int) -> Found:
        """Return what the first of the items has in common with every partner in time, where that is anything."""
        records = self._lists.records
        out = np.zeros((len(records), 3), np.int64)
        overlap_with_all(items, self._lists, self._room.known, out)
        rows = np.flatnonzero((out[:, 0] > 0) & _in_time(records, moment, window))
        return Found(records[rows, SERIAL], out[rows], records[rows, DIGEST:])

    def values(self, moment: EventTime, window: int) -> tuple[Integers, Words]:
        """Return the arrivals of the fingerprints that are partners in time, and the fingerprints."""
        first, last = int(self._lists.counters[FIRST]), int(self._lists.counters[NEXT])
        features, _, records = self.read(first, last)
        alive = _in_time(records, moment, window)
        return records[alive, SERIAL], features[alive]

    def remove(self, serial: int) -> bool:
        """Take a document out; return whether it was there."""
        first, last = int(self._lists.counters[FIRST]), int(self._lists.counters[NEXT])
        rows = np.arange(first, last) & (len(self._lists.records) - 1)
        found = rows[(self._lists.records[rows, SERIAL] == serial) & (self._lists.records[rows, SIZE] > 0)]
        self._lists.records[found, SIZE] = 0
        return bool(len(found))

    def remove_from(self, serial: int) -> None:
        """Take out the documents that arrived as number serial or later."""
        self._lists.records[self._lists.records[:, SERIAL] >= serial, SIZE] = 0

    def read(self, first: int, last: int) -> tuple[Words, Integers, Integers]:
        """Return the features of the documents [first, last) that are there, where each begins, and their records."""
        heads = np.empty(last - first + 1, np.int64)
        words = self.vocabulary.features
        read_back(first, last, self._lists, words, heads, np.empty(0, np.uint64))
        features = np.empty(int(heads[-1]), np.uint64)
        if len(features):
            read_back(first, last, self._lists, words, heads, features)
        records = self._rows(first, last)
        present = np.append(records[:, SIZE] > 0, True)
        return features, heads[present], records[present[:-1]]

    def sample(self, documents: int) -> Words:
        """Return the features of the last so many documents."""
        last = int(self._lists.counters[NEXT])
        return self.read(max(last - documents, int(self._lists.counters[FIRST])), last)[0]

    @property
    def _signatures_gone(self) -> int:
        return self.segments[0].signatures if self.segments else 0

    def _rows(self, first: int, last: int) -> Integers:
        rows: Integers = self._lists.records[np.arange(first, last) & (len(self._lists.records) - 1)]
        return rows

    def scratch(self) -> Scratch:
        """Return what a thread needs to ask while others do; good until documents enter."""
        return Scratch(np.zeros_like(self._lists.met), self._scratch())

    def _scratch(self) -> Room:
        classes = len(_CLASSES)
        return Room(
            np.empty(len(self._lists.records), np.int64),
            np.empty((classes, 2), np.int64),
            np.empty(32 * classes, np.int64),
            np.zeros(max(len(self.vocabulary.features), 1), np.uint8),
        )

    def _grow(self) -> None:
        """Double the ring of records."""
        lists = self._lists
        first, last = int(lists.counters[FIRST]), int(lists.counters[NEXT])
        size = 2 * len(lists.records)
        records, met = np.zeros((size, 8), np.int64), np.zeros(size, np.uint8)
        documents = np.arange(first, last)
        records[documents & (size - 1)] = lists.records[documents & (size // 2 - 1)]
        self._lists = lists._replace(records=records, met=met)
        self._room = self._scratch()


def _in_time(records: Integers, moment: EventTime, window: int) -> npt.NDArray[np.bool_]:
    alive: npt.NDArray[np.bool_] = (records[:, LEAVES] >= moment.least) & (
        np.abs(records[:, TIME] - moment.time) <= window
    )
    return alive


def items_of(
    features: Words,
    heads: Integers,
    arranged: tuple[Words, Integers],
    keys: Words,
    columns: tuple[Integers, Integers, Integers, Integers, Integers],
) -> Items:
    """Return documents as the kernels take them; columns: times, leaves, least, serials, digests."""
    return Items(features, arranged[0], heads, arranged[1], keys, *columns)


Floats = npt.NDArray[np.float64]

#: A first epoch is made anew when it has so many documents, with tables of so many slots.
_STAGES = {0: 1 << 16, 256: 1 << 18, 1024: 1 << 19, 4096: 1 << 20, 16384: 1 << 22}
_LAST_STAGE = max(_STAGES)
#: An epoch lasts for so many documents at least, and at most: their numbers have 26 bits.
_FEWEST, _MOST = 4 * _LAST_STAGE, 1 << 24
#: Orders are made from so many documents.
_SAMPLE = 8192
#: More than any difference of times.
ENDLESS = 1 << 61


class Arrivals(NamedTuple):
    """Documents in order of arrival, all within one segment.

    Attributes
    ----------
    block : Block
        Their features, and the digests of their texts.
    times, leaves, least, serials : int64[n]
        When each happened; the time by which it leaves; the least such time of its partners; its number.
    enters : int8[n]
        0: it never enters the window; 1: if it matches nothing; 2: always.
    """

    block: Block
    times: Integers
    leaves: Integers
    least: Integers
    serials: Integers
    enters: npt.NDArray[np.int8]

    def between(self, heads: Integers, begin: int, end: int) -> Arrivals:
        """Return the documents [begin, end); heads: where the features of each begin."""
        part, (block, times, leaves, least, serials, enters) = slice(begin, end), self
        block = part_of(block, heads, begin, end)
        return Arrivals(block, times[part], leaves[part], least[part], serials[part], enters[part])


def part_of(block: Block, heads: Integers, begin: int, end: int) -> Block:
    """Return the documents [begin, end) of a block; heads: where the features of each begin."""
    part = slice(begin, end)
    return Block(
        block.features[heads[begin] : heads[end]],
        block.sizes[part],
        block.marks[part],
        block.text_marks[part],
        block.text_bytes[part],
        block.weights,
    )


class Best(NamedTuple):
    """The best match of each document: its number or -1, o, a and b, their similarity, and its text's digest."""

    serials: Integers
    counts: Integers
    similarity: Floats
    digests: Words


class Window:
    """Documents of some time, and whom a new one matches among them.

    Parameters
    ----------
    recipe : Recipe
        What matches. Second steps are not looked at.
    length : int or None
        The most that the times of partners may differ; None for endless.

    Raises
    ------
    RecipeError
        If the recipe gives documents no keys.
    """

    def __init__(self, recipe: Recipe, length: int | None) -> None:
        self._measure = recipe.measure
        self._kind, self._rule, self._keys = kind_of(recipe)
        self._length = ENDLESS if length is None else length
        self._epochs = [self._epoch(empty_vocabulary(), _STAGES[0])]
        self._stages = sorted(_STAGES)[1:]
        self._lasts = _FEWEST

    @property
    def held(self) -> int:
        """How many documents are held, removed ones included until their segment ends."""
        return sum(g.held for g in self._epochs)

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return sum(g.bytes for g in self._epochs)

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return len({segment.key for g in self._epochs for segment in g.segments})

    def begin_segment(self, key: int) -> None:
        """Begin a segment; what arrives goes there until the next one begins."""
        newest = self._epochs[-1]
        if not self._stages and newest.entered >= self._lasts:
            self._lasts = min(max(_FEWEST, self.held), _MOST)
            vocabulary = self._vocabulary(newest)
            slots = max(_STAGES[_LAST_STAGE], 1 << (4 * self._lasts).bit_length())
            self._epochs.append(self._epoch(vocabulary, slots, newest.signatures))
        self._epochs[-1].begin_segment(key)

    def drop_segments(self, least: int) -> Integers:
        """Drop all segments whose key is below least; return the numbers of the documents that were there."""
        newest = self._epochs[-1]
        gone = [g.drop_segments(least, whole=g is not newest) for g in self._epochs]
        self._epochs = [g for g in self._epochs if g is newest or g.segments]
        return np.concatenate([np.empty(0, np.int64), *gone])

    def take(self, arrivals: Arrivals, *, asks: bool = True) -> Best:
        """Find the best match of each document among those before it, and enter those that may.

        Parameters
        ----------
        asks : bool
            False to enter documents without looking for matches.
        """
        count = len(arrivals.serials)
        best, scores = np.full((count, 6), -1, np.int64), np.full(count, -1.0)
        heads = _heads(arrivals.block.sizes)
        begin = 0
        while begin < count:
            end = count
            if self._stages:
                self._renew()
                if self._stages:
                    end = min(end, begin + self._stages[0] - self._epochs[-1].entered)
            self._flow(arrivals, heads, begin, end, asks, best, scores)
            begin = end
        return Best(best[:, 0], best[:, 1:4], scores, best[:, 4:].view(np.uint64))

    def matches_each(self, arrivals: Arrivals) -> tuple[Integers, Found, Floats]:
        """Return all that documents match among what is held, themselves too where they are.

        Returns
        -------
        places : int64[k]
            Which of the documents, ascending.
        found, similarity : Found, float64[k]
            What each matches, the most similar first, then the first to arrive.
        """
        count = len(arrivals.serials)
        found = [g.matches(self._items(arrivals, g), 0, count, self._length) for g in self._epochs if g.held]
        serials, counts, digests = _concatenated([matched for _, matched, _ in found])
        scores = self._similarities(counts)
        place = np.concatenate([np.empty(0, np.int64), *(asking for asking, _, _ in found)])
        order = np.lexsort((serials, -scores, place))
        return place[order], Found(serials[order], counts[order], digests[order]), scores[order]

    def nearest(self, block: Block, moment: EventTime) -> tuple[Found, Floats]:
        """Return all partners in time that have anything in common with a document, the most similar first."""
        if not len(block.features):
            return self._sorted([])
        if self._kind == FINGERPRINTS:
            found = []
            for g in self._epochs:
                serials, values = g.values(moment, self._length)
                differing = np.bitwise_count(values ^ block.features[0]).astype(np.int64)
                counts = np.full((len(serials), 3), 64)
                counts[:, 0] -= differing
                found.append(Found(serials, counts, np.zeros((len(serials), 2), np.int64)))
            return self._sorted(found)
        one = np.zeros(1, np.int64)
        arrivals = Arrivals(block, one, one, one, one, np.zeros(1, np.int8))
        return self._sorted(
            [g.overlaps(self._items(arrivals, g), moment, self._length) for g in self._epochs if g.held]
        )

    def remove(self, serial: int) -> None:
        """Take a document out."""
        for g in self._epochs:
            g.remove(serial)

    def take_back(self, first: int, key: int | None) -> None:
        """Take out all documents with that number or a higher one, and the segments that began with them.

        Parameters
        ----------
        key : int or None
            That of the last segment before them; None where there was none.
        """
        self._epochs[-1].reopen(key)
        while len(self._epochs) > 1 and not self._epochs[-1].segments:
            self._epochs.pop()
            self._epochs[-1].reopen(key)
        for g in self._epochs:
            g.remove_from(first)

    def _flow(
        self, arrivals: Arrivals, heads: Integers, begin: int, end: int, asks: bool, best: Integers, scores: Floats
    ) -> None:
        part = slice(begin, end)
        some = arrivals.between(heads, begin, end)
        newest = self._epochs[-1]
        nobody = np.zeros(end - begin, np.int8)
        for g in self._epochs:
            if g is newest:
                g.flow(self._items(some, g), asks, some.enters, best[part], scores[part], self._length)
            elif asks and g.held:
                g.flow(self._items(some, g), True, nobody, best[part], scores[part], self._length)

    def _items(self, arrivals: Arrivals, epoch: Epoch) -> Items:
        block = arrivals.block
        heads = _heads(block.sizes)
        return items_of(
            block.features,
            heads,
            epoch.vocabulary.arranged(block.features, heads),
            self._keys(block.features, block.sizes),
            (
                arrivals.times,
                arrivals.leaves,
                arrivals.least,
                arrivals.serials,
                block.text_marks.view(np.int64),
            ),
        )

    def _epoch(self, vocabulary: Vocabulary, slots: int, signatures: int = 0) -> Epoch:
        return Epoch(vocabulary, self._rule, self._kind, slots, signatures)

    def _vocabulary(self, epoch: Epoch) -> Vocabulary:
        return empty_vocabulary() if self._kind == FINGERPRINTS else vocabulary_of(epoch.sample(_SAMPLE))

    def _renew(self) -> None:
        """Make the only epoch anew with an order from its documents, once it has enough for the next stage."""
        young = self._epochs[-1]
        stage = 0
        while self._stages and young.entered >= self._stages[0]:
            stage = self._stages.pop(0)
        if not stage:
            return
        fresh = self._epoch(self._vocabulary(young), _STAGES[stage], young.signatures)
        segments = list(young.segments)
        ends = [segment.document for segment in segments[1:]] + [young.entered]
        for segment, end in zip(segments, ends, strict=True):
            fresh.begin_segment(segment.key)
            features, heads, records = young.read(segment.document, end)
            sizes = np.diff(heads)
            keys = self._keys(features, sizes)
            times, leaves = records[:, TIME], records[:, LEAVES]
            columns = (times, leaves, leaves, records[:, SERIAL], records[:, DIGEST:])
            items = items_of(features, heads, fresh.vocabulary.arranged(features, heads), keys, columns)
            always = np.full(len(sizes), 2, np.int8)
            fresh.flow(items, False, always, np.empty((0, 6), np.int64), np.empty(0), self._length)
        self._epochs[-1] = fresh

    def _sorted(self, found: list[Found]) -> tuple[Found, Floats]:
        serials, counts, digests = _concatenated(found)
        scores = self._similarities(counts)
        order = np.lexsort((serials, -scores))
        return Found(serials[order], counts[order], digests[order]), scores[order]

    def _similarities(self, counts: Integers) -> Floats:
        return similarities(self._measure if self._measure in SET_MEASURES else "hamming", counts)


def _concatenated(found: list[Found]) -> Found:
    empty = Found(np.empty(0, np.int64), np.empty((0, 3), np.int64), np.empty((0, 2), np.int64))
    return Found(*(np.concatenate(columns) for columns in zip(empty, *found, strict=True)))


def _heads(sizes: Integers) -> Integers:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
