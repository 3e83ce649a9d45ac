"""Items of XML as small trees, by Python's own parser (expat), which is told to refuse all that could hurt.

A file that declares entities, or anything else in a document type of its own, is refused: entities are what XML bombs
are made of. A document type that only names a file elsewhere, as NITF and RSS 0.91 have, is passed over; nothing
outside the file is ever read.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET  # trees are built and written with it; it parses nothing here
from collections.abc import Callable, Iterator
from html.entities import html5
from xml.parsers import expat

from neardup.content.charset import page_text
from neardup.content.records import ENDED_EARLY, Broken
from neardup.content.tags import INLINE, lines_of

#: Elements inside one another.
DEEPEST = 256
#: Places in a file at which reading is taken up again after a fault, and bytes before the first item that are read
#: anew each time. Beyond either, the rest of the file is set aside as one.
MOST_FAULTS = 1000
LONGEST_HEADER = 1 << 16
#: Bytes given to the parser at once.
_CHUNK = 1 << 18
_DECLARED = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s{0,9}=\s{0,9}["']([A-Za-z0-9._-]{1,40})""")
_SILENT = {"script", "style", "head", "title"}
_WITHIN_WORDS = "lang pronounce person org location money num chron event function virtloc copyrite"
#: What NITF has inside a line, besides the elements of HTML.
_WITHIN = INLINE | frozenset(_WITHIN_WORDS.split())

#: An element's name with its namespace, its parents' count and the root's name -> whether it is an item.
IsItem = Callable[[str, int, str], bool]


class _RefusedError(Exception):
    """What is well-formed and yet not read."""


def local(name: str) -> str:
    """Return the name of an element without its namespace."""
    return name.rpartition("}")[2]


def space(name: str) -> str:
    """Return the namespace of an element's name."""
    return name[1:].partition("}")[0] if name.startswith("{") else ""


def xml_items(data: bytes, is_item: IsItem, broken: list[Broken]) -> Iterator[tuple[str, ET.Element]]:
    """Give each item of a file with its place; what is broken is set aside, and reading goes on at the next item.

    Parameters
    ----------
    data : bytes
        The file, without byte order mark.
    is_item : callable
        Which elements are items.
    broken : list of Broken
        Takes what cannot be read.
    """
    data = _as_utf8(data)
    header = item_tag = b""
    begin = number = faults = 0
    while True:
        reader = _Reader(is_item, number)
        try:
            yield from reader.items(header, memoryview(data)[begin:])
            return
        except _RefusedError as error:
            reason, give_up = str(error), True
        except expat.ExpatError as error:
            if reader.at_end:
                rest = _from(data, reader.open_at, begin, header)
                broken.append(Broken(f"item {reader.number}" if rest else "the end", ENDED_EARLY, rest, True))
                return
            reason, give_up = f"not well-formed XML ({expat.ErrorString(error.code)})", False
        number, faults = reader.number, faults + 1
        fault = begin + max(0, reader.parser.ErrorByteIndex - len(header))
        if not header and reader.first is not None:
            header = data[: reader.first]
            item_tag = re.split(rb"[\s/>]", data[reader.first + 1 : reader.first + 256], maxsplit=1)[0]
        started = reader.open_at - len(header) + begin if reader.open_at is not None and begin else reader.open_at
        where = f"item {number}" if started is not None else "the file"
        resumed = None
        if not give_up and header and len(header) <= LONGEST_HEADER and faults < MOST_FAULTS:
            resumed = re.compile(rb"<" + re.escape(item_tag) + rb"[\s>/]").search(data, fault + 1)
        if started is None:
            started = fault if number else 0
        if resumed is None:
            if reader.root_closed and not data[fault:].strip(b" \t\r\n\0"):
                return
            broken.append(Broken(where, reason, data[started:]))
            return
        broken.append(Broken(where, reason, data[started : resumed.start()]))
        begin = resumed.start()


def _from(data: bytes, open_at: int | None, begin: int, header: bytes) -> bytes:
    if open_at is None:
        return b""
    return data[open_at - len(header) + begin if begin else open_at :]


