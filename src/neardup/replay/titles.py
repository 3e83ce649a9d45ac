"""The titles of a corpus, for decisions that compare them: the inputs are read once more for that column."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.decision.columns import TITLES, column_of
from neardup.decision.decision import Decision
from neardup.documents import Corpus
from neardup.documents.values import value_texts
from neardup.replay.order import Report

Integers = npt.NDArray[np.int64]
#: Rows in which columns are looked for.
_LOOKED_AT = 1000


def title_column(corpus: Corpus, rows: Integers, decision: Decision) -> str:
    """Return the column of a corpus that holds titles, by some of its rows.

    Raises
    ------
    RecipeError
        If there is none.
    """
    names = corpus.take(rows[:_LOOKED_AT]).column_names
    return column_of(names, decision.title_column, TITLES, "title", "--title-column")


def titles_of(corpus: Corpus, rows: Integers, report: Report) -> Any:
    """Return the titles of rows as an Arrow array of strings, empty where there is none.

    Parameters
    ----------
    corpus : Corpus
        The inputs, opened with the column of titles as order column.
    rows : int64[n]
        Raw rows, ascending.
    report : callable
        Told stage, bytes read and all bytes.
    """
    consumed = 0
    # The empty title lies in front.
    found, titles = [np.empty(0, np.int64)], [pa.array([""], pa.large_string())]
    for batch in corpus.scan():
        found.append(batch.rows)
        titles.append(pa.array(value_texts(batch.order), pa.large_string()))
        consumed += batch.consumed
        report("read titles", consumed, corpus.total_bytes)
    known = np.concatenate(found)
    places = np.searchsorted(known, rows)
    there = np.isin(rows, known)
    return pa.chunked_array(titles).take(pa.array(np.where(there, places + 1, 0)))
