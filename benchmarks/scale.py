"""Millions of documents, with and without a memory budget: time, memory, and which planted pairs are found.

scale.py [scale] [--small] [--asked M1M: M1M:500MB M10M/4000000: M10M/4000000:1GB M10M:2GB L1M: L1M:500MB]

A run is CORPUS[/ROWS]:[BUDGET]: the first so many rows of a corpus. Beside CORPUS.parquet lies CORPUS.planted.parquet,
whose pairs (original, copy, jaccard) are known to match. With a budget the run is in a control group of a quarter more,
half a gigabyte more at least, and ends if it needs that; where there are none, its data segment is limited. What was
asked for before stays in the results, beside what is asked for now.
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
from corpora import MADE, corpus
from measuring import (
    BENCH_HOME,
    JOB,
    NEARDUP,
    RESULTS,
    CommandFailedError,
    Section,
    measure,
    note,
    run_sections,
    table,
    warm_up,
)

RUNS = ["M1M:", "M1M:500MB", "M10M/4000000:", "M10M/4000000:1GB", "M10M:2GB", "L1M:", "L1M:500MB"]
#: Where control groups are made, their files for the limit and the peak: the second version, and the first.
GROUPS = (
    (Path("/sys/fs/cgroup"), "memory.max", "memory.peak"),
    (Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"),
)
#: Those that take seconds, of a corpus that others make as well.
SMALL = ["N100k/20000:", "N100k/20000:300MB"]
UNITS = {"MB": 10**6, "GB": 10**9}
#: Bytes of the program without documents.
BASE = 250e6


@contextlib.contextmanager
def control_group(limit: int | None) -> Iterator[tuple[list[str], Path | None]]:
    """Give what a command begins with so that it keeps to a limit, and the file that holds its peak."""
    for root, most, peak in GROUPS:
        group = root / f"neardup-scale-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            if (group / peak).exists():
                if limit is not None:
                    (group / most).write_text(str(limit))
                yield ["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"], group / peak
                return
        finally:
            group.rmdir()
    yield (["sh", "-c", f'ulimit -d {limit // 1024} && exec "$@"', "sh"] if limit is not None else []), None


def corpus_of(name: str, rows: int | None) -> tuple[Path, Path]:
    """Return the file of a corpus, or of its first rows, and that of its planted pairs."""
    beside = BENCH_HOME / f"{name}.parquet"
    file = (beside if beside.exists() else corpus(name)).resolve()
    planted = file.with_suffix(".planted.parquet")
    if rows is None:
        return file, planted
    part = MADE / f"{name}-{rows}.parquet"
    if not part.exists():
        note(f"making the first {rows:,} documents of {name}")
        MADE.mkdir(parents=True, exist_ok=True)
        source, left, unfinished = pq.ParquetFile(file), rows, part.with_suffix(".part")
        with pq.ParquetWriter(unfinished, source.schema_arrow, compression="zstd") as writer:
            for batch in source.iter_batches(65_536):
                writer.write_batch(batch.slice(0, left))
                left -= min(len(batch), left)
                if not left:
                    break
        unfinished.rename(part)
    return part, planted


def planted_found(planted: Path, duplicates: Path, threshold: float, rows: int) -> tuple[int, int]:
    """Return of how many of the planted pairs at the threshold one goes, and how many are known."""
    if not planted.exists():
        return 0, 0
    known, dropped = pq.read_table(planted), np.zeros(rows, np.bool_)
    dropped[pq.read_table(duplicates, columns=["dropped"])["dropped"].to_numpy()] = True
    left, right = known["original"].to_numpy(), known["copy"].to_numpy()
    asked = (known["jaccard"].to_numpy() >= threshold) & (left < rows) & (right < rows)
    return int((dropped[left[asked]] | dropped[right[asked]]).sum()), int(asked.sum())


def one_run(asked: str) -> dict[str, Any]:
    """Return the figures of a run."""
    parts = re.fullmatch(r"(\w+?)(?:/(\d+))?:(?:(\d+)(MB|GB))?", asked)
    if parts is None:
        raise SystemExit(f"{asked} is no run: give CORPUS[/ROWS]:[BUDGET], as M10M/4000000:1GB")
    name, rows, size, unit = parts.groups()
    budget = int(size) * UNITS[unit] if size else None
    limit = None if budget is None else max(budget * 5 // 4, budget + 500_000_000)
    file, planted = corpus_of(name, int(rows) if rows else None)
    row: dict[str, Any] = {"run": asked, "limit_mb": limit and limit // 10**6}
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder, control_group(limit) as (start, peak):
        out, summary, duplicates = (Path(folder, each) for each in ("o.parquet", "s.json", "d.parquet"))
        command = [*start, *NEARDUP, "dedup", file, "-o", out, "--summary", summary, "--duplicates", duplicates, *JOB]
        try:
            run = measure([*command, *(["--memory", f"{size}{unit}"] if size else [])])
        except CommandFailedError as error:
            # Its last line may be the command, when the control group ended it.
            last = str(error).splitlines()[-1]
            return row | {"failed": last[:200] if last.startswith("neardup:") else "ended at the limit"}
        said = json.loads(summary.read_text("utf-8"))
        found, known = planted_found(planted, duplicates, float(JOB[JOB.index("--threshold") + 1]), said["documents"])
        with out.open("rb") as written:
            digest = hashlib.file_digest(written, "sha256").hexdigest()
        row |= {"documents": said["documents"], "text_mb": said["text_bytes"] // 10**6, "kept": said["kept"]}
        row |= {"wall_s": round(run.wall, 1), "cpu_s": round(run.cpu, 1), "rss_mb": run.rss // 10**6}
        row |= {"group_peak_mb": peak and int(peak.read_text()) // 10**6, "sha256": digest}
        row |= {"passes": said["search"].get("passes_over_the_input", 1), "planted": known, "planted_found": found}
        row |= {"spilled_mb": said["search"]["spilled_bytes"] // 10**6}
    return row


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown: CPU time and memory, which a busy machine changes least."""
    names = ["run", "limit MB", "documents", "text MB", "CPU s", "CPU µs a document", "peak RSS MB", "bytes a document"]
    names += ["passes", "spilled MB", "planted", "found", "same bytes"]
    whole = {row["run"].partition(":")[0]: row for row in results["rows"] if row["run"].endswith(":")}
    lines = []
    for row in results["rows"]:
        if "failed" in row:
            lines.append([row["run"], row["limit_mb"], row["failed"], *[""] * (len(names) - 3)])
            continue
        documents, other = row["documents"], whole.get(row["run"].partition(":")[0])
        same = "" if other in (None, row) or "failed" in other else "yes" if other["sha256"] == row["sha256"] else "no"
        cost = round(1e6 * row["cpu_s"] / documents, 1), row["rss_mb"], round((1e6 * row["rss_mb"] - BASE) / documents)
        lines.append([row["run"], row["limit_mb"] or "", documents, row["text_mb"], row["cpu_s"], *cost, row["passes"]])
        lines[-1] += [row["spilled_mb"], row["planted"], row["planted_found"], same]
    return table(names, lines)


def scale(args: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of all runs."""
    known = RESULTS / "scale.json"
    rows = {row["run"]: row for row in json.loads(known.read_text("utf-8"))["rows"]} if known.exists() else {}
    if args.small:
        rows = {}
    warm_up()
    for asked in args.asked or (SMALL if args.small else RUNS):
        note(asked)
        rows[asked] = one_run(asked)
    return {"rows": list(rows.values())}


if __name__ == "__main__":
    run_sections(
        __doc__,
        {"scale": Section(scale, {"scale": as_table})},
        lambda parser: parser.add_argument("--asked", nargs="+", metavar="RUN", help="other runs"),
    )
