"""Items of JSON: one object, a list of objects, or an object a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neardup.content.records import (
    ENDED_EARLY,
    HALF_CHARACTER,
    NO_TEXT,
    NOT_AN_OBJECT,
    NOT_JSON,
    NOT_UTF8,
    Broken,
    Item,
    first_time,
    joined,
)

#: Fields that hold the text, the id and the time, in order of preference, as in a corpus that the commands read.
TEXT_NAMES = (
    "text",
    "content",
    "body",
    "document",
    "article",
    "raw_content",
    "full_text",
    "fulltext",
    "description",
    "abstract",
    "sentence",
)
ID_NAMES = ("id", "_id", "doc_id", "document_id", "docid", "uuid", "guid")
TIME_NAMES = (
    "timestamp",
    "time",
    "date",
    "datetime",
    "published",
    "published_at",
    "pubdate",
    "created",
    "created_at",
    "updated",
    "modified",
)
#: Names that only news have, asked after those.
NEWS_TIMES = ("versioncreated", "datecreated", "datepublished", "date_published", "publisheddate", "published_date")
TITLE_NAMES = ("title", "headline")
LINK_NAMES = ("link", "url", "uri")
#: Broken objects after which the rest of a list is given up: finding the next one may mean reading all that follows.
MOST_BROKEN = 100
_NEXT = re.compile(r"\}\s*,\s*(?=\{)")
_NUMBER_OR_ESCAPE = re.compile(r"\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")
_UNWRITTEN = re.compile(r"[ \t\r\n\0]*")
_BLANK = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def json_lines(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    """Give the items of JSON lines; a line that is none is set aside, and the rest goes on.

    A last line without line feed that cannot be read has ended early. Memory is that of one line at a time.
    """
    begin = number = 0
    while begin < len(data):
        number += 1
        feed = data.find(b"\n", begin)
        line = data[begin : feed if feed >= 0 else len(data)]
        begin = feed + 1 if feed >= 0 else len(data)
        if not line.strip(b" \t\r\n"):
            continue
        found = _item_of_line(line.strip(b" \t\r"), f"line {number}", last=feed < 0)
        if isinstance(found, Item):
            yield found
        else:
            broken.append(found)


def _item_of_line(line: bytes, where: str, *, last: bool) -> Item | Broken:
    if line.count(b"\0") == len(line):
        return Broken(where, ENDED_EARLY, line, last)
    try:
        decoded = _DECODER.decode(line.decode())
    except UnicodeDecodeError:
        return Broken(where, ENDED_EARLY if last else NOT_UTF8, line, last)
    except (ValueError, RecursionError):
        return Broken(where, ENDED_EARLY if last else NOT_JSON, line, last)
    return item_of(decoded, line, where)


def json_values(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    """Give the items of one object or of a list of objects; broken ones are set aside, and the rest goes on."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        cut = error.reason == "unexpected end of data"
        if not cut:
            broken.append(Broken("the file", f"{NOT_UTF8} (byte {error.start})", data))
            return
        text = data[: error.start].decode()
    at = _blank(text, 0)
    if text[at : at + 1] == "[":
        yield from _of_list(text, at + 1, broken)
        return
    try:
        decoded, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        early = _ends(text, error)
        broken.append(Broken("the file", ENDED_EARLY if early else _said(error), data, early))
        return
    found = item_of(decoded, data, "the file")
    if isinstance(found, Broken):
        broken.append(found)
    elif text[_blank(text, end) :].strip("\0"):
        broken.append(Broken("the file", f"{NOT_JSON} (something follows the object)", data))
    else:
        yield found


def _of_list(text: str, at: int, broken: list[Broken]) -> Iterator[Item]:
    number = faults = 0
    while True:
        at = _blank(text, at)
        if text[at : at + 1] == "]":
            rest = text[at + 1 :].strip(" \t\r\n\0")
            if rest:
                broken.append(Broken("after the list", f"{NOT_JSON} (something follows the list)", _raw(rest)))
            return
        number += 1
        where = f"item {number}"
        try:
            decoded, end = _DECODER.raw_decode(text, at)
            after = _blank(text, end)
            if text[after : after + 1] not in (",", "]", ""):
                raise json.JSONDecodeError("expecting ',' or ']'", text, after)
        except (ValueError, RecursionError) as error:
            early = _ends(text, error)
            faults += 1
            resumed = None if early or faults >= MOST_BROKEN else _NEXT.search(text, getattr(error, "pos", at))
            stop = resumed.start() + 1 if resumed else len(text)
            broken.append(Broken(where, ENDED_EARLY if early else _said(error), _raw(text[at:stop]), early))
            if resumed is None:
                return
            at = resumed.end()
            continue
        found = item_of(decoded, _raw(text[at:end]), where)
        if isinstance(found, Item):
            yield found
        else:
            broken.append(found)
        if after >= len(text):
            broken.append(Broken("the end", ENDED_EARLY, b"", True))
            return
        at = after + (text[after] == ",")


def item_of(decoded: object, raw: bytes, where: str) -> Item | Broken:
    """Return the item that a JSON value is, or why it is none."""
    if not isinstance(decoded, dict):
        return Broken(where, NOT_AN_OBJECT, raw)
    fields: dict[str, Any] = {}
    for name, value in decoded.items():
        fields.setdefault(name.lower(), value)
    title = _string(fields, TITLE_NAMES).strip()
    text = joined(title, _string(fields, TEXT_NAMES))
    if not text.strip():
        return Broken(where, NO_TEXT, raw)
    key = next((value for name in ID_NAMES if _is_id(value := fields.get(name))), "")
    timestamp = first_time(fields.get(name) for name in TIME_NAMES + NEWS_TIMES)
    found = Item(str(key), text, title, timestamp, _string(fields, LINK_NAMES), raw)
    try:
        f"{found.key}{text}{found.link}".encode()
    except UnicodeEncodeError:
        return Broken(where, HALF_CHARACTER, raw)
    return found


def _string(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def _is_id(value: object) -> bool:
    return (isinstance(value, str) and bool(value)) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 128
    )


def _blank(text: str, at: int) -> int:
    """Where white space ends."""
    match = _BLANK.match(text, at)
    return match.end() if match else at


def _ends(text: str, error: BaseException) -> bool:
    """Whether JSON could not be read because it ends, rather than because of what it holds."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if error.msg.startswith("Unterminated string"):
        # A string that is not closed runs to the end.
        return True
    blank = _UNWRITTEN.match(text, error.pos)
    if blank is not None and blank.end() == len(text):
        return True
    return len(text) - error.pos < 16 and _is_begun(text[error.pos :].strip("\0"))


def _is_begun(rest: str) -> bool:
    """Whether the rest of a text is the begin of something that JSON knows."""
    words = ("true", "false", "null", "NaN", "Infinity", "-Infinity", "-")
    return any(word.startswith(rest) for word in words) or _NUMBER_OR_ESCAPE.fullmatch(rest) is not None


def _said(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{NOT_JSON} ({error.msg[:60].rstrip(': ')}, character {error.pos})"
    return f"{NOT_JSON} ({'nested too deep' if isinstance(error, RecursionError) else 'a number too long'})"


def _raw(text: str) -> bytes:
    return text.encode(errors="replace")
