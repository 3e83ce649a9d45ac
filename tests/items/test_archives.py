"""Mail and crawls in a watched folder are items."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime

from samples import read_file
from sentences import says
from web_pages import needs_html, page, paragraphs

from neardup.text.contents import article_of

MAIL = (
    b"From: Ann <a@a.org>\nMessage-ID: <1@a.org>\nDate: Mon, 06 May 2024 10:00:00 +0200\n"
    b"Subject: =?utf-8?q?Gr=C3=BC=C3=9Fe?=\n\nThe board voted.\n"
)
TIME = datetime(2024, 5, 6, 8, tzinfo=UTC)


def record(body: bytes, kind: str = "response", media: str = "text/html") -> bytes:
    head = b"" if kind == "conversion" else f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n\r\n".encode()
    header = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://a.org/\r\nWARC-Date: 2024-05-06T08:00:00Z\r\n"
    length = f"Content-Type: text/plain\r\nContent-Length: {len(head + body)}\r\n\r\n"
    return header.encode() + length.encode() + head + body + b"\r\n\r\n"


def test_a_mail_is_an_item() -> None:
    found, items = read_file("m.eml", MAIL)
    assert (found.kind, found.broken_parts) == ("mail", [])
    [item] = items
    assert (item.key, item.title, item.text, item.timestamp) == (
        "1@a.org",
        "Grüße",
        "Grüße\nThe board voted.",
        TIME,
    )
    assert item.raw == MAIL


def test_a_mailbox_is_recognized_by_its_content() -> None:
    line = b"From a@a.org Mon May  6 10:00:00 2024\n"
    for name in ("list.mbox", "list.txt", "list"):
        found, items = read_file(name, line + MAIL + b"\n" + line + b"X: no mail\n\n" + line + MAIL)
        assert found.kind == "mbox"
        assert [item.key for item in items] == ["1@a.org", "1@a.org"]
        assert [fault.where for fault in found.broken_parts] == ["mail 2"]


@needs_html
def test_the_pages_of_a_crawl_are_items() -> None:
    markup = page(paragraphs(1), 1)
    data = record(markup.encode()) + record(b"", media="image/png") + record(b"Plain words", "conversion")
    for name, content in {"crawl.warc": data, "download": data, "crawl.warc.gz": gzip.compress(data)}.items():
        found, items = read_file(name, content)
        assert (found.kind, found.broken_parts) == ("warc", [])
        assert [(item.key, item.link, item.timestamp) for item in items] == [
            ("http://a.org/", "http://a.org/", TIME)
        ] * 2
        assert items[1].text == "Plain words"
        assert items[0].text == article_of(markup).text
        assert says(found.notes[0].text, "image/png: 1")


def test_a_crawl_that_is_cut_short_may_be_incomplete() -> None:
    data = record(b"Plain words", "conversion")
    for name, content in {"a.warc": data * 2, "a.warc.gz": gzip.compress(data * 2)}.items():
        found, items = read_file(name, content[:-30])
        assert len(items) <= 1
        assert [fault.ended_early for fault in found.broken_parts] == [True]
    assert says(read_file("a.txt.gz", gzip.compress(data))[0].broken_parts[0].reason, "compressed with gzip")
