"""The sliding window: documents of the recent past, and whom a new one matches among them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.features.store import Block, row_heads
from neardup.kernels.window import BY_KEYS, BY_PREFIX, FINGERPRINTS, WindowDocuments
from neardup.recipe import Recipe
from neardup.recipe.measures import SET_MEASURES, Rule, rule, similarities
from neardup.search.epoch import ENDLESS, Epoch, Vocabulary, WindowMatches, empty_vocabulary, items_of
from neardup.search.lsh import bands_of, keys_of
from neardup.search.renewal import Renewal

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]
Keys = Callable[[Words, Integers], Words]

_BITS = 64
_NOBODY = np.empty(0, np.int64)


def check_keys(recipe: Recipe) -> None:
    """Refuse a recipe whose documents have no keys, so that a window could only compare with all of them."""
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
    """Return what a window holds for a recipe, its rule, and what gives documents' keys from features and sizes."""
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


class WindowLength(NamedTuple):
    """How long a window is: ``value`` of ``time`` (microseconds), ``hour`` or ``documents``, or ``endless`` (None)."""

    unit: str
    value: int | None

    @classmethod
    def parse(cls, window: object, by: str = "time") -> Self:
        """Return what a user wrote; refuse what is not above 0, or not in whole hours where these are counted."""
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
    """Turns timestamps into moments, by a clock on the wall in seconds since 1970.

    The clock of the flow is the latest time that is believed, in the window's unit. A document more than a window ahead
    of it is not believed until a second one is there: so one wrong date empties no window. ``pending`` is the time of
    that document until it leaves the window.
    """

    def __init__(self, length: WindowLength, now: Callable[[], float]) -> None:
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


Floats = npt.NDArray[np.float64]

#: A first epoch is made anew from so many documents on, with tables of so many slots.
_STAGES = {0: 1 << 16, 256: 1 << 20, 4096: 1 << 22}
_LAST_STAGE = max(_STAGES)
#: An epoch lasts for so many documents at least, and at most: their numbers have 26 bits.
_FEWEST, _MOST = 1 << 16, 1 << 24
#: Orders are made from so many documents.
_SAMPLE = 8192
#: For each document that arrives so many of an older epoch are read for the next one, of up to so many at once. Raising
#: the first makes the next epoch be there sooner, and single documents take longer until then.
_RATE, _AT_ONCE = 8, 256


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
        block = slice_block(block, heads, begin, end)
        return Arrivals(block, times[part], leaves[part], least[part], serials[part], enters[part])


def slice_block(block: Block, heads: Integers, begin: int, end: int) -> Block:
    """Return the documents [begin, end) of a block; heads: where the features of each begin."""
    if end - begin == len(block.sizes):
        return block
    part = slice(begin, end)
    return Block(
        block.features[heads[begin] : heads[end]],
        block.sizes[part],
        block.set_digests[part],
        block.text_digests[part],
        block.text_bytes[part],
        block.weights,
    )


class BestMatches(NamedTuple):
    """The best match of each document: its number or -1, o, a and b, their similarity, and its text's digest."""

    serials: Integers
    counts: Integers
    similarity: Floats
    digests: Words


