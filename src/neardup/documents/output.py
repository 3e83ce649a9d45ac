"""Writers of JSON lines, CSV, Parquet and Arrow; a file appears when it is complete, or not at all."""

from __future__ import annotations

import gzip
import json
import lzma
import math
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from pyarrow import fs as arrow_fs

from neardup.documents.arrays import as_bytes, is_text_type
from neardup.documents.columnar import json_value
from neardup.documents.inputs import (
    INPUT_KIND_OF_SUFFIX,
    KIND_OF_SUFFIX,
    TEXT_SUFFIXES,
    one_line,
    strip_query,
    suffixes,
)
from neardup.documents.records import lengths_of, plain_values
from neardup.documents.row_groups import ParquetGroups
from neardup.errors import OutputError, option
from neardup.files import PartialOutput, write_error
from neardup.runtime import run_serial, spare_memory, trim_memory

_PIECE = 1 << 20
_SPOOL_NAME = "output"
_UPLOADS = 8
_NOT_FOUND = arrow_fs.FileType.NotFound
_OUTPUT_SUFFIXES = ".parquet, .jsonl, .ndjson, .csv, .tsv, .arrow or .feather, with .gz or .zst behind it to compress"


@contextmanager
def output_errors(name: str) -> Iterator[None]:
    """Turn what a filesystem raises in the block into an OutputError about ``name``."""
    try:
        yield
    except BrokenPipeError:
        raise OutputError(f"{name} was closed by its reader before everything was written") from None
    except OSError as error:
        raise write_error(name, error) from None
    except (pa.ArrowException, UnicodeError) as error:
        raise OutputError(f"{name} cannot hold these columns: {one_line(error)}; choose another format") from None


def is_uri(name: str) -> bool:
    """Return whether a name is a URI, a place on another filesystem."""
    return "://" in name


def remote_place(uri: str) -> tuple[Any, str]:
    """Return the filesystem that a URI names, and the path there.

    Raises ``OutputError`` if PyArrow has no such filesystem.
    """
    if uri.startswith("file:"):
        raise OutputError(f"{uri} is a file of this machine: give its path alone")
    try:
        place: tuple[Any, str] = arrow_fs.FileSystem.from_uri(uri)
    except ImportError as error:
        raise OutputError(
            f"{uri} needs a package that is not installed ({one_line(error)}): hf:// needs neardup[hf]"
        ) from None
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OutputError(f"{uri} names no place to write to: {one_line(error)}") from None
    return place


class _Placement(NamedTuple):
    """A complete output that waits for its place: its name, its file or folder, and what puts it there."""

    name: str
    unfinished: PartialOutput
    place: Callable[[], None]


#: The outputs that wait until all of a command are complete; None if each is put in its place at once.
_WAITING: ContextVar[list[_Placement] | None] = ContextVar("_WAITING", default=None)


@contextmanager
def placed_together(written: list[str]) -> Iterator[None]:
    """Put the outputs of the block in their places when it ends, in order, or none of them if it fails.

    So an output that cannot be written leaves no other behind. Names are appended to ``written`` once they are there.
    """
    waiting: list[_Placement] = []
    token = _WAITING.set(waiting)
    try:
        yield
        _WAITING.set(None)
        while waiting:
            _place(waiting[0])
            written.append(waiting.pop(0).name)
    finally:
        _WAITING.reset(token)
        for placement in waiting:
            placement.unfinished.discard()


@contextmanager
def _placed_alone() -> Iterator[None]:
    """Put outputs of the block in their places at once: those inside a folder that is put there as a whole."""
    token = _WAITING.set(None)
    try:
        yield
    finally:
        _WAITING.reset(token)


def _place_or_wait(placement: _Placement) -> None:
    waiting = _WAITING.get()
    if waiting is None:
        _place(placement)
    else:
        waiting.append(placement)


def _place(placement: _Placement) -> None:
    try:
        with output_errors(placement.name):
            placement.place()
    except BaseException:
        placement.unfinished.discard()
        raise


