"""Records while they are read: arrays of texts, ids and order values, broken records, batches, and names."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.arrays import as_bytes, is_text_type, one_array, type_words
from neardup.documents.column_paths import ColumnPath
from neardup.documents.inputs import InputFile
from neardup.errors import InputError, UnknownDocument
from neardup.kernels import Bools, Integers

_INT64 = range(-(1 << 63), 1 << 63)


def is_id_type(kind: pa.DataType) -> bool:
    """Return whether a column of this type can hold ids: texts and numbers."""
    return is_text_type(kind) or any(test(kind) for test in (pa.types.is_integer, pa.types.is_floating, _is_decimal))


def _is_decimal(kind: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(kind))


def joined_column(columns: Sequence[Any]) -> Any:
    """Return the texts of several columns as one column, row by row as ``join_texts``; null only if all are null.

    Parameters
    ----------
    columns : sequence of pyarrow.Array
        All of large_binary, or all of large_string.
    """
    if len(columns) == 1:
        return columns[0]
    kind = columns[0].type
    nothing, line_end = pa.scalar("", kind), pa.scalar("\n", kind)
    joined, missing = pc.fill_null(columns[0], nothing), pc.is_null(columns[0])
    for column in columns[1:]:
        texts, missing = pc.fill_null(column, nothing), pc.and_(missing, pc.is_null(column))
        has_both = pc.greater(pc.min_element_wise(pc.binary_length(joined), pc.binary_length(texts)), 0)
        # Arrow's own joins that skip nulls leave out rows in which all are null.
        joined = pc.binary_join_element_wise(joined, pc.if_else(has_both, line_end, nothing), texts, nothing)
    return pc.if_else(missing, pa.scalar(None, kind), joined)


def as_strings(binary: Any) -> Any:
    """Return a large_binary array of UTF-8 without nulls as large_string with offset 0, without a copy."""
    if binary.offset:
        _, ends, data = binary.buffers()
        span = ends.slice(binary.offset * 8, (len(binary) + 1) * 8)
        binary = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(binary), [None, span, data])
    _, offsets, data = binary.buffers()
    if offsets is None:
        offsets = pa.py_buffer(np.zeros(1, dtype=np.int64))
    return pa.LargeStringArray.from_buffers(len(binary), offsets, data if data is not None else pa.py_buffer(b""))


def lengths_of(binary: Any) -> np.ndarray:
    """Return the bytes of each value of a large_binary or large_string array: int64[n], 0 for null."""
    _, offsets, _ = binary.buffers()
    if len(binary) == 0 or offsets is None:
        return np.zeros(len(binary), dtype=np.int64)
    bounds = np.frombuffer(offsets, dtype=np.int64)[binary.offset : binary.offset + len(binary) + 1]
    return np.diff(bounds)


def invalid_utf8(binary: Any) -> np.ndarray:
    """Return the positions of the values of a large_binary array that are not valid UTF-8; nulls are valid.

    All values are checked at once at the speed of memory; only if that fails, one by one.
    """
    strings = pa.Array.from_buffers(
        pa.large_string(), len(binary), binary.buffers(), offset=binary.offset, null_count=binary.null_count
    )
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([i for i, value in enumerate(binary) if invalid_utf8_offset(value.as_py()) >= 0], np.int64)
    return np.zeros(0, dtype=np.int64)


def readable_texts(array: Any) -> Any:
    """Return texts of any type as large_string; bytes that are not valid UTF-8 become U+FFFD."""
    binary = as_bytes(array)
    broken = invalid_utf8(binary)
    if broken.size:
        values = binary.to_pylist()
        for place in broken.tolist():
            values[place] = values[place].decode(errors="replace").encode()
        binary = pa.array(values, pa.large_binary())
    return binary.cast(pa.large_string())


def value_texts(column: Any) -> list[str]:
    """Return the values of a column of any type as strings, empty for nulls."""
    array = one_array(column)
    values = readable_texts(array).to_pylist() if is_text_type(array.type) else plain_values(array)
    return ["" if value is None else str(value) for value in values]


def map_type(kind: pa.DataType, replace: Callable[[pa.DataType], pa.DataType]) -> pa.DataType:
    """Return a type in which ``replace`` was applied to the types of values, also those within lists and structs."""
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(map_type(field.type, replace)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(map_type(kind.key_type, replace), map_type(kind.item_type, replace))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        item = kind.value_field.with_type(map_type(kind.value_type, replace))
        if pa.types.is_fixed_size_list(kind):
            return pa.list_(item, kind.list_size)
        return pa.large_list(item) if pa.types.is_large_list(kind) else pa.list_(item)
    return replace(kind)


def plain_values(column: Any) -> list[Any]:
    """Return the values of a column as those of Python; times that Python cannot hold become text."""
    if pa.types.is_dictionary(column.type):
        column = one_array(column).dictionary_decode()
    kind = map_type(column.type, _in_microseconds)
    try:
        return (column if kind == column.type else column.cast(kind)).to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        raise
    except (pa.ArrowException, ValueError, OverflowError, LookupError):
        if len(column) > 1:
            return [value for row in range(len(column)) for value in plain_values(column.slice(row, 1))]
        in_utc = column.cast(map_type(column.type, _in_utc))
        return in_utc.cast(map_type(column.type, _time_as_text)).to_pylist()  # type: ignore[no-any-return]


def _in_microseconds(kind: pa.DataType) -> pa.DataType:
    """Return microseconds in place of nanoseconds, whose values in Python depend on whether pandas is there."""
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    return pa.time64("us") if kind == pa.time64("ns") else kind


def _in_utc(kind: pa.DataType) -> pa.DataType:
    # The name of a time zone may be unknown on this machine.
    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def _time_as_text(kind: pa.DataType) -> pa.DataType:
    return pa.string() if pa.types.is_temporal(kind) else kind


def invalid_utf8_offset(value: bytes | None) -> int:
    """Return the offset of the first byte that is not UTF-8; -1 if there is none."""
    try:
        (value or b"").decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def id_array(values: Sequence[int | str | None]) -> Any:
    """Return ids as int64 if all are integers that fit, else as large_string."""
    if all(value is None or (isinstance(value, int) and value in _INT64) for value in values):
        return pa.array(values, pa.int64())
    return pa.array([value if value is None else str(value) for value in values], pa.large_string())


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def order_array(values: Sequence[int | float | str | None]) -> Any:
    """Return order values as int64, float64 or large_string, the first type that holds all without a loss."""
    filled = [value for value in values if value is not None]
    if all(isinstance(value, int) and value in _INT64 for value in filled):
        return pa.array(values, pa.int64())
    if not any(isinstance(value, str) or int(value) != float(value) for value in filled if not _is_float(value)):
        return pa.array([value if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if value is None else str(value) for value in values], pa.large_string())


def ids_from(array: Any) -> Any:
    """Return ids of any id type as int64 or large_binary, which the caller checks for UTF-8.

    Numbers are written out, those that are whole without a fraction; a NaN is a null.
    """
    if is_text_type(array.type):
        return as_bytes(array)
    if pa.types.is_null(array.type):
        return array.cast(pa.large_binary())
    if pa.types.is_floating(array.type):
        array = array.cast(pa.float64())
        array = pc.if_else(pc.is_nan(array), None, array)
    try:
        return array.cast(pa.int64())
    except pa.ArrowInvalid:
        if pa.types.is_floating(array.type):
            array = pa.array(map(_written_number, array.to_pylist()), pa.large_string())
        return array.cast(pa.large_string()).cast(pa.large_binary())


def _written_number(value: float | None) -> str | None:
    """Return a number in its shortest form, without a fraction if it is whole."""
    if value is None:
        return None
    return str(int(value)) if value.is_integer() else repr(value)


def unified_schema(schemas: Sequence[pa.Schema], name: str) -> pa.Schema:
    """Return one schema for the rows of all: integers widen, and null gives way to any type.

    Raises ``InputError`` if a column has types that do not fit together; ``name`` says in what.
    """
    distinct: list[pa.Schema] = []
    for schema in schemas:
        if not any(schema.equals(earlier) for earlier in distinct):
            distinct.append(schema)
    if not distinct:
        return pa.schema([])
    try:
        merged = pa.unify_schemas(distinct, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{name}: a column has types that do not fit one table ({' '.join(str(error).split())}); write each "
            "input in its own format instead, into a folder (FOLDER/), or give the column one type"
        ) from None
    return merged.with_metadata(distinct[0].metadata)


def join_ids(parts: Sequence[Any]) -> Any:
    """Return the ids of several batches as one array: int64 if all are, else large_string.

    A corpus of JSON lines may change from numbers to strings halfway.
    """
    if not parts:
        return pa.array([], pa.int64())
    if any(chunk.type != pa.int64() for chunk in parts):
        parts = [chunk.cast(pa.large_string()) for chunk in parts]
    return pa.concat_arrays(parts)


def join_order(parts: Sequence[Any], name: str = "order") -> Any:
    """Return the order values of several batches as one array; strings that are all numbers become numbers."""
    if not parts:
        return pa.array([], pa.int64())
    kind = order_type({chunk.type for chunk in parts if chunk.null_count < len(chunk)} or {parts[0].type}, name)
    try:
        joined = pa.concat_arrays([chunk.cast(kind) for chunk in parts])
    except pa.ArrowInvalid:
        # Whole numbers that doubles do not hold.
        kind = pa.large_string()
        joined = pa.concat_arrays([chunk.cast(kind) for chunk in parts])
    return _numbers(joined) if is_text_type(kind) else joined


def order_type(kinds: set[pa.DataType], name: str) -> pa.DataType:
    """Return the type in which order values of several types are compared.

    Raises ``InputError`` if the types have no common order.
    """
    if len(kinds) > 1 and all(pa.types.is_integer(kind) for kind in kinds):
        kinds = {pa.decimal128(20, 0) if pa.uint64() in kinds else pa.int64()}
    elif len(kinds) > 1 and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        kinds = {pa.float64()}
    has_texts = any(is_text_type(kind) for kind in kinds)
    if has_texts and all(is_text_type(kind) or pa.types.is_integer(kind) for kind in kinds):
        kinds = {pa.large_string()}
    if len(kinds) > 1:
        words = " and ".join(sorted(map(type_words, kinds)))
        raise InputError(
            f"column {name!r} holds values of different types ({words}), which have no common order: choose another "
            "column or give it one type"
        )
    return next(iter(kinds))


def _numbers(strings: Any) -> Any:
    strings = strings.cast(pa.large_string())
    filled = pc.if_else(pc.equal(strings, ""), None, strings)
    # Doubles keep 15 digits.
    kinds = (pa.int64(), pa.float64()) if (pc.max(pc.binary_length(strings)).as_py() or 0) <= 15 else (pa.int64(),)
    for kind in kinds:
        try:
            return filled.cast(kind)
        except pa.ArrowInvalid:
            continue
    return strings


#: Up to this many strings are compared in a hash table, which takes about 100 bytes for each.
_MAX_ENCODED = 1 << 20


def repeated_ids(ids: Any) -> np.ndarray:
    """Return the positions of ids (int64 or large_string, without nulls) that occurred before, ascending."""
    ids = one_array(ids)
    # Neither to_numpy nor pa.array, which import pandas where it is installed: a third of the time of a small run.
    if pa.types.is_integer(ids.type):
        codes = np.from_dlpack(ids)
        if codes.size < 2 or bool(np.all(codes[1:] > codes[:-1])):
            return np.zeros(0, dtype=np.int64)
        suspects = _repeated_values(codes)
        firsts = np.unique(codes[suspects], return_index=True)[1]
        return np.delete(suspects, firsts)
    suspects = np.arange(len(ids))
    if len(ids) > _MAX_ENCODED:
        suspects = _repeated_values(_hashes(ids))
        ids = ids.take(suspects)
    codes = np.from_dlpack(pc.dictionary_encode(ids).indices)
    # Codes count up as new values appear, so a code not above all before it is a repeat.
    maxima = np.maximum.accumulate(codes)
    repeats: np.ndarray = suspects[1:][codes[1:] <= maxima[:-1]]
    return repeats


def _repeated_values(codes: np.ndarray) -> np.ndarray:
    # Sorting values is several times faster than sorting positions, and repeats are few.
    ordered = np.sort(codes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not twice.size:
        return np.zeros(0, dtype=np.int64)
    nearest = np.minimum(np.searchsorted(twice, codes), twice.size - 1)
    positions: np.ndarray = np.flatnonzero(twice[nearest] == codes)
    return positions


def _hashes(strings: Any) -> np.ndarray:
    """Return a fast hash of each string: uint64[n]."""
    from neardup.kernels.unicode import hash_texts
    from neardup.text.bulk import text_buffers

    marks = np.empty((len(strings), 2), np.uint64)
    hash_texts(*text_buffers(strings), marks)
    return marks[:, 0]


class Reason:
    """Why a record is rejected."""

    NOT_JSON = "not valid JSON"
    NOT_AN_OBJECT = "not a JSON object"
    NO_TEXT = "no text"
    NOT_A_STRING = "text is not a string"
    NOT_UTF8 = "not valid UTF-8"
    NO_ID = "no id"
    BAD_ID = "id is neither a string nor a number"
    WRONG_FIELDS = "wrong number of fields"
    OPEN_QUOTE = "broken quotes"
    TOO_LONG = "longer than the largest document allowed"
    BROKEN_RECORD = "record cannot be read"
    NOT_MAIL = "not a mail"
    NO_DOCUMENT = "it holds no document"
    DAMAGED_COMPRESSION = "compressed data is cut short or damaged"
    CUT_LINE = "last line is cut short"
    CUT_RECORD = "last record is cut short"
    UNREADABLE_GROUP = "unreadable row group"
    UNREADABLE_FILE = "unreadable file"
    NOTHING_USABLE = "no usable record"


TORN = frozenset(
    {
        *(Reason.CUT_LINE, Reason.CUT_RECORD, Reason.DAMAGED_COMPRESSION, Reason.OPEN_QUOTE),
        *(Reason.UNREADABLE_FILE, Reason.UNREADABLE_GROUP, Reason.NO_DOCUMENT),
    }
)
"""Reasons that concern a file and not one record: what is lost is unknown, or all of it is unusable."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The columns to read, and the largest document allowed."""

    text: str
    id: str | None = None
    order: str | None = None
    max_document: int | None = None
    by_file: bool = False
    """Whether each id begins with the name of its file."""
    more_texts: tuple[str, ...] = ()
    """Further columns of texts, which are joined to the first."""
    order_use: str = "order"
    """What the order column is used for: order, time or clusters."""

    @property
    def texts(self) -> tuple[str, ...]:
        """All columns of texts."""
        return (self.text, *self.more_texts)

    @property
    def names(self) -> list[str]:
        """The distinct column names, text first."""
        return list(dict.fromkeys(name for name in (*self.texts, self.id, self.order) if name is not None))


