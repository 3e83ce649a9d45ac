"""Spark beside one process, on files and on a stream: time, memory, and whether the outputs are equal.

    spark.py [spark spark-stream] [--corpora N100k N500k M1M M4M] [--master local[2]] [--searches exact lsh] [--small]

Each run is a new command and includes the start of Python and of the JVM. ``local[2]`` counts everything; with the
address of a cluster (scripts/cluster starts one) the time and memory of its workers are not counted. A corpus that is
not prepared is skipped with a message. The stream runs on local[2], one file of items a micro-batch, beside an
``nd.Index``.
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
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from corpora import corpus, corpus_texts
from measuring import NEARDUP, Section, markdown_table, measure, print_progress, run_sections, summarize, warm_up

CORPORA = ["N100k", "N500k", "M1M", "M4M"]
SEARCHES = {"exact": [], "lsh": ["--search", "lsh", "--set", "recall=0.95"]}


def measure_engines(args: argparse.Namespace) -> dict[str, Any]:
    """Measure both engines with each search on all corpora."""
    warm_up()
    rows = []
    for name in args.corpora or (["G10k", "G20k"] if args.small else CORPORA):
        try:
            file = corpus(name)
        except SystemExit as error:
            print_progress(f"skipped: {error}")
            continue
        for search in args.searches:
            for engine in ("memory, 2 threads", f"Spark, {args.master}"):
                print_progress(f"{name}, {search}, {engine}")
                engine_options = (
                    ["--threads", "2"] if engine[0] == "m" else ["--engine", "spark", "--master", args.master]
                )
                row = dedup_row(file, SEARCHES[search], engine_options, args)
                rows.append({"corpus": name, "engine": engine, "search": search} | row)
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def dedup_row(file: Path, search: list[str], engine: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Return the cost and the digest of the output of one engine."""
    with tempfile.TemporaryDirectory() as folder:
        kept, dropped, summary = (Path(folder, name) for name in ("kept.parquet", "dropped.parquet", "summary.json"))
        command = [*NEARDUP, "dedup", file, "-o", kept, "--duplicates", dropped, "--summary", summary, "--force"]
        figures = summarize([measure([*command, *search, *engine]) for _ in range(args.runs)])
        report = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(kept.read_bytes() + dropped.read_bytes()).hexdigest()
    return figures | {key: report[key] for key in ("documents", "pairs", "stages")} | {"sha256": digest}


def cpu_growth_exponent(smaller: dict[str, Any], larger: dict[str, Any]) -> float:
    """Return the exponent of CPU time between two corpora: 1 if twice as many documents take twice as long."""
    return math.log(larger["cpu_s"] / smaller["cpu_s"]) / math.log(larger["documents"] / smaller["documents"])


def spark_table(results: dict[str, Any]) -> str:
    """Return the cost of both engines by corpus and search."""
    memory = {(r["corpus"], r["search"]): r for r in results["rows"] if r["engine"][0] == "m"}
    rows = []
    smaller: dict[tuple[str, str], dict[str, Any]] = {}
    for r in results["rows"]:
        before = smaller.get((r["engine"], r["search"]))
        smaller[r["engine"], r["search"]] = r
        in_memory = memory[r["corpus"], r["search"]]
        over = f"{r['wall_s'] / in_memory['wall_s']:.1f}" if r is not in_memory else ""
        same = ("yes" if r["sha256"] == in_memory["sha256"] else "**no**") if r is not in_memory else ""
        shuffled = sum(stage.get("shuffle_bytes", 0) for stage in r["stages"]) / r["documents"]
        growth = "" if before is None else f"{cpu_growth_exponent(before, r):.2f}"
        costs = [r["wall_s"], over, r["cpu_s"], r["pss_mb"], f"{shuffled:.0f}" if over else ""]
        rows.append([r["corpus"], r["engine"], r["search"], *costs, growth, f"{r['pairs']:,}", same])
    header = ["corpus", "engine", "search", "wall s", "over memory", "CPU s", "peak PSS MB"]
    header += ["shuffled bytes a document", "growth", "pairs", "same bytes"]
    return markdown_table(header, rows)


#: Seconds between two items of the stream: a window of 24 hours holds 8,640 of them.
ITEM_INTERVAL = 10
FIRST_TIME = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


def measure_stream(args: argparse.Namespace) -> dict[str, Any]:
    """Measure a stream on Spark beside one index, for several sizes of a micro-batch."""
    name, items = (args.corpora or (["G10k"] if args.small else ["N100k"]))[-1], 6_000 if args.small else 60_000
    texts = list(islice(corpus_texts(corpus(name)), items))
    rows = []
    for batch_size in (1_000, 3_000) if args.small else (1_000, 5_000, 20_000):
        print_progress(f"{name}, {batch_size:,} items a micro-batch")
        rows.append({"corpus": name, "items": len(texts), "at_once": batch_size} | stream_row(texts, batch_size))
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def stream_row(texts: list[str], batch_size: int) -> dict[str, Any]:
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


def stream_table(results: dict[str, Any]) -> str:
    """Return the speed of a stream by the size of its micro-batches."""
    header = ["corpus", "items", "a micro-batch", "seconds for one", "items/s on Spark"]
    header += ["items/s of `nd.Index`, as many at once", "same verdicts"]
    rows = []
    for r in results["rows"]:
        rates = [f"{r['items_per_s']:,}", f"{r['index_items_per_s']:,}"]
        sizes = [r["corpus"], f"{r['items']:,}", f"{r['at_once']:,}", r["micro_batch_s"]]
        rows.append([*sizes, *rates, "yes" if r["same"] else "**no**"])
    return markdown_table(header, rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--searches", nargs="+", default=["exact"], choices=list(SEARCHES))


if __name__ == "__main__":
    sections = {
        "spark": Section(measure_engines, {"spark": spark_table}),
        "spark-stream": Section(measure_stream, {"spark-stream": stream_table}),
    }
    run_sections(__doc__, sections, add_options)