class OutputFile:
    """A binary file that appears under its name only on `commit`; ``-`` is standard output.

    A last suffix .gz or .zst compresses it. A file for a URI is first written to a temporary file and then uploaded in
    one piece, because an object store shows an object when all of it is there.
    """

    def __init__(self, path: str) -> None:
        self.name = "standard output" if path == "-" else path
        self._remote = remote_place(path) if is_uri(path) else None
        self._target = None if path == "-" else path if self._remote else os.path.realpath(path)
        self._unfinished: PartialOutput | None = None
        self._pending: list[bytes | memoryview] = []
        self._size = 0
        with output_errors(self.name):
            self._base: Any = sys.stdout.buffer if self._target is None else self._open_unfinished(self._target)
        codec = None if path == "-" else suffixes(path)[1]
        self._sink: Any = self._base
        #: Whether nothing more can be written. Arrow asks, and would lose an interrupt that comes inside a property.
        self.closed = False
        if codec == "gzip":
            # With time 0 and no name, the same content gives the same bytes.
            self._sink = gzip.GzipFile("", "wb", 6, self._base, mtime=0)
        elif codec == "xz":
            form = lzma.FORMAT_ALONE if strip_query(path).endswith(".lzma") else lzma.FORMAT_XZ
            self._sink = lzma.LZMAFile(self._base, "wb", format=form)  # noqa: SIM115 (closed in `commit`)
        elif codec is not None:
            self._sink = pa.CompressedOutputStream(pa.PythonFile(self._base, "w"), codec)

    def _open_unfinished(self, target: str) -> Any:
        if self._remote is not None:
            self._unfinished = PartialOutput.temporary_folder()
            return open(os.path.join(self._unfinished.path, _SPOOL_NAME), "wb")
        self._unfinished = PartialOutput.for_target(target)
        return os.fdopen(self._unfinished.handle, "wb", closefd=False)

    def writable(self) -> bool:
        """Return True, for Arrow."""
        return True

    def tell(self) -> int:
        """Return the number of bytes written so far, for Arrow, too."""
        return self._size

    def flush(self) -> None:
        """Do nothing: `commit` flushes."""

    def close(self) -> None:
        """Do nothing: Arrow closes what it writes to, but only `commit` completes a file."""

    def write(self, data: Any) -> int:
        """Write bytes, in pieces of a fixed size, so that compressed bytes do not depend on the calls."""
        view = memoryview(data).cast("B")
        if self.closed:
            # Arrow's writers write their footers even when they are garbage-collected after a failure.
            return int(view.nbytes)
        with output_errors(self.name):
            position = 0
            filled = self._size % _PIECE
            while filled + view.nbytes - position >= _PIECE:
                stop = position + _PIECE - filled
                self._pending.append(view[position:stop])
                self._sink.write(b"".join(self._pending))
                self._pending, position, filled = [], stop, 0
            if position < view.nbytes:
                self._pending.append(bytes(view[position:]))
        self._size += view.nbytes
        return view.nbytes

    def commit(self) -> None:
        """Write what is pending, flush it to the disk and put the file in its place (see ``placed_together``)."""
        if self.closed:
            return
        try:
            with output_errors(self.name):
                self._sink.write(b"".join(self._pending))
                if self._sink is not self._base:
                    self._sink.close()
                if self._unfinished is None:
                    self._base.flush()
                else:
                    self._base.close()
                    self._unfinished.flush()
        except BaseException:
            self.discard()
            raise
        self._sink, self._base, self.closed = None, None, True
        if self._unfinished is not None:
            _place_or_wait(_Placement(self.name, self._unfinished, self._place))

    def _place(self) -> None:
        if self._unfinished is None or self._target is None:
            return
        if self._remote is None:
            self._unfinished.place(self._target)
        else:
            _upload(os.path.join(self._unfinished.path, _SPOOL_NAME), *self._remote)
            self._unfinished.discard()

    def discard(self) -> None:
        """Remove what was written."""
        sink, base, self._sink, self._base, self.closed = self._sink, self._base, None, None, True
        self._pending = []
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


