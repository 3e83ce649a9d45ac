"""What a run on files found, brought back to this machine: the tables and files that the engine in memory gives."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup.documents import Corpus
from neardup.documents.partitions import tasks_of
from neardup.documents.records import Names
from neardup.errors import RecipeError
from neardup.keep.order import goes_by_time
from neardup.keep.pairs import Pairs
from neardup.recipe import Recipe
from neardup.search.lsh import bands_of
from neardup.spark.documents import Read, read
from neardup.spark.engine import Found, find
from neardup.spark.search import Settings, check_recipe
from neardup.spark.session import BRIEF, check_master, check_spark, is_here, session, sources_digest, told_by_spark
from neardup.spark.stages import Stages, check_folder
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from neardup.features.reading import Progress


class Answer:
    """What a run found. Only documents that match another one are held here, and a bit for each row.

    Attributes
    ----------
    summary : dict
        Counts, stages, recipe and versions, ready for JSON.
    pairs : Pairs
        All pairs at or above the threshold.
    """

    def __init__(self, corpus: Corpus, read: Read, found: Found, details: dict[str, Any]) -> None:
        self._corpus, self._details = corpus, details
        self._found_summary, began = found.summary, time.perf_counter()
        with told_by_spark():
            repeated = _column(found.repeated.toArrow(), "row")
            company = found.company.toArrow()
            verdicts = found.verdicts.toArrow()
            edges = found.edges.select("left", "right", "similarity").toArrow()
        away = read.raw(np.sort(repeated))
        if len(away):
            raise corpus.repeated(len(away), corpus.take(away[:1])[corpus.id_column][0].as_py(), [int(away[0])])
        company = company.sort_by("row")
        verdicts = verdicts.sort_by("row")
        rows = _column(company, "row")
        ids = None
        if corpus.id_column:
            ids = company["id"].combine_chunks().cast(pa.int64() if read.numbers else pa.large_string())
        self._names = Names(read.raw(rows), ids)
        nodes, places = np.unique(_column(company, "node"), return_inverse=True)
        # Of equal documents the first stands for all.
        firsts = np.full(len(nodes), len(rows), np.int64)
        np.minimum.at(firsts, places, np.arange(len(rows)))
        ends = [firsts[np.searchsorted(nodes, _column(edges, name))] for name in ("left", "right")]
        left, right = np.minimum(*ends), np.maximum(*ends)
        order = np.lexsort((right, left))
        similarity = _column(edges, "similarity")[order]
        self.pairs = Pairs(self._names, firsts[places], left[order], right[order], similarity)
        self._keeper = np.searchsorted(rows, _column(verdicts, "keeper"))
        self._similarity, self._family = _column(verdicts, "similarity"), _column(verdicts, "family")
        self._goes = np.flatnonzero(self._keeper != np.arange(len(rows)))
        stays = ~read.bad
        stays[self._names.rows[self._goes]] = False
        self._stays = stays
        self._stages = [{"name": "collect", "wall_s": round(time.perf_counter() - began, 3)}]

    @property
    def summary(self) -> dict[str, Any]:
        """Counts, stages, recipe and versions, ready for JSON."""
        found = dict(self._found_summary)
        stages = [*found.pop("stages"), *self._stages]
        counts = dict(self._corpus.rejected.counts)
        return found | {"rejected": counts, "stages": stages} | self._corpus.torn_summary | self._details

    def duplicates(self) -> pa.Table:
        """Return a table of the dropped documents: dropped, keeper (ids), similarity, family."""
        at = self._goes
        return pa.table(
            {
                "dropped": self._names.of(at),
                "keeper": self._names.of(self._keeper[at]),
                "similarity": pa.array(self._similarity[at]),
                "family": pa.array(self._family[at]),
            }
        )

    def write(self, output: str, *, force: bool = False, progress: Callable[[int], None] | None = None) -> None:
        """Write the documents that stay, with all columns, to a file whose name says the format."""
        began = time.perf_counter()
        self._corpus.copy(self._stays, output, force=force, progress=progress)
        self._stages.append({"name": "write", "wall_s": round(time.perf_counter() - began, 3)})


def _column(table: pa.Table, name: str) -> Any:
    return table[name].to_numpy()


#: Inputs up to so many bytes are work for a minute or so.
_BRIEF_BYTES = 128 << 20


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
    ship : bool
        Whether the workers are sent this package.
    """

    master: str = "local[*]"
    checkpoint_dir: str | None = None
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
        Whether the bytes of what is rejected are wanted.
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
    if engine.checkpoint_dir is not None:
        check_folder(engine.checkpoint_dir, mark, resume=engine.resume)
    began = time.perf_counter()
    with started(engine, corpus) as spark:
        folder = None if engine.checkpoint_dir is None else located(engine.checkpoint_dir)
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


def fingerprint_of(corpus: Corpus, recipe: Recipe) -> str:
    """Return what stages are known by: recipe, files as they look now, columns, and version."""
    files = [
        (found.name, found.size, found.mtime, task.source, task.span)
        for task in tasks_of(corpus.sources)
        for found in task.files
    ]
    known = [asdict(recipe), recipe.dependencies]
    whole = json.dumps([known, files, asdict(corpus.wanted), __version__, sources_digest()], default=str)
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def located(folder: str) -> str:
    """Return a folder as all workers understand it."""
    return folder if "://" in folder else f"file://{os.path.abspath(folder)}"
