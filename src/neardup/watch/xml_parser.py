"""XML as it occurs in feeds: entities of HTML, a bare ``&`` and control characters are repaired as text.

Other XML that is not well-formed is rejected. The recovery of libxml2 is no substitute: it drops a bare ``&`` or ``<``,
and after an unclosed tag it nests the following items in each other. Every pattern here takes time in proportion to the
text.
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
from neardup.watch.records import TRUNCATED_FILE, BrokenPart, Items, Note

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: Prefixes of the namespaces of RSS 0.90, 1.0 and 2.0.
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
    """Replace the entities of HTML in XML by their characters."""
    return _REFERENCE.sub(lambda match: _html_character(match) or match[0], text)


def repair_references(text: str) -> str:
    """Replace the entities of HTML in XML by their characters, and escape everything else that is no reference."""
    return _REFERENCE.sub(_repaired_reference, text)


def replace_control_characters(text: str) -> str:
    """Replace each control character that XML does not allow by a space."""
    return _CONTROL_CHARACTER.sub(" ", text)


def _html_character(match: re.Match[str]) -> str:
    """Return the escaped character of an HTML entity; empty for unknown entities and for those of XML."""
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
#: What may precede the first element, and a document type after it.
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
#: Inline elements of NITF and HTML.
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
    """Check that the library that reads feeds is installed.

    Raises ``InputError`` with the command that installs it.
    """
    _etree()


def local_name(name: str) -> str:
    """Return the name of an element without its namespace."""
    return name.rpartition("}")[2]


def namespace_of(name: str) -> str:
    """Return the namespace of an element's name."""
    return name[1:].partition("}")[0] if name.startswith("{") else ""


def root_name(data: bytes) -> str:
    """Return the name of the first element of a file, with its prefix; empty if that is incomplete."""
    found = _ROOT.match(_without_doctype(decode_feed(data)[0])[0])
    return found[1] if found else ""


def xml_items(data: bytes, name: str, found: Items) -> Iterator[tuple[str, Element]]:
    """Yield each item of a file with its position.

    ``name``: the name of the elements that are items, except inside another item, or in the namespace of a module.
    """
    text, note = decode_feed(data)
    if note:
        found.notes.append(Note("the file", note))
    text, had_doctype = _without_doctype(text)
    # A document type may define the entities of HTML, as that of RSS 0.91 does.
    root, fault = _parse(replace_html_entities(text) if had_doctype else text)
    if root is None:
        text = repair_references(replace_control_characters(text))
        root, _ = _parse(text)
        if root is None:
            is_cut = not _has_end_tag(text)
            found.broken_parts.append(BrokenPart("the file", TRUNCATED_FILE if is_cut else fault, data, is_cut))
            return
        found.notes.append(Note("the file", fault))
    yield from ((f"item {number}", element) for number, element in enumerate(_item_elements(root, name), 1))


def _without_doctype(text: str) -> tuple[str, bool]:
    """Return a text without XML declaration and document type, and whether it had one; line numbers stay the same."""
    declared = _DECLARATION.match(text)
    if declared is not None:
        text = declared[1] + text[declared.end() :]
    found = _DOCTYPE.match(text)
    if found is None:
        return text, False
    return found[1] + "\n" * text.count("\n", found.end(1), found.end()) + text[found.end() :], True


def _parse(text: str) -> tuple[Element | None, str]:
    """Return the root of XML; or None, and the reason why it is not well-formed."""
    if _OPEN_DOCTYPE.match(text):
        return None, "not well-formed XML (a document type that does not end)"
    etree = _etree()
    try:
        return etree.fromstring(_bytes(text), _parser()), ""
    except etree.XMLSyntaxError as error:
        reason = next(iter(str(error.msg).splitlines()), "")
        return None, f"not well-formed XML ({reason[:120]})"


def _item_elements(root: Element, name: str) -> list[Element]:
    """Return the items in the namespace of the root, of RSS or of none; without such items, those of any namespace."""
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
    """Return whether the first element is closed."""
    root = _ROOT.match(text)
    return root is not None and re.search(rf"</{re.escape(root[1])}\s*>", text) is not None


def _bytes(text: str) -> bytes:
    return text.encode(errors="replace")


def xml_text(element: Element, excluded: Collection[str] = ()) -> str:
    """Return the text of an element with its blocks as lines, without scripts, styles and heads of pages."""
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
    """Return an element as an XML document in UTF-8."""
    written: bytes = _etree().tostring(element, encoding="utf-8", with_tail=False)
    return written
