"""Parse the times of documents, in all supported forms, into microseconds since 1970 (UTC).

Everything that reads times uses this module: ``--keep newest``, windows, feeds, replays, ``hours_apart``. A time
without a zone is in UTC. Digits mean the same as number and as text, so CSV, JSON lines and Parquet give one result.

======================================  ==========================  ==================================================
form                                    example                     remarks and limits
======================================  ==========================  ==================================================
ISO 8601: dates, weeks, ordinal dates   ``2019-03-21T12:30:00Z``,   ``T``, a space or ``_`` comes before the time;
                                        ``20190321T1230+0100``,     ``/``, ``.`` and ``:`` may separate year, month
                                        ``2019-W12-4``,             and day; ``24:00`` is the next midnight, second 60
                                        ``2019-080``                the next minute; a zone in ``[...]`` may follow an
                                                                    offset, which decides
year and month                          ``2019-03``                 the first of the month; not ``201903``, which ISO
                                                                    8601 does not allow
English names of months: mail and RSS   ``Thu, 21 Mar 2019          the day of the week is not checked; of two digits,
(RFC 822, 850, 2822), ``date``, C,      11:30:00 GMT``,             a year from 50 on is of the last century; a time
JavaScript, prose                       ``Mar 21, 2019 11:30 AM``   may have ``AM`` or ``PM``
4 digits: a year                        ``2019``                    as Unix time: the first three hours of 1970
8 digits: year, month, day              ``20190321``                as Unix time: 1970-04-26 to 1973-03-03
14 digits: also hour, minute, second    ``20190321123000``          web archives; as milliseconds: after 2286
17 digits: also milliseconds            ``20190321123000123``       as microseconds: after 2286
other numbers below 10**11              ``1553167800``, ``-1.5``    Unix seconds
below 10**14                            ``1553167800000``           milliseconds, from 1973-03-03
below 10**17                            ``1553167800000000``        microseconds, likewise
below 10**20                            ``1553167800000000000``     nanoseconds, likewise
======================================  ==========================  ==================================================

A zone is ``Z``, ``UTC``, ``UT`` or ``GMT``, an offset behind one of them or alone (``+1``, ``+01``, ``+0100``,
``+01:00``), or a name of RFC 822 (``EST`` ... ``PDT``) or another with one meaning (``CET``, ``CEST``, ``JST`` ...).
Any other name makes the time unreadable: ``IST`` is Indian, Irish and Israeli. So does an order of day and month that
must be guessed, as in ``03/04/2019``.

Values that stand for no date are not times: years up to 1 and from 3000 on, and 1970-01-01T00:00:00, in UTC or in the
zone that is given, however it is written, as the year 1970 alone. Numbers of 4, 8, 14 or 17 digits that are not a date,
such as 20190332, are not times: a mistyped date must not become a time in 1970. So a clock that counts seconds from 0
has gaps: pass datetimes instead. ``2019.0`` is 2019, because pandas writes whole numbers that way if some are missing.
For negative numbers the absolute value selects the form.

Digits below a microsecond are dropped; only fractions of Unix times are rounded, as floats must be. Infinities,
booleans, and texts that are not ASCII or longer than 128 characters are not times.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
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
_MIDNIGHT_1970 = datetime(1970, 1, 1)
#: The first and the last time; those outside stand for no date, as 0001-01-01 and 9999-12-31 do.
_MIN = (datetime(2, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
_MAX = (datetime(3000, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND - 1
#: Units of numbers: below the limit, a number counts units of so many microseconds.
_UNITS = ((10**11, 1_000_000), (10**14, 1000), (10**17, 1))
#: A number of this size or larger is not a time; smaller ones count nanoseconds.
_END = 10**20
#: Ranges of whole numbers that are read as dates.
_DATES = ((10**3, 10**4), (10**7, 10**8), (10**13, 10**14), (10**16, 10**17))

#: The last day of 9999 in Unix seconds and milliseconds, which stands for no date; in smaller units it is in 1978.
_LAST_DAYS = ((253402214400, 253402300801), (253402214400000, 253402300801000))

#: The maximum length of a text that is parsed.
_MAX_LENGTH = 128
# fromisoformat accepts any character between date and time, so it would take a long number for a date.
_ISO = re.compile(r"[0-9]{4}(?:-?[0-9]{2}-?[0-9]{2}|-?W[0-9]{2}(?:-?[0-9])?)(?:[T _].+)?")
_YEAR = re.compile(r"[0-9]{4}(?:\.0*)?")
_YEAR_AND_MONTH = re.compile(r"([0-9]{4})-([0-9]{2})")
#: Eight digits are a date of ISO 8601.
_DIGITS = re.compile(r"[0-9]{14}|[0-9]{17}")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:E[+-]?[0-9]+)?")
#: How .NET writes a time in JSON.
_DOT_NET = re.compile(r"\\?/DATE\((-?[0-9]{1,15})(?:[+-][0-9]{4})?\)\\?/")
#: The date zero of MySQL, and how PHP shows it.
_ZERO_DATE = re.compile(r"0000([-/.]?)00\1(?:00|$)|-0001-11-30|(?:WED,\s)?30\sNOV\s-0001")
#: Spaces and a minus beyond ASCII, as clocks of browsers and ISO 8601 have them.
_TO_ASCII = str.maketrans("\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{THIN SPACE}\N{MINUS SIGN}", "   -")
#: The name of a zone after its offset, which JavaScript and RFC 9557 add.
_ZONE_COMMENT = re.compile(
    r"(.*[T :].*[0-9]\s?(?:Z|UTC?|GMT|(?:UTC?|GMT)?\s?[+-][0-9:]+))\s*(?:\([^()]*\)|(?:\[[A-Z0-9_!/+=.:-]+\])+)",
    re.DOTALL,
)
_MONTHS = (
    "JAN(?:UARY)?|FEB(?:RUARY)?|MAR(?:CH)?|APR(?:IL)?|MAY|JUNE?|JULY?|AUG(?:UST)?|SEP(?:T(?:EMBER)?)?|OCT(?:OBER)?"
    "|NOV(?:EMBER)?|DEC(?:EMBER)?"
)
_MONTH = rf"(?P<name>{_MONTHS})\.?"
_WEEKDAY = r"(?:(?:MON|TUES?|WED(?:NES)?|THU(?:RS?)?|FRI|SAT(?:UR)?|SUN)(?:DAY)?(?:\.?,\s*|\.?\s+))?"
_DAY = r"(?P<day>[0-9]{1,2})(?:ST|ND|RD|TH)?"
_TIME = (
    r"(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]+))?)?"
    r"|(?P<minute_>[0-9]{2})(?:(?P<second_>[0-9]{2})(?:[.,](?P<fraction_>[0-9]+))?)?)?(?:\s*(?P<half>[AP])\.?M\b\.?)?"
)
#: An offset of two hours may be "+2", but one of an hour not "+100".
_OFFSET_DIGITS = r"(?:[0-9]{1,2}(?::[0-9]{2}){0,2}|[0-9]{4}(?:[0-9]{2})?)"
_ZONE = rf"(?P<zone>Z|[A-Z]{{2,5}}|(?:UTC?|GMT)?\s?[+-]{_OFFSET_DIGITS})"
_CLOCK = rf"{_TIME}(?:\s*{_ZONE})?"
#: Forms of a date with a time. No two of them match one text.
_FORMS = [
    re.compile(form)
    for form in (
        r"(?P<year>[0-9]{4})(?P<mark>[-/.:])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})"
        rf"(?:(?:T|_|,?\s+){_CLOCK})?",
        rf"(?P<date>[0-9]{{8}}|[0-9]{{4}}-?W[0-9]{{2}}(?:-?[0-9])?|[0-9]{{4}}-[0-9]{{3}})(?:(?:T|_|\s+){_CLOCK})?",
        rf"(?P<date>[0-9]{{7}})T{_CLOCK}",
        rf"(?P<date>[0-9]{{8}})(?=[0-9]{{6}}(?![0-9])){_CLOCK}",
        rf"{_WEEKDAY}{_DAY}(?:\s+|-){_MONTH}(?:,?\s+|-)(?P<year>[0-9]{{4}}|[0-9]{{2}})"
        rf"(?:(?:,|\s+AT|,\s+AT)?\s+{_CLOCK})?",
        rf"{_WEEKDAY}{_MONTH}\s+{_DAY},?\s+(?P<year>[0-9]{{4}})(?:(?:,|\s+AT|,\s+AT)?\s+{_CLOCK})?",
        rf"{_WEEKDAY}{_MONTH}\s+{_DAY}\s+(?=[0-9]+:){_CLOCK}\s+(?P<year>[0-9]{{4}})",
    )
]
_MONTH_NUMBERS = {name[:3]: number for number, name in enumerate(_MONTHS.split("|"), 1)}
_OFFSET = re.compile(r"(?:UTC?|GMT)?\s?([+-])([0-9]{1,2}):?([0-9]{2})?:?([0-9]{2})?")
#: Names of zones with one meaning: those of RFC 822, and others that no second zone is known by; hours east of UTC.
_ZONE_HOURS = {
    **{"Z": 0, "UTC": 0, "UT": 0, "GMT": 0, "WET": 0, "WEST": 1, "CET": 1, "CEST": 2, "MEZ": 1, "MESZ": 2},
    **{"EET": 2, "EEST": 3, "MSK": 3, "PKT": 5, "WIB": 7, "HKT": 8, "AWST": 8, "JST": 9, "KST": 9},
    **{"ACST": 9.5, "AEST": 10, "ACDT": 10.5, "AEDT": 11, "NZST": 12, "NZDT": 13},
    **{"EST": -5, "EDT": -4, "CST": -6, "CDT": -5, "MST": -7, "MDT": -6, "PST": -8, "PDT": -7},
    **{"AKST": -9, "AKDT": -8, "HST": -10},
}


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
    >>> [microseconds_of(value) for value in ("yesterday", "03/04/2019", "0001-01-01", 0)]
    [None, None, None, None]
    """
    try:
        return _microseconds_of(value)
    except _NoDate:
        return None


