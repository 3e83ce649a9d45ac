"""Cost of the command line on one machine: by corpus size, memory budget and threads, on hard cases, at the first run.

one_machine.py [growth] [memory] [hard] [first-run] [threads] [blog-job] [goals] [--small] [--runs N]

growth     CPU time a document as the corpus grows
memory     peak memory as a multiple of the text, with a budget and without, and whether the output is the same
hard       copies of ten documents; texts with a shared footer; slightly different copies of one text
first-run  the first run ever, when the kernels are compiled; the second; ``neardup --help``
threads    one thread, two threads, and two processes at once, which share only the machine; the serial part of each
           stage, and from it the time with more threads
blog-job   exact multiset Jaccard of word 4-grams over 400,000 job adverts, for which a blog estimated eight days.
           Only 2,499 of its adverts are public: the texts of 1.5 KB mix their sentences
goals      aims beside what is reached, here and in the results of other sections and scripts
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from corpora import corpus, edited_copies, job_adverts, near_copies, shared_footer, ten_documents, write_corpus
from measuring import (
    JOB,
    NEARDUP,
    RESULTS,
    SHARED,
    CommandFailedError,
    Run,
    Section,
    markdown_table,
    measure,
    print_progress,
    run_sections,
    summarize,
    warm_up,
)

Results = dict[str, Any]

#: Aims: growth of the time a document; peak memory over the size of the text; CPU seconds of each start.
ALLOWED_GROWTH, ALLOWED_MEMORY_RATIO = 1.3, 3.0
START_CPU_AIMS = {"first run ever": 8.0, "second run": 0.7, "--help": 0.15}
#: Numbers of threads for which the time is extrapolated.
THREAD_COUNTS = (1, 2, 4, 8, 16)
HARD_CASES = {
    "copies": (ten_documents, [50_000, 100_000, 200_000]),
    "footer": (shared_footer, [50_000, 100_000, 200_000]),
    "near-copies": (near_copies, [2_500, 5_000, 10_000, 20_000]),
}


def measure_dedup(file: Path, args: argparse.Namespace, *options: str, job: list[str] = JOB) -> Results:
    """Return the medians of runs of ``dedup``, figures of its summary, and the digest of its output."""
    with tempfile.TemporaryDirectory() as folder:
        out, summary = Path(folder, "out.parquet"), Path(folder, "summary.json")
        command = [*NEARDUP, "dedup", file, "-o", out, "--summary", summary, *job, *options]
        figures = summarize([measure(command) for _ in range(args.runs)])
        report = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
    row = {key: report[key] for key in ("documents", "kept", "dropped", "pairs", "all_pairs", "stages")}
    row |= {"text_mb": round(report["text_bytes"] / 1e6, 1), "sha256": digest}
    row |= {"spilled_mb": round(report["search"].get("spilled_bytes", 0) / 1e6, 1)}
    return row | figures | {"cpu_us_a_document": round(1e6 * figures["cpu_s"] / report["documents"], 2)}


def measure_growth(args: argparse.Namespace) -> Results:
    """Measure corpora of several sizes."""
    warm_up()
    names = args.corpora or (["G20k", "G60k"] if args.small else ["N100k", "N500k"])
    return {"rows": [{"corpus": name} | measure_dedup(corpus(name), args) for name in names]}


def growth_table(results: Results) -> str:
    """Return the time a document by the size of the corpus."""
    each = [row["cpu_us_a_document"] for row in results["rows"]]
    rows = [
        [r["corpus"], f"{r['documents']:,}", r["text_mb"], r["cpu_s"], r["wall_s"], r["cpu_us_a_document"]]
        for r in results["rows"]
    ]
    found = markdown_table(["corpus", "documents", "text MB", "CPU s", "wall s", "CPU µs a document"], rows)
    ratio = round(each[-1] / each[0], 3)
    return f"{found}\n\nThe time per document changes to {ratio} times the first; allowed is {ALLOWED_GROWTH}."


def measure_memory(args: argparse.Namespace) -> Results:
    """Measure corpora with and without memory budgets."""
    warm_up()
    rows = []
    for name in args.corpora or (["G60k"] if args.small else ["N100k", "N500k"]):
        for budget in (None, *(["200MB"] if args.small else ["2GB", "500MB"])):
            print_progress(f"{name}, {budget or 'no budget'}")
            options = ["--memory", budget] if budget else []
            rows.append({"corpus": name, "budget": budget} | measure_dedup(corpus(name), args, *options))
    return {"rows": rows}


def memory_table(results: Results) -> str:
    """Return peak memory beside the size of the text."""
    unlimited = {r["corpus"]: r["sha256"] for r in results["rows"] if not r["budget"]}
    rows = []
    for r in results["rows"]:
        same = "yes" if r["sha256"] == unlimited[r["corpus"]] else "NO"
        peak = [r["pss_mb"], r["rss_mb"], round(r["pss_mb"] / r["text_mb"], 2)]
        head = [r["corpus"], r["text_mb"], r["budget"] or "none"]
        rows.append([*head, *peak, r["spilled_mb"], same, r["cpu_s"], r["wall_s"]])
    header = ["corpus", "text MB", "--memory", "peak PSS MB", "peak RSS MB", "PSS / text", "spilled MB", "same bytes"]
    return f"{markdown_table([*header, 'CPU s', 'wall s'], rows)}\n\nAllowed: {ALLOWED_MEMORY_RATIO} times the text."


def measure_hard_cases(args: argparse.Namespace) -> Results:
    """Measure hard cases of several sizes: the time a document must not grow with the corpus."""
    warm_up()
    rows = []
    for case, (make, sizes) in HARD_CASES.items():
        for size in (full // 20 for full in sizes) if args.small else sizes:
            print_progress(f"{case}, {size:,} documents")
            rows.append({"case": case} | measure_dedup(write_corpus(f"{case}-{size}", make(size)), args))
    return {"rows": rows}


def hard_table(results: Results) -> str:
    """Return the cost of the hard cases."""
    rows = []
    for r in results["rows"]:
        counts = [f"{r['documents']:,}", f"{r['pairs']:,}", "yes" if r["all_pairs"] else "no", f"{r['kept']:,}"]
        rows.append([r["case"], *counts, r["cpu_s"], r["wall_s"], r["pss_mb"], r["cpu_us_a_document"]])
    header = ["case", "documents", "pairs", "all of them", "kept", "CPU s", "wall s", "peak PSS MB"]
    return markdown_table([*header, "CPU µs a document"], rows)


def measure_first_run(args: argparse.Namespace) -> Results:
    """Measure the first run with an empty kernel cache, the second run, and ``--help``."""
    file = write_corpus("start-20", islice(edited_copies(1000), 20))
    runs_by_start: dict[str, list[Run]] = {name: [] for name in START_CPU_AIMS}
    for number in range(args.runs):
        print_progress(f"run {number + 1} of {args.runs}")
        with tempfile.TemporaryDirectory() as folder:
            command = [*NEARDUP, "dedup", file, "-o", Path(folder, "out.parquet"), "--force"]
            for name, runs in runs_by_start.items():
                measured = [*NEARDUP, "--help"] if name == "--help" else command
                runs.append(measure(measured, env={"NUMBA_CACHE_DIR": folder}))
    return {"rows": [{"start": name} | summarize(runs) for name, runs in runs_by_start.items()]}


def first_run_table(results: Results) -> str:
    """Return the cost of a start."""
    rows = [[r["start"], r["wall_s"], r["cpu_s"], r["rss_mb"], START_CPU_AIMS[r["start"]]] for r in results["rows"]]
    return markdown_table(["start", "wall s", "CPU s", "peak RSS MB", "aim, CPU s"], rows)


def measure_threads(args: argparse.Namespace) -> Results:
    """Measure corpora with one thread, with two, and in two processes at once; and the serial part of each stage."""
    warm_up()
    names = args.corpora or (["G20k"] if args.small else ["N500k", "M1M"])
    rows = []
    for name in names:
        for count in (1, 2):
            print_progress(f"{name}, threads {count}")
            rows.append({"corpus": name, "threads": count} | measure_dedup(corpus(name), args, job=thread_job(count)))
        print_progress(f"{name}, two processes of one thread")
        rows[-1]["two_processes_wall_s"] = median(time_two_processes(corpus(name)) for _ in range(args.runs))
    return {"rows": rows}


def thread_job(threads: int) -> list[str]:
    """Return the options of the job with a number of threads."""
    return [*JOB[:-2], str(threads), "--force"]


def time_two_processes(file: Path) -> float:
    """Return the seconds of two processes at once, each with one thread and the whole job.

    They share nothing but the machine. What they take beyond the time of one process alone, two threads cannot avoid.
    """
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        commands = [[*NEARDUP, "dedup", file, "-o", Path(folder, f"{i}.parquet"), *thread_job(1)] for i in range(2)]
        processes = [subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL) for command in commands]
        codes = [process.wait() for process in processes]
        if any(codes):
            raise CommandFailedError(f"dedup of {file.name} failed beside itself")
        return round(time.perf_counter() - begin, 3)


def threads_table(results: Results) -> str:
    """Return one thread beside two, the serial share of each stage, and an extrapolation by Amdahl's law."""
    pairs = list(zip(results["rows"][::2], results["rows"][1::2], strict=True))
    speedups = []
    for one, two in pairs:
        times = [row[key] for row in (one, two) for key in ("cpu_s", "wall_s")]
        wall, together = one["wall_s"], two["two_processes_wall_s"]
        speedups.append([one["corpus"], *times, f"{wall / two['wall_s']:.2f}", together, f"{2 * wall / together:.2f}"])
    row = pairs[0][1]
    # The time outside the stages is the start, which one thread does.
    start = row["cpu_s"] - sum(stage["cpu_s"] for stage in row["stages"])
    parts = [("start", start, start)]
    parts += [(stage["name"], stage["cpu_s"], stage["serial_cpu_s"]) for stage in row["stages"]]
    total_cpu, serial_cpu = sum(cpu for _, cpu, _ in parts), sum(serial for _, _, serial in parts)
    shares = [
        [name, f"{cpu:.2f}", f"{serial:.2f}", f"{serial / cpu:.0%}" if cpu else ""]
        for name, cpu, serial in [*parts, ("all", total_cpu, serial_cpu)]
    ]
    lines = []
    for count in THREAD_COUNTS:
        seconds = serial_cpu + (total_cpu - serial_cpu) / count
        lines.append([count, f"{seconds:.1f}", f"{total_cpu / seconds:.2f}"])
    header = ["corpus", "one thread: CPU s", "wall s", "two: CPU s", "wall s", "times as fast"]
    header += ["two processes at once: wall s", "times as much work"]
    return (
        f"{markdown_table(header, speedups)}\n\nThe stages of {row['corpus']} with two threads:\n\n"
        f"{markdown_table(['stage', 'CPU s', 'of one thread alone', 'share'], shares)}\n\n"
        "Extrapolated from these shares by Amdahl's law, not measured: the parts of one thread stay as they are, and "
        "all else is divided. One thread reads and one encodes while others work, so that few threads do a little "
        f"better than this.\n\n{markdown_table(['threads', 'seconds', 'times as fast'], lines)}"
    )


