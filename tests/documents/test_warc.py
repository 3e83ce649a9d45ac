"""WARC and WET files: pages and texts of a crawl are documents; all else is counted, and damage is said."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import warnings
import zlib
from pathlib import Path
from random import Random
from typing import Any

import brotli
import pyarrow as pa
import pytest
from input_files import compress, full_mask, read_quarantine, texts_of
from sentences import says

import neardup as nd
from neardup import errors
from neardup.documents import open_corpus, warc

PAGE = b"<html><body><p>The board of the harbour voted on Monday.</p></body></html>"


def record(
    body: bytes, kind: str = "response", url: str = "http://a.org/1", *, length: int | None = None, **fields: str
) -> bytes:
    """Return a record; names of fields are written with hyphens."""
    header = {
        "WARC-Type": kind,
        "WARC-Date": "2024-05-01T10:00:00Z",
        "WARC-Record-ID": f"<urn:uuid:{kind}-{url}>",
        "WARC-Target-URI": url,
        "Content-Type": "application/http; msgtype=response",
        **{name.replace("_", "-"): value for name, value in fields.items()},
        "Content-Length": str(len(body) if length is None else length),
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in header.items() if value)
    return b"WARC/1.0\r\n" + lines.encode() + b"\r\n" + body + b"\r\n\r\n"


def http(body: bytes, status: str = "200 OK", media: str = "text/html", **fields: str) -> bytes:
    header = {"Content-Type": media, **{name.replace("_", "-"): value for name, value in fields.items()}}
    lines = "".join(f"{name}: {value}\r\n" for name, value in header.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body


def crawl_of(*bodies: bytes) -> bytes:
    return b"".join(record(http(body), url=f"http://a.org/{number}") for number, body in enumerate(bodies))


def read(path: Path, **options: Any) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Return the documents of a file with all their columns, and what was skipped."""
    with open_corpus([path], **options) as corpus:
        texts_of(corpus)
        assert not corpus.rejected.counts
        return corpus.take(range(corpus.raw_rows)).to_pylist(), dict(corpus.skipped)


def written(folder: Path, data: bytes, name: str = "crawl.warc") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_pages_and_texts_are_documents_and_all_else_is_counted(tmp_path: Path) -> None:
    data = (
        record(b"software: test\r\n", "warcinfo", "")
        + record(b"GET / HTTP/1.1\r\n\r\n", "request", "http://a.org/1")
        + record(http(PAGE, media="text/html; charset=utf-8"), url="http://a.org/1")
        + record(http(b"Plain words", media="text/plain"), url="http://a.org/2")
        + record(http(b"\x89PNG", media="image/png"), url="http://a.org/3")
        + record(http(b"{}", media="application/json"), url="http://a.org/4")
        + record(http(b"Not here", "404 Not Found"), url="http://a.org/5")
        + record(http(b"", "301 Moved", Location="/1"), url="http://a.org/6")
        + record(http(b""), "revisit", "http://a.org/1")
        + record(b"outlink: /2\r\n", "metadata", "http://a.org/1")
        + record(b"20240501\r\na.org. 1 IN A 1.2.3.4\r\n", url="dns:a.org", Content_Type="text/dns")
        + record(b"<html>As it was stored</html>", "resource", "http://a.org/7", Content_Type="text/html")
    )
    documents, skipped = read(written(tmp_path, data))
    assert documents[0] == {
        "url": "http://a.org/1",
        "date": "2024-05-01T10:00:00Z",
        "status": 200,
        "content_type": "text/html",
        "record_id": "urn:uuid:response-http://a.org/1",
        "text": PAGE.decode(),
    }
    assert [(one["url"], one["status"], one["text"]) for one in documents[1:]] == [
        ("http://a.org/2", 200, "Plain words"),
        ("http://a.org/7", None, "<html>As it was stored</html>"),
    ]
    assert skipped == {
        "warcinfo record": 1,
        "request record": 1,
        "image/png": 1,
        "application/json": 1,
        "HTTP status 404": 1,
        "HTTP status 301": 1,
        "revisit record": 1,
        "metadata record": 1,
        "text/dns": 1,
    }


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.warc.zst", "a.warc.bz2", "a.bin", "a.txt"])
def test_a_crawl_is_recognized_by_name_and_content_in_every_compression(tmp_path: Path, name: str) -> None:
    codec = name[name.rindex(".") :]
    path = written(tmp_path, compress(crawl_of(b"one", b"two"), codec), name)
    assert [one["text"] for one in read(path)[0]] == ["one", "two"]


