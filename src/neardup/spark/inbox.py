"""Files of news as a stream of items, read in the workers by the readers of ``neardup watch``."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup.errors import InputError, OutputError
from neardup.spark.session import session, told_by_spark
from neardup.spark.stages import Folder
from neardup.spark.streaming import SETTINGS, Work, judged
from neardup.watch.names import is_passed_over
from neardup.watch.pending import read_items
from neardup.watch.records import Item

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from neardup.spark.command import Engine

#: Rows of ``arriving.blobs_of``: items, and what is broken, in the order in which ``neardup watch`` takes them.
ITEM_COLUMNS = (
    "id string, text string, title string, time timestamp, origin string, aside string, order_0 bigint, "
    "order_1 string, order_2 bigint"
)
_SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("text", pa.string()),
        ("title", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
        ("origin", pa.string()),
        ("aside", pa.string()),
        ("order_0", pa.int64()),
        ("order_1", pa.string()),
        ("order_2", pa.int64()),
    ]
)
#: What Spark says of a file.
_FILES = "path string, modificationTime timestamp, length bigint, content binary"
#: Larger files would stop Spark, which holds a file in a row.
_LARGEST = 2_000_000_000
_ROWS, _BYTES = 1024, 8 << 20
#: What Spark reads as a pattern of names.
_PATTERN = re.compile(r"[\[\]{}*?\\]")


def items_of(spark: SparkSession, inbox: str, *, files: int, content: str, largest: int) -> DataFrame:
    """Return the items of the files that appear in a folder, as a streaming data frame.

    Parameters
    ----------
    inbox : str
        A folder or URI that all workers can read.
    files : int
        How many files make a micro-batch at most.
    content : str
        ``auto`` takes the article of a page; anything else the page as it is.
    largest : int
        Bytes of the largest file that is read.

    Raises
    ------
    InputError
        If the folder is not there, or Spark would take its name for a pattern.
    """
    from pyspark.sql import functions as F

    root = root_of(spark, inbox)
    reader = spark.readStream.format("binaryFile").schema(_FILES).option("recursiveFileLookup", "true")
    # A file that was old when it came is news, and one that is gone by now is no reason to stop.
    reader = reader.option("maxFileAge", "36500d").option("ignoreMissingFiles", "true")
    found = reader.option("maxFilesPerTrigger", str(files)).load(inbox)
    chosen = found.where(F.col("length") <= _LARGEST)
    rows = chosen.select("path", F.unix_micros("modificationTime").alias("changed"), "content")
    return rows.mapInArrow(partial(_item_batches, root, content, largest), ITEM_COLUMNS)


def root_of(spark: SparkSession, inbox: str) -> str:
    """Return a folder as Spark writes it before the paths of its files.

    Raises
    ------
    InputError
        If it is not there, or Spark would take its name for a pattern.
    """
    if _PATTERN.search(inbox):
        raise InputError(
            f"{inbox} has one of []{{}}*?\\ in its name, which Spark reads as a pattern: rename the folder"
        )
    context: Any = spark.sparkContext
    path = context._jvm.org.apache.hadoop.fs.Path(inbox)
    system = path.getFileSystem(context._jsc.hadoopConfiguration())
    if not system.exists(path) or not system.getFileStatus(path).isDirectory():
        raise InputError(f"{inbox} is no folder that Spark can read: make it, or name another")
    return str(system.makeQualified(path).toString()).rstrip("/") + "/"


def _item_batches(root: str, content: str, largest: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the items of files; in a worker."""
    rows: list[dict[str, Any]] = []
    size = 0
    for batch in batches:
        for i in range(batch.num_rows):
            path, changed = batch.column("path")[i].as_py(), batch.column("changed")[i].as_py()
            read: Callable[[], bytes] = batch.column("content")[i].as_py
            for row in file_rows(path.removeprefix(root), changed, read(), content, largest):
                rows.append(row)
                size += len(row.get("text") or "")
                if len(rows) >= _ROWS or size >= _BYTES:
                    yield pa.RecordBatch.from_pylist(rows, _SCHEMA)
                    rows, size = [], 0
    if rows:
        yield pa.RecordBatch.from_pylist(rows, _SCHEMA)


