"""The engine for Spark beside the one in memory: time, memory, and whether the bytes are the same.

    spark.py [spark] [--corpora N100k N500k] [--master local[2]] [--before FOLDER] [--small]

Each run is a command of its own, the start of Python and of the JVM included. With the address of a cluster
(scripts/cluster starts one) the time and the memory of its workers are not counted; ``local[2]`` counts everything.
With the sources of an earlier version, that is measured beside.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import tempfile
from pathlib import Path
from typing import Any

from corpora import corpus
from measuring import NEARDUP, Section, measure, measured, note, summarize, table, warm_up

_BEFORE = "Spark, as it was before"
SEARCHES = {"exact": [], "lsh": ["--search", "lsh", "--set", "recall=0.95"]}


def compare(given: argparse.Namespace) -> dict[str, Any]:
    """Run both engines with both searches on all corpora."""
    warm_up()
    rows = []
    for name in given.corpora or (["G10k"] if given.small else ["N100k", "N500k"]):
        for search in given.searches:
            for engine in ("memory, 2 threads", f"Spark, {given.master}", *([_BEFORE] if given.before else [])):
                note(f"{name}, {search}, {engine}")
                chosen = ["--threads", "2"] if engine[0] == "m" else ["--engine", "spark", "--master", given.master]
                environment = {"PYTHONPATH": given.before} if engine == _BEFORE else {}
                found = run(corpus(name), SEARCHES[search], chosen, given, environment)
                rows.append({"corpus": name, "engine": engine, "search": search} | found)
    return {"pyspark": importlib.metadata.version("pyspark"), "rows": rows}


def run(
    file: Path, search: list[str], engine: list[str], given: argparse.Namespace, environment: dict[str, str]
) -> dict[str, Any]:
    """Return what one engine takes and finds."""
    with tempfile.TemporaryDirectory() as folder:
        kept, dropped, summary = (Path(folder, name) for name in ("kept.parquet", "dropped.parquet", "summary.json"))
        command = [*NEARDUP, "dedup", file, "-o", kept, "--duplicates", dropped, "--summary", summary, "--force"]
        figures = summarize([measure([*command, *search, *engine], env=environment) for _ in range(given.runs)])
        said = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(kept.read_bytes() + dropped.read_bytes()).hexdigest()
    return figures | {key: said[key] for key in ("documents", "pairs", "stages")} | {"sha256": digest}


def as_table(results: dict[str, Any]) -> str:
    """Return both engines side by side."""
    memory = {(r["corpus"], r["search"]): r for r in results["rows"] if r["engine"][0] == "m"}
    rows = []
    for r in results["rows"]:
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
        "pairs",
        "same bytes",
    ]
    return table(header, rows)


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--corpora", nargs="+")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--searches", nargs="+", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--before", help="the folder src of an earlier version")


if __name__ == "__main__":
    measured(__doc__, {"spark": Section(compare, {"spark": as_table})}, options)