@dataclass(frozen=True, slots=True)
class RecordFault:
    """A broken record: where it is, why it is rejected, and its bytes if the reader has them.

    ``count`` is the number of rows that it stands for: 0 for damage of a file that is known to affect no row.
    """

    row: int
    reason: str
    count: int = 1
    line: int | None = None
    detail: str = ""
    record: bytes | None = None


@dataclass(slots=True)
class Chunk:
    """Consecutive raw rows of one input."""

    row_count: int
    texts: Any
    ids: Any = None
    order: Any = None
    positions: np.ndarray | None = None
    """The row of each array item, counted from the chunk's first; None if all rows are in the arrays."""
    faults: list[RecordFault] = field(default_factory=list)
    """Records that the reader could not parse, rows counted from the chunk's first."""
    bytes_read: int = 0
    locate: Callable[[int], tuple[int, bytes]] | None = None
    """Returns 1-based line and bytes of a row of the chunk; None for formats without lines."""


@dataclass(frozen=True, slots=True)
class RawRecord:
    """One raw record for the quarantine file."""

    row: int
    line: int | None
    record: bytes


class ColumnSource(Protocol):
    """An input whose columns can be chosen."""

    file: InputFile

    def columns(self) -> dict[str, pa.DataType]:
        """Return names and types of the columns, as far as the start of the input shows them."""

    def find_column(self, name: str) -> ColumnPath | None:
        """Return the column or path that a name means; None if no record has such."""

    def has_fractions(self, name: str, text: str) -> bool:
        """Return whether a column has doubles that are not whole numbers, and so no ids; ``text`` is one of texts."""


