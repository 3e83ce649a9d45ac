"""The columns besides the text that a decision may go by: titles and times."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.content.times import seconds_of
from neardup.documents.columns import TIME_NAMES
from neardup.errors import RecipeError
from neardup.vector.records import NO_TIME, Records
from neardup.vector.vector import Vector

#: What columns of titles are called, the likeliest first.
TITLES = ("title", "headline", "heading", "subject")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def records_of_table(
    table: pa.Table, texts: Sequence[str], vector: Vector, *, title_column: str = "", time_column: str = ""
) -> Records:
    """Return what a vector compares of the rows of a table.

    Parameters
    ----------
    table : pyarrow.Table
        The rows, with all columns.
    texts : sequence of str
        What of their texts is compared.
    vector : Vector
        It says whether titles and times are needed.
    title_column, time_column : str
        Their columns; empty to find them by their names.

    Raises
    ------
    RecipeError
        If one is needed that is not there.
    """
    title, time = columns_for(vector, table.column_names, title_column=title_column, time_column=time_column)
    titles, times = None, None
    if title:
        titles = [None if value in (None, "") else str(value) for value in table[title].to_pylist()]
    if time:
        times = np.array([microseconds_of(value) for value in table[time].to_pylist()], np.int64)
    return Records(texts, titles, times)


def columns_for(
    vector: Vector, names: Sequence[str], *, title_column: str = "", time_column: str = ""
) -> tuple[str, str]:
    """Return the columns of titles and of times that a vector needs, empty where it needs none.

    The other parameters and the error are those of ``records_of_table``.

    Parameters
    ----------
    names : sequence of str
        The columns that there are.
    """
    title = time = ""
    if vector.needs_titles:
        title = column_of(names, title_column, TITLES, "title", "--title-column")
    if vector.needs_times:
        time = column_of(names, time_column, TIME_NAMES, "hours_apart", "--time-column")
    return title, time


def column_of(names: Sequence[str], named: str, usual: Sequence[str], measure: str, option: str) -> str:
    """Return the column that a measure looks at: the named one, else the first of the usual ones.

    Raises
    ------
    RecipeError
        If it is not there.
    """
    lowered = {name.lower(): name for name in reversed(names)}
    found = named if named in names else ""
    if not named:
        found = next((lowered[name] for name in usual if name in lowered), "")
    if not found:
        what = f"no column {named!r}" if named else f"none of the columns {', '.join(usual)}"
        raise RecipeError(
            f"{measure} is one of the decision's measures, and there is {what}; name one of "
            f"{', '.join(names)} with {option}"
        )
    return found


def microseconds_of(value: Any) -> int:
    """Return a time in microseconds since 1970, ``NO_TIME`` where it is none; without a zone it is UTC."""
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return round((moment - _EPOCH).total_seconds() * 1e6)
    seconds = seconds_of(value)
    if seconds is None and isinstance(value, str):
        try:
            seconds = seconds_of(float(value))
        except ValueError:
            seconds = None
    return NO_TIME if seconds is None else round(seconds * 1e6)
