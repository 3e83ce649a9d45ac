"""Which documents take part: ids that were there before are rejected, and of equal sets one stands for all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.records import readable_texts
from neardup.keep.order import goes_by_time, nothing_to_go_by, number_of
from neardup.recipe import KEEP_ORDERS
from neardup.spark.features import TEXT
from neardup.times import times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: So many rows are sent to all workers rather than that all documents travel to meet them.
_FEW_ROWS = 4_000_000
#: What equal sets have in common.
_MARK = ("mark0", "mark1", "size")


def repeated(features: DataFrame, order: Sequence[str]) -> DataFrame:
    """Return the rows of documents whose id an earlier one has: row.

    Parameters
    ----------
    features : DataFrame
        ``features.COLUMNS`` and id.
    order : sequence of str
        The columns that say which document is earlier; empty where their rows do.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    present = features.where("size >= 0").select("id", "row", *order)
    twice = present.groupBy("id").count().where("count > 1").select("id")
    place = F.row_number().over(Window.partitionBy("id").orderBy(*order, "row"))
    return present.join(twice, "id").withColumn("place", place).where("place > 1").select("row")


def several(sets: DataFrame) -> DataFrame:
    """Return the marks that several sets have, and the smallest row of these: mark0, mark1, size, rep.

    Parameters
    ----------
    sets : DataFrame
        row, size, mark0, mark1 of all sets that take part.
    """
    from pyspark.sql import functions as F

    groups = sets.groupBy(*_MARK).agg(F.min("row").alias("rep"), F.count("*").alias("copies"))
    return groups.where("copies > 1").drop("copies")


def copies(sets: DataFrame, marks: DataFrame, count: int) -> DataFrame:
    """Return the sets that are equal to one of a smaller row: row, rep (the smallest one).

    Parameters
    ----------
    sets : DataFrame
        As for ``several``.
    marks : DataFrame
        From it; there are ``count``.
    """
    from pyspark.sql import functions as F

    found = sets.select("row", *_MARK).join(F.broadcast(marks) if count <= _FEW_ROWS else marks, list(_MARK))
    return found.where("row <> rep").select("row", "rep")


def without(frame: DataFrame, rows: DataFrame, count: int) -> DataFrame:
    """Return a frame without some rows, of which there are so many."""
    from pyspark.sql import functions as F

    if not count:
        return frame
    gone = rows.select("row")
    return frame.join(F.broadcast(gone) if count <= _FEW_ROWS else gone, "row", "left_anti")


def with_documents(frame: DataFrame, rows: DataFrame, count: int) -> DataFrame:
    """Return those of a frame that are among some rows, of which there are so many, with the columns of both."""
    from pyspark.sql import functions as F

    return frame.join(F.broadcast(rows) if count <= _FEW_ROWS else rows, "row")


#: What a column of times or of texts holds: the type of what is gone by.
_KINDS = {"time": "bigint", "int64": "bigint", "float64": "double", "converted": "double", "text": "string"}
_COUNTS = (
    "documents bigint, texts bigint, int64 bigint, float64 bigint, converted bigint, read bigint, "
    "ints boolean, floats boolean"
)


def comparable(features: DataFrame, keep: str) -> tuple[str, int]:
    """Return what the column ``keep`` holds, and how many documents have no value to go by.

    Raises
    ------
    RecipeError
        If none has.
    """
    from pyspark.sql import functions as F

    present = features.where("size >= 0").select("keep")
    kind = dict(present.dtypes)["keep"]
    if goes_by_time(keep):
        what = "time"
        documents, usable = converted(present, what).agg(F.count("*"), F.count("keep")).first()
    elif kind in ("string", "binary"):
        names = [column.split()[0] for column in _COUNTS.split(", ")]
        sums = [F.every(name) if name in ("ints", "floats") else F.sum(name) for name in names]
        row = present.mapInArrow(count_batches, _COUNTS).agg(*sums).first()
        told = {name: value or 0 for name, value in zip(names, row, strict=True)}
        documents = told["documents"]
        what, usable = held_by(told)
    else:
        value = F.when(F.isnan("keep"), None).otherwise(F.col("keep")) if kind in ("float", "double") else F.col("keep")
        documents, usable = present.agg(F.count("*"), F.count(value)).first()
        what = ""
    if documents and not usable:
        raise nothing_to_go_by(keep)
    return what, int(documents - usable)


def held_by(told: Mapping[str, Any]) -> tuple[str, int]:
    """Return what a column of texts holds by the sums of ``count_batches``, and how many are usable."""
    if told["ints"]:
        return "int64", told["int64"]
    if told["floats"]:
        return "float64", told["float64"]
    if told["read"] == told["texts"]:
        return "converted", told["converted"]
    return "text", told["texts"]


