"""Documents as a classifier compares them: texts, titles and times, and the columns that hold titles and times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neardup.classifier.vector import Vector
from neardup.documents.records import value_texts
from neardup.documents.tables import TIME_NAMES
from neardup.errors import RecipeError, option
from neardup.kernels import Integers
from neardup.times import times_of

#: Stands for an unknown time.
NO_TIME = int(np.iinfo(np.int64).min)

#: Usual names of a title column, the likeliest first.
TITLE_NAMES = ("title", "headline", "heading", "subject")


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Documents whose pairs a classifier measures."""

    #: The compared texts; of pages, their extracted content.
    texts: Sequence[str]
    #: None for a document without a title, or if no measure compares titles.
    titles: Sequence[str | None] | None = None
    #: int64[n]: microseconds since 1970, or ``NO_TIME``; None if no measure compares times.
    times: Integers | None = None

    def __len__(self) -> int:
        return len(self.texts)


def read_records(
    table: pa.Table, texts: Sequence[str], vector: Vector, *, title_column: str = "", time_column: str = ""
) -> Records:
    """Return the records of a table's rows, with the titles and times that the vector compares.

    An empty column name stands for the usual names of such a column.

    Raises
    ------
    RecipeError
        If the vector needs a column that the table does not have.
    """
    title, time = needed_columns(vector, table.column_names, title_column=title_column, time_column=time_column)
    titles, times = None, None
    if title:
        titles = [value or None for value in value_texts(table[title])]
    if time:
        microseconds, readable = times_of(table[time])
        times = np.where(readable, microseconds, NO_TIME)
    return Records(texts, titles, times)


def needed_columns(
    vector: Vector, names: Sequence[str], *, title_column: str = "", time_column: str = ""
) -> tuple[str, str]:
    """Return the title column and the time column that a vector needs; empty if it needs none.

    The other parameters and the error are those of ``read_records``.
    """
    title = time = ""
    if vector.needs_titles:
        title = find_measure_column(names, title_column, TITLE_NAMES, "title", option("--title-column"))
    if vector.needs_times:
        time = find_measure_column(names, time_column, TIME_NAMES, "hours_apart", option("--time-column"))
    return title, time


def find_usual_column(names: Sequence[str], usual_names: Sequence[str]) -> str:
    """Return the column with the first of the usual names, in any case; empty if there is none."""
    lowered = {name.lower(): name for name in reversed(names)}
    return next((lowered[name] for name in usual_names if name in lowered), "")


def find_measure_column(
    names: Sequence[str], chosen: str, usual_names: Sequence[str], measure: str, option: str
) -> str:
    """Return the column that a measure compares: the chosen one, or without a choice the first usual one.

    Raises
    ------
    RecipeError
        If there is no such column; the message names ``option`` as the way to choose one.
    """
    found = (chosen if chosen in names else "") if chosen else find_usual_column(names, usual_names)
    if not found:
        missing = f"no column {chosen!r}" if chosen else f"none of the columns {', '.join(usual_names)}"
        raise RecipeError(
            f"the classifier's measure {measure} needs a column, and the input has {missing}; choose one of "
            f"{', '.join(names)} with {option}"
        )
    return found
