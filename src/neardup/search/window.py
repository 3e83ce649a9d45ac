"""The sliding window: documents of the recent past, among which each new document is matched."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError, quoted
from neardup.features.store import Block, row_heads
from neardup.kernels import Floats, Integers, Words
from neardup.kernels.bounds import OVERLAP
from neardup.kernels.window import BY_KEYS, BY_PREFIX, FINGERPRINTS, WindowDocuments
from neardup.recipe import Recipe
from neardup.recipe.measures import Rule, rule, similarities
from neardup.search.lsh import bands_of, keys_of
from neardup.search.window_index import (
    ENDLESS,
    Epoch,
    EpochBuilder,
    Vocabulary,
    WindowMatches,
    empty_vocabulary,
)

Keys = Callable[[Words, Integers], Words]

FINGERPRINT_BITS = 64
_NO_SERIALS = np.empty(0, np.int64)


def check_keys(recipe: Recipe) -> None:
    """Raise ``RecipeError`` if a recipe gives documents no keys, so that only comparison with all would be left."""
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
    """Return the kind of a recipe's window, its rule, and a function from features and sizes to keys."""
    check_keys(recipe)
    if recipe.measure == "hamming":
        distance = int(recipe.threshold)
        # The formula of a similarity of bits is that of overlap.
        return FINGERPRINTS, Rule(OVERLAP, distance, 1, 0, 1), partial(block_keys, distance=distance)
    found = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
    if recipe.search == "lsh":
        plan = bands_of(recipe)
        return BY_KEYS, found, lambda features, sizes: keys_of((features, sizes), plan, recipe.seed)
    return BY_PREFIX, found, lambda features, sizes: np.empty((len(sizes), 0), np.uint64)


def block_keys(features: Words, sizes: Integers, distance: int) -> Words:
    """Return the ``distance + 1`` blocks of each fingerprint, with their places.

    Two fingerprints that differ in at most ``distance`` bits have an equal block (Manku, Jain & Das Sarma, WWW 2007,
    3). Raising ``distance`` makes blocks shorter, so that more documents share one.
    """
    values = np.zeros(len(sizes), np.uint64)
    values[sizes > 0] = features
    blocks = distance + 1
    ends = np.arange(blocks + 1) * FINGERPRINT_BITS // blocks
    keys = np.empty((len(values), blocks), np.uint64)
    for b in range(blocks):
        width = int(ends[b + 1] - ends[b])
        mask = np.uint64((1 << width) - 1)
        keys[:, b] = (values >> np.uint64(ends[b])) & mask
        # Places go above the bits; a block of all 64 bits is the only one.
        keys[:, b] += np.uint64(b) << np.uint64(min(width, FINGERPRINT_BITS - 7)) if blocks > 1 else np.uint64(0)
    return keys


_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
_UNITS = {"s": _SECOND, "m": 60 * _SECOND, "h": _HOUR, "d": 24 * _HOUR, "w": 7 * 24 * _HOUR}
_LENGTH = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,20}))? ?([smhdw])")
_DOCUMENTS = re.compile(r"([0-9][0-9_,]{0,30}) ?documents?")
#: The longest windows: 36,000 years, and a trillion documents.
_MAX_LENGTH, _MAX_DOCUMENTS = 1 << 60, 10**12
_LENGTH_FORMS = "give a time as 24h, 90m or 7d, a number of documents as '8000 documents', or endless"
#: The number of segments of a window: in a window of a day, a segment is an hour.
_SEGMENTS = 24
_MIN_DOCUMENTS = 64
_ENDLESS_SEGMENT = 1 << 14
#: Timestamps further ahead of the wall clock than this are rejected as wrong.
_MAX_AHEAD = _HOUR


def _parse_time(window: object) -> int:
    """Return a length of time in microseconds."""
    if isinstance(window, timedelta):
        length = window // timedelta(microseconds=1)
    elif isinstance(window, str) and (found := _LENGTH.fullmatch(window.strip())):
        decimals = found[2] or ""
        length, rest = divmod(int(found[1] + decimals) * _UNITS[found[3]], 10 ** len(decimals))
        if rest:
            raise RecipeError(f"window {quoted(window)} is not a whole number of microseconds; {_LENGTH_FORMS}")
    else:
        raise RecipeError(f"window {quoted(window)} is not a length; {_LENGTH_FORMS}")
    if not 0 < length < _MAX_LENGTH:
        raise RecipeError(
            f"window {quoted(window)} is not above 0 and below {_MAX_LENGTH // _UNITS['d'] // 365:,} years; "
            f"{_LENGTH_FORMS}"
        )
    return length


