"""The bytes of files, decompressed, in blocks of whole records."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from neardup.documents.compression import Codec, DamagedCompression, Decompressed
from neardup.documents.inputs import InputFile, input_errors
from neardup.documents.records import Reason
from neardup.errors import InputError
from neardup.runtime import run_serial
from neardup.text.encoding import WINDOWS_1252, encoding_of_lines, windows_1252_decoder

BLOCK = 16 << 20
#: The bytes of a record beyond which it is rejected while it is read, unless the largest document is given.
LARGEST_RECORD = 128 << 20
#: A record may have this many times the bytes of the largest document: escapes in JSON, and other columns.
_RECORD_FACTOR = 8
#: Bytes of a record that is too long that are kept, for messages and the quarantine.
_SHOWN = 1 << 10
_STEP = 1 << 18
#: Bytes from the first one beyond ASCII on that decide about the encoding.
_ENCODING_WINDOW = 1 << 16
_BOM = b"\xef\xbb\xbf"


#: A range of a file's bytes, or of its row groups.
Span = tuple[int, int]


def largest_record(max_document: int | None) -> int:
    """Return the bytes that a record of a file of lines may have, from those that a document may have."""
    return LARGEST_RECORD if max_document is None else _RECORD_FACTOR * max_document + BLOCK


class Stream:
    """The bytes of a file, decompressed. A damaged compressed file ends where it breaks, and sets ``damage``.

    A span of a plain file consists of the lines that end in it, so each line is in exactly one span.
    """

    def __init__(self, file: InputFile, codec: Codec | None, span: Span | None = None) -> None:
        self.damage, self.begin = "", 0
        self._file = file
        self._left: int | None = None
        self._surplus = b""
        with input_errors(file.name):
            self._raw = file.filesystem.open_input_file(file.path)
            self._content = None if codec is None else Decompressed(self._raw, codec)
            if span is not None:
                self.begin = self._line_at(span[0])
                end = span[1] if span[1] >= file.size else self._line_at(span[1])
                self._raw.seek(self.begin)
                self._left = end - self.begin

    def _line_at(self, place: int) -> int:
        """Return the position after the last line feed before a place: where the line at that place begins."""
        while place > 0:
            low = max(place - _STEP, 0)
            self._raw.seek(low)
            at = self._raw.read(place - low).rfind(b"\n")
            if at >= 0:
                return low + int(at) + 1
            place = low
        return 0

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end or where the file breaks."""
        if self._content is None:
            with input_errors(self._file.name):
                plain: bytes = self._raw.read(size if self._left is None else min(size, self._left))
            if self._left is not None:
                self._left -= len(plain)
            return plain
        pieces, missing = [self._surplus], size - len(self._surplus)
        while missing > 0 and not self.damage and (piece := self._piece(self._content)):
            pieces.append(piece)
            missing -= len(piece)
        data = b"".join(pieces)
        self._surplus = data[size:]
        return data[:size] if self._surplus else data

    def _piece(self, content: Decompressed) -> bytes:
        try:
            return content.read()
        except DamagedCompression as error:
            self.damage = str(error)
            return b""

    def position(self) -> int:
        """Return how many bytes of the file on disk have been read."""
        return int(self._raw.tell())

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


class Utf8Stream:
    """The bytes of a file in UTF-8; a file in Windows-1252 is transcoded.

    The lines from the first byte beyond ASCII on decide: if most of those that are not ASCII are not UTF-8, the file is
    in Windows-1252, of which each sequence that is UTF-8 nevertheless stays as it is. In a file in UTF-8, other bytes
    stay, too, and make their records broken.

    Attributes
    ----------
    encoding : str
        ``utf-8`` or ``windows-1252``; empty as long as all bytes are ASCII.
    """

    def __init__(self, stream: Stream, encoding: str = "") -> None:
        self.stream, self.encoding = stream, encoding
        self._decoder = windows_1252_decoder()

    def read(self, size: int) -> bytes:
        """Return about ``size`` bytes, none only at the end or where the file breaks."""
        data = self.stream.read(size)
        if not self.encoding and not data.isascii():
            first = int(np.argmax(np.frombuffer(data, np.uint8) >= 0x80))
            # The line may have begun before.
            begin = data.rfind(b"\n", 0, first) + 1
            missing = begin + _ENCODING_WINDOW - len(data)
            more = self.stream.read(missing) if missing > 0 else b""
            data += more
            window = data[begin : begin + _ENCODING_WINDOW]
            is_whole = missing > 0 and len(more) < missing
            self.encoding = encoding_of_lines(window if is_whole else window[: window.rfind(b"\n") + 1] or window)
        if self.encoding != WINDOWS_1252:
            return data
        decoded = self._decoder.decode(data, not data).encode()
        # The end of a character alone is not the end of the file.
        return decoded if decoded or not data else self.read(size)


