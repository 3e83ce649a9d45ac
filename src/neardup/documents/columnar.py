"""Inputs of columns: Parquet, Arrow IPC and tables in memory, read group by group.

A group (a Parquet row group, a record batch, a slice of a table) is read as a whole or rejected as a whole.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.documents.inputs import Codec, Found, Kind, one_line, readable
from neardup.documents.records import (
    CUT_SHORT,
    UNREADABLE_GROUP,
    Broken,
    Chunk,
    Raw,
    Wanted,
    as_bytes,
    ids_from,
    is_text_type,
    joined_texts,
    lengths_of,
    readable_texts,
    single,
)
from neardup.documents.streams import Span, spooled
from neardup.errors import InputError

TARGET = 12 << 20
READ_FAULTS = (OSError, pa.ArrowException, MemoryError, ValueError, KeyError, IndexError, OverflowError)


@dataclass(frozen=True, slots=True)
class Group:
    """A run of rows that is read together: how many, and their bytes on disk."""

    rows: int
    size: int


class ColumnarSource:
    """Pass one and pass two over groups of rows; a span limits pass one to some of the groups.

    ``damage`` says what broke the file that they come from, ``cut`` whether groups may be read without the others.
    """

    def __init__(
        self,
        found: Found,
        data: TableColumns | ParquetColumns | ArrowColumns,
        noun: str,
        damage: Broken | None = None,
        span: Span | None = None,
        *,
        cut: bool = False,
    ) -> None:
        self.found, self.files = found, [found]
        self.data = data
        self._schema = _without_views(data.schema)
        self._types = {field.name: field.type for field in self._schema}
        self._noun = noun
        self._damage, self._span, self._cut = damage, span, cut

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns."""
        return self._types

    def cuts(self, size: int) -> list[Span]:
        """Return the groups of about so many bytes that may be read by themselves; none where there is but one."""
        found, begin, total = list[Span](), 0, 0
        for number, group in enumerate(self.data.groups if self._cut else ()):
            total += group.size
            if total >= size or number == len(self.data.groups) - 1:
                found.append((begin, number + 1))
                begin, total = number + 1, 0
        return found if len(found) > 1 else []

    def chunks(self, wanted: Wanted) -> Generator[Chunk, None, None]:
        """Pass one: the wanted columns."""
        groups = self.data.groups
        begin, end = self._span or (0, len(groups))
        first = sum(group.rows for group in groups[:begin])
        for number in range(begin, end):
            group = groups[number]
            try:
                tables = [_plain(table) for table in self.data.read(number, wanted.names)]
                if sum(table.num_rows for table in tables) != group.rows:
                    raise ValueError(f"it holds another number of rows than the {group.rows} it promises")
            except READ_FAULTS as error:
                yield self._unreadable(number, group, first, error)
            else:
                yield from self._chunks(tables, group, wanted)
            first += group.rows
        if self._damage is not None:
            rest = 0 if groups else self.found.size
            yield Chunk(0, pa.array([], pa.large_binary()), broken=[self._damage], consumed=rest)

    def _unreadable(self, number: int, group: Group, first: int, error: BaseException) -> Chunk:
        detail = f"{self._noun} {number}, rows {first}-{first + group.rows - 1}: {one_line(error, 120)}"
        broken = [Broken(0, UNREADABLE_GROUP, group.rows, detail=detail)]
        empty = np.zeros(0, np.int64)
        return Chunk(group.rows, pa.array([], pa.large_binary()), positions=empty, broken=broken, consumed=group.size)

    @staticmethod
    def _chunks(tables: list[pa.Table], group: Group, wanted: Wanted) -> Iterator[Chunk]:
        told = 0
        done = 0
        for table in tables:
            done += table.num_rows
            share = group.size * done // max(group.rows, 1)
            consumed, told = share - told, share
            texts = joined_texts([as_bytes(single(table.column(name))) for name in wanted.texts])
            ids = ids_from(single(table.column(wanted.id))) if wanted.id else None
            order = _ordered(single(table.column(wanted.order))) if wanted.order else None
            yield Chunk(table.num_rows, texts, ids, order, consumed=consumed)

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Give the schema of the input, whatever rows are kept."""
        del keep
        return self._schema

    def _kept(self, keep: np.ndarray) -> Iterator[tuple[int, pa.Table, np.ndarray]]:
        first = 0
        for number, group in enumerate(self.data.groups):
            if keep[first : first + group.rows].any():
                row = first
                try:
                    for table in self.data.read(number, None):
                        plain = _plain(table)
                        yield row, plain, keep[row : row + plain.num_rows]
                        row += plain.num_rows
                    if row - first != group.rows:
                        raise ValueError(f"it holds another number of rows than the {group.rows} it promises")
                except READ_FAULTS as error:
                    raise InputError(
                        f"{self.found.name}: {self._noun} {number} cannot be read in full although its texts "
                        f"can ({one_line(error, 120)}); repair the file or drop the damaged column"
                    ) from None
            first += group.rows

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: the kept rows as tables of this schema, in order."""
        for _, table, mask in self._kept(keep):
            try:
                kept = table if mask.all() else table.filter(pa.array(mask))
            except pa.ArrowException as error:
                raise InputError(
                    f"{self.found.name}: Arrow cannot choose rows of one of its columns ({one_line(error)}); "
                    "drop that column or give it a simpler type"
                ) from None
            yield fitted(kept, schema, self.found.name)

    def records(self, keep: np.ndarray) -> Iterator[Raw]:
        """Give the kept rows one by one as JSON."""
        for first, table, mask in self._kept(keep):
            for position in np.flatnonzero(mask).tolist():
                yield Raw(first + position, None, json_record(table.slice(position, 1)))


