"""The bytes of files, decompressed, in blocks of whole records."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pyarrow as pa

from neardup.documents.inputs import Codec, InputFile, input_errors
from neardup.errors import InputError
from neardup.runtime import run_serial

BLOCK = 16 << 20
LARGEST_RECORD = 1 << 30
_STEP = 1 << 18
#: Decompressed bytes that are requested at a time: a read that fails loses what it had.
_READ = 1 << 10
_BOM = b"\xef\xbb\xbf"


#: A range of a file's bytes, or of its row groups.
Span = tuple[int, int]


class Stream:
    """The bytes of a file, decompressed. A damaged compressed file ends where it breaks, and sets ``damage``.

    A span of a plain file consists of the lines that end in it, so each line is in exactly one span.
    """

    def __init__(self, file: InputFile, codec: Codec | None, span: Span | None = None) -> None:
        self.damage, self.begin = "", 0
        self._file = file
        self._codec = codec
        self._left: int | None = None
        with input_errors(file.name):
            self._raw = file.filesystem.open_input_file(file.path)
            self._stream = self._raw if codec is None else pa.CompressedInputStream(self._raw, codec)
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

    def lines_before(self) -> int:
        """Return the number of line feeds before the span; the position in the file is undefined afterwards."""
        left, lines = self.begin, 0
        with input_errors(self._file.name):
            self._raw.seek(0)
            while left and (data := self._raw.read(min(left, BLOCK))):
                left -= len(data)
                lines += data.count(b"\n")
        return lines

    def read(self, size: int) -> bytes:
        """Return up to ``size`` bytes, fewer only at the end or where the file breaks."""
        if self._codec is None:
            with input_errors(self._file.name):
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
        """Return how many bytes of the file on disk have been read."""
        return int(self._raw.tell())

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


def read_head(file: InputFile, codec: Codec | None, size: int = 1 << 16) -> bytes:
    """Return the first bytes of the content."""
    with closing(Stream(file, codec)) as stream:
        return stream.read(size)


def decompress(file: InputFile, codec: Codec, folder: str) -> tuple[str, str]:
    """Decompress to a temporary file, for formats that are read out of order; return its path and the damage."""
    handle, path = tempfile.mkstemp(dir=folder)
    with closing(Stream(file, codec)) as stream, os.fdopen(handle, "wb") as copy:
        while piece := stream.read(BLOCK):
            copy.write(piece)
        return path, stream.damage


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

    def line_of(self, position: int) -> int:
        """Return the 1-based line on which a record begins."""
        return self.line + self.data.count(b"\n", 0, int(self.starts[position]))


def blocks(
    file: InputFile,
    codec: Codec | None,
    record_ends: Callable[[bytes], np.ndarray],
    size: int | None = None,
    span: Span | None = None,
) -> Generator[Block, None, None]:
    """Yield a file, or a span of its lines, in blocks of whole records.

    ``record_ends`` returns the position after each record that ends in some bytes. A block has about ``size`` bytes, or
    more if one record does.
    """
    size = size or BLOCK
    with closing(Stream(file, codec, span)) as stream:
        pending, line, position = b"", 1, stream.begin
        first = not stream.begin
        while True:
            chunk = stream.read(max(size, len(pending)))
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
                    f"{file.name}, line {line}: no record end within {LARGEST_RECORD >> 20} MiB, the "
                    "largest record allowed; check that the file is what its name says"
                )


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
