"""Arrays of texts, ids and order values, whatever type they come in; and schemas that hold several inputs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.inputs import Found
from neardup.errors import InputError, UnknownDocument

Integers = npt.NDArray[np.int64]

_INT64 = range(-(1 << 63), 1 << 63)


def is_text_type(kind: pa.DataType) -> bool:
    """Whether a column of this type can hold the texts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
    )


def is_id_type(kind: pa.DataType) -> bool:
    """Whether a column of this type can hold the ids."""
    return is_text_type(kind) or bool(pa.types.is_integer(kind))


def as_bytes(array: Any) -> Any:
    """Cast any text type to large_binary, unchecked: a large_string is a view of the same buffers."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_binary(), safe=False)


def single(column: Any) -> Any:
    """Make one array of a chunked one."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def one_text(texts: Iterable[str]) -> str:
    """Return the texts of several columns as one, line by line; empty ones are left out."""
    return "\n".join(filter(None, texts))


def joined_texts(columns: Sequence[Any]) -> Any:
    """Return the texts of several columns as one column, as ``one_text`` does; null only where all are.

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
        other, missing = pc.fill_null(column, nothing), pc.and_(missing, pc.is_null(column))
        both = pc.greater(pc.min_element_wise(pc.binary_length(joined), pc.binary_length(other)), 0)
        # Arrow's own joining without nulls leaves out rows that are all null.
        joined = pc.binary_join_element_wise(joined, pc.if_else(both, line_end, nothing), other, nothing)
    return pc.if_else(missing, pa.scalar(None, kind), joined)


def as_strings(binary: Any) -> Any:
    """View a large_binary array that is known to be UTF-8 without nulls as large_string, from offset 0."""
    if binary.offset:
        binary = _from_zero(binary)
    _, offsets, data = binary.buffers()
    if offsets is None:
        offsets = pa.py_buffer(np.zeros(1, dtype=np.int64))
    return pa.LargeStringArray.from_buffers(len(binary), offsets, data if data is not None else pa.py_buffer(b""))


def _from_zero(binary: Any) -> Any:
    _, offsets, data = binary.buffers()
    span = offsets.slice(binary.offset * 8, (len(binary) + 1) * 8)
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(binary), [None, span, data])


def lengths_of(binary: Any) -> np.ndarray:
    """Bytes of each value of a large_binary or large_string array; 0 for null."""
    _, offsets, _ = binary.buffers()
    if len(binary) == 0 or offsets is None:
        return np.zeros(len(binary), dtype=np.int64)
    bounds = np.frombuffer(offsets, dtype=np.int64)[binary.offset : binary.offset + len(binary) + 1]
    return np.diff(bounds)


def not_utf8(binary: Any) -> np.ndarray:
    """Positions of the values of a large_binary array that are not valid UTF-8; nulls are fine.

    The whole is checked at once at the speed of memory; only where that fails are single values looked at.
    """
    strings = pa.Array.from_buffers(
        pa.large_string(), len(binary), binary.buffers(), offset=binary.offset, null_count=binary.null_count
    )
    try:
        strings.validate(full=True)
    except pa.ArrowInvalid:
        return np.array([i for i, value in enumerate(binary) if utf8_fault(value.as_py()) >= 0], np.int64)
    return np.zeros(0, dtype=np.int64)


def readable_texts(array: Any) -> Any:
    """Return texts of any type as large_string; what is not valid UTF-8 in them becomes U+FFFD."""
    binary = as_bytes(array)
    broken = not_utf8(binary)
    if broken.size:
        values = binary.to_pylist()
        for place in broken.tolist():
            values[place] = values[place].decode(errors="replace").encode()
        binary = pa.array(values, pa.large_binary())
    return binary.cast(pa.large_string())


def value_texts(column: Any) -> list[str]:
    """Return the values of a column of any type as texts, empty ones for nulls."""
    array = single(column)
    values = readable_texts(array) if is_text_type(array.type) else array
    return ["" if value is None else str(value) for value in values.to_pylist()]


def utf8_fault(value: bytes | None) -> int:
    """Offset of the first byte that is not UTF-8; -1 when there is none."""
    try:
        (value or b"").decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def id_array(values: Sequence[int | str | None]) -> Any:
    """Ids as int64 when all are integers that fit, else as large_string."""
    if all(value is None or (isinstance(value, int) and value in _INT64) for value in values):
        return pa.array(values, pa.int64())
    return pa.array([value if value is None else str(value) for value in values], pa.large_string())


def order_array(values: Sequence[int | float | str | None]) -> Any:
    """Order values as int64, float64 or large_string, the first that holds all."""
    filled = [value for value in values if value is not None]
    if all(isinstance(value, int) and value in _INT64 for value in filled):
        return pa.array(values, pa.int64())
    if not any(isinstance(value, str) for value in filled):
        return pa.array([value if value is None else float(value) for value in values], pa.float64())
    return pa.array([value if value is None else str(value) for value in values], pa.large_string())


def ids_from(array: Any) -> Any:
    """Ids of any id type as int64 or large_binary; the caller checks that the latter is UTF-8."""
    if pa.types.is_integer(array.type):
        try:
            return array.cast(pa.int64())
        except pa.ArrowInvalid:
            return array.cast(pa.large_string()).cast(pa.large_binary())
    return as_bytes(array)


def unified(schemas: Sequence[pa.Schema], name: str) -> pa.Schema:
    """One schema that holds the rows of all; integers widen, null gives way, and what fits no type is refused."""
    distinct: list[pa.Schema] = []
    for schema in schemas:
        if not any(schema.equals(known) for known in distinct):
            distinct.append(schema)
    if not distinct:
        return pa.schema([])
    try:
        merged = pa.unify_schemas(distinct, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise InputError(
            f"{name}: a column has types that do not fit one table ({' '.join(str(error).split())}); write "
            "JSON lines instead, or give the column one type"
        ) from None
    return merged.with_metadata(distinct[0].metadata)


def join_ids(parts: Sequence[Any]) -> Any:
    """Join the ids of several batches: int64 when all are, else large_string.

    A corpus of JSON lines may turn from numbers to strings half way.
    """
    if not parts:
        return pa.array([], pa.int64())
    if any(chunk.type != pa.int64() for chunk in parts):
        parts = [chunk.cast(pa.large_string()) for chunk in parts]
    return pa.concat_arrays(parts)


def join_order(parts: Sequence[Any], name: str = "order") -> Any:
    """Join the order values of several batches; strings that are all numbers become numbers."""
    if not parts:
        return pa.array([], pa.int64())
    kind = order_type({chunk.type for chunk in parts if chunk.null_count < len(chunk)} or {parts[0].type}, name)
    joined = pa.concat_arrays([chunk.cast(kind) for chunk in parts])
    return _numbers(joined) if is_text_type(kind) else joined


def order_type(kinds: set[pa.DataType], name: str) -> pa.DataType:
    """Return the type that order values of several types are compared in; refuse those without a common order."""
    if len(kinds) > 1 and all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        kinds = {pa.float64()}
    text = any(is_text_type(kind) for kind in kinds)
    if text and all(is_text_type(kind) or pa.types.is_integer(kind) for kind in kinds):
        kinds = {pa.large_string()}
    if len(kinds) > 1:
        raise InputError(
            f"column {name!r} holds values of types {', '.join(sorted(map(str, kinds)))}, which have no "
            "common order: choose another column or give it one type"
        )
    return next(iter(kinds))


def _numbers(strings: Any) -> Any:
    strings = strings.cast(pa.large_string())
    filled = pc.if_else(pc.equal(strings, ""), None, strings)
    for kind in (pa.int64(), pa.float64()):
        try:
            return filled.cast(kind)
        except pa.ArrowInvalid:
            continue
    return strings


#: So many strings are compared at once by a table of them, which takes some 100 bytes each.
_MOST_ENCODED = 1 << 20


def repeated_ids(ids: Any) -> np.ndarray:
    """Positions of the ids (int64 or large_string, without nulls) that occurred before, ascending."""
    ids = single(ids)
    if pa.types.is_integer(ids.type):
        codes = ids.to_numpy(zero_copy_only=False)
        if codes.size < 2 or bool(np.all(codes[1:] > codes[:-1])):
            return np.zeros(0, dtype=np.int64)
        suspects = _not_alone(codes)
        firsts = np.unique(codes[suspects], return_index=True)[1]
        return np.delete(suspects, firsts)
    suspects = _not_alone(_hashes(ids)) if len(ids) > _MOST_ENCODED else np.arange(len(ids))
    codes = pc.dictionary_encode(ids.take(suspects)).indices.to_numpy(zero_copy_only=False)
    # Codes count up as new values appear, so a code not above all before it is a repeat.
    before = np.maximum.accumulate(codes)
    again: np.ndarray = suspects[1:][codes[1:] <= before[:-1]]
    return again


def _not_alone(codes: np.ndarray) -> np.ndarray:
    """Return the positions of values that occur more than once."""
    # Sorting values is several times faster than sorting places, and repeats are few.
    ordered = np.sort(codes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not twice.size:
        return np.zeros(0, dtype=np.int64)
    nearest = np.minimum(np.searchsorted(twice, codes), twice.size - 1)
    found: np.ndarray = np.flatnonzero(twice[nearest] == codes)
    return found


def _hashes(strings: Any) -> np.ndarray:
    """Return a fast hash of each string: uint64[n]."""
    from neardup.kernels.unicode import hash_texts

    _, ends, data = strings.buffers()
    offsets = np.frombuffer(ends, np.int64)[strings.offset : strings.offset + len(strings) + 1]
    marks = np.empty((len(strings), 2), np.uint64)
    hash_texts(np.frombuffer(data or b"\0", np.uint8), offsets, marks)
    return marks[:, 0]


NOT_JSON = "not valid JSON"
NOT_AN_OBJECT = "not a JSON object"
NO_TEXT = "no text"
NOT_A_STRING = "text is not a string"
NOT_UTF8 = "not valid UTF-8"
NO_ID = "no id"
BAD_ID = "id is neither a string nor a number"
WRONG_FIELDS = "wrong number of fields"
OPEN_QUOTE = "quote never closed"
TOO_LONG = "longer than the largest document allowed"
CUT_SHORT = "compressed data is cut short or damaged"
CUT_LINE = "last line is cut short"
UNREADABLE_GROUP = "unreadable row group"
UNREADABLE_FILE = "unreadable file"

REASONS = (
    BAD_ID,
    CUT_LINE,
    CUT_SHORT,
    NOT_AN_OBJECT,
    NOT_A_STRING,
    NOT_JSON,
    NOT_UTF8,
    NO_ID,
    NO_TEXT,
    OPEN_QUOTE,
    TOO_LONG,
    UNREADABLE_FILE,
    UNREADABLE_GROUP,
    WRONG_FIELDS,
)
"""Every reason for which a reader rejects a record; the words are stable, so they can be counted."""

TORN = frozenset({CUT_LINE, CUT_SHORT, UNREADABLE_FILE, UNREADABLE_GROUP})
"""Reasons that concern the file and not one record: nobody knows what else was in it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The columns pass one reads, and the limit it holds documents to."""

    text: str
    id: str | None = None
    order: str | None = None
    max_document: int | None = None
    by_file: bool = False
    """Whether the name of its file stands before each id."""
    more: tuple[str, ...] = ()
    """Further columns of texts, which make one text with the first."""

    @property
    def texts(self) -> tuple[str, ...]:
        """The columns of the texts."""
        return (self.text, *self.more)

    @property
    def names(self) -> list[str]:
        """The distinct column names, text first."""
        return list(dict.fromkeys(name for name in (*self.texts, self.id, self.order) if name is not None))


@dataclass(frozen=True, slots=True)
class Broken:
    """A record that cannot be used: where it is, why, and its bytes where the reader has them.

    ``count`` is how many rows it stands for: 0 for damage of a file in which nobody knows of a row.
    """

    row: int
    reason: str
    count: int = 1
    line: int | None = None
    detail: str = ""
    record: bytes | None = None


@dataclass(slots=True)
class Chunk:
    """A run of raw rows of one input, read."""

    rows: int
    texts: Any
    ids: Any = None
    order: Any = None
    positions: np.ndarray | None = None
    """Row of each array item, counted from the chunk's first; None when every row is in the arrays."""
    broken: list[Broken] = field(default_factory=list)
    """What the reader itself refused, rows counted from the chunk's first."""
    consumed: int = 0
    locate: Callable[[int], tuple[int, bytes]] | None = None
    """Row of the chunk -> (1-based line, its bytes); None where there are no lines."""


