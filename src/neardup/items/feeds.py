"""XML of news, as it occurs: feeds in RSS 0.9x, 1.0 and 2.0 and Atom, and news in NITF, NewsML 1 and NewsML-G2.

Entities of HTML, a bare ``&``, control characters, prefixes without a namespace and what follows the root are repaired
as text. A feed that is not well-formed then is read item by item, so that a fault costs no other item; only an item
whose end is missing is rejected. The recovery of libxml2 reads such a single item, but never a whole feed: after an
unclosed tag it nests the following items in each other. Every pattern here takes time in proportion to the text. A
parser of lxml is made for each file and never shared between threads.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from html import escape
from html.entities import html5
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.errors import InputError
from neardup.items.item import NO_TEXT, TRUNCATED_FILE, Item, Items, Note, fullest, join_title, plain_text
from neardup.text.encoding import decode_feed
from neardup.text.html import INLINE, collapse_lines, strip_tags

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_ATOM = "{http://www.w3.org/2005/Atom}"
_MEDIA = "{http://search.yahoo.com/mrss"
#: What the text of an item is called, in order of preference, in the namespace of the feed or in any other, such as
#: ``content:encoded``, ``atom:content``, ``xhtml:body`` and ``itunes:summary``.
_RSS_BODIES = (
    "encoded",
    "full-text",
    "fulltext",
    "fullitem",
    "content",
    "body",
    "div",
    "description",
    "summary",
    "abstract",
    "subtitle",
)
_ATOM_BODIES = ("content", *(name for name in _RSS_BODIES if name != "content"))
#: How the namespaces of RSS 0.90, 1.0 and 2.0 begin.
_RSS = tuple(
    f"{{http://{host}/" for host in ("purl.org/rss", "my.netscape.com", "channel.netscape.com", "backend.userland.com")
)
#: Types of text with markup in it.
_MARKUP = ("html", "text/html", "application/xhtml+xml")
#: Elements of NITF that are not part of the text.
_EXCLUDED = {"media", "body.end", "body.head"}


class _Fields(NamedTuple):
    """The parts of an item; its time is the first readable one."""

    key: str
    title: str
    body: str
    link: str
    times: Iterable[str]
    #: The element whose children may be the text of an item without a body, if there is one.
    others: Element | None = None


def feed_items(data: bytes, found: Items) -> Iterator[Item]:
    """Yield the items of a file of one of the kinds of ``FEEDS``; those without text are rejected."""
    name, fields_of = FEEDS[found.kind]
    for where, element in _item_elements(data, name, found):
        raw: bytes = load_lxml().tostring(element, encoding="utf-8", with_tail=False)
        fields = fields_of(element)
        body = fields.body
        if not body and fields.others is not None:
            body = found.unknown_text(where, _other_texts(fields.others))
        if text := join_title(fields.title, body):
            time = found.date_of(where, fields.times)
            yield Item(fields.key.strip(), text, fields.title, time, fields.link.strip(), raw)
        else:
            found.reject(where, NO_TEXT, raw)


#: The times of an item in order of preference: RSS, Dublin Core and Atom; the last update of an entry of Atom.
_RSS_TIMES = ("pubdate", "date", "updated", "published", "modified", "issued", "created")
_ATOM_TIMES = ("updated", "modified", "published", "issued", "created", "date", "pubdate")


def _rss_fields(item: Element) -> _Fields:
    parts = _parts(item)
    about = item.get(f"{_RDF}about", "")
    return _Fields(
        key=_first_text(parts, "guid", "identifier", "id") or about,
        title=next(filter(None, map(_markup_of, parts.get("title", ()))), "") or _media_text(item, "title"),
        body=fullest(_texts(parts, _RSS_BODIES)) or _media_text(item, "description", "text"),
        link=_first_text(parts, "link") or about or _link_of(parts.get("link", ())),
        times=_plain_texts(parts, _RSS_TIMES),
        others=item,
    )


def _atom_fields(entry: Element) -> _Fields:
    """Return the fields of an entry; its time is that of its last update."""
    parts = _parts(entry)
    return _Fields(
        key=_first_text(parts, "id"),
        title=next(filter(None, map(_atom_text, parts.get("title", ()))), "") or _media_text(entry, "title"),
        body=fullest(_texts(parts, _ATOM_BODIES)) or _media_text(entry, "description", "text"),
        link=_link_of(parts.get("link", ())),
        times=_plain_texts(parts, _ATOM_TIMES),
        others=entry,
    )


def _parts(item: Element) -> dict[str, list[Element]]:
    """Return the children of an item by their local names in lower case, those of its own namespace first.

    Prefixes are those that feeds use: ``dc:date`` is a date whatever namespace its prefix has, or if it has none.
    """
    own = _namespace(item)
    found: dict[str, list[Element]] = {}
    for child in item:
        if not _is_media(child):
            same = found.setdefault(_local_name(child).lower(), [])
            same.insert(0 if _namespace(child) == own and ":" not in child.tag.rpartition("}")[2] else len(same), child)
    return found


def _texts(parts: Mapping[str, Sequence[Element]], names: Iterable[str]) -> Iterator[str]:
    """Yield the texts of elements of those names, without their markup."""
    for child in (child for name in names for child in parts.get(name, ())):
        # RSS has markup; a type is that of Atom.
        is_atom = _namespace(child) == _ATOM or "type" in child.attrib
        yield _atom_text(child) if is_atom else _markup_of(child)


def _plain_texts(parts: Mapping[str, Sequence[Element]], names: Iterable[str]) -> list[str]:
    return ["".join(child.itertext()).strip() for name in names for child in parts.get(name, ())]


def _first_text(parts: Mapping[str, Sequence[Element]], *names: str) -> str:
    return next(filter(None, _plain_texts(parts, names)), "")


def _media_text(item: Element, *names: str) -> str:
    """Return the first text of those names that belongs to a media file of an item, such as a video."""
    found = (_markup_of(child) for child in item.iter() if _is_media(child) and _local_name(child) in names)
    return next(filter(None, found), "")


def _is_media(element: Element) -> bool:
    name: str = element.tag
    return name.startswith((_MEDIA, "media:"))


def _other_texts(item: Element) -> dict[str, str]:
    """Return the texts of the children of an item by their local names."""
    found: dict[str, str] = {}
    for child in item:
        if not _is_media(child) and (text := _markup_of(child)):
            name = _local_name(child)
            found[name] = f"{found[name]}\n{text}" if name in found else text
    return found


def _nitf_fields(root: Element) -> _Fields:
    head, body = _first_element(root, "body.head"), _first_element(root, "body")
    headline = _element_text(head, "hl1", "headline") or _element_text(_first_element(root, "head"), "title")
    content = _first_element(root, "body.content")
    holder = body if content is None else content
    dates = [(root, "date.issue"), (root, "date.release"), (head, "story.date")]
    return _Fields(
        key=_attribute(root, "doc-id", "id-string"),
        title=" ".join(headline.split()),
        body="" if holder is None else _text_of(holder, _EXCLUDED),
        link="",
        times=[node.get("norm", "") for element, name in dates for node in _elements(element, name)],
    )


def _newsml_fields(item: Element) -> _Fields:
    """Return the fields of an item of NewsML 1: the text of all components and the time of the revision."""
    inline = [_inline(content) for content in _elements(item, "DataContent")]
    titles = [_element_text(item, "HeadLine"), *(title for title, _ in inline)]
    return _Fields(
        key=_element_text(_first_element(item, "NewsIdentifier"), "PublicIdentifier", "NewsItemId"),
        title=next(filter(None, titles), ""),
        body="\n".join(body for _, body in inline if body),
        link="",
        times=[_element_text(item, name) for name in ("ThisRevisionCreated", "FirstCreated", "DateAndTime", "DateId")],
    )


def _g2_fields(item: Element) -> _Fields:
    """Return the fields of an item of NewsML-G2, whose time is that of its version."""
    meta = _first_element(item, "contentMeta")
    titles = [_element_text(meta, "headline"), _element_text(_first_element(item, "itemMeta"), "title")]
    bodies = []
    for content in (content for contents in _elements(item, "contentSet") for content in contents):
        if _local_name(content) == "inlineXML":
            title, body = _inline(content)
            titles.append(title)
            bodies.append(body)
        elif _local_name(content) == "inlineData" and "encoding" not in content.attrib:
            text = "".join(content.itertext())
            bodies.append(strip_tags(text) if "html" in content.get("contenttype", "") else text.strip())
    names = ("versionCreated", "contentModified", "contentCreated", "firstCreated")
    return _Fields(
        key=item.get("guid", ""),
        title=next(filter(None, titles), ""),
        body="\n".join(filter(None, bodies)) or _element_text(meta, "description"),
        link=_attribute(item, "link", "href"),
        times=[_element_text(item, name) for name in names],
    )


#: By kind: the name of the elements that are items, and their fields. Packages of NewsML-G2 have no text.
FEEDS: dict[str, tuple[str, Callable[[Element], _Fields]]] = {
    "rss": ("item", _rss_fields),
    "atom": ("entry", _atom_fields),
    "newsml": ("NewsItem", _newsml_fields),
    "newsml-g2": ("newsItem", _g2_fields),
    "nitf": ("nitf", _nitf_fields),
}


def _inline(content: Element) -> tuple[str, str]:
    """Return title and body of the content of an item: NITF, a page, or plain text."""
    nitf = _first_element(content, "nitf")
    if nitf is None:
        return "", _text_of(content)
    fields = _nitf_fields(nitf)
    return fields.title, fields.body


def _namespace(element: Element) -> str:
    """Return the namespace of an element, in braces; empty without one."""
    name: str = element.tag
    return name[: name.rfind("}") + 1]


def _local_name(element: Element) -> str:
    """Return the name of an element without its namespace, or without a prefix that has none."""
    name: str = element.tag
    return name.rpartition("}")[2].rpartition(":")[2]


def _markup_of(element: Element) -> str:
    return _text_of(element) if len(element) else strip_tags(element.text or "")


def _atom_text(element: Element) -> str:
    """Return a text of Atom, which is plain, escaped markup, or elements."""
    kind = element.get("type", "text").partition(";")[0].strip().lower()
    if len(element):
        return _text_of(element)
    text = element.text or ""
    if kind in _MARKUP or element.get("mode") == "escaped":
        return strip_tags(text)
    # Many feeds have markup without saying so.
    return plain_text(text if kind in ("text", "") or kind.startswith("text/") else _decoded(text)).strip()


def _decoded(text: str) -> str:
    """Return the text that base64 stands for, which a content of another type should be; empty if that is no text."""
    try:
        data = b64decode("".join(text.split()), validate=True)
    except ValueError:
        return text
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""


def _link_of(links: Iterable[Element]) -> str:
    """Return the address of the page among the links of Atom, or any other address if there is none."""
    found = {link.get("rel", "alternate"): link.get("href", "") for link in reversed(list(links))}
    return found.get("alternate", "") or next(iter(found.values()), "")


def _elements(element: Element | None, name: str) -> Iterable[Element]:
    """Return the elements of that name inside another, whatever namespace they are in."""
    return () if element is None else element.iter(f"{{*}}{name}")


def _first_element(element: Element | None, name: str) -> Element | None:
    return next(iter(_elements(element, name)), None)


def _element_text(element: Element | None, *names: str) -> str:
    """Return the text of the first element of those names that has one."""
    nodes = (node for name in names for node in _elements(element, name))
    return next(filter(None, (" ".join("".join(node.itertext()).split()) for node in nodes)), "")


def _attribute(element: Element, name: str, attribute: str) -> str:
    """Return the attribute of the first element of that name that has it."""
    return next(filter(None, (node.get(attribute, "") for node in _elements(element, name))), "")


_NAME_PART = r"[^\W\d][\w.-]*+"
#: The name of an element, with its prefix.
_NAME = rf"(?:{_NAME_PART}:)?{_NAME_PART}"

_CDATA_OR_COMMENT = r"<!\[CDATA\[(?P<characters>.*?)(?:\]\]>|\Z)|<!--.*?(?:-->|\Z)"
_REFERENCE = re.compile(
    rf"{_CDATA_OR_COMMENT}|<(?![A-Za-z_:/!?])|&(?:(?P<name>[A-Za-z]\w{{1,31}});|#(?P<number>\d{{1,7}}|[xX][\dA-Fa-f]{{1,6}});)?",
    re.DOTALL,
)
_CONTROL_CHARACTER = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_XML_NAMES = frozenset({"amp", "lt", "gt", "quot", "apos"})


def _html_character(match: re.Match[str]) -> str:
    """Return the escaped character of an HTML entity; empty for unknown entities and for those of XML."""
    name = match["name"]
    return "" if name is None or name in _XML_NAMES else escape(html5.get(f"{name};", ""))


def _repaired_reference(match: re.Match[str]) -> str:
    whole, number = match[0], match["number"]
    if whole == "<":
        return "&lt;"
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
_ROOT = re.compile(rf"{_PROLOG}<({_NAME})(?=[\s/>])", re.DOTALL)
_SKIPPED_ELEMENTS = {"script", "style", "head", "title"}
_INLINE_NAMES = "lang pronounce person org location money num chron event function virtloc copyrite"
#: Inline elements of NITF and HTML.
_INLINE_ELEMENTS = INLINE | frozenset(_INLINE_NAMES.split())


def load_lxml() -> Any:
    """Return ``lxml.etree``; raises ``InputError`` with the command that installs it."""
    try:
        from lxml import etree
    except ImportError as error:
        raise InputError(
            f"feeds are read with lxml, and {error.name or error} is not installed; "
            "pip install 'neardup[watch]' brings it"
        ) from None
    return etree


def root_name(data: bytes) -> str:
    """Return the name of the first element of a file, with its prefix; empty if that is incomplete."""
    found = _ROOT.match(_without_doctype(decode_feed(data)[0])[0])
    return found[1] if found else ""


def _item_elements(data: bytes, name: str, found: Items) -> Iterator[tuple[str, Element]]:
    text, note = decode_feed(data)
    if note:
        found.notes.append(Note("the file", note))
    text, had_doctype = _without_doctype(text)
    # A document type may define the entities of HTML, as that of RSS 0.91 does.
    entities_replaced = _REFERENCE.sub(lambda match: _html_character(match) or match[0], text) if had_doctype else text
    root, fault = _parse(entities_replaced)
    if root is None:
        text = _REFERENCE.sub(_repaired_reference, _CONTROL_CHARACTER.sub(" ", text))
        root, _ = _parse(text)
        if root is None:
            yield from _single_items(text, name, fault, data, found)
            return
    if fault:
        found.notes.append(Note("the file", fault))
    # Items of modules and items inside of items are none, unless there are no others.
    outermost = [
        one
        for one in root.iter("*")
        if _local_name(one) == name and not any(_local_name(above) == name for above in one.iterancestors())
    ]
    if not outermost and found.kind == "rss" and _first_element(root, "channel") is None:
        found.reject("the file", f"XML without an item or a channel (it begins with <{_local_name(root)}>)", data)
    elif not outermost and found.kind.startswith("newsml"):
        found.notes.append(Note("the file", "it has no news item, and a package has no text of its own"))
    namespaces = ("", _namespace(root))
    expected = [one for one in outermost if (space := _namespace(one)) in namespaces or space.startswith(_RSS)]
    expected = [one for one in expected if ":" not in one.tag.rpartition("}")[2]]
    yield from ((f"item {number}", element) for number, element in enumerate(expected or outermost, 1))


def _last_end(text: str, tag: str, begin: int, end: int) -> int:
    """Return the end of the last end tag of that name within text[begin:end]; 0 without one."""
    found = 0
    for match in re.compile(rf"</{re.escape(tag)}\s*>").finditer(text, begin, end):
        found = match.end()
    return found


def _single_items(text: str, name: str, fault: str, data: bytes, found: Items) -> Iterator[tuple[str, Element]]:
    """Yield the items of a feed that is not well-formed, each parsed alone; items without an end are rejected."""
    root = _ROOT.match(text)
    begins = [] if root is None else _starts_of(text, name, root.end())
    if root is None or not begins or root[1].rpartition(":")[2] == name or _OPEN_DOCTYPE.match(text):
        is_cut = not _ends_of(text)
        found.reject("the file", TRUNCATED_FILE if is_cut else fault, data, is_cut)
        return
    found.notes.append(Note("the file", fault))
    opening = text[root.start(1) - 1 : text.find(">", root.end()) + 1]
    is_cut = not _ends_of(text)
    for number, (begin, after) in enumerate(zip(begins, [*begins[1:], (len(text), "")], strict=True), 1):
        at, tag = begin
        close = _last_end(text, tag, at, after[0])
        where = f"item {number}"
        if not close:
            raw = text[at : after[0]].encode(errors="replace")
            is_last = number == len(begins) and is_cut
            found.reject(where, TRUNCATED_FILE if is_last else f"its end tag </{tag}> is missing", raw, is_last)
            continue
        item = f"{opening}{text[at:close]}</{root[1]}>"
        parsed, reason = _parse(item)
        if parsed is None:
            parsed, _ = _parse(item, repairs_tags=True)
            found.notes.append(Note(where, reason))
        element = None if parsed is None else _first_element(parsed, name)
        if element is None:
            found.reject(where, reason, text[at:close].encode(errors="replace"))
        else:
            yield where, element
    if is_cut and not any(part.ended_early for part in found.broken_parts):
        found.reject("the end", TRUNCATED_FILE, b"", True)


def _starts_of(text: str, name: str, begin: int) -> list[tuple[int, str]]:
    """Return where the items of a feed begin, outside of CDATA and comments, and the names of their tags."""
    pattern = re.compile(rf"{_CDATA_OR_COMMENT}|<(?P<tag>(?:{_NAME_PART}:)?{name})(?=[\s>])", re.DOTALL)
    return [(match.start(), match["tag"]) for match in pattern.finditer(text, begin) if match["tag"]]


def _without_doctype(text: str) -> tuple[str, bool]:
    """Return a text without XML declaration and document type, and whether it had one; line numbers stay the same."""
    declared = _DECLARATION.match(text)
    if declared is not None:
        text = declared[1] + text[declared.end() :]
    found = _DOCTYPE.match(text)
    if found is None:
        return text, False
    return found[1] + "\n" * text.count("\n", found.end(1), found.end()) + text[found.end() :], True


def _parse(text: str, *, repairs_tags: bool = False) -> tuple[Element | None, str]:
    """Return the root of XML, None if its tags are wrong, and its first fault; empty if it is well-formed.

    ``repairs_tags``: whether wrong tags are repaired by a guess, which may nest what follows.
    """
    if _OPEN_DOCTYPE.match(text):
        return None, "not well-formed XML (a document type that does not end)"
    etree = load_lxml()
    parser = etree.XMLParser(
        recover=True,
        encoding="utf-8",
        resolve_entities=False,
        load_dtd=False,
        no_network=True,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    root = None
    with suppress(etree.XMLSyntaxError):
        root = etree.fromstring(text.encode(errors="replace"), parser)
    faults = [fault for fault in parser.error_log if fault.level > etree.ErrorLevels.WARNING]
    if not faults and root is not None:
        return root, ""
    reason = next((f"{one.message}, line {one.line}, column {one.column}" for one in faults), "no element")
    harmless = {"ERR_DOCUMENT_END"} if len(_ends_of(text)) <= 1 else set()
    is_whole = all(one.domain_name == "NAMESPACE" or one.type_name in harmless for one in faults)
    return root if is_whole or repairs_tags else None, f"not well-formed XML ({reason[:120]})"


def _ends_of(text: str) -> list[str]:
    """Return the end tags of the first element; what follows one is harmless, and several are several feeds."""
    root = _ROOT.match(text)
    return [] if root is None else re.findall(rf"</{re.escape(root[1])}\s*>", text)


def _text_of(element: Element, excluded: Collection[str] = ()) -> str:
    """Return the text of an element with its blocks as lines, without scripts, styles and heads of pages."""
    parts: list[str] = []
    stack: list[tuple[Element, bool]] = [(element, False)]
    while stack:
        node, is_closed = stack.pop()
        name = _local_name(node)
        is_silent = not is_closed and node is not element and name.lower() in _SKIPPED_ELEMENTS
        if not is_silent and name.lower() not in _INLINE_ELEMENTS:
            parts.append("\n")
        if is_closed or is_silent or (name in excluded and node.getparent() is element):
            if node is not element:
                parts.append((node.tail or "").replace("\n", " "))
            continue
        parts.append((node.text or "").replace("\n", " "))
        stack.append((node, True))
        stack += [(child, False) for child in reversed(node)]
    return collapse_lines("".join(parts))
