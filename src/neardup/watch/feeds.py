"""Items of XML: feeds in RSS 0.9x, 1.0 and 2.0 and Atom, and news in NITF and NewsML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from neardup.text.html import strip_tags
from neardup.watch.records import NO_TEXT, BrokenPart, Item, Items, first_time, join_title
from neardup.watch.xml_parser import local_name, xml_bytes, xml_items, xml_text

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_CONTENT = "{http://purl.org/rss/1.0/modules/content/}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_ATOM = "{http://www.w3.org/2005/Atom}"
#: Types of text with markup in it.
_MARKUP = ("html", "text/html", "application/xhtml+xml")


def rss_items(data: bytes, items: Items) -> Iterator[Item]:
    """Yield the items of an RSS feed of any version; items without title and description are rejected."""
    for where, item in xml_items(data, "item", items):
        title = _markup(item, "title", f"{_DC}title")
        body = _markup(item, f"{_CONTENT}encoded", "description", f"{_DC}description")
        link = _text(item, "link") or item.get(f"{_RDF}about", "") or _link_of(item.iterfind(f"{_ATOM}link"))
        key = _text(item, "guid", f"{_DC}identifier") or item.get(f"{_RDF}about", "")
        dates = ("pubDate", f"{_DC}date", f"{_ATOM}updated", f"{_TERMS}modified", f"{_TERMS}issued", "date")
        yield from build_item(item, where, items, key=key, title=title, body=body, link=link, times=_texts(item, dates))


def atom_items(data: bytes, items: Items) -> Iterator[Item]:
    """Yield the entries of an Atom feed; the time of an entry is its last update."""
    for where, entry in xml_items(data, "entry", items):
        title = _atom_text(_child(entry, "title"))
        body = _atom_text(_child(entry, "content")) or _atom_text(_child(entry, "summary"))
        links = [child for child in entry if child.tag == f"{_namespace(entry)}link"]
        dates = ("updated", "modified", "published", "issued", "created", f"{_DC}date")
        yield from build_item(
            entry,
            where,
            items,
            key=_text(entry, "id"),
            title=title,
            body=body,
            link=_link_of(links),
            times=_texts(entry, dates),
        )


def build_item(
    element: Element, where: str, items: Items, *, key: str, title: str, body: str, link: str, times: Iterable[str]
) -> Iterator[Item]:
    """Yield the item with these parts, or reject it if it has no text."""
    raw = xml_bytes(element)
    text = join_title(title, body)
    if not text:
        items.broken_parts.append(BrokenPart(where, NO_TEXT, raw))
        return
    yield Item(key.strip(), text, title, first_time(times), link.strip(), raw)


def _namespace(element: Element) -> str:
    """Return the namespace of an element, in braces, as it precedes names."""
    tag: str = element.tag
    return tag[: tag.rfind("}") + 1]


def _child(element: Element, name: str) -> Element | None:
    """Return the first child of that name; names without a namespace are in that of the element."""
    return element.find(name if name.startswith("{") else _namespace(element) + name)


def _texts(element: Element, names: Iterable[str]) -> list[str]:
    found = (_child(element, name) for name in names)
    return ["".join(child.itertext()).strip() for child in found if child is not None]


def _text(element: Element, *names: str) -> str:
    """Return the text of the first child of those names that has one."""
    return next((text for text in _texts(element, names) if text), "")


def _markup(element: Element, *names: str) -> str:
    """Return the text of the first child of those names that has one, without markup, escaped or as elements."""
    found = (child for name in names if (child := _child(element, name)) is not None)
    texts = (xml_text(child) if len(child) else strip_tags(child.text or "") for child in found)
    return next(filter(None, texts), "")


def _atom_text(element: Element | None) -> str:
    """Return a text of Atom, which is plain, escaped markup, or elements."""
    if element is None:
        return ""
    kind = element.get("type", "text").strip().lower()
    if len(element):
        return xml_text(element)
    text = element.text or ""
    if kind in _MARKUP or element.get("mode") == "escaped":
        return strip_tags(text)
    return text.strip() if kind == "text" or kind.startswith("text/") else ""


def _link_of(links: Iterable[Element]) -> str:
    """Return the address of the page among the links of Atom, or any other address if there is none."""
    found = {link.get("rel", "alternate"): link.get("href", "") for link in reversed(list(links))}
    return found.get("alternate", "") or next(iter(found.values()), "")


#: Elements of NITF that are not part of the text.
_EXCLUDED = {"media", "body.end", "body.head"}


def nitf_items(data: bytes, items: Items) -> Iterator[Item]:
    """Yield the item of a NITF file: headline and body, id of the document, time of issue."""
    for where, root in xml_items(data, "nitf", items):
        title, body, times = _nitf(root)
        key = next((value for node in _elements(root, "doc-id") if (value := node.get("id-string", ""))), "")
        yield from build_item(root, where, items, key=key, title=title, body=body, link="", times=times)


def newsml_items(data: bytes, items: Items) -> Iterator[Item]:
    """Yield the news items of a NewsML 1 file, with the text of all components and the time of the revision."""
    for where, item in xml_items(data, "NewsItem", items):
        identifier = _first_element(item, "NewsIdentifier")
        key = _element_text(identifier, "PublicIdentifier") or _element_text(identifier, "NewsItemId")
        bodies, titles = [], [_element_text(item, "HeadLine")]
        for content in _elements(item, "DataContent"):
            title, body = _inline(content)
            titles.append(title)
            bodies.append(body)
        names = ("ThisRevisionCreated", "FirstCreated", "DateAndTime", "DateId")
        yield from build_item(
            item,
            where,
            items,
            key=key,
            title=next(filter(None, titles), ""),
            body="\n".join(filter(None, bodies)),
            link="",
            times=[_element_text(item, name) for name in names],
        )


def g2_items(data: bytes, items: Items) -> Iterator[Item]:
    """Yield the news items of a NewsML-G2 file, a message or a single item, with the time of the version.

    Packages and concepts have no text.
    """
    for where, item in xml_items(data, "newsItem", items):
        meta = _first_element(item, "contentMeta")
        titles = [_element_text(meta, "headline"), _element_text(_first_element(item, "itemMeta"), "title")]
        bodies = []
        for content in _elements(item, "contentSet"):
            for inline in content:
                if local_name(inline.tag) == "inlineXML":
                    title, body = _inline(inline)
                    titles.append(title)
                    bodies.append(body)
                elif local_name(inline.tag) == "inlineData" and "encoding" not in inline.attrib:
                    text = "".join(inline.itertext())
                    bodies.append(strip_tags(text) if "html" in inline.get("contenttype", "") else text.strip())
        names = ("versionCreated", "contentModified", "contentCreated", "firstCreated")
        yield from build_item(
            item,
            where,
            items,
            key=item.get("guid", ""),
            title=next(filter(None, titles), ""),
            body="\n".join(filter(None, bodies)) or _element_text(meta, "description"),
            link=next((value for node in _elements(item, "link") if (value := node.get("href", ""))), ""),
            times=[_element_text(item, name) for name in names],
        )


def _inline(content: Element) -> tuple[str, str]:
    """Return title and body of the content of an item: NITF, a page, or plain text."""
    nitf = _first_element(content, "nitf")
    if nitf is not None:
        title, body, _ = _nitf(nitf)
        return title, body
    return "", xml_text(content)


def _nitf(root: Element) -> tuple[str, str, list[str]]:
    head, body = _first_element(root, "body.head"), _first_element(root, "body")
    headline = _element_text(head, "hl1") or _element_text(head, "headline")
    title = " ".join((headline or _element_text(_first_element(root, "head"), "title")).split())
    content = _first_element(root, "body.content")
    holder = body if content is None else content
    text = "" if holder is None else xml_text(holder, _EXCLUDED)
    dates = [node.get("norm", "") for name in ("date.issue", "date.release") for node in _elements(root, name)]
    dates += [node.get("norm", "") for node in _elements(head, "story.date")]
    return title, text, dates


def _elements(element: Element | None, name: str) -> Iterable[Element]:
    """Return the elements of that name inside another, whatever namespace they are in."""
    return () if element is None else (node for node in element.iter() if local_name(node.tag) == name)


def _first_element(element: Element | None, name: str) -> Element | None:
    return next(iter(_elements(element, name)), None)


def _element_text(element: Element | None, name: str) -> str:
    """Return the text of the first element of that name that has one."""
    texts = (" ".join("".join(node.itertext()).split()) for node in _elements(element, name))
    return next(filter(None, texts), "")
