"""Items of every kind of file: kinds by content, feeds as programs write them, JSON with lists around its items."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from samples import ATOM, RSS2, SAMPLES, item_fields, read_file
from web_pages import needs_html, page, paragraphs

from neardup.errors import InputError
from neardup.watch.formats import kind_of, parse_items


@pytest.mark.parametrize("name", SAMPLES)
def test_each_kind_gives_its_items(name: str) -> None:
    """Under any name, with a byte order mark, and from the bytes of a single item."""
    data, kind, expected = SAMPLES[name]
    written = dict.fromkeys((name, "download", *(() if kind == "text" else ("x.xml", "x.html", "x.json"))), data)
    if name != "netscape":
        marked = zip(("utf-8-sig", "utf-16", "utf-16-be"), (b"", b"", b"\xfe\xff"), strict=True)
        written |= {f"{encoding}/{name}": mark + data.decode().encode(encoding) for encoding, mark in marked}
    for path, content in written.items():
        found, items = read_file(path, content)
        assert (found.kind, item_fields(items), found.broken_parts) == (kind, expected, []), path
    for item in items:
        found, item_again = read_file("item", item.raw)
        assert (item_fields(item_again), found.broken_parts) == (item_fields([item]), [])


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


KINDS_BY_START = {
    "text": [("Once", "x"), ("[Reuters] Gold rose", "x"), ("{curly}", "x"), ("<3 love", "x.txt"), ("<3 love", "x")],
    "html": [("Once", "x.html"), ("<p>One", "x"), ("<!doctype HTML><p>One", "x.txt"), ("<!-- saved --><html>", "x")],
    "xml": [('<?xml version="1.0"?><opml>', "x"), ("<opml>", "x.xml"), ("<?xml ver", "x"), ("<rs", "x")],
    "atom": [("<a:feed xmlns:a='http://www.w3.org/2005/Atom'>", "x")],
    "json": [('["a"]', "x.json"), ('{"a":\n 1}', "x")],
    "jsonl": [('{"a": 1}\n{"a": 2}', "x"), ('{broken\n{"a": 2}', "x.jsonl"), ('{"a": 1}', "x.jsonl")],
    "rss": [("", "x.rss")],
}


def test_first_bytes_and_the_name_decide_the_kind() -> None:
    for kind, starts in KINDS_BY_START.items():
        assert [kind_of(start.encode(), name) for start, name in starts] == [kind] * len(starts), kind
    assert kind_of(b"<p>One", "x.txt") == "text"
    assert kind_of(b'<?xml version="1.0"?><!DOCTYPE html PUBLIC "a" "b"><html>', "x") == "html"


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


DECLARED = '<?xml version="1.0" encoding="{}"?>\n'


def feed(inside: str, declared: str = "", head: str = '<rss version="2.0">') -> str:
    return f"{declared}{head}<channel><title>News</title>{inside}</channel></rss>"


def item(text: str) -> str:
    return f"<item><guid>g</guid><title>T</title><link>l</link><description>{text}</description></item>"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "koi8-r", "cp1251"])
def test_declared_and_marked_encodings_are_used(encoding: str) -> None:
    text = feed(item("Роза – красна"), DECLARED.format(encoding.removesuffix("-sig")))
    text = text if encoding != "koi8-r" else text.replace("–", "-")
    found, items = read_file("x", text.encode(encoding))
    assert found.kind == "rss"
    assert [one.text for one in items] == [f"T\nРоза {'-' if encoding == 'koi8-r' else '–'} красна"]
    assert (found.broken_parts, found.notes) == ([], [])


@pytest.mark.parametrize(
    ("declared", "encoding", "is_noted"),
    [
        ("utf-8", "cp1252", True),
        ("", "cp1252", True),
        ("nonsense", "cp1252", True),
        ("iso-8859-1", "utf-8", False),
        ("iso-8859-1", "cp1252", False),
        ("us-ascii", "utf-8", False),
        ("utf-16", "utf-8", False),
        ("utf-8", "utf-16", False),
    ],
)
def test_a_wrong_declaration_does_no_harm(declared: str, encoding: str, is_noted: bool) -> None:
    text = feed(item("café – olé"), DECLARED.format(declared) if declared else "")
    found, items = read_file("x", text.encode(encoding))
    assert [one.text for one in items] == ["T\ncafé – olé"]
    assert [("windows-1252" in note.text) for note in found.notes] == [True] * is_noted
    assert not found.broken_parts


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a&nbsp;b &eacute;&hellip;", "a b é…"),
        ("AT&T, R&D & more", "AT&T, R&D & more"),
        ("&unknown; &#0;&#x1F;&#xD800;&#9999999;", "&unknown; \ufffd\ufffd\ufffd\ufffd"),
        ("1 &lt; 2 &amp;amp; &LT;b&GT;3", "1 < 2 & 3"),
        ("a \x01b\x0cc", "a b c"),
        ("<![CDATA[a&nbsp;b <b>c</b> &amp; d]]> &nbsp;e", "a b c & d e"),
    ],
)
def test_malformed_references_are_repaired_and_noted(written: str, text: str) -> None:
    for before, after in (("", ""), (item("before"), item("after"))):
        found, items = read_file("x", feed(before + item(written) + after))
        middle = items[len(items) // 2]
        assert (middle.text, middle.key, middle.link) == (f"T\n{text}", "g", "l")
        assert [one.text for one in items] == ["T\nbefore"] * bool(before) + [middle.text] + ["T\nafter"] * bool(after)
        assert not found.broken_parts
        assert [note.text.startswith("not well-formed XML (") for note in found.notes] == [True]
        assert item_fields(read_file("x", middle.raw)[1]) == item_fields([middle])


def test_links_keep_their_parameters() -> None:
    for written in ("x?a=1&copy=2&b=3", "x?a=1&amp;copy=2&amp;b=3", "<![CDATA[x?a=1&copy=2&b=3]]>"):
        assert [one.link for one in read_file("x", feed(item("d").replace(">l<", f">{written}<")))[1]] == [
            "x?a=1&copy=2&b=3"
        ]


@pytest.mark.parametrize(
    "bad", ["<unclosed", "</wrong>", "<br>", "<x:unbound/>", "1 < 2", "<a b=c/>", "<b>" * 300, "<b>" * 100_000]
)
def test_a_feed_with_broken_tags_is_rejected(bad: str) -> None:
    data = feed(item("one") + item(bad) + item("three"))
    found, items = read_file("x", data)
    assert not items
    (fault,) = found.broken_parts
    assert fault.reason.startswith("not well-formed XML (")
    assert (fault.where, fault.raw, fault.ended_early) == ("the file", data.encode(), False)


def test_items_may_be_in_another_namespace() -> None:
    for head in (
        "<rss><channel xmlns='http://x.example'>",
        "<rss xmlns='http://y.example'><channel xmlns='http://x.example'>",
    ):
        found, items = read_file("x", f"{head}{item('one')}</channel></rss>")
        assert ([one.text for one in items], found.broken_parts) == (["T\none"], [])
    text = ATOM.replace('<feed xmlns="http://www.w3.org/2005/Atom">', "<feed>")
    text = text.replace("<entry>", '<entry xmlns="http://www.w3.org/2005/Atom">')
    assert item_fields(read_file("x", text)[1]) == SAMPLES["valley.atom"][2]


def test_xml_1_1_and_markup_within_a_description_are_read() -> None:
    text = feed(item("<p>one</p><div>two <i>t</i>oo</div>"), '<?xml version="1.1"?>')
    found, items = read_file("x", text)
    assert ([one.text for one in items], found.notes) == (["T\none\ntwo too"], [])


def test_a_missing_lxml_is_reported_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(InputError, match=r"lxml.* pip install 'neardup\[watch\]' brings it"):
        parse_items("x.rss", RSS2.encode())
    assert [one.text for one in parse_items("x.txt", b"text").items] == ["text"]


ENTRIES: list[dict[str, Any]] = [
    {"id": "a", "title": "Alpha", "text": "first", "url": "https://x.example/a", "date": "2020-01-01"},
    {"id": "b", "title": "Beta", "text": "second"},
]
ITEMS = [("a", "Alpha\nfirst", "Alpha", 1577836800.0, "https://x.example/a"), ("b", "Beta\nsecond", "Beta", None, "")]
ABOUT = {"title": "The Harbour Courier", "description": "All that floats", "url": "https://x.example"}


@pytest.mark.parametrize(
    "shape",
    [
        {"items": ENTRIES},
        {"Items": ENTRIES, **ABOUT},
        {"status": "ok", "totalResults": 2, "articles": ENTRIES},
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
def test_entries_of_a_wrapper_are_items(shape: Any) -> None:
    for indent in (None, 1):
        found, items = read_file("x.json", json.dumps(shape, indent=indent))
        assert (found.kind, item_fields(items), found.broken_parts, found.notes) == ("json", ITEMS, [], [])


def test_invalid_entries_of_a_wrapper_are_rejected() -> None:
    found, items = read_file("x.json", json.dumps({"title": "T", "items": [ENTRIES[0], {"id": 5}, 17, ENTRIES[1]]}))
    assert item_fields(items) == ITEMS
    assert [(fault.where, fault.reason, fault.raw) for fault in found.broken_parts] == [
        ("item 2", "no text", b'{"id": 5}'),
        ("item 3", "not a JSON object", b"17"),
    ]


def test_an_empty_list_has_no_items_and_one_nested_too_deep_is_rejected() -> None:
    shapes: list[Any] = [ABOUT | {"items": []}, {"response": {"results": []}}, []]
    for shape in shapes:
        found, items = read_file("x.json", json.dumps(shape))
        assert (items, found.broken_parts, found.notes) == ([], [], [])
    for depth in (17, 200):
        found, items = read_file("x.json", '{"items":[' * depth + '{"text": "x"}' + "]}" * depth)
        assert (len(items), len(found.broken_parts)) == (0, 1)


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