def stands_for_no_date(value: object) -> bool:
    """Return whether a value is a time that stands for no date: a year up to 1 or from 3000 on, or the epoch.

    Examples
    --------
    >>> [stands_for_no_date(value) for value in ("0001-01-01", "-0001-11-30 00:00:00", 0, "yesterday", 2019)]
    [True, True, True, False, False]
    """
    try:
        _microseconds_of(value)
    except _NoDate:
        return True
    return False


class _NoDate(Exception):
    """A value stands for no date."""


def _microseconds_of(value: object) -> int | None:
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
    if microseconds is not None and not _MIN <= microseconds <= _MAX:
        raise _NoDate
    return microseconds


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


#: A date with a year below 0, as programs write for no date.
_BEFORE_CHRIST = re.compile(r"-[0-9]{4,6}-[0-9]{2}(?![0-9])")


def _parse_text(text: str) -> int | None:
    if len(text) > _MAX_LENGTH:
        text = text.strip()
        if len(text) > _MAX_LENGTH:
            return None
    text = text.translate(_TO_ASCII).strip().upper()
    if commented := _ZONE_COMMENT.fullmatch(text):
        text = commented[1]
    if not text.isascii():
        return None
    if _BEFORE_CHRIST.match(text):
        raise _NoDate
    try:
        return _parse_number_text(text) if _NUMBER.fullmatch(text) else _parse_date_text(text)
    except (ValueError, TypeError, OverflowError):
        return None


