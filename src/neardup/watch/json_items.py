"""Items of JSON: objects, lists of objects and JSON lines, and the names of their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neardup.documents.tables import ID_NAMES, TEXT_NAMES, TIME_NAMES
from neardup.text.encoding import decode_complete, decode_utf8
from neardup.text.html import strip_tags
from neardup.watch.records import (
    LONE_SURROGATE,
    NO_TEXT,
    NOT_AN_OBJECT,
    NOT_JSON,
    TRUNCATED_FILE,
    BrokenPart,
    Item,
    Items,
    Note,
    first_time,
    join_title,
)

#: Names of times in news only, tried after those of a corpus.
NEWS_TIMES = (
    "versioncreated",
    "datecreated",
    "datepublished",
    "date_published",
    "publisheddate",
    "published_date",
    "publishedat",
    "pub_date",
    "datemodified",
    "date_modified",
    "firstcreated",
)
TITLE_NAMES = ("title", "headline")
LINK_NAMES = ("link", "url", "uri")
#: Descriptions, which a whole feed may have as well as an item.
DESCRIPTION_NAMES = ("description", "abstract", "summary", "description_text")
#: Fields of markup in JSON Feed and ninjs.
_MARKUP_NAMES = ("content_html", "body_html", "body_xhtml")
#: Fields of the text itself, in order of preference.
BODY_NAMES = (
    *(name for name in TEXT_NAMES if name not in DESCRIPTION_NAMES),
    *("content_text", "body_text", "articlebody"),
    *_MARKUP_NAMES,
)
#: Objects that contain the fields of an item in Elasticsearch and in JSON:API.
_INNER_NAMES = ("_source", "attributes")


def item_of(value: object, raw: bytes, where: str) -> Item | BrokenPart:
    """Return the item of a JSON value, or a broken part if it is none."""
    if not isinstance(value, dict):
        return BrokenPart(where, NOT_AN_OBJECT, raw)
    fields = fields_of(value)
    title = first_string(fields, TITLE_NAMES).strip()
    text = join_title(title, _text_of(fields))
    if not text.strip():
        return BrokenPart(where, NO_TEXT, raw)
    key = next((value for name in ID_NAMES if _is_id(value := fields.get(name))), "")
    timestamp = first_time(fields.get(name) for name in TIME_NAMES + NEWS_TIMES)
    item = Item(str(key), text, title, timestamp, first_string(fields, LINK_NAMES), raw)
    try:
        f"{item.key}{text}{item.link}".encode()
    except UnicodeEncodeError:
        return BrokenPart(where, LONE_SURROGATE, raw)
    return item


def fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by name in lower case; its own take precedence over those of an inner object."""
    fields: dict[str, Any] = {}
    for holder in (value, *(value.get(name) for name in _INNER_NAMES)):
        for name, one in holder.items() if isinstance(holder, dict) else ():
            fields.setdefault(name.lower(), one)
    return fields


def _text_of(fields: Mapping[str, Any]) -> str:
    texts = ((name, first_string(fields, (name,))) for name in (*BODY_NAMES, *DESCRIPTION_NAMES))
    return next(filter(None, (strip_tags(text) if name in _MARKUP_NAMES else text for name, text in texts)), "")


def first_string(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first nonempty string among these fields."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def _is_id(value: object) -> bool:
    return (isinstance(value, str) and bool(value)) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 128
    )


