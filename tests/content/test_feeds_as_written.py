"""Feeds as programs write them: encodings, references, prefixes and tags that are not as XML wants them."""

from __future__ import annotations

import sys

import pytest
from samples import ATOM, RSS1, RSS2, SAMPLES
from test_items import parts, read

from neardup.errors import InputError
from neardup.watch import xml as xmlreading
from neardup.watch.items import items_in

DECLARED = '<?xml version="1.0" encoding="{}"?>\n'


def feed(inside: str, declared: str = "", head: str = '<rss version="2.0">') -> str:
    return f"{declared}{head}<channel><title>News</title>{inside}</channel></rss>"


def item(text: str) -> str:
    return f"<item><guid>g</guid><title>T</title><link>l</link><description>{text}</description></item>"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "koi8-r", "cp1251"])
def test_the_encoding_that_is_declared_or_marked_is_taken(encoding: str) -> None:
    text = feed(item("Роза – красна"), DECLARED.format(encoding.removesuffix("-sig")))
    text = text if encoding != "koi8-r" else text.replace("–", "-")
    found, items = read("x", text.encode(encoding))
    assert found.kind == "rss"
    assert [one.text for one in items] == [f"T\nРоза {'-' if encoding == 'koi8-r' else '–'} красна"]
    assert (found.broken, found.notes) == ([], [])


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
def test_a_wrong_declaration_spoils_nothing(declared: str, encoding: str, is_noted: bool) -> None:
    text = feed(item("café – olé"), DECLARED.format(declared) if declared else "")
    found, items = read("x", text.encode(encoding))
    assert [one.text for one in items] == ["T\ncafé – olé"]
    assert [("windows-1252" in note.text) for note in found.notes] == [True] * is_noted
    assert not found.broken


