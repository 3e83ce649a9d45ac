"""Finding input files, and detecting their formats by their first bytes and names."""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
import select
import stat
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, BinaryIO, Literal
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs as arrow_fs

from neardup.documents.compression import CODEC_OF_SUFFIX, Codec, codec_of_bytes
from neardup.errors import InputError, option
from neardup.files import is_full

Kind = Literal["parquet", "arrow", "arrow stream", "jsonl", "csv", "text", "warc", "mbox", "mail"]
Quoting = Literal["standard", "none"]

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
#: Beside web pages in a folder, these are parts of the pages.
_ASSET_SUFFIXES = frozenset({".css", ".js", ".mjs", ".cjs", ".scss", ".less"})
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

_MAGIC_KINDS: tuple[tuple[bytes, Kind], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow stream"),
    (b"WARC/1.", "warc"),
    (b"WARC/0.", "warc"),
)
#: The first line of a mailbox, with a time of day and a year, and a field after it. No part can backtrack.
MAILBOX_LINE = (
    rb"From (?=[^\n]{0,300}\n)(?=[^\n]*\d:\d\d)(?=[^\n]*(?<!\d)[12]\d{3}(?!\d))[^\n]*+\n"
    rb"(?:>From |[!-9;-~]++[ \t]*+:)"
)
_MAILBOX = re.compile(MAILBOX_LINE)
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


def delimiter_of(header: bytes, name: str, has_quotes: bool = True) -> str:
    """Return the delimiter of a header row: the most frequent of comma, tab, semicolon and bar outside quotes.

    The suffix of the name breaks ties.
    """
    bare = b"".join(header.split(b'"')[::2]) if has_quotes else header
    default = b"\t" if suffixes(name)[0] == ".tsv" else b","
    marks = sorted((b",", b"\t", b";", b"|"), key=lambda mark: (-bare.count(mark), mark != default))
    return marks[0].decode() if bare.count(marks[0]) else default.decode()


#: A folder with this file is an index (``neardup.index``); its files are no documents.
INDEX_MANIFEST = "neardup-index.json"
_NOT_DATA = frozenset({"Thumbs.db"})
#: Names of files and folders that begin so are no data, as in Spark, Arrow and Hive.
_HIDDEN = ("_", ".")
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
    quoting: Quoting = "standard"
    """How quotes are read, if it is delimited text."""
    max_document: int | None = None
    """The bytes of the largest document that is wanted."""
    partitions: tuple[tuple[str, str | None], ...] = ()
    """Names and values of the columns that the names of its folders state, for a table."""

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
            for uri in _expand_uri(name):
                with input_errors(uri):
                    filesystem, path = arrow_fs.FileSystem.from_uri(uri)
                files.extend(_files_at(filesystem, path, uri, notes, spool))
        else:
            for path in _expand_glob(name, notes):
                files.extend(_files_at(arrow_fs.LocalFileSystem(), os.path.abspath(path), path, notes, spool))
    if not files:
        raise InputError("no input was given: name a file, a folder, a glob, a URI, or - for standard input")
    return _with_partitions(files)


#: The name of a folder for rows without a value.
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"


def stated_partitions(name: str) -> dict[str, str | None]:
    """Return the columns that the folders right above a file state, as ``lang=en/date=2024-01-01/`` does."""
    found: list[tuple[str, str | None]] = []
    for step in reversed(strip_query(name).split("/")[:-1]):
        key, mark, value = step.partition("=")
        if not key or not mark:
            break
        found.append((unquote(key), None if value == _NULL_PARTITION else unquote(value)))
    return dict(reversed(found))


def _with_partitions(files: list[InputFile]) -> list[InputFile]:
    """Give all files the columns that the folders of any state; a file has nulls for those of others."""
    stated = [stated_partitions(file.name) for file in files]
    names = dict.fromkeys(key for values in stated for key in values)
    if not names:
        return files
    return [
        replace(file, partitions=tuple((key, values.get(key)) for key in names))
        for file, values in zip(files, stated, strict=True)
    ]


