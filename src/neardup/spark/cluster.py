"""The master and the workers of a session: whether they are there, stay, and have this package."""

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
from neardup.spark.failures import first_line, told_by_spark
from neardup.version import __version__

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Seconds between looks at the workers.
_LOOK = 1.0

_MASTER = re.compile(r"local(\[(\d+|\*)(,\d+)?\])?|local-cluster\[\d+,\d+,\d+\]|spark://\S+:\d+|yarn|k8s://\S+")
_LOOPBACK = re.compile(r"local\b.*|spark://(127\.\d+\.\d+\.\d+|localhost|\[::1\]):\d+")
#: Seconds that a master has to answer in.
_PATIENCE = 10


def is_here(master: str) -> bool:
    """Return whether all workers of a master are on this machine."""
    return _LOOPBACK.fullmatch(master) is not None


def has_executors(master: str) -> bool:
    """Return whether the workers of a master are other processes than the driver's."""
    return not master.startswith("local") or master.startswith("local-cluster")


def check_master(master: str) -> None:
    """Refuse what is no address of a cluster, and a standalone one that is not reached; Spark tries for a minute.

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
            asyncio.run(asyncio.wait_for(_connected(host.strip("[]"), int(port)), _PATIENCE))
        except (OSError, ValueError) as caught:
            error = caught
        else:
            return
    raise RecipeError(
        f"no master of Spark answers at {master} ({first_line(str(error)) or f'nothing within {_PATIENCE} s'}): check "
        "the address, and that it runs (scripts/cluster start runs one here)"
    )


async def _connected(host: str, port: int) -> None:
    _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


_SAME = "give all workers the same wheel (docs/spark.md, the package on the workers)"


@cache
def sources_digest() -> str:
    """Return a digest of this package's code: two copies of one version may differ while in work."""
    own = Path(__file__).parent.parent
    found = hashlib.sha256()
    for source in sorted(own.rglob("*.py")):
        found.update(f"{source.relative_to(own)} ".encode() + source.read_bytes())
    return found.hexdigest()[:16]


def wait_for_workers(spark: SparkSession, master: str, seconds: float) -> None:
    """Wait until a cluster has given a worker.

    Raises
    ------
    RecipeError
        If none came in time.
    """
    until = time.monotonic() + seconds
    while True:
        with told_by_spark():
            if count_workers(spark):
                return
        if time.monotonic() > until:
            raise RecipeError(
                f"the cluster {master} gave no worker within {seconds:g} s: start workers, or ask less of each with "
                "--spark-conf spark.executor.memory=1g and spark.executor.cores=1; --wait waits longer"
            )
        time.sleep(0.2)


def check_workers(spark: SparkSession) -> None:
    """Refuse workers that lack this package, or have another version of it, before the work starts.

    Raises
    ------
    RecipeError
        In one sentence that says what they have.
    """
    count = max(int(spark.sparkContext.defaultParallelism), 1)
    with told_by_spark():
        rows = spark.range(0, count, 1, count).mapInArrow(_probe(), "told string").collect()
    here = {"version": __version__, "kernels": sources_digest()}
    for row in rows:
        told = json.loads(row["told"])
        if "version" not in told:
            raise RecipeError(f"the worker {told['host']} of Spark has no neardup ({told['missing']}): {_SAME}")
        if told["version"] != here["version"]:
            raise RecipeError(
                f"the worker {told['host']} of Spark has neardup {told['version']}, and this is {__version__}: {_SAME}"
            )
        if "missing" in told:
            raise RecipeError(f"the worker {told['host']} of Spark cannot load neardup ({told['missing']}): {_SAME}")
        if told["kernels"] != here["kernels"]:
            raise RecipeError(
                f"the worker {told['host']} of Spark has a neardup {__version__} with other code than this one: {_SAME}"
            )


def _probe() -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return what asks a worker for its package; it travels as a whole, for the worker may have none."""

    def ask(batches: Iterator[Any]) -> Iterator[Any]:
        import json
        import platform

        import pyarrow as pa

        for _ in batches:
            pass
        told: dict[str, Any] = {"host": platform.node()}
        try:
            from neardup.spark import cluster as own
            from neardup.version import __version__

            told["version"] = __version__
            told["kernels"] = own.sources_digest()
        except Exception as error:  # an incomplete package may raise anything
            told["missing"] = f"{type(error).__name__}: {error}"
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(told)])], ["told"])

    return ask


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
                "done is in --checkpoint-dir DIR, if one was named: start workers, and go on from it with --resume"
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
