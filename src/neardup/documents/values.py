"""Arrays of texts, ids and order values, whatever type they come in; and schemas that hold several inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.errors import InputError

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
    """One schema that holds the rows of all; integers widen, null gives way.

    Raises
    ------
    InputError
        When a column has types that no type holds.
    """
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
    if any(part.type != pa.int64() for part in parts):
        parts = [part.cast(pa.large_string()) for part in parts]
    return pa.concat_arrays(parts)


def join_order(parts: Sequence[Any], name: str = "order") -> Any:
    """Join the order values of several batches; strings that are all numbers become numbers.

    Raises
    ------
    InputError
        When numbers meet text, dates or anything else that has no common order with them.
    """
    if not parts:
        return pa.array([], pa.int64())
    kind = order_type({part.type for part in parts if part.null_count < len(part)} or {parts[0].type}, name)
    joined = pa.concat_arrays([part.cast(kind) for part in parts])
    return _numbers(joined) if is_text_type(kind) else joined


def order_type(kinds: set[pa.DataType], name: str) -> pa.DataType:
    """Return the type that order values of several types are compared in.

    Raises
    ------
    InputError
        When there is none.
    """
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


def repeated_ids(ids: Any) -> np.ndarray:
    """Positions of the ids that occurred before, ascending.

    Parameters
    ----------
    ids : pa.Array
        int64 or large_string, without nulls.

    Returns
    -------
    np.ndarray
        int64.
    """
    ids = single(ids)
    if pa.types.is_integer(ids.type):
        codes = ids.to_numpy(zero_copy_only=False)
        if codes.size < 2 or bool(np.all(codes[1:] > codes[:-1])):
            return np.zeros(0, dtype=np.int64)
    else:
        codes = pc.dictionary_encode(ids).indices.to_numpy(zero_copy_only=False)
        if codes.size == 0 or int(codes.max()) + 1 == codes.size:
            return np.zeros(0, dtype=np.int64)
        # Codes count up as new values appear, so a code not above all before it is a repeat.
        before = np.maximum.accumulate(codes)
        return np.flatnonzero(codes[1:] <= before[:-1]) + 1
    # Sorting values is several times faster than sorting places, and repeats are few.
    ordered = np.sort(codes)
    twice = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not twice.size:
        return np.zeros(0, dtype=np.int64)
    nearest = np.minimum(np.searchsorted(twice, codes), twice.size - 1)
    suspects = np.flatnonzero(twice[nearest] == codes)
    firsts = np.unique(codes[suspects], return_index=True)[1]
    return np.delete(suspects, firsts)
