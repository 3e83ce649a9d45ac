"""WARC and WET files: the pages and texts of a crawl as documents.

warcio parses records and HTTP headers. A document is a response of HTTP status 200, or a resource, whose type is a web
page or plain text, and a conversion, the plain text that WET files have for each page. All other records are skipped
and counted. A record that cannot be parsed is rejected, and reading goes on at the next line that begins a record.
"""

from __future__ import annotations

import io
import logging
import re
import zlib
from collections.abc import Callable, Generator
from contextlib import closing
from functools import cache
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile, one_line
from neardup.documents.parsed import Parsed, ParsedSource
from neardup.documents.records import Reason, RecordFault
from neardup.documents.rejected import Skipped
from neardup.documents.streams import Stream, read_head
from neardup.errors import InputError
from neardup.text.encoding import decode_page

_SCHEMA = pa.schema(
    [
        ("url", pa.large_string()),
        ("date", pa.large_string()),
        ("status", pa.int64()),
        ("content_type", pa.large_string()),
        ("record_id", pa.large_string()),
        ("text", pa.large_string()),
    ]
)
#: The largest page, compressed or not.
LARGEST_PAGE = 64 << 20
_LARGEST_HEADER = 1 << 18
_LONGEST_LINE = 1 << 16
_BUFFER = 1 << 18
_START = b"WARC/"
#: The types of web pages.
PAGE_TYPES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_TEXT_TYPES = frozenset({"text/plain", "text/markdown"})
_PAGE_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:<!doctype\s+html|<html[\s>])", re.IGNORECASE)
_CHARSET = re.compile(r"""charset\s*+=\s*+["']?\s*+([\w.:-]+)""", re.IGNORECASE)


def warc_source(file: InputFile, codec: Codec | None) -> ParsedSource:
    """Open a WARC or WET file.

    Raises ``InputError`` if warcio is not installed.
    """
    _warcio()
    are_texts = b"WARC-Type: conversion" in read_head(file, codec)
    return ParsedSource(file, codec, _SCHEMA, "url", _documents, pages=not are_texts)


class _Warcio(NamedTuple):
    """The parts of warcio that are used."""

    parse_record: Callable[..., Any]
    parse_http: Callable[..., Any]
    dechunk: Callable[..., Any]
    chunk_error: type[Exception]


@cache
def _warcio() -> _Warcio:
    try:
        from warcio.bufferedreaders import ChunkedDataException, ChunkedDataReader
        from warcio.recordloader import ArcWarcRecordLoader
        from warcio.statusandheaders import StatusAndHeadersParser
    except ImportError as error:
        raise InputError(
            f"reading WARC files needs warcio, and {error.name or error} is not installed; "
            "pip install 'neardup[warc]' brings it"
        ) from None
    # It warns of addresses with spaces on standard error.
    logging.getLogger("warcio").addHandler(logging.NullHandler())
    return _Warcio(
        ArcWarcRecordLoader().parse_record_stream,
        StatusAndHeadersParser(["HTTP/"], verify=False).parse,
        ChunkedDataReader,
        ChunkedDataException,
    )


class _Bytes(io.RawIOBase):
    """The decompressed bytes of a file, as Python's buffered reader wants them."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream, self._position = stream, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position


class _Lines(io.BufferedReader):
    """A reader whose lines are bounded, and headers, too: a longer one ends as if the file did."""

    header_left = 0

    def readline(self, size: int | None = -1) -> bytes:
        limit = min(_LONGEST_LINE, self.header_left, _LONGEST_LINE if size is None or size < 0 else size)
        line = super().readline(limit)
        self.header_left -= len(line)
        return line

    def next_start(self) -> tuple[int, bytes, bytes]:
        """Return the place and the first line of the next record, and what stands before it that is not blank."""
        before, place = b"", self.tell()
        while True:
            line = super().readline(_LONGEST_LINE)
            if not line or line.startswith(_START):
                return place, line, before
            if not before and line.strip(b"\r\n"):
                before = line
            place += len(line)


class _RecordError(Exception):
    """A record is broken, for this reason."""

    def __init__(self, detail: str, reason: str = Reason.BROKEN_RECORD) -> None:
        super().__init__(detail)
        self.reason = reason


class ByteStream(Protocol):
    """The decompressed bytes of a file; a damaged one ends where it breaks, and sets ``damage``."""

    damage: str

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end."""

    def position(self) -> int:
        """Return how many bytes of the file on disk have been read."""


def _documents(file: InputFile, codec: Codec | None, skipped: Skipped) -> Generator[Parsed, None, None]:
    """Yield the documents of a file, and its broken records."""
    with closing(Stream(file, codec)) as stream:
        yield from parse_records(stream, skipped, " of the decompressed content" if codec else "")


