"""Inputs of one record a line (or a few): JSON lines and delimited text, read block by block.

A block is first parsed as a whole by Arrow. Only where that fails, or gives another number of rows than the
block has records, is this one block parsed record by record; so one broken record costs one block.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from neardup.documents.inputs import Codec, Found
from neardup.documents.records import (
    CUT_LINE,
    CUT_SHORT,
    NOT_JSON,
    NOT_UTF8,
    OPEN_QUOTE,
    WRONG_FIELDS,
    Broken,
    Chunk,
    Raw,
    Wanted,
    id_array,
    joined_texts,
    order_array,
    unified,
)
from neardup.documents.streams import Block, Span, blocks

Row = tuple[str, int | str | None, int | float | str | None]


#: How a record is broken whose end is missing.
_WITHOUT_END = frozenset({NOT_JSON, OPEN_QUOTE, WRONG_FIELDS})


def _is_cut(record: bytes, reason: str) -> bool:
    """Return whether a broken record may be the begin of a good one: without a line feed it is the last of its file."""
    if record.endswith(b"\n"):
        return False
    if reason != NOT_UTF8:
        return reason in _WITHOUT_END
    try:
        record.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return False


class RecordError(Exception):
    """Why one record cannot be used."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.detail = detail


class Dialect(Protocol):
    """What JSON lines and delimited text do differently."""

    line_end: bytes
    #: Whether each line feed ends a record, so that a file may be cut at any.
    by_lines: bool

    def record_ends(self, data: bytes) -> np.ndarray:
        """Positions just after each record that ends in the bytes."""
        ...

    def blank(self, block: Block) -> np.ndarray:
        """Which records are blank lines."""
        ...

    def fast(self, block: Block, wanted: Wanted) -> dict[str, Any] | None:
        """All records at once: an array a column; None when that cannot be done."""
        ...

    def slow(self, record: str, wanted: Wanted) -> Row:
        """One record; raises RecordError."""
        ...

    def schema(self, data: bytes, name: str) -> pa.Schema:
        """Infer the schema of good records."""
        ...

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Good records as a table of this schema."""
        ...


class LineSource:
    """A file of records in lines, or a span of it, whose rows and lines are counted from its start.

    The first ``header`` records are no documents. ``types`` are the columns as the start of the file shows them;
    ``line_feeds`` counts the line feeds of the last pass.
    """

    def __init__(
        self,
        found: Found,
        codec: Codec | None,
        dialect: Dialect,
        header: int,
        types: dict[str, pa.DataType],
        span: Span | None = None,
    ) -> None:
        self.found, self.files = found, [found]
        self.dialect = dialect
        self.line_feeds = 0
        self._span = span
        self._codec = codec
        self._header = header
        self._types = types

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns, as far as the start of the file shows them."""
        return self._types

    def blocks(self) -> Generator[Block, None, None]:
        """Return the blocks of the file without header and blank lines."""
        skip, self.line_feeds = self._header, 0
        with closing(blocks(self.found, self._codec, self.dialect.record_ends, None, self._span)) as whole:
            for block in whole:
                self.line_feeds += block.lines
                filled = ~self.dialect.blank(block)
                starts, ends = block.starts[filled][skip:], block.ends[filled][skip:]
                skip -= min(skip, int(np.count_nonzero(filled)))
                yield replace(block, starts=starts, ends=ends)

    def cuts(self, size: int) -> list[Span]:
        """Return the parts of about so many bytes that may be read by themselves; none where there is but one."""
        if self._codec is not None or not self.dialect.by_lines or self.found.size <= size:
            return []
        places = [*range(0, self.found.size, size), self.found.size]
        return list(pairwise(places))

    def chunks(self, wanted: Wanted) -> Generator[Chunk, None, None]:
        """Pass one: the wanted columns, a block a chunk."""
        for block in self.blocks():
            chunk = self._chunk(block, wanted)
            if block.damage:
                # Not a row: what follows the break is unknown, so there is nothing to count.
                line = block.line + block.data.count(b"\n")
                chunk.broken.append(Broken(chunk.rows, CUT_SHORT, 0, line, detail=block.damage, record=block.tail))
            yield chunk

    def _chunk(self, block: Block, wanted: Wanted) -> Chunk:
        rows = block.starts.size
        columns = self.dialect.fast(block, wanted) if rows else None
        if columns is None:
            chunk = self._slow_chunk(block, wanted)
        else:
            ids = columns[wanted.id] if wanted.id else None
            order = columns[wanted.order] if wanted.order else None
            chunk = Chunk(rows, joined_texts([columns[name] for name in wanted.texts]), ids, order)
        chunk.consumed = block.consumed
        chunk.locate = lambda row: (block.line_of(row), block.record(row))
        return chunk

    def _slow_chunk(self, block: Block, wanted: Wanted) -> Chunk:
        good: list[Row] = []
        positions: list[int] = []
        broken: list[Broken] = []
        for row in range(block.starts.size):
            record = block.record(row)
            try:
                good.append(self._slow_row(record, wanted))
                positions.append(row)
            except RecordError as error:
                line = block.line_of(row)
                reason = CUT_LINE if _is_cut(record, error.reason) else error.reason
                broken.append(Broken(row, reason, 1, line, error.detail, record))
        return Chunk(
            block.starts.size,
            pa.array([text for text, _, _ in good], pa.large_string()),
            id_array([key for _, key, _ in good]) if wanted.id else None,
            order_array([value for _, _, value in good]) if wanted.order else None,
            np.array(positions, dtype=np.int64),
            broken,
        )

    def _slow_row(self, record: bytes, wanted: Wanted) -> Row:
        try:
            decoded = record.decode()
        except UnicodeDecodeError as error:
            raise RecordError(NOT_UTF8, f"byte {error.start} of the record") from None
        return self.dialect.slow(decoded, wanted)

    def _kept(self, keep: np.ndarray) -> Iterator[tuple[int, Block, np.ndarray]]:
        """Blocks that hold kept rows: their first row, the block, and the mask over it."""
        chosen = np.flatnonzero(keep)
        stop = int(chosen[-1]) + 1 if chosen.size else 0
        row = 0
        with closing(self.blocks()) as whole:
            while row < stop and (block := next(whole, None)) is not None:
                mask = keep[row : row + block.starts.size]
                if mask.any():
                    yield row, block, mask
                row += block.starts.size

    def lines(self, keep: np.ndarray) -> Iterator[tuple[int, bytes]]:
        """Pass two, verbatim: of each block the number of kept records, and their bytes as they stand."""
        for _, block, mask in self._kept(keep):
            yield int(np.count_nonzero(mask)), block.select(mask, self.dialect.line_end)

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Give the schema that holds all kept rows."""
        schemas = [self.dialect.schema(block.select(mask), self.found.name) for _, block, mask in self._kept(keep)]
        return unified(schemas, self.found.name)

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: the kept rows as tables of this schema, in order."""
        for _, block, mask in self._kept(keep):
            yield self.dialect.table(block.select(mask), schema, self.found.name)

    def records(self, keep: np.ndarray) -> Iterator[Raw]:
        """Give the kept rows one by one, as they stand in the file."""
        for first, block, mask in self._kept(keep):
            for position in np.flatnonzero(mask).tolist():
                yield Raw(first + position, block.line_of(position), block.record(position))
