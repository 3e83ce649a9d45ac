"""Files that are there in full or not at all: written beside their place and renamed into it."""

from __future__ import annotations

import errno
import gzip
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Self

import pyarrow as pa

from neardup.documents.discover import one_line
from neardup.documents.formats import KIND_OF_SUFFIX, TEXT_SUFFIXES, suffixes
from neardup.errors import OutputError, option
from neardup.wholefile import Unfinished

_PIECE = 1 << 20
_OUTPUTS = ".parquet, .jsonl, .ndjson, .csv, .tsv, .arrow or .feather, with .gz or .zst behind it to compress"


@contextmanager
def writable(name: str) -> Iterator[None]:
    """Turn what the filesystem raises while writing into one sentence about ``name``."""
    try:
        yield
    except BrokenPipeError:
        raise OutputError(f"{name} was closed by its reader before everything was written") from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message = f"{name} cannot be written: the disk is full or a limit is reached; free some space"
        elif isinstance(error, PermissionError) or error.errno == errno.EROFS:
            message = f"{name} may not be written by this user: choose another folder"
        else:
            message = f"{name} cannot be written: {one_line(error)}"
        raise OutputError(message) from None
    except (pa.ArrowException, UnicodeError) as error:
        raise OutputError(f"{name} cannot hold these columns: {one_line(error)}; choose another format") from None


class OutputFile:
    """A binary file that appears under its name only by `commit`; ``-`` is standard output.

    Parameters
    ----------
    path : str
        Its name; a last suffix .gz or .zst compresses it.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        self._target = None if path == "-" else os.path.realpath(path)
        self._unfinished: Unfinished | None = None
        self._held: list[bytes | memoryview] = []
        self._size = 0
        with writable(self.name):
            self._base: Any = sys.stdout.buffer if self._target is None else self._beside(self._target)
        codec = None if path == "-" else suffixes(path)[1]
        self._sink: Any = self._base
        if codec == "gzip":
            # A time of 0 and no name: the same content gives the same bytes.
            self._sink = gzip.GzipFile("", "wb", 6, self._base, mtime=0)
        elif codec == "zstd":
            self._sink = pa.CompressedOutputStream(pa.PythonFile(self._base, "w"), "zstd")
        elif codec is not None:
            self._sink = pa.CompressedOutputStream(pa.PythonFile(self._base, "w"), codec)

    def _beside(self, target: str) -> Any:
        self._unfinished = Unfinished.beside(target)
        return os.fdopen(self._unfinished.handle, "wb", closefd=False)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be written; Arrow asks."""
        return self._sink is None

    def writable(self) -> bool:
        """Arrow asks."""
        return True

    def tell(self) -> int:
        """Bytes written so far; Arrow asks."""
        return self._size

    def flush(self) -> None:
        """Do nothing: `commit` flushes."""

    def close(self) -> None:
        """Do nothing: Arrow closes what it wrote to, but only `commit` makes a file."""

    def write(self, data: Any) -> int:
        """Write bytes, in pieces of a fixed size so that compressed bytes do not depend on the calls."""
        view = memoryview(data).cast("B")
        if self._sink is None:
            # Arrow's writers still write their footer when they are collected after a failure.
            return int(view.nbytes)
        with writable(self.name):
            position = 0
            filled = self._size % _PIECE
            while filled + view.nbytes - position >= _PIECE:
                stop = position + _PIECE - filled
                self._held.append(view[position:stop])
                self._sink.write(b"".join(self._held))
                self._held, position, filled = [], stop, 0
            if position < view.nbytes:
                self._held.append(bytes(view[position:]))
        self._size += view.nbytes
        return view.nbytes

    def commit(self) -> None:
        """Write what is held, flush it to the disk and put the file in its place."""
        if self._sink is None:
            return
        try:
            with writable(self.name):
                self._sink.write(b"".join(self._held))
                if self._sink is not self._base:
                    self._sink.close()
                if self._target is None or self._unfinished is None:
                    self._base.flush()
                else:
                    self._base.close()
                    self._unfinished.place(self._target)
        except BaseException:
            self.discard()
            raise
        self._sink = self._base = None

    def discard(self) -> None:
        """Remove what was written."""
        sink, base, self._sink, self._base = self._sink, self._base, None, None
        self._held = []
        if self._unfinished is not None and base is not None:
            for file in (sink, base):
                with suppress(OSError, ValueError, pa.ArrowException):
                    file.close()
            self._unfinished.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.commit()
        else:
            self.discard()


def names_table(output: str) -> bool:
    """Whether the name is that of a table file, by its suffix; ``-`` is one too."""
    return output == "-" or suffixes(output)[0] in KIND_OF_SUFFIX


def check_output(output: str, inputs: Sequence[str | os.PathLike[str]] = (), force: bool = False) -> None:
    """Refuse an output that cannot or must not be written, before any work is done.

    Parameters
    ----------
    output : str
        Name of a file, ``-``, or of a folder where an input is a folder or a text file.
    inputs : sequence of str or path
        What will be read; the output must be none of it, nor inside it.
    force : bool
        Whether an existing file may be replaced.

    Raises
    ------
    OutputError
        With the reason and the way out.
    """
    if output == "-":
        return
    names = [os.fspath(name) for name in inputs]
    if "://" not in output and not names_table(output) and not _may_be_folder(output, names):
        raise OutputError(f"{output} has no suffix that names a format: use {_OUTPUTS}")
    check_place(output, names, force)


def check_place(output: str, inputs: Sequence[str | os.PathLike[str]] = (), force: bool = False) -> None:
    """Refuse a file that cannot or must not be written, whatever format its name says.

    The parameters and errors are those of `check_output`.
    """
    if "://" in output:
        raise OutputError(f"{output} is a URI, but outputs are local files: write to a file and copy it")
    target = os.path.realpath(output)
    for name in inputs:
        _refuse_overlap(output, target, os.fspath(name))
    _refuse_place(output, target, force)


def check_quarantine(path: str, inputs: Sequence[str | os.PathLike[str]]) -> None:
    """Refuse a quarantine file that cannot be written or is not named as JSON lines."""
    check_output(path, inputs, force=True)
    if path != "-" and KIND_OF_SUFFIX.get(suffixes(path)[0]) != "jsonl":
        raise OutputError(f"{path} is to hold broken records, which are written as JSON lines: name it .jsonl")


def _may_be_folder(output: str, inputs: list[str]) -> bool:
    texts = any(os.path.isdir(name) or suffixes(name)[0] in TEXT_SUFFIXES for name in inputs)
    return texts and suffixes(output)[0] == ""


def _refuse_overlap(output: str, target: str, name: str) -> None:
    if name == "-" or "://" in name:
        return
    source = os.path.realpath(name)
    if target == source:
        raise OutputError(f"{output} is an input: write to another file")
    if os.path.isdir(source) and target.startswith(source.rstrip("/") + "/"):
        raise OutputError(f"{output} is inside the input folder {name}: write it elsewhere")


def _refuse_place(output: str, target: str, force: bool) -> None:
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise OutputError(f"{output}: the folder {os.path.dirname(output) or folder} does not exist; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{output}: the folder may not be written by this user; choose another")
    if os.path.isdir(target):
        if names_table(output) or os.listdir(target):
            raise OutputError(f"{output} is a folder that exists: choose a new name")
    elif os.path.exists(target) and not force:
        allowed = option("--force", "force=True")
        raise OutputError(f"{output} exists: choose another name, or allow it to be replaced with {allowed}")
