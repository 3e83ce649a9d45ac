"""The flow's clock: by what time a document is judged, what its partners may be, and when it leaves."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, Self

from neardup.errors import RecipeError

_SECOND = 1_000_000
_HOUR = 3600 * _SECOND
_UNITS = {"s": _SECOND, "m": 60 * _SECOND, "h": _HOUR, "d": 24 * _HOUR, "w": 7 * 24 * _HOUR}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?) ?([smhdw])")
_DOCUMENTS = re.compile(r"(\d[\d_,]*) ?documents?")
_WAYS = "give a time as 24h, 90m or 7d, a number of documents as '8000 documents', or endless"
#: A window has so many sub-indexes, which is an hour each for one of a day.
_PARTS = 24
_FEWEST_DOCUMENTS = 64
_ENDLESS_PART = 1 << 14
#: Timestamps further than this behind the clock on the wall are not believed.
_BELIEVED = _HOUR


class Length(NamedTuple):
    """How long a window is.

    Attributes
    ----------
    unit : str
        ``time`` (microseconds), ``hour``, ``documents`` or ``endless``.
    value : int or None
        How many of them; None for endless.
    """

    unit: str
    value: int | None

    @classmethod
    def parse(cls, window: object, by: str = "time") -> Self:
        """Return what a user wrote.

        Raises
        ------
        RecipeError
            If it is no length above 0, or not of whole hours where time is counted by the hour.
        """
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
        """How much of time a sub-index spans: a 24th of the window."""
        if self.value is None:
            return _ENDLESS_PART
        return max(self.value // _PARTS, _FEWEST_DOCUMENTS if self.unit == "documents" else 1)


class Moment(NamedTuple):
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
        The number of the sub-index for what arrives now; it only grows.
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
    """Turns timestamps into moments.

    The clock is the latest time that is believed. A document more than a window ahead of it is not believed until a
    second one is there: so one wrong date empties no window.

    Parameters
    ----------
    length : Length
        The window.
    now : callable
        The clock on the wall, in seconds since 1970.

    Attributes
    ----------
    clock : int or None
        In the window's unit; None before the first document.
    pending : int or None
        The time of the document that is ahead and not confirmed, until that one leaves the window.
    """

    def __init__(self, length: Length, now: Callable[[], float]) -> None:
        self.length, self._now = length, now
        self.clock: int | None = None
        self.pending: int | None = None
        self._pending_leaves = 0
        self._arrival = -(1 << 62)
        self._count = 0

    def see(self, timestamp: int | None) -> Moment:
        """Return the moment of the next document, from its timestamp in microseconds, or None for its arrival."""
        wall = round(self._now() * _SECOND)
        real = wall if timestamp is None else timestamp
        if timestamp is None:
            real = self._arrival = max(self._arrival, wall)
        if self.length.unit in ("documents", "endless"):
            return self._by_number(real)
        return self._by_time(real, wall, given=timestamp is not None)

    def _by_number(self, real: int) -> Moment:
        number, self._count = self._count, self._count + 1
        self.clock = number
        part = self.length.part
        least = -1 if self.length.value is None else number - self.length.value
        return Moment(number, number, least, real, "", number // part, least // part)

    def _by_time(self, real: int, wall: int, *, given: bool) -> Moment:
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
        return Moment(time, leaves, least, real, flag, clock // part, least // part, confirms)

    def next_moment(self) -> Moment:
        """Return the moment of a question: a document that would arrive now, by the flow's clock."""
        clock = self.clock or 0
        if self.length.unit in ("documents", "endless"):
            clock = self._count
        least = -1 if self.length.value is None else clock - self.length.value
        return Moment(clock, clock, least, 0, "", 0, 0)

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
