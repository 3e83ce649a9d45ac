"""What goes into a shard of a flow, and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.recipe import Recipe
from neardup.search.window import Arrivals, EventTime, FlowClock, Length
from neardup.search.window import Found as Matched
from neardup.stream.index import record_at
from neardup.stream.judge import Judge
from neardup.stream.parts import Partners, Record, arrivals_of, joined, part_of

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]


class Arrived(NamedTuple):
    """Documents in order of arrival, as a shard takes them.

    Attributes
    ----------
    ids, texts, titles : pyarrow.LargeStringArray
        Of each document; none is null.
    """

    ids: pa.LargeStringArray
    texts: pa.LargeStringArray
    titles: pa.LargeStringArray

    def take(self, places: Integers) -> Arrived:
        """Return some of them."""
        chosen = pa.array(places)
        return Arrived(*(column.take(chosen) for column in self))

    def between(self, part: slice) -> Arrived:
        """Return a stretch of them."""
        return Arrived(*(column[part] for column in self))


class Entered(NamedTuple):
    """What entered a shard, in the order in which it did: enough to have it enter again.

    Attributes
    ----------
    documents : Arrived
        Which documents.
    serials, times, leaves, parts, reals : int64[n]
        Their numbers; as in an ``EventTime`` each one's time, when it leaves, its segment, and microseconds since 1970.
    again : bool[n]
        Whether it was there before, and is confirmed: from now on its own time counts.
    """

    documents: Arrived
    serials: Integers
    times: Integers
    leaves: Integers
    parts: Integers
    reals: Integers
    again: Booleans


class Found(NamedTuple):
    """What a shard found about documents.

    Attributes
    ----------
    places : int64[k]
        Which of the documents, ascending.
    partners : Partners
        What each matches, the best first, of those that are older.
    has_features : bool[n]
        Of each document, whether it can match anything.
    """

    places: Integers
    partners: Partners
    has_features: Booleans


class _Row(NamedTuple):
    """A document that enters: where it is among those that arrive, -1 for the one that was ahead."""

    place: int
    serial: int
    time: int
    leaves: int
    part: int
    real: int


class Shard(Judge):
    """A part of a flow's window, which every document asks and some enter, duplicates too.

    All shards of a flow see all documents, so that their clocks agree.

    Parameters
    ----------
    recipe : Recipe
        What matches.
    length : Length
        Of the window.
    best_only : bool
        Whether of the partners of each document only the best is wanted.
    statistics : Statistics, optional
        What recipes with ``needs_statistics`` take their frequencies from.
    classifier : Classifier, optional
        Where the recipe is that of a classifier.

    Attributes
    ----------
    now : float
        The clock on the wall for what arrives now, in seconds since 1970.
    names : dict of int to str
        The ids of what is held, by number.
    """

    def __init__(
        self,
        recipe: Recipe,
        length: Length,
        *,
        best_only: bool = False,
        statistics: Statistics | None = None,
        classifier: Classifier | None = None,
    ) -> None:
        self.now = 0.0
        self.names: dict[int, str] = {}
        self._records: dict[int, Record] = {}
        self._best_only = best_only
        #: The document that is ahead, in full, where it is one of this shard's.
        self._waits: tuple[Arrived, _Row] | None = None
        super().__init__(
            recipe,
            FlowClock(length, lambda: self.now),
            everything=True,
            statistics=statistics,
            record_of=self._records.get,
            classifier=classifier,
        )

    def moments(self, times: Sequence[int | None], now: float) -> list[EventTime]:
        """Return the moments of documents that arrive now, from their times in microseconds, None where there is none.

        Parameters
        ----------
        now : float
            The clock on the wall, in seconds since 1970.
        """
        self.now = now
        return [self.clock.see(time) for time in times]

    def find(
        self, documents: Arrived, moments: Sequence[EventTime], first: int, own: Booleans
    ) -> tuple[Found, Entered | None]:
        """Return whom documents match here, one after the other, and what of them entered.

        Parameters
        ----------
        documents : Arrived
            All that arrive.
        moments : sequence of EventTime
            Theirs, of ``moments``.
        first : int
            The number of the first.
        own : bool[n]
            Which of them this shard holds.
        """
        block = self._extractor(documents.texts)
        some = block.sizes > 0
        enters = own & some & np.array([moment.flag != "late" for moment in moments], np.bool_)
        records = self._records_of(documents, moments)
        self._together_with = first, records
        heads = np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64)
        rows: list[_Row] = []
        waited, found = self._waits, []
        for begin, end in self._runs(moments):
            rows += self._confirmed(moments[begin])
            self._begin(moments[begin], first + begin)
            numbers = np.arange(first + begin, first + end)
            inside = np.where(enters[begin:end], 2, 0).astype(np.int8)
            arrivals = arrivals_of(part_of(block, heads, begin, end), moments[begin:end], numbers, inside)
            found.append(self._asked(arrivals, records[begin:end], begin))
            for i in (begin + np.flatnonzero(enters[begin:end])).tolist():
                moment = moments[i]
                rows.append(_Row(i, first + i, moment.time, moment.leaves, moment.part, moment.real))
            for i in range(begin, end):
                if moments[i].flag == "ahead":
                    self._await(documents, rows, block, heads, i, first + i, bool(enters[i]))
        self._together_with = 0, ()
        places = np.concatenate([np.empty(0, np.int64), *(place for place, _ in found)])
        entered = self._entered(documents, rows, waited)
        if entered is not None:
            self._hold(entered)
        return Found(places, joined([partners for _, partners in found]), some), entered

    def _asked(self, arrivals: Arrivals, records: Sequence[Record], begin: int) -> tuple[Integers, Partners]:
        """Return which of some documents match what, and have those enter that are to."""
        block = arrivals.block
        if self._best_only and self._second is None:
            best = self.window.take(arrivals)
            at = np.flatnonzero(best.serials >= 0)
            same = (best.digests[at] == block.text_marks[at]).all(axis=1)
            return begin + at, Partners.first_step(best.serials[at], best.similarity[at], best.counts[at], same)
        # Older documents alone count, so it does no harm that all enter before the first one asks.
        self.window.take(arrivals, asks=False)
        places, found, scores = self.window.matches_each(arrivals)
        older = found.serials < arrivals.serials[places]
        places, scores = places[older], scores[older]
        serials, counts, digests = (column[older] for column in found)
        if self._second is None:
            same = (digests.view(np.uint64) == block.text_marks[places]).all(axis=1)
            return begin + places, Partners.first_step(serials, scores, counts, same)
        asking = np.unique(places)
        ends = np.searchsorted(places, asking, side="right").tolist()
        each: list[Partners] = []
        for place, start, end in zip(asking.tolist(), [0, *ends], ends, strict=False):
            own = Matched(serials[start:end], counts[start:end], digests[start:end])
            serial, digest = int(arrivals.serials[place]), block.text_marks[place]
            passed = self._looked_at(records[place], serial, own, scores[start:end], digest)
            each.append(passed.first() if self._best_only else passed)
        return begin + np.repeat(asking, [len(partners.serials) for partners in each]), joined(each)

    def _await(
        self, documents: Arrived, rows: list[_Row], block: Block, heads: Integers, i: int, serial: int, mine: bool
    ) -> None:
        """Note the document that is ahead, should a second one confirm it."""
        if not mine:
            self._ahead = self._waits = None
            return
        row = next(row for row in reversed(rows) if row.serial == serial)
        self._ahead = part_of(block, heads, i, i + 1), serial, row.time
        self._waits = documents.take(np.array([i])), row

    def _confirmed(self, moment: EventTime) -> list[_Row]:
        """Return the document that is ahead as it enters again, where this moment confirms it."""
        if not moment.confirms or self._ahead is None or self._waits is None:
            return []
        waits = self._waits[1]
        self._waits = None
        return [waits._replace(place=-1, leaves=waits.time, part=moment.part)]

    def _entered(self, documents: Arrived, rows: Sequence[_Row], waited: tuple[Arrived, _Row] | None) -> Entered | None:
        if not rows:
            return None
        first = {row.serial: row.place for row in rows if row.place >= 0}
        again = np.array([row.place < 0 for row in rows], np.bool_)
        # What was ahead before these documents came stands behind them.
        count = len(documents.ids)
        places = np.array([first.get(row.serial, count) for row in rows], np.int64)
        if waited is not None:
            columns = (pa.concat_arrays([own, other]) for own, other in zip(documents, waited[0], strict=True))
            documents = Arrived(*columns)
        serials, times, leaves, parts, reals = np.array([row[1:] for row in rows], np.int64).T.copy()
        return Entered(documents.take(places), serials, times, leaves, parts, reals, again)

    def _hold(self, entered: Entered) -> None:
        """Know the documents that entered by name, and where a second step asks for it, in full."""
        serials = entered.serials.tolist()
        self.names |= zip(serials, entered.documents.ids.to_pylist(), strict=True)
        if self._second is not None:
            texts, titles = entered.documents.texts.to_pylist(), entered.documents.titles.to_pylist()
            for serial, text, title, real in zip(serials, texts, titles, entered.reals.tolist(), strict=True):
                self._records[serial] = record_at(text, title, real)

    def _records_of(self, documents: Arrived, moments: Sequence[EventTime]) -> list[Record]:
        if self._second is None:
            return []
        columns = documents.texts.to_pylist(), documents.titles.to_pylist(), moments
        return [record_at(text, title, moment.real) for text, title, moment in zip(*columns, strict=True)]

    def enter_again(self, entered: Entered, awaited: int | None) -> None:
        """Have documents enter that had entered before, as after a restart.

        Parameters
        ----------
        entered : Entered
            As ``find`` gave it; all of them in their order.
        awaited : int or None
            The number of the document that is ahead now.
        """
        block = self._extractor(entered.documents.texts)
        heads = np.concatenate([[0], np.cumsum(block.sizes)]).astype(np.int64)
        columns = (entered.times, entered.leaves, entered.parts, entered.reals, entered.again)
        moments = [
            EventTime(time, leaves, 0, real, "", part, 0, again)
            for time, leaves, part, real, again in zip(*(column.tolist() for column in columns), strict=True)
        ]
        serials = entered.serials
        for begin, end in _stretches(moments):
            own = part_of(block, heads, begin, end)
            if moments[begin].confirms:
                self._ahead = own, int(serials[begin]), moments[begin].time
                self._begin(moments[begin], int(serials[begin]))
            else:
                self._begin(moments[begin], int(serials[begin]))
                always = np.full(end - begin, 2, np.int8)
                self.window.take(arrivals_of(own, moments[begin:end], serials[begin:end], always), asks=False)
        self._hold(entered)
        for i in np.flatnonzero((serials == -1 if awaited is None else serials == awaited) & ~entered.again).tolist():
            row = _Row(i, *(int(column[i]) for column in entered[1:6]))
            self._ahead = part_of(block, heads, i, i + 1), row.serial, row.time
            self._waits = entered.documents.take(np.array([i])), row

    def shard_state(self) -> dict[str, Any]:
        """Return what ``take_up`` needs besides what entered."""
        return self.clock.state() | {"ahead": None if self._ahead is None else self._ahead[1]}

    def take_up(self, state: dict[str, Any]) -> None:
        """Take up a state, after all that entered until then has entered again."""
        self.clock.restore(state)
        if self._ahead is not None and self._ahead[1] != state["ahead"]:
            self._ahead = self._waits = None
        self.expire()

    def expire(self) -> Integers:
        """Drop what has left the window, as ``Judge.expire``; return the numbers of those documents."""
        gone = super().expire()
        for serial in gone.tolist():
            self.names.pop(serial, None)
            self._records.pop(serial, None)
        if self._ahead is None:
            self._waits = None
        return gone


def _stretches(moments: Sequence[EventTime]) -> Iterator[tuple[int, int]]:
    """Yield stretches of one segment; a document that enters again is one of its own."""
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
