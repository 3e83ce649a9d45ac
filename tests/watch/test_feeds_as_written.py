"""Feeds as programs write them: encodings, references, prefixes and tags that are not as XML wants them."""

from __future__ import annotations

import sys

import pytest
from samples import ATOM, RSS2, SAMPLES
from test_items import item_fields, read_file

from neardup.errors import InputError
from neardup.watch import xml as xmlreading
from neardup.watch.items import items_in

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


@pytest.mark.parametrize("bad", ["<unclosed", "</wrong>", "<br>", "<x:unbound/>", "1 < 2", "<a b=c/>", "<b>" * 300])
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
    for cached in (xmlreading._etree, xmlreading._parser):
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, "lxml", None)
    with pytest.raises(InputError, match=r"lxml.* pip install 'neardup\[watch\]' brings it"):
        items_in("x.rss", RSS2.encode())
    assert [one.text for one in items_in("x.txt", b"text").items] == ["text"]
