"""Lists of items with an object around them: one item an entry, and what is no wrapper stays one item."""

from __future__ import annotations

import json
from typing import Any

import pytest
from test_items import item_fields, read_file

ENTRIES: list[dict[str, Any]] = [
    {"id": "a", "title": "Alpha", "text": "first", "url": "https://x.example/a", "date": "2020-01-01"},
    {"id": "b", "title": "Beta", "text": "second"},
]
ITEMS = [
    ("a", "Alpha\nfirst", "Alpha", 1577836800.0, "https://x.example/a"),
    ("b", "Beta\nsecond", "Beta", None, ""),
]
ABOUT = {"title": "The Harbour Courier", "description": "All that floats", "url": "https://x.example"}


@pytest.mark.parametrize("name", ["items", "articles", "data", "Items"])
def test_entries_of_a_list_under_a_usual_name_are_items(name: str) -> None:
    for about in ({}, ABOUT, {"status": "ok", "totalResults": 2}):
        for shape in ({**about, name: ENTRIES}, {name: ENTRIES, **about}):
            for indent in (None, 1):
                found, items = read_file("x.json", json.dumps(shape, indent=indent))
                assert (found.kind, item_fields(items), found.broken_parts, found.notes) == ("json", ITEMS, [], [])


@pytest.mark.parametrize(
    "shape",
    [
        {"response": {"status": "ok", "docs": ENTRIES}},
        {"data": {"title": "News", "articles": ENTRIES}},
        {"rss": {"channel": {"title": "News", "description": "All", "item": ENTRIES}}},
        {"hits": {"total": 2, "hits": [{"_id": entry["id"], "_source": entry} for entry in ENTRIES]}},
        {"data": [{"type": "news", "id": e["id"], "attributes": e} for e in ENTRIES]},
        {"news": ENTRIES[:1], "stories": ENTRIES[1:]},
        {"items": [ENTRIES[:1], ENTRIES[1:]]},
        [{"items": ENTRIES[:1]}, {"items": ENTRIES[1:]}],
        [{"items": ENTRIES[:1]}, ENTRIES[1]],
    ],
    ids=str,
)
def test_wrappers_may_be_nested(shape: Any) -> None:
    found, items = read_file("x.json", json.dumps(shape))
    assert (item_fields(items), found.broken_parts, found.notes) == (ITEMS, [], [])


def test_invalid_entries_of_a_wrapper_are_rejected() -> None:
    found, items = read_file("x.json", json.dumps({"title": "T", "items": [ENTRIES[0], {"id": 5}, 17, ENTRIES[1]]}))
    assert item_fields(items) == ITEMS
    assert [(fault.where, fault.reason, fault.raw) for fault in found.broken_parts] == [
        ("item 2", "no text", b'{"id": 5}'),
        ("item 3", "not a JSON object", b"17"),
    ]


@pytest.mark.parametrize("shape", [{"items": []}, ABOUT | {"items": []}, {"response": {"results": []}}, []], ids=str)
def test_an_empty_list_has_no_items(shape: Any) -> None:
    found, items = read_file("x.json", json.dumps(shape))
    assert (items, found.broken_parts, found.notes) == ([], [], [])


@pytest.mark.parametrize(
    "item",
    [
        {"title": "T", "text": "own", "authors": [{"name": "Ann", "description": "writes"}]},
        {"title": "T", "description": "own", "data": [{"x": 1}, {"x": 2}]},
        {"title": "T", "text": "own", "items": []},
    ],
    ids=str,
)
def test_an_item_with_other_lists_is_one_item(item: dict[str, Any]) -> None:
    found, items = read_file("x.json", json.dumps(item))
    assert [one.text for one in items] == ["T\nown"]
    assert (found.broken_parts, found.notes) == ([], [])


@pytest.mark.parametrize("name", ["text", "content_html"])
def test_an_object_with_a_text_is_one_item_and_its_list_is_noted(name: str) -> None:
    found, items = read_file("x.json", json.dumps({"title": "T", name: "own", "articles": ENTRIES}))
    assert [one.text for one in items] == ["T\nown"]
    (note,) = found.notes
    assert note.where == "the file"
    assert "2 entries" in note.text
    assert "articles" in note.text


def test_a_json_feed_gives_its_items() -> None:
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "My feed",
        "home_page_url": "https://x.example/",
        "items": [
            {"id": "2", "content_text": "Second\nitem", "url": "https://x.example/2", "tags": ["a"]},
            {
                "id": "1",
                "url": "https://x.example/1",
                "title": "First &",
                "content_html": "<p>Hello,&nbsp;<b>wor</b>ld!</p><p>Bye</p>",
                "summary": "no",
                "date_published": "2020-01-01T01:00:00+01:00",
                "date_modified": "2021-01-01T00:00:00Z",
                "authors": [{"name": "Ann"}],
            },
            {"id": "3", "summary": "only", "date_modified": "2020-01-01"},
        ],
    }
    found, items = read_file("feed", json.dumps(feed, indent=2))
    assert found.kind == "json"
    assert item_fields(items) == [
        ("2", "Second\nitem", "", None, "https://x.example/2"),
        ("1", "First &\nHello, world!\nBye", "First &", 1577836800.0, "https://x.example/1"),
        ("3", "only", "", 1577836800.0, ""),
    ]


def test_endlessly_nested_wrappers_have_no_items() -> None:
    for depth in (17, 200):
        found, items = read_file("x.json", '{"items":[' * depth + '{"text": "x"}' + "]}" * depth)
        assert not items
        assert found.broken_parts
