"""JSON lines: values as they are written, and the types of their columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.json as arrow_json

from neardup.documents.arrays import join_texts, one_array
from neardup.documents.column_paths import ColumnPath, find_in_types, possible_paths
from neardup.documents.compression import Codec
from neardup.documents.inputs import InputFile, one_line
from neardup.documents.json_numbers import INTEGER, Number, decode, exact_schema, inexact_numbers, is_exact, plain_lines
from neardup.documents.lines import LineSource, RecordError, Row
from neardup.documents.records import ReadOptions, Reason, Source, map_type, unified_schema
from neardup.documents.streams import BLOCK, Block, Records, Span, blocks, is_utf8, positions_of
from neardup.errors import InputError

#: The text of a whole number, with zeros at most as its fraction.
_WHOLE = re.compile(r"(-?[0-9]+)(?:\.0*)?\Z")
_NAME_PARTS = re.compile(r"[.\[\]]")


#: The types of the values of a column: of each kind their number, and one type that holds them.
_Types = dict[str, tuple[int, pa.DataType]]
_DEEPEST = 32


def column_type(types: _Types) -> pa.DataType:
    """Return the type of a column from the types of its values.

    One string makes a column of strings, and one number a column of numbers.
    """
    if "text" in types:
        return types["text"][1]
    numbers = {kind: found for kind, found in types.items() if kind in ("integer", "number")}
    return max((numbers or types).values(), key=lambda found: found[0])[1]


def count_types(record: bytes, columns: dict[str, _Types]) -> None:
    """Count the type of each value of a record that is an object."""
    try:
        decoded = decode(record.decode().strip(" \t\r\n"))
    except (ValueError, RecursionError):
        return
    if isinstance(decoded, dict):
        for name, value in decoded.items():
            types, kind = columns.setdefault(name, {}), _kind_of(value)
            count, earlier = types.get(kind, (0, pa.null()))
            # A null says nothing about the type, unless there are only nulls.
            types[kind] = count + (value is not None), merged_type(earlier, type_of(value), lenient=True) or earlier


def _kind_of(value: Any) -> str:
    if isinstance(value, Number):
        return "integer" if INTEGER.match(value) else "number"
    return {str: "text", bool: "bool", dict: "object", list: "list"}.get(type(value), "null")


def type_of(value: Any, depth: int = 0) -> pa.DataType:
    """Return the type of a decoded value, of its first levels."""
    if isinstance(value, Number):
        return pa.int64() if INTEGER.match(value) else pa.float64()
    if isinstance(value, dict):
        fields = value.items() if depth < _DEEPEST else ()
        # A name with a lone surrogate is no name in Arrow; outputs have a question mark in its place.
        plain = {name.encode(errors="replace").decode(): inner for name, inner in fields}
        return pa.struct([(name, type_of(inner, depth + 1)) for name, inner in plain.items()])
    if isinstance(value, list):
        item = pa.null()
        for inner in value if depth < _DEEPEST else ():
            item = merged_type(item, type_of(inner, depth + 1), lenient=True) or item
        return pa.list_(item)
    return {str: pa.large_string(), bool: pa.bool_()}.get(type(value), pa.null())


def merged_type(left: pa.DataType, right: pa.DataType, *, lenient: bool = False) -> pa.DataType | None:
    """Return a type for values of two types; None if they do not fit together, or if ``lenient`` text or the first."""
    if left == right or pa.types.is_null(right):
        return left
    if pa.types.is_null(left):
        return right
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        fields = {field.name: field.type for field in left}
        for field in right:
            merged = merged_type(fields.get(field.name, pa.null()), field.type, lenient=lenient)
            if merged is None:
                return None
            fields[field.name] = merged
        return pa.struct(list(fields.items()))
    if pa.types.is_list(left) and pa.types.is_list(right):
        item = merged_type(left.value_type, right.value_type, lenient=lenient)
        return None if item is None else pa.list_(item)
    if {left, right} == {pa.int64(), pa.float64()}:
        return pa.float64()
    return None if not lenient else right if right == pa.large_string() else left


_HEAD_LINES = 100
_THREAD_BLOCK = BLOCK // 4


def json_source(file: InputFile, codec: Codec | None, span: Span | None = None) -> LineSource:
    """Open a file of JSON lines, or a span of it.

    Raises ``InputError`` if the file is a JSON array, or its objects take several lines.
    """
    dialect = JsonLines()
    types: dict[str, _Types] = {}
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
    dialect.types = columns
    return LineSource(file, codec, dialect, 0, columns, span, "" if head is None else head.encoding)


def names_in(line: bytes) -> list[str]:
    """Return the names in a JSON object that was read before; of what only Arrow reads, all strings."""
    try:
        return list(decode(line.decode()))
    except (ValueError, RecursionError):
        return [name.decode(errors="replace") for name in re.findall(rb'"([^"]*)"\s*:', line)]


class JsonLines:
    """The dialect of JSON lines.

    ``types`` are the types of the columns as far as they are known. ``_kinds`` are those with which Arrow parses values
    that are no texts; broken guesses are corrected as records are read.
    """

    line_end = b"\n"
    by_lines = True

    def __init__(self) -> None:
        self.types: dict[str, pa.DataType] = {}
        self._kinds: dict[str, pa.DataType] = {}
        self._found: dict[str, ColumnPath] = {}

    def find_column(self, name: str) -> ColumnPath | None:
        """Return the column or path that a name means, as far as is known; None if no record read so far has it."""
        return self._found.get(name) or find_in_types(name, self.types)

    def look_for(self, name: str, block: Block) -> bool:
        """Look for a column or path in the records of a block, and return whether one has it."""
        # Only records with the first and the last name are parsed; names may be written with escapes.
        names = [part for part in _NAME_PARTS.split(name) if part and not part.isdecimal()]
        needles = [part.encode() for part in names[:1] + names[-1:] if part.isascii()]
        if not all(needle in block.data for needle in needles):
            return False
        for row in range(block.starts.size):
            record = block.record(row)
            if all(needle in record for needle in needles) and self._look_in(name, record):
                return True
        return False

    def _look_in(self, name: str, record: bytes) -> bool:
        try:
            decoded = decode(record.decode().strip(" \t\r\n"))
        except (ValueError, RecursionError):
            return False
        for path in possible_paths(name, decoded) if isinstance(decoded, dict) else ():
            value = path.of_object(decoded)
            if value not in (None, "", []):
                kind = type_of(value)
                self._found[name] = replace(
                    path, kind=kind.value_type if path.is_list and isinstance(value, list) else kind
                )
                return True
        return False

    def _path(self, name: str, options: ReadOptions) -> ColumnPath:
        """Return the column or path that a name means; one that no record has is a column."""
        path = self.find_column(name) or next(iter(possible_paths(name, self.types)), ColumnPath(name))
        return path.as_text() if name in options.texts else path

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
        paths = {name: self._path(name, options) for name in options.names}
        roots: dict[str, pa.DataType] = {}
        for name, path in paths.items():
            kind = merged_type(roots.get(path.root, pa.null()), path.json_type(self._kind(name, path, options)))
            if kind is None:
                return None
            roots[path.root] = kind
        schema = pa.schema(list(roots.items()))
        if next(inexact_numbers(block.data, schema), None) is not None:
            return None
        try:
            table = _read(block.data, schema, "ignore")
        except (pa.ArrowException, UnicodeDecodeError):
            return None
        if table.num_rows != block.starts.size:
            return None
        columns = {name: path.of_array(one_array(table.column(path.root))) for name, path in paths.items()}
        return {
            name: c.cast(pa.large_string()) if pa.types.is_large_binary(c.type) else c for name, c in columns.items()
        }

    def _kind(self, name: str, path: ColumnPath, options: ReadOptions) -> pa.DataType:
        if name in options.texts:
            return pa.large_string()
        kind = self._kinds.get(name, path.kind)
        is_exact = kind == pa.int64() or (kind == pa.float64() and name != options.id)
        return kind if is_exact else pa.large_string()

    def parse_record(self, record: str, options: ReadOptions) -> Row:
        """Parse one record, by Python."""
        values = _values_of(record, {name: self._path(name, options) for name in options.names})
        texts = [text for name in options.texts if (text := _text_at(name, values[name], options)) is not None]
        if not texts:
            raise RecordError(Reason.NO_TEXT)
        if not all(isinstance(text, str) and not isinstance(text, Number) for text in texts):
            raise RecordError(Reason.NOT_A_STRING)
        text = join_texts(texts)
        _refuse_surrogates(text)
        key = _id_of(values[options.id]) if options.id else None
        order = _order_of(values[options.order]) if options.order else None
        self._note_type(options.id, key)
        self._note_type(options.order, order)
        return text, key, order

    def _note_type(self, name: str | None, value: int | float | str | None) -> None:
        """Note the type of a value, so that Arrow can parse the next block."""
        if name is None or value is None:
            return
        if isinstance(value, str):
            self._kinds[name] = pa.large_string()
        elif isinstance(value, float) or self._kinds.get(name) == pa.float64():
            self._kinds[name] = pa.float64()
        else:
            self._kinds[name] = pa.int64()

    def schema(self, data: bytes, name: str) -> pa.Schema:
        """Return a schema for good records."""
        try:
            return _storable_schema(_read(data, None, "infer").schema)
        except (pa.ArrowException, UnicodeDecodeError):
            return _inferred(data, name)

    def with_members(self, lines: bytes, values: Mapping[str, str | None]) -> bytes:
        """Return records with further members at their ends; a member that a record has stays as it is."""
        keys = {name: json.dumps(name, ensure_ascii=False).encode() for name in values}
        parts: list[bytes] = []
        for line in lines.removesuffix(b"\n").split(b"\n"):
            # A name may be written with escapes.
            is_simple = b"\\u" not in line and not any(key in line for key in keys.values())
            own = () if is_simple else names_in(line)
            members = {name: value for name, value in values.items() if name not in own}
            body = line.rstrip()[:-1].rstrip()
            if members:
                written = json.dumps(members, ensure_ascii=False).encode()[1:]
                line = body + (b"" if body.endswith(b"{") else b", ") + written
            parts += [line, b"\n"]
        return b"".join(parts)

    def table(self, data: bytes, schema: pa.Schema, name: str) -> pa.Table:
        """Return good records with all columns of the schema."""
        for place, number in inexact_numbers(data, schema):
            raise InputError(
                f"{name}: column {place[0]!r} holds {number[:60]}, which would be rounded beside the numbers of the "
                "other inputs; write JSON lines instead, or write each input into a folder (FOLDER/)"
            )
        try:
            table = _read(data, schema, "ignore")
        except (pa.ArrowException, UnicodeDecodeError):
            table = _reread(data, schema, name)
        return table.select(schema.names)

    def exact_schema(self, schema: pa.Schema, parts: Callable[[], Iterable[bytes]]) -> pa.Schema:
        """Return a schema in which no number of the records is rounded."""
        return exact_schema(schema, parts, _can_read)


def _can_read(data: bytes, schema: pa.Schema) -> bool:
    try:
        _read(data, schema, "ignore")
    except (pa.ArrowException, UnicodeDecodeError):
        return False
    return True


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


def _values_of(record: str, paths: Mapping[str, ColumnPath]) -> dict[str, Any]:
    """Parse a line with Python's parser, or with Arrow's where that is more lenient; return the values of the paths.

    What Arrow accepts in a block must be accepted in a single line, too: numbers such as Inf, and nesting deeper than
    Python's stack.
    """
    try:
        decoded = decode(record.strip(" \t\r\n"))
    except (ValueError, RecursionError) as error:
        return _parse_with_arrow(record, paths, error)
    if not isinstance(decoded, dict):
        raise RecordError(Reason.NOT_AN_OBJECT)
    return {name: path.of_object(decoded) for name, path in paths.items()}


def _parse_with_arrow(record: str, paths: Mapping[str, ColumnPath], fault: BaseException) -> dict[str, Any]:
    line = record.encode().strip()
    if line[:1] != b"{" or line[-1:] != b"}":
        raise RecordError(Reason.NOT_JSON, one_line(fault, 100)) from None
    row: dict[str, Any] = {}
    for name, path in paths.items():
        kinds = (pa.int64(), pa.float64(), pa.large_string())
        column = next((found for kind in kinds if (found := _column(line, path.root, path.json_type(kind)))), None)
        if column is None or len(column) != 1:
            raise RecordError(Reason.NOT_JSON, one_line(fault, 100)) from None
        value = path.of_object({path.root: column[0]})
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


def _text_at(name: str, value: Any, options: ReadOptions) -> Any:
    """Return the value of a text path; where another path goes on from it, only its strings count."""
    goes_on = any(other.startswith((f"{name}[", f"{name}.")) for other in options.texts)
    if not goes_on or not isinstance(value, list | dict):
        return value
    return join_texts(item for item in value if type(item) is str) or None


def _id_of(value: Any) -> int | str:
    if value is None:
        raise RecordError(Reason.NO_ID)
    if not isinstance(value, str):
        raise RecordError(Reason.BAD_ID)
    if isinstance(value, Number):
        whole = _WHOLE.match(value)
        return str(value) if whole is None else int(whole[1]) if INTEGER.match(whole[1]) else whole[1]
    _refuse_surrogates(value)
    return value


def _order_of(value: Any) -> int | float | str | None:
    if not isinstance(value, str):
        return None
    if isinstance(value, Number):
        return int(value) if INTEGER.match(value) else float(value) if is_exact(value) else str(value)
    return value.encode(errors="replace").decode()


def _storable_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(field.name, map_type(field.type, _storable)) for field in schema])


def _storable(kind: pa.DataType) -> pa.DataType:
    """Return the type for values of JSON: no dates, which were strings and stay as they were written."""
    return pa.string() if pa.types.is_temporal(kind) else kind


def _inferred(data: bytes, name: str) -> pa.Schema:
    """Return the schema of a block that Arrow does not parse as a whole, from its lines."""
    schemas: dict[str, pa.Schema] = {}
    for line in plain_lines(data):
        try:
            schema = _storable_schema(_read(line, None, "infer").schema)
        except (pa.ArrowException, UnicodeDecodeError) as error:
            _raise_no_table(name, error)
        schemas.setdefault(str(schema), schema)
    return unified_schema(list(schemas.values()), name)


def _reread(data: bytes, schema: pa.Schema, name: str) -> pa.Table:
    try:
        return _read(b"\n".join([*plain_lines(data, schema), b""]), schema, "ignore")
    except (pa.ArrowException, UnicodeDecodeError) as error:
        _raise_no_table(name, error)


def _raise_no_table(name: str, error: BaseException) -> NoReturn:
    raise InputError(
        f"{name}: its records do not fit one table ({one_line(error)}); write JSON lines instead, or give "
        "each field one type"
    ) from None


def may_have_records(source: Source) -> bool:
    """Return whether ``texts_of_records`` can read a source: JSON lines, and what is written as such."""
    return not isinstance(source, LineSource) or isinstance(source.dialect, JsonLines)


def texts_of_records(masked: Iterable[tuple[Source, np.ndarray]], texts: Sequence[str]) -> pa.Table:
    """Return records whose values fit no table as a table of strings.

    Its columns are the fields of the records and those of objects in them by their paths, each value as it is written,
    and under the first name of ``texts`` the texts of these columns and paths.
    """
    rows: list[dict[str, str | None]] = []
    for source, mask in masked:
        paths = [path.as_text() for name in texts if (path := source.find_column(name)) is not None]
        for raw in source.records(mask):
            decoded = decode(raw.record.decode().strip(" \t\r\n"))
            row = {name: _written(value) for name, value in _fields_by_path(decoded)}
            found = [text for path in paths if isinstance(text := path.of_object(decoded), str)]
            rows.append(row | {texts[0]: join_texts(found)})
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    return pa.table({name: pa.array(values, pa.large_string()) for name, values in columns.items()})


def _fields_by_path(value: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, inner in value.items():
        if isinstance(inner, dict):
            yield from _fields_by_path(inner, f"{prefix}{name}.")
        yield prefix + name, inner


def _written(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value if value is None else value.encode(errors="replace").decode()
    return json.dumps(value, ensure_ascii=False).encode(errors="replace").decode()
