"""Measures commands and calls, writes results as JSON with their tables, and runs the command line of each script.

A script has sections. Each measures one claim and writes results/SECTION.json with the machine, the commit, the
figures and the tables that pages show. ``--small`` measures generated corpora in less than a minute and writes to
results/quick, which is not committed.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import multiprocessing
import os
import platform
import resource
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, ParamSpec, TypeVar

import numpy as np

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
SHARED = HERE.parents[1] / "shared"
# Measured commands load compiled modules, as those of users do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
BENCH_HOME = Path(os.environ.get("BENCH_HOME", Path.home() / ".cache" / "neardup-bench"))
#: The command line under test: the package of the interpreter that runs the benchmark.
NEARDUP = [sys.executable, "-m", "neardup"]
P = ParamSpec("P")
T = TypeVar("T")

_PACKAGES = ["neardup", "numpy", "numba", "pyarrow"]
_SUBREAPER = 36
_SAMPLE_SECONDS = 0.05


#: The options of the common job.
JOB = ["--features", "words:5", "--measure", "jaccard", "--threshold", "0.7", "--threads", "2", "--force"]


class CommandFailedError(Exception):
    """A measured command failed; the message holds the end of its output."""


@dataclass(frozen=True, slots=True)
class Run:
    """Resources that a command used, including its children.

    Attributes
    ----------
    wall, cpu : float
        Seconds; cpu is user and system time of the whole process tree. It is the larger of what the system accounts to
        finished children and the sum over processes sampled while they ran: a parent that does not wait for its
        children, such as Spark's daemon of Python workers, loses their time from the account.
    rss : int
        Bytes of the largest single process at its peak (``ru_maxrss``).
    pss : int
        Bytes of the process tree at its peak, shared pages counted once (sampled 20 times a second).
    """

    wall: float
    cpu: float
    rss: int
    pss: int


def measure(command: Sequence[object], *, env: dict[str, str] | None = None) -> Run:
    """Run a command and return the resources that it used.

    Raises
    ------
    CommandFailedError
        If the command fails.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # adopt grandchildren, so that their time is counted
    before = _children()
    begin = time.perf_counter()
    process = subprocess.Popen(
        [str(part) for part in command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | (env or {}),
    )
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(process.communicate()[0]))
    reader.start()
    pss = rss = 0
    seconds: dict[int, float] = {}
    while reader.is_alive():
        tree = _tree(process.pid)
        seconds |= {pid: spent for pid in tree if (spent := _cpu_seconds(pid))}
        pss = max(pss, sum(_memory(pid, "smaps_rollup", "Pss:") for pid in tree))
        rss = max([rss, *(_memory(pid, "status", "VmHWM:") for pid in tree)])
        reader.join(_SAMPLE_SECONDS)
    wall = time.perf_counter() - begin
    _reap()
    if process.returncode:
        message = output[0].decode(errors="replace")[-1000:]
        raise CommandFailedError(f"{shlex.join(map(str, command))} ended with {process.returncode}:\n{message}")
    return Run(wall, max(_children() - before, sum(seconds.values())), rss, pss)


