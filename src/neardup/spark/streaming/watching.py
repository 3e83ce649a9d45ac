"""A folder that fills, judged on Spark: verdicts as Parquet files, each item once, whatever ends in between."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any

from neardup.errors import OutputError
from neardup.spark.faults import told_by_spark
from neardup.spark.folders import Folder
from neardup.spark.session import session
from neardup.spark.streaming.files import items_of, root_of
from neardup.spark.streaming.flow import SETTINGS, judged
from neardup.spark.streaming.work import Work

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import StreamingQuery

    from neardup.spark.running import Engine

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
    inbox, verdicts, stages : str
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
    stages: str
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
            writer = writer.option("checkpointLocation", f"{watching.stages.rstrip('/')}/{_CHECKPOINT}")
            trigger: dict[str, Any] = {"processingTime": f"{round(watching.poll * 1000)} milliseconds"}
            query = writer.trigger(**({"availableNow": True} if watching.once else trigger)).start()
        say(
            "started",
            pid=os.getpid(),
            inbox=watching.inbox,
            verdicts=watching.verdicts,
            stages=watching.stages,
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
    stages, verdicts = Folder(spark, watching.stages), Folder(spark, watching.verdicts)
    told = stages.read(_MARK)
    known: dict[str, Any] = {} if told is None else json.loads(told)
    if told is None and not stages.is_empty():
        raise OutputError(f"{watching.stages} holds other files than a stream's: name a folder that is new or empty")
    if told is None and not verdicts.is_empty():
        raise OutputError(
            f"{watching.verdicts} is not empty, and the stream in {watching.stages} is new: name a new folder for its "
            "verdicts, or the stages that belong to these"
        )
    count = int(known.get("shards", 0)) or shards or int(spark.sparkContext.defaultParallelism)
    work = make(count)
    own = {**work.mark, "inbox": _place(watching.inbox), "verdicts": _place(watching.verdicts)}
    if told is None:
        stages.write(_MARK, json.dumps(own).encode())
    for name, value in own.items():
        if told is not None and known.get(name) != value:
            raise OutputError(
                f"{watching.stages} holds a stream whose {name} is {known.get(name)}, and this one's is {value}: give "
                "what it was begun with, or name another folder"
            )
    if shards is not None and shards != count:
        raise OutputError(
            f"{watching.stages} holds a stream of {count} shards, and --shards says {shards}: leave it out, or name "
            "another folder"
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
