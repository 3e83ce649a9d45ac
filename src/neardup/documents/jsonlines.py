"""JSON lines as a source of records: values as they are written, and the types of the columns that they make."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from contextlib import closing
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from neardup.documents.inputs import Codec, Found, one_line
from neardup.documents.lines import LineSource, RecordError, Row
from neardup.documents.records import (
    BAD_ID,
    NO_ID,
    NO_TEXT,
    NOT_A_STRING,
    NOT_AN_OBJECT,
    NOT_JSON,
    NOT_UTF8,
    Wanted,
    one_text,
    single,
    unified,
)
from neardup.documents.streams import BLOCK, Block, Span, blocks, is_utf8, positions_of
from neardup.errors import InputError

#: A number that may be an int64.
INTEGER = re.compile(r"-?[0-9]{1,19}\Z")


class Number(str):
    """A JSON number as it is written: 1e999 and numbers of a million digits stay what they are."""

    __slots__ = ()


#: Parses one JSON value; numbers stay texts.
decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number).decode


def column_type(counts: Counter[pa.DataType]) -> pa.DataType:
    """Return the type of a column whose values are of several: what does not fit it is then rejected, or is an id.

    One string makes a column of strings, and one number a column of numbers.
    """
    if pa.large_string() in counts:
        return pa.large_string()
    numbers = Counter({kind: number for kind, number in counts.items() if kind in (pa.int64(), pa.float64())})
    return (numbers or counts).most_common(1)[0][0]


def count_types(record: bytes, types: dict[str, Counter[pa.DataType]]) -> None:
    """Count the type of each value of a record; what is no object counts nothing."""
    try:
        decoded = decode(record.decode().strip(" \t\r\n"))
    except (ValueError, RecursionError):
        return
    if isinstance(decoded, dict):
        for name, value in decoded.items():
            counts = types.setdefault(name, Counter())
            # A null tells nothing, unless there is nothing else.
            counts[_type_of(value)] += 0 if value is None else 1


def _type_of(value: Any) -> pa.DataType:
    if isinstance(value, Number):
        return pa.int64() if INTEGER.match(value) else pa.float64()
    kinds = {str: pa.large_string(), bool: pa.bool_(), dict: pa.struct([]), list: pa.list_(pa.null())}
    return kinds.get(type(value), pa.null())


_HEAD_LINES = 100
_THREAD_BLOCK = BLOCK // 4


def json_source(found: Found, codec: Codec | None, span: Span | None = None) -> LineSource:
    """Open a file of JSON lines, or a part of it.

    Raises
    ------
    InputError
        When it is one JSON array.
    """
    dialect = JsonLines()
    types: dict[str, Counter[pa.DataType]] = {}
    with closing(blocks(found, codec, dialect.record_ends, 1 << 18)) as start:
        head = next(start, None)
    if head is not None:
        if head.data.lstrip()[:1] == b"[":
            raise InputError(
                f"{found.name} is a JSON array, not JSON lines: write one object a line, for instance with jq -c '.[]'"
            )
        for row in range(min(head.starts.size, _HEAD_LINES)):
            count_types(head.record(row), types)
    columns = {name: column_type(counts) for name, counts in types.items()}
    dialect.kinds = {
        name: kind if kind in (pa.int64(), pa.float64()) else pa.large_string() for name, kind in columns.items()
    }
    return LineSource(found, codec, dialect, 0, columns, span)


class JsonLines:
    """How JSON lines are cut and parsed."""

    line_end = b"\n"
    by_lines = True

    def __init__(self) -> None:
        self.kinds: dict[str, pa.DataType] = {}

    def record_ends(self, data: bytes) -> np.ndarray:
        """Positions just after each line feed."""
        return positions_of(data, 0x0A) + 1

    def blank(self, block: Block) -> np.ndarray:
        """Tell the lines of white space."""
        mask = np.zeros(block.starts.size, dtype=bool)
        if mask.size:
            firsts = np.frombuffer(block.data, np.uint8)[block.starts]
            for row in np.flatnonzero(firsts <= 0x20).tolist():
                mask[row] = not block.record(row).strip()
        return mask

    def fast(self, block: Block, wanted: Wanted) -> dict[str, Any] | None:
        """All records at once, by Arrow."""
        if not _is_object_a_line(block) or not is_utf8(block.data):
            return None
        fields = [pa.field(name, self._kind(name, wanted)) for name in wanted.names]
        try:
            table = _read(block.data, pa.schema(fields), "ignore")
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if table.num_rows != block.starts.size:
            return None
        return {name: single(table.column(name)) for name in wanted.names}

    def _kind(self, name: str, wanted: Wanted) -> pa.DataType:
        kind = pa.large_string() if name in wanted.texts else self.kinds.get(name, pa.large_string())
        return pa.large_string() if name == wanted.id and kind == pa.float64() else kind

    def slow(self, record: str, wanted: Wanted) -> Row:
        """One record, by Python."""
        decoded = _object_of(record, wanted)
        texts = [text for name in wanted.texts if (text := decoded.get(name)) is not None]
        if not texts:
            raise RecordError(NO_TEXT)
        if not all(isinstance(text, str) and not isinstance(text, Number) for text in texts):
            raise RecordError(NOT_A_STRING)
        text = one_text(texts)
        _refuse_surrogates(text)
        key = _id_of(decoded.get(wanted.id)) if wanted.id else None
        order = _order_of(decoded.get(wanted.order)) if wanted.order else None
        self._learn(wanted.id, key)
        self._learn(wanted.order, order)
        return text, key, order

    def _learn(self, name: str | None, value: int | float | str | None) -> None:
        """Remember the type of a value, so that the next block can be parsed at once."""
        if name is None or value is None:
            return
        old = self.kinds.get(name)
        if isinstance(value, str):
            self.kinds[name] = pa.large_string()
        elif isinstance(value, float) or old == pa.float64():
            self.kinds[name] = pa.float64()
        else:
            self.kinds[name] = pa.int64()

    def schema(self, data: bytes, name: str) -> pa.Schema:
        """Infer the types of good records."""
        try:
            return _storable_schema(_read(data, None, "infer").schema)
        except (pa.ArrowException, UnicodeDecodeError):
            return _inferred(data, name)

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Good records with all columns of the schema."""
        try:
            table = _read(data, schema, "ignore")
        except (pa.ArrowException, UnicodeDecodeError):
            table = _reread(data, schema, name)
        return table.select(schema.names)


