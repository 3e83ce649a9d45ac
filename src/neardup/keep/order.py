"""Keep orders: which of two matching documents is kept."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents import DETECTED_TIME_COLUMN, OrderColumn, join_order
from neardup.errors import RecipeError, option
from neardup.kernels import Bools, Integers
from neardup.recipe import KEEP_ORDERS, Recipe
from neardup.times import TIME_FORMS, times_of


class Preference(NamedTuple):
    """Values of a column in order of trust: documents with an earlier value come first, those without any last."""

    column: str
    values: tuple[str, ...]

    def sort(self, order: Integers, column: pa.Array) -> Integers:
        """Return documents in keep order, sorted stably by their values of the column in order of trust.

        Raises ``RecipeError`` if no document has any of the values.
        """
        places = pc.index_in(column, value_set=pa.array(self.values, pa.large_string()))
        if len(column) and places.null_count == len(places):
            raise RecipeError(
                f"{option('--prefer', 'prefer')}: no document has {self.column} {' or '.join(self.values)}; name "
                "values that are there, or leave it out"
            )
        ranks = np.asarray(pc.fill_null(places, len(self.values)), np.int64)
        by_trust: Integers = order[np.argsort(ranks[order], kind="stable")]
        return by_trust


def parse_preference(preference: str | tuple[str, Sequence[str]] | None) -> Preference | None:
    """Parse a preference: a text like ``COLUMN=a,b,c``, or a column with its values; None for none.

    Raises ``RecipeError`` if it has another form, no values, or one value twice.
    """
    if preference is None:
        return None
    if isinstance(preference, str):
        column, _, listed = preference.partition("=")
        values = tuple(value.strip() for value in listed.split(","))
        values = () if not column or "" in values else values
        subject, example = f"{option('--prefer', 'prefer')} {preference!r}", "write it like source=reuters,wire"
    else:
        column, values = preference[0], tuple(map(str, preference[1]))
        subject, example = f"prefer {preference!r}", "give ('source', ['a', 'b'])"
    if not values or len(set(values)) < len(values):
        raise RecipeError(f"{subject} is no list of different values of a column; {example}")
    return Preference(column, values)


def order_column(recipe: Recipe, time_column: str | None) -> str | None:
    """Return the column that determines the keep order, None if there is none.

    For ``newest`` and ``oldest`` it is the time column, DETECTED_TIME_COLUMN if none is named.
    """
    if is_by_time(recipe.keep):
        return OrderColumn(time_column, option("--time-column")) if time_column else DETECTED_TIME_COLUMN
    if recipe.keep in KEEP_ORDERS:
        return None
    keep = f"{option('--keep')} (which takes {', '.join(KEEP_ORDERS)} or a column)"
    return OrderColumn(recipe.keep.removesuffix(":lowest"), keep)


def is_by_time(keep: str) -> bool:
    """Return whether a keep order sorts by time."""
    return keep in ("newest", "oldest")


def keep_order(
    keep: str, text_bytes: Integers, values: Sequence[pa.Array], column: str | None = None
) -> tuple[Integers, int]:
    """Return the documents in keep order, and the number of those without a usable value, which come last.

    Parameters
    ----------
    keep : str
        ``Recipe.keep``.
    text_bytes : int64[n]
        The length of each text in bytes of UTF-8, for ``longest`` and ``shortest``.
    values : sequence of pyarrow.Array
        The values of the time column or of ``column``, which messages name, in batches.

    Raises
    ------
    InputError
        If the values have no common order.
    RecipeError
        If the order needs values and there are none.
    """
    if keep == "first":
        return np.arange(len(text_bytes)), 0
    if keep in ("longest", "shortest"):
        return np.argsort(-text_bytes if keep == "longest" else text_bytes, kind="stable"), 0
    if not values:
        raise RecipeError(f"keep {keep!r} needs a column to go by; name one with a time column or keep 'first'")
    if is_by_time(keep):
        ranks, usable = _times(values)
    else:
        ranks, usable = _ranks(join_order(values, column or "order"))
    missing = ~usable
    if len(ranks) and missing.all():
        raise _missing_values_error(keep, column)
    falling = keep != "oldest" and not keep.endswith(":lowest")
    return np.lexsort((-ranks if falling else ranks, missing)), int(missing.sum())


def _missing_values_error(keep: str, column: str | None) -> RecipeError:
    where = "that column" if column is None else f"column {column!r}"
    if is_by_time(keep):
        return RecipeError(
            f"keep {keep!r}: no document has a readable time in {where}; keep 'first', or name a time column of dates, "
            f"timestamps, or {TIME_FORMS}"
        )
    return RecipeError(f"keep {keep!r}: no document has a usable value in {where}; keep 'first' or name another")


def _times(values: Sequence[pa.Array]) -> tuple[Integers, Bools]:
    times, readable = zip(*map(times_of, values), strict=True)
    return np.concatenate(times), np.concatenate(readable)


def _ranks(values: pa.Array) -> tuple[Integers, Bools]:
    """Return dense ranks of the values, and a mask of valid ones; texts count as numbers if all of them are."""
    if pa.types.is_large_string(values.type) or pa.types.is_string(values.type):
        texts = values.to_pylist()
        numbers = [None if text is None else _parse_number(text) for text in texts]
        if all(text is None or number is not None for text, number in zip(texts, numbers, strict=True)):
            values = pa.array(_dense_ranks(numbers), pa.int64())
    if pa.types.is_floating(values.type):
        values = pc.if_else(pc.is_nan(values), None, values)
    ranks = pc.rank(values, sort_keys="ascending", tiebreaker="dense")
    return np.asarray(pc.cast(ranks, pa.int64())), np.asarray(pc.is_valid(values).to_numpy(zero_copy_only=False))


def _dense_ranks(numbers: Sequence[Decimal | None]) -> list[int | None]:
    """Return the ranks of numbers of any number of digits; None for None and NaN."""
    distinct = sorted({number for number in numbers if number is not None and not number.is_nan()})
    ranks = {number: rank for rank, number in enumerate(distinct)}
    return [None if number is None else ranks.get(number) for number in numbers]


def _parse_number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if not number.is_snan() else None
