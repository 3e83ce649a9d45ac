"""Inputs of one record a line (or a few): JSON lines and delimited text, read block by block.

Arrow parses a block as a whole. Only if that fails, or gives another number of rows than the block has records, is
this block parsed record by record, so a broken record makes only its own block slower.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.arrays import is_text_type
from neardup.documents.column_paths import ColumnPath
from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile
from neardup.documents.records import (
    Chunk,
    RawRecord,
    ReadOptions,
    Reason,
    RecordFault,
    has_fractions,
    id_array,
    joined_column,
    order_array,
    partitions_beside,
    unified_schema,
)
from neardup.documents.streams import Block, Records, Span, blocks

#: Text, id and order value of a record.
Row = tuple[str, int | str | None, int | float | str | None]


def _may_be_cut(record: bytes, error: RecordError) -> bool:
    """Return whether a broken record may be the beginning of a good one: the last of its file, without a line feed."""
    if record.endswith(b"\n"):
        return False
    if error.reason == Reason.NOT_JSON:
        return record.lstrip().startswith(b"{") and not error.detail.startswith("Extra data")
    if error.reason != Reason.NOT_UTF8:
        return error.reason in (Reason.OPEN_QUOTE, Reason.WRONG_FIELDS)
    try:
        record.decode()
    except UnicodeDecodeError as fault:
        return fault.reason == "unexpected end of data"
    return False


class RecordError(Exception):
    """A record is broken, for this reason."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class Dialect(Protocol):
    """A format of records: JSON lines or delimited text."""

    line_end: bytes
    #: Whether each line feed ends a record, so that a file can be cut at any of them.
    by_lines: bool

    def split(self, data: bytes, is_end: bool) -> Records:
        """Return where the records of some bytes end; at the end of the file all bytes belong to some record."""

    def blank_records(self, block: Block) -> np.ndarray:
        """Return which records are blank lines."""

    def parse_block(self, block: Block, options: ReadOptions) -> dict[str, Any] | None:
        """Parse all records at once: return an array for each column; None if that fails."""

    def parse_record(self, record: str, options: ReadOptions) -> Row:
        """Parse one record, or raise RecordError."""

    def find_column(self, name: str) -> ColumnPath | None:
        """Return the column or path that a name means, as far as is known; None if no record read so far has it."""

    def look_for(self, name: str, block: Block) -> bool:
        """Look for a column or path in the records of a block, and return whether one has it."""

    def schema(self, data: bytes, name: str) -> pa.Schema:
        """Return a schema for good records."""

    def exact_schema(self, schema: pa.Schema, parts: Callable[[], Iterable[bytes]]) -> pa.Schema:
        """Return a schema for the records of all parts in which no number is rounded."""

    def with_members(self, lines: bytes, values: Mapping[str, str | None]) -> bytes:
        """Return good records with further values where they have none of these names; delimited text is unchanged."""

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Return good records as a table of this schema."""


class LineSource:
    """A file of lines, or a span of it; rows and lines are counted from the start of the span.

    The first ``header`` records are no documents. ``types`` are the columns that the start of the file shows.
    ``line_feeds`` counts the line feeds of the last pass. ``encoding`` is that of the file, empty if all of it that was
    read is ASCII.
    """

    def __init__(
        self,
        file: InputFile,
        codec: Codec | None,
        dialect: Dialect,
        header: int,
        types: dict[str, pa.DataType],
        span: Span | None = None,
        encoding: str = "",
    ) -> None:
        self.file, self.files = file, [file]
        self.dialect = dialect
        self.encoding = encoding
        self.line_feeds = 0
        self._span = span
        self._codec = codec
        self._header = header
        self.partitions = partitions_beside(file, list(types))
        self._types = types | dict.fromkeys(self.partitions, pa.large_string())
        self._missing = set[str]()

    def columns(self) -> dict[str, pa.DataType]:
        """Return names and types of the columns, as far as the start of the file shows them."""
        return self._types

    def blocks(self) -> Generator[Block, None, None]:
        """Yield the blocks of the file, without header and blank lines."""
        skip, self.line_feeds = self._header, 0
        found = blocks(self.file, self._codec, self.dialect.split, None, self._span, self.encoding)
        with closing(found) as all_blocks:
            for block in all_blocks:
                self.encoding = self.encoding or block.encoding
                self.line_feeds += block.lines
                is_filled = ~self.dialect.blank_records(block)
                starts, ends = block.starts[is_filled][skip:], block.ends[is_filled][skip:]
                skip -= min(skip, int(np.count_nonzero(is_filled)))
                yield replace(block, starts=starts, ends=ends)

    def find_column(self, name: str) -> ColumnPath | None:
        """Return the column or path that a name means; None if no record of the whole file has it."""
        if name in self.partitions:
            return ColumnPath(name, kind=pa.large_string())
        path = self.dialect.find_column(name)
        if path is None and name not in self._missing:
            with closing(self.blocks()) as all_blocks:
                if any(self.dialect.look_for(name, block) for block in all_blocks):
                    path = self.dialect.find_column(name)
            if path is None:
                self._missing.add(name)
        return path

    def has_fractions(self, name: str, text: str) -> bool:
        """Return whether a column has doubles that are not whole numbers."""
        return has_fractions(self, name, text)

    def cuts(self, size: int) -> list[Span]:
        """Return spans of about ``size`` bytes that can be read separately; none if there would be only one."""
        if self._codec is not None or not self.dialect.by_lines or self.file.size <= size:
            return []
        places = [*range(0, self.file.size, size), self.file.size]
        return list(pairwise(places))

    def chunks(self, options: ReadOptions) -> Generator[Chunk, None, None]:
        """Pass one: yield the chosen columns, a chunk for each block."""
        own = replace(
            options,
            id=None if options.id in self.partitions else options.id,
            order=None if options.order in self.partitions else options.order,
        )
        for block in self.blocks():
            chunk = self._chunk(block, own)
            chunk.ids = self._repeated(options.id, len(chunk.texts)) if options.id != own.id else chunk.ids
            chunk.order = self._repeated(options.order, len(chunk.texts)) if options.order != own.order else chunk.order
            if block.damage:
                # What follows the break is unknown, so no row is counted.
                line = block.line + block.data.count(b"\n")
                chunk.faults.append(
                    RecordFault(
                        chunk.row_count, Reason.DAMAGED_COMPRESSION, 0, line, detail=block.damage, record=block.tail
                    )
                )
            yield chunk

    def _repeated(self, name: str | None, rows: int) -> Any:
        """Return the value that a folder states for each row."""
        return pa.repeat(pa.scalar(self.partitions[name or ""], pa.large_string()), rows)

    def _chunk(self, block: Block, options: ReadOptions) -> Chunk:
        rows = block.starts.size
        good, mask = block.good_part() if block.faults else (block, None)
        columns = self.dialect.parse_block(good, options) if good.starts.size else None
        if columns is None:
            chunk = self._chunk_by_records(block, options)
        else:
            ids = columns[options.id] if options.id else None
            order = columns[options.order] if options.order else None
            chunk = Chunk(rows, joined_column([columns[name] for name in options.texts]), ids, order)
            if mask is not None:
                chunk.positions = np.flatnonzero(mask)
                chunk.faults = self._chunk_by_records(block, options, ~mask).faults
        chunk.bytes_read = block.bytes_read
        lines: list[np.ndarray] = []

        def locate(row: int) -> tuple[int, bytes]:
            if not lines:
                lines.append(block.lines_of_records())
            return int(lines[0][row]), block.record(row)

        chunk.locate = locate
        return chunk

    def _chunk_by_records(self, block: Block, options: ReadOptions, mask: np.ndarray | None = None) -> Chunk:
        good: list[Row] = []
        positions: list[int] = []
        faults: list[RecordFault] = []
        lines = block.lines_of_records()
        for row in range(block.starts.size) if mask is None else np.flatnonzero(mask).tolist():
            record = block.record(row)
            reason, detail = block.faults.get(int(block.starts[row]), ("", ""))
            if reason != Reason.TOO_LONG:
                try:
                    parsed = self._parsed_record(record, options)
                    if not reason:
                        good.append(parsed)
                        positions.append(row)
                        continue
                except RecordError as error:
                    reason, detail = error.reason, error.detail
                    reason = Reason.CUT_LINE if _may_be_cut(record, error) else reason
            faults.append(RecordFault(row, reason, 1, int(lines[row]), detail, record))
        return Chunk(
            block.starts.size,
            pa.array([text for text, _, _ in good], pa.large_string()),
            id_array([key for _, key, _ in good]) if options.id else None,
            order_array([value for _, _, value in good]) if options.order else None,
            np.array(positions, dtype=np.int64),
            faults,
        )

    def _parsed_record(self, record: bytes, options: ReadOptions) -> Row:
        try:
            decoded = record.decode()
        except UnicodeDecodeError as error:
            raise RecordError(Reason.NOT_UTF8, f"byte {error.start} of the record") from None
        return self.dialect.parse_record(decoded, options)

    def _kept_parts(self, keep: np.ndarray) -> Iterator[tuple[int, Block, np.ndarray]]:
        """Yield the blocks with kept rows: the first row, the block, and the mask over it."""
        chosen = np.flatnonzero(keep)
        stop = int(chosen[-1]) + 1 if chosen.size else 0
        row = 0
        with closing(self.blocks()) as all_blocks:
            while row < stop and (block := next(all_blocks, None)) is not None:
                mask = keep[row : row + block.starts.size]
                if mask.any():
                    yield row, block, mask
                row += block.starts.size

    def lines(self, keep: np.ndarray) -> Iterator[tuple[int, bytes]]:
        """Pass two, verbatim: yield for each block the number of kept records, and their bytes unchanged."""
        for _, block, mask in self._kept_parts(keep):
            data = block.select(mask, self.dialect.line_end)
            if self.partitions:
                data = self.dialect.with_members(data, self.partitions)
            yield int(np.count_nonzero(mask)), data

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Return a schema for all kept rows."""
        schemas = [self.dialect.schema(block.select(mask), self.file.name) for _, block, mask in self._kept_parts(keep)]
        unified = unified_schema(schemas, self.file.name)
        schema = self.dialect.exact_schema(
            unified, lambda: (block.select(mask) for _, block, mask in self._kept_parts(keep))
        )
        for name in self.partitions:
            schema = schema if name in schema.names else schema.append(pa.field(name, pa.large_string()))
        return schema

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: yield the kept rows in order, as tables of this schema."""
        for _, block, mask in self._kept_parts(keep):
            table = self.dialect.table(block.select(mask), schema, self.file.name)
            for name, value in self.partitions.items():
                place, kind = schema.get_field_index(name), schema.field(name).type
                if value is not None and (is_text_type(kind) or pa.types.is_null(kind)):
                    filled = pc.fill_null(table[name].cast(pa.large_string()), value)
                    table = table.set_column(place, schema.field(name), filled.cast(kind))
            yield table

    def records(self, keep: np.ndarray) -> Iterator[RawRecord]:
        """Yield the kept rows one by one, unchanged."""
        for first, block, mask in self._kept_parts(keep):
            lines = block.lines_of_records()
            for position in np.flatnonzero(mask).tolist():
                record = block.record(position)
                if self.partitions:
                    record = self.dialect.with_members(record, self.partitions)
                yield RawRecord(first + position, int(lines[position]), record)
