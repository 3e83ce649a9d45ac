"""Parquet files whose row groups are encoded by several threads, byte for byte as PyArrow's own writer does alone.

PyArrow encodes the row groups of a file one after the other. Here each row group becomes a file of its own in memory,
and the files are joined: their pages are copied one after the other, and the lists of row groups in their footers are
merged, with shifted positions of the pages. A footer is a struct in Thrift's compact protocol [1]_ with the fields of
``FileMetaData`` [2]_; fields that are not named here are copied unchanged.

References
----------
.. [1] https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
.. [2] https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

_MAGIC = b"PAR1"
#: Bytes after a footer: its length, and the magic number.
_END = 8

#: Types in the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _STRUCT = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
#: Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData. An offset of 0 says that there is nothing.
_NUM_ROWS, _ROW_GROUPS = 3, 4
_COLUMNS, _GROUP_OFFSET, _ORDINAL = 1, 5, 7
_CHUNK_OFFSET, _META_DATA = 2, 3
_PAGE_OFFSETS = (9, 10, 11)


class Sink(Protocol):
    """A file that is written."""

    def write(self, data: Any) -> int:
        """Append bytes."""

    def tell(self) -> int:
        """Return the number of bytes written so far."""


class EncodedGroup(NamedTuple):
    """A row group as a Parquet file in memory."""

    file: pa.Buffer
    footer: dict[int, tuple[int, Any]]
    pages: int
    """The position at which the pages end."""


class ParquetGroups:
    """Joins row groups to a file; any threads may encode them, and one thread joins them."""

    def __init__(self, file: Sink, schema: pa.Schema, **options: Any) -> None:
        self._file, self._schema, self._options = file, schema, options
        self._footer: dict[int, tuple[int, Any]] = {}
        self._groups: list[Any] = []
        self._rows = 0

    def encode(self, table: pa.Table | None) -> EncodedGroup:
        """Return a table as a row group; None for a file without row groups."""
        sink = pa.BufferOutputStream()
        with pq.ParquetWriter(sink, self._schema, **self._options) as writer:
            if table is not None:
                writer.write_table(table, row_group_size=table.num_rows)
        file = sink.getvalue()
        whole = memoryview(file).cast("B")
        begin = len(whole) - _END - int.from_bytes(whole[-_END : -len(_MAGIC)], "little")
        return EncodedGroup(file, _Reader(whole[begin:-_END]).struct(), begin)

    def append(self, encoded: EncodedGroup) -> None:
        """Write a row group."""
        if not self._footer:
            self._file.write(_MAGIC)
        self._footer = self._footer or encoded.footer
        shift = self._file.tell() - len(_MAGIC)
        self._file.write(memoryview(encoded.file)[len(_MAGIC) : encoded.pages])
        for group in encoded.footer[_ROW_GROUPS][1][1]:
            _shift(group, _GROUP_OFFSET, shift)
            if _ORDINAL in group:
                group[_ORDINAL] = (_I16, len(self._groups))
            for chunk in group[_COLUMNS][1][1]:
                _shift(chunk, _CHUNK_OFFSET, shift)
                for field in _PAGE_OFFSETS:
                    _shift(chunk[_META_DATA][1], field, shift)
            self._groups.append(group)
        self._rows += encoded.footer[_NUM_ROWS][1]

    def finish(self) -> None:
        """Write the footer."""
        if not self._footer:
            self.append(self.encode(None))
        self._footer[_NUM_ROWS] = (_I64, self._rows)
        self._footer[_ROW_GROUPS] = (_LIST, (_STRUCT, self._groups))
        written = bytearray()
        _write(written, _STRUCT, self._footer)
        self._file.write(bytes(written) + len(written).to_bytes(4, "little") + _MAGIC)


def _shift(struct: dict[int, tuple[int, Any]], field: int, distance: int) -> None:
    kind, place = struct.get(field, (_I64, 0))
    if place:
        struct[field] = (kind, place + distance)


class _Reader:
    """Reads values in the compact protocol; a struct becomes the type and value of each field."""

    def __init__(self, data: memoryview) -> None:
        self._data, self._position = data, 0

    def _byte(self) -> int:
        self._position += 1
        return self._data[self._position - 1]

    def _bytes(self, size: int) -> bytes:
        self._position += size
        return bytes(self._data[self._position - size : self._position])

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def _number(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)

    def struct(self) -> dict[int, tuple[int, Any]]:
        """Return the struct at the current position."""
        fields: dict[int, tuple[int, Any]] = {}
        last = 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._number()
            kind = head & 0x0F
            fields[last] = (kind, None if kind in (_TRUE, _FALSE) else self._value(kind))
        return fields

    def _value(self, kind: int) -> Any:
        if kind == _STRUCT:
            return self.struct()
        if kind in (_LIST, _SET):
            head = self._byte()
            size = self._varint() if head >> 4 == 15 else head >> 4
            return head & 0x0F, [self._value(head & 0x0F) for _ in range(size)]
        if kind == _BINARY:
            return self._bytes(self._varint())
        if kind in (_I16, _I32, _I64):
            return self._number()
        # A bool in a list is a byte, too.
        return self._bytes(8 if kind == _DOUBLE else 1)


def _write(to: bytearray, kind: int, value: Any) -> None:
    if kind == _STRUCT:
        last = 0
        for field in sorted(value):
            inner, content = value[field]
            if 0 < field - last < 16:
                to.append(field - last << 4 | inner)
            else:
                to.append(inner)
                _write(to, _I16, field)
            last = field
            if content is not None:
                _write(to, inner, content)
        to.append(0)
    elif kind in (_LIST, _SET):
        inner, items = value
        to.append(min(len(items), 15) << 4 | inner)
        if len(items) > 14:
            _write_varint(to, len(items))
        for item in items:
            _write(to, inner, item)
    elif kind in (_I16, _I32, _I64):
        _write_varint(to, value << 1 if value >= 0 else ~value << 1 | 1)
    else:
        if kind == _BINARY:
            _write_varint(to, len(value))
        to += value


def _write_varint(to: bytearray, value: int) -> None:
    while value > 0x7F:
        to.append(value & 0x7F | 0x80)
        value >>= 7
    to.append(value)
