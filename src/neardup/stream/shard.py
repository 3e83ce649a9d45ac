"""What goes into a shard of a flow, and what comes out of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.search.window import EventTime, FlowClock, Length
from neardup.stream.index import record_at
from neardup.stream.judge import Judge
from neardup.stream.parts import Booleans, Findings, Integers, Record


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

    def take(self, places: Sequence[int] | Integers) -> Arrived:
        """Return some of them."""
        chosen = pa.array(places, pa.int64())
        return Arrived(*(column.take(chosen) for column in self))

    def between(self, part: slice) -> Arrived:
        """Return a stretch of them."""
        return Arrived(*(column[part] for column in self))

    def records(self, reals: Sequence[int]) -> list[Record]:
        """Return what a second step goes by; reals: their times in microseconds since 1970."""
        columns = self.texts.to_pylist(), self.titles.to_pylist(), reals
        return [record_at(text, title, real) for text, title, real in zip(*columns, strict=True)]


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
        #: The document that is ahead, where it is one of this shard's.
        self._waits: Arrived | None = None
        super().__init__(
            recipe,
            FlowClock(length, lambda: self.now),
            everything=True,
            statistics=statistics,
            record_of=self._records.get,
            classifier=classifier,
            best_only=best_only,
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
    ) -> tuple[Findings, Entered | None]:
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
        records = documents.records([moment.real for moment in moments]) if self.needs_records else []
        found, waited = self.judge(documents.texts, records, moments, first, own), self._waits
        self._waits = None
        if self._ahead is not None:
            here = self._ahead.serial - first
            self._waits = documents.take([here]) if here >= 0 else waited
        entered = _entered(documents, moments, first, found, waited)
        if entered is not None:
            self._hold(entered)
        return found, entered

    def _hold(self, entered: Entered) -> None:
        """Know the documents that entered by name, and where a second step asks for it, in full."""
        serials = entered.serials.tolist()
        self.names |= zip(serials, entered.documents.ids.to_pylist(), strict=True)
        if self.needs_records:
            self._records |= zip(serials, entered.documents.records(entered.reals.tolist()), strict=True)

    def enter_again(self, entered: Entered, awaited: int | None) -> None:
        """Have documents enter that had entered before, as after a restart.

        Parameters
        ----------
        entered : Entered
            As ``find`` gave it; all of them in their order.
        awaited : int or None
            The number of the document that is ahead now.
        """
        columns = (entered.times, entered.leaves, entered.parts, entered.reals, entered.again)
        moments = [
            EventTime(time, leaves, 0, real, "", part, 0, again)
            for time, leaves, part, real, again in zip(*(column.tolist() for column in columns), strict=True)
        ]
        self._awaited = awaited
        self._enter(self._extractor(entered.documents.texts), entered.serials.tolist(), moments)
        self._hold(entered)
        if self._ahead is not None:
            here = np.flatnonzero((entered.serials == self._ahead.serial) & ~entered.again)
            self._waits = entered.documents.take(here) if len(here) else self._waits

    def shard_state(self) -> dict[str, Any]:
        """Return what ``take_up`` needs besides what entered."""
        return self.clock.state() | {"ahead": None if self._ahead is None else self._ahead.serial}

    def take_up(self, state: dict[str, Any]) -> None:
        """Take up a state, after all that entered until then has entered again."""
        self.clock.restore(state)
        if self._ahead is not None and self._ahead.serial != state["ahead"]:
            self._ahead = None
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


def _entered(
    documents: Arrived, moments: Sequence[EventTime], first: int, found: Findings, waited: Arrived | None
) -> Entered | None:
    """Return which of some documents entered, and which entered again: that one is among them, or had waited."""
    rows: list[tuple[int, ...]] = []
    again = dict(found.again)
    for i, moment in enumerate(moments):
        if (was := again.get(i)) is not None:
            place = was.serial - first if was.serial >= first else len(moments)
            rows.append((place, was.serial, was.time, was.time, moment.part, was.real, 1))
        if found.held[i]:
            rows.append((i, first + i, moment.time, moment.leaves, moment.part, moment.real, 0))
    if not rows:
        return None
    places, serials, times, leaves, parts, reals, confirmed = np.array(rows, np.int64).T.copy()
    if waited is not None:
        # What was ahead before these documents came stands behind them.
        documents = Arrived(*(pa.concat_arrays([own, other]) for own, other in zip(documents, waited, strict=True)))
    return Entered(documents.take(places), serials, times, leaves, parts, reals, confirmed > 0)
