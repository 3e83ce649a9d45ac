"""The end of a session: one that has lost all its workers, and one that does not stop by itself."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from neardup.errors import NeardupError, RecipeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between looks at the workers, and seconds that a session has to stop in.
_LOOK = 1.0
_STOP = 15.0


def count_workers(spark: SparkSession) -> int:
    """Return how many workers of a cluster there are; the driver is counted by Spark, too, and not here."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


@contextlib.contextmanager
def guarded(spark: SparkSession, master: str, seconds: float) -> Iterator[None]:
    """End the work inside when the cluster has no worker for some time; Spark would wait for ever.

    Raises
    ------
    RecipeError
        If that happened.
    """
    ended, lost = threading.Event(), threading.Event()
    watching = threading.Thread(target=_watch, args=(spark, seconds, ended, lost), daemon=True)
    watching.start()
    try:
        yield
    except NeardupError:
        if lost.is_set():
            raise RecipeError(
                f"the cluster {master} has lost all its workers and gave no other within {seconds:g} s; what was "
                "done is in --stages DIR, if one was named: start workers, and go on from it with --resume"
            ) from None
        raise
    finally:
        ended.set()


def _watch(spark: SparkSession, seconds: float, ended: threading.Event, lost: threading.Event) -> None:
    """Cancel all jobs once they wait for workers for too long."""
    tracker = spark.sparkContext.statusTracker()
    seen = time.monotonic()
    while not ended.wait(_LOOK):
        try:
            if count_workers(spark) > 0 or not tracker.getActiveJobsIds():
                seen = time.monotonic()
            elif time.monotonic() - seen > seconds:
                lost.set()
                spark.sparkContext.cancelAllJobs()
                return
        except Exception:  # whatever ended the session is told by those who work in it
            return


def stop(spark: SparkSession) -> None:
    """Stop a session, its Java at the latest after some seconds: the master that it signs off at may be gone."""
    gateway: Any = spark.sparkContext._gateway
    process = getattr(gateway, "proc", None)
    stopping = threading.Thread(target=_stopped, args=(spark,), daemon=True)
    stopping.start()
    stopping.join(_STOP)
    if stopping.is_alive() and process is not None:
        process.kill()
        stopping.join(_STOP)


def _stopped(spark: SparkSession) -> None:
    with contextlib.suppress(Exception):
        spark.stop()
