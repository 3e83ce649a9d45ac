"""Arrow arrays of documents: texts, plain types in place of rare ones, and the words for types."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LISTED_FIELDS = 8


def is_text_type(kind: pa.DataType) -> bool:
    """Return whether a column of this type can hold texts."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
        *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
    )
    return any(test(kind) for test in tests)


def as_bytes(array: Any) -> Any:
    """Cast any text type to large_binary, unchecked: a large_string is a view of the same buffers."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(pa.large_binary(), safe=False)


def one_array(column: Any) -> Any:
    """Return a chunked array as one array."""
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def join_texts(texts: Iterable[str]) -> str:
    """Return several texts as one, each on a line of its own; empty ones are left out."""
    return "\n".join(filter(None, texts))


def is_list_type(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return a type without views, runs, extensions and dictionaries, for which Arrow has few functions.

    A dictionary of texts stays one at the top, because it saves memory.
    """
    if pa.types.is_dictionary(kind) and is_text_type(kind):
        return pa.dictionary(kind.index_type, _plain_value(kind.value_type), kind.ordered)
    return _plain_value(kind)


def _plain_value(kind: pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.BaseExtensionType):
        return pa.large_string() if kind.extension_name == "arrow.uuid" else _plain_value(kind.storage_type)
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        return _plain_value(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_plain_value(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(_plain_value(kind.key_type), _plain_value(kind.item_type))
    if is_list_type(kind) or _is_list_view(kind):
        item = kind.value_field.with_type(_plain_value(kind.value_type))
        if is_list_type(kind) and item.type == kind.value_type:
            return kind
        return pa.list_(item) if pa.types.is_list(kind) else pa.large_list(item)
    return kind


def _is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))


def plain_array(array: Any) -> Any:
    """Return an array in its plain type (`plain_type`); nothing is copied if it has that already."""
    if isinstance(array, pa.ChunkedArray):
        return pa.chunked_array(list(map(plain_array, array.chunks)), plain_type(array.type))
    if pa.types.is_dictionary(array.type) and is_text_type(array.type):
        if plain_type(array.type) == array.type:
            return array
        values = _plain_values(array.dictionary)
        return pa.DictionaryArray.from_arrays(array.indices, values, ordered=array.type.ordered)
    return _plain_values(array)


def _plain_values(array: Any) -> Any:
    kind, target = array.type, _plain_value(array.type)
    if kind == target:
        return array
    if isinstance(kind, pa.BaseExtensionType):
        if kind.extension_name == "arrow.uuid":
            return pa.array([None if key is None else str(key) for key in array.to_pylist()], target)
        return _plain_values(array.storage)
    if pa.types.is_dictionary(kind):
        return _plain_values(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(kind):
        return _plain_values(pc.run_end_decode(array))
    if pa.types.is_struct(kind):
        children = list(map(_plain_values, array.flatten()))
        return pa.StructArray.from_arrays(children, fields=list(target), mask=array.is_null())
    if is_list_type(kind) or _is_list_view(kind):
        lengths = np.asarray(pc.fill_null(pc.list_value_length(array), 0), np.int64)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        values = _plain_values(pc.list_flatten(array))
        make, width = (pa.ListArray, np.int32) if pa.types.is_list(target) else (pa.LargeListArray, np.int64)
        return make.from_arrays(pa.array(offsets.astype(width)), values, type=target, mask=array.is_null())
    return array.cast(target)


def type_words(kind: pa.DataType) -> str:
    """Return the words for a type of values, such as "whole number" or "list of texts"."""
    kind = _plain_value(kind)
    if pa.types.is_struct(kind):
        return f"object{_listed_fields(kind)}"
    if is_list_type(kind):
        item = _plain_value(kind.value_type)
        if pa.types.is_struct(item):
            return f"list of objects{_listed_fields(item)}"
        if pa.types.is_null(item):
            return "list"
        words = type_words(item)
        return f"list of {_PLURALS.get(words) or _plural(words)}"
    return next((words for test, words in _WORDS if test(kind)), str(kind))


def _plural(words: str) -> str:
    noun, of, rest = words.partition(" of ")
    return f"{noun}s{of}{rest}"


def _listed_fields(kind: pa.DataType) -> str:
    names = [" ".join(field.name.split())[:40] for field in kind]
    if not names:
        return ""
    more = f" and {len(names) - _LISTED_FIELDS} more" if len(names) > _LISTED_FIELDS else ""
    return f" with {', '.join(names[:_LISTED_FIELDS])}{more}"


_PLURALS = {"true or false": "true and false", "bytes": "bytes"}
_WORDS: tuple[tuple[Any, str], ...] = (
    (lambda kind: is_text_type(kind) and not pa.types.is_string(kind) and not pa.types.is_large_string(kind), "bytes"),
    (is_text_type, "text"),
    (pa.types.is_integer, "whole number"),
    (lambda kind: pa.types.is_floating(kind) or pa.types.is_decimal(kind), "number"),
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_date, "date"),
    (pa.types.is_timestamp, "time"),
    (pa.types.is_time, "time of day"),
    (lambda kind: pa.types.is_duration(kind) or pa.types.is_interval(kind), "duration"),
    (pa.types.is_map, "map"),
    (pa.types.is_null, "empty"),
    (pa.types.is_fixed_size_binary, "bytes"),
)