def _ordered(values: Any) -> Any:
    """Return the values of the order column; one that is not UTF-8 costs no document, as a text or an id does."""
    return readable_texts(values) if is_text_type(values.type) else values


def _plain(table: pa.Table) -> pa.Table:
    plain = _without_views(table.schema)
    return table if plain.equals(table.schema) else table.cast(plain)


def _without_views(schema: pa.Schema) -> pa.Schema:
    """Replace views, for which Arrow has few functions, by plain strings."""
    return pa.schema([field.with_type(_without_view(field.type)) for field in schema], schema.metadata)


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_view(kind.value_type)))
    if pa.types.is_large_list(kind):
        return pa.large_list(kind.value_field.with_type(_without_view(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_view(field.type)) for field in kind])
    return kind


def fitted(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """Bring a table to a wider schema: absent columns become null."""
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
    """Return the one row of a table as a JSON object; bytes that are not UTF-8 as base64."""
    values: dict[str, Any] = {}
    for name, column in zip(row.schema.names, row.columns, strict=True):
        if is_text_type(column.type):
            value = as_bytes(single(column))[0].as_py()
            try:
                values[name] = value if value is None else value.decode()
            except UnicodeDecodeError:
                values[f"{name}_base64"] = base64.b64encode(value).decode()
        else:
            values[name] = column[0].as_py()
    return json.dumps(values, ensure_ascii=False, default=plain_json).encode(errors="replace")


def plain_json(value: Any) -> Any:
    """JSON for what JSON does not know: dates as ISO 8601, bytes as base64, the rest as its words."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


class TableColumns:
    """A table in memory, in slices of some megabytes of text."""

    def __init__(self, table: pa.Table) -> None:
        self.schema = table.schema
        self.groups: list[Group] = []
        self._table, self._bounds = table, [0]

    def cut(self, texts: Sequence[str]) -> None:
        """Cut the table by the bytes of its columns of texts, once these are known."""
        self._bounds = _slices(self._table.num_rows, self._table.select(list(texts)))
        self.groups = [Group(stop - start, 0) for start, stop in pairwise(self._bounds)]

    def read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Return the slice."""
        start, stop = self._bounds[group : group + 2]
        table = self._table if names is None else self._table.select(names)
        yield table.slice(start, stop - start)


def _slices(rows: int, data: Any) -> list[int]:
    """Return where slices of about the target's bytes of a table or column begin, and where the last one ends."""
    # Not nbytes, which older Arrow refuses for views; what a slice leaves unused counts too, which does no harm.
    step = max(1, min(rows, rows * TARGET // max(data.get_total_buffer_size(), 1)))
    return [*range(0, rows, step), rows] if rows else [0]


def text_bytes(table: pa.Table, names: Sequence[str]) -> int:
    """Bytes of text in columns."""
    return sum(int(lengths_of(as_bytes(chunk)).sum()) for name in names for chunk in table.column(name).chunks)


class UnreadableFile(Exception):
    """A file that shows no row at all."""


def columnar_source(
    found: Found, kind: Kind, codec: Codec | None, spool: str, span: Span | None = None
) -> ColumnarSource:
    """Open a Parquet or Arrow file, or row groups of it; a compressed one is decompressed to a temporary file first.

    Damaged footers and schemas raise UnreadableFile.
    """
    detail = ""
    with readable(found.name):
        if codec is None:
            file = found.filesystem.open_input_file(found.path)
        else:
            path, detail = spooled(found, codec, spool)
            file = pa.OSFile(path)
    damage = Broken(0, CUT_SHORT, 0, detail=detail) if detail else None
    try:
        if kind == "parquet":
            return ColumnarSource(found, ParquetColumns(file, found.size), "row group", damage, span, cut=codec is None)
        return ColumnarSource(found, ArrowColumns(file, kind, found.size), "record batch", damage)
    except READ_FAULTS as error:
        file.close()
        raise UnreadableFile(one_line(OSError(detail) if detail else error)) from None


class ParquetColumns:
    """Row groups of a Parquet file."""

    def __init__(self, file: Any, size: int) -> None:
        self._file = pq.ParquetFile(file)
        metadata = self._file.metadata
        self.schema: pa.Schema = self._file.schema_arrow
        self._metadata = metadata
        rows = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
        if sum(rows) != metadata.num_rows or any(count < 0 for count in rows):
            raise ValueError("its footer contradicts itself about the number of rows")
        # A row takes a bit at least, save in a constant column; a damaged footer may claim any number.
        if metadata.num_rows > (size << 20):
            raise ValueError(f"its footer claims {metadata.num_rows} rows in {size} bytes")
        total = max(sum(rows), 1)
        self.groups = [Group(count, size * count // total) for count in rows]

    @property
    def codec(self) -> str:
        """Compression codec of the first column, as Arrow names it."""
        if not self._metadata.num_row_groups or not self._metadata.num_columns:
            return "zstd"
        # Reading first: where metadata are damaged this raises, and asking for them ends the process.
        next(self._file.iter_batches(batch_size=1, row_groups=[0], columns=self.schema.names[:1]), None)
        codec = str(self._metadata.row_group(0).column(0).compression).lower()
        return "none" if codec == "uncompressed" else codec

    def read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Read a row group in batches of about the target's bytes."""
        whole = self._metadata.row_group(group)
        # All columns are counted, since Arrow ends the process over damaged statistics of a single one.
        rows = max(1, min(whole.num_rows, whole.num_rows * TARGET // max(whole.total_byte_size, 1)))
        for batch in self._file.iter_batches(batch_size=rows, row_groups=[group], columns=names):
            yield pa.Table.from_batches([batch])


class ArrowColumns:
    """Record batches of an Arrow file or stream."""

    def __init__(self, file: Any, kind: Kind, size: int) -> None:
        if kind == "arrow stream":
            with pa.ipc.open_stream(file) as reader:
                self.schema: pa.Schema = reader.schema
                self._batches: Any = list(reader)
            counts = [batch.num_rows for batch in self._batches]
        else:
            self._batches = None
            self._file = pa.ipc.open_file(file)
            self.schema = self._file.schema
            counts = self._counts()
        total = max(sum(counts), 1)
        self.groups = [Group(count, size * count // total) for count in counts]

    def _counts(self) -> list[int]:
        counts: list[int] = []
        for number in range(self._file.num_record_batches):
            try:
                counts.append(self._file.get_batch(number).num_rows)
            except READ_FAULTS:
                counts.append(0)
        return counts

    def read(self, group: int, names: list[str] | None) -> Iterator[pa.Table]:
        """Read a record batch in slices of about the target's bytes."""
        batch = self._batches[group] if self._batches is not None else self._file.get_batch(group)
        batch.validate()
        table = pa.Table.from_batches([batch])
        table = table if names is None else table.select(names)
        for column in table.columns:
            for chunk in column.chunks:
                _refuse_wild_offsets(chunk)
        for start, stop in pairwise(_slices(table.num_rows, table)):
            yield table.slice(start, stop - start)


def _refuse_wild_offsets(array: Any) -> None:
    """Refuse offsets and indices that point outside: Arrow trusts those of its files.

    Texts are checked as bytes, for whether they are UTF-8 is looked at later, row by row.
    """
    kind = array.type
    if pa.types.is_dictionary(kind) and is_text_type(kind):
        _refuse_wild_offsets(array.dictionary)
        span = pc.min_max(array.indices).as_py()
        if span["max"] is not None and not 0 <= span["min"] <= span["max"] < len(array.dictionary):
            raise ValueError("a dictionary index points outside its dictionary")
    elif pa.types.is_string_view(kind):
        array.view(pa.binary_view()).validate(full=True)
    elif is_text_type(kind):
        as_bytes(array).validate(full=True)
    else:
        array.validate(full=True)
