"""The fields of an object that is an item: what they are called, and the item that they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from neardup.content.records import HALF_CHARACTER, NO_TEXT, NOT_AN_OBJECT, Broken, Item, first_time, joined
from neardup.content.tags import strip_tags

#: Fields that hold the text, the id and the time, in order of preference, as in a corpus that the commands read.
TEXT_NAMES = (
    "text",
    "content",
    "body",
    "document",
    "article",
    "raw_content",
    "full_text",
    "fulltext",
    "description",
    "abstract",
    "sentence",
)
ID_NAMES = ("id", "_id", "doc_id", "document_id", "docid", "uuid", "guid")
TIME_NAMES = (
    "timestamp",
    "time",
    "date",
    "datetime",
    "published",
    "published_at",
    "pubdate",
    "created",
    "created_at",
    "updated",
    "modified",
)
#: Names that only news have, asked after those.
NEWS_TIMES = (
    "versioncreated",
    "datecreated",
    "datepublished",
    "date_published",
    "publisheddate",
    "published_date",
    "publishedat",
    "pub_date",
    "datemodified",
    "date_modified",
    "firstcreated",
)
TITLE_NAMES = ("title", "headline")
LINK_NAMES = ("link", "url", "uri")
#: What may describe an item, and describes a whole feed as well.
ABOUT_NAMES = ("description", "abstract", "summary", "description_text")
#: Fields of markup, as JSON Feed and ninjs name them.
_MARKUP_NAMES = ("content_html", "body_html", "body_xhtml")
#: Fields that hold the text itself, in order of preference.
BODY_NAMES = (
    *(name for name in TEXT_NAMES if name not in ABOUT_NAMES),
    *("content_text", "body_text", "articlebody"),
    *_MARKUP_NAMES,
)
#: Where the fields of an item are that are not beside its id: in Elasticsearch and in JSON:API.
_INNER_NAMES = ("_source", "attributes")


def item_of(value: object, raw: bytes, where: str) -> Item | Broken:
    """Return the item that a JSON value is, or why it is none."""
    if not isinstance(value, dict):
        return Broken(where, NOT_AN_OBJECT, raw)
    fields = fields_of(value)
    title = string_of(fields, TITLE_NAMES).strip()
    text = joined(title, _text_of(fields))
    if not text.strip():
        return Broken(where, NO_TEXT, raw)
    key = next((value for name in ID_NAMES if _is_id(value := fields.get(name))), "")
    timestamp = first_time(fields.get(name) for name in TIME_NAMES + NEWS_TIMES)
    item = Item(str(key), text, title, timestamp, string_of(fields, LINK_NAMES), raw)
    try:
        f"{item.key}{text}{item.link}".encode()
    except UnicodeEncodeError:
        return Broken(where, HALF_CHARACTER, raw)
    return item


def fields_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object by their names in lower case, its own before those of an object inside it."""
    fields: dict[str, Any] = {}
    for holder in (value, *(value.get(name) for name in _INNER_NAMES)):
        for name, one in holder.items() if isinstance(holder, dict) else ():
            fields.setdefault(name.lower(), one)
    return fields


def _text_of(fields: Mapping[str, Any]) -> str:
    texts = ((name, string_of(fields, (name,))) for name in (*BODY_NAMES, *ABOUT_NAMES))
    return next(filter(None, (strip_tags(text) if name in _MARKUP_NAMES else text for name, text in texts)), "")


def string_of(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """Return the first string of these fields that is not empty."""
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")


def _is_id(value: object) -> bool:
    return (isinstance(value, str) and bool(value)) or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 128
    )