class WindowLength(NamedTuple):
    """How long a window is: ``value`` of ``time`` (microseconds), ``hour`` or ``documents``, or ``endless`` (None)."""

    unit: str
    value: int | None

    @classmethod
    def parse(cls, window: object, by: str = "time") -> Self:
        """Parse a length, in whole microseconds; ``str`` of the result gives the same length.

        Raises ``RecipeError`` if it is not above 0 or too large, or not in whole hours for ``by`` hour.
        """
        if by not in ("time", "hour"):
            raise RecipeError(f"window_by {by!r} is not known; choose time or hour")
        if window is None or window == "endless":
            return cls("endless", None)
        if isinstance(window, bool):
            raise RecipeError(f"window {window!r} is not a length; {_LENGTH_FORMS}")
        if isinstance(window, str) and (found := _DOCUMENTS.fullmatch(window.strip())):
            window = int(re.sub("[_,]", "", found[1]))
        if isinstance(window, int):
            if not 1 <= window <= _MAX_DOCUMENTS:
                raise RecipeError(
                    f"window {quoted(window)} is not between 1 and {_MAX_DOCUMENTS:,} documents; {_LENGTH_FORMS}"
                )
            return cls("documents", window)
        length = _parse_time(window)
        if by == "time":
            return cls("time", length)
        if length % _HOUR:
            raise RecipeError(f"window {quoted(window)} is not a whole number of hours, as window_by 'hour' counts")
        return cls("hour", length // _HOUR)

    def __str__(self) -> str:
        if self.value is None:
            return "endless"
        if self.unit == "documents":
            return f"{self.value} documents"
        length = self.value * (_HOUR if self.unit == "hour" else 1)
        unit = next((u for u in "hms" if length % _UNITS[u] == 0), "")
        if unit:
            return f"{length // _UNITS[unit]}{unit}"
        return f"{length // _SECOND}.{length % _SECOND:06d}".rstrip("0") + "s"

    @property
    def segment_length(self) -> int:
        """The length of a segment: a 24th of the window."""
        if self.value is None:
            return _ENDLESS_SEGMENT
        return max(self.value // _SEGMENTS, _MIN_DOCUMENTS if self.unit == "documents" else 1)


class EventTime(NamedTuple):
    """The time of a document in a window.

    Attributes
    ----------
    time, expiry, min_partner_expiry : int
        The document's time, the time from which its expiry counts, and the smallest such time of its partners, in the
        window's unit.
    microseconds : int
        The document's time in microseconds since 1970.
    flag : str
        The flag of its ``Verdict``.
    segment : int
        The number of the segment for documents that arrive now, which never decreases.
    confirms : bool
        Whether the document confirms the time of the last one that was ahead; all others have left the window then.
    """

    time: int
    expiry: int
    min_partner_expiry: int = 0
    microseconds: int = 0
    flag: str = ""
    segment: int = 0
    confirms: bool = False


class FlowClock(NamedTuple):
    """The clock of a flow: the latest accepted time, in the window's unit. It never goes back.

    A document is judged by its own time; how far that is from the clock decides what becomes of the clock:

    - up to a window older or younger: accepted, and a younger one advances the clock;
    - more than a window older: ``late``; the clock ignores it;
    - more than a window younger: ``ahead``; the clock ignores it, until the next document that is not late is also
      ahead, and at most a window from it: two in a row mean that the flow has moved on. So neither a single wrong date
      nor any number of them between right ones moves the clock;
    - more than an hour younger than the arrival clock, that of the system: ``future``. It is judged by the time of the
      flow's clock, which ignores it.

    Windows that count documents number them instead, and have no flags. A clock is a value: ``event_time`` returns the
    next one.
    """

    length: WindowLength
    time: int | None = None  #: None before the first document
    pending: int | None = None  #: the time of the last accepted or ahead document, if it was ahead
    arrival: int = -(1 << 62)  #: the latest time of arrival of documents without a timestamp, in microseconds
    arrived: int = 0  #: documents so far, in windows of documents

    def event_time(self, timestamp: int | None, now: float) -> tuple[EventTime, FlowClock]:
        """Return the event time of the next document, and the clock after it.

        ``timestamp`` is in microseconds since 1970, None for the time of arrival; ``now`` is the time of the system in
        seconds. Times of arrival never decrease, whatever the system says.
        """
        wall = round(now * _SECOND)
        arrival = max(self.arrival, wall) if timestamp is None else self.arrival
        real = arrival if timestamp is None else timestamp
        if not self.has_times:
            clock = self._replace(time=self.arrived, arrival=arrival, arrived=self.arrived + 1)
            return clock._event_time(self.arrived, self.arrived, real, ""), clock
        scale = self._scale
        time, flag = real // scale, ""
        if timestamp is not None and time > (wall + _MAX_AHEAD) // scale:
            time = wall // scale if self.time is None else self.time
            flag, real = "future", time * scale
        latest, length = time if self.time is None else self.time, self.length.value or 0
        if time < latest - length:
            clock = self._replace(arrival=arrival)
            return clock._event_time(time, time, real, "late"), clock
        if time <= latest + length:
            # A future document has the time of the clock, which is no evidence.
            pending = self.pending if flag else None
            clock = self._replace(time=max(latest, time), pending=pending, arrival=arrival)
            return clock._event_time(time, time, real, flag), clock
        if self.pending is None or abs(time - self.pending) > length:
            clock = self._replace(pending=time, arrival=arrival)
            # It leaves the window with the documents that have the time of the clock.
            return clock._event_time(time, latest, real, "ahead"), clock
        clock = self._replace(time=max(time, self.pending), pending=None, arrival=arrival)
        return clock._event_time(time, time, real, "", confirms=True), clock

    def _event_time(self, time: int, expiry: int, real: int, flag: str, *, confirms: bool = False) -> EventTime:
        segment = (self.time or 0) // self.length.segment_length
        return EventTime(time, expiry, self.min_expiry, real, flag, segment, confirms)

    @property
    def has_times(self) -> bool:
        """Whether the window has a length of time, and does not count documents."""
        return self.length.unit in ("time", "hour")

    @property
    def _scale(self) -> int:
        return _HOUR if self.length.unit == "hour" else 1

    @property
    def min_expiry(self) -> int:
        """The smallest expiry of a document in the window."""
        return -1 if self.length.value is None else (self.time or 0) - self.length.value

    @property
    def oldest_segment(self) -> int:
        """The number of the oldest segment with a document in the window."""
        return self.min_expiry // self.length.segment_length

    @property
    def query_time(self) -> EventTime:
        """The event time of a document that would arrive now, by the clock of the flow."""
        time = (self.time or 0) if self.has_times else self.arrived
        min_expiry = -1 if self.length.value is None else time - self.length.value
        return EventTime(time, time, min_expiry, 0, "", time // self.length.segment_length)

    @property
    def seconds(self) -> float | None:
        """The clock in seconds since 1970; None before the first document, or if the window counts documents."""
        if self.time is None or not self.has_times:
            return None
        return self.time * self._scale / _SECOND

    def state(self) -> dict[str, int | None]:
        """Return the state for ``restored``."""
        return {"clock": self.time, "pending": self.pending, "arrival": self.arrival, "count": self.arrived}

    def restored(self, state: dict[str, Any]) -> FlowClock:
        """Return the clock of a state."""
        return FlowClock(self.length, state["clock"], state["pending"], state["arrival"], state["count"])


#: The number of documents after which the first epoch is rebuilt: the slots of its tables.
_STAGES = {0: 1 << 16, 256: 1 << 20, 4096: 1 << 22}
_LAST_STAGE = max(_STAGES)
#: The least and the largest number of documents of an epoch; document numbers have 26 bits.
_MIN_EPOCH, _MAX_EPOCH = 1 << 16, 1 << 24
#: Documents sampled for the feature order of an epoch.
_SAMPLE = 8192
#: The documents of an older epoch that are read for the next one per arriving document. Raising it completes the next
#: epoch sooner, and makes single documents slower until then.
_REBUILD_RATE = 8
#: How many documents are searched or only inserted at a time. At a restart other threads read and extract: raising the
#: second lets this one wait for them less often.
_SEARCHED_AT_A_TIME, _INSERTED_AT_A_TIME = 256, 4096


class Arrivals(NamedTuple):
    """Documents in order of arrival, all within one segment; columns as in ``EventTime``, and serial numbers.

    entry_modes: int8[n], 0: never insert; 1: insert if nothing matches; 2: always insert.
    """

    block: Block
    times: Integers
    expiries: Integers
    least_expiries: Integers
    serials: Integers
    entry_modes: npt.NDArray[np.int8]

    def between(self, heads: Integers, begin: int, end: int) -> Arrivals:
        """Return the documents [begin, end); ``heads`` are the offsets of their features."""
        block = slice_block(self.block, heads, begin, end)
        return Arrivals._make([block, *(column[begin:end] for column in self[1:])])


def slice_block(block: Block, heads: Integers, begin: int, end: int) -> Block:
    """Return the documents [begin, end) of a block; ``heads`` are the offsets of their features."""
    if end - begin == len(block.sizes):
        return block
    features = block.features[heads[begin] : heads[end]]
    failed = {at - begin: reason for at, reason in block.failed.items() if begin <= at < end}
    return Block._make([features, *(column[begin:end] for column in block[1:5]), block.weights, failed])


class BestMatches(NamedTuple):
    """The best match of each document: its serial or -1, o, a and b, the similarity, and the digest of its text."""

    serials: Integers
    counts: Integers
    similarity: Floats
    digests: Words


class Window:
    """The documents of a period, among which new ones are matched by the recipe's first step.

    The times of partners differ by at most ``length``; None means endless.
    """

    def __init__(self, recipe: Recipe, length: int | None) -> None:
        self._measure = recipe.measure
        self._kind, self._rule, self._keys = kind_of(recipe)
        self._length = ENDLESS if length is None else length
        self._epochs = [self._epoch(_STAGES[0], empty_vocabulary())]
        self._builder: EpochBuilder | None = None
        self._stages = sorted(_STAGES)[1:]
        self._epoch_length = _MIN_EPOCH
        self._segment: int | None = None

    @property
    def document_count(self) -> int:
        """The number of documents, with removed ones until their segment is dropped."""
        return sum(epoch.document_count for epoch in self._epochs)

    @property
    def bytes(self) -> int:
        """The bytes of memory in use."""
        return sum(epoch.bytes for epoch in self._all_epochs)

    @property
    def segments(self) -> int:
        """The number of segments."""
        return len({segment.key for epoch in self._epochs for segment in epoch.segments})

    @property
    def _all_epochs(self) -> list[Epoch]:
        next_epoch = self._builder and self._builder.epoch
        return [*self._epochs, next_epoch] if next_epoch else self._epochs

    def begin_segment(self, key: int) -> None:
        """Begin a segment, unless one of this key or a later one has begun; documents enter the last one."""
        if self._segment is not None and key <= self._segment:
            return
        self._segment = key
        # An unfinished builder would live until garbage collection, and keep the old epoch in memory.
        if self._builder and self._builder.epoch and self._builder.is_complete and not self._builder.copies:
            self._epochs.append(self._builder.epoch)
            self._builder = None
        self._epochs[-1].begin_segment(key)

    def drop_segments(self, oldest: int) -> Integers:
        """Drop all segments with a key below ``oldest``; return the serials of their documents."""
        if not any(epoch.segments and epoch.segments[0].key < oldest for epoch in self._epochs):
            return _NO_SERIALS
        newest = self._epochs[-1]
        dropped = [epoch.drop_segments(oldest, drops_last=epoch is not newest) for epoch in self._epochs]
        self._epochs = [epoch for epoch in self._epochs if epoch is newest or epoch.segments]
        return np.concatenate(dropped)

    def match_and_insert(self, arrivals: Arrivals, *, searches: bool = True) -> BestMatches:
        """Find the best match of each document among earlier ones, if ``searches``; insert documents by their modes."""
        count = len(arrivals.serials)
        best, scores = np.full((count, 6), -1), np.full(count, -1.0)
        heads = row_heads(arrivals.block.sizes)
        at_a_time = _SEARCHED_AT_A_TIME if searches else _INSERTED_AT_A_TIME
        for begin in range(0, count, at_a_time):
            end = min(begin + at_a_time, count)
            self._renew(end - begin)
            part, part_heads = arrivals, heads
            if end - begin < count:
                part, part_heads = arrivals.between(heads, begin, end), heads[begin : end + 1] - heads[begin]
            for epoch in self._epochs:
                modes = part.entry_modes
                if epoch is not self._epochs[-1]:
                    if not (searches and epoch.document_count):
                        continue
                    modes = np.zeros_like(modes)
                documents = self._window_documents(part, part_heads, epoch)
                epoch.match_and_insert(documents, searches, modes, best[begin:end], scores[begin:end], self._length)
        return BestMatches(best[:, 0], best[:, 1:4], scores, best[:, 4:].view(np.uint64))

    def all_matches(self, arrivals: Arrivals) -> tuple[Integers, WindowMatches, Floats]:
        """Return all matches of documents in the window, which may include the documents themselves.

        Returns the place of each match's document, ascending; the matches; and their similarities, the most similar
        first, ties in order of arrival.
        """
        heads = row_heads(arrivals.block.sizes)
        found = [
            epoch.matches(self._window_documents(arrivals, heads, epoch), self._length)
            for epoch in self._epochs
            if epoch.document_count
        ]
        places = np.concatenate([np.empty(0, np.int64), *(places for places, _, _ in found)])
        return self._sort([matched for _, matched, _ in found], places)

    def nearest(self, block: Block, event_time: EventTime) -> tuple[WindowMatches, Floats]:
        """Return all partners in time that share a feature with a document, the most similar first."""
        found, bounds = list[WindowMatches](), (event_time.time, event_time.min_partner_expiry, self._length)
        zero = np.zeros(1, np.int64)
        arrivals = Arrivals(block, zero, zero, zero, zero, np.zeros(1, np.int8))
        for epoch in self._epochs if len(block.features) else ():
            if self._kind == FINGERPRINTS:
                serials, values = epoch.values(*bounds)
                counts = np.full((len(serials), 3), 64)
                counts[:, 0] -= np.bitwise_count(values ^ block.features[0]).astype(np.int64)
                found.append(WindowMatches(serials, counts, np.zeros((len(serials), 2), np.int64)))
            elif epoch.document_count:
                documents = self._window_documents(arrivals, row_heads(block.sizes), epoch)
                found.append(epoch.overlaps(documents, *bounds))
        return self._sort(found)[1:]

    def remove(self, serial: int) -> None:
        """Remove a document."""
        for epoch in self._all_epochs:
            epoch.remove(serial)

    def remove_from(self, serial: int) -> None:
        """Remove all documents from a serial on."""
        for epoch in self._all_epochs:
            epoch.remove_from(serial)

    def _window_documents(self, arrivals: Arrivals, heads: Integers, epoch: Epoch) -> WindowDocuments:
        block = arrivals.block
        columns = arrivals.times, arrivals.expiries, arrivals.least_expiries, arrivals.serials
        keys = self._keys(block.features, block.sizes)
        return epoch.documents(block.features, heads, keys, (*columns, block.text_digests.view(np.int64)))

    def _epoch(self, slots: int, vocabulary: Vocabulary, keys: int = 0) -> Epoch:
        return Epoch(vocabulary, self._rule, self._kind, slots, keys)

    def _renew(self, arriving: int) -> None:
        """Continue to build the next epoch while ``arriving`` documents arrive; once complete, it replaces a young one.

        Any order of features gives the same results, so the time of the change does not matter.
        """
        newest = self._epochs[-1]
        if self._builder is None:
            young = bool(self._stages) and newest.inserted_count >= self._stages[0]
            if young:
                while self._stages and newest.inserted_count >= self._stages[0]:
                    slots = _STAGES[self._stages.pop(0)]
            elif not self._stages and newest.inserted_count >= self._epoch_length:
                self._epoch_length = min(max(_MIN_EPOCH, self.document_count), _MAX_EPOCH)
                slots = max(_STAGES[_LAST_STAGE], 1 << (4 * self._epoch_length).bit_length())
            else:
                return
            # Fingerprints have no order.
            sample = 0 if self._kind == FINGERPRINTS else _SAMPLE
            self._builder = EpochBuilder(newest, partial(self._epoch, slots), self._keys, sample, copies=young)
        self._builder.advance(_REBUILD_RATE * arriving)
        if self._builder.epoch and self._builder.is_complete and self._builder.copies:
            self._epochs[-1] = self._builder.epoch
            self._builder = None

    def _sort(
        self, found: list[WindowMatches], places: Integers | None = None
    ) -> tuple[Integers, WindowMatches, Floats]:
        """Return places, matches and similarities: by place if given, then the most similar first, then by serial."""
        empty = WindowMatches(np.empty(0, np.int64), np.empty((0, 3), np.int64), np.empty((0, 2), np.int64))
        serials, counts, digests = (np.concatenate(columns) for columns in zip(empty, *found, strict=True))
        scores = similarities(self._measure, counts)
        places = np.zeros(len(serials), np.int64) if places is None else places
        order = np.lexsort((serials, -scores, places))
        return places[order], WindowMatches(serials[order], counts[order], digests[order]), scores[order]
