"""Numbers of JSON as columns: none is rounded.

Arrow reads a number that is not a 64-bit integer as a double. Numbers whose digits a double does not keep are found by
their digits, such as those of 2^63 and more, or 9007199254740993 in a column with fractions. Their columns become
uint64 if that holds all, else text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.documents.arrays import is_text_type

#: The text of a number that may fit into int64.
INTEGER = re.compile(r"-?[0-9]{1,19}\Z")
_UNSIGNED = range(1 << 64)
#: No double has more digits, written out in full.
_MOST_DIGITS = 767
_SUSPECTS = re.compile(rb"[0-9](?:[0-9.]{15,}+(?:[eE][-+]?[0-9]+)?|[0-9.]{0,14}+[eE][-+]?[0-9]{3,})")
#: The bytes before and after a number in JSON; digits inside of strings mostly have others.
_BEFORE, _AFTER = b"-:,[ \t", b",}] \t\r\n"
#: A column, or a field of one: names, and None for the items of a list.
_Place = tuple[str | None, ...]


class Number(str):
    """A JSON number as it is written, so that 1e999 and numbers of a million digits are preserved."""

    __slots__ = ()


#: Parses a JSON value; numbers stay strings.
decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number).decode


def is_exact(number: str) -> bool:
    """Return whether a double keeps all digits of a number as it is written; of whole numbers, also when printed."""
    value = float(number)
    if repr(value) == number:
        return True
    if not math.isfinite(value):
        return not number[-1].isdigit()
    digits = number.lower().partition("e")[0].replace(".", "").lstrip("-+0")
    if value == 0 or not digits:
        return not digits.strip("0")
    if len(digits.rstrip("0")) > _MOST_DIGITS:
        return False
    if Decimal(repr(value)) == Decimal(number):
        return True
    if number.lstrip("-").isdecimal():
        return False
    # A double in full, such as 0.10000000000000001.
    return Decimal(f"{value:.{len(digits) - 1}e}") == Decimal(number)


def _has_suspects(data: bytes) -> bool:
    """Return whether bytes may hold a number of more than 15 digits, or with an exponent of three."""
    array = np.frombuffer(data, np.uint8)
    # A run of 16 covers two neighbours of any eighth byte. Dots and the slash count as digits here.
    eighth = array[::8]
    digits = (eighth >= 0x2E) & (eighth <= 0x39)
    if bool((digits[:-1] & digits[1:]).any()):
        return True
    exponents = np.flatnonzero((array[1:-2] | 0x20) == 0x65)
    before, after = array[exponents], array[exponents + 3]
    return bool(((before >= 0x2E) & (before <= 0x39) & (after >= 0x30) & (after <= 0x39)).any())


def inexact_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines with a number that a double does not keep, inside of strings, too."""
    if not _has_suspects(data):
        return
    end = 0
    for match in _SUSPECTS.finditer(data):
        is_value = data[match.start() - 1] in _BEFORE and data[match.end() % len(data)] in _AFTER
        if is_value and match.start() >= end and not _is_kept(match[0].decode()):
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", match.start()) + 1 or len(data)
            yield data[start:end]


def _is_kept(digits: str) -> bool:
    try:
        return is_exact(digits)
    except ValueError:
        return True


def inexact_numbers(data: bytes, schema: pa.Schema) -> Iterator[tuple[_Place, Number]]:
    """Yield the numbers of JSON lines that a schema would round, each with its place."""
    if not any(_has_doubles(field.type) for field in schema):
        return
    kind = pa.struct(list(schema))
    for line in inexact_lines(data):
        try:
            decoded = decode(line.decode())
        except (ValueError, RecursionError):
            continue
        yield from _rounded(decoded, kind, ())


def _has_doubles(kind: pa.DataType) -> bool:
    if pa.types.is_struct(kind):
        return any(_has_doubles(field.type) for field in kind)
    return _has_doubles(kind.value_type) if pa.types.is_list(kind) else bool(pa.types.is_floating(kind))


