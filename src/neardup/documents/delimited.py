"""Delimited text with a header row, such as CSV and TSV.

Every value is a string as it is written (007 and 1.50 stay so). A quote opens a quoted field only at the start of
the field; inside, a doubled quote is a quote. Records end with a line feed outside quotes.

After the closing quote the field ends. If it does not, if a quote is never closed, or if a record of several lines has
another number of fields than the header, it is unknown where the record ends: then its first line is a broken record,
and the next line begins a new one, so a stray quote costs one row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from neardup.documents.arrays import join_texts, one_array
from neardup.documents.column_paths import ColumnPath
from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile, Quoting, delimiter_of, one_line
from neardup.documents.lines import LineSource, RecordError, Row
from neardup.documents.records import ReadOptions, Reason
from neardup.documents.streams import Block, Records, blocks, is_utf8, positions_of
from neardup.errors import InputError, option


def delimited_source(file: InputFile, codec: Codec | None) -> LineSource:
    """Open a file of delimited text.

    Raises ``InputError`` if it has no readable header row.
    """
    dialect = DelimitedDialect(",", file.quoting)
    with closing(blocks(file, codec, dialect.split, 1 << 18)) as start:
        head = next(start, None)
    if head is None or not head.data.strip():
        return LineSource(file, codec, dialect, 1, {})
    first_line = head.data.lstrip(b"\r\n").partition(b"\n")[0]
    dialect = DelimitedDialect(delimiter_of(first_line, file.name, dialect.has_quotes), file.quoting)
    with closing(blocks(file, codec, dialect.split, 1 << 18)) as start:
        head = next(start)
    filled = np.flatnonzero(~dialect.blank_records(head))
    header = head.record(int(filled[0])) if filled.size else b""
    dialect.read_header(header, file.name)
    types: dict[str, pa.DataType] = dict.fromkeys(dialect.names, pa.large_string())
    return LineSource(file, codec, dialect, 1, types, encoding=head.encoding)


def quoting_none() -> str:
    """Return the option that reads quotes as characters, for messages."""
    return option("--quoting none", "quoting='none'")


#: Fields of a header up to which its quotes are looked at.
_MOST_FIELDS = 10_000
#: A field with this many lines, of which nearly all look like rows of the table, is no field: a quote is missing.
_MANY_LINES, _NEARLY_ALL = 64, 0.95
_DIGITS, _LETTERS = re.compile(rb"[0-9]+"), re.compile(rb"[A-Za-z]+")


class DelimitedDialect:
    """The dialect of delimited text."""

    by_lines = False

    def __init__(self, delimiter: str, quoting: Quoting = "standard") -> None:
        self.delimiter = delimiter
        self.has_quotes = quoting == "standard"
        self.header = b""
        self.names: list[str] = []
        self.line_end = b"\n"
        self._compile(1, _MOST_FIELDS)
        mark = re.escape(delimiter)
        self._field = re.compile(
            rf'(?:"(?P<quoted>(?:[^"]++|"")*+)(?P<closed>"(?P<rest>[^{mark}]*+))?|(?P<plain>[^{mark}]*+))(?P<more>{mark}|\Z)'
        )

    def _compile(self, least: int, most: int) -> None:
        """Make the patterns of a record with so many fields, of one of a single line, and of one with an open quote."""
        mark = re.escape(self.delimiter.encode())

        def record(inner: bytes) -> bytes:
            field = rb'(?:"(?:%b|"")*+"(?=%b|\r?\n|\r?\Z)|(?!")[^%b\n]*+)' % (inner, mark, mark)
            return rb"%b(?:%b%b){%d,%d}+" % (field, mark, field, least - 1, most - 1)

        self._record = re.compile(rb"%b(\n|\r\n|\r?\Z)" % record(rb'[^"]++'))
        self._row = re.compile(rb"%b\r?" % record(rb'[^"\n]++'))
        field = rb'(?:"(?:[^"]++|"")*+"(?=%b)|(?!")[^%b\n]*+)' % (mark, mark)
        self._open = re.compile(rb'(?:%b%b){0,%d}+"(?:[^"]++|"")*+(?:"\r?)?\Z' % (field, mark, most - 1))

    def read_header(self, header: bytes, name: str) -> None:
        """Set the column names; a name that occurs twice gets a number."""
        if b"\r" in header.removesuffix(b"\n").removesuffix(b"\r"):
            raise InputError(f"{name}: lines end with a bare carriage return; convert them to line feeds")
        try:
            fields = self._split(header.decode())
        except (UnicodeDecodeError, RecordError):
            raise InputError(
                f"{name}: its header row is not valid UTF-8 or has an open quote; give a CSV file with "
                f"column names in its first row, or read quotes as characters with {quoting_none()}"
            ) from None
        for field in fields:
            unique, number = field, 2
            while unique in self.names:
                unique, number = f"{field}_{number}", number + 1
            self.names.append(unique)
        self._compile(len(self.names), len(self.names))
        self.line_end = b"\r\n" if header.endswith(b"\r\n") else b"\n"
        self.header = header.rstrip(b"\r\n") + self.line_end

    def split(self, data: bytes, is_end: bool) -> Records:
        """Return the records, which end with line feeds outside quotes, and those with broken quotes."""
        feeds = positions_of(data, 0x0A)
        quotes = positions_of(data, 0x22) if self.has_quotes else feeds[:0]
        if (is_end and len(quotes) % 2) or not self._quotes_are_regular(data, quotes):
            return self._split_by_fields(data, is_end)
        ends = feeds + 1
        if quotes.size:
            chosen = np.flatnonzero(np.searchsorted(quotes, feeds) % 2 == 0)
            if len(chosen) < len(feeds) and not self._fields_are_regular(data, feeds, quotes, chosen):
                return self._split_by_fields(data, is_end)
            ends = ends[chosen]
        return Records(np.append(ends, len(data)) if is_end and data and not data.endswith(b"\n") else ends)

    def _split_by_fields(self, data: bytes, is_end: bool) -> Records:
        ends: list[int] = []
        broken: list[int] = []
        position = 0
        while position < len(data):
            record = self._record.match(data, position)
            is_whole = record is not None and (is_end or record.group(1).endswith(b"\n"))
            if not is_end and not is_whole and (record is not None or self._open.match(data, position)):
                break
            end = record.end() if record is not None else 0
            if not is_whole or self._swallows_rows(data[position:end]):
                feed = data.find(b"\n", position)
                if feed < 0 and not is_end:
                    break
                broken.append(len(ends))
                end = feed + 1 if feed >= 0 else len(data)
            position = end
            ends.append(position)
        return Records(np.array(ends, dtype=np.int64), tuple(broken))

    def _fields_are_regular(self, data: bytes, feeds: np.ndarray, quotes: np.ndarray, chosen: np.ndarray) -> bool:
        """Return whether all records of several lines have as many fields as the header, and swallow no rows."""
        marks = positions_of(data, ord(self.delimiter))
        marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
        lines = np.diff(chosen, prepend=-1)
        fields = np.diff(np.searchsorted(marks, feeds[chosen]), prepend=0) + 1
        if self.names and bool((fields[lines > 1] != len(self.names)).any()):
            return False
        for number in np.flatnonzero(lines > _MANY_LINES).tolist():
            begin = int(feeds[chosen[number - 1]]) + 1 if number else 0
            if self._swallows_rows(data[begin : int(feeds[chosen[number]]) + 1]):
                return False
        return True

    def _swallows_rows(self, record: bytes) -> bool:
        """Return whether a record has many lines, of which nearly all are rows with a first field like its own."""
        if len(self.names) < 2 or record.count(b"\n") <= _MANY_LINES:
            return False
        first, *lines = record.removesuffix(b"\n").split(b"\n")[:-1]
        shape = self._shape_of_key(first)
        rows = sum(self._row.fullmatch(line) is not None and self._shape_of_key(line) == shape for line in lines)
        return rows >= _NEARLY_ALL * len(lines)

    def _shape_of_key(self, line: bytes) -> bytes:
        """Return the first field of a line with each number as 0 and each word as a."""
        return _LETTERS.sub(b"a", _DIGITS.sub(b"0", line.partition(self.delimiter.encode())[0]))

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
        if bare_returns or (self.has_quotes and data.count(b'"') % 2) or not is_utf8(data):
            return None
        try:
            table = arrow_csv.read_csv(
                pa.BufferReader(data),
                read_options=arrow_csv.ReadOptions(column_names=self.names, block_size=len(data) + 1),
                parse_options=arrow_csv.ParseOptions(
                    delimiter=self.delimiter,
                    quote_char='"' if self.has_quotes else False,
                    newlines_in_values=self.has_quotes,
                ),
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
        if not self.has_quotes:
            return line.split(self.delimiter)
        fields: list[str] = []
        position = 0
        while True:
            match = self._field.match(line, position)
            if match is None:
                raise RecordError(Reason.WRONG_FIELDS)
            if match["plain"] is not None:
                fields.append(match["plain"])
            elif match["closed"] is None or match["rest"]:
                fault = "text follows its closing quote" if match["rest"] else "its quote is never closed"
                raise RecordError(Reason.OPEN_QUOTE, f"field {len(fields) + 1}: {fault}")
            else:
                fields.append(match["quoted"].replace('""', '"'))
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

    def with_members(self, lines: bytes, values: Mapping[str, str | None]) -> bytes:
        """Return the records unchanged: a further column would need another header."""
        del values
        return lines

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Return good records with all columns of the schema."""
        ends = self.split(data, True).ends
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
