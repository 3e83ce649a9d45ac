"""What the service answers under load, on loopback, where client and server share the processors.

    serve.py [serve] [--small]

    serve    single documents over 64 connections, batches of 100 over 8, and checks; each with a new service. The load
             is made by wrk (a Debian package), whose own processor time is not counted. Beside it, Index.add_many on
             documents like these in batches of 64, into a store: what the engine alone takes

The processor time of the server says more than the clock where others work on the machine; the load before is noted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from measuring import BENCH_HOME, NEARDUP, Section, fresh, measured, note, table, timed

from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

LUA = Path(__file__).with_suffix(".lua")
#: What is sent: a name, connections, documents of a request, and the query.
LOADS = (("single", 64, 1, ""), ("batches of 100", 8, 100, ""), ("checks", 64, 1, "?mode=check"))
#: Documents a second, and milliseconds at the median and the 99th percentile.
AIMS = {"single": (3000, 10, 50), "batches of 100": (8000, None, None), "checks": (None, 8, None)}
_TICKS = os.sysconf("SC_CLK_TCK")


def serve(given: argparse.Namespace) -> Row:
    """Measure each load on a service of its own."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk makes the load and is not installed; apt-get install wrk brings it")
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    seconds = 3 if given.small else 20
    rows = []
    for name, connections, documents, query in LOADS:
        note(f"{name}, {connections} connections")
        with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
            rows.append(
                {"load": name, "connections": connections} | _loaded(folder, seconds, connections, documents, query)
            )
    note("the engine alone")
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        alone = fresh(_alone, Path(folder), 6400 if given.small else 64_000)
    return {"rows": rows, "alone": alone, "seconds": seconds}


def _loaded(folder: str, seconds: int, connections: int, documents: int, query: str) -> Row:
    command = [*NEARDUP, "serve", "--store", f"{folder}/news.db", "--port", "0", "--window", "endless"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - it is a pipe
            address = server.stdout.readline().strip()
            _wait(address)
            _wrk(address, 2, connections, documents, "warm", query)
            before = _cpu(server.pid)
            found = _wrk(address, seconds, connections, documents, "measured", query)
            cpu, peak = _cpu(server.pid) - before, _memory(server.pid)
        finally:
            server.send_signal(signal.SIGTERM)
    count = found["requests"] * documents
    return found | {
        "documents": documents,
        "documents_a_second": round(count / found["seconds"], 1),
        "cpu_us": round(1e6 * cpu / count, 1),
        "memory_mb": round(peak, 1),
    }


def _wait(address: str) -> None:
    # The first requests would wait for what the page needs, which is made beside.
    for _ in range(600):
        try:
            urlopen(f"{address}/", timeout=60).close()  # noqa: S310 - it is ours
            return
        except URLError:
            time.sleep(0.1)
    raise SystemExit("the service does not answer")


def _wrk(address: str, seconds: int, connections: int, documents: int, prefix: str, query: str) -> Row:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(LUA), address]
    done = subprocess.run([*command, "--", str(documents), prefix, query], capture_output=True, text=True, check=True)
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _alone(folder: Path, count: int) -> Row:
    dice = np.random.default_rng(5)
    words = np.array([f"w{number:x}" for number in dice.integers(1, 1_000_000, 4000)])
    texts = [" ".join(words[dice.integers(0, len(words), 125)]) for _ in range(2 * count // 3)]
    texts += [f"{texts[at]} again" for at in dice.integers(0, len(texts), count - len(texts)).tolist()]
    order = dice.permutation(count).tolist()
    documents = [Document(f"d{number}", texts[at]) for number, at in enumerate(order)]
    with Index(window=None, path=folder / "news.db", keep_texts=True) as index:
        index.add_many(documents[:640])

        def enter() -> None:
            for begin in range(640, count, 64):
                index.add_many(documents[begin : begin + 64])

        wall, cpu = timed(enter)
    return {"documents": count - 640, "cpu_us": round(1e6 * cpu / (count - 640), 1), "wall_s": round(wall, 2)}


def serve_table(results: Row) -> str:
    """Return what was answered."""
    rows: list[list[object]] = []
    for r in results["rows"]:
        rate, median, p99 = AIMS[r["load"]]
        aims = [f"{rate:,}" if rate else "", f"{median}" if median else "", f"{p99}" if p99 else ""]
        figures = [
            f"{r['documents_a_second']:,.0f}",
            aims[0],
            f"{r['median_ms']:.1f}",
            aims[1],
            f"{r['p99_ms']:.1f}",
            aims[2],
        ]
        rest = [f"{r['cpu_us']:,.0f}", f"{r['memory_mb']:,.0f}", r["refused"] + r["broken"]]
        rows.append([r["load"], r["connections"], *figures, *rest])
    alone = f"{results['alone']['cpu_us']:,.0f}"
    rows.append(["`Index.add_many`, 64 at once", "", "", "", "", "", "", "", alone, "", ""])
    header = ["load", "connections", "documents a second", "aim", "median, ms", "aim", "p99, ms", "aim"]
    return table([*header, "CPU µs of the server a document", "peak of memory, MB", "errors"], rows)


SECTIONS = {"serve": Section(serve, {"serve": serve_table})}

if __name__ == "__main__":
    measured(__doc__, SECTIONS)
