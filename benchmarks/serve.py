"""Throughput and latency of the service on loopback, where client and server share the processors.

    serve.py [serve] [serve-million] [serve-long] [--small]

    serve          single documents over 64 connections, at full load and at some 3,000 a second; batches of 100 over 8
                   connections; and checks; each with a new service. wrk (a Debian package) makes the load; its
                   processor time is reported separately. Index.add_many in batches of 64 into a store gives the cost of
                   the engine alone
    serve-million  checks against a window of a million documents, over 64, 8 and 1 connections
    serve-long     batches of 100 over 2 connections for four minutes, into a window of 100,000 documents; meanwhile,
                   twenty times a second, a single document and a check: their times, and the memory

On a busy machine the processor time of the server says more than the wall time; the load before a run is recorded.
"""

from __future__ import annotations

import argparse
import http.client
import json
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
from harness import (
    BENCH_HOME,
    HERE,
    NEARDUP,
    Row,
    call_in_new_process,
    children_cpu_seconds,
    print_progress,
    process_cpu_seconds,
    process_memory,
    run_sections,
    section,
    time_call,
    time_quantiles,
)

from neardup.stream.document import Document
from neardup.stream.index import Index

#: Name, connections, documents a request, query, mean pause between requests of a connection in ms, and aims: documents
#: a second, milliseconds at the median and at the 99th percentile. With a pause of 17 ms and answers in 4 ms,
#: 64 connections send some 3,000 requests a second.
LOADS = (
    ("single", 64, 1, "", 0, (3000, None, None)),
    ("single, paced", 64, 1, "", 17, (None, 10, 50)),
    ("batches of 100", 8, 100, "", 0, (8000, None, None)),
    ("checks", 64, 1, "?mode=check", 0, (None, 8, None)),
)


@section(
    "serve",
    "load | connections | documents a second | aim | median, ms | aim | p99, ms | aim | CPU µs of the server a document"
    " | of wrk | peak of memory, MB | errors",
    "{load} | {connections} | {documents_a_second:,.0f} | {aims[0]:,} | {median_ms:.1f} | {aims[1]} | {p99_ms:.1f} | "
    "{aims[2]} | {cpu_us:,.0f} | {client_cpu_us:,.0f} | {memory_mb:,.0f} | {errors}",
)
def measure_loads(args: argparse.Namespace) -> Row:
    if shutil.which("wrk") is None:
        raise SystemExit("wrk, which makes the load, is not installed; install it with apt-get install wrk")
    seconds = 3 if args.small else 20
    rows = []
    for name, connections, documents, query, pause, aims in LOADS:
        print_progress(f"{name}, {connections} connections")
        with running_service() as (address, pid):
            run_wrk(address, 2, connections, documents, "warm", query)
            before, client = process_cpu_seconds(pid), children_cpu_seconds()
            figures = run_wrk(address, seconds, connections, documents, "measured", query, pause)
            cpu, client = process_cpu_seconds(pid) - before, children_cpu_seconds() - client
            peak = process_memory(pid, "VmHWM") / 1e6
        count = figures["requests"] * documents
        row = {"load": name, "connections": connections, "aims": aims, "documents": documents, "memory_mb": peak}
        row |= {"documents_a_second": count / figures["seconds"]}
        row |= {"cpu_us": 1e6 * cpu / count, "client_cpu_us": 1e6 * client / count}
        rows.append(row | figures)
    print_progress("the engine alone")
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        engine = call_in_new_process(fill_store, Path(folder), 6400 if args.small else 64_000)
    return {"rows": [*rows, {"load": "`Index.add_many`, 64 at once"} | engine], "seconds": seconds}


@section(
    "serve-million",
    "held | connections | checks a second | median, ms | p99, ms | CPU µs of the server a check | errors",
    "{held:,} | {connections} | {checks_a_second:,.0f} | {median_ms:.1f} | {p99_ms:.1f} | {cpu_us:,.0f} | {errors}",
)
def measure_million(args: argparse.Namespace) -> Row:
    count, seconds = (5000, 2) if args.small else (1_000_000, 20)
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        print_progress(f"{count:,} documents into a store")
        call_in_new_process(fill_store, Path(folder), count, originals=1.0, at_once=1000)
        rows = []
        with running_service(folder) as (address, pid):
            held = int(index_info(address)["held"])
            run_wrk(address, 2, 8, 1, "warm", "?mode=check")
            for connections in (64, 8, 1):
                before = process_cpu_seconds(pid)
                figures = run_wrk(address, seconds, connections, 1, "measured", "?mode=check")
                cost = 1e6 * (process_cpu_seconds(pid) - before) / figures["requests"]
                rate = figures["requests"] / figures["seconds"]
                row = {"connections": connections, "held": held, "cpu_us": cost, "checks_a_second": rate}
                rows.append(row | figures)
    return {"rows": rows}


@section(
    "serve-long",
    "minutes | documents | held | memory, MB | single: median, ms | p99 | check: median, ms | p99",
    "{minutes:.1f} | {documents:,} | {held:,} | {memory_mb:,.0f} | {single[median]:.1f} | {single[p99]:.1f} | "
    "{check[median]:.1f} | {check[p99]:.1f}",
)
def measure_long_run(args: argparse.Namespace) -> Row:
    seconds, interval = (20, 4) if args.small else (240, 30)
    rows: list[Row] = []
    with running_service(window="100000 documents") as (address, pid):
        run_wrk(address, 2, 2, 100, "warm", "")
        load = threading.Thread(target=run_wrk, args=(address, seconds, 2, 100, "measured", ""))
        load.start()
        begin = time.monotonic()
        while load.is_alive() and (at := time.monotonic() - begin) < seconds - interval / 2:
            times = probe_times(address, f"probe-{len(rows)}", interval)
            info = index_info(address)
            rows.append(
                {"minutes": (at + interval) / 60, "documents": info["documents"], "held": info["held"]}
                | {"memory_mb": process_memory(pid) / 1e6}
                | {name: time_quantiles(values, 1000) for name, values in times.items()}
            )
            print_progress(json.dumps(rows[-1]))
        load.join()
    return {"rows": rows}


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
def running_service(folder: str = "", window: str = "endless") -> Iterator[tuple[str, int]]:
    """Run a service with the store of a folder, or a new one, and yield its address and process id."""
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as new:
        command = [*NEARDUP, "serve", "--store", f"{folder or new}/news.db", "--port", "0", "--window", window]
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
    """Send documents with ids of a prefix, and return what serve.lua prints, and the number of errors."""
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--timeout",
        "30s",
        "-s",
        f"{HERE}/serve.lua",
        address,
    ]
    options = ["--", str(documents), prefix, query, str(pause)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    figures: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return figures | {"errors": figures["refused"] + figures["broken"]}


def fill_store(folder: Path, count: int, originals: float = 2 / 3, at_once: int = 64) -> Row:
    """Add documents to the store of a folder without a service, and return the processor time of one."""
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
    return {"documents": count - 640, "cpu_us": 1e6 * cpu / (count - 640), "wall_s": wall}


if __name__ == "__main__":
    run_sections(__doc__)