def converted(frame: DataFrame, what: str) -> DataFrame:
    """Return a frame whose column ``keep`` orders as ``comparable`` found, null where there is nothing to go by."""
    from pyspark.sql import functions as F

    kinds = dict(frame.dtypes)
    if what:
        schema = ", ".join(f"{name} {_KINDS[what] if name == 'keep' else kinds[name]}" for name in frame.columns)
        return frame.mapInArrow(partial(convert_batches, what), schema)
    if kinds["keep"] in ("float", "double"):
        # Zeros are equal, whatever their sign.
        return frame.withColumn("keep", F.when(~F.isnan("keep"), F.col("keep") + F.lit(0.0)))
    return frame


def count_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield how many texts of a partition are what; in a worker."""
    for batch in batches:
        values = readable_texts(batch.column("keep"))
        ints, floats = _numbers(values, pa.int64()), _numbers(values, pa.float64())
        numbers = _converted(values)
        counts = [len(values), len(values) - values.null_count]
        counts += [0 if found is None else _usable(found) for found in (ints, floats, numbers)]
        counts.append(len(numbers) - numbers.null_count)
        row = [*counts, ints is not None, floats is not None]
        names = [column.split()[0] for column in _COUNTS.split(", ")]
        yield pa.RecordBatch.from_arrays([pa.array([value]) for value in row], names)


def convert_batches(what: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches whose column ``keep`` holds what is gone by; in a worker."""
    for batch in batches:
        column = batch.column("keep")
        values: Any
        if what == "time":
            times, readable = times_of(column)
            values = pa.array(times, mask=~readable)
        elif what in ("int64", "float64"):
            values = _numbers(readable_texts(column), pa.int64() if what == "int64" else pa.float64())
        elif what == "converted":
            values = _converted(readable_texts(column))
        else:
            values = readable_texts(column).cast(pa.string())
        if pa.types.is_floating(values.type):
            values = pc.add(pc.if_else(pc.is_nan(values), None, values), 0.0)
        place = batch.schema.names.index("keep")
        yield batch.set_column(place, "keep", values)


def _numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Return texts as numbers, empty ones as nulls; None if one is no such number."""
    try:
        return pc.if_else(pc.equal(texts, ""), None, texts).cast(kind)
    except pa.ArrowInvalid:
        return None


def _converted(texts: pa.Array) -> pa.Array:
    return pa.array([None if text is None else number_of(text) for text in texts.to_pylist()], pa.float64())


def _usable(numbers: pa.Array) -> int:
    values = numbers.to_numpy(zero_copy_only=False).astype(np.float64)
    return int((~np.isnan(values)).sum())


def members(copies: DataFrame, edges: DataFrame) -> DataFrame:
    """Return the documents in company: row, node (the row that stands for all equals)."""
    nodes = copies.selectExpr("rep as row")
    for end in ("left", "right"):
        nodes = nodes.union(edges.selectExpr(f"{end} as row"))
    return copies.selectExpr("row", "rep as node").union(nodes.distinct().selectExpr("row", "row as node"))


def by_value(keep: str) -> bool:
    """Return whether a keep order goes by a column."""
    return keep not in KEEP_ORDERS or goes_by_time(keep)


def company(
    found: DataFrame, count: int, features: DataFrame, order: Sequence[str], keep: str, what: str = ""
) -> DataFrame:
    """Return documents with their places: row, node, first, place, ``features.TEXT``, and id where there are ids.

    Parameters
    ----------
    found : DataFrame
        ``members``, of which there are ``count``.
    features : DataFrame
        ``features.COLUMNS``, the columns of ``order``, and what ``keep`` goes by as ``keep``.
    order : sequence of str
        The columns that say which document is earlier; empty where their rows do.
    keep : str
        ``Recipe.keep``.
    what : str
        What the column ``keep`` holds, from ``keepvalues.comparable``.

    Returns
    -------
    DataFrame
        first is a whole number that is smaller for an earlier document, and place one for a document that is preferred.
    """
    from pyspark.sql import functions as F

    valued = by_value(keep)
    names = [*(["id"] if "id" in features.columns else []), *order, *(["keep"] if valued else [])]
    joined = with_documents(features.select("row", *TEXT, *names), found, count)
    if valued:
        joined = converted(joined, what)
    ids = ["id"] if "id" in names else []
    if order:
        joined = joined.orderBy(*order, "row")
        joined = joined.withColumn("first", F.monotonically_increasing_id())
    else:
        joined = joined.withColumn("first", F.col("row"))
    if keep == "first":
        joined = joined.withColumn("place", F.col("first"))
    else:
        if valued:
            falling = keep != "oldest" and not keep.endswith(":lowest")
            value = F.desc_nulls_last("keep") if falling else F.asc_nulls_last("keep")
        else:
            value = F.desc("text_bytes") if keep == "longest" else F.asc("text_bytes")
        joined = joined.orderBy(value, "first").withColumn("place", F.monotonically_increasing_id())
    return joined.select("row", "node", "first", "place", *TEXT, *ids)
