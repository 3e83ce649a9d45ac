"""Times, in every form that documents state them -> microseconds since 1970 (UTC).

All that reads a time reads it here: ``--keep newest``, windows, feeds, replays, ``hours_apart``. Without a zone a time
is in UTC. Digits mean the same as a number and as text, so a corpus gives one answer as CSV, JSON lines and Parquet.

======================================  ==========================  ==================================================
form                                    example                     why, and where it ends
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

Numbers of 4, 8 or 14 digits that are no date, such as 20190332, are not times: a mistyped date must not turn into one
in 1970. The price is that a clock that counts seconds from 0 has gaps: pass datetimes instead. ``2019.0`` is 2019, for
pandas writes whole numbers that way when some are missing. The sizes of negative numbers count.

What is finer than a microsecond is dropped; only fractions of Unix times are rounded, as floats must be. Anything
outside the years 1 to 9999 is not a time, nor are infinities, booleans, and text beyond ASCII or longer than 64.
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

#: The forms in words, for messages.
FORMS = (
    "ISO 8601 such as 2019-03-21T12:30:00Z, a year, a year and month, a date of mail or RSS, or Unix seconds, milli-, "
    "micro- or nanoseconds"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_FIRST = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
_LAST = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MICROSECOND
#: Below which size a number counts what: so many microseconds.
_UNITS = ((10**11, 1_000_000), (10**14, 1000), (10**17, 1))
#: A number of this size or larger is no time; below it, it counts nanoseconds.
_END = 10**20
#: Whole numbers that are written as dates: from, to below.
_DATES = ((10**3, 10**4), (10**7, 10**8), (10**13, 10**14))

#: Characters of the longest text that is looked at.
_LONGEST = 64
# For fromisoformat any character parts date and time, so that a long number would pass for a date.
_ISO = re.compile(r"[0-9]{4}(?:-?[0-9]{2}-?[0-9]{2}|-?W[0-9]{2}(?:-?[0-9])?)(?:[T _].+)?")
_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
#: Eight digits are a date of ISO 8601.
_DIGITS = re.compile(r"[0-9]{4}|[0-9]{14}")
_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?")
#: What the parser of mail takes for a zone that it does not know, and passes over.
_COLON = re.compile(r"([+-][0-9]{2}):([0-9]{2})$")


def microseconds_of(value: object) -> int | None:
    """Return the microseconds since 1970 (UTC) that a value states, None when it states no time.

    Parameters
    ----------
    value : object
        A text, a number, a datetime or a date, as in the table above; bytes are UTF-8. Anything else is no time.

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
        found = _of_text(value)
    elif isinstance(value, bool):
        found = None
    elif isinstance(value, datetime):
        found = _of_datetime(value)
    elif isinstance(value, date):
        found = _of_datetime(datetime(value.year, value.month, value.day))
    elif isinstance(value, Decimal):
        found = _of_text(str(value))
    elif isinstance(value, Integral):
        found = _of_number(int(value))
    elif isinstance(value, Real):
        found = _of_real(value)
    else:
        found = None
    return found if found is not None and _FIRST <= found <= _LAST else None


def times_of(values: pa.Array | pa.ChunkedArray) -> tuple[Integers, Booleans]:
    """Return what ``microseconds_of`` finds in each value of a column, 0 where that is None, and where it is not.

    Parameters
    ----------
    values : pyarrow.Array or pyarrow.ChunkedArray
        Of any type; texts need not be valid UTF-8.
    """
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return _of_moments(values)
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return _of_numbers(values, np.int64)
    if pa.types.is_floating(kind):
        return _of_numbers(values, np.float64)
    if not can_hold_times(kind):
        return np.zeros(len(values), np.int64), np.zeros(len(values), np.bool_)
    if not pa.types.is_decimal(kind) and not pa.types.is_integer(kind):
        # Texts as bytes: those of a file need not be valid UTF-8.
        values = values.cast(pa.large_binary(), safe=False)
    # Days and years come again and again: each is read once.
    encoded = values.dictionary_encode()
    places = encoded.indices.fill_null(len(encoded.dictionary)).to_numpy(zero_copy_only=False)
    found, readable = _each([*encoded.dictionary.to_pylist(), None])
    return found[places], readable[places]


def can_hold_times(kind: pa.DataType) -> bool:
    """Whether a value of this Arrow type may be a time."""
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


