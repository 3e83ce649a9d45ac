"""Items of corpora as documents that arrive, and what one arrival costs; each measurement in a process of its own."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
import pyarrow.parquet as pq
from corpora import edited_copies
from measuring import machine, save

from neardup.stream.document import Document
from neardup.stream.index import Index

RECIPE = "ddd"
#: The first item's time: 1 March 2012, 0:00 UTC, long past by any clock on the wall.
START = 1_330_560_000.0
HOUR, DAY = 3600.0, 86_400.0

P = ParamSpec("P")
T = TypeVar("T")


def texts_of(file: Path) -> Iterator[str]:
    """Yield the texts of a corpus, of which few are in memory at a time."""
    for batch in pq.ParquetFile(file).iter_batches(4096, columns=["text"]):
        yield from batch.column(0).to_pylist()


def documents_in(file: Path) -> int:
    """Return how many documents a corpus has."""
    return int(pq.ParquetFile(file).metadata.num_rows)


def arriving(texts: Iterable[str], per_day: int, first: int = 0) -> Iterator[Document]:
    """Yield texts as documents that arrive evenly through the days, so many a day."""
    for number, text in enumerate(texts, first):
        yield Document(f"item-{number}", text, START + number * DAY / per_day)


def fresh(function: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
    """Return what a function returns in a new process, so that its memory and its first calls are its own."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        return pool.submit(function, *args, **named).result()


def warm_up(*, one_core: bool) -> None:
    """Load the compiled kernels (compile them where that is not done), and stay on one core from now on if asked."""
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = list(edited_copies(1200, seed=9))
    index = Index(RECIPE)
    index.add_many(arriving(texts[:1100], 1000))
    for document in arriving(texts[1100:], 100, 1100):
        index.add(document)


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds on the wall and the CPU seconds of this process that a call takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return time.perf_counter() - wall, time.process_time() - cpu


def spread(values: Iterable[float], scale: float) -> dict[str, float]:
    """Return median, mean, p90, p99 and maximum of times in seconds, in another unit."""
    found = np.array(list(values)) * scale
    p50, p90, p99 = np.percentile(found, [50, 90, 99])
    named = {"median": p50, "mean": found.mean(), "p90": p90, "p99": p99, "max": found.max()}
    return {name: round(float(value), 3) for name, value in named.items()}


def memory(field: str = "VmRSS") -> float:
    """Return what this process has of memory now, in MB; VmHWM: what it had at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith(f"{field}:"))
    return round(int(found.split()[1]) * 1024 / 1e6, 1)


def renew(path: Path, name: str, measured: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    """Measure sections and write each one to the results as soon as it is there, beside those of earlier runs."""
    results: dict[str, Any] = {"sections": {}}
    if path.exists():
        results["sections"] = json.loads(path.read_text("utf-8"))["sections"]
    sections = results["sections"]
    for section, act in measured.items():
        where = machine()
        sections[section] = {"command": _command(), "machine": where, "rows": act()}
        # The line below a table names all the commands that made it.
        commands = "; ".join(dict.fromkeys(one["command"] for one in sections.values()))
        save(path, name, {"command": commands, "machine": where} | results)
    return results


def _command() -> str:
    parts = [Path(part).name if part.startswith("/") else part for part in sys.argv[1:]]
    return " ".join(["python", f"benchmarks/{Path(sys.argv[0]).name}", *parts])


def rows_of(results: dict[str, Any], section: str) -> list[dict[str, Any]]:
    """Return what was measured in a section, nothing where it was not."""
    found: list[dict[str, Any]] = results["sections"].get(section, {"rows": []})["rows"]
    return found