class Source(ColumnSource, Protocol):
    """One input in its format, which is read in two passes.

    Rows are counted from the source's first. ``keep`` is a mask over them.
    """

    #: The files of the source: ``file`` alone, or all of a series of text files, of which each is a row.
    files: list[InputFile]

    def chunks(self, options: ReadOptions) -> Generator[Chunk, None, None]:
        """Pass one: yield the chosen columns, chunk by chunk."""

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Return a schema for all kept rows."""

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: yield the kept rows in order, as tables of this schema."""

    def records(self, keep: np.ndarray) -> Iterator[RawRecord]:
        """Yield the kept rows one by one, as raw as the format allows."""


def partitions_beside(file: InputFile, names: Sequence[str]) -> dict[str, str | None]:
    """Return the columns that a file's folders state and the file itself lacks; a file without columns has none."""
    return {name: value for name, value in file.partitions if name not in names} if names else {}


def has_fractions(source: Source, name: str, text: str) -> bool:
    """Return whether the first doubles of a column are not all whole numbers."""
    if not pa.types.is_floating(source.columns()[name]):
        return False
    with closing(source.chunks(ReadOptions(text, order=name))) as chunks:
        values = next((chunk.order for chunk in chunks if chunk.order.null_count < len(chunk.order)), None)
    if values is None or not pa.types.is_floating(values.type):
        return False
    return not all(math.isnan(value) or value.is_integer() for value in values.drop_null().to_pylist())


