"""Measures commands and calls, writes results with their tables, and runs the command line of each script.

    harness.py PAGE.md ...

updates the tables of pages. A script has sections. Each measures one claim and writes results/SECTION.json with the
machine, the commit, the figures and the tables that pages show. ``--small`` measures generated corpora in less than a
minute and writes to results/quick, which is not committed.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import json
import multiprocessing
import os
import platform
import re
import resource
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, ParamSpec, TypeVar

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"
SHARED = ROOT.parent / "shared"
# Measured commands load compiled modules, as those of users do.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
BENCH_HOME = Path(os.environ.get("BENCH_HOME", Path.home() / ".cache" / "neardup-bench"))
#: The command line under test: the package of the interpreter that runs the benchmark.
NEARDUP = [sys.executable, "-m", "neardup"]
#: The options of the common job.
JOB = ["--features", "words:5", "--measure", "jaccard", "--threshold", "0.7", "--threads", "2", "--force"]
P = ParamSpec("P")
T = TypeVar("T")
Row = dict[str, Any]
#: Measures the claim of a section; makes a table of the results.
Measurement = Callable[[argparse.Namespace], Row]
Table = Callable[[Row], str]

_SECTIONS: dict[str, tuple[Measurement, dict[str, Table]]] = {}
_PACKAGES = ["neardup", "numpy", "numba", "pyarrow"]
_SUBREAPER = 36
_SAMPLE_SECONDS = 0.05
_TABLE = re.compile(r"(<!-- table (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


class CommandFailedError(Exception):
    """A measured command failed; the message holds the end of its output."""


def measure(command: Sequence[object], *, env: dict[str, str] | None = None) -> Row:
    """Run a command, and return the resources that it used with its children.

    ``wall_s`` and ``cpu_s`` are seconds; CPU time is user and system time of the whole process tree. It is the larger
    of what the system accounts to finished children and the sum over processes sampled while they ran: a parent that
    does not wait for its children, such as Spark's daemon of Python workers, loses their time from the account.
    ``rss_mb`` is the peak of the largest single process; ``pss_mb`` that of the process tree, shared pages counted
    once (sampled 20 times a second).

    Raises
    ------
    CommandFailedError
        If the command fails.
    """
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)  # adopt grandchildren, so that their time is counted
    before = children_cpu_seconds()
    begin = time.perf_counter()
    process = subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | (env or {})
    )
    output: list[bytes] = []
    reader = threading.Thread(target=lambda: output.append(process.communicate()[0]))
    reader.start()
    pss = rss = 0
    seconds: dict[int, float] = {}
    while reader.is_alive():
        tree = process_tree(process.pid)
        seconds |= {pid: spent for pid in tree if (spent := process_cpu_seconds(pid))}
        pss = max(pss, sum(process_memory(pid, "Pss", "smaps_rollup") for pid in tree))
        rss = max([rss, *(process_memory(pid, "VmHWM") for pid in tree)])
        reader.join(_SAMPLE_SECONDS)
    wall = time.perf_counter() - begin
    _reap()
    if process.returncode:
        message = output[0].decode(errors="replace")[-1000:]
        raise CommandFailedError(f"{shlex.join(map(str, command))} ended with {process.returncode}:\n{message}")
    cpu = max(children_cpu_seconds() - before, sum(seconds.values()))
    sizes = {"pss_mb": round(pss / 1e6, 1), "rss_mb": round(rss / 1e6, 1)}
    return {"wall_s": round(wall, 3), "cpu_s": round(cpu, 3)} | sizes


def measure_runs(command: Sequence[object], runs: int) -> Row:
    """Run a command several times, and return the medians."""
    return medians([measure(command) for _ in range(runs)])


def medians(runs: Sequence[Row]) -> Row:
    """Return the last of several measurements with the medians of their figures."""
    figures = {key: round(median(run[key] for run in runs), 3) for key in runs[0] if isinstance(runs[0][key], float)}
    return runs[-1] | figures | {"runs": len(runs)}


def warm_up() -> None:
    """Compile the kernels, so that no measured run has to."""
    with tempfile.TemporaryDirectory() as folder:
        for output in ("out.jsonl", "out.parquet"):
            measure([*NEARDUP, "dedup", ROOT / "examples" / "newswire.jsonl", "-o", Path(folder, output), *JOB])


def children_cpu_seconds() -> float:
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


def process_tree(root: int) -> list[int]:
    """Return the ids of a process and all its descendants."""
    children = defaultdict(list)
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := _process_fields(entry)):
            children[int(fields[1])].append(int(entry))
    tree = [root]
    for pid in tree:
        tree += children[pid]
    return tree


def process_cpu_seconds(pid: int) -> float:
    """Return the user and system time that a process has taken so far, without its children; 0 if it has ended."""
    fields = _process_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0


def _process_fields(pid: int | str) -> list[str]:
    """Return what the system says of a process, from its state on; nothing if it has ended."""
    return "".join(_lines(f"/proc/{pid}/stat")).rpartition(")")[2].split()


def process_memory(pid: int | str = "self", field: str = "VmRSS", file: str = "status") -> int:
    """Return the bytes of a process now (VmRSS) or at its peak (VmHWM); 0 if it has ended."""
    return next(
        (1024 * int(line.split()[1]) for line in _lines(f"/proc/{pid}/{file}") if line.startswith(f"{field}:")), 0
    )


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def machine() -> Row:
    """Return the processor, memory, Python, package versions, date and load of this machine."""
    models = (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name"))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpu": next(models, platform.machine()),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory / 1e9, 1),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
        "versions": {name: importlib.metadata.version(name) for name in _PACKAGES},
        "date": datetime.now(UTC).date().isoformat(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def print_progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


class _Cells(string.Formatter):
    """Fills the template of a row: what is missing or None is empty, text has no format, ``:yes/no`` is for truths."""

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        try:
            return super().get_field(field_name, args, kwargs)
        except (KeyError, TypeError):
            return None, field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if value is None or isinstance(value, str):
            return value or ""
        if isinstance(value, bool):
            return format_spec.split("/")[not value]
        return str(super().format_field(value, format_spec))


def markdown_table(header: str, template: str, rows: Iterable[Row]) -> str:
    """Return a Markdown table of rows, such as ``markdown_table("n | CPU s", "{n} | {cpu_s:.1f}", rows)``."""
    cells = _Cells()
    rows = list(rows)
    names = {field.partition("[")[0] for _, field, _, _ in cells.parse(template) if field}
    if rows and (unknown := names - set().union(*rows)):
        raise KeyError(f"no row has {', '.join(sorted(unknown))}")
    lines = [header, " | ".join(["---"] * len(header.split(" | ")))]
    lines += [cells.vformat(template, (), row) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def section(
    name: str, table: str | Table | dict[str, Table], template: str = "", *more: Row
) -> Callable[[Measurement], Measurement]:
    """Add a section to the script; the decorated function measures its claim.

    ``table`` makes the table of the results, or several by name; as a header with the template of a row, and more rows,
    such as aims, it is the table of ``results["rows"]``.
    """
    if isinstance(table, str):
        header = table
        table = {name: lambda found: markdown_table(header, template, [*found["rows"], *more])}
    tables: dict[str, Table] = table if isinstance(table, dict) else {name: table}

    def add(measurement: Measurement) -> Measurement:
        _SECTIONS[name] = measurement, tables
        return measurement

    return add


def run_sections(description: str | None, **options: str) -> None:
    """Run the command line of a script: measure the chosen sections, or all of them.

    ``options`` are names and helps of further options with several values.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    choices = ", ".join(_SECTIONS)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{choices}; all by default")
    parser.add_argument("--small", action="store_true", help="measure small corpora, write to results/quick")
    parser.add_argument("--runs", type=int, help="runs of each measurement; figures are medians")
    for name, text in options.items():
        parser.add_argument(f"--{name}", nargs="+", help=text)
    args = parser.parse_args()
    args.runs = args.runs or (1 if args.small else 3)
    if unknown := set(args.sections) - set(_SECTIONS):
        parser.error(f"unknown section {min(unknown)}; choose from {choices}")
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    for name in args.sections or _SECTIONS:
        print_progress(f"== {name}")
        measurement, renderers = _SECTIONS[name]
        results = {"machine": machine()} | measurement(args)
        tables = {table: render(results) for table, render in renderers.items()}
        save_results((RESULTS / "quick" if args.small else RESULTS) / f"{name}.json", results, tables)
        print("\n\n".join(tables.values()), end="\n\n")


