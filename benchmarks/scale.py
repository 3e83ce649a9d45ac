"""Millions of documents with and without a memory budget: time, memory, and recall of planted pairs.

scale.py [scale] [--small] [--only M1M: M4M:1GB ...]

A run is CORPUS:[BUDGET]. CORPUS.planted.parquet beside CORPUS.parquet has planted pairs (original, copy, jaccard); both
are made by ../shared/bench/make_big.py. With a budget the run is in a control group whose limit is a
quarter higher, or at least half a gigabyte, and is killed beyond it; otherwise its data segment is limited.
Rows of other runs stay in the results, also if their corpora are missing.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
from corpora import CorpusMissingError, corpus
from harness import (
    BENCH_HOME,
    JOB,
    NEARDUP,
    RESULTS,
    CommandFailedError,
    Row,
    measure,
    print_progress,
    run_sections,
    section,
    warm_up,
)

RUNS = ["M1M:", "M1M:500MB", "M4M:", "M4M:1GB", "M10M:2GB", "L1M:", "L1M:500MB", "L15M:3200MB"]
#: Runs of --small.
SMALL = ["G20k:", "G20k:300MB"]
UNITS = {"MB": 10**6, "GB": 10**9}
#: Memory of the program without documents.
PROGRAM_BYTES = 250e6


@contextlib.contextmanager
def memory_limit(limit: int | None) -> Iterator[list[str]]:
    """Yield a command prefix that enforces a memory limit, by a control group of version 2 or 1 if that is allowed."""
    if limit is None:
        yield []
        return
    root, name = Path("/sys/fs/cgroup"), "memory.max"
    if not (root / "cgroup.controllers").exists():
        root, name = root / "memory", "memory.limit_in_bytes"
    group = root / f"neardup-scale-{os.getpid()}"
    try:
        group.mkdir()
    except OSError:
        yield ["sh", "-c", f'ulimit -d {limit // 1024} && exec "$@"', "sh"]
        return
    try:
        (group / name).write_text(str(limit))
        yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"]
    finally:
        group.rmdir()


def count_planted(planted: Path, duplicates: Path, threshold: float, rows: int) -> tuple[int, int]:
    """Return how many planted pairs at the threshold lose a document, and how many there are."""
    if not planted.exists():
        return 0, 0
    pairs, dropped = pq.read_table(planted), np.zeros(rows, np.bool_)
    dropped[pq.read_table(duplicates, columns=["dropped"])["dropped"].to_numpy()] = True
    pairs = pairs.filter(pc.greater_equal(pairs["jaccard"], threshold))
    return int((dropped[pairs["original"].to_numpy()] | dropped[pairs["copy"].to_numpy()]).sum()), len(pairs)


def run_row(spec: str) -> Row:
    name, _, size = spec.partition(":")
    budget = int(size[:-2]) * UNITS[size[-2:]] if size else None
    limit = None if budget is None else max(budget * 5 // 4, budget + 500_000_000)
    file = corpus(name).resolve()
    row: Row = {"run": spec, "limit_mb": limit and limit // 10**6, "failed": ""}
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder, memory_limit(limit) as prefix:
        out, summary, duplicates = (Path(folder, name) for name in ("o.parquet", "s.json", "d.parquet"))
        command = [*prefix, *NEARDUP, "dedup", file, "-o", out, "--summary", summary, "--duplicates", duplicates, *JOB]
        try:
            run = measure([*command, *(["--memory", size] if size else [])])
        except CommandFailedError as error:
            # A run that the control group killed has no message of neardup.
            last = str(error).splitlines()[-1]
            return row | {"failed": last[:200] if last.startswith("neardup:") else "ended at the limit"}
        report = json.loads(summary.read_text("utf-8"))
        threshold = float(JOB[JOB.index("--threshold") + 1])
        planted = file.with_suffix(".planted.parquet")
        found, planted_count = count_planted(planted, duplicates, threshold, report["documents"])
        with out.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        row |= {key: report[key] for key in ("documents", "kept")} | {"text_mb": report["text_bytes"] // 10**6}
        row |= {key: run[key] for key in ("wall_s", "cpu_s", "rss_mb")}
        row |= {"sha256": digest, "planted": planted_count, "planted_found": found}
        row |= {"passes": report["search"].get("passes_over_the_input", 1)}
        row |= {"spilled_mb": report["search"]["spilled_bytes"] // 10**6}
    return row


@section(
    "scale",
    "run | limit MB | documents | text MB | CPU s | CPU µs a document | peak RSS MB | bytes a document | passes"
    " | spilled MB | planted | found | same bytes",
    "{run} | {limit_mb} | {documents}{failed} | {text_mb} | {cpu_s:.1f} | {cpu_us:.1f} | {rss_mb:.0f} | "
    "{bytes_a_document:.0f} | {passes} | {spilled_mb} | {planted} | {planted_found} | {same_bytes:yes/no}",
)
def measure_corpora(args: argparse.Namespace) -> Row:
    path, rows = RESULTS / "scale.json", dict[str, Row]()
    if not args.small:
        rows = {row["run"]: row for row in json.loads(path.read_text("utf-8"))["rows"] if row["run"] in RUNS}
    warm_up()
    for spec in args.only or (SMALL if args.small else RUNS):
        print_progress(spec)
        try:
            rows[spec] = run_row(spec)
        except CorpusMissingError as error:
            print_progress(f"skipped: {error}")
    for row in rows.values():
        if documents := row.get("documents"):
            row["cpu_us"] = 1e6 * row["cpu_s"] / documents
            row["bytes_a_document"] = (1e6 * row["rss_mb"] - PROGRAM_BYTES) / documents
        unlimited = rows.get(row["run"].partition(":")[0] + ":", row)
        if row is not unlimited and "sha256" in row and "sha256" in unlimited:
            row["same_bytes"] = row["sha256"] == unlimited["sha256"]
    return {"rows": list(rows.values())}


if __name__ == "__main__":
    run_sections(__doc__, only="runs to measure, as CORPUS:[BUDGET]")
