"""Millions of documents with and without a memory budget: time, memory, and recall of planted pairs.

scale.py [scale] [--small] [--runs M1M: M1M:500MB M10M/4000000: M10M/4000000:1GB M10M:2GB L1M: L1M:500MB]

A run is CORPUS[/ROWS]:[BUDGET], with ROWS the number of rows from the first. CORPUS.planted.parquet beside
CORPUS.parquet has planted pairs (original, copy, jaccard). With a budget the run is in a control group whose limit is a
quarter higher, or at least half a gigabyte, and is killed beyond it; otherwise its data segment is limited.
Rows of other runs stay in the results.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from corpora import GENERATED, corpus
from measuring import (
    BENCH_HOME,
    JOB,
    NEARDUP,
    RESULTS,
    CommandFailedError,
    Section,
    markdown_table,
    measure,
    print_progress,
    run_sections,
    warm_up,
)

RUNS = ["M1M:", "M1M:500MB", "M10M/4000000:", "M10M/4000000:1GB", "M10M:2GB", "L1M:", "L1M:500MB"]
#: Root of control groups and the names of the files of limit and peak, for versions 2 and 1.
CGROUP_FILES = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
)
#: Runs of --small.
SMALL = ["N100k/20000:", "N100k/20000:300MB"]
UNITS = {"MB": 10**6, "GB": 10**9}
#: Memory of the program without documents.
PROGRAM_BYTES = 250e6


@contextlib.contextmanager
def control_group(limit: int | None) -> Iterator[tuple[list[str], Path | None]]:
    """Yield a command prefix that enforces a memory limit, and the file with the peak of the control group."""
    for root, limit_name, peak_name in CGROUP_FILES:
        group = root / f"neardup-scale-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / peak_name).exists():
                if limit is not None:
                    (group / limit_name).write_text(str(limit))
                yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"], group / peak_name
                return
        finally:
            group.rmdir()
    yield (["sh", "-c", f'ulimit -d {limit // 1024} && exec "$@"', "sh"] if limit is not None else []), None


def corpus_files(name: str, rows: int | None) -> tuple[Path, Path]:
    """Return the file of a corpus, or of its first rows, and the file of its planted pairs."""
    local = BENCH_HOME / f"{name}.parquet"
    file = (local if local.exists() else corpus(name)).resolve()
    planted = file.with_suffix(".planted.parquet")
    if rows is None:
        return file, planted
    part = GENERATED / f"{name}-{rows}.parquet"
    if not part.exists():
        print_progress(f"writing the first {rows:,} documents of {name}")
        GENERATED.mkdir(parents=True, exist_ok=True)
        source, remaining, unfinished = pq.ParquetFile(file), rows, part.with_suffix(".part")
        with pq.ParquetWriter(unfinished, source.schema_arrow, compression="zstd") as writer:
            for batch in source.iter_batches(65_536):
                writer.write_batch(batch.slice(0, remaining))
                remaining -= min(len(batch), remaining)
                if not remaining:
                    break
        unfinished.rename(part)
    return part, planted


def count_planted(planted: Path, duplicates: Path, threshold: float, rows: int) -> tuple[int, int]:
    """Return how many planted pairs at the threshold lose a document, and how many there are."""
    if not planted.exists():
        return 0, 0
    pairs, dropped = pq.read_table(planted), np.zeros(rows, np.bool_)
    dropped[pq.read_table(duplicates, columns=["dropped"])["dropped"].to_numpy()] = True
    left, right = pairs["original"].to_numpy(), pairs["copy"].to_numpy()
    expected = (pairs["jaccard"].to_numpy() >= threshold) & (left < rows) & (right < rows)
    return int((dropped[left[expected]] | dropped[right[expected]]).sum()), int(expected.sum())


def run_row(spec: str) -> dict[str, Any]:
    """Return the figures of a run."""
    parts = re.fullmatch(r"(\w+?)(?:/(\d+))?:(?:(\d+)(MB|GB))?", spec)
    if parts is None:
        raise SystemExit(f"{spec} is not a run; write CORPUS[/ROWS]:[BUDGET], such as M10M/4000000:1GB")
    name, rows, size, unit = parts.groups()
    budget = int(size) * UNITS[unit] if size else None
    limit = None if budget is None else max(budget * 5 // 4, budget + 500_000_000)
    file, planted = corpus_files(name, int(rows) if rows else None)
    row: dict[str, Any] = {"run": spec, "limit_mb": limit and limit // 10**6}
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder, control_group(limit) as (prefix, peak):
        out, summary, duplicates = (Path(folder, name) for name in ("o.parquet", "s.json", "d.parquet"))
        command = [*prefix, *NEARDUP, "dedup", file, "-o", out, "--summary", summary, "--duplicates", duplicates, *JOB]
        try:
            run = measure([*command, *(["--memory", f"{size}{unit}"] if size else [])])
        except CommandFailedError as error:
            # A run that the control group killed has no message of neardup.
            last = str(error).splitlines()[-1]
            return row | {"failed": last[:200] if last.startswith("neardup:") else "ended at the limit"}
        report = json.loads(summary.read_text("utf-8"))
        threshold = float(JOB[JOB.index("--threshold") + 1])
        found, planted_count = count_planted(planted, duplicates, threshold, report["documents"])
        with out.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        row |= {key: report[key] for key in ("documents", "kept")} | {"text_mb": report["text_bytes"] // 10**6}
        row |= {"wall_s": round(run.wall, 1), "cpu_s": round(run.cpu, 1), "rss_mb": run.rss // 10**6}
        row |= {"group_peak_mb": peak and int(peak.read_text()) // 10**6, "sha256": digest}
        row |= {
            "passes": report["search"].get("passes_over_the_input", 1),
            "planted": planted_count,
            "planted_found": found,
        }
        row |= {"spilled_mb": report["search"]["spilled_bytes"] // 10**6}
    return row


def scale_table(results: dict[str, Any]) -> str:
    """Return CPU time and memory, which a busy machine changes least, and recall of planted pairs."""
    names = ["run", "limit MB", "documents", "text MB", "CPU s", "CPU µs a document", "peak RSS MB", "bytes a document"]
    names += ["passes", "spilled MB", "planted", "found", "same bytes"]
    unlimited = {row["run"].partition(":")[0]: row for row in results["rows"] if row["run"].endswith(":")}
    lines = []
    for row in results["rows"]:
        if "failed" in row:
            lines.append([row["run"], row["limit_mb"], row["failed"], *[""] * (len(names) - 3)])
            continue
        documents, full = row["documents"], unlimited.get(row["run"].partition(":")[0])
        same = "" if full in (None, row) or "failed" in full else "yes" if full["sha256"] == row["sha256"] else "no"
        cost = (
            round(1e6 * row["cpu_s"] / documents, 1),
            row["rss_mb"],
            round((1e6 * row["rss_mb"] - PROGRAM_BYTES) / documents),
        )
        lines.append([row["run"], row["limit_mb"] or "", documents, row["text_mb"], row["cpu_s"], *cost, row["passes"]])
        lines[-1] += [row["spilled_mb"], row["planted"], row["planted_found"], same]
    return markdown_table(names, lines)


def measure_runs(args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of all runs."""
    path, rows = RESULTS / "scale.json", dict[str, dict[str, Any]]()
    if path.exists() and not args.small:
        rows = {row["run"]: row for row in json.loads(path.read_text("utf-8"))["rows"]}
    warm_up()
    for spec in args.runs or (SMALL if args.small else RUNS):
        print_progress(spec)
        rows[spec] = run_row(spec)
    return {"rows": list(rows.values())}


if __name__ == "__main__":
    run_sections(
        __doc__,
        {"scale": Section(measure_runs, {"scale": scale_table})},
        lambda parser: parser.add_argument("--runs", nargs="+", metavar="RUN", help="runs to measure"),
    )
