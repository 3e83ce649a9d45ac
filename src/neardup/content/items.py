"""A file of news -> its items: what it holds is told, read by the reader of that kind, and what is broken set aside."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from datetime import datetime

from neardup.content.agencies import g2_items, newsml_items, nitf_items
from neardup.content.charset import page_text
from neardup.content.feeds import atom_items, rss_items
from neardup.content.html import check_extraction, read_page
from neardup.content.jsonitems import json_lines, json_values
from neardup.content.kinds import KINDS, Kind, kind_of, unpacked
from neardup.content.records import EMPTY, ENDED_EARLY, NO_TEXT, NOT_UTF8, Broken, Item, Items, first_time
from neardup.content.tags import Tags, strip_tags
from neardup.content.xmlreading import xml_items

__all__ = ["KINDS", "Broken", "Item", "Items", "items_in"]

_Reader = Callable[[bytes, list[Broken]], Iterator[Item]]

#: Where a file ends that is to become UTF-16.
_HALF_MARKS = (codecs.BOM_UTF16_LE[:1], codecs.BOM_UTF16_BE[:1])
#: Characters at the start of a page in which its title, time and address are looked for.
_HEAD = 1 << 17
_ATTRIBUTE = re.compile(
    r"""([a-zA-Z:_-]{1,40})\s{0,9}=\s{0,9}(?:"([^"]{0,2000})"|'([^']{0,2000})'|([^\s"'>]{1,2000}))"""
)
#: What pages call their times, the last change before the first publication.
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


def items_in(name: str, data: bytes, *, modified: float | None = None) -> Items:
    """Read the items of a file.

    What it holds is told by its content, and by its name's ending where that leaves it open: plain text (UTF-8, or
    UTF-16 with a byte order mark), HTML, RSS, Atom, NewsML 1, NewsML-G2, NITF, JSON (an object or a list of them),
    JSON lines, each also packed by gzip. No content makes it raise.

    Parameters
    ----------
    name : str
        The name or path of the file; it is not opened.
    data : bytes
        Its content.
    modified : float, optional
        When the file was last changed. No item takes its time from that: a file does not say by being written when
        its news are from.

    Returns
    -------
    Items
        The kind; the items, read as they are asked for; what is broken, complete once the items have ended.

    Raises
    ------
    InputError
        For a page, when the library that finds articles is not installed.
    """
    del modified
    content, damage, early = unpacked(data)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        content, wide_damage = _from_utf16(content)
        damage, early = (damage, early) if damage else (wide_damage, bool(wide_damage))
    content = content.removeprefix(codecs.BOM_UTF8)
    kind = kind_of(content, name)
    found = Items(kind)
    if not content and not damage:
        found.broken.append(Broken("the file", EMPTY, data, True))
    elif damage and kind in ("text", "html", "json", "nitf", "xml"):
        # One item alone, and not all of it is there.
        found.broken.append(Broken("the file", damage, data, early))
    else:
        if kind == "html":
            check_extraction()
        found.items = _read(kind, content, data, damage, early, found.broken)
    return found


def _read(kind: Kind, content: bytes, data: bytes, damage: str, early: bool, broken: list[Broken]) -> Iterator[Item]:
    yield from _READERS[kind](content, broken)
    if damage and not any(fault.ended_early for fault in broken):
        broken.append(Broken("the end", damage, data, early))


def _from_utf16(data: bytes) -> tuple[bytes, str]:
    try:
        return data.decode("utf-16").encode(), ""
    except UnicodeError as error:
        if isinstance(error, UnicodeDecodeError) and error.start >= len(data) - 3:
            return data[: error.start].decode("utf-16", "replace").encode(), ENDED_EARLY
        return data.decode("utf-16", "replace").encode(errors="replace"), "not valid UTF-16"


def _text_items(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    if b"\0" in data:
        # A file system may show a half-written file as full of NUL bytes.
        begun = data.rstrip(b"\0")
        early = b"\0" not in begun and begun.decode(errors="ignore").encode() == begun
        broken.append(Broken("the file", "NUL bytes, so it is no text", data, early))
        return
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        early = error.reason == "unexpected end of data" or data in _HALF_MARKS
        broken.append(Broken("the file", ENDED_EARLY if early else f"{NOT_UTF8} (byte {error.start})", data, early))
        return
    if text.strip():
        yield Item("", text, "", None, "", data)
    else:
        broken.append(Broken("the file", NO_TEXT, data))


def _page_items(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    if b"\0" in data and not data.strip(b"\0"):
        broken.append(Broken("the file", ENDED_EARLY, data, True))
        return
    markup = page_text(data)
    text = read_page(markup).text
    if not text:
        broken.append(Broken("the file", NO_TEXT, data))
        return
    title, timestamp, link = _about(markup[:_HEAD])
    yield Item("", text, title, timestamp, link, data)


def _about(head: str) -> tuple[str, datetime | None, str]:
    """Return title, time and address as the head of a page states them."""
    title, link, opened = "", "", -1
    times: dict[str, str] = {}
    for tag in Tags(head):
        if tag.name == "title" and not title:
            if tag.opens:
                opened = tag.end
            elif opened >= 0:
                title = strip_tags(head[opened : tag.start]).replace("\n", " ")
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


def _unknown_xml(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    faults: list[Broken] = []
    roots: list[str] = []

    def look(name: str, depth: int, root: str) -> bool:
        del depth, root
        if not roots:
            roots.append(name.rpartition("}")[2][:60])
        return False

    yield from (Item("", "", "", None, "", b"") for _ in xml_items(data, look, faults))
    if faults:
        broken += faults
    else:
        known = "RSS, Atom, NewsML, NewsML-G2 and NITF are read"
        broken.append(Broken("the file", f"XML of an unknown kind (it begins with <{''.join(roots)}>); {known}", data))


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
