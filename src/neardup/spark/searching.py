"""The search: sets to entries, entries to candidates, candidates to pairs that match."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.measures import rule
from neardup.recipe import Recipe
from neardup.search.lsh import bands_of
from neardup.spark import candidates, counts, items, prefixes, sets, verifying
from neardup.spark.packing import BLOBS, CELLS, PAIRS, TOLD, exchange, labels
from neardup.spark.settings import Settings
from neardup.spark.sharing import Shared
from neardup.spark.tables import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

#: The bytes of an entry.
_ENTRY_BYTES = sum(np.dtype(kind).itemsize for kind in prefixes.ENTRY)
#: The bits of a sketch.
_FEWEST_BITS, _MOST_BITS = 512, 8192


class Search:
    """Finds the pairs of distinct sets that match.

    Parameters
    ----------
    recipe : Recipe
        Its measure, threshold and search.
    stages : Stages
        Where entries, candidates and pairs are written.
    settings : Settings
        How the work is cut.
    sets, features : int
        How many sets there are, and how many features they have together.

    Attributes
    ----------
    statistics : dict
        Counts of what each step did, as in memory.
    """

    def __init__(self, recipe: Recipe, stages: Stages, settings: Settings, sets: int, features: int) -> None:
        self._recipe, self._stages, self._settings = recipe, stages, settings
        self._features, self._mean = features, 8 * features // max(sets, 1)
        self._homes = settings.parts(8 * features, stages.workers)
        # The rare-first prefixes of similar sets are a fifth of their features at most, and few of these are shared.
        self._meeting = settings.parts(4 * features, stages.workers)
        if recipe.search == "lsh":
            self._meeting = settings.parts(_ENTRY_BYTES * bands_of(recipe).bands * sets, stages.workers)
        self._shared: Shared[Table] | None = None
        self.statistics: dict[str, Any] = {}

    def pairs(self, distinct: DataFrame) -> DataFrame:
        """Return the pairs that match, as ``verifying.EDGES``, of frames with the columns row and features."""
        return self._verified(distinct, self._candidates(distinct))

    def _candidates(self, distinct: DataFrame) -> DataFrame:
        """Return blobs of candidates for their homes."""
        recipe, meeting = self._recipe, labels(self._meeting)
        if recipe.search == "lsh":
            bands = bands_of(recipe)
            told = {"bands": bands.bands, "rows": bands.rows}
            self.statistics |= told | {"jaccard_at_threshold": bands.jaccard, "recall_at_threshold": bands.recall}
        wanted = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
        plan = candidates.Plan(wanted, self._settings.block, labels(self._homes), meeting)

        def make() -> DataFrame:
            sent = exchange(distinct.mapInArrow(self._entries(distinct, plan), BLOBS), self._meeting)
            return sent.mapInArrow(partial(candidates.meet_batches, plan), BLOBS)

        met = self._stages.run("candidates", make)
        if self._shared is not None:
            self._shared.forget()
        self._told(met)
        # Where there is nothing at all, Spark asks no worker, and nobody tells of cells.
        if cells := self.statistics.setdefault("cells", 0):
            cut = exchange(met.where(f"kind = {CELLS}"), self._meeting)
            more = self._stages.run("cells", lambda: cut.mapInArrow(partial(candidates.cell_batches, plan), BLOBS))
            self._told(more)
            self.statistics["cells"] = cells
            met = met.union(more)
        return met.where(f"kind = {PAIRS}")

    def _entries(
        self, distinct: DataFrame, plan: candidates.Plan
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what makes entries of sets in the workers."""
        if self._recipe.search == "lsh":
            return partial(prefixes.band_batches, bands_of(self._recipe), self._recipe.seed, plan.cells)
        table = counts.counts_of(self._stages, distinct, self._features, self._settings.count_bits)
        self._shared = Shared(distinct.sparkSession, table)
        return partial(prefixes.prefix_batches, plan.rule, len(table).bit_length() - 1, self._shared, plan.cells)

    def _told(self, blobs: DataFrame) -> None:
        """Add up what the workers counted."""
        for row in blobs.where(f"kind = {TOLD}").select("data").collect():
            for name, value in json.loads(bytes(row["data"])).items():
                before = self.statistics.get(name, 0)
                self.statistics[name] = max(before, value) if name == "longest_list" else before + value

    def _verified(self, distinct: DataFrame, listed: DataFrame) -> DataFrame:
        """Return the candidates that match."""
        homes = self._homes
        routes, count = self._routes("routes", listed)
        self.statistics["in_candidates"] = count
        if count * self._mean > self._settings.send_bytes:
            # Of the bits of a set's sketch that its features could set, a fourth are: few fall on the same.
            bits = min(max(1 << (self._mean // 2).bit_length(), _FEWEST_BITS), _MOST_BITS)
            sketches = sets.joined(distinct, routes, count).mapInArrow(partial(items.sketch_batches, bits), BLOBS)
            sent = exchange(listed.unionByName(sketches), homes)
            homes = self._settings.parts(count * self._mean, self._stages.workers)
            passing = partial(verifying.filter_batches, partial(verifying.may_match, self._recipe), labels(homes))
            listed = self._stages.run("sketched", lambda: sent.mapInArrow(passing, BLOBS))
            routes, count = self._routes("sketched-routes", listed)
        self.statistics["features_sent"] = count
        features = sets.joined(distinct, routes, count).mapInArrow(items.feature_batches, BLOBS)
        check = partial(verifying.check_sets, self._recipe)
        found = self._stages.run("pairs", lambda: verifying.verified(listed, features, check, homes))
        matching, looked_at = verifying.counted(found)
        self.statistics |= {"verified": looked_at, "pairs": matching}
        return found.where("left >= 0")

    def _routes(self, name: str, listed: DataFrame) -> tuple[DataFrame, int]:
        """Return which documents the homes of candidates need, and how many that are."""
        routes = self._stages.run(name, lambda: listed.mapInArrow(verifying.route_batches, verifying.ROUTES).distinct())
        return routes, routes.count()
