"""The end of a run: who stays, which families there are, and what a summary says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from neardup.spark.families import numbered
from neardup.spark.keepers import Graph, collected, decided, told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.settings import Settings
    from neardup.spark.stages import Stages


def verdicts_of(stages: Stages, found: Graph, settings: Settings) -> tuple[DataFrame, dict[str, int]]:
    """Return the verdicts on documents in company, and the counts of a summary.

    Parameters
    ----------
    stages : Stages
        Where verdicts, and the rounds on the way to them, are written.
    found : Graph
        The documents, and the pairs that match.
    settings : Settings
        It says how much the driver does.
    """
    spark = found.company.sparkSession
    if max(found.pairs, found.documents) <= settings.driver_pairs:
        verdicts, known = collected(spark, found)
        return stages.run("verdicts", lambda: spark.createDataFrame(verdicts)), told(known, verdicts)

    def make() -> DataFrame:
        kept = decided(stages, spark, found, settings.driver_pairs)
        family = numbered(stages, found)
        return kept.join(family, "row").select("row", "keeper", "similarity", "family")

    frame = stages.run("verdicts", make)
    return frame, _counted(found, frame)


def _counted(found: Graph, verdicts: DataFrame) -> dict[str, int]:
    """Return what ``told`` does, counted in the workers."""
    from pyspark.sql import functions as F

    sizes = found.company.groupBy("node").count()
    ends = [sizes.select(F.col("node").alias(f"node_{s}"), F.col("count").alias(f"count_{s}")) for s in ("l", "r")]
    across = found.edges.join(ends[0], F.col("left") == F.col("node_l"))
    across = across.join(ends[1], F.col("right") == F.col("node_r"))
    pairs = across.agg(F.sum(F.col("count_l") * F.col("count_r"))).first()[0]
    equal = sizes.agg(F.sum(F.expr("count * (count - 1) div 2"))).first()[0]
    texts = found.company.groupBy("node", "text_mark").count().agg(F.sum(F.col("count") - 1)).first()[0]
    gone = verdicts.where("keeper <> row").join(found.company.select("row", "text_bytes"), "row")
    lost = gone.agg(F.count("*"), F.sum("text_bytes"), F.sum(F.expr("int(similarity = 1.0)"))).first()
    grouped = verdicts.groupBy("family").count().agg(F.count("*"), F.max("count")).first()
    values: dict[str, Any] = {
        "dropped": lost[0],
        "exact_copies": texts,
        "equal_content": lost[2],
        "families": grouped[0],
        "largest_family": grouped[1],
        "pairs": (pairs or 0) + (equal or 0),
        "bytes_saved": lost[1],
    }
    return {name: int(value or 0) for name, value in values.items()}
