"""A data frame of any session to documents: which columns are what, and which document is earlier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup.decision.columns import columns_for
from neardup.decision.decision import Decision
from neardup.documents.columns import choose_columns
from neardup.documents.discover import Found
from neardup.documents.parts import Part, Raw, Wanted
from neardup.errors import InputError
from neardup.ordering import order_column
from neardup.recipe import Recipe

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TYPES = {
    "string": pa.string(),
    "binary": pa.binary(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Documents:
    """The documents of a data frame.

    Attributes
    ----------
    source : DataFrame
        The data frame.
    frame : DataFrame
        What ``finding.find`` takes.
    order : list of str
        The columns of ``frame`` that say which document is earlier.
    text, id : str
        What the columns are called in ``source``.
    by : list of columns
        What of ``source`` says which document is earlier, a hash of the text at last: equal ids and all else equal,
        only the texts tell two rows apart.
    """

    source: DataFrame
    frame: DataFrame
    order: list[str]
    text: str
    id: str
    by: list[Any]


class _Frame:
    """A data frame, as far as the choice of columns looks at it."""

    found = Found(None, "", "the data frame", 0, None)

    def __init__(self, frame: DataFrame) -> None:
        self._columns = {name: _type_of(kind) for name, kind in frame.dtypes}

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns."""
        return self._columns

    def parts(self, wanted: Wanted) -> Iterator[Part]:
        """Nothing is read here."""
        raise NotImplementedError

    def schema(self, keep: Any) -> pa.Schema:
        """Return the schema."""
        raise NotImplementedError

    def tables(self, keep: Any, schema: pa.Schema) -> Iterator[pa.Table]:
        """Nothing is read here."""
        raise NotImplementedError

    def records(self, keep: Any) -> Iterator[Raw]:
        """Nothing is read here."""
        raise NotImplementedError


def _type_of(kind: str) -> pa.DataType:
    """Return the Arrow type of a column's type, a struct for all that can be neither text nor id nor be sorted."""
    if kind.startswith(("varchar", "char")):
        return pa.string()
    if kind.startswith("decimal"):
        return pa.decimal128(38, 18)
    return _TYPES.get(kind, pa.struct([]))


def documents_of(
    source: DataFrame,
    recipe: Recipe,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    order: str | Sequence[str] | None = None,
    time_column: str | None = None,
    more: Mapping[str, str] | None = None,
) -> Documents:
    """Return the documents of a data frame.

    Parameters
    ----------
    source : DataFrame
        One row a document; the same rows each time it is read.
    recipe : Recipe
        What will be done with them.
    text_column, id_column, time_column : str, optional
        Columns; found by their names where that is obvious.
    order : str or list of str, optional
        The columns that say which of two documents is earlier, as rows of a data frame have no order; by default the
        ids. Of equals the one with the smaller id is.
    more : mapping of str to str, optional
        Further columns of the frame, and what they are called in the data frame.

    Raises
    ------
    InputError
        If a column is not there or of a type that does not do.
    """
    from pyspark.sql import functions as F

    looked_at: Any = _Frame(source)
    wanted = choose_columns([looked_at], text_column, id_column, order_column(recipe, time_column), None)
    if not wanted.id:
        raise InputError(
            "the data frame has no column that is obviously the id, which pairs and keepers are named by; name it with "
            f"id_column: {', '.join(source.columns)}"
        )
    by = [order] if isinstance(order, str) else list(order or [wanted.id])
    for name in by:
        kind = looked_at.columns().get(name)
        if kind is None or pa.types.is_struct(kind):
            what = "has no column" if kind is None else "cannot be sorted by column"
            raise InputError(f"the data frame {what} {name!r} for order; choose one of {', '.join(source.columns)}")
    told_apart = [column_of(source, name) for name in dict.fromkeys([*by, wanted.id])]
    told_apart.append(F.xxhash64(column_of(source, wanted.text)))
    order_names = [f"order_{number}" for number in range(len(told_apart))]
    columns = [
        F.monotonically_increasing_id().alias("row"),
        column_of(source, wanted.text).alias("text"),
        column_of(source, wanted.id).alias("id"),
        *(column.alias(name) for column, name in zip(told_apart, order_names, strict=True)),
        *([column_of(source, wanted.order).alias("keep")] if wanted.order else []),
        *(column_of(source, name).alias(new) for new, name in (more or {}).items()),
    ]
    return Documents(source, source.select(*columns), order_names, wanted.text, wanted.id, told_apart)


def columns_beside(decision: Decision, names: Sequence[str]) -> dict[str, str]:
    """Return the columns besides the text that a decision goes by, as ``documents_of`` takes them.

    Raises
    ------
    RecipeError
        If one is not there.
    """
    columns = {"title_column": decision.title_column, "time_column": decision.time_column}
    title, time = columns_for(decision.vector, names, **columns)
    return {name: column for name, column in (("title", title), ("time", time)) if column}


def column_of(frame: DataFrame, name: str) -> Any:
    """Return a column whose name may hold dots."""
    return frame["`" + name.replace("`", "``") + "`"]
