"""Items of news agencies: NewsML 1, NewsML-G2 and NITF."""

from __future__ import annotations

import xml.etree.ElementTree as ET  # no parsing here: see xmlreading.py
from collections.abc import Iterable, Iterator

from neardup.content.feeds import made
from neardup.content.records import Broken, Item
from neardup.content.tags import strip_tags
from neardup.content.xmlreading import local, space, xml_items, xml_text

#: Elements of NITF that are not part of the text.
_ASIDE = {"media", "body.end", "body.head"}


def nitf_items(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    """Give the item of a NITF file: headline and body, the id of its document, the time of its issue."""
    for where, root in xml_items(data, lambda name, depth, _: local(name) == "nitf" and depth == 1, broken):
        title, body, times = _nitf(root)
        key = next((found for node in _all(root, "doc-id") if (found := node.get("id-string", ""))), "")
        yield from made(root, where, broken, key=key, title=title, body=body, link="", times=times)


def newsml_items(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    """Give the news items of a NewsML 1 file; the text is that of all components, the time that of the revision."""
    for where, item in xml_items(data, lambda name, _, __: local(name) == "NewsItem", broken):
        identifier = _first(item, "NewsIdentifier")
        key = _string(identifier, "PublicIdentifier") or _string(identifier, "NewsItemId")
        bodies, titles = [], [_string(item, "HeadLine")]
        for content in _all(item, "DataContent"):
            title, body = _inline(content)
            titles.append(title)
            bodies.append(body)
        names = ("ThisRevisionCreated", "FirstCreated", "DateAndTime", "DateId")
        yield from made(
            item,
            where,
            broken,
            key=key,
            title=next(filter(None, titles), ""),
            body="\n".join(filter(None, bodies)),
            link="",
            times=[_string(item, name) for name in names],
        )


def g2_items(data: bytes, broken: list[Broken]) -> Iterator[Item]:
    """Give the news items of a NewsML-G2 file, a message of many or a single one; packages and concepts have no text.

    The time is that of the version.
    """

    def is_item(name: str, depth: int, root: str) -> bool:
        return local(name) == "newsItem" and depth <= 4 and space(name) == space(root)

    for where, item in xml_items(data, is_item, broken):
        meta = _first(item, "contentMeta")
        titles = [_string(meta, "headline"), _string(_first(item, "itemMeta"), "title")]
        bodies = []
        for content in _all(item, "contentSet"):
            for inline in content:
                if local(inline.tag) == "inlineXML":
                    title, body = _inline(inline)
                    titles.append(title)
                    bodies.append(body)
                elif local(inline.tag) == "inlineData" and "encoding" not in inline.attrib:
                    text = "".join(inline.itertext())
                    bodies.append(strip_tags(text) if "html" in inline.get("contenttype", "") else text.strip())
        names = ("versionCreated", "contentModified", "contentCreated", "firstCreated")
        yield from made(
            item,
            where,
            broken,
            key=item.get("guid", ""),
            title=next(filter(None, titles), ""),
            body="\n".join(filter(None, bodies)) or _string(meta, "description"),
            link=next((found for node in _all(item, "link") if (found := node.get("href", ""))), ""),
            times=[_string(item, name) for name in names],
        )


def _inline(content: ET.Element) -> tuple[str, str]:
    """Return the title and body of what is inside an item: NITF, a page, or plain text."""
    nitf = _first(content, "nitf")
    if nitf is not None:
        title, body, _ = _nitf(nitf)
        return title, body
    return "", xml_text(content)


def _nitf(root: ET.Element) -> tuple[str, str, list[str]]:
    head, body = _first(root, "body.head"), _first(root, "body")
    title = " ".join(
        (_string(head, "hl1") or _string(head, "headline") or _string(_first(root, "head"), "title")).split()
    )
    content = _first(root, "body.content")
    text = xml_text(_without(content if content is not None else body)) if body is not None else ""
    dates = [node.get("norm", "") for name in ("date.issue", "date.release") for node in _all(root, name)]
    dates += [node.get("norm", "") for node in _all(head, "story.date")]
    return title, text, dates


def _without(element: ET.Element | None) -> ET.Element:
    """Return a copy of an element without what is aside of the text, such as pictures with their captions."""
    copy = ET.Element("body")
    if element is not None:
        copy.text = element.text
        for child in element:
            if local(child.tag) in _ASIDE:
                if child.tail and child.tail.strip():
                    ET.SubElement(copy, "p").text = child.tail
            else:
                copy.append(child)
    return copy


def _all(element: ET.Element | None, name: str) -> Iterable[ET.Element]:
    """Return the elements of that name inside another, whatever namespace they are in."""
    return () if element is None else (node for node in element.iter() if local(node.tag) == name)


def _first(element: ET.Element | None, name: str) -> ET.Element | None:
    return next(iter(_all(element, name)), None)


def _string(element: ET.Element | None, name: str) -> str:
    """Return the text of the first element of that name that has one."""
    texts = (" ".join("".join(node.itertext()).split()) for node in _all(element, name))
    return next(filter(None, texts), "")