def save_results(path: Path, results: Row, tables: dict[str, str]) -> None:
    """Write results with their tables and the command and commit that produced them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    git = ["git", "-C", str(HERE), "describe", "--always", "--dirty=+"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip() or "unknown"
    head = {"benchmark": path.stem, "command": command, "commit": commit}
    lines = {name: text.split("\n") for name, text in tables.items()}
    path.write_text(json.dumps(head | results | {"tables": lines}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print_progress(f"wrote {path.parent.name}/{path.name}")


def load_tables() -> dict[str, str]:
    """Return all tables of the results by name, each with command, commit, machine, package versions and date."""
    tables: dict[str, str] = {}
    for path in sorted(RESULTS.glob("*.json")):
        results = json.loads(path.read_text("utf-8"))
        source = f"{path.name}, by `{results['command']}` of commit {results['commit']}"
        if found := results.get("machine"):
            versions = ", ".join(f"{name} {version}" for name, version in found["versions"].items())
            source += f": {found['cpu']}, {found['cores']} cores, Python {found['python']}, {versions}, {found['date']}"
        tables |= {name: "\n".join([*lines, "", f"{source}."]) for name, lines in results["tables"].items()}
    return tables


def update_tables(text: str, tables: dict[str, str]) -> str:
    """Return the text of a page with each table, from <!-- table NAME --> to <!-- end -->, as it is in the results."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables[found['name']]}\n\n{found[3]}", text)


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


def find_browser() -> str | None:
    """Return the path of an installed Chromium; None lets Playwright use its own."""
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    return next(filter(None, map(shutil.which, names)), None)


if __name__ == "__main__":
    for page in map(Path, sys.argv[1:]):
        page.write_text(update_tables(page.read_text("utf-8"), load_tables()), "utf-8")