def test_a_file_may_be_compressed_record_by_record(tmp_path: Path) -> None:
    parts = [gzip.compress(record(http(text), url=f"http://a.org/{n}")) for n, text in enumerate([b"one", b"two"])]
    assert [one["text"] for one in read(written(tmp_path, b"".join(parts), "a.warc.gz"))[0]] == ["one", "two"]


def test_a_wet_file_has_plain_texts(tmp_path: Path) -> None:
    text = "Grüße aus Köln\nzweite Zeile".encode()
    data = record(b"x", "warcinfo", "") + record(text, "conversion", "http://a.org/", Content_Type="text/plain")
    documents, _ = read(written(tmp_path, gzip.compress(data), "a.warc.wet.gz"))
    assert [(one["url"], one["status"], one["text"]) for one in documents] == [("http://a.org/", None, text.decode())]


ENCODED: dict[str, tuple[bytes, dict[str, str]]] = {
    "plain": (PAGE, {}),
    "chunked": (b"4A\r\n" + PAGE + b"\r\n0\r\n\r\n", {"Transfer_Encoding": "chunked"}),
    "two chunks": (b"4\r\n<htm\r\n46;x=1\r\n" + PAGE[4:] + b"\r\n0\r\n\r\n", {"Transfer_Encoding": "chunked"}),
    "not chunked": (PAGE, {"Transfer_Encoding": "chunked"}),
    "gzip": (gzip.compress(PAGE), {"Content_Encoding": "gzip"}),
    "not gzip": (PAGE, {"Content_Encoding": "gzip"}),
    "deflate": (zlib.compress(PAGE), {"Content_Encoding": "deflate"}),
    "raw deflate": (zlib.compress(PAGE, wbits=-15), {"Content_Encoding": "deflate"}),
    "br": (brotli.compress(PAGE), {"Content_Encoding": "br"}),
    "not br": (PAGE, {"Content_Encoding": "br"}),
    "two": (brotli.compress(gzip.compress(PAGE)), {"Content_Encoding": "gzip, br"}),
}


@pytest.mark.parametrize("name", ENCODED)
def test_what_http_encodes_is_decoded_and_what_the_crawler_decoded_stays(tmp_path: Path, name: str) -> None:
    body, fields = ENCODED[name]
    assert len(PAGE) == 0x4A
    [document], _ = read(written(tmp_path, record(http(body, **fields))))
    assert document["text"] == PAGE.decode()


@pytest.mark.parametrize(
    ("media", "markup", "encoding"),
    [
        ("text/html; charset=koi8-r", "<p>роза", "koi8-r"),
        ('text/html;charset="KOI8-R"', "<p>роза", "koi8-r"),
        ("text/html", '<meta charset="koi8-r"><p>роза', "koi8-r"),
        ("text/html; charset=koi8-r", '<meta charset="cp1251"><p>роза', "koi8-r"),
        ("text/html; charset=iso-8859-1", "<p>роза", "utf-8"),
    ],
)
def test_the_charset_is_that_of_the_http_header_then_of_the_page(
    tmp_path: Path, media: str, markup: str, encoding: str
) -> None:
    data = record(http(markup.encode(encoding), media=media))
    assert read(written(tmp_path, data))[0][0]["text"] == markup


def test_a_page_without_a_type_is_recognized_by_its_start(tmp_path: Path) -> None:
    data = record(http(PAGE, media="")) + record(http(b"\x89PNG", media=""), url="http://a.org/2")
    documents, skipped = read(written(tmp_path, data))
    assert [one["text"] for one in documents] == [PAGE.decode()]
    assert skipped == {"content without a type": 1}