@dataclass(frozen=True, slots=True)
class Raw:
    """One raw record as the quarantine wants it."""

    row: int
    line: int | None
    record: bytes


class Columns(Protocol):
    """What has columns to choose from."""

    found: Found

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns, as far as the start of the input shows them."""
        ...


class Source(Columns, Protocol):
    """One input with its format: the two passes, and looking up single rows.

    Rows are counted from the source's first. A mask over them says which rows the second pass wants.
    """

    #: The files that it is read from: ``found``, and of a run of text files each, a row a file.
    files: list[Found]

    def chunks(self, wanted: Wanted) -> Generator[Chunk, None, None]:
        """Pass one: the wanted columns, chunk by chunk."""
        ...

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """Give the schema that holds all kept rows."""
        ...

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """Pass two: the kept rows as tables of this schema, in order."""
        ...

    def records(self, keep: np.ndarray) -> Iterator[Raw]:
        """Give the kept rows one by one, as raw as the format allows."""
        ...


def name_of_row(source: Source, row: int) -> str:
    """Return the name of the file that a row of a source is from."""
    return source.files[row].name if len(source.files) > 1 else source.found.name


#: Batches with less text are joined.
SMALLEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Batch:
    """Documents in reading order.

    Attributes
    ----------
    texts : pa.LargeStringArray
        Valid UTF-8 without nulls, array offset 0; from 1 MiB of text on, save at the end, to what a reader takes in
        at a time, some 16 MiB or a larger document.
    rows : int64[n]
        Raw row of each document, ascending: counted from 0 over all inputs, broken records too.
    ids, order : pa.Array or None
        Ids as int64 or large_string, and the order column, possibly null; None where there is no such column.
    consumed : int
        Bytes of the inputs on disk that were read since the batch before.
    """

    texts: Any
    rows: np.ndarray
    ids: Any
    order: Any
    consumed: int


def valid_records(chunk: Chunk, wanted: Wanted, first: int, name: str = "") -> tuple[Batch, list[Broken]]:
    """Split a chunk into its good documents and its broken records, the latter with rows of the chunk.

    The documents' rows count from ``first``. ``name`` is the file's, for ids that are to begin with it.
    """
    binary = as_bytes(chunk.texts)
    positions = np.arange(chunk.rows, dtype=np.int64) if chunk.positions is None else chunk.positions
    faults = _faults(chunk, binary, wanted)
    ids, order = chunk.ids, chunk.order
    broken = list(chunk.broken)
    if faults:
        for item, (reason, detail) in faults.items():
            broken.append(_located(chunk, int(positions[item]), reason, detail))
        good = np.ones(len(binary), dtype=bool)
        good[list(faults)] = False
        mask = pa.array(good)
        binary, positions = binary.filter(mask), positions[good]
        ids = None if ids is None else ids.filter(mask)
        order = None if order is None else order.filter(mask)
    if ids is not None and not pa.types.is_integer(ids.type):
        ids = as_strings(as_bytes(ids))
    if ids is not None and wanted.by_file and name:
        before, nothing = pa.scalar(f"{name}:", pa.large_string()), pa.scalar("", pa.large_string())
        ids = pc.binary_join_element_wise(before, ids.cast(pa.large_string()), nothing)
    if order is not None and pa.types.is_dictionary(order.type):
        order = order.dictionary_decode()
    broken.sort(key=lambda fault: fault.row)
    return Batch(as_strings(binary), positions + first, ids, order, chunk.consumed), broken


def _faults(chunk: Chunk, binary: Any, wanted: Wanted) -> dict[int, tuple[str, str]]:
    """Item -> reason and detail; the first reason that holds counts."""
    faults: dict[int, tuple[str, str]] = {}
    if binary.null_count:
        for item in _nulls(binary):
            faults[item] = (NO_TEXT, "")
    if not pa.types.is_large_string(chunk.texts.type):
        for item in not_utf8(binary).tolist():
            fault = utf8_fault(binary[item].as_py())
            faults.setdefault(item, (NOT_UTF8, f"byte {fault} of the text"))
    if wanted.max_document is not None:
        lengths = lengths_of(binary)
        for item in np.flatnonzero(lengths > wanted.max_document).tolist():
            detail = f"{lengths[item]} bytes, {wanted.max_document} allowed"
            faults.setdefault(item, (TOO_LONG, detail))
    if chunk.ids is not None:
        if chunk.ids.null_count:
            for item in _nulls(chunk.ids):
                faults.setdefault(item, (NO_ID, ""))
        if pa.types.is_large_binary(chunk.ids.type):
            for item in not_utf8(chunk.ids).tolist():
                faults.setdefault(item, (NOT_UTF8, "in the id"))
    return faults


def _nulls(array: Any) -> list[int]:
    nulls: list[int] = np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False)).tolist()
    return nulls


def _located(chunk: Chunk, row: int, reason: str, detail: str) -> Broken:
    if chunk.locate is None:
        return Broken(row, reason, detail=detail)
    line, record = chunk.locate(row)
    return Broken(row, reason, 1, line, detail, record)


def sized(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Join small batches, as of many small files or row groups; one that is large enough is not copied."""
    pending: list[Batch] = []
    size = 0
    for batch in batches:
        if pending and not _alike(pending[0], batch):
            yield from _joined(pending)
            pending, size = [], 0
        pending.append(batch)
        size += int(lengths_of(batch.texts).sum())
        if size >= SMALLEST:
            yield from _joined(pending)
            pending, size = [], 0
    yield from _joined(pending)


