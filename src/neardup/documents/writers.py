"""Tables -> files: one writer a format, the same bytes however the rows were cut into tables."""

from __future__ import annotations

import json
import math
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq

from neardup.documents.columnar import plain_json
from neardup.documents.formats import KIND_OF_SUFFIX, suffixes
from neardup.documents.output import OutputFile, check_output, writable
from neardup.documents.values import as_bytes, is_text_type, lengths_of

GROUP_ROWS = 65_536
GROUP_BYTES = 128 << 20
_CODECS = frozenset({"none", "snappy", "gzip", "brotli", "zstd", "lz4"})


class Writer:
    """Writes tables of one schema to a file that appears only when all is written.

    Parameters
    ----------
    output : str
        Its suffix names the format; ``-`` is JSON lines on standard output.
    schema : pa.Schema
        What every table has.
    text : str, optional
        Column of long texts, which Parquet stores without dictionary and statistics.
    codec : str
        Compression inside Parquet.
    """

    def __init__(self, output: str, schema: pa.Schema, text: str | None = None, codec: str = "zstd") -> None:
        suffix = ".jsonl" if output == "-" else suffixes(output)[0]
        kind = KIND_OF_SUFFIX[suffix]
        self._file = OutputFile(output)
        self._name = output
        self._format: Any = None
        self.rows = 0
        try:
            with writable(output):
                if kind == "parquet":
                    self._format = _Grouped(_Parquet(self._file, schema, text, codec))
                elif kind == "arrow":
                    self._format = _Grouped(_Arrow(self._file, schema))
                elif kind == "csv":
                    self._format = _Csv(self._file, schema, "\t" if suffix == ".tsv" else ",")
                else:
                    self._format = _JsonLines(self._file)
        except BaseException:
            self._file.discard()
            raise

    @property
    def size(self) -> int:
        """Bytes written so far, before any .gz or .zst compression."""
        return self._file.tell()

    def write(self, table: pa.Table) -> None:
        """Append the rows of a table."""
        with writable(self._name):
            self._format.write(table)
        self.rows += table.num_rows

    def close(self) -> None:
        """Finish the file and put it in its place."""
        try:
            with writable(self._name):
                self._format.finish()
        except BaseException:
            self._file.discard()
            raise
        self._file.commit()

    def discard(self) -> None:
        """Remove what was written."""
        self._file.discard()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            self.discard()


def open_writer(
    output: str, schema: pa.Schema, force: bool = False, *, text: str | None = None, codec: str = "zstd"
) -> Writer:
    """Open a writer for tables; nothing is left behind when it fails or is given up.

    Raises
    ------
    OutputError
        As `check_output`.
    """
    check_output(output, (), force)
    return Writer(output, schema, text, codec)


def write_table(table: pa.Table, output: str, *, force: bool = False) -> None:
    """Write a table in the format its name tells: Parquet, JSON lines, CSV, TSV or Arrow.

    The same table gives the same bytes.
    """
    with open_writer(output, table.schema, force) as writer:
        writer.write(table)


class _Grouped:
    """Cuts rows into groups that depend on the rows alone: by number, and by bytes of text."""

    def __init__(self, inner: _Parquet | _Arrow) -> None:
        self._inner = inner
        self._pending: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0

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
            if self._rows >= GROUP_ROWS or self._bytes >= GROUP_BYTES:
                self._flush()
            start = stop

    def _flush(self) -> None:
        # Pieces are joined before writing: pages then do not depend on where the pieces met.
        self._inner.write(pa.concat_tables(self._pending).combine_chunks())
        self._pending, self._rows, self._bytes = [], 0, 0

    def finish(self) -> None:
        if self._pending:
            self._flush()
        self._inner.finish()


def _row_bytes(table: pa.Table) -> np.ndarray:
    total = np.zeros(table.num_rows, dtype=np.int64)
    for column in table.columns:
        if is_text_type(column.type) and not pa.types.is_dictionary(column.type):
            total += np.concatenate([lengths_of(as_bytes(chunk)) for chunk in column.chunks] or [np.zeros(0, np.int64)])
    return total


class _Parquet:
    def __init__(self, file: OutputFile, schema: pa.Schema, text: str | None, codec: str) -> None:
        codec = codec if codec in _CODECS else "zstd"
        others = [f.name for f in schema if f.name != text and not pa.types.is_nested(f.type)]
        self._writer = pq.ParquetWriter(
            file,
            schema,
            compression=codec,
            compression_level=1 if codec == "zstd" else None,
            use_dictionary=others,
            write_statistics=others,
        )

    def write(self, table: pa.Table) -> None:
        self._writer.write_table(table, row_group_size=table.num_rows)

    def finish(self) -> None:
        self._writer.close()


class _Arrow:
    def __init__(self, file: OutputFile, schema: pa.Schema) -> None:
        # Dictionaries may not change between the batches of an Arrow file, so values are written out.
        self._schema = pa.schema(
            [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in schema],
            schema.metadata,
        )
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._writer = pa.ipc.new_file(file, self._schema, options=options)

    def write(self, table: pa.Table) -> None:
        # Taking every row writes the buffers anew: what stood under nulls and around slices goes.
        fresh = table.take(pa.array(np.arange(table.num_rows)))
        self._writer.write_table(fresh.cast(self._schema))

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
    if pa.types.is_nested(kind) or is_text_type(kind):
        return pa.large_string()
    return kind


def _as_csv(column: Any, kind: pa.DataType) -> Any:
    """Cast text to large_string; write lists, structs and bytes as the JSON they are elsewhere."""
    if not pa.types.is_nested(column.type):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            pass
    values = [_csv_value(value) for value in column.to_pylist()]
    return pa.chunked_array([pa.array(values, kind)])


def _csv_value(value: Any) -> str | None:
    if value is None:
        return None
    plain = plain_json(value) if isinstance(value, bytes) else value
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False, default=plain_json)


class _JsonLines:
    def __init__(self, file: OutputFile) -> None:
        self._file = file

    def write(self, table: pa.Table) -> None:
        for batch in table.to_batches(max_chunksize=4096):
            rows = [json_line(row) for row in batch.to_pylist()]
            self._file.write("".join(rows).encode(errors="replace"))

    def finish(self) -> None:
        """Nothing stands after the last line."""


def json_line(row: dict[str, Any]) -> str:
    """Return a row as a line of JSON; dates are ISO 8601, a number that is none is null."""
    try:
        return json.dumps(row, ensure_ascii=False, allow_nan=False, default=plain_json) + "\n"
    except ValueError:
        return json.dumps(_without_nan(row), ensure_ascii=False, default=plain_json) + "\n"


def _without_nan(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _without_nan(inner) for key, inner in value.items()}
    return [_without_nan(inner) for inner in value] if isinstance(value, list) else value
