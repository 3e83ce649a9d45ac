"""What a file holds: told by its first bytes, and where they leave it open by its name's ending."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["text", "html", "rss", "atom", "newsml", "newsml-g2", "nitf", "xml", "json", "jsonl"]
#: Every kind that is told apart; ``xml`` is XML of a kind that is not read.
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
#: By the first element; an item may also be a file of its own.
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
_XML = frozenset({"rss", "atom", "newsml", "newsml-g2", "nitf", "xml"})
_HTML_WORDS = (
    "html head body title meta link base script style div p a article aside section main header footer nav h1 "
    "h2 h3 h4 h5 h6 span table ul ol li dl br hr img center font form iframe noscript blockquote pre b i em "
    "strong"
)
#: With one of these a page or a part of one may begin.
_HTML = frozenset(_HTML_WORDS.split())
_SPACE = b" \t\r\n"
#: Characters at the start that are looked through for the first element.
_HEAD = 1 << 16
#: What may stand before the first element, and the element's name.
_BEFORE = re.compile(rb"(?:\s++|<\?[^>]*+>|<!--(?s:.*?)-->|<!(?i:doctype)\s++(?:[^\[>]++|\[(?s:.*?)\]\s*+(?=>))*+>)*+")
_ROOT = re.compile(rb"<(?:[A-Za-z_][\w.-]*+:)?([A-Za-z_][\w.-]*+)(?=[\s/>])")
_BEGUN = re.compile(rb"<(?:[A-Za-z_!?][^>]*+)?\Z")
_WRITTEN = re.compile(rb"[^ \t\r\n]")
_PAGE = re.compile(rb"<!doctype\s+html", re.IGNORECASE)


def kind_of_name(name: str) -> Kind | None:
    """Return the kind that a file's name promises, None when it promises none."""
    base = name.replace("\\", "/").rpartition("/")[2].lower()
    stem, dot, last = base.rpartition(".")
    return _KIND_OF_SUFFIX.get(dot + last) if stem else None


def kind_of(data: bytes, name: str) -> Kind:
    """Return what a file holds."""
    named = kind_of_name(name)
    start = data[:_HEAD].lstrip(_SPACE)
    if not start:
        return named or "text"
    if start[:1] in (b"{", b"["):
        return _json_kind(data, start, named)
    if start[:1] == b"<":
        return _markup_kind(start, named)
    return named if named in ("html", "jsonl", "json") else "xml" if named in _XML else "text"


def _json_kind(data: bytes, start: bytes, named: Kind | None) -> Kind:
    inside = start[1:].lstrip(_SPACE)[:1]
    promised = named in ("json", "jsonl")
    if start[:1] == b"[":
        return "json" if promised or (inside in (b"{", b"]", b"") and named != "text") else "text"
    if not promised and (named == "text" or inside not in (b'"', b"}", b"")):
        return "text"
    if named == "jsonl":
        return "jsonl"
    # Several lines are JSON lines when one of the first two is an object by itself.
    at = len(data) - len(data.lstrip(_SPACE))
    first = data.find(b"\n", at)
    if first < 0 or _WRITTEN.search(data, first) is None:
        return "json"
    second = data.find(b"\n", first + 1)
    lines = [data[at:first].strip(_SPACE), data[first + 1 : second if second >= 0 else len(data)].strip(_SPACE)]
    if lines[0][-1:] in (b"{", b"[", b",", b":"):
        return "json"
    is_one = (line[:1] == b"{" and line[-1:] == b"}" and line != b"{}" for line in lines)
    return "jsonl" if any(is_one) else "json"


def _markup_kind(start: bytes, named: Kind | None) -> Kind:
    if _PAGE.match(start):
        return "html"
    before = _BEFORE.match(start)
    root = _ROOT.match(start, before.end() if before else 0)
    if root is None:
        # Nothing but a declaration or the begin of a tag is here: a file that is still being written.
        begun = start.startswith(b"<?xml") or (_BEGUN.match(start) is not None and named != "text")
        return "html" if named == "html" else "xml" if begun or named in _XML else "text"
    found = root[1].decode("ascii", "replace")
    if found == "NewsItem":
        return "newsml"
    found = found.lower()
    if found in _KIND_OF_ROOT:
        return _KIND_OF_ROOT[found]
    if start.startswith(b"<?xml") or named in _XML:
        return "xml"
    return "html" if named == "html" or (found in _HTML and named != "text") else "text"
