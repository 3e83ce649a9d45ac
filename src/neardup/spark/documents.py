"""The documents of a run: rows of a data frame, documents of an index, or what the workers read from files."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.vector import needed_columns
from neardup.documents import Batch, Corpus
from neardup.documents.column_paths import ColumnPath, find_in_types
from neardup.documents.inputs import InputFile
from neardup.documents.lines import LineSource
from neardup.documents.records import ReadOptions, RecordFault, order_type
from neardup.documents.tables import TextColumn, choose_columns
from neardup.documents.tasks import Task, TaskReader, fault_from_json, fault_to_json, shift_fault, tasks_of
from neardup.errors import InputError, NeardupError, StoreError
from neardup.keep.order import order_column
from neardup.recipe import Recipe
from neardup.spark.features import FIRST_REFERENCE_ROW, NO_ROW, Broadcast, checked_texts, split_batch
from neardup.spark.stages import Stages
from neardup.times import times_of, utc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.index.index import DiskIndex
    from neardup.index.manifest import Manifest

Integers = np.ndarray[Any, np.dtype[np.int64]]
#: Turns batches into others, in a worker.
Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]
#: The folder of an index, and the state of it that is read.
IndexState = Broadcast[tuple[str, "Manifest"]]


class FileFacts(NamedTuple):
    """What the driver learns about the documents of files when they have been read.

    Attributes
    ----------
    raw_rows : callable
        Returns the raw rows of rows.
    has_integer_ids : list of bool
        Whether all ids of the input, and of the reference, are integers; in the frame they are strings.
    order_type : pyarrow.DataType
        The type in which values of the keep order are compared; in the frame they are strings.
    """

    raw_rows: Callable[[Integers], Integers]
    has_integer_ids: list[bool]
    order_type: pa.DataType


class DocumentSource(NamedTuple):
    """The documents of a run, from wherever they come.

    Attributes
    ----------
    frame : DataFrame
        What the workers start from: documents, or with a ``reader`` the numbers of tasks.
    columns : dict of str to str
        Columns of the documents and their types. row: bigint, unique, from ``features.FIRST_REFERENCE_ROW`` on for
        a reference; text; id if there are ids; keep if the keep order needs a column; title and time if a classifier
        compares them; for files fault, the JSON report at the end of a task, in a row of ``NO_ROW``, else null.
    order : list of str
        The columns that say which document is earlier; empty if their rows do.
    has_reference : bool
        Whether there is a reference.
    text_bytes : int
        Bytes of text, approximately.
    reader : callable, optional
        Reads the tasks of a batch.
    parts : int
        Into how many parts documents are divided after reading, because there are fewer tasks than workers; 0: none.
    merge_reports : callable, optional
        For files: takes the reports of their tasks and updates the corpora.
    """

    frame: DataFrame
    columns: dict[str, str]
    order: list[str]
    has_reference: bool
    text_bytes: int = 0
    reader: Worker | None = None
    parts: int = 0
    merge_reports: Callable[[list[dict[str, Any]]], FileFacts] | None = None

    def map(self, worker: Worker, columns: Sequence[str], schema: str, max_tasks: int | None = None) -> DataFrame:
        """Return what workers make of some columns of the documents."""
        frame = self.frame if max_tasks is None else self.frame.coalesce(max_tasks)
        if self.reader is None:
            return frame.select(*columns).mapInArrow(worker, schema)
        return frame.mapInArrow(partial(piped, self.reader, worker), schema)

    def write(self, stages: Stages) -> DocumentSource:
        """Write the documents as the stage "documents", and return them from there."""

        def documents() -> DataFrame:
            if self.reader is None:
                return self.frame
            schema = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
            frame = self.frame.mapInArrow(self.reader, schema)
            return frame.repartition(self.parts, "row", "fault") if self.parts else frame

        frame = stages.run("documents", documents)
        return self._replace(frame=frame, reader=None, parts=0, text_bytes=stages.report[-1]["bytes"])


def piped(first: Callable[[Any], Any], second: Callable[[Any], Iterator[Any]], batches: Iterator[Any]) -> Iterator[Any]:
    """Yield what the second worker makes of what the first one makes of batches; runs in a worker."""
    yield from second(first(batches))


@dataclass(frozen=True, slots=True, eq=False)
class FrameDocuments:
    """The documents of a data frame.

    Attributes
    ----------
    source : DataFrame
        The user's data frame.
    frame : DataFrame
        The documents, with the columns of ``DocumentSource``.
    order : list of str
        The columns of ``frame`` that say which document is earlier.
    text_columns : tuple of str
        The columns of ``source`` that make the texts.
    id_column : str
        The column of ids in ``source``.
    sort_keys : list of columns
        The order, in terms of ``source``. The last key is a hash of the text: of rows with equal ids, only the texts
        may differ.
    keep_column : str or None
        The column of ``source`` that the keep order needs.
    open_like : callable
        Returns the documents of another data frame with columns of the same names.
    """

    source: DataFrame
    frame: DataFrame
    order: list[str]
    text_columns: tuple[str, ...]
    id_column: str
    sort_keys: list[Any]
    keep_column: str | None
    open_like: Callable[[DataFrame], FrameDocuments]


def frame_source(
    documents: FrameDocuments, reference: DataFrame | DiskIndex | None, corpus: Corpus, stages: Stages
) -> DocumentSource:
    """Return the documents of a data frame, followed by those of a reference, which becomes that of the corpus.

    They are written as the stage "documents", because they are read several times: computing the data frame may take
    long, or give other rows the next time. A reference is a data frame with columns of the same names, or an index, of
    which only possible matches are read.

    Raises
    ------
    InputError
        If ids are integers in the data frame and strings in the reference.
    """
    from neardup.index.index import DiskIndex

    if reference is None:
        return DocumentSource(documents.frame, dict(documents.frame.dtypes), documents.order, False).write(stages)
    types = dict(documents.frame.dtypes)
    if isinstance(reference, DiskIndex):
        _check_reference_ids(documents, types["id"], reference.manifest.ids, reference.path)
        addition, _ = _index_documents(documents.frame, reference, corpus, stages)
        if types["id"] not in _TEXT_TYPES:
            addition = addition.withColumn("id", addition["id"].cast("bigint"))
    else:
        addition = documents.open_like(reference).frame
        _check_reference_ids(documents, types["id"], dict(addition.dtypes)["id"], "the reference")
        addition = addition.withColumn("row", addition["row"] + FIRST_REFERENCE_ROW)
        corpus.set_reference(Corpus([], ReadOptions(documents.text_columns[0], documents.id_column), 0))
    # Spark itself would turn texts beside numbers into numbers.
    texts = [name for name in addition.columns if types[name] in _TEXT_TYPES]
    addition = addition.withColumns({name: addition[name].cast(types[name]) for name in texts})
    frame = documents.frame.unionByName(addition, allowMissingColumns=True)
    return DocumentSource(frame, dict(frame.dtypes), documents.order, True).write(stages)


#: Spark's names of the types of texts.
_TEXT_TYPES = ("string", "binary")


def _check_reference_ids(documents: FrameDocuments, id_type: str, reference_type: str, reference: str) -> None:
    if id_type not in _TEXT_TYPES and reference_type in _TEXT_TYPES:
        raise InputError(
            f"the ids of the data frame, in column {documents.id_column!r}, are whole numbers, and those of "
            f"{reference} are texts: give the data frame a column of ids as texts, and name it with id_column"
        )


#: Documents of an index that a worker reads at a time.
_INDEX_READ = 256


def _index_documents(
    documents: DataFrame, index: DiskIndex, corpus: Corpus, stages: Stages
) -> tuple[DataFrame, Integers]:
    """Return the documents of an index that may match any of ``documents``, and their places in it, ascending.

    They become the reference of the corpus: row, text, id. The workers search and read the index, in the stages
    "places" and "reference", so all of them must reach its folder by the same name.
    """
    state = Broadcast(documents.sparkSession, (os.path.abspath(index.path), index.manifest))
    places = stages.run(
        "places",
        documents.select("text").mapInArrow(partial(place_batches, state), "row bigint").distinct,
    )
    # Sorted, since neighbours are read together.
    ordered = places.repartitionByRange(stages.workers, "row").sortWithinPartitions("row")
    schema = "row bigint, text string, id string"
    frame = stages.run("reference", lambda: ordered.mapInArrow(partial(index_document_batches, state), schema))
    numbers = np.sort(places.toArrow()["row"].to_numpy())
    reference = Corpus([], ReadOptions("text", "id"), 0)
    reference.raw_rows, reference.omitted_count = len(numbers), len(index) - len(numbers)
    corpus.set_reference(reference)
    return frame.withColumn("row", frame["row"] + FIRST_REFERENCE_ROW), numbers


def place_batches(state: IndexState, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the places of the documents of an index that may match those of a partition; runs in a worker."""
    texts = (checked_texts(piece)[0] for batch in batches for piece in split_batch(batch))
    yield pa.RecordBatch.from_arrays([pa.array(_open_index(*state.value).candidates(texts, 1))], ["row"])


