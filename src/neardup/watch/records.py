"""The content of a news file: its items, its broken parts, and notes on repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from neardup.times import microseconds_of, utc

NO_TEXT = "no text"
NOT_JSON = "not valid JSON"
NOT_AN_OBJECT = "not a JSON object"
HALF_CHARACTER = "text holds half of a surrogate pair"
ENDED_EARLY = "the file ends in the middle"
EMPTY = "the file is empty"


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of news."""

    key: str  #: the item's own id or guid, ``""`` without one
    #: The title, a line feed and the body; one of them where there is no other. For a page, the article alone.
    text: str
    title: str  #: the title, ``""`` without one
    timestamp: datetime | None  #: its time in UTC, as the item states it; None when it states none that can be read
    link: str  #: where it was published, ``""`` without that
    raw: bytes  #: the item as it can be written elsewhere: the file, the line, the object, or the element as UTF-8


@dataclass(frozen=True, slots=True)
class BrokenPart:
    """A part of a file that could not be read."""

    where: str  #: ``"line 3"``, ``"item 2"``, ``"the file"``
    reason: str  #: why
    raw: bytes  #: its bytes, as far as its limits are known
    ended_early: bool = False  #: whether the file may only be half-written, so that it is worth another try later


@dataclass(frozen=True, slots=True)
class Note:
    """A note on something that a reader repaired or ignored."""

    where: str  #: ``"line 3"``, ``"item 2"``, ``"the file"``
    text: str  #: what


@dataclass(slots=True)
class Items:
    """The content of a file."""

    kind: str  #: one of ``items.KINDS``
    #: Read lazily, once. The other lists are complete when it has ended.
    items: Iterator[Item] = field(default_factory=lambda: iter(()))
    broken_parts: list[BrokenPart] = field(default_factory=list)  #: what could not be read
    notes: list[Note] = field(default_factory=list)  #: what was read although it is malformed
    #: Whether the file may only be half-written though all of it could be read: its last bytes are letters in one
    #: encoding, and the begin of a character in another.
    may_be_incomplete: bool = False


def first_time(values: Iterable[object]) -> datetime | None:
    """Return the first of some values that is a time, in UTC."""
    found = next((time for time in map(microseconds_of, values) if time is not None), None)
    return None if found is None else utc(found)


def join_title(title: str, body: str) -> str:
    """Return the text of an item with that title and body."""
    return f"{title}\n{body}" if title and body else title or body