def _of_text(text: str) -> int | None:
    text = text.strip()
    if len(text) > _LONGEST or not text.isascii():
        return None
    text = text.upper()
    try:
        if _ISO.fullmatch(text):
            return _of_datetime(datetime.fromisoformat(text))
        if _DIGITS.fullmatch(text):
            return _of_date(text)
        if _WHOLE.fullmatch(text):
            return _of_number(int(text))
        if _NUMBER.fullmatch(text):
            return _of_real(float(text))
        if _MONTH.fullmatch(text):
            return _of_datetime(datetime.fromisoformat(f"{text}-01"))
        return _of_datetime(parsedate_to_datetime(_COLON.sub(r"\1\2", text)))
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _of_date(digits: str) -> int | None:
    """Return the time of a date in 4, 8 or 14 digits."""
    day, time = digits[:8], digits[8:]
    iso = f"{day}-01-01" if len(digits) == 4 else f"{day}T{time}" if time else day
    try:
        return _of_datetime(datetime.fromisoformat(iso))
    except ValueError:
        return None


def _of_number(number: int) -> int | None:
    if any(low <= number < high for low, high in _DATES):
        return _of_date(str(number))
    unit = next((unit for limit, unit in _UNITS if abs(number) < limit), None)
    if unit is None:
        return number // 1000 if abs(number) < _END else None
    return number * unit


def _of_real(number: SupportsFloat) -> int | None:
    try:
        given = float(number)
    except OverflowError:
        return None
    if not abs(given) < _END:  # nor is nan
        return None
    fraction, whole = math.modf(given)
    if not fraction:
        return _of_number(int(whole))
    # In two parts: the product of a large number would round to another microsecond.
    unit = next(unit for limit, unit in _UNITS if abs(given) < limit)
    return int(whole) * unit + round(fraction * unit)


def _of_datetime(moment: datetime) -> int | None:
    if moment != moment:  # NaT of pandas is a datetime too, equal to nothing
        return None
    if moment.utcoffset() is None:
        moment = moment.replace(tzinfo=UTC)
    return int((moment - _EPOCH) // _MICROSECOND)


def _of_moments(values: pa.Array) -> tuple[Integers, Booleans]:
    """Return the times of an array of timestamps or dates."""
    kind = values.type
    if pa.types.is_date32(kind):
        values, unit = values.cast(pa.int32()), 86_400_000_000
    elif pa.types.is_date(kind):
        unit = 1000
    else:
        unit = {"s": 1_000_000, "ms": 1000, "us": 1, "ns": 0}[kind.unit]
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    given = np.asarray(values.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False), np.int64)
    if not unit:
        return np.where(valid, given // 1000, 0), valid
    readable = valid & (given >= _FIRST // unit) & (given <= _LAST // unit)
    return np.where(readable, given, 0) * unit, readable


def _of_numbers(values: pa.Array, kind: type[np.int64 | np.float64]) -> tuple[Integers, Booleans]:
    """Return the times of an array of numbers, all at once but for possible dates in digits and very large ones."""
    valid = np.asarray(values.is_valid().to_numpy(zero_copy_only=False), np.bool_)
    filled = values.cast(pa.from_numpy_dtype(kind)).fill_null(0)
    numbers = np.asarray(filled.to_numpy(zero_copy_only=False), kind)
    plain = valid & (numbers > -_UNITS[-1][0]) & (numbers < _UNITS[-1][0])
    for low, high in _DATES:
        plain &= (numbers < low) | (numbers >= high)
    some = numbers[plain]
    whole = some.astype(np.int64)
    units = np.select([np.abs(some) < limit for limit, _ in _UNITS], [unit for _, unit in _UNITS])
    found = np.zeros(len(numbers), np.int64)
    found[plain] = whole * units + np.rint((some - whole) * units).astype(np.int64)
    readable = plain & (found >= _FIRST) & (found <= _LAST)
    alone = valid & ~plain
    distinct, places = np.unique(numbers[alone], return_inverse=True)
    times, are = _each(distinct.tolist())
    found[alone], readable[alone] = times[places], are[places]
    return np.where(readable, found, 0), readable


def _each(values: list[Any]) -> tuple[Integers, Booleans]:
    """Return the times of values of any type, one by one."""
    times = [microseconds_of(value) for value in values]
    return np.array([time or 0 for time in times], np.int64), np.array([time is not None for time in times], np.bool_)