def index_document_batches(state: IndexState, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of an index at some places; runs in a worker."""
    index = _open_index(*state.value)
    for batch in batches:
        places = batch.column("row").to_numpy()
        for begin in range(0, len(places), _INDEX_READ):
            part = places[begin : begin + _INDEX_READ]
            table = index.documents(part).combine_chunks()
            columns = [table[name].combine_chunks().cast(pa.string()) for name in ("text", "id")]
            yield pa.RecordBatch.from_arrays([pa.array(part), *columns], ["row", "text", "id"])


def _open_index(path: str, manifest: Manifest) -> DiskIndex:
    from neardup.index.index import DiskIndex

    try:
        return DiskIndex(path, manifest)
    except NeardupError as error:
        raise StoreError(
            f"a worker cannot read the index as it was when the run began ({error}): keep it in a folder that all "
            "workers reach by the same name, and do not compact it during a run"
        ) from None


class FrameColumns:
    """The columns of a data frame, for ``choose_columns``."""

    file = InputFile(None, "", "the data frame", 0, None)

    def __init__(self, frame: DataFrame) -> None:
        self._columns = {field.name: _arrow_type(field.dataType) for field in frame.schema}

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns."""
        return self._columns

    def find_column(self, name: str) -> ColumnPath | None:
        """Return a column by its name; there are no paths, because nested columns have no type here."""
        return find_in_types(name, self._columns)

    def has_fractions(self, name: str, text: str) -> bool:
        """Return whether a column is one of doubles, which Spark would write with fractions."""
        del text
        return bool(pa.types.is_floating(self._columns[name]))


def _arrow_type(spark_type: Any) -> pa.DataType:
    """Return the Arrow type of a column, a struct for types that can be neither text nor id nor be sorted."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        kind = to_arrow_type(spark_type, timezone="UTC")
    except PySparkTypeError:
        return pa.struct([])
    return pa.struct([]) if pa.types.is_nested(kind) else kind


def check_frame(value: Any) -> None:
    """Check that a value is a data frame of Spark, of a session that has a JVM.

    Raises
    ------
    InputError
        If it is not.
    """
    from pyspark.sql.classic.dataframe import DataFrame

    if type(value).__module__.startswith("pyspark.sql.connect"):
        raise InputError(
            "the data frame is of a session of Spark Connect, which has no JVM for the engine: give one of a session "
            "that SparkSession.builder.master(...) made, or the files themselves to the command neardup dedup"
        )
    if not isinstance(value, DataFrame):
        kind = f"{type(value).__module__}.{type(value).__name__}".removeprefix("builtins.")
        raise InputError(
            f"a {kind} is no data frame of Spark: make one with spark.createDataFrame or spark.read, or call "
            "neardup.dedup without Spark"
        )


def frame_documents(
    source: DataFrame,
    recipe: Recipe,
    *,
    text_column: TextColumn = None,
    id_column: str | None = None,
    order: str | Sequence[str] | None = None,
    time_column: str | None = None,
    more_columns: Mapping[str, str] | None = None,
) -> FrameDocuments:
    """Return the documents of a data frame.

    Parameters
    ----------
    source : DataFrame
        One row a document; the same rows each time it is read.
    recipe : Recipe
        Its ``keep`` may need a column.
    text_column, id_column, time_column : str, optional
        Columns; detected by their names.
    order : str or list of str, optional
        The columns that say which of two documents is earlier, because rows of a data frame have no order; by
        default the ids. Ids break ties.
    more_columns : mapping of str to str, optional
        Names of further columns of the documents, and the columns of ``source`` that they are.

    Raises
    ------
    InputError
        If a column is missing or has an unsuitable type.
    """
    from pyspark.sql import functions as F

    columns = FrameColumns(source)
    chosen = choose_columns([columns], text_column, id_column, order_column(recipe, time_column), None)
    if not chosen.id:
        raise InputError(
            "the data frame has no column that is obviously the id, which pairs and keepers are named by; name it with "
            f"id_column: {', '.join(source.columns)}"
        )
    if columns.has_fractions(chosen.id, chosen.text):
        raise InputError(f"column {chosen.id!r} holds doubles, and ids must be text or whole numbers: cast it first")
    order_columns = [order] if isinstance(order, str) else list(order or [chosen.id])
    for name in order_columns:
        kind = columns.columns().get(name)
        if kind is None or pa.types.is_struct(kind):
            fault = "has no column" if kind is None else "cannot be sorted by column"
            raise InputError(f"the data frame {fault} {name!r} for order; choose one of {', '.join(source.columns)}")
    text = frame_text(source, chosen.texts)
    sort_keys = [frame_column(source, name) for name in dict.fromkeys([*order_columns, chosen.id])]
    sort_keys.append(F.xxhash64(text))
    order_names = [f"order_{number}" for number in range(len(sort_keys))]
    selected = [
        F.monotonically_increasing_id().alias("row"),
        text.alias("text"),
        frame_column(source, chosen.id).alias("id"),
        *(column.alias(name) for column, name in zip(sort_keys, order_names, strict=True)),
        *([frame_column(source, chosen.order).alias("keep")] if chosen.order else []),
        *(frame_column(source, name).alias(alias) for alias, name in (more_columns or {}).items()),
    ]
    names: dict[str, Any] = {"text_column": chosen.texts, "id_column": chosen.id, "order": order}
    open_like = partial(frame_documents, recipe=recipe.changed(keep="first"), more_columns=more_columns, **names)
    frame = source.select(*selected)
    return FrameDocuments(source, frame, order_names, chosen.texts, chosen.id, sort_keys, chosen.order, open_like)


def classifier_columns(classifier: Classifier, names: Sequence[str]) -> dict[str, str]:
    """Return the columns besides the text that a classifier compares, as ``more_columns`` of ``frame_documents``.

    Raises
    ------
    RecipeError
        If a column is missing.
    """
    columns = {"title_column": classifier.title_column, "time_column": classifier.time_column}
    title, time = needed_columns(classifier.vector, names, **columns)
    return {name: column for name, column in (("title", title), ("time", time)) if column}


def frame_column(frame: DataFrame, name: str) -> Any:
    """Return a column by its name, which may contain dots.

    Raises
    ------
    InputError
        If several columns have this name.
    """
    from pyspark.errors import AnalysisException

    try:
        return frame["`" + name.replace("`", "``") + "`"]
    except AnalysisException:
        raise InputError(
            f"the data frame has several columns {name!r}, if the case of letters is ignored, as Spark does: give its "
            "columns different names with toDF"
        ) from None


def frame_text(frame: DataFrame, names: Sequence[str]) -> Any:
    """Return the texts of columns as one column, as ``records.joined_column`` does."""
    from pyspark.sql import functions as F

    columns = [frame_column(frame, name) for name in names]
    if len(columns) == 1:
        return columns[0]
    joined = F.concat_ws("\n", *(F.when(column != "", column) for column in columns))
    return F.when(F.coalesce(*columns).isNotNull(), joined)


#: A row has the number of its task above this many bits and its place in the task below, so rows need no counting.
_ROW_BITS = 40
#: Faults of a task that are reported in full if no file takes all of them.
_EXAMPLES = 5
#: Files other than lines are mostly compressed: their text is about this many times as large.
_COMPRESSION = 3
#: Bytes of input for each part of what was read. Inputs up to ``_ONE_TASK`` stay undivided.
_PART_BYTES, _ONE_TASK = 64 << 20, 16 << 20


def corpus_source(
    spark: SparkSession,
    corpus: Corpus,
    stages: Stages,
    *,
    records: bool,
    by_time: bool = False,
    index: DiskIndex | None = None,
) -> DocumentSource:
    """Return the documents of a corpus and its reference, as the workers read them.

    Parameters
    ----------
    corpus : Corpus
        Gets counts and rejected records when the reports are merged. The workers reach its files by the same names.
    records : bool
        Whether the bytes of rejected records are needed.
    by_time : bool
        Whether the keep order compares times, which may then be of different types.
    index : DiskIndex, optional
        An index as the reference, which becomes that of the corpus.
    """
    sides = [corpus] if corpus.reference is None else [corpus, corpus.reference]
    tasks = [(number, task) for number, side in enumerate(sides) for task in tasks_of(side.sources)]
    columns = {"row": "bigint", "text": "string", "fault": "string"}
    if index is not None or any(side.id_column for side in sides):
        columns["id"] = "string"
    if corpus.order_column:
        columns["keep"] = "string"
    reader = CorpusReader(Broadcast(spark, tasks), [side.read_options for side in sides], columns, records, by_time)
    size = sum(side.total_bytes for side in sides)
    parts = max(int(spark.sparkContext.defaultParallelism), -(-size // _PART_BYTES))
    text_bytes = sum(
        side.total_bytes * (1 if all(isinstance(source, LineSource) for source in side.sources) else _COMPRESSION)
        for side in sides
    )
    merge_reports = partial(_merge_reports, sides, tasks, by_time)
    source = DocumentSource(
        spark.range(0, len(tasks), 1, len(tasks)),
        columns,
        [],
        len(sides) > 1,
        text_bytes,
        reader,
        parts if size > _ONE_TASK and len(tasks) < parts else 0,
        merge_reports,
    )
    if index is None:
        return source
    source = source.write(stages)
    addition, places = _index_documents(source.frame.where("row >= 0"), index, corpus, stages)

    def merge_with_index(reports: list[dict[str, Any]]) -> FileFacts:
        facts = merge_reports(reports)

        def raw_rows(rows: Integers) -> Integers:
            is_reference = rows >= FIRST_REFERENCE_ROW
            behind = corpus.raw_rows + np.searchsorted(places, rows[is_reference] - FIRST_REFERENCE_ROW)
            return np.concatenate([facts.raw_rows(rows[~is_reference]), behind])

        return FileFacts(raw_rows, [*facts.has_integer_ids, index.manifest.ids != "string"], facts.order_type)

    frame = source.frame.unionByName(addition, allowMissingColumns=True)
    return source._replace(frame=frame, has_reference=True, merge_reports=merge_with_index)


def _merge_reports(
    sides: list[Corpus], tasks: list[tuple[int, Task]], by_time: bool, reports: list[dict[str, Any]]
) -> FileFacts:
    """Combine the reports of tasks, and give the corpora their counts and broken records.

    Raises
    ------
    InputError
        If a column holds values without a common order.
    BrokenRecord
        Under strict, at the first broken record.
    """
    by_task: dict[int, list[dict[str, Any]]] = {number: [] for number in range(len(tasks))}
    for report in reports:
        by_task[report["task"]].append(report)
    rows, lines = ([[0] * len(side.sources) for side in sides] for _ in range(2))
    broken = [[list[RecordFault]() for _ in side.sources] for side in sides]
    skipped = [Counter[str]() for _ in sides]
    first_rows, total = np.zeros(len(tasks), np.int64), 0
    has_integer_ids, order_types = [True] * len(sides), set[pa.DataType]()
    for number, (side, task) in enumerate(tasks):
        [report] = by_task[number]
        source = task.source
        first = rows[side][source]
        faults = broken[side][source]
        faults += [shift_fault(fault_from_json(fault), first, lines[side][source]) for fault in report["broken"]]
        faults += [RecordFault(first, reason, count) for reason, count in report["others"].items()]
        first_rows[number], total = total, total + report["rows"]
        rows[side][source] += report["rows"]
        lines[side][source] += report["lines"]
        skipped[side].update(report["skipped"])
        has_integer_ids[side] &= report["integer_ids"]
        order_types |= {_decode_type(name) for name in report["order"]}
    kind = pa.string() if by_time or not order_types else _compared_type(order_types, sides[0].order_column or "")
    for side, corpus in enumerate(sides):
        corpus.record_scan(zip(rows[side], broken[side], strict=True), skipped[side])
    return FileFacts(partial(_raw_rows, first_rows), has_integer_ids, kind)


def _raw_rows(first_rows: Integers, rows: Integers) -> Integers:
    """Return the raw rows of rows; first_rows: the first raw row of each task."""
    rows = rows & np.int64(FIRST_REFERENCE_ROW - 1)
    raw_rows: Integers = first_rows[rows >> _ROW_BITS] + (rows & np.int64((1 << _ROW_BITS) - 1))
    return raw_rows


class CorpusReader:
    """Reads the tasks of a corpus, in a worker.

    A task has a side: 0 for the input, 1 for the reference. The other parameters are those of ``corpus_source``.
    """

    def __init__(
        self,
        tasks: Broadcast[list[tuple[int, Task]]],
        options: list[ReadOptions],
        columns: dict[str, str],
        records: bool,
        by_time: bool,
    ) -> None:
        self._tasks, self._options, self._columns = tasks, options, columns
        self._records, self._by_time = records, by_time

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the documents of the tasks with these numbers, and a report at the end of each task."""
        from pyspark import SparkFiles

        for number in (number for batch in batches for number in batch.column("id").to_pylist()):
            side, task = self._tasks.value[number]
            for file in task.files:
                file.refuse_if_changed()
            # Inside a folder that Spark removes at the end, even after a worker was killed.
            with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as spool:
                reading = TaskReader(task, self._options[side], spool)
                has_integer_ids, order_types = True, set[str]()
                for batch in reading.batches():
                    has_integer_ids &= batch.ids is None or pa.types.is_int64(batch.ids.type) or not len(batch.ids)
                    if batch.order is not None and batch.order.null_count < len(batch.order):
                        order_types.add(_encode_type(batch.order.type))
                    yield self._documents(batch, side * FIRST_REFERENCE_ROW + (number << _ROW_BITS))
            report = {"task": number, "rows": reading.rows, "lines": reading.lines, "skipped": reading.skipped}
            report |= {"integer_ids": bool(has_integer_ids), "order": sorted(order_types)}
            report |= _fault_report(reading.faults, self._records and not side)
            yield self._batch(1, row=pa.array([NO_ROW]), fault=pa.array([json.dumps(report)]))

    def _documents(self, batch: Batch, first: int) -> pa.RecordBatch:
        columns = {"row": pa.array(batch.rows + first), "text": batch.texts.cast(pa.string())}
        # Without ids: a null would be a fault.
        columns["id"] = pa.repeat("", len(batch.rows)) if batch.ids is None else batch.ids.cast(pa.string())
        if "keep" in self._columns and batch.order is not None:
            columns["keep"] = _time_texts(batch.order) if self._by_time else _order_texts(batch.order)
        return self._batch(len(batch.rows), **columns)

    def _batch(self, count: int, **arrays: pa.Array) -> pa.RecordBatch:
        columns = [arrays[name] if name in arrays else pa.nulls(count, pa.string()) for name in self._columns]
        return pa.RecordBatch.from_arrays(columns, list(self._columns))


def _encode_type(kind: pa.DataType) -> str:
    return base64.b64encode(pa.schema([("", kind)]).serialize()).decode()


def _decode_type(encoded: str) -> pa.DataType:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded))).field(0).type


def _fault_report(broken: list[RecordFault], records: bool) -> dict[str, Any]:
    """Return a report of broken records: in full all, or without ``records`` some, and counts of the others."""
    full = broken if records else broken[:_EXAMPLES]
    others: dict[str, int] = {}
    for fault in broken[len(full) :]:
        others[fault.reason] = others.get(fault.reason, 0) + max(fault.count, 1)
    return {"broken": [fault_to_json(fault, record=records) for fault in full], "others": others}


def _time_texts(values: pa.Array) -> pa.Array:
    """Return times of any type as strings."""
    times, readable = times_of(values)
    return pa.array([utc(time).isoformat() for time in times.tolist()], pa.string(), mask=~readable)


def _order_texts(values: pa.Array) -> pa.Array:
    """Return values of a keep order as strings, which can be cast to the type of ``_compared_type``."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    elif pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    return values.cast(pa.string())


def _compared_type(kinds: set[pa.DataType], column: str) -> pa.DataType:
    """Return the type in which ``_order_texts`` of values of these types are compared."""
    kind = order_type(kinds, column)
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.int64() if pa.types.is_temporal(kind) else kind
