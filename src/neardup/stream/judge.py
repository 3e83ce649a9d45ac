"""Documents in order of arrival -> the best match of each in the window, and the window as it is afterwards."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.values import NO_TIME
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.recipe import Recipe
from neardup.runtime import in_order
from neardup.search.window import EventTime, FlowClock, Found, Window
from neardup.stream.parts import Judged, Kept, Partners, Record, arrivals_of, part_of
from neardup.stream.second_step import second_of

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]
RecordOf = Callable[[int], Record | None]
_ALWAYS = np.full(1, 2, np.int8)
_UNKNOWN = Record("", "", NO_TIME)


class Before(NamedTuple):
    """What a judge goes by besides the window, as it was before some documents: ``Judge.before``.

    Attributes
    ----------
    clock : dict
        The state of the clock.
    segments, ahead, revived
        As in the judge.
    """

    clock: dict[str, Any]
    segments: list[tuple[int, int]]
    ahead: tuple[Block, int, int] | None
    revived: dict[int, int]


class Judge:
    """Looks each document up in the window and enters it there.

    Parameters
    ----------
    recipe : Recipe
        What matches.
    clock : FlowClock
        When documents arrive.
    everything : bool
        Whether duplicates enter the window, too.
    statistics : Statistics, optional
        What recipes with ``needs_statistics`` take their frequencies from.
    record_of : callable
        What is known of a held document by its number, for recipes with a second step.
    classifier : Classifier, optional
        Where the recipe is that of a classifier.
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
        self._second = second_of(recipe, self._record, classifier)
        self.clock, self.window = clock, Window(recipe, clock.length.value)
        self._extractor = Extractor(recipe, statistics, digests=True)
        #: The segments, with the number of the first document in or after each.
        self._segments: list[tuple[int, int]] = []
        #: The first number and the records of the documents that are judged now.
        self._together_with: tuple[int, Sequence[Record]] = 0, ()
        #: The document that is ahead, if it was entered: should a second one confirm it, it is entered again.
        self._ahead: tuple[Block, int, int] | None = None
        #: Documents that were confirmed, with the times that count since then.
        self._revived: dict[int, int] = {}
        self._awaited: int | None = None
        self._segments_before: list[tuple[int, int]] = []

    def judge(self, records: Sequence[Record], moments: Sequence[EventTime], first: int) -> list[Judged]:
        """Return what is found about documents, one after the other, the numbers of which begin with first."""
        block = self._extractor(pa.array([each.text for each in records], pa.large_string()))
        heads = np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64)
        self._together_with = first, records
        judged: list[Judged] = []
        for begin, end in self._runs(moments):
            self._begin(moments[begin], first + begin)
            part = part_of(block, heads, begin, end)
            judged += self._together(part, records[begin:end], moments[begin:end], first + begin)
            for i in range(begin, end):
                if moments[i].flag == "ahead":
                    own = (part_of(block, heads, i, i + 1), first + i, moments[i].time)
                    self._ahead = own if judged[i].held else None
        return judged

    def enter(self, batches: Iterable[Sequence[Kept]], threads: int = 1) -> None:
        """Enter documents that were held before a restart, in batches; ``restore`` comes before.

        Parameters
        ----------
        batches : iterable
            Documents in the order of their numbers.
        threads : int
            They make features while others are entered; it changes the time, never the window.
        """
        confirmed: list[tuple[Block, Kept]] = []
        for kept, block in in_order(self._features_of, batches, threads):
            heads = np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64)
            moments = [self._moment_before(document) for document in kept]
            for i, document in enumerate(kept):
                if document.serial in self._revived:
                    confirmed.append((part_of(block, heads, i, i + 1), document))
                if document.serial == self._awaited:
                    self._ahead = part_of(block, heads, i, i + 1), document.serial, document.time
            for begin, end in self._runs(moments):
                self._begin(moments[begin], kept[begin].serial)
                always = np.array([0 if d.serial in self._revived else 2 for d in kept[begin:end]], np.int8)
                numbers = np.array([d.serial for d in kept[begin:end]], np.int64)
                part = part_of(block, heads, begin, end)
                self.window.take(arrivals_of(part, moments[begin:end], numbers, always), asks=False)
        if confirmed and self._segments_before[-1][0] > self._segments[-1][0]:
            self._segments.append(self._segments_before[-1])
            self.window.begin_hour(self._segments[-1][0])
        # A document that was confirmed leaves with those that came after it.
        for block, document in confirmed:
            moment = self._moment_before(document)._replace(leaves=self._revived[document.serial])
            self.window.take(arrivals_of(block, [moment], np.array([document.serial]), _ALWAYS), asks=False)

    def admit(self, record: Record, moment: EventTime, serial: int) -> None:
        """Enter a document now, whatever it matches.

        Parameters
        ----------
        record : Record
            Its text.
        moment : EventTime
            Of the clock, as ``FlowClock.next_event_time`` gives it.
        serial : int
            Its number, the next one.
        """
        block = self._extractor(pa.array([record.text], pa.large_string()))
        segments = self._segments or self._segments_before
        self._begin(moment._replace(part=segments[-1][0] if segments else 0), serial)
        self.window.take(arrivals_of(block, [moment], np.array([serial]), _ALWAYS), asks=False)

    def _features_of(self, kept: Sequence[Kept]) -> tuple[Sequence[Kept], Block]:
        return kept, self._extractor(pa.array([document.text for document in kept], pa.large_string()))

    def _moment_before(self, document: Kept) -> EventTime:
        """Return the moment of a document from before a restart."""
        place = bisect_right(self._segments_before, document.serial, key=lambda segment: segment[1])
        part = self._segments_before[max(place - 1, 0)][0]
        return EventTime(document.time, document.leaves, 0, 0, "", part, 0)

    def state(self) -> dict[str, Any]:
        """Return what ``restore`` needs besides the documents that are held."""
        ahead = None if self._ahead is None else self._ahead[1]
        return self.clock.state() | {"ahead": ahead, "revived": list(self._revived.items()), "hours": self._segments}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a state from before a restart; ``enter`` follows for what was held then."""
        self.clock.restore(state)
        self._awaited, self._revived = state["ahead"], dict(state["revived"])
        self._segments_before = [(part, serial) for part, serial in state["hours"]]

    def before(self) -> Before:
        """Return what ``take_back`` needs to undo what is judged from now on."""
        return Before(self.clock.state(), self._segments.copy(), self._ahead, self._revived.copy())

    def take_back(self, first: int, before: Before) -> None:
        """Undo what was judged from a number on, as far as any answer can tell."""
        self.clock.restore(before.clock)
        self.window.take_back(first, before.segments[-1][0] if before.segments else None)
        if self._second is not None:
            self._second.forget_from(first)
        confirmed = self._revived.keys() - before.revived.keys()
        self._segments, self._ahead, self._revived = before.segments, before.ahead, before.revived
        if before.ahead is not None and before.ahead[1] in confirmed:
            # It has its own time by now, and must wait again, for as long as the clock says.
            block, serial, time = before.ahead
            self.window.remove(serial)
            waits = EventTime(time, before.clock["pending_leaves"], 0, 0, "", 0, 0)
            self.window.take(arrivals_of(block, [waits], np.array([serial]), _ALWAYS), asks=False)

    def remove(self, serial: int) -> None:
        """Take a document out of the window."""
        self.window.remove(serial)
        self._revived.pop(serial, None)
        if self._ahead is not None and self._ahead[1] == serial:
            self._ahead = None

    def expire(self) -> Integers:
        """Drop the segments that have left the window; return the numbers of the documents in them."""
        if self.clock.clock is None or self.clock.length.value is None:
            return np.empty(0, np.int64)
        least = (self.clock.clock - self.clock.length.value) // self.clock.length.part
        gone = self.window.drop_hours(least)
        while len(self._segments) > 1 and self._segments[0][0] < least:
            self._segments.pop(0)
        if self.clock.pending is None:
            self._ahead = None
        for serial in self._revived.keys() & set(gone.tolist() if self._revived else ()):
            del self._revived[serial]
        return gone

    def matches(self, record: Record) -> tuple[Integers, npt.NDArray[np.float64]]:
        """Return the numbers of all held documents that a document matches now, the most similar first."""
        moment = self.clock.next_event_time()
        block = self._extractor(pa.array([record.text], pa.large_string()))
        found = self._all_matches(block, record, moment, -1)
        return found.serials, found.similarity

    def nearest(self, text: str) -> tuple[Integers, npt.NDArray[np.float64]]:
        """Return the numbers of all held documents with anything in common with a text, the most similar first."""
        block = self._extractor(pa.array([text], pa.large_string()))
        found, scores = self.window.nearest(block, self.clock.next_event_time())
        return found.serials, scores

    def _runs(self, moments: Sequence[EventTime]) -> Iterator[tuple[int, int]]:
        """Yield stretches that go into one segment; a document that confirms another begins one."""
        begin = 0
        for i in range(1, len(moments) + 1):
            if i == len(moments) or moments[i].part != moments[begin].part or moments[i].confirms:
                yield begin, i
                begin = i

    def _begin(self, moment: EventTime, serial: int) -> None:
        if not self._segments or moment.part > self._segments[-1][0]:
            self._segments.append((moment.part, serial))
            self.window.begin_hour(moment.part)
        if moment.confirms and self._ahead is not None:
            block, serial, time = self._ahead
            self._ahead = None
            self.window.remove(serial)
            self._revived[serial] = time
            again = moment._replace(time=time, leaves=time)
            self.window.take(arrivals_of(block, [again], np.array([serial]), _ALWAYS), asks=False)

    def _together(
        self, block: Block, records: Sequence[Record], moments: Sequence[EventTime], first: int
    ) -> list[Judged]:
        numbers = np.arange(first, first + len(moments))
        if self._second is not None:
            return [
                self._with_second_step(part_of(block, None, i, i + 1), records[i], moments[i], first + i)
                for i in range(len(moments))
            ]
        enters = np.array([0 if m.flag == "late" else 1 + self._everything for m in moments], np.int8)
        best = self.window.take(arrivals_of(block, moments, numbers, enters))
        columns = (
            best.serials.tolist(),
            best.similarity.tolist(),
            best.counts.tolist(),
            (best.digests == block.text_marks).all(axis=1).tolist(),
            ((block.sizes > 0) & ((enters == 2) | ((enters == 1) & (best.serials < 0)))).tolist(),
            (block.sizes > 0).tolist(),
        )
        return [
            Judged(moment, of, score, (o, a, b), same, held, some)
            for moment, of, score, (o, a, b), same, held, some in zip(moments, *columns, strict=True)
        ]

    def _with_second_step(self, block: Block, record: Record, moment: EventTime, serial: int) -> Judged:
        found = self._all_matches(block, record, moment, serial)
        some = bool(block.sizes[0] > 0)
        held = some and moment.flag != "late" and (self._everything or not len(found.serials))
        if held:
            arrival = arrivals_of(block, [moment], np.array([serial]), _ALWAYS)
            self.window.take(arrival, asks=False)
        if not len(found.serials):
            return Judged(moment, -1, -1.0, (0, 0, 0), False, held, some)
        o, a, b = found.counts[0].tolist()
        of, score, same = int(found.serials[0]), float(found.similarity[0]), bool(found.same[0])
        judged = Judged(moment, of, score, (o, a, b), same, held, some)
        if self._second is None or np.isnan(found.g[0]):
            return judged
        return judged._replace(g=float(found.g[0]), measures=self._second.contributions(found.vectors[0]))

    def _all_matches(self, block: Block, record: Record, moment: EventTime, serial: int) -> Partners:
        """Return all matches, the best first."""
        if not len(block.features):
            none = np.empty(0, np.int64)
            return Partners.first_step(none, np.empty(0), np.empty((0, 3), np.int64), np.empty(0, np.bool_))
        arrival = arrivals_of(block, [moment], np.array([serial]), np.zeros(1, np.int8))
        found, scores = self.window.matches(arrival)
        return self._looked_at(record, serial, found, scores, block.text_marks[0])

    def _looked_at(self, record: Record, serial: int, found: Found, scores: Floats, digest: Words) -> Partners:
        """Return those of a document's matches that pass the second step, the best first."""
        same = (found.digests.view(np.uint64) == digest).all(axis=1)
        differing = np.flatnonzero(~same)
        if self._second is None or not len(differing):
            return Partners.first_step(found.serials, scores, found.counts, same)
        looked = self._second.look(record, serial, found.serials[differing])
        # Equal texts match whatever the second step would make of them.
        second, counts = np.ones(len(same)), found.counts.copy()
        g, vectors = np.full(len(same), np.nan), np.full((len(same), looked.vectors.shape[1]), np.nan)
        at = differing[looked.places]
        second[at], counts[at], g[at], vectors[at] = looked.similarity, looked.counts, looked.g, looked.vectors
        order = np.sort(np.concatenate([np.flatnonzero(same), at]))
        order = order[np.lexsort((found.serials[order], -second[order]))]
        return Partners(found.serials[order], second[order], counts[order], same[order], g[order], vectors[order])

    def _record(self, number: int) -> Record:
        """Return what is known of a document that is held, or judged now."""
        first, given = self._together_with
        if 0 <= number - first < len(given):
            return given[number - first]
        return self._record_of(number) or _UNKNOWN
