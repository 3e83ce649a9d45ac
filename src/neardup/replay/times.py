"""Columns of times, of whatever type -> microseconds since 1970 (UTC)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.values import is_text_type
from neardup.errors import InputError
from neardup.flow.document import microseconds

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

_FIRST, _LAST = microseconds("0001-01-01"), microseconds("9999-12-31T23:59:59.999999")


def times_of(values: Any, column: str) -> tuple[Integers, Booleans]:
    """Return the times of a column in microseconds, and which values can be read as one.

    Parameters
    ----------
    values : pyarrow.Array
        Dates, timestamps (without a zone: UTC), numbers of seconds since 1970, or texts that hold ISO 8601 or such a
        number.
    column : str
        Its name, for the message.

    Raises
    ------
    InputError
        If no value of its type is a time.
    """
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        found, readable = _whole(values.cast(pa.timestamp("us"), safe=False))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or is_text_type(kind):
        read = [_moment(value) for value in values.to_pylist()]
        readable = np.array([time is not None for time in read], np.bool_)
        found = np.array([time or 0 for time in read], np.int64)
    elif pa.types.is_null(kind):
        found, readable = np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    else:
        raise InputError(
            f"column {column!r} is of type {kind}, which is no time; name another with --time-column: dates, "
            "timestamps, seconds since 1970 or ISO 8601"
        )
    return found, readable & (found >= _FIRST) & (found <= _LAST)


def _whole(timestamps: Any) -> tuple[Integers, Booleans]:
    readable = np.asarray(timestamps.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    return np.asarray(timestamps.cast(pa.int64()).fill_null(0)), readable


def _moment(value: object) -> int | None:
    """Return one value in microseconds; None where it is no time."""
    if value is None:
        return None
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    try:
        return microseconds(value)
    except InputError:
        pass
    # As the orders newest and oldest do: a text that is no date may still be a number of seconds.
    try:
        return microseconds(float(value)) if isinstance(value, str) else None
    except (ValueError, InputError):
        return None
