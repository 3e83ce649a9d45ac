"""Finding input files, and detecting their formats by their first bytes and names."""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO, Literal

import pyarrow as pa
from pyarrow import fs as arrow_fs

from neardup.errors import InputError, option

Kind = Literal["parquet", "arrow", "arrow stream", "jsonl", "csv", "text", "warc", "mbox", "mail"]
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
#: Formats that are read and not written.
INPUT_KIND_OF_SUFFIX: dict[str, Kind] = {
    **KIND_OF_SUFFIX,
    ".warc": "warc",
    ".wet": "warc",
    ".mbox": "mbox",
    ".eml": "mail",
}
CODEC_OF_SUFFIX: dict[str, Codec] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2"}
PAGE_SUFFIXES = frozenset({".html", ".htm", ".xhtml"})
SUBTITLE_SUFFIXES = frozenset({".srt", ".vtt"})
FEED_SUFFIXES = frozenset({".rss", ".atom", ".rdf"})
_PROSE = "txt text md markdown rst adoc asciidoc org tex bib log xml wiki textile po pot sbv ass ssa sub lrc ics vcf"
_SETTINGS = "json5 jsonc yaml yml toml ini cfg conf properties env"
_SOURCE = (
    "py pyi ipynb c h cc cpp cxx hh hpp hxx cs java kt kts scala groovy clj js mjs cjs jsx ts tsx vue svelte css scss "
    "sass less go rs rb php pl pm lua r jl m mm swift dart f f90 f95 for pas hs ml mli fs fsx erl ex exs el lisp scm "
    "sh bash zsh fish ps1 bat cmd sql graphql proto tf gradle cmake mk v sv vhd vhdl asm s diff patch nix zig nim d "
    "tcl awk"
)
#: A file of such a name is one text, whatever is in it.
TEXT_SUFFIXES = (
    PAGE_SUFFIXES
    | SUBTITLE_SUFFIXES
    | FEED_SUFFIXES
    | {"", *(f".{name}" for name in f"{_PROSE} {_SETTINGS} {_SOURCE}".split())}
)
SUFFIX_LIST = (
    ".parquet, .jsonl, .ndjson, .json, .csv, .tsv, .arrow, .feather, .ipc, .warc, .wet, .mbox, .eml, or that of a text "
    "such as .txt, .md, .html, .srt or .py"
)

_MAGIC_CODECS: tuple[tuple[bytes, Codec], ...] = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"BZh", "bz2"),
)
_MAGIC_KINDS: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow stream"),
    (b"WARC/1.", "warc"),
    (b"WARC/0.", "warc"),
)
#: The first line of a mailbox, with a time of day and a year, and a field after it.
_MAILBOX = re.compile(rb"From [^\n]*\d:\d\d[^\n]*\d{4}[^\n]*\n(?:>?From |[!-9;-~]+[ \t]*:)")
#: The path of a mail in a maildir: a unique name that begins with the time.
_MAILDIR = re.compile(r"(?:^|/)(?:cur|new)/\d{9,}[._][^/]+\Z")
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Format:
    """The format of a file, and its compression."""

    kind: Kind
    codec: Codec | None = None


def strip_query(name: str) -> str:
    """Return a name without the query of a URI, which says how to reach the place."""
    return name.partition("?")[0] if "://" in name else name


def suffixes(name: str) -> tuple[str, Codec | None]:
    """Return the suffix of the format, in lower case, and the codec of a last suffix."""
    base = strip_query(name).rstrip("/").rpartition("/")[2].lower()
    stem, dot, last = base.rpartition(".")
    codec = CODEC_OF_SUFFIX.get(dot + last) if stem else None
    if codec is not None:
        stem, dot, last = stem.rpartition(".")
    return (dot + last if stem and dot else ""), codec


def format_of_name(name: str) -> Format | None:
    """Return the format that a file's name says; None if it says none."""
    suffix, codec = suffixes(name)
    kind = INPUT_KIND_OF_SUFFIX.get(suffix)
    if kind is None and suffix in TEXT_SUFFIXES:
        kind = "text"
    return None if kind is None else Format(kind, codec)


def is_page_name(name: str) -> bool:
    """Return whether a name is that of a web page."""
    return suffixes(name)[0] in PAGE_SUFFIXES


def codec_of_bytes(head: bytes) -> Codec | None:
    """Return the codec that the first bytes show; None if they show none."""
    return next((codec for magic, codec in _MAGIC_CODECS if head.startswith(magic)), None)


def kind_of_bytes(head: bytes, named_kind: Kind | None) -> Kind | None:
    """Return the kind that the first (decompressed) kilobytes show, else the one that the name says.

    A text that begins as a mailbox is one. If the name says nothing, the start must be that of a table: see
    ``guessed_kind``.
    """
    magic = next((kind for magic, kind in _MAGIC_KINDS if head.startswith(magic)), None)
    if magic is not None:
        return magic
    if named_kind in ("text", None) and _MAILBOX.match(head):
        return "mbox"
    return named_kind or guessed_kind(head)


