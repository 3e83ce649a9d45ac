"""The end of a run: who stays, which families there are, and what a summary says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.spark.families import numbered
from neardup.spark.features import TEXT
from neardup.spark.keepers import Graph, collected, decided, told, told_where_many

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.settings import Settings
    from neardup.spark.stages import Stages


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
