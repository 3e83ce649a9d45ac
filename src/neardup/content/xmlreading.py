"""Items of XML as trees, by lxml, which sees no document type and so has nothing to expand and nothing to fetch.

A file that is well-formed is read as it stands. One that is not is cut apart where its items begin, and each is put
right and read by itself, so that a fault in one does not reach the others.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from neardup.content.charset import feed_text
from neardup.content.records import ENDED_EARLY, Broken, Items, Note
from neardup.content.tags import INLINE, lines_of
from neardup.content.xmlrepair import (
    DEEPEST,
    NAME,
    RSS,
    Piece,
    html_names,
    item_starts,
    spaces_of,
    whole_references,
    xml_characters,
)
from neardup.errors import InputError

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: Items of a file that cannot be read, after which the rest of it is set aside as one.
MOST_FAULTS = 1000

_DECLARATION = re.compile(r"(\s*+)<\?xml\s[^>]*+>")
#: What may stand before the first element, and a document type behind it.
_PROLOG = r"(?:\s++|<\?.*?\?>|<!--.*?-->)*+"
_QUOTED = r""""[^"]*+"|'[^']*+'"""
_TYPE = re.compile(
    rf"({_PROLOG})<!DOCTYPE\b(?:[^\[<>\"']++|{_QUOTED})*+"
    rf"(?:\[(?:[^\]\"'<]++|{_QUOTED}|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<)*+\]\s*+)?+>",
    re.DOTALL | re.IGNORECASE,
)
_BEGUN_TYPE = re.compile(rf"{_PROLOG}<!DOCTYPE", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(rf"{_PROLOG}<({NAME})(?=[\s/>])", re.DOTALL)
#: A place in an item that was read by itself, which is none in the file.
_PLACE = re.compile(r",? line \d+(, column \d+)?")

_SILENT = {"script", "style", "head", "title"}
_WITHIN_WORDS = "lang pronounce person org location money num chron event function virtloc copyrite"
#: What NITF has inside a line, besides the elements of HTML.
_WITHIN = INLINE | frozenset(_WITHIN_WORDS.split())


@cache
def _etree() -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise InputError(
            f'feeds are read with lxml, and {error.name or error} is not installed; pip install "neardup[watch]"'
        ) from None
    return etree


@cache
def _parser() -> Any:
    return _etree().XMLParser(
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )


def check_xml() -> None:
    """Refuse feeds where the library that reads them is not installed.

    Raises
    ------
    InputError
        Saying how to get it.
    """
    _etree()


def local(name: str) -> str:
    """Return the name of an element without its namespace."""
    return name.rpartition("}")[2]


def space(name: str) -> str:
    """Return the namespace of an element's name."""
    return name[1:].partition("}")[0] if name.startswith("{") else ""


def root_name(data: bytes) -> str:
    """Return the name of a file's first element, with its prefix; empty where not even that is whole."""
    found = _ROOT.match(_without_type(feed_text(data)[0])[0])
    return found[1] if found else ""


def xml_items(data: bytes, name: str, found: Items) -> Iterator[tuple[str, Element]]:
    """Give each item of a file with its place.

    Parameters
    ----------
    data : bytes
        The file, without byte order mark.
    name : str
        What the elements are called that are items. Those inside another item, and those of modules, are none.
    found : Items
        Takes what cannot be read, and notes of what was put right.
    """
    text, note = feed_text(data)
    if note:
        found.notes.append(Note("the file", note))
    text, had_type = _without_type(text)
    # A document type may have brought the names of HTML; that of RSS 0.91 does.
    root, fault = _tree(html_names(text) if had_type else text)
    if root is None:
        text = whole_references(xml_characters(text))
        root, _ = _tree(text)
        if root is None:
            yield from _apart(text, name, fault, found)
            return
        found.notes.append(Note("the file", fault))
    yield from ((f"item {number}", element) for number, element in enumerate(_items(root, name), 1))


def _without_type(text: str) -> tuple[str, bool]:
    """Return a text without what it declares, and whether it had a document type; lines keep their numbers."""
    declared = _DECLARATION.match(text)
    if declared is not None:
        text = declared[1] + text[declared.end() :]
    found = _TYPE.match(text)
    if found is None:
        return text, False
    return found[1] + "\n" * text.count("\n", found.end(1), found.end()) + text[found.end() :], True


def _tree(text: str) -> tuple[Element | None, str]:
    """Return the root of XML; or None, and why it is not well-formed."""
    if _BEGUN_TYPE.match(text):
        return None, "not well-formed XML (a document type that does not end)"
    etree = _etree()
    try:
        return etree.fromstring(_bytes(text), _parser()), ""
    except etree.XMLSyntaxError as error:
        reason = next(iter(str(error.msg).splitlines()), "")
        return None, f"not well-formed XML ({reason[:120]})"


def _items(root: Element, name: str) -> list[Element]:
    """Return the items: of the namespace of the root, of RSS or of none; where there are none, of any."""
    found = [
        element for element in root.iter(f"{{*}}{name}") if next(element.iterancestors(f"{{*}}{name}"), None) is None
    ]
    spaces = ("", space(root.tag))
    own = [one for one in found if (there := space(one.tag)) in spaces or there.startswith(RSS)]
    return own or found


def _apart(text: str, name: str, fault: str, found: Items) -> Iterator[tuple[str, Element]]:
    """Give the items of a file that is not well-formed, each read by itself."""
    root = _ROOT.match(text)
    spaces = spaces_of(text)
    starts = item_starts(text, name, root[1] if root else "", spaces)
    end = re.compile(rf"</{re.escape(root[1])}\s*>") if root else None
    is_whole = end is not None and end.search(text, starts[-1] if starts else 0) is not None
    if not starts:
        found.broken.append(Broken("the file", fault, _bytes(text)) if is_whole else _cut("the end"))
        return
    said, faults = len(found.notes) + len(found.broken), 0
    for number, (start, stop) in enumerate(pairwise([*starts, len(text)]), 1):
        where = f"item {number}"
        piece = Piece(text, start, stop)
        if not (piece.is_closed or piece.is_too_deep or is_whole) and stop == len(text):
            found.broken.append(_cut(where, text[start:]))
            return
        element, reason = _read(piece, spaces)
        if element is not None:
            if reason:
                found.notes.append(Note(where, reason))
            yield where, element
            continue
        faults += 1
        if faults >= MOST_FAULTS:
            stop = len(text)
        found.broken.append(Broken(where, reason, _bytes(text[start:stop])))
        if faults >= MOST_FAULTS:
            return
    if not is_whole:
        found.broken.append(_cut("the end"))
    elif said == len(found.notes) + len(found.broken):
        found.notes.append(Note("the file", fault))


def _read(piece: Piece, spaces: dict[str, str]) -> tuple[Element | None, str]:
    """Return an item, and why it had to be put right, if it had to; or None, and why it cannot be read."""
    if piece.is_too_deep:
        return None, f"more than {DEEPEST} elements inside one another, which no feed has"
    root, reason = _tree(piece.within(piece.written, spaces))
    if root is None:
        root, _ = _tree(piece.within(piece.mended, spaces))
    return (None if root is None else root[0]), _PLACE.sub("", reason)


def _cut(where: str, rest: str = "") -> Broken:
    return Broken(where, ENDED_EARLY, _bytes(rest), True)


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def xml_text(element: Element, aside: Collection[str] = ()) -> str:
    """Return the text of an element, its blocks as lines; scripts, styles and the heads of pages are left out.

    Parameters
    ----------
    element : Element
        Of a tree.
    aside : collection of str
        Names of children that are left out as well.
    """
    parts: list[str] = []
    todo: list[tuple[Element, bool]] = [(element, False)]
    while todo:
        node, is_left = todo.pop()
        name = local(node.tag)
        is_silent = not is_left and node is not element and name.lower() in _SILENT
        if not is_silent and name.lower() not in _WITHIN:
            parts.append("\n")
        if is_left or is_silent or (name in aside and node.getparent() is element):
            if node is not element:
                parts.append(_flat(node.tail))
            continue
        parts.append(_flat(node.text))
        todo.append((node, True))
        todo += [(child, False) for child in reversed(node)]
    return lines_of("".join(parts))


def _flat(text: str | None) -> str:
    return (text or "").replace("\n", " ")


def xml_bytes(element: Element) -> bytes:
    """Return an element as XML of its own, in UTF-8."""
    written: bytes = _etree().tostring(element, encoding="utf-8", with_tail=False)
    return written
