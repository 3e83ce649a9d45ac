"""Texts, in whatever form they are given, as Arrow arrays for the threads."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.tables import table_of
from neardup.errors import InputError
from neardup.text.comparable import text_buffers

#: The bytes of text in a piece of work: small enough for the processor's cache, large enough for a thread.
_PIECE = 1 << 20


def texts_of(data: Any) -> pa.LargeStringArray:
    """Return texts as one Arrow array.

    Parameters
    ----------
    data : iterable of str
        A list, an array, a pandas or Polars series, an Arrow array, or a table or data frame of one column.

    Raises
    ------
    InputError
        If it is one text, no column of texts, or holds something else than texts, such as None.
    """
    table = table_of(_only_column(data))
    if table.num_columns != 1:
        raise InputError(f"{table.num_columns} columns are not one column of texts; give one, such as data['text']")
    column = table.column(0)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if column.null_count:
        first = pc.index(column.is_null(), True).as_py()
        raise InputError(f"text {first} is None; leave such texts out, or give '' in their place")
    kind = column.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)):
        raise InputError(f"{type(data).__name__} of {kind} holds no texts; give str, which UTF-8 can write")
    try:
        texts = pa.concat_arrays([pa.array([], pa.large_string()), *column.cast(pa.large_string()).chunks])
        texts.validate(full=True)
    except pa.ArrowInvalid:
        raise InputError("a text is no valid UTF-8; decode the texts before") from None
    return texts


def _only_column(data: Any) -> Any:
    """Return the column of an array or data frame that has one, which a data frame's index is not; else the data."""
    if getattr(data, "ndim", 1) != 2 or data.shape[1] != 1:
        return data
    return data.iloc[:, 0] if hasattr(data, "iloc") else data[:, 0]


def pieces(texts: pa.LargeStringArray) -> Iterator[pa.LargeStringArray]:
    """Yield texts in pieces, at least one."""
    _, ends = text_buffers(texts)
    cuts = np.searchsorted(ends, np.arange(ends[0], ends[-1], _PIECE)[1:])
    bounds = [0, *np.unique(cuts).tolist(), len(texts)]
    for begin, end in pairwise(bounds):
        yield texts.slice(begin, end - begin)
