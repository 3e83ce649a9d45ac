"""Streams on Spark: a streaming data frame of documents in, one of verdicts out.

Features are made in parallel. One operator then judges all documents of a group in order, as ``neardup.Index`` does,
and keeps the contents of its window in Spark's state, together with each micro-batch.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming import StatefulProcessor

from neardup.classifier.classifier import Classifier, ClassifierLike
from neardup.classifier.vector import TITLE_NAMES, find_measure_column, find_usual_column
from neardup.documents.arrays import as_bytes, is_text_type
from neardup.documents.records import Reason, invalid_utf8
from neardup.documents.tables import TIME_NAMES, TextColumn
from neardup.errors import InputError, RecipeError, option
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.recipe import AnyRecipe, Recipe
from neardup.search.window import EventTime, WindowLength, check_keys
from neardup.spark.documents import check_frame, frame_column, frame_documents, frame_text
from neardup.spark.features import Broadcast
from neardup.spark.session import require_packages
from neardup.stream.document import Arrival
from neardup.stream.index import resolve_recipe, statistics_for
from neardup.stream.matcher import Matcher
from neardup.times import TIME_FORMS, times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.recipe.named import Choices

Bools = npt.NDArray[np.bool_]

_AGAINST = ("originals", "everything")
#: Packages that stateful operators need besides PySpark, with their oldest versions.
_PACKAGES = {"protobuf": (6, 33), "pandas": (2, 2)}
_STORE = "spark.sql.streaming.stateStore."
#: Settings that a stream needs; docs/spark-stream.md gives the reasons.
SETTINGS = {
    f"{_STORE}providerClass": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    f"{_STORE}rocksdb.changelogCheckpointing.enabled": "true",
}
_PARTITIONS = "spark.sql.shuffle.partitions"
_DEFAULT_PARTITIONS = "200"
#: Spark's names of the types that times can be read from.
_TIME_TYPES = (
    "timestamp",
    "date",
    "string",
    "varchar",
    "tinyint",
    "smallint",
    "int",
    "bigint",
    "float",
    "double",
    "decimal",
)


def stream(
    frame: DataFrame,
    recipe: AnyRecipe | None = None,
    *,
    classifier: ClassifierLike | None = None,
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

    The verdicts are those of ``neardup.Index`` on the same documents in the same order, however they are divided into
    micro-batches. docs/spark-stream.md says what a session needs.

    Parameters
    ----------
    frame : DataFrame
        A streaming data frame, one row a document.
    recipe, classifier, window, window_by, against, sample, **choices
        As in ``neardup.Index``.
    text_column, id_column, time_column, title_column : str, optional
        Columns; detected automatically. With ``time_column=""`` documents have the time of their micro-batch.
    order : str or list of str, optional
        The columns that say which of two documents of a micro-batch is earlier, by default their times; then the ids.
    by : str, optional
        A column: documents are compared only with those of the same value. Each value has its own window and clock,
        and they run in parallel. By default all documents are one group.

    Returns
    -------
    DataFrame
        id, kind (original, exact, near, or rejected), of, similarity, time, flag, o, a, b, score, evidence, serial
        (the document's number in its group, in order of arrival), by (the group). A row without id, text or readable
        time has the kind rejected, and the reason in flag.

    Raises
    ------
    NeardupError
        If an option does not fit, before anything starts.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.pandas.types import from_arrow_schema

    require_packages("streams on Spark need, here and on all workers,", _PACKAGES)
    check_frame(frame)
    if not frame.isStreaming:
        raise InputError(
            "the data frame is no stream: read it with spark.readStream, or give it to neardup.spark.dedup"
        )
    if by is not None and by not in frame.columns:
        raise InputError(f"the data frame has no column {by!r} for by; choose one of {', '.join(frame.columns)}")
    config = stream_config(recipe, classifier, window, window_by, against, sample, by, dict(choices))
    recipe_in_order = config.recipe.changed(keep="first")
    documents = frame_documents(frame, recipe_in_order, text_column=text_column, id_column=id_column, order=order)
    time = _time_column(frame, time_column, config.length)
    title = _title_column(frame, title_column, config.classifier)
    columns = {"time": time} if time else {}
    columns |= {"title": title} if title else {}
    orders = [order] if isinstance(order, str) else list(order or [])
    columns |= {f"{_ORDER}{number}": name for number, name in enumerate(orders)}
    group = F.lit("") if by is None else F.coalesce(frame_column(frame, by).cast("string"), F.lit(""))
    rows = frame.select(
        frame_column(frame, documents.id_column).alias("id"),
        frame_text(frame, documents.text_columns).alias("text"),
        *(frame_column(frame, name).alias(alias) for alias, name in columns.items()),
        group.alias("by"),
        F.unix_micros(F.current_timestamp()).alias("now"),
    )
    configure_session(frame.sparkSession, has_groups=by is not None)
    sent = Broadcast(frame.sparkSession, config)
    groups = rows.mapInArrow(partial(document_blobs, sent), BLOB_COLUMNS).groupBy("by")
    verdicts = groups.transformWithStateInPandas(StreamOperator(sent), "data binary", "Append", "None")
    return verdicts.mapInArrow(_decode_batches, from_arrow_schema(VERDICT_SCHEMA))


def _decode_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column("data").to_pylist():
            yield from decode_tables([data]).to_batches(max_chunksize=1 << 14)


def configure_session(spark: SparkSession, *, has_groups: bool) -> None:
    """Set what a stream needs in a session, unless its user has chosen otherwise."""
    for name, value in SETTINGS.items():
        current = spark.conf.get(name, None)
        # Stateful operators run only on RocksDB, whoever provides it.
        if not current or (name.endswith("providerClass") and "RocksDB" not in current):
            spark.conf.set(name, value)
    if not has_groups and spark.conf.get(_PARTITIONS) == _DEFAULT_PARTITIONS:
        spark.conf.set(_PARTITIONS, "1")


def _time_column(frame: DataFrame, named: str | None, length: WindowLength) -> str:
    """Return the column of times; empty if documents have the time of their micro-batch."""
    if named == "":
        return ""
    column = named or find_usual_column(frame.columns, TIME_NAMES)
    if not column:
        if length.unit in ("documents", "endless"):
            return ""
        raise InputError(
            f"the data frame has no column that is obviously the time, which the window {length} needs; name it with "
            f"time_column, or give time_column='' for the time of arrival: {', '.join(frame.columns)}"
        )
    kinds = dict(frame.dtypes)
    if column not in kinds:
        raise InputError(
            f"the data frame has no column {column!r} for time_column; choose one of {', '.join(frame.columns)}"
        )
    if not kinds[column].startswith(_TIME_TYPES):
        raise InputError(
            f"column {column!r} is of type {kinds[column]}, which is no time; name another with time_column: dates, "
            f"timestamps, or {TIME_FORMS}"
        )
    return column


def _title_column(frame: DataFrame, named: str | None, classifier: Classifier | None) -> str:
    if classifier is None or not classifier.vector.needs_titles:
        if named:
            raise RecipeError(f"title_column {named!r} is for classifiers that compare titles; leave it out")
        return ""
    return find_measure_column(
        frame.columns, named or classifier.title_column, TITLE_NAMES, "title", option("--title-column")
    )


#: What must stay the same when a stream goes on from a checkpoint, and how messages name it.
_IDENTITY_NAMES = {
    "recipe": "the recipe",
    "window": "window",
    "window_by": "window_by",
    "against": "against",
    "by": "by",
    "sample": "the sample",
}


class StreamConfig(NamedTuple):
    """The settings of a stream.

    Attributes
    ----------
    recipe : Recipe
        The recipe.
    length : Length
        The length of the window.
    against_everything : bool
        Whether documents are compared with duplicates, too.
    statistics, classifier : Statistics, Classifier or None
        The frequencies of a sample, and the classifier of the recipe.
    identity : dict of str to str
        Identifies the stream in its checkpoint.
    """

    recipe: Recipe
    length: WindowLength
    against_everything: bool
    statistics: Statistics | None
    classifier: Classifier | None
    identity: dict[str, str]

    def check(self, identity: dict[str, str]) -> None:
        """Raise RecipeError if a checkpoint is of another stream."""
        for name, title in _IDENTITY_NAMES.items():
            if identity.get(name) != self.identity.get(name):
                raise RecipeError(
                    f"this checkpoint began with {title} {identity.get(name)}, and this stream has "
                    f"{self.identity.get(name)}: use the same, or name another checkpoint"
                )


def stream_config(
    recipe: AnyRecipe | None,
    classifier: ClassifierLike | None,
    window: str | int | timedelta | None,
    window_by: str,
    against: str,
    sample: Sequence[str] | Statistics | None,
    by: str | None,
    choices: dict[str, Any],
) -> StreamConfig:
    """Return the settings of a stream; parameters and errors are those of ``stream``."""
    resolved, learned = resolve_recipe(recipe, classifier, choices)
    check_keys(resolved)
    length = WindowLength.parse(window, window_by)
    if against not in _AGAINST:
        raise RecipeError(f"against {against!r} is not known; choose originals or everything")
    statistics = statistics_for(resolved, sample)
    identity = {
        "recipe": resolved.fingerprint,
        "window": str(length),
        "window_by": window_by,
        "against": against,
        "by": by or "",
        "sample": "" if statistics is None else _statistics_digest(statistics),
    }
    return StreamConfig(resolved, length, against == "everything", statistics, learned, identity)


def _statistics_digest(statistics: Statistics) -> str:
    totals = f"{statistics.documents} {statistics.distinct} {statistics.largest_square_sum}".encode()
    return hashlib.sha256(totals + statistics.features.tobytes() + statistics.df.tobytes()).hexdigest()[:16]


#: by: the group; now: the time of the micro-batch in microseconds since 1970; data: documents as a blob.
BLOB_COLUMNS = "by string, now bigint, data binary"
NO_TIME = "no readable time"
_TEXT_COLUMNS = ("id", "text", "title")
_ORDER = "order_"
_BLOB_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")
_DIGESTS = ("digest0", "digest1", "text_digest0", "text_digest1")


def encode_table(table: pa.Table | pa.RecordBatch) -> bytes:
    """Return a table as a blob."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_BLOB_OPTIONS) as writer:
        writer.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_tables(blobs: Sequence[bytes]) -> pa.Table:
    """Return the tables of at least one blob as one table."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs])


def document_blobs(config: Broadcast[StreamConfig], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of rows, with their features, as a blob per group and batch; runs in a worker.

    The columns are by, now, id and text; optionally time, title, and order_0, order_1 ..., which say which document is
    earlier.
    """
    settings = config.value
    extractor = Extractor(settings.recipe, settings.statistics, digests=True)
    for batch in batches:
        for group in pc.unique(batch.column("by")).to_pylist():
            rows = batch.filter(pc.equal(batch.column("by"), group))
            documents = add_features(checked_documents(rows.drop_columns(["by"])), extractor)
            now = rows.column("now")[0].as_py()
            columns = [pa.array([group], pa.string()), pa.array([now], pa.int64()), pa.array([encode_table(documents)])]
            yield pa.RecordBatch.from_arrays(columns, ["by", "now", "data"])


