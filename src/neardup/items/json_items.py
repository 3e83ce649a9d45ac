"""Items of JSON: objects, lists of objects and JSON lines, and the names of their fields."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

from neardup.documents.tables import ID_NAMES, TEXT_NAMES, TIME_NAMES
from neardup.items.item import (
    NO_TEXT,
    TRUNCATED_FILE,
    Item,
    Items,
    Note,
    canonical_name,
    fullest,
    has_words,
    join_title,
    plain_text,
)
from neardup.text.encoding import decode_complete, decode_utf8

_NOT_JSON = "not valid JSON"


def _canonical(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(map(canonical_name, names.split())))


_TITLE_NAMES = _canonical("title headline subject headlines")
_LINK_NAMES = _canonical("link url uri canonical_url permalink canonical alternate")
#: Descriptions, which a whole feed may have as well as an item.
_DESCRIPTION_NAMES = _canonical(
    "description abstract summary description_text excerpt snippet teaser lead lead_paragraph standfirst intro "
    "trail_text descriptions"
)
#: Fields of the text itself, in order of preference: names of a corpus, of scrapers and of statuses, of markup in JSON
#: Feed and ninjs.
_BODY_NAMES = tuple(
    dict.fromkeys(
        (
            *(name for name in map(canonical_name, TEXT_NAMES) if name not in _DESCRIPTION_NAMES),
            *_canonical(
                "content_text body_text bodies article_body article_text maintext main_text text_content raw_text"
            ),
            *_canonical("plain_text selftext markdown story story_text content:encoded content_encoded full_content"),
            *_canonical("content_html body_html body_xhtml html raw_html selftext_html"),
        )
    )
)
#: Texts that are plain by their name: what looks like markup in them is text.
_PLAIN_NAMES = frozenset(_canonical("content_text body_text text_content raw_text plain_text markdown"))
_ID_NAMES = tuple(dict.fromkeys(map(canonical_name, ID_NAMES)))
_TIMES = tuple(dict.fromkeys(map(canonical_name, TIME_NAMES)))
#: Where an object in place of a text has the text: WordPress, Feedly and feedparser, Google Reader, XML as JSON.
_INNER_TEXTS = (
    "rendered",
    "value",
    "content",
    "text",
    "body",
    "html",
    "plain",
    "main",
    "raw",
    "#text",
    "_",
    "$t",
    "__cdata",
)
_TEXT_NAMES = (*_BODY_NAMES, *_DESCRIPTION_NAMES, *_TITLE_NAMES)
#: Names under which an object wraps a list of items, or another wrapper.
_WRAPPER_WORDS = (
    "items articles entries documents results data hits stories docs news posts records response feed rss channel item "
    "entry children value statuses"
)
_WRAPPER_NAMES = frozenset(_WRAPPER_WORDS.split())
#: Objects that contain the fields of an item in Elasticsearch and in JSON:API.
_INNER_NAMES = ("_source", "attributes", "fields")
#: The maximum depth of nested lists and wrappers.
_MAX_DEPTH = 16
_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def json_lines(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the items of JSON lines; an invalid line is rejected alone.

    An unreadable last line without a line feed has ended early. One line at a time is in memory.
    """
    for number, line in enumerate(BytesIO(data), 1):
        if stripped := line.strip(b" \t\r\n"):
            yield from _items_of_line(stripped, f"line {number}", found, is_last=not line.endswith(b"\n"))


def _items_of_line(line: bytes, where: str, found: Items, *, is_last: bool) -> Iterator[Item]:
    if line.count(b"\0") == len(line):
        found.reject(where, TRUNCATED_FILE, line, is_last)
        return
    text, note = decode_utf8(line)
    try:
        decoded = _DECODER.decode(text)
    except (ValueError, RecursionError):
        found.reject(where, TRUNCATED_FILE if is_last else _NOT_JSON, line, is_last)
        return
    if note:
        found.notes.append(Note(where, note))
    yield from _items_of(decoded, _to_utf8(text) if note else line, where, found)


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
        _reject_json("the file", text, error, data, found)
        return
    if text[_skip_space(text, end) :].strip("\0"):
        found.reject("the file", f"{_NOT_JSON} (something follows the object)", data)
        return
    yield from _items_of(decoded, data, "the file", found)


