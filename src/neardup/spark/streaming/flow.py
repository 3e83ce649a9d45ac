"""A streaming data frame of documents -> a streaming data frame of verdicts."""

from __future__ import annotations

import hashlib
import importlib.metadata
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup.decision.choosing import Given
from neardup.decision.columns import TITLES
from neardup.decision.decision import Decision
from neardup.documents.columns import TIME_NAMES
from neardup.errors import InputError, RecipeError
from neardup.features.statistics import Statistics
from neardup.flow.arriving import chosen_recipe, statistics_for
from neardup.recipe import AnyRecipe
from neardup.spark.documents import column_of, documents_of
from neardup.spark.packing import labels
from neardup.spark.streaming.arriving import BLOB_COLUMNS, blobs_of
from neardup.spark.streaming.sending import Sent
from neardup.spark.streaming.tables import VERDICT_COLUMNS, unpacked
from neardup.spark.streaming.work import Work
from neardup.times import FORMS
from neardup.window.keys import check_keys
from neardup.window.times import Length

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_AGAINST = ("originals", "everything")
_PROTOBUF = (6, 33)
_STORE = "spark.sql.streaming.stateStore."
#: What a stream needs of its session, and with what reason: docs/spark-stream.md.
SETTINGS = {
    f"{_STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true",
}
_PARTITIONS = "spark.sql.shuffle.partitions"
#: What Spark takes for as many parts as it would cut any work into.
_THEIRS = "200"
_TIMES = (
    "timestamp",
    "date",
    "string",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
    "varchar",
)


def check_packages() -> None:
    """Refuse, before anything starts, to run without what operators with state need.

    Raises
    ------
    RecipeError
        In one sentence that says what to install.
    """
    for name, oldest in (("protobuf", _PROTOBUF), ("pandas", (2, 2))):
        wanted = ".".join(map(str, oldest))
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = ""
        if tuple(map(int, re.findall(r"\d+", version)[:2])) < oldest:
            found = f"there is {version}" if version else "it is not installed"
            raise RecipeError(
                f"streams on Spark need the package {name} {wanted} or newer, here and on all workers, and {found}: "
                f"pip install '{name}>={wanted}'"
            )


def work_for(
    recipe: AnyRecipe | None,
    decision: Given | None,
    window: str | int | timedelta | None,
    window_by: str,
    against: str,
    sample: Sequence[str] | Statistics | None,
    shards: int,
    choices: dict[str, Any],
) -> Work:
    """Return what a stream does; the parameters are those of ``neardup.spark.stream``.

    Raises
    ------
    NeardupError
        If an option does not fit.
    """
    if decision is not None and recipe == "default":
        recipe = None
    wanted, learned = chosen_recipe(recipe, decision, choices)
    check_keys(wanted)
    length = Length.parse(window, window_by)
    if against not in _AGAINST:
        raise RecipeError(f"against {against!r} is not known; choose originals or everything")
    if shards < 1:
        raise RecipeError(f"shards {shards} is below 1; leave it out, or give one at least")
    statistics = statistics_for(wanted, sample)
    mark = {
        "recipe": wanted.fingerprint,
        "window": str(length),
        "window_by": window_by,
        "against": against,
        "shards": str(shards),
        "sample": _digest(statistics),
    }
    return Work(wanted, length, against == "everything", statistics, learned, mark)


def _digest(statistics: Statistics | None) -> str:
    if statistics is None:
        return ""
    told = f"{statistics.documents} {statistics.distinct} {statistics.heaviest}".encode()
    return hashlib.sha256(told + statistics.features.tobytes() + statistics.df.tobytes()).hexdigest()[:16]


def verdicts_of(
    frame: DataFrame,
    recipe: AnyRecipe | None = "default",
    *,
    decision: Given | None = None,
    window: str | int | timedelta | None = "24h",
    window_by: str = "time",
    against: str = "originals",
    text_column: str | None = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    order: str | Sequence[str] | None = None,
    sample: Sequence[str] | Statistics | None = None,
    shards: int | None = None,
    choices: dict[str, Any] | None = None,
) -> DataFrame:
    """Return the verdicts on a stream of documents; see ``neardup.spark.stream``."""
    check_packages()
    check_stream(frame)
    spark = frame.sparkSession
    count = int(spark.sparkContext.defaultParallelism) if shards is None else shards
    work = work_for(recipe, decision, window, window_by, against, sample, count, choices or {})
    first = work.recipe.changed(keep="first")
    found = documents_of(frame, first, text_column=text_column, id_column=id_column, order=order)
    time = _time_column(frame, time_column, work.length)
    title = _title_column(frame, title_column, work.decision)
    columns = {"id": found.id, "text": found.text} | ({"time": time} if time else {})
    columns |= {"title": title} if title else {}
    by = [order] if isinstance(order, str) else list(order or [])
    columns |= {f"order_{number}": name for number, name in enumerate(by)}
    return judged(frame.select(*(column_of(frame, name).alias(new) for new, name in columns.items())), work)