def measure_blog_job(args: argparse.Namespace) -> Results:
    """Measure the job of the blog."""
    kind = "sentences" if (SHARED / "data" / "adzuna").is_dir() else "words"
    documents = 20_000 if args.small else 400_000
    file = write_corpus(f"adverts-{kind}-{documents}", job_adverts(documents))
    warm_up()
    job = ["--recipe", "jaccard", "--threads", "2", "--force"]
    return {"rows": [{"of": kind} | measure_dedup(file, args, job=job)]}


def blog_job_table(results: Results) -> str:
    """Return the estimate of the blog beside the measured cost."""
    rows: list[list[object]] = [["the blog's estimate", "400,000", "", "", "8 days", "", ""]]
    for r in results["rows"]:
        sizes = [f"{r['documents']:,}", r["text_mb"], f"{r['pairs']:,}"]
        rows.append(["neardup", *sizes, f"{r['wall_s']} s", r["cpu_s"], r["pss_mb"]])
    return markdown_table(["", "documents", "text MB", "pairs", "wall", "CPU s", "peak PSS MB"], rows)


def measure_goals(args: argparse.Namespace) -> Results:
    """Measure jobs that no other section measures: 20 documents, and two recipes whose cost is not that of the join."""
    warm_up()
    name = "G20k" if args.small else "N100k"
    small_corpus = write_corpus("start-20", islice(edited_copies(1000), 20))
    jobs = {
        "20 documents": (small_corpus, []),
        f"{name}, --recipe checksum": (corpus(name), ["--recipe", "checksum"]),
        f"{name}, --recipe ddd": (corpus(name), ["--recipe", "ddd"]),
    }
    rows = []
    for label, (file, options) in jobs.items():
        print_progress(label)
        job = [*options, "--threads", "2", "--force"]
        measure_dedup(file, argparse.Namespace(runs=1), job=job)  # compiles the kernels
        rows.append({"job": label} | measure_dedup(file, args, job=job))
    return {"rows": rows}


