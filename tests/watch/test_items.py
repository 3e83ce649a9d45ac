"""Files of news to items: every kind is told by its content, and its items come out whole."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pages import needs_html, page, paragraphs
from samples import ATOM, RSS2, SAMPLES

from neardup.watch.items import items_in
from neardup.watch.kinds import KINDS, kind_of
from neardup.watch.records import Item, Items


def read_file(name: str, data: bytes | str) -> tuple[Items, list[Item]]:
    found = items_in(name, data.encode() if isinstance(data, str) else data)
    return found, list(found.items)


def item_fields(items: list[Item]) -> list[tuple[str, str, str, float | None, str]]:
    return [
        (item.key, item.text, item.title, item.timestamp.timestamp() if item.timestamp else None, item.link)
        for item in items
    ]


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kind_gives_its_items(name: str) -> None:
    data, kind, expected = SAMPLES[name]
    found, items = read_file(name, data)
    assert (found.kind, item_fields(items), found.broken_parts) == (kind, expected, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_content_decides_before_the_name(name: str) -> None:
    data, kind, expected = SAMPLES[name]
    for wrong in ("download", *(() if kind == "text" else ("x.xml", "x.html", "x.json"))):
        found, items = read_file(wrong, data)
        assert (found.kind, item_fields(items)) == (kind, expected)


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "netscape"])
def test_byte_order_marks_name_the_encoding(name: str) -> None:
    data, kind, expected = SAMPLES[name]
    for encoding, mark in (("utf-8-sig", b""), ("utf-16", b""), ("utf-16-be", b"\xfe\xff")):
        found, items = read_file(name, mark + data.decode().encode(encoding))
        assert (found.kind, item_fields(items), found.broken_parts) == (kind, expected, [])


@pytest.mark.parametrize("name", SAMPLES)
def test_the_bytes_of_an_item_are_read_as_the_same_item(name: str) -> None:
    for item in read_file(name, SAMPLES[name][0])[1]:
        found, again = read_file("item", item.raw)
        assert (item_fields(again), found.broken_parts) == (item_fields([item]), [])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"description": "d", "body": "b", "content": "c"}, "c"),
        ({"text": None, "content": {"x": 1}, "body": "b"}, "b"),
        ({"Text": "upper"}, "upper"),
        ({"headline": "h", "article": "a"}, "h\na"),
        ({"title": "only"}, "only"),
        ({"title": "", "text": "x"}, "x"),
        ({"title": 5, "text": "x"}, "x"),
    ],
)
def test_the_text_is_the_first_field_with_a_string(fields: dict[str, object], text: str) -> None:
    assert [item.text for item in read_file("x.json", json.dumps(fields))[1]] == [text]


@pytest.mark.parametrize(
    ("start", "name", "kind"),
    [
        ("Once", "x", "text"),
        ("Once", "x.html", "html"),
        ("[Reuters] Gold rose", "x", "text"),
        ("{curly}", "x", "text"),
        ('["a"]', "x.json", "json"),
        ("<3 love", "x.txt", "text"),
        ("<p>One", "x", "html"),
        ("<p>One", "x.txt", "text"),
        ("<!doctype HTML><p>One", "x.txt", "html"),
        ("<!-- saved --><html>", "x", "html"),
        ('<?xml version="1.0"?><!DOCTYPE html PUBLIC "a" "b"><html>', "x", "html"),
        ('<?xml version="1.0"?><opml>', "x", "xml"),
        ("<opml>", "x.xml", "xml"),
        ("<?xml ver", "x", "xml"),
        ("<rs", "x", "xml"),
        ("<3 love", "x", "text"),
        ("<a:feed xmlns:a='http://www.w3.org/2005/Atom'>", "x", "atom"),
        ('{"a": 1}\n{"a": 2}', "x", "jsonl"),
        ('{broken\n{"a": 2}', "x.jsonl", "jsonl"),
        ('{"a":\n 1}', "x", "json"),
        ('{"a": 1}', "x.jsonl", "jsonl"),
        ("", "x.rss", "rss"),
    ],
)
def test_first_bytes_and_the_name_decide_the_kind(start: str, name: str, kind: str) -> None:
    assert kind_of(start.encode(), name) == kind
    assert kind in KINDS


def test_elements_of_other_namespaces_are_no_items() -> None:
    feed = RSS2.replace("<media:title>", "<media:item><title>no</title></media:item><media:title>")
    assert item_fields(read_file("x", feed)[1]) == SAMPLES["courier.xml"][2]
    feed = RSS2.replace("<item>", "<media:item><title>no</title></media:item><item>", 1)
    assert item_fields(read_file("x", feed)[1]) == SAMPLES["courier.xml"][2]
    prefixed = ATOM.replace("<", "<a:").replace("<a:/", "</a:").replace("<a:?", "<?").replace("xmlns=", "xmlns:a=", 1)
    prefixed = prefixed.replace("<a:div ", "<a:div xmlns:a='http://www.w3.org/1999/xhtml' ")
    assert item_fields(read_file("x", prefixed)[1]) == SAMPLES["valley.atom"][2]


@needs_html
def test_a_page_is_one_item_with_the_fields_of_its_head() -> None:
    markup = page(paragraphs(1), 0).replace(
        "</title>",
        "&amp; more</title><link rel='canonical' href='https://x.example/a'>"
        '<meta property="article:published_time" content="2019-03-21T11:30:00Z">',
    )
    found, items = read_file("x", markup)
    assert (found.kind, found.broken_parts, len(items)) == ("html", [], 1)
    (item,) = items
    assert item.text.endswith("\n".join(paragraphs(1)))
    assert "section" not in item.text
    assert item.title.endswith("& more")
    time = datetime(2019, 3, 21, 11, 30, tzinfo=UTC)
    assert (item.key, item.timestamp, item.link, item.raw) == ("", time, "https://x.example/a", markup.encode())
