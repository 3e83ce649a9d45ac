"""Keep orders: which of two documents that match comes first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import FIND_TIME
from neardup.errors import RecipeError
from neardup.recipe import KEEP_ORDERS, Recipe

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def order_column(recipe: Recipe, time_column: str | None) -> str | None:
    """Return the column that the recipe's keep order goes by, None for none.

    For ``newest`` and ``oldest`` that is the time column, or FIND_TIME where none is named.
    """
    if recipe.keep in ("newest", "oldest"):
        return time_column or FIND_TIME
    return None if recipe.keep in KEEP_ORDERS else recipe.keep.removesuffix(":lowest")


def keep_order(keep: str, text_bytes: Integers, values: pa.Array | None) -> tuple[Integers, int]:
    """Return the documents in keep order, and how many have no value to go by: they come last.

    Parameters
    ----------
    keep : str
        ``Recipe.keep``.
    text_bytes : int64[n]
        The length of each text in bytes of UTF-8, for ``longest`` and ``shortest``.
    values : pyarrow.Array or None
        The values of the time column or of the column that ``keep`` names.

    Raises
    ------
    RecipeError
        If an order needs values and there is none to go by.
    """
    if keep == "first":
        return np.arange(len(text_bytes)), 0
    if keep in ("longest", "shortest"):
        return np.argsort(-text_bytes if keep == "longest" else text_bytes, kind="stable"), 0
    if values is None:
        raise RecipeError(f"keep {keep!r} needs a column to go by; name one with a time column or keep 'first'")
    ranks = _ranks(values, time_of if keep in ("newest", "oldest") else number_of)
    missing = ranks == 0
    if len(ranks) and missing.all():
        raise RecipeError(f"keep {keep!r}: no document has a usable value in that column; keep 'first' or name another")
    falling = keep != "oldest" and not keep.endswith(":lowest")
    return np.lexsort((-ranks if falling else ranks, missing)), int(missing.sum())


def _ranks(values: pa.Array, convert: Callable[[str], float | None]) -> Integers:
    """Return dense ranks from 1 of the values, 0 for those that are null or not convertible."""
    if pa.types.is_large_string(values.type) or pa.types.is_string(values.type):
        texts = values.to_pylist()
        numbers = [None if text is None else convert(text) for text in texts]
        unread = sum(text is not None for text in texts) - sum(number is not None for number in numbers)
        if convert is time_of or not unread:
            values = pa.array(numbers, pa.float64())
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    usable = pc.cast(pc.is_valid(values), pa.int64())
    return np.asarray(pc.multiply(pc.cast(ranks, pa.int64()), usable))


def number_of(text: str) -> float | None:
    """Return a text as a number, None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def time_of(text: str) -> float | None:
    """Return seconds since 1970 of an ISO 8601 time (without an offset: UTC) or of a number of seconds."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return number_of(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
