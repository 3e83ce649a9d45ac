"""Recipes that are compared, run one after the other in one session; the documents are read once."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from neardup.documents import Corpus
from neardup.pairs import PairArrays, Pairs
from neardup.recipe import Recipe
from neardup.spark.finding import Settings
from neardup.spark.inputs import Read, read
from neardup.spark.running import Engine, answer, fingerprint_of, located, started
from neardup.spark.stages import Stages, check_folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from neardup.reading import Report

#: The folder of the documents, beside those of the recipes.
_DOCUMENTS = "documents"


class Started(NamedTuple):
    """A session in which the documents were read."""

    spark: SparkSession
    documents: Read
    wall_s: float
    worker_s: float


class Compared:
    """Finds the pairs of recipes on Spark; the session starts with the first of them, and ends with the block.

    Parameters
    ----------
    corpus : Corpus
        It stays open.
    engine : Engine
        Where; below its folder for stages each recipe has one of its own.
    progress : callable, optional
        Told (stage, done, total) from time to time.
    records : bool
        Whether the bytes of what is set aside are wanted.
    """

    def __init__(
        self, corpus: Corpus, engine: Engine, *, progress: Report | None = None, records: bool = False
    ) -> None:
        self._corpus, self._engine, self._progress, self._records = corpus, engine, progress, records
        self._stack = ExitStack()
        self._started: Started | None = None

    def __call__(self, name: str, recipe: Recipe) -> tuple[Iterator[PairArrays], float, float]:
        """Return all pairs of raw rows, and the seconds that it took: by the clock, and of all workers.

        Raises
        ------
        NeardupError
            In one sentence.
        """
        if self._started is None:
            self._started = self._begun()
        began, corpus = time.perf_counter(), self._corpus
        spark, documents, wall, work = self._started
        # Of what the recipe before set aside, nothing counts for this one.
        corpus.read_elsewhere(documents.tallies)
        with self._stages(spark, _folder_of(name, recipe), recipe) as stages:
            found = answer(spark, corpus, recipe, stages, documents, Settings(pairs_per_document=None))
            work += _work(stages)
        return _by_row(found.pairs), wall + time.perf_counter() - began, work

    def _begun(self) -> Started:
        if (folder := self._engine.stages) is not None:
            mark = fingerprint_of(self._corpus, None)
            check_folder(f"{folder}/{_DOCUMENTS}", mark, resume=self._engine.resume)
        spark = self._stack.enter_context(started(self._engine, self._corpus))
        began = time.perf_counter()
        stages = self._stack.enter_context(self._stages(spark, _DOCUMENTS, None))
        documents = read(spark, self._corpus, stages, records=self._records)
        return Started(spark, documents, time.perf_counter() - began, _work(stages))

    def _stages(self, spark: SparkSession, name: str, recipe: Recipe | None) -> Stages:
        given = self._engine
        folder = None if given.stages is None else f"{located(given.stages)}/{name}"
        return Stages(spark, folder, fingerprint_of(self._corpus, recipe), resume=given.resume, progress=self._progress)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)


def _folder_of(name: str, recipe: Recipe) -> str:
    """Return where the stages of a recipe go: names may hold anything, and two recipes may have one."""
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', name)[:40]}-{recipe.fingerprint[:8]}"


def _work(stages: Stages) -> float:
    return float(sum(stage.get("worker_s", 0.0) for stage in stages.report))


def _by_row(pairs: Pairs) -> Iterator[PairArrays]:
    rows = pairs.names.rows
    for part in pairs.arrays():
        yield PairArrays(rows[part.left], rows[part.right], part.similarity)
