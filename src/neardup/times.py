"""Parse the times of documents, in all supported forms, into microseconds since 1970 (UTC).

Everything that reads times uses this module: ``--keep newest``, windows, feeds, replays, ``hours_apart``. A time
without a zone is in UTC. Digits mean the same as number and as text, so CSV, JSON lines and Parquet give one result.

======================================  ==========================  ==================================================
form                                    example                     remarks and limits
======================================  ==========================  ==================================================
ISO 8601, as ``fromisoformat`` of       ``2019-03-21T12:30:00Z``,   ``T``, a space or ``_`` comes before the time:
Python 3.11 reads it                    ``20190321T1230+0100``,     with any character, ``2019-03-21+01:00`` would be
                                        ``2019-W12-4``              one o'clock, and 13 digits a date of 1701
year and month                          ``2019-03``                 the first of the month; not ``201903``, which ISO
                                                                    8601 does not allow
mail and RSS (RFC 2822)                 ``Thu, 21 Mar 2019          ``+01:00`` is read as ``+0100``; a zone that the
                                        11:30:00 GMT``              RFC does not name counts as UTC, as it says
4 digits: a year                        ``2019``                    as Unix time: the first three hours of 1970
8 digits: year, month, day              ``20190321``                as Unix time: 1970-04-26 to 1973-03-03
14 digits: also hour, minute, second    ``20190321123000``          web archives; as milliseconds: after 2286
other numbers below 10**11              ``1553167800``, ``-1.5``    Unix seconds, up to the year 5138
below 10**14                            ``1553167800000``           milliseconds, from 1973-03-03
below 10**17                            ``1553167800000000``        microseconds, likewise
below 10**20                            ``1553167800000000000``     nanoseconds, likewise
======================================  ==========================  ==================================================

Numbers of 4, 8 or 14 digits that are not a date, such as 20190332, are not times: a mistyped date must not become a
time in 1970. So a clock that counts seconds from 0 has gaps: pass datetimes instead. ``2019.0`` is 2019, because pandas
writes whole numbers that way if some are missing. For negative numbers the absolute value selects the form.

Digits below a microsecond are dropped; only fractions of Unix times are rounded, as floats must be. Times outside the
years 1 to 9999, infinities, booleans, and texts that are not ASCII or longer than 64 characters are not times.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from email.utils import parsedate_to_datetime
from numbers import Integral, Real
from typing import Any, SupportsFloat

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]

#: A description of the forms, for messages.
TIME_FORMS = (
    "ISO 8601 such as 2019-03-21T12:30:00Z, a year, a year and month, a date of mail or RSS, or Unix seconds, milli-, "
    "micro- or nanoseconds"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_MIN = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MAX = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
#: Units of numbers: below the limit, a number counts units of so many microseconds.
_UNITS = ((10**11, 1_000_000), (10**14, 1000), (10**17, 1))
#: A number of this size or larger is not a time; smaller ones count nanoseconds.
_END = 10**20
#: Ranges of whole numbers that are read as dates.
_DATES = ((10**3, 10**4), (10**7, 10**8), (10**13, 10**14))

#: The maximum length of a text that is parsed.
_MAX_LENGTH = 64
# fromisoformat accepts any character between date and time, so it would take a long number for a date.
_ISO = re.compile(r"[0-9]{4}(?:-?[0-9]{2}-?[0-9]{2}|-?W[0-9]{2}(?:-?[0-9])?)(?:[T _].+)?")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
#: Eight digits are a date of ISO 8601.
_DIGITS = re.compile(r"[0-9]{4}|[0-9]{14}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?")
#: A zone with a colon, which the parser of mail dates would ignore as unknown.
_COLON = re.compile(r"([+-][0-9]{2}):([0-9]{2})$")


def microseconds_of(value: object) -> int | None:
    """Return the time of a value in microseconds since 1970 (UTC), None if it is not a time.

    Parameters
    ----------
    value : object
        A text, a number, a datetime or a date, as in the table above; bytes are UTF-8. Anything else is not a time.

    Examples
    --------
    >>> microseconds_of("2019-03-21T12:30:00+01:00"), microseconds_of("Thu, 21 Mar 2019 11:30:00 GMT")
    (1553167800000000, 1553167800000000)
    >>> [str(utc(microseconds_of(value))) for value in (2019, "20190321", 1553167800000)]
    ['2019-01-01 00:00:00+00:00', '2019-03-21 00:00:00+00:00', '2019-03-21 11:30:00+00:00']
    >>> microseconds_of("yesterday")
    """
    if isinstance(value, bytes):
        value = value.decode(errors="replace")
    if isinstance(value, str):
        microseconds = _parse_text(value)
    elif isinstance(value, bool):
        microseconds = None
    elif isinstance(value, datetime):
        microseconds = _from_datetime(value)
    elif isinstance(value, date):
        microseconds = _from_datetime(datetime(value.year, value.month, value.day))
    elif isinstance(value, Decimal):
        microseconds = _parse_text(str(value))
    elif isinstance(value, Integral):
        microseconds = _parse_number(int(value))
    elif isinstance(value, Real):
        microseconds = _parse_real(value)
    else:
        microseconds = None
    return microseconds if microseconds is not None and _MIN <= microseconds <= _MAX else None


def times_of(values: pa.Array | pa.ChunkedArray) -> tuple[Integers, Booleans]:
    """Return ``microseconds_of`` of each value of a column, 0 for None, and a mask of the values that are times.

    Parameters
    ----------
    values : pyarrow.Array or pyarrow.ChunkedArray
        Values of any type; texts need not be valid UTF-8.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _parse_timestamps(values)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _parse_numbers(values, np.int64)
    if pa.types.is_floating(kind):
        return _parse_numbers(values, np.float64)
    if not can_hold_times(kind):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    if not pa.types.is_decimal(kind) and not pa.types.is_integer(kind):
        # As bytes, because the texts of a file need not be valid UTF-8.
        values = values.cast(pa.large_binary(), safe=False)
    # Days and years repeat, so each distinct value is parsed once.
    encoded = values.dictionary_encode()
    places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    found, readable = _parse_values([*encoded.dictionary.to_pylist(), None])
    return found[places], readable[places]


