"""Items of JSON: objects, lists of them and JSON lines; what fields are called, and the items that they make."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from neardup.documents.tables import ID_NAMES, TEXT_NAMES, TIME_NAMES
from neardup.text.encoding import decode_complete, decode_utf8
from neardup.text.html import strip_tags
from neardup.watch.records import (
    ENDED_EARLY,
    HALF_CHARACTER,
    NO_TEXT,
    NOT_AN_OBJECT,
    NOT_JSON,
    BrokenPart,
    Item,
    Items,
    Note,
    first_time,
    join_title,
)

#: Names of times that only news have, asked after those of a corpus.
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
#: What may describe an item, and describes a whole feed as well.
DESCRIPTION_NAMES = ("description", "abstract", "summary", "description_text")
#: Fields of markup, as JSON Feed and ninjs name them.
_MARKUP_NAMES = ("content_html", "body_html", "body_xhtml")
#: Fields that hold the text itself, in order of preference.
BODY_NAMES = (
    *(name for name in TEXT_NAMES if name not in DESCRIPTION_NAMES),
    *("content_text", "body_text", "articlebody"),
    *_MARKUP_NAMES,
)
#: Where the fields of an item are that are not beside its id: in Elasticsearch and in JSON:API.
_INNER_NAMES = ("_source", "attributes")


def item_of(value: object, raw: bytes, where: str) -> Item | BrokenPart:
    """Return the item that a JSON value is, or why it is none."""
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
        return BrokenPart(where, HALF_CHARACTER, raw)
    return item


def fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by their names in lower case, its own before those of an object inside it."""
    fields: dict[str, Any] = {}
    for holder in (value, *(value.get(name) for name in _INNER_NAMES)):
        for name, one in holder.items() if isinstance(holder, dict) else ():
            fields.setdefault(name.lower(), one)
    return fields


def _text_of(fields: Mapping[str, Any]) -> str:
    texts = ((name, first_string(fields, (name,))) for name in (*BODY_NAMES, *DESCRIPTION_NAMES))
    return next(filter(None, (strip_tags(text) if name in _MARKUP_NAMES else text for name, text in texts)), "")


def first_string(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first string of these fields that is not empty."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def _is_id(value: object) -> bool:
    return (isinstance(value, str) and bool(value)) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 128
    )


#: What objects call the list of items that they are wrapped around, or a further wrapper.
_WRAPPER_WORDS = (
    "items articles entries documents results data hits stories docs news posts records response feed rss channel item "
    "entry"
)
WRAPPER_NAMES = frozenset(_WRAPPER_WORDS.split())
_TEXT_NAMES = (*BODY_NAMES, *DESCRIPTION_NAMES, *TITLE_NAMES)
#: Lists and wrappers inside one another.
MAX_DEPTH = 16
_NUMBER_OR_ESCAPE = re.compile(r"\.|[eE][+-]?|\\?u?[0-9a-fA-F]{0,4}")
_PADDING = re.compile(r"[ \t\r\n\0]*")
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def json_lines(data: bytes, found: Items) -> Iterator[Item]:
    """Give the items of JSON lines; a line that is none is rejected, and the rest goes on.

    A last line without line feed that cannot be read has ended early. Memory is that of one line at a time.
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
        found.broken_parts.append(BrokenPart(where, ENDED_EARLY, line, is_last))
        return
    text, note = decode_utf8(line)
    try:
        decoded = _DECODER.decode(text)
    except (ValueError, RecursionError):
        found.broken_parts.append(BrokenPart(where, ENDED_EARLY if is_last else NOT_JSON, line, is_last))
        return
    if note:
        found.notes.append(Note(where, note))
    yield from items_of(decoded, _to_utf8(text) if note else line, where, found)


def json_values(data: bytes, found: Items) -> Iterator[Item]:
    """Give the items of one object or of a list of objects; of a list that is broken, those before the fault."""
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
            BrokenPart("the file", ENDED_EARLY if is_cut_off else _fault_reason(error), data, is_cut_off)
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
                BrokenPart(where, ENDED_EARLY if is_cut_off else _fault_reason(error), _to_utf8(text[at:]), is_cut_off)
            )
            return
        yield from items_of(decoded, _to_utf8(text[at:end]), where, found)
        if after >= len(text):
            found.broken_parts.append(BrokenPart("the end", ENDED_EARLY, b"", True))
            return
        at = after + (text[after] == ",")


def items_of(value: object, raw: bytes, where: str, found: Items) -> Iterator[Item]:
    """Give the item that a JSON value is, or those of the lists that it is wrapped around.

    An object with a text of its own is one item, whatever lists it holds. One without is a wrapper when it holds a list
    under one of `WRAPPER_NAMES`: its title and its description are those of a feed, and no item.
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
    """Return what a value is wrapped around, also inside further wrappers; None for one that is no wrapper."""
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
        # Lists of something else, in an item that has a description for its text.
        return None
    return wrapped


def _has_text_in(value: object, names: Sequence[str]) -> bool:
    """Return whether a value is an object with a text in one of these fields."""
    return isinstance(value, dict) and bool(first_string(fields_of(value), names).strip())


def _ignored_lists(value: object, where: str) -> Iterator[Note]:
    """Give a note for each list in an item that could be one of items."""
    for name, inner in sorted(fields_of(value).items()) if isinstance(value, dict) else ():
        if name not in WRAPPER_NAMES or not isinstance(inner, list):
            continue
        if any(isinstance(one, str) or _has_text_in(one, _TEXT_NAMES) for one in inner):
            yield Note(where, f"read as one item, without the {len(inner):,} entries in {name!r}")


def _skip_space(text: str, at: int) -> int:
    """Where white space ends."""
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _is_cut_off(text: str, error: BaseException) -> bool:
    """Whether JSON could not be read because it ends, rather than because of what it holds."""
    if not isinstance(error, json.JSONDecodeError):
        return False
    if error.msg.startswith("Unterminated string"):
        # A string that is not closed runs to the end.
        return True
    blank = _PADDING.match(text, error.pos)
    if blank is not None and blank.end() == len(text):
        return True
    return len(text) - error.pos < 16 and _is_token_prefix(text[error.pos :].strip("\0"))


def _is_token_prefix(rest: str) -> bool:
    """Whether the rest of a text is the begin of something that JSON knows."""
    words = ("true", "false", "null", "NaN", "Infinity", "-Infinity", "-")
    return any(word.startswith(rest) for word in words) or _NUMBER_OR_ESCAPE.fullmatch(rest) is not None


def _fault_reason(error: BaseException) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{NOT_JSON} ({error.msg[:60].rstrip(': ')}, character {error.pos})"
    return f"{NOT_JSON} ({'nested too deep' if isinstance(error, RecursionError) else 'a number too long'})"


def _to_utf8(text: str) -> bytes:
    return text.encode(errors="replace")
