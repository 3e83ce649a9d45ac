"""A run on files: where it is done, and what its stages are known by."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from neardup.documents import Corpus
from neardup.documents.partitions import tasks_of
from neardup.errors import RecipeError
from neardup.keep.order import goes_by_time
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.spark.cluster import is_here, sources_digest
from neardup.spark.documents import read
from neardup.spark.engine import find
from neardup.spark.failures import told_by_spark
from neardup.spark.search import check_recipe
from neardup.spark.session import BRIEF, check_spark, session
from neardup.spark.stages import Stages
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex

#: Inputs up to so many bytes are work for minutes, and Spark's own code a small part of it.
_BRIEF_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where a run is done.

    Attributes
    ----------
    master : str
        As in ``session.session``.
    checkpoint_dir : str or None
        A folder or URI that all workers can write to; None for a temporary one, where this machine does all.
    resume : bool
        Whether complete stages in it are taken as they are.
    settings : mapping
        Settings of Spark.
    log : str or None
        A file for what Spark says.
    wait : float
        Seconds to wait for a first worker.
    """

    master: str = "local[*]"
    checkpoint_dir: str | None = None
    resume: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    log: str | None = None
    wait: float = 60.0

    def check(self, recipe: Recipe) -> None:
        """Refuse what can only fail, before anything is read or started."""
        check_recipe(recipe)
        self.check_place()

    def check_place(self) -> None:
        """Refuse an engine that no recipe could run on."""
        if self.resume and self.checkpoint_dir is None:
            raise RecipeError("--resume goes on from stages: name their folder with --checkpoint-dir DIR")
        if self.checkpoint_dir is None and not is_here(self.master):
            raise RecipeError(
                f"the workers of {self.master} may be other machines, which need a folder that all can write to: name "
                "one with --checkpoint-dir DIR"
            )
        check_spark()


@contextmanager
def answered(
    corpus: Corpus,
    recipe: Recipe,
    engine: Engine,
    *,
    progress: Progress | None,
    records: bool,
    pairs_per_document: float | None = None,
    index: DiskIndex | None = None,
) -> Iterator[Result]:
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
        Whether the bytes of what is rejected are wanted.
    pairs_per_document : float, optional
        As in ``neardup.dedup``; None for all pairs.
    index : DiskIndex, optional
        The reference, where it is an index.

    Raises
    ------
    NeardupError
        In one sentence.
    """
    engine.check(recipe)
    mark = fingerprint_of(recipe, [corpus_identity(corpus), index_identity(index)])
    began = time.perf_counter()
    given = (BRIEF if corpus.total_bytes < _BRIEF_BYTES else {}) | dict(engine.settings)
    with session(engine.master, settings=given, log=engine.log, wait=engine.wait) as spark:
        folder = None if engine.checkpoint_dir is None else located(engine.checkpoint_dir)
        with Stages(spark, folder, mark, resume=engine.resume, progress=progress) as stages:
            stages.report.append({"name": "start", "wall_s": round(time.perf_counter() - began, 3)})
            options: dict[str, Any] = {"pairs_per_document": pairs_per_document, "index": index}
            yield answer(spark, corpus, recipe, stages, records=records, **options)


def answer(
    spark: SparkSession,
    corpus: Corpus,
    recipe: Recipe,
    stages: Stages,
    *,
    records: bool = False,
    pairs_per_document: float | None = None,
    index: DiskIndex | None = None,
) -> Result:
    """Return what a run of a recipe finds in a corpus that is read in a session."""
    documents = read(spark, corpus, stages, records=records, by_time=goes_by_time(recipe.keep), index=index)
    where = {"engine": "spark", "master": spark.sparkContext.master, "workers": stages.workers, "spark": spark.version}
    with told_by_spark():
        return find(corpus, documents, recipe, stages=stages, pairs_per_document=pairs_per_document, details=where)[0]


def corpus_identity(corpus: Corpus) -> Any:
    """Return what a corpus is known by: its files as they look now, how they are cut, and columns."""
    files = [
        (found.name, found.size, found.mtime, task.source, task.span)
        for task in tasks_of(corpus.sources)
        for found in task.files
    ]
    against = None if corpus.reference is None else corpus_identity(corpus.reference)
    return [files, asdict(corpus.wanted), against]


def index_identity(index: DiskIndex | None) -> Any:
    """Return what a state of an index is known by: its folder and the digests of its files."""
    return None if index is None else [os.path.abspath(index.path), index.manifest.files]


def fingerprint_of(recipe: Recipe, documents: Any) -> str:
    """Return what stages are known by: recipe, documents, version and code."""
    known = [asdict(recipe), recipe.dependencies]
    whole = json.dumps([known, documents, __version__, sources_digest()], default=str)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def located(folder: str) -> str:
    """Return a folder as all workers understand it."""
    return folder if "://" in folder else f"file://{os.path.abspath(folder)}"
