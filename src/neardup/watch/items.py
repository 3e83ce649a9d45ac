"""The items of a news file: detect its kind, read it with the reader of that kind, reject broken parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime

from neardup.text.encoding import decode_page, decode_utf8, detect_encoding, is_partial_bom
from neardup.text.html import TagScanner, extract_article, require_trafilatura, strip_tags
from neardup.watch.feeds import atom_items, g2_items, newsml_items, nitf_items, rss_items
from neardup.watch.json_items import json_lines, json_values
from neardup.watch.kinds import Kind, kind_of
from neardup.watch.records import EMPTY, NO_TEXT, TRUNCATED_FILE, BrokenPart, Item, Items, Note, first_time
from neardup.watch.xml_parser import check_xml, root_name

_Reader = Callable[[bytes, Items], Iterator[Item]]

_SPACE = b" \t\r\n"
_GZIP = b"\x1f\x8b"
#: Kinds of files with exactly one item.
_SINGLE_ITEM_KINDS = frozenset({"text", "html", "json", "nitf", "xml"})
#: Characters at the start of a page that are searched for its title, time and address.
_HEAD_CHARACTERS = 1 << 17
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z:_-]{1,40})\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000}))"""
)
#: Names of times in pages; the last change comes before the first publication.
_META_TIMES = (
    "article:modified_time",
    "og:updated_time",
    "datemodified",
    "article:published_time",
    "og:published_time",
    "datepublished",
    "dc.date",
    "pubdate",
    "date",
)


def parse_items(name: str, data: bytes) -> Items:
    """Read the items of a file.

    The content decides its kind; the suffix of its name decides if the content is ambiguous. Kinds are plain text,
    HTML, RSS, Atom, NewsML 1, NewsML-G2, NITF, JSON (an object, a list of objects, or an object that wraps such a
    list) and JSON lines. The encoding is UTF-8, UTF-16 or UTF-32, or the one that XML or a page declares; other bytes
    are read as Windows-1252, and a note records that. No content raises an error. An item has the time that it states,
    never the time of its file, which says nothing about the date of the news.

    Raises ``InputError`` for a page or a feed if the library that reads it is not installed.

    Returns
    -------
    Items
        The kind and the items, which are read lazily; broken parts and notes are complete once the items have ended.
    """
    encoding, begin = detect_encoding(data)
    content, damage = data[begin:], ""
    if encoding not in ("", "utf-8"):
        content, damage = _to_utf8(content, encoding)
    is_cut_off = damage == TRUNCATED_FILE
    kind = kind_of(content, name)
    found = Items(kind)
    if data.startswith(_GZIP):
        found.broken_parts.append(BrokenPart("the file", "compressed with gzip; deliver it unpacked", data))
    elif not content.strip(_SPACE) and not damage:
        found.broken_parts.append(BrokenPart("the file", EMPTY, data, True))
    elif is_partial_bom(content):
        found.broken_parts.append(BrokenPart("the file", TRUNCATED_FILE, data, True))
    elif damage and kind in _SINGLE_ITEM_KINDS:
        # Its only item is incomplete.
        found.broken_parts.append(BrokenPart("the file", damage, data, is_cut_off))
    else:
        if kind == "html":
            require_trafilatura()
        elif kind in _XML_KINDS:
            check_xml()
        found.items = _read(kind, content, data, damage, is_cut_off, found)
    return found


def _read(kind: Kind, content: bytes, data: bytes, damage: str, is_cut_off: bool, found: Items) -> Iterator[Item]:
    yield from _READERS[kind](content, found)
    if damage and not any(fault.ended_early for fault in found.broken_parts):
        found.broken_parts.append(BrokenPart("the end", damage, data, is_cut_off))


def _to_utf8(data: bytes, encoding: str) -> tuple[bytes, str]:
    """Return UTF-16 or UTF-32 as UTF-8, and the fault in it, empty if there is none."""
    try:
        return data.decode(encoding).encode(), ""
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError) and error.start >= len(data) - 3:
            return data[: error.start].decode(encoding, "replace").encode(), TRUNCATED_FILE
        return data.decode(encoding, "replace").encode(errors="replace"), f"not valid {encoding[:6].upper()}"


def _text_items(data: bytes, found: Items) -> Iterator[Item]:
    if b"\0" in data:
        # Some file systems show the unwritten part of a file as NUL bytes.
        content = data.rstrip(b"\0")
        is_cut_off = b"\0" not in content and content.decode(errors="ignore").encode() == content
        found.broken_parts.append(BrokenPart("the file", "NUL bytes, so it is no text", data, is_cut_off))
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        is_begun = error.reason == "unexpected end of data"
        if is_begun and not data[: error.start].isascii():
            found.broken_parts.append(BrokenPart("the file", TRUNCATED_FILE, data, True))
            return
        # After ASCII only, the last bytes may also be a letter in another encoding.
        found.may_be_incomplete = is_begun
        text, note = decode_utf8(data)
        found.notes.append(Note("the file", note))
    if text.strip():
        yield Item("", text, "", None, "", data)
    else:
        found.broken_parts.append(BrokenPart("the file", NO_TEXT, data))


def _page_items(data: bytes, found: Items) -> Iterator[Item]:
    if b"\0" in data and not data.strip(b"\0"):
        found.broken_parts.append(BrokenPart("the file", TRUNCATED_FILE, data, True))
        return
    markup = decode_page(data)
    text = extract_article(markup).text
    if not text:
        found.broken_parts.append(BrokenPart("the file", NO_TEXT, data))
        return
    title, timestamp, link = _head_fields(markup[:_HEAD_CHARACTERS])
    yield Item("", text, title, timestamp, link, data)


def _head_fields(head: str) -> tuple[str, datetime | None, str]:
    """Return the title, the time and the address that the head of a page states."""
    title, link, title_start = "", "", -1
    times: dict[str, str] = {}
    for tag in TagScanner(head):
        if tag.name == "title" and not title:
            if tag.opens:
                title_start = tag.end
            elif title_start >= 0:
                title = strip_tags(head[title_start : tag.start]).replace("\n", " ")
        elif tag.name in ("meta", "link") and tag.end - tag.start < 8192:
            pairs = _ATTRIBUTE.findall(head, tag.start, tag.end)
            attributes = {key.lower(): "".join(values) for key, *values in pairs}
            if tag.name == "link" and attributes.get("rel", "").lower() == "canonical":
                link = link or attributes.get("href", "")
            for naming in ("property", "name", "itemprop"):
                times.setdefault(attributes.get(naming, "").lower(), attributes.get("content", ""))
        elif tag.name == "body":
            break
    return title, first_time(times[name] for name in _META_TIMES if name in times), link


def _unknown_xml(data: bytes, found: Items) -> Iterator[Item]:
    root = root_name(data)
    if root:
        supported = "RSS, Atom, NewsML, NewsML-G2 and NITF are read"
        reason = f"XML of an unknown kind (it begins with <{root[:60]}>); {supported}"
        found.broken_parts.append(BrokenPart("the file", reason, data))
    else:
        found.broken_parts.append(BrokenPart("the end", TRUNCATED_FILE, b"", True))
    yield from ()


_READERS: dict[Kind, _Reader] = {
    "text": _text_items,
    "html": _page_items,
    "rss": rss_items,
    "atom": atom_items,
    "newsml": newsml_items,
    "newsml-g2": g2_items,
    "nitf": nitf_items,
    "xml": _unknown_xml,
    "json": json_values,
    "jsonl": json_lines,
}
_XML_KINDS = frozenset({"rss", "atom", "newsml", "newsml-g2", "nitf"})
