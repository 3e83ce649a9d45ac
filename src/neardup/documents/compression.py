"""Compressed files: their codecs by first bytes and names, and their content, step by step."""

from __future__ import annotations

import bz2
import lzma
import re
import sys
import zlib
from typing import Any, Literal, Protocol

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

Codec = Literal["gzip", "zstd", "bz2", "xz"]

CODEC_OF_SUFFIX: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz", ".lzma": "xz"}
#: The first bytes of each codec; frames of zstd may begin with one that is to be skipped, as those of pzstd do.
_STARTS: tuple[tuple[re.Pattern[bytes], Codec], ...] = (
    (re.compile(rb"\x1f\x8b\x08"), "gzip"),
    (re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18", re.DOTALL), "zstd"),
    (re.compile(rb"BZh[1-9]"), "bz2"),
    (re.compile(rb"\xfd7zXZ\0|\x5d\0\0[\0-\xff]{2}(?:[\0-\xff]{3}\0|\xff{8})", re.DOTALL), "xz"),
)
#: The start of a .lzma file with any options: too vague without its name, but nothing that a text may begin with.
_LZMA_START = re.compile(rb"[\0-\xe0][\0-\xff]{4}(?:[\0-\xff]{5}\0{3}|\xff{8})", re.DOTALL)
#: Bytes that decide about the codec.
_LONGEST_START = 16
#: The largest window of zstd that is accepted: 2 GiB, as written by ``zstd --long=31``.
_ZSTD_OPTIONS = {int(zstd.DecompressionParameter.window_log_max): 31}
_LZMA_MEMORY = 1 << 30
#: Compressed bytes that are read at a time, and given to a decoder at a time.
_READ, _STEP = 1 << 20, 1 << 14
#: Decompressed bytes that are requested at a time: what follows a fault in them is lost with them.
_PIECE = 1 << 16

#: Formats that are not read, by their first bytes, with what to do with them.
_UNPACK, _CONVERT = "unpack it, and give the file inside", "convert it to Parquet or JSON lines"
_RECOMPRESS = "decompress it, or compress it as .gz or .zst"
_FOREIGN: tuple[tuple[bytes, str, str], ...] = (
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", _UNPACK),
    (b"PK\x03\x04", "a zip archive", _UNPACK),
    (b"PK\x05\x06", "an empty zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\x04\x22\x4d\x18", "compressed with lz4", _RECOMPRESS),
    (b"\x02\x21\x4c\x18", "compressed with lz4", _RECOMPRESS),
    (b"\xff\x06\x00\x00sNaPpY", "compressed with snappy", _RECOMPRESS),
    (b"\x82SNAPPY\x00", "compressed with snappy", _RECOMPRESS),
    (b"\x89LZO\x00\r\n\x1a\n", "compressed with lzop", _RECOMPRESS),
    (b"LZIP\x01", "compressed with lzip", _RECOMPRESS),
    (b"LZIP\x00", "compressed with lzip", _RECOMPRESS),
    (b"\x1f\x9d", "compressed with compress", _RECOMPRESS),
    (b"filedesc://", "an ARC file", "convert it to WARC, for instance with warcio recompress"),
    (b"Obj\x01", "an Avro file", _CONVERT),
    (b"SQLite format 3\x00", "an SQLite database", _CONVERT),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", _CONVERT),
    (b"%PDF-", "a PDF file", "extract its text first"),
)
#: Formats that begin with letters, as a text may, and hold zeros soon after, as no text does.
_FOREIGN_LETTERS: tuple[tuple[bytes, str, str], ...] = (
    (b"ORC", "an ORC file", _CONVERT),
    (b"PARE", "an encrypted Parquet file", "decrypt it first"),
)
#: Formats without such bytes, by the ends of names.
_FOREIGN_SUFFIXES = {".br": "brotli", ".snappy": "snappy", ".sz": "snappy", ".lzo": "lzop", ".lz4": "lz4"}
_TAR_MARK, _TAR_MARK_AT = b"ustar", 257
_ZEROS = re.compile(rb"\0*+")


def codec_of_bytes(head: bytes, name: str = "") -> Codec | None:
    """Return the codec that the first bytes show, those of a file named .lzma more readily; None if they show none."""
    if name.lower().endswith(".lzma") and _LZMA_START.match(head):
        return "xz"
    return next((codec for start, codec in _STARTS if start.match(head)), None)


def is_archive(head: bytes) -> bool:
    """Return whether the first bytes are those of a tar archive, which may otherwise look like a text."""
    return head[_TAR_MARK_AT : _TAR_MARK_AT + len(_TAR_MARK)] == _TAR_MARK


def foreign_format(head: bytes, codec: Codec | None, name: str) -> str:
    """Return the end of a sentence about a file that is not read, ``is a zip archive: unpack it``; empty if it may be.

    Parameters
    ----------
    head : bytes
        The first bytes of the content, decompressed.
    codec : str or None
        The codec with which the file is compressed.
    """
    inside = f"is compressed with {codec}, and inside it " if codec is not None else ""
    second = codec_of_bytes(head)
    if second is not None and codec is not None:
        return f"is compressed twice ({second} in {codec}): decompress it once"
    if is_archive(head):
        return f"{inside}is a tar archive: {_UNPACK}"
    for start, noun, way_out in _FOREIGN + (_FOREIGN_LETTERS if b"\0" in head else ()):
        if head.startswith(start):
            return f"{inside}is {noun}, which is not read: {way_out}"
    suffix = name[name.rfind(".") :].lower() if "." in name else ""
    if codec is None and suffix in _FOREIGN_SUFFIXES:
        return f"is compressed with {_FOREIGN_SUFFIXES[suffix]} by its name, which is not read: {_RECOMPRESS}"
    return ""


class DamagedCompression(Exception):
    """Compressed data that is cut short or damaged."""


class _Decoder(Protocol):
    """A decoder of one stream, member or frame, such as ``bz2.BZ2Decompressor``."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """A decoder of one gzip member."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._is_full = False

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._inner.unconsumed_tail and not self._is_full

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # A full piece may have more behind it, even if all input is consumed.
        self._is_full = len(piece) == max_length
        return piece


def _decoder(codec: Codec) -> Any:
    if codec == "gzip":
        return _Gzip()
    if codec == "zstd":
        return zstd.ZstdDecompressor(options=_ZSTD_OPTIONS)
    return bz2.BZ2Decompressor() if codec == "bz2" else lzma.LZMADecompressor(memlimit=_LZMA_MEMORY)


class Decompressed:
    """The content of a compressed file: all its members, streams or frames, one after the other.

    Memory is bounded whatever the file holds, apart from the window that the codec itself needs.
    """

    def __init__(self, raw: Any, codec: Codec) -> None:
        self._raw, self._codec = raw, codec
        self._input, self._place = b"", 0
        self._decoder: _Decoder | None = None
        self._is_first = True

    def read(self) -> bytes:
        """Return the next bytes, at most 64 KiB; none at the end.

        Raises ``DamagedCompression`` where the data is cut short or damaged.
        """
        try:
            return self._next()
        except (zlib.error, zstd.ZstdError, lzma.LZMAError, OSError, ValueError, MemoryError, EOFError) as error:
            raise DamagedCompression(" ".join(str(error).split()) or "it takes more memory than there is") from None

    def _next(self) -> bytes:
        while True:
            if self._decoder is None:
                if not self._find_member():
                    return b""
                self._decoder = _decoder(self._codec)
            decoder, step = self._decoder, b""
            if decoder.needs_input:
                if self._place == len(self._input) and not self._fill():
                    raise DamagedCompression("it ends too early")
                step = self._input[self._place : self._place + _STEP]
                self._place += len(step)
            piece = decoder.decompress(step, _PIECE)
            if decoder.eof:
                # What it has not used is the end of this step.
                self._place -= len(decoder.unused_data)
                self._decoder = None
            if piece:
                return piece

    def _find_member(self) -> bool:
        """Go to the next member, and return whether there is one. Zeros after a member are padding."""
        if not self._is_first:
            while self._place < len(self._input) or self._fill():
                padding = _ZEROS.match(self._input, self._place)
                self._place = self._place if padding is None else padding.end()
                if self._place < len(self._input):
                    break
        while len(self._input) - self._place < _LONGEST_START and self._fill():
            pass
        start = self._input[self._place : self._place + _LONGEST_START]
        if not self._is_first and start and codec_of_bytes(start) != self._codec:
            raise DamagedCompression("what follows the compressed data is not compressed")
        self._is_first = False
        return bool(start)

    def _fill(self) -> bool:
        data = self._raw.read(_READ)
        self._input, self._place = self._input[self._place :] + data, 0
        return bool(data)
