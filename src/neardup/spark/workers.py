"""The workers of a session: whether there are any, and whether they have this package."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from neardup import __version__
from neardup.errors import RecipeError
from neardup.spark.ending import count_workers
from neardup.spark.faults import told_by_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SHIP = "give all workers the same wheel, or send this one along with --ship (docs/spark.md, shipping)"


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
            raise RecipeError(f"the worker {told['host']} of Spark has no neardup ({told['missing']}): {_SHIP}")
        if told["version"] != here["version"]:
            raise RecipeError(
                f"the worker {told['host']} of Spark has neardup {told['version']}, and this is {__version__}: {_SHIP}"
            )
        if "missing" in told:
            raise RecipeError(f"the worker {told['host']} of Spark cannot load neardup ({told['missing']}): {_SHIP}")
        if told["kernels"] != here["kernels"]:
            raise RecipeError(
                f"the worker {told['host']} of Spark has a neardup {__version__} with other code than this one: {_SHIP}"
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
            import neardup

            told["version"] = neardup.__version__
            from neardup.spark import workers

            told["kernels"] = workers.sources_digest()
        except Exception as error:  # an incomplete package may raise anything
            told["missing"] = f"{type(error).__name__}: {error}"
        yield pa.RecordBatch.from_arrays([pa.array([json.dumps(told)])], ["told"])

    return ask
