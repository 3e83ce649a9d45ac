"""Files of news as a stream of items, read in the workers by the readers of ``neardup watch``."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup.content.items import Item
from neardup.errors import InputError
from neardup.watch.names import is_passed_over
from neardup.watch.taking import read_items

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
