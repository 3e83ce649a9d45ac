"""Broken, truncated and hostile files: none raises, loses items silently, or makes a reader open other files."""

from __future__ import annotations

import gzip
import os
import random
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from samples import JSON_LINES, JSON_LIST, SAMPLES, item_fields, read_file

from neardup.items import formats
from neardup.items.item import TRUNCATED_FILE

_ITEMS = [name for name, (_, kind, _) in SAMPLES.items() if kind != "text"]


@pytest.mark.parametrize("name", _ITEMS)
def test_a_truncated_file_loses_no_item_silently(name: str) -> None:
    data, kind, whole = SAMPLES[name]
    for cut in range(0, len(data), 1 if os.environ.get("NEARDUP_LONG") else 3):
        found, items = read_file(name if cut % 2 else "x", data[:cut])
        assert item_fields(items) == whole[: len(items)], cut
        rest = data[cut:].strip()
        line_end = kind == "jsonl" and (data[cut - 1 : cut] in (b"\n", b"}") and cut > 0)
        is_early = [fault for fault in found.broken_parts if fault.ended_early]
        if line_end or not rest:
            assert not found.broken_parts, cut
        else:
            assert (len(is_early), len(found.broken_parts)) == (1, 1), cut


def test_a_text_truncated_within_a_character_has_ended_early() -> None:
    whole = "a 新闻 📰".encode()
    for cut in range(3, len(whole)):
        found, items = read_file("x.txt", whole[:cut])
        is_first = cut < 5
        boundary = whole[:cut].decode(errors="ignore").encode() == whole[:cut]
        assert bool(items) == (boundary or is_first)
        assert [fault.ended_early for fault in found.broken_parts] == ([] if boundary or is_first else [True])
        assert found.may_be_incomplete == is_first
        assert [note.where for note in found.notes] == ["the file"] * is_first
    for wide in ("新闻 📰".encode("utf-16"), "新闻 📰".encode("utf-32")):
        for cut in (-1, 1):
            found, items = read_file("x.txt", wide[:cut])
            assert ([fault.ended_early for fault in found.broken_parts], items) == ([True], [])
    assert [fault.ended_early for fault in read_file("x.txt", b"\xef\xbb")[0].broken_parts] == [True]


@pytest.mark.parametrize(
    ("name", "data", "reason", "is_early"),
    [
        ("x", b"", "empty", True),
        ("x.jsonl", b" \n", "empty", True),
        ("x.txt", "\u3000\n".encode(), "no text", False),
        ("x.bin", b"\x89PNG\r\n\x1a\n\0\0", "UTF-8|NUL", False),
        ("x.txt", b"abc\0\0\0\0", "NUL", True),
        ("x.txt", b"abc\0def", "NUL", False),
        ("x.jsonl", b"\0" * 50, TRUNCATED_FILE, True),
        ("x.html", b"\0" * 50, TRUNCATED_FILE, True),
        ("x.json", b'{"id": 1}', "no text", False),
        ("x.json", b'{"text": 5}', "no text", False),
        ("x.json", b'{"text": "a"} {"text": "b"}', "follows", False),
        ("x.json", b"[" * 100_000, "nested too deep|ends", None),
        ("x.json", b'{"a":' * 100_000, "nested too deep|ends", None),
        ("x.json", b'{"id": ' + b"9" * 10_000 + b', "text": "x"}', "number too long", False),
        ("x.json", b'{"text": "\\ud83d"}', "surrogate", False),
        ("x.xml", b'<?xml version="1.0"?><opml><body/></opml>', "unknown kind (it begins with <opml>)", False),
        ("x.rss", b"<rss><channel><item></item></channel></rss>", "no text", False),
        ("x.rss", b"<rss><channel><link>a</channel></rss>", "well-formed", False),
        ("x.gz", gzip.compress(b"abc", mtime=0), "gzip", False),
    ],
)
def test_unreadable_content_is_rejected_with_a_reason(
    name: str, data: bytes, reason: str, is_early: bool | None
) -> None:
    found, items = read_file(name, data)
    assert not items
    (fault,) = found.broken_parts
    assert any(part in fault.reason for part in reason.split("|"))
    assert is_early is None or fault.ended_early == is_early


def test_a_broken_line_is_rejected_alone() -> None:
    lines = JSON_LINES.splitlines()
    bad = [b"{no json}", b"[1]", b'"text"', b'{"id": 5}']
    data = b"\n".join([lines[0].encode(), *bad, b"", lines[1].encode(), lines[2].encode()]) + b"\n"
    found, items = read_file("x.jsonl", data)
    assert item_fields(items) == SAMPLES["lines.jsonl"][2]
    assert [fault.where for fault in found.broken_parts] == [f"line {number}" for number in range(2, 6)]
    assert [fault.raw for fault in found.broken_parts] == bad
    assert not any(fault.ended_early for fault in found.broken_parts)


