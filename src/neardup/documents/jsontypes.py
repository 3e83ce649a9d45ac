"""JSON values as they are written, and the types of the columns that they make."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pyarrow as pa

#: A number that may be an int64.
INTEGER = re.compile(r"-?[0-9]{1,19}\Z")


class Number(str):
    """A JSON number as it is written: 1e999 and numbers of a million digits stay what they are."""

    __slots__ = ()


#: Parses one JSON value; numbers stay texts.
decode = json.JSONDecoder(parse_int=Number, parse_float=Number, parse_constant=Number).decode


def column_type(counts: Counter[pa.DataType]) -> pa.DataType:
    """Return the type of a column whose values are of several: what does not fit it is then set aside, or is an id.

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