def _upload(path: str, filesystem: Any, place: str) -> None:
    """Copy a file in one call, which a signal cannot interrupt: an abandoned stream would leave a truncated object."""
    arrow_fs.copy_files(path, place, source_filesystem=arrow_fs.LocalFileSystem(), destination_filesystem=filesystem)
    # Arrow does not pass on what a filesystem in Python raises while it closes a file.
    if filesystem.get_file_info(place).size != os.path.getsize(path):
        raise OSError(f"the store accepted the file, but does not have all of it at {place}")


@contextmanager
def folder_at(output: str) -> Iterator[str]:
    """Yield a folder to write into; its files appear together when the block ends, or none if it fails.

    The filesystem of a URI cannot take several files in one step. There all files are complete before the first is
    uploaded, and each appears whole or not at all.
    """
    if not is_uri(output):
        folder = PartialOutput.for_target(os.path.realpath(output), folder=True)
        try:
            with _placed_alone():
                yield folder.path
            folder.flush()
        except BaseException:
            folder.discard()
            raise
        _place_or_wait(_Placement(output, folder, partial(folder.place, os.path.realpath(output))))
        return
    filesystem, place = remote_place(output)
    spool = PartialOutput.temporary_folder()
    files: list[tuple[str, str]] = []
    try:
        with _placed_alone():
            yield spool.path
        for parent, _, names in os.walk(spool.path):
            paths = [os.path.join(parent, name) for name in names]
            files += [(path, f"{place.rstrip('/')}/{os.path.relpath(path, spool.path)}") for path in paths]
        # On the Hub each file is a commit, and two at a time conflict.
        uploads = _UPLOADS if filesystem.type_name in ("s3", "gcs") else 1
        with ThreadPoolExecutor(uploads, thread_name_prefix="neardup-upload") as pool:
            for _ in pool.map(lambda file: _upload(file[0], filesystem, file[1]), files):
                pass
    except BaseException:
        for _, path in files:
            with suppress(OSError):
                filesystem.delete_file(path)
        raise
    finally:
        spool.discard()


def is_table_name(output: str) -> bool:
    """Return whether a name is that of a table file, by its suffix; ``-`` is one, too."""
    return output == "-" or suffixes(output)[0] in KIND_OF_SUFFIX


def is_folder_name(output: str) -> bool:
    """Return whether a name is that of a folder: it ends with a slash, or no suffix names a format."""
    return strip_query(output).endswith("/") or not is_table_name(output)


def check_output(output: str, inputs: Sequence[str | os.PathLike[str]] = (), force: bool = False) -> None:
    """Check, before any work is done, that an output can be written.

    An output is a file, ``-``, or a folder: a name with a slash at its end, or any name if an input is a folder or a
    text file. It must not be an input or be inside one, and replaces an existing file only with ``force``.

    Raises ``OutputError`` if it cannot or must not be written.
    """
    if output == "-":
        return
    names = [os.fspath(name) for name in inputs]
    if suffixes(output)[0] in INPUT_KIND_OF_SUFFIX.keys() - KIND_OF_SUFFIX.keys():
        raise OutputError(f"{output} is of a format that is read and not written: use {_OUTPUT_SUFFIXES}")
    if is_folder_name(output) and not _may_be_folder(output, names):
        raise OutputError(f"{output} has no suffix that names a format: use {_OUTPUT_SUFFIXES}")
    check_place(output, names, force, remote=True)


def check_place(
    output: str, inputs: Sequence[str | os.PathLike[str]] = (), force: bool = False, *, remote: bool = False
) -> None:
    """Check that a file can be written, whatever format its name says.

    The other parameters and errors are those of `check_output`.

    Parameters
    ----------
    remote : bool
        Whether the output may be a URI.
    """
    if is_uri(output) and not remote:
        raise OutputError(f"{output} is a URI, but this output is a local file: name one, and copy it")
    target = _resolved(output)
    for name in [os.fspath(given) for given in inputs]:
        source = _resolved(name)
        if target == source:
            raise OutputError(f"{output} is an input: write to another file")
        if target.startswith(f"{source.rstrip('/')}/"):
            raise OutputError(f"{output} is inside the input folder {name}: write it elsewhere")
    if is_uri(output):
        _check_remote_place(output, force)
    else:
        _check_local_place(output, target, force)


