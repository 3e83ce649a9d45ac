"""Stages: what a run has done so far, as folders of Parquet files that another run can go on from."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from neardup.errors import OutputError, option
from neardup.spark.faults import told_by_spark
from neardup.spark.folders import Folder
from neardup.spark.measuring import Measured

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.reading import Report

#: Beside the stages' folders: whose they are.
_MARK = "neardup-stages.json"
#: Parquet's writer looks at how much it holds after so many rows, which may be blobs of megabytes.
_SOON_WRITTEN = {f"parquet.{what}.size.row.check.{end}": "8" for what in ("page", "block") for end in ("min", "max")}


def checked(mark: bytes, folder: str, fingerprint: str, *, resume: bool) -> dict[str, Any]:
    """Return what the mark of a folder says, if the folder may be used.

    Raises
    ------
    OutputError
        If it holds stages of something else, or some that are not to be gone on from.
    """
    try:
        known: Any = json.loads(mark)
    except ValueError:
        known = None
    found: dict[str, Any] = known if isinstance(known, dict) else {}
    own = found.get("fingerprint")
    if not isinstance(own, str) or not isinstance(found.get("workers", 1), int):
        raise OutputError(
            f"{_MARK} in {folder} is damaged, so that nobody knows whose stages these are: name another folder, or "
            "remove it"
        )
    if own != fingerprint:
        raise OutputError(
            f"{folder} holds the stages of another recipe, input or version ({own}, and this run is {fingerprint}): "
            "name another folder, or remove it"
        )
    if not resume:
        resumed = option("--resume", "resume=True")
        raise OutputError(f"{folder} holds stages of this very run: go on from them with {resumed}, or remove it")
    return found


def check_folder(folder: str, fingerprint: str, *, resume: bool) -> None:
    """Refuse a folder before a session is started, for what ``Stages`` would refuse it for; a URI is not looked at.

    Raises
    ------
    OutputError
        As ``Stages``.
    """
    if "://" in folder:
        return
    path = Path(folder)
    above = next(place for place in (path.absolute(), *path.absolute().parents) if place.exists())
    if not above.is_dir():
        raise OutputError(f"{above} is a file, but stages need a folder: name another")
    if not os.access(above, os.W_OK | os.X_OK):
        raise OutputError(f"{above} may not be written to by this user, but stages are: name another folder")
    if not path.exists():
        return
    mark = path / _MARK
    if mark.exists():
        begun = any(entry.is_dir() for entry in path.iterdir())
        checked(mark.read_bytes(), folder, fingerprint, resume=resume or not begun)
    elif any(path.iterdir()):
        raise OutputError(f"{folder} holds other files than stages: name a folder that is new or empty")


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
        progress: Report | None = None,
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
            self._mark = checked(mark, self.folder, fingerprint, resume=self._resume or not self._folder.names())
        self._folder.write(_MARK, json.dumps(self._mark).encode())

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
            schema = self._folder.schema(name) if self._resume else None
            if schema is not None:
                self.report.append({"name": name, "wall_s": 0.0, "resumed": True} | self._folder.sizes(name))
                return self._spark.read.schema(schema).parquet(path)
            frame = make()
            # Hashes neither compress nor repeat, so that both would only cost time.
            writer = frame.write.mode("overwrite").option("compression", "uncompressed")
            writer = writer.option("parquet.enable.dictionary", "false").options(**_SOON_WRITTEN)
            with Measured(self._spark, name, self._progress) as measured:
                writer.parquet(path)
            self._folder.put_schema(name, frame.schema)
            spent = {"name": name, "wall_s": round(time.perf_counter() - began, 3)}
            self.report.append(spent | self._folder.sizes(name) | measured.found())
            return self._spark.read.schema(frame.schema).parquet(path)

    def close(self) -> None:
        """Remove the temporary folder, and with it what frames of these stages read."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<stages in {json.dumps(self.folder)}: {', '.join(stage['name'] for stage in self.report)}>"