def goals_table(results: Results) -> str:
    """Return each aim beside the measured value, which may come from the results of other sections and scripts."""
    lines = []
    for label, aim, reached, unit in [*corpus_size_aims(), *thread_and_peer_aims(), *start_aims(results["rows"])]:
        met = ""
        if reached is not None:
            met = "yes" if (reached >= aim if unit == "times faster" else reached <= aim) else "no"
        value = "not measured" if reached is None else f"{reached:,.4g} {unit}"
        lines.append([label, f"{aim:,g} {unit}", value, met])
    return markdown_table(["", "aim", "reached", "met"], lines)


#: Label, aim, measured value (None if not measured) and unit.
Aim = tuple[str, float, float | None, str]


def result_rows(name: str) -> list[Results]:
    path = RESULTS / f"{name}.json"
    rows: list[Results] = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    return rows


def ratio(numerator: float | None, denominator: float | None) -> float | None:
    return numerator / denominator if numerator and denominator else None


def corpus_size_aims() -> list[Aim]:
    runs = {row["run"]: row for row in result_rows("scale")}
    whole, small, ten, long = (runs.get(name, {}) for name in ("M1M:", "M1M:500MB", "M10M:2GB", "L1M:500MB"))
    a_document = [ratio(row.get("cpu_s"), row.get("documents")) for row in (ten, whole)]
    return [
        ("M1M in 500 MB, CPU over that without a budget", 2.2, ratio(small.get("cpu_s"), whole.get("cpu_s")), "times"),
        ("M1M in 500 MB, wall over that without a budget", 3, ratio(small.get("wall_s"), whole.get("wall_s")), "times"),
        ("M1M in 500 MB, peak RSS", 500, small.get("rss_mb"), "MB"),
        ("M10M in 2 GB, CPU a document over that of M1M without a budget", 2.2, ratio(*a_document), "times"),
        ("L1M in 500 MB, CPU", 55, long.get("cpu_s"), "s"),
        ("L1M in 500 MB, peak RSS", 500, long.get("rss_mb"), "MB"),
        ("15,000,000 documents of 3.45 KB in 4 GB, CPU", 1200, runs.get("L15M:3200MB", {}).get("cpu_s"), "s"),
    ]


