"""What a run on Spark found: frames of pairs and verdicts by row, and a summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What was found among documents.

    Attributes
    ----------
    features : DataFrame
        What is known of each document: ``features.COLUMNS`` and the columns that were carried.
    repeated : DataFrame
        row: documents that were set aside because an earlier one has their id.
    company : DataFrame
        row, node, first, place, text_bytes (and id): documents that match or equal another one.
    edges : DataFrame
        left, right, similarity: the pairs of nodes that match; where they are too many, those that are told.
    verdicts : DataFrame
        row, keeper, similarity, family of the documents in company: a keeper is its own, with similarity 1. All others
        stay, and have no family.
    summary : dict
        Counts, ready for JSON.
    """

    features: DataFrame
    repeated: DataFrame
    company: DataFrame
    edges: DataFrame
    verdicts: DataFrame
    summary: dict[str, Any]

    def dropped(self) -> DataFrame:
        """Return row, keeper, similarity, family of the documents that go."""
        return self.verdicts.where("keeper <> row")

    def pairs(self) -> DataFrame:
        """Return all pairs that match: left, right (rows, the earlier document first), similarity.

        A group of m equal documents has m (m - 1) / 2 pairs, which are made only when they are asked for.
        """
        from pyspark.sql import functions as F

        sides = [
            self.company.select(*(F.col(name).alias(f"{name}_{side}") for name in ("row", "node", "first")))
            for side in ("l", "r")
        ]
        equal = sides[0].join(sides[1], (F.col("node_l") == F.col("node_r")) & (F.col("first_l") < F.col("first_r")))
        equal = equal.select("row_l", "row_r", F.lit(1.0).alias("similarity"))
        across = self.edges.join(sides[0], F.col("left") == F.col("node_l")).join(
            sides[1], F.col("right") == F.col("node_r")
        )
        earlier = F.col("first_l") < F.col("first_r")
        ends = F.when(earlier, F.col("row_l")).otherwise(F.col("row_r"))
        others = F.when(earlier, F.col("row_r")).otherwise(F.col("row_l"))
        across = across.select(ends.alias("row_l"), others.alias("row_r"), "similarity")
        return equal.union(across).toDF("left", "right", "similarity")