def test_addresses_that_occur_again_get_a_number(tmp_path: Path) -> None:
    data = crawl_of(b"one") * 3 + record(http(b"two"), url="http://a.org/0~2")
    for _ in range(2):
        with open_corpus([written(tmp_path, data)]) as corpus:
            ids = [key for batch in corpus.scan() for key in batch.ids.to_pylist()]
            again = [key for batch in corpus.rescan() for key in batch.ids.to_pylist()]
            assert ids == again == [f"http://a.org/0{end}" for end in ("", "~2", "~3", "~2~2")]
            assert list(corpus.skipped.values()) == [3]
            # The column stays as the crawl has it.
            assert corpus.take([1])["url"].to_pylist() == ["http://a.org/0"]


BROKEN = {
    "no HTTP": record(b"\x00\x01\x02"),
    "no status": record(b"<html>words</html>"),
    "gzip cut": record(http(gzip.compress(PAGE)[:-20], Content_Encoding="gzip")),
    "gzip damaged": record(http(gzip.compress(PAGE)[:12] + bytes(40), Content_Encoding="gzip")),
    "chunk cut": record(http(b"FF\r\n" + PAGE, Transfer_Encoding="chunked")),
    "unknown coding": record(http(PAGE, Content_Encoding="zstandard")),
    "bomb": record(http(gzip.compress(bytes(20_000)), Content_Encoding="gzip")),
    "no length": record(http(PAGE)).replace(b"Content-Length: ", b"X-Length: "),
    "negative length": record(http(PAGE), length=-5),
    "length of words": record(http(PAGE)).replace(b"Content-Length: 1", b"Content-Length: one"),
    "too short": record(http(PAGE), length=40),
    "no address": record(http(PAGE)).replace(b"WARC-Target-URI: ", b"X-URI: "),
    "header without end": b"WARC/1.0\r\n" + b"a: b\r\n" * 60_000,
    "one long line": b"WARC/1.0\r\n" + b"a" * 3_000_000 + b"\r\n",
    "spaces": record(http(b"\x00", "500 " + "x" * 50, "text/html; charset=" + " " * 60_000)).replace(b"500 ", b"5x "),
    "garbage": b"\x00\xffgarbage\r\nmore\r\n",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_record_is_rejected_with_its_place_and_the_rest_is_read(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc, "LARGEST_PAGE", 10_000)
    good = record(http(b"good"), url="http://a.org/good")
    path = written(tmp_path, crawl_of(b"first") + BROKEN[name] + good)
    with open_corpus([path], quarantine=str(tmp_path / "q.jsonl")) as corpus:
        texts = texts_of(corpus)
        assert texts[0] == "first"
        assert texts[-1] == "good"
        assert corpus.rejected.total >= 1
        assert not corpus.torn_files
        assert says(corpus.rejected.examples[0], "crawl.warc, record", "at byte")
        assert corpus.take([0])["text"].to_pylist() == ["first"]
        kept = full_mask(corpus)
        rows = [row for batch in corpus.rescan() for row in batch.rows.tolist()]
        kept[:] = False
        kept[rows] = True
        assert corpus.copy(kept, str(tmp_path / "out.jsonl")) == len(texts)
    assert len(read_quarantine(tmp_path / "q.jsonl")) == corpus.rejected.total
    with pytest.raises(errors.BrokenRecord), open_corpus([path], strict=True) as corpus:
        texts_of(corpus)


@pytest.mark.parametrize(("codec", "cut"), [("", 60), ("", 600), ("", 760), (".gz", 60)])
def test_a_file_that_ends_within_a_record_is_torn(tmp_path: Path, codec: str, cut: int) -> None:
    data = compress(crawl_of(*(f"text {n} {'word ' * 99}".encode() for n in range(9))), codec)
    with open_corpus([written(tmp_path, data[:-cut], f"a.warc{codec}")]) as corpus:
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            texts = texts_of(corpus)
        assert texts[0].startswith("text 0")
        assert len(texts) == 8 if not codec else len(texts) < 9
        assert [(Path(torn.file).name, torn.rows_read) for torn in corpus.torn_files] == [
            (f"a.warc{codec}", len(texts))
        ]


def test_a_page_that_the_crawler_cut_is_a_document(tmp_path: Path) -> None:
    body = http(gzip.compress(PAGE * 20)[:-20], Content_Encoding="gzip")
    [document], _ = read(written(tmp_path, record(body, WARC_Truncated="length")))
    assert document["text"].startswith(PAGE.decode()[:40])


def test_a_file_without_a_document_is_torn_alone_or_beside_others(tmp_path: Path) -> None:
    empty = written(tmp_path, record(http(b"\x89PNG", media="image/png")), "images.warc")
    with pytest.warns(errors.TornInput, match="images.warc holds no document"), open_corpus([empty]) as corpus:
        assert texts_of(corpus) == []
    with open_corpus([empty, written(tmp_path, crawl_of(b"one"))], allow_torn=True) as corpus:
        assert texts_of(corpus) == ["one"]
        assert [str(torn) for torn in corpus.torn_files] == [f"{empty} holds no document"]


def test_kinds_that_a_hostile_file_invents_are_counted_together(tmp_path: Path) -> None:
    data = b"".join(record(b"", f"kind{number}") for number in range(1000)) + crawl_of(b"one")
    _, skipped = read(written(tmp_path, data))
    assert len(skipped) <= 101
    assert sum(skipped.values()) == 1000


def test_every_format_of_output_has_the_columns(tmp_path: Path) -> None:
    path = written(tmp_path, crawl_of(b"one", b"two"))
    with open_corpus([path]) as corpus:
        texts_of(corpus)
        for suffix in (".jsonl", ".csv", ".parquet", ".arrow"):
            assert corpus.copy(full_mask(corpus), str(tmp_path / f"kept{suffix}")) == 2
    rows = [json.loads(line) for line in (tmp_path / "kept.jsonl").read_text().splitlines()]
    assert [(row["url"], row["status"], row["text"]) for row in rows] == [
        ("http://a.org/0", 200, "one"),
        ("http://a.org/1", 200, "two"),
    ]
    assert pa.ipc.open_file(str(tmp_path / "kept.arrow")).read_all().to_pylist() == rows


def test_a_run_says_what_it_skipped(tmp_path: Path) -> None:
    data = crawl_of(PAGE, PAGE) + record(b"", "request") + record(http(b"", "404 Not Found"))
    result = nd.dedup_files(str(written(tmp_path, data)))
    assert result.summary["skipped"] == {"request record": 1, "HTTP status 404": 1}
    assert [(drop.id, drop.keeper) for drop in result.dropped] == [("http://a.org/1", "http://a.org/0")]
    result.report(str(tmp_path / "report.html"))
    assert "request record: 1" in (tmp_path / "report.html").read_text()


def test_changed_bytes_never_break_a_reader(tmp_path: Path) -> None:
    random, refusals = Random(1), list[str]()
    data = crawl_of(PAGE, b"two", b"three") + record(b"", "request") + BROKEN["gzip cut"] + crawl_of(PAGE)
    for number in range(2000 if os.environ.get("NEARDUP_LONG") == "1" else 100):
        changed = bytearray(data if number % 2 else gzip.compress(data, mtime=0))
        for _ in range(random.randint(1, 5)):
            at = random.randrange(len(changed))
            changed[at : at + random.choice((0, 1, 40))] = random.choice(
                (b"", b"\0", b"\r\n\r\n", b"WARC/1.0\r\n", b"9")
            )
        try:
            with open_corpus([written(tmp_path, bytes(changed))], allow_torn=True) as corpus:
                texts = texts_of(corpus)
                rows = [row for batch in corpus.rescan() for row in batch.rows.tolist()]
                assert not rows or corpus.take(rows)["text"].to_pylist() == texts
        except errors.InputError as error:
            refusals.append(str(error))
    assert not any("\n" in refusal for refusal in refusals)


def test_the_package_is_named_if_it_is_missing(tmp_path: Path) -> None:
    path = written(tmp_path, crawl_of(b"one"))
    code = f"import sys, neardup as nd; sys.modules['warcio'] = None; nd.open_files({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert says(done.stderr.splitlines()[-1], "needs warcio", "pip install 'neardup[warc]'")