def _as_utf8(data: bytes) -> bytes:
    declared = _DECLARED.match(data[:512])
    if declared is None or declared[1].lower() in (b"utf-8", b"utf8", b"us-ascii", b"ascii"):
        return data
    return page_text(data).encode(errors="replace")


class _Reader:
    """One parse; it remembers where it was."""

    def __init__(self, is_item: IsItem, number: int) -> None:
        self.number = number
        self.at_end = False
        self.root_closed = False
        self.first: int | None = None
        self.open_at: int | None = None
        self._is_item = is_item
        self._root = ""
        self._depth = 0
        self._builder: ET.TreeBuilder | None = None
        self._item_depth = 0
        self._done: list[tuple[str, ET.Element]] = []
        parser = self.parser = expat.ParserCreate("utf-8", "}")
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.SkippedEntityHandler = self._skipped

    def items(self, header: bytes, rest: memoryview) -> Iterator[tuple[str, ET.Element]]:
        if header:
            self.parser.Parse(header, False)
        at, size = 0, _CHUNK
        while at < len(rest):
            fault: Exception | None = None
            try:
                self.parser.Parse(rest[at : at + size], False)
            except (expat.ExpatError, _RefusedError) as error:
                fault = error
            # What was whole before the fault is an item all the same.
            done, self._done = self._done, []
            yield from done
            if fault is not None:
                raise fault
            at += size
            # Something long is looked at again with each piece, so the pieces grow until it is through.
            size = _CHUNK if done else 2 * size
        self.at_end = True
        self.parser.Parse(b"", True)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > DEEPEST:
            raise _RefusedError(f"more than {DEEPEST} elements inside one another, which no feed has")
        name = _clark(name)
        if self._depth == 1:
            self._root = name
        if self._builder is None:
            if not self._is_item(name, self._depth, self._root):
                return
            self.number += 1
            self.open_at = self.parser.CurrentByteIndex
            if self.first is None:
                self.first = self.open_at
            self._builder, self._item_depth = ET.TreeBuilder(), self._depth
        self._builder.start(name, {_clark(key): value for key, value in attributes.items()})

    def _end(self, name: str) -> None:
        if self._builder is not None:
            self._builder.end(_clark(name))
            if self._depth == self._item_depth:
                self._done.append((f"item {self.number}", self._builder.close()))
                self._builder = self.open_at = None
        self._depth -= 1
        self.root_closed = self._depth == 0

    def _data(self, text: str) -> None:
        if self._builder is not None:
            self._builder.data(text)

    def _doctype(self, name: str, system: str | None, public: str | None, own: int) -> None:
        del name, system, public
        if own:
            raise _RefusedError("it declares a document type of its own, which could be a bomb; remove the DOCTYPE")

    def _entity(self, *declaration: object) -> None:
        del declaration
        raise _RefusedError("it declares entities, which could be a bomb; remove the DOCTYPE")

    def _skipped(self, name: str, parameter: bool) -> None:
        if not parameter:
            self._data(html5.get(f"{name};", ""))


def _clark(name: str) -> str:
    return "{" + name if "}" in name else name


def xml_text(element: ET.Element) -> str:
    """Return the text of an element, its blocks as lines; scripts, styles and the heads of pages are left out."""
    parts: list[str] = []
    todo: list[tuple[ET.Element, bool]] = [(element, False)]
    while todo:
        node, left = todo.pop()
        name = local(node.tag).lower()
        if left:
            if name not in _WITHIN:
                parts.append("\n")
            if node is not element:
                parts.append(_flat(node.tail))
            continue
        if name in _SILENT and node is not element:
            parts.append(_flat(node.tail))
            continue
        if name not in _WITHIN:
            parts.append("\n")
        parts.append(_flat(node.text))
        todo.append((node, True))
        todo += [(child, False) for child in reversed(node)]
    return lines_of("".join(parts))


def _flat(text: str | None) -> str:
    return (text or "").replace("\n", " ")


def xml_bytes(element: ET.Element) -> bytes:
    """Return an element as XML of its own, in UTF-8."""
    tail, element.tail = element.tail, None
    written: bytes = ET.tostring(element, encoding="utf-8")
    element.tail = tail
    return written