def parse_records(stream: ByteStream, skipped: Skipped, content: str = "") -> Generator[Parsed, None, None]:
    """Yield the documents of a stream, and its broken records.

    Parameters
    ----------
    stream : ByteStream
        The records.
    skipped : Skipped
        Counts what is no document.
    content : str
        Of what the places of broken records are counted, for messages.

    Raises
    ------
    InputError
        If warcio is not installed.
    """

    def fault(place: int, error: str, reason: str = Reason.BROKEN_RECORD, *, count: int = 1) -> Parsed:
        detail = f"at byte {place:,}{content}: {error}"
        return Parsed({}, RecordFault(0, reason, count, detail=detail), stream.position())

    lines = _Lines(_Bytes(stream), _BUFFER)
    end = 0
    while True:
        place, first, before = lines.next_start()
        if before:
            yield fault(end, f"no record begins here, but {quoted_bytes(before)}")
        if not first:
            break
        lines.header_left = _LARGEST_HEADER
        record = None
        try:
            record = _parsed_record(lines, first)
            values = _document(record, skipped)
            if values is not None and not _is_cut(record, lines):
                yield Parsed(values, None, stream.position())
        except _RecordError as error:
            if not _is_cut(record, lines):
                yield fault(place, str(error), error.reason)
        if _is_cut(record, lines):
            if not stream.damage:
                yield fault(place, "the file ends within this record", Reason.CUT_RECORD, count=0)
            break
        end = lines.tell()
    if stream.damage:
        yield fault(place, stream.damage, Reason.DAMAGED_COMPRESSION, count=0)


def quoted_bytes(data: bytes) -> str:
    """Return the beginning of bytes for a message."""
    return repr(data[:40].decode("utf-8", "replace").rstrip("\r\n"))


def _parsed_record(lines: _Lines, first: bytes) -> Any:
    """Return a record of warcio, whose stream ends with it."""
    try:
        record = _warcio().parse_record(lines, first, "warc", no_record_parse=True)
    except Exception as error:  # whatever a library raises about foreign bytes concerns this record
        raise _RecordError(one_line(error, 120)) from None
    if lines.header_left <= 0:
        raise _RecordError(f"its header is longer than {_LARGEST_HEADER >> 10} KiB")
    length = record.rec_headers.get_header("Content-Length") or ""
    if not (length.isascii() and length.isdigit() and len(length) < 20):
        raise _RecordError(f"it has the length {length[:40]!r}" if length else "it has no length")
    return record


def _is_cut(record: Any, lines: _Lines) -> bool:
    """Return whether the file ends within a record, or its header if there is none; read the rest of the record."""
    if record is None:
        return not lines.peek(1)
    while record.raw_stream.limit and record.raw_stream.read(_BUFFER):
        pass
    return bool(record.raw_stream.limit)


def _document(record: Any, skipped: Skipped) -> dict[str, Any] | None:
    """Return the document of a record as values of the columns; None if it is none."""
    header = record.rec_headers.get_header
    kind = (record.rec_type or "").lower()
    if kind not in ("response", "resource", "conversion") or header("WARC-Segment-Number"):
        skipped.add(f"segmented {kind}" if header("WARC-Segment-Number") else f"{kind or 'untyped'} record")
        return None
    url = header("WARC-Target-URI")
    if not url:
        raise _RecordError("it has no WARC-Target-URI")
    stated = record.content_type or ""
    status, http = None, None
    if kind == "response" and url.lower().startswith(("http:", "https:")):
        http = _http_headers(record)
        status = _status_of(http)
        if status != 200:
            skipped.add(f"HTTP status {status}")
            return None
        stated = http.get_header("Content-Type") or header("WARC-Identified-Payload-Type") or ""
    media = stated.partition(";")[0].strip().lower()
    if media and media not in PAGE_TYPES and media not in _TEXT_TYPES:
        skipped.add(media)
        return None
    body = _body(record, http, is_cut=bool(header("WARC-Truncated")))
    if not media and not _PAGE_START.match(body[:1024]):
        skipped.add("content without a type")
        return None
    charset = _CHARSET.search(stated)
    return {
        "url": _clean(url),
        "date": _clean(header("WARC-Date")),
        "status": status,
        "content_type": _clean(media) or "text/html",
        "record_id": _clean((header("WARC-Record-ID") or "").strip("<>")) or None,
        "text": decode_page(body, charset[1] if charset else ""),
    }


def _clean(value: str | None) -> str | None:
    """Return a value of a header without what UTF-8 cannot write."""
    return None if value is None else value.encode("utf-8", "replace").decode()


def _http_headers(record: Any) -> Any:
    try:
        return _warcio().parse_http(record.raw_stream)
    except Exception as error:  # as in _parsed_record
        raise _RecordError(f"no HTTP header ({one_line(error, 120) if str(error) else 'it is empty'})") from None