#: Rows of a file without a telling name that are looked at.
_PROBED_ROWS = 20
#: The name of a column as people write it, neither a sentence nor markup.
_NAME = re.compile(r"[\w$#](?:[\w .$#/()%+-]|:(?! )){0,59}")


def guessed_kind(head: bytes) -> Kind | None:
    """Return the kind of a file whose name says nothing; None if its start is not that of a table.

    One of the first JSON lines is an object. Delimited text begins with a header row of at least two names, all
    different, and most of the first rows after it have as many fields.
    """
    start = head.removeprefix(_BOM).lstrip()
    if start.startswith(b"{"):
        return "jsonl" if _has_object(start) else None
    if b"\0" in start:
        return None
    delimiter = delimiter_of(start.partition(b"\n")[0], "")
    text = start.decode(errors="replace")
    try:
        rows = list(islice(filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)), _PROBED_ROWS))
    except csv.Error:
        return None
    if not rows:
        return None
    header, *others = rows
    names = {name.strip() for name in header}
    are_names = len(names) == len(header) > 1 and all(map(_NAME.fullmatch, names))
    fitting = sum(len(row) == len(header) for row in others)
    return "csv" if are_names and 2 * fitting >= len(others) else None


def _has_object(start: bytes) -> bool:
    """Return whether one of the first lines is an object of JSON, or the beginning of one longer than what was read."""
    lines = start.split(b"\n", _PROBED_ROWS)[:_PROBED_ROWS]
    if len(lines) == 1:
        return lines[0][1:].lstrip()[:1] in (b'"', b"}")
    return any(_is_object(line) for line in lines)