def _items_of_list(text: str, at: int, found: Items) -> Iterator[Item]:
    number = 0
    while True:
        at = _skip_space(text, at)
        if text[at : at + 1] == "]":
            rest = text[at + 1 :].strip(" \t\r\n\0")
            if rest:
                found.reject("after the list", f"{_NOT_JSON} (something follows the list)", _to_utf8(rest))
            return
        number += 1
        where = f"item {number}"
        try:
            decoded, end = _DECODER.raw_decode(text, at)
            after = _skip_space(text, end)
            if text[after : after + 1] not in (",", "]", ""):
                raise json.JSONDecodeError("expecting ',' or ']'", text, after)
        except (ValueError, RecursionError) as error:
            _reject_json(where, text, error, _to_utf8(text[at:]), found)
            return
        yield from _items_of(decoded, _to_utf8(text[at:end]), where, found)
        if after >= len(text):
            found.reject("the end", TRUNCATED_FILE, b"", True)
            return
        at = after + (text[after] == ",")


def _items_of(value: object, raw: bytes, where: str, found: Items) -> Iterator[Item]:
    """Yield the item of a JSON value, or the items of the lists that it wraps.

    An object with a text of its own is one item, whatever lists it contains. Without a text, it is a wrapper if it has
    a list under one of `_WRAPPER_NAMES`: its title and its description then belong to a feed.
    """
    entries = _entries(value)
    if entries is None:
        found.notes += _ignored_lists(value, where)
        yield from _item(value, raw, where, found)
        return
    prefix = "" if where == "the file" else f"{where}, "
    for number, entry in enumerate(entries, 1):
        yield from _item(entry, _to_utf8(json.dumps(entry, ensure_ascii=False)), f"{prefix}item {number}", found)


def _item(value: object, raw: bytes, where: str, found: Items) -> Iterator[Item]:
    if not isinstance(value, dict):
        found.reject(where, "not a JSON object", raw)
        return
    fields = _fields_of(value)
    title = " ".join(plain_text(_first_string(fields, _TITLE_NAMES)).split())
    body = _body_of(fields)
    body = fullest((body, _first_text(fields, _DESCRIPTION_NAMES))) if body else _unknown_body(fields, where, found)
    text = join_title(title, body)
    if not text.strip():
        found.reject(where, NO_TEXT, raw)
        return
    key = next((str(value) for name in _ID_NAMES if _is_id(value := fields.get(name))), "")
    link = _first_string(fields, _LINK_NAMES, "href")
    try:
        f"{key}{text}{link}".encode()
    except UnicodeEncodeError:
        found.reject(where, "text holds half of a surrogate pair", raw)
        return
    time = found.date_of(where, (_plain_time(fields.get(name)) for name in _TIMES))
    yield Item(key, text, title, time, link, raw)


def _fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by canonical name; its own take precedence over those of an inner object."""
    fields: dict[str, Any] = {}
    for holder in (value, *(value.get(name) for name in _INNER_NAMES)):
        for name, one in holder.items() if isinstance(holder, dict) else ():
            if fields.get(canonical_name(name)) in (None, ""):
                fields[canonical_name(name)] = one
    return fields


def _body_of(fields: Mapping[str, Any]) -> str:
    return _first_text(fields, _BODY_NAMES)


def _first_text(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the text of the first field that has one, without markup."""
    texts = ((name, _string_of(fields.get(name))) for name in names)
    return next(
        (one for name, text in texts if (one := text if name in _PLAIN_NAMES else plain_text(text)).strip()), ""
    )


def _unknown_body(fields: Mapping[str, Any], where: str, found: Items) -> str:
    """Return the text of an item without a text of a usual name."""
    known = {*_TEXT_NAMES, *_LINK_NAMES, *_ID_NAMES, *_TIMES, *map(canonical_name, _INNER_NAMES)}
    unknown = {name: plain_text(_all_strings(one)) for name, one in fields.items() if name not in known}
    return found.unknown_text(where, unknown, instead_of=_first_text(fields, _DESCRIPTION_NAMES))