def file_rows(name: str, changed: int, data: bytes, content: str, largest: int) -> Iterator[dict[str, Any]]:
    """Yield the items of a file and what is broken in it, with the ids, times and titles that ``neardup watch`` gives.

    Parameters
    ----------
    name : str
        Its path below the inbox.
    changed : int
        When it was last changed, in microseconds since 1970.
    data, content, largest
        As in ``items_of``.
    """
    if any(is_passed_over(part) for part in name.split("/")):
        return
    row = {"origin": _clean(name), "order_0": changed, "order_1": _clean(name)}
    if len(data) > largest:
        reason = f"the file: {len(data):,} bytes are more than --largest allows ({largest:,})"
        yield row | {"aside": reason, "order_2": 0}
        return
    read = read_items(name, data, content)
    number = 0
    waiting: Item | None = None
    # Whether a file has one item or several, which its name depends on, is known with the second one.
    for item in read.items:
        if waiting is not None:
            number += 1
            yield row | _row(waiting, name, number, alone=False)
        waiting = item
    if waiting is not None:
        yield row | _row(waiting, name, number + 1, alone=number == 0)
    for place, fault in enumerate(read.broken):
        yield row | {"aside": _clean(f"{fault.where}: {fault.reason}"), "order_2": number + 2 + place}


def _row(item: Item, name: str, number: int, *, alone: bool) -> dict[str, Any]:
    found = item.key or (name if alone else f"{name}#{number}")
    cleaned = {"id": _clean(found), "text": _clean(item.text), "title": _clean(item.title)}
    return cleaned | {"time": item.timestamp, "order_2": number}


