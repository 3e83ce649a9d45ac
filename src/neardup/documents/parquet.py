"""Parquet and Arrow IPC files as groups of columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from neardup.documents.columnar import READ_FAULTS, TARGET, ColumnarSource, Group
from neardup.documents.discover import Found, one_line, readable
from neardup.documents.formats import Codec, Kind
from neardup.documents.streams import Span, spooled
from neardup.documents.values import as_bytes, is_text_type


class UnreadableFile(Exception):
    """A file that shows no row at all."""


def columnar_source(
    found: Found, kind: Kind, codec: Codec | None, spool: str, span: Span | None = None
) -> ColumnarSource:
    """Open a Parquet or Arrow file, or row groups of it; a compressed one is decompressed to a temporary file first.

    Raises
    ------
    UnreadableFile
        When footer or schema are damaged.
    """
    damage = ""
    with readable(found.name):
        if codec is None:
            file = found.filesystem.open_input_file(found.path)
        else:
            path, damage = spooled(found, codec, spool)
            file = pa.OSFile(path)
    try:
        if kind == "parquet":
            return ColumnarSource(found, ParquetColumns(file, found.size), "row group", damage, span, cut=codec is None)
        return ColumnarSource(found, _ArrowColumns(file, kind, found.size), "record batch", damage)
    except READ_FAULTS as error:
        file.close()
        raise UnreadableFile(one_line(OSError(damage) if damage else error)) from None


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
        part = self._metadata.row_group(group)
        # All columns are counted, since Arrow ends the process over damaged statistics of a single one.
        rows = max(1, min(part.num_rows, part.num_rows * TARGET // max(part.total_byte_size, 1)))
        for batch in self._file.iter_batches(batch_size=rows, row_groups=[group], columns=names):
            yield pa.Table.from_batches([batch])


class _ArrowColumns:
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
        """Read a record batch."""
        batch = self._batches[group] if self._batches is not None else self._file.get_batch(group)
        batch.validate()
        table = pa.Table.from_batches([batch])
        table = table if names is None else table.select(names)
        for column in table.columns:
            for chunk in column.chunks:
                _refuse_wild_offsets(chunk)
        yield table


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
