"""Documents through the window, and what each hour of the flow came to."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from neardup.errors import RecipeError
from neardup.flow.document import Document, Verdict
from neardup.flow.index import Index
from neardup.flow.register import IndexStatistics
from neardup.replay.order import Item
from neardup.times import utc

_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
#: The wall clock while a corpus is replayed: nothing in it is later than now.
END_OF_TIME = 253_402_300_799.0


@dataclass(frozen=True, slots=True)
class Hour:
    """An hour of the flow in which documents arrived.

    Attributes
    ----------
    hour : int
        Hours since 1970 (UTC).
    items, originals, duplicates : int
        How many arrived, and what they were.
    held, bytes : int
        Documents in the window at its end, and the memory of the window.
    median, p99 : float
        Microseconds of processor time an item.
    """

    hour: int
    items: int
    originals: int
    duplicates: int
    held: int
    bytes: int
    median: float
    p99: float

    @property
    def begins(self) -> str:
        """When it begins, as ISO 8601."""
        return hour_text(self.hour)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        fields = asdict(self)
        times = {"cpu_us_median": fields.pop("median"), "cpu_us_p99": fields.pop("p99")}
        return fields | {"hour": self.begins} | times


@dataclass(slots=True)
class Totals:
    """What a whole replay came to.

    Attributes
    ----------
    items, exact, near : int
        How many arrived; how many of them repeated another one byte for byte, or nearly.
    flags : Counter
        How many verdicts carry each flag.
    text_bytes : int
        Of the texts.
    first, last : int or None
        Times of the earliest and the latest, in microseconds.
    cpu, wall : int
        Nanoseconds spent on judging.
    most_held, most_bytes : int
        The fullest window at the end of an hour, and the most memory.
    """

    items: int = 0
    exact: int = 0
    near: int = 0
    flags: Counter[str] = field(default_factory=Counter)
    text_bytes: int = 0
    first: int | None = None
    last: int | None = None
    cpu: int = 0
    wall: int = 0
    most_held: int = 0
    most_bytes: int = 0

    @property
    def duplicates(self) -> int:
        """How many were no originals."""
        return self.exact + self.near

    @property
    def share(self) -> float:
        """The share of duplicates: the paper's P."""
        return self.duplicates / max(self.items, 1)

    @property
    def check(self) -> float:
        """Seconds on the wall that judging an item took: the paper's t_check."""
        return self.wall / 1e9 / max(self.items, 1)

    def balance(self, downstream: float) -> float:
        """Return how many times what is saved outweighs the check: P times the seconds downstream, by t_check."""
        return self.share * downstream / self.check if self.check else math.inf

    def as_dict(self, downstream: float) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return {
            "items": self.items,
            "originals": self.items - self.duplicates,
            "duplicates": self.duplicates,
            "exact": self.exact,
            "near": self.near,
            "flags": dict(sorted(self.flags.items())),
            "text_bytes": self.text_bytes,
            "first": None if self.first is None else time_text(self.first),
            "last": None if self.last is None else time_text(self.last),
            "most_held": self.most_held,
            "most_bytes": self.most_bytes,
            "cpu_us_mean": self.cpu / 1e3 / max(self.items, 1),
            "wall_us_mean": self.wall / 1e3 / max(self.items, 1),
            "share": self.share,
            "downstream_s": downstream,
            "saved_by_spent": self.balance(downstream) if self.items else None,
        }


