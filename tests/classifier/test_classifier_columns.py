"""Titles and times of documents: which columns they are in, and what is read of them."""

from __future__ import annotations

from datetime import date

import numpy as np
import pyarrow as pa
import pytest
from saying import says

from neardup.classifier.columns import TITLES, records_of_table
from neardup.classifier.values import NO_TIME
from neardup.classifier.vector import Vector
from neardup.errors import RecipeError

PLAIN = Vector.parse("jaccard(words:1)")
TITLED = Vector.parse("jaccard(words:1), title")
TIMED = Vector.parse("jaccard(words:1), hours_apart")
HOUR = 3_600_000_000


def test_only_what_is_compared_is_read() -> None:
    table = pa.table({"text": ["a", "b"], "title": ["A", None], "time": ["x", "y"]})
    found = records_of_table(table, ["a", "b"], PLAIN)
    assert (list(found.texts), found.titles, found.times) == (["a", "b"], None, None)
    found = records_of_table(table, ["a", "b"], TITLED)
    assert (found.titles, found.times) == (["A", None], None)


def test_columns_are_found_by_their_usual_names_or_named() -> None:
    for name in TITLES:
        found = records_of_table(pa.table({"text": ["a"], name.upper(): ["T"]}), ["a"], TITLED)
        assert found.titles == ["T"]
    both = pa.table({"subject": ["S"], "title": ["T"], "Name": [""], "number": [7]})
    assert records_of_table(both, ["a"], TITLED).titles == ["T"]
    assert records_of_table(both, ["a"], TITLED, title_column="subject").titles == ["S"]
    assert records_of_table(both, ["a"], TITLED, title_column="Name").titles == [None]
    assert records_of_table(both, ["a"], TITLED, title_column="number").titles == ["7"]


@pytest.mark.parametrize(
    ("vector", "named", "said"),
    [
        (TITLED, "", ("title is one", "measures", "none", "columns title, headline")),
        (TITLED, "Title", ("title is one", "measures", "no column 'Title'", "one of text")),
        (TIMED, "", ("hours_apart is one", "measures", "none", "columns timestamp, time")),
        (TIMED, "when", ("no column 'when'", "one of text", "time_column")),
    ],
)
def test_a_column_that_is_needed_and_missing_is_named(vector: Vector, named: str, said: tuple[str, ...]) -> None:
    with pytest.raises(RecipeError) as error:
        records_of_table(pa.table({"text": ["a"]}), ["a"], vector, title_column=named, time_column=named)
    assert says(error.value, *said)


def test_columns_of_arrow_times() -> None:
    day = pa.array([date(2024, 3, 1), None]).cast(pa.timestamp("us"))
    for kind in (pa.timestamp("s"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Berlin"), pa.date32()):
        times = records_of_table(pa.table({"time": day.cast(kind)}), ["a", "b"], TIMED).times
        assert times is not None
        assert times.dtype == np.int64
        assert times.tolist() == [1_709_251_200_000_000, NO_TIME]
