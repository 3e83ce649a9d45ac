"""The file formats, told by their first bytes and then by their names."""

from __future__ import annotations

import glob
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Literal

import pyarrow as pa
from pyarrow import fs as arrow_fs

from neardup.errors import InputError, option

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


def place_of(name: str) -> str:
    """Return a name without what a URI says behind a question mark: how its place is reached."""
    return name.partition("?")[0] if "://" in name else name


def suffixes(name: str) -> tuple[str, Codec | None]:
    """Return the suffix that names the format, in lower case, and the codec that a last suffix names."""
    base = place_of(name).rstrip("/").rpartition("/")[2].lower()
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
    """Tell the kind from the first (decompressed) kilobytes; where they do not show it, the name's promise counts.

    Without a promise, a line of JSON or a header row is enough.
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


#: The file that makes a folder an index (``neardup.index``), whose files are no documents.
INDEX_MANIFEST = "neardup-index.json"
_NOT_DATA = frozenset({"_SUCCESS", "_metadata", "_common_metadata", "Thumbs.db"})
STDIN = "standard input"
#: Bytes that are read at a time; what is shorter is not worth compressing.
_HEAD = 1 << 20


@dataclass(frozen=True, slots=True)
class Found:
    """A file that was found: how to open it, what to call it, and what it looked like then."""

    filesystem: Any
    path: str
    name: str
    size: int
    mtime: int | None
    relative: str = ""
    """Path below the folder it was found in; empty for a file that was named itself."""
    folder: str = ""
    """The folder it was found in."""

    def refuse_if_changed(self) -> None:
        """Raise InputError when size or time of change differ from what they were."""
        with readable(self.name):
            info = self.filesystem.get_file_info(self.path)
        if (info.size, info.mtime_ns) != (self.size, self.mtime):
            raise InputError(
                f"{self.name} changed while it was being read: the second pass needs the bytes of the "
                "first; run again once nothing writes to it"
            )


@contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn what the filesystem raises into one sentence about ``name``."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{name} does not exist: give a file, folder, glob or URI that does") from None
    except PermissionError:
        raise InputError(f"{name} may not be read by this user: change its permissions") from None
    except (OSError, pa.ArrowException, UnicodeError, MemoryError, ValueError) as error:
        raise InputError(f"{name} cannot be read: {one_line(error)}") from None
    except ImportError as error:
        raise InputError(
            f"{name} needs a package that is not installed ({one_line(error)}): hf:// needs neardup[hf]"
        ) from None


def one_line(error: BaseException, limit: int = 200) -> str:
    """Message of an error on one line, shortened."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= limit else words[: limit - 3] + "..."


def discover(inputs: Iterable[str | os.PathLike[str]], notes: list[str], spool: str) -> list[Found]:
    """Find the files of all inputs, folders and globs in the order of their names.

    Inputs that can be read only once are copied to the spool folder. ``notes`` gets a sentence for each choice that the
    user may want to know of.
    """
    found: list[Found] = []
    for given in inputs:
        name = os.fspath(given)
        if name == "-":
            found.append(_spooled_stdin(spool))
        elif "://" in name:
            found.extend(_of_uri(name, notes, spool))
        else:
            for path in _globbed(name):
                found.extend(_of_path(arrow_fs.LocalFileSystem(), os.path.abspath(path), path, notes, spool))
    if not found:
        raise InputError("no input was given: name a file, a folder, a glob, a URI, or - for standard input")
    return found


def _spooled_stdin(spool: str) -> Found:
    path = os.path.join(spool, "stdin")
    if os.path.exists(path):
        raise InputError("- is given twice: standard input can be read only once")
    with readable(STDIN):
        return _spooled(sys.stdin.buffer, path, STDIN)


