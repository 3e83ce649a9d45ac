"""The flow on Spark: a stream of documents in, a stream of verdicts out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa

from neardup.classifier.classifier import Classifier, Given
from neardup.classifier.columns import TITLES
from neardup.classifier.columns import column_of as measured_column
from neardup.documents.tables import TIME_NAMES, TextColumn
from neardup.errors import InputError, RecipeError, option
from neardup.features.statistics import Statistics
from neardup.recipe import AnyRecipe
from neardup.search.window import Length, check_keys
from neardup.spark.documents import column_of, documents_of, text_of
from neardup.spark.features import Shared
from neardup.spark.flow import BLOB_COLUMNS, VERDICTS, FlowOperator, Work, blobs_of, unpacked
from neardup.spark.session import require_packages
from neardup.stream.index import chosen_recipe, statistics_for
from neardup.times import FORMS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.recipe.named import Choices

_AGAINST = ("originals", "everything")
#: What operators with state need besides PySpark, in the oldest versions that do.
_NEEDED = {"protobuf": (6, 33), "pandas": (2, 2)}
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


def work_for(
    recipe: AnyRecipe,
    classifier: Given | None,
    window: str | int | timedelta | None,
    window_by: str,
    against: str,
    sample: Sequence[str] | Statistics | None,
    by: str | None,
    choices: dict[str, Any],
) -> Work:
    """Return what a stream does; the parameters are those of ``neardup.spark.stream``.

    Raises
    ------
    NeardupError
        If an option does not fit.
    """
    own_recipe = classifier is not None and recipe == "default"
    wanted, learned = chosen_recipe(None if own_recipe else recipe, classifier, choices)
    check_keys(wanted)
    length = Length.parse(window, window_by)
    if against not in _AGAINST:
        raise RecipeError(f"against {against!r} is not known; choose originals or everything")
    statistics = statistics_for(wanted, sample)
    mark = {
        "recipe": wanted.fingerprint,
        "window": str(length),
        "window_by": window_by,
        "against": against,
        "by": by or "",
        "sample": _digest(statistics),
    }
    return Work(wanted, length, against == "everything", statistics, learned, mark)


def _digest(statistics: Statistics | None) -> str:
    if statistics is None:
        return ""
    told = f"{statistics.documents} {statistics.distinct} {statistics.largest_square_sum}".encode()
    return hashlib.sha256(told + statistics.features.tobytes() + statistics.df.tobytes()).hexdigest()[:16]


def stream(
    frame: DataFrame,
    recipe: AnyRecipe = "default",
    *,
    classifier: Given | None = None,
    window: str | int | timedelta | None = "24h",
    window_by: str = "time",
    against: str = "originals",
    text_column: TextColumn = None,
    id_column: str | None = None,
    time_column: str | None = None,
    title_column: str | None = None,
    order: str | Sequence[str] | None = None,
    sample: Sequence[str] | Statistics | None = None,
    by: str | None = None,
    **choices: Unpack[Choices],
) -> DataFrame:
    """Judge the documents of a stream as they arrive: a streaming data frame of verdicts, for any sink.

    The verdicts are those of ``neardup.Index`` on the same documents in the same order, however they are cut into
    micro-batches. The page docs/spark-stream.md says what a session needs.

    Parameters
    ----------
    frame : DataFrame
        A streaming data frame, one row a document.
    recipe, classifier, window, window_by, against, sample, **choices
        As in ``neardup.Index``.
    text_column, id_column, time_column, title_column : str, optional
        Columns; detected automatically. ``time_column=""``: documents are of the time of their
        micro-batch.
    order : str or list of str, optional
        The columns that say which of two documents of a micro-batch is earlier, by default their times; then the ids.
    by : str, optional
        A column: documents are compared with those of the same value alone, each value with a window and a clock of
        its own, in parallel. By default all are one group.

    Returns
    -------
    DataFrame
        id, kind (original, exact, near, or set-aside), of, similarity, time, flag, o, a, b, score, evidence, serial
        (its number in its group, in order of arrival), origin (empty), by (the group). A row without id, text or
        readable time has the kind set-aside, and the reason in flag.

    Raises
    ------
    NeardupError
        If an option does not fit, before anything starts.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    require_packages("streams on Spark need, here and on all workers,", _NEEDED)
    if not frame.isStreaming:
        raise InputError(
            "the data frame is no stream: read it with spark.readStream, or give it to neardup.spark.dedup"
        )
    if by is not None and by not in frame.columns:
        raise InputError(f"the data frame has no column {by!r} for by; choose one of {', '.join(frame.columns)}")
    work = work_for(recipe, classifier, window, window_by, against, sample, by, dict(choices))
    first = work.recipe.changed(keep="first")
    found = documents_of(frame, first, text_column=text_column, id_column=id_column, order=order)
    time = _time_column(frame, time_column, work.length)
    title = _title_column(frame, title_column, work.classifier)
    columns = {"time": time} if time else {}
    columns |= {"title": title} if title else {}
    orders = [order] if isinstance(order, str) else list(order or [])
    columns |= {f"order_{number}": name for number, name in enumerate(orders)}
    group = F.lit("") if by is None else F.coalesce(column_of(frame, by).cast("string"), F.lit(""))
    first_two = column_of(frame, found.id).alias("id"), text_of(frame, found.texts).alias("text")
    others = (column_of(frame, name).alias(new) for new, name in columns.items())
    rows = frame.select(*first_two, *others, group.alias("by"))
    dated = rows.withColumn("now", F.unix_micros(F.current_timestamp()))
    prepare(frame.sparkSession, alone=by is None)
    sent = Shared(frame.sparkSession, work)
    groups = dated.mapInArrow(partial(blobs_of, sent), BLOB_COLUMNS).groupBy("by")
    found = groups.transformWithStateInPandas(FlowOperator(sent), "data binary", "Append", "None")
    return found.mapInArrow(_rows, from_arrow_schema(VERDICTS))


def prepare(spark: SparkSession, *, alone: bool) -> None:
    """Give a session what a stream needs, where its user has not chosen otherwise."""
    for name, value in SETTINGS.items():
        given = spark.conf.get(name, None)
        # Operators with state run on no other store than RocksDB, whoever provides it.
        if not given or (name.endswith("providerClass") and "RocksDB" not in given):
            spark.conf.set(name, value)
    if alone and spark.conf.get(_PARTITIONS) == _THEIRS:
        spark.conf.set(_PARTITIONS, "1")


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


def _title_column(frame: DataFrame, named: str | None, classifier: Classifier | None) -> str:
    if classifier is None or not classifier.vector.needs_titles:
        if named:
            raise RecipeError(f"title_column {named!r} is for classifiers that compare titles; leave it out")
        return ""
    return measured_column(frame.columns, named or classifier.title_column, TITLES, "title", option("--title-column"))