def name_of_row(source: Source, row: int) -> str:
    """Return the name of the file of a row."""
    return source.files[row].name if len(source.files) > 1 else source.file.name


#: Batches with less text are merged.
MIN_BATCH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents in reading order.

    Attributes
    ----------
    texts : pa.LargeStringArray
        Valid UTF-8 without nulls, array offset 0. A batch has 1 to 16 MiB of text, save the last one, and those with a
        larger document.
    rows : int64[n]
        The raw row of each document, ascending: counted from 0 over all inputs, broken records included.
    ids, order : pa.Array or None
        Ids as int64 or large_string, and the order column, possibly null; None if there is no such column.
    bytes_read : int
        Bytes of the inputs on disk that were read since the previous batch.
    """

    texts: Any
    rows: np.ndarray
    ids: Any
    order: Any
    bytes_read: int


def split_chunk(chunk: Chunk, options: ReadOptions, first: int, id_prefix: str = "") -> tuple[Batch, list[RecordFault]]:
    """Split a chunk into its documents and its broken records; the latter have rows of the chunk.

    The rows of the documents count from ``first``. Ids begin with ``id_prefix`` if the options ask for it.
    """
    binary = as_bytes(chunk.texts)
    positions = np.arange(chunk.row_count, dtype=np.int64) if chunk.positions is None else chunk.positions
    reasons = _rejection_reasons(chunk, binary, options)
    ids, order = chunk.ids, chunk.order
    faults = list(chunk.faults)
    if reasons:
        for item, (reason, detail) in reasons.items():
            faults.append(_located_fault(chunk, int(positions[item]), reason, detail))
        good = np.ones(len(binary), dtype=bool)
        good[list(reasons)] = False
        mask = pa.array(good)
        binary, positions = binary.filter(mask), positions[good]
        ids = None if ids is None else ids.filter(mask)
        order = None if order is None else order.filter(mask)
    if ids is not None and not pa.types.is_integer(ids.type):
        ids = as_strings(as_bytes(ids))
    if ids is not None and options.by_file and id_prefix:
        prefix, nothing = pa.scalar(f"{id_prefix}:", pa.large_string()), pa.scalar("", pa.large_string())
        ids = pc.binary_join_element_wise(prefix, ids.cast(pa.large_string()), nothing)
    if order is not None and pa.types.is_dictionary(order.type):
        order = order.dictionary_decode()
    faults.sort(key=lambda fault: fault.row)
    return Batch(as_strings(binary), positions + first, ids, order, chunk.bytes_read), faults


def _rejection_reasons(chunk: Chunk, binary: Any, options: ReadOptions) -> dict[int, tuple[str, str]]:
    """Return reason and detail for each item that is rejected; the first reason that holds counts."""
    reasons: dict[int, tuple[str, str]] = {}
    if binary.null_count:
        for item in _nulls(binary):
            reasons[item] = (Reason.NO_TEXT, "")
    if not pa.types.is_large_string(chunk.texts.type):
        for item in invalid_utf8(binary).tolist():
            fault = invalid_utf8_offset(binary[item].as_py())
            reasons.setdefault(item, (Reason.NOT_UTF8, f"byte {fault} of the text"))
    if options.max_document is not None:
        lengths = lengths_of(binary)
        for item in np.flatnonzero(lengths > options.max_document).tolist():
            detail = f"{lengths[item]} bytes, {options.max_document} allowed"
            reasons.setdefault(item, (Reason.TOO_LONG, detail))
    if chunk.ids is not None:
        if chunk.ids.null_count:
            for item in _nulls(chunk.ids):
                reasons.setdefault(item, (Reason.NO_ID, ""))
        if pa.types.is_large_binary(chunk.ids.type):
            for item in invalid_utf8(chunk.ids).tolist():
                reasons.setdefault(item, (Reason.NOT_UTF8, "in the id"))
    return reasons


def _nulls(array: Any) -> list[int]:
    nulls: list[int] = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()
    return nulls


def _located_fault(chunk: Chunk, row: int, reason: str, detail: str) -> RecordFault:
    if chunk.locate is None:
        return RecordFault(row, reason, detail=detail)
    line, record = chunk.locate(row)
    return RecordFault(row, reason, 1, line, detail, record)


def merged_batches(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield batches, small ones merged, as those of many small files or row groups; large ones are not copied."""
    pending: list[Batch] = []
    size = 0
    for batch in batches:
        if pending and not _have_equal_types(pending[0], batch):
            yield from _merge(pending)
            pending, size = [], 0
        pending.append(batch)
        size += int(lengths_of(batch.texts).sum())
        if size >= MIN_BATCH_BYTES:
            yield from _merge(pending)
            pending, size = [], 0
    yield from _merge(pending)


