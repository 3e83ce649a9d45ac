"""What goes into the flow and what comes out of it: a document and its verdict."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from numbers import Real
from typing import Any

from neardup.decision.evidence import Evidence, Push
from neardup.errors import InputError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND

#: Python takes any character between date and time, so that a long number passes for a date; ISO 8601 does not.
_ISO = re.compile(r"[0-9]{4}-?(?:[0-9]{2}-?[0-9]{2}|W[0-9]{2}-?[0-9])(?:[T ].+)?", re.ASCII)
_WAY_OUT = "give seconds since 1970, a datetime, ISO 8601 such as '1987-02-26T15:01:01Z', or None for its arrival"


@dataclass(frozen=True, slots=True)
class Document:
    """A document that arrives.

    Attributes
    ----------
    id : str
        Its name; a flow gives each name one verdict.
    text : str
        What it says.
    timestamp : float, datetime, str or None
        When it is from: seconds since 1970 (UTC), a datetime (UTC unless it says otherwise) or ISO 8601 (likewise);
        None takes the time of its arrival.
    origin : str
        Where it came from; kept in the store.
    title : str
        Its title, for decisions that compare titles; empty where it has none.

    Raises
    ------
    InputError
        If a field is of another type, a text cannot be stored as UTF-8, or the timestamp is no time between the
        years 1 and 9999.
    """

    id: str
    text: str
    timestamp: float | datetime | str | None = None
    origin: str = ""
    title: str = ""
    _microseconds: int | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _check_text("id", self.id)
        _check_text("text", self.text)
        _check_text("origin", self.origin)
        _check_text("title", self.title)
        object.__setattr__(self, "_microseconds", None if self.timestamp is None else microseconds(self.timestamp))

    @property
    def microseconds(self) -> int | None:
        """The timestamp in microseconds since 1970 (UTC), None where there is none."""
        return self._microseconds


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was decided about a document when it arrived.

    Attributes
    ----------
    id : str
        The document.
    kind : str
        ``original``, or what it is a duplicate by: ``exact`` (the texts are equal byte for byte) or ``near``.
    of : str or None
        The document that it repeats: the most similar one in the window, the first of equals.
    similarity : float or None
        To that document; where a learned decision decides, how probable it is that both are near-duplicates.
    time : float
        Seconds since 1970 (UTC) by which it was judged.
    flag : str
        Empty, or what was odd: ``late`` (older than the window), ``ahead`` (further ahead than the window is long),
        ``future`` (later than the clock on the wall) or ``undecidable`` (it has nothing to compare by).
    counts : tuple of int or None
        The three whole numbers o, a and b behind the similarity, as in ``neardup.measures``.
    g : float or None
        What a learned decision makes of the two; None where none decided, and for texts that are equal byte for byte.
    measures : tuple of Push
        The decision's measures, the one that pushed g furthest first; empty where there is no g.
    """

    id: str
    kind: str
    of: str | None
    similarity: float | None
    time: float
    flag: str
    counts: tuple[int, int, int] | None
    g: float | None = None
    measures: tuple[Push, ...] = ()

    @property
    def is_duplicate(self) -> bool:
        """Whether the window held it already."""
        return self.kind != "original"

    @property
    def evidence(self) -> str:
        """The measures that pushed a learned decision most, in a few words; empty where there is no g."""
        return "" if self.g is None else str(Evidence(self.g, self.similarity or 0.0, self.measures))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON takes them."""
        return {
            "id": self.id,
            "kind": self.kind,
            "of": self.of,
            "similarity": self.similarity,
            "time": self.time,
            "flag": self.flag,
            "counts": None if self.counts is None else list(self.counts),
            "g": self.g,
            "evidence": self.evidence,
            "measures": [push._asdict() for push in self.measures],
        }


def microseconds(timestamp: object) -> int:
    """Return a time in microseconds since 1970 (UTC).

    Parameters
    ----------
    timestamp : float, datetime or str
        As in a Document.

    Raises
    ------
    InputError
        If it is no time between the years 1 and 9999.
    """
    if isinstance(timestamp, str):
        found = _of_datetime(_parsed(timestamp), timestamp)
    elif isinstance(timestamp, datetime):
        found = _of_datetime(timestamp, timestamp)
    elif not isinstance(timestamp, bool) and isinstance(timestamp, (int, float, Real)):
        found = _of_seconds(timestamp)
    else:
        raise InputError(f"timestamp {_shown(timestamp)} is of type {type(timestamp).__name__}, not a time; {_WAY_OUT}")
    if not _FIRST <= found <= _LAST:
        raise InputError(
            f"timestamp {_shown(timestamp)} lies outside the years 1 to 9999; {_WAY_OUT} "
            "(seconds, not milliseconds: divide those by 1000)"
        )
    return found


def _of_seconds(timestamp: Any) -> int:
    if isinstance(timestamp, int):
        return timestamp * 1_000_000
    try:
        seconds = float(timestamp)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise InputError(f"timestamp {_shown(timestamp)} is not a finite number; {_WAY_OUT}")
    # In two parts: the product of a large number would round to another microsecond.
    fraction, whole = math.modf(seconds)
    return int(whole) * 1_000_000 + round(fraction * 1e6)


def _of_datetime(moment: datetime, timestamp: object) -> int:
    if moment != moment:  # NaT of pandas is a datetime too, equal to nothing
        raise InputError(f"timestamp {_shown(timestamp)} is not a time; {_WAY_OUT}")
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    return int((moment - _EPOCH) // _MICROSECOND)


def _parsed(timestamp: str) -> datetime:
    text = timestamp.strip().upper()
    if not _ISO.fullmatch(text):
        raise InputError(f"timestamp {_shown(timestamp)} is not ISO 8601; {_WAY_OUT}")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InputError(f"timestamp {_shown(timestamp)} is not ISO 8601 ({error}); {_WAY_OUT}") from None


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise InputError(f"{name} {_shown(value)} is of type {type(value).__name__}; a document's {name} is a str")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} {_shown(value)} has the lone surrogate {value[error.start]!a} at character {error.start}, which "
            "UTF-8 cannot hold; decode it with errors='replace' or remove that character"
        ) from None


def _shown(value: object) -> str:
    """Return a value for a message: escaped, and not longer than a line."""
    try:
        text = ascii(value[:60] if isinstance(value, str) else value)
    except ValueError:  # Python writes no number of more than some thousand digits
        text = f"of {type(value).__name__}"
    return text if len(text) <= 70 else f"{text[:67]}..."
