"""The content of a news file: its items, its broken parts, and notes on repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from neardup.times import microseconds_of, utc

NO_TEXT = "no text"
TRUNCATED_FILE = "the file ends in the middle"


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of news."""

    key: str  #: the item's own id or guid, ``""`` without one
    #: The title, a line feed and the body, or one of them alone. For a page, only the article.
    text: str
    title: str  #: ``""`` without one
    timestamp: datetime | None  #: the time that the item states, in UTC; None without a readable one
    link: str  #: the address of its publication, ``""`` without one
    raw: bytes  #: the item in its own format: the file, the line, the object, or the element in UTF-8


class BrokenPart(NamedTuple):
    """A part of a file that could not be read."""

    where: str  #: ``"line 3"``, ``"item 2"``, ``"the file"``
    reason: str
    raw: bytes  #: its bytes, as far as its limits are known
    ended_early: bool = False  #: whether the file may be incomplete, so that a later attempt may succeed


class Note(NamedTuple):
    """A note on something that a reader repaired or ignored."""

    where: str  #: as of a `BrokenPart`
    text: str


def failed_article_note(where: str, reason: str) -> Note:
    """Return the note on a page whose article was not found."""
    return Note(where, f"the article was not found ({reason}), so all text of the page stands for it")


@dataclass(slots=True)
class Items:
    """The content of a file."""

    kind: str
    #: Read lazily, once. The other lists are complete when it has ended.
    items: Iterator[Item] = field(default_factory=lambda: iter(()))
    broken_parts: list[BrokenPart] = field(default_factory=list)  #: what could not be read
    notes: list[Note] = field(default_factory=list)  #: what was read although it is malformed
    #: Whether the file may be incomplete although all of it is readable: its last bytes are letters in one encoding,
    #: and the start of a character in another.
    may_be_incomplete: bool = False

    def reject(self, where: str, reason: str, raw: bytes, ended_early: bool = False) -> None:
        """Add a broken part."""
        self.broken_parts.append(BrokenPart(where, reason, raw, ended_early))


def first_time(values: Iterable[object]) -> datetime | None:
    """Return the first value that is a time, in UTC."""
    found = next((time for time in map(microseconds_of, values) if time is not None), None)
    return None if found is None else utc(found)


def join_title(title: str, body: str) -> str:
    """Return the text of an item with this title and body."""
    return f"{title}\n{body}" if title and body else title or body
