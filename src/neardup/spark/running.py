"""A run on files, from the session to the answer."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from neardup import __version__
from neardup.documents import Corpus
from neardup.documents.elsewhere import tasks_of
from neardup.errors import RecipeError
from neardup.ordering import goes_by_time
from neardup.recipe import Recipe
from neardup.search.lsh import bands_of
from neardup.spark.answer import Answer
from neardup.spark.faults import told_by_spark
from neardup.spark.finding import Settings, check_recipe, find
from neardup.spark.inputs import Read, read
from neardup.spark.masters import check_master, is_here
from neardup.spark.session import BRIEF, check_spark, session
from neardup.spark.stages import Stages, check_folder
from neardup.spark.workers import sources_digest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from neardup.reading import Report

#: Inputs up to so many bytes are work for a minute or so.
_BRIEF_BYTES = 128 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where a run is done.

    Attributes
    ----------
    master : str
        As in ``session.session``.
    stages : str or None
        A folder or URI that all workers can write to; None for a temporary one, where this machine does all.
    resume : bool
        Whether complete stages in it are taken as they are.
    settings : mapping
        Settings of Spark.
    log : str or None
        A file for what Spark says.
    wait : float
        Seconds to wait for a first worker.
    ship : bool
        Whether the workers are sent this package.
    """

    master: str = "local[*]"
    stages: str | None = None
    resume: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    log: str | None = None
    wait: float = 60.0
    ship: bool = False

    def check(self, recipe: Recipe) -> None:
        """Refuse what can only fail, before anything is read or started."""
        check_recipe(recipe)
        self.check_place()

    def check_place(self) -> None:
        """Refuse an engine that no recipe could run on."""
        if self.resume and self.stages is None:
            raise RecipeError("--resume goes on from stages: name their folder with --stages DIR")
        if self.stages is None and not is_here(self.master):
            raise RecipeError(
                f"the workers of {self.master} may be other machines, which need a folder that all can write to: name "
                "one with --stages DIR"
            )
        check_spark()


@contextmanager
def answered(
    corpus: Corpus,
    recipe: Recipe,
    engine: Engine,
    *,
    progress: Report | None,
    records: bool,
    pairs_per_document: float | None = None,
) -> Iterator[Answer]:
    """Give what a run of a recipe on a corpus found.

    Parameters
    ----------
    corpus : Corpus
        It was not scanned, and stays open.
    recipe : Recipe
        What to do.
    engine : Engine
        Where.
    progress : callable, optional
        Told (stage, done, total) from time to time.
    records : bool
        Whether the bytes of what is set aside are wanted.
    pairs_per_document : float, optional
        As in ``Settings``.

    Raises
    ------
    NeardupError
        In one sentence.
    """
    engine.check(recipe)
    settings = Settings(pairs_per_document=pairs_per_document)
    mark = fingerprint_of(corpus, recipe)
    if engine.stages is not None:
        check_folder(engine.stages, mark, resume=engine.resume)
    began = time.perf_counter()
    with started(engine, corpus) as spark:
        folder = None if engine.stages is None else located(engine.stages)
        with Stages(spark, folder, mark, resume=engine.resume, progress=progress) as stages:
            stages.report.append({"name": "start", "wall_s": round(time.perf_counter() - began, 3)})
            documents = read(spark, corpus, stages, records=records, by_time=goes_by_time(recipe.keep))
            yield answer(spark, corpus, recipe, stages, documents, settings)


def started(engine: Engine, corpus: Corpus) -> AbstractContextManager[SparkSession]:
    """Start a session for work on a corpus."""
    check_master(engine.master)
    settings = (BRIEF if corpus.total_bytes < _BRIEF_BYTES else {}) | dict(engine.settings)
    return session(engine.master, settings=settings, log=engine.log, wait=engine.wait, ship=engine.ship)


def answer(
    spark: SparkSession,
    corpus: Corpus,
    recipe: Recipe,
    stages: Stages,
    documents: Read,
    settings: Settings | None = None,
) -> Answer:
    """Return what a run of a recipe finds in documents that were read from a corpus in a session."""
    with told_by_spark():
        found = find(documents.documents, recipe, stages=stages, settings=settings)
        if recipe.search == "lsh":
            found.summary["search"]["jaccard_at_threshold"] = bands_of(recipe).jaccard
        where = {"engine": "spark", "master": spark.sparkContext.master, "workers": stages.workers}
        return Answer(corpus, documents, found, where | {"spark": spark.version})


def fingerprint_of(corpus: Corpus, recipe: Recipe | None) -> str:
    """Return what stages are known by: recipe (none for documents), files as they look now, columns, and version."""
    files = [
        (found.name, found.size, found.mtime, task.source, task.span)
        for task in tasks_of(corpus.sources)
        for found in task.files
    ]
    known = [asdict(recipe), recipe.dependencies] if recipe else []
    whole = json.dumps([known, files, asdict(corpus.wanted), __version__, sources_digest()], default=str)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def located(folder: str) -> str:
    """Return a folder as all workers understand it."""
    return folder if "://" in folder else f"file://{os.path.abspath(folder)}"