def _status_of(http: Any) -> int:
    code = http.statusline.split(" ", 1)[0]
    if not http.protocol.upper().startswith("HTTP/") or not re.fullmatch("[0-9]{3}", code):
        raise _RecordError(f"no HTTP status in {f'{http.protocol} {http.statusline}'[:40]!r}")
    return int(code)


def _body(record: Any, http: Any, *, is_cut: bool) -> bytes:
    """Return the content of a record, decoded as its HTTP header says. Crawlers may have decoded it already.

    ``is_cut`` says that the crawler has stored only the first part of it.
    """
    if record.raw_stream.limit > LARGEST_PAGE:
        raise _RecordError(f"{record.raw_stream.limit:,} bytes, {LARGEST_PAGE:,} allowed", Reason.TOO_LONG)
    body: bytes = record.raw_stream.read()
    if http is None:
        return body
    if "chunked" in (http.get_header("Transfer-Encoding") or "").lower():
        body = _dechunked(body, is_cut=is_cut)
    codings = (http.get_header("Content-Encoding") or "").lower().split(",")
    for coding in reversed([name.strip() for name in codings]):
        body = _decompressed(body, coding, is_cut=is_cut)
    return body


def _dechunked(body: bytes, *, is_cut: bool) -> bytes:
    tools = _warcio()
    if not re.match(rb"[0-9A-Fa-f]{1,8}[ \t]*(?:;[^\n]*)?\r\n", body):
        return body
    try:
        content: bytes = tools.dechunk(io.BytesIO(body), raise_exceptions=not is_cut).read()
    except (tools.chunk_error, ValueError, OverflowError) as error:
        raise _RecordError(f"broken chunks of HTTP ({one_line(error, 120)})") from None
    return content


def _decompressed(body: bytes, coding: str, *, is_cut: bool) -> bytes:
    """Return a body without a compression; one that is none was decompressed by the crawler."""
    if coding in ("", "identity") or not body:
        return body
    if coding not in _DECOMPRESSORS:
        raise _RecordError(f"content encoding {coding[:40]!r}, which is none of {', '.join(_DECOMPRESSORS)}")
    try:
        content, is_whole = _DECOMPRESSORS[coding](body)
    except _CodingError as error:
        if _BINARY.search(body[:256]) is None:
            return body
        raise _RecordError(f"its content is no {coding} ({one_line(error, 120)})") from None
    if len(content) > LARGEST_PAGE:
        raise _RecordError(f"more than {LARGEST_PAGE:,} bytes when decompressed", Reason.TOO_LONG)
    if not is_whole and not is_cut:
        raise _RecordError(f"its content ends within its compression by {coding}")
    return content


class _CodingError(Exception):
    """Bytes are not compressed as said."""


#: Bytes that no text begins with.
_BINARY = re.compile(rb"[\0-\x08\x0e-\x1f]")


def _inflate(body: bytes, window: int) -> tuple[bytes, bool]:
    """Return what zlib decompresses, a little more than allowed if it is too much, and whether its end is there."""
    machine = zlib.decompressobj(window)
    try:
        content = machine.decompress(body, LARGEST_PAGE + 1)
    except zlib.error as error:
        raise _CodingError(str(error)) from None
    return content, machine.eof or len(content) > LARGEST_PAGE


def _gunzip(body: bytes) -> tuple[bytes, bool]:
    return _inflate(body, 16 + zlib.MAX_WBITS)


def _undeflate(body: bytes) -> tuple[bytes, bool]:
    """Decompress ``deflate``, which some servers write without the header of zlib."""
    has_header = body[0] & 15 == 8 and int.from_bytes(body[:2]) % 31 == 0
    return _inflate(body, zlib.MAX_WBITS if has_header else -zlib.MAX_WBITS)


def _unbrotli(body: bytes) -> tuple[bytes, bool]:
    brotli = _brotli()
    machine = brotli.Decompressor()
    try:
        content: bytes = machine.process(body, output_buffer_limit=LARGEST_PAGE + 1)
    except brotli.error as error:
        raise _CodingError(str(error)) from None
    return content, machine.is_finished() or len(content) > LARGEST_PAGE


@cache
def _brotli() -> Any:
    try:
        import brotli
    except ImportError:
        raise InputError(
            "reading pages that are compressed as br needs brotli, which is not installed; "
            "pip install 'neardup[warc]' brings it"
        ) from None
    return brotli


_DECOMPRESSORS: dict[str, Callable[[bytes], tuple[bytes, bool]]] = {
    "gzip": _gunzip,
    "x-gzip": _gunzip,
    "deflate": _undeflate,
    "br": _unbrotli,
}
