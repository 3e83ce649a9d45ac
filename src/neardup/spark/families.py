"""Families in rounds: connected components of a graph that does not fit the driver.

Alternately each node's larger neighbours, and its smaller ones with itself, are tied to the smallest node around
(Kiveris, Lattanzi, Mirrokni, Rastogi & Vassilvitskii, SoCC 2014); the pairs never become more, and when nothing moves
any more each node is tied to the smallest one of its family.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.keepers import Graph
    from neardup.spark.stages import Stages


def numbered(stages: Stages, found: Graph) -> DataFrame:
    """Return the family of each document of a graph: row, family, from 1 in the order of their first documents."""
    from pyspark.sql import functions as F

    firsts = found.company.groupBy("node").agg(F.min("first").alias("first"))
    ends = [firsts.select(*(F.col(name).alias(f"{name}_{side}") for name in firsts.columns)) for side in ("l", "r")]
    joined = found.edges.join(ends[0], F.col("left") == F.col("node_l")).join(
        ends[1], F.col("right") == F.col("node_r")
    )
    ties = stages.run(
        "family-0",
        lambda: joined.select(F.greatest("first_l", "first_r").alias("u"), F.least("first_l", "first_r").alias("v")),
    )
    number, known = 0, None
    while (state := _state(ties)) != known:
        known, number = state, number + 1
        ties = stages.run(f"family-{number}", partial(_tied, ties))
    roots = firsts.join(ties.select(F.col("u").alias("first"), F.col("v").alias("tied")), "first", "left")
    roots = stages.run("family-roots", lambda: roots.select("node", F.coalesce("tied", "first").alias("root")))
    order = stages.run(
        "family-order",
        lambda: roots.select("root").distinct().orderBy("root").withColumn("at", F.monotonically_increasing_id()),
    )
    # The upper bits are the partition, so how many came before it makes the numbers dense.
    spans = order.groupBy(F.shiftright("at", 33).alias("part")).count().orderBy("part").collect()
    before, total = [], 0
    for span in spans:
        before.append((span["part"], total))
        total += span["count"]
    offsets = order.sparkSession.createDataFrame(before or [(0, 0)], "part bigint, before bigint")
    inside = F.col("at").bitwiseAND(F.lit((1 << 33) - 1))
    dense = order.withColumn("part", F.shiftright("at", 33)).join(F.broadcast(offsets), "part")
    dense = dense.select("root", (inside + F.col("before") + 1).alias("family"))
    return found.company.select("row", "node").join(roots, "node").join(dense, "root").select("row", "family")


def _state(ties: DataFrame) -> tuple[int, int]:
    """Return what changes as long as ties do."""
    from pyspark.sql import functions as F

    found = ties.agg(
        F.count("*").alias("count"), F.sum(F.xxhash64("u", "v").cast("decimal(38,0)")).alias("sum")
    ).first()
    return int(found["count"]), int(found["sum"] or 0)


def _tied(ties: DataFrame) -> DataFrame:
    """Return ties (u > v) after both halves of a round."""
    from pyspark.sql import functions as F

    both = ties.union(ties.selectExpr("v as u", "u as v"))
    smallest = both.groupBy("u").agg(F.least(F.min("v"), F.col("u")).alias("m"))
    # Larger neighbours of u, tied to the smallest around it.
    large = both.join(smallest, "u").where("v > u and v <> m").selectExpr("v as u", "m as v").distinct()
    least = large.groupBy("u").agg(F.min("v").alias("m"))
    # Smaller neighbours of u and u itself, tied to the smallest of them.
    small = large.join(least, "u").where("v <> m").selectExpr("v as u", "m as v")
    return small.union(least.selectExpr("u", "m as v")).distinct()
