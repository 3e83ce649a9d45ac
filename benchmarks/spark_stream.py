"""What a stream on Spark costs: items a second and milliseconds a micro-batch beside an index, state and shuffle.

    spark_stream.py [--corpus R20k] [--batch 1000] [--master local[2]] [--out FILE]

Items arrive evenly, 10,000 a day, as one Parquet file for each micro-batch. The same items go through ``nd.Index`` in
batches of as many. Every verdict of the stream is compared with the index's. Files lie in BENCH_HOME and are removed.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from arrivals import arriving, texts_of, warm_up
from corpora import corpus
from measuring import BENCH_HOME, RESULTS, machine, note, save, table

import neardup as nd
import neardup.spark
from neardup.spark.session import session
from neardup.stream.document import Document, Verdict

_PER_DAY = 10_000
#: Micro-batches at the beginning that are left out of the medians: workers load their kernels.
_WARM = 2
_SCHEMA = "id string, text string, time timestamp"
#: A window, and what duplicates are compared with.
CASES = (("24h", "originals"), ("24h", "everything"), ("endless", "originals"))


def write_batches(documents: list[Document], size: int, folder: Path) -> None:
    """Write documents as files, one a micro-batch, each changed after the one before it."""
    for number, begin in enumerate(range(0, len(documents), size)):
        part = documents[begin : begin + size]
        columns = {
            "id": pa.array([document.id for document in part]),
            "text": pa.array([document.text for document in part]),
            "time": pa.array([document.microseconds for document in part], pa.timestamp("us", "UTC")),
        }
        path = folder / f"{number:06d}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def local(documents: list[Document], size: int, window: str, against: str) -> tuple[list[Verdict], dict[str, Any]]:
    """Return the verdicts of an index, and what it took."""
    index, verdicts = nd.Index("default", window=window, against=against), []
    began = time.perf_counter()
    for begin in range(0, len(documents), size):
        verdicts += index.add_many(documents[begin : begin + size])
    spent = time.perf_counter() - began
    return verdicts, {"seconds": round(spent, 3), "items_per_s": round(len(documents) / spent), "held": len(index)}


def stream(
    spark: Any, inbox: Path, folder: Path, expected: list[Verdict], window: str, against: str, shards: int
) -> dict[str, Any]:
    """Return what a stream took, and how many of its verdicts are not the index's."""
    frame = spark.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(inbox))
    verdicts = neardup.spark.stream(frame, "default", window=window, against=against, shards=shards)
    writer = verdicts.writeStream.format("parquet").option("path", str(folder / "verdicts"))
    shuffled, began = shuffle_bytes(spark), time.perf_counter()
    query = writer.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    batches: dict[int, Any] = {}
    while not query.awaitTermination(1):
        batches |= {int(p["batchId"]): p for p in query.recentProgress if p["numInputRows"]}
    batches |= {int(p["batchId"]): p for p in query.recentProgress if p["numInputRows"]}
    spent = time.perf_counter() - began
    found = spark.read.parquet(str(folder / "verdicts")).orderBy("serial").collect()
    differ = len(found) != len(expected) or sum(
        (row.id, row.kind, row.of, row.similarity, row.flag) != (v.id, v.kind, v.of, v.similarity, v.flag)
        for row, v in zip(found, expected, strict=True)
    )
    each = [batches[number]["durationMs"]["triggerExecution"] for number in sorted(batches)]
    warm = each[_WARM:] or each
    size = len(expected) / len(each)
    held = [path.stat().st_size for path in (folder / "checkpoint" / "state").rglob("*") if path.is_file()]
    items = len(expected)
    return {
        "shards": shards,
        "seconds": round(spent, 3),
        "batches": len(each),
        "first_batch_ms": each[0],
        "batch_ms_median": round(statistics.median(warm)),
        "batch_ms_max": max(warm),
        "items_per_s": round(1000 * size / statistics.mean(warm)),
        "state_bytes_per_item": round(sum(held) / items),
        "shuffle_bytes_per_item": round((shuffle_bytes(spark) - shuffled) / items),
        "differ": int(differ),
    }


def shuffle_bytes(spark: Any) -> int:
    """Return what all stages of a session have written for others to read."""
    store = spark.sparkContext._jsc.sc().statusStore()
    jobs = store.jobsList(None)
    stages: set[int] = set()
    for number in range(jobs.size()):
        ids = jobs.apply(number).stageIds()
        stages |= {int(ids.apply(place)) for place in range(ids.size())}
    return sum(int(store.lastStageAttempt(stage).shuffleWriteBytes()) for stage in stages)


def shown(results: dict[str, Any]) -> str:
    """Return the figures as a table."""
    head = ["window", "against", "index, items/s", "stream, items/s", "ms a batch", "first batch, ms"]
    head += ["state, bytes an item", "shuffle, bytes an item", "verdicts that differ"]
    rows = []
    for case in results["cases"]:
        took = case["stream"]
        row = [case["window"], case["against"], case["index"]["items_per_s"], took["items_per_s"]]
        row += [took["batch_ms_median"], took["first_batch_ms"], took["state_bytes_per_item"]]
        rows.append([*row, took["shuffle_bytes_per_item"], took["differ"]])
    return table(head, rows)


def main() -> None:
    """Measure, print a table and write the results."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", default="R20k")
    parser.add_argument("--batch", type=int, default=1000)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--shards", type=int, default=2)
    parser.add_argument("--items", type=int, default=None)
    parser.add_argument("--out", type=Path, default=RESULTS / "spark_stream.json")
    given = parser.parse_args()
    warm_up(one_core=False)
    documents = list(arriving(texts_of(corpus(given.corpus)), _PER_DAY))[: given.items]
    bytes_per_item = round(sum(len(document.text.encode()) for document in documents) / len(documents))
    cases, parts = [], {"spark.sql.shuffle.partitions": str(given.shards)}
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as scratch, session(given.master, settings=parts) as spark:
        inbox = Path(scratch) / "inbox"
        inbox.mkdir()
        write_batches(documents, given.batch, inbox)
        for number, (window, against) in enumerate(CASES):
            note(f"{len(documents):,} items in batches of {given.batch:,}: window {window}, against {against}")
            folder = Path(scratch) / str(number)
            expected, alone = local(documents, given.batch, window, against)
            took = stream(spark, inbox, folder, expected, window, against, given.shards)
            cases.append({"window": window, "against": against, "index": alone, "stream": took})
    what = {"corpus": given.corpus, "items": len(documents), "text_bytes_per_item": bytes_per_item}
    what |= {"batch": given.batch, "master": given.master, "per_day": _PER_DAY}
    what |= {"pyspark": importlib.metadata.version("pyspark"), "cases": cases, "machine": machine()}
    save(given.out, "spark_stream", what)
    print(shown(what))


if __name__ == "__main__":
    main()