def _parse_number_text(text: str) -> int | None:
    if _YEAR.fullmatch(text) or _DIGITS.fullmatch(text):
        return _parse_date(text.partition(".")[0])
    return _parse_number(int(text)) if _INTEGER.fullmatch(text) else _parse_real(float(text))


def _parse_date_text(text: str) -> int | None:
    if _ISO.fullmatch(text):
        try:
            return _from_datetime(datetime.fromisoformat(text))
        except ValueError:
            pass
    if found := _YEAR_AND_MONTH.fullmatch(text):
        return _from_year(int(found[1]), int(found[2]))
    if found := _DOT_NET.fullmatch(text):
        return _not_zero(int(found[1]) * 1000)
    if _ZERO_DATE.match(text):
        raise _NoDate
    for form in _FORMS:
        if found := form.fullmatch(text):
            return _from_parts(found.groupdict())
    return None


def _from_parts(parts: dict[str, str | None]) -> int | None:
    """Return the time of the named parts of one of the forms; raises ``ValueError`` if there is no such time."""
    day = _day_of(parts)
    hour, minute, second = (int(parts[name] or parts.get(f"{name}_") or 0) for name in ("hour", "minute", "second"))
    fraction = ((parts["fraction"] or parts["fraction_"] or "") + "000000")[:6]
    if parts["half"]:
        if not 1 <= hour <= 12:
            raise ValueError
        hour = hour % 12 + (12 if parts["half"] == "P" else 0)
    zone = _zone_of(parts["zone"] or "Z")
    # The end of a day and a leap second are the moment after them.
    after = timedelta(hours=hour == 24, seconds=second == 60)
    if (hour == 24 and (minute or second or int(fraction))) or (second == 60 and minute != 59):
        raise ValueError
    time = datetime(day.year, day.month, day.day, hour - (hour == 24), minute, second - (second == 60), int(fraction))
    return _from_datetime((time + after).replace(tzinfo=zone))


