"""Who stays: the keepers of ``neardup.keep.keepers``, where the pairs fit the driver, and in rounds where they do not.

A document goes as soon as an earlier one that it matches stays, and it stays when all earlier ones that it matches are
gone. So in each round, those that no undecided earlier one matches stay, and whom they match go. Few rounds decide
nearly all; when what is left is small, the driver goes through it in order.
"""

from __future__ import annotations

from functools import partial, reduce
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.keep.keepers import families, graph, keepers, standing
from neardup.spark.features import TEXT
from neardup.spark.search import Listed, Search

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.spark.search import Settings
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


class Verdicts(NamedTuple):
    """The verdicts on documents in company.

    Attributes
    ----------
    frame : DataFrame
        row, keeper, similarity, family.
    edges : DataFrame
        The pairs that are told: left, right, similarity.
    counts : dict
        Those of a summary.
    """

    frame: DataFrame
    edges: DataFrame
    counts: dict[str, int]


def verdicts_of(stages: Stages, found: Graph, settings: Settings, *, all_pairs: bool = True) -> Verdicts:
    """Return the verdicts on documents in company.

    Parameters
    ----------
    stages : Stages
        Where verdicts, and the rounds on the way to them, are written.
    found : Graph
        The documents, and the pairs that match.
    settings : Settings
        It says how much the driver does.
    all_pairs : bool
        Whether all pairs are told, or those of dropped documents with kept ones alone.
    """
    spark = found.company.sparkSession
    if max(found.pairs, found.documents) <= settings.driver_pairs:
        verdicts, known = collected(found, all_pairs=all_pairs)
        edges = found.edges
        if known.edges is not None:
            told_edges = known.edges
            edges = stages.run("told-pairs", lambda: spark.createDataFrame(told_edges))
        return Verdicts(stages.run("verdicts", lambda: spark.createDataFrame(verdicts)), edges, told(known, verdicts))
    who = decided(stages, spark, found, settings.driver_pairs)
    if not all_pairs:
        edges = stages.run("told-pairs", lambda: told_where_many(found, who.nodes))
        found = found._replace(edges=edges)

    def make() -> DataFrame:
        return who.kept.join(numbered(stages, found), "row").select("row", "keeper", "similarity", "family")

    frame = stages.run("verdicts", make)
    return Verdicts(frame, found.edges, _counted(found, frame))


def _counted(found: Graph, verdicts: DataFrame) -> dict[str, int]:
    """Return what ``told`` does, counted in the workers."""
    from pyspark.sql import functions as F

    sizes = found.company.groupBy("node").count()
    ends = [sizes.select(F.col("node").alias(f"node_{s}"), F.col("count").alias(f"count_{s}")) for s in ("l", "r")]
    across = found.edges.join(ends[0], F.col("left") == F.col("node_l"))
    across = across.join(ends[1], F.col("right") == F.col("node_r"))
    pairs = across.agg(F.sum(F.col("count_l") * F.col("count_r"))).first()[0]
    equal, equals = sizes.agg(F.sum(F.expr("count * (count - 1) div 2")), F.sum(F.expr("count - 1"))).first()
    texts = found.company.groupBy("node", *TEXT).count().agg(F.sum(F.col("count") - 1)).first()[0]
    gone = verdicts.where("keeper <> row").join(found.company.select("row", "text_bytes"), "row")
    lost = gone.agg(F.count("*"), F.sum("text_bytes")).first()
    grouped = verdicts.groupBy("family").count().agg(F.count("*"), F.max("count")).first()
    values: dict[str, Any] = {
        "dropped": lost[0],
        "exact_copies": texts,
        "equal_content": equals,
        "families": grouped[0],
        "largest_family": grouped[1],
        "pairs": (pairs or 0) + (equal or 0),
        "bytes_saved": lost[1],
    }
    return {name: int(value or 0) for name, value in values.items()}


#: As soon as no more sets than this are left, all their pairs are listed.
_FEW_SETS = 1000


