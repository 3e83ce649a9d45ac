"""JSON lines: values as they are written, and the types of their columns."""

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

from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile, one_line
from neardup.documents.lines import LineSource, RecordError, Row
from neardup.documents.records import ReadOptions, Reason, join_texts, map_type, one_array, unified_schema
from neardup.documents.streams import BLOCK, Block, Records, Span, blocks, is_utf8, positions_of
from neardup.errors import InputError

#: The text of a number that may fit into int64.
INTEGER = re.compile(r"-?[0-9]{1,19}\Z")


class Number(str):
    """A JSON number as it is written, so that 1e999 and numbers of a million digits are preserved."""

    __slots__ = ()


#: Parses a JSON value; numbers stay strings.
decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number).decode


def column_type(counts: Counter[pa.DataType]) -> pa.DataType:
    """Return the type of a column from the number of values of each type.

    One string makes a column of strings, and one number a column of numbers.
    """
    if pa.large_string() in counts:
        return pa.large_string()
    numbers = Counter({kind: number for kind, number in counts.items() if kind in (pa.int64(), pa.float64())})
    return (numbers or counts).most_common(1)[0][0]


def count_types(record: bytes, types: dict[str, Counter[pa.DataType]]) -> None:
    """Count the type of each value of a record that is an object."""
    try:
        decoded = decode(record.decode().strip(" \t\r\n"))
    except (ValueError, RecursionError):
        return
    if isinstance(decoded, dict):
        for name, value in decoded.items():
            counts = types.setdefault(name, Counter())
            # A null says nothing about the type, unless there are only nulls.
            counts[_type_of(value)] += 0 if value is None else 1


def _type_of(value: Any) -> pa.DataType:
    if isinstance(value, Number):
        return pa.int64() if INTEGER.match(value) else pa.float64()
    kinds = {str: pa.large_string(), bool: pa.bool_(), dict: pa.struct([]), list: pa.list_(pa.null())}
    return kinds.get(type(value), pa.null())


_HEAD_LINES = 100
_THREAD_BLOCK = BLOCK // 4


def json_source(file: InputFile, codec: Codec | None, span: Span | None = None) -> LineSource:
    """Open a file of JSON lines, or a span of it.

    Raises ``InputError`` if the file is a JSON array, or its objects take several lines.
    """
    dialect = JsonLines()
    types: dict[str, Counter[pa.DataType]] = {}
    with closing(blocks(file, codec, dialect.split, 1 << 18)) as start:
        head = next(start, None)
    if head is not None:
        if head.data.lstrip()[:1] == b"[":
            raise InputError(
                f"{file.name} is a JSON array, not JSON lines: write one object a line, for instance with jq -c '.[]'"
            )
        for row in range(min(head.starts.size, _HEAD_LINES)):
            count_types(head.record(row), types)
        if not types and head.data.lstrip().partition(b"\n")[0].rstrip() == b"{":
            raise InputError(f"{file.name} has objects of several lines: write one object a line, such as with jq -c .")
    columns = {name: column_type(counts) for name, counts in types.items()}
    dialect.kinds = {
        name: kind if kind in (pa.int64(), pa.float64()) else pa.large_string() for name, kind in columns.items()
    }
    return LineSource(file, codec, dialect, 0, columns, span, "" if head is None else head.encoding)