def checked_documents(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the documents of some rows: id, text, title, time (microseconds or null), rejection, and the order.

    ``rejection`` is why a row is no document, null for documents.
    """
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    count = batch.num_rows
    columns: dict[str, pa.Array] = {}
    reasons: list[str | None] = [None] * count

    def reject(mask: Bools, reason: str) -> None:
        for i in np.flatnonzero(mask).tolist():
            reasons[i] = reasons[i] or reason

    for name in _TEXT_COLUMNS:
        if name in given:
            column, broken = _valid_strings(given[name])
        else:
            column, broken = pa.nulls(count, pa.large_string()), np.zeros(count, np.bool_)
        if name in ("id", "text"):
            missing = column.is_null().to_numpy(zero_copy_only=False).astype(np.bool_) & ~broken
            reject(missing, Reason.NO_ID if name == "id" else Reason.NO_TEXT)
            reject(broken, Reason.NOT_UTF8)
        columns[name] = column if name == "id" else column.fill_null("")
    columns["time"] = pa.nulls(count, pa.int64())
    if "time" in given:
        times, readable = times_of(given["time"])
        reject(~readable, NO_TIME)
        columns["time"] = pa.array(times, mask=~readable)
    columns["rejection"] = pa.array(reasons, pa.large_string())
    columns |= {name: column for name, column in given.items() if name.startswith(_ORDER)}
    return pa.RecordBatch.from_pydict(columns)


def _valid_strings(values: Any) -> tuple[pa.LargeStringArray, Bools]:
    """Return a column as strings, null where it is not valid UTF-8, and a mask of these."""
    broken = np.zeros(len(values), np.bool_)
    if not is_text_type(values.type):
        return values.cast(pa.large_string()), broken
    raw = as_bytes(values)
    broken[invalid_utf8(raw)] = True
    if broken.any():
        raw = pc.if_else(pa.array(broken), pa.scalar(None, pa.large_binary()), raw)
    return raw.cast(pa.large_string()), broken


def add_features(documents: pa.RecordBatch, extractor: Extractor) -> pa.RecordBatch:
    """Return documents with the columns that ``feature_block`` reads."""
    block = extractor(documents.column("text"))
    offsets = np.concatenate([[0], np.cumsum(block.sizes * 8)]).astype(np.int64)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(block.features))]
    columns = dict(zip(documents.schema.names, documents.columns, strict=True))
    for name, digest in zip(_DIGESTS, [*block.set_digests.T, *block.text_digests.T], strict=True):
        columns[name] = pa.array(np.ascontiguousarray(digest))
    columns["features"] = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(block.sizes), buffers)
    return pa.RecordBatch.from_pydict(columns | {"bytes": pa.array(block.text_bytes)})


def feature_block(table: pa.Table) -> Block:
    """Return the features of documents from ``add_features``."""
    column = table["features"].combine_chunks()
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    features = np.empty(0, np.uint64) if data is None else np.frombuffer(data, np.uint64, int(ends[-1]) // 8)
    digests = np.column_stack([table[name].to_numpy() for name in _DIGESTS])
    return Block(
        features[int(ends[0]) // 8 :].copy(),
        np.diff(ends) // 8,
        np.ascontiguousarray(digests[:, :2]),
        np.ascontiguousarray(digests[:, 2:]),
        table["bytes"].to_numpy(),
        np.empty(0, np.int64),
    )


def sort_documents(blobs: Sequence[bytes], now: int) -> tuple[pa.Table, pa.Table]:
    """Return the documents of a micro-batch, the earliest first, and the rows that are no documents.

    ``blobs`` are those of ``document_blobs``, in any order; documents without a time get the time ``now``.
    """
    table = decode_tables(blobs)
    table = table.append_column("moment", table["time"].fill_null(now))
    orders = [name for name in table.column_names if name.startswith(_ORDER)]
    # By all columns in the end, so that only documents equal in everything could change places.
    names = dict.fromkeys([*(orders or ["moment"]), "id", "text", "title", "moment"])
    table = table.take(pc.sort_indices(table, sort_keys=[(name, "ascending") for name in names]))
    is_rejected = pc.is_valid(table["rejection"])
    return table.filter(pc.invert(is_rejected)), table.filter(is_rejected)


#: Documents that are judged at a time; the window drops documents after each step.
_STEP = 1024
#: Windows that a worker process keeps in memory; the least recently used one goes first.
MAX_WINDOWS = 64
#: The kind of a row that is no document.
REJECTED_KIND = "rejected"
#: What the state keeps of each document in the window.
_WINDOW_SCHEMA = pa.schema(
    [("serial", pa.int64())]
    + [(name, pa.large_string()) for name in ("id", "text", "title")]
    + [(name, pa.int64()) for name in ("time", "leaves", "real")]
)
#: The columns of the verdicts.
VERDICT_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("kind", pa.string()),
        ("of", pa.string()),
        ("similarity", pa.float64()),
        ("time", pa.timestamp("us", "UTC")),
        ("flag", pa.string()),
        ("o", pa.int64()),
        ("a", pa.int64()),
        ("b", pa.int64()),
        ("score", pa.float64()),
        ("evidence", pa.string()),
        ("serial", pa.int64()),
        ("by", pa.string()),
    ]
)


class GroupWindow:
    """The window of a group, in the memory of a worker process.

    Attributes
    ----------
    token : str
        Identifies the micro-batch after which the window is in this state.
    now : float
        The time of the micro-batch, in seconds since 1970.
    matcher : Matcher
        Judges documents, and holds those in the window.
    """

    def __init__(self, config: StreamConfig) -> None:
        self.token, self.now = "", 0.0
        self.matcher = Matcher(
            config.recipe,
            config.length,
            lambda: self.now,
            against_everything=config.against_everything,
            statistics=config.statistics,
            classifier=config.classifier,
        )

    def restore(self, head: dict[str, Any], documents: pa.Table) -> None:
        """Rebuild the window from a state: its head, and the documents of its blobs."""
        self.matcher.restore(head["judge"])
        kept = [
            Arrival(
                row["id"],
                row["text"],
                row["title"],
                serial=row["serial"],
                event_time=EventTime(row["time"], row["leaves"], 0, row["real"]),
            )
            for row in documents.to_pylist()
        ]
        self.matcher.enter(kept[begin : begin + _STEP] for begin in range(0, len(kept), _STEP))

    def judge_documents(self, table: pa.Table, first: int, now: int) -> tuple[list[Arrival], pa.Table]:
        """Judge documents of ``sort_documents``; ``first`` is the number of the first one.

        Returns them with their verdicts and times, and those that entered the window.
        """
        self.now = now / 1e6
        judged, entered = list[Arrival](), [_WINDOW_SCHEMA.empty_table()]
        for begin in range(0, len(table), _STEP):
            part = table.slice(begin, _STEP)
            columns = part.select(["id", "text", "title", "time"]).to_pydict().values()
            arrivals = [
                Arrival(name, text, title, timestamp=time) for name, text, title, time in zip(*columns, strict=True)
            ]
            self.matcher.judge(arrivals, first + begin, feature_block(part))
            rows = [
                (
                    *(arrival.serial, arrival.id, arrival.text, arrival.title, arrival.event_time.time),
                    *(arrival.event_time.expiry, arrival.event_time.microseconds),
                )
                for arrival in arrivals
                if arrival.is_held
            ]
            named_rows = [dict(zip(_WINDOW_SCHEMA.names, row, strict=True)) for row in rows]
            entered.append(pa.Table.from_pylist(named_rows, _WINDOW_SCHEMA))
            judged += arrivals
            self.matcher.expire()
        return judged, pa.concat_tables(entered)


_WINDOWS: OrderedDict[str, GroupWindow] = OrderedDict()


def judge_batch(config: StreamConfig, state: Any, blobs: Sequence[bytes], now: int, by: str) -> pa.Table:
    """Judge a micro-batch of a group and update its state.

    Parameters
    ----------
    config : StreamConfig
        The settings.
    state : GroupState
        A head, and for each micro-batch a blob of the documents that entered the window.
    blobs : sequence of bytes
        All documents of the micro-batch, from ``document_blobs``.
    now : int
        The time of the micro-batch, in microseconds since 1970; the same when Spark repeats it.
    by : str
        The group.

    Returns
    -------
    pyarrow.Table
        The verdicts, as ``VERDICT_SCHEMA``.
    """
    data = state.head()
    head: dict[str, Any] = {"mark": config.identity, "stream": uuid.uuid4().hex, "token": "", "next": 0, "blobs": []}
    if data is not None:
        head = json.loads(data)
        config.check(head["mark"])
    documents, rejected = sort_documents(blobs, now)
    # The window is taken out while it changes: after a failure nobody must find it under its old token.
    window = _WINDOWS.pop(head["stream"], None)
    if window is None or window.token != head["token"]:
        window = GroupWindow(config)
        if head["token"]:
            stored = [state.get(number) for number, _, _ in head["blobs"]]
            window.restore(head, decode_tables(stored) if stored else _WINDOW_SCHEMA.empty_table())
    first = head["next"]
    judged, entered = window.judge_documents(documents, first, now)
    head["next"] = first + len(documents)
    number = head["blobs"][-1][0] + 1 if head["blobs"] else 0
    if len(entered):
        state.put(number, encode_table(entered))
        head["blobs"].append([number, entered["serial"][0].as_py(), head["next"]])
    head["judge"] = window.matcher.as_dict()
    held = window.matcher.documents.between
    for blob in [blob for blob in head["blobs"][:-1] if not held(blob[1], blob[2])]:
        state.drop(blob[0])
        head["blobs"].remove(blob)
    window.token = head["token"] = uuid.uuid4().hex
    state.set_head(json.dumps(head, separators=(",", ":")).encode())
    _WINDOWS[head["stream"]] = window
    while len(_WINDOWS) > MAX_WINDOWS:
        _WINDOWS.popitem(last=False)
    return _verdict_table(judged, rejected, by)


def _verdict_table(judged: Sequence[Arrival], rejected: pa.Table, by: str) -> pa.Table:
    rows = [
        {
            **arrival.verdict.as_dict(),
            **dict(zip("oab", arrival.verdict.counts or (None, None, None), strict=True)),
            "time": arrival.event_time.microseconds,
            "serial": arrival.serial,
        }
        for arrival in judged
    ]
    for name, reason in zip(rejected["id"].to_pylist(), rejected["rejection"].to_pylist(), strict=True):
        rows.append({"id": name, "kind": REJECTED_KIND, "flag": reason, "evidence": ""})
    names = [name for name in VERDICT_SCHEMA.names if name != "by"]
    columns = {name: pa.array([row.get(name) for row in rows]) for name in names}
    columns["time"] = columns["time"].cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns["by"] = pa.array([by] * len(rows), pa.string())
    return pa.table({name: column.cast(VERDICT_SCHEMA.field(name).type) for name, column in columns.items()})


class GroupState:
    """The state of a group: one head, and blobs by number. Spark commits it together with the micro-batch."""

    def __init__(self, handle: Any) -> None:
        self._head = handle.getValueState("head", "data binary")
        self._blobs = handle.getMapState("blobs", "number bigint", "data binary")

    def head(self) -> bytes | None:
        """Return the head; None before the first micro-batch."""
        row = self._head.get() if self._head.exists() else None
        return None if row is None else bytes(row[0])

    def set_head(self, data: bytes) -> None:
        """Replace the head."""
        self._head.update((data,))

    def get(self, number: int) -> bytes | None:
        """Return a blob; None if there is none."""
        row = self._blobs.getValue((number,)) if self._blobs.containsKey((number,)) else None
        return None if row is None else bytes(row[0])

    def put(self, number: int, data: bytes) -> None:
        """Add a blob."""
        self._blobs.updateValue((number,), (data,))

    def drop(self, number: int) -> None:
        """Remove a blob."""
        self._blobs.removeKey((number,))


class StreamOperator(StatefulProcessor):  # type: ignore[misc]
    """Spark's stateful operator, which judges the documents of a group."""

    def __init__(self, config: Broadcast[StreamConfig]) -> None:
        self._config = config

    def init(self, handle: Any) -> None:
        """Open the state."""
        self._state = GroupState(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Yield the verdicts on a micro-batch."""
        blobs: list[bytes] = []
        now = 0
        for frame in rows:
            blobs += map(bytes, frame["data"])
            now = int(frame["now"].iloc[0])
        table = judge_batch(self._config.value, self._state, blobs, now, str(key[0]))
        yield pd.DataFrame({"data": [encode_table(table)]})

    def close(self) -> None:
        """Do nothing: the window stays in the memory of this process."""