def test_invalid_entries_of_a_list_are_rejected() -> None:
    for bad, is_json in (("{}", True), ("17", True), ('{"text": nothing}', False), ('{"text" "x"}', False)):
        found, items = read_file("x.json", JSON_LIST.replace("},", "}, " + bad + ","))
        assert item_fields(items) == SAMPLES["list.json"][2][: None if is_json else 1], bad
        (fault,) = found.broken_parts
        assert (b"zweite" in fault.raw, fault.ended_early) == (not is_json, False)


_LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
BOMBS = {
    "laughs": f'<!DOCTYPE rss [<!ENTITY l0 "ha">{_LAUGHS}]>',
    "quadratic": f'<!DOCTYPE rss [<!ENTITY l11 "{"A" * 50_000}">]>',
    "file": '<!DOCTYPE rss [<!ENTITY l11 SYSTEM "file:///etc/hostname">]>',
    "parameter": '<!DOCTYPE rss [<!ENTITY % p SYSTEM "http://127.0.0.1:9/x.dtd"> %p;]>',
    "attributes": '<!DOCTYPE rss [<!ATTLIST item a CDATA "x">]>',
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_entity_bombs_are_harmless(bomb: str) -> None:
    item = f"<item><title a='&l11;'>{'&l11;' * 1000}</title></item>"
    found, items = read_file("x.xml", f"<?xml version='1.0'?>{BOMBS[bomb]}<rss><channel>{item}</channel></rss>")
    assert [item.text for item in items] == ["&l11;" * 1000]
    assert not found.broken_parts
    assert "l11" in found.notes[0].text or "document type" in found.notes[0].text


def test_a_document_type_without_an_end_reaches_no_parser() -> None:
    for open_doctype in ("<!DOCTYPE rss [<!ENTITY l11 'x'> ' ]>", "<!DOCTYPE rss [<!ENTITY l11 'x'>"):
        feed = f"{open_doctype}<rss><channel><item><title>&l11; x</title></item></channel></rss>"
        found, items = read_file("x.rss", feed)
        assert [item.text for item in items] in ([], ["&l11; x"])
        assert found.broken_parts or found.notes


def test_external_document_types_are_never_fetched() -> None:
    internal = '<!DOCTYPE rss [ <!ENTITY nbsp "&#160;"> <!-- \' --> ]>'
    for declared in ('<!DOCTYPE rss SYSTEM "file:///etc/hostname">', internal):
        feed = f"{declared}<rss><channel><item><title>&eacute;&nbsp;%s x</title></item></channel></rss>"
        found, items = read_file("x", feed % "")
        assert ([item.text for item in items], found.notes) == (["é x"], [])
        found, items = read_file("x", feed % "&nope;")
        assert [item.text for item in items] == ["é &nope; x"]
        assert "nope" in found.notes[0].text


def healthy(name: str, data: bytes) -> None:
    """Check that each item can be written, and that a file without items has a broken part."""
    found, items = read_file(name, data)
    for item in items:
        f"{item.key}{item.text}{item.title}{item.link}".encode()
        assert item.text.strip()
        assert item.raw
        assert item.timestamp is None or item.timestamp.utcoffset() == timedelta()
    assert all(fault.where and fault.reason for fault in found.broken_parts)
    if not items and found.kind not in ("rss", "atom", "newsml", "newsml-g2", "jsonl", "json"):
        assert found.broken_parts


_NAMES = st.sampled_from(["x", "x.txt", "x.xml", "x.json", "x.jsonl", "x.rss", "x.gz", "x.nitf"])
_BEGINS = st.sampled_from(
    [b"", b"{", b"[", b"<", b"<rss>", b"\x1f\x8b\x08\0", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf", b"<?xml"]
)


@given(_NAMES, _BEGINS, st.binary(max_size=200))
def test_no_bytes_raise(name: str, begin: bytes, rest: bytes) -> None:
    if formats.kind_of(begin + rest, name) != "html":
        healthy(name, begin + rest)


@given(st.sampled_from(sorted(SAMPLES)), st.integers(0, 1 << 32), _NAMES)
def test_no_damaged_file_raises(sample: str, seed: int, name: str) -> None:
    draw = random.Random(seed)
    data = SAMPLES[sample][0]
    for _ in range(draw.randrange(1, 4)):
        at, length = draw.randrange(len(data) + 1), draw.randrange(30)
        new = draw.choice(
            [b"", draw.randbytes(3), data[at : at + length] * 2, b"<", b"&x;", b'"', b"\0", b"]]>", b"</item>"]
        )
        data = data[:at] + new + data[at + draw.choice([0, length]) :]
    if formats.kind_of(data, name) != "html":
        healthy(name, data)
