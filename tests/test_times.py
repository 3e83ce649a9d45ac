"""Times in every form: a table of examples, round trips, and values that must neither raise nor take long."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from email.utils import format_datetime
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from time_examples import DAY, EXACT, MOMENT, NO_NUMBERS, NO_TEXTS, NUMBERS, TEXTS

from neardup.errors import quoted
from neardup.times import can_hold_times, microseconds_of, times_of, utc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = -62104060800 * 10**6, 32503680000 * 10**6 - 1


def since_1970(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(("value", "expected"), [*TEXTS, *NUMBERS], ids=repr)
def test_times_in_texts_and_numbers_are_parsed(value: Any, expected: datetime) -> None:
    assert microseconds_of(value) == since_1970(expected)
    assert utc(since_1970(expected)) == expected
    if isinstance(value, str):
        assert microseconds_of(value.encode()) == since_1970(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (date(2019, 3, 21), DAY),
        (np.int64(1553167800123456789), EXACT),
        (np.float32(5.5), EPOCH + timedelta(seconds=5.5)),
        (Decimal("1553167800.123456000"), EXACT),
        (Fraction(1, 4), EPOCH + timedelta(seconds=0.25)),
        (999, EPOCH + timedelta(seconds=999)),
        (-2019, EPOCH - timedelta(seconds=2019)),
        ("2999-12-31T23:59:59.9999999", datetime(2999, 12, 31, 23, 59, 59, 999999, UTC)),
    ],
)
def test_times_in_python_objects_are_parsed(value: object, expected: datetime) -> None:
    assert microseconds_of(value) == since_1970(expected)


def test_times_of_pandas_are_parsed() -> None:
    pandas: Any = importlib.import_module("pandas")
    assert microseconds_of(pandas.Timestamp("2019-03-21T11:30:00.123456789Z")) == since_1970(EXACT)
    assert microseconds_of(pandas.Timestamp(np.datetime64("0002-01-01", "s"))) == FIRST
    assert microseconds_of(pandas.Timestamp(0)) is None
    assert microseconds_of(pandas.NaT) is None


NO_TIMES = [
    *(*NO_TEXTS, *NO_NUMBERS, 10**5000, -(10**400), Fraction(10**400), Decimal("NaN"), Decimal("1e999999999")),
    *(datetime.min, datetime.max, date(9999, 12, 31), date(1970, 1, 1), EPOCH),
    EPOCH.replace(tzinfo=timezone(timedelta(hours=-5))),
    *(None, True, b"\xff2019", "\ud800", [2019], {"year": 2019}, 1j, timedelta(1)),
]


@pytest.mark.parametrize("value", NO_TIMES, ids=quoted)
def test_other_values_have_no_time(value: object) -> None:
    assert microseconds_of(value) is None


#: How a time may be written, to the second: the naive twin of the parser.
FORMATS: dict[str, Callable[[datetime], object]] = {
    "iso": lambda moment: moment.isoformat(),
    "without a zone": lambda moment: moment.replace(tzinfo=None).isoformat(" "),
    "basic": lambda moment: f"{moment.year:04}{moment:%m%dT%H%M%SZ}",
    "elsewhere": lambda moment: moment.astimezone(timezone(timedelta(hours=-5, minutes=-30))).isoformat(),
    "week": lambda moment: "{:04}-W{:02}-{}T{:%H:%M:%S}".format(*moment.isocalendar(), moment),
    "mail": lambda moment: format_datetime(moment),
    "archive": lambda moment: int(f"{moment:%Y%m%d%H%M%S}"),
    "milliseconds": lambda moment: since_1970(moment) // 1000,
    "microseconds": since_1970,
    "nanoseconds": lambda moment: str(since_1970(moment) * 1000),
    "datetime": lambda moment: moment,
}


@given(st.datetimes(datetime(1974, 1, 1), datetime(2200, 1, 1)), st.sampled_from(sorted(FORMATS)))
def test_formatted_times_are_parsed(moment: datetime, how: str) -> None:
    whole = moment.replace(microsecond=0, tzinfo=UTC)
    assert microseconds_of(FORMATS[how](whole)) == since_1970(whole)


@given(st.integers(FIRST, LAST).filter(bool))
@example(FIRST)
@example(LAST)
def test_iso_texts_and_datetimes_are_exact(at: int) -> None:
    assert since_1970(utc(at)) == at
    for value in (utc(at), utc(at).isoformat(), utc(at).replace(tzinfo=None), utc(at).astimezone(UTC)):
        assert microseconds_of(value) == at


@given(st.integers(-(10**11) + 1, 10**11 - 1))
@example(9999)
@example(10**7)
def test_a_number_and_its_digits_are_the_same_time(number: int) -> None:
    found = microseconds_of(number)
    assert microseconds_of(str(number)) == microseconds_of(float(number)) == microseconds_of(f"{number}.0") == found
    if len(str(number)) not in (4, 8) or number < 0:
        assert found == (number * 10**6 if number and FIRST <= number * 10**6 <= LAST else None)


@given(st.floats(-6e10, 3e10).filter(lambda seconds: not seconds.is_integer()))
@example(1731000000.1234565)
def test_seconds_are_rounded_to_the_nearest_microsecond(seconds: float) -> None:
    found = microseconds_of(seconds)
    assert found is not None
    assert abs(found - Fraction(seconds) * 10**6) <= Fraction(1, 2) + Fraction(1, 1000)
    assert microseconds_of(repr(seconds)) == found


NEARLY = st.text("0123456789-+:.,TZWEe _marMarGMT\t\N{NO-BREAK SPACE}", max_size=40)
ANYTHING = st.one_of(
    *(st.text(st.characters(codec=None), max_size=80), NEARLY, st.from_regex(r"\A[0-9]{1,30}\Z")),
    *(st.binary(max_size=20), st.integers(), st.floats(), st.fractions(), st.decimals(), st.complex_numbers()),
    *(st.datetimes(timezones=st.none() | st.timezones()), st.dates(), st.times(), st.timedeltas()),
)


@given(ANYTHING)
def test_no_value_raises(value: object) -> None:
    found = microseconds_of(value)
    assert found is None or (type(found) is int and FIRST <= found <= LAST)


@pytest.mark.parametrize("text", ["9" * 10**6, " " * 10**6 + "2019", "21 Mar " * 10**5, "(" * 10**6, "1e" + "9" * 62])
def test_no_text_takes_long(text: str) -> None:
    # Quadratic time would be days.
    assert microseconds_of(text) == (microseconds_of("2019") if text.endswith("2019") else None)


def one_by_one(values: list[Any]) -> tuple[list[int], list[bool]]:
    found = [microseconds_of(value) for value in values]
    return [at or 0 for at in found], [at is not None for at in found]


def of_column(values: pa.Array | pa.ChunkedArray) -> tuple[list[int], list[bool]]:
    times, readable = times_of(values)
    assert (str(times.dtype), str(readable.dtype)) == ("int64", "bool")
    return times.tolist(), readable.tolist()


EDGES = [10**exponent + more for exponent in range(21) for more in (-1, 0, 1)]
INTEGERS = st.sampled_from(EDGES) | st.integers(1900, 2100) | st.integers(20180101, 20201231) | st.integers()


@given(st.lists(st.none() | INTEGERS.filter(lambda number: -(1 << 63) <= number < 1 << 63)))
def test_columns_of_integers_are_parsed(values: list[int | None]) -> None:
    expected = one_by_one(values)
    assert of_column(pa.array(values, pa.int64())) == expected
    assert of_column(pa.chunked_array([values[:3], values[3:]], pa.int64())) == expected


@given(st.lists(st.none() | st.floats() | INTEGERS.map(float) | st.floats(1e9, 2e9)))
def test_columns_of_floats_are_parsed(values: list[float | None]) -> None:
    assert of_column(pa.array(values, pa.float64())) == one_by_one(values)


TEXT_KINDS = [pa.string(), pa.string_view(), pa.large_binary(), pa.binary_view()]


@pytest.mark.parametrize("kind", [*TEXT_KINDS, pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_columns_of_texts_are_parsed(kind: pa.DataType) -> None:
    values = [text for text, _ in TEXTS] + NO_TEXTS + [None, "2019"]
    column = pa.array(values, pa.string())
    column = column.dictionary_encode() if pa.types.is_dictionary(kind) else column.cast(kind)
    assert of_column(column) == one_by_one(values)
    assert of_column(column.slice(3, 9)) == one_by_one(values[3:12])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "America/New_York"])
def test_columns_of_timestamps_are_converted(unit: str, zone: str | None) -> None:
    kind = pa.timestamp(unit, zone)
    seconds = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    given = pa.array([1553167800 * seconds, None, -seconds, 0], pa.int64()).cast(kind)
    assert of_column(given) == ([since_1970(MOMENT), 0, -(10**6), 0], [True, False, True, False])
    far = pa.array([(1 << 63) - 1, -(1 << 63) + 1], pa.int64()).cast(kind)
    assert of_column(far)[1] == [unit == "ns"] * 2


def test_columns_of_other_types_are_converted() -> None:
    days = [date(2019, 3, 21), None, date(1, 1, 1), date(9999, 12, 31)]
    for kind in (pa.date32(), pa.date64()):
        assert of_column(pa.array(days, kind)) == one_by_one(days)
    assert of_column(pa.array([2**31 - 1], pa.date32())) == ([0], [False])
    assert of_column(pa.array([-1], pa.timestamp("ns"))) == ([-1], [True])
    assert of_column(pa.array([2019, 2**64 - 1], pa.uint64())) == one_by_one([2019, 2**64 - 1])
    assert of_column(pa.array([2019, None], pa.int16())) == one_by_one([2019, None])
    decimals = [Decimal("1553167800.123456"), Decimal("2019.000000"), None]
    assert of_column(pa.array(decimals, pa.decimal128(38, 6))) == one_by_one(decimals)
    assert of_column(pa.nulls(2)) == ([0, 0], [False, False])
    for none in (pa.array([True]), pa.array([[2019]]), pa.array([{"a": 2019}]), pa.array([timedelta(1)])):
        assert not can_hold_times(none.type)
        assert of_column(none) == ([0], [False])
    assert of_column(pa.chunked_array([], pa.string())) == ([], [])


def test_texts_that_are_not_utf8_have_no_time() -> None:
    column = pa.array([b"2019", b"2019\xff", b"\xfe"]).view(pa.string())
    assert of_column(column)[1] == of_column(column.dictionary_encode())[1] == [True, False, False]