def _is_object(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def delimiter_of(header: bytes, name: str) -> str:
    """Return the delimiter of a header row: the most frequent of comma, tab, semicolon and bar outside quotes.

    The suffix of the name breaks ties.
    """
    bare = b"".join(header.split(b'"')[::2])
    default = b"\t" if suffixes(name)[0] == ".tsv" else b","
    marks = sorted((b",", b"\t", b";", b"|"), key=lambda mark: (-bare.count(mark), mark != default))
    return marks[0].decode() if bare.count(marks[0]) else default.decode()


#: A folder with this file is an index (``neardup.index``); its files are no documents.
INDEX_MANIFEST = "neardup-index.json"
_NOT_DATA = frozenset({"_SUCCESS", "_metadata", "_common_metadata", "Thumbs.db"})
STDIN, IN_MEMORY = "standard input", "the data in memory"
#: Bytes that are read at a time; shorter inputs are not compressed.
_HEAD = 1 << 20


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file of the input: how to open it, its name, and its size and time of change when it was found."""

    filesystem: Any
    path: str
    name: str
    size: int
    mtime: int | None
    relative: str = ""
    """Path below the folder in which it was found; empty for a file that was named itself."""
    folder: str = ""
    """The folder in which it was found."""
    is_pipe: bool = False
    """Whether it is standard input or another pipe, whose name says nothing without a suffix."""

    @property
    def is_in_maildir(self) -> bool:
        """Whether its place and its name are those of a mail in a maildir."""
        return _MAILDIR.search(self.path) is not None

    def refuse_if_changed(self) -> None:
        """Raise InputError if the size or the time of change differs from when the file was found."""
        with input_errors(self.name):
            info = self.filesystem.get_file_info(self.path)
        if (info.size, info.mtime_ns) != (self.size, self.mtime):
            raise InputError(
                f"{self.name} changed while it was being read: the second pass needs the same bytes as "
                "the first; run again when nothing writes to it"
            )


@contextmanager
def input_errors(name: str) -> Iterator[None]:
    """Turn what a filesystem raises in the block into an InputError about ``name``."""
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
    """Return the message of an error on one line, shortened."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= limit else words[: limit - 3] + "..."


def discover(names: Iterable[str], notes: list[str], spool: str) -> list[InputFile]:
    """Return the files that inputs name; those of a folder or glob are ordered by name.

    Inputs that can be read only once are copied to the spool folder. ``notes`` gets a sentence for each choice that the
    user may want to know.
    """
    files: list[InputFile] = []
    for name in names:
        if name == "-":
            files.append(_spool_stdin(spool))
        elif "://" in name:
            with input_errors(name):
                filesystem, path = arrow_fs.FileSystem.from_uri(name)
            files.extend(_files_at(filesystem, path, name, notes, spool))
        else:
            for path in _expand_glob(name, notes):
                files.extend(_files_at(arrow_fs.LocalFileSystem(), os.path.abspath(path), path, notes, spool))
    if not files:
        raise InputError("no input was given: name a file, a folder, a glob, a URI, or - for standard input")
    return files


def _spool_stdin(spool: str) -> InputFile:
    path = os.path.join(spool, "stdin")
    if os.path.exists(path):
        raise InputError("- is given twice: standard input can be read only once")
    with input_errors(STDIN):
        return _spool(sys.stdin.buffer, path, STDIN)


def _spool(stream: BinaryIO, path: str, name: str) -> InputFile:
    """Copy a stream to a file. Lines are compressed, because they are read in order."""
    head = stream.read(_HEAD)
    is_compressed = codec_of_bytes(head) is not None or any(head.startswith(magic) for magic, _ in _MAGIC_KINDS)
    with pa.OSFile(path, "wb") as file:
        spool = file if is_compressed or len(head) < _HEAD else pa.CompressedOutputStream(file, "zstd")
        with spool:
            while head:
                spool.write(head)
                head = stream.read(_HEAD)
    status = os.stat(path)
    return InputFile(arrow_fs.LocalFileSystem(), path, name, status.st_size, status.st_mtime_ns, is_pipe=True)


def _expand_glob(name: str, notes: list[str]) -> list[str]:
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    with input_errors(name):
        matches = sorted(glob.glob(name, recursive=True))
    if not matches:
        raise InputError(f"{name} matches no file: quote the pattern, and check the folder it starts from")
    files = [match for match in matches if not os.path.isdir(match)]
    if files and len(files) < len(matches) and "**" not in name:
        notes.append(_left_out(name, len(files), "file", len(matches) - len(files), "folder"))
    return files or matches


def _left_out(name: str, read: int, noun: str, others: int, other_noun: str) -> str:
    """Return the note that some files of an input were read and others were not."""
    return (
        f"{name}: read {read} {noun}{'s' if read > 1 else ''} and left out {others} {other_noun}"
        f"{'s' if others > 1 else ''}"
    )


def _files_at(filesystem: Any, path: str, name: str, notes: list[str], spool: str) -> list[InputFile]:
    with input_errors(name):
        info = filesystem.get_file_info(path)
    if info.type == arrow_fs.FileType.NotFound:
        raise InputError(f"{name} does not exist: give a file, folder, glob or URI that does")
    if info.type == arrow_fs.FileType.Directory:
        return _files_in(filesystem, path, name, notes)
    if info.type != arrow_fs.FileType.File:
        return [_spool_pipe(path, name, spool)]
    return [InputFile(filesystem, path, name, info.size or 0, info.mtime_ns)]


def _spool_pipe(path: str, name: str, spool: str) -> InputFile:
    """Copy a pipe, such as ``/dev/fd/63``, to a temporary file."""
    handle, copy = tempfile.mkstemp(dir=spool)
    os.close(handle)
    with input_errors(name), open(path, "rb") as pipe:
        return _spool(pipe, copy, name)


def _files_in(filesystem: Any, path: str, name: str, notes: list[str]) -> list[InputFile]:
    with input_errors(name):
        infos = filesystem.get_file_info(arrow_fs.FileSelector(path, recursive=True))
    prefix = path.rstrip("/") + "/"
    files: list[InputFile] = []
    for info in infos:
        relative = info.path.removeprefix(prefix)
        hidden = any(step.startswith(".") for step in relative.split("/"))
        if info.type == arrow_fs.FileType.File and not hidden and info.base_name not in _NOT_DATA:
            file_name = f"{strip_query(name).rstrip('/')}/{relative}"
            files.append(InputFile(filesystem, info.path, file_name, info.size or 0, info.mtime_ns, relative, name))
    indexes = tuple(
        file.relative.removesuffix(INDEX_MANIFEST)
        for file in files
        if file.relative.rpartition("/")[2] == INDEX_MANIFEST
    )
    if "" in indexes:
        commands = option("--against of dedup or pairs, to query or to neighbors", "against=, nd.query or nd.neighbors")
        hint = option("give it to", "give nd.open_index of it to")
        raise InputError(f"{name} is an index, which is no input here: {hint} {commands}")
    files.sort(key=lambda file: file.relative)
    documents = [file for file in files if not file.relative.startswith(indexes)]
    data = [file for file in documents if file.is_in_maildir or suffixes(file.relative)[0] in INPUT_KIND_OF_SUFFIX]
    texts = [file for file in documents if suffixes(file.relative)[0] in TEXT_SUFFIXES]
    chosen = data or texts
    if not chosen:
        raise InputError(
            f"{name} holds no document: a folder needs data files (.parquet, .jsonl, .csv, .warc, .eml ...) "
            "or texts (.txt, .md, .html, .py, no suffix ...)"
        )
    if len(chosen) < len(files):
        noun = "data file" if data else "text file"
        notes.append(_left_out(name, len(chosen), noun, len(files) - len(chosen), "other"))
    return [replace(file, folder=path) for file in chosen]