def test_one_wrong_byte_spoils_no_other_character() -> None:
    found, items = read("x", feed(item("新闻 – caf@")).encode().replace(b"@", b"\xe9"))
    assert [one.text for one in items] == ["T\n新闻 – café"]
    assert len(found.notes) == 1


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a&nbsp;b &eacute;&hellip;", "a b é…"),
        ("AT&T, R&D & more", "AT&T, R&D & more"),
        ("&unknown; &#0;&#x1F;&#xD800;&#9999999;", "&unknown; \ufffd\ufffd\ufffd\ufffd"),
        ("1 &lt; 2 &amp;amp; &LT;b&GT;3", "1 < 2 & 3"),
        ("a \x01b\x0cc", "a b c"),
        ("1 < 2 and 3 <4", "1 < 2 and 3 <4"),
        ("one<br>two<BR/>three<hr>four", "one\ntwo\nthree\nfour"),
        ("<p>one<p>two <b>bold</p>three", "one\ntwo bold\nthree"),
        ("one</b> two</i>", "one two"),
        ("<a href=x?a=1&b=2>link</a> <img src=x>", "link"),
        ("<x:b>one</x:b> two", "one two"),
        ("a ]]> b", "a ]]> b"),
        ("<![CDATA[a&nbsp;b <b>c</b> &amp; d]]> &nbsp;e", "a b c & d e"),
        ("<br>" * 400 + "end", "end"),
        ("<p>" * 400 + "end", "end"),
    ],
)
def test_what_is_not_well_formed_is_put_right_and_noted(written: str, text: str) -> None:
    for before, after in (("", ""), (item("before"), item("after"))):
        found, items = read("x", feed(before + item(written) + after))
        middle = items[len(items) // 2]
        assert (middle.text, middle.key, middle.link) == (f"T\n{text}", "g", "l")
        assert [one.text for one in items] == ["T\nbefore"] * bool(before) + [middle.text] + ["T\nafter"] * bool(after)
        assert not found.broken
        assert [note.text.startswith("not well-formed XML (") for note in found.notes] == [True]
        assert parts(read("x", middle.raw)[1]) == parts([middle])


def test_an_address_keeps_its_parameters() -> None:
    for written in ("x?a=1&copy=2&b=3", "x?a=1&amp;copy=2&amp;b=3", "<![CDATA[x?a=1&copy=2&b=3]]>"):
        assert [one.link for one in read("x", feed(item("d").replace(">l<", f">{written}<")))[1]] == [
            "x?a=1&copy=2&b=3"
        ]


def test_an_end_that_is_missing_takes_no_neighbour_along() -> None:
    whole = feed(item("one") + item("two") + item("three"))
    expected = read("x", whole)[1]
    found, items = read("x", whole.replace("</item>", "", 1))
    assert (parts(items), [note.where for note in found.notes]) == (parts(expected), ["item 1"])
    found, items = read("x", whole.replace("</description></item></channel>", "</channel>"))
    assert (parts(items), [note.where for note in found.notes]) == (parts(expected), ["item 3"])
    found, items = read("x", whole.replace("</title>", "", 1))
    assert (parts(items), [note.where for note in found.notes]) == (parts(expected), ["the file"])


@pytest.mark.parametrize("name", ["courier.xml", "old.rdf", "valley.atom", "message.xml"])
@pytest.mark.parametrize(
    ("before", "after"), [("\n ", ""), ("", "<script>x()</script>"), ("", "\n<!-- made in 3 s -->"), ("", "</rss>\0")]
)
def test_what_stands_around_a_feed_costs_no_item(name: str, before: str, after: str) -> None:
    data, kind, expected = SAMPLES[name]
    found, items = read("x", before.encode() + data + after.encode())
    assert (found.kind, parts(items), found.broken) == (kind, expected, [])


def test_a_prefix_that_nobody_declared_has_its_usual_meaning() -> None:
    text = RSS2.replace(' xmlns:content="http://purl.org/rss/1.0/modules/content/"', "")
    text = text.replace(' xmlns:dc="http://purl.org/dc/elements/1.1/"', "")
    found, items = read("x", text)
    assert parts(items) == SAMPLES["courier.xml"][2]
    assert len(found.notes) == 1


def test_broken_feeds_keep_to_their_own_items() -> None:
    other = RSS2.replace("<media:title>", "<media:item><title>no</title></media:item>&bad<b><media:title>")
    assert parts(read("x", other)[1])[1:] == SAMPLES["courier.xml"][2][1:]
    prefixed = RSS1.replace("<item ", "<r:item ").replace("</item>", "<br></r:item>")
    prefixed = prefixed.replace('xmlns="http://purl.org/rss/1.0/"', 'xmlns:r="http://purl.org/rss/1.0/"')
    for element in ("title", "link", "description"):
        prefixed = prefixed.replace(f"<{element}>", f"<r:{element}>").replace(f"</{element}>", f"</r:{element}>")
    assert parts(read("x.rdf", prefixed)[1]) == SAMPLES["old.rdf"][2]
    broken_atom = ATOM.replace("<p>It snowed.</p>", "<p>It snowed.<br>")
    assert parts(read("x", broken_atom)[1]) == SAMPLES["valley.atom"][2]


def test_items_in_a_namespace_of_their_own_are_items() -> None:
    for head in (
        "<rss><channel xmlns='http://x.example'>",
        "<rss xmlns='http://y.example'><channel xmlns='http://x.example'>",
    ):
        found, items = read("x", f"{head}{item('one')}</channel></rss>")
        assert ([one.text for one in items], found.broken) == (["T\none"], [])
    text = ATOM.replace('<feed xmlns="http://www.w3.org/2005/Atom">', "<feed>")
    text = text.replace("<entry>", '<entry xmlns="http://www.w3.org/2005/Atom">')
    assert parts(read("x", text)[1]) == SAMPLES["valley.atom"][2]


def test_xml_1_1_and_markup_within_a_description_are_read() -> None:
    text = feed(item("<p>one</p><div>two <i>t</i>oo</div>"), '<?xml version="1.1"?>')
    found, items = read("x", text)
    assert ([one.text for one in items], found.notes) == (["T\none\ntwo too"], [])


def test_broken_items_of_agencies_are_put_right() -> None:
    for name in ("tide.nitf", "gold.xml", "one.xml", "message.xml"):
        data, kind, expected = SAMPLES[name]
        for bad in (b"<p>", b"<p>A&B </b>"):
            found, items = read("x", data.replace(b"<p>", bad, 1))
            text = [one.text.replace("A&B", "").replace("\n ", "\n") for one in items]
            assert (found.kind, text) == (kind, [one[1] for one in expected])
            assert len(found.notes) == (bad != b"<p>")


def test_without_the_library_the_way_to_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for cached in (xmlreading._etree, xmlreading._parser):
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(InputError, match=r'lxml.* pip install "neardup\[watch\]"'):
        items_in("x.rss", RSS2.encode())
    assert [one.text for one in items_in("x.txt", b"text").items] == ["text"]