#: Names under which an object wraps a list of items, or another wrapper.
_WRAPPER_WORDS = (
    "items articles entries documents results data hits stories docs news posts records response feed rss channel item "
    "entry"
)
WRAPPER_NAMES = frozenset(_WRAPPER_WORDS.split())
_TEXT_NAMES = (*BODY_NAMES, *DESCRIPTION_NAMES, *TITLE_NAMES)
#: The maximum depth of nested lists and wrappers.
MAX_DEPTH = 16
_NUMBER_OR_ESCAPE = re.compile(r"\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")
_PADDING = re.compile(r"[ \t\r\n\0]*")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def json_lines(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the items of JSON lines; an invalid line is rejected alone.

    An unreadable last line without a line feed has ended early. One line at a time is in memory.
    """
    start = number = 0
    while start < len(data):
        number += 1
        line_end = data.find(b"\n", start)
        line = data[start : line_end if line_end >= 0 else len(data)]
        start = line_end + 1 if line_end >= 0 else len(data)
        if line.strip(b" \t\r\n"):
            yield from _items_of_line(line.strip(b" \t\r"), f"line {number}", found, is_last=line_end < 0)


def _items_of_line(line: bytes, where: str, found: Items, *, is_last: bool) -> Iterator[Item]:
    if line.count(b"\0") == len(line):
        found.broken_parts.append(BrokenPart(where, TRUNCATED_FILE, line, is_last))
        return
    text, note = decode_utf8(line)
    try:
        decoded = _DECODER.decode(text)
    except (ValueError, RecursionError):
        found.broken_parts.append(BrokenPart(where, TRUNCATED_FILE if is_last else NOT_JSON, line, is_last))
        return
    if note:
        found.notes.append(Note(where, note))
    yield from items_of(decoded, _to_utf8(text) if note else line, where, found)


def json_values(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the items of an object or of a list of objects; of a broken list, those before the fault."""
    text, note = decode_complete(data)
    if note:
        found.notes.append(Note("the file", note))
    at = _skip_space(text, 0)
    if text[at : at + 1] == "[":
        yield from _items_of_list(text, at + 1, found)
        return
    try:
        decoded, end = _DECODER.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        is_cut_off = _is_cut_off(text, error)
        found.broken_parts.append(
            BrokenPart("the file", TRUNCATED_FILE if is_cut_off else _fault_reason(error), data, is_cut_off)
        )
        return
    if text[_skip_space(text, end) :].strip("\0"):
        found.broken_parts.append(BrokenPart("the file", f"{NOT_JSON} (something follows the object)", data))
        return
    yield from items_of(decoded, data, "the file", found)


def _items_of_list(text: str, at: int, found: Items) -> Iterator[Item]:
    number = 0
    while True:
        at = _skip_space(text, at)
        if text[at : at + 1] == "]":
            rest = text[at + 1 :].strip(" \t\r\n\0")
            if rest:
                found.broken_parts.append(
                    BrokenPart("after the list", f"{NOT_JSON} (something follows the list)", _to_utf8(rest))
                )
            return
        number += 1
        where = f"item {number}"
        try:
            decoded, end = _DECODER.raw_decode(text, at)
            after = _skip_space(text, end)
            if text[after : after + 1] not in (",", "]", ""):
                raise json.JSONDecodeError("expecting ',' or ']'", text, after)
        except (ValueError, RecursionError) as error:
            is_cut_off = _is_cut_off(text, error)
            found.broken_parts.append(
                BrokenPart(
                    where, TRUNCATED_FILE if is_cut_off else _fault_reason(error), _to_utf8(text[at:]), is_cut_off
                )
            )
            return
        yield from items_of(decoded, _to_utf8(text[at:end]), where, found)
        if after >= len(text):
            found.broken_parts.append(BrokenPart("the end", TRUNCATED_FILE, b"", True))
            return
        at = after + (text[after] == ",")


def items_of(value: object, raw: bytes, where: str, found: Items) -> Iterator[Item]:
    """Yield the item of a JSON value, or the items of the lists that it wraps.

    An object with a text of its own is one item, whatever lists it contains. Without a text, it is a wrapper if it has
    a list under one of `WRAPPER_NAMES`: its title and its description then belong to a feed.
    """
    entries = _entries(value)
    if entries is None:
        found.notes += _ignored_lists(value, where)
        entries = [value]
    for number, entry in enumerate(entries, 1):
        is_whole = entry is value
        place = where if is_whole else f"item {number}" if where == "the file" else f"{where}, item {number}"
        item = item_of(entry, raw if is_whole else _to_utf8(json.dumps(entry, ensure_ascii=False)), place)
        if isinstance(item, Item):
            yield item
        else:
            found.broken_parts.append(item)


def _entries(value: object, depth: int = 0) -> list[object] | None:
    """Return the entries that a value wraps, directly or through further wrappers; None if it is no wrapper."""
    if depth > MAX_DEPTH:
        return None
    if isinstance(value, list):
        if not any(isinstance(entry, dict | list) for entry in value):
            return None
        unwrapped = ((entry, _entries(entry, depth + 1)) for entry in value)
        return [one for entry, inner in unwrapped for one in ([entry] if inner is None else inner)]
    if not isinstance(value, dict) or _has_text_in(value, BODY_NAMES):
        return None
    wrapped: list[object] | None = None
    for name, inner in fields_of(value).items():
        if name not in WRAPPER_NAMES:
            continue
        entries = [] if inner == [] else _entries(inner, depth + 1)
        if entries is None and _has_text_in(inner, BODY_NAMES):
            entries = [inner]
        if entries is not None:
            wrapped = [*(wrapped or []), *entries]
    if (
        wrapped
        and _has_text_in(value, DESCRIPTION_NAMES)
        and not any(_has_text_in(entry, _TEXT_NAMES) for entry in wrapped)
    ):
        # An item whose text is its description, with lists of something else.
        return None
    return wrapped


def _has_text_in(value: object, names: Sequence[str]) -> bool:
    """Return whether a value is an object with a text in one of the fields."""
    return isinstance(value, dict) and bool(first_string(fields_of(value), names).strip())


def _ignored_lists(value: object, where: str) -> Iterator[Note]:
    """Yield a note for each list in an item that may be a list of items."""
    for name, inner in sorted(fields_of(value).items()) if isinstance(value, dict) else ():
        if name not in WRAPPER_NAMES or not isinstance(inner, list):
            continue
        if any(isinstance(one, str) or _has_text_in(one, _TEXT_NAMES) for one in inner):
            yield Note(where, f"read as one item, without the {len(inner):,} entries in {name!r}")


def _skip_space(text: str, at: int) -> int:
    """Return the position after white space."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _is_cut_off(text: str, error: BaseException) -> bool:
    """Return whether JSON is unreadable because it is cut off, and not because of its content."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if error.msg.startswith("Unterminated string"):
        # An unclosed string runs to the end.
        return True
    blank = _PADDING.match(text, error.pos)
    if blank is not None and blank.end() == len(text):
        return True
    return len(text) - error.pos < 16 and _is_token_prefix(text[error.pos :].strip("\0"))


def _is_token_prefix(rest: str) -> bool:
    """Return whether the rest of a text is a prefix of a JSON token."""
    words = ("true", "false", "null", "NaN", "Infinity", "-Infinity", "-")
    return any(word.startswith(rest) for word in words) or _NUMBER_OR_ESCAPE.fullmatch(rest) is not None


def _fault_reason(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{NOT_JSON} ({error.msg[:60].rstrip(': ')}, character {error.pos})"
    return f"{NOT_JSON} ({'nested too deep' if isinstance(error, RecursionError) else 'a number too long'})"


def _to_utf8(text: str) -> bytes:
    return text.encode(errors="replace")
