"""Cost of a verdict in a flow: an item against a window, with a store, and after a restart.

    flow.py [window] [window-held] [window-store] [window-restart] [--small]

    window          a full window of 8,000 documents on one core: items as they are, and joined to 5 KB; in batches of
                    256 and one by one
    window-held     a growing window of originals of M1M on one core, at the threshold of a flow: items one by one
    window-store    items a second with every verdict on the disk, into an empty store and one of 100,000 documents
    window-restart  from Index(path=...) to the first answer in a new process, with all of M1M in the window

The recipe is ddd: 4-grams of the normal form, docq at or above 0.7. tests/stream checks that a kill loses no verdict.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean, median

import pyarrow as pa
import pyarrow.parquet as pq
from corpora import corpus, corpus_texts, edited_copies
from harness import (
    BENCH_HOME,
    Row,
    call_in_new_process,
    print_progress,
    process_memory,
    run_sections,
    section,
    time_call,
    time_quantiles,
)

from neardup.features.extraction import Extractor
from neardup.stream.document import Document
from neardup.stream.index import Index

RECIPE = "ddd"
#: Time of the first item: 1 March 2012, 0:00 UTC.
START = 1_330_560_000.0
DAY = 86_400.0
_BATCH = 1000


def timed_documents(texts: Iterable[str], per_day: int, first: int = 0) -> Iterator[Document]:
    """Yield texts as documents that arrive evenly, `per_day` a day."""
    for number, text in enumerate(texts, first):
        yield Document(f"item-{number}", text, START + number * DAY / per_day)


def warm_up(*, one_core: bool) -> None:
    """Load or compile the kernels; with `one_core`, bind this process to one core."""
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = list(edited_copies(1200, seed=9))
    index = Index(RECIPE)
    index.add_many(timed_documents(texts[:1100], 1000))
    for document in timed_documents(texts[1100:], 100, 1100):
        index.add(document)


def time_additions(index: Index, documents: Sequence[Document], at_once: int) -> list[tuple[float, float]]:
    """Return wall and CPU seconds of each call that adds `at_once` documents."""
    groups = [documents[begin : begin + at_once] for begin in range(0, len(documents), at_once)]
    if at_once == 1:
        return [time_call(partial(index.add, group[0])) for group in groups]
    return [time_call(partial(index.add_many, group)) for group in groups]


def joined_texts(texts: Sequence[str], size: int) -> Iterator[str]:
    """Yield joins of neighbouring texts of about `size` characters, then joins of the shorter texts in other orders.

    Long texts are joined once: two joins that both contain one would be duplicates.
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


@section(
    "window",
    "items | window | KB an item | items at once | CPU µs an item: median | mean | p99 | max | of the median, features"
    " | aim | duplicates",
    "{label} | {window:,} | {item_kb:.2f} | {at_once} | {cpu_us[median]:,.0f} | {cpu_us[mean]:,.0f} | "
    "{cpu_us[p99]:,.0f} | {cpu_us[max]:,.0f} | {features_us[median]:,.0f} | {aim} | {duplicates:,} of {items:,}",
)
def measure_window(args: argparse.Namespace) -> Row:
    news, mixes, window, items = ("G20k", "G20k", 2000, 1024) if args.small else ("R20k", "N100k", 8000, 8000)
    rows = []
    for name, size, aim in ((news, 0, 100), (news, 5000, 500), (mixes, 5000, 500)):
        for at_once in (256, 1):
            label = f"{name}, joined" if size else name
            print_progress(f"{label}, {at_once} at once")
            row = {"corpus": name, "label": label, "window": window, "joined_to": size, "at_once": at_once, "aim": aim}
            rows.append(row | call_in_new_process(window_row, corpus(name), size, window, items, at_once))
    return {"rows": rows}


