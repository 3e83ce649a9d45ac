"""The formats of news files: the kind of a file, from its first bytes and its name, and the reader of each kind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from neardup.documents.inputs import kind_of_bytes
from neardup.items.archives import crawl_items, mail_items, mailbox_items
from neardup.items.feeds import FEEDS, feed_items, load_lxml, root_name
from neardup.items.item import NO_TEXT, TRUNCATED_FILE, Item, Items, Note
from neardup.items.json_items import json_lines, json_values
from neardup.text.contents import require_content
from neardup.text.encoding import decode_page, decode_utf8, detect_encoding, is_partial_bom
from neardup.text.html import TagScanner, strip_tags

#: ``xml`` is XML of a kind that cannot be read.
Kind = Literal[
    "text", "html", "rss", "atom", "newsml", "newsml-g2", "nitf", "xml", "json", "jsonl", "mail", "mbox", "warc"
]

#: Kinds of files with exactly one item.
_SINGLE_ITEM_KINDS = frozenset({"text", "html", "json", "nitf", "xml", "mail"})
_GZIP = b"\x1f\x8b"
_PACKED_CRAWLS = (".warc.gz", ".wet.gz")
_SPACE = b" \t\r\n"
_NON_SPACE = re.compile(rb"[^ \t\r\n]")
_HTML_NAMES = (
    "html head body title meta link base script style div p a article aside section main header footer nav h1 "
    "h2 h3 h4 h5 h6 span table ul ol li dl br hr img center font form iframe noscript blockquote pre b i em "
    "strong"
)
#: Elements with which a page or a part of one may begin.
_HTML_ELEMENTS = frozenset(_HTML_NAMES.split())
#: Bytes at the start that are searched for the first element.
_HEAD_BYTES = 1 << 16
#: What may precede the first element, and the name of that element.
_PROLOG = re.compile(rb"(?:\s++|<\?[^>]*+>|<!--(?s:.*?)-->|<!(?i:doctype)\s++(?:[^\[>]++|\[(?s:.*?)\]\s*+(?=>))*+>)*+")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?([A-Za-z_][\w.-]*+)(?=[\s/>])")
#: A feed anywhere, with its declaration; the RDF of a picture is not one.
_LATE_FEED = re.compile(
    rb"(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--(?s:.*?)-->\s*)?"
    rb"<(?:(?:rss|feed)(?:\s[^>]{0,9999})?|rdf:RDF\s(?=[^>]{0,9999}(?:/rss/|netscape))[^>]{0,9999})>"
)
_PARTIAL_TAG = re.compile(rb"<(?:[A-Za-z_!?][^>]*+)?\Z")
_HTML_DOCTYPE = re.compile(rb"<!doctype\s+html", re.IGNORECASE)


def kind_of(data: bytes, name: str) -> Kind:
    """Return the kind of a file; the suffix of its name decides where its first bytes are ambiguous."""
    name_kind = _KIND_OF_SUFFIX.get(os.path.splitext(name)[1].lower())
    archive = kind_of_bytes(data[:_HEAD_BYTES], "text")
    if archive in ("warc", "mbox"):
        return archive
    if name_kind in ("mail", "mbox", "warc") or (data.startswith(_GZIP) and name.lower().endswith(_PACKED_CRAWLS)):
        return name_kind or "warc"
    start = data[:_HEAD_BYTES].lstrip(_SPACE)
    if not start:
        return name_kind or "text"
    if start[:1] in (b"{", b"["):
        return _json_kind(data, start, name_kind)
    if start[:1] == b"<":
        return _markup_kind(start, name_kind)
    return name_kind if name_kind in ("html", "jsonl", "json") else "xml" if _is_xml(name_kind) else "text"


def _feed_start(data: bytes, name: str) -> int:
    """Return where a feed begins behind something else, such as the warning of a program; 0 for other files."""
    start = data[:_HEAD_BYTES].lstrip(_SPACE)
    name_kind = _KIND_OF_SUFFIX.get(os.path.splitext(name)[1].lower())
    if name_kind in ("text", "html", "json", "jsonl") or start[:1] in (b"{", b"[") or _HTML_DOCTYPE.match(start):
        return 0
    if start[:5].lower() == b"<html" or (start[:1] == b"<" and _markup_kind(start, name_kind) in FEEDS):
        return 0
    found = _LATE_FEED.search(data, 0, _HEAD_BYTES)
    return found.start() if found and b"\0" not in data[: found.start()] else 0


def _is_xml(kind: Kind | None) -> bool:
    return kind == "xml" or kind in FEEDS


def _json_kind(data: bytes, start: bytes, name_kind: Kind | None) -> Kind:
    inside = start[1:].lstrip(_SPACE)[:1]
    has_json_name = name_kind in ("json", "jsonl")
    if start[:1] == b"[":
        return "json" if has_json_name or (inside in (b"{", b"]", b"") and name_kind != "text") else "text"
    if not has_json_name and (name_kind == "text" or inside not in (b'"', b"}", b"")):
        return "text"
    if name_kind == "jsonl":
        return "jsonl"
    # Several lines are JSON lines if one of the first two is a complete object.
    at = len(data) - len(data.lstrip(_SPACE))
    first = data.find(b"\n", at)
    if first < 0 or _NON_SPACE.search(data, first) is None:
        return "json"
    second = data.find(b"\n", first + 1)
    lines = [data[at:first].strip(_SPACE), data[first + 1 : second if second >= 0 else len(data)].strip(_SPACE)]
    if lines[0][-1:] in (b"{", b"[", b",", b":"):
        return "json"
    are_objects = (line[:1] == b"{" and line[-1:] == b"}" and line != b"{}" for line in lines)
    return "jsonl" if any(are_objects) else "json"


def _markup_kind(start: bytes, name_kind: Kind | None) -> Kind:
    if _HTML_DOCTYPE.match(start):
        return "html"
    prolog = _PROLOG.match(start)
    root = _ROOT.match(start, prolog.end() if prolog else 0)
    if root is None:
        # Only a declaration or the start of a tag: the file is still being written.
        is_partial = start.startswith(b"<?xml") or (_PARTIAL_TAG.match(start) is not None and name_kind != "text")
        return "html" if name_kind == "html" else "xml" if is_partial or _is_xml(name_kind) else "text"
    name = root[1].decode("ascii", "replace")
    if name == "NewsItem":
        return "newsml"
    name = name.lower()
    if name in _KIND_OF_ROOT:
        return _KIND_OF_ROOT[name]
    if start.startswith(b"<?xml") or _is_xml(name_kind):
        return "xml"
    return "html" if name_kind == "html" or (name in _HTML_ELEMENTS and name_kind != "text") else "text"


def parse_items(name: str, data: bytes, *, extracts: bool = True) -> Items:
    """Read the items of a file.

    Kinds are plain text, HTML, RSS, Atom, NewsML 1, NewsML-G2, NITF, JSON (an object, a list of objects, or an object
    that wraps such a list), JSON lines, mail, mailboxes, and WARC and WET files. The encoding is UTF-8, UTF-16 or
    UTF-32, or the one that XML or a page declares; other bytes are read as Windows-1252, and a note records that. No
    content raises an error. An item has the time that it states, never the time of its file, which says nothing about
    the date of the news. The text of a page is its article, or its markup unless ``extracts``.

    Raises ``InputError`` for a page or a feed if the library that reads it is not installed.
    """
    encoding, begin = detect_encoding(data)
    content, damage = data[begin:], ""
    if encoding not in ("", "utf-8"):
        content, damage = _to_utf8(content, encoding)
    begin = _feed_start(content, name)
    before, content = content[:begin], content[begin:]
    is_cut_off = damage == TRUNCATED_FILE
    kind = kind_of(content, name)
    found = Items(kind, extracts)
    if before:
        found.notes.append(Note("the file", f"{len(before):,} bytes before the feed are not part of it"))
    if data.startswith(_GZIP) and kind != "warc":
        found.reject("the file", "compressed with gzip; deliver it unpacked", data)
    elif not content.strip(_SPACE) and not damage:
        found.reject("the file", "the file is empty", data, True)
    elif is_partial_bom(content):
        found.reject("the file", TRUNCATED_FILE, data, True)
    elif damage and kind in _SINGLE_ITEM_KINDS:
        # Its only item is incomplete.
        found.reject("the file", damage, data, is_cut_off)
    else:
        if kind == "html" and extracts:
            require_content("html")
        elif kind in FEEDS:
            load_lxml()
        found.items = _read(kind, content, data, damage, is_cut_off, found)
    return found


def _read(kind: Kind, content: bytes, data: bytes, damage: str, is_cut_off: bool, found: Items) -> Iterator[Item]:
    yield from _FORMATS[kind].read(content, found)
    if damage and not any(fault.ended_early for fault in found.broken_parts):
        found.reject("the end", damage, data, is_cut_off)


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
        found.reject("the file", "NUL bytes, so it is no text", data, is_cut_off)
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        is_begun = error.reason == "unexpected end of data"
        if is_begun and not data[: error.start].isascii():
            found.reject("the file", TRUNCATED_FILE, data, True)
            return
        # After ASCII only, the last bytes may also be a letter in another encoding.
        found.may_be_incomplete = is_begun
        text, note = decode_utf8(data)
        found.notes.append(Note("the file", note))
    if text.strip():
        yield Item("", text, "", None, "", data)
    else:
        found.reject("the file", NO_TEXT, data)


#: Characters at the start of a page that are searched for its title, time and address.
_HEAD_CHARACTERS = 1 << 17
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z:_-]{1,40})\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000}))"""
)
#: Names of times in pages; the last change comes before the first publication.
_META_NAMES = (
    "article:modified_time og:updated_time datemodified article:published_time og:published_time datepublished dc.date "
    "pubdate date"
)