def check_quarantine(path: str, inputs: Sequence[str | os.PathLike[str]]) -> None:
    """Check that a quarantine file can be written and is named as JSON lines."""
    check_output(path, inputs, force=True)
    if path != "-" and KIND_OF_SUFFIX.get(suffixes(path)[0]) != "jsonl":
        raise OutputError(f"{path} is for broken records, which are written as JSON lines: name it .jsonl")


def _may_be_folder(output: str, inputs: list[str]) -> bool:
    has_texts = any(os.path.isdir(name) or suffixes(name)[0] in {*TEXT_SUFFIXES, ".eml"} for name in inputs)
    return strip_query(output).endswith("/") or (has_texts and suffixes(output)[0] == "")


def _resolved(name: str) -> str:
    """Return a path without links, or a URI without its query."""
    return strip_query(name).rstrip("/") if is_uri(name) else os.path.realpath(name)


def _check_remote_place(output: str, force: bool) -> None:
    """Check that a URI can be written, as far as its filesystem tells."""
    filesystem, place = remote_place(output)
    try:
        bucket = place.partition("/")[0]
        if filesystem.type_name in ("s3", "gcs") and filesystem.get_file_info(bucket).type == _NOT_FOUND:
            raise OutputError(f"{output}: there is no bucket {bucket}, or this user may not read it; make it first")
        if is_folder_name(output):
            if filesystem.get_file_info(arrow_fs.FileSelector(place, allow_not_found=True)):
                raise OutputError(f"{output} is a folder that exists: choose a new name")
        elif not force and filesystem.get_file_info(place).type != _NOT_FOUND:
            raise _exists_error(output)
    except (OSError, ValueError, pa.ArrowException) as error:
        raise OutputError(f"{output} cannot be written: {one_line(error)}") from None


def _check_local_place(output: str, target: str, force: bool) -> None:
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise OutputError(f"{output}: the folder {os.path.dirname(output) or folder} does not exist; make it first")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OutputError(f"{output}: the folder may not be written by this user; choose another")
    if os.path.isdir(target):
        if not is_folder_name(output) or os.listdir(target):
            raise OutputError(f"{output} is a folder that exists: choose a new name")
    elif os.path.exists(target) and not force:
        raise _exists_error(output)


def _exists_error(output: str) -> OutputError:
    hint = option("--force", "force=True")
    return OutputError(f"{output} exists: choose another name, or allow it to be replaced with {hint}")


GROUP_ROWS = 65_536
GROUP_BYTES = 128 << 20
#: Rows of a column that Parquet's encoder takes at a time: groups cut at a multiple of it have the same pages.
_ENCODER_ROWS = 1024
#: At most this many groups are encoded at the same time: each takes its size twice.
_MAX_CONCURRENT = 4
_CODECS = frozenset({"none", "snappy", "gzip", "brotli", "zstd", "lz4"})


class Writer:
    """Writes tables of one schema to a file in the format of its suffix; the file appears when it is complete.

    The column ``text`` has long texts, which Parquet stores without dictionary and statistics. ``codec`` is the
    compression in Parquet. ``threads`` encode Parquet; their number does not change the bytes.
    """

    def __init__(
        self, output: str, schema: pa.Schema, text: str | None = None, codec: str = "zstd", threads: int = 1
    ) -> None:
        suffix = ".jsonl" if output == "-" else suffixes(output)[0]
        kind = KIND_OF_SUFFIX[suffix]
        self._file = OutputFile(output)
        self._name = output
        self._format: Any = None
        self.rows = 0
        try:
            with output_errors(output):
                if kind == "parquet":
                    concurrent = _concurrent_groups(threads)
                    parquet = ParquetGroups if concurrent > 1 else _Parquet
                    self._format = _Grouped(
                        parquet(self._file, schema, **_parquet_options(schema, text, codec)), schema, concurrent
                    )
                elif kind == "arrow":
                    self._format = _Grouped(_Arrow(self._file, schema), schema, _concurrent_groups(1))
                elif kind == "csv":
                    self._format = _Csv(self._file, schema, "\t" if suffix == ".tsv" else ",")
                else:
                    self._format = _JsonLines(self._file)
        except BaseException:
            self._file.discard()
            raise

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        with output_errors(self._name):
            self._format.write(table)
        self.rows += table.num_rows

    def close(self) -> None:
        """Finish the file and put it in its place."""
        try:
            with output_errors(self._name):
                self._format.finish()
        except BaseException:
            self.discard()
            raise
        self._file.commit()

    def discard(self) -> None:
        """Remove what was written."""
        if isinstance(self._format, _Grouped):
            self._format.discard()
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def open_writer(output: str, schema: pa.Schema, force: bool = False) -> Writer:
    """Return a writer for tables, after ``check_output``; it leaves nothing behind when it fails or is discarded."""
    check_output(output, (), force)
    return Writer(output, schema)


