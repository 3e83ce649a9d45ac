"""What exploration costs: all pairs of a sample, the page, the curve of a whole corpus, and how fast pages open.

    explore.py [explore] [explore-curve] [explore-pages] [explore-report] [--small]

    explore         2,000 job adverts, each with each, for n = 1 to 7, on one core; beside the same in plain Python
    explore-curve   what each threshold from 0.2 up gives, of whole corpora
    explore-pages   neardup explore with its page: time, size, and the time until a browser shows it
    explore-report  neardup dedup of a million documents with --report and without, and the time until it shows

Pages are opened in Chromium from a file; a page is open when it is loaded and each chart in sight is drawn.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from corpora import corpus, texts_of
from measuring import (
    NEARDUP,
    SHARED,
    Section,
    call_in_new_process,
    measure,
    note,
    run_sections,
    summarize,
    table,
    time_call,
)

from neardup.documents import open_corpus
from neardup.exploration.curve import Curve, ThresholdSearch
from neardup.exploration.views import CUTOFFS, View, build_view, extract_vectors, texts_array
from neardup.recipe import Recipe
from neardup.runtime import Clock

Row = dict[str, Any]

#: The lengths of n-grams, and the seconds that all of them may take on one core.
LENGTHS, ALLOWED = range(1, 8), 2.0
#: Seconds: for the page of 2,000 documents; for the curve of N100k; until a browser shows a page.
ALLOWED_PAGE, ALLOWED_CURVE, ALLOWED_OPEN = 5.0, 60.0, 2.0
REAL = ("adzuna", "reuters", "saudinews", "peps")
CURVES = ("N100k", "N1M")
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_CHARTS_IN_SIGHT_ARE_DRAWN = """() => [...document.querySelectorAll(".chart")]
    .filter((chart) => chart.getBoundingClientRect().top < innerHeight && chart.getBoundingClientRect().height)
    .every((chart) => chart.querySelector("svg, canvas"))"""


def file_of(name: str) -> Path:
    """Return the file of a corpus, one that is made or one of ../shared/data."""
    if name in REAL:
        return SHARED / "data" / name / f"{name}.jsonl.gz"
    return corpus(name)


def multiset(items: Iterable[str]) -> set[tuple[str, int]]:
    """Return a bag as a set: each item with how often it came before."""
    seen: dict[str, int] = defaultdict(int)
    found = set()
    for item in items:
        found.add((item, seen[item]))
        seen[item] += 1
    return found


def plainly(texts: Sequence[str], n: int) -> dict[tuple[int, int], float]:
    """Return the Jaccard of all pairs of texts by their n-grams, as one writes it in plain Python."""
    tokens = [text.split() for text in texts]
    bags = [multiset(" ".join(words[i : i + n]) for i in range(len(words) + 1 - n)) for words in tokens]
    found = {}
    for i, one in enumerate(bags):
        for j in range(i + 1, len(bags)):
            shared = len(one & bags[j])
            found[i, j] = shared / (len(one) + len(bags[j]) - shared)
    return found


def some_texts(file: Path, count: int) -> list[str]:
    """Return the first texts of a corpus."""
    if file.suffix == ".parquet":
        return list(islice(texts_of(file), count))
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line)["text"] for line in islice(lines, count)]


def compare(args: argparse.Namespace) -> Row:
    """Compare all pairs of some documents for every n."""
    name, documents = ("G20k", 300) if args.small else ("adzuna", 2000)
    return {"rows": call_in_new_process(_compare, file_of(name), documents, args.runs)}


def _compare(file: Path, documents: int, runs: int) -> list[Row]:
    with suppress(AttributeError):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    texts = some_texts(file, documents)
    array, rows = texts_array(texts), []
    for n in LENGTHS:
        sets = Recipe(features=f"words:{n}")
        # What the plain twin compares: words as they stand in the text, repeats counted.
        bags = Recipe(features=f"words:{n}:multiset", normalize="whitespace")
        seen(array, sets)
        note(f"n = {n}, plain Python")
        begin = time.process_time()
        plain = plainly(texts, n)
        seconds = time.process_time() - begin
        similar = np.array(list(plain.values()))
        above = {f"{cutoff:g}": at_least for cutoff, at_least in seen(array, bags).above}
        rows.append(
            {
                "n": n,
                "documents": len(texts),
                "pairs": len(plain),
                "cpu_s": least(partial(seen, array, sets), runs),
                "multiset_cpu_s": least(partial(seen, array, bags), runs),
                "plain_cpu_s": round(seconds, 2),
                "above": above,
                "same": above == {f"{cutoff:g}": int((similar >= cutoff).sum()) for cutoff in CUTOFFS},
            }
        )
    return rows


def seen(texts: Any, recipe: Recipe) -> View:
    """Return all pairs of texts by a recipe, from the texts on."""
    return build_view(extract_vectors(texts, recipe), recipe)[0]


def least(act: Callable[[], object], runs: int) -> float:
    """Return the least CPU seconds of several calls."""
    return round(min(time_call(act)[1] for _ in range(runs)), 4)


def curves(args: argparse.Namespace) -> Row:
    """Measure the curves of whole corpora, in processes of their own, with kernels that are compiled."""
    names = ["G20k"] if args.small else CURVES
    call_in_new_process(_curve, corpus("G10k"))
    rows = []
    for name in names:
        note(f"curve of {name}")
        each = [call_in_new_process(_curve, file_of(name)) for _ in range(args.runs)]
        wall, cpu = (round(median(one[key] for one in each), 2) for key in ("wall_s", "cpu_s"))
        rows.append({"corpus": name} | each[-1] | {"wall_s": wall, "cpu_s": cpu, "runs": args.runs})
    return {"rows": rows}


def _curve(file: Path) -> Row:
    found: list[Curve] = []

    def act() -> None:
        with open_corpus([str(file)]) as opened:
            search = ThresholdSearch(
                opened,
                Recipe(features="words:4"),
                0.2,
                threads=2,
                memory=None,
                clock=clock,
                progress=lambda stage, done, total: None,
            )
            with search:
                found.append(search.curve())

    clock = Clock()
    wall, cpu = time_call(act)
    curve = found[0]
    return {
        "documents": curve.documents,
        "points": len(curve.points),
        "lowest": curve.asked,
        "pairs": curve.points[0].pairs,
        "dropped": curve.points[0].dropped,
        "wall_s": wall,
        "cpu_s": cpu,
        "peak_rss_mb": round(max(stage["peak_memory_bytes"] for stage in clock.stages) / 1e6),
        "stages": clock.stages,
    }


def pages(args: argparse.Namespace) -> Row:
    """Measure ``neardup explore`` with its page, and how fast pages open."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [*NEARDUP, "explore", "-o", page, "--force"]
        measure([*command, corpus("G10k")])
        for name in ["G20k"] if args.small else [*REAL, "N100k"]:
            note(f"page of {name}")
            figures = summarize([measure([*command, file_of(name)]) for _ in range(args.runs)])
            rows.append({"corpus": name} | figures | browsed(page, args.runs))
    return {"rows": rows}


