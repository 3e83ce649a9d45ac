"""The matcher of a flow: the clock, the window and the documents in it.

It judges each arriving document by the window, and enters it. Index, watched folder, replay and Spark stream share it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import Contribution
from neardup.classifier.vector import NO_TIME
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block, row_heads
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.runtime import map_in_order
from neardup.search.window import FINGERPRINT_BITS, Arrivals, EventTime, FlowClock, Window, WindowLength, slice_block
from neardup.stream.document import Arrival, Verdict
from neardup.stream.window_step import UNKNOWN_RECORD, ClassifierStep, Record, second_step_of

_SECOND = 1_000_000
#: The last microseconds of the year 9999 would round up to the year 10000, which no datetime can hold.
_LATEST = math.nextafter(253402300800.0, 0)


class WindowDocuments:
    """Ids, serials and, if needed, records of the documents in the window."""

    def __init__(self) -> None:
        self.serials: dict[str, int] = {}  #: the serial of each document in the window by id
        self._names: dict[int, str] = {}
        self._records: dict[int, Record] = {}

    def __len__(self) -> int:
        return len(self.serials)

    def __iter__(self) -> Iterator[str]:
        return iter([self._names[serial] for serial in sorted(self._names)])

    def name(self, serial: int) -> str | None:
        """Return the id of a document in the window, None if it is not there."""
        return self._names.get(serial)

    def record(self, serial: int) -> Record | None:
        """Return the record of a document in the window, None if records are not kept."""
        return self._records.get(serial)

    @property
    def first(self) -> int | None:
        """The smallest serial in the window, None if it is empty."""
        # Serials are added in ascending order, and a dictionary keeps it.
        return next(iter(self._names), None)

    def add(self, arrival: Arrival, record: Record | None) -> None:
        """Add a document, with its record if a second step needs it."""
        self.serials[arrival.id] = arrival.serial
        self._names[arrival.serial] = arrival.id
        if record is not None:
            self._records[arrival.serial] = record

    def remove(self, serials: Iterable[int]) -> None:
        """Remove documents by serial."""
        for serial in serials:
            name = self._names.pop(serial, None)
            if name is not None:
                del self.serials[name]
            self._records.pop(serial, None)

    def before(self, serial: int) -> list[int]:
        """Return the smaller serials."""
        return list(takewhile(lambda one: one < serial, self._names))

    def between(self, begin: int, end: int) -> bool:
        """Return whether there is a document from one serial to before another."""
        return any(serial in self._names for serial in range(begin, end))

    def since(self, serial: int) -> list[int]:
        """Return this serial and larger ones."""
        return list(takewhile(lambda one: one >= serial, reversed(self._names)))


class MatchedDocuments(NamedTuple):
    """Documents in the window that match a document, the best first."""

    serials: Integers  #: int64[k]: their serials
    #: float64[k], int64[k, 3]: similarities, and o, a and b.
    similarity: Floats
    counts: Integers
    equal_texts: Bools  #: bool[k]: whether the texts are equal
    #: float64[k], float64[k, r]: scores of a classifier, and its measures; nan where none judged.
    scores: Floats
    vectors: Floats

    def take(self, places: slice | Integers | Bools) -> MatchedDocuments:
        """Return the matches at some places."""
        return MatchedDocuments._make(column[places] for column in self)


class AheadDocument(NamedTuple):
    """A document in the window whose time, ahead of the clock, awaits confirmation: serial, time and features."""

    serial: int
    time: int
    block: Block


class MatcherState(NamedTuple):
    """What a step of the matcher changes, besides the documents that it enters; a value."""

    clock: FlowClock
    window: Window
    ahead: AheadDocument | None = None
    #: Since the clock last jumped over more than a window: the serial of the document whose time was confirmed, and the
    #: serial of the first document after the jump. No other document is in the window.
    confirmed: int | None = None
    first: int = 0
    domain_counts: DomainCounts = DomainCounts()


class Matcher:
    """Looks up each document in the window and enters it; enters duplicates only with ``against_everything``.

    ``now`` returns the time of the system in seconds since 1970.
    """

    def __init__(
        self,
        recipe: Recipe,
        length: WindowLength,
        now: Callable[[], float],
        *,
        against_everything: bool,
        statistics: Statistics | None,
        classifier: Classifier | None = None,
    ) -> None:
        self._recipe, self._now, self._against_everything = recipe, now, against_everything
        self._second_step = second_step_of(recipe, self._record, classifier)
        self._is_hamming = recipe.measure == "hamming"
        self._measures = len(classifier.vector) if isinstance(self._second_step, ClassifierStep) and classifier else 0
        self._no_matches = self._first_step(
            np.empty(0, np.int64), np.empty(0), np.empty((0, 3), np.int64), np.empty(0, np.bool_)
        )
        self._extractor = Extractor(recipe, statistics, digests=True)
        self.documents = WindowDocuments()
        self.state = MatcherState(FlowClock(length), Window(recipe, length.value))
        #: The first document after the last jump of the clock whose earlier documents have left ``documents``.
        self._first = 0
        #: The document that was ahead before a restart.
        self._ahead_serial: int | None = None
        #: The documents being matched.
        self._current: Sequence[Arrival] = ()

    @property
    def clock(self) -> FlowClock:
        """The clock of the flow."""
        return self.state.clock

    @property
    def domain_counts(self) -> DomainCounts:
        """Counts of the pairs that a classifier judged for arriving documents; all 0 without one."""
        return self.state.domain_counts

    def judge(self, arrivals: Sequence[Arrival], first: int, block: Block | None = None) -> Mapping[int, str]:
        """Judge documents one after the other, and enter those that the window is to keep.

        Each gets its serial, from ``first`` on, its time and its verdict. ``block``: their features with digests, if
        they are known. Returns why pages could not be extracted, by place. After a failure of this, or of what follows,
        ``withdraw`` removes the documents again.
        """
        state, clock = self.state, self.state.clock
        for serial, arrival in enumerate(arrivals, first):
            arrival.serial = serial
            arrival.event_time, clock = clock.event_time(arrival.timestamp, self._now())
        block = self._features(arrivals) if block is None else block
        heads, modes = row_heads(block.sizes), (block.sizes > 0) * (1 + self._against_everything)
        if late := [i for i, arrival in enumerate(arrivals) if arrival.event_time.flag == "late"]:
            modes[late] = 0
        self._current = arrivals
        for begin, end in _runs([arrival.event_time.segment for arrival in arrivals]):
            run, event_time = arrivals[begin:end], arrivals[begin].event_time
            if event_time.confirms:
                # The first of its run, since the clock jumps over more than a window: all others leave.
                confirmed = state.ahead and state.ahead.serial
                state = state._replace(window=self._window_after_jump(state.ahead), confirmed=confirmed, ahead=None)
                state = state._replace(first=first + begin)
            state.window.begin_segment(event_time.segment)
            part = _columns(slice_block(block, heads, begin, end), run, modes[begin:end])
            places, matches, entered = self._match_and_enter(state.window, part, run)
            self._set_verdicts(run, part.block, places, matches)
            for i, (arrival, has_entered) in enumerate(zip(run, entered.tolist(), strict=True), begin):
                arrival.is_held = has_entered
                if arrival.event_time.flag == "ahead":
                    time, features = arrival.event_time.time, slice_block(block, heads, i, i + 1)
                    ahead = AheadDocument(arrival.serial, time, features) if arrival.is_held else None
                    state = state._replace(ahead=ahead)
        for arrival in arrivals:
            if arrival.is_held:
                self.documents.add(arrival, self._record_of(arrival))
        self._current = ()
        counts = self._second_step.counts if isinstance(self._second_step, ClassifierStep) else DomainCounts()
        self.state = state._replace(clock=clock, domain_counts=counts)
        return block.failed

    def withdraw(self, first: int, before: MatcherState) -> None:
        """Remove all documents from serial ``first`` on; ``before`` is the state before them."""
        self.state, self._current = before, ()
        before.window.remove_from(first)
        self.documents.remove(self.documents.since(first))
        if isinstance(self._second_step, ClassifierStep):
            self._second_step.counts = before.domain_counts
            self._second_step.forget_from(first)

    def _window_after_jump(self, ahead: AheadDocument | None) -> Window:
        """Return a window that holds the document whose time is confirmed, if it is in the window, and no other."""
        window = Window(self._recipe, self.clock.length.value)
        if ahead is not None:
            event_time = EventTime(ahead.time, ahead.time)
            window.begin_segment(ahead.time // self.clock.length.segment_length)
            window.match_and_insert(_row(ahead.block, event_time, ahead.serial, 2), searches=False)
        return window

    def _set_verdicts(
        self, arrivals: Sequence[Arrival], block: Block, places: Integers, matches: MatchedDocuments
    ) -> None:
        """Give documents their verdicts; ``places`` are those of the documents with a match."""
        at = {place: k for k, place in enumerate(places.tolist())}
        of, similarity, counts, equal = (column.tolist() for column in matches[:4])
        for i, (arrival, size) in enumerate(zip(arrivals, block.sizes.tolist(), strict=True)):
            arrival.size = FINGERPRINT_BITS if size and self._is_hamming else size
            event_time, k = arrival.event_time, at.get(i)
            time = min(event_time.microseconds / _SECOND, _LATEST)
            flag, version_of = event_time.flag if size else "undecidable", arrival.version_of
            if k is None:
                arrival.verdict = Verdict(arrival.id, "original", None, None, time, flag, None, None, (), version_of)
                continue
            kind, (score, measures) = "exact" if equal[k] else "near", self._contributions(matches, k)
            numbers = counts[k][0], counts[k][1], counts[k][2]
            name = self._name(of[k])
            arrival.verdict = Verdict(
                arrival.id, kind, name, similarity[k], time, flag, numbers, score, measures, version_of
            )

    def _contributions(self, matches: MatchedDocuments, at: int) -> tuple[float | None, tuple[Contribution, ...]]:
        """Return the score of a pair and its contributions; None and nothing without a classifier."""
        if not isinstance(self._second_step, ClassifierStep) or math.isnan(score := float(matches.scores[at])):
            return None, ()
        return score, self._second_step.contributions(matches.vectors[at])

    def check(self, arrivals: Sequence[Arrival]) -> None:
        """Give each document the verdict that it would get if it came next; none enters."""
        state = self.state
        for arrival in arrivals:
            arrival.event_time, _ = state.clock.event_time(arrival.timestamp, self._now())
        confirming = [arrival for arrival in arrivals if arrival.event_time.confirms]
        for group in ([arrival for arrival in arrivals if not arrival.event_time.confirms], confirming):
            if group:
                window = self._window_after_jump(state.ahead) if group is confirming else state.window
                columns = _columns(self._features(group), group, np.zeros(len(group), np.int64))
                records = [self._record_of(arrival) or UNKNOWN_RECORD for arrival in group]
                places, matches = self._find_matches(window, columns, records, best_only=True)
                places, first = np.unique(places, return_index=True)
                self._set_verdicts(group, columns.block, places, matches.take(first))

    def matches(self, arrival: Arrival) -> list[tuple[str, float]]:
        """Return all documents in the window that a text matches, the most similar first: ids and similarities."""
        seconds = self.clock.seconds if arrival.timestamp is None else arrival.timestamp / _SECOND
        record = make_record(arrival.text or "", arrival.title, seconds)
        columns = _row(self._features([arrival]), self.clock.query_time, -1, 0)
        found = self._find_matches(self.state.window, columns, [record], best_only=False)[1]
        return self._named(found.serials, found.similarity)

    def nearest(self, arrival: Arrival) -> list[tuple[str, float]]:
        """Return all documents in the window that share a feature with a text, the nearest first."""
        found, scores = self.state.window.nearest(self._features([arrival]), self.clock.query_time)
        return self._named(found.serials, scores)

    def _named(self, serials: Integers, scores: Floats) -> list[tuple[str, float]]:
        names = map(self.documents.name, serials.tolist())
        return [(name, score) for name, score in zip(names, scores.tolist(), strict=True) if name is not None]

    def _first_step(
        self, serials: Integers, similarity: Floats, counts: Integers, equal_texts: Bools
    ) -> MatchedDocuments:
        """Return matches of the first step, without scores."""
        scores, vectors = np.full(len(serials), np.nan), np.full((len(serials), self._measures), np.nan)
        return MatchedDocuments(serials, similarity, counts, equal_texts, scores, vectors)

    def _concatenate(self, parts: Sequence[MatchedDocuments]) -> MatchedDocuments:
        return MatchedDocuments._make(np.concatenate(column) for column in zip(self._no_matches, *parts, strict=True))

    def _match_and_enter(
        self, window: Window, columns: Arrivals, arrivals: Sequence[Arrival]
    ) -> tuple[Integers, MatchedDocuments, Bools]:
        """Return the best match of each document that has one, and which documents entered."""
        enters = columns.entry_modes > 0
        if self._second_step is None:
            best = window.match_and_insert(columns)
            at = (best.serials >= 0).nonzero()[0]
            if not len(at):
                return at, self._no_matches, enters
            equal_texts = (best.digests[at] == columns.block.text_digests[at]).all(axis=1)
            matches = self._first_step(best.serials[at], best.similarity[at], best.counts[at], equal_texts)
            return at, matches, enters if self._against_everything else enters & (best.serials < 0)
        records = [self._record_of(arrival) or UNKNOWN_RECORD for arrival in arrivals]
        if self._against_everything:
            # Only older documents count, so all may enter before the first lookup.
            window.match_and_insert(columns, searches=False)
            return *self._find_matches(window, columns, records, best_only=True), enters
        parts, entered = list[MatchedDocuments](), np.zeros(len(enters), np.bool_)
        heads = row_heads(columns.block.sizes)
        for i in range(len(enters)):
            one = columns.between(heads, i, i + 1)
            parts.append(self._find_matches(window, one, records[i : i + 1], best_only=True)[1])
            if enters[i] and not len(parts[-1].serials):
                entered[i] = True
                window.match_and_insert(one, searches=False)
        places = np.repeat(np.arange(len(enters)), [len(part.serials) for part in parts])
        return places, self._concatenate(parts), entered

    def _find_matches(
        self, window: Window, columns: Arrivals, records: Sequence[Record], *, best_only: bool
    ) -> tuple[Integers, MatchedDocuments]:
        """Return the older documents in the window that each document matches; serial -1 is younger than all."""
        places, found, scores = window.all_matches(columns)
        if not len(places):
            return places, self._no_matches
        numbers = columns.serials[places]
        older = (found.serials < numbers) | (numbers < 0)
        places, scores = places[older], scores[older]
        serials, counts, digests = (column[older] for column in found)
        equal_texts = (digests.view(np.uint64) == columns.block.text_digests[places]).all(axis=1)
        first_step = self._first_step(serials, scores, counts, equal_texts)
        if self._second_step is None:
            return places, first_step
        matched = np.unique(places)
        ends = np.searchsorted(places, matched, side="right").tolist()
        parts: list[MatchedDocuments] = []
        for place, start, end in zip(matched.tolist(), [0, *ends], ends, strict=False):
            candidates = first_step.take(slice(start, end))
            passed = self._apply_second_step(records[place], int(columns.serials[place]), candidates)
            parts.append(passed.take(slice(1)) if best_only else passed)
        return np.repeat(matched, [len(part.serials) for part in parts]), self._concatenate(parts)

    def _apply_second_step(self, record: Record, serial: int, found: MatchedDocuments) -> MatchedDocuments:
        """Return the matches of a document that pass the second step, the best first."""
        differing = np.flatnonzero(~found.equal_texts)
        if self._second_step is None or not len(differing):
            return found
        passed = self._second_step.find_passing(record, serial, found.serials[differing])
        # Equal texts match whatever the second step says.
        similarity, counts = np.ones(len(found.serials)), found.counts.copy()
        scores, vectors = found.scores.copy(), found.vectors.copy()
        at = differing[passed.places]
        similarity[at], counts[at] = passed.similarity, passed.counts
        scores[at], vectors[at] = passed.scores, passed.vectors
        order = np.concatenate([np.flatnonzero(found.equal_texts), at])
        order = order[np.lexsort((found.serials[order], -similarity[order]))]
        return MatchedDocuments(found.serials, similarity, counts, found.equal_texts, scores, vectors).take(order)

    def remove(self, name: str) -> None:
        """Remove a document from the window, if it is there."""
        serial = self.documents.serials.get(name)
        if serial is None:
            return
        self.state.window.remove(serial)
        self.documents.remove([serial])
        if self.state.ahead is not None and self.state.ahead.serial == serial:
            self.state = self.state._replace(ahead=None)

    def admit(self, arrival: Arrival, serial: int, stopped: Verdict) -> None:
        """Enter a duplicate as an original at the current time, whatever it matches."""
        arrival.serial, arrival.event_time, arrival.is_held = serial, self.clock.query_time, True
        seconds = self.clock.seconds
        time = stopped.time if seconds is None else min(seconds, _LATEST)
        arrival.event_time = arrival.event_time._replace(microseconds=round(time * _SECOND))
        arrival.verdict = Verdict(arrival.id, "original", None, None, time, stopped.flag, None)
        self.state.window.begin_segment(arrival.event_time.segment)
        row = _row(self._features([arrival]), arrival.event_time, serial, 2)
        self.state.window.match_and_insert(row, searches=False)

    def keep(self, arrival: Arrival) -> None:
        """Keep an admitted document, in the place of another one with its id."""
        self.remove(arrival.id)
        self.documents.add(arrival, self._record_of(arrival))

    def expire(self) -> None:
        """Drop the documents that have left the window."""
        state = self.state
        if state.first > self._first:
            self._first = state.first
            self.documents.remove(serial for serial in self.documents.before(self._first) if serial != state.confirmed)
        self.documents.remove(state.window.drop_segments(state.clock.oldest_segment).tolist())

    def as_dict(self) -> dict[str, Any]:
        """Return what ``restore`` needs besides the documents in the window, for JSON."""
        state = self.state
        fields = {"ahead": state.ahead and state.ahead.serial, "confirmed": state.confirmed}
        counts = {"asked": state.domain_counts} if any(state.domain_counts) else {}
        return state.clock.state() | fields | counts

    def restore(self, fields: dict[str, Any]) -> None:
        """Restore the state before a restart; ``enter`` follows with the documents of the window."""
        counts = DomainCounts(*fields.get("asked", ()))
        if isinstance(self._second_step, ClassifierStep):
            self._second_step.counts = counts
        # A version of neardup before this one wrote the confirmed documents with their times.
        revived = [serial for serial, _ in fields.get("revived", ())]
        confirmed = fields["confirmed"] if "confirmed" in fields else max(revived, default=None)
        clock = self.clock.restored(fields)
        self.state = self.state._replace(clock=clock, confirmed=confirmed, domain_counts=counts)
        self._ahead_serial = fields["ahead"]

    def enter(self, batches: Iterable[Sequence[Arrival]], threads: int = 1) -> None:
        """Enter the documents that were in the window before a restart, in batches."""
        segment_length = self.clock.length.segment_length
        for batch, block in map_in_order(self._with_features, map(self._present, batches), threads):
            heads = row_heads(block.sizes)
            # Each may leave with the documents before it, but not before its own time.
            expiries = np.array([arrival.event_time.expiry for arrival in batch], np.int64)
            segments = np.maximum.accumulate(expiries // segment_length)
            for begin, end in _runs(segments.tolist()):
                part = slice_block(block, heads, begin, end)
                self.state.window.begin_segment(int(segments[begin]))
                columns = _columns(part, batch[begin:end], np.full(end - begin, 2))
                self.state.window.match_and_insert(columns, searches=False)
            for i, arrival in enumerate(batch):
                self.documents.add(arrival, self._record_of(arrival))
                if arrival.serial == self._ahead_serial:
                    ahead = AheadDocument(arrival.serial, arrival.event_time.time, slice_block(block, heads, i, i + 1))
                    self.state = self.state._replace(ahead=ahead)

    def _present(self, batch: Sequence[Arrival]) -> list[Arrival]:
        """Return the documents of a batch that have not left the window."""
        found = list[Arrival]()
        for arrival in batch:
            if arrival.serial == self.state.confirmed:
                arrival.event_time = arrival.event_time._replace(expiry=arrival.event_time.time)
            if arrival.event_time.expiry >= self.clock.min_expiry:
                found.append(arrival)
        return found

    def _with_features(self, batch: Sequence[Arrival]) -> tuple[Sequence[Arrival], Block]:
        return batch, self._features(batch)

    def _features(self, arrivals: Sequence[Arrival]) -> Block:
        return self._extractor(pa.array([arrival.text or "" for arrival in arrivals], pa.large_string()))

    def _name(self, serial: int) -> str | None:
        """Return the id of a document in the window, or of one being matched."""
        if self._current and serial >= self._current[0].serial:
            return self._current[serial - self._current[0].serial].id
        return self.documents.name(serial)

    def _record(self, serial: int) -> Record:
        """Return the record of a document in the window, or of one being matched."""
        if self._current and serial >= self._current[0].serial:
            return self._record_of(self._current[serial - self._current[0].serial]) or UNKNOWN_RECORD
        return self.documents.record(serial) or UNKNOWN_RECORD

    def _record_of(self, arrival: Arrival) -> Record | None:
        """Return the record of a document; None without a second step."""
        if self._second_step is None:
            return None
        return make_record(arrival.text or "", arrival.title, arrival.event_time.microseconds / _SECOND)


def make_record(text: str, title: str, seconds: float | None) -> Record:
    """Return the record of a document for a second step; ``seconds`` since 1970, None if its time is unknown."""
    # Through seconds, so that a restart, which reads seconds, changes nothing.
    return Record(text, title, NO_TIME if seconds is None else round(seconds * _SECOND))


def _columns(block: Block, arrivals: Sequence[Arrival], modes: Integers) -> Arrivals:
    times = np.array([arrival.event_time[:3] for arrival in arrivals], np.int64).T.copy()
    serials = np.array([arrival.serial for arrival in arrivals], np.int64)
    return Arrivals(block, times[0], times[1], times[2], serials, modes.astype(np.int8))


def _row(block: Block, event_time: EventTime, serial: int, mode: int) -> Arrivals:
    times = np.array(event_time[:3], np.int64).reshape(3, 1)
    return Arrivals(block, times[0], times[1], times[2], np.array([serial], np.int64), np.array([mode], np.int8))


def _runs(segments: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the runs of documents of one segment."""
    begin = 0
    for i in range(1, len(segments) + 1):
        if i == len(segments) or segments[i] != segments[begin]:
            yield begin, i
            begin = i
