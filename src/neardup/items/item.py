"""The content of a news file: its items, its broken parts, and notes on repairs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from html import unescape
from typing import NamedTuple

from neardup.documents.tables import TIME_NAMES
from neardup.errors import quoted
from neardup.text.contents import article_of
from neardup.text.html import strip_tags
from neardup.times import microseconds_of, stands_for_no_date, utc

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
    #: The form of what was found, such as that of a date: it is logged once a run, however often it comes, and counted
    #: under the word before its first space. Empty for what is logged for each file.
    shape: str = ""


@dataclass(slots=True)
class Items:
    """The content of a file."""

    kind: str
    #: Whether the text of a page is its article, not its markup.
    extracts: bool = True
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

    def text_of_page(self, where: str, markup: str) -> str:
        """Return the article of a page, or its markup; empty if it has no text."""
        if not self.extracts:
            # The recipe decides which part of a page is compared, as in every other command.
            return markup if strip_tags(markup) else ""
        article = article_of(markup)
        if article.fallback == "failed":
            text = f"the article was not found ({article.reason}), so all text of the page stands for it"
            self.notes.append(Note(where, text))
        return article.text

    def date_of(self, where: str, values: Iterable[object]) -> datetime | None:
        """Return the first value that is a time, in UTC; note a date that is stated and cannot be read."""
        unread = None
        for value in values:
            found = microseconds_of(value)
            if found is not None:
                return utc(found)
            if unread is None and isinstance(value, str | int | float) and str(value).strip():
                unread = value
        if unread is not None:
            reason = "stands for none" if stands_for_no_date(unread) else "cannot be read"
            shape = _LETTERS.sub("a", _DIGIT.sub("9", str(unread)[:_MAX_SHAPE]))
            text = f"the date {quoted(unread)} {reason}, so the item is dated by its arrival"
            self.notes.append(Note(where, text, f"{UNREAD_DATES} {shape}"))
        return None

    def unknown_text(self, where: str, texts: Mapping[str, str], instead_of: str = "") -> str:
        """Return the text of the fields that may be the text of an item without a usual one, and note their names.

        The text that has a usual name, a description, remains if it is longer. An item is never judged by its title
        alone while it has a text.
        """
        texts = {name: text for name, text in texts.items() if _may_be_body(name, text)}
        found = "\n".join(texts.values())
        if len(found) <= len(instead_of):
            return instead_of
        names = " and ".join(map(quoted, list(texts)[:_MAX_NAMES]))
        more = f" and {len(texts) - _MAX_NAMES:,} more" if len(texts) > _MAX_NAMES else ""
        verb = "is" if len(texts) == 1 else "are"
        text = f"no field has a usual name for the text of an item, so {names}{more} {verb} compared"
        self.notes.append(Note(where, text, f"{GUESSED_TEXTS} {sorted(texts)[:_MAX_SHAPE]}"))
        return found


#: What notes of a shape are counted under.
UNREAD_DATES, GUESSED_TEXTS = "unread_dates", "guessed_texts"
_LETTERS, _LETTER, _DIGIT = re.compile("[^\\W\\d_]+"), re.compile("[^\\W\\d_]"), re.compile("\\d")
_MAX_SHAPE, _MAX_NAMES = 100, 4
#: Fields of several words that are not the text of an item.
_OTHER_WORDS = (
    "author authors authorname by byline creator contributor contributors editor publisher source sourcename provider "
    "copyright copyrightnotice copyrightholder rights license credit creditline usageterms permission section "
    "category categories tag tags keyword keywords subject subjects genres people persons person organisations "
    "organizations events location place places dateline datelinelocation language lang sitename site feed channel "
    "generator comments title headline subtitle kicker name displayname username account user attribution caption alt "
    "imagealt ednote signoff contactinfo infosources trustindicators renditions associations link url uri id guid "
    "date time"
)
_ADDRESS = re.compile(r"\S*://\S*")
#: Text of a script without spaces between words.
_UNSPACED = re.compile("[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]{6}")


def _may_be_body(name: str, text: str) -> bool:
    """Return whether a field may be the text of an item: it has several words, and is not a time or a list of numbers.

    Its name is not one of metadata.
    """
    if canonical_name(name) in _OTHER_NAMES or microseconds_of(text) is not None:
        return False
    words = _ADDRESS.sub(" ", text)
    return has_words(words) and len(_LETTER.findall(words)) > len(_DIGIT.findall(words))


def has_words(text: str) -> bool:
    """Return whether a text has several words."""
    return len(text.split()) >= 3 or _UNSPACED.search(text) is not None


def fullest(texts: Iterable[str]) -> str:
    """Return the first text that is not empty, or the longest if that is more than twice as long.

    Feeds repeat the title or tease in one field of an item, and have its text in another.
    """
    found = [text for text in texts if text.strip()]
    longest = max(found, key=len, default="")
    return longest if found and len(longest) > 2 * len(found[0]) else next(iter(found), "")


def canonical_name(name: str) -> str:
    """Return the name of a field without what only writes it in another way: ``raw_text`` and ``rawText``."""
    return name.lower().replace("_", "").replace("-", "")


_OTHER_NAMES = frozenset((*_OTHER_WORDS.split(), *map(canonical_name, TIME_NAMES)))


_MARKUP = re.compile(
    r"</[a-zA-Z][a-zA-Z0-9:]{0,30}\s*>|<(?:p|br|hr|img|div|h[1-6]|ul|ol|li|table|a|figure|iframe|!--)(?=[\s/>-])",
    re.IGNORECASE,
)
_REFERENCE = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,30});")


def plain_text(text: str) -> str:
    """Return a text without markup if it has some, as texts of feeds and of JSON do; else unchanged."""
    if _MARKUP.search(text):
        return strip_tags(text)
    return unescape(text) if _REFERENCE.search(text) else text


def join_title(title: str, body: str) -> str:
    """Return the text of an item with this title and body."""
    return f"{title}\n{body}" if title and body else title or body
