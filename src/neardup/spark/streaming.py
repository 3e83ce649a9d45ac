"""The flow on Spark: a stream of documents in, a stream of verdicts out.

Features are made in parallel. Then one operator judges all documents of a group in order, as ``nd.Index`` does, and
keeps what its window holds in Spark's state, with each micro-batch.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import re
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming import StatefulProcessor

from neardup.classifier.classifier import Classifier, Given
from neardup.classifier.columns import TITLES
from neardup.documents.records import is_text_type
from neardup.documents.tables import TIME_NAMES, TextColumn
from neardup.errors import InputError, RecipeError
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import Block
from neardup.recipe import AnyRecipe, Recipe
from neardup.search.window import EventTime, FlowClock, Length, check_keys
from neardup.spark.documents import column_of, documents_of, text_of
from neardup.stream.document import Document, Verdict
from neardup.stream.index import chosen_recipe, record_at, statistics_for, verdicts_of
from neardup.stream.judge import Judge
from neardup.stream.parts import Kept, Record
from neardup.times import FORMS, times_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


#: What of a stream must stay as it was when it goes on from a checkpoint, and what it is called.
_SAID = {
    "recipe": "the recipe",
    "window": "window",
    "window_by": "window_by",
    "against": "against",
    "by": "by",
    "sample": "the sample",
}


class Work(NamedTuple):
    """What is done with documents.

    Attributes
    ----------
    recipe : Recipe
        What matches.
    length : Length
        Of the window.
    everything : bool
        Whether duplicates are partners, too.
    statistics, classifier : Statistics, Classifier or None
        What the recipe takes from a collection; the classifier whose it is.
    mark : dict of str to str
        By what a checkpoint of this stream is known.
    """

    recipe: Recipe
    length: Length
    everything: bool
    statistics: Statistics | None
    classifier: Classifier | None
    mark: dict[str, str]

    def check(self, mark: dict[str, str]) -> None:
        """Refuse to go on from the checkpoint of another stream.

        Raises
        ------
        RecipeError
            If it is another one's.
        """
        for name, called in _SAID.items():
            if mark.get(name) != self.mark.get(name):
                raise RecipeError(
                    f"this checkpoint was begun with {called} {mark.get(name)}, and this stream has "
                    f"{self.mark.get(name)}: give what it was begun with, or name another checkpoint"
                )


class Sent:
    """Work that was given to all workers.

    Spark asks operators with state for their layout in a process that is given no broadcasts, so that what they refer
    to is looked for when it is needed, and not when they arrive.

    Parameters
    ----------
    spark : SparkSession
        Whose workers.
    work : Work
        What they are given.
    """

    def __init__(self, spark: SparkSession, work: Work) -> None:
        self._broadcast: Any = spark.sparkContext.broadcast(work)

    @property
    def value(self) -> Work:
        """The work."""
        found: Work = self._broadcast.value
        return found

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        find, number = self._broadcast.__reduce__()
        return Received, (find, number)


class Received:
    """Such work in a worker.

    Parameters
    ----------
    find : callable
        Gives what was sent, from its number.
    number : tuple
        What it takes.
    """

    def __init__(self, find: Callable[..., Any], number: tuple[Any, ...]) -> None:
        self._find, self._number = find, number

    @property
    def value(self) -> Work:
        """The work; a process loads it once."""
        found: Work = self._find(*self._number).value
        return found


#: by: the group; now: the time of the micro-batch in microseconds since 1970; data: documents as a blob.
BLOB_COLUMNS = "by string, now bigint, data binary"
NO_ID, NO_TEXT, NO_TIME, NOT_UTF8 = "no id", "no text", "no readable time", "not valid UTF-8"
_COLUMNS = ("id", "text", "title", "origin")
_ORDER = "order_"
_WRITTEN = pa.ipc.IpcWriteOptions(compression="zstd")
#: What a window takes of the features of a document, besides themselves.
_MARKS = ("mark0", "mark1", "text_mark0", "text_mark1")


def packed(table: pa.Table | pa.RecordBatch) -> bytes:
    """Return a table as a blob."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_WRITTEN) as writer:
        writer.write(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def unpacked(blobs: Sequence[bytes]) -> pa.Table:
    """Return the table of some blobs, one behind the other; there is one at least."""
    return pa.concat_tables([pa.ipc.open_stream(blob).read_all() for blob in blobs])


def blobs_of(work: Sent | Received, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of rows with their features as blobs, one a group and batch; in a worker.

    The columns are by, now, id and text, and where there are some time, title, origin, and order_0, order_1 ...: what
    says which document is earlier.
    """
    given = work.value
    extractor = Extractor(given.recipe, given.statistics, digests=True)
    for batch in batches:
        for group in pc.unique(batch.column("by")).to_pylist():
            some = batch.filter(pc.equal(batch.column("by"), group))
            documents = arrived_documents(some.drop_columns(["by"]))
            documents = with_features(documents, extractor)
            now = some.column("now")[0].as_py()
            columns = [pa.array([group], pa.string()), pa.array([now], pa.int64()), pa.array([packed(documents)])]
            yield pa.RecordBatch.from_arrays(columns, ["by", "now", "data"])


def with_features(documents: pa.RecordBatch, extractor: Extractor) -> pa.RecordBatch:
    """Return documents with the columns that ``block_of`` takes."""
    block = extractor(documents.column("text"))
    ends = np.concatenate([[0], np.cumsum(block.sizes * 8)]).astype(np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(block.features))]
    features = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(block.sizes), buffers)
    marks = [*block.marks.T, *block.text_marks.T]
    columns = {name: pa.array(np.ascontiguousarray(mark)) for name, mark in zip(_MARKS, marks, strict=True)}
    given = dict(zip(documents.schema.names, documents.columns, strict=True))
    return pa.RecordBatch.from_pydict(given | columns | {"features": features, "bytes": pa.array(block.text_bytes)})


def block_of(table: pa.Table) -> Block:
    """Return the features of documents."""
    column = table["features"].combine_chunks()
    column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    _, offsets, data = column.buffers()
    ends = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    whole = np.empty(0, np.uint64) if data is None else np.frombuffer(data, np.uint64, int(ends[-1]) // 8)
    marks = np.column_stack([table[name].to_numpy() for name in _MARKS])
    return Block(
        whole[int(ends[0]) // 8 :].copy(),
        np.diff(ends) // 8,
        np.ascontiguousarray(marks[:, :2]),
        np.ascontiguousarray(marks[:, 2:]),
        table["bytes"].to_numpy(),
        np.empty(0, np.int64),
    )


def arrived_documents(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the documents of some rows: id, text, title, origin, time (microseconds or null), aside, and the order."""
    given = dict(zip(batch.schema.names, batch.columns, strict=True))
    count = batch.num_rows
    nothing = pa.nulls(count, pa.large_string())
    columns: dict[str, pa.Array] = {}
    aside: list[str | None] = [None] * count
    for name in _COLUMNS:
        column, broken = strings_of(given[name]) if name in given else (nothing, _none(count))
        missing = _mask(column.is_null()) & ~broken
        if name in ("id", "text"):
            _note(aside, missing, NO_ID if name == "id" else NO_TEXT)
            _note(aside, broken, NOT_UTF8)
        columns[name] = column if name == "id" else column.fill_null("")
    columns["time"] = pa.nulls(count, pa.int64())
    if "time" in given:
        times, readable = times_of(given["time"])
        _note(aside, ~readable, NO_TIME)
        columns["time"] = pa.array(times, mask=~readable)
    columns["aside"] = pa.array(aside, pa.large_string())
    columns |= {name: column for name, column in given.items() if name.startswith(_ORDER)}
    return pa.RecordBatch.from_pydict(columns)


def strings_of(values: Any) -> tuple[pa.LargeStringArray, npt.NDArray[np.bool_]]:
    """Return a column as texts, and which of them are not valid UTF-8: those are null."""
    if not is_text_type(values.type):
        return values.cast(pa.large_string()), _none(len(values))
    raw = values.cast(pa.large_binary())
    try:
        return raw.cast(pa.large_string()), _none(len(values))
    except pa.ArrowInvalid:
        found = [_decoded(value) for value in raw.to_pylist()]
        text = pa.array(found, pa.large_string())
        return text, _mask(text.is_null()) & ~_mask(raw.is_null())


def in_order(blobs: Sequence[bytes], now: int) -> tuple[pa.Table, pa.Table]:
    """Return the documents of a micro-batch, the earliest first, and what was rejected.

    Parameters
    ----------
    blobs : sequence of bytes
        Of ``blobs_of``, in any order.
    now : int
        The time of documents without one, in microseconds since 1970.
    """
    table = unpacked(blobs)
    table = table.append_column("moment", table["time"].fill_null(now))
    given = [name for name in table.column_names if name.startswith(_ORDER)]
    # At last by all there is, so that only documents that are equal in everything could change places.
    by = dict.fromkeys([*(given or ["moment"]), "id", "text", "title", "origin", "moment"])
    keys = [(name, "ascending") for name in by]
    table = table.take(pc.sort_indices(table, sort_keys=keys))
    aside = pc.is_valid(table["aside"])
    return table.filter(pc.invert(aside)), table.filter(aside)


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None


def _note(aside: list[str | None], mask: npt.NDArray[np.bool_], reason: str) -> None:
    for i in np.flatnonzero(mask).tolist():
        aside[i] = aside[i] or reason


def _mask(array: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.bool_)


def _none(count: int) -> npt.NDArray[np.bool_]:
    return np.zeros(count, np.bool_)


#: Documents that are judged at once: what has left the window goes after each such step.
_AT_ONCE = 1024
#: Windows that a worker process keeps, those not used for longest dropped first.
WINDOWS = 64
#: The kind of a row that is no document.
SET_ASIDE = "set-aside"
#: What is kept of a held document.
_HELD = pa.schema(
    [
        ("serial", pa.int64()),
        ("id", pa.large_string()),
        ("text", pa.large_string()),
        ("title", pa.large_string()),
        ("time", pa.int64()),
        ("leaves", pa.int64()),
        ("real", pa.int64()),
    ]
)
#: What comes out of a stream, for Arrow and for Spark.
VERDICTS = pa.schema(
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
        ("origin", pa.string()),
        ("by", pa.string()),
    ]
)
VERDICT_COLUMNS = (
    "id string, kind string, of string, similarity double, time timestamp, flag string, o bigint, a bigint, b bigint, "
    "score double, evidence string, serial bigint, origin string, by string"
)


class Flow:
    """The window of a group in the memory of a process, and what it holds by number.

    Parameters
    ----------
    work : Work
        What is done.

    Attributes
    ----------
    token : str
        Which micro-batch it is of.
    """

    def __init__(self, work: Work) -> None:
        self.token, self.now = "", 0.0
        self.names: dict[int, str] = {}
        self._records: dict[int, Record] = {}
        self.judge = Judge(
            work.recipe,
            FlowClock(work.length, lambda: self.now),
            everything=work.everything,
            statistics=work.statistics,
            record_of=self._records.get,
            classifier=work.classifier,
        )

    def restore(self, head: dict[str, Any], held: pa.Table) -> None:
        """Bring back the window that a state holds."""
        revived = {serial for serial, _ in head["judge"]["revived"]}
        rows = [row for row in held.to_pylist() if row["serial"] >= head["live"] or row["serial"] in revived]
        self.judge.restore(head["judge"])
        for row in rows:
            self._hold(row["serial"], row["id"], row["text"], row["title"], row["real"])
        kept = [Kept(row["serial"], row["text"], row["time"], row["leaves"]) for row in rows]
        self.judge.enter(kept[begin : begin + _AT_ONCE] for begin in range(0, len(kept), _AT_ONCE))
        self._expire()

    def judged(self, table: pa.Table, first: int, now: int) -> tuple[list[Verdict], list[EventTime], pa.Table]:
        """Return the verdicts on documents of ``in_order``, their moments, and what of them is held."""
        self.now = now / 1e6
        verdicts, moments, held = list[Verdict](), list[EventTime](), [_HELD.empty_table()]
        for begin in range(0, len(table), _AT_ONCE):
            part = table.slice(begin, _AT_ONCE)
            given = part.select(["id", "text", "title", "time"]).to_pydict()
            ids, texts, titles = given["id"], given["text"], given["title"]
            some = [self.judge.clock.see(time) for time in given["time"]]
            reals = [moment.real for moment in some]
            records: list[Record] = []
            if self.judge.needs_records:
                records = [record_at(*parts) for parts in zip(texts, titles, reals, strict=True)]
            number = first + begin
            found = self.judge.judge(block_of(part), records, some, number)
            names = self.names | {number + i: name for i, name in enumerate(ids)}
            verdicts += verdicts_of([Document(name, "") for name in ids], some, found, self.judge, names.get)
            rows = []
            for i in np.flatnonzero(found.held).tolist():
                self._hold(number + i, ids[i], texts[i], titles[i], reals[i])
                rows.append((number + i, ids[i], texts[i], titles[i], some[i].time, some[i].leaves, reals[i]))
            held.append(pa.Table.from_pylist([dict(zip(_HELD.names, row, strict=True)) for row in rows], _HELD))
            moments += some
            self._expire()
        return verdicts, moments, pa.concat_tables(held)

    def live(self, revived: set[int], following: int) -> int:
        """Return the first number from which on all that was held is held still; ``following`` is the next one."""
        return next((serial for serial in self.names if serial not in revived), following)

    def _hold(self, serial: int, name: str, text: str, title: str, real: int) -> None:
        self.names[serial] = name
        if self.judge.needs_records:
            self._records[serial] = record_at(text, title, real)

    def _expire(self) -> None:
        for serial in self.judge.expire().tolist():
            self.names.pop(serial, None)
            self._records.pop(serial, None)


_FLOWS: OrderedDict[str, Flow] = OrderedDict()


def judged(work: Work, state: Any, blobs: Sequence[bytes], now: int, by: str) -> pa.Table:
    """Return the verdicts on a micro-batch of a group, and remember what is held.

    Parameters
    ----------
    work : Work
        What is done.
    state : StateChest
        What is remembered of the group: a head, and of each micro-batch what entered the window.
    blobs : sequence of bytes
        All documents of the micro-batch, of ``blobs_of``.
    now : int
        Its time, in microseconds since 1970; the same when it is tried again.
    by : str
        The group.
    """
    data = state.head()
    head: dict[str, Any] = {"mark": work.mark, "stream": uuid.uuid4().hex, "token": "", "next": 0, "blobs": []}
    if data is not None:
        head = json.loads(data)
        work.check(head["mark"])
    table, aside = in_order(blobs, now)
    # Should this fail, the window is not what its token says, and nobody finds it.
    flow = _FLOWS.pop(head["stream"], None)
    if flow is None or flow.token != head["token"]:
        flow = Flow(work)
        if head["token"]:
            held = [state.get(number) for number, _, _ in head["blobs"]]
            flow.restore(head, unpacked(held) if held else _HELD.empty_table())
    first = head["next"]
    verdicts, moments, entered = flow.judged(table, first, now)
    head["next"] = first + len(table)
    number = head["blobs"][-1][0] + 1 if head["blobs"] else 0
    if len(entered):
        state.put(number, packed(entered))
        head["blobs"].append([number, entered["serial"][0].as_py(), head["next"]])
    head["judge"] = flow.judge.state()
    revived = {serial for serial, _ in head["judge"]["revived"]}
    head["live"] = flow.live(revived, head["next"])
    while len(head["blobs"]) > 1 and _left(head["blobs"][0], head["live"], revived):
        state.drop(head["blobs"].pop(0)[0])
    flow.token = head["token"] = uuid.uuid4().hex
    state.set_head(json.dumps(head, separators=(",", ":")).encode())
    _FLOWS[head["stream"]] = flow
    while len(_FLOWS) > WINDOWS:
        _FLOWS.popitem(last=False)
    return _rows_of(verdicts, moments, table, first, aside, by)


def _left(blob: list[int], live: int, revived: set[int]) -> bool:
    """Return whether all documents of a blob have left the window."""
    _, first, end = blob
    return end <= live and not any(first <= serial < end for serial in revived)


def _rows_of(
    verdicts: Sequence[Verdict], moments: Sequence[EventTime], table: pa.Table, first: int, aside: pa.Table, by: str
) -> pa.Table:
    """Return verdicts, and rows that are no documents, as ``VERDICTS``."""
    origins = table["origin"].to_pylist()
    rows = [
        {
            **verdict.as_dict(),
            **dict(zip("oab", verdict.counts or (None, None, None), strict=True)),
            "time": moment.real,
            "serial": first + i,
            "origin": origin,
        }
        for i, (verdict, moment, origin) in enumerate(zip(verdicts, moments, origins, strict=True))
    ]
    for name, reason, origin in zip(*(aside[name].to_pylist() for name in ("id", "aside", "origin")), strict=True):
        rows.append({"id": name, "kind": SET_ASIDE, "flag": reason, "evidence": "", "origin": origin})
    columns = {field.name: pa.array([row.get(field.name) for row in rows]) for field in VERDICTS if field.name != "by"}
    columns["time"] = columns["time"].cast(pa.int64()).cast(pa.timestamp("us", "UTC"))
    columns["by"] = pa.array([by] * len(rows), pa.string())
    return pa.table({name: column.cast(VERDICTS.field(name).type) for name, column in columns.items()})


class StateChest:
    """What an operator remembers: one head, and blobs by number. Spark keeps it with its micro-batch, or not at all.

    Parameters
    ----------
    handle : StatefulProcessorHandle
        Spark's way to it.
    """

    def __init__(self, handle: Any) -> None:
        self._head = handle.getValueState("head", "data binary")
        self._blobs = handle.getMapState("blobs", "number bigint", "data binary")

    def head(self) -> bytes | None:
        """Return the head; None before the first one."""
        found = self._head.get() if self._head.exists() else None
        return None if found is None else bytes(found[0])

    def set_head(self, data: bytes) -> None:
        """Put another head in its place."""
        self._head.update((data,))

    def get(self, number: int) -> bytes | None:
        """Return a blob; None where there is none."""
        found = self._blobs.getValue((number,)) if self._blobs.containsKey((number,)) else None
        return None if found is None else bytes(found[0])

    def put(self, number: int, data: bytes) -> None:
        """Keep a blob."""
        self._blobs.updateValue((number,), (data,))

    def drop(self, number: int) -> None:
        """Forget a blob."""
        self._blobs.removeKey((number,))


class FlowOperator(StatefulProcessor):  # type: ignore[misc]
    """Judges the documents of a group.

    Parameters
    ----------
    work : Sent
        What is done.
    """

    def __init__(self, work: Sent | Received) -> None:
        self._work = work

    def init(self, handle: Any) -> None:
        """Take up the state."""
        self._state = StateChest(handle)

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:
        """Yield the verdicts on a micro-batch."""
        blobs: list[bytes] = []
        now = 0
        for frame in rows:
            blobs += map(bytes, frame["data"])
            now = int(frame["now"].iloc[0])
        table = judged(self._work.value, self._state, blobs, now, str(key[0]))
        yield pd.DataFrame({"data": [packed(table)]})

    def close(self) -> None:
        """Do nothing: the window stays in the memory of this process."""


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
    if classifier is not None and recipe == "default":
        recipe = None
    wanted, learned = chosen_recipe(recipe, classifier, choices)
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
    told = f"{statistics.documents} {statistics.distinct} {statistics.heaviest}".encode()
    return hashlib.sha256(told + statistics.features.tobytes() + statistics.df.tobytes()).hexdigest()[:16]


def stream_of(
    frame: DataFrame,
    recipe: AnyRecipe | None = "default",
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
    choices: dict[str, Any] | None = None,
) -> DataFrame:
    """Return the verdicts on a stream of documents; see ``neardup.spark.stream``."""
    from pyspark.sql import functions as F

    check_packages()
    check_stream(frame)
    if by is not None and by not in frame.columns:
        raise InputError(f"the data frame has no column {by!r} for by; choose one of {', '.join(frame.columns)}")
    work = work_for(recipe, classifier, window, window_by, against, sample, by, choices or {})
    first = work.recipe.changed(keep="first")
    found = documents_of(frame, first, text_column=text_column, id_column=id_column, order=order)
    time = _time_column(frame, time_column, work.length)
    title = _title_column(frame, title_column, work.classifier)
    columns = {"time": time} if time else {}
    columns |= {"title": title} if title else {}
    orders = [order] if isinstance(order, str) else list(order or [])
    columns |= {f"order_{number}": name for number, name in enumerate(orders)}
    group = F.lit("") if by is None else F.coalesce(column_of(frame, by).cast("string"), F.lit(""))
    named = (column_of(frame, name).alias(new) for new, name in columns.items())
    first_two = column_of(frame, found.id).alias("id"), text_of(frame, found.texts).alias("text")
    rows = frame.select(*first_two, *named, group.alias("by"))
    dated = rows.withColumn("now", F.unix_micros(F.current_timestamp()))
    prepare(frame.sparkSession, alone=by is None)
    sent = Sent(frame.sparkSession, work)
    groups = dated.mapInArrow(partial(blobs_of, sent), BLOB_COLUMNS).groupBy("by")
    found = groups.transformWithStateInPandas(FlowOperator(sent), "data binary", "Append", "None")
    return found.mapInArrow(_rows, VERDICT_COLUMNS)


def prepare(spark: SparkSession, *, alone: bool) -> None:
    """Give a session what a stream needs, where its user has not chosen otherwise."""
    for name, value in SETTINGS.items():
        given = spark.conf.get(name, None)
        # Operators with state run on no other store than RocksDB, whoever provides it.
        if not given or (name.endswith("providerClass") and "RocksDB" not in given):
            spark.conf.set(name, value)
    if alone and spark.conf.get(_PARTITIONS) == _THEIRS:
        spark.conf.set(_PARTITIONS, "1")


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


def _title_column(frame: DataFrame, named: str | None, classifier: Classifier | None) -> str:
    if classifier is None or not classifier.vector.needs_titles:
        if named:
            raise RecipeError(f"title_column {named!r} is for classifiers that compare titles; leave it out")
        return ""
    lowered = {name.lower(): name for name in reversed(frame.columns)}
    found = named or classifier.title_column or next((lowered[name] for name in TITLES if name in lowered), "")
    if found not in frame.columns:
        raise InputError(
            "title is one of the classifier's measures, and the data frame has no such column; name it with "
            f"title_column: {', '.join(frame.columns)}"
        )
    return str(found)
