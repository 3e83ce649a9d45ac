"""The matcher of a flow finds what each arriving document matches in the window, and enters it there.

Index, watched folder, replay of a corpus and Spark stream share it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import Contribution
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block, row_heads
from neardup.kernels import Bools, Floats, Integers
from neardup.recipe import Recipe
from neardup.runtime import map_in_order
from neardup.search.window import FINGERPRINT_BITS, Arrivals, EventTime, FlowClock, Window, slice_block
from neardup.stream.window_step import UNKNOWN_RECORD, ClassifierStep, Record, second_step_of


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
    """A document ahead of the clock that was entered; it is entered again if a second one confirms its time."""

    block: Block
    serial: int
    time: int


class WindowFindings(NamedTuple):
    """The findings about several documents."""

    places: Integers  #: int64[k]: places of the documents with a match, ascending
    matches: MatchedDocuments  #: the best older match of each
    sizes: Integers  #: int64[n]: o, a and b of each document with itself, 0 if it has no features to compare
    entered: Bools  #: bool[n]: whether each document entered the window
    failed: Mapping[int, str]  #: why the main content of a page could not be extracted, by its place


class RestoredDocument(NamedTuple):
    """A document that was in the window before a restart: serial, text, time, and time of leaving."""

    serial: int
    text: str
    time: int
    expiry: int


def _make_arrivals(
    block: Block, event_times: Sequence[EventTime], serials: Integers, modes: Sequence[int] | Integers
) -> Arrivals:
    times, expiries, min_partner_expiries = np.array([event_time[:3] for event_time in event_times], np.int64).T.copy()
    return Arrivals(block, times, expiries, min_partner_expiries, serials, np.array(modes, np.int8))


class MatcherSnapshot(NamedTuple):
    """The state of a matcher, apart from the window, before some documents: ``Matcher.snapshot``."""

    clock: dict[str, Any]
    segments: list[tuple[int, int]]
    ahead: AheadDocument | None
    confirmed_expiry: dict[int, int]
    domain_counts: DomainCounts


class Matcher:
    """Looks up each document in the window and enters it; enters duplicates only with ``against_everything``.

    ``record_of`` returns the record of a document in the window, for a second step.
    """

    def __init__(
        self,
        recipe: Recipe,
        clock: FlowClock,
        *,
        against_everything: bool,
        statistics: Statistics | None,
        record_of: Callable[[int], Record | None],
        classifier: Classifier | None = None,
    ) -> None:
        self._against_everything, self._record_of = against_everything, record_of
        self._second_step = second_step_of(recipe, self._record, classifier)
        self._is_hamming = recipe.measure == "hamming"
        self._measures = len(classifier.vector) if isinstance(self._second_step, ClassifierStep) and classifier else 0
        self._no_matches = self._first_step(
            np.empty(0, np.int64), np.empty(0), np.empty((0, 3), np.int64), np.empty(0, np.bool_)
        )
        self.clock, self.window = clock, Window(recipe, clock.length.value)
        self._extractor = Extractor(recipe, statistics, digests=True)
        #: The segments, each with the serial of the first document in or after it.
        self._segments: list[tuple[int, int]] = []
        #: The first serial and the records of the documents being matched.
        self._current: tuple[int, Sequence[Record]] = 0, ()
        self._ahead: AheadDocument | None = None
        #: Confirmed documents, with the times that they have since.
        self._confirmed_expiry: dict[int, int] = {}
        self._ahead_serial: int | None = None
        self._segments_before: list[tuple[int, int]] = []
        #: The number of the oldest segment that is still kept.
        self._oldest_segment: int | None = None

    @property
    def needs_records(self) -> bool:
        """Whether a second step also judges documents by their records: texts, titles and times."""
        return self._second_step is not None

    def add(
        self,
        texts: pa.LargeStringArray | Block,
        records: Sequence[Record],
        event_times: Sequence[EventTime],
        first: int,
    ) -> WindowFindings:
        """Match documents one after the other, and enter those that the window is to keep.

        Instead of ``texts``, their features with digests may be passed. ``records`` are required if
        ``needs_records``; ``first`` is the serial of the first document.
        """
        block, heads = self._block(texts)
        has_features = block.sizes > 0
        modes = has_features * (1 + self._against_everything)
        modes[[event_time.flag == "late" for event_time in event_times]] = 0
        entered = np.zeros(len(event_times), np.bool_)
        places, found = list[Integers](), list[MatchedDocuments]()
        self._current = first, records
        for begin, end in _segment_runs(event_times):
            self._begin_segment(event_times[begin], first + begin)
            part, serials = slice_block(block, heads, begin, end), np.arange(first + begin, first + end)
            arrivals = _make_arrivals(part, event_times[begin:end], serials, modes[begin:end])
            place, matches, entered[begin:end] = self._match_and_enter(arrivals, records[begin:end])
            places.append(begin + place)
            found.append(matches)
            for i in range(begin, end):
                if event_times[i].flag == "ahead":
                    ahead = AheadDocument(slice_block(block, heads, i, i + 1), first + i, event_times[i].time)
                    self._ahead = ahead if entered[i] else None
        self._current = 0, ()
        all_places = np.concatenate([np.empty(0, np.int64), *places])
        return WindowFindings(all_places, self._concatenate(found), self._own_counts(block), entered, block.failed)

    def _own_counts(self, block: Block) -> Integers:
        return np.where(block.sizes > 0, FINGERPRINT_BITS if self._is_hamming else block.sizes, 0)

    def _first_step(
        self, serials: Integers, similarity: Floats, counts: Integers, equal_texts: Bools
    ) -> MatchedDocuments:
        """Return matches of the first step, without scores."""
        scores, vectors = np.full(len(serials), np.nan), np.full((len(serials), self._measures), np.nan)
        return MatchedDocuments(serials, similarity, counts, equal_texts, scores, vectors)

    def _concatenate(self, parts: Sequence[MatchedDocuments]) -> MatchedDocuments:
        if len(parts) == 1:
            return parts[0]
        return MatchedDocuments._make(np.concatenate(column) for column in zip(self._no_matches, *parts, strict=True))

    def _match_and_enter(
        self, arrivals: Arrivals, records: Sequence[Record]
    ) -> tuple[Integers, MatchedDocuments, Bools]:
        """Return the best match of each document that has one, and which documents entered."""
        enters = arrivals.entry_modes > 0
        if self._second_step is None:
            best = self.window.match_and_insert(arrivals)
            at = np.flatnonzero(best.serials >= 0)
            if not len(at):
                return at, self._no_matches, enters
            equal_texts = (best.digests[at] == arrivals.block.text_digests[at]).all(axis=1)
            matches = self._first_step(best.serials[at], best.similarity[at], best.counts[at], equal_texts)
            return at, matches, enters if self._against_everything else enters & (best.serials < 0)
        if self._against_everything:
            # Only older documents count, so all may enter before the first lookup.
            self.window.match_and_insert(arrivals, searches=False)
            return *self._find_matches(arrivals, records, best_only=True), enters
        parts, entered = list[MatchedDocuments](), np.zeros(len(enters), np.bool_)
        heads = row_heads(arrivals.block.sizes)
        for i in range(len(enters)):
            one = arrivals.between(heads, i, i + 1)
            parts.append(self._find_matches(one, records[i : i + 1], best_only=True)[1])
            if enters[i] and not len(parts[-1].serials):
                entered[i] = True
                self.window.match_and_insert(one, searches=False)
        return (
            np.repeat(np.arange(len(enters)), [len(part.serials) for part in parts]),
            self._concatenate(parts),
            entered,
        )

    def _find_matches(
        self, arrivals: Arrivals, records: Sequence[Record], *, best_only: bool
    ) -> tuple[Integers, MatchedDocuments]:
        """Return the older documents in the window that each arrival matches; serial -1 is younger than all."""
        places, found, scores = self.window.all_matches(arrivals)
        if not len(places):
            return places, self._no_matches
        numbers = arrivals.serials[places]
        older = (found.serials < numbers) | (numbers < 0)
        places, scores = places[older], scores[older]
        serials, counts, digests = (column[older] for column in found)
        equal_texts = (digests.view(np.uint64) == arrivals.block.text_digests[places]).all(axis=1)
        if self._second_step is None:
            return places, self._first_step(serials, scores, counts, equal_texts)
        matched = np.unique(places)
        ends = np.searchsorted(places, matched, side="right").tolist()
        parts: list[MatchedDocuments] = []
        for place, start, end in zip(matched.tolist(), [0, *ends], ends, strict=False):
            first_step = self._first_step(
                serials[start:end], scores[start:end], counts[start:end], equal_texts[start:end]
            )
            passed = self._apply_second_step(records[place], int(arrivals.serials[place]), first_step)
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

    @property
    def domain_counts(self) -> DomainCounts:
        """Counts of the pairs that a classifier judged for arriving documents; all 0 without one."""
        return self._second_step.counts if isinstance(self._second_step, ClassifierStep) else DomainCounts()

    def _set_domain_counts(self, counts: DomainCounts) -> None:
        if isinstance(self._second_step, ClassifierStep):
            self._second_step.counts = counts

    def contributions(self, matches: MatchedDocuments, at: int) -> tuple[float | None, tuple[Contribution, ...]]:
        """Return the score of a pair and its contributions; None and nothing without a classifier."""
        score = float(matches.scores[at])
        if not isinstance(self._second_step, ClassifierStep) or np.isnan(score):
            return None, ()
        return score, self._second_step.contributions(matches.vectors[at])

    def enter(self, batches: Iterable[Sequence[RestoredDocument]], threads: int = 1) -> None:
        """Enter the documents of the window before a restart, in batches; call ``restore`` first."""
        confirmed: list[tuple[Block, RestoredDocument]] = []
        confirmed_expiry = dict(self._confirmed_expiry)
        for batch, (block, heads) in map_in_order(self._features_of, batches, threads):
            confirmed += [
                (slice_block(block, heads, i, i + 1), document)
                for i, document in enumerate(batch)
                if document.serial in confirmed_expiry
            ]
            serials = [document.serial for document in batch]
            self._enter(block, serials, list(map(self._restored_event_time, batch)), confirmed_expiry)
        # A confirmed document leaves together with later ones.
        for block, document in confirmed:
            segment, serial = self._segments_before[-1]
            event_time = EventTime(document.time, confirmed_expiry[document.serial], 0, 0, "", segment, 0)
            self._begin_segment(event_time, serial)
            self._insert(block, event_time, document.serial)

    def _enter(
        self, block: Block, numbers: Sequence[int], event_times: Sequence[EventTime], excluded: Collection[int] = ()
    ) -> None:
        """Enter documents whatever they match, except some; a confirming one marks a document that was ahead."""
        heads, serials = row_heads(block.sizes), np.array(numbers, np.int64)
        modes = [0 if number in excluded else 2 for number in numbers]
        for begin, end in _segment_runs(event_times):
            part, event_time = slice_block(block, heads, begin, end), event_times[begin]
            if event_time.confirms:
                self._ahead = AheadDocument(part, numbers[begin], event_time.time)
            self._begin_segment(event_time, numbers[begin])
            if not event_time.confirms:
                arrivals = _make_arrivals(part, event_times[begin:end], serials[begin:end], modes[begin:end])
                self.window.match_and_insert(arrivals, searches=False)
            for i in range(begin, end):
                if numbers[i] == self._ahead_serial and not event_times[i].confirms:
                    self._ahead = AheadDocument(slice_block(block, heads, i, i + 1), numbers[i], event_times[i].time)

    def admit(self, record: Record, event_time: EventTime, serial: int) -> None:
        """Enter a document at the current time, whatever it matches."""
        segments = self._segments or self._segments_before
        segment = segments[-1][0] if segments else 0
        self._enter(self._block(_texts([record.text]))[0], [serial], [event_time._replace(segment=segment)])

    def _block(self, texts: pa.LargeStringArray | Block) -> tuple[Block, Integers]:
        block = texts if isinstance(texts, Block) else self._extractor(texts)
        return block, row_heads(block.sizes)

    def _features_of(
        self, kept: Sequence[RestoredDocument]
    ) -> tuple[Sequence[RestoredDocument], tuple[Block, Integers]]:
        return kept, self._block(_texts([document.text for document in kept]))

    def _restored_event_time(self, document: RestoredDocument) -> EventTime:
        place = bisect_right(self._segments_before, document.serial, key=lambda segment: segment[1])
        segment = self._segments_before[max(place - 1, 0)][0]
        return EventTime(document.time, document.expiry, 0, 0, "", segment, 0)

    def state(self, excluded: int | None = None) -> dict[str, Any]:
        """Return what ``restore`` needs besides the documents in the window; ``excluded`` is a serial to leave out."""
        ahead = None if self._ahead is None or self._ahead.serial == excluded else self._ahead.serial
        confirmed = [item for item in self._confirmed_expiry.items() if item[0] != excluded]
        judge_state = {"ahead": ahead, "revived": confirmed, "segments": self._segments}
        return self.clock.state() | judge_state | ({"asked": self.domain_counts} if any(self.domain_counts) else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Restore a state from before a restart; ``enter`` follows with the documents of the window."""
        self.clock.restore(state)
        self._ahead_serial, self._confirmed_expiry = state["ahead"], dict(state["revived"])
        self._segments_before = [(segment, serial) for segment, serial in state["segments"]]
        self._set_domain_counts(DomainCounts(*state.get("asked", ())))

    def snapshot(self) -> MatcherSnapshot:
        """Return the state that ``undo`` goes back to."""
        return MatcherSnapshot(
            self.clock.state(), self._segments.copy(), self._ahead, self._confirmed_expiry.copy(), self.domain_counts
        )

    def undo(self, first: int, before: MatcherSnapshot) -> None:
        """Undo everything from a serial on, as far as any result depends on them."""
        self.clock.restore(before.clock)
        self.window.roll_back(first, before.segments[-1][0] if before.segments else None)
        self._set_domain_counts(before.domain_counts)
        if isinstance(self._second_step, ClassifierStep):
            self._second_step.forget_from(first)
        confirmed = self._confirmed_expiry.keys() - before.confirmed_expiry.keys()
        self._segments, self._ahead, self._confirmed_expiry = before.segments, before.ahead, before.confirmed_expiry
        if before.ahead is not None and before.ahead.serial in confirmed:
            # It has its own time by now, and must wait again as long as the clock says.
            self._reenter(before.ahead, EventTime(before.ahead.time, before.clock["pending_leaves"], 0, 0, "", 0, 0))

    def _reenter(self, ahead: AheadDocument, event_time: EventTime) -> None:
        self.window.remove(ahead.serial)
        self._insert(ahead.block, event_time, ahead.serial)

    def _insert(self, block: Block, event_time: EventTime, serial: int) -> None:
        self.window.match_and_insert(_make_arrivals(block, [event_time], np.array([serial]), [2]), searches=False)

    def remove(self, serial: int) -> None:
        """Remove a document from the window."""
        self.window.remove(serial)
        self._confirmed_expiry.pop(serial, None)
        if self._ahead is not None and self._ahead.serial == serial:
            self._ahead = None

    def expire(self) -> Integers:
        """Drop the segments that have left the window; return the serials of their documents."""
        if self.clock.clock is None or self.clock.length.value is None:
            return np.empty(0, np.int64)
        if self.clock.pending is None:
            self._ahead = None
        oldest = (self.clock.clock - self.clock.length.value) // self.clock.length.segment_length
        if oldest == self._oldest_segment:
            return np.empty(0, np.int64)
        self._oldest_segment = oldest
        dropped = self.window.drop_segments(oldest)
        while len(self._segments) > 1 and self._segments[0][0] < oldest:
            self._segments.pop(0)
        for serial in self._confirmed_expiry.keys() & set(dropped.tolist() if self._confirmed_expiry else ()):
            del self._confirmed_expiry[serial]
        return dropped

    def check(
        self, texts: pa.LargeStringArray, records: Sequence[Record], event_times: Sequence[EventTime]
    ) -> WindowFindings:
        """Find what each document would match in the window if it came next; none enters."""
        block, count = self._block(texts)[0], len(event_times)
        arrivals = _make_arrivals(block, event_times, np.full(count, -1), [0] * count)
        places, matches = self._find_matches(arrivals, records, best_only=True)
        places, first = np.unique(places, return_index=True)
        return WindowFindings(
            places, matches.take(first), self._own_counts(block), np.zeros(count, np.bool_), block.failed
        )

    def matches(self, record: Record) -> tuple[Integers, Floats]:
        """Return the serials of all documents in the window that a record matches, the most similar first."""
        block = self._block(_texts([record.text]))[0]
        arrivals = _make_arrivals(block, [self.clock.next_event_time()], np.full(1, -1), [0])
        found = self._find_matches(arrivals, [record], best_only=False)[1]
        return found.serials, found.similarity

    def nearest(self, text: str) -> tuple[Integers, Floats]:
        """Return the serials of all documents in the window that share a feature with a text, the nearest first."""
        found, scores = self.window.nearest(self._block(_texts([text]))[0], self.clock.next_event_time())
        return found.serials, scores

    def _begin_segment(self, event_time: EventTime, serial: int) -> None:
        """Begin a segment if an event time belongs to a new one, and reenter the document that it confirms."""
        if not self._segments or event_time.segment > self._segments[-1][0]:
            self._segments.append((event_time.segment, serial))
            self.window.begin_segment(event_time.segment)
        if event_time.confirms and self._ahead is not None:
            ahead, self._ahead = self._ahead, None
            self._confirmed_expiry[ahead.serial] = ahead.time
            self._reenter(ahead, event_time._replace(time=ahead.time, expiry=ahead.time))

    def _record(self, number: int) -> Record:
        """Return the record of a document in the window, or of one being matched."""
        first, records = self._current
        if 0 <= number - first < len(records):
            return records[number - first]
        return self._record_of(number) or UNKNOWN_RECORD


def _texts(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def _segment_runs(event_times: Sequence[EventTime]) -> Iterator[tuple[int, int]]:
    """Yield runs of documents of one segment; a document that confirms another is a run of its own."""
    begin = 0
    for i in range(1, len(event_times) + 1):
        if (
            i == len(event_times)
            or event_times[i].segment != event_times[begin].segment
            or event_times[i].confirms
            or event_times[i - 1].confirms
        ):
            yield begin, i
            begin = i
