"""What a stage cost: rows and bytes that Spark counted while it ran, and how far it is for those who wait."""

from __future__ import annotations

import threading
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from neardup.reading import Report

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

    def __init__(self, spark: SparkSession, name: str, progress: Report | None) -> None:
        self._context: Any = spark.sparkContext
        self._name, self._progress = name, progress
        self._group = f"neardup {name} {uuid.uuid4().hex[:8]}"
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True) if progress is not None else None

    def __enter__(self) -> Self:
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
            self._context.setLocalProperty("spark.jobGroup.id", None)
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
