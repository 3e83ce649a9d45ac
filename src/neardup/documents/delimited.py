"""Delimited text with a header row, such as CSV and TSV.

Every value is a string as it is written (007 and 1.50 stay so). A quote opens a quoted field only at the start of
the field; inside, a doubled quote is a quote; after the closing quote the rest is taken literally. Records end with
a line feed outside quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from neardup.documents.arrays import join_texts, one_array
from neardup.documents.column_paths import ColumnPath
from neardup.documents.inputs import Codec, InputFile, delimiter_of, one_line
from neardup.documents.lines import LineSource, RecordError, Row
from neardup.documents.records import ReadOptions, Reason
from neardup.documents.streams import Block, blocks, is_utf8, positions_of
from neardup.errors import InputError


def delimited_source(file: InputFile, codec: Codec | None) -> LineSource:
    """Open a file of delimited text.

    Raises ``InputError`` if it has no readable header row.
    """
    with closing(blocks(file, codec, DelimitedDialect(",").record_ends, 1 << 18)) as start:
        head = next(start, None)
    if head is None or not head.data.strip():
        return LineSource(file, codec, DelimitedDialect(","), 1, {})
    first_line = head.data.lstrip(b"\r\n").partition(b"\n")[0]
    dialect = DelimitedDialect(delimiter_of(first_line, file.name))
    with closing(blocks(file, codec, dialect.record_ends, 1 << 18)) as start:
        head = next(start)
    filled = np.flatnonzero(~dialect.blank_records(head))
    header = head.record(int(filled[0])) if filled.size else b""
    dialect.read_header(header, file.name)
    return LineSource(file, codec, dialect, 1, dict.fromkeys(dialect.names, pa.large_string()))


class DelimitedDialect:
    """The dialect of delimited text."""

    by_lines = False

    def __init__(self, delimiter: str) -> None:
        self.delimiter = delimiter
        self.header = b""
        self.names: list[str] = []
        self.line_end = b"\n"
        mark = re.escape(delimiter.encode())
        field = rb'(?:"(?:[^"]++|"")*+(?:"[^%b\n]*+)?|[^%b\n]*+)' % (mark, mark)
        self._record = re.compile(rb"%b(?:%b%b)*+(\n|\Z)" % (field, mark, field))
        self._field = re.compile(
            r'(?:"(?P<quoted>(?:[^"]++|"")*+)(?P<closed>"(?P<rest>[^%s]*+))?|(?P<plain>[^%s]*+))(?P<more>%s|\Z)'
            % ((re.escape(delimiter),) * 3)
        )

    def read_header(self, header: bytes, name: str) -> None:
        """Set the column names; a name that occurs twice gets a number."""
        try:
            fields = self._split(header.decode())
        except (UnicodeDecodeError, RecordError):
            raise InputError(
                f"{name}: its header row is not valid UTF-8 or has an open quote; give a CSV file with "
                "column names in its first row"
            ) from None
        if b"\r" in header.rstrip(b"\r\n"):
            raise InputError(f"{name}: lines end with a bare carriage return; convert them to line feeds")
        for field in fields:
            unique, number = field, 2
            while unique in self.names:
                unique, number = f"{field}_{number}", number + 1
            self.names.append(unique)
        self.line_end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
        self.header = header.rstrip(b"\r\n") + self.line_end

    def record_ends(self, data: bytes) -> np.ndarray:
        """Return the position after each line feed outside quotes."""
        line_ends = positions_of(data, 0x0A)
        quotes = positions_of(data, 0x22)
        if not quotes.size:
            return line_ends + 1
        if self._quotes_are_regular(data, quotes):
            outside: np.ndarray = line_ends[np.searchsorted(quotes, line_ends) % 2 == 0]
            return outside + 1
        ends: list[int] = []
        position = 0
        while position < len(data):
            match = self._record.match(data, position)
            if match is None or not match.group(1):
                break
            position = match.end()
            ends.append(position)
        return np.array(ends, dtype=np.int64)

    def _quotes_are_regular(self, data: bytes, quotes: np.ndarray) -> bool:
        """Return whether quotes are only at the ends of fields or doubled: then they open and close in turn."""
        array = np.frombuffer(data, np.uint8)
        mark = ord(self.delimiter)
        opening, ending = quotes[::2], quotes[1::2]
        bytes_before = array[opening[opening > 0] - 1]
        bytes_after = array[ending[ending < len(data) - 1] + 1]
        return bool(
            np.isin(bytes_before, np.array([mark, 0x0A, 0x22], np.uint8)).all()
            and np.isin(bytes_after, np.array([mark, 0x0A, 0x0D, 0x22], np.uint8)).all()
        )

    def blank_records(self, block: Block) -> np.ndarray:
        """Return which lines are empty."""
        mask = np.zeros(block.starts.size, dtype=bool)
        for row in np.flatnonzero(block.ends - block.starts <= 2).tolist():
            mask[row] = not block.record(row).strip(b"\r\n")
        return mask

    def find_column(self, name: str) -> ColumnPath | None:
        """Return the column of that name; None if there is none."""
        return ColumnPath(name, kind=pa.large_string()) if name in self.names else None

    def look_for(self, name: str, block: Block) -> bool:
        """Return False: the header row names all columns."""
        del name, block
        return False

    def parse_block(self, block: Block, options: ReadOptions) -> dict[str, Any] | None:
        """Parse all records at once, by Arrow."""
        columns = self._parse_with_arrow(block.data[int(block.starts[0]) :], block.starts.size, options.names)
        if columns is not None and options.id:
            ids = columns[options.id]
            columns[options.id] = pc.if_else(pc.equal(ids, ""), pa.scalar(None, ids.type), ids)
        return columns

    def _parse_with_arrow(self, data: bytes, rows: int, names: list[str]) -> dict[str, Any] | None:
        bare_returns = data.count(b"\r") - data.count(b"\r\n") - data.endswith(b"\r")
        if bare_returns or data.count(b'"') % 2 or not is_utf8(data):
            return None
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=arrow_csv.ReadOptions(column_names=self.names, block_size=len(data) + 1),
                parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(self.names, pa.large_string()),
                    include_columns=names,
                    null_values=[],
                    strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if table.num_rows != rows:
            return None
        return {name: one_array(table.column(name)) for name in names}

    def _split(self, record: str) -> list[str]:
        line = record.removesuffix("\n").removesuffix("\r")
        fields: list[str] = []
        position = 0
        while True:
            match = self._field.match(line, position)
            if match is None:
                raise RecordError(Reason.WRONG_FIELDS)
            if match["plain"] is not None:
                fields.append(match["plain"])
            elif match["closed"] is None:
                raise RecordError(Reason.OPEN_QUOTE)
            else:
                fields.append(match["quoted"].replace('""', '"') + match["rest"])
            if not match["more"]:
                return fields
            position = match.end()

    def _fields(self, record: str) -> dict[str, str]:
        fields = self._split(record)
        if len(fields) != len(self.names):
            raise RecordError(Reason.WRONG_FIELDS, f"{len(fields)} fields where the header has {len(self.names)}")
        return dict(zip(self.names, fields, strict=True))

    def parse_record(self, record: str, options: ReadOptions) -> Row:
        """Parse one record, field by field."""
        fields = self._fields(record)
        key = fields[options.id] if options.id else None
        if key == "":
            raise RecordError(Reason.NO_ID)
        text = join_texts(fields[name] for name in options.texts)
        return text, key, fields[options.order] if options.order else None

    def schema(self, data: bytes, name: str) -> pa.Schema:
        """Return a schema of strings."""
        del data, name
        return pa.schema([pa.field(column, pa.large_string()) for column in self.names])

    def exact_schema(self, schema: pa.Schema, parts: Callable[[], Iterable[bytes]]) -> pa.Schema:
        """Return the schema, which has only strings."""
        del parts
        return schema

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Return good records with all columns of the schema."""
        ends = self.record_ends(data)
        columns = self._parse_with_arrow(data, ends.size, self.names)
        if columns is None:
            starts = [0, *ends.tolist()]
            try:
                rows = [self._fields(data[a:b].decode()) for a, b in zip(starts, ends.tolist(), strict=False)]
            except (RecordError, UnicodeDecodeError) as error:
                raise InputError(f"{name}: a row that was rejected fits no table ({one_line(error)})") from None
            columns = {column: pa.array([row[column] for row in rows], pa.large_string()) for column in self.names}
        table = pa.table(columns)
        for missing in [field for field in schema if field.name not in columns]:
            table = table.append_column(missing, pa.nulls(table.num_rows, missing.type))
        return table.select(schema.names).cast(schema)
