"""XML that is not well-formed, put right as text: references, stray characters, and the tags of one item at a time.

libxml2's own recovery does not serve: it drops a bare ``&`` or ``<``, and where a tag is not closed it puts the items
that follow into each other. Every pattern here takes time in proportion to the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from html import escape
from html.entities import html5
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from neardup.errors import InputError
from neardup.text.encoding import feed_text
from neardup.text.html import INLINE, lines_of
from neardup.watch.records import ENDED_EARLY, Broken, Items, Note

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: Elements inside one another in an item that has to be put right; libxml2's own limit is 256.
DEEPEST = 250
#: Characters at the start of a file in which namespaces are looked for.
LONGEST_HEADER = 1 << 16
#: How the namespaces of RSS 0.90, 1.0 and 2.0 begin, where there are any.
RSS = (
    "http://purl.org/rss/",
    "http://my.netscape.com/",
    "http://channel.netscape.com/",
    "http://backend.userland.com/",
)
_WORD = r"[^\W\d][\w.-]*+"
#: The name of an element or attribute, with its prefix.
NAME = rf"(?:{_WORD}:)?{_WORD}"

#: What prefixes stand for that feeds use without saying so.
_USUAL_SPACES = {
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "atom": "http://www.w3.org/2005/Atom",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
_ASIDE = r"<!\[CDATA\[(?P<characters>.*?)(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_REFERENCE = re.compile(
    rf"{_ASIDE}|&(?:(?P<name>[A-Za-z]\w{{1,31}});|#(?P<number>\d{{1,7}}|[xX][\dA-Fa-f]{{1,6}});)?", re.DOTALL
)
_NO_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})
#: A tag holds no ``<``, not even in a value.
_TOKEN = re.compile(
    rf"""{_ASIDE}|<\?.*?(?:\?>|\Z)|<(?P<closes>/?)(?P<name>{NAME})(?P<rest>(?:[^"'<>]++|"[^"<]*+"|'[^'<]*+')*+)>""",
    re.DOTALL,
)
_START = re.compile(rf"<({NAME})")
_ATTRIBUTE = re.compile(rf"""(?<![\w.:-])({NAME})\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=]+))""")
_SPACES = re.compile(rf"""\sxmlns(?::({_WORD}))?\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")
#: Elements of HTML without an end, and those that the next of their kind ends.
_VOID = frozenset({"br", "hr", "img", "input", "wbr"})
_SELF_ENDING = frozenset({"p", "li", "dt", "dd", "tr", "td"})


def html_names(text: str) -> str:
    """Return XML with HTML's names of characters as those characters."""
    return _REFERENCE.sub(lambda match: _character(match) or match[0], text)


def whole_references(text: str) -> str:
    """Return XML with HTML's names of characters as those characters, and what is no reference as text."""
    return _REFERENCE.sub(_as_known, text)


def xml_characters(text: str) -> str:
    """Return XML without the control characters that it may not hold; a space takes the place of each."""
    return _NO_CHARACTER.sub(" ", text)


def _character(match: re.Match[str]) -> str:
    """Return the character that HTML has for a name; empty where it has none, or XML has one as well."""
    name = match["name"]
    return "" if name is None or name in _XML_NAMES else escape(html5.get(f"{name};", ""))


def _as_known(match: re.Match[str]) -> str:
    whole, number = match[0], match["number"]
    if whole.startswith("<") or match["name"] in _XML_NAMES:
        return whole
    if number is not None:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        return whole if code < 0x110000 and not _NO_CHARACTER.match(chr(code)) else "\ufffd"
    return _character(match) or f"&amp;{whole[1:]}"


def item_starts(text: str, name: str, root: str, spaces: dict[str, str]) -> list[int]:
    """Return where the items of a file begin."""
    prefix = root.rpartition(":")[0]
    found = []
    for match in re.finditer(rf"{_ASIDE}|<(?:(?P<prefix>{_WORD}):)?{name}(?=[\s/>])", text, re.DOTALL):
        own = match["prefix"] or ""
        if not match[0].startswith("<!") and (own in ("", prefix) or spaces.get(own, "").startswith(RSS)):
            found.append(match.start())
    return found


def spaces_of(text: str) -> dict[str, str]:
    """Return what prefixes stand for: as the head of a file says, else as is usual."""
    found = dict(_USUAL_SPACES)
    for prefix, quoted, single in reversed(_SPACES.findall(text[:LONGEST_HEADER])):
        found[prefix] = (quoted or single).replace('"', "&quot;")
    return found


class Piece:
    """One item of a file that is not well-formed."""

    def __init__(self, text: str, start: int, stop: int) -> None:
        #: Whether its end is there; whether more than `DEEPEST` elements are inside one another: then it is not whole.
        self.is_closed = self.is_too_deep = False
        self._prefixes: set[str] = set()
        self._opened: list[str] = []
        self._parts: list[str] = []
        at = start
        first = _START.match(text, start, stop)
        if first is not None and _TOKEN.match(text, start, stop) is None:
            # The start tag itself is broken.
            self._open(first[1], "")
            at = first.end()
        for token in _TOKEN.finditer(text, at, stop):
            self._parts.append(_without_tags(text[at : token.start()]))
            at = token.end()
            self._take(token)
            self.is_closed = not self._opened
            if self.is_closed or self.is_too_deep:
                break
        else:
            self._parts.append(_without_tags(text[at:stop]))
            at = stop
        self._close_until("")
        #: The item as it is there, and the same with its tags put right: what could not be a tag is text, tags that
        #: nothing opened are left out, those that nothing closes are closed where an element around them is.
        self.written, self.mended = text[start:at], "".join(self._parts)

    def _take(self, token: re.Match[str]) -> None:
        name, rest = token["name"], token["rest"]
        if name is None:
            self._parts.append(escape(token["characters"] or "", quote=False))
        elif token["closes"]:
            if name in self._opened:
                self._close_until(name)
        else:
            if name in _SELF_ENDING and self._opened[-1:] == [name]:
                self._close_until(name)
            self._open(name, rest)
            if rest.endswith("/") or name.lower() in _VOID:
                self._close_until(name)
            self.is_too_deep = len(self._opened) > DEEPEST

    def _open(self, name: str, rest: str) -> None:
        found: dict[str, str] = {}
        for attribute, *values in _ATTRIBUTE.findall(rest):
            found.setdefault(attribute, "".join(values).replace('"', "&quot;"))
        self._prefixes.update(known.partition(":")[0] for known in (name, *found) if ":" in known)
        self._parts += [f"<{name}", *(f' {attribute}="{value}"' for attribute, value in found.items()), ">"]
        self._opened.append(name)

    def _close_until(self, name: str) -> None:
        """Close what is open, an element of that name last; all where none has it."""
        while self._opened:
            last = self._opened.pop()
            self._parts.append(f"</{last}>")
            if last == name:
                return

    def within(self, markup: str, spaces: dict[str, str]) -> str:
        """Return a document around `written` or `mended` of this item that says what its prefixes stand for."""
        known = {prefix: spaces.get(prefix, f"urn:undeclared:{prefix}") for prefix in self._prefixes - {"xml", "xmlns"}}
        declared = [f' xmlns:{prefix}="{name}"' for prefix, name in sorted(known.items())]
        default = spaces.get("", "")
        return f'<x xmlns="{default}"{"".join(declared)}>{markup}</x>'


def _without_tags(text: str) -> str:
    return text.replace("<", "&lt;").replace(">", "&gt;")


#: Items of a file that cannot be read, after which the rest of it is rejected as one.
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

    Raises ``InputError``, saying how to get it.
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

    ``name``: What the elements are called that are items. Those inside another item, and those of modules, are none.
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
    """Return the text of an element, its blocks as lines; scripts, styles and the heads of pages are left out."""
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
