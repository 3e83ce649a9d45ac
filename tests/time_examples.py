"""Values that are times and values that are not, for the tests of the parser and its users."""

from __future__ import annotations

from datetime import UTC, datetime

#: Noon and a half of a day in March, and its first moment, year and month.
MOMENT = datetime(2019, 3, 21, 11, 30, tzinfo=UTC)
DAY, MONTH, YEAR = datetime(2019, 3, 21, tzinfo=UTC), datetime(2019, 3, 1, tzinfo=UTC), datetime(2019, 1, 1, tzinfo=UTC)
EXACT = MOMENT.replace(microsecond=123456)

#: As text.
TEXTS: list[tuple[str, datetime]] = [
    ("2019", YEAR),
    ("2019.0", YEAR),
    ("2019-03", MONTH),
    ("2019-03-21", DAY),
    ("20190321", DAY),
    ("2019-W12-4", DAY),
    ("2019-W12", datetime(2019, 3, 18, tzinfo=UTC)),
    ("2019-03-21T11:30:00Z", MOMENT),
    ("2019-03-21t11:30z", MOMENT),
    ("2019-03-21_11:30", MOMENT),
    ("2019-03-21T12:30:00+01:00", MOMENT),
    ("20190321T123000+0100", MOMENT),
    (" 2019-03-21T06:30-05:00\n", MOMENT),
    ("2019-03-21T11:30:00.123456Z", EXACT),
    ("2019-03-21T11:30:00,123456789Z", EXACT),
    ("20190321113000", MOMENT),
    ("17010111T1235", datetime(1701, 1, 11, 12, 35, tzinfo=UTC)),
    ("Thu, 21 Mar 2019 11:30:00 GMT", MOMENT),
    ("Thu, 21 Mar 2019 12:30:00 +01:00", MOMENT),
    ("21 Mar 19 06:30 EST", MOMENT),
    ("Thu Mar 21 11:30:00 2019", MOMENT),
    ("1553167800", MOMENT),
    ("1553167800.123456", EXACT),
    ("1.5531678e9", MOMENT),
    ("1553167800000", MOMENT),
    ("1553167800123456", EXACT),
    ("1553167800123456789", EXACT),
    ("1701011111235", datetime(2023, 11, 26, 15, 5, 11, 235000, UTC)),
    ("541350061", datetime(1987, 2, 26, 15, 1, 1, tzinfo=UTC)),
    ("-86400", datetime(1969, 12, 31, tzinfo=UTC)),
    ("0001-01-01", datetime.min.replace(tzinfo=UTC)),
    ("-62135596800", datetime.min.replace(tzinfo=UTC)),
    ("9999-12-31T23:59:59Z", datetime.max.replace(microsecond=0, tzinfo=UTC)),
]
#: Numbers with the same meaning as their texts.
NUMBERS: list[tuple[int | float, datetime]] = [
    *((int(text), time) for text, time in TEXTS if text.removeprefix("-").isdecimal()),
    *((float(text), time) for text, time in TEXTS if text in ("2019.0", "1553167800.123456")),
    (1553167800123.456, EXACT),
    # The largest of one unit, and the smallest of each other.
    (10**11 - 1, datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)),
    *((number, datetime(1973, 3, 3, 9, 46, 40, tzinfo=UTC)) for number in (10**11, 10**14, 10**17)),
]
#: Texts that are no times.
NO_TEXTS = [
    "",
    "yesterday",
    "nan",
    "inf",
    "0000",
    "2019-13",
    "20190332",
    "2019-02-30",
    "2019-03-21T25:00",
    "2019-03-21+01:00",
    "0001-01-01T00:00+01:00",
    "-62135596801",
    "1" + "0" * 20,
    "9" * 5000,
    "1_553_167_800",
    "２０１９",
    "٢٠١٩-03-21",
    "2019-03-21\N{REPLACEMENT CHARACTER}",
]
#: Numbers that are none.
NO_NUMBERS: list[int | float] = [-62135596801, 20190332, 20190321246000, 10**20, float("inf"), float("nan"), 1e300]
