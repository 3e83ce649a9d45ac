"""XML as feeds have it: names of characters from HTML, a bare ``&`` and control characters are put right as text.

What is not well-formed besides is rejected. libxml2's own recovery does not serve: it drops a bare ``&`` or ``<``, and
where a tag is not closed it puts the items that follow into each other. Every pattern here takes time in proportion to
the text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from html import escape
from html.entities import html5
from typing import TYPE_CHECKING, Any

from neardup.errors import InputError
from neardup.text.encoding import decode_feed
from neardup.text.html import INLINE, collapse_lines
from neardup.watch.records import ENDED_EARLY, BrokenPart, Items, Note

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: How the namespaces of RSS 0.90, 1.0 and 2.0 begin, where there are any.
RSS = (
    "http://purl.org/rss/",
    "http://my.netscape.com/",
    "http://channel.netscape.com/",
    "http://backend.userland.com/",
)
_NAME_PART = r"[^\W\d][\w.-]*+"
#: The name of an element or attribute, with its prefix.
NAME = rf"(?:{_NAME_PART}:)?{_NAME_PART}"

_CDATA_OR_COMMENT = r"<!\[CDATA\[(?P<characters>.*?)(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_REFERENCE = re.compile(
    rf"{_CDATA_OR_COMMENT}|&(?:(?P<name>[A-Za-z]\w{{1,31}});|#(?P<number>\d{{1,7}}|[xX][\dA-Fa-f]{{1,6}});)?", re.DOTALL
)
_CONTROL_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})


def replace_html_entities(text: str) -> str:
    """Return XML with HTML's names of characters as those characters."""
    return _REFERENCE.sub(lambda match: _html_character(match) or match[0], text)


def repair_references(text: str) -> str:
    """Return XML with HTML's names of characters as those characters, and what is no reference as text."""
    return _REFERENCE.sub(_repaired_reference, text)


def replace_control_characters(text: str) -> str:
    """Return XML without the control characters that it may not hold; a space takes the place of each."""
    return _CONTROL_CHARACTER.sub(" ", text)


def _html_character(match: re.Match[str]) -> str:
    """Return the character that HTML has for a name; empty where it has none, or XML has one as well."""
    name = match["name"]
    return "" if name is None or name in _XML_NAMES else escape(html5.get(f"{name};", ""))


def _repaired_reference(match: re.Match[str]) -> str:
    whole, number = match[0], match["number"]
    if whole.startswith("<") or match["name"] in _XML_NAMES:
        return whole
    if number is not None:
        code = int(number[1:], 16) if number[0] in "xX" else int(number)
        return whole if code < 0x110000 and not _CONTROL_CHARACTER.match(chr(code)) else "\ufffd"
    return _html_character(match) or f"&amp;{whole[1:]}"


_DECLARATION = re.compile(r"(\s*+)<\?xml\s[^>]*+>")
#: What may stand before the first element, and a document type behind it.
_PROLOG = r"(?:\s++|<\?.*?\?>|<!--.*?-->)*+"
_QUOTED = r""""[^"]*+"|'[^']*+'"""
_DOCTYPE = re.compile(
    rf"({_PROLOG})<!DOCTYPE\b(?:[^\[<>\"']++|{_QUOTED})*+"
    rf"(?:\[(?:[^\]\"'<]++|{_QUOTED}|<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<)*+\]\s*+)?+>",
    re.DOTALL | re.IGNORECASE,
)
_OPEN_DOCTYPE = re.compile(rf"{_PROLOG}<!DOCTYPE", re.DOTALL | re.IGNORECASE)
_ROOT = re.compile(rf"{_PROLOG}<({NAME})(?=[\s/>])", re.DOTALL)
_SKIPPED_ELEMENTS = {"script", "style", "head", "title"}
_INLINE_NAMES = "lang pronounce person org location money num chron event function virtloc copyrite"
#: What NITF has inside a line, besides the elements of HTML.
_INLINE_ELEMENTS = INLINE | frozenset(_INLINE_NAMES.split())