def window_row(file: Path, size: int, window: int, items: int, at_once: int) -> Row:
    warm_up(one_core=True)
    texts = list(corpus_texts(file))
    selection: Iterable[str] = islice(joined_texts(texts, size) if size else texts, window + items // at_once * at_once)
    documents = [Document(str(number), text) for number, text in enumerate(selection)]
    index, added = Index(RECIPE, window=window), documents[window:]
    index.add_many(documents[:window])
    before = index.statistics.duplicates
    seconds = time_additions(index, added, at_once)
    extract = Extractor(index.recipe, None)
    groups = [[document.text for document in added[i : i + at_once]] for i in range(0, len(added), at_once)]
    arrays = [pa.array(group, pa.large_string()) for group in groups]
    features = [time_call(partial(extract, texts))[1] for texts in arrays]
    return {
        "items": len(added),
        "item_kb": fmean(len(document.text.encode()) for document in added) / 1000,
        "duplicates": index.statistics.duplicates - before,
        "cpu_us": time_quantiles((cpu for _, cpu in seconds), 1e6 / at_once),
        "features_us": time_quantiles(features, 1e6 / at_once),
    }


@section(
    "window-held",
    "held | items | CPU µs an item to fill | CPU µs an item: median | p99 | max | window MB | RSS MB | peak RSS MB",
    "{held:,} | {items:,} | {fill_us:,.0f} | {cpu_us[median]:,.0f} | {cpu_us[p99]:,.0f} | {cpu_us[max]:,.0f} | "
    "{window_mb:,.0f} | {memory_mb:,.0f} | {peak_mb:,.0f}",
)
def measure_held(args: argparse.Namespace) -> Row:
    name, held, items = ("G20k", (2000, 8000), 256) if args.small else ("M1M", (8000, 100_000, 400_000, 786_000), 4000)
    return {"corpus": name, "rows": call_in_new_process(held_rows, corpus(name), held, items)}


def held_rows(file: Path, numbers: Sequence[int], items: int) -> list[Row]:
    warm_up(one_core=True)
    index, rows = Index(), list[Row]()
    documents = timed_documents(corpus_texts(file), int(pq.ParquetFile(file).metadata.num_rows))
    for held in numbers:
        print_progress(f"{held:,} documents in the window")
        cpu, before = time.process_time(), index.statistics.documents
        while index.statistics.window_documents < held:
            index.add_many(islice(documents, _BATCH))
        fill_us = 1e6 * (time.process_time() - cpu) / max(index.statistics.documents - before, 1)
        row: Row = {"held": index.statistics.window_documents, "items": items, "fill_us": round(fill_us, 1)}
        seconds = time_additions(index, list(islice(documents, items)), 1)
        row |= {"cpu_us": time_quantiles((cpu for _, cpu in seconds), 1e6), "window_mb": index.statistics.bytes / 1e6}
        row |= {"memory_mb": process_memory() / 1e6, "peak_mb": process_memory(field="VmHWM") / 1e6}
        rows.append(row)
    return rows


@section(
    "window-store",
    "in the store | items at once | items | items a second | aim | a call, ms: median | p99 | max | CPU µs an item"
    " | an fsync of the disk, ms",
    "{stored:,} | {at_once:,} | {items:,} | {items_a_second:,.0f} | {aim:,} | {wall_ms[median]:.2f} | "
    "{wall_ms[p99]:.2f} | {wall_ms[max]:.2f} | {cpu_us} | {fsync_ms:.2f}",
)
def measure_throughput(args: argparse.Namespace) -> Row:
    name, stored = ("G20k", (0, 5000)) if args.small else ("M1M", (0, 100_000))
    rows = []
    for before in stored:
        for at_once, times, aim in ((_BATCH, 30, 3000), (1, 3000, 500)):
            times = times // 10 if args.small else times
            print_progress(f"{before:,} documents in the store, {at_once:,} at once")
            with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
                row = {"corpus": name, "stored": before, "at_once": at_once, "items": at_once * times, "aim": aim}
                figures = call_in_new_process(throughput_row, corpus(name), Path(folder), before, at_once, times)
                rows.append(row | figures)
    return {"rows": rows}


def throughput_row(file: Path, folder: Path, before: int, at_once: int, times: int) -> Row:
    warm_up(one_core=False)
    items = at_once * times
    documents = timed_documents(islice(corpus_texts(file), before + items), before + items)
    with Index(RECIPE, path=folder / "news.db") as index:
        while index.statistics.documents < before:
            index.add_many(islice(documents, min(_BATCH, before - index.statistics.documents)))
        seconds = time_additions(index, list(documents), at_once)
    return {
        "items_a_second": round(items / sum(wall for wall, _ in seconds), 1),
        "cpu_us": round(1e6 * sum(cpu for _, cpu in seconds) / items, 1),
        "wall_ms": time_quantiles((wall for wall, _ in seconds), 1e3),
        "fsync_ms": fsync_median(folder),
    }


def fsync_median(folder: Path) -> float:
    """Return the median ms of an fsync of 8 KB, a lower bound for the time of a verdict."""
    times = []
    with open(folder / "page", "wb", buffering=0) as file:
        for _ in range(100):
            file.write(bytes(8192))
            times.append(time_call(partial(os.fsync, file.fileno()))[0])
    return 1e3 * median(times)


@section(
    "window-restart",
    "after | documents | held | Index(path) s | to the first answer s | aim | CPU s | store MB | RSS MB | peak RSS MB",
    "{after} | {documents:,} | {held:,} | {ready_s} | {first_answer_s} | {aim} | {cpu_s} | {store_mb:,.0f} | "
    "{memory_mb:,.0f} | {peak_mb:,.0f}",
)
def measure_restart(args: argparse.Namespace) -> Row:
    file = corpus("G20k" if args.small else "M1M")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
        path = Path(folder, "news.db")
        print_progress("filling a store")
        store = call_in_new_process(fill_store, file, path)
        for after in ("a clean close", "a clean close, files out of the page cache"):
            if rows:
                evict_from_page_cache(Path(folder))
            rows.append(store | {"after": after, "aim": 60} | call_in_new_process(restart_row, path))
    return {"rows": rows}


def fill_store(file: Path, path: Path) -> Row:
    count = int(pq.ParquetFile(file).metadata.num_rows)
    with Index(RECIPE, path=path) as index:
        index.add_many(timed_documents(corpus_texts(file), count))
    return {"documents": count, "store_mb": round(path.stat().st_size / 1e6, 1)}


def restart_row(path: Path) -> Row:
    begin, cpu = time.perf_counter(), time.process_time()
    index = Index(RECIPE, path=path)
    ready = time.perf_counter() - begin
    index.add(Document(f"later-{os.getpid()}", "Oil prices rose in early trading on Monday.", START + DAY - 0.01))
    row = {"ready_s": round(ready, 2), "first_answer_s": round(time.perf_counter() - begin, 2)}
    row |= {"cpu_s": round(time.process_time() - cpu, 2), "held": index.statistics.window_documents}
    row |= {"memory_mb": process_memory() / 1e6, "peak_mb": process_memory(field="VmHWM") / 1e6}
    index.close()
    return row


def evict_from_page_cache(folder: Path) -> None:
    """Ask the system to drop the files of a folder from memory."""
    for path in folder.iterdir():
        with open(path, "rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


if __name__ == "__main__":
    run_sections(__doc__)