class Window:
    """Documents of some time, and whom a new one matches among them by the recipe's first step.

    The times of partners differ by ``length`` at most; None is endless.
    """

    def __init__(self, recipe: Recipe, length: int | None) -> None:
        self._measure = recipe.measure
        self._kind, self._rule, self._keys = kind_of(recipe)
        self._length = ENDLESS if length is None else length
        self._epochs = [self._epoch(_STAGES[0], empty_vocabulary())]
        self._renewal: Renewal | None = None
        self._stages = sorted(_STAGES)[1:]
        self._lasts = _FEWEST

    @property
    def held(self) -> int:
        """How many documents are held, removed ones included until their segment ends."""
        return sum(g.held for g in self._epochs)

    @property
    def bytes(self) -> int:
        """What it takes of memory."""
        return sum(g.bytes for g in self._all)

    @property
    def segments(self) -> int:
        """How many segments there are."""
        return len({segment.key for g in self._epochs for segment in g.segments})

    @property
    def _all(self) -> list[Epoch]:
        """Return the epochs, and the one that is being made."""
        made = self._renewal and self._renewal.epoch
        return [*self._epochs, made] if made else self._epochs

    def begin_segment(self, key: int) -> None:
        """Begin a segment; what arrives goes there until the next one begins."""
        # One that is not done would stay until Python looks for garbage, and hold on to the epoch it was made from.
        if self._renewal and self._renewal.epoch and self._renewal.is_done and not self._renewal.copies:
            self._epochs.append(self._renewal.epoch)
            self._renewal = None
        self._epochs[-1].begin_segment(key)

    def drop_segments(self, least: int) -> Integers:
        """Drop all segments whose key is below least; return the numbers of the documents that were there."""
        if not any(g.segments and g.segments[0].key < least for g in self._epochs):
            return _NOBODY
        newest = self._epochs[-1]
        gone = [g.drop_segments(least, whole=g is not newest) for g in self._epochs]
        self._epochs = [g for g in self._epochs if g is newest or g.segments]
        return np.concatenate(gone)

    def take(self, arrivals: Arrivals, *, asks: bool = True) -> BestMatches:
        """Find, if it asks, the best match of each document among those before it, and enter those that may."""
        count = len(arrivals.serials)
        best, scores = np.empty((count, 6), np.int64), np.empty(count)
        best.fill(-1)
        scores.fill(-1.0)
        heads = row_heads(arrivals.block.sizes)
        for begin in range(0, count, _AT_ONCE):
            end = min(begin + _AT_ONCE, count)
            self._renew(end - begin)
            self._flow(arrivals, heads, begin, end, asks, best, scores)
        return BestMatches(best[:, 0], best[:, 1:4], scores, best[:, 4:].view(np.uint64))

    def matches_each(self, arrivals: Arrivals) -> tuple[Integers, WindowMatches, Floats]:
        """Return all matches of documents among what is held, which may include themselves.

        These are the place of each asking document, ascending, its matches and their similarity: the most similar
        first, then the first to arrive.
        """
        count, heads = len(arrivals.serials), row_heads(arrivals.block.sizes)
        found = [g.matches(self._items(arrivals, heads, g), 0, count, self._length) for g in self._epochs if g.held]
        serials, counts, digests = _concatenated([matched for _, matched, _ in found])
        scores = self._similarities(counts)
        place = np.concatenate([np.empty(0, np.int64), *(asking for asking, _, _ in found)])
        order = np.lexsort((serials, -scores, place))
        return place[order], WindowMatches(serials[order], counts[order], digests[order]), scores[order]

    def nearest(self, block: Block, moment: EventTime) -> tuple[WindowMatches, Floats]:
        """Return all partners in time that have anything in common with a document, the most similar first."""
        if not len(block.features):
            return self._sorted([])
        if self._kind == FINGERPRINTS:
            found = []
            for g in self._epochs:
                serials, values = g.values(moment.time, moment.least, self._length)
                differing = np.bitwise_count(values ^ block.features[0]).astype(np.int64)
                counts = np.full((len(serials), 3), 64)
                counts[:, 0] -= differing
                found.append(WindowMatches(serials, counts, np.zeros((len(serials), 2), np.int64)))
            return self._sorted(found)
        one = np.zeros(1, np.int64)
        arrivals = Arrivals(block, one, one, one, one, np.zeros(1, np.int8))
        return self._sorted(
            [
                g.overlaps(self._items(arrivals, row_heads(block.sizes), g), moment.time, moment.least, self._length)
                for g in self._epochs
                if g.held
            ]
        )

    def remove(self, serial: int) -> None:
        """Take a document out."""
        for g in self._all:
            g.remove(serial)

    def take_back(self, first: int, key: int | None) -> None:
        """Take out all documents with that number or a higher one, and the segments that began with them.

        The key is that of the last segment before them; None where there was none.
        """
        for g in self._all:
            g.reopen(key)
            g.remove_from(first)
        while len(self._epochs) > 1 and not self._epochs[-1].segments:
            self._epochs.pop()

    def _flow(
        self, arrivals: Arrivals, heads: Integers, begin: int, end: int, asks: bool, best: Integers, scores: Floats
    ) -> None:
        if end - begin < len(arrivals.serials):
            part = slice(begin, end)
            arrivals = arrivals.between(heads, begin, end)
            heads, best, scores = heads[begin : end + 1] - heads[begin], best[part], scores[part]
        newest = self._epochs[-1]
        for g in self._epochs:
            if g is newest:
                g.flow(self._items(arrivals, heads, g), asks, arrivals.enters, best, scores, self._length)
            elif asks and g.held:
                nobody = np.zeros(end - begin, np.int8)
                g.flow(self._items(arrivals, heads, g), True, nobody, best, scores, self._length)

    def _items(self, arrivals: Arrivals, heads: Integers, epoch: Epoch) -> WindowDocuments:
        block = arrivals.block
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
                block.text_digests.view(np.int64),
            ),
        )

    def _epoch(self, slots: int, vocabulary: Vocabulary, signatures: int = 0) -> Epoch:
        return Epoch(vocabulary, self._rule, self._kind, slots, signatures)

    def _renew(self, arriving: int) -> None:
        """Go on with the next epoch while so many documents arrive; it takes the place of a young one once it is made.

        Any order of features gives the same answers, so it does not matter when.
        """
        newest = self._epochs[-1]
        if self._renewal is None:
            young = bool(self._stages) and newest.entered >= self._stages[0]
            if young:
                while self._stages and newest.entered >= self._stages[0]:
                    slots = _STAGES[self._stages.pop(0)]
            elif not self._stages and newest.entered >= self._lasts:
                self._lasts = min(max(_FEWEST, self.held), _MOST)
                slots = max(_STAGES[_LAST_STAGE], 1 << (4 * self._lasts).bit_length())
            else:
                return
            # Fingerprints have no order.
            sample = 0 if self._kind == FINGERPRINTS else _SAMPLE
            self._renewal = Renewal(newest, partial(self._epoch, slots), self._keys, sample, copies=young)
        self._renewal.advance(_RATE * arriving)
        if self._renewal.epoch and self._renewal.is_done and self._renewal.copies:
            self._epochs[-1] = self._renewal.epoch
            self._renewal = None

    def _sorted(self, found: list[WindowMatches]) -> tuple[WindowMatches, Floats]:
        serials, counts, digests = _concatenated(found)
        scores = self._similarities(counts)
        order = np.lexsort((serials, -scores))
        return WindowMatches(serials[order], counts[order], digests[order]), scores[order]

    def _similarities(self, counts: Integers) -> Floats:
        return similarities(self._measure if self._measure in SET_MEASURES else "hamming", counts)


def _concatenated(found: list[WindowMatches]) -> WindowMatches:
    empty = WindowMatches(np.empty(0, np.int64), np.empty((0, 3), np.int64), np.empty((0, 2), np.int64))
    return WindowMatches(*(np.concatenate(columns) for columns in zip(empty, *found, strict=True)))