def _have_equal_types(left: Batch, right: Batch) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or a.type == b.type)
        for a, b in ((left.ids, right.ids), (left.order, right.order))
    )


def _merge(batches: list[Batch]) -> Iterator[Batch]:
    """Yield one batch for several, or none if they have no documents."""
    filled = [batch for batch in batches if len(batch.texts)]
    bytes_read = sum(batch.bytes_read for batch in batches)
    if len(filled) < 2:
        yield from (replace(batch, bytes_read=bytes_read) for batch in filled)
        return
    texts = pa.concat_arrays([batch.texts for batch in filled])
    rows = np.concatenate([batch.rows for batch in filled])
    ids = None if filled[0].ids is None else pa.concat_arrays([batch.ids for batch in filled])
    order = None if filled[0].order is None else pa.concat_arrays([batch.order for batch in filled])
    yield Batch(texts, rows, ids, order, bytes_read)


@dataclass(frozen=True, slots=True)
class Names:
    """The names of the documents: their ids, or their row numbers if they have none.

    Attributes
    ----------
    rows : int64[n]
        The row number of each document in its input; reference documents count on after all rows of the input.
    ids : pyarrow.Array or None
        The ids of the input's documents, int64 or strings.
    reference_names : pyarrow.Array or None
        The names of the reference documents, which are the last ones; None if there is no reference.
    """

    rows: Integers
    ids: pa.Array | None
    reference_names: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def reference_count(self) -> int:
        """The number of reference documents, which are the last ones."""
        return 0 if self.reference_names is None else len(self.reference_names)

    @property
    def input_count(self) -> int:
        """The number of documents of the input, which are the first ones."""
        return len(self.rows) - self.reference_count

    def of_input(self, positions: Integers | Bools) -> pa.Array:
        """Return the names at positions or under a mask, all of the input."""
        if self.ids is None:
            return pa.array(self.rows[positions])
        chosen = np.flatnonzero(positions) if positions.dtype == np.bool_ else positions
        return self.ids.take(pa.array(chosen))

    def all_names(self) -> pa.Array:
        """Return the names of all documents: strings if only one side has integers."""
        names = pa.array(self.rows[: self.input_count]) if self.ids is None else self.ids
        return names if self.reference_names is None else join_ids([names, self.reference_names])

    def take(self, positions: Integers) -> pa.Array:
        """Return the names at positions on either side, in the type of ``all_names``."""
        return self.of_input(positions) if self.reference_names is None else self.all_names().take(pa.array(positions))

    def labels(self) -> pa.Array:
        """Return the names of all documents for pages, those of a reference with ``(reference)`` after them."""
        if self.reference_names is None:
            return self.all_names()
        names, suffix = self.all_names().cast(pa.large_string()), pa.scalar(" (reference)", pa.large_string())
        nothing = pa.scalar("", pa.large_string())
        marked = pc.binary_join_element_wise(names.slice(self.input_count), suffix, nothing)
        return pa.concat_arrays([names.slice(0, self.input_count), marked])

    def side_of(self, positions: Integers) -> pa.Array:
        """Return ``input`` or ``reference`` for each position."""
        return pa.array(np.where(positions < self.input_count, "input", "reference"), pa.string())

    def name_at(self, position: int) -> Any:
        """Return one name."""
        if self.reference_names is not None and position >= self.input_count:
            return self.reference_names[position - self.input_count].as_py()
        return int(self.rows[position]) if self.ids is None else self.ids[position].as_py()

    def position_of(self, name: Any) -> int:
        """Return the position of a document by its name; if both sides have the name, that of the input.

        Raises ``UnknownDocument`` if no document has the name.
        """
        if self.ids is None:
            rows = np.flatnonzero(self.rows[: self.input_count] == name) if isinstance(name, int) else np.zeros(0, int)
            position = int(rows[0]) if len(rows) else -1
        else:
            position = _index_in(self.ids, name)
        if position < 0 and self.reference_names is not None:
            position = _index_in(self.reference_names, name)
            position += self.input_count if position >= 0 else 0
        if position < 0:
            raise UnknownDocument(f"no document has the id {name!r}; ids are those of result.kept and result.dropped")
        return position


def _index_in(ids: pa.Array, name: Any) -> int:
    try:
        position: int = pc.index(ids, pa.scalar(name, ids.type)).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return -1
    return position