def judged(rows: DataFrame, work: Work) -> DataFrame:
    """Return the verdicts on rows of ``arriving.blobs_of``, but for the column now."""
    from pyspark.sql import functions as F

    from neardup.spark.streaming.processors import ANSWERS, SETTLED, SettlingOperator, ShardOperator

    spark = rows.sparkSession
    shards = int(work.mark["shards"])
    prepare(spark, shards)
    held = Sent(spark, work)
    numbers = [int(label) for label in labels(shards)]
    dated = rows.withColumn("now", F.unix_micros(F.current_timestamp()))
    blobs = dated.mapInArrow(blobs_of, BLOB_COLUMNS)
    asked = blobs.withColumn("shard", F.explode(F.array(*map(F.lit, numbers))))
    answers = asked.groupBy("shard").transformWithStateInPandas(ShardOperator(held, numbers), ANSWERS, "Append", "None")
    together = answers.withColumn("all", F.lit(0)).groupBy("all")
    settled = together.transformWithStateInPandas(SettlingOperator(held), SETTLED, "Append", "None")
    return settled.mapInArrow(_rows, VERDICT_COLUMNS)


def prepare(spark: SparkSession, shards: int) -> None:
    """Give a session what a stream needs, where its user has not chosen otherwise."""
    for name, value in SETTINGS.items():
        given = spark.conf.get(name, None)
        # Operators with state run on no other store than RocksDB, whoever provides it.
        if not given or (name.endswith("providerClass") and "RocksDB" not in given):
            spark.conf.set(name, value)
    if spark.conf.get(_PARTITIONS) == _THEIRS:
        spark.conf.set(_PARTITIONS, str(shards))


def check_stream(frame: DataFrame) -> None:
    """Refuse a data frame that is no stream.

    Raises
    ------
    InputError
        If it is none.
    """
    if not frame.isStreaming:
        raise InputError(
            "the data frame is no stream: read it with spark.readStream, or give it to neardup.spark.dedup"
        )


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("data").to_pylist():
            yield from unpacked([data]).to_batches(max_chunksize=1 << 14)


def _time_column(frame: DataFrame, named: str | None, length: Length) -> str:
    """Return the column of times; empty where documents are of the time of their micro-batch."""
    if named == "":
        return ""
    lowered = {name.lower(): name for name in reversed(frame.columns)}
    found = named or next((lowered[name] for name in TIME_NAMES if name in lowered), "")
    if not found:
        if length.unit in ("documents", "endless"):
            return ""
        raise InputError(
            f"the data frame has no column that is obviously the time, which the window {length} goes by; name it with "
            f"time_column, or give time_column='' for the time of arrival: {', '.join(frame.columns)}"
        )
    kinds = dict(frame.dtypes)
    if found not in kinds:
        raise InputError(
            f"the data frame has no column {found!r} for time_column; choose one of {', '.join(frame.columns)}"
        )
    if not kinds[found].startswith(_TIMES):
        raise InputError(
            f"column {found!r} is of type {kinds[found]}, which is no time; name another with time_column: dates, "
            f"timestamps, or {FORMS}"
        )
    return found


def _title_column(frame: DataFrame, named: str | None, decision: Decision | None) -> str:
    if decision is None or not decision.vector.needs_titles:
        if named:
            raise RecipeError(f"title_column {named!r} is for decisions that compare titles; leave it out")
        return ""
    lowered = {name.lower(): name for name in reversed(frame.columns)}
    found = named or decision.title_column or next((lowered[name] for name in TITLES if name in lowered), "")
    if found not in frame.columns:
        raise InputError(
            "title is one of the decision's measures, and the data frame has no such column; name it with "
            f"title_column: {', '.join(frame.columns)}"
        )
    return str(found)
