"""Cost of exploration: all pairs of a sample, the curve of a whole corpus, the page, a report, how fast pages open.

    explore.py [explore] [explore-adverts] [explore-curve] [explore-pages] [explore-report] [--small]

    explore         2,000 job adverts, each with each, for n = 1 to 7, on one core; beside the same in plain Python
    explore-adverts what neardup explore says of the blog's adverts: gaps of each n, pairs above and near each cutoff
    explore-curve   pairs, dropped documents and families at each threshold from 0.2, of whole corpora
    explore-pages   neardup explore with its page: time, size, and the time until a browser shows it
    explore-report  neardup dedup of a million documents with --report and without, and the time until it shows

Chromium opens the pages from a file; a page is open when it is loaded and each visible chart is drawn.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
from corpora import corpus, corpus_texts, shared_file, shared_records
from harness import (
    NEARDUP,
    Row,
    call_in_new_process,
    find_browser,
    markdown_table,
    measure,
    measure_runs,
    medians,
    print_progress,
    run_sections,
    section,
    time_call,
)

from neardup.documents import open_corpus
from neardup.exploration.curve import ThresholdSearch
from neardup.exploration.views import View, build_view, extract_vectors
from neardup.recipe import Recipe
from neardup.runtime import Clock

NEWS_AND_ADVERTS = ("adzuna", "reuters", "saudinews", "peps")
_VISIBLE_CHARTS_ARE_DRAWN = """() => [...document.querySelectorAll(".chart")]
    .filter((chart) => chart.getBoundingClientRect().top < innerHeight && chart.getBoundingClientRect().height)
    .every((chart) => chart.querySelector("svg, canvas"))"""


def file_of(name: str) -> Path:
    """Return the file of a generated corpus or of one in ../shared/data."""
    return shared_file(name) if name in NEWS_AND_ADVERTS else corpus(name)


def bag(tokens: list[str], n: int) -> set[tuple[str, int]]:
    """Return the n-grams of a text, each with the number of its earlier occurrences, as plain Python does it."""
    earlier: Counter[str] = Counter()
    found = set()
    for gram in (" ".join(tokens[i : i + n]) for i in range(len(tokens) + 1 - n)):
        found.add((gram, earlier[gram]))
        earlier[gram] += 1
    return found


def plain_similarities(texts: list[str], n: int) -> list[float]:
    """Return the Jaccard of all pairs of texts by their bags of n-grams, as plain Python does it."""
    bags = [bag(text.split(), n) for text in texts]
    pairs = ((one, other, len(one & other)) for at, one in enumerate(bags) for other in bags[at + 1 :])
    return [shared / (len(one) + len(other) - shared) for one, other, shared in pairs]


def view_of(texts: pa.LargeStringArray, recipe: Recipe) -> View:
    return build_view(extract_vectors(texts, recipe), recipe)[0]


def sample_rows(texts: list[str], runs: int) -> list[Row]:
    """Return the cost of all pairs of texts for each n, on one core, and of the same in plain Python."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    array, rows = pa.array(texts, pa.large_string()), []
    for n in range(1, 8):
        print_progress(f"n = {n}")
        # What plain Python compares: words as they stand in the text, with repeats.
        recipes = [Recipe(features=f"words:{n}"), Recipe(features=f"words:{n}:multiset", normalize="whitespace")]
        views = [view_of(array, recipe) for recipe in recipes]
        least = [min(time_call(partial(view_of, array, recipe))[1] for _ in range(runs)) for recipe in recipes]
        begin = time.process_time()
        similarities = plain_similarities(texts, n)
        plain = time.process_time() - begin
        counts = [sum(similarity >= cutoff for similarity in similarities) for cutoff, _ in views[1].above]
        same = counts == [count for _, count in views[1].above]
        rows.append({"n": n, "cpu_s": least[0], "multiset_cpu_s": least[1], "plain_cpu_s": plain, "same": same})
    return rows


def sample_table(results: Row) -> str:
    costs = ("cpu_s", "multiset_cpu_s", "plain_cpu_s")
    total = {key: sum(row[key] for row in results["rows"]) for key in costs}
    return markdown_table(
        "n | neardup, sets, CPU s | bags of the plain twin, CPU s | plain Python, CPU s | same figures",
        "{n} | {cpu_s:.4f} | {multiset_cpu_s:.4f} | {plain_cpu_s:.2f} | {same:yes/no}",
        [*results["rows"], {"n": "all"} | total, {"n": "allowed", "cpu_s": 2.0}],
    )


@section("explore", sample_table)
def measure_sample(args: argparse.Namespace) -> Row:
    if args.small:
        texts = list(islice(corpus_texts(corpus("G10k")), 200))
    else:
        texts = [record["text"] for record in shared_records("adzuna")[:2000]]
    return {"rows": call_in_new_process(sample_rows, texts, args.runs)}