@cache
def _etree() -> Any:
    try:
        from lxml import etree
    except ImportError as error:
        raise InputError(
            f"feeds are read with lxml, and {error.name or error} is not installed; "
            "pip install 'neardup[watch]' brings it"
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


def local_name(name: str) -> str:
    """Return the name of an element without its namespace."""
    return name.rpartition("}")[2]


def namespace_of(name: str) -> str:
    """Return the namespace of an element's name."""
    return name[1:].partition("}")[0] if name.startswith("{") else ""


def root_name(data: bytes) -> str:
    """Return the name of a file's first element, with its prefix; empty where not even that is whole."""
    found = _ROOT.match(_without_doctype(decode_feed(data)[0])[0])
    return found[1] if found else ""


def xml_items(data: bytes, name: str, found: Items) -> Iterator[tuple[str, Element]]:
    """Give each item of a file with its place.

    ``name``: What the elements are called that are items. Those inside another item, and those of modules, are none.
    """
    text, note = decode_feed(data)
    if note:
        found.notes.append(Note("the file", note))
    text, had_doctype = _without_doctype(text)
    # A document type may have brought the names of HTML; that of RSS 0.91 does.
    root, fault = _parse(replace_html_entities(text) if had_doctype else text)
    if root is None:
        text = repair_references(replace_control_characters(text))
        root, _ = _parse(text)
        if root is None:
            is_cut = not _has_end_tag(text)
            found.broken_parts.append(BrokenPart("the file", ENDED_EARLY if is_cut else fault, data, is_cut))
            return
        found.notes.append(Note("the file", fault))
    yield from ((f"item {number}", element) for number, element in enumerate(_item_elements(root, name), 1))


def _without_doctype(text: str) -> tuple[str, bool]:
    """Return a text without what it declares, and whether it had a document type; lines keep their numbers."""
    declared = _DECLARATION.match(text)
    if declared is not None:
        text = declared[1] + text[declared.end() :]
    found = _DOCTYPE.match(text)
    if found is None:
        return text, False
    return found[1] + "\n" * text.count("\n", found.end(1), found.end()) + text[found.end() :], True


def _parse(text: str) -> tuple[Element | None, str]:
    """Return the root of XML; or None, and why it is not well-formed."""
    if _OPEN_DOCTYPE.match(text):
        return None, "not well-formed XML (a document type that does not end)"
    etree = _etree()
    try:
        return etree.fromstring(_bytes(text), _parser()), ""
    except etree.XMLSyntaxError as error:
        reason = next(iter(str(error.msg).splitlines()), "")
        return None, f"not well-formed XML ({reason[:120]})"


def _item_elements(root: Element, name: str) -> list[Element]:
    """Return the items: of the namespace of the root, of RSS or of none; where there are none, of any."""
    found = [
        element for element in root.iter(f"{{*}}{name}") if next(element.iterancestors(f"{{*}}{name}"), None) is None
    ]
    namespaces = ("", namespace_of(root.tag))
    expected = [
        element
        for element in found
        if (namespace := namespace_of(element.tag)) in namespaces or namespace.startswith(RSS)
    ]
    return expected or found


def _has_end_tag(text: str) -> bool:
    """Return whether the end of the first element is there."""
    root = _ROOT.match(text)
    return root is not None and re.search(rf"</{re.escape(root[1])}\s*>", text) is not None


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def xml_text(element: Element, excluded: Collection[str] = ()) -> str:
    """Return the text of an element, its blocks as lines; scripts, styles and the heads of pages are left out."""
    parts: list[str] = []
    stack: list[tuple[Element, bool]] = [(element, False)]
    while stack:
        node, is_closed = stack.pop()
        name = local_name(node.tag)
        is_silent = not is_closed and node is not element and name.lower() in _SKIPPED_ELEMENTS
        if not is_silent and name.lower() not in _INLINE_ELEMENTS:
            parts.append("\n")
        if is_closed or is_silent or (name in excluded and node.getparent() is element):
            if node is not element:
                parts.append(_on_one_line(node.tail))
            continue
        parts.append(_on_one_line(node.text))
        stack.append((node, True))
        stack += [(child, False) for child in reversed(node)]
    return collapse_lines("".join(parts))


def _on_one_line(text: str | None) -> str:
    return (text or "").replace("\n", " ")


def xml_bytes(element: Element) -> bytes:
    """Return an element as XML of its own, in UTF-8."""
    written: bytes = _etree().tostring(element, encoding="utf-8", with_tail=False)
    return written