def warm_up() -> None:
    """Compile the kernels, so that no measured run has to."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "documents.jsonl")
        lines = [
            json.dumps({"id": i, "text": f"some words that are {word} here {i % 7}"})
            for i, word in enumerate("abc" * 9)
        ]
        source.write_text("\n".join(lines) + "\n", "utf-8")
        for output in ("out.jsonl", "out.parquet"):
            measure([*NEARDUP, "dedup", source, "-o", Path(folder, output), *JOB])


def summarize(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the medians of runs as JSON values."""
    return {
        "wall_s": round(median(run.wall for run in runs), 3),
        "cpu_s": round(median(run.cpu for run in runs), 3),
        "pss_mb": round(median(run.pss for run in runs) / 1e6, 1),
        "rss_mb": round(median(run.rss for run in runs) / 1e6, 1),
        "runs": len(runs),
    }


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _reap() -> None:
    """Wait for the processes that the command left behind."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                time.sleep(0.02)
        except ChildProcessError:
            return


def _tree(root: int) -> list[int]:
    children = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                parent = int(Path("/proc", entry, "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            children[parent].append(int(entry))
    tree, todo = [], [root]
    while todo:
        pid = todo.pop()
        tree.append(pid)
        todo += children[pid]
    return tree


def _cpu_seconds(pid: int) -> float:
    """Return the user and system time that a process has taken so far, without its children; 0 if it has ended."""
    try:
        fields = Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _memory(pid: int, file: str, field: str) -> int:
    try:
        with open(f"/proc/{pid}/{file}") as lines:
            return next((1024 * int(line.split()[1]) for line in lines if line.startswith(field)), 0)
    except OSError:
        return 0


def machine() -> dict[str, Any]:
    """Return the processor, memory, Python, package versions, date and load of this machine."""
    model = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    total = next((int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(total / 1e6, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "date": datetime.now(UTC).date().isoformat(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def save_results(path: Path, results: dict[str, Any], tables: dict[str, str]) -> None:
    """Write results with their tables and the command and commit that produced them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    head = {"benchmark": path.stem, "command": command, "commit": commit}
    lines = {name: text.split("\n") for name, text in tables.items()}
    path.write_text(json.dumps(head | results | {"tables": lines}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print_progress(f"wrote {path.parent.name}/{path.name}")


def print_progress(text: str) -> None:
    """Print progress to stderr."""
    print(text, file=sys.stderr, flush=True)


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(str, line)) + " |" for line in lines)


@dataclass(frozen=True, slots=True)
class Section:
    """The measurement of one claim, and its tables by name."""

    measure: Callable[[argparse.Namespace], dict[str, Any]]
    tables: dict[str, Callable[[dict[str, Any]], str]]


def run_sections(
    description: str | None,
    sections: dict[str, Section],
    add_options: Callable[[argparse.ArgumentParser], object] | None = None,
) -> None:
    """Run the command line of a script: measure the chosen sections, or all of them."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(sections)}; all by default")
    parser.add_argument("--small", action="store_true", help="measure small corpora, write to results/quick")
    parser.add_argument("--runs", type=int, help="runs of each measurement; figures are medians")
    if add_options is not None:
        add_options(parser)
    args = parser.parse_args()
    args.runs = args.runs or (1 if args.small else 3)
    if unknown := set(args.sections) - set(sections):
        parser.error(f"unknown section {min(unknown)}; choose from {', '.join(sections)}")
    for name in args.sections or sections:
        print_progress(f"== {name}")
        results = {"machine": machine()} | sections[name].measure(args)
        tables = {table: render(results) for table, render in sections[name].tables.items()}
        save_results((RESULTS / "quick" if args.small else RESULTS) / f"{name}.json", results, tables)
        print("\n\n".join(tables.values()), end="\n\n")


def call_in_new_process(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return the result of a call in a new process, so that its memory and first calls are measured alone."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args, **named).result()


def time_call(function: Callable[[], object]) -> tuple[float, float]:
    """Return the wall and CPU seconds of a call in this process."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return time.perf_counter() - wall, time.process_time() - cpu


def time_quantiles(values: Iterable[float], scale: float) -> dict[str, float]:
    """Return median, mean, p90, p99 and maximum of times in seconds, multiplied by ``scale``."""
    times = np.array(list(values)) * scale
    p50, p90, p99 = np.percentile(times, [50, 90, 99])
    quantiles = {"median": p50, "mean": times.mean(), "p90": p90, "p99": p99, "max": times.max()}
    return {name: round(float(value), 3) for name, value in quantiles.items()}


def process_memory_mb(field: str = "VmRSS", pid: int | str = "self") -> float:
    """Return the memory of a process in MB: now (VmRSS) or at its peak (VmHWM)."""
    line = next(line for line in _lines(f"/proc/{pid}/status") if line.startswith(f"{field}:"))
    return round(int(line.split()[1]) * 1024 / 1e6, 1)


def find_browser() -> str | None:
    """Return the path of an installed Chromium; None lets Playwright use its own."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)
