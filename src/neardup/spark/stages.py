"""What a stage cost: rows and bytes that Spark counted while it ran, and how far it is for those who wait."""

from __future__ import annotations

import json
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
from pyarrow.parquet import read_table

from neardup.errors import OutputError, option
from neardup.spark.failures import told_by_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.features.reading import Progress

#: Seconds between looks at the tasks.
_LOOK = 0.25


class Measured:
    """Watches the jobs that are started inside.

    Parameters
    ----------
    spark : SparkSession
        The session.
    name : str
        What ``progress`` is told.
    progress : callable, optional
        Told (name, tasks done, tasks).
    """

    def __init__(self, spark: SparkSession, name: str, progress: Progress | None) -> None:
        self._context: Any = spark.sparkContext
        self._name, self._progress = name, progress
        self._group = f"neardup {name} {uuid.uuid4().hex[:8]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True) if progress is not None else None

    def __enter__(self) -> Self:
        # A stage may make another one first.
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

        # Where the session has died, what ended it is being told already.
        with suppress(ConnectionError, Py4JError):
            self._context.setLocalProperty("spark.jobGroup.id", self._before)
            self._context.setLocalProperty("spark.job.description", None)

    def _look(self) -> None:
        tracker = self._context.statusTracker()
        while not self._ended.wait(_LOOK):
            try:
                jobs = tracker.getJobIdsForGroup(self._group)
                told = [tracker.getJobInfo(job) for job in jobs]
                ids = {stage for job in told if job is not None for stage in job.stageIds}
                stages = [info for info in map(tracker.getStageInfo, ids) if info is not None]
            except Exception:  # whatever ended the session is told by those who work in it
                return
            tasks = sum(stage.numTasks for stage in stages)
            if tasks and self._progress is not None:
                self._progress(self._name, sum(stage.numCompletedTasks for stage in stages), tasks)

    def found(self) -> dict[str, Any]:
        """Return rows written, bytes shuffled and spilled, the workers' seconds, and tasks that failed."""
        store = self._context._jsc.sc().statusStore()
        jobs = store.jobsList(None)
        stages: dict[int, Any] = {}
        for number in range(jobs.size()):
            job = jobs.apply(number)
            if job.jobGroup().isDefined() and job.jobGroup().get() == self._group:
                ids = job.stageIds()
                for place in range(ids.size()):
                    stages[int(ids.apply(place))] = store.lastStageAttempt(int(ids.apply(place)))
        done = [stage for stage in stages.values() if stage.status().name() == "COMPLETE"]
        return {
            "rows": sum(int(stage.outputRecords()) for stage in done),
            "shuffle_bytes": sum(int(stage.shuffleWriteBytes()) for stage in done),
            "spilled_bytes": sum(int(stage.diskBytesSpilled()) for stage in done),
            "worker_s": round(sum(int(stage.executorRunTime()) for stage in done) / 1000, 3),
            "failed_tasks": sum(int(stage.numFailedTasks()) for stage in done),
        }


#: Spark writes it when all parts of a stage are in place.
_COMPLETE = "_SUCCESS"