def write_table(table: pa.Table, output: str, *, force: bool = False) -> None:
    """Write a table in the format of the file's name: Parquet, JSON lines, CSV, TSV or Arrow.

    The same table gives the same bytes.
    """
    with open_writer(output, table.schema, force) as writer:
        writer.write(table)


def _concurrent_groups(threads: int) -> int:
    """Return how many groups may be encoded while the next one is read; 0 if the budget has no room for that."""
    if math.isinf(spare_memory()):
        return min(threads, _MAX_CONCURRENT)
    # Memory of the search may not have been returned yet.
    trim_memory()
    # The group that is read takes as much as one that is encoded: its rows, and their encoding.
    return int(min(threads, _MAX_CONCURRENT, max(spare_memory() // (GROUP_BYTES * 3 // 2) - 1, 0)))


class _Grouped:
    """Cuts rows into groups that depend on the rows alone: by number, and by bytes of text.

    ``concurrent`` groups are encoded in other threads while the rows of the next one are read.
    """

    def __init__(self, inner: _Parquet | ParquetGroups | _Arrow, schema: pa.Schema, concurrent: int) -> None:
        self._inner, self._concurrent = inner, concurrent
        # Encoders take 1,024 values at a time; for lists, those are not rows.
        self._aligned = not isinstance(inner, _Arrow) and not any(pa.types.is_nested(field.type) for field in schema)
        self._pending: list[pa.Table] = []
        self._joined: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0
        self._pool = ThreadPoolExecutor(max(concurrent, 1), thread_name_prefix="neardup-write")
        self._futures = deque[Future[Any]]()

    def write(self, table: pa.Table) -> None:
        weights = np.cumsum(_row_bytes(table))
        start = 0
        while start < table.num_rows:
            before = int(weights[start - 1]) if start else 0
            room = before + GROUP_BYTES - self._bytes
            stop = min(int(np.searchsorted(weights, room)) + 1, start + GROUP_ROWS - self._rows, table.num_rows)
            self._pending.append(table.slice(start, stop - start))
            self._rows += stop - start
            self._bytes += int(weights[stop - 1]) - before
            if self._aligned:
                self._join(_ENCODER_ROWS)
            if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._flush()
            start = stop

    def _join(self, multiple: int) -> None:
        """Join pending rows, up to a multiple of their number; this takes a second copy of them for a while."""
        rows = sum(table.num_rows for table in self._pending) // multiple * multiple
        if rows:
            pending = pa.concat_tables(self._pending)
            self._joined.append(pending.slice(0, rows).combine_chunks())
            self._pending = [pending.slice(rows)] if rows < pending.num_rows else []

    def _flush(self) -> None:
        # Pages do not depend on the boundaries of the pieces.
        self._join(1)
        self._append(max(self._concurrent - 1, 0))
        joined, self._joined = self._joined, []
        pending = pa.concat_tables(joined)
        joined.clear()
        encode = self._inner.encode if self._concurrent > 1 else partial(run_serial, self._inner.encode)
        self._futures.append(self._pool.submit(encode, pending))
        del pending, encode
        if self._concurrent == 0:
            self._append(0)
        self._rows = self._bytes = 0

    def _append(self, remaining: int) -> None:
        """Wait until only ``remaining`` groups are being encoded; errors of their threads are raised here."""
        while len(self._futures) > remaining:
            self._inner.append(self._futures.popleft().result())

    def finish(self) -> None:
        if self._rows:
            self._flush()
        self._append(0)
        self._pool.shutdown()
        self._inner.finish()

    def discard(self) -> None:
        """Wait until nothing more is written."""
        self._pool.shutdown(cancel_futures=True)


def _row_bytes(table: pa.Table) -> np.ndarray:
    total = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        if is_text_type(column.type) and not pa.types.is_dictionary(column.type):
            total += np.concatenate([lengths_of(as_bytes(chunk)) for chunk in column.chunks] or [np.zeros(0, np.int64)])
    return total


def _parquet_options(schema: pa.Schema, text: str | None, codec: str) -> dict[str, Any]:
    codec = codec if codec in _CODECS else "zstd"
    short = [f.name for f in schema if f.name != text and not pa.types.is_nested(f.type)]
    level = 1 if codec == "zstd" else None
    return {"compression": codec, "compression_level": level, "use_dictionary": short, "write_statistics": short}


class _Parquet:
    """Writes a group while encoding it, which takes the least memory."""

    def __init__(self, file: OutputFile, schema: pa.Schema, **options: Any) -> None:
        self._writer = pq.ParquetWriter(file, schema, **options)

    def encode(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)

    def append(self, encoded: None) -> None:
        """Do nothing: the group is in the file already."""

    def finish(self) -> None:
        self._writer.close()


class _Arrow:
    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        # Dictionaries must not change between the batches of an Arrow file, so plain values are written.
        self._schema = pa.schema(
            [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema], schema.metadata
        )
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_file(file, self._schema, options=options)

    def encode(self, table: pa.Table) -> None:
        # Taking every row copies the buffers, without the bytes under nulls and around slices.
        fresh = table.take(pa.array(np.arange(table.num_rows)))
        self._writer.write_table(fresh.cast(self._schema))

    def append(self, encoded: None) -> None:
        """Do nothing: the group is in the file already."""

    def finish(self) -> None:
        self._writer.close()


class _Csv:
    def __init__(self, file: OutputFile, schema: pa.Schema, delimiter: str) -> None:
        self._schema = pa.schema([f.with_type(_csv_type(f.type)) for f in schema])
        options = arrow_csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
        self._writer = arrow_csv.CSVWriter(file, self._schema, write_options=options)

    def write(self, table: pa.Table) -> None:
        columns = [
            column if column.type == field.type else _as_csv(column, field.type)
            for column, field in zip(table.columns, self._schema, strict=True)
        ]
        self._writer.write_table(pa.table(columns, schema=self._schema))

    def finish(self) -> None:
        self._writer.close()


def _csv_type(kind: pa.DataType) -> pa.DataType:
    is_rare = isinstance(kind, pa.BaseExtensionType) or pa.types.is_interval(kind)
    return pa.large_string() if is_rare or pa.types.is_nested(kind) or is_text_type(kind) else kind


def _as_csv(column: Any, kind: pa.DataType) -> Any:
    """Return a column for CSV: texts as large_string; lists, structs, bytes and rare types as JSON has them."""
    if is_text_type(column.type):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            pass
    values = [_csv_value(value) for value in plain_values(column)]
    return pa.chunked_array([pa.array(values, kind)])


def _csv_value(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, list | dict | tuple):
        return json.dumps(value, ensure_ascii=False, default=json_value)
    return value if isinstance(value, str) else str(json_value(value))


class _JsonLines:
    def __init__(self, file: OutputFile) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=4096):
            columns = [plain_values(column) for column in batch.columns]
            rows = zip(*columns, strict=True)
            lines = [json_line(dict(zip(batch.schema.names, row, strict=True))) for row in rows]
            self._file.write("".join(lines).encode(errors="replace"))

    def finish(self) -> None:
        """Do nothing: nothing follows the last line."""


def json_line(row: dict[str, Any]) -> str:
    """Return a row as a line of JSON; dates are ISO 8601, NaN and infinity null."""
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=json_value) + "\n"
    except ValueError:
        return json.dumps(_nullify_nan(row), ensure_ascii=False, default=json_value) + "\n"


def _nullify_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _nullify_nan(inner) for key, inner in value.items()}
    return [_nullify_nan(inner) for inner in value] if isinstance(value, list) else value
