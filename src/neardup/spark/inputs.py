"""Files to documents: read in the workers by the readers of the engine in memory, so rows and faults are the same."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.documents import Batch, Corpus
from neardup.documents.elsewhere import Reading, Task, as_json, from_json, placed, tasks_of
from neardup.documents.parts import Broken, Wanted
from neardup.documents.records import LineSource
from neardup.documents.values import is_text_type, order_type
from neardup.errors import InputError
from neardup.spark.faults import told_by_spark
from neardup.spark.sharing import Shared
from neardup.spark.stages import Stages
from neardup.times import times_of, utc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Integers = np.ndarray[Any, np.dtype[np.int64]]

#: A row holds the number of its task above so many bits, and its place in that below: rows need not be counted first.
_ROW_BITS = 40
#: What is not a document has this for a row.
_NO_ROW = -1
#: So many faults of a task are told in full where no file wants them all.
_EXAMPLES = 5
#: Bytes of input for each part of what was read.
_PART_BYTES = 64 << 20
_ARROW = {"string": pa.string(), "bigint": pa.int64(), "double": pa.float64()}


class Read(NamedTuple):
    """What was read.

    Attributes
    ----------
    documents : DataFrame
        row, text, id where there are ids, keep where a column is gone by.
    numbers : bool
        Whether all ids are whole numbers; they are texts in the frame.
    bad : bool[n]
        Of all raw rows, those that were set aside.
    bounds : int64[k + 1]
        Where the raw rows of each task begin.
    tallies : list
        Of each input how many rows it has, and what is broken.
    """

    documents: DataFrame
    numbers: bool
    bad: np.ndarray[Any, np.dtype[np.bool_]]
    bounds: Integers
    tallies: list[tuple[int, list[Broken]]]

    def raw(self, rows: Integers) -> Integers:
        """Return the raw rows of rows of ``documents``."""
        found: Integers = self.bounds[rows >> _ROW_BITS] + (rows & np.int64((1 << _ROW_BITS) - 1))
        return found


def read(spark: SparkSession, corpus: Corpus, stages: Stages, *, records: bool, by_time: bool = False) -> Read:
    """Read a corpus in the workers, as ``Corpus.scan`` does here.

    Parameters
    ----------
    spark : SparkSession
        Its workers reach the files by the same names.
    corpus : Corpus
        Gets the counts, and what was set aside.
    stages : Stages
        Gets the stage "documents".
    records : bool
        Whether the bytes of what is set aside are wanted.
    by_time : bool
        Whether the keep order goes by times: types need have no common order then.

    Raises
    ------
    InputError
        If a worker cannot read a file, or a column holds what has no common order.
    BrokenRecord
        Under strict, at the first broken record.
    """
    tasks = tasks_of(corpus.sources)
    kind = "string" if by_time else _kind(corpus)
    columns = ["row bigint", "text string", "fault string"]
    columns += ["id string"] if corpus.id_column else []
    columns += [f"keep {kind}"] if kind else []
    shared = Shared(spark, tasks)
    worker = partial(read_batches, shared, corpus.wanted, kind, records, by_time)
    parallel = int(spark.sparkContext.defaultParallelism)
    wanted = max(parallel, -(-corpus.total_bytes // _PART_BYTES))

    def made() -> DataFrame:
        frame = spark.range(0, len(tasks), 1, len(tasks)).mapInArrow(worker, ", ".join(columns))
        # Tasks that are fewer than the workers would leave some of these without work from here on.
        return frame if len(tasks) >= wanted else frame.repartition(wanted, "row", "fault")

    frame = stages.run("documents", made)
    told: dict[int, list[dict[str, Any]]] = {number: [] for number in range(len(tasks))}
    with told_by_spark():
        reports = [json.loads(row["fault"]) for row in frame.where("fault is not null").select("fault").collect()]
    for report in reports:
        told[report["task"]].append(report)
    return _taken_over(corpus, tasks, told, frame.where("fault is null").drop("fault"), by_time)


def _taken_over(
    corpus: Corpus, tasks: list[Task], told: dict[int, list[dict[str, Any]]], documents: DataFrame, by_time: bool
) -> Read:
    """Put together what the tasks say of the inputs."""
    rows, lines = ([0] * len(corpus.sources) for _ in range(2))
    broken = [list[Broken]() for _ in corpus.sources]
    bad = list[tuple[int, int]]()
    bounds = np.zeros(len(tasks) + 1, np.int64)
    numbers, kinds = True, set[pa.DataType]()
    for number, task in enumerate(tasks):
        [report] = told[number]
        own, first = task.source, rows[task.source]
        broken[own] += [placed(from_json(fault), first, lines[own]) for fault in report["broken"]]
        broken[own] += [Broken(first, reason, count) for reason, count in report["others"].items()]
        bad += [(int(bounds[number]) + row, count) for row, count in report["bad"]]
        rows[own] += report["rows"]
        lines[own] += report["lines"]
        bounds[number + 1] = bounds[number] + report["rows"]
        numbers &= report["numbers"]
        kinds |= {_type_from(name) for name in report["order"]}
    if kinds and corpus.order_column and not by_time:
        order_type(kinds, corpus.order_column)
    tallies = list(zip(rows, broken, strict=True))
    corpus.read_elsewhere(tallies)
    mask = np.zeros(corpus.raw_rows, np.bool_)
    for row, count in bad:
        mask[row : row + count] = True
    return Read(documents, numbers, mask, bounds, tallies)


def _kind(corpus: Corpus) -> str:
    """Return what Spark calls the type of the column that a keep order goes by; lines are texts until all were seen."""
    column = corpus.order_column
    if column is None:
        return ""
    types = {source.columns()[column] for source in corpus.sources if column in source.columns()}
    lines = any(isinstance(source, LineSource) for source in corpus.sources)
    if lines or len(types) != 1 or any(is_text_type(kind) for kind in types):
        return "string"
    kind = types.pop()
    if pa.types.is_floating(kind):
        return "double"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return "bigint"


def read_batches(
    tasks: Shared[list[Task]],
    wanted: Wanted,
    kind: str,
    records: bool,
    by_time: bool,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of tasks, then what was broken; in a worker."""
    from pyspark import SparkFiles

    for batch in batches:
        for number in batch.column("id").to_pylist():
            task = tasks.value[number]
            for found in task.files:
                found.refuse_if_changed()
            # Below what Spark removes at the end, even of a worker that was killed.
            with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as spool:
                reading = Reading(task, wanted, spool)
                numbers, order = True, set[str]()
                for read_ in reading.batches():
                    numbers &= read_.ids is None or pa.types.is_int64(read_.ids.type) or not len(read_.ids)
                    if read_.order is not None and read_.order.null_count < len(read_.order):
                        order.add(_type_told(read_.order.type))
                    yield _batch(read_, number, kind, by_time)
            report = {"task": number, "rows": reading.rows, "lines": reading.lines}
            report |= {"numbers": bool(numbers), "order": sorted(order)}
            yield _report(report | _told(reading.broken, records), kind, wanted)