def read_head(file: InputFile, codec: Codec | None, size: int = 1 << 16) -> bytes:
    """Return the first bytes of the content."""
    with closing(Stream(file, codec)) as stream:
        return stream.read(size)


def decompress(file: InputFile, codec: Codec, folder: str) -> tuple[str, str]:
    """Decompress to a temporary file, for formats that are read out of order; return its path and the damage."""
    handle, path = tempfile.mkstemp(dir=folder)
    with closing(Stream(file, codec)) as stream, os.fdopen(handle, "wb") as copy:
        try:
            while piece := stream.read(BLOCK):
                copy.write(piece)
            copy.flush()
        except OSError as error:
            raise InputError(
                f"{file.name} cannot be decompressed to {folder} ({error.strerror}): free some space there, or set "
                "TMPDIR to a larger place"
            ) from None
        return path, stream.damage


@dataclass(frozen=True, slots=True)
class Records:
    """Where the records of some bytes end, and which of them are broken."""

    ends: np.ndarray
    """The position after each record."""
    broken: tuple[int, ...] = ()
    """The numbers of the records whose quotes are broken."""


#: Divides bytes into records. At the end of the file all bytes belong to some record.
Splitter = Callable[[bytes, bool], Records]


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records: their bytes, and where each begins and ends."""

    data: bytes
    starts: np.ndarray
    ends: np.ndarray
    line: int
    """1-based line of the first byte."""
    bytes_read: int
    damage: str = ""
    tail: bytes = b""
    """The bytes after the last record of a file that is cut short."""
    lines: int = 0
    """The number of line feeds."""
    encoding: str = ""
    """That of the file, as far as it is known; the bytes are in UTF-8."""
    faults: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    """By the position at which a record begins, reason and detail why it is broken: it is too long, or has broken
    quotes. Of a record that is too long only the beginning is in ``data``."""

    def record(self, position: int) -> bytes:
        """Return the bytes of a record, with its line end."""
        return self.data[int(self.starts[position]) : int(self.ends[position])]

    def select(self, mask: np.ndarray, line_end: bytes = b"\n") -> bytes:
        """Return the bytes of the records under a mask; a last one without line end gets one."""
        chosen = np.flatnonzero(mask)
        if not chosen.size:
            return b""
        starts, ends = self.starts[chosen], self.ends[chosen]
        breaks = starts[1:] != ends[:-1]
        firsts = starts[np.concatenate(([True], breaks))].tolist()
        lasts = ends[np.concatenate((breaks, [True]))].tolist()
        view = memoryview(self.data)
        selected = b"".join([view[start:end] for start, end in zip(firsts, lasts, strict=True)])
        return selected if selected.endswith(b"\n") else selected + line_end

    def lines_of_records(self) -> np.ndarray:
        """Return the 1-based line on which each record begins."""
        lines: np.ndarray = self.line + np.searchsorted(positions_of(self.data, 0x0A), self.starts)
        return lines

    def good_part(self) -> tuple[Block, np.ndarray]:
        """Return the records without ``faults`` as a block, and the mask over all that chooses them."""
        mask = ~np.isin(self.starts, list(self.faults))
        data = self.select(mask)
        lengths = (self.ends - self.starts)[mask]
        ends = np.minimum(np.cumsum(lengths), len(data))
        return replace(self, data=data, starts=ends - lengths, ends=ends, faults={}), mask


def blocks(
    file: InputFile,
    codec: Codec | None,
    split: Splitter,
    size: int | None = None,
    span: Span | None = None,
    encoding: str = "",
) -> Generator[Block, None, None]:
    """Yield a file, or a span of its lines, in blocks of whole records.

    A block has about ``size`` bytes, or more if one record does. A record beyond the largest allowed, ``file.largest``,
    is never held in memory as a whole. ``encoding`` is that of the file, if it is known.
    """
    with closing(Stream(file, codec, span)) as stream:
        yield from _Splitting(file, stream, split, size or BLOCK, encoding).blocks()


class _Splitting:
    """The division of a stream into blocks of whole records."""

    def __init__(self, file: InputFile, stream: Stream, split: Splitter, size: int, encoding: str) -> None:
        self._raw, self._stream = stream, Utf8Stream(stream, encoding)
        self._split, self._size = split, size
        self._largest = largest_record(file.max_document)
        self._line, self._position = 1, stream.begin

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks."""
        pending, first = b"", not self._raw.begin
        while True:
            # A record of many blocks is looked through again each time, so the steps grow with it.
            chunk = self._stream.read(max(self._size, len(pending) // 4))
            last = not chunk
            data = pending + chunk if pending else chunk
            if first:
                data, first = data.removeprefix(_BOM), False
            if last and not data and not self._raw.damage:
                return
            is_end = last and not self._raw.damage
            records = self._split(data, is_end)
            cut = int(records.ends[-1]) if records.ends.size else 0
            if not is_end and len(data) - cut > self._largest:
                # An open quote: its lines are records of their own.
                records = self._split(data[: data.rfind(b"\n") + 1], True)
                cut = int(records.ends[-1]) if records.ends.size else 0
                if len(data) - cut > self._largest:
                    pending = yield from self._overlong(data, cut, records)
                    continue
            if cut or last:
                yield self._block(data, cut, records, is_last=last)
                pending = data[cut:]
            else:
                pending = data
            if last:
                return

    def _block(self, data: bytes, cut: int, records: Records, *, is_last: bool) -> Block:
        ends = records.ends
        starts = np.concatenate((np.zeros(min(ends.size, 1), np.int64), ends[:-1]))
        faults: dict[int, tuple[str, str]] = {}
        for number in records.broken:
            faults[int(starts[number])] = (Reason.OPEN_QUOTE, "")
        lengths = ends - starts
        for number in np.flatnonzero(lengths > self._largest).tolist():
            faults[int(starts[number])] = self._length_fault(int(lengths[number]))
        whole = data if cut == len(data) else data[:cut]
        now = self._raw.position()
        damage, tail = (self._raw.damage, data[cut:]) if is_last else ("", b"")
        lines = whole.count(b"\n")
        block = Block(
            whole,
            starts,
            ends,
            self._line,
            now - self._position,
            damage,
            tail,
            lines,
            self._stream.encoding,
            faults,
        )
        self._line, self._position = self._line + lines, now
        return block

    def _overlong(self, data: bytes, cut: int, records: Records) -> Generator[Block, None, bytes]:
        """Yield the records before one that is too long, then the beginning of that; return what follows it."""
        if cut:
            yield self._block(data[:cut], cut, records, is_last=False)
        start, length = data[cut : cut + _SHOWN] + b"\n", len(data) - cut
        rest, feed = b"", b""
        while not feed and (data := self._stream.read(_STEP)):
            _, feed, rest = data.partition(b"\n")
            length += len(data) - len(rest)
        block = self._block(start, len(start), Records(np.array([len(start)])), is_last=False)
        yield replace(block, faults={0: self._length_fault(length)})
        return rest

    def _length_fault(self, length: int) -> tuple[str, str]:
        return Reason.TOO_LONG, f"a record of {length} bytes, {self._largest} allowed"


def positions_of(data: bytes, byte: int) -> np.ndarray:
    """Return the positions of a byte."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == byte)


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are valid UTF-8, at the speed of memory."""
    offsets = np.array([0, len(data)], dtype=np.int64)
    whole = pa.LargeStringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield the items in order, each produced in another thread while the previous one is in use.

    Arrow and the codecs release the interpreter's lock, so reading and processing overlap. At most two items are alive
    at a time. An error is raised in place of its item.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="neardup-read") as pool:
        future: Future[list[T]] = pool.submit(run_serial, _next_item, items)
        try:
            while item := future.result():
                future = pool.submit(run_serial, _next_item, items)
                yield item[0]
        finally:
            wait([future])


def _next_item(items: Iterator[T]) -> list[T]:
    """Return a list of the next item, empty at the end."""
    for item in items:
        return [item]
    return []
