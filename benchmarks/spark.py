"""The engine for Spark beside the one in memory, and beside what Spark users have besides: one machine, one run.

    spark.py [--corpora N100k N500k] [--runs 3] [--peers N100k N500k] [--limit 900] [--fresh] [--out FILE]

A standalone cluster (scripts/cluster: a master, two workers of one core) is started on loopback. On each corpus, run by
run and in turn: the engine in memory with two threads, and Spark on that cluster, both with exact search and with LSH
(recall 0.95); on the last corpus local[2] as well. Then, once, MLlib's MinHashLSH and a MinHash script
(spark_peers.py), each ended after ``--limit`` seconds. Each figure is saved when it is there; the same command again
goes on from them, ``--fresh`` begins anew. What Spark drops and keeps is compared byte by byte with what memory does.
Results in results/spark.json; the split of the time is drawn in docs/spark-stages.svg.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.parquet as pq
from corpora import corpus
from measuring import BENCH_HOME, HERE, NEARDUP, RESULTS, machine, note, save, warm_up
from spark_tables import LOCAL, OUTPUTS, PEERS, RECALL, SEARCHES, THRESHOLD, draw, own_to, printed
from spark_tree import run

from neardup.spark.session import check_spark

Cell = dict[str, Any]

#: The same for all who work on the cluster.
MEMORY = {"spark.executor.memory": "4g", "spark.driver.memory": "4g"}
#: For scripts that do not choose it themselves; Spark's 200 would cost them more.
PEER_CONF = MEMORY | {"spark.sql.shuffle.partitions": "8", "spark.ui.showConsoleProgress": "false"}
CLUSTER = [sys.executable, str(HERE.parent / "scripts" / "cluster")]


class Cells:
    """What was measured so far, in a file that is written after each cell."""

    def __init__(self, out: Path, where: dict[str, Any], *, fresh: bool) -> None:
        self._out, self._where = out, where
        self.found: list[Cell] = []
        if out.exists() and not fresh:
            known = json.loads(out.read_text("utf-8"))
            self.found = known.get("cells", [])
            self._where = known["machine"] if self.found else where
            if self.found:
                note(f"going on from {len(self.found)} cells of {out.name}; --fresh begins anew")

    def has(self, **key: Any) -> bool:
        """Return whether a cell was measured."""
        return any(all(cell.get(name) == value for name, value in key.items()) for cell in self.found)

    def add(self, cell: Cell) -> None:
        """Keep a cell."""
        self.found.append(cell)
        self.write()

    def write(self) -> None:
        """Write all cells and what follows from them."""
        settings = {"threshold": THRESHOLD, "recall": RECALL, "memory": MEMORY, "workers": 2, "cores_a_worker": 1}
        results = {"machine": self._where, "settings": settings, "cells": self.found} | derived(self.found)
        save(self._out, "spark", results)


@contextmanager
def cluster() -> Iterator[tuple[str, list[int]]]:
    """Give the address of a cluster and its processes."""
    with tempfile.TemporaryDirectory(prefix="neardup-cluster-") as folder:
        given = ["--folder", str(Path(folder) / "cluster")]
        started = subprocess.run(
            [*CLUSTER, "start", "--port", "0", "--memory", "5g", *given], check=True, stdout=subprocess.PIPE, text=True
        )
        try:
            own = [json.loads(path.read_text())["pid"] for path in (Path(folder) / "cluster").glob("*.json")]
            yield started.stdout.split()[-1], own
        finally:
            subprocess.run([*CLUSTER, "stop", *given], check=True)


def engine(name: str, what: str, search: str, master: str, processes: Sequence[int], folder: Path) -> Cell:
    """Run neardup once."""
    out = folder / "own"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    command = [*NEARDUP, "dedup", corpus(name), "-o", out / OUTPUTS[0], "--duplicates", out / OUTPUTS[1]]
    command += ["--summary", out / "summary.json", *SEARCHES[search]]
    if what == "memory":
        command += ["--threads", "2"]
    else:
        command += ["--engine", "spark", "--master", "local[2]" if what == "local[2]" else master]
        for setting in MEMORY.items():
            command += ["--spark-conf", "=".join(setting)]
    cell = run(command, cluster=processes if what == "cluster" else ())
    cell.pop("out")
    if not cell["code"]:
        summary = json.loads((out / "summary.json").read_text("utf-8"))
        for key in ("documents", "kept", "dropped", "pairs", "text_bytes", "stages"):
            cell[key] = summary[key]
        cell["counted"] = summary["search"]
        cell["sha256"] = {file: hashlib.sha256((out / file).read_bytes()).hexdigest()[:16] for file in OUTPUTS}
    return cell


def peer(name: str, what: str, master: str, processes: Sequence[int], folder: Path, limit: float) -> Cell:
    """Run another way once."""
    out = folder / "peer"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    command = [sys.executable, HERE / "spark_peers.py", what, corpus(name), out, "--master", master]
    command += ["--threshold", THRESHOLD, "--recall", RECALL, "--conf", f"spark.local.dir={out / 'tmp'}"]
    for setting in PEER_CONF.items():
        command += ["--conf", "=".join(setting)]
    cell = run(command, cluster=processes, limit=limit)
    told = cell.pop("out")
    cell["phases"] = [line for line in told if "phase" in line]
    cell["plan"] = next((line for line in told if "recall_at_threshold" in line), {})
    cell["far"] = next((line for line in reversed(told) if "at" in line), {})
    if not cell["code"]:
        pairs = pq.read_table(out / "pairs.parquet", columns=["a", "b"])
        found = set(zip(*(pairs[column].to_pylist() for column in "ab"), strict=True))
        true = exact_pairs(name, folder)
        both = len(found & true)
        cell |= {"pairs": len(found), "recall": both / max(len(true), 1), "precision": both / max(len(found), 1)}
    shutil.rmtree(out, ignore_errors=True)
    return cell


def exact_pairs(name: str, folder: Path) -> set[tuple[Any, Any]]:
    """Return all pairs at or above the threshold, of the engine in memory."""
    path = folder / f"{name}-pairs.parquet"
    if not path.exists():
        run([*NEARDUP, "pairs", corpus(name), "-o", path, "--threads", "2"])
    found = pq.read_table(path)
    ends = [found[column].to_pylist() for column in ("left", "right")]
    return {(min(pair), max(pair)) for pair in zip(*ends, strict=True)}


def measured(given: argparse.Namespace, cells: Cells) -> None:
    """Measure what is not there yet."""
    ways = [("memory", search) for search in SEARCHES] + [("cluster", search) for search in SEARCHES]
    todo: list[dict[str, Any]] = []
    for number in range(given.runs):
        for name in given.corpora:
            more = [("local[2]", "exact")] if name == given.corpora[-1] else []
            todo += [{"corpus": name, "what": w, "search": s, "run": number} for w, s in [*ways, *more]]
    todo += [{"corpus": name, "what": what, "search": "lsh", "run": 0} for name in given.peers for what in PEERS]
    todo = [key for key in todo if not cells.has(**key)]
    if not todo:
        return
    warm_up()
    home = BENCH_HOME / "spark"
    home.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as folder, cluster() as (master, processes):
        for at, key in enumerate(todo):
            note(f"{at + 1} of {len(todo)}: {key['corpus']}, {key['what']}, {key['search']}, run {key['run'] + 1}")
            name, what = key["corpus"], key["what"]
            if what in PEERS:
                cell = peer(name, what, master, processes, Path(folder), given.limit)
            else:
                cell = engine(name, what, key["search"], master, processes, Path(folder))
            if cell["code"] and "limit_s" not in cell:
                note(f"  failed: {cell['said']}")
                continue
            note(f"  {cell['wall_s']} s, {cell['cpu_s']} CPU s, {cell['peak_mb']} MB")
            cells.add(key | cell)


def derived(cells: list[Cell]) -> dict[str, Any]:
    """Return medians of runs, ratios to the engine in memory, and whether the bytes are the same."""
    rows: list[Cell] = []
    for key in dict.fromkeys((c["corpus"], c["what"], c["search"]) for c in cells):
        own = [c for c in cells if (c["corpus"], c["what"], c["search"]) == key]
        row: Cell = dict(zip(("corpus", "what", "search"), key, strict=True))
        row |= {name: round(median(c[name] for c in own), 2) for name in ("wall_s", "cpu_s", "peak_mb")}
        row |= {"runs": len(own), "slowest_s": max(c["wall_s"] for c in own)}
        for name in ("documents", "pairs", "text_bytes", "recall", "precision", "limit_s"):
            row |= {name: own[0][name]} if name in own[0] else {}
        if "stages" in own[0]:
            row["stages"] = stages_of(own)
        rows.append(row)
    by = {(row["corpus"], row["what"], row["search"]): row for row in rows}
    for row in rows:
        local = by.get((row["corpus"], "memory", row["search"] if row["what"] in LOCAL else "exact"))
        cluster_ = by.get((row["corpus"], "cluster", "exact"))
        if local:
            row["over_memory"] = round(row["wall_s"] / local["wall_s"], 2)
            row["cpu_over_memory"] = round(row["cpu_s"] / local["cpu_s"], 2)
        if cluster_ and row["what"] in PEERS:
            row["over_cluster"] = round(row["wall_s"] / cluster_["wall_s"], 2)
        if row["what"] in LOCAL:
            digests = [c["sha256"] for c in own_to(cells, row)]
            row["same_bytes"] = all(one == digests[0] for one in digests)
            true = by.get((row["corpus"], "memory", "exact"))
            if true and row["search"] == "lsh":
                row["recall"] = row["pairs"] / max(true["pairs"], 1)
    return {"rows": rows}


def stages_of(cells: list[Cell]) -> list[dict[str, Any]]:
    """Return the stages of several runs: times are medians, the rest is the same in all."""
    found = []
    for at, stage in enumerate(cells[0]["stages"]):
        same = [cell["stages"][at] for cell in cells if len(cell["stages"]) > at]
        for name in {"wall_s", "worker_s"} & set(stage):
            stage = stage | {name: round(median(s.get(name, 0) for s in same), 3)}
        found.append(stage)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=["N100k", "N500k"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--peers", nargs="*", default=["N100k", "N500k"], help="the corpora that the peers are run on")
    parser.add_argument("--limit", type=float, default=900)
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--out", type=Path, default=RESULTS / "spark.json")
    given = parser.parse_args()
    where = machine()
    where["versions"] |= {"pyspark": importlib.metadata.version("pyspark"), "java": str(check_spark().version)}
    cells = Cells(given.out, where, fresh=given.fresh)
    measured(given, cells)
    cells.write()
    results = json.loads(given.out.read_text("utf-8"))
    if given.out == RESULTS / "spark.json":
        draw(results)
    print(printed(results))


if __name__ == "__main__":
    main()
