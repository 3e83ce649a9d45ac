"""A part of the window under one order of features: an index that begins empty and is dropped hour by hour."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.comparing import overlap_with_all
from neardup._kernels.flowing import (
    BY_PREFIX,
    DONE,
    NEEDS_MEMORY,
    NEEDS_SHELVES,
    Items,
    Room,
    flow,
    list_matches,
    read_back,
)
from neardup._kernels.posting import (
    COPIES,
    COUPLES,
    CURSOR,
    DIGEST,
    END,
    FIRST,
    HOUR,
    LEAVES,
    MERGES,
    NEXT,
    OLDEST,
    SERIAL,
    SIZE,
    TIME,
    WANTED,
    Lists,
)
from neardup.measures import Rule
from neardup.window.chunks import CHUNK, Chunks
from neardup.window.couples import allow, first_shelves, longer, new_salt, no_shelves, plan_of
from neardup.window.times import Moment
from neardup.window.vocabulary import Vocabulary

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]

_FIRST_RECORDS = 1 << 10
#: Where fewer documents than the first are held, lists of up to the second move into a new hour's block as a whole, and
#: those of up to the third into a larger block within an hour: many for speed, few for memory.
_COPIES = ((1 << 14, 64, 16), (1 << 16, 16, 16), (1 << 62, 4, 0))
#: Size classes grow by a fourth root of two: four of them span sizes that double.
_CLASSES = np.unique(np.floor(2.0 ** (np.arange(4 * 31) / 4)).astype(np.int64))


class Hour(NamedTuple):
    """A sub-index: its key, its first document and address, and how many couples were entered before it."""

    key: int
    document: int
    address: int
    couples: int


class Found(NamedTuple):
    """What a document matches: arrivals, o, a and b (int64[k, 3]), digests of texts (int64[k, 2])."""

    serials: Integers
    counts: Integers
    digests: Integers


class Generation:
    """An inverted index of documents, in sub-indexes that are dropped whole.

    Parameters
    ----------
    vocabulary : Vocabulary
        The order of features.
    rule : Rule
        The measure and its threshold, in the integers of the kernels.
    kind : int
        What is held (``_kernels.flowing``).
    slots : int
        The size of the table of lists, a power of two. Raising it costs 8 bytes each and makes chance meetings rarer.
    couples : int
        How many keys of large sets are expected. Raising it makes the first table of their keys longer.

    Attributes
    ----------
    entered : int
        How many documents were ever entered.
    """

    def __init__(self, vocabulary: Vocabulary, rule: Rule, kind: int, slots: int, couples: int) -> None:
        self.vocabulary, self.rule, self.kind = vocabulary, rule, kind
        self.hours: deque[Hour] = deque()
        self._chunks = Chunks()
        counters = np.zeros(13, np.int64)
        counters[CURSOR], counters[END] = self._chunks.extend(1)
        counters[HOUR] = counters[OLDEST] = counters[CURSOR]
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
            new_salt(),
            no_shelves(),
        )
        self._first_shelves = first_shelves(slots, couples)
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
    def couples(self) -> int:
        """How many couples of features lead to documents that are there."""
        return int(self._lists.counters[COUPLES]) - self._couples_gone

    @property
    def bytes(self) -> int:
        """What it takes of memory: documents, lists, tables."""
        counters, lists = self._lists.counters, self._lists
        tables = lists.heads.nbytes + lists.records.nbytes + lists.met.nbytes + lists.shelves.nbytes
        tables += self.vocabulary.bytes
        return self._chunks.used(int(counters[CURSOR])) + tables

    def begin_hour(self, key: int) -> None:
        """Begin a sub-index, with memory of its own."""
        counters = self._lists.counters
        if self.hours and counters[CURSOR] == counters[HOUR]:
            self.hours.pop()
        else:
            busy = int(counters[CURSOR] - counters[HOUR]) > CHUNK
            counters[CURSOR], counters[END] = self._chunks.extend(1, int(counters[CURSOR]), large_pages=busy)
        counters[HOUR] = counters[CURSOR]
        counters[COPIES], counters[MERGES] = next(copies for most, *copies in _COPIES if self.held < most)
        if not self.hours:
            counters[OLDEST] = counters[HOUR]
        self.hours.append(Hour(key, int(counters[NEXT]), int(counters[HOUR]), int(counters[COUPLES])))

    def drop_hours(self, least: int, *, whole: bool) -> Integers:
        """Drop the sub-indexes whose key is below least; return the arrivals of their documents.

        Parameters
        ----------
        whole : bool
            Whether the last one may go, too: then nothing arrives here any more, and nothing is left.
        """
        counters = self._lists.counters
        first = int(counters[FIRST])
        while len(self.hours) > (0 if whole else 1) and self.hours[0].key < least:
            self.hours.popleft()
        end = self.hours[0].document if self.hours else int(counters[NEXT])
        records = self._rows(first, end)
        gone: Integers = records[records[:, SIZE] > 0, SERIAL]
        if self.hours and end > first:
            counters[FIRST], counters[OLDEST] = end, self.hours[0].address
            self._chunks.drop_below(self.hours[0].address)
            allow(self._lists, self._couples_gone)
        return gone

    def reopen(self, key: int | None) -> None:
        """Go back to the last sub-index whose key is at most that, or to none: what arrives goes there again."""
        while self.hours and (key is None or self.hours[-1].key > key):
            self.hours.pop()
        if self.hours:
            self._lists.counters[HOUR] = self.hours[-1].address

    def flow(
        self, items: Items, asks: bool, enters: npt.NDArray[np.int8], best: Integers, scores: Any, window: int
    ) -> None:
        """Take documents one after the other; see ``_kernels.flowing.flow``."""
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
            elif status == NEEDS_SHELVES:
                self._lists = longer(self._lists, self._first_shelves)
                allow(self._lists, self._couples_gone)
            else:
                self._grow()

    def matches(self, items: Items, window: int) -> Found:
        """Return all that the first of the items matches."""
        size = 64
        while True:
            out = np.empty((size, 4), np.int64)
            count = list_matches(items, self.rule, window, self._lists, self._room, self.kind, out)
            if count >= 0:
                break
            size *= 8
        records = self._lists.records[out[:count, 0]]
        return Found(records[:, SERIAL], out[:count, 1:], records[:, DIGEST:])

    def matches_each(self, items: Items, places: Sequence[int], window: int) -> list[Found]:
        """Return all that each of some of the items matches."""
        return [self.matches(_from(items, place), window) for place in places]

    def overlaps(self, items: Items, moment: Moment, window: int) -> Found:
        """Return what the first of the items has in common with every partner in time, where that is anything."""
        records = self._lists.records
        out = np.zeros((len(records), 3), np.int64)
        overlap_with_all(items, self._lists, self._room.known, out)
        rows = np.flatnonzero((out[:, 0] > 0) & _in_time(records, moment, window))
        return Found(records[rows, SERIAL], out[rows], records[rows, DIGEST:])

    def values(self, moment: Moment, window: int) -> tuple[Integers, Words]:
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
    def _couples_gone(self) -> int:
        return self.hours[0].couples if self.hours else 0

    def _rows(self, first: int, last: int) -> Integers:
        rows: Integers = self._lists.records[np.arange(first, last) & (len(self._lists.records) - 1)]
        return rows

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


def _from(items: Items, place: int) -> Items:
    """Return the items from one on, which is then the first."""
    return Items(items.features, items.order, *(column[place:] for column in items[2:]))


def _in_time(records: Integers, moment: Moment, window: int) -> npt.NDArray[np.bool_]:
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


__all__ = ["BY_PREFIX", "Found", "Generation", "Hour", "items_of"]
