"""Columnar inputs: Parquet, Arrow IPC and tables in memory, read group by group.

A group (a Parquet row group, a record batch, a slice of a table) is read whole or rejected whole.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.documents.arrays import as_bytes, is_text_type, one_array, plain_array, plain_type
from neardup.documents.column_paths import ColumnPath, find_in_types
from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile, Kind, input_errors, one_line
from neardup.documents.records import (
    Chunk,
    RawRecord,
    ReadOptions,
    Reason,
    RecordFault,
    has_fractions,
    ids_from,
    joined_column,
    lengths_of,
    partitions_beside,
    plain_values,
    readable_texts,
)
from neardup.documents.streams import Span, decompress
from neardup.errors import InputError, quoted

TARGET_BYTES = 12 << 20
#: The decoded bytes of a group up to which it is held in memory as a whole.
_LARGEST_GROUP = 8 * TARGET_BYTES
#: Rows that Parquet decodes at a time: they may be copies of one large value that is stored once.
_MOST_ROWS = 64
#: Rows with fewer bytes are often copies of few values, which are then decoded slice by slice.
_FEW_BYTES = 64
#: A group is refused that has more bytes and is so many times larger than the file that holds it.
_LARGEST_EXPANSION, _EXPANSION = 1 << 30, 200
READ_FAULTS = (OSError, pa.ArrowException, MemoryError, ValueError, KeyError, IndexError, OverflowError)


@dataclass(frozen=True, slots=True)
class Group:
    """Rows that are read together: their number, and their bytes on disk."""

    rows: int
    size: int


class ColumnarSource:
    """A columnar input, or a span of its groups in pass one.

    ``noun`` is what messages call a group, ``damage`` what broke the file, and ``separable`` whether groups can be read
    without the others.
    """

    def __init__(
        self,
        file: InputFile,
        data: TableColumns | ParquetColumns | ArrowColumns,
        noun: str,
        damage: RecordFault | None = None,
        span: Span | None = None,
        *,
        separable: bool = False,
    ) -> None:
        self.file, self.files = file, [file]
        self.data = data
        self.partitions = partitions_beside(file, data.schema.names)
        schema = _stored_schema(data.schema)
        for name in self.partitions:
            schema = schema.append(pa.field(name, pa.large_string()))
        self._schema = schema
        self._types = {field.name: plain_type(field.type) for field in self._schema}
        if len(self._types) < len(self._schema):
            names = self._schema.names
            repeated = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{file.name} has several columns named {quoted(repeated)}: give each its own name")
        self._noun = noun
        self._damage, self._span, self._separable = damage, span, separable

    def columns(self) -> dict[str, pa.DataType]:
        """Return names and types of the columns."""
        return self._types

    def find_column(self, name: str) -> ColumnPath | None:
        """Return the column or path that a name means; None if there is no such."""
        return find_in_types(name, self._types)

    def has_fractions(self, name: str, text: str) -> bool:
        """Return whether a column has doubles that are not whole numbers."""
        return has_fractions(self, name, text)

    def _read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Yield a group in tables, with the columns that the names of folders state at the end."""
        if not self.partitions:
            yield from self.data.read(group, names)
            return
        stored = names
        if names is not None:
            # Without any column of the file the number of rows would be lost.
            stored = [name for name in names if name not in self.partitions] or self.data.schema.names[:1]
        for table in self.data.read(group, stored):
            for name, value in self.partitions.items():
                if names is None or name in names:
                    values = pa.repeat(pa.scalar(value, pa.large_string()), table.num_rows)
                    table = table.append_column(name, values)
            yield table

    def _path(self, name: str) -> ColumnPath:
        path = self.find_column(name)
        if path is None:
            raise InputError(f"{self.file.name} has no column {name!r}: name one that every input has")
        return path

    def cuts(self, size: int) -> list[Span]:
        """Return spans of about ``size`` bytes that can be read separately; none if there would be only one."""
        spans, begin, total = list[Span](), 0, 0
        for number, group in enumerate(self.data.groups if self._separable else ()):
            total += group.size
            if total >= size or number == len(self.data.groups) - 1:
                spans.append((begin, number + 1))
                begin, total = number + 1, 0
        return spans if len(spans) > 1 else []

    def chunks(self, options: ReadOptions) -> Generator[Chunk, None, None]:
        """Pass one: yield the chosen columns."""
        groups = self.data.groups
        begin, end = self._span or (0, len(groups))
        first = sum(group.rows for group in groups[:begin])
        roots = list(dict.fromkeys(self._path(name).root for name in options.names)) if groups else []
        for number in range(begin, end):
            group = groups[number]
            try:
                tables = self._whole_group(number, roots)
            except READ_FAULTS as error:
                yield self._unreadable_chunk(number, group, first, error)
            else:
                yield from self._chunks(tables, group, options)
            first += group.rows
        if self._damage is not None:
            rest = 0 if groups else self.file.size
            yield Chunk(0, pa.array([], pa.large_binary()), faults=[self._damage], bytes_read=rest)

    def _whole_group(self, number: int, names: list[str]) -> Iterable[pa.Table]:
        """Return the tables of a group, all of which can be read; a large group is read again as they are used."""
        tables: list[pa.Table] | None = []
        rows = size = 0
        for table in self._read(number, names):
            rows += table.num_rows
            size += table.get_total_buffer_size()
            if tables is not None and size <= _LARGEST_GROUP:
                tables.append(table)
            else:
                tables = None
        if rows != self.data.groups[number].rows:
            raise ValueError(f"it has another number of rows than the {self.data.groups[number].rows} that it declares")
        return self._read(number, names) if tables is None else tables

    def _unreadable_chunk(self, number: int, group: Group, first: int, error: BaseException) -> Chunk:
        detail = f"{self._noun} {number}, rows {first}-{first + group.rows - 1}: {one_line(error, 120)}"
        faults = [RecordFault(0, Reason.UNREADABLE_GROUP, group.rows, detail=detail)]
        empty = np.zeros(0, np.int64)
        nothing = pa.array([], pa.large_binary())
        return Chunk(group.rows, nothing, positions=empty, faults=faults, bytes_read=group.size)

    def _chunks(self, tables: Iterable[pa.Table], group: Group, options: ReadOptions) -> Iterator[Chunk]:
        text_paths = [self._path(name).as_text() for name in options.texts]
        rows = reported = 0
        for table in tables:
            rows += table.num_rows
            share = group.size * rows // max(group.rows, 1)
            bytes_read, reported = share - reported, share
            texts = joined_column([as_bytes(path.of_array(one_array(table.column(path.root)))) for path in text_paths])
            ids = ids_from(self._values(table, options.id)) if options.id else None
            order = _order_values(self._values(table, options.order)) if options.order else None
            yield Chunk(table.num_rows, texts, ids, order, bytes_read=bytes_read)

    def _values(self, table: pa.Table, name: str) -> Any:
        path = self._path(name)
        return path.of_array(one_array(table.column(path.root)))

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Return the schema of the input, whatever rows are kept."""
        del keep
        return self._schema

    def _kept_parts(self, keep: np.ndarray) -> Iterator[tuple[int, pa.Table, np.ndarray]]:
        first = 0
        for number, group in enumerate(self.data.groups):
            if keep[first : first + group.rows].any():
                row = first
                try:
                    for table in self._read(number, None):
                        plain = self._stored_table(table)
                        yield row, plain, keep[row : row + plain.num_rows]
                        row += plain.num_rows
                    if row - first != group.rows:
                        raise ValueError(f"it has another number of rows than the {group.rows} that it declares")
                except READ_FAULTS as error:
                    raise InputError(
                        f"{self.file.name}: {self._noun} {number} cannot be read in full although its texts "
                        f"can ({one_line(error, 120)}); repair the file or drop the damaged column"
                    ) from None
            first += group.rows

    def _stored_table(self, table: pa.Table) -> pa.Table:
        """Return a table in the types of ``schema``."""
        if table.schema.equals(self._schema):
            return table
        columns = [
            column if column.type == field.type else plain_array(column)
            for column, field in zip(table.columns, self._schema, strict=True)
        ]
        return pa.table(columns, schema=self._schema)

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: yield the kept rows in order, as tables of this schema."""
        for _, table, mask in self._kept_parts(keep):
            try:
                kept = table if mask.all() else table.filter(pa.array(mask))
            except pa.ArrowException as error:
                raise InputError(
                    f"{self.file.name}: Arrow cannot choose rows of one of its columns ({one_line(error)}); "
                    "drop that column or give it a simpler type"
                ) from None
            yield fit_table(kept, schema, self.file.name)

    def records(self, keep: np.ndarray) -> Iterator[RawRecord]:
        """Yield the kept rows one by one as JSON."""
        for first, table, mask in self._kept_parts(keep):
            for position in np.flatnonzero(mask).tolist():
                yield RawRecord(first + position, None, json_record(table.slice(position, 1)))


