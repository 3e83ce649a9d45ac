"""Parquet files whose row groups are encoded by several threads: each by itself, then put behind one another.

A row group does not depend on those before it, but for the places in the file that the footer names. So each is written
as a file of its own, in memory; the groups' bytes follow each other, and one footer lists all of them, their places
moved. What comes out is what one writer would have written, byte for byte. The footer is a struct of Thrift's compact
protocol; it is read without knowing what its fields mean, so that all of them stay.
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from neardup.runtime import default_threads

#: Bytes of text that are encoded at one time where nobody has less room; a larger row group is encoded alone.
UNDER_WAY = 128 << 20
_MAGIC = b"PAR1"

#: Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _SHORT, _INT, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
#: Fields of parquet.thrift: of FileMetaData, of RowGroup, of ColumnChunk, of ColumnMetaData.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _GROUP_PLACE, _ORDINAL = 1, 5, 7
_CHUNK_PLACES, _CHUNK = (2, 4, 6), 3
_PAGE_PLACES = (9, 10, 11, 14)

#: A struct: its fields by number, each with its type.
Struct = dict[int, tuple[int, Any]]


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def _take(self, size: int) -> bytes:
        self._at += size
        return self._data[self._at - size : self._at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _integer(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self) -> Struct:
        """Return the struct that begins here."""
        fields: Struct = {}
        number = 0
        while head := self._take(1)[0]:
            number = number + (head >> 4) if head >> 4 else self._integer()
            kind = head & 0x0F
            fields[number] = kind, None if kind in (_TRUE, _FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (_TRUE, _FALSE, _BYTE):
            return self._take(1)
        if kind in (_SHORT, _INT, _LONG):
            return self._integer()
        if kind == _DOUBLE:
            return self._take(8)
        if kind == _BINARY:
            return self._take(self._varint())
        if kind in (_LIST, _SET):
            head = self._take(1)[0]
            size = self._varint() if head >> 4 == 0x0F else head >> 4
            return head & 0x0F, [self._value(head & 0x0F) for _ in range(size)]
        if kind == _STRUCT:
            return self.struct()
        raise ValueError(f"the footer has a value of type {kind}, which no field of Parquet is of")


def _varint(value: int) -> bytes:
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def _integer(value: int) -> bytes:
    return _varint(value << 1 if value >= 0 else (-value << 1) - 1)


def _written_struct(fields: Struct) -> bytes:
    parts, before = [], 0
    for number, (kind, value) in fields.items():
        step = number - before
        parts.append(bytes([step << 4 | kind]) if 0 < step < 16 else bytes([kind]) + _integer(number))
        parts.append(b"" if value is None else _written(kind, value))
        before = number
    return b"".join([*parts, b"\0"])


def _written(kind: int, value: Any) -> bytes:
    if kind in (_SHORT, _INT, _LONG):
        return _integer(value)
    if kind == _BINARY:
        return _varint(len(value)) + bytes(value)
    if kind in (_LIST, _SET):
        inner, values = value
        size = len(values)
        head = bytes([size << 4 | inner]) if size < 15 else bytes([0xF0 | inner]) + _varint(size)
        return head + b"".join(_written(inner, one) for one in values)
    return _written_struct(value) if kind == _STRUCT else bytes(value)


def _move(fields: Struct, numbers: Sequence[int], by: int) -> None:
    for number in numbers:
        # A place of 0 says that there is none.
        if number in fields and fields[number][1]:
            kind, place = fields[number]
            fields[number] = kind, place + by


def _parts(file: bytes) -> tuple[memoryview, Struct]:
    """Return what stands between the magic and the footer of a Parquet file, and the footer."""
    size = int.from_bytes(file[-8:-4], "little")
    return memoryview(file)[len(_MAGIC) : -8 - size], _Reader(file[-8 - size : -8]).struct()


class ParquetGroups:
    """Writes tables to a Parquet file, each as a row group.

    Parameters
    ----------
    file : object with ``write`` and ``tell``
        An empty file.
    schema : pa.Schema
        What every table has.
    threads : int, optional
        How many row groups are encoded at one time, by default one for each processor. It changes no byte.
    under_way : int
        Bytes of text that are encoded at one time; a larger row group is encoded alone. It changes no byte either.
    **options
        As ``pyarrow.parquet.ParquetWriter`` takes them.
    """

    def __init__(
        self, file: Any, schema: pa.Schema, *, threads: int | None = None, under_way: int = UNDER_WAY, **options: Any
    ) -> None:
        self._file, self._schema, self._options = file, schema, options
        self._threads, self._most = threads or default_threads(), under_way
        self._pool = ThreadPoolExecutor(self._threads, thread_name_prefix="neardup-write")
        self._under_way: deque[tuple[int, Future[bytes]]] = deque()
        self._bytes = self._rows = 0
        self._groups: list[Struct] = []
        # Whoever cannot have this schema in Parquet learns it now.
        self._empty = self._encoded(None)
        self._file.write(_MAGIC)

    def _encoded(self, table: Callable[[], pa.Table] | None) -> bytes:
        buffer = io.BytesIO()
        with pq.ParquetWriter(buffer, self._schema, **self._options) as writer:
            if table is not None:
                made = table()
                writer.write_table(made, row_group_size=made.num_rows)
        return buffer.getvalue()

    def write(self, table: Callable[[], pa.Table], size: int) -> None:
        """Append a row group, which a thread makes; it holds about so many bytes."""
        while self._under_way and (len(self._under_way) >= self._threads or self._bytes + size > self._most):
            self._put()
        self._under_way.append((size, self._pool.submit(self._encoded, table)))
        self._bytes += size
        if size > self._most // 2:
            self._put_all()

    def _put_all(self) -> None:
        while self._under_way:
            self._put()

    def _put(self) -> None:
        """Write the row group that was begun first."""
        size, coming = self._under_way.popleft()
        body, footer = _parts(coming.result())
        self._bytes -= size
        moved = self._file.tell() - len(_MAGIC)
        self._rows += footer[_ROWS][1]
        for group in footer[_GROUPS][1][1]:
            _move(group, [_GROUP_PLACE], moved)
            if _ORDINAL in group:
                group[_ORDINAL] = group[_ORDINAL][0], len(self._groups)
            for chunk in group[_COLUMNS][1][1]:
                _move(chunk, _CHUNK_PLACES, moved)
                _move(chunk[_CHUNK][1], _PAGE_PLACES, moved)
            self._groups.append(group)
        self._file.write(body)

    def finish(self) -> None:
        """Write what is under way, and the footer."""
        try:
            self._put_all()
        finally:
            self._pool.shutdown()
        _, footer = _parts(self._empty)
        footer[_ROWS] = _LONG, self._rows
        footer[_GROUPS] = _LIST, (_STRUCT, self._groups)
        data = _written_struct(footer)
        self._file.write(data + len(data).to_bytes(4, "little") + _MAGIC)
