"""The file formats, told by their first bytes and then by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["parquet", "arrow", "arrow stream", "jsonl", "csv", "text", "folder"]
Codec = Literal["gzip", "zstd", "bz2"]

KIND_OF_SUFFIX: dict[str, Kind] = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "csv",
}
CODEC_OF_SUFFIX: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
PAGE_SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
TEXT_SUFFIXES = PAGE_SUFFIXES | {"", ".txt", ".text", ".md", ".rst", ".xml", ".tex", ".log"}
KNOWN_SUFFIXES = ".parquet, .jsonl, .ndjson, .json, .csv, .tsv, .arrow, .feather, .ipc, .txt and .md"

_MAGIC_CODECS: tuple[tuple[bytes, Codec], ...] = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
)
_MAGIC_KINDS: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow stream"),
)
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Format:
    """What a file holds and how it is compressed."""

    kind: Kind
    codec: Codec | None = None


def suffixes(name: str) -> tuple[str, Codec | None]:
    """Return the suffix that names the format, in lower case, and the codec that a last suffix names."""
    base = name.rstrip("/").rpartition("/")[2].lower()
    stem, dot, last = base.rpartition(".")
    codec = CODEC_OF_SUFFIX.get(dot + last) if stem else None
    if codec is not None:
        stem, dot, last = stem.rpartition(".")
    return (dot + last if stem and dot else ""), codec


def format_of_name(name: str) -> Format | None:
    """Format that the file's name promises; None when it promises none."""
    suffix, codec = suffixes(name)
    kind = KIND_OF_SUFFIX.get(suffix)
    if kind is None and suffix in TEXT_SUFFIXES:
        kind = "text"
    return None if kind is None else Format(kind, codec)


def is_data_name(name: str) -> bool:
    """Whether the name is that of a table rather than of a text."""
    return suffixes(name)[0] in KIND_OF_SUFFIX


def is_page_name(name: str) -> bool:
    """Whether the name is that of a web page."""
    return suffixes(name)[0] in PAGE_SUFFIXES


def codec_of_bytes(head: bytes) -> Codec | None:
    """Codec that the first bytes show."""
    return next((codec for magic, codec in _MAGIC_CODECS if head.startswith(magic)), None)


def kind_of_bytes(head: bytes, named: Kind | None) -> Kind | None:
    """Kind of the (decompressed) first bytes; where they do not tell, what the name promised.

    Parameters
    ----------
    head : bytes
        The first bytes of the content, some kilobytes.
    named : Kind or None
        What the name promised; None makes a line of JSON or a header row enough.
    """
    magic = next((kind for magic, kind in _MAGIC_KINDS if head.startswith(magic)), None)
    if magic is not None:
        return magic
    if named is not None:
        return named
    start = head.removeprefix(_BOM).lstrip()
    if start.startswith(b"{"):
        return "jsonl"
    header = start.partition(b"\n")[0]
    if b"\0" not in header and any(mark in header for mark in (b",", b"\t", b";", b"|")):
        return "csv"
    return None


def delimiter_of(header: bytes, name: str) -> str:
    """Delimiter of a header row: the commonest of comma, tab, semicolon and bar outside quotes.

    The name's suffix decides where there is a tie.
    """
    bare = b"".join(header.split(b'"')[::2])
    default = b"\t" if suffixes(name)[0] == ".tsv" else b","
    marks = sorted((b",", b"\t", b";", b"|"), key=lambda mark: (-bare.count(mark), mark != default))
    return marks[0].decode() if bare.count(marks[0]) else default.decode()