def _alike(one: Batch, other: Batch) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or a.type == b.type)
        for a, b in ((one.ids, other.ids), (one.order, other.order))
    )


def _joined(batches: list[Batch]) -> Iterator[Batch]:
    """Yield one batch of several, or none of several without documents."""
    filled = [batch for batch in batches if len(batch.texts)]
    consumed = sum(batch.consumed for batch in batches)
    if len(filled) < 2:
        yield from (replace(batch, consumed=consumed) for batch in filled)
        return
    texts = pa.concat_arrays([batch.texts for batch in filled])
    rows = np.concatenate([batch.rows for batch in filled])
    ids = None if filled[0].ids is None else pa.concat_arrays([batch.ids for batch in filled])
    order = None if filled[0].order is None else pa.concat_arrays([batch.order for batch in filled])
    yield Batch(texts, rows, ids, order, consumed)


@dataclass(frozen=True, slots=True)
class Names:
    """What the documents are called: their ids, or their row numbers where there are none.

    Attributes
    ----------
    rows : int64[n]
        The row number of each document in its input; reference documents are counted on behind all rows of the input.
    ids : pyarrow.Array or None
        The ids of the input's documents, int64 or strings.
    reference_names : pyarrow.Array or None
        What the documents of a reference are called, which are the last ones; None where there is no reference.
    """

    rows: Integers
    ids: pa.Array | None
    reference_names: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def reference(self) -> int:
        """How many of the documents, the last ones, are of a reference."""
        return 0 if self.reference_names is None else len(self.reference_names)

    @property
    def own(self) -> int:
        """How many of the documents, the first ones, are of the input."""
        return len(self.rows) - self.reference

    def of(self, positions: Integers | npt.NDArray[np.bool_]) -> pa.Array:
        """Return the names at positions, or where a mask is true, all of the input."""
        if self.ids is None:
            return pa.array(self.rows[positions])
        chosen = np.flatnonzero(positions) if positions.dtype == np.bool_ else positions
        return self.ids.take(pa.array(chosen))

    def every(self) -> pa.Array:
        """Return the names of all documents: strings where only one side has whole numbers."""
        own = pa.array(self.rows[: self.own]) if self.ids is None else self.ids
        return own if self.reference_names is None else join_ids([own, self.reference_names])

    def of_any(self, positions: Integers) -> pa.Array:
        """Return the names at positions on either side, of the type that ``every`` has."""
        return self.of(positions) if self.reference_names is None else self.every().take(pa.array(positions))

    def labels(self) -> pa.Array:
        """Return the names of all documents for pages: those of a reference say that they are."""
        if self.reference_names is None:
            return self.every()
        of_input, marked = self.every().cast(pa.large_string()), pa.scalar(" (reference)", pa.large_string())
        nothing = pa.scalar("", pa.large_string())
        names = of_input.slice(self.own)
        return pa.concat_arrays([of_input.slice(0, self.own), pc.binary_join_element_wise(names, marked, nothing)])

    def side_of(self, positions: Integers) -> pa.Array:
        """Return ``input`` or ``reference`` for each position."""
        return pa.array(np.where(positions < self.own, "input", "reference"), pa.string())

    def one(self, position: int) -> Any:
        """Return one name."""
        if self.reference_names is not None and position >= self.own:
            return self.reference_names[position - self.own].as_py()
        return int(self.rows[position]) if self.ids is None else self.ids[position].as_py()

    def position(self, name: Any) -> int:
        """Return where the document of that name is; where both sides have one, that of the input."""
        if self.ids is None:
            found = np.flatnonzero(self.rows[: self.own] == name) if isinstance(name, int) else np.zeros(0, int)
            place = int(found[0]) if len(found) else -1
        else:
            place = _index_in(self.ids, name)
        if place < 0 and self.reference_names is not None:
            place = _index_in(self.reference_names, name)
            place += self.own if place >= 0 else 0
        if place < 0:
            raise UnknownDocument(f"no document has the id {name!r}; ids are those of result.kept and result.dropped")
        return place


def _index_in(ids: pa.Array, name: Any) -> int:
    try:
        place: int = pc.index(ids, pa.scalar(name, ids.type)).as_py()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return -1
    return place
