"""The documents of a run: rows of a data frame, or what the workers read of files."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.classifier.classifier import Classifier
from neardup.classifier.columns import columns_for
from neardup.documents import Batch, Corpus
from neardup.documents.inputs import Found
from neardup.documents.lines import LineSource
from neardup.documents.partitions import Reading, Task, as_json, from_json, placed, tasks_of
from neardup.documents.records import Broken, Wanted, order_type
from neardup.documents.tables import TextColumn, choose_columns
from neardup.errors import InputError, NeardupError, StoreError
from neardup.keep.order import order_column
from neardup.recipe import Recipe
from neardup.spark.features import NO_ROW, REFERENCE, Shared, checked_texts, pieces
from neardup.spark.stages import Stages
from neardup.times import times_of, utc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from neardup.index.index import DiskIndex
    from neardup.index.manifest import Manifest

Integers = np.ndarray[Any, np.dtype[np.int64]]
#: A folder of an index, and the state of it that is read.
State = Shared[tuple[str, "Manifest"]]


#: Turns batches into others, in a worker.
Worker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class Files(NamedTuple):
    """What is known of documents of files once they were read.

    Attributes
    ----------
    raw : callable
        Gives the raw rows of rows.
    numbers : list of bool
        Whether all ids of the input, and of the reference, are whole numbers: they are texts in the frame.
    kind : pyarrow.DataType
        As what values of the keep order are compared, texts in the frame.
    """

    raw: Callable[[Integers], Integers]
    numbers: list[bool]
    kind: pa.DataType


class Read(NamedTuple):
    """Documents as a run takes them.

    Attributes
    ----------
    source : DataFrame
        What workers take: documents, or with a ``reader`` the numbers of tasks.
    columns : dict of str to str
        The columns of documents and their types. row: bigint, different for each, from ``features.REFERENCE`` on for
        those of a reference; text; where there are ids, id; where a column is gone by, keep; title and time where a
        classifier compares them; of files fault, where not null what a task says at its end, in a row of ``NO_ROW``.
    order : list of str
        The columns that say which document is earlier; empty where rows do.
    reference : bool
        Whether there is one.
    text_bytes : int
        How many bytes of text there are, about.
    reader : callable, optional
        Gives the documents of the source's batches.
    parts : int
        Into how many parts documents are divided when they have been read, as tasks are fewer than workers; 0: none.
    told : callable, optional
        Of files: takes what their tasks say, and puts it into the corpora.
    """

    source: DataFrame
    columns: dict[str, str]
    order: list[str]
    reference: bool
    text_bytes: int = 0
    reader: Worker | None = None
    parts: int = 0
    told: Callable[[list[dict[str, Any]]], Files] | None = None

    def map(self, worker: Worker, columns: Sequence[str], schema: str, most: int | None = None) -> DataFrame:
        """Return what workers make of some columns of the documents, in so many parts at most."""
        source = self.source if most is None else self.source.coalesce(most)
        if self.reader is None:
            return source.select(*columns).mapInArrow(worker, schema)
        return source.mapInArrow(partial(_read_and_mapped, self.reader, worker), schema)

    def written(self, stages: Stages) -> Read:
        """Return the documents as the stage "documents"."""

        def made() -> DataFrame:
            if self.reader is None:
                return self.source
            schema = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
            frame = self.source.mapInArrow(self.reader, schema)
            return frame.repartition(self.parts, "row", "fault") if self.parts else frame

        frame = stages.run("documents", made)
        return self._replace(source=frame, reader=None, parts=0, text_bytes=stages.bytes_of("documents"))


def _read_and_mapped(reader: Worker, worker: Worker, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from worker(reader(batches))


@dataclass(frozen=True, slots=True, eq=False)
class FrameDocuments:
    """The documents of a data frame.

    Attributes
    ----------
    source : DataFrame
        The data frame.
    frame : DataFrame
        The documents, with the columns of ``Read``.
    order : list of str
        The columns of ``frame`` that say which document is earlier.
    texts : tuple of str
        The columns of ``source`` that make the texts.
    id : str
        What the column of ids is called there.
    by : list of columns
        What of ``source`` says which document is earlier, a hash of the text at last: equal ids and all else equal,
        only the texts tell two rows apart.
    keep : str or None
        The column that the keep order goes by.
    again : callable
        Gives the documents of another data frame by columns of the same names.
    """

    source: DataFrame
    frame: DataFrame
    order: list[str]
    texts: tuple[str, ...]
    id: str
    by: list[Any]
    keep: str | None
    again: Callable[[DataFrame], FrameDocuments]


def with_reference(
    given: FrameDocuments, reference: DataFrame | DiskIndex | None, corpus: Corpus, stages: Stages
) -> Read:
    """Return the documents of a data frame, and behind them those of a reference, which the corpus is given.

    They are written, as they are read several times: the data frame may take long, or give other rows the next time.

    Parameters
    ----------
    given : FrameDocuments
        The documents.
    reference : DataFrame or DiskIndex, optional
        A data frame with columns of the same names, or an index, of which those are read that may match any document.
    corpus : Corpus
        Counts what is rejected.
    stages : Stages
        Gets the stage "documents", and for an index those of ``_looked_up``.

    Raises
    ------
    InputError
        If ids are whole numbers in the data frame, and texts in the index.
    """
    from neardup.index.index import DiskIndex

    if reference is None:
        return Read(given.frame, dict(given.frame.dtypes), given.order, False).written(stages)
    if isinstance(reference, DiskIndex):
        kind = _id_kind(given, reference)
        other, places = _looked_up(given.frame, reference, stages)
        other = other.withColumn("id", other["id"].cast(kind))
        corpus.stand_against(index_corpus(reference, places))
    else:
        other = given.again(reference).frame
        corpus.stand_against(Corpus([], Wanted(given.texts[0], given.id), 0))
    other = other.withColumn("row", other["row"] + REFERENCE)
    frame = given.frame.unionByName(other, allowMissingColumns=True)
    return Read(frame, dict(frame.dtypes), given.order, True).written(stages)


def _id_kind(given: FrameDocuments, index: DiskIndex) -> str:
    """Return the type of the ids of an index beside those of a data frame."""
    kind = str(dict(given.frame.dtypes)["id"])
    if kind in ("string", "binary"):
        return kind
    if index.manifest.ids == "string":
        raise InputError(
            f"the ids of the data frame, in column {given.id!r}, are whole numbers, and those of {index.path} are "
            "texts: give the data frame a column of ids as texts, and name it with id_column"
        )
    return "bigint"


#: Documents of an index that a worker reads at a time.
_AT_A_TIME = 256


def _looked_up(documents: DataFrame, index: DiskIndex, stages: Stages) -> tuple[DataFrame, Integers]:
    """Return the documents of an index that may match any of some, and their places there, ascending.

    Workers look them up and read them: the folder of the index is one that all of them reach by its name.

    Parameters
    ----------
    documents : DataFrame
        text.
    index : DiskIndex
        The state that is read, whoever adds to it meanwhile.
    stages : Stages
        Gets the stages "places" and "reference": row, the place; text; id.
    """
    state = Shared(documents.sparkSession, (os.path.abspath(index.path), index.manifest))
    asked = documents.select("text").mapInArrow(partial(place_batches, state), "row bigint")
    found = stages.run("places", asked.distinct)
    # Neighbours are read together.
    ordered = found.repartitionByRange(stages.workers, "row").sortWithinPartitions("row")
    read_ = partial(index_batches, state)
    frame = stages.run("reference", lambda: ordered.mapInArrow(read_, "row bigint, text string, id string"))
    return frame, np.sort(found.toArrow()["row"].to_numpy())


def place_batches(state: State, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the places of the documents of an index that may match those of a partition; in a worker."""
    texts = (checked_texts(piece)[0] for batch in batches for piece in pieces(batch))
    yield pa.RecordBatch.from_arrays([pa.array(_opened(*state.value).candidates(texts, 1))], ["row"])


