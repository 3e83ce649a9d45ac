"""The content of a news file: its items, its broken parts, and notes on repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from neardup.times import microseconds_of, utc

NO_TEXT = "no text"
NOT_JSON = "not valid JSON"
NOT_AN_OBJECT = "not a JSON object"
LONE_SURROGATE = "text holds half of a surrogate pair"
TRUNCATED_FILE = "the file ends in the middle"
EMPTY = "the file is empty"


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of news."""

    key: str  #: the item's own id or guid, ``""`` without one
    #: The title, a line feed and the body, or one of them alone. For a page, only the article.
    text: str
    title: str  #: the title, ``""`` without one
    timestamp: datetime | None  #: the time that the item states, in UTC; None without a readable one
    link: str  #: the address of its publication, ``""`` without one
    raw: bytes  #: the item in its own format: the file, the line, the object, or the element in UTF-8


@dataclass(frozen=True, slots=True)
class BrokenPart:
    """A part of a file that could not be read."""

    where: str  #: ``"line 3"``, ``"item 2"``, ``"the file"``
    reason: str  #: why
    raw: bytes  #: its bytes, as far as its limits are known
    ended_early: bool = False  #: whether the file may be incomplete, so that a later attempt may succeed


@dataclass(frozen=True, slots=True)
class Note:
    """A note on something that a reader repaired or ignored."""

    where: str  #: ``"line 3"``, ``"item 2"``, ``"the file"``
    text: str  #: the note


@dataclass(slots=True)
class Items:
    """The content of a file."""

    kind: str  #: one of ``kinds.KINDS``
    #: Read lazily, once. The other lists are complete when it has ended.
    items: Iterator[Item] = field(default_factory=lambda: iter(()))
    broken_parts: list[BrokenPart] = field(default_factory=list)  #: what could not be read
    notes: list[Note] = field(default_factory=list)  #: what was read although it is malformed
    #: Whether the file may be incomplete although all of it is readable: its last bytes are letters in one encoding,
    #: and the start of a character in another.
    may_be_incomplete: bool = False


def first_time(values: Iterable[object]) -> datetime | None:
    """Return the first value that is a time, in UTC."""
    found = next((time for time in map(microseconds_of, values) if time is not None), None)
    return None if found is None else utc(found)


def join_title(title: str, body: str) -> str:
    """Return the text of an item with this title and body."""
    return f"{title}\n{body}" if title and body else title or body
