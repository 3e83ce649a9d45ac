"""Which documents take part: ids that were there before are set aside, and of equal sets one stands for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

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


def joined(frame: DataFrame, rows: DataFrame, count: int) -> DataFrame:
    """Return those of a frame that are among some rows, of which there are so many, with the columns of both."""
    from pyspark.sql import functions as F

    return frame.join(F.broadcast(rows) if count <= _FEW_ROWS else rows, "row")
