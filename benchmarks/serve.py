"""Throughput and latency of the service on loopback, where client and server share the processors.

    serve.py [serve] [serve-million] [serve-long] [--small] [--minutes 15]

    serve          single documents over 64 connections, at full load and at some 3,000 a second; batches of 100 over 8
                   connections; and checks; each with a new service. wrk (a Debian package) makes the load; its
                   processor time is reported separately. Index.add_many in batches of 64 into a store gives the cost of
                   the engine alone
    serve-million  checks against a window of a million documents, over 64, 8 and 1 connections
    serve-long     batches of 100 over 2 connections for many minutes, into a window of 100,000 documents; meanwhile,
                   twenty times a second, a single document and a check: their times, and the memory

On a busy machine the processor time of the server says more than the wall time; the load before a run is recorded.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from measuring import (
    BENCH_HOME,
    HERE,
    NEARDUP,
    Section,
    call_in_new_process,
    markdown_table,
    print_progress,
    process_memory_mb,
    run_sections,
    time_call,
    time_quantiles,
)

from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

LUA = Path(__file__).with_suffix(".lua")
#: Name, connections, documents a request, query, and mean pause between requests of a connection in ms. With a pause of
#: 17 ms and answers in 4 ms, 64 connections send some 3,000 requests a second.
LOADS = (
    ("single", 64, 1, "", 0),
    ("single, paced", 64, 1, "", 17),
    ("batches of 100", 8, 100, "", 0),
    ("checks", 64, 1, "?mode=check", 0),
)
#: Aims: documents a second, milliseconds at the median and at the 99th percentile.
AIMS = {
    "single": (3000, None, None),
    "single, paced": (None, 10, 50),
    "batches of 100": (8000, None, None),
    "checks": (None, 8, None),
}
_TICKS = os.sysconf("SC_CLK_TCK")


def measure_loads(args: argparse.Namespace) -> Row:
    """Measure each load on a new service."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk, which makes the load, is not installed; install it with apt-get install wrk")
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    seconds = 3 if args.small else 20
    rows = []
    for name, connections, documents, query, pause in LOADS:
        print_progress(f"{name}, {connections} connections")
        with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
            row = load_row(folder, seconds, connections, documents, query, pause)
            rows.append({"load": name, "connections": connections} | row)
    print_progress("the engine alone")
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        engine = call_in_new_process(engine_row, Path(folder), 6400 if args.small else 64_000)
    return {"rows": rows, "alone": engine, "seconds": seconds}


def load_row(folder: str, seconds: int, connections: int, documents: int, query: str, pause: int) -> Row:
    with running_service(folder) as (address, pid):
        run_wrk(address, 2, connections, documents, "warm", query)
        before, client = process_cpu_seconds(pid), children_cpu_seconds()
        figures = run_wrk(address, seconds, connections, documents, "measured", query, pause)
        cpu, client, peak = (
            process_cpu_seconds(pid) - before,
            children_cpu_seconds() - client,
            process_memory_mb("VmHWM", pid),
        )
    count = figures["requests"] * documents
    return figures | {
        "documents": documents,
        "documents_a_second": round(count / figures["seconds"], 1),
        "cpu_us": round(1e6 * cpu / count, 1),
        "client_cpu_us": round(1e6 * client / count, 1),
        "memory_mb": peak,
    }


def measure_million(args: argparse.Namespace) -> Row:
    """Measure checks against many documents."""
    count, seconds = (5000, 2) if args.small else (1_000_000, 20)
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        print_progress(f"{count:,} documents into a store")
        call_in_new_process(engine_row, Path(folder), count, originals=1.0, at_once=1000)
        rows = []
        with running_service(folder) as (address, pid):
            held = int(index_info(address)["held"])
            run_wrk(address, 2, 8, 1, "warm", "?mode=check")
            for connections in (64, 8, 1):
                before = process_cpu_seconds(pid)
                figures = run_wrk(address, seconds, connections, 1, "measured", "?mode=check")
                cost = round(1e6 * (process_cpu_seconds(pid) - before) / figures["requests"], 1)
                rows.append({"connections": connections, "held": held} | figures | {"cpu_us": cost})
            memory = process_memory_mb("VmRSS", pid)
    return {"rows": rows, "memory_mb": memory}


