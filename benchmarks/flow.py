"""What it costs to know whether a window held an item already: time, memory, a store, a restart.

    flow.py [window] [window-million] [window-store] [window-restart] [--small]

    window          a window of 8,000 documents, full, on one core: items as they are, and joins of them to 5 KB; in
                    batches of 256 and one by one
    window-million  N1M evenly over 24 hours, so that all of it is in the window; then 2,000 items more, one by one, and
                    six hours that expire
    window-store    items a second with every verdict on the disk, into an empty store and one of 100,000 documents
    window-restart  from Index(path=...) to the first answer in a new process, with all of N1M in the window

All with the recipe ddd: 4-grams of the normal form, docq at or above 0.7. That a kill loses no verdict is held by
tests/stream.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa
from corpora import corpus, count_documents, edited_copies, texts_of
from measuring import (
    BENCH_HOME,
    Section,
    call_in_new_process,
    memory,
    note,
    run_sections,
    table,
    time_call,
    time_quantiles,
)

from neardup.features.extraction import Extractor
from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

RECIPE = "ddd"
#: The first item's time: 1 March 2012, 0:00 UTC, long past by any clock on the wall.
START = 1_330_560_000.0
HOUR, DAY = 3600.0, 86_400.0
#: So many hours are let expire.
HOURS = 6
#: CPU microseconds an item that the window of 8,000 may take, by the characters of an item (0: as it is).
ALLOWED = {0: 100, 5000: 500}
#: Milliseconds and megabytes that the window of a million may take; items a second of a store; seconds of a restart.
MEDIAN_MS, P99_MS, MEMORY_MB, HOUR_MS = 5, 20, 6000, 50
MANY, SINGLE, RESTART_S = 3000, 500, 60
_BATCH = 1000


def arriving(texts: Iterable[str], per_day: int, first: int = 0) -> Iterator[Document]:
    """Yield texts as documents that arrive evenly through the days, so many a day."""
    for number, text in enumerate(texts, first):
        yield Document(f"item-{number}", text, START + number * DAY / per_day)


def warm_up(*, one_core: bool) -> None:
    """Load the compiled kernels (compile them where that is not done), and stay on one core from now on if asked."""
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = list(edited_copies(1200, seed=9))
    index = Index(RECIPE)
    index.add_many(arriving(texts[:1100], 1000))
    for document in arriving(texts[1100:], 100, 1100):
        index.add(document)


def calls(index: Index, documents: Sequence[Document], at_once: int) -> list[tuple[float, float]]:
    """Return wall and CPU seconds of each call that adds so many documents."""

    def call(group: Sequence[Document]) -> Callable[[], object]:
        return (lambda: index.add(group[0])) if at_once == 1 else (lambda: index.add_many(group))

    return [time_call(call(documents[begin : begin + at_once])) for begin in range(0, len(documents), at_once)]


def joined(texts: Sequence[str], size: int) -> Iterator[str]:
    """Yield joins of neighbouring texts, of about so many characters; then of other orders of the shorter texts.

    A long text would be most of two joins, which were duplicates then.
    """
    for turn in range(100):
        order = [text for text in texts if not turn or len(text) < size / 4]
        if turn:
            random.Random(turn).shuffle(order)  # noqa: S311
        parts: list[str] = []
        length = 0
        for text in order:
            if parts and length + len(text) / 2 > size:
                yield "\n".join(parts)
                parts, length = [], 0
            parts.append(text)
            length += len(text) + 1


def small_window(args: argparse.Namespace) -> Row:
    """Measure a window of some thousand documents, full from the start."""
    news, mixes, window, items = ("G20k", "G20k", 2000, 1024) if args.small else ("R20k", "N100k", 8000, 8000)
    rows = []
    for name, size in ((news, 0), (news, 5000), (mixes, 5000)):
        for at_once in (256, 1):
            note(f"{name}, {f'joined to {size:,}' if size else 'as it is'}, {at_once} at once")
            row = {"corpus": name, "window": window, "joined_to": size, "at_once": at_once}
            rows.append(row | call_in_new_process(_small_window, corpus(name), size, window, items, at_once))
    return {"rows": rows}


def _small_window(file: Path, size: int, window: int, items: int, at_once: int) -> Row:
    warm_up(one_core=True)
    texts = list(texts_of(file))
    some: Iterable[str] = islice(joined(texts, size) if size else texts, window + items // at_once * at_once)
    documents = [Document(str(number), text) for number, text in enumerate(some)]
    index, arrived = Index(RECIPE, window=window), documents[window:]
    index.add_many(documents[:window])
    before = index.statistics.duplicates
    taken = calls(index, arrived, at_once)
    extract = Extractor(index.recipe, None)
    groups = [[one.text for one in arrived[at : at + at_once]] for at in range(0, len(arrived), at_once)]
    arrays = [pa.array(group, pa.large_string()) for group in groups]
    features = [time_call(lambda one=one: extract(one))[1] for one in arrays]  # type: ignore[misc]
    return {
        "items": len(arrived),
        "item_bytes": round(fmean(len(document.text.encode()) for document in arrived)),
        "duplicates": index.statistics.duplicates - before,
        "cpu_us": time_quantiles((cpu for _, cpu in taken), 1e6 / at_once),
        "features_us": time_quantiles(features, 1e6 / at_once),
        "wall_us": time_quantiles((wall for wall, _ in taken), 1e6 / at_once),
    }


def small_window_table(results: Row) -> str:
    """Return what an item costs in a small window."""
    header = ["items", "window", "KB an item", "items at once", "CPU µs an item: median", "mean", "p99", "max"]
    header += ["of the median, features", "aim", "duplicates"]
    rows: list[list[object]] = [["Montanari & Puglisi 2012", "8,000", "", 1, "1,200,000", *[""] * 6]]
    for r in results["rows"]:
        cpu = [f"{r['cpu_us'][key]:,.0f}" for key in ("median", "mean", "p99", "max")]
        items = f"{r['corpus']}, joined" if r["joined_to"] else r["corpus"]
        size, features = f"{r['item_bytes'] / 1000:.2f}", f"{r['features_us']['median']:,.0f}"
        head = [items, f"{r['window']:,}", size, r["at_once"], *cpu, features, ALLOWED[r["joined_to"]]]
        rows.append([*head, f"{r['duplicates']:,} of {r['items']:,}"])
    return table(header, rows)


def million(args: argparse.Namespace) -> Row:
    """Measure a window that holds a whole corpus, for each way to compare."""
    name, items = ("G20k", 300) if args.small else ("N1M", 2000)
    ways = ("originals", "everything")
    return {
        "rows": [
            {"corpus": name, "against": one} | call_in_new_process(_million, corpus(name), items, one) for one in ways
        ]
    }


def _million(file: Path, items: int, against: str) -> Row:
    warm_up(one_core=True)
    count = count_documents(file)
    filled = count - items - HOURS
    index, texts = Index(RECIPE, against=against), texts_of(file)
    row: Row = {"documents": count, "fill": list(_filled(index, arriving(islice(texts, filled), count), filled))}
    taken = calls(index, list(arriving(islice(texts, items), count, filled)), 1)
    found = index.statistics
    row |= {
        "items": items,
        "held": found.held,
        "duplicates": found.duplicates,
        "wall_ms": time_quantiles((wall for wall, _ in taken), 1e3),
        "cpu_ms": time_quantiles((cpu for _, cpu in taken), 1e3),
        "memory_mb": memory(),
        "peak_mb": memory("VmHWM"),
        "window_mb": round(found.bytes / 1e6, 1),
        "expiring": [],
    }
    for hour, text in enumerate(islice(texts, HOURS), 1):
        [(wall, _)] = calls(index, [Document(f"after-{hour}", text, START + DAY + hour * HOUR)], 1)
        row["expiring"].append({"held": index.statistics.held, "wall_ms": round(1e3 * wall, 2)})
    return row


def _filled(index: Index, documents: Iterator[Document], count: int) -> Iterator[Row]:
    """Fill the window; yield what the items of each tenth took."""
    step = -(-count // 10)
    while some := list(islice(documents, 1)):
        cpu, wall, before = time.process_time(), time.perf_counter(), index.statistics.arrived
        index.add_many(chain(some, islice(documents, step - 1)))
        found = index.statistics
        each = 1e6 / (found.arrived - before)
        cpu_us, wall_us = (
            each * (now - then) for now, then in ((time.process_time(), cpu), (time.perf_counter(), wall))
        )
        note(f"  {found.arrived:,}: {cpu_us:.0f} µs an item, {memory():,.0f} MB")
        row = {"documents": found.arrived, "held": found.held, "cpu_us": round(cpu_us, 1), "wall_us": round(wall_us, 1)}
        yield row | {"memory_mb": memory(), "window_mb": round(found.bytes / 1e6, 1)}


def million_table(results: Row) -> str:
    """Return what an item, the memory and the end of an hour cost in a window of a million."""
    header = ["compared with", "documents", "held", "an item, ms: median", "p90", "p99", "max", "CPU ms: median", "p99"]
    header += ["RSS MB", "peak RSS MB", "window MB", "an hour expires, ms: median", "max"]
    rows: list[list[object]] = []
    for r in results["rows"]:
        ends = time_quantiles((hour["wall_ms"] for hour in r["expiring"]), 1)
        wall = [f"{r['wall_ms'][key]:.2f}" for key in ("median", "p90", "p99", "max")]
        cpu = [f"{r['cpu_ms'][key]:.2f}" for key in ("median", "p99")]
        sizes = [f"{r[key]:,.0f}" for key in ("memory_mb", "peak_mb", "window_mb")]
        expiring = [f"{ends['median']:.1f}", f"{ends['max']:.1f}"]
        rows.append([r["against"], f"{r['documents']:,}", f"{r['held']:,}", *wall, *cpu, *sizes, *expiring])
    rows.append(["aim", "", "", MEDIAN_MS, "", P99_MS, "", "", "", f"{MEMORY_MB:,}", "", "", HOUR_MS, ""])
    return table(header, rows)


def fill_table(results: Row) -> str:
    """Return what an item costs while the window fills."""
    rows: list[list[object]] = []
    for r in results["rows"]:
        for part in r["fill"]:
            sizes = [f"{part[key]:,.0f}" for key in ("cpu_us", "wall_us", "memory_mb", "window_mb")]
            rows.append([r["against"], f"{part['documents']:,}", f"{part['held']:,}", *sizes])
    header = ["compared with", "documents so far", "held", "CPU µs an item", "wall µs an item", "RSS MB", "window MB"]
    return table(header, rows)


def throughput(args: argparse.Namespace) -> Row:
    """Measure both ways to add, each with a new store."""
    name, stored = ("G20k", (0, 5000)) if args.small else ("N1M", (0, 100_000))
    rows = []
    for before in stored:
        for at_once, times in ((_BATCH, 5), (1, 300)) if args.small else ((_BATCH, 30), (1, 3000)):
            note(f"{before:,} documents in the store, {at_once:,} at once")
            with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
                row = {"corpus": name, "stored": before, "at_once": at_once, "items": at_once * times}
                rows.append(row | call_in_new_process(_throughput, corpus(name), Path(folder), before, at_once, times))
    return {"rows": rows}


def _throughput(file: Path, folder: Path, before: int, at_once: int, times: int) -> Row:
    warm_up(one_core=False)
    items = at_once * times
    documents = arriving(islice(texts_of(file), before + items), before + items)
    with Index(RECIPE, path=folder / "news.db") as index:
        while index.statistics.arrived < before:
            index.add_many(islice(documents, min(_BATCH, before - index.statistics.arrived)))
        taken = calls(index, list(documents), at_once)
        held = index.statistics.held
    return {
        "held": held,
        "items_a_second": round(items / sum(wall for wall, _ in taken), 1),
        "cpu_us": round(1e6 * sum(cpu for _, cpu in taken) / items, 1),
        "wall_ms": time_quantiles((wall for wall, _ in taken), 1e3),
        "fsync_ms": _fsync(folder),
    }


def _fsync(folder: Path, times: int = 100) -> dict[str, float]:
    """Return what the disk takes for a page: no verdict can be there sooner."""
    with open(folder / "page", "wb", buffering=0) as file:

        def write() -> None:
            file.write(bytes(8192))
            os.fsync(file.fileno())

        return time_quantiles((time_call(write)[0] for _ in range(times)), 1e3)


def throughput_table(results: Row) -> str:
    """Return items a second."""
    rows: list[list[object]] = []
    for r in results["rows"]:
        wall = [f"{r['wall_ms'][key]:.2f}" for key in ("median", "p99", "max")]
        rate, aim = f"{r['items_a_second']:,.0f}", f"{SINGLE if r['at_once'] == 1 else MANY:,}"
        fsync = f"{r['fsync_ms']['median']:.2f}"
        rows.append([f"{r['stored']:,}", f"{r['at_once']:,}", f"{r['items']:,}", rate, aim, *wall, r["cpu_us"], fsync])
    header = ["in the store", "items at once", "items", "items a second", "aim", "a call, ms: median", "p99", "max"]
    return table([*header, "CPU µs an item", "an fsync of the disk, ms"], rows)


def restart(args: argparse.Namespace) -> Row:
    """Measure how long a store of a whole corpus takes to come back, warm and with its files out of the page cache."""
    file = corpus("G20k" if args.small else "N1M")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        path = Path(folder, "news.db")
        note("filling a store")
        built = call_in_new_process(_build, file, path)
        for after in ("a clean close", "a clean close, files out of the page cache"):
            if rows:
                _forget_pages(Path(folder))
            rows.append(built | {"after": after} | call_in_new_process(_restart, path))
    return {"rows": rows}


def _build(file: Path, path: Path) -> Row:
    count = count_documents(file)
    with Index(RECIPE, path=path) as index:
        index.add_many(arriving(texts_of(file), count))
    return {"documents": count, "store_mb": round(path.stat().st_size / 1e6, 1)}


def _restart(path: Path) -> Row:
    begin, cpu = time.perf_counter(), time.process_time()
    index = Index(RECIPE, path=path)
    ready = time.perf_counter() - begin
    index.add(Document(f"later-{os.getpid()}", "Oil prices rose in early trading on Monday.", START + DAY - 0.01))
    row = {"ready_s": round(ready, 2), "first_answer_s": round(time.perf_counter() - begin, 2)}
    row |= {"cpu_s": round(time.process_time() - cpu, 2), "held": index.statistics.held}
    row |= {"memory_mb": memory(), "peak_mb": memory("VmHWM")}
    index.close()
    return row


def _forget_pages(folder: Path) -> None:
    """Ask the system to drop what it has of files in memory."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def restart_table(results: Row) -> str:
    """Return how long restarts take."""
    rows: list[list[object]] = []
    for r in results["rows"]:
        sizes = [f"{r[key]:,.0f}" for key in ("store_mb", "memory_mb", "peak_mb")]
        times = [r["ready_s"], r["first_answer_s"], RESTART_S, r["cpu_s"]]
        rows.append([r["after"], f"{r['documents']:,}", f"{r['held']:,}", *times, *sizes])
    header = ["after", "documents", "held", "Index(path) s", "to the first answer s", "aim", "CPU s"]
    return table([*header, "store MB", "RSS MB", "peak RSS MB"], rows)


SECTIONS = {
    "window": Section(small_window, {"window": small_window_table}),
    "window-million": Section(million, {"window-million": million_table, "window-fill": fill_table}),
    "window-store": Section(throughput, {"window-store": throughput_table}),
    "window-restart": Section(restart, {"window-restart": restart_table}),
}

if __name__ == "__main__":
    run_sections(__doc__, SECTIONS)
