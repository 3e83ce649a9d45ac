"""Items of every kind of file: kinds by content, feeds as programs write them, JSON with lists around its items."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import pytest
from samples import ATOM, RSS2, SAMPLES, item_fields, read_file
from web_pages import needs_html, page, paragraphs

from neardup.items.formats import kind_of


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


def test_the_text_is_the_first_field_with_a_string() -> None:
    for fields, text in (
        ({"description": "d", "body": "b", "content": "c"}, "c"),
        ({"text": None, "content": {"x": 1}, "Body": "b"}, "b"),
        ({"headline": "h", "article": "a"}, "h\na"),
        ({"title": "only"}, "only"),
        ({"title": 5, "text": "x"}, "x"),
    ):
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
    # Within an item and beside it.
    for place in ("<media:title>", "<item>"):
        feed = RSS2.replace(place, f"<media:item><title>no</title></media:item>{place}", 1)
        assert item_fields(read_file("x", feed)[1]) == SAMPLES["courier.xml"][2]


def test_an_item_within_an_item_belongs_to_its_text() -> None:
    found, items = read_file("x", feed(item("one <item>two</item>")))
    assert ([one.text for one in items], found.broken_parts) == (["T\none\ntwo"], [])


def test_items_may_be_in_any_namespace() -> None:
    prefixed = ATOM.replace("<", "<a:").replace("<a:/", "</a:").replace("<a:?", "<?").replace("xmlns=", "xmlns:a=", 1)
    prefixed = prefixed.replace("<a:div ", "<a:div xmlns:a='http://www.w3.org/1999/xhtml' ")
    inner = ATOM.replace('<feed xmlns="http://www.w3.org/2005/Atom">', "<feed>")
    inner = inner.replace("<entry>", '<entry xmlns="http://www.w3.org/2005/Atom">')
    for text in (prefixed, inner):
        assert item_fields(read_file("x", text)[1]) == SAMPLES["valley.atom"][2]
    text = f"<rss xmlns='http://y.example'><channel xmlns='http://x.example'>{item('one')}</channel></rss>"
    found, items = read_file("x", text)
    assert ([one.text for one in items], found.broken_parts) == (["T\none"], [])


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


def feed(inside: str, declared: str = "") -> str:
    return f"{declared}<rss version='2.0'><channel><title>News</title>{inside}</channel></rss>"


def item(text: str) -> str:
    return f"<item><guid>g</guid><title>T</title><link>l</link><description>{text}</description></item>"


@pytest.mark.parametrize(
    ("text", "declared", "encoding", "is_noted"),
    [
        *(("Роза – красна", name, name, False) for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1251")),
        ("Роза", "koi8-r", "koi8-r", False),
        *(("café – olé", name, "cp1252", True) for name in ("utf-8", "", "nonsense")),
        *(("café – olé", name, "utf-8", False) for name in ("iso-8859-1", "us-ascii", "utf-16")),
        ("café – olé", "iso-8859-1", "cp1252", False),
        ("café – olé", "utf-8", "utf-16", False),
    ],
)
def test_encodings_are_used_and_a_wrong_declaration_does_no_harm(
    text: str, declared: str, encoding: str, is_noted: bool
) -> None:
    declaration = f'<?xml version="1.0" encoding="{declared}"?>\n' if declared else ""
    found, items = read_file("x", feed(item(text), declaration).encode(encoding))
    assert (found.kind, [one.text for one in items], found.broken_parts) == ("rss", [f"T\n{text}"], [])
    assert [("windows-1252" in note.text) for note in found.notes] == [True] * is_noted


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


BROKEN = {
    "<unclosed": "",
    "</wrong>": "",
    "<x:unbound/> but read": "but read",
    "1 < 2": "1 < 2",
    "<b>" * 200 + "bold": "bold",
    "<b>" * 100_000: "",
}


@pytest.mark.parametrize("bad", BROKEN, ids=lambda bad: bad[:12])
def test_one_item_with_broken_tags_costs_no_other_item(bad: str) -> None:
    found, items = read_file("x", feed(item("one") + item(bad) + item("three")))
    texts = [one.text for one in items]
    assert (texts[0], texts[-1]) == ("T\none", "T\nthree")
    assert len(texts) + len(found.broken_parts) == 3
    if BROKEN[bad]:
        assert texts[1] == f"T\n{BROKEN[bad]}"
    assert found.notes[0].text.startswith("not well-formed XML (")
    assert not any(part.ended_early for part in found.broken_parts)


def test_an_item_without_an_end_is_rejected_alone() -> None:
    found, items = read_file("x", feed(item("one") + item("two").replace("</item>", "") + item("three")))
    assert [one.text for one in items] == ["T\none", "T\nthree"]
    assert [(part.where, part.reason) for part in found.broken_parts] == [("item 2", "its end tag </item> is missing")]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("\n\n", ""),
        ("<br />\n<b>Warning</b>:  Undefined variable $x in <b>/srv/feed.php</b> on line <b>3</b><br />\n", ""),
        ("Notice: Undefined index: q in /srv/feed.php on line 7\n", ""),
        ("", "\n<!-- cached -->\n"),
        ("", "\nFatal error: Maximum execution time of 30 seconds exceeded"),
        ("", "<script>track()</script>"),
    ],
)
def test_what_surrounds_a_feed_is_not_part_of_it(before: str, after: str) -> None:
    for name in ("x", "feed.xml", "x.rss"):
        data = before + '<?xml version="1.0"?>' + feed(item("one") + item("two")) + after
        found, items = read_file(name, data)
        assert ([one.text for one in items], found.broken_parts) == (["T\none", "T\ntwo"], [])
        assert bool(found.notes) == bool(before.strip() or (after.strip() and "<!--" not in after))


def test_undeclared_prefixes_are_those_that_feeds_use() -> None:
    body = "<content:encoded>&lt;p&gt;The board voted.&lt;/p&gt;</content:encoded><dc:date>2020-01-01</dc:date>"
    found, items = read_file("x", feed(f"<item><title>T</title>{body}<foo:bar baz:id='1'/></item>"))
    assert item_fields(items) == [("", "T\nThe board voted.", "T", 1577836800.0, "")]
    assert not found.broken_parts


def test_feeds_one_after_the_other_give_all_their_items() -> None:
    found, items = read_file("x", feed(item("one") + item("two")) + "\n" + feed(item("three")))
    assert ([one.text for one in items], found.broken_parts) == (["T\none", "T\ntwo", "T\nthree"], [])
    assert len(found.notes) == 1


def test_a_namespace_that_is_no_address_does_no_harm() -> None:
    for address in (" http://purl.org/rss/1.0/modules/content/", "http://x y", "content", ""):
        body = f"<item><title>T</title><c:encoded>{TEXT}</c:encoded><c:date>2020-01-01</c:date></item>"
        text = feed(body + item("one")).replace("<rss ", f"<rss xmlns:c='{address}' ")
        found, items = read_file("x", text)
        assert [one.text for one in items] == [f"T\n{TEXT}", "T\none"], address
        assert (items[0].timestamp is None, found.broken_parts, len(found.notes) < 2) == (False, [], True)
        assert item_fields(read_file("x", items[0].raw)[1]) == item_fields(items[:1])


MEDIA = 'xmlns:media="http://search.yahoo.com/mrss/"'
ITUNES = 'xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd"'
IN_ATOM = 'xmlns:a="http://www.w3.org/2005/Atom"'
XHTML = 'xmlns="http://www.w3.org/1999/xhtml"'
BODIES = [
    "<description>B</description>",
    "<description>&lt;p&gt;B&lt;/p&gt;</description>",
    "<description><![CDATA[<p>B</p>]]></description>",
    "<content>B</content>",
    "<body>B</body>",
    f"<body {XHTML}><p>B</p></body>",
    f"<div {XHTML}><p>B</p></div>",
    "<summary>B</summary>",
    "<fullitem>&lt;p&gt;B&lt;/p&gt;</fullitem>",
    f"<itunes:subtitle {ITUNES}>B</itunes:subtitle>",
    f"<itunes:summary {ITUNES}>B</itunes:summary>",
    f"<media:description {MEDIA}>B</media:description>",
    f"<media:group {MEDIA}><media:title>M</media:title><media:description>B</media:description></media:group>",
    f'<a:content {IN_ATOM} type="html">&lt;p&gt;B&lt;/p&gt;</a:content>',
    f'<a:summary {IN_ATOM} type="xhtml"><div {XHTML}><p>B</p></div></a:summary>',
    '<x:full-text xmlns:x="http://news.example/">B</x:full-text>',
    '<c:encoded xmlns:c="http://purl.org/rss/1.0/modules/content/">B</c:encoded><description>short</description>',
    "<article-text>B</article-text><author>Ann of the Harbour Courier</author>",
]
TEXT = "The board voted on the harbour."


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("kind", ["rss", "atom"])
def test_the_body_of_a_feed_item_is_read_wherever_it_is(body: str, kind: str) -> None:
    body = body.replace("B", TEXT)
    if kind == "rss":
        data = f'<rss version="2.0"><channel><item><title>T</title>{body}</item></channel></rss>'
    else:
        data = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title>{body}</entry></feed>'
    found, items = read_file("x", data)
    assert [one.text for one in items] == [f"T\n{TEXT}"]
    assert [note.text for note in found.notes] == (
        ["no field has a usual name for the text of an item, so 'article-text' is compared"]
        if "article-text" in body
        else []
    )


METADATA = [
    "<pubDate>Thu, 21 Mar 2019 12:30:00 GMT</pubDate>",
    "<expirationDate>21 March 2029 12:30:00 GMT</expirationDate>",
    "<pubDate>Seg, 24 Set 2018 19:22:00 -0300</pubDate>",
    "<where>43.257 -71.921 42.943 -72.129 42.784 -72.338</where>",
    "<renditions>NITF Story Download</renditions>",
]


@pytest.mark.parametrize("metadata", METADATA)
def test_dates_places_and_other_metadata_are_not_the_text_of_an_item(metadata: str) -> None:
    found, items = read_file("x", feed(f"<item><title>T</title>{metadata}</item>"))
    assert [one.text for one in items] == ["T"]
    assert not [note for note in found.notes if "compared" in note.text]
    name, text = metadata[1:].split(">")[0], metadata.split(">")[1].split("<")[0]
    found, items = read_file("x.json", json.dumps({"title": "T", name: text}))
    assert [one.text for one in items] == ["T"]


def test_a_field_that_teases_gives_way_to_the_text() -> None:
    declared = 'xmlns:c="http://purl.org/rss/1.0/modules/content/"'
    for teaser in ("...", "&lt;b&gt;T&lt;/b&gt;", "&lt;img src='x.png'&gt;"):
        body = f"<c:encoded {declared}>{teaser}</c:encoded><description>{TEXT}</description>"
        assert [one.text for one in read_file("x", feed(f"<item><title>T</title>{body}</item>"))[1]] == [f"T\n{TEXT}"]
    for teaser in ("...", "<b>T</b>", ""):
        fields = {"title": "T", "content": teaser, "description": TEXT}
        assert [one.text for one in read_file("x.json", json.dumps(fields))[1]] == [f"T\n{TEXT}"]


def test_a_text_without_spaces_is_a_text() -> None:
    text = "港口委员会周二投票决定拓宽东航道"
    for fields in ({"zhengwen": text}, {"parts": [{"p": text}, {"p": "!"}]}):
        found, items = read_file("x.json", json.dumps({"title": "T"} | fields))
        assert ([one.text for one in items], len(found.notes)) == ([f"T\n{text}"], 1)


def test_items_of_ninjs_2_and_3_are_read() -> None:
    fields = {"uri": "n1", "headlines": [{"role": "main", "value": "H"}], "bodies": [{"role": "main", "value": TEXT}]}
    fields |= {"descriptions": [{"value": "short"}], "subjects": [{"name": "a harbour of some size"}]}
    found, items = read_file("x.json", json.dumps(fields))
    assert ([one.text for one in items], found.notes) == ([f"H\n{TEXT}"], [])


def test_a_picture_or_document_with_rdf_in_it_is_not_a_feed() -> None:
    metadata = "<x:xmpmeta><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'></rdf:RDF></x:xmpmeta>"
    picture = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + metadata.encode() + b"\xff\xd9"
    feed_inside = b"\xff\xd8\xff\xe0\0\x10JFIF\0" + feed(item("one")).encode()
    for data in (picture, feed_inside):
        found, items = read_file("x.jpg", data)
        assert ([part.reason for part in found.broken_parts], items) == (["NUL bytes, so it is no text"], [])
    assert read_file("x", b"%PDF-1.4\n" + metadata.encode())[0].kind == "text"
    found, items = read_file("x.rdf", metadata[11:-12])
    assert ([part.reason for part in found.broken_parts], items) == (
        ["XML without an item or a channel (it begins with <RDF>)"],
        [],
    )


def test_a_package_is_noted() -> None:
    package = '<packageItem xmlns="http://iptc.org/std/nar/2006-10-01/" guid="p"><groupSet/></packageItem>'
    found, items = read_file("x.xml", package)
    assert (items, found.broken_parts) == ([], [])
    assert [note.text for note in found.notes] == ["it has no news item, and a package has no text of its own"]


ATOM_CONTENTS = [
    f"<content>{TEXT}</content>",
    f'<content type="text">{TEXT}</content>',
    f'<content type="text/plain">{TEXT}</content>',
    f'<content type="html">&lt;p&gt;{TEXT}&lt;/p&gt;</content>',
    f"<content>&lt;p&gt;{TEXT}&lt;/p&gt;</content>",
    f'<content type="text/html; charset=utf-8">&lt;p&gt;{TEXT}&lt;/p&gt;</content>',
    f'<content type="xhtml"><div {XHTML}><p>{TEXT}</p></div></content>',
    f'<content type="html" src="https://x.example/1"/><summary>{TEXT}</summary>',
    f'<content type="image/png">iVBORw0KGgoAAAAN\nSUhEUgAAAAEAAAAB</content><summary>{TEXT}</summary>',
    f'<content type="application/octet-stream">\n{b64encode(TEXT.encode()).decode()}\n</content>',
    f'<content type="application/octet-stream">{b64encode(f"<p>{TEXT}</p>".encode()).decode()}</content>',
    f'<content type="wire/story">{TEXT}</content>',
]


@pytest.mark.parametrize("content", ATOM_CONTENTS)
def test_contents_of_atom_are_read_by_their_type(content: str) -> None:
    data = f'<feed xmlns="http://www.w3.org/2005/Atom"><entry><title>T</title>{content}</entry></feed>'
    assert [one.text for one in read_file("x", data)[1]] == [f"T\n{TEXT}"]


HTML_TEXT = f"<p>{TEXT}</p>"
OBJECTS: list[Any] = [
    {"title": "T", "maintext": TEXT},
    {"title": "T", "text": TEXT},
    {"title": {"rendered": "T"}, "content": {"rendered": HTML_TEXT, "protected": False}, "excerpt": {"rendered": "x"}},
    {"title": "T", "summary": {"direction": "ltr", "content": HTML_TEXT}},
    {"title": "T", "content": {"direction": "ltr", "content": HTML_TEXT}},
    {"title": "T", "content": [{"type": "text/html", "value": HTML_TEXT}], "summary": "x"},
    {"title": "T", "content": TEXT.split("\n")},
    {"title": "T", "content": HTML_TEXT},
    {"title": "T", "description": HTML_TEXT},
    {"title": "T", "content_text": TEXT},
    {"title": "T", "content_html": HTML_TEXT},
    {"title": "T", "raw_text": TEXT},
    {"title": "T", "rawText": TEXT},
    {"title": "T", "textContent": TEXT, "excerpt": "x"},
    {"title": "T", "selftext": TEXT, "selftext_html": "&lt;p&gt;x", "subreddit": "harbour", "is_self": True},
    {"title": "T", "markdown": TEXT},
    {"title": "T", "article": {"body": TEXT}},
    {"title": "T", "snippet": TEXT},
    {"headline": {"main": "T"}, "lead_paragraph": TEXT},
    {"_index": "news", "_source": {"title": "T", "article_text": TEXT}},
    {"title": "T", "fields": {"trailText": TEXT, "byline": "Ann of the Harbour Courier"}},
]


@pytest.mark.parametrize("fields", OBJECTS, ids=lambda fields: next(reversed(fields)))
def test_the_text_of_a_json_item_is_read_wherever_it_is(fields: Any) -> None:
    shapes = [fields, [fields], {"items": [fields]}, {"articles": {"results": [fields]}}, {"data": [fields]}]
    shapes += [{"hits": {"hits": [fields]}}, {"data": {"children": [{"kind": "t3", "data": fields}]}}]
    for shape in shapes:
        found, items = read_file("x.json", json.dumps(shape))
        assert [(one.title, one.text) for one in items] == [("T", f"T\n{TEXT}")], shape
        assert (found.broken_parts, found.notes) == ([], [])


def test_an_item_is_not_judged_by_its_title_while_it_has_an_unknown_text() -> None:
    fields: dict[str, Any] = {"title": "Evening news", "bulletin": TEXT, "author": "Ann of the Courier", "n": 5}
    found, items = read_file("x.json", json.dumps([fields, fields | {"bulletin": "The ferry sails again."}]))
    assert [one.text for one in items] == [f"Evening news\n{TEXT}", "Evening news\nThe ferry sails again."]
    assert {note.text for note in found.notes} == {
        "no field has a usual name for the text of an item, so 'bulletin' is compared"
    }
    assert len({note.shape for note in found.notes}) == 1
    found, items = read_file("x.json", json.dumps(fields | {"parts": [{"t": "The ferry sails again."}]}))
    assert [one.text for one in items] == [f"Evening news\n{TEXT}\nThe ferry sails again."]
    assert found.notes[0].text.endswith("so 'bulletin' and 'parts' are compared")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a < b and b > c", "a < b and b > c"),
        ("List<String> of x", "List<String> of x"),
        ("Smith &#038; Sons", "Smith & Sons"),
        ("one<br>two", "one\ntwo"),
        ("<em>so</em>", "so"),
    ],
)
def test_only_markup_is_removed_from_json(text: str, expected: str) -> None:
    assert [one.text for one in read_file("x.json", json.dumps({"content": text}))[1]] == [expected]
    assert [one.text for one in read_file("x.json", json.dumps({"content_text": text}))[1]] == [text]


TIME_FIELDS = (
    "date_publish publish_date publishedAt published_at pubDate seendate date_gmt created_utc @timestamp published "
    "dateTimePub created_at datePublished crawled updated isoDate.not"
)


def test_times_of_json_are_read_by_name_and_unread_ones_are_noted() -> None:
    for name in TIME_FIELDS.split()[:-1]:
        found, (one,) = read_file("x.json", json.dumps({"text": TEXT, name: "20200101T010000Z"}))
        assert (one.timestamp, found.notes) == (datetime(2020, 1, 1, 1, tzinfo=UTC), []), name
    for value in ({"$date": "2020-01-01T01:00:00Z"}, {"_seconds": 1577840400}):
        assert read_file("x.json", json.dumps({"text": TEXT, "published": value}))[1][0].timestamp is not None
    both = {"text": TEXT, "date": "2020-01-01T03:00:00", "date_gmt": "2020-01-01T01:00:00"}
    assert read_file("x.json", json.dumps(both))[1][0].timestamp == datetime(2020, 1, 1, 1, tzinfo=UTC)
    entries = [{"text": TEXT, "date": date} for date in ("03/04/2020", "04/04/2020", "0001-01-01T00:00:00", "soon", "")]
    found, items = read_file("x.json", json.dumps(entries))
    assert [one.timestamp for one in items] == [None] * 5
    assert [note.text.partition(",")[0] for note in found.notes] == [
        "the date '03/04/2020' cannot be read",
        "the date '04/04/2020' cannot be read",
        "the date '0001-01-01T00:00:00' stands for none",
        "the date 'soon' cannot be read",
    ]
    assert len({note.shape for note in found.notes}) == 3


def test_xml_1_1_and_markup_within_a_description_are_read() -> None:
    text = feed(item("<p>one</p><div>two <i>t</i>oo</div>"), '<?xml version="1.1"?>')
    found, items = read_file("x", text)
    assert ([one.text for one in items], found.notes) == (["T\none\ntwo too"], [])


ENTRIES: list[dict[str, Any]] = [
    {"id": "a", "title": "Alpha", "text": "first", "url": "https://x.example/a", "date": "2020-01-01"},
    {"id": "b", "title": "Beta", "text": "second"},
]
ITEMS = [("a", "Alpha\nfirst", "Alpha", 1577836800.0, "https://x.example/a"), ("b", "Beta\nsecond", "Beta", None, "")]
ABOUT = {"title": "The Harbour Courier", "description": "All that floats", "url": "https://x.example"}


@pytest.mark.parametrize(
    "shape",
    [
        {"Items": ENTRIES, **ABOUT},
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
    found, items = read_file("x.json", json.dumps(shape))
    assert (found.kind, item_fields(items), found.broken_parts, found.notes) == ("json", ITEMS, [], [])


def test_invalid_entries_of_a_wrapper_are_rejected() -> None:
    found, items = read_file("x.json", json.dumps({"title": "T", "items": [ENTRIES[0], {"id": 5}, 17, ENTRIES[1]]}))
    assert item_fields(items) == ITEMS
    assert [(fault.where, fault.reason, fault.raw) for fault in found.broken_parts] == [
        ("item 2", "no text", b'{"id": 5}'),
        ("item 3", "not a JSON object", b"17"),
    ]
    found, _ = read_file("x.jsonl", f'{json.dumps(ENTRIES[0])}\n{{"items": [{{"id": 5}}]}}\n')
    assert [fault.where for fault in found.broken_parts] == ["line 2, item 1"]


def test_an_empty_list_has_no_items_and_one_nested_too_deep_is_rejected() -> None:
    shapes: list[Any] = [ABOUT | {"items": []}, {"response": {"results": []}}, []]
    for shape in shapes:
        found, items = read_file("x.json", json.dumps(shape))
        assert (items, found.broken_parts, found.notes) == ([], [], [])
    for depth in (17, 200):
        found, items = read_file("x.json", '{"items":[' * depth + '{"text": "x"}' + "]}" * depth)
        assert (len(items), len(found.broken_parts)) == (0, 1)


@pytest.mark.parametrize(
    ("fields", "notes"),
    [
        ({"text": "own", "authors": [{"name": "Ann", "description": "writes"}]}, []),
        ({"description": "own", "data": [{"x": 1}, {"x": 2}]}, []),
        ({"text": "own", "items": []}, []),
        ({"content_html": "own", "articles": ENTRIES}, ["read as one item, without the 2 entries in 'articles'"]),
    ],
    ids=str,
)
def test_an_item_with_lists_is_one_item(fields: dict[str, Any], notes: list[str]) -> None:
    found, items = read_file("x.json", json.dumps({"title": "T"} | fields))
    assert ([one.text for one in items], found.broken_parts) == (["T\nown"], [])
    assert [(note.where, note.text) for note in found.notes] == [("the file", note) for note in notes]


def test_a_json_feed_gives_its_items() -> None:
    first: dict[str, Any] = {"id": "1", "title": "First &", "content_html": "<p>Hi,&nbsp;<b>wor</b>ld!</p><p>Bye</p>"}
    first |= {"summary": "no", "date_published": "2020-01-01T01:00:00+01:00", "date_modified": "2021-01-01T00:00:00Z"}
    third = {"id": "3", "summary": "only", "date_modified": "2020-01-01"}
    items = [{"id": "2", "content_text": "Second\nitem", "url": "https://x.example/2", "tags": ["a"]}, first, third]
    feed = {"version": "https://jsonfeed.org/version/1.1", "title": "My feed", "items": items}
    found, read_items = read_file("feed", json.dumps(feed, indent=2))
    assert found.kind == "json"
    assert item_fields(read_items) == [
        ("2", "Second\nitem", "", None, "https://x.example/2"),
        ("1", "First &\nHi, world!\nBye", "First &", 1577836800.0, ""),
        ("3", "only", "", 1577836800.0, ""),
    ]
