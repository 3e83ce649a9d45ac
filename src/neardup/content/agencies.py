"""Items of news agencies: NewsML 1, NewsML-G2 and NITF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from neardup.content.feeds import made
from neardup.content.records import Item, Items
from neardup.content.tags import strip_tags
from neardup.content.xmlreading import local, xml_items, xml_text

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

#: Elements of NITF that are not part of the text.
_ASIDE = {"media", "body.end", "body.head"}


def nitf_items(data: bytes, found: Items) -> Iterator[Item]:
    """Give the item of a NITF file: headline and body, the id of its document, the time of its issue."""
    for where, root in xml_items(data, "nitf", found):
        title, body, times = _nitf(root)
        key = next((known for node in _all(root, "doc-id") if (known := node.get("id-string", ""))), "")
        yield from made(root, where, found, key=key, title=title, body=body, link="", times=times)


def newsml_items(data: bytes, found: Items) -> Iterator[Item]:
    """Give the news items of a NewsML 1 file; the text is that of all components, the time that of the revision."""
    for where, item in xml_items(data, "NewsItem", found):
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
            found,
            key=key,
            title=next(filter(None, titles), ""),
            body="\n".join(filter(None, bodies)),
            link="",
            times=[_string(item, name) for name in names],
        )


def g2_items(data: bytes, found: Items) -> Iterator[Item]:
    """Give the news items of a NewsML-G2 file, a message of many or a single one; packages and concepts have no text.

    The time is that of the version.
    """
    for where, item in xml_items(data, "newsItem", found):
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
            found,
            key=item.get("guid", ""),
            title=next(filter(None, titles), ""),
            body="\n".join(filter(None, bodies)) or _string(meta, "description"),
            link=next((known for node in _all(item, "link") if (known := node.get("href", ""))), ""),
            times=[_string(item, name) for name in names],
        )


def _inline(content: Element) -> tuple[str, str]:
    """Return the title and body of what is inside an item: NITF, a page, or plain text."""
    nitf = _first(content, "nitf")
    if nitf is not None:
        title, body, _ = _nitf(nitf)
        return title, body
    return "", xml_text(content)


def _nitf(root: Element) -> tuple[str, str, list[str]]:
    head, body = _first(root, "body.head"), _first(root, "body")
    title = " ".join(
        (_string(head, "hl1") or _string(head, "headline") or _string(_first(root, "head"), "title")).split()
    )
    content = _first(root, "body.content")
    holder = body if content is None else content
    text = "" if holder is None else xml_text(holder, _ASIDE)
    dates = [node.get("norm", "") for name in ("date.issue", "date.release") for node in _all(root, name)]
    dates += [node.get("norm", "") for node in _all(head, "story.date")]
    return title, text, dates


def _all(element: Element | None, name: str) -> Iterable[Element]:
    """Return the elements of that name inside another, whatever namespace they are in."""
    return () if element is None else (node for node in element.iter() if local(node.tag) == name)


def _first(element: Element | None, name: str) -> Element | None:
    return next(iter(_all(element, name)), None)


def _string(element: Element | None, name: str) -> str:
    """Return the text of the first element of that name that has one."""
    texts = (" ".join("".join(node.itertext()).split()) for node in _all(element, name))
    return next(filter(None, texts), "")
