"""Spark beside one process, on files and on a stream: time, memory, and whether the outputs are equal.

    spark.py [spark] [spark-stream] [--small]

    spark         both engines on the same files. Each run is a new command and includes the start of Python and of the
                  JVM; local[2] counts everything
    spark-stream  a stream on local[2], one file of items a micro-batch, beside an ``nd.Index``

A corpus that is not prepared is skipped with a message.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import math
import tempfile
import time
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from corpora import CorpusMissingError, corpus, corpus_texts
from harness import NEARDUP, Row, measure_runs, print_progress, run_sections, section, warm_up

ENGINES = {
    "memory, 2 threads": ["--threads", "2"],
    "Spark, local[2]": ["--engine", "spark", "--master", "local[2]"],
}


@section(
    "spark",
    "corpus | engine | wall s | over memory | CPU s | peak PSS MB | shuffled bytes a document | growth | pairs"
    " | same bytes",
    "{corpus} | {engine} | {wall_s} | {over:.1f} | {cpu_s} | {pss_mb} | {shuffled:.0f} | {growth:.2f} | {pairs:,} | "
    "{same_bytes:yes/**no**}",
)
def measure_engines(args: argparse.Namespace) -> Row:
    """Measure both engines on all corpora.

    ``growth`` is the exponent of CPU time from the corpus before: 1 if twice as many documents take twice as long.
    """
    warm_up()
    rows: list[Row] = []
    for name in ["G10k", "G20k"] if args.small else ["N100k", "N500k", "M1M", "M4M"]:
        try:
            file = corpus(name)
        except CorpusMissingError as error:
            print_progress(f"skipped: {error}")
            continue
        for engine, options in ENGINES.items():
            print_progress(f"{name}, {engine}")
            row: Row = {"corpus": name, "engine": engine} | dedup_row(file, options, args.runs)
            if rows and engine != rows[-1]["engine"] and name == rows[-1]["corpus"]:
                row["over"] = row["wall_s"] / rows[-1]["wall_s"]
                row["same_bytes"] = row["sha256"] == rows[-1]["sha256"]
                row["shuffled"] = sum(stage.get("shuffle_bytes", 0) for stage in row["stages"]) / row["documents"]
            if before := [earlier for earlier in rows if earlier["engine"] == engine]:
                times, sizes = (math.log(row[key] / before[-1][key]) for key in ("cpu_s", "documents"))
                row["growth"] = times / sizes
            rows.append(row)
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def dedup_row(file: Path, engine: list[str], runs: int) -> Row:
    with tempfile.TemporaryDirectory() as folder:
        kept, dropped, summary = (Path(folder, name) for name in ("kept.parquet", "dropped.parquet", "summary.json"))
        command = [*NEARDUP, "dedup", file, "-o", kept, "--duplicates", dropped, "--summary", summary, "--force"]
        figures = measure_runs([*command, *engine], runs)
        report = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(kept.read_bytes() + dropped.read_bytes()).hexdigest()
    return figures | {key: report[key] for key in ("documents", "pairs", "stages")} | {"sha256": digest}


#: Seconds between two items of the stream: a window of 24 hours holds 8,640 of them.
ITEM_INTERVAL = 10
FIRST_TIME = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


@section(
    "spark-stream",
    "corpus | items | a micro-batch | seconds for one | items/s on Spark | items/s of `nd.Index`, as many at once"
    " | same verdicts",
    "{corpus} | {items:,} | {at_once:,} | {micro_batch_s} | {items_per_s:,} | {index_items_per_s:,} | "
    "{same:yes/**no**}",
)
def measure_stream(args: argparse.Namespace) -> Row:
    name, items = ("G10k", 6_000) if args.small else ("N100k", 60_000)
    texts = list(islice(corpus_texts(corpus(name)), items))
    rows = []
    for batch_size in (1_000, 3_000) if args.small else (1_000, 5_000, 20_000):
        print_progress(f"{name}, {batch_size:,} items a micro-batch")
        rows.append({"corpus": name, "items": len(texts), "at_once": batch_size} | stream_row(texts, batch_size))
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def stream_row(texts: list[str], batch_size: int) -> Row:
    """Return the items a second of micro-batches after the first two and of an index, and whether verdicts agree."""
    import neardup as nd
    import neardup.spark
    from neardup.spark.session import session

    times = [FIRST_TIME + ITEM_INTERVAL * i for i in range(len(texts))]
    index = nd.Index(window="24h")
    documents = [nd.Document(f"{i:08}", text, float(at)) for i, (text, at) in enumerate(zip(texts, times, strict=True))]
    index.add_many(documents[:batch_size])
    began = time.perf_counter()
    verdicts = [
        verdict
        for i in range(batch_size, len(texts), batch_size)
        for verdict in index.add_many(documents[i : i + batch_size])
    ]
    index_rate = (len(texts) - batch_size) / (time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as folder, session("local[2]") as spark:
        inbox = Path(folder, "inbox")
        inbox.mkdir()
        for number, begin in enumerate(range(0, len(texts), batch_size)):
            rows = slice(begin, begin + batch_size)
            ids = pa.array([document.id for document in documents[rows]])
            stamps = pa.array([1_000_000 * at for at in times[rows]], pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"id": ids, "text": texts[rows], "time": stamps}), inbox / f"{number:05}.parquet")
        source = spark.readStream.schema("id string, text string, time timestamp").option("maxFilesPerTrigger", 1)
        judged = neardup.spark.stream(source.parquet(str(inbox)))
        writer = judged.writeStream.format("parquet").option("path", f"{folder}/out")
        query = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
        query.awaitTermination()
        batch_seconds = [progress.durationMs["triggerExecution"] / 1000 for progress in query.recentProgress]
        spark_verdicts = (
            spark.read.parquet(f"{folder}/out").orderBy("serial").select("id", "kind", "of").toArrow().to_pylist()
        )
    index_verdicts = [{"id": verdict.id, "kind": verdict.kind, "of": verdict.of} for verdict in verdicts]
    steady = batch_seconds[2:] or batch_seconds
    return {
        "items_per_s": round(batch_size * len(steady) / sum(steady)),
        "micro_batch_s": round(sorted(steady)[len(steady) // 2], 2),
        "index_items_per_s": round(index_rate),
        "same": spark_verdicts[batch_size:] == index_verdicts,
    }


if __name__ == "__main__":
    run_sections(__doc__)
