"""What a durable store costs: items a second with every verdict on the disk, and how long a restart takes.

    window_store.py [throughput] [restart] [--out FILE]

    throughput  add_many in batches of 1,000 and add one by one, into an empty store and into one of 100,000 documents
    restart     a store of N1M, all of it in the window of 24 hours and written as originals without judging them: from
                Index(path=...) to the first answer, in a new process, after the store was closed, with its files out of
                the page cache, and after a kill -9

Stores lie in BENCH_HOME and are removed afterwards. How N1M is made is said in window.py.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from arrivals import (
    DAY,
    RECIPE,
    START,
    arriving,
    documents_in,
    fresh,
    memory,
    renew,
    rows_of,
    spread,
    texts_of,
    timed,
    warm_up,
)
from corpora import corpus
from measuring import BENCH_HOME, RESULTS, note, table

from neardup.recipe import load_recipe
from neardup.search.window import FlowClock, Length
from neardup.stream.document import Document, Verdict
from neardup.stream.index import Index
from neardup.stream.store import Mark, Store, Stored

Row = dict[str, Any]

#: Items a second, and seconds of a restart.
MANY, SINGLE, RESTART_S = 3000, 500, 60
_BATCH = 1000
#: Seconds of adding before the process is killed.
_UNTIL_KILLED = 1.5


def throughput(name: str, stored: list[int], batches: int, singles: int) -> list[Row]:
    """Measure both ways to add, each with a new store."""
    rows = []
    for before in stored:
        for at_once, times in ((_BATCH, batches), (1, singles)):
            note(f"{before:,} documents in the store, {at_once:,} at once")
            with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
                row = {"corpus": name, "stored": before, "at_once": at_once}
                rows.append(row | fresh(_throughput, corpus(name), Path(folder), before, at_once, times))
    return rows


def _throughput(file: Path, folder: Path, before: int, at_once: int, times: int) -> Row:
    warm_up(one_core=False)
    count = before + at_once * times
    documents = arriving(islice(texts_of(file), count), count)
    with Index(RECIPE, path=folder / "news.db") as index:
        while index.statistics.arrived < before:
            index.add_many(islice(documents, min(_BATCH, before - index.statistics.arrived)))
        groups = [list(islice(documents, at_once)) for _ in range(times)]
        begin = index.statistics.duplicates
        if at_once == 1:
            taken = [timed(lambda one=group[0]: index.add(one)) for group in groups]  # type: ignore[misc]
        else:
            taken = [timed(lambda group=group: index.add_many(group)) for group in groups]  # type: ignore[misc]
        duplicates, held = index.statistics.duplicates - begin, index.statistics.held
    wall = sum(one for one, _ in taken)
    return {
        "items": at_once * times,
        "duplicates": duplicates,
        "held": held,
        "items_a_second": round(at_once * times / wall, 1),
        "cpu_us": round(1e6 * sum(cpu for _, cpu in taken) / (at_once * times), 1),
        "wall_ms": spread((one for one, _ in taken), 1e3),
        "fsync_ms": _fsync(folder),
    }


def _fsync(folder: Path, times: int = 100) -> dict[str, float]:
    """Return what the disk takes for a page: no verdict can be there sooner."""
    with open(folder / "page", "wb", buffering=0) as file:

        def write() -> None:
            file.write(bytes(8192))
            os.fsync(file.fileno())

        return spread((timed(write)[0] for _ in range(times)), 1e3)


def restart(name: str, documents: int | None) -> list[Row]:
    """Measure how long a store of a whole corpus takes to come back."""
    file = corpus(name)
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        path = Path(folder, "news.db")
        note(f"a store of {name}")
        built = {"corpus": name} | fresh(_build, file, path, documents)
        rows = [built | {"after": "a clean close"} | fresh(_restart, path, "first")]
        _forget_pages(Path(folder))
        rows.append(built | {"after": "a clean close, files out of the page cache"} | fresh(_restart, path, "second"))
        note("kill -9 while it adds")
        killed = {"acknowledged": _kill(file, path)}
        rows.append(built | {"after": "a kill -9"} | fresh(_restart, path, "third") | killed)
    for row in rows:
        note(f"  after {row['after']}: {row['first_answer_s']} s")
    expected = built["documents"] + 2 + killed["acknowledged"]
    lost = max(expected - rows[-1]["arrived"], 0)
    rows[-1]["lost"] = lost
    if lost:
        note(f"LOST: {lost} verdicts that were given are not in the store")
    return rows


def _build(file: Path, path: Path, documents: int | None) -> Row:
    """Write a store as an index leaves it, every document an original: judging a million would take half an hour."""
    count = min(documents_in(file), documents or 1 << 62)
    Index(RECIPE, path=path).close()
    length = Length.parse("24h")
    settings = {"window": str(length), "window_by": "time", "against": "originals"}
    store = Store(path, Mark(load_recipe(RECIPE).fingerprint, settings))
    clock = FlowClock(length, time.time)
    hours: list[tuple[int, int]] = []
    rows: list[Stored] = []
    begin = time.perf_counter()
    for serial, document in enumerate(arriving(islice(texts_of(file), count), count)):
        moment = clock.see(document.microseconds)
        if not hours or hours[-1][0] != moment.part:
            hours.append((moment.part, serial))
        verdict = Verdict(document.id, "original", None, None, moment.real / 1e6, "", None)
        text = document.text
        rows.append(Stored(serial, verdict, "", moment.time, moment.leaves, True, text))
        if len(rows) == _BATCH or serial == count - 1:
            state = clock.state() | {"ahead": None, "revived": [], "segments": hours}
            store.record(rows, {"clock": json.dumps(state)})
            rows = []
    store.close()
    return {
        "documents": count,
        "held": count,
        "build_s": round(time.perf_counter() - begin, 1),
        "store_mb": round(path.stat().st_size / 1e6, 1),
    }


def _later(texts: Iterator[str], kind: str) -> Iterator[Document]:
    """Yield texts backwards, which the window does not hold, in the last moment of the day: nothing leaves it."""
    for number, text in enumerate(texts):
        yield Document(f"{kind}-{number}", text[::-1], START + DAY - 0.01)


def _restart(path: Path, kind: str) -> Row:
    begin, cpu = time.perf_counter(), time.process_time()
    index = Index(RECIPE, path=path)
    ready = time.perf_counter() - begin
    index.add(next(_later(iter(["Oil prices rose in early trading on Monday."]), kind)))
    answered, cpu = time.perf_counter() - begin, time.process_time() - cpu
    found = index.statistics
    again, _ = timed(index.close)
    return {
        "ready_s": round(ready, 2),
        "first_answer_s": round(answered, 2),
        "cpu_s": round(cpu, 2),
        "arrived": found.arrived,
        "held_again": found.held,
        "memory_mb": memory(),
        "peak_mb": memory("VmHWM"),
        "window_mb": round(found.bytes / 1e6, 1),
        "close_again_s": round(again, 2),
    }


def _kill(file: Path, path: Path) -> int:
    """Let a process open the store and add to it, kill it, and return how many verdicts it had given."""
    spawn = multiprocessing.get_context("spawn")
    mine, theirs = spawn.Pipe(duplex=False)
    process = spawn.Process(target=_add_for_ever, args=(file, path, theirs))
    process.start()
    theirs.close()
    given = mine.recv()
    time.sleep(_UNTIL_KILLED)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    try:
        while True:
            given = mine.recv()
    except EOFError:
        return int(given)


def _add_for_ever(file: Path, path: Path, said: Connection) -> None:
    index = Index(RECIPE, path=path)
    documents, given = _later(texts_of(file), "killed"), 0
    while some := list(islice(documents, 100)):
        given += len(index.add_many(some))
        said.send(given)


def _forget_pages(folder: Path) -> None:
    """Ask the system to drop what it has of files in memory."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def as_table(results: dict[str, Any]) -> str:
    """Return items a second as Markdown."""
    rows: list[list[object]] = []
    for r in rows_of(results, "throughput"):
        wall = [f"{r['wall_ms'][key]:.2f}" for key in ("median", "p99", "max")]
        rate, aim = f"{r['items_a_second']:,.0f}", f"{SINGLE if r['at_once'] == 1 else MANY:,}"
        fsync = f"{r['fsync_ms']['median']:.2f}"
        rows.append([f"{r['stored']:,}", f"{r['at_once']:,}", f"{r['items']:,}", rate, aim, *wall, r["cpu_us"], fsync])
    header = ["in the store", "items at once", "items", "items a second", "aim", "a call, ms: median", "p99", "max"]
    return table([*header, "CPU µs an item", "an fsync of the disk, ms"], rows)