def _is_object_a_line(block: Block) -> bool:
    data = np.frombuffer(block.data, np.uint8)
    lasts = block.ends - 1
    lasts = lasts - (data[lasts] == 0x0A)
    lasts = lasts - (data[lasts] == 0x0D)
    return bool((data[block.starts] == 0x7B).all() and (data[lasts] == 0x7D).all())


def _read(data: bytes, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    """Parse with Arrow on all cores; the pieces are cut at line ends."""
    return arrow_json.read_json(
        pa.BufferReader(data),
        read_options=arrow_json.ReadOptions(block_size=_piece_size(data)),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior=unexpected, newlines_in_values=False
        ),
    )


def _piece_size(data: bytes) -> int:
    """Size of the pieces for the cores: none may be smaller than the longest line."""
    if len(data) <= _THREAD_BLOCK:
        return _THREAD_BLOCK
    bounds = np.concatenate(([0], positions_of(data, 0x0A), [len(data)]))
    return max(_THREAD_BLOCK, int(np.diff(bounds).max()) + 2)


def _object_of(record: str, wanted: Wanted) -> dict[str, Any]:
    """Parse one line with Python's parser, or Arrow's where that one is the more lenient.

    What Arrow takes in a whole block it must take in a single line as well: numbers such as Inf, nesting
    deeper than Python's stack.
    """
    try:
        decoded = decode(record.strip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        decoded = _by_arrow(record, wanted, error)
    if not isinstance(decoded, dict):
        raise RecordError(NOT_AN_OBJECT)
    return decoded


def _by_arrow(record: str, wanted: Wanted, fault: BaseException) -> dict[str, Any]:
    line = record.encode().strip()
    row: dict[str, Any] = {}
    for name in wanted.names:
        numbers = [] if name in wanted.texts else [pa.int64(), pa.float64()]
        column = next((found for kind in [*numbers, pa.large_string()] if (found := _column(line, name, kind))), None)
        if column is None or len(column) != 1 or line[:1] != b"{" or line[-1:] != b"}":
            raise RecordError(NOT_JSON, one_line(fault, 100)) from None
        [value] = column
        row[name] = Number(value) if isinstance(value, int | float) else value
    return row


def _column(line: bytes, name: str, kind: pa.DataType) -> list[Any] | None:
    """Return a column of a line as Arrow reads it; None where its values are of another type."""
    try:
        return _read(line, pa.schema([(name, kind)]), "ignore").column(name).to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        point = ord(text[error.start])
        raise RecordError(NOT_UTF8, f"lone surrogate \\u{point:04x} at character {error.start}") from None


def _id_of(value: Any) -> int | str:
    if value is None:
        raise RecordError(NO_ID)
    if not isinstance(value, str):
        raise RecordError(BAD_ID)
    if isinstance(value, Number) and INTEGER.match(value):
        return int(value)
    _refuse_surrogates(value)
    return str(value)


def _order_of(value: Any) -> int | float | str | None:
    if not isinstance(value, str):
        return None
    if isinstance(value, Number):
        return int(value) if INTEGER.match(value) else float(value)
    return value.encode(errors="replace").decode()


def _storable_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, _storable(field.type)) for field in schema])


def _storable(kind: pa.DataType) -> pa.DataType:
    """Type for a column of JSON: no dates, for those were strings and stay as they were written."""
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_storable(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _storable(field.type)) for field in kind])
    return kind


def _canonical(data: bytes) -> list[bytes]:
    """Write each line anew without what Arrow refuses: repeated keys, lone surrogates, endless numbers."""
    lines: list[bytes] = []
    for line in data.removesuffix(b"\n").split(b"\n"):
        try:
            plain = json.dumps(json.loads(line), ensure_ascii=False)
            lines.append(plain.encode(errors="replace"))
        except (ValueError, RecursionError):
            lines.append(line)
    return lines


def _inferred(data: bytes, name: str) -> pa.Schema:
    """Infer the schema of a block that Arrow does not take as a whole: of its lines, one by one."""
    schemas: dict[str, pa.Schema] = {}
    for line in _canonical(data):
        try:
            schema = _storable_schema(_read(line, None, "infer").schema)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            _no_table(name, error)
        schemas.setdefault(str(schema), schema)
    return unified(list(schemas.values()), name)


def _reread(data: bytes, schema: pa.Schema, name: str) -> pa.Table:
    try:
        return _read(b"\n".join(itertools.chain(_canonical(data), [b""])), schema, "ignore")
    except (pa.ArrowException, UnicodeDecodeError) as error:
        _no_table(name, error)


def _no_table(name: str, error: BaseException) -> NoReturn:
    raise InputError(
        f"{name}: its records do not fit one table ({one_line(error)}); write JSON lines instead, or give "
        "each field one type"
    ) from None