class JsonLines:
    """The dialect of JSON lines.

    ``kinds`` are the types with which Arrow parses the columns; broken guesses are corrected as records are read.
    """

    line_end = b"\n"
    by_lines = True

    def __init__(self) -> None:
        self.kinds: dict[str, pa.DataType] = {}

    def split(self, data: bytes, is_end: bool) -> Records:
        """Return the lines."""
        ends = positions_of(data, 0x0A) + 1
        return Records(np.append(ends, len(data)) if is_end and not data.endswith(b"\n") else ends)

    def blank_records(self, block: Block) -> np.ndarray:
        """Return which lines are white space."""
        mask = np.zeros(block.starts.size, dtype=bool)
        if mask.size:
            firsts = np.frombuffer(block.data, np.uint8)[block.starts]
            for row in np.flatnonzero(firsts <= 0x20).tolist():
                mask[row] = not block.record(row).strip()
        return mask

    def parse_block(self, block: Block, options: ReadOptions) -> dict[str, Any] | None:
        """Parse all records at once, by Arrow."""
        if not _ends_with_objects(block) or not is_utf8(block.data):
            return None
        fields = [pa.field(name, self._kind(name, options)) for name in options.names]
        try:
            table = _read(block.data, pa.schema(fields), "ignore")
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if table.num_rows != block.starts.size:
            return None
        return {name: one_array(table.column(name)) for name in options.names}

    def _kind(self, name: str, options: ReadOptions) -> pa.DataType:
        kind = pa.large_string() if name in options.texts else self.kinds.get(name, pa.large_string())
        return pa.large_string() if name == options.id and kind == pa.float64() else kind

    def parse_record(self, record: str, options: ReadOptions) -> Row:
        """Parse one record, by Python."""
        decoded = _object_of(record, options)
        texts = [text for name in options.texts if (text := decoded.get(name)) is not None]
        if not texts:
            raise RecordError(Reason.NO_TEXT)
        if not all(isinstance(text, str) and not isinstance(text, Number) for text in texts):
            raise RecordError(Reason.NOT_A_STRING)
        text = join_texts(texts)
        _refuse_surrogates(text)
        key = _id_of(decoded.get(options.id)) if options.id else None
        order = _order_of(decoded.get(options.order)) if options.order else None
        self._note_type(options.id, key)
        self._note_type(options.order, order)
        return text, key, order

    def _note_type(self, name: str | None, value: int | float | str | None) -> None:
        """Note the type of a value, so that Arrow can parse the next block."""
        if name is None or value is None:
            return
        kind = self.kinds.get(name)
        if isinstance(value, str):
            self.kinds[name] = pa.large_string()
        elif isinstance(value, float) or kind == pa.float64():
            self.kinds[name] = pa.float64()
        else:
            self.kinds[name] = pa.int64()

    def schema(self, data: bytes, name: str) -> pa.Schema:
        """Return a schema for good records."""
        try:
            return _storable_schema(_read(data, None, "infer").schema)
        except (pa.ArrowException, UnicodeDecodeError):
            return _inferred(data, name)

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Return good records with all columns of the schema."""
        try:
            table = _read(data, schema, "ignore")
        except (pa.ArrowException, UnicodeDecodeError):
            table = _reread(data, schema, name)
        return table.select(schema.names)


def _ends_with_objects(block: Block) -> bool:
    """Return whether each record ends with that of an object, so that no second value begins in it."""
    data = np.frombuffer(block.data, np.uint8)
    lasts = block.ends - 1
    lasts = lasts - (data[lasts] == 0x0A)
    lasts = lasts - (data[lasts] == 0x0D)
    return bool((data[lasts] == 0x7D).all())


#: The deepest nesting for which Arrow may infer a type: it ends the process far beyond.
_DEEPEST = 1000
_NESTING = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[\[{]|[\]}]', re.DOTALL)


def _refuse_what_ends_arrow(data: bytes, *, infer: bool) -> None:
    """Raise what Arrow raises for bytes for which it would end the process instead.

    These are a piece that begins with ``null``, where a piece may begin after any line end, a carriage return among
    them; and values so deep that it cannot infer their type.
    """
    lines = np.concatenate(([0], positions_of(data, 0x0A) + 1))
    lines = lines[lines < len(data)]
    firsts = np.frombuffer(data, np.uint8)[lines]
    for begin in lines[firsts != 0x7B].tolist():
        end = data.find(b"\n", begin)
        start = data[begin : len(data) if end < 0 else end].lstrip(b" \t\r")[:1]
        if start not in (b"", b"{"):
            raise pa.ArrowInvalid("a line does not begin with an object")
    if data.count(b"\r") > data.count(b"\r\n"):
        raise pa.ArrowInvalid("a carriage return stands inside a line")
    if infer and _depth(data) > _DEEPEST:
        raise pa.ArrowInvalid(f"its values are nested deeper than {_DEEPEST} levels")


def _depth(data: bytes) -> int:
    """Return the depth of nesting, or an upper bound of it that is small."""
    if data.count(b"[") + data.count(b"{") - data.count(b"\n") <= _DEEPEST:
        return 0
    depth = deepest = 0
    for line in data.split(b"\n"):
        if line.count(b"[") + line.count(b"{") > _DEEPEST:
            for token in _NESTING.finditer(line):
                first = line[token.start()]
                depth += (first in b"[{") - (first in b"]}")
                deepest = max(deepest, depth)
            depth = 0
    return deepest


def _read(data: bytes, schema: pa.Schema | None, unexpected: str) -> pa.Table:
    """Parse with Arrow on all cores, in pieces that end at line ends."""
    _refuse_what_ends_arrow(data, infer=schema is None)
    return arrow_json.read_json(
        pa.BufferReader(data),
        read_options=arrow_json.ReadOptions(block_size=_piece_size(data)),
        parse_options=arrow_json.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior=unexpected, newlines_in_values=False
        ),
    )


def _piece_size(data: bytes) -> int:
    """Return the size of the pieces, at least that of the longest line."""
    if len(data) <= _THREAD_BLOCK:
        return _THREAD_BLOCK
    bounds = np.concatenate(([0], positions_of(data, 0x0A), [len(data)]))
    return max(_THREAD_BLOCK, int(np.diff(bounds).max()) + 2)


def _object_of(record: str, options: ReadOptions) -> dict[str, Any]:
    """Parse a line with Python's parser, or with Arrow's where that is more lenient.

    What Arrow accepts in a block must be accepted in a single line, too: numbers such as Inf, and nesting deeper than
    Python's stack.
    """
    try:
        decoded = decode(record.strip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        decoded = _parse_with_arrow(record, options, error)
    if not isinstance(decoded, dict):
        raise RecordError(Reason.NOT_AN_OBJECT)
    return decoded


def _parse_with_arrow(record: str, options: ReadOptions, fault: BaseException) -> dict[str, Any]:
    line = record.encode().strip()
    if line[:1] != b"{" or line[-1:] != b"}":
        raise RecordError(Reason.NOT_JSON, one_line(fault, 100)) from None
    row: dict[str, Any] = {}
    for name in options.names:
        numbers = [] if name in options.texts else [pa.int64(), pa.float64()]
        column = next((found for kind in [*numbers, pa.large_string()] if (found := _column(line, name, kind))), None)
        if column is None or len(column) != 1:
            raise RecordError(Reason.NOT_JSON, one_line(fault, 100)) from None
        [value] = column
        row[name] = Number(value) if isinstance(value, int | float) else value
    return row


def _column(line: bytes, name: str, kind: pa.DataType) -> list[Any] | None:
    """Return a column of a line as Arrow reads it; None if its values have another type."""
    try:
        return _read(line, pa.schema([(name, kind)]), "ignore").column(name).to_pylist()  # type: ignore[no-any-return]
    except (pa.ArrowException, UnicodeDecodeError):
        return None


def _refuse_surrogates(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        point = ord(text[error.start])
        raise RecordError(Reason.NOT_UTF8, f"lone surrogate \\u{point:04x} at character {error.start}") from None


def _id_of(value: Any) -> int | str:
    if value is None:
        raise RecordError(Reason.NO_ID)
    if not isinstance(value, str):
        raise RecordError(Reason.BAD_ID)
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
    return pa.schema([pa.field(field.name, map_type(field.type, _storable)) for field in schema])


def _storable(kind: pa.DataType) -> pa.DataType:
    """Return the type for values of JSON: no dates, which were strings and stay as they were written."""
    return pa.string() if pa.types.is_temporal(kind) else kind


def _lenient_lines(data: bytes) -> list[bytes]:
    """Return the lines without what Arrow refuses: repeated keys, lone surrogates, infinite numbers."""
    lines: list[bytes] = []
    for line in data.removesuffix(b"\n").split(b"\n"):
        try:
            plain = json.dumps(json.loads(line), ensure_ascii=False)
            lines.append(plain.encode(errors="replace"))
        except (ValueError, RecursionError):
            lines.append(line)
    return lines


def _inferred(data: bytes, name: str) -> pa.Schema:
    """Return the schema of a block that Arrow does not parse as a whole, from its lines."""
    schemas: dict[str, pa.Schema] = {}
    for line in _lenient_lines(data):
        try:
            schema = _storable_schema(_read(line, None, "infer").schema)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            _raise_no_table(name, error)
        schemas.setdefault(str(schema), schema)
    return unified_schema(list(schemas.values()), name)


def _reread(data: bytes, schema: pa.Schema, name: str) -> pa.Table:
    try:
        return _read(b"\n".join(itertools.chain(_lenient_lines(data), [b""])), schema, "ignore")
    except (pa.ArrowException, UnicodeDecodeError) as error:
        _raise_no_table(name, error)


def _raise_no_table(name: str, error: BaseException) -> NoReturn:
    raise InputError(
        f"{name}: its records do not fit one table ({one_line(error)}); write JSON lines instead, or give "
        "each field one type"
    ) from None