def _clean(text: str) -> str:
    """Return a text that UTF-8 can hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


#: Beside the checkpoint: whose it is.
_MARK, _CHECKPOINT = "neardup-stream.json", "checkpoint"
_COUNTED = "neardup"
_PARTITIONS = "spark.sql.shuffle.partitions"
_POLL = 0.2
#: Told of an event and its fields.
Say = Callable[..., None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Watching:
    """A folder to watch, and where verdicts go.

    Attributes
    ----------
    inbox, verdicts, checkpoint_dir : str
        Folders or URIs that all workers can reach.
    content : str
        ``auto`` takes the article of a page; anything else the page as it is.
    largest : int
        Bytes of the largest file that is read.
    files : int
        How many files make a micro-batch at most.
    poll : float
        Seconds between two looks at the inbox.
    once : bool
        Whether to end when all that is there is judged.
    """

    inbox: str
    verdicts: str
    checkpoint_dir: str
    content: str
    largest: int
    files: int
    poll: float
    once: bool


@dataclass(slots=True)
class Totals:
    """What a run has judged: files, items, originals, duplicates (of these exact copies), rows set aside."""

    batches: int = 0
    files: int = 0
    items: int = 0
    originals: int = 0
    duplicates: int = 0
    exact: int = 0
    set_aside: int = 0
    seconds: float = 0.0
    last: int = -1

    def as_dict(self) -> dict[str, Any]:
        """Return the numbers for the log."""
        names = ("batches", "files", "items", "originals", "duplicates", "exact", "set_aside")
        return {name: getattr(self, name) for name in names} | {"seconds": round(self.seconds, 1)}


def watch(watching: Watching, engine: Engine, make: Callable[[int], Work], shards: int | None, say: Say) -> Totals:
    """Judge the files of a folder until asked to stop, or, once, until all that is there is judged.

    Parameters
    ----------
    engine : Engine
        Where.
    make : callable
        Gives the work for so many shards.
    shards : int, optional
        How many the stream is begun with; by default as many as there are processors.
    say : callable
        Told of events and their fields.

    Raises
    ------
    NeardupError
        In one sentence.
    """
    given = SETTINGS | dict(engine.settings)
    with session(engine.master, settings=given, log=engine.log, wait=engine.wait, ship=engine.ship) as spark:
        with told_by_spark():
            root_of(spark, watching.inbox)
            work = _claimed(spark, watching, make, shards)
            if _PARTITIONS not in engine.settings:
                spark.conf.set(_PARTITIONS, work.mark["shards"])
            rows = items_of(
                spark, watching.inbox, files=watching.files, content=watching.content, largest=watching.largest
            )
            frame = _counted(judged(rows, work))
            writer = frame.writeStream.format("parquet").option("path", watching.verdicts)
            writer = writer.option("checkpointLocation", f"{watching.checkpoint_dir.rstrip('/')}/{_CHECKPOINT}")
            trigger: dict[str, Any] = {"processingTime": f"{round(watching.poll * 1000)} milliseconds"}
            query = writer.trigger(**({"availableNow": True} if watching.once else trigger)).start()
        say(
            "started",
            pid=os.getpid(),
            inbox=watching.inbox,
            verdicts=watching.verdicts,
            checkpoint_dir=watching.checkpoint_dir,
            recipe=work.recipe.name,
            fingerprint=work.recipe.fingerprint,
            matches=work.recipe.in_words(),
            window=work.mark["window"],
            engine="spark",
            master=engine.master,
            shards=int(work.mark["shards"]),
            files_per_batch=watching.files,
        )
        return _followed(query, say)


def _claimed(spark: SparkSession, watching: Watching, make: Callable[[int], Work], shards: int | None) -> Work:
    """Return the work of a stream that is begun, or gone on with; refuse folders of another one.

    Raises
    ------
    OutputError
        If they are.
    """
    stages, verdicts = Folder(spark, watching.checkpoint_dir), Folder(spark, watching.verdicts)
    told = stages.read(_MARK)
    known: dict[str, Any] = {} if told is None else json.loads(told)
    if told is None and not stages.is_empty():
        raise OutputError(
            f"{watching.checkpoint_dir} holds other files than a stream's: name a folder that is new or empty"
        )
    if told is None and not verdicts.is_empty():
        raise OutputError(
            f"{watching.verdicts} is not empty, and the stream in {watching.checkpoint_dir} is new: name a new folder "
            "for its verdicts, or the stages that belong to these"
        )
    count = int(known.get("shards", 0)) or shards or int(spark.sparkContext.defaultParallelism)
    work = make(count)
    own = {**work.mark, "inbox": _place(watching.inbox), "verdicts": _place(watching.verdicts)}
    if told is None:
        stages.write(_MARK, json.dumps(own).encode())
    for name, value in own.items():
        if told is not None and known.get(name) != value:
            raise OutputError(
                f"{watching.checkpoint_dir} holds a stream whose {name} is {known.get(name)}, and this one's is "
                f"{value}: give what it was begun with, or name another folder"
            )
    if shards is not None and shards != count:
        raise OutputError(
            f"{watching.checkpoint_dir} holds a stream of {count} shards, and --shards says {shards}: leave it out, or "
            "name another folder"
        )
    return work


def _place(folder: str) -> str:
    return folder if "://" in folder else os.path.realpath(folder)


def _counted(frame: DataFrame) -> DataFrame:
    """Return verdicts that are counted on their way."""
    from pyspark.sql import functions as F

    kinds = {"originals": "original", "near": "near", "exact": "exact", "set_aside": "set-aside"}
    counts = [F.count_if(F.col("kind") == kind).alias(name) for name, kind in kinds.items()]
    return frame.observe(_COUNTED, *counts)


def _followed(query: StreamingQuery, say: Say) -> Totals:
    """Tell of each micro-batch until the stream ends, and return what all of them were."""
    totals, began = Totals(), time.monotonic()
    with _until_signal() as asked, told_by_spark():
        at: int | None = None
        try:
            while not query.awaitTermination(_POLL):
                _tell(query, totals, say)
                if not asked():
                    continue
                if at is None:
                    say("stopping", message="asked to stop: the batch in hand is finished")
                    at = totals.batches
                if totals.batches > at or not query.status["isTriggerActive"]:
                    break
        finally:
            # What is stopped in the middle of a micro-batch is done again by the next run, and counts once.
            query.stop()
        _tell(query, totals, say)
    totals.seconds = time.monotonic() - began
    say("stopped", **totals.as_dict())
    return totals


def _tell(query: StreamingQuery, totals: Totals, say: Say) -> None:
    for progress in query.recentProgress:
        number, files = int(progress["batchId"]), int(progress["numInputRows"])
        if number <= totals.last or not files:
            continue
        totals.last = number
        counts = dict(_counts(progress))
        near, exact = counts.get("near", 0), counts.get("exact", 0)
        originals, aside = counts.get("originals", 0), counts.get("set_aside", 0)
        totals.batches += 1
        totals.files += files
        totals.items += originals + near + exact
        totals.originals += originals
        totals.duplicates += near + exact
        totals.exact += exact
        totals.set_aside += aside
        say(
            "batch",
            batch=number,
            files=files,
            items=originals + near + exact,
            originals=originals,
            duplicates=near + exact,
            exact=exact,
            set_aside=aside,
            ms=int(progress["durationMs"].get("triggerExecution", 0)),
        )


def _counts(progress: Any) -> Iterator[tuple[str, int]]:
    counts = progress["observedMetrics"].get(_COUNTED)
    if counts is not None:
        found = counts.asDict() if hasattr(counts, "asDict") else counts
        yield from ((name, int(value)) for name, value in found.items())


@contextmanager
def _until_signal() -> Iterator[Callable[[], bool]]:
    """Give whether SIGINT or SIGTERM came; the second one ends at once."""
    came = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal came
        if came:
            raise KeyboardInterrupt("nothing is lost: the next run goes on from here")
        came = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
