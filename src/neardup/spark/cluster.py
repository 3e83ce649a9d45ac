"""The master and the workers of a session: checks that they are reachable, stay alive, and have this package."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup.errors import NeardupError, RecipeError
from neardup.spark.failures import first_line, spark_errors
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between two checks of the workers.
_POLL_SECONDS = 1.0

_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://\S+:\d+|yarn|k8s://\S+")
_LOOPBACK = re.compile(r"local\b.*|spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
#: Seconds in which a master must answer.
_CONNECT_TIMEOUT = 10


def is_local(master: str) -> bool:
    """Return whether all workers of a master are on this machine."""
    return _LOOPBACK.fullmatch(master) is not None


def has_executors(master: str) -> bool:
    """Return whether the workers of a master are processes other than the driver."""
    return not master.startswith("local") or master.startswith("local-cluster")


def check_master(master: str) -> None:
    """Check that a master is the address of a cluster, and that a standalone one answers.

    Spark itself would try for a minute.

    Raises
    ------
    RecipeError
        In one sentence.
    """
    if not _MASTER.fullmatch(master):
        raise RecipeError(
            f"master {master!r} is no address of a cluster: give local[N], spark://HOST:PORT, yarn or k8s://..."
        )
    if not master.startswith("spark://"):
        return
    error: Exception | None = None
    for address in master.removeprefix("spark://").split(","):
        host, _, port = address.rpartition(":")
        try:
            asyncio.run(asyncio.wait_for(_connect(host.strip("[]"), int(port)), _CONNECT_TIMEOUT))
        except (OSError, ValueError) as caught:
            error = caught
        else:
            return
    fault = first_line(str(error)) or f"nothing within {_CONNECT_TIMEOUT} s"
    raise RecipeError(
        f"no master of Spark answers at {master} ({fault}): check the address, and that it runs "
        "(scripts/cluster start runs one here)"
    )


async def _connect(host: str, port: int) -> None:
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


@cache
def sources_digest() -> str:
    """Return a digest of this package's code: during development, copies of one version may differ."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        digest.update(f"{source.relative_to(package)} ".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def wait_for_workers(spark: SparkSession, master: str, seconds: float) -> None:
    """Wait for the first worker of a cluster.

    Raises
    ------
    RecipeError
        If none arrives in time.
    """
    until = time.monotonic() + seconds
    while True:
        with spark_errors():
            if count_workers(spark):
                return
        if time.monotonic() > until:
            raise RecipeError(
                f"the cluster {master} gave no worker within {seconds:g} s: start workers, or require less with "
                "--spark-conf spark.executor.memory=1g and spark.executor.cores=1; --wait waits longer"
            )
        time.sleep(0.2)


def check_workers(spark: SparkSession) -> None:
    """Check, before the work starts, that all workers have this version and code of the package.

    Raises
    ------
    RecipeError
        In one sentence that says what a worker has.
    """
    count = max(int(spark.sparkContext.defaultParallelism), 1)
    with spark_errors():
        rows = spark.range(0, count, 1, count).mapInArrow(_probe(), "answer string").collect()
    for row in rows:
        answer = json.loads(row["answer"])
        fault = ""
        if "version" not in answer:
            fault = f"no neardup ({answer['missing']})"
        elif answer["version"] != __version__:
            fault = f"neardup {answer['version']}, and this is {__version__}"
        elif "missing" in answer:
            fault = f"a neardup that it cannot load ({answer['missing']})"
        elif answer["kernels"] != sources_digest():
            fault = f"a neardup {__version__} with other code than this one"
        if fault:
            raise RecipeError(
                f"the worker {answer['host']} of Spark has {fault}: give all workers the same wheel (docs/spark.md, "
                "the package on the workers)"
            )


def _probe() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return a worker function that reports the worker's package.

    It is sent as code, not by its name, because the worker may lack the package.
    """

    def probe(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import platform

        import pyarrow as pa

        for _ in batches:
            pass
        answer: dict[str, Any] = {"host": platform.node()}
        try:
            from neardup.spark import cluster
            from neardup.version import __version__

            answer["version"] = __version__
            answer["kernels"] = cluster.sources_digest()
        except Exception as error:  # an incomplete package may raise anything
            answer["missing"] = f"{type(error).__name__}: {error}"
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(answer)])], ["answer"])

    return probe


def count_workers(spark: SparkSession) -> int:
    """Return the number of workers of a cluster, without the driver, which Spark counts, too."""
    context: Any = spark.sparkContext
    return int(context._jsc.sc().getExecutorMemoryStatus().size()) - 1


@contextlib.contextmanager
def guard_workers(spark: SparkSession, master: str, seconds: float) -> Iterator[None]:
    """Cancel the jobs of the block when the cluster has had no worker for some time; Spark would wait for ever.

    Raises
    ------
    RecipeError
        If the jobs were cancelled.
    """
    ended, lost = threading.Event(), threading.Event()
    watching = threading.Thread(target=_watch, args=(spark, seconds, ended, lost), daemon=True)
    watching.start()
    try:
        yield
    except NeardupError:
        if lost.is_set():
            raise RecipeError(
                f"the cluster {master} has lost all its workers and gave no other within {seconds:g} s; the "
                "finished stages are in --checkpoint-dir DIR, if one was named: start workers, and go on with --resume"
            ) from None
        raise
    finally:
        ended.set()


def _watch(spark: SparkSession, seconds: float, ended: threading.Event, lost: threading.Event) -> None:
    """Cancel all jobs when they have waited too long for workers."""
    tracker = spark.sparkContext.statusTracker()
    seen = time.monotonic()
    while not ended.wait(_POLL_SECONDS):
        try:
            if count_workers(spark) > 0 or not tracker.getActiveJobsIds():
                seen = time.monotonic()
            elif time.monotonic() - seen > seconds:
                lost.set()
                spark.sparkContext.cancelAllJobs()
                return
        except Exception:  # the jobs themselves report what ended the session
            return