def measure_long_run(args: argparse.Namespace) -> Row:
    """Sample times and memory while batches arrive."""
    seconds, interval = (20, 4) if args.small else (60 * args.minutes, 30)
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder,
        running_service(folder, window="100000 documents") as (address, pid),
    ):
        run_wrk(address, 2, 2, 100, "warm", "")
        load = threading.Thread(target=run_wrk, args=(address, seconds, 2, 100, "measured", ""))
        load.start()
        begin, before = time.monotonic(), process_cpu_seconds(pid)
        while load.is_alive() and (at := time.monotonic() - begin) < seconds - interval / 2:
            times = probe_times(address, f"probe-{len(rows)}", interval)
            info = index_info(address)
            rows.append(
                {"seconds": round(at + interval), "documents": info["documents"], "held": info["held"]}
                | {"memory_mb": process_memory_mb("VmRSS", pid), "cpu_s": round(process_cpu_seconds(pid) - before, 2)}
                | {name: time_quantiles(values, 1000) for name, values in times.items()}
            )
            print_progress(json.dumps(rows[-1]))
        load.join()
    if not args.small:
        (HERE.parent / "docs" / "service-long.svg").write_text(draw_chart(rows), "utf-8")
    return {"rows": rows}


def draw_chart(rows: list[Row]) -> str:
    """Return an SVG chart of memory and times over the minutes."""
    import altair as alt
    import vl_convert

    values = [
        {"minutes": row["seconds"] / 60, "series": f"{request}, {name}", "y": row[request][name]}
        for row in rows
        for request in ("single", "check")
        for name in ("median", "p99")
    ]
    values += [{"minutes": row["seconds"] / 60, "series": "memory", "y": row["memory_mb"]} for row in rows]
    x = alt.X("minutes:Q", title="minutes")
    base = alt.Chart(alt.Data(values=values)).properties(width=640, height=150)
    memory = base.transform_filter("datum.series == 'memory'").mark_line().encode(x, alt.Y("y:Q", title="memory, MB"))
    times = (
        base.transform_filter("datum.series != 'memory'")
        .mark_line()
        .encode(x, alt.Y("y:Q", title="ms", scale=alt.Scale(type="log")), alt.Color("series:N", title=None))
    )
    svg: str = vl_convert.vegalite_to_svg(alt.vconcat(memory, times).configure(background="white").to_dict())
    return svg