def _type_told(kind: pa.DataType) -> str:
    """Return a type as text."""
    return base64.b64encode(pa.schema([("", kind)]).serialize()).decode()


def _type_from(told: str) -> pa.DataType:
    """Return what ``_type_told`` wrote."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(told))).field(0).type


def _told(broken: list[Broken], records: bool) -> dict[str, Any]:
    """Return what is told of broken records: all in full where a file wants them, else some, and how many there are."""
    full = broken if records else broken[:_EXAMPLES]
    others: dict[str, int] = {}
    for fault in broken[len(full) :]:
        others[fault.reason] = others.get(fault.reason, 0) + max(fault.count, 1)
    return {
        "broken": [as_json(fault, record=records) for fault in full],
        "others": others,
        "bad": [(fault.row, fault.count) for fault in broken if fault.count],
    }


def _batch(read_: Batch, task: int, kind: str, by_time: bool) -> pa.RecordBatch:
    """Return a batch of documents."""
    rows = read_.rows + (task << _ROW_BITS)
    columns = [pa.array(rows), read_.texts.cast(pa.string()), pa.nulls(len(rows), pa.string())]
    names = ["row", "text", "fault"]
    if read_.ids is not None:
        columns.append(read_.ids.cast(pa.string()))
        names.append("id")
    if kind:
        columns.append(_times(read_.order) if by_time else _ordered(read_.order, kind))
        names.append("keep")
    return pa.RecordBatch.from_arrays(columns, names)


def _times(values: pa.Array) -> pa.Array:
    """Return times as texts, whatever type they come in."""
    times, readable = times_of(values)
    return pa.array([utc(time).isoformat() for time in times.tolist()], pa.string(), mask=~readable)


def _ordered(values: pa.Array, kind: str) -> pa.Array:
    if kind.startswith("decimal"):
        return values
    if kind == "bigint" and not pa.types.is_integer(values.type) and not pa.types.is_boolean(values.type):
        width = values.type.bit_width
        values = values.view(pa.int32() if width == 32 else pa.int64())
    try:
        return values.cast(_ARROW[kind])
    except pa.ArrowInvalid as error:
        raise InputError(f"the column of the keep order holds what does not fit {kind}: {error}") from None


def _report(told: dict[str, Any], kind: str, wanted: Wanted) -> pa.RecordBatch:
    columns = [pa.array([_NO_ROW]), pa.nulls(1, pa.string()), pa.array([json.dumps(told)])]
    names = ["row", "text", "fault"]
    if wanted.id:
        columns.append(pa.nulls(1, pa.string()))
        names.append("id")
    if kind:
        columns.append(pa.nulls(1, _ARROW.get(kind, pa.null())))
        names.append("keep")
    return pa.RecordBatch.from_arrays(columns, names)
