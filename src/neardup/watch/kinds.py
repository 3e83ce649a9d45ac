"""The kind of a file, from its first bytes, and from the suffix of its name if they are ambiguous."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["text", "html", "rss", "atom", "newsml", "newsml-g2", "nitf", "xml", "json", "jsonl"]
#: All kinds; ``xml`` is XML of a kind that cannot be read.
KINDS: tuple[Kind, ...] = ("text", "html", "rss", "atom", "newsml", "newsml-g2", "nitf", "xml", "json", "jsonl")

_KIND_OF_SUFFIX: dict[str, Kind] = {
    ".txt": "text",
    ".text": "text",
    ".md": "text",
    ".htm": "html",
    ".html": "html",
    ".xhtml": "html",
    ".xml": "xml",
    ".rss": "rss",
    ".rdf": "rss",
    ".atom": "atom",
    ".nitf": "nitf",
    ".newsml": "newsml",
    ".json": "json",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
}
#: By the first element; a single item may also be a file.
_KIND_OF_ROOT: dict[str, Kind] = {
    "rss": "rss",
    "rdf": "rss",
    "item": "rss",
    "feed": "atom",
    "entry": "atom",
    "newsml": "newsml",
    "newsmessage": "newsml-g2",
    "newsitem": "newsml-g2",
    "packageitem": "newsml-g2",
    "nitf": "nitf",
    "html": "html",
}
_XML_KINDS = frozenset({"rss", "atom", "newsml", "newsml-g2", "nitf", "xml"})
_HTML_NAMES = (
    "html head body title meta link base script style div p a article aside section main header footer nav h1 "
    "h2 h3 h4 h5 h6 span table ul ol li dl br hr img center font form iframe noscript blockquote pre b i em "
    "strong"
)
#: Elements with which a page or a part of one may begin.
_HTML_ELEMENTS = frozenset(_HTML_NAMES.split())
_SPACE = b" \t\r\n"
#: Bytes at the start that are searched for the first element.
_HEAD_BYTES = 1 << 16
#: What may precede the first element, and the name of that element.
_PROLOG = re.compile(rb"(?:\s++|<\?[^>]*+>|<!--(?s:.*?)-->|<!(?i:doctype)\s++(?:[^\[>]++|\[(?s:.*?)\]\s*+(?=>))*+>)*+")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?([A-Za-z_][\w.-]*+)(?=[\s/>])")
_PARTIAL_TAG = re.compile(rb"<(?:[A-Za-z_!?][^>]*+)?\Z")
_NON_SPACE = re.compile(rb"[^ \t\r\n]")
_HTML_DOCTYPE = re.compile(rb"<!doctype\s+html", re.IGNORECASE)


def kind_of_name(name: str) -> Kind | None:
    """Return the kind that the suffix of a file's name stands for, None for other suffixes."""
    base = name.replace("\\", "/").rpartition("/")[2].lower()
    stem, dot, last = base.rpartition(".")
    return _KIND_OF_SUFFIX.get(dot + last) if stem else None


def kind_of(data: bytes, name: str) -> Kind:
    """Return the kind of a file."""
    name_kind = kind_of_name(name)
    start = data[:_HEAD_BYTES].lstrip(_SPACE)
    if not start:
        return name_kind or "text"
    if start[:1] in (b"{", b"["):
        return _json_kind(data, start, name_kind)
    if start[:1] == b"<":
        return _markup_kind(start, name_kind)
    return name_kind if name_kind in ("html", "jsonl", "json") else "xml" if name_kind in _XML_KINDS else "text"


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
        return "html" if name_kind == "html" else "xml" if is_partial or name_kind in _XML_KINDS else "text"
    name = root[1].decode("ascii", "replace")
    if name == "NewsItem":
        return "newsml"
    name = name.lower()
    if name in _KIND_OF_ROOT:
        return _KIND_OF_ROOT[name]
    if start.startswith(b"<?xml") or name_kind in _XML_KINDS:
        return "xml"
    return "html" if name_kind == "html" or (name in _HTML_ELEMENTS and name_kind != "text") else "text"
