"""Inputs that a parser of Python reads document by document, such as WARC files and mail.

Each pass parses the file again, and gives the same rows. What is no document by its kind, such as an image in a crawl,
is not a row: it is counted as skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents.column_paths import ColumnPath, find_in_types
from neardup.documents.columnar import fit_table, json_record
from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile
from neardup.documents.records import Chunk, RawRecord, ReadOptions, Reason, RecordFault, joined_column
from neardup.documents.rejected import Skipped

#: Rows and characters of text after which a chunk ends.
_MAX_ROWS, _MAX_CHARACTERS = 4096, 4 << 20


@dataclass(frozen=True, slots=True)
class Parsed:
    """A document as the values of its columns, or a fault in its place; the row of a fault is set by the source.

    ``position`` is the number of bytes on disk that were read so far.
    """

    values: dict[str, Any]
    fault: RecordFault | None = None
    position: int = 0


#: Yields the documents of a file, and counts what it skips.
Reader = Callable[[InputFile, Codec | None, Skipped], Generator[Parsed, None, None]]


class ParsedSource:
    """A file that a reader parses.

    ``id_column`` holds the ids that the documents have from elsewhere, which may repeat. ``skipped`` is that of the
    last complete pass.
    """

    def __init__(
        self, file: InputFile, codec: Codec | None, schema: pa.Schema, id_column: str, read: Reader, *, pages: bool
    ) -> None:
        self.file, self.files = file, [file]
        self.id_column = id_column
        self.skipped = Skipped()
        self.holds_pages = pages
        self._codec, self._schema, self._read = codec, schema, read

    def columns(self) -> dict[str, pa.DataType]:
        """Return names and types of the columns."""
        return {field.name: field.type for field in self._schema}

    def find_column(self, name: str) -> ColumnPath | None:
        """Return one of the columns; None for any other name."""
        return find_in_types(name, self.columns())

    def has_fractions(self, name: str, text: str) -> bool:
        """Return False: there are no doubles."""
        del name, text
        return False

    def _parts(self) -> Iterator[list[Parsed]]:
        skipped, is_empty = Skipped(), True
        with closing(self._read(self.file, self._codec, skipped)) as documents:
            for part in parts_of(documents):
                is_empty = False
                yield part
        if is_empty and skipped:
            yield [Parsed({}, RecordFault(0, Reason.NO_DOCUMENT, 0, detail=f"skipped {skipped}"), self.file.size)]
        self.skipped = skipped

    def chunks(self, options: ReadOptions) -> Generator[Chunk, None, None]:
        """Pass one: yield the chosen columns."""
        position = 0
        for part in self._parts():
            chunk = chunk_of(part, self._schema, options)
            chunk.bytes_read, position = part[-1].position - position, part[-1].position
            yield chunk

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Return the schema of the format, whatever rows are kept."""
        del keep
        return self._schema

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: yield the kept rows in order, as tables of this schema."""
        row, stop = 0, int(np.flatnonzero(keep)[-1]) + 1 if keep.any() else 0
        for part in self._parts() if stop else ():
            rows = [one for one in part if _is_row(one)]
            mask = keep[row : row + len(rows)]
            kept = [one.values for one, chosen in zip(rows, mask.tolist(), strict=False) if chosen]
            if kept:
                yield fit_table(pa.Table.from_pylist(kept, self._schema), schema, self.file.name)
            row += len(rows)
            if row >= stop:
                return

    def records(self, keep: np.ndarray) -> Iterator[RawRecord]:
        """Yield the kept rows one by one as JSON."""
        row = 0
        for part in self._parts():
            for one in (one for one in part if _is_row(one)):
                if row < len(keep) and keep[row]:
                    yield RawRecord(row, None, json_record(pa.Table.from_pylist([one.values], self._schema)))
                row += 1


def _is_row(one: Parsed) -> bool:
    """Return whether it is a row: damage of the file is none."""
    return one.fault is None or one.fault.count > 0


def parts_of(documents: Iterator[Parsed]) -> Iterator[list[Parsed]]:
    """Yield documents in parts of some megabytes."""
    part: list[Parsed] = []
    size = 0
    for one in documents:
        part.append(one)
        size += len(one.values.get("text") or "")
        if len(part) >= _MAX_ROWS or size >= _MAX_CHARACTERS:
            yield part
            part, size = [], 0
    if part:
        yield part


def chunk_of(part: Sequence[Parsed], schema: pa.Schema, options: ReadOptions) -> Chunk:
    """Return the chosen columns of some rows."""
    good: list[dict[str, Any]] = []
    positions: list[int] = []
    faults: list[RecordFault] = []
    rows = 0
    for one in part:
        if one.fault is not None:
            faults.append(replace(one.fault, row=rows))
        else:
            good.append(one.values)
            positions.append(rows)
        rows += _is_row(one)
    arrays = {name: pa.array([values[name] for values in good], schema.field(name).type) for name in set(options.names)}
    return Chunk(
        rows,
        joined_column([arrays[name] for name in options.texts]),
        arrays[options.id] if options.id else None,
        arrays[options.order] if options.order else None,
        np.array(positions, dtype=np.int64),
        faults,
    )