def _string_of(value: object, *names: str) -> str:
    """Return the text of a field: a string, an object that contains it, or a list of those, which are paragraphs."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        return next(
            (text for name in (*names, *_INNER_TEXTS) if (text := value.get(name)) and isinstance(text, str)), ""
        )
    if isinstance(value, list):
        return "\n".join(filter(None, (one if isinstance(one, str) else _string_of(one, *names) for one in value)))
    return ""


def _all_strings(value: object, depth: int = 0) -> str:
    """Return all strings of several words inside a value, each as a line."""
    if isinstance(value, str):
        return value
    if depth > _MAX_DEPTH or not isinstance(value, dict | list):
        return ""
    inner = value.values() if isinstance(value, dict) else value
    return "\n".join(text for one in inner if has_words(text := _all_strings(one, depth + 1)))


def _plain_time(value: object) -> object:
    """Return the time of a field, also of one that MongoDB or Firestore has written."""
    if not isinstance(value, dict):
        return value
    return next((value[name] for name in ("$date", "_seconds", "seconds") if name in value), None)


def _first_string(fields: Mapping[str, Any], names: Sequence[str], *inner: str) -> str:
    return next((text for name in names if (text := _string_of(fields.get(name), *inner))), "")


def _is_id(value: object) -> bool:
    if isinstance(value, str):
        return bool(value)
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 128


def _entries(value: object, depth: int = 0) -> list[object] | None:
    """Return the entries that a value wraps, directly or through further wrappers; None if it is no wrapper."""
    if depth > _MAX_DEPTH:
        return None
    if isinstance(value, list):
        if not any(isinstance(entry, dict | list) for entry in value):
            return None
        unwrapped = ((entry, _entries(entry, depth + 1)) for entry in value)
        return [one for entry, inner in unwrapped for one in ([entry] if inner is None else inner)]
    if not isinstance(value, dict) or _has_text_in(value, _BODY_NAMES):
        return None
    wrapped: list[object] | None = None
    for name, inner in _fields_of(value).items():
        if name not in _WRAPPER_NAMES:
            continue
        entries = [] if inner == [] else _entries(inner, depth + 1)
        has_title = _has_text_in(inner, _TITLE_NAMES) and not _has_text_in(value, _TEXT_NAMES)
        if entries is None and (_has_text_in(inner, _BODY_NAMES) or has_title):
            entries = [inner]
        if entries is not None:
            wrapped = [*(wrapped or []), *entries]
    if (
        wrapped
        and _has_text_in(value, _DESCRIPTION_NAMES)
        and not any(_has_text_in(entry, _TEXT_NAMES) for entry in wrapped)
    ):
        # An item whose text is its description, with lists of something else.
        return None
    return wrapped


def _has_text_in(value: object, names: Sequence[str]) -> bool:
    """Return whether a value is an object with a text in one of the fields."""
    return isinstance(value, dict) and bool(_first_string(_fields_of(value), names).strip())


def _ignored_lists(value: object, where: str) -> Iterator[Note]:
    """Yield a note for each list in an item that may be a list of items."""
    for name, inner in sorted(_fields_of(value).items()) if isinstance(value, dict) else ():
        if name not in _WRAPPER_NAMES or not isinstance(inner, list):
            continue
        if any(isinstance(one, str) or _has_text_in(one, _TEXT_NAMES) for one in inner):
            yield Note(where, f"read as one item, without the {len(inner):,} entries in {name!r}")


def _skip_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _reject_json(where: str, text: str, error: ValueError | RecursionError, raw: bytes, found: Items) -> None:
    if not isinstance(error, json.JSONDecodeError):
        fault = "nested too deep" if isinstance(error, RecursionError) else "a number too long"
        found.reject(where, f"{_NOT_JSON} ({fault})", raw)
    elif _is_cut_off(text, error):
        found.reject(where, TRUNCATED_FILE, raw, True)
    else:
        found.reject(where, f"{_NOT_JSON} ({error.msg[:60].rstrip(': ')}, character {error.pos})", raw)


def _is_cut_off(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether a fault may be the missing end of a file: it is at the end, or the file does not end in a bracket.

    An unclosed string runs to the end.
    """
    end = text.rstrip(" \t\r\n\0")
    return error.msg.startswith("Unterminated string") or error.pos >= len(end) or end[-1] not in "]}"


def _to_utf8(text: str) -> bytes:
    return text.encode(errors="replace")
