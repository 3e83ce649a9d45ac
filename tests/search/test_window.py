"""The length of a window: its forms, and their bounds."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.errors import RecipeError
from neardup.search.window import WindowLength


@given(st.timedeltas(timedelta(microseconds=1), timedelta(days=13_343_998)))
@example(timedelta(seconds=1_000_001))
@example(timedelta(microseconds=1))
@example(timedelta(days=13_343_998))
def test_a_printed_length_is_the_same_length(window: timedelta) -> None:
    length = WindowLength.parse(window)
    assert WindowLength.parse(str(length)) == length == ("time", window // timedelta(microseconds=1))


@given(st.integers(1, 10**12))
def test_a_printed_number_of_documents_is_the_same_number(window: int) -> None:
    assert WindowLength.parse(str(WindowLength.parse(window))) == ("documents", window)


@pytest.mark.parametrize(
    ("window", "printed"),
    [("24h", "24h"), ("7d", "168h"), ("1.5h", "90m"), ("0.1s", "0.1s"), ("8,000 documents", "8000 documents")],
)
def test_lengths_are_printed_in_the_largest_unit_that_fits(window: str, printed: str) -> None:
    assert str(WindowLength.parse(window)) == printed


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        ("1e+06s", "is not a length; give a time as 24h"),
        ("١h", "is not a length"),
        (24.0, "is not a length"),
        (True, "is not a length"),
        ("0.0000001s", "is not a whole number of microseconds"),
        ("0h", "is not above 0 and below 36,558 years"),
        ("40000000d", "is not above 0 and below 36,558 years"),
        (timedelta(seconds=-1), "is not above 0"),
        (0, "is not between 1 and 1,000,000,000,000 documents"),
        ("99999999999999999999 documents", "is not between 1 and"),
        pytest.param(10**5000, "is not between 1 and", id="many digits"),
        ("9" * 5000 + "h", "is not a length"),
    ],
)
def test_a_length_out_of_bounds_is_refused(window: Any, sentence: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(sentence)):
        WindowLength.parse(window)