def restart_table(results: dict[str, Any]) -> str:
    """Return how long restarts take as Markdown."""
    rows: list[list[object]] = []
    for r in rows_of(results, "restart"):
        sizes = [f"{r[key]:,.0f}" for key in ("store_mb", "memory_mb", "peak_mb")]
        times = [r["ready_s"], r["first_answer_s"], RESTART_S, r["cpu_s"]]
        rows.append([r["after"], f"{r['documents']:,}", f"{r['held_again']:,}", *times, *sizes, r.get("lost", "")])
    header = ["after", "documents", "held", "Index(path) s", "to the first answer s", "aim", "CPU s"]
    return table([*header, "store MB", "RSS MB", "peak RSS MB", "verdicts lost"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", help="throughput, restart; all of them unless named")
    parser.add_argument("--corpus", default="N1M")
    parser.add_argument("--stored", type=int, nargs="+", default=[0, 100_000], help="documents in the store before")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--singles", type=int, default=3000)
    parser.add_argument("--documents", type=int, help="only so many of the corpus in the restarted store")
    parser.add_argument("--out", type=Path, default=RESULTS / "window_store.json")
    options = parser.parse_args()
    sections = {
        "throughput": lambda: throughput(options.corpus, options.stored, options.batches, options.singles),
        "restart": lambda: restart(options.corpus, options.documents),
    }
    if unknown := set(options.sections) - set(sections):
        parser.error(f"no section {min(unknown)}; there are {', '.join(sections)}")
    chosen = {name: act for name, act in sections.items() if name in (options.sections or sections)}
    results = renew(options.out, "window_store", chosen)
    print("\n\n".join(make(results) for make in (as_table, restart_table)))


if __name__ == "__main__":
    main()