def report(args: argparse.Namespace) -> Row:
    """Measure ``neardup dedup`` with a report and without, and how fast the report opens."""
    name, rows = "G20k" if args.small else "N1M", []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [*NEARDUP, "dedup", file_of(name), "-o", Path(folder, "out.parquet"), "--force"]
        for what, more in (("without", []), ("with", ["--report", page])):
            note(f"{name} {what} a report")
            figures = summarize([measure([*command, *more]) for _ in range(args.runs)])
            rows.append({"corpus": name, "report": what} | figures | (browsed(page, args.runs) if more else {}))
    return {"rows": rows}


def browsed(page: Path, runs: int) -> Row:
    """Return how large a page is and how long a browser takes to show it."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, _BROWSERS)), None)
    loads, shows = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        for _ in range(runs):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            window = context.new_page()
            begin = time.perf_counter()
            window.goto(page.as_uri(), wait_until="load")
            loads.append(time.perf_counter() - begin)
            window.wait_for_function(_CHARTS_IN_SIGHT_ARE_DRAWN)
            shows.append(time.perf_counter() - begin)
            context.close()
        version = browser.version
        browser.close()
    return {
        "page_kb": round(page.stat().st_size / 1e3),
        "load_s": round(median(loads), 3),
        "open_s": round(median(shows), 3),
        "browser": version,
    }


def shown(number: int | None) -> str:
    """Return a number for people, nothing for none."""
    return "" if number is None else f"{number:,}"


def as_table(results: dict[str, Any]) -> str:
    """Return the times of all pairs of a sample as Markdown."""
    rows = results["rows"]
    keys = ("cpu_s", "multiset_cpu_s", "plain_cpu_s")
    cells = [[r["n"], *(r[key] for key in keys), "yes" if r["same"] else "no"] for r in rows]
    sums = [round(sum(row[key] for row in rows), 2) for key in keys]
    head = ["n", "neardup, sets, CPU s", "bags of the plain twin, CPU s", "plain Python, CPU s", "same figures"]
    return table(head, [*cells, ["all", *sums, ""], ["allowed", ALLOWED, "", "", ""]])


def curve_table(results: dict[str, Any]) -> str:
    """Return the curves of whole corpora as Markdown."""
    head = ["corpus", "documents", "all pairs from", "pairs there", "dropped at 0.2", "wall s", "CPU s"]
    rows = [
        [
            r["corpus"],
            shown(r["documents"]),
            r["lowest"],
            shown(r["pairs"]),
            shown(r["dropped"]),
            r["wall_s"],
            r["cpu_s"],
        ]
        for r in results["rows"]
    ]
    allowed = ["allowed, N100k", "", "", "", "", ALLOWED_CURVE, ""]
    return table(head, [*rows, allowed])


def page_table(results: dict[str, Any]) -> str:
    """Return the pages of ``explore`` as Markdown."""
    rows = [
        [r["corpus"], r["wall_s"], r["cpu_s"], r["pss_mb"], shown(r["page_kb"]), r["open_s"]] for r in results["rows"]
    ]
    head = ["corpus", "wall s", "CPU s", "peak PSS MB", "page kB", "open in a browser, s"]
    allowed = ["allowed, adzuna", ALLOWED_PAGE, "", "", "", ALLOWED_OPEN]
    return table(head, [*rows, allowed])


def report_table(results: dict[str, Any]) -> str:
    """Return the report of a large run as Markdown."""
    rows = [
        [r["corpus"], r["report"], r["wall_s"], r["cpu_s"], r["pss_mb"], shown(r.get("page_kb")), r.get("open_s", "")]
        for r in results["rows"]
    ]
    head = ["corpus", "report", "wall s", "CPU s", "peak PSS MB", "report kB", "open in a browser, s"]
    allowed = ["allowed", "", "", "", "", "", ALLOWED_OPEN]
    return table(head, [*rows, allowed])


SECTIONS = {
    "explore": Section(compare, {"explore": as_table}),
    "explore-curve": Section(curves, {"explore-curve": curve_table}),
    "explore-pages": Section(pages, {"explore-pages": page_table}),
    "explore-report": Section(report, {"explore-report": report_table}),
}

if __name__ == "__main__":
    run_sections(__doc__, SECTIONS)