def _spool_stdin(spool: str) -> InputFile:
    path = os.path.join(spool, "stdin")
    if os.path.exists(path):
        raise InputError("- is given twice: standard input can be read only once")
    if sys.stdin is None:
        raise InputError("- is standard input, which is closed: pipe something into the command, or name a file")
    with input_errors(STDIN):
        return _spool(sys.stdin.buffer, path, STDIN)


def _spool(stream: BinaryIO, path: str, name: str) -> InputFile:
    """Copy a stream to a file. Lines are compressed, because they are read in order."""
    head = stream.read(_HEAD)
    is_compressed = codec_of_bytes(head) is not None or any(head.startswith(magic) for magic, _ in _MAGIC_KINDS)
    try:
        with pa.OSFile(path, "wb") as file:
            spool = file if is_compressed or len(head) < _HEAD else pa.CompressedOutputStream(file, "zstd")
            with spool:
                while head:
                    spool.write(head)
                    head = stream.read(_HEAD)
    except OSError as error:
        if not is_full(error):
            raise
        reason = error.strerror or "no space"
        raise InputError(
            f"{name} does not fit into {tempfile.gettempdir()} ({reason}): free some space there, or set TMPDIR to a "
            "larger place"
        ) from None
    status = os.stat(path)
    return InputFile(arrow_fs.LocalFileSystem(), path, name, status.st_size, status.st_mtime_ns, is_pipe=True)


def _expand_glob(name: str, notes: list[str]) -> list[str]:
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    with input_errors(name):
        matches = sorted(_distinct(glob.glob(name, recursive=True)))
    if not matches:
        raise InputError(f"{name} matches no file: quote the pattern, and check the folder it starts from")
    files = [match for match in matches if not os.path.isdir(match)]
    if files and len(files) < len(matches) and "**" not in name:
        notes.append(_left_out(name, len(files), "file", len(matches) - len(files), "folder"))
    return files or matches


def _distinct(names: list[str]) -> list[str]:
    """Return names without those that lead to the same place by other links to a folder; the shortest stays."""
    found: dict[str, str] = {}
    for name in sorted(names, key=lambda name: (name.count("/"), name)):
        folder, base = os.path.split(name)
        found.setdefault(os.path.join(os.path.realpath(folder), base), name)
    return list(found.values())


def _expand_uri(name: str) -> list[str]:
    """Return the URIs of the files that a URI with a pattern matches; its query says how to reach the place."""
    place, mark, query = name.partition("?")
    steps = place.split("/")
    first = next((number for number, step in enumerate(steps) if number > 2 and re.search(r"[*\[]", step)), None)
    if first is None:
        return [name]
    base = "/".join(steps[:first])
    with input_errors(name):
        filesystem, path = arrow_fs.FileSystem.from_uri(base + mark + query)
        infos = list(_infos_in(filesystem, path, name))
    pattern = re.compile("/".join(map(_pattern_of_step, steps[first:])).replace(".*/", "(?:.*/)?"), re.DOTALL)
    prefix = path.rstrip("/") + "/"
    found = (info.path.removeprefix(prefix) for info in infos)
    matches = sorted(relative for relative in found if pattern.fullmatch(relative))
    if not matches:
        raise InputError(f"{name} matches no file: quote the pattern, and check the folder it starts from")
    return [f"{base}/{relative}{mark}{query}" for relative in matches]


def _pattern_of_step(step: str) -> str:
    """Return the regular expression of one step of a pattern; ``**`` stands for any number of steps."""
    if step == "**":
        return ".*"
    parts = re.split(r"(\*|\[!?[^\]]+\])", step)
    return "".join(
        "[^/]*" if part == "*" else part.replace("[!", "[^") if part.startswith("[") else re.escape(part)
        for part in parts
    )


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


#: Seconds to wait until somebody opens a pipe to write to it.
_PATIENCE = 10.0


def _spool_pipe(path: str, name: str, spool: str) -> InputFile:
    """Copy a pipe, such as ``/dev/fd/63``, to a temporary file."""
    handle, copy = tempfile.mkstemp(dir=spool)
    os.close(handle)
    with input_errors(name):
        kind = os.stat(path).st_mode
        if not stat.S_ISFIFO(kind) and not os.path.samefile(path, os.devnull):
            raise InputError(f"{name} is neither a file, a folder nor a pipe: give one of these, or - for stdin")
        pipe = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
        with pipe:
            if stat.S_ISFIFO(kind):
                _await_writer(pipe.fileno(), name)
            os.set_blocking(pipe.fileno(), True)
            return _spool(pipe, copy, name)


