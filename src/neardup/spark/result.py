"""What a run on a data frame found: frames of what stays and what goes, by the ids of the data frame."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from neardup.spark.documents import column_of
from neardup.spark.found import Found

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.recipe import Recipe
    from neardup.spark.documents import Documents
    from neardup.spark.stages import Stages


#: Names that no column of a data frame is likely to have.
_ID, _OTHER, _TIE, _PLACE = "neardup id", "neardup other id", "neardup tie", "neardup place"


def _without(frame: DataFrame, own: Any, ids: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    gone = ids.select(F.col("id").alias(_ID))
    return frame.join(gone, own == gone[_ID], "left_anti")


class SparkResult:
    """What a run on a data frame found. Its frames read the run's stages, so they are good until ``close``.

    Attributes
    ----------
    recipe : Recipe
        What was done.
    summary : dict
        Counts, stages, recipe and version, ready for JSON.
    """

    def __init__(self, documents: Documents, found: Found, recipe: Recipe, stages: Stages) -> None:
        self._documents, self._found, self._stages = documents, found, stages
        self.recipe, self.summary = recipe, found.summary

    @cached_property
    def _names(self) -> DataFrame:
        return self._found.company.select("row", "id")

    @cached_property
    def kept(self) -> DataFrame:
        """The documents that stay, with all columns; those that were set aside are not among them."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        known, found = self._documents, self._found
        own = column_of(known.source, known.id)
        gone = found.dropped().join(self._names, "row").select("id")
        if not found.summary["set_aside"]:
            return _without(known.source, own, gone).where(own.isNotNull())
        # Ids of which some rows are documents and others are not: each row is known by its id and a hash of its text.
        features, tie = found.features, found.features.columns[-1]
        aside = (
            features.where("size < 0 and id is not null")
            .select("id")
            .union(features.join(found.repeated, "row", "left_semi").select("id"))
        )
        aside = aside.distinct()
        others = _without(known.source, own, gone.union(aside)).where(own.isNotNull())
        good = features.where("size >= 0").join(found.repeated, "row", "left_anti").join(gone, "id", "left_anti")
        good = good.join(aside, "id", "left_semi").select(F.col("id").alias(_ID), F.col(tie).alias(_TIE))
        place = F.row_number().over(Window.partitionBy(own).orderBy(*known.by)).alias(_PLACE)
        asked = known.source.join(good, (own == good[_ID]) & (known.by[-1] == good[_TIE]), "left_semi")
        firsts = asked.select("*", place).where(F.col(_PLACE) == 1).drop(_PLACE)
        return others.union(firsts)

    @cached_property
    def duplicates(self) -> DataFrame:
        """The documents that go: dropped, keeper (ids), similarity, family."""
        named = self._named(self._found.dropped(), "row", "dropped")
        return self._named(named, "keeper", _ID).selectExpr("dropped", f"`{_ID}` as keeper", "similarity", "family")

    @cached_property
    def pairs(self) -> DataFrame:
        """All pairs at or above the threshold: left, right (ids, the earlier document first), similarity."""
        named = self._named(self._named(self._found.pairs(), "left", _ID), "right", _OTHER)
        return named.selectExpr(f"`{_ID}` as left", f"`{_OTHER}` as right", "similarity")

    def _named(self, frame: DataFrame, row: str, name: str) -> DataFrame:
        from pyspark.sql import functions as F

        ids = self._names.select(F.col("row").alias(_PLACE), F.col("id").alias(name))
        return frame.join(ids, frame[row] == ids[_PLACE]).drop(_PLACE)

    def close(self) -> None:
        """Remove the run's stages where they were temporary; no frame of this result can be read after."""
        self._stages.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<neardup result on Spark: {self.summary['kept']:,} kept, {self.summary['dropped']:,} dropped>"