def _day_of(parts: dict[str, str | None]) -> date:
    if digits := parts.get("date"):
        if "W" not in digits and len(digits) == (8 if "-" in digits else 7):
            first = date(int(digits[:4]), 1, 1)
            found = first + timedelta(days=int(digits[-3:]) - 1)
            if found.year != first.year:
                raise ValueError
            return found
        return date.fromisoformat(digits)
    year = parts["year"] or ""
    century = 0 if len(year) == 4 else 2000 if int(year) < 50 else 1900
    name = parts.get("name")
    month = _MONTH_NUMBERS[name[:3]] if name else int(parts["month"] or 0)
    return date(century + int(year), month, int(parts["day"] or 0))


def _zone_of(text: str) -> timezone:
    """Return the zone of a name or an offset; raises ``ValueError`` for a name without one meaning."""
    if found := _OFFSET.fullmatch(text):
        hours, minutes, seconds = int(found[2]), int(found[3] or 0), int(found[4] or 0)
        if minutes > 59 or seconds > 59:
            raise ValueError
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if found[1] == "-" else offset)
    if text not in _ZONE_HOURS:
        raise ValueError
    return timezone(timedelta(hours=_ZONE_HOURS[text]))


def _from_year(year: int, month: int = 1) -> int | None:
    return _from_datetime(datetime(year, month, 1))


def _parse_date(digits: str) -> int | None:
    """Return the time of a date in 4, 8, 14 or 17 digits."""
    try:
        if len(digits) == 4:
            return _from_year(int(digits))
        day, time, fraction = digits[:8], digits[8:14], digits[14:]
        dot = "." if fraction else ""
        return _from_datetime(datetime.fromisoformat(f"{day}T{time}{dot}{fraction}" if time else day))
    except ValueError:
        return None


def _parse_number(number: int) -> int | None:
    if any(low <= number < high for low, high in _DATES):
        return _parse_date(str(number))
    if any(low <= number < high for low, high in _LAST_DAYS):
        raise _NoDate
    unit = next((unit for limit, unit in _UNITS if abs(number) < limit), None)
    if unit is None:
        return number // 1000 if abs(number) < _END else None
    return _not_zero(number * unit)


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
    if time != time:  # NaT of pandas is a datetime as well, and equals nothing
        return None
    if time.replace(tzinfo=None) == _MIDNIGHT_1970:
        raise _NoDate
    if time.utcoffset() is None:
        time = time.replace(tzinfo=UTC)
    return _not_zero(int((time - _EPOCH) // _MICROSECOND))


def _not_zero(microseconds: int) -> int:
    if not microseconds:
        raise _NoDate
    return microseconds


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
    valid &= numbers != 0  # 1970-01-01T00:00:00 stands for no date
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
    for low, high in (*_DATES, *_LAST_DAYS):
        plain &= (numbers < low) | (numbers >= high)
    unix = numbers[plain]
    whole_part = unix.astype(np.int64)
    units = np.select([np.abs(unix) < limit for limit, _ in _UNITS], [unit for _, unit in _UNITS])
    found = np.zeros(len(numbers), np.int64)
    found[plain] = whole_part * units + np.rint((unix - whole_part) * units).astype(np.int64)
    readable = plain & (found >= _MIN) & (found <= _MAX) & (numbers != 0)
    special = valid & ~plain
    distinct, places = np.unique(numbers[special], return_inverse=True)
    times, are_times = _parse_values(distinct.tolist())
    found[special], readable[special] = times[places], are_times[places]
    return np.where(readable, found, 0), readable


def _parse_values(values: list[Any]) -> tuple[Integers, Booleans]:
    times = [microseconds_of(value) for value in values]
    return np.array([time or 0 for time in times], np.int64), np.array([time is not None for time in times], np.bool_)