def _await_writer(handle: int, name: str) -> None:
    """Wait until somebody writes to a pipe; raise InputError if nobody opens it for a while."""
    waiting = select.poll()
    waiting.register(handle, select.POLLIN)
    end = time.monotonic() + _PATIENCE
    while not waiting.poll(50):
        # Without a writer there is nothing to read; with one that has not written yet, reading would block.
        try:
            os.read(handle, 1)
        except BlockingIOError:
            return
        if time.monotonic() > end:
            raise InputError(f"{name} is a pipe that nobody writes to: start its writer first, or give a file")


def _infos_in(filesystem: Any, path: str, name: str) -> Iterator[Any]:
    """Yield the files below a folder; each folder once, however many links lead to it."""
    with input_errors(name):
        if not isinstance(filesystem, arrow_fs.LocalFileSystem):
            infos = filesystem.get_file_info(arrow_fs.FileSelector(path, recursive=True, allow_not_found=True))
            yield from (info for info in infos if info.type == arrow_fs.FileType.File)
            return
        seen: set[tuple[int, int]] = set()
        folders, links = deque([path]), deque[str]()
        # Links come last, so that a folder has its own name where it has one below this folder.
        while folders or links:
            folder = folders.popleft() if folders else links.popleft()
            status = os.stat(folder)
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            for info in filesystem.get_file_info(arrow_fs.FileSelector(folder)):
                if info.type == arrow_fs.FileType.File:
                    yield info
                elif info.type == arrow_fs.FileType.Directory:
                    (links if os.path.islink(info.path) else folders).append(info.path)


def _files_in(filesystem: Any, path: str, name: str, notes: list[str]) -> list[InputFile]:
    prefix = path.rstrip("/") + "/"
    files: list[InputFile] = []
    hidden = 0
    for info in _infos_in(filesystem, path, name):
        relative = info.path.removeprefix(prefix)
        if any(step.startswith(_HIDDEN) for step in relative.split("/")) or info.base_name in _NOT_DATA:
            hidden += 1
            continue
        file_name = f"{strip_query(name).rstrip('/')}/{relative}"
        files.append(InputFile(filesystem, info.path, file_name, info.size or 0, info.mtime_ns, relative, name))
    indexes = tuple(
        file.relative.removesuffix(INDEX_MANIFEST)
        for file in files
        if file.relative.rpartition("/")[2] == INDEX_MANIFEST
    )
    if "" in indexes:
        commands = option("--against of dedup or pairs, or to similar", "against=, nd.query or nd.neighbors")
        hint = option("give it to", "give nd.open_index of it to")
        raise InputError(f"{name} is an index, which is no input here: {hint} {commands}")
    files.sort(key=lambda file: file.relative)
    documents = [file for file in files if not file.relative.startswith(indexes)]
    data = [file for file in documents if file.is_in_maildir or suffixes(file.relative)[0] in INPUT_KIND_OF_SUFFIX]
    texts = [file for file in documents if suffixes(file.relative)[0] in TEXT_SUFFIXES]
    if any(map(is_page_name, (file.relative for file in texts))):
        texts = [file for file in texts if suffixes(file.relative)[0] not in _ASSET_SUFFIXES]
    chosen = data or texts
    if not chosen:
        raise InputError(
            f"{name} holds no document: a folder needs data files (.parquet, .jsonl, .csv, .warc, .eml ...) "
            "or texts (.txt, .md, .html, .py, no suffix ...)"
        )
    noun = "data file" if data else "text file"
    note = _left_out(name, len(chosen), noun, len(files) - len(chosen), "other") if len(chosen) < len(files) else ""
    if hidden:
        plural = "s" if hidden > 1 else ""
        skipped = f"left out {hidden} file{plural} of which the name or a folder begins with _ or ."
        note = f"{note}; {skipped}" if note else f"{name}: {skipped}"
    notes += [note] if note else []
    return [replace(file, folder=path) for file in chosen]
