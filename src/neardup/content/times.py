"""Times as files of news state them -> seconds since 1970."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

#: Characters of the longest date that is read.
_LONGEST = 64
#: From the year 5138 in seconds on, a number is taken for milliseconds.
_MILLISECONDS = 1e11
#: The first second of the year 10000.
_END = 253402300800.0
_START = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"-?\d{9,13}(\.\d{1,9})?")


def seconds_of(value: object) -> float | None:
    """Return the seconds since 1970 UTC that a value states, None when it states none.

    Read are ISO 8601 (also ``20190321T123000Z``), the dates of mail and RSS (``Thu, 21 Mar 2019 12:30:00 GMT``), and
    numbers: of seconds, or of milliseconds when as seconds they would lie beyond the year 5138. Without a zone
    it is UTC.

    Examples
    --------
    >>> seconds_of("2019-03-21T12:30:00+01:00"), seconds_of("Thu, 21 Mar 2019 11:30:00 GMT"), seconds_of(1553167800000)
    (1553167800.0, 1553167800.0, 1553167800.0)
    >>> seconds_of("yesterday")
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return _seconds_of_number(value)
    if not isinstance(value, str) or len(value) > _LONGEST:
        return None
    value = value.strip()
    if _NUMBER.fullmatch(value):
        return _seconds_of_number(float(value))
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(value)
            aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
            return (aware - _START) / timedelta(seconds=1)
        except (ValueError, TypeError, IndexError, OverflowError):
            continue
    return None


def _seconds_of_number(number: float) -> float | None:
    try:
        seconds = float(number)
    except OverflowError:
        return None
    if abs(seconds) >= _MILLISECONDS:
        seconds /= 1000
    return seconds if math.isfinite(seconds) and abs(seconds) < _END else None
