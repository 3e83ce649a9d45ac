"""Who stays: the keepers of ``neardup.keep``, where the pairs fit the driver, and in rounds where they do not.

A document goes as soon as an earlier one that it matches stays, and it stays when all earlier ones that it matches are
gone. So in each round, those that no undecided earlier one matches stay, and whom they match go. Few rounds decide
nearly all; when what is left is small, the driver goes through it in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.keep import families, graph, keepers, standing
from neardup.spark.features import TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.stages import Stages

Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Graph(NamedTuple):
    """Documents in company and the pairs that connect them.

    Attributes
    ----------
    company : DataFrame
        ``company.company``.
    edges : DataFrame
        left, right, similarity: pairs of nodes.
    documents, pairs : int
        How many there are.
    """

    company: DataFrame
    edges: DataFrame
    documents: int
    pairs: int


class Known(NamedTuple):
    """A graph that the driver has room for: its documents in order, and the pairs of those that stand for equals.

    Attributes
    ----------
    documents : Table
        row and ``features.TEXT`` of the documents, in order.
    own : int64[n]
        For each document the first one that is equal.
    left, right : int64[k]
        Pairs, left < right, sorted.
    edges : Table or None
        Where there were too many pairs, those that are told: left, right, similarity, as in ``Graph.edges``.
    """

    documents: pa.Table
    own: Integers
    left: Integers
    right: Integers
    edges: pa.Table | None


def collected(found: Graph, *, all_pairs: bool) -> tuple[pa.Table, Known]:
    """Return the verdicts of a graph that the driver has room for, and the graph.

    Where not all pairs are told, only those of dropped documents with kept ones count from there on, as in memory,
    where the others are not looked for: of a dropped document without equals, only those with kept ones before it.
    """
    columns = ["row", "node", "place", *TEXT, "first"]
    known = found.company.select(*columns).toArrow().sort_by("first").combine_chunks()
    row, node, place = (known[name].to_numpy() for name in columns[:3])
    # Of equal documents the first speaks for all, whichever the search took.
    nodes, of_node = np.unique(node, return_inverse=True)
    representative = np.full(len(nodes), len(row), np.int64)
    np.minimum.at(representative, of_node, np.arange(len(row)))
    pairs = found.edges.select("left", "right", "similarity").toArrow()
    one, other = (representative[np.searchsorted(nodes, pairs[name].to_numpy())] for name in ("left", "right"))
    left, right = np.minimum(one, other), np.maximum(one, other)
    sequence = np.lexsort((right, left))
    left, right, similarity = left[sequence], right[sequence], pairs["similarity"].to_numpy()[sequence]
    own = representative[of_node]
    order = np.argsort(place)
    kept = keepers(own, graph(len(row), left, right, similarity), order)
    edges = None
    if not all_pairs:
        told_ = _told_where_many(own, order, ~kept.dropped, left, right)
        left, right, similarity = left[told_], right[told_], similarity[told_]
        edges = pairs.take(pa.array(sequence[told_]))
    family = families(own, left, right, similarity).family
    table = pa.table({"row": row, "keeper": row[kept.keeper], "similarity": kept.similarity, "family": family})
    return table, Known(known, own, left, right, edges)


def _told_where_many(own: Integers, order: Integers, stays: Bools, left: Integers, right: Integers) -> Bools:
    """Return which pairs are told where not all are: bool[k]."""
    ranked = standing(own, order)
    at = np.full(len(own), -1, np.int64)
    at[ranked.nodes] = ranked.place[ranked.top[ranked.nodes]]
    kept = np.zeros(len(own), np.bool_)
    kept[ranked.nodes] = stays[ranked.top[ranked.nodes]]
    several = np.bincount(own, minlength=len(own)) > 1
    first = at[left] < at[right]
    early, late = np.where(first, left, right), np.where(first, right, left)
    told_: Bools = (kept[early] & ~kept[late]) | (kept[late] & ~kept[early] & several[early])
    return told_


def told(known: Known, verdicts: pa.Table) -> dict[str, int]:
    """Return the counts of a summary."""
    goes = verdicts["keeper"].to_numpy() != verdicts["row"].to_numpy()
    copies = np.bincount(known.own, minlength=len(known.own)).astype(np.int64)
    texts = np.column_stack([known.own, *(known.documents[name].to_numpy() for name in TEXT)])
    family = np.bincount(verdicts["family"].to_numpy())
    return {
        "dropped": int(goes.sum()),
        "exact_copies": len(texts) - len(np.unique(texts, axis=0)),
        "equal_content": len(known.own) - len(np.unique(known.own)),
        "families": max(len(family) - 1, 0),
        "largest_family": int(family.max(initial=0)),
        "pairs": int((copies * (copies - 1) // 2).sum() + (copies[known.left] * copies[known.right]).sum()),
        "bytes_saved": int(known.documents["text_bytes"].to_numpy()[goes].sum()),
    }


class Decided(NamedTuple):
    """What rounds decided.

    Attributes
    ----------
    kept : DataFrame
        row, keeper, similarity of a graph's documents.
    nodes : DataFrame
        node, top (its first document in keep order), at (the place of that), goes.
    """

    kept: DataFrame
    nodes: DataFrame


def decided(stages: Stages, spark: SparkSession, found: Graph, few: int) -> Decided:
    """Return who stays of a graph's documents, in rounds until ``few`` pairs are left."""
    from pyspark.sql import functions as F

    company = found.company
    tops = company.groupBy("node").agg(F.min_by("row", "place").alias("top"), F.min("place").alias("at"))
    ends = [tops.select(*(F.col(name).alias(f"{name}_{side}") for name in tops.columns)) for side in ("l", "r")]
    joined = found.edges.join(ends[0], F.col("left") == F.col("node_l")).join(
        ends[1], F.col("right") == F.col("node_r")
    )
    ordered = stages.run(
        "keep-edges",
        lambda: joined.select(
            F.least("at_l", "at_r").alias("early"), F.greatest("at_l", "at_r").alias("late"), "similarity"
        ),
    )
    gone = _gone(stages, spark, ordered.select("early", "late"), found.pairs, few)
    flagged = tops.join(gone, "at", "left").select("node", "top", "at", F.col("goes").isNotNull().alias("goes"))
    nodes = stages.run("keep-nodes", lambda: flagged)
    both = ordered.union(ordered.select("late", "early", "similarity"))
    stays = nodes.where("not goes").select(F.col("at").alias("late"), F.col("top").alias("kept"))
    asks = nodes.where("goes").select(F.col("at").alias("early"), "node")
    choices = both.join(stays, "late").join(asks, "early").select("node", "late", "kept", "similarity")
    best = (
        company.select("row", "node", "place")
        .join(choices, "node")
        .where("late < place")
        .groupBy("row")
        .agg(F.max_by(F.struct("kept", "similarity"), F.struct("similarity", -F.col("late"))).alias("best"))
        .select("row", F.col("best.kept").alias("keeper"), F.col("best.similarity").alias("similarity"))
    )
    others = company.join(nodes.where("not goes"), "node").select(
        "row", F.col("top").alias("keeper"), F.lit(1.0).alias("similarity")
    )
    return Decided(best.union(others), nodes)


