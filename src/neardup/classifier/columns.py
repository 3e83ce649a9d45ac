"""The columns besides the text that a classifier may go by: titles and times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from neardup.classifier.values import NO_TIME, Records
from neardup.classifier.vector import Vector
from neardup.documents.records import value_texts
from neardup.documents.tables import TIME_NAMES
from neardup.errors import RecipeError, option
from neardup.times import times_of

#: What columns of titles are called, the likeliest first.
TITLES = ("title", "headline", "heading", "subject")


def records_of_table(
    table: pa.Table, texts: Sequence[str], vector: Vector, *, title_column: str = "", time_column: str = ""
) -> Records:
    """Return what a vector compares of the rows of a table.

    Columns without a name are found by their usual ones. Raises ``RecipeError`` if one is needed that is not there.
    """
    title, time = columns_for(vector, table.column_names, title_column=title_column, time_column=time_column)
    titles, times = None, None
    if title:
        titles = [value or None for value in value_texts(table[title])]
    if time:
        found, readable = times_of(table[time])
        times = np.where(readable, found, NO_TIME)
    return Records(texts, titles, times)


def columns_for(
    vector: Vector, names: Sequence[str], *, title_column: str = "", time_column: str = ""
) -> tuple[str, str]:
    """Return the columns of titles and of times that a vector needs, empty where it needs none.

    The other parameters and the error are those of ``records_of_table``.
    """
    title = time = ""
    if vector.needs_titles:
        title = column_of(names, title_column, TITLES, "title", option("--title-column"))
    if vector.needs_times:
        time = column_of(names, time_column, TIME_NAMES, "hours_apart", option("--time-column"))
    return title, time


def usual_column(names: Sequence[str], usual: Sequence[str]) -> str:
    """Return the column with the first of the usual names, be they written in capitals; empty where there is none."""
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[name] for name in usual if name in lowered), "")


def column_of(names: Sequence[str], named: str, usual: Sequence[str], measure: str, option: str) -> str:
    """Return the column that a measure looks at: the named one, else the first of the usual ones."""
    found = named if named in names else ""
    if not named:
        found = usual_column(names, usual)
    if not found:
        what = f"no column {named!r}" if named else f"none of the columns {', '.join(usual)}"
        raise RecipeError(
            f"{measure} is one of the classifier's measures, and there is {what}; name one of "
            f"{', '.join(names)} with {option}"
        )
    return found