class Folder:
    """A folder, made where it is not there.

    Parameters
    ----------
    spark : SparkSession
        Knows how to reach it.
    path : str
        A path or URI.
    """

    def __init__(self, spark: SparkSession, path: str) -> None:
        context: Any = spark.sparkContext
        self._jvm: Any = context._jvm
        self._gateway: Any = context._gateway
        self._path = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._path.getFileSystem(context._jsc.hadoopConfiguration())
        self._files.mkdirs(self._path)

    def _at(self, *names: str) -> Any:
        found = self._path
        for name in names:
            found = self._jvm.org.apache.hadoop.fs.Path(found, name)
        return found

    def _listed(self, *names: str) -> list[Any]:
        path = self._at(*names)
        return list(self._files.listStatus(path)) if self._files.exists(path) else []

    def names(self) -> list[str]:
        """Return the names of the stages that there are, complete or not."""
        return sorted(entry.getPath().getName() for entry in self._listed() if entry.isDirectory())

    def is_empty(self) -> bool:
        """Return whether nothing is in it."""
        return not self._listed()

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small file, or None where it is not there."""
        path = self._at(name)
        if not self._files.exists(path):
            return None
        stream = self._files.open(path)
        try:
            return bytes(stream.readAllBytes())
        finally:
            stream.close()

    def write(self, name: str, data: bytes) -> None:
        """Write a small file whole: it takes the place of another one in one step, when it is complete."""
        draft, path = (self._files.makeQualified(self._at(part)) for part in (f".{name}.draft", name))
        stream = self._files.create(draft, True)
        stream.write(bytearray(data))
        stream.close()
        rename = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.OVERWRITE
        place = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext(path.toUri(), self._files.getConf())
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


#: Beside the stages' folders: whose they are.
_MARK = "neardup-stages.json"
#: Parquet's writer looks at how much it holds after so many rows, which may be blobs of megabytes.
_SOON_WRITTEN = {f"parquet.{what}.size.row.check.{end}": "8" for what in ("page", "block") for end in ("min", "max")}


class Stages:
    """Writes what each step gives before the next one takes it.

    Parameters
    ----------
    spark : SparkSession
        Where the frames live.
    folder : str, optional
        A folder or URI that all workers can write to; without one a temporary folder, removed by ``close``.
    fingerprint : str
        Of the recipe, the input and the version: stages of another one are refused.
    resume : bool
        Whether stages of this fingerprint that are complete are taken as they are; otherwise the folder must hold none.
    progress : callable, optional
        Told (stage, tasks done, tasks) from time to time.

    Attributes
    ----------
    report : list of dict
        Of each stage: name, wall_s, and of one that was made rows, bytes, partitions, skew (the largest partition over
        the mean), shuffle_bytes, worker_s and more; of one that was there already, ``resumed``.

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
        self.folder = str(folder or self._temporary)
        self.report: list[dict[str, Any]] = []
        self._mark: dict[str, Any] = {"fingerprint": fingerprint}
        with told_by_spark():
            self._folder = Folder(spark, self.folder)
            self._claim(fingerprint)

    def _claim(self, fingerprint: str) -> None:
        """Refuse the folder if it is not this run's; else mark it."""
        mark = self._folder.read(_MARK)
        if mark is None and not self._folder.is_empty():
            raise OutputError(f"{self.folder} holds other files than stages: name a folder that is new or empty")
        if mark is not None:
            self._mark = self._checked(mark, fingerprint)
        self._folder.write(_MARK, json.dumps(self._mark).encode())

    def _checked(self, mark: bytes, fingerprint: str) -> dict[str, Any]:
        """Return what the mark of the folder says."""
        try:
            known: Any = json.loads(mark)
        except ValueError:
            known = None
        found: dict[str, Any] = known if isinstance(known, dict) else {}
        own = found.get("fingerprint")
        if not isinstance(own, str) or not isinstance(found.get("workers", 1), int):
            raise OutputError(
                f"{_MARK} in {self.folder} is damaged, so that nobody knows whose stages these are: name another "
                "folder, or remove it"
            )
        if own != fingerprint:
            raise OutputError(
                f"{self.folder} holds the stages of another recipe, input or version ({own}, and this run is "
                f"{fingerprint}): name another folder, or remove it"
            )
        if self._folder.names() and not self._resume:
            resumed = option("go on from them with --resume", "give a key from the first run on")
            raise OutputError(f"{self.folder} holds stages of this very run: {resumed}, or remove it")
        return found

    @property
    def workers(self) -> int:
        """How many parts work is cut into at least, whoever goes on from the folder.

        As many as there are when it is asked first, which is not before something was read: workers come one by one.
        """
        if "workers" not in self._mark:
            with told_by_spark():
                self._mark["workers"] = int(self._spark.sparkContext.defaultParallelism)
                self._folder.write(_MARK, json.dumps(self._mark).encode())
        return int(self._mark["workers"])

    def run(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """Return what ``make`` gives, read back from the stage's folder; one that is complete is not made again."""
        path, began = f"{self.folder}/{name}", time.perf_counter()
        with told_by_spark():
            if self._resume and self._folder.is_complete(name):
                self.report.append({"name": name, "wall_s": 0.0, "resumed": True} | self._folder.sizes(name))
                return self._spark.read.parquet(path)
            with Measured(self._spark, name, self._progress) as measured:
                frame = make()
                # Hashes neither compress nor repeat, so that both would only cost time.
                writer = frame.write.mode("overwrite").option("compression", "uncompressed")
                writer = writer.option("parquet.enable.dictionary", "false").options(**_SOON_WRITTEN)
                writer.parquet(path)
            spent = {"name": name, "wall_s": round(time.perf_counter() - began, 3)}
            self.report.append(spent | self._folder.sizes(name) | measured.found())
            return self._spark.read.schema(frame.schema).parquet(path)

    def table(self, name: str, columns: list[str]) -> pa.Table:
        """Return some columns of a stage, in any order of rows."""
        if "://" not in self.folder or self.folder.startswith("file://"):
            # Several times as fast as through the JVM.
            return read_table(f"{self.folder.removeprefix('file://')}/{name}", columns=columns)
        with told_by_spark():
            return self._spark.read.parquet(f"{self.folder}/{name}").select(*columns).toArrow()

    def bytes_of(self, name: str) -> int:
        """Return how large a stage is."""
        with told_by_spark():
            return int(self._folder.sizes(name)["bytes"])

    def close(self) -> None:
        """Remove the temporary folder, and with it what frames of these stages read."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
