"""The search: sets to entries, entries to candidates, candidates to pairs that match."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Listed(NamedTuple):
    """Candidates of some sets.

    Attributes
    ----------
    name : str
        With what the names of their stages begin.
    blobs : DataFrame
        Candidates, and cells of long lists that nobody has looked at.
    plan : candidates.Plan
        By which they were listed.
    cells, pairs : int
        How many cells there are, and how many pairs at most, those in cells too.
    """

    name: str
    blobs: DataFrame
    plan: candidates.Plan
    cells: int
    pairs: int


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
    distinct : DataFrame
        All sets: row, features.
    sets, features : int
        How many sets there are, and how many features they have together.

    Attributes
    ----------
    statistics : dict
        Counts of what each step did, as in memory.
    """

    def __init__(
        self, recipe: Recipe, stages: Stages, settings: Settings, distinct: DataFrame, sets: int, features: int
    ) -> None:
        self._recipe, self._stages, self._settings, self._distinct = recipe, stages, settings, distinct
        self._features, self._mean = features, 8 * features // max(sets, 1)
        self._homes = settings.parts(8 * features, stages.workers)
        # The rare-first prefixes of similar sets are a fifth of their features at most, and few of these are shared.
        self._meeting = settings.parts(4 * features, stages.workers)
        if recipe.search == "lsh":
            self._meeting = settings.parts(_ENTRY_BYTES * bands_of(recipe).bands * sets, stages.workers)
        self._shared: Shared[Table] | None = None
        self.statistics: dict[str, Any] = {"longest_list": 0, "raw_candidates": 0, "cells": 0}
        if recipe.search == "lsh":
            bands = bands_of(recipe)
            self.statistics |= {"bands": bands.bands, "rows": bands.rows}
            self.statistics |= {"jaccard_at_threshold": bands.jaccard, "recall_at_threshold": bands.recall}

    def listed(self, name: str, some: DataFrame, *, sided: bool = False) -> Listed:
        """Return the candidates of sets: row, features, and where ``sided`` second, so that only two sides meet."""
        wanted = rule(self._recipe.measure, self._recipe.threshold, self._recipe.jaccard_floor)
        plan = candidates.Plan(wanted, self._settings.block, labels(self._homes), labels(self._meeting), sided)

        def make() -> DataFrame:
            sent = exchange(some.mapInArrow(self._entries(plan), BLOBS), self._meeting)
            return sent.mapInArrow(partial(candidates.meet_batches, plan), BLOBS)

        met = self._stages.run(f"{name}candidates", make)
        told = self._told(met)
        # Where there is nothing at all, Spark asks no worker, and nobody tells anything.
        cells, listed = told.get("cells", 0), told.get("raw_candidates", 0)
        return Listed(name, met, plan, cells, listed + told.get("pairs_in_cells", 0))

    def verified(self, listed: Listed) -> DataFrame:
        """Return the candidates that match, as ``verifying.EDGES``."""
        name, blobs = listed.name, listed.blobs
        if listed.cells:
            cut = exchange(blobs.where(f"kind = {CELLS}"), self._meeting)
            looked = partial(candidates.cell_batches, listed.plan)
            more = self._stages.run(f"{name}cells", lambda: cut.mapInArrow(looked, BLOBS))
            self._told(more)
            blobs = blobs.union(more)
        return self._verified(name, blobs.where(f"kind = {PAIRS}"))

    def forget(self) -> None:
        """Let go what the workers were sent; nothing is listed any more."""
        if self._shared is not None:
            self._shared.forget()

    def _entries(self, plan: candidates.Plan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return what makes entries of sets in the workers."""
        if self._recipe.search == "lsh":
            return partial(prefixes.band_batches, bands_of(self._recipe), self._recipe.seed, plan.cells)
        if self._shared is None:
            table = counts.counts_of(self._stages, self._distinct, self._features, self._settings.count_bits)
            self._shared = Shared(self._distinct.sparkSession, table)
        bits = len(self._shared.value).bit_length() - 1
        return partial(prefixes.prefix_batches, plan.rule, bits, self._shared, plan.cells)

    def _told(self, blobs: DataFrame) -> dict[str, int]:
        """Return the sums of what the workers counted, and add them to the statistics."""
        told: dict[str, int] = {}
        for row in blobs.where(f"kind = {TOLD}").select("data").collect():
            for name, value in json.loads(bytes(row["data"])).items():
                before = told.get(name, 0)
                told[name] = max(before, value) if name == "longest_list" else before + value
        for name, value in told.items():
            before = self.statistics.get(name, 0)
            if name == "longest_list":
                self.statistics[name] = max(before, value)
            elif name != "pairs_in_cells":
                self.statistics[name] = before + value
        return told

    def _verified(self, name: str, listed: DataFrame) -> DataFrame:
        homes, brought = self._homes, None
        routes, count = self._routes(f"{name}routes", listed)
        self.statistics["in_candidates"] = count
        if count * self._mean > self._settings.send_bytes:
            # Of the bits of a set's sketch that its features could set, a fourth are: few fall on the same.
            bits = min(max(1 << (self._mean // 2).bit_length(), _FEWEST_BITS), _MOST_BITS)
            sketches = sets.joined(self._distinct, routes, count).mapInArrow(partial(items.sketch_batches, bits), BLOBS)
            sent = exchange(listed.unionByName(sketches), homes)
            homes = self._settings.parts(count * self._mean, self._stages.workers)
            passing = partial(verifying.filter_batches, partial(verifying.may_match, self._recipe), labels(homes))
            sketched = self._stages.run(f"{name}sketched", lambda: sent.mapInArrow(passing, BLOBS))
            brought = self._told(sketched).get("candidates", 0)
            listed = sketched.where(f"kind = {PAIRS}")
            routes, count = self._routes(f"{name}sketched-routes", listed)
        self.statistics["features_sent"] = count
        features = sets.joined(self._distinct, routes, count).mapInArrow(items.feature_batches, BLOBS)
        check = partial(verifying.check_sets, self._recipe)
        found = self._stages.run(f"{name}pairs", lambda: verifying.verified(listed, features, check, homes))
        matching, looked_at = verifying.counted(found)
        self.statistics |= {"verified": looked_at, "pairs": matching}
        self.statistics["candidates"] = looked_at if brought is None else brought
        return found.where("left >= 0")

    def _routes(self, name: str, listed: DataFrame) -> tuple[DataFrame, int]:
        """Return which documents the homes of candidates need, and how many that are."""
        routes = self._stages.run(name, lambda: listed.mapInArrow(verifying.route_batches, verifying.ROUTES).distinct())
        return routes, routes.count()
