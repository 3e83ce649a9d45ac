"""Documents in company: those that match another one, or equal it, with their places in the orders.

All others stay and need no more thought, so what follows is about these alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from neardup.ordering import goes_by_time
from neardup.recipe import KEEP_ORDERS
from neardup.spark.features import TEXT
from neardup.spark.keepvalues import converted
from neardup.spark.sets import joined as with_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
    joined = with_rows(features.select("row", *TEXT, *names), found, count)
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