class Replay:
    """One run of documents through an index; iterate over it for the hours as they end.

    Parameters
    ----------
    index : Index
        The window; its clock on the wall is to stand at END_OF_TIME.
    batch : int
        How many documents are judged at once: with 1 each is timed by itself, and with more each counts as the mean of
        those it came with.
    speed : float, optional
        How many seconds of the flow pass in one; None waits for nothing.
    by_clock : bool
        Whether an item belongs to the hour that the flow's clock shows when it is judged, and not to its own: where
        items may come in any order.
    see : callable, optional
        Shown the documents judged at once, and their verdicts.

    Attributes
    ----------
    totals : Totals
        Of all that was judged so far.
    """

    def __init__(
        self,
        index: Index,
        *,
        batch: int = 1,
        speed: float | None = None,
        by_clock: bool = False,
        see: Callable[[Sequence[Item], Sequence[Verdict]], None] | None = None,
    ) -> None:
        self._index, self._batch, self._by_clock = index, batch, by_clock
        self._pace = None if speed is None else Pace(speed)
        self._see = see
        self.totals = Totals()
        self._latest = 0

    def hours(self, items: Iterable[Item]) -> Iterator[Hour]:
        """Judge the documents and yield each hour when it has ended."""
        current: int | None = None
        tally = _Tally()
        for group in self._together(items):
            hour = group[0].time // _HOUR
            if not self._by_clock and current not in (None, hour):
                yield self._ended(current, tally, self._index.statistics)
                tally = _Tally()
            if self._pace is not None:
                self._pace.wait_for(group[-1].time)
            before = self._index.statistics if self._by_clock else None
            verdicts, each = self._judged(group)
            if before is not None:
                hour = self._hour_by_clock(group)
                if current not in (None, hour):
                    yield self._ended(current, tally, before)
                    tally = _Tally()
            current = hour
            tally.take(verdicts, each)
            if self._see is not None:
                self._see(group, verdicts)
        if current is not None:
            yield self._ended(current, tally, self._index.statistics)

    def _together(self, items: Iterable[Item]) -> Iterator[list[Item]]:
        """Cut the flow into what is judged at once: of one hour, and only what is due where time is kept."""
        group: list[Item] = []
        for item in items:
            # Asked of every item, for the first one starts the clock.
            later = self._pace is not None and not self._pace.is_due(item.time)
            full = len(group) >= self._batch
            if group and (full or later or item.time // _HOUR != group[0].time // _HOUR):
                yield group
                group = []
            group.append(item)
        if group:
            yield group

    def _judged(self, group: list[Item]) -> tuple[list[Verdict], float]:
        """Return the verdicts, and the microseconds of processor time that each took."""
        documents = [Document(item.id, item.text, utc(item.time), title=item.title) for item in group]
        # Of this thread alone: the thread that reads ahead works meanwhile.
        cpu, wall = time.thread_time_ns(), time.perf_counter_ns()
        verdicts = [self._index.add(documents[0])] if len(group) == 1 else self._index.add_many(documents)
        cpu, wall = time.thread_time_ns() - cpu, time.perf_counter_ns() - wall
        totals = self.totals
        totals.items += len(group)
        totals.cpu += cpu
        totals.wall += wall
        totals.text_bytes += sum(item.size for item in group)
        times = [item.time for item in group]
        totals.first = min(times) if totals.first is None else min(totals.first, *times)
        totals.last = max(times) if totals.last is None else max(totals.last, *times)
        for verdict in verdicts:
            if verdict.flag:
                totals.flags[verdict.flag] += 1
            if verdict.kind == "exact":
                totals.exact += 1
            elif verdict.is_duplicate:
                totals.near += 1
        return verdicts, cpu / 1e3 / len(group)

    def _hour_by_clock(self, group: list[Item]) -> int:
        """Return the hour of the flow's clock; windows that have none go by the latest time so far."""
        clock = self._index.statistics.clock
        if clock is not None:
            return int(clock // 3600)
        self._latest = max([self._latest, *(item.time for item in group)])
        return self._latest // _HOUR

    def _ended(self, hour: int, tally: _Tally, now: IndexStatistics) -> Hour:
        self.totals.most_held = max(self.totals.most_held, now.held)
        self.totals.most_bytes = max(self.totals.most_bytes, now.bytes)
        median, p99 = np.percentile(tally.times, [50, 99], method="inverted_cdf").tolist()
        duplicates = sum(tally.duplicates)
        items = len(tally.times)
        return Hour(hour, items, items - duplicates, duplicates, now.held, now.bytes, median, p99)


class _Tally:
    """What an hour has seen so far."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.duplicates: list[bool] = []

    def take(self, verdicts: Sequence[Verdict], each: float) -> None:
        self.times += [each] * len(verdicts)
        self.duplicates += [verdict.is_duplicate for verdict in verdicts]


class Pace:
    """Lets the time of the flow pass so many times as fast as that on the wall.

    Parameters
    ----------
    speed : float
        Seconds of the flow in a second.

    Raises
    ------
    RecipeError
        If it is not above 0, or not finite.
    """

    def __init__(self, speed: float) -> None:
        if not (math.isfinite(speed) and speed > 0):
            raise RecipeError(f"speed {speed:g} is not above 0; 1 is as fast as it was, 60 an hour a minute")
        self._speed = speed
        self._begin: tuple[float, int] | None = None

    def _seconds_until(self, moment: int) -> float:
        now = time.monotonic()
        if self._begin is None:
            self._begin = now, moment
        began, first = self._begin
        return (moment - first) / _SECOND / self._speed - (now - began)

    def is_due(self, moment: int) -> bool:
        """Return whether a moment of the flow, in microseconds, has come."""
        return self._seconds_until(moment) <= 0

    def wait_for(self, moment: int) -> None:
        """Sleep until a moment of the flow has come; the first one comes at once."""
        while (rest := self._seconds_until(moment)) > 0:
            time.sleep(min(rest, 3600))


def time_text(moment: int) -> str:
    """Return a time in microseconds as ISO 8601, to the second."""
    return utc(moment).isoformat(timespec="seconds").replace("+00:00", "Z")


def hour_text(hour: int) -> str:
    """Return an hour since 1970 as ISO 8601."""
    return utc(hour * _HOUR).isoformat(timespec="minutes").replace("+00:00", "Z")