def can_hold_times(kind: pa.DataType) -> bool:
    """Return whether a value of this Arrow type may be a time."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (
        *(pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal),
        *(pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_null),
        *(pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view),
    )
    return any(test(kind) for test in tests)


def utc(microseconds: int) -> datetime:
    """Return microseconds since 1970 as a datetime."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _parse_text(text: str) -> int | None:
    text = text.strip()
    if len(text) > _MAX_LENGTH or not text.isascii():
        return None
    text = text.upper()
    try:
        if _ISO.fullmatch(text):
            return _from_datetime(datetime.fromisoformat(text))
        if _DIGITS.fullmatch(text):
            return _parse_date(text)
        if _INTEGER.fullmatch(text):
            return _parse_number(int(text))
        if _NUMBER.fullmatch(text):
            return _parse_real(float(text))
        if _MONTH.fullmatch(text):
            return _from_datetime(datetime.fromisoformat(f"{text}-01"))
        return _from_datetime(parsedate_to_datetime(_COLON.sub(r"\1\2", text)))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _parse_date(digits: str) -> int | None:
    """Return the time of a date in 4, 8 or 14 digits."""
    day, time = digits[:8], digits[8:]
    iso = f"{day}-01-01" if len(digits) == 4 else f"{day}T{time}" if time else day
    try:
        return _from_datetime(datetime.fromisoformat(iso))
    except ValueError:
        return None


def _parse_number(number: int) -> int | None:
    if any(low <= number < high for low, high in _DATES):
        return _parse_date(str(number))
    unit = next((unit for limit, unit in _UNITS if abs(number) < limit), None)
    if unit is None:
        return number // 1000 if abs(number) < _END else None
    return number * unit


def _parse_real(number: SupportsFloat) -> int | None:
    try:
        value = float(number)
    except OverflowError:
        return None
    if not abs(value) < _END:  # true for nan
        return None
    fraction, integer = math.modf(value)
    if not fraction:
        return _parse_number(int(integer))
    # In two parts, because the product of a large number would round to another microsecond.
    unit = next(unit for limit, unit in _UNITS if abs(value) < limit)
    return int(integer) * unit + round(fraction * unit)


def _from_datetime(time: datetime) -> int | None:
    if time != time:  # NaT of pandas is a datetime, too, and equals nothing
        return None
    if time.utcoffset() is None:
        time = time.replace(tzinfo=UTC)
    return int((time - _EPOCH) // _MICROSECOND)


def _parse_timestamps(values: pa.Array) -> tuple[Integers, Booleans]:
    kind = values.type
    if pa.types.is_date32(kind):
        values, unit = values.cast(pa.int32()), 86_400_000_000
    elif pa.types.is_date(kind):
        unit = 1000
    else:
        unit = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 0}[kind.unit]
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    numbers = np.asarray(values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    if not unit:
        return np.where(valid, numbers // 1000, 0), valid
    readable = valid & (numbers >= _MIN // unit) & (numbers <= _MAX // unit)
    return np.where(readable, numbers, 0) * unit, readable


def _parse_numbers(values: pa.Array, kind: type[np.int64 | np.float64]) -> tuple[Integers, Booleans]:
    """Return the times of an array of numbers: plain Unix times at once, dates in digits and large numbers singly."""
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    filled = values.cast(pa.from_numpy_dtype(kind)).fill_null(0)
    numbers = np.asarray(filled.to_numpy(zero_copy_only=False), kind)
    plain = valid & (numbers > -_UNITS[-1][0]) & (numbers < _UNITS[-1][0])
    for low, high in _DATES:
        plain &= (numbers < low) | (numbers >= high)
    unix = numbers[plain]
    whole_part = unix.astype(np.int64)
    units = np.select([np.abs(unix) < limit for limit, _ in _UNITS], [unit for _, unit in _UNITS])
    found = np.zeros(len(numbers), np.int64)
    found[plain] = whole_part * units + np.rint((unix - whole_part) * units).astype(np.int64)
    readable = plain & (found >= _MIN) & (found <= _MAX)
    special = valid & ~plain
    distinct, places = np.unique(numbers[special], return_inverse=True)
    times, are_times = _parse_values(distinct.tolist())
    found[special], readable[special] = times[places], are_times[places]
    return np.where(readable, found, 0), readable


def _parse_values(values: list[Any]) -> tuple[Integers, Booleans]:
    times = [microseconds_of(value) for value in values]
    return np.array([time or 0 for time in times], np.int64), np.array([time is not None for time in times], np.bool_)
