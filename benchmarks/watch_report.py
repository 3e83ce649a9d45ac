"""What the report of a store costs, and whether any batch is late for it.

    watch_report.py [cost] [lateness] [--corpus G150k] [--items N ...] [--batches N] [--out FILE]

    cost      a store of that many items, all of them in a window of 24 hours: seconds, memory and size of one report
    lateness  batches of 100 items into the largest of these stores, ten a second, while reports are made one after the
              other without a pause, and while none is made: how long a batch takes until its verdicts are on the disk

Stores lie in BENCH_HOME and are removed afterwards.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from arrivals import RECIPE, arriving, fresh, renew, rows_of, spread, texts_of, timed, warm_up
from corpora import corpus
from measuring import BENCH_HOME, RESULTS, measure, note, table

from neardup.stream.document import Document
from neardup.stream.index import Index

Row = dict[str, Any]

_BATCH, _PACE_S = 100, 0.1


def command(store: Path, page: Path) -> list[str]:
    """Return what makes the report of a store."""
    return [sys.executable, "-m", "neardup", "report", str(store), "-o", str(page)]


def filled(store: Path, name: str, items: int) -> Iterator[Document]:
    """Put so many items into a new store, and return those that come after them."""
    documents = arriving(texts_of(corpus(name)), 4 * items)
    with Index(RECIPE, path=store) as index:
        while index.statistics.arrived < items:
            index.add_many(islice(documents, min(1000, items - index.statistics.arrived)))
    return documents


def cost(name: str, counts: list[int]) -> list[Row]:
    """Measure one report of each store."""
    rows = []
    for items in counts:
        note(f"a report of {items:,} items")
        with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
            store, page = Path(folder, "news.db"), Path(folder, "page.html")
            fresh(_fill, store, name, items)
            made = command(store, page)
            measure(made)  # the first one may compile a kernel
            run = measure(made)
            size = {"peak_mb": round(run.rss / 1e6, 1), "page_mb": round(page.stat().st_size / 1e6, 2)}
            rows.append({"items": items, "wall_s": round(run.wall, 2), "cpu_s": round(run.cpu, 2)} | size)
    return rows


def _fill(store: Path, name: str, items: int) -> None:
    filled(store, name, items)


def lateness(name: str, items: int, batches: int) -> list[Row]:
    """Measure batches without reports and with them."""
    rows = []
    for reports in (False, True):
        note(f"{batches:,} batches, {'reports all the time' if reports else 'no reports'}")
        with tempfile.TemporaryDirectory(dir=BENCH_HOME) as folder:
            rows.append(
                {"items": items, "reports": reports} | fresh(_lateness, Path(folder), name, items, batches, reports)
            )
    return rows


def _lateness(folder: Path, name: str, items: int, batches: int, reports: bool) -> Row:
    warm_up(one_core=False)
    store, page = folder / "news.db", folder / "page.html"
    documents = filled(store, name, items)
    made, done = 0, threading.Event()

    def report() -> None:
        nonlocal made
        while not done.is_set():
            subprocess.run(command(store, page), check=True, capture_output=True)
            made += 1

    maker = threading.Thread(target=report)
    with Index(RECIPE, path=store) as index:
        if reports:
            maker.start()
        taken = []
        for _ in range(batches):
            batch = list(islice(documents, _BATCH))
            taken.append(timed(lambda batch=batch: index.add_many(batch))[0])  # type: ignore[misc]
            time.sleep(max(_PACE_S - taken[-1], 0))
        done.set()
        if reports:
            maker.join()
    return {"batches": batches, "reports_made": made, "batch_ms": spread(taken, 1e3)}


def as_table(results: Row) -> str:
    """Return the table of what reports cost."""
    rows = [
        [f"{row['items']:,}", f"{row['cpu_s']:.1f}", f"{row['peak_mb']:,.0f}", f"{row['page_mb']:.1f}"]
        for row in rows_of(results, "cost")
    ]
    return table(["items", "CPU s", "MB at most", "page MB"], rows)


def lateness_table(results: Row) -> str:
    """Return the table of how long batches take."""
    rows = [
        [
            f"{row['reports_made']:,} reports, one after the other" if row["reports"] else "no report",
            *(f"{row['batch_ms'][name]:.1f}" for name in ("median", "p90", "p99", "max")),
        ]
        for row in rows_of(results, "lateness")
    ]
    return table(["100 items, ms until they are on the disk", "median", "p90", "p99", "max"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION")
    parser.add_argument("--corpus", default="G150k")
    parser.add_argument("--items", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--batches", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RESULTS / "watch_report.json")
    options = parser.parse_args()
    measured = {
        "cost": lambda: cost(options.corpus, options.items),
        "lateness": lambda: lateness(options.corpus, max(options.items), options.batches),
    }
    unknown = set(options.sections) - set(measured)
    if unknown:
        parser.error(f"there is no section {', '.join(sorted(unknown))}; they are {', '.join(measured)}")
    chosen = {name: measured[name] for name in options.sections or measured}
    results = renew(options.out, "watch_report", chosen)
    print(as_table(results))
    print(lateness_table(results))


if __name__ == "__main__":
    main()
