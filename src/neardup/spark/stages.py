"""Stages: the result of each step, written before the next one begins, with its costs and progress."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from pyarrow.parquet import read_table

from neardup.errors import OutputError, option
from neardup.spark.failures import spark_errors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.features.reading import Progress

#: Seconds between two reports of progress.
_POLL_SECONDS = 0.25


class StageMeter:
    """Watches the jobs of a stage that start in the block; ``progress`` is called with (name, tasks done, tasks)."""

    def __init__(self, spark: SparkSession, name: str, progress: Progress | None) -> None:
        self._context: Any = spark.sparkContext
        self._name, self._progress = name, progress
        self._group = f"neardup {name} {uuid.uuid4().hex[:8]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._report_progress, daemon=True) if progress is not None else None

    def __enter__(self) -> Self:
        # One stage may start another.
        self._before = self._context.getLocalProperty("spark.jobGroup.id")
        self._context.setJobGroup(self._group, f"neardup: {self._name}")
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        from py4j.protocol import Py4JError

        # If the session has died, the error that ended it is under way.
        with suppress(ConnectionError, Py4JError):
            self._context.setLocalProperty("spark.jobGroup.id", self._before)
            self._context.setLocalProperty("spark.job.description", None)

    def _job_stages(self, read: Callable[[int], Any]) -> list[Any]:
        """Return what ``read`` says of each of Spark's own stages of these jobs."""
        tracker = self._context.statusTracker()
        infos = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        return [read(stage) for stage in {stage for info in infos if info is not None for stage in info.stageIds}]

    def _report_progress(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            try:
                stages = list(filter(None, self._job_stages(self._context.statusTracker().getStageInfo)))
            except Exception:  # the jobs themselves report what ended the session
                return
            tasks = sum(stage.numTasks for stage in stages)
            if tasks and self._progress is not None:
                self._progress(self._name, sum(stage.numCompletedTasks for stage in stages), tasks)

    def costs(self) -> dict[str, Any]:
        """Return rows written, bytes shuffled and spilled, seconds of the workers, and failed tasks."""
        stages = self._job_stages(self._context._jsc.sc().statusStore().lastStageAttempt)
        done = [stage for stage in stages if stage.status().name() == "COMPLETE"]
        return {
            "rows": sum(int(stage.outputRecords()) for stage in done),
            "shuffle_bytes": sum(int(stage.shuffleWriteBytes()) for stage in done),
            "spilled_bytes": sum(int(stage.diskBytesSpilled()) for stage in done),
            "worker_s": round(sum(int(stage.executorRunTime()) for stage in done) / 1000, 3),
            "failed_tasks": sum(int(stage.numFailedTasks()) for stage in done),
        }


#: Spark writes it when all parts of a stage are in place.
_COMPLETE = "_SUCCESS"


class StageFolder:
    """A folder of stages, at a path or URI on any filesystem of Hadoop; created if missing.

    Attributes
    ----------
    uri : str
        The folder with its filesystem, which for a path is the session's default one.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        context: Any = spark.sparkContext
        # Java is asked for each name between dots, and searches all of Spark for it.
        self._hadoop: Any = context._jvm.org.apache.hadoop.fs
        self._new_path = self._hadoop.Path
        self._gateway: Any = context._gateway
        self._path = self._new_path(path)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())
        self._files.mkdirs(self._path)
        self.uri = str(self._files.makeQualified(self._path).toString())

    def _at(self, *names: str) -> Any:
        return reduce(self._new_path, names, self._path)

    def _listed(self, *names: str) -> list[Any]:
        path = self._at(*names)
        return list(self._files.listStatus(path)) if self._files.exists(path) else []

    def has_stages(self) -> bool:
        """Return whether there are any stages, complete or not."""
        return any(entry.isDirectory() for entry in self._listed())

    def is_empty(self) -> bool:
        """Return whether the folder is empty."""
        return not self._listed()

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small file; None if it is missing."""
        path = self._at(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Write a small file; it replaces another one in one step when it is complete."""
        draft, path = (self._files.makeQualified(self._at(part)) for part in (f".{name}.draft", name))
        stream = self._files.create(draft, True)
        stream.write(bytearray(data))
        stream.close()
        rename = getattr(self._hadoop, "Options$Rename")
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.OVERWRITE
        place = self._hadoop.FileContext.getFileContext(path.toUri(), self._files.getConf())
        place.rename(draft, path, options)

    def is_complete(self, stage: str) -> bool:
        """Return whether all parts of a stage are in place."""
        return bool(self._files.exists(self._at(stage, _COMPLETE)))

    def sizes(self, stage: str) -> dict[str, Any]:
        """Return bytes and partitions of a stage, and its skew: the largest over the mean."""
        sizes = [int(entry.getLen()) for entry in self._listed(stage) if entry.getPath().getName().startswith("part-")]
        total = sum(sizes)
        mean = total / len(sizes) if sizes else 0.0
        return {
            "bytes": total,
            "partitions": len(sizes),
            "skew": round(max(sizes) / mean, 2) if total else 1.0,
        }


#: The file that says which run the stages are of.
_MANIFEST = "neardup-stages.json"
#: After how many rows Parquet's writer checks its size: few, because rows may be blobs of megabytes.
_EARLY_CHECKS = {f"parquet.{what}.size.row.check.{end}": "8" for what in ("page", "block") for end in ("min", "max")}


class Stages:
    """Writes the result of each step before the next one reads it.

    Parameters
    ----------
    folder : str, optional
        A folder or URI that all workers can write to; by default a temporary one, which ``close`` removes.
    fingerprint : str
        Of the recipe, the input and the version. Stages with another fingerprint are refused.
    resume : bool
        Whether to use complete stages with this fingerprint; otherwise the folder must hold no stages.
    progress : callable, optional
        Called with (stage, tasks done, tasks) from time to time.

    Attributes
    ----------
    report : list of dict
        For each stage name and wall_s; if it was computed, rows, bytes, partitions, skew (the largest partition over
        the mean), shuffle_bytes, worker_s and more; if it was there already, ``resumed``.

    Raises
    ------
    OutputError
        If the folder holds stages of something else, or some without ``resume``.
    """

    def __init__(
        self,
        spark: SparkSession,
        folder: str | None = None,
        fingerprint: str = "",
        *,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> None:
        self._spark, self._resume, self._progress = spark, resume, progress
        self._temporary = tempfile.mkdtemp(prefix="neardup-stages-") if folder is None else None
        self.folder = str(folder or f"file://{self._temporary}")
        self.report: list[dict[str, Any]] = []
        self._manifest: dict[str, Any] = {"fingerprint": fingerprint}
        with spark_errors():
            self._folder = StageFolder(spark, self.folder)
            self._claim(fingerprint)

    def _claim(self, fingerprint: str) -> None:
        """Check that the folder is empty or of this run, and write its manifest."""
        data = self._folder.read(_MANIFEST)
        if data is None and not self._folder.is_empty():
            raise OutputError(f"{self.folder} holds other files than stages: name a folder that is new or empty")
        if data is not None:
            self._manifest = self._checked_manifest(data, fingerprint)
        self._write_manifest()

    def _write_manifest(self) -> None:
        self._folder.write(_MANIFEST, json.dumps(self._manifest).encode())

    def _checked_manifest(self, data: bytes, fingerprint: str) -> dict[str, Any]:
        try:
            parsed: Any = json.loads(data)
        except ValueError:
            parsed = None
        manifest: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        written = manifest.get("fingerprint")
        if not isinstance(written, str) or not isinstance(manifest.get("workers", 1), int):
            raise OutputError(
                f"{_MANIFEST} in {self.folder} is damaged, so the run of these stages is unknown: name another folder, "
                "or remove it"
            )
        if written != fingerprint:
            raise OutputError(
                f"{self.folder} holds the stages of another recipe, input or version ({written}, and this run is "
                f"{fingerprint}): name another folder, or remove it"
            )
        if self._folder.has_stages() and not self._resume:
            way = option("go on from them with --resume", "give a key from the first run on")
            raise OutputError(f"{self.folder} holds stages of this very run: {way}, or remove it")
        return manifest

    @property
    def workers(self) -> int:
        """The number of workers by which work is divided, the same for every run that goes on from the folder.

        It is determined on first use, when documents have been read, because workers arrive one by one.
        """
        if "workers" not in self._manifest:
            with spark_errors():
                self._manifest["workers"] = int(self._spark.sparkContext.defaultParallelism)
                self._write_manifest()
        return int(self._manifest["workers"])

    def run(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return the frame of ``make``, read back from the stage's folder; a complete stage is not computed again."""
        path, began = f"{self._folder.uri}/{name}", time.perf_counter()
        with spark_errors():
            if self._resume and self._folder.is_complete(name):
                self.report.append({"name": name, "wall_s": 0.0, "resumed": True} | self._folder.sizes(name))
                return self._spark.read.parquet(path)
            with StageMeter(self._spark, name, self._progress) as meter:
                frame = make()
                # Hashes neither compress nor repeat, so compression and dictionaries would only cost time.
                writer = frame.write.mode("overwrite").option("compression", "uncompressed")
                writer = writer.option("parquet.enable.dictionary", "false").options(**_EARLY_CHECKS)
                writer.parquet(path)
            entry = {"name": name, "wall_s": round(time.perf_counter() - began, 3)}
            self.report.append(entry | self._folder.sizes(name) | meter.costs())
            return self._spark.read.schema(frame.schema).parquet(path)

    def table(self, name: str, columns: list[str]) -> pa.Table:
        """Return some columns of a stage; its rows have no order."""
        path = f"{self._folder.uri}/{name}"
        if path.startswith("file:"):
            # Several times as fast as through the JVM.
            return read_table(path.removeprefix("file:"), columns=columns)
        with spark_errors():
            return self._spark.read.parquet(path).select(*columns).toArrow()

    def close(self) -> None:
        """Remove a temporary folder; after that, no frame of these stages can be read."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
