"""What is read from a file of news, as data: its items, what is broken, and notes of what was put right."""

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
    """One piece of news.

    Attributes
    ----------
    key : str
        The item's own id or guid, ``""`` without one.
    text : str
        The title, a line feed and the body; one of them where there is no other. For a page, the article alone.
    title : str
        The title, ``""`` without one.
    timestamp : datetime or None
        Its time in UTC, as the item states it; None when it states none that can be read.
    link : str
        Where it was published, ``""`` without that.
    raw : bytes
        The item as it can be written elsewhere: the file, the line, the object, or the element as UTF-8.
    """

    key: str
    text: str
    title: str
    timestamp: datetime | None
    link: str
    raw: bytes


@dataclass(frozen=True, slots=True)
class Broken:
    """What could not be read.

    Attributes
    ----------
    where : str
        ``"line 3"``, ``"item 2"``, ``"the file"``.
    reason : str
        Why.
    raw : bytes
        The bytes, as far as they can be told from those around them.
    ended_early : bool
        Whether the file may only be half-written, so that it is worth another try later.
    """

    where: str
    reason: str
    raw: bytes
    ended_early: bool = False


@dataclass(frozen=True, slots=True)
class Note:
    """What a reader had to put right or to pass over.

    Attributes
    ----------
    where : str
        ``"line 3"``, ``"item 2"``, ``"the file"``.
    text : str
        What.
    """

    where: str
    text: str


@dataclass(slots=True)
class Items:
    """The content of a file.

    Attributes
    ----------
    kind : str
        One of ``items.KINDS``.
    items : iterator of Item
        Read as it is asked for, once. The other lists are complete when it has ended.
    broken : list of Broken
        What could not be read.
    notes : list of Note
        What was read though it is not as it ought to be.
    may_go_on : bool
        Whether the file may only be half-written though all of it could be read: its last bytes are letters in one
        encoding, and the begin of a character in another.
    """

    kind: str
    items: Iterator[Item] = field(default_factory=lambda: iter(()))
    broken: list[Broken] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    may_go_on: bool = False


def first_time(values: Iterable[object]) -> datetime | None:
    """Return the first of some values that is a time, in UTC."""
    found = next((time for time in map(microseconds_of, values) if time is not None), None)
    return None if found is None else utc(found)


def joined(title: str, body: str) -> str:
    """Return the text of an item with that title and body."""
    return f"{title}\n{body}" if title and body else title or body