def thread_and_peer_aims() -> list[Aim]:
    walls = {(row["corpus"], row["threads"]): row["wall_s"] for row in result_rows("threads") if "threads" in row}
    cpu = {(row["corpus"], row["peer"]): row["cpu_s"] for row in result_rows("peers") if row["variant"] != "lsh"}
    aims: list[Aim] = [
        (f"{name}, two threads beside one", 1.8, ratio(walls.get((name, 1)), walls.get((name, 2))), "times faster")
        for name in ("N500k", "M1M")
    ]
    for name, aim in (("N100k", 2.3), ("N500k", 2.0)):
        reached = ratio(cpu.get((name, "neardup")), cpu.get((name, "polars")))
        aims.append((f"{name}, CPU over that of Polars for exact copies", aim, reached, "times"))
    fastest = [cpu["R20k", peer] for peer in ("rensa", "gaoya") if ("R20k", peer) in cpu]
    if fastest:
        aims.append(("R20k, CPU beside that of the fastest peer", min(fastest), cpu.get(("R20k", "neardup")), "s"))
    return aims


def start_aims(rows: list[Results]) -> list[Aim]:
    aims: list[Aim] = [
        (f"{row['job']}, CPU", aim, row["cpu_s"], "s")
        for row in rows
        if (aim := JOB_CPU_AIMS.get(row["job"].rpartition(" ")[2])) is not None
    ]
    aims += [("20 documents, peak RSS", 160, row["rss_mb"], "MB") for row in rows if row["job"] == "20 documents"]
    starts = {row["start"]: row["cpu_s"] for row in result_rows("first-run")}
    aims += [(f"{start}, CPU", START_CPU_AIMS[start], starts.get(start), "s") for start in ("first run ever", "--help")]
    items = {
        row["at_once"]: row["cpu_us"]["median"]
        for row in result_rows("window")
        if row["corpus"] == "R20k" and not row["joined_to"]
    }
    aims.append(("ddd against a window of 8,000, an item in batches", 50, items.get(256), "µs"))
    aims.append(("ddd against a window of 8,000, an item one by one", 90, items.get(1), "µs"))
    return aims


#: Aims in CPU seconds, by the last word of a job.
JOB_CPU_AIMS = {"documents": 0.7, "checksum": 1.2, "ddd": 14.0}

SECTIONS = {
    "growth": Section(measure_growth, {"growth": growth_table}),
    "memory": Section(measure_memory, {"memory": memory_table}),
    "hard": Section(measure_hard_cases, {"hard": hard_table}),
    "first-run": Section(measure_first_run, {"first-run": first_run_table}),
    "threads": Section(measure_threads, {"threads": threads_table}),
    "blog-job": Section(measure_blog_job, {"blog-job": blog_job_table}),
    "goals": Section(measure_goals, {"goals": goals_table}),
}

if __name__ == "__main__":
    run_sections(
        __doc__, SECTIONS, lambda parser: parser.add_argument("--corpora", nargs="+", help="of growth and of memory")
    )