class KeptFirst:
    """Finds the pairs of sets that go with sets that stay.

    Parameters
    ----------
    search : Search
        Lists and verifies candidates.
    stages : Stages
        Where what is found on the way is written.
    distinct : DataFrame
        All sets: row, features.
    ranked : DataFrame
        row, place: the order in which sets are preferred.
    most : int
        So many pairs may be listed at a time.
    """

    def __init__(self, search: Search, stages: Stages, distinct: DataFrame, ranked: DataFrame, most: int) -> None:
        self._search, self._stages, self._distinct, self._most = search, stages, distinct, most
        self._ranked = ranked
        self._number = 0

    def pairs(self, listed: Listed, count: int) -> DataFrame:
        """Return all pairs of a set that stays with one that goes, as ``verifying.EDGES``.

        Parameters
        ----------
        listed : Listed
            The candidates of all sets, which are too many.
        count : int
            How many sets there are.
        """
        kept = self._split(self._ranked, count, listed.pairs)
        stays = self._stages.run("kept", lambda: reduce(lambda one, other: one.union(other), kept))
        gone = self._ranked.select("row").join(stays, "row", "left_anti")
        return self._search.verified(self._beside("kept-", stays, gone))

    def _settled(self, some: DataFrame) -> list[DataFrame]:
        """Return those of some sets (row, place) that stay, where no kept set matches one of them."""
        count = some.count()
        if not count:
            return []
        name = self._next()
        listed = self._search.listed(name, self._with_features(some))
        if listed.pairs > self._most and count > _FEW_SETS:
            return self._split(some, count, listed.pairs)
        matched = self._search.verified(listed).select("left", "right").toArrow()
        return [self._stages.run(f"{name}kept", lambda: self._kept(some, matched))]

    def _split(self, some: DataFrame, count: int, pairs: int) -> list[DataFrame]:
        """Return those that stay of sets that have too many pairs: first of the first ones, then of the rest."""
        name = self._next()
        share = min(max(sqrt(self._most / pairs) / 2, _FEW_SETS / count), 0.5)
        first = self._stages.run(f"{name}first", lambda: self._first(some, share))
        kept = self._settled(first)
        rest = some.join(first.select("row"), "row", "left_anti")
        stays = reduce(lambda one, other: one.union(other), kept)
        met = self._search.verified(self._beside(name, stays, rest))
        hit = met.selectExpr("left as row").union(met.selectExpr("right as row"))
        left = self._stages.run(f"{name}left", lambda: rest.join(hit, "row", "left_anti"))
        return [*kept, *self._settled(left)]

    def _first(self, some: DataFrame, share: float) -> DataFrame:
        """Return about a share of some sets, all of which come before the others."""
        [cut] = some.approxQuantile("place", [share], share / 4)
        return some.where(f"place <= {cut:.0f}")

    def _kept(self, some: DataFrame, matched: pa.Table) -> DataFrame:
        """Return those of some sets that stay, when these pairs of them match."""
        rows = np.unique(np.concatenate([matched[side].to_numpy() for side in ("left", "right")]))
        spark = some.sparkSession
        known = some.join(spark.createDataFrame(pa.table({"row": rows}), "row bigint"), "row").toArrow()
        known = known.sort_by("row")
        left, right = (np.searchsorted(rows, matched[side].to_numpy()) for side in ("left", "right"))
        own, order = np.arange(len(rows)), np.argsort(known["place"].to_numpy())
        gone = rows[keepers(own, graph(len(rows), left, right, np.ones(len(matched))), order).dropped]
        return some.select("row").join(spark.createDataFrame(pa.table({"row": gone}), "row bigint"), "row", "left_anti")

    def _beside(self, name: str, stays: DataFrame, others: DataFrame) -> Listed:
        """Return the candidates of sets that stay and others, one of each."""
        both = stays.selectExpr("row", "false as second").union(others.selectExpr("row", "true as second"))
        return self._search.listed(name, self._with_features(both), sided=True)

    def _with_features(self, some: DataFrame) -> DataFrame:
        columns = ["row", "features", *(["second"] if "second" in some.columns else [])]
        return self._distinct.join(some, "row").select(*columns)

    def _next(self) -> str:
        """Return with what the names of further stages begin."""
        self._number += 1
        return f"part-{self._number}-"
