"""What the service answers under load, on loopback, where client and server share the processors.

    serve.py [serve] [serve-million] [serve-long] [--small] [--minutes 15]

    serve          single documents over 64 connections, as many as it takes and some 3,000 a second; batches of 100
                   over 8; and checks; each with a new service. The load is made by wrk (a Debian package), whose
                   processor time is told apart. Beside it, Index.add_many on documents like these in batches of 64,
                   into a store: what the engine alone takes
    serve-million  checks against a million documents that are held, over 64, 8 and 1 connections
    serve-long     batches of 100 over 2 connections for many minutes, into a window of 100,000 documents; beside them,
                   twenty times a second, one document alone and one check: their times, and the memory

The processor time of the server says more than the clock where others work on the machine; the load before is noted.
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
    note,
    run_sections,
    table,
    time_call,
    time_quantiles,
)

from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

LUA = Path(__file__).with_suffix(".lua")
#: What is sent: a name, connections, documents of a request, the query, and the mean pause of a connection before it
#: asks again, in ms: with 17 and answers in four ms, 64 connections ask some 3,000 times a second.
LOADS = (
    ("single", 64, 1, "", 0),
    ("single, paced", 64, 1, "", 17),
    ("batches of 100", 8, 100, "", 0),
    ("checks", 64, 1, "?mode=check", 0),
)
#: Documents a second, and milliseconds at the median and the 99th percentile.
AIMS = {
    "single": (3000, None, None),
    "single, paced": (None, 10, 50),
    "batches of 100": (8000, None, None),
    "checks": (None, 8, None),
}
_TICKS = os.sysconf("SC_CLK_TCK")


def serve(args: argparse.Namespace) -> Row:
    """Measure each load on a service of its own."""
    if shutil.which("wrk") is None:
        raise SystemExit("wrk makes the load and is not installed; apt-get install wrk brings it")
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    seconds = 3 if args.small else 20
    rows = []
    for name, connections, documents, query, pause in LOADS:
        note(f"{name}, {connections} connections")
        with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
            found = _loaded(folder, seconds, connections, documents, query, pause)
            rows.append({"load": name, "connections": connections} | found)
    note("the engine alone")
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        alone = call_in_new_process(_alone, Path(folder), 6400 if args.small else 64_000)
    return {"rows": rows, "alone": alone, "seconds": seconds}


def _loaded(folder: str, seconds: int, connections: int, documents: int, query: str, pause: int) -> Row:
    with _service(folder) as (address, pid):
        _wrk(address, 2, connections, documents, "warm", query)
        before, client = _cpu(pid), _cpu_of_children()
        found = _wrk(address, seconds, connections, documents, "measured", query, pause)
        cpu, client, peak = _cpu(pid) - before, _cpu_of_children() - client, _memory(pid, "VmHWM")
    count = found["requests"] * documents
    return found | {
        "documents": documents,
        "documents_a_second": round(count / found["seconds"], 1),
        "cpu_us": round(1e6 * cpu / count, 1),
        "client_cpu_us": round(1e6 * client / count, 1),
        "memory_mb": round(peak, 1),
    }


def million(args: argparse.Namespace) -> Row:
    """Measure checks against many documents."""
    count, seconds = (5000, 2) if args.small else (1_000_000, 20)
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        note(f"{count:,} documents into a store")
        call_in_new_process(_alone, Path(folder), count, originals=1.0, at_once=1000)
        rows = []
        with _service(folder) as (address, pid):
            held = _held(address)
            _wrk(address, 2, 8, 1, "warm", "?mode=check")
            for connections in (64, 8, 1):
                before = _cpu(pid)
                found = _wrk(address, seconds, connections, 1, "measured", "?mode=check")
                cost = round(1e6 * (_cpu(pid) - before) / found["requests"], 1)
                rows.append({"connections": connections, "held": held} | found | {"cpu_us": cost})
            memory = round(_memory(pid, "VmRSS"), 1)
    return {"rows": rows, "memory_mb": memory}


def long(args: argparse.Namespace) -> Row:
    """Note times and memory again and again while documents come."""
    seconds, every = (20, 4) if args.small else (60 * args.minutes, 30)
    BENCH_HOME.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder,
        _service(folder, window="100000 documents") as (address, pid),
    ):
        _wrk(address, 2, 2, 100, "warm", "")
        load = threading.Thread(target=_wrk, args=(address, seconds, 2, 100, "measured", ""))
        load.start()
        begin, before = time.monotonic(), _cpu(pid)
        while load.is_alive() and (at := time.monotonic() - begin) < seconds - every / 2:
            times = _probed(address, f"probe-{len(rows)}", every)
            about = _about(address)
            rows.append(
                {"seconds": round(at + every), "documents": about["documents"], "held": about["held"]}
                | {"memory_mb": round(_memory(pid, "VmRSS"), 1), "cpu_s": round(_cpu(pid) - before, 2)}
                | {name: time_quantiles(values, 1000) for name, values in times.items()}
            )
            note(json.dumps(rows[-1]))
        load.join()
    if not args.small:
        (HERE.parent / "docs" / "service-long.svg").write_text(_drawn(rows), "utf-8")
    return {"rows": rows}


def _drawn(rows: list[Row]) -> str:
    """Return memory and times over the minutes as a picture."""
    import altair as alt
    import vl_convert

    values = [
        {"minutes": row["seconds"] / 60, "what": f"{of}, {name}", "y": row[of][name]}
        for row in rows
        for of in ("single", "check")
        for name in ("median", "p99")
    ]
    values += [{"minutes": row["seconds"] / 60, "what": "memory", "y": row["memory_mb"]} for row in rows]
    x = alt.X("minutes:Q", title="minutes")
    base = alt.Chart(alt.Data(values=values)).properties(width=640, height=150)
    memory = base.transform_filter("datum.what == 'memory'").mark_line().encode(x, alt.Y("y:Q", title="memory, MB"))
    times = (
        base.transform_filter("datum.what != 'memory'")
        .mark_line()
        .encode(x, alt.Y("y:Q", title="ms", scale=alt.Scale(type="log")), alt.Color("what:N", title=None))
    )
    drawn: str = vl_convert.vegalite_to_svg(alt.vconcat(memory, times).configure(background="white").to_dict())
    return drawn


def _probed(address: str, prefix: str, seconds: float) -> dict[str, list[float]]:
    """Return the times of single documents and of checks, in turn, twenty a second."""
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
    dice = np.random.default_rng(len(prefix))
    times: dict[str, list[float]] = {"single": [], "check": []}
    end = time.monotonic() + seconds
    with closing(connection):
        while time.monotonic() < end:
            for name, query in (("single", ""), ("check", "?mode=check")):
                text = " ".join(f"w{number:x}" for number in dice.integers(1, 1_000_000, 125).tolist())
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
def _service(folder: str, window: str = "endless") -> Iterator[tuple[str, int]]:
    """Give the address of a service, and its process."""
    command = [*NEARDUP, "serve", "--store", f"{folder}/news.db", "--port", "0", "--window", window]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout is not None  # noqa: S101 - it is a pipe
            address = server.stdout.readline().strip()
            _wait(address)
            yield address, server.pid
        finally:
            server.send_signal(signal.SIGTERM)


def _about(address: str) -> Row:
    with urlopen(f"{address}/v1/indexes/main", timeout=60) as reply:  # noqa: S310 - it is ours
        found: Row = json.load(reply)
    return found


def _held(address: str) -> int:
    return int(_about(address)["held"])


def _wait(address: str) -> None:
    # The first requests would wait for what the page needs, which is made beside.
    for _ in range(600):
        try:
            urlopen(f"{address}/", timeout=60).close()  # noqa: S310 - it is ours
            return
        except URLError:
            time.sleep(0.1)
    raise SystemExit("the service does not answer")


def _wrk(address: str, seconds: int, connections: int, documents: int, prefix: str, query: str, pause: int = 0) -> Row:
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(LUA), address]
    done = subprocess.run(
        [*command, "--", str(documents), prefix, query, str(pause)], capture_output=True, text=True, check=True
    )
    found: Row = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(pid: int, field: str) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def _alone(folder: Path, count: int, originals: float = 2 / 3, at_once: int = 64) -> Row:
    dice = np.random.default_rng(5)
    words = np.array([f"w{number:x}" for number in dice.integers(1, 1_000_000, 4000)])
    texts = [" ".join(words[dice.integers(0, len(words), 125)]) for _ in range(round(originals * count))]
    texts += [f"{texts[at]} again" for at in dice.integers(0, len(texts), count - len(texts)).tolist()]
    order = dice.permutation(count).tolist()
    documents = [Document(f"d{number}", texts[at]) for number, at in enumerate(order)]
    with Index(window=None, path=folder / "news.db", keep_texts=True) as index:
        index.add_many(documents[:640])

        def enter() -> None:
            for begin in range(640, count, at_once):
                index.add_many(documents[begin : begin + at_once])

        wall, cpu = time_call(enter)
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
        rest = [
            f"{r['cpu_us']:,.0f}",
            f"{r['client_cpu_us']:,.0f}",
            f"{r['memory_mb']:,.0f}",
            r["refused"] + r["broken"],
        ]
        rows.append([r["load"], r["connections"], *figures, *rest])
    alone = f"{results['alone']['cpu_us']:,.0f}"
    rows.append(["`Index.add_many`, 64 at once", "", "", "", "", "", "", "", alone, "", "", ""])
    header = ["load", "connections", "documents a second", "aim", "median, ms", "aim", "p99, ms", "aim"]
    return table([*header, "CPU µs of the server a document", "of wrk", "peak of memory, MB", "errors"], rows)


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
    return table([*header, "errors"], rows)


def long_table(results: Row) -> str:
    """Return some of the moments, from the first to the last."""
    rows = results["rows"]
    shown = [rows[round(place)] for place in np.linspace(0, len(rows) - 1, min(len(rows), 8))]
    header = ["minutes", "documents", "held", "memory, MB", "single: median, ms", "p99", "check: median, ms", "p99"]
    return table(
        header,
        [
            [f"{r['seconds'] / 60:.1f}", f"{r['documents']:,}", f"{r['held']:,}", f"{r['memory_mb']:,.0f}"]
            + [f"{r[of][name]:.1f}" for of in ("single", "check") for name in ("median", "p99")]
            for r in shown
        ],
    )


SECTIONS = {
    "serve": Section(serve, {"serve": serve_table}),
    "serve-million": Section(million, {"serve-million": million_table}),
    "serve-long": Section(long, {"serve-long": long_table}),
}

if __name__ == "__main__":
    run_sections(
        __doc__,
        SECTIONS,
        lambda parser: parser.add_argument("--minutes", type=int, default=15, help="how long serve-long takes"),
    )