def told_where_many(found: Graph, nodes: DataFrame) -> DataFrame:
    """Return the pairs that are told where not all are, as in ``collected``; nodes: from ``decided``."""
    from pyspark.sql import functions as F

    several = found.company.groupBy("node").agg((F.count("*") > 1).alias("several"))
    known = nodes.select("node", "at", "goes").join(several, "node")
    ends = [known.select(*(F.col(name).alias(f"{name}_{side}") for name in known.columns)) for side in ("l", "r")]
    joined = found.edges.join(ends[0], F.col("left") == F.col("node_l")).join(
        ends[1], F.col("right") == F.col("node_r")
    )
    # One of the two goes; it is the later one, unless it stands for several documents.
    of_left = F.col("goes_l") & ~F.col("goes_r") & ((F.col("at_r") < F.col("at_l")) | F.col("several_l"))
    of_right = F.col("goes_r") & ~F.col("goes_l") & ((F.col("at_l") < F.col("at_r")) | F.col("several_r"))
    return joined.where(of_left | of_right).select("left", "right", "similarity")


def _gone(stages: Stages, spark: SparkSession, edges: DataFrame, pairs: int, few: int) -> DataFrame:
    """Return the places of nodes that go: at, goes."""
    gone = spark.createDataFrame([], "at bigint, goes boolean")
    number = 0
    while pairs > few:
        number += 1
        fresh, edges = _round(stages, edges, number)
        gone = gone.union(fresh.selectExpr("at", "true as goes"))
        pairs = edges.count()
    if pairs:
        rest = edges.toArrow()
        early, late_ = rest["early"].to_numpy(), rest["late"].to_numpy()
        nodes, places = np.unique(np.concatenate([early, late_]), return_inverse=True)
        count = len(nodes)
        ends = graph(count, places[: len(early)], places[len(early) :], np.ones(len(early)))
        dropped = keepers(np.arange(count), ends, np.arange(count)).dropped
        table = pa.table({"at": nodes[dropped], "goes": np.ones(int(dropped.sum()), np.bool_)})
        gone = gone.union(spark.createDataFrame(table, "at bigint, goes boolean"))
    return gone


def _round(stages: Stages, edges: DataFrame, number: int) -> tuple[DataFrame, DataFrame]:
    """Return whom those that nobody can drop any more drop, and the pairs of which both are undecided then."""
    late = edges.select("late").distinct()
    first = edges.join(late.withColumnRenamed("late", "early"), "early", "left_anti")
    fresh = stages.run(f"keep-gone-{number}", lambda: first.selectExpr("late as at").distinct())
    left = edges.join(fresh.withColumnRenamed("at", "early"), "early", "left_anti")
    left = left.join(fresh.withColumnRenamed("at", "late"), "late", "left_anti").select("early", "late")
    return fresh, stages.run(f"keep-edges-{number}", lambda: left)