@section("explore-adverts", "near | pairs", "{near} | {pairs:,}")
def measure_adverts(args: argparse.Namespace) -> Row:
    found: dict[str, Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, options in (("sets", []), ("multisets", ["--multiset"])):
            file, output = corpus("G10k") if args.small else shared_file("adzuna"), Path(folder, f"{name}.json")
            measure([*NEARDUP, "explore", file, "-o", output, *options])
            report = json.loads(output.read_text("utf-8"))
            gaps = {each["name"]: round(each["gap"], 3) for each in report["advice"]["separations"]}
            above = next(view["above"] for view in report["views"] if view["n"] == 4)
            found[name] = {"gaps": gaps, "above": above, "examples": report["examples"]}
    rows = [{"near": near["cutoff"], "pairs": near["found"]} for near in found["sets"].pop("examples")]
    del found["multisets"]["examples"]
    return found | {"rows": rows}


@section(
    "explore-curve",
    "corpus | documents | all pairs from | pairs there | dropped at 0.2 | wall s | CPU s",
    "{corpus} | {documents:,} | {lowest} | {pairs:,} | {dropped:,} | {wall_s:.2f} | {cpu_s:.2f}",
    {"corpus": "allowed, N100k", "wall_s": 60.0},
)
def measure_curves(args: argparse.Namespace) -> Row:
    call_in_new_process(curve_row, corpus("G10k"))
    rows = []
    for name in ["G20k"] if args.small else ["N100k", "M1M"]:
        print_progress(f"curve of {name}")
        runs = [call_in_new_process(curve_row, corpus(name)) for _ in range(args.runs)]
        rows.append({"corpus": name} | medians(runs))
    return {"rows": rows}


def curve_row(file: Path) -> Row:
    options: Any = {"threads": 2, "memory": None, "clock": Clock(), "progress": lambda stage, done, total: None}
    wall, cpu = time.perf_counter(), time.process_time()
    with (
        open_corpus([str(file)]) as opened,
        ThresholdSearch(opened, Recipe(features="words:4"), 0.2, **options) as search,
    ):
        curve = search.curve()
    times = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    lowest = curve.points[0]
    counts = {"lowest": lowest.threshold, "pairs": lowest.pairs, "dropped": lowest.dropped}
    return {"documents": curve.documents} | counts | times


@section(
    "explore-pages",
    "corpus | wall s | CPU s | peak PSS MB | page kB | open in a browser, s",
    "{corpus} | {wall_s} | {cpu_s} | {pss_mb} | {page_kb:,} | {open_s}",
    {"corpus": "allowed, adzuna", "wall_s": 5.0, "open_s": 2.0},
)
def measure_pages(args: argparse.Namespace) -> Row:
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [*NEARDUP, "explore", "-o", page, "--force"]
        measure([*command, corpus("G10k")])
        for name in ["G20k"] if args.small else [*NEWS_AND_ADVERTS, "N100k"]:
            print_progress(f"page of {name}")
            figures = measure_runs([*command, file_of(name)], args.runs)
            rows.append({"corpus": name} | figures | browser_row(page, args.runs))
    return {"rows": rows}


@section(
    "explore-report",
    "corpus | report | wall s | CPU s | peak PSS MB | report kB | open in a browser, s",
    "{corpus} | {report} | {wall_s} | {cpu_s} | {pss_mb} | {page_kb:,} | {open_s}",
    {"corpus": "allowed", "open_s": 2.0},
)
def measure_report(args: argparse.Namespace) -> Row:
    name, rows = "G20k" if args.small else "M1M", []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "page.html")
        command = [*NEARDUP, "dedup", corpus(name), "-o", Path(folder, "out.parquet"), "--force"]
        for report, options in (("without", []), ("with", ["--report", page])):
            print_progress(f"{name} {report} a report")
            row = {"corpus": name, "report": report} | measure_runs([*command, *options], args.runs)
            rows.append(row | (browser_row(page, args.runs) if options else {}))
    return {"rows": rows}


def browser_row(page: Path, runs: int) -> Row:
    """Return how large a page is and how long a browser takes to show it."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=["--no-sandbox"])
        for _ in range(runs):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            window = context.new_page()
            begin = time.perf_counter()
            window.goto(page.as_uri(), wait_until="load")
            window.wait_for_function(_VISIBLE_CHARTS_ARE_DRAWN)
            times.append(time.perf_counter() - begin)
            context.close()
        version = browser.version
        browser.close()
    return {"page_kb": round(page.stat().st_size / 1e3), "open_s": round(median(times), 3), "browser": version}


if __name__ == "__main__":
    run_sections(__doc__)