def _spooled(stream: BinaryIO, path: str, name: str) -> Found:
    """Copy to a file what can be read once only; lines are compressed, for they are read in order."""
    head = stream.read(_HEAD)
    plain = codec_of_bytes(head) is not None or any(head.startswith(magic) for magic, _ in _MAGIC_KINDS)
    with pa.OSFile(path, "wb") as file:
        spool = file if plain or len(head) < _HEAD else pa.CompressedOutputStream(file, "zstd")
        with spool:
            while head:
                spool.write(head)
                head = stream.read(_HEAD)
    status = os.stat(path)
    return Found(arrow_fs.LocalFileSystem(), path, name, status.st_size, status.st_mtime_ns)


def _of_uri(uri: str, notes: list[str], spool: str) -> list[Found]:
    with readable(uri):
        filesystem, path = arrow_fs.FileSystem.from_uri(uri)
    return _of_path(filesystem, path, uri, notes, spool)


def _globbed(name: str) -> list[str]:
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    with readable(name):
        matches = sorted(glob.glob(name, recursive=True))
    if not matches:
        raise InputError(f"{name} matches no file: quote the pattern, and check the folder it starts from")
    files = [match for match in matches if not os.path.isdir(match)]
    return files or matches


def _of_path(filesystem: Any, path: str, name: str, notes: list[str], spool: str) -> list[Found]:
    with readable(name):
        info = filesystem.get_file_info(path)
    if info.type == arrow_fs.FileType.NotFound:
        raise InputError(f"{name} does not exist: give a file, folder, glob or URI that does")
    if info.type == arrow_fs.FileType.Directory:
        return _of_folder(filesystem, path, name, notes)
    if info.type != arrow_fs.FileType.File:
        return [_spooled_pipe(path, name, spool)]
    return [Found(filesystem, path, name, info.size or 0, info.mtime_ns)]


def _spooled_pipe(path: str, name: str, spool: str) -> Found:
    """Copy a pipe such as ``/dev/fd/63``, which cannot be read twice, to a temporary file."""
    handle, copy = tempfile.mkstemp(dir=spool)
    os.close(handle)
    with readable(name), open(path, "rb") as pipe:
        return _spooled(pipe, copy, name)


def _of_folder(filesystem: Any, path: str, name: str, notes: list[str]) -> list[Found]:
    with readable(name):
        infos = filesystem.get_file_info(arrow_fs.FileSelector(path, recursive=True))
    prefix = path.rstrip("/") + "/"
    files: list[Found] = []
    for info in infos:
        relative = info.path.removeprefix(prefix)
        hidden = any(step.startswith(".") for step in relative.split("/"))
        if info.type == arrow_fs.FileType.File and not hidden and info.base_name not in _NOT_DATA:
            shown = f"{place_of(name).rstrip('/')}/{relative}"
            files.append(Found(filesystem, info.path, shown, info.size or 0, info.mtime_ns, relative, name))
    indexes = tuple(
        file.relative.removesuffix(INDEX_MANIFEST)
        for file in files
        if file.relative.rpartition("/")[2] == INDEX_MANIFEST
    )
    if "" in indexes:
        ways = option("--against of dedup or pairs, to query or to neighbors", "against=, nd.query or nd.neighbors")
        given = option("give it to", "give nd.open_index of it to")
        raise InputError(f"{name} is an index, which is no input here: {given} {ways}")
    files.sort(key=lambda file: file.relative)
    documents = [file for file in files if not file.relative.startswith(indexes)]
    data = [file for file in documents if is_data_name(file.relative)]
    texts = [file for file in documents if suffixes(file.relative)[0] in TEXT_SUFFIXES]
    chosen = data or texts
    if not chosen:
        raise InputError(
            f"{name} holds no document: a folder needs data files (.parquet, .jsonl, .csv, .arrow ...) "
            "or texts (.txt, .md, .html, no suffix)"
        )
    if len(chosen) < len(files):
        kind = "data" if data else "text"
        notes.append(f"{name}: read {len(chosen)} {kind} files and left out {len(files) - len(chosen)} others")
    return [replace(file, folder=path) for file in chosen]
