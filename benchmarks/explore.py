"""Cost of exploration: the curve of a whole corpus, the page, a report, and how fast pages open.

    explore.py [explore-curve] [explore-pages] [explore-report] [--small]

    explore-curve   pairs, dropped documents and families at each threshold from 0.2, of whole corpora
    explore-pages   neardup explore with its page: time, size, and the time until a browser shows it
    explore-report  neardup dedup of a million documents with --report and without, and the time until it shows

Chromium opens the pages from a file; a page is open when it is loaded and each visible chart is drawn.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from corpora import corpus, shared_file
from measuring import (
    NEARDUP,
    Section,
    call_in_new_process,
    find_browser,
    markdown_table,
    measure,
    print_progress,
    run_sections,
    summarize,
    time_call,
)

from neardup.documents import open_corpus
from neardup.exploration.curve import Curve, ThresholdSearch
from neardup.recipe import Recipe
from neardup.runtime import Clock

Row = dict[str, Any]

#: Allowed seconds: for the page of 2,000 documents; for the curve of N100k; until a browser shows a page.
ALLOWED_PAGE, ALLOWED_CURVE, ALLOWED_OPEN = 5.0, 60.0, 2.0
NEWS_AND_ADVERTS = ("adzuna", "reuters", "saudinews", "peps")
CURVE_CORPORA = ("N100k", "N1M")
_VISIBLE_CHARTS_ARE_DRAWN = """() => [...document.querySelectorAll(".chart")]
    .filter((chart) => chart.getBoundingClientRect().top < innerHeight && chart.getBoundingClientRect().height)
    .every((chart) => chart.querySelector("svg, canvas"))"""


def file_of(name: str) -> Path:
    """Return the file of a generated corpus or of one in ../shared/data."""
    return shared_file(name) if name in NEWS_AND_ADVERTS else corpus(name)


def measure_curves(args: argparse.Namespace) -> Row:
    """Measure the curve of each corpus in a new process, with compiled kernels."""
    names = ["G20k"] if args.small else CURVE_CORPORA
    call_in_new_process(curve_row, corpus("G10k"))
    rows = []
    for name in names:
        print_progress(f"curve of {name}")
        runs = [call_in_new_process(curve_row, file_of(name)) for _ in range(args.runs)]
        wall, cpu = (round(median(run[key] for run in runs), 2) for key in ("wall_s", "cpu_s"))
        rows.append({"corpus": name} | runs[-1] | {"wall_s": wall, "cpu_s": cpu, "runs": args.runs})
    return {"rows": rows}


def curve_row(file: Path) -> Row:
    curves: list[Curve] = []

    def compute_curve() -> None:
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
                curves.append(search.curve())

    clock = Clock()
    wall, cpu = time_call(compute_curve)
    curve = curves[0]
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


def measure_pages(args: argparse.Namespace) -> Row:
    """Measure ``neardup explore`` with its page, and how fast pages open."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [*NEARDUP, "explore", "-o", page, "--force"]
        measure([*command, corpus("G10k")])
        for name in ["G20k"] if args.small else [*NEWS_AND_ADVERTS, "N100k"]:
            print_progress(f"page of {name}")
            figures = summarize([measure([*command, file_of(name)]) for _ in range(args.runs)])
            rows.append({"corpus": name} | figures | browser_row(page, args.runs))
    return {"rows": rows}


def measure_report(args: argparse.Namespace) -> Row:
    """Measure ``neardup dedup`` with a report and without, and how fast the report opens."""
    name, rows = "G20k" if args.small else "N1M", []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [*NEARDUP, "dedup", file_of(name), "-o", Path(folder, "out.parquet"), "--force"]
        for report, options in (("without", []), ("with", ["--report", page])):
            print_progress(f"{name} {report} a report")
            figures = summarize([measure([*command, *options]) for _ in range(args.runs)])
            rows.append(
                {"corpus": name, "report": report} | figures | (browser_row(page, args.runs) if options else {})
            )
    return {"rows": rows}


def browser_row(page: Path, runs: int) -> Row:
    """Return how large a page is and how long a browser takes to show it."""
    from playwright.sync_api import sync_playwright

    loads, shows = [], []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for _ in range(runs):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            window = context.new_page()
            begin = time.perf_counter()
            window.goto(page.as_uri(), wait_until="load")
            loads.append(time.perf_counter() - begin)
            window.wait_for_function(_VISIBLE_CHARTS_ARE_DRAWN)
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


def format_count(number: int | None) -> str:
    """Return a number with separators, or nothing for None."""
    return "" if number is None else f"{number:,}"


def curve_table(results: dict[str, Any]) -> str:
    """Return the curves of whole corpora as Markdown."""
    head = ["corpus", "documents", "all pairs from", "pairs there", "dropped at 0.2", "wall s", "CPU s"]
    rows = []
    for r in results["rows"]:
        counts = [format_count(r["documents"]), r["lowest"], format_count(r["pairs"]), format_count(r["dropped"])]
        rows.append([r["corpus"], *counts, r["wall_s"], r["cpu_s"]])
    allowed = ["allowed, N100k", "", "", "", "", ALLOWED_CURVE, ""]
    return markdown_table(head, [*rows, allowed])


def page_table(results: dict[str, Any]) -> str:
    """Return the pages of ``explore`` as Markdown."""
    rows = [
        [r["corpus"], r["wall_s"], r["cpu_s"], r["pss_mb"], format_count(r["page_kb"]), r["open_s"]]
        for r in results["rows"]
    ]
    head = ["corpus", "wall s", "CPU s", "peak PSS MB", "page kB", "open in a browser, s"]
    allowed = ["allowed, adzuna", ALLOWED_PAGE, "", "", "", ALLOWED_OPEN]
    return markdown_table(head, [*rows, allowed])


def report_table(results: dict[str, Any]) -> str:
    """Return the report of a large run as Markdown."""
    rows = [
        [
            r["corpus"],
            r["report"],
            r["wall_s"],
            r["cpu_s"],
            r["pss_mb"],
            format_count(r.get("page_kb")),
            r.get("open_s", ""),
        ]
        for r in results["rows"]
    ]
    head = ["corpus", "report", "wall s", "CPU s", "peak PSS MB", "report kB", "open in a browser, s"]
    allowed = ["allowed", "", "", "", "", "", ALLOWED_OPEN]
    return markdown_table(head, [*rows, allowed])


SECTIONS = {
    "explore-curve": Section(measure_curves, {"explore-curve": curve_table}),
    "explore-pages": Section(measure_pages, {"explore-pages": page_table}),
    "explore-report": Section(measure_report, {"explore-report": report_table}),
}

if __name__ == "__main__":
    run_sections(__doc__, SECTIONS)
