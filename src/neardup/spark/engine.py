"""A run on files: where it takes place, and how its stages are identified."""

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
from neardup.documents.tasks import tasks_of
from neardup.errors import RecipeError
from neardup.keep.order import is_by_time
from neardup.pipeline.result import Result
from neardup.recipe import Recipe
from neardup.spark.cluster import is_local, sources_digest
from neardup.spark.documents import corpus_source
from neardup.spark.failures import spark_errors
from neardup.spark.pipeline import find_duplicates
from neardup.spark.search import check_recipe
from neardup.spark.session import SHORT_RUN_SETTINGS, check_spark, session
from neardup.spark.stages import Stages
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from neardup.features.reading import Progress
    from neardup.index.index import DiskIndex

#: Up to this many bytes of input a run takes minutes, and Spark's own code is a small part of it.
_SHORT_RUN_BYTES = 4 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Where a run takes place.

    Attributes
    ----------
    master : str
        As in ``session.session``.
    checkpoint_dir : str or None
        A folder or URI that all workers can write to; None for a temporary one, if all workers are on this machine.
    resume : bool
        Whether to go on from the complete stages in it.
    settings : mapping
        Settings of Spark.
    log : str or None
        A file for Spark's log.
    wait : float
        Seconds to wait for the first worker.
    """

    master: str = "local[*]"
    checkpoint_dir: str | None = None
    resume: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    log: str | None = None
    wait: float = 60.0

    def check(self, recipe: Recipe) -> None:
        """Check, before anything is read or started, that a recipe can run here."""
        check_recipe(recipe)
        if self.resume and self.checkpoint_dir is None:
            raise RecipeError("--resume goes on from stages: name their folder with --checkpoint-dir DIR")
        if self.checkpoint_dir is None and not is_local(self.master):
            raise RecipeError(
                f"the workers of {self.master} may be other machines, which need a folder that all can write to: name "
                "one with --checkpoint-dir DIR"
            )
        check_spark()


@contextmanager
def run_on_spark(
    corpus: Corpus,
    recipe: Recipe,
    engine: Engine,
    *,
    progress: Progress | None,
    records: bool,
    pairs_per_document: float | None = None,
    index: DiskIndex | None = None,
) -> Iterator[Result]:
    """Run a recipe on a corpus in a session of its own; the result is good until the block ends.

    Parameters
    ----------
    corpus : Corpus
        Not scanned yet; it stays open.
    engine : Engine
        Where to run.
    progress, pairs_per_document
        As in ``pipeline.run``.
    records : bool
        Whether the bytes of rejected records are needed.
    index : DiskIndex, optional
        The reference, if it is an index.

    Raises
    ------
    NeardupError
        In one sentence.
    """
    engine.check(recipe)
    fingerprint = fingerprint_of(recipe, [corpus_identity(corpus), index_identity(index)])
    began = time.perf_counter()
    settings = (SHORT_RUN_SETTINGS if corpus.total_bytes < _SHORT_RUN_BYTES else {}) | dict(engine.settings)
    with session(engine.master, settings=settings, log=engine.log, wait=engine.wait) as spark:
        folder = engine.checkpoint_dir
        if folder is not None and "://" not in folder:
            folder = f"file://{os.path.abspath(folder)}"
        with Stages(spark, folder, fingerprint, resume=engine.resume, progress=progress) as stages:
            stages.report.append({"name": "start", "wall_s": round(time.perf_counter() - began, 3)})
            options: dict[str, Any] = {"pairs_per_document": pairs_per_document, "index": index}
            yield run_in_session(spark, corpus, recipe, stages, records=records, **options)


def run_in_session(
    spark: SparkSession,
    corpus: Corpus,
    recipe: Recipe,
    stages: Stages,
    *,
    records: bool = False,
    pairs_per_document: float | None = None,
    index: DiskIndex | None = None,
) -> Result:
    """Run a recipe on a corpus; the parameters are those of ``run_on_spark``."""
    source = corpus_source(spark, corpus, stages, records=records, by_time=is_by_time(recipe.keep), index=index)
    details = {
        "engine": "spark",
        "master": spark.sparkContext.master,
        "workers": stages.workers,
        "spark": spark.version,
    }
    options: dict[str, Any] = {"pairs_per_document": pairs_per_document, "details": details}
    with spark_errors():
        return find_duplicates(corpus, source, recipe, stages=stages, **options)[0]


def corpus_identity(corpus: Corpus) -> Any:
    """Return what identifies a corpus: its files with sizes and times, their division into tasks, and its columns."""
    files = [
        (file.name, file.size, file.mtime, task.source, task.span)
        for task in tasks_of(corpus.sources)
        for file in task.files
    ]
    reference = None if corpus.reference is None else corpus_identity(corpus.reference)
    return [files, asdict(corpus.read_options), reference]


def index_identity(index: DiskIndex | None) -> Any:
    """Return what identifies a state of an index: its folder and the digests of its files."""
    return None if index is None else [os.path.abspath(index.path), index.manifest.files]


def fingerprint_of(recipe: Recipe, documents: Any) -> str:
    """Return the fingerprint of stages: of recipe, documents, version and code."""
    identity = [[asdict(recipe), recipe.dependencies], documents, __version__, sources_digest()]
    return hashlib.sha256(json.dumps(identity, default=str).encode()).hexdigest()[:16]