def probe_times(address: str, prefix: str, seconds: float) -> dict[str, list[float]]:
    """Return the times of alternating single documents and checks, twenty pairs a second."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    rng = np.random.default_rng(len(prefix))
    times: dict[str, list[float]] = {"single": [], "check": []}
    end = time.monotonic() + seconds
    with closing(connection):
        while time.monotonic() < end:
            for name, query in (("single", ""), ("check", "?mode=check")):
                text = " ".join(f"w{number:x}" for number in rng.integers(1, 1_000_000, 125).tolist())
                document = {"id": f"{prefix}-{len(times[name])}", "text": text}
                begin = time.perf_counter()
                connection.request(
                    "POST",
                    f"/v1/indexes/main/documents{query}",
                    json.dumps({"documents": [document]}),
                    {"Content-Type": "application/json"},
                )
                connection.getresponse().read()
                times[name].append(time.perf_counter() - begin)
            time.sleep(0.05)
    return times


@contextmanager
def running_service(folder: str, window: str = "endless") -> Iterator[tuple[str, int]]:
    """Run a service and yield its address and process id."""
    command = [*NEARDUP, "serve", "--store", f"{folder}/news.db", "--port", "0", "--window", window]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - stdout is a pipe
            address = server.stdout.readline().strip()
            wait_until_ready(address)
            yield address, server.pid
        finally:
            server.send_signal(signal.SIGTERM)


def index_info(address: str) -> Row:
    with urlopen(f"{address}/v1/indexes/main", timeout=60) as reply:  # noqa: S310 - a service of this script
        info: Row = json.load(reply)
    return info


def wait_until_ready(address: str) -> None:
    # The page is ready only when its assets are, which a background thread builds.
    for _ in range(600):
        try:
            urlopen(f"{address}/", timeout=60).close()  # noqa: S310 - a service of this script
            return
        except URLError:
            time.sleep(0.1)
    raise SystemExit(f"the service at {address} did not answer for a minute; run neardup serve by hand to see why")


def run_wrk(
    address: str, seconds: int, connections: int, documents: int, prefix: str, query: str, pause: int = 0
) -> Row:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(LUA), address]
    done = subprocess.run(
        [*command, "--", str(documents), prefix, query, str(pause)], capture_output=True, text=True, check=True
    )
    figures: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return figures


def process_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def children_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def engine_row(folder: Path, count: int, originals: float = 2 / 3, at_once: int = 64) -> Row:
    rng = np.random.default_rng(5)
    words = np.array([f"w{number:x}" for number in rng.integers(1, 1_000_000, 4000)])
    texts = [" ".join(words[rng.integers(0, len(words), 125)]) for _ in range(round(originals * count))]
    texts += [f"{texts[at]} again" for at in rng.integers(0, len(texts), count - len(texts)).tolist()]
    order = rng.permutation(count).tolist()
    documents = [Document(f"d{number}", texts[at]) for number, at in enumerate(order)]
    with Index(window=None, path=folder / "news.db", keep_texts=True) as index:
        index.add_many(documents[:640])

        def add_all() -> None:
            for begin in range(640, count, at_once):
                index.add_many(documents[begin : begin + at_once])

        wall, cpu = time_call(add_all)
    return {"documents": count - 640, "cpu_us": round(1e6 * cpu / (count - 640), 1), "wall_s": round(wall, 2)}


def serve_table(results: Row) -> str:
    """Return throughput and latency by load."""
    rows: list[list[object]] = []
    for r in results["rows"]:
        rate, median, p99 = AIMS[r["load"]]
        aims = [f"{rate:,}" if rate else "", f"{median}" if median else "", f"{p99}" if p99 else ""]
        measured = [f"{r['documents_a_second']:,.0f}", f"{r['median_ms']:.1f}", f"{r['p99_ms']:.1f}"]
        figures = [cell for pair in zip(measured, aims, strict=True) for cell in pair]
        costs = [f"{r[key]:,.0f}" for key in ("cpu_us", "client_cpu_us", "memory_mb")]
        rows.append([r["load"], r["connections"], *figures, *costs, r["refused"] + r["broken"]])
    engine = f"{results['alone']['cpu_us']:,.0f}"
    rows.append(["`Index.add_many`, 64 at once", "", "", "", "", "", "", "", engine, "", "", ""])
    header = ["load", "connections", "documents a second", "aim", "median, ms", "aim", "p99, ms", "aim"]
    return markdown_table([*header, "CPU µs of the server a document", "of wrk", "peak of memory, MB", "errors"], rows)


def million_table(results: Row) -> str:
    """Return the times of checks."""
    rows = [
        [
            f"{r['held']:,}",
            r["connections"],
            f"{r['requests'] / r['seconds']:,.0f}",
            f"{r['median_ms']:.1f}",
            f"{r['p99_ms']:.1f}",
            f"{r['cpu_us']:,.0f}",
            r["refused"] + r["broken"],
        ]
        for r in results["rows"]
    ]
    header = ["held", "connections", "checks a second", "median, ms", "p99, ms", "CPU µs of the server a check"]
    return markdown_table([*header, "errors"], rows)


def long_table(results: Row) -> str:
    """Return up to eight evenly spaced samples."""
    rows = results["rows"]
    shown = [rows[round(place)] for place in np.linspace(0, len(rows) - 1, min(len(rows), 8))]
    header = ["minutes", "documents", "held", "memory, MB", "single: median, ms", "p99", "check: median, ms", "p99"]
    return markdown_table(
        header,
        [
            [f"{r['seconds'] / 60:.1f}", f"{r['documents']:,}", f"{r['held']:,}", f"{r['memory_mb']:,.0f}"]
            + [f"{r[request][name]:.1f}" for request in ("single", "check") for name in ("median", "p99")]
            for r in shown
        ],
    )


SECTIONS = {
    "serve": Section(measure_loads, {"serve": serve_table}),
    "serve-million": Section(measure_million, {"serve-million": million_table}),
    "serve-long": Section(measure_long_run, {"serve-long": long_table}),
}

if __name__ == "__main__":
    run_sections(
        __doc__,
        SECTIONS,
        lambda parser: parser.add_argument("--minutes", type=int, default=15, help="duration of serve-long"),
    )
