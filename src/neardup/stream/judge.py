"""Documents in order of arrival -> what each matches in the window, and the window as it is afterwards.

One judge is behind the index, the watched folder, the replay of a corpus and a stream of Spark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.domain import DomainCounts
from neardup.classifier.evidence import Contribution
from neardup.classifier.records import NO_TIME
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block, row_heads
from neardup.recipe import Recipe
from neardup.runtime import map_in_order
from neardup.search.window import Arrivals, EventTime, FlowClock, Window, slice_block
from neardup.stream.parts import (
    NO_MATCHES,
    AheadDocument,
    Booleans,
    Floats,
    Integers,
    Record,
    RestoredDocument,
    WindowFindings,
    WindowMatches,
    concatenate_matches,
    make_arrivals,
)
from neardup.stream.second_step import second_step_of

Words = npt.NDArray[np.uint64]
RecordOf = Callable[[int], Record | None]
_UNKNOWN_RECORD = Record("", "", NO_TIME)


class JudgeSnapshot(NamedTuple):
    """What a judge goes by besides the window, as it was before some documents: ``Judge.snapshot``."""

    clock: dict[str, Any]
    segments: list[tuple[int, int]]
    ahead: AheadDocument | None
    revived: dict[int, int]
    asked: DomainCounts


class Judge:
    """Looks each document up in the window and enters it there, duplicates only where ``everything`` is wanted.

    ``record_of`` gives what a second step goes by of a held document.
    """

    def __init__(
        self,
        recipe: Recipe,
        clock: FlowClock,
        *,
        everything: bool,
        statistics: Statistics | None,
        record_of: RecordOf,
        classifier: Classifier | None = None,
    ) -> None:
        self._everything, self._record_of = everything, record_of
        self._second = second_step_of(recipe, self._record, classifier)
        self.clock, self.window = clock, Window(recipe, clock.length.value)
        self._extractor = Extractor(recipe, statistics, digests=True)
        #: The segments, with the number of the first document in or after each.
        self._segments: list[tuple[int, int]] = []
        #: The first number and the records of the documents that are judged now.
        self._now: tuple[int, Sequence[Record]] = 0, ()
        self._ahead: AheadDocument | None = None
        #: Documents that were confirmed, with the times that count since then.
        self._revived: dict[int, int] = {}
        self._awaited: int | None = None
        self._segments_before: list[tuple[int, int]] = []
        #: The number of the oldest segment that was not dropped yet.
        self._least: int | None = None

    @property
    def needs_records(self) -> bool:
        """Whether documents are judged by their records, too: texts, titles and times."""
        return self._second is not None

    def judge(
        self,
        texts: pa.LargeStringArray | Block,
        records: Sequence[Record],
        moments: Sequence[EventTime],
        first: int,
    ) -> WindowFindings:
        """Judge documents one after the other, and enter those that are to be held.

        ``texts`` may be features that were made of them, with digests; ``records`` are there where ``needs_records``;
        ``first`` is the number of the first one.
        """
        block, heads = self._block(texts)
        has_features = block.sizes > 0
        may = has_features.astype(np.int8) * (1 + self._everything)
        if late := [i for i, moment in enumerate(moments) if moment.flag == "late"]:
            may[late] = 0
        held = np.zeros(len(moments), np.bool_)
        places, found = list[Integers](), list[WindowMatches]()
        self._now = first, records
        for begin, end in _segment_runs(moments):
            self._begin(moments[begin], first + begin)
            numbers = np.arange(first + begin, first + end)
            arrivals = make_arrivals(slice_block(block, heads, begin, end), moments[begin:end], numbers, may[begin:end])
            place, matches, held[begin:end] = self._match_and_enter(arrivals, records[begin:end])
            places.append(begin + place)
            found.append(matches)
            for i in range(begin, end):
                if moments[i].flag == "ahead":
                    waiting = AheadDocument(slice_block(block, heads, i, i + 1), first + i, moments[i].time)
                    self._ahead = waiting if held[i] else None
        self._now = 0, ()
        every = places[0] if len(places) == 1 else np.concatenate([np.empty(0, np.int64), *places])
        return WindowFindings(every, concatenate_matches(found), has_features, held)

    def _match_and_enter(
        self, arrivals: Arrivals, records: Sequence[Record]
    ) -> tuple[Integers, WindowMatches, Booleans]:
        """Return the best match of each document that has one, and which of them have entered."""
        may = arrivals.enters > 0
        if self._second is None:
            best = self.window.take(arrivals)
            at = np.flatnonzero(best.serials >= 0)
            if not len(at):
                return at, NO_MATCHES, may
            same = (best.digests[at] == arrivals.block.text_digests[at]).all(axis=1)
            matches = WindowMatches.of_first_step(best.serials[at], best.similarity[at], best.counts[at], same)
            return at, matches, may if self._everything else may & (best.serials < 0)
        if self._everything:
            # Older documents alone count, so it does no harm that all enter before the first one asks.
            self.window.take(arrivals, asks=False)
            return *self._find_matches(arrivals, records, best_only=True), may
        each, held = [], np.zeros(len(may), np.bool_)
        heads = row_heads(arrivals.block.sizes)
        for i in range(len(may)):
            one = arrivals.between(heads, i, i + 1)
            each.append(self._find_matches(one, records[i : i + 1], best_only=True)[1])
            if may[i] and not len(each[-1].serials):
                held[i] = True
                self.window.take(one, asks=False)
        return np.repeat(np.arange(len(may)), [len(one.serials) for one in each]), concatenate_matches(each), held

    def _find_matches(
        self, arrivals: Arrivals, records: Sequence[Record], *, best_only: bool
    ) -> tuple[Integers, WindowMatches]:
        """Return which documents match what among all that is held and older; a number of -1 is younger than all."""
        places, found, scores = self.window.matches_each(arrivals)
        if not len(places):
            return places, NO_MATCHES
        numbers = arrivals.serials[places]
        older = (found.serials < numbers) | (numbers < 0)
        places, scores = places[older], scores[older]
        serials, counts, digests = (column[older] for column in found)
        same = (digests.view(np.uint64) == arrivals.block.text_digests[places]).all(axis=1)
        if self._second is None:
            return places, WindowMatches.of_first_step(serials, scores, counts, same)
        asking = np.unique(places)
        ends = np.searchsorted(places, asking, side="right").tolist()
        each: list[WindowMatches] = []
        for place, start, end in zip(asking.tolist(), [0, *ends], ends, strict=False):
            first_step = WindowMatches.of_first_step(
                serials[start:end], scores[start:end], counts[start:end], same[start:end]
            )
            passed = self._apply_second_step(records[place], int(arrivals.serials[place]), first_step)
            each.append(passed.best() if best_only else passed)
        return np.repeat(asking, [len(matches.serials) for matches in each]), concatenate_matches(each)

    def _apply_second_step(self, record: Record, serial: int, found: WindowMatches) -> WindowMatches:
        """Return those of a document's matches that pass the second step, the best first."""
        differing = np.flatnonzero(~found.same)
        if self._second is None or not len(differing):
            return found
        looked = self._second.find_passing(record, serial, found.serials[differing])
        # Equal texts match whatever the second step would make of them.
        second, counts = np.ones(len(found.same)), found.counts.copy()
        g, vectors = found.g.copy(), np.full((len(found.same), looked.vectors.shape[1]), np.nan)
        at = differing[looked.places]
        second[at], counts[at], g[at], vectors[at] = looked.similarity, looked.counts, looked.g, looked.vectors
        order = np.sort(np.concatenate([np.flatnonzero(found.same), at]))
        order = order[np.lexsort((found.serials[order], -second[order]))]
        return WindowMatches(found.serials, second, counts, found.same, g, vectors).take(order)

    @property
    def asked(self) -> DomainCounts:
        """What a classifier was asked about the documents that arrived, all 0 without one."""
        return DomainCounts() if self._second is None else self._second.counts

    def contributions(self, matches: WindowMatches, at: int) -> tuple[float | None, tuple[Contribution, ...]]:
        """Return g of a pair, and by what it came about; None and nothing where no learned classifier was asked."""
        g = float(matches.g[at])
        if self._second is None or np.isnan(g):
            return None, ()
        return g, self._second.contributions(matches.vectors[at])

    def enter(self, batches: Iterable[Sequence[RestoredDocument]], threads: int = 1) -> None:
        """Enter documents that were held before a restart, in batches; ``restore`` comes before."""
        confirmed: list[tuple[Block, RestoredDocument]] = []
        revived = dict(self._revived)
        for kept, (block, heads) in map_in_order(self._features_of, batches, threads):
            confirmed += [
                (slice_block(block, heads, i, i + 1), one) for i, one in enumerate(kept) if one.serial in revived
            ]
            self._enter(block, [one.serial for one in kept], [self._restored_event_time(one) for one in kept], revived)
        # A document that was confirmed leaves with those that came after it.
        for block, one in confirmed:
            part, serial = self._segments_before[-1]
            moment = EventTime(one.time, revived[one.serial], 0, 0, "", part, 0)
            self._begin(moment, serial)
            always = np.full(1, 2, np.int8)
            self.window.take(make_arrivals(block, [moment], np.array([one.serial]), always), asks=False)

    def _enter(
        self, block: Block, numbers: Sequence[int], moments: Sequence[EventTime], but: Collection[int] = ()
    ) -> None:
        """Enter documents whatever they match, but some; one whose moment confirms was ahead, and enters again."""
        heads, serials = row_heads(block.sizes), np.array(numbers, np.int64)
        enters = np.array([0 if number in but else 2 for number in numbers], np.int8)
        for begin, end in _segment_runs(moments):
            part, moment = slice_block(block, heads, begin, end), moments[begin]
            if moment.confirms:
                self._ahead = AheadDocument(part, numbers[begin], moment.time)
            self._begin(moment, numbers[begin])
            if not moment.confirms:
                arrivals = make_arrivals(part, moments[begin:end], serials[begin:end], enters[begin:end])
                self.window.take(arrivals, asks=False)
            for i in range(begin, end):
                if numbers[i] == self._awaited and not moments[i].confirms:
                    self._ahead = AheadDocument(slice_block(block, heads, i, i + 1), numbers[i], moments[i].time)

    def admit(self, record: Record, moment: EventTime, serial: int) -> None:
        """Enter a document now, whatever it matches."""
        segments = self._segments or self._segments_before
        part = segments[-1][0] if segments else 0
        self._enter(self._block(_texts([record.text]))[0], [serial], [moment._replace(part=part)])

    def _block(self, texts: pa.LargeStringArray | Block) -> tuple[Block, Integers]:
        block = texts if isinstance(texts, Block) else self._extractor(texts)
        return block, row_heads(block.sizes)

    def _features_of(
        self, kept: Sequence[RestoredDocument]
    ) -> tuple[Sequence[RestoredDocument], tuple[Block, Integers]]:
        return kept, self._block(_texts([document.text for document in kept]))

    def _restored_event_time(self, document: RestoredDocument) -> EventTime:
        """Return the moment of a document from before a restart."""
        place = bisect_right(self._segments_before, document.serial, key=lambda segment: segment[1])
        part = self._segments_before[max(place - 1, 0)][0]
        return EventTime(document.time, document.leaves, 0, 0, "", part, 0)

    def state(self, without: int | None = None) -> dict[str, Any]:
        """Return what ``restore`` needs besides the documents that are held; without: one that will not be."""
        ahead = None if self._ahead is None or self._ahead.serial == without else self._ahead.serial
        revived = [both for both in self._revived.items() if both[0] != without]
        known = {"ahead": ahead, "revived": revived, "segments": self._segments}
        return self.clock.state() | known | ({"asked": self.asked} if any(self.asked) else {})

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a state from before a restart; ``enter`` follows for what was held then."""
        self.clock.restore(state)
        self._awaited, self._revived = state["ahead"], dict(state["revived"])
        self._segments_before = [(part, serial) for part, serial in state["segments"]]
        if self._second is not None:
            self._second.counts = DomainCounts(*state.get("asked", ()))

    def snapshot(self) -> JudgeSnapshot:
        """Return what ``undo`` needs to undo what is judged from now on."""
        return JudgeSnapshot(self.clock.state(), self._segments.copy(), self._ahead, self._revived.copy(), self.asked)

    def undo(self, first: int, before: JudgeSnapshot) -> None:
        """Undo what was judged from a number on, as far as any answer can tell."""
        self.clock.restore(before.clock)
        self.window.take_back(first, before.segments[-1][0] if before.segments else None)
        if self._second is not None:
            self._second.forget_from(first)
            self._second.counts = before.asked
        confirmed = self._revived.keys() - before.revived.keys()
        self._segments, self._ahead, self._revived = before.segments, before.ahead, before.revived
        if before.ahead is not None and before.ahead.serial in confirmed:
            # It has its own time by now, and must wait again, for as long as the clock says.
            self._reenter(before.ahead, EventTime(before.ahead.time, before.clock["pending_leaves"], 0, 0, "", 0, 0))

    def _reenter(self, waiting: AheadDocument, moment: EventTime) -> None:
        """Have a document that is held be held as of another moment."""
        self.window.remove(waiting.serial)
        always = np.full(1, 2, np.int8)
        self.window.take(make_arrivals(waiting.block, [moment], np.array([waiting.serial]), always), asks=False)

    def remove(self, serial: int) -> None:
        """Take a document out of the window."""
        self.window.remove(serial)
        self._revived.pop(serial, None)
        if self._ahead is not None and self._ahead.serial == serial:
            self._ahead = None

    def expire(self) -> Integers:
        """Drop the segments that have left the window; return the numbers of the documents in them."""
        if self.clock.clock is None or self.clock.length.value is None:
            return np.empty(0, np.int64)
        if self.clock.pending is None:
            self._ahead = None
        least = (self.clock.clock - self.clock.length.value) // self.clock.length.part
        if least == self._least:
            return NO_MATCHES.serials
        self._least = least
        gone = self.window.drop_segments(least)
        while len(self._segments) > 1 and self._segments[0][0] < least:
            self._segments.pop(0)
        for serial in self._revived.keys() & set(gone.tolist() if self._revived else ()):
            del self._revived[serial]
        return gone

    def check(
        self, texts: pa.LargeStringArray, records: Sequence[Record], moments: Sequence[EventTime]
    ) -> WindowFindings:
        """Find what each of some documents matches among what is held, as if it came next; none enters."""
        block, count = self._block(texts)[0], len(moments)
        arrivals = make_arrivals(block, moments, np.full(count, -1), np.zeros(count, np.int8))
        places, matches = self._find_matches(arrivals, records, best_only=True)
        places, first = np.unique(places, return_index=True)
        return WindowFindings(places, matches.take(first), block.sizes > 0, np.zeros(count, np.bool_))

    def matches(self, record: Record) -> tuple[Integers, Floats]:
        """Return the numbers of all held documents that a document matches now, the most similar first."""
        none, never = np.full(1, -1, np.int64), np.zeros(1, np.int8)
        block = self._block(_texts([record.text]))[0]
        arrivals = make_arrivals(block, [self.clock.next_event_time()], none, never)
        found = self._find_matches(arrivals, [record], best_only=False)[1]
        return found.serials, found.similarity

    def nearest(self, text: str) -> tuple[Integers, Floats]:
        """Return the numbers of all held documents with anything in common with a text, the most similar first."""
        found, scores = self.window.nearest(self._block(_texts([text]))[0], self.clock.next_event_time())
        return found.serials, scores

    def _begin(self, moment: EventTime, serial: int) -> None:
        """Begin a segment where a moment is of a new one, and enter again the document that it confirms."""
        if not self._segments or moment.part > self._segments[-1][0]:
            self._segments.append((moment.part, serial))
            self.window.begin_segment(moment.part)
        if moment.confirms and self._ahead is not None:
            waiting, self._ahead = self._ahead, None
            self._revived[waiting.serial] = waiting.time
            self._reenter(waiting, moment._replace(time=waiting.time, leaves=waiting.time))

    def _record(self, number: int) -> Record:
        """Return what is known of a document that is held, or judged now."""
        first, given = self._now
        if 0 <= number - first < len(given):
            return given[number - first]
        return self._record_of(number) or _UNKNOWN_RECORD


def _texts(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


def _segment_runs(moments: Sequence[EventTime]) -> Iterator[tuple[int, int]]:
    """Yield stretches that go into one segment; a document that confirms another is one of its own."""
    begin = 0
    for i in range(1, len(moments) + 1):
        if (
            i == len(moments)
            or moments[i].part != moments[begin].part
            or moments[i].confirms
            or moments[i - 1].confirms
        ):
            yield begin, i
            begin = i
