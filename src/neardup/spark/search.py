"""How work on Spark is cut, and which recipes Spark has a search for."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.errors import RecipeError
from neardup.recipe import Recipe
from neardup.recipe.measures import rule
from neardup.search.engines import PAIRS_PER_DOCUMENT
from neardup.search.lsh import bands_of
from neardup.search.second_step import check_classifier
from neardup.spark import candidates, sets
from neardup.spark import candidates as prefixes
from neardup.spark import features as counts
from neardup.spark import verify as items
from neardup.spark import verify as verifying
from neardup.spark.features import BLOBS, CELLS, PAIRS, TOLD, Shared, Table, exchange, labels

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from neardup.spark.stages import Stages

#: Bytes of features that a worker holds at a time, so the number of parts of large collections.
_PART_BYTES = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the work is cut; none of it changes a verdict.

    Attributes
    ----------
    partitions : int or None
        Parts in which entries and features meet; None for as many as workers, more where they would not fit these.
    driver_pairs : int
        Up to so many pairs of distinct sets, the driver decides who stays; more are decided in rounds, in the workers.
        Raising it takes memory of the driver, some 100 bytes a pair.
    count_bits : int
        The table of counts has 2**count_bits bytes at most. Raising it sends fewer entries in large collections; each
        worker holds the table.
    send_bytes : int
        Where the features of all candidates are more than this, sketches of them are sent first. Raising it spares
        small collections a round.
    pairs_per_document : float or None
        As in ``neardup.dedup``: where more pairs match, only those of dropped documents with kept ones are told.
    block : int
        A list of more sets that share a key than this is cut into blocks of so many. Raising it gives fewer and larger
        pieces of work.
    """

    partitions: int | None = None
    driver_pairs: int = 2_000_000
    count_bits: int = 27
    send_bytes: int = 64 << 20
    pairs_per_document: float | None = PAIRS_PER_DOCUMENT
    block: int = 4096

    def parts(self, size: int, workers: int) -> int:
        """Return how many parts so many bytes are cut into where there are so many workers."""
        return self.partitions or max(workers, -(-size // _PART_BYTES))


def check_recipe(recipe: Recipe, classifier: Classifier | None = None) -> None:
    """Refuse a recipe that Spark has no search for, before anything is read.

    Raises
    ------
    RecipeError
        In one sentence that names the way out.
    """
    step = recipe.parsed_second_step
    what = ""
    if recipe.measure in ("hamming", "semantic"):
        what = f"measure {recipe.measure!r}"
    elif recipe.is_weighted:
        what = f"weights {recipe.weights!r}"
    elif step is not None and step.measure == "semantic":
        what = f"second_step {recipe.second_step!r}"
    if what:
        raise RecipeError(f"{what} is not searched on Spark; leave out the engine 'spark' to run it on this machine")
    if recipe.search == "lsh":
        bands_of(recipe)
    if classifier is not None or (step is not None and step.measure == "learned"):
        check_classifier(classifier, recipe, None)


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
            sketches = sets.with_documents(self._distinct, routes, count).mapInArrow(
                partial(items.sketch_batches, bits), BLOBS
            )
            sent = exchange(listed.unionByName(sketches), homes)
            homes = self._settings.parts(count * self._mean, self._stages.workers)
            passing = partial(verifying.filter_batches, partial(verifying.may_match, self._recipe), labels(homes))
            sketched = self._stages.run(f"{name}sketched", lambda: sent.mapInArrow(passing, BLOBS))
            brought = self._told(sketched).get("candidates", 0)
            listed = sketched.where(f"kind = {PAIRS}")
            routes, count = self._routes(f"{name}sketched-routes", listed)
        self.statistics["features_sent"] = count
        features = sets.with_documents(self._distinct, routes, count).mapInArrow(items.feature_batches, BLOBS)
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