def index_batches(state: State, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the documents of an index at some places; in a worker."""
    index = _opened(*state.value)
    for batch in batches:
        places = batch.column("row").to_numpy()
        for begin in range(0, len(places), _AT_A_TIME):
            some = places[begin : begin + _AT_A_TIME]
            table = index.documents(some).combine_chunks()
            columns = [table[name].combine_chunks().cast(pa.string()) for name in ("text", "id")]
            yield pa.RecordBatch.from_arrays([pa.array(some), *columns], ["row", "text", "id"])


def _opened(path: str, manifest: Manifest) -> DiskIndex:
    """Open a state of an index in a worker, which imports no more than it needs."""
    from neardup.index.index import DiskIndex

    try:
        return DiskIndex(path, manifest)
    except NeardupError as error:
        raise StoreError(
            f"a worker cannot read the index as it was when the run began ({error}): keep it in a folder that all "
            "workers reach by the same name, and let nothing compact it during a run"
        ) from None


class _Frame:
    """A data frame, as far as the choice of columns looks at it."""

    found = Found(None, "", "the data frame", 0, None)

    def __init__(self, frame: DataFrame) -> None:
        self._columns = {field.name: _type_of(field.dataType) for field in frame.schema}

    def columns(self) -> dict[str, pa.DataType]:
        """Names and types of the columns."""
        return self._columns


def _type_of(kind: Any) -> pa.DataType:
    """Return the Arrow type of a column's type, a struct for all that can be neither text nor id nor be sorted."""
    from pyspark.errors import PySparkTypeError
    from pyspark.sql.pandas.types import to_arrow_type

    try:
        found = to_arrow_type(kind, timezone="UTC")
    except PySparkTypeError:
        return pa.struct([])
    return pa.struct([]) if pa.types.is_nested(found) else found


def documents_of(
    source: DataFrame,
    recipe: Recipe,
    *,
    text_column: TextColumn = None,
    id_column: str | None = None,
    order: str | Sequence[str] | None = None,
    time_column: str | None = None,
    more: Mapping[str, str] | None = None,
) -> FrameDocuments:
    """Return the documents of a data frame.

    Parameters
    ----------
    source : DataFrame
        One row a document; the same rows each time it is read.
    recipe : Recipe
        What will be done with them.
    text_column, id_column, time_column : str, optional
        Columns; found by their names where that is obvious.
    order : str or list of str, optional
        The columns that say which of two documents is earlier, as rows of a data frame have no order; by default the
        ids. Of equals the one with the smaller id is.
    more : mapping of str to str, optional
        Further columns of the frame, and what they are called in the data frame.

    Raises
    ------
    InputError
        If a column is not there or of a type that does not do.
    """
    from pyspark.sql import functions as F

    if type(source).__module__.startswith("pyspark.sql.connect"):
        raise InputError(
            "the data frame is of a session of Spark Connect, which has no JVM for the engine: give one of a session "
            "that SparkSession.builder.master(...) made, or the files themselves to the command neardup dedup"
        )
    looked_at = _Frame(source)
    wanted = choose_columns([looked_at], text_column, id_column, order_column(recipe, time_column), None)
    if not wanted.id:
        raise InputError(
            "the data frame has no column that is obviously the id, which pairs and keepers are named by; name it with "
            f"id_column: {', '.join(source.columns)}"
        )
    by = [order] if isinstance(order, str) else list(order or [wanted.id])
    for name in by:
        kind = looked_at.columns().get(name)
        if kind is None or pa.types.is_struct(kind):
            what = "has no column" if kind is None else "cannot be sorted by column"
            raise InputError(f"the data frame {what} {name!r} for order; choose one of {', '.join(source.columns)}")
    told_apart = [column_of(source, name) for name in dict.fromkeys([*by, wanted.id])]
    text = text_of(source, wanted.texts)
    told_apart.append(F.xxhash64(text))
    order_names = [f"order_{number}" for number in range(len(told_apart))]
    columns = [
        F.monotonically_increasing_id().alias("row"),
        text.alias("text"),
        column_of(source, wanted.id).alias("id"),
        *(column.alias(name) for column, name in zip(told_apart, order_names, strict=True)),
        *([column_of(source, wanted.order).alias("keep")] if wanted.order else []),
        *(column_of(source, name).alias(new) for new, name in (more or {}).items()),
    ]
    named: dict[str, Any] = {"text_column": wanted.texts, "id_column": wanted.id, "order": order}
    again = partial(documents_of, recipe=recipe.changed(keep="first"), more=more, **named)
    frame = source.select(*columns)
    return FrameDocuments(source, frame, order_names, wanted.texts, wanted.id, told_apart, wanted.order, again)


def columns_beside(classifier: Classifier, names: Sequence[str]) -> dict[str, str]:
    """Return the columns besides the text that a classifier goes by, as ``documents_of`` takes them.

    Raises
    ------
    RecipeError
        If one is not there.
    """
    columns = {"title_column": classifier.title_column, "time_column": classifier.time_column}
    title, time = columns_for(classifier.vector, names, **columns)
    return {name: column for name, column in (("title", title), ("time", time)) if column}


def column_of(frame: DataFrame, name: str) -> Any:
    """Return a column whose name may hold dots."""
    return frame["`" + name.replace("`", "``") + "`"]


def text_of(frame: DataFrame, names: Sequence[str]) -> Any:
    """Return the texts of columns as one column, as ``records.joined_texts`` does."""
    from pyspark.sql import functions as F

    columns = [column_of(frame, name) for name in names]
    if len(columns) == 1:
        return columns[0]
    joined = F.concat_ws("\n", *(F.when(column != "", column) for column in columns))
    return F.when(F.coalesce(*columns).isNotNull(), joined)


#: A row holds the number of its task above so many bits, and its place in that below: rows need not be counted first.
_ROW_BITS = 40
#: So many faults of a task are told in full where no file wants them all.
_EXAMPLES = 5
#: Text is about so many times as large as files that are not lines, as most of these are compressed.
_PACKED = 3
#: Bytes of input for each part of what was read, and up to so many are one task's work.
_PART_BYTES, _ONE_TASK = 64 << 20, 16 << 20


def read(
    spark: SparkSession,
    corpus: Corpus,
    stages: Stages,
    *,
    records: bool,
    by_time: bool = False,
    index: DiskIndex | None = None,
) -> Read:
    """Return how the workers read a corpus, and its reference, as ``Corpus.scan`` does here.

    Parameters
    ----------
    spark : SparkSession
        Its workers reach the files by the same names.
    corpus : Corpus
        Gets the counts, and what was rejected.
    stages : Stages
        Where documents are written that are looked up in an index.
    records : bool
        Whether the bytes of what is rejected are wanted.
    by_time : bool
        Whether the keep order goes by times: types need have no common order then.
    index : DiskIndex, optional
        An index as the reference, which the corpus is given.
    """
    sides = [corpus] if corpus.reference is None else [corpus, corpus.reference]
    tasks = [(side, task) for side, of in enumerate(sides) for task in tasks_of(of.sources)]
    columns = {"row": "bigint", "text": "string", "fault": "string"}
    if index is not None or any(side.id_column for side in sides):
        columns["id"] = "string"
    if corpus.order_column:
        columns["keep"] = "string"
    reader = Reader(Shared(spark, tasks), [side.wanted for side in sides], columns, records, by_time)
    size = sum(side.total_bytes for side in sides)
    parts = max(int(spark.sparkContext.defaultParallelism), -(-size // _PART_BYTES))
    told = partial(_taken_over, sides, tasks, by_time)
    source = spark.range(0, len(tasks), 1, len(tasks))
    spread = parts if size > _ONE_TASK and len(tasks) < parts else 0
    text_bytes = sum(
        side.total_bytes * (1 if all(isinstance(source, LineSource) for source in side.sources) else _PACKED)
        for side in sides
    )
    found = Read(source, columns, [], len(sides) > 1, text_bytes, reader, spread, told)
    if index is None:
        return found
    found = found.written(stages)
    other, places = _looked_up(found.source.where("row >= 0"), index, stages)
    other = other.withColumn("row", other["row"] + REFERENCE)
    corpus.stand_against(index_corpus(index, places))

    def told_beside(reports: list[dict[str, Any]]) -> Files:
        files = told(reports)

        def raw(rows: Integers) -> Integers:
            behind = corpus.raw_rows + np.searchsorted(places, rows[rows >= REFERENCE] - REFERENCE)
            return np.concatenate([files.raw(rows[rows < REFERENCE]), behind])

        return Files(raw, [*files.numbers, index.manifest.ids != "string"], files.kind)

    both = found.source.unionByName(other, allowMissingColumns=True)
    return found._replace(source=both, reference=True, told=told_beside)


def _taken_over(
    sides: list[Corpus], tasks: list[tuple[int, Task]], by_time: bool, reports: list[dict[str, Any]]
) -> Files:
    """Put together what the tasks say of the inputs.

    Raises
    ------
    InputError
        If a column holds what has no common order.
    BrokenRecord
        Under strict, at the first broken record.
    """
    told: dict[int, list[dict[str, Any]]] = {number: [] for number in range(len(tasks))}
    for report in reports:
        told[report["task"]].append(report)
    rows, lines = ([[0] * len(side.sources) for side in sides] for _ in range(2))
    broken = [[list[Broken]() for _ in side.sources] for side in sides]
    bounds, total = np.zeros(len(tasks), np.int64), 0
    numbers, kinds = [True] * len(sides), set[pa.DataType]()
    for number, (side, task) in enumerate(tasks):
        [report] = told[number]
        own, first = task.source, rows[side][task.source]
        found = broken[side][own]
        found += [placed(from_json(fault), first, lines[side][own]) for fault in report["broken"]]
        found += [Broken(first, reason, count) for reason, count in report["others"].items()]
        bounds[number], total = total, total + report["rows"]
        rows[side][own] += report["rows"]
        lines[side][own] += report["lines"]
        numbers[side] &= report["numbers"]
        kinds |= {_type_from(name) for name in report["order"]}
    kind = pa.string() if by_time or not kinds else _kind(kinds, sides[0].order_column or "")
    for side, corpus in enumerate(sides):
        corpus.read_elsewhere(zip(rows[side], broken[side], strict=True))
    return Files(partial(_raw, bounds), numbers, kind)


def index_corpus(index: DiskIndex, places: Integers) -> Corpus:
    """Return a corpus of documents of an index that are read elsewhere: it counts them, and those left out."""
    corpus = Corpus([], Wanted("text", "id"), 0)
    corpus.raw_rows, corpus.left_out = len(places), len(index) - len(places)
    return corpus


def _raw(bounds: Integers, rows: Integers) -> Integers:
    """Return the raw rows of rows; bounds: where those of each task begin."""
    rows = rows & np.int64(REFERENCE - 1)
    found: Integers = bounds[rows >> _ROW_BITS] + (rows & np.int64((1 << _ROW_BITS) - 1))
    return found


class Reader:
    """Reads tasks; in a worker.

    Parameters
    ----------
    tasks : Shared
        All tasks, and the side of each: 0 for the input, 1 for the reference.
    wanted : list of Wanted
        The columns of each side.
    columns : dict of str to str
        As ``Read.columns``.
    records : bool
        Whether the bytes of what is rejected are wanted.
    by_time : bool
        Whether the keep order goes by times.
    """

    def __init__(
        self, tasks: Shared[list[tuple[int, Task]]], wanted: list[Wanted], columns: dict[str, str], *how: bool
    ) -> None:
        self._tasks, self._wanted, self._columns = tasks, wanted, columns
        self._records, self._by_time = how

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the documents of tasks whose numbers are given, and what each task says at its end."""
        from pyspark import SparkFiles

        for number in (number for batch in batches for number in batch.column("id").to_pylist()):
            side, task = self._tasks.value[number]
            for found in task.files:
                found.refuse_if_changed()
            # Below what Spark removes at the end, even of a worker that was killed.
            with tempfile.TemporaryDirectory(dir=SparkFiles.getRootDirectory()) as spool:
                reading = Reading(task, self._wanted[side], spool)
                numbers, order = True, set[str]()
                for read_ in reading.batches():
                    numbers &= read_.ids is None or pa.types.is_int64(read_.ids.type) or not len(read_.ids)
                    if read_.order is not None and read_.order.null_count < len(read_.order):
                        order.add(_type_told(read_.order.type))
                    yield self._documents(read_, side * REFERENCE + (number << _ROW_BITS))
            report = {"task": number, "rows": reading.rows, "lines": reading.lines}
            report |= {"numbers": bool(numbers), "order": sorted(order)}
            report |= _told(reading.broken, self._records and not side)
            yield self._batch(1, row=pa.array([NO_ROW]), fault=pa.array([json.dumps(report)]))

    def _documents(self, read_: Batch, first: int) -> pa.RecordBatch:
        given = {"row": pa.array(read_.rows + first), "text": read_.texts.cast(pa.string())}
        # Without ids: a null would be a fault.
        given["id"] = pa.repeat("", len(read_.rows)) if read_.ids is None else read_.ids.cast(pa.string())
        if "keep" in self._columns and read_.order is not None:
            given["keep"] = _times(read_.order) if self._by_time else _ordered(read_.order)
        return self._batch(len(read_.rows), **given)

    def _batch(self, count: int, **given: pa.Array) -> pa.RecordBatch:
        columns = [given[name] if name in given else pa.nulls(count, pa.string()) for name in self._columns]
        return pa.RecordBatch.from_arrays(columns, list(self._columns))


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
    }


def _times(values: pa.Array) -> pa.Array:
    """Return times as texts, whatever type they come in."""
    times, readable = times_of(values)
    return pa.array([utc(time).isoformat() for time in times.tolist()], pa.string(), mask=~readable)


def _ordered(values: pa.Array) -> pa.Array:
    """Return values of a keep order as texts, which ``Files.kind`` reads."""
    if pa.types.is_temporal(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64())
    elif pa.types.is_floating(values.type):
        values = values.cast(pa.float64())
    return values.cast(pa.string())


def _kind(kinds: set[pa.DataType], column: str) -> pa.DataType:
    """Return as what ``_ordered`` values of some types are compared."""
    kind = order_type(kinds, column)
    if pa.types.is_floating(kind):
        return pa.float64()
    return pa.int64() if pa.types.is_temporal(kind) else kind