def _order_values(values: Any) -> Any:
    """Return the values of the order column; unlike a text or an id, a value that is not UTF-8 rejects no document."""
    return readable_texts(values) if is_text_type(values.type) else values


def _stored_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema of types that Arrow can choose rows of and that all formats can hold; extensions stay."""
    types = [field.type if isinstance(field.type, pa.BaseExtensionType) else plain_type(field.type) for field in schema]
    return pa.schema([field.with_type(kind) for field, kind in zip(schema, types, strict=True)], schema.metadata)


def fit_table(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """Return a table in a wider schema; absent columns are null."""
    if table.schema.equals(schema):
        return table.replace_schema_metadata(schema.metadata)
    columns = []
    for field in schema:
        if field.name in table.schema.names:
            column = table.column(field.name)
            try:
                columns.append(column if column.type == field.type else column.cast(field.type))
            except pa.ArrowException as error:
                raise InputError(
                    f"{name}: column {field.name!r} of type {column.type} does not fit {field.type} "
                    f"({one_line(error)}); give the column one type in all inputs"
                ) from None
        else:
            columns.append(pa.nulls(table.num_rows, field.type))
    return pa.table(columns, schema=schema)


def json_record(row: pa.Table) -> bytes:
    """Return the only row of a table as a JSON object; bytes that are not UTF-8 as base64."""
    values: dict[str, Any] = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if is_text_type(column.type):
            value = as_bytes(one_array(column))[0].as_py()
            try:
                values[name] = value if value is None else value.decode()
            except UnicodeDecodeError:
                values[f"{name}_base64"] = base64.b64encode(value).decode()
        else:
            [values[name]] = plain_values(column)
    return json.dumps(values, ensure_ascii=False, default=json_value).encode(errors="replace")


def json_value(value: Any) -> Any:
    """Return a value for JSON: dates as ISO 8601, bytes as base64, anything else as ``str`` writes it."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class TableColumns:
    """A table in memory, in slices of a few megabytes of text."""

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self.groups: list[Group] = []
        self._table, self._bounds = table, [0]

    def cut(self, columns: Sequence[str]) -> None:
        """Cut the table into slices by the bytes of the columns that hold its texts."""
        self._bounds = _slices(self._table.select(list(dict.fromkeys(columns))))
        self.groups = [Group(stop - start, 0) for start, stop in pairwise(self._bounds)]

    def read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Yield the slice."""
        start, stop = self._bounds[group : group + 2]
        table = self._table if names is None else self._table.select(names)
        yield table.slice(start, stop - start)


def _slices(table: pa.Table) -> list[int]:
    """Return where slices of about ``TARGET_BYTES`` of a table begin, decoded, and where the last one ends."""
    if not table.num_rows:
        return [0]
    texts = [column for column in table.columns if is_text_type(column.type)]
    # Not nbytes, which older Arrow refuses for views; that unused bytes of buffers count, too, does no harm.
    size = table.get_total_buffer_size()
    if not any(pa.types.is_dictionary(column.type) for column in texts):
        # Rows of any size are in memory already.
        step = max(1, min(table.num_rows, table.num_rows * TARGET_BYTES // max(size, 1)))
        return [*range(0, table.num_rows, step), table.num_rows]
    weights = np.full(table.num_rows, size // table.num_rows, np.int64)
    for column in texts:
        weights += np.concatenate([_decoded_lengths(chunk) for chunk in column.chunks])
    totals = np.cumsum(weights)
    bounds = [0]
    while bounds[-1] < table.num_rows:
        before = int(totals[bounds[-1] - 1]) if bounds[-1] else 0
        stop = int(np.searchsorted(totals, before + TARGET_BYTES, side="right"))
        bounds.append(max(stop, bounds[-1] + 1))
    return bounds


def _decoded_lengths(array: Any) -> np.ndarray:
    """Return the bytes of each value of an array of any text type, those of a dictionary without decoding it."""
    if not pa.types.is_dictionary(array.type):
        return lengths_of(as_bytes(array))
    lengths = pa.array(lengths_of(as_bytes(array.dictionary)))
    taken: np.ndarray = pc.fill_null(lengths.take(array.indices), 0).to_numpy(zero_copy_only=False)
    return taken


class UnreadableFile(Exception):
    """A file of which no row can be read."""


def columnar_source(
    file: InputFile, kind: Kind, codec: Codec | None, spool: str, span: Span | None = None
) -> ColumnarSource:
    """Open a Parquet or Arrow file, or a span of its row groups; a compressed one is decompressed to the spool first.

    Damaged footers and schemas raise UnreadableFile.
    """
    detail = ""
    with input_errors(file.name):
        if codec is None:
            opened = file.filesystem.open_input_file(file.path)
        else:
            path, detail = decompress(file, codec, spool)
            opened = pa.OSFile(path)
    damage = RecordFault(0, Reason.DAMAGED_COMPRESSION, 0, detail=detail) if detail else None
    try:
        if kind == "parquet":
            return ColumnarSource(
                file, ParquetColumns(opened, file.size), "row group", damage, span, separable=codec is None
            )
        return ColumnarSource(file, ArrowColumns(opened, kind, file.size), "record batch", damage)
    except READ_FAULTS as error:
        opened.close()
        raise UnreadableFile(one_line(OSError(detail) if detail else error)) from None


class ParquetColumns:
    """The row groups of a Parquet file."""

    def __init__(self, file: Any, size: int) -> None:
        self._source, self._size = file, size
        self._file = pq.ParquetFile(file, page_checksum_verification=True)
        metadata = self._file.metadata
        self.schema: pa.Schema = self._file.schema_arrow
        self._metadata = metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        # Early writers left the total at 0; a larger one than that of the row groups says that some are lost.
        if metadata.num_rows not in (0, sum(rows)) or any(count < 0 for count in rows):
            raise ValueError("its footer contradicts itself about the number of rows")
        # A row takes at least a bit, save in a constant column; a damaged footer may claim any number.
        if sum(rows) > (size << 20):
            raise ValueError(f"its footer claims {sum(rows)} rows in {size} bytes")
        total = max(sum(rows), 1)
        self.groups = [Group(count, size * count // total) for count in rows]

    @cached_property
    def _encoded_file(self) -> Any:
        """The file with texts as they are stored: values of a dictionary are not decoded."""
        kinds = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
        texts = [field.name for field in self.schema if field.type in kinds]
        return pq.ParquetFile(
            self._source, metadata=self._metadata, read_dictionary=texts, page_checksum_verification=True
        )

    @property
    def codec(self) -> str:
        """The compression codec of the first column, as Arrow names it."""
        if not self._metadata.num_row_groups or not self._metadata.num_columns:
            return "zstd"
        # A read comes first: it raises for damaged metadata, where a look at them would end the process.
        next(self._file.iter_batches(batch_size=1, row_groups=[0], columns=self.schema.names[:1]), None)
        codec = str(self._metadata.row_group(0).column(0).compression).lower()
        return "none" if codec == "uncompressed" else codec

    def read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Yield a row group in tables of about ``TARGET_BYTES``, decoded."""
        whole = self._metadata.row_group(group)
        # By the size of all columns: for a single one Arrow ends the process if its statistics are damaged.
        size = whole.total_byte_size
        if size > max(_LARGEST_EXPANSION, _EXPANSION * self._size):
            raise ValueError(f"it claims {size} bytes, in a file of {self._size}")
        rows = max(1, min(whole.num_rows, whole.num_rows * TARGET_BYTES // max(size, 1)))
        done = 0
        if size < _FEW_BYTES * whole.num_rows:
            try:
                for batch in self._encoded_file.iter_batches(batch_size=rows, row_groups=[group], columns=names):
                    for table in self._decoded([batch]):
                        yield table
                        done += table.num_rows
                return
            except READ_FAULTS:
                # Not every page is damaged that Arrow cannot read so: texts of the delta encodings come decoded only.
                pass
        pending, held = list[pa.RecordBatch](), 0
        for batch in self._file.iter_batches(batch_size=min(rows, _MOST_ROWS), row_groups=[group], columns=names):
            new = batch.slice(min(done, batch.num_rows))
            done -= batch.num_rows - new.num_rows
            if new.num_rows:
                pending.append(new)
                held += new.nbytes
            if held >= TARGET_BYTES:
                yield from self._decoded(pending)
                pending, held = [], 0
        if pending:
            yield from self._decoded(pending)

    def _decoded(self, batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
        table = pa.Table.from_batches(batches)
        schema = pa.schema([self.schema.field(name) for name in table.column_names], self.schema.metadata)
        for start, stop in pairwise(_slices(table)):
            part = table.slice(start, stop - start)
            yield part if part.schema.equals(schema) else part.cast(schema)


class ArrowColumns:
    """The record batches of an Arrow file or stream."""

    def __init__(self, file: Any, kind: Kind, size: int) -> None:
        self._source, self._is_stream = file, kind == "arrow stream"
        self._last: pa.RecordBatch = None
        _check_decoded_sizes(file, size, is_stream=self._is_stream)
        if self._is_stream:
            self._rewind()
            counts = [batch.num_rows for batch in self._stream]
            self._rewind()
            self.schema: pa.Schema = self._stream.schema
        else:
            self._file = pa.ipc.open_file(file)
            self.schema = self._file.schema
            counts = self._counts()
        total = max(sum(counts), 1)
        self.groups = [Group(count, size * count // total) for count in counts]

    def _rewind(self) -> None:
        """Begin a stream anew: its batches can only be read one after the other."""
        self._source.seek(0)
        self._stream, self._next = pa.ipc.open_stream(self._source), 0

    def _batch(self, group: int) -> pa.RecordBatch:
        if not self._is_stream:
            return self._file.get_batch(group)
        if group < self._next - 1:
            self._rewind()
        while self._next <= group:
            self._last = None
            self._last, self._next = self._stream.read_next_batch(), self._next + 1
        return self._last

    def _counts(self) -> list[int]:
        counts: list[int] = []
        for number in range(self._file.num_record_batches):
            try:
                counts.append(self._file.get_batch(number).num_rows)
            except READ_FAULTS:
                counts.append(0)
        return counts

    def read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Yield a record batch in slices of about ``TARGET_BYTES``."""
        batch = self._batch(group)
        batch.validate()
        table = pa.Table.from_batches([batch])
        table = table if names is None else table.select(names)
        for column in table.columns:
            for chunk in column.chunks:
                _check_offsets(chunk)
        for start, stop in pairwise(_slices(table)):
            yield table.slice(start, stop - start)


def _check_decoded_sizes(file: Any, size: int, *, is_stream: bool) -> None:
    """Raise if a batch of an Arrow file or stream claims to be far larger than the whole, once it is decompressed.

    Arrow takes the memory at once, and shows these sizes nowhere, so they are read from the messages.
    """
    # A file is a stream between marks.
    file.seek(0 if is_stream else 8)
    try:
        messages = pa.ipc.MessageReader.open_stream(file)
        for message in iter(messages.read_next_message, None):
            claimed = _decoded_size(memoryview(message.metadata), message.body)
            if claimed > max(_LARGEST_EXPANSION, _EXPANSION * size):
                raise ValueError(f"it claims {claimed} bytes in a batch, in a file of {size}")
    except (StopIteration, EOFError, IndexError, OSError, struct.error, pa.ArrowException):
        # What is damaged is named where it is read.
        pass
    file.seek(0)


def _decoded_size(metadata: memoryview, body: Any) -> int:
    """Return the bytes of a message's buffers, decompressed, by the lengths at their beginnings; 0 if it has none.

    ``metadata`` is a table ``Message`` of Arrow's format (Message.fbs), in the encoding of FlatBuffers.
    """

    def field(table: int, number: int) -> int:
        """Return the place of a field of a table; 0 if it is left out."""
        layout = table - struct.unpack_from("<i", metadata, table)[0]
        (length,) = struct.unpack_from("<H", metadata, layout)
        at = 4 + 2 * number
        offset = struct.unpack_from("<H", metadata, layout + at)[0] if at < length else 0
        return table + offset if offset else 0

    def follow(place: int) -> int:
        return int(place + struct.unpack_from("<I", metadata, place)[0])

    message = follow(0)
    kind, header = field(message, 1), field(message, 2)
    if body is None or not kind or metadata[kind] not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return 0
    batch = follow(header)
    if metadata[kind] == _DICTIONARY_BATCH:
        batch = follow(field(batch, 1))
    if not field(batch, 2) or not field(batch, 3):
        return 0
    buffers = follow(field(batch, 2))
    (count,) = struct.unpack_from("<I", metadata, buffers)
    places = (struct.unpack_from("<qq", metadata, buffers + 4 + 16 * number) for number in range(count))
    # -1: the buffer is not compressed.
    return sum(max(*struct.unpack_from("<q", body, place), length) for place, length in places if length >= 8)


#: Kinds of messages in Arrow's format.
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3


def _check_offsets(array: Any) -> None:
    """Raise if offsets or indices point outside, which Arrow does not check in its files.

    Texts are checked as bytes, because UTF-8 is checked later, row by row.
    """
    kind = array.type
    if pa.types.is_dictionary(kind) and is_text_type(kind):
        _check_offsets(array.dictionary)
        span = pc.min_max(array.indices).as_py()
        if span["max"] is not None and not 0 <= span["min"] <= span["max"] < len(array.dictionary):
            raise ValueError("a dictionary index points outside its dictionary")
    elif pa.types.is_string_view(kind):
        array.view(pa.binary_view()).validate(full=True)
    elif is_text_type(kind):
        as_bytes(array).validate(full=True)
    else:
        array.validate(full=True)
