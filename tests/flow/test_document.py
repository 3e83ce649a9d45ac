"""Documents and verdicts: what is taken as a time, what is refused, and how it is said."""

from __future__ import annotations

import dataclasses
import json
import math
from datetime import UTC, date, datetime, timedelta, timezone
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.decision.evidence import Push
from neardup.errors import InputError
from neardup.flow.document import Document, Verdict, microseconds

SECOND = 1_000_000


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (None, None),
        (0, 0),
        (-1, -SECOND),
        (1.5, 1_500_000),
        (-0.25, -250_000),
        (541350061, 541350061 * SECOND),
        (np.int64(5), 5 * SECOND),
        (np.float32(5.5), 5_500_000),
        (Fraction(1, 4), 250_000),
        (datetime(1970, 1, 1), 0),
        (datetime(1970, 1, 1, tzinfo=UTC), 0),
        (datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), 0),
        (datetime(1969, 12, 31, 23, 59, 59, 999999), -1),
        (datetime.min, -62135596800 * SECOND),
        (datetime.max, 253402300800 * SECOND - 1),
        (pd.Timestamp("1970-01-01T00:00:01.000001Z"), SECOND + 1),
        ("1970-01-01", 0),
        ("19700102", 86400 * SECOND),
        ("1970-W01-4", 0),
        ("1987-02-26T15:01:01Z", 541350061 * SECOND),
        ("1987-02-26t15:01:01z", 541350061 * SECOND),
        ("1987-02-26 15:01:01", 541350061 * SECOND),
        ("19870226T150101Z", 541350061 * SECOND),
        ("1987-02-26T16:01:01.5+01:00", 541350061 * SECOND + 500_000),
        (" 1987-02-26T10:01:01,000001-05:00\n", 541350061 * SECOND + 1),
    ],
)
def test_a_time_is_microseconds_since_1970(timestamp: Any, expected: int | None) -> None:
    assert Document("a", "text", timestamp).microseconds == expected


@pytest.mark.parametrize(
    ("timestamp", "words"),
    [
        (True, "timestamp True is of type bool, not a time"),
        (math.nan, "timestamp nan is not a finite number"),
        (-math.inf, "timestamp -inf is not a finite number"),
        (Fraction(10**400), "is not a finite number"),
        (1.7e12, r"timestamp 1700000000000.0 lies outside the years 1 to 9999; .* divide those by 1000"),
        (-62135596801, "lies outside the years"),
        (253402300800, "lies outside the years"),
        pytest.param(10**5000, "timestamp of int lies outside the years", id="too long to write"),
        ("", "timestamp '' is not ISO 8601"),
        ("yesterday", "timestamp 'yesterday' is not ISO 8601; give seconds since 1970, a datetime"),
        ("541350061", "timestamp '541350061' is not ISO 8601; give seconds since 1970"),
        ("1712010151200", "timestamp '1712010151200' is not ISO 8601"),
        ("1987-02-30", r"not ISO 8601 \(day is out of range for month\)"),
        ("1987-02-26T25:00", r"not ISO 8601 \(hour must be in 0..23\)"),
        ("1987-02-26T", "not ISO 8601"),
        ("٢٠٢٤-01-01", "not ISO 8601"),
        ("9" * 1000, "timestamp '9{50,60}"),
        ("0001-01-01T00:00+01:00", "lies outside the years"),
        (date(1987, 2, 26), "is of type date, not a time"),
        (b"1987-02-26", "is of type bytes, not a time"),
        ([1], "is of type list, not a time"),
        (1j, "is of type complex, not a time"),
        (pd.NaT, "timestamp NaT is not a time"),
    ],
)
def test_what_is_no_time_is_refused_in_one_sentence(timestamp: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Document("a", "text", timestamp)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 320


@given(st.integers(-62135596800 * SECOND, 253402300800 * SECOND - 1))
@example(2**52 + 1)
def test_datetimes_and_their_iso_texts_are_exact(at: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
    assert microseconds(moment) == at
    assert microseconds(moment.isoformat()) == at
    assert microseconds(moment.replace(tzinfo=None)) == at


@given(st.floats(-6e10, 2.5e11))
@example(1731000000.1234565)
def test_seconds_are_the_nearest_microsecond(seconds: float) -> None:
    assert abs(microseconds(seconds) - Fraction(seconds) * SECOND) <= Fraction(1, 2) + Fraction(1, 1000)


@given(st.integers(-(2**51), 2**51))
def test_seconds_of_microseconds_give_them_back(at: int) -> None:
    assert microseconds(at / 1e6) == at


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ((1, "text"), "id 1 is of type int; a document's id is a str"),
        (("a", None), "text None is of type NoneType; a document's text is a str"),
        (("a", b"text"), "text b'text' is of type bytes"),
        (("a", "text", None, 3), "origin 3 is of type int"),
        (("a\ud800", "text"), r"id 'a\\ud800' has the lone surrogate '\\ud800' at character 1, which UTF-8 cannot"),
        (("a", "b" * 1000 + "\udc80"), r"text 'b{60}' has the lone surrogate '\\udc80' at character 1000"),
        (("a", "text", None, "\udfff"), "origin .* lone surrogate"),
        (("a", "text", None, "", None), "title None is of type NoneType; a document's title is a str"),
        (("a", "text", None, "", "\udfff"), "title .* lone surrogate"),
    ],
)
def test_fields_are_texts_that_utf8_can_hold(fields: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        Document(*fields)
    assert str(caught.value).isascii()


def test_a_document_is_frozen_and_equal_by_what_it_says() -> None:
    document = Document("a", "text", 1.5, "in/a.txt")
    assert document == Document("a", "text", 1.5, "in/a.txt")
    assert dataclasses.replace(document, timestamp=2).microseconds == 2 * SECOND
    assert repr(document) == "Document(id='a', text='text', timestamp=1.5, origin='in/a.txt', title='')"
    with pytest.raises(dataclasses.FrozenInstanceError):
        document.text = "other"  # type: ignore[misc]


def test_a_verdict_says_whether_it_is_a_duplicate_and_goes_to_json() -> None:
    near = Verdict("b", "near", "a", 0.75, 1.5, "", (3, 4, 3))
    assert near.is_duplicate
    assert Verdict("b", "exact", "a", 1.0, 1.5, "", (3, 3, 3)).is_duplicate
    original = Verdict("a", "original", None, None, 0.0, "late", None)
    assert not original.is_duplicate
    pushes = Push("jaccard(words:4)", 0.5, 1.25), Push("title", None, -0.25)
    learned = Verdict("b", "near", "a", 0.9, 1.5, "", (9, 10, 10), 0.75, pushes)
    assert (near.evidence, learned.evidence) == ("", "jaccard(words:4) +1.25, title -0.25")
    for verdict in (near, original, learned):
        fields = verdict.as_dict()
        assert json.loads(json.dumps(fields)) == fields
        assert fields.pop("evidence") == verdict.evidence
        counts, measures = fields.pop("counts"), tuple(Push(**push) for push in fields.pop("measures"))
        assert Verdict(**fields, counts=None if counts is None else tuple(counts), measures=measures) == verdict
