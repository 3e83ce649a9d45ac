"""Spark beside one process: runs on files, and a stream; time, memory, and whether the answers are the same.

    spark.py [spark spark-stream] [--corpora N100k N500k M1M M4M] [--master local[2]] [--searches exact lsh] [--small]

Each run is a command of its own, the start of Python and of the JVM included. With the address of a cluster
(scripts/cluster starts one) the time and the memory of its workers are not counted; ``local[2]`` counts everything.
A corpus that is not prepared is left out, with a note. The stream is local[2]: files of items, one a
micro-batch, against one ``nd.Index``.
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
from corpora import corpus, texts_of
from measuring import NEARDUP, Section, measure, note, run_sections, summarize, table, warm_up

CORPORA = ["N100k", "N500k", "M1M", "M4M"]
SEARCHES = {"exact": [], "lsh": ["--search", "lsh", "--set", "recall=0.95"]}


def compare(args: argparse.Namespace) -> dict[str, Any]:
    """Run both engines with both searches on all corpora."""
    warm_up()
    rows = []
    for name in args.corpora or (["G10k", "G20k"] if args.small else CORPORA):
        try:
            file = corpus(name)
        except SystemExit as error:
            note(f"left out: {error}")
            continue
        for search in args.searches:
            for engine in ("memory, 2 threads", f"Spark, {args.master}"):
                note(f"{name}, {search}, {engine}")
                chosen = ["--threads", "2"] if engine[0] == "m" else ["--engine", "spark", "--master", args.master]
                found = run(file, SEARCHES[search], chosen, args)
                rows.append({"corpus": name, "engine": engine, "search": search} | found)
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def run(file: Path, search: list[str], engine: list[str], args: argparse.Namespace) -> dict[str, Any]:
    """Return what one engine takes and finds."""
    with tempfile.TemporaryDirectory() as folder:
        kept, dropped, summary = (Path(folder, name) for name in ("kept.parquet", "dropped.parquet", "summary.json"))
        command = [*NEARDUP, "dedup", file, "-o", kept, "--duplicates", dropped, "--summary", summary, "--force"]
        figures = summarize([measure([*command, *search, *engine]) for _ in range(args.runs)])
        said = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(kept.read_bytes() + dropped.read_bytes()).hexdigest()
    return figures | {key: said[key] for key in ("documents", "pairs", "stages")} | {"sha256": digest}


def growth(smaller: dict[str, Any], larger: dict[str, Any]) -> float:
    """Return the exponent of CPU time from one corpus to another: 1 where twice as many take twice as long."""
    return math.log(larger["cpu_s"] / smaller["cpu_s"]) / math.log(larger["documents"] / smaller["documents"])


def as_table(results: dict[str, Any]) -> str:
    """Return both engines side by side."""
    memory = {(r["corpus"], r["search"]): r for r in results["rows"] if r["engine"][0] == "m"}
    rows = []
    smaller: dict[tuple[str, str], dict[str, Any]] = {}
    for r in results["rows"]:
        before = smaller.get((r["engine"], r["search"]))
        smaller[r["engine"], r["search"]] = r
        beside = memory[r["corpus"], r["search"]]
        over = f"{r['wall_s'] / beside['wall_s']:.1f}" if r is not beside else ""
        same = ("yes" if r["sha256"] == beside["sha256"] else "**no**") if r is not beside else ""
        shuffled = sum(stage.get("shuffle_bytes", 0) for stage in r["stages"]) / r["documents"]
        figures = [
            r["wall_s"],
            over,
            r["cpu_s"],
            r["pss_mb"],
            f"{shuffled:.0f}" if over else "",
            "" if before is None else f"{growth(before, r):.2f}",
            f"{r['pairs']:,}",
            same,
        ]
        rows.append([r["corpus"], r["engine"], r["search"], *figures])
    header = [
        "corpus",
        "engine",
        "search",
        "wall s",
        "over memory",
        "CPU s",
        "peak PSS MB",
        "shuffled bytes a document",
        "growth",
        "pairs",
        "same bytes",
    ]
    return table(header, rows)


#: Seconds between two items of the stream: what a window of 24 hours holds is 8,640 of them.
_APART = 10
_FIRST = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())


def stream(args: argparse.Namespace) -> dict[str, Any]:
    """Let items come as files, so many in each, and judge them on Spark and by one index."""
    name, items = (args.corpora or (["G10k"] if args.small else ["N100k"]))[-1], 6_000 if args.small else 60_000
    texts = list(islice(texts_of(corpus(name)), items))
    rows = []
    for each in (1_000, 3_000) if args.small else (1_000, 5_000, 20_000):
        note(f"{name}, {each:,} items a micro-batch")
        rows.append({"corpus": name, "items": len(texts), "at_once": each} | _streamed(texts, each))
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def _streamed(texts: list[str], each: int) -> dict[str, Any]:
    """Return the items a second of micro-batches but for the first two, of an index, and whether both say the same."""
    import neardup as nd
    import neardup.spark
    from neardup.spark.session import session

    times = [_FIRST + _APART * i for i in range(len(texts))]
    index = nd.Index(window="24h")
    documents = [nd.Document(f"{i:08}", text, float(at)) for i, (text, at) in enumerate(zip(texts, times, strict=True))]
    index.add_many(documents[:each])
    began = time.perf_counter()
    verdicts = [verdict for i in range(each, len(texts), each) for verdict in index.add_many(documents[i : i + each])]
    here = (len(texts) - each) / (time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as folder, session("local[2]") as spark:
        inbox = Path(folder, "inbox")
        inbox.mkdir()
        for number, begin in enumerate(range(0, len(texts), each)):
            own = slice(begin, begin + each)
            ids = pa.array([document.id for document in documents[own]])
            stamps = pa.array([1_000_000 * at for at in times[own]], pa.timestamp("us", "UTC"))
            pq.write_table(pa.table({"id": ids, "text": texts[own], "time": stamps}), inbox / f"{number:05}.parquet")
        source = spark.readStream.schema("id string, text string, time timestamp").option("maxFilesPerTrigger", 1)
        found = neardup.spark.stream(source.parquet(str(inbox)))
        writer = found.writeStream.format("parquet").option("path", f"{folder}/out")
        query = writer.option("checkpointLocation", f"{folder}/mark").trigger(availableNow=True).start()
        query.awaitTermination()
        spent = [progress.durationMs["triggerExecution"] / 1000 for progress in query.recentProgress]
        told = spark.read.parquet(f"{folder}/out").orderBy("serial").select("id", "kind", "of").toArrow().to_pylist()
    plain = [{"id": verdict.id, "kind": verdict.kind, "of": verdict.of} for verdict in verdicts]
    steady = spent[2:] or spent
    return {
        "items_per_s": round(each * len(steady) / sum(steady)),
        "micro_batch_s": round(sorted(steady)[len(steady) // 2], 2),
        "index_items_per_s": round(here),
        "same": told[each:] == plain,
    }


def as_stream_table(results: dict[str, Any]) -> str:
    """Return what a stream does at each size of its micro-batches."""
    header = [
        "corpus",
        "items",
        "a micro-batch",
        "seconds for one",
        "items/s on Spark",
        "items/s of `nd.Index`, as many at once",
        "same verdicts",
    ]
    rows = [
        [
            r["corpus"],
            f"{r['items']:,}",
            f"{r['at_once']:,}",
            r["micro_batch_s"],
            f"{r['items_per_s']:,}",
            f"{r['index_items_per_s']:,}",
            "yes" if r["same"] else "**no**",
        ]
        for r in results["rows"]
    ]
    return table(header, rows)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--searches", nargs="+", default=["exact"], choices=list(SEARCHES))


if __name__ == "__main__":
    sections = {
        "spark": Section(compare, {"spark": as_table}),
        "spark-stream": Section(stream, {"spark-stream": as_stream_table}),
    }
    run_sections(__doc__, sections, options)