def _page_items(data: bytes, found: Items) -> Iterator[Item]:
    if b"\0" in data and not data.strip(b"\0"):
        found.reject("the file", TRUNCATED_FILE, data, True)
        return
    markup = decode_page(data)
    text = found.text_of_page("the file", markup)
    if not text:
        found.reject("the file", NO_TEXT, data)
        return
    title, times, link = _head_fields(markup[:_HEAD_CHARACTERS])
    timestamp = found.date_of("the file", times)
    yield Item("", text, title, timestamp, link, data)


def _head_fields(head: str) -> tuple[str, list[str], str]:
    """Return the title, the times and the address that the head of a page states."""
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
    return title, [times[name] for name in _META_NAMES.split() if name in times], link


def _unknown_xml(data: bytes, found: Items) -> Iterator[Item]:
    root = root_name(data)
    if root:
        reason = (
            f"XML of an unknown kind (it begins with <{root[:60]}>); RSS, Atom, NewsML, NewsML-G2 and NITF are read"
        )
        found.reject("the file", reason, data)
    else:
        found.reject("the end", TRUNCATED_FILE, b"", True)
    yield from ()


class _Format(NamedTuple):
    """A kind of file: the suffixes of its names, the names of its first elements in lower case, and its reader."""

    suffixes: str
    roots: str
    read: Callable[[bytes, Items], Iterator[Item]]


#: A single item of a feed may also be a file.
_FORMATS: dict[Kind, _Format] = {
    "text": _Format(".txt .text .md", "", _text_items),
    "html": _Format(".htm .html .xhtml", "html", _page_items),
    "rss": _Format(".rss .rdf", "rss rdf item", feed_items),
    "atom": _Format(".atom", "feed entry", feed_items),
    "newsml": _Format(".newsml", "newsml", feed_items),
    "newsml-g2": _Format("", "newsmessage newsitem packageitem", feed_items),
    "nitf": _Format(".nitf", "nitf", feed_items),
    "xml": _Format(".xml", "", _unknown_xml),
    "json": _Format(".json", "", json_values),
    "jsonl": _Format(".jsonl .ndjson", "", json_lines),
    "mail": _Format(".eml", "", mail_items),
    "mbox": _Format(".mbox", "", mailbox_items),
    "warc": _Format(".warc .wet", "", crawl_items),
}
_KIND_OF_SUFFIX = {suffix: kind for kind, one in _FORMATS.items() for suffix in one.suffixes.split()}
_KIND_OF_ROOT = {root: kind for kind, one in _FORMATS.items() for root in one.roots.split()}
