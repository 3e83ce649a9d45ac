"""Opening found files: plain or decompressed, in blocks cut at record ends, with a position on disk."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from neardup.documents.inputs import Codec, Found, readable
from neardup.errors import InputError
from neardup.runtime import alone

BLOCK = 16 << 20
LARGEST_RECORD = 1 << 30
_STEP = 1 << 18
#: Decompressed bytes that are asked for at a time: a read that fails loses what it had.
_READ = 1 << 10
_BOM = b"\xef\xbb\xbf"


#: The bytes of a file from one place to another, or the row groups.
Span = tuple[int, int]


class Stream:
    """Bytes of a file, decompressed; a broken compressed file ends where it breaks, and says so.

    Of a span of a plain file, the lines that end in it: so each line is of one span, wherever the file is cut.
    """

    def __init__(self, found: Found, codec: Codec | None, span: Span | None = None) -> None:
        self.damage, self.begin = "", 0
        self._found = found
        self._codec = codec
        self._left: int | None = None
        with readable(found.name):
            self._raw = found.filesystem.open_input_file(found.path)
            self._stream = self._raw if codec is None else pa.CompressedInputStream(self._raw, codec)
            if span is not None:
                self.begin = self._line_at(span[0])
                end = span[1] if span[1] >= found.size else self._line_at(span[1])
                self._raw.seek(self.begin)
                self._left = end - self.begin

    def _line_at(self, place: int) -> int:
        """Return where the line begins that the byte before a place is not the end of: behind the last line feed."""
        while place > 0:
            low = max(place - _STEP, 0)
            self._raw.seek(low)
            at = self._raw.read(place - low).rfind(b"\n")
            if at >= 0:
                return low + int(at) + 1
            place = low
        return 0

    def lines_before(self) -> int:
        """Return how many line feeds stand before the span; what is read next is undefined then."""
        left, lines = self.begin, 0
        with readable(self._found.name):
            self._raw.seek(0)
            while left and (data := self._raw.read(min(left, BLOCK))):
                left -= len(data)
                lines += data.count(b"\n")
        return lines

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes; fewer only at the end or at a break."""
        if self._codec is None:
            with readable(self._found.name):
                plain: bytes = self._stream.read(size if self._left is None else min(size, self._left))
            if self._left is not None:
                self._left -= len(plain)
            return plain
        pieces: list[bytes] = []
        missing = size
        while missing and not self.damage:
            piece = self._piece(min(missing, _READ))
            if not piece:
                break
            pieces.append(piece)
            missing -= len(piece)
        return b"".join(pieces)

    def _piece(self, size: int) -> bytes:
        try:
            piece: bytes = self._stream.read(size)
        except (OSError, pa.ArrowException) as error:
            self.damage = str(error)
            return b""
        return piece

    def position(self) -> int:
        """Bytes of the file on disk that were read so far."""
        try:
            return int(self._raw.tell())
        except (OSError, ValueError, pa.ArrowException):
            return 0

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


def head_of(found: Found, codec: Codec | None, size: int = 1 << 16) -> bytes:
    """Return the first bytes of the content."""
    with closing(Stream(found, codec)) as stream:
        return stream.read(size)


def spooled(found: Found, codec: Codec, folder: str) -> tuple[str, str]:
    """Decompress to a temporary file, for formats that are read out of order; return its path, and any damage."""
    handle, path = tempfile.mkstemp(dir=folder)
    with closing(Stream(found, codec)) as stream, os.fdopen(handle, "wb") as file:
        while piece := stream.read(BLOCK):
            file.write(piece)
        return path, stream.damage


@dataclass(frozen=True, slots=True)
class Block:
    """Whole records: their bytes, and where each begins and ends in them."""

    data: bytes
    starts: np.ndarray
    ends: np.ndarray
    line: int
    """1-based line of the first byte."""
    consumed: int
    damage: str = ""
    tail: bytes = b""
    """What stands after the last record end of a file that is cut short."""
    lines: int = 0
    """How many line feeds are in it."""

    def record(self, position: int) -> bytes:
        """Bytes of a record, with its line end."""
        return self.data[int(self.starts[position]) : int(self.ends[position])]

    def select(self, mask: np.ndarray, line_end: bytes = b"\n") -> bytes:
        """Bytes of the records under the mask as they are; a last one without line end gets one."""
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

    def line_of(self, position: int) -> int:
        """1-based line on which a record begins."""
        return self.line + self.data.count(b"\n", 0, int(self.starts[position]))


def blocks(
    found: Found,
    codec: Codec | None,
    record_ends: Callable[[bytes], np.ndarray],
    size: int | None = None,
    span: Span | None = None,
) -> Generator[Block, None, None]:
    """Cut a file, or a span of its lines, into blocks of whole records.

    ``record_ends`` gives the positions just after each record that ends in the bytes. A record larger than the size
    that is read at a time makes its block as large as it needs.
    """
    size = size or BLOCK
    with closing(Stream(found, codec, span)) as stream:
        pending, line, position = b"", 1, stream.begin
        first = not stream.begin
        # Then blocks end where those of the whole file do, if it is cut at multiples of their size.
        lead = 0 if span is None else span[0] - stream.begin
        while True:
            chunk, lead = stream.read(max(size, len(pending)) + lead), 0
            last = not chunk
            data = pending + chunk if pending else chunk
            if first:
                data, first = data.removeprefix(_BOM), False
            if last and not data and not stream.damage:
                return
            ends = record_ends(data)
            cut = int(ends[-1]) if ends.size else 0
            if last and cut < len(data) and not stream.damage:
                ends, cut = np.append(ends, len(data)), len(data)
            if cut or last:
                starts = np.concatenate((np.zeros(min(ends.size, 1), np.int64), ends[:-1]))
                whole = data if cut == len(data) else data[:cut]
                now = stream.position()
                damage, tail = (stream.damage, data[cut:]) if last else ("", b"")
                lines = whole.count(b"\n")
                yield Block(whole, starts, ends, line, now - position, damage, tail, lines)
                line, position = line + lines, now
                pending = data[cut:]
            else:
                pending = data
            if last:
                return
            if len(pending) > LARGEST_RECORD:
                line += stream.lines_before()
                raise InputError(
                    f"{found.name}, line {line}: no record end within {LARGEST_RECORD >> 20} MiB, the "
                    "largest record allowed; check that the file is what its name says"
                )


def _array(source: Any) -> np.ndarray:
    return np.frombuffer(source, dtype=np.uint8)


def positions_of(data: bytes, byte: int) -> np.ndarray:
    """Positions of a byte."""
    return np.flatnonzero(_array(data) == byte)


def is_utf8(data: bytes) -> bool:
    """Whether the bytes are valid UTF-8, checked at the speed of memory."""
    offsets = np.array([0, len(data)], dtype=np.int64)
    whole = pa.LargeStringArray.from_buffers(1, pa.py_buffer(offsets), pa.py_buffer(data))
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


T = TypeVar("T")


def ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Give the items in order, each made while the one before is in use.

    Arrow and the codecs release the interpreter's lock, so reading and what is done with it overlap. At most two items
    are alive at a time; what an item raises is raised in its place. The iterator is used in one other thread only.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="neardup-read") as pool:
        coming: Future[list[T]] = pool.submit(alone, _some, items)
        try:
            while item := coming.result():
                coming = pool.submit(alone, _some, items)
                yield item[0]
        finally:
            wait([coming])


def _some(items: Iterator[T]) -> list[T]:
    """Return the next item in a list, which is empty at the end."""
    for item in items:
        return [item]
    return []