def _rounded(value: Any, kind: pa.DataType, place: _Place) -> Iterator[tuple[_Place, Number]]:
    if isinstance(value, Number):
        if pa.types.is_floating(kind) and not _is_kept(value):
            yield place, value
    elif isinstance(value, dict) and pa.types.is_struct(kind):
        for field in kind:
            yield from _rounded(value.get(field.name), field.type, (*place, field.name))
    elif isinstance(value, list) and pa.types.is_list(kind):
        for item in value:
            yield from _rounded(item, kind.value_type, (*place, None))


def exact_schema(
    schema: pa.Schema, parts: Callable[[], Iterable[bytes]], can_read: Callable[[bytes, pa.Schema], bool]
) -> pa.Schema:
    """Return a schema in which no number of JSON lines is rounded.

    Parameters
    ----------
    parts : callable
        Returns the lines.
    can_read : callable
        Returns whether Arrow can read lines in a schema.
    """
    unsigned: dict[_Place, bool] = {}
    for data in parts() if any(_has_doubles(field.type) for field in schema) else ():
        for place, number in inexact_numbers(data, schema):
            is_unsigned = re.fullmatch("[0-9]{1,20}", number) is not None and int(number) in _UNSIGNED
            unsigned[place] = unsigned.get(place, True) and is_unsigned
    places = {place for place, holds in unsigned.items() if holds}
    if places:
        roots = {place[0] for place in places}
        fields = [field for field in _changed_schema(schema, places, pa.uint64()) if field.name in roots]
        if not all(can_read(data, pa.schema(fields)) for data in parts()):
            places = set()
    return _changed_schema(_changed_schema(schema, unsigned.keys() - places, pa.large_string()), places, pa.uint64())


def _changed_schema(schema: pa.Schema, places: Iterable[_Place], kind: pa.DataType) -> pa.Schema:
    changed = set(places)
    return pa.schema([_changed_field(field, (field.name,), changed, kind) for field in schema], schema.metadata)


def _changed_field(field: pa.Field, place: _Place, places: set[_Place], kind: pa.DataType) -> pa.Field:
    if place in places:
        return field.with_type(kind)
    if pa.types.is_struct(field.type):
        fields = [_changed_field(inner, (*place, inner.name), places, kind) for inner in field.type]
        return field.with_type(pa.struct(fields))
    if pa.types.is_list(field.type):
        return field.with_type(pa.list_(_changed_field(field.type.value_field, (*place, None), places, kind)))
    return field


def plain_lines(data: bytes, schema: pa.Schema | None = None) -> list[bytes]:
    """Return lines without what Arrow refuses: repeated keys, lone surrogates, infinite numbers.

    Numbers in a column of texts, by the schema, become strings as they are written.
    """
    kind = pa.null() if schema is None else pa.struct(list(schema))
    lines: list[bytes] = []
    for line in data.removesuffix(b"\n").split(b"\n"):
        try:
            plain = json.dumps(_plain_value(decode(line.decode().strip(" \t\r")), kind), ensure_ascii=False)
            lines.append(plain.encode(errors="replace"))
        except (ValueError, RecursionError):
            lines.append(line)
    return lines


def _plain_value(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, Number):
        if is_text_type(kind):
            return str(value)
        if pa.types.is_integer(kind) or INTEGER.match(value):
            return int(value)
        number = float(value)
        # The schema is still open: any double stands for one that is out of range.
        return number if math.isfinite(number) or not pa.types.is_null(kind) else 0.5
    if isinstance(value, dict):
        plain = {name.encode(errors="replace").decode(): inner for name, inner in value.items()}
        return {name: _plain_value(inner, _field_type(kind, name)) for name, inner in plain.items()}
    if isinstance(value, list):
        item = kind.value_type if pa.types.is_list(kind) else pa.null()
        return [_plain_value(inner, item) for inner in value]
    return value


def _field_type(kind: pa.DataType, name: str) -> pa.DataType:
    at = kind.get_field_index(name) if pa.types.is_struct(kind) else -1
    return pa.null() if at < 0 else kind.field(at).type
