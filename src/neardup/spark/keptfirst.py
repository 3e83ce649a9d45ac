"""Who stays without all pairs: sets meet kept ones first, and only those that no kept one matches meet each other.

Very many texts that are slightly different from each other have a square of pairs, and none among those that go is
needed. So what stays is found among the first sets in keep order, few enough to list their pairs; those of the rest
that one of them matches go; and with what is left it is the same again. In the end all that stay meet all that go.
The answer is that of ``neardup._kernels.keeping``, which takes one set after the other.
"""

from __future__ import annotations

from functools import reduce
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from neardup.keep import graph, keepers
from neardup.spark.searching import Listed, Search

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

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
