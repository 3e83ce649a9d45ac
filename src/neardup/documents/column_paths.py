"""Columns by name or path, such as ``doc.text`` and ``messages[].content``, and the words for their types.

A path goes down from a column: ``.name`` to a field of an object, ``[]`` to every item of a list, and ``[0]`` to one
item. The values that ``[]`` reaches make one text, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.arrays import (
    as_bytes,
    is_list_type,
    is_text_type,
    join_texts,
    one_array,
    plain_array,
    plain_type,
)

#: A step of a path: the name of a field, the number of an item, or EACH.
Step = str | int | None
#: The step to every item of a list.
EACH: Step = None
_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]{0,9})\]")


@dataclass(frozen=True, slots=True)
class ColumnPath:
    """A column, or a part of it.

    Attributes
    ----------
    root : str
        The name of the column.
    steps : tuple of Step
        The steps from the column down; none for the column itself.
    kind : pyarrow.DataType
        The type of the values.
    """

    root: str
    steps: tuple[Step, ...] = ()
    kind: pa.DataType = field(default_factory=pa.null)

    def __str__(self) -> str:
        return self.root + "".join(map(_step_text, self.steps))

    @property
    def is_list(self) -> bool:
        """Whether a row may have several values."""
        return EACH in self.steps

    def as_text(self) -> ColumnPath:
        """Return the path to the texts in a list of texts; other paths are returned as they are."""
        if is_list_type(self.kind) and is_text_type(self.kind.value_type):
            return replace(self, steps=(*self.steps, EACH), kind=self.kind.value_type)
        return self

    def json_type(self, leaf: pa.DataType) -> pa.DataType:
        """Return the type with which Arrow reads the column from JSON."""
        for step in reversed(self.steps):
            leaf = pa.struct([(step, leaf)]) if isinstance(step, str) else pa.list_(leaf)
        return leaf

    def of_object(self, decoded: Mapping[str, Any]) -> Any:
        """Return the value in a JSON object, None if there is none; the texts of ``[]`` as one, line by line."""
        value = _value_at(decoded.get(self.root), self.steps)
        if self.is_list and isinstance(value, list) and all(type(item) is str for item in value):
            return join_texts(value)
        return value

    def of_array(self, array: Any) -> Any:
        """Return the values in an Arrow column, row by row; those of ``[]`` are joined line by line."""
        first = self.steps.index(EACH) if EACH in self.steps else len(self.steps)
        values = plain_array(array)
        for step in self.steps[:first]:
            values = _step_down(values, step)
        return values if first == len(self.steps) else _joined_items(values, self.steps[first:])


def _step_text(step: Step) -> str:
    return f".{step}" if isinstance(step, str) else f"[{'' if step is None else step}]"


def _value_at(value: Any, steps: Sequence[Step]) -> Any:
    for number, step in enumerate(steps):
        if isinstance(step, str):
            value = value.get(step) if isinstance(value, Mapping) else None
        elif not isinstance(value, list):
            return None
        elif step is None:
            rest = steps[number + 1 :]
            found = [_value_at(item, rest) for item in value]
            if EACH in rest:
                return [inner for items in found if items is not None for inner in items]
            return [inner for inner in found if inner is not None]
        else:
            value = value[step] if step < len(value) else None
    return value


def column_words(columns: Mapping[str, str | None]) -> str:
    """Return the words for the columns that were used, such as "text = content, id = url"."""
    return ", ".join(
        "no id: rows are numbered" if name is None else f"{use} = {' '.join(name.split())}"
        for use, name in columns.items()
    )


def parse_steps(text: str) -> tuple[Step, ...] | None:
    """Return the steps that follow the name of a column, such as ``[].content``; None if they are not steps."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            return None
        field, number = match.groups()
        steps.append(field if field is not None else int(number) if number else EACH)
        position = match.end()
    return tuple(steps)


def possible_paths(name: str, columns: Iterable[str]) -> list[ColumnPath]:
    """Return the paths that a name may mean, the column with the longest name first; their types are unknown."""
    found = [
        ColumnPath(column, steps)
        for column in columns
        if name.startswith(column) and (steps := parse_steps(name[len(column) :])) is not None
    ]
    return sorted(found, key=lambda path: -len(path.root))


def find_in_types(name: str, types: Mapping[str, pa.DataType]) -> ColumnPath | None:
    """Return the column or path that a name means among columns of these types; None if there is no such."""
    for path in possible_paths(name, types):
        kind = _type_at(types[path.root], path.steps)
        if kind is not None:
            return replace(path, kind=kind)
    return None


def find_in_table(table: pa.Table, name: str) -> Any:
    """Return the column of a table that a name or path means, as an array; None if there is no such."""
    path = find_in_types(name, {field.name: field.type for field in table.schema})
    return None if path is None else path.of_array(one_array(table[path.root]))


def texts_in(table: pa.Table, name: str) -> Any:
    """Return the texts of a table that a name or path means, as an array; null if there is no such."""
    path = find_in_types(name, {field.name: field.type for field in table.schema})
    if path is None:
        return pa.nulls(table.num_rows, pa.large_binary())
    path = path.as_text()
    return path.of_array(one_array(table[path.root]))


def _type_at(kind: pa.DataType, steps: Sequence[Step]) -> pa.DataType | None:
    kind = plain_type(kind)
    for step in steps:
        if isinstance(step, str):
            if pa.types.is_map(kind) and is_text_type(kind.key_type):
                kind = kind.item_type
            elif pa.types.is_struct(kind) and kind.get_field_index(step) >= 0:
                kind = kind.field(step).type
            else:
                return None
        elif is_list_type(kind):
            kind = kind.value_type
        else:
            return None
    return kind


def _step_down(array: Any, step: Step) -> Any:
    """Return a field of each object, or an item of each list; null where there is none."""
    if isinstance(step, str):
        return pc.map_lookup(array, step, "last") if pa.types.is_map(array.type) else pc.struct_field(array, step)
    items, owners = pc.list_flatten(array), np.asarray(pc.list_parent_indices(array), np.int64)
    places = np.arange(len(owners)) - np.searchsorted(owners, owners)
    chosen = np.flatnonzero(places == step)
    taken = np.full(len(array), -1, np.int64)
    taken[owners[chosen]] = chosen
    return items.take(pa.array(taken, mask=taken < 0))


def _joined_items(array: Any, steps: Sequence[Step]) -> Any:
    """Return the texts that steps from a list reach as one text a row; null where the list itself is missing."""
    items, owners = array, np.arange(len(array))
    for step in steps:
        if step is None:
            parents = np.asarray(pc.list_parent_indices(items), np.int64)
            items, owners = pc.list_flatten(items), owners[parents]
        else:
            items = _step_down(items, step)
    texts = as_bytes(items) if is_text_type(items.type) else pa.nulls(len(items), pa.large_binary())
    is_filled = pc.fill_null(pc.greater(pc.binary_length(texts), 0), False)
    mask = np.asarray(is_filled.to_numpy(zero_copy_only=False), np.bool_)
    counts = np.bincount(owners[mask], minlength=len(array))
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int64())
    lists = pa.LargeListArray.from_arrays(offsets, texts.filter(is_filled))
    joined = pc.binary_join(lists, pa.scalar(b"\n", pa.large_binary()))
    return pc.if_else(array.is_null(), pa.scalar(None, pa.large_binary()), joined)
