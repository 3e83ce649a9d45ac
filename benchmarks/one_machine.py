"""Cost of the command line on one machine: by corpus, memory budget and threads, on hard cases, at the first run.

one_machine.py [memory] [hard] [first-run] [threads] [blog-job] [goals] [--small] [--runs N]

memory     time a document and peak memory, with a budget and without, and whether the output is the same
hard       copies of ten documents; texts with a shared footer; slightly different copies of one text
first-run  the first run ever, when the kernels are compiled; the second; ``neardup --help``
threads    one thread, two threads, and two processes at once, which share only the machine; the serial part of each
           stage
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

from corpora import corpus, edited_copies, job_adverts, near_copies, shared_footer, ten_documents, write_corpus
from harness import (
    JOB,
    NEARDUP,
    RESULTS,
    CommandFailedError,
    Row,
    markdown_table,
    measure,
    measure_runs,
    medians,
    print_progress,
    run_sections,
    section,
    warm_up,
)

#: Aims in CPU seconds of each start and job.
START_CPU_AIMS = {"first run ever": 8.0, "second run": 0.7, "--help": 0.15}
JOB_CPU_AIMS = {"20 documents": 0.7, "N100k, --recipe checksum": 1.2, "N100k, --recipe ddd": 14.0}
HARD_CASES = {
    "copies": (ten_documents, [50_000, 100_000, 200_000]),
    "footer": (shared_footer, [50_000, 100_000, 200_000]),
    "near-copies": (near_copies, [2_500, 5_000, 10_000, 20_000]),
}


def measure_dedup(file: Path, runs: int, *options: str, job: list[str] = JOB) -> Row:
    """Return the medians of runs of ``dedup``, figures of its summary, and the digest of its output."""
    with tempfile.TemporaryDirectory() as folder:
        out, summary = Path(folder, "out.parquet"), Path(folder, "summary.json")
        figures = measure_runs([*NEARDUP, "dedup", file, "-o", out, "--summary", summary, *job, *options], runs)
        report = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
    row = {key: report[key] for key in ("documents", "kept", "dropped", "pairs", "all_pairs", "stages")}
    row |= {"text_mb": round(report["text_bytes"] / 1e6, 1), "sha256": digest}
    row |= {"spilled_mb": round(report["search"].get("spilled_bytes", 0) / 1e6, 1)}
    return row | figures | {"cpu_us_a_document": round(1e6 * figures["cpu_s"] / report["documents"], 2)}


@section(
    "memory",
    "corpus | text MB | --memory | peak PSS MB | peak RSS MB | PSS / text | spilled MB | same bytes | CPU s | wall s"
    " | CPU µs a document",
    "{corpus} | {text_mb} | {budget} | {pss_mb} | {rss_mb} | {pss_over_text} | {spilled_mb} | {same_bytes:yes/NO} | "
    "{cpu_s} | {wall_s} | {cpu_us_a_document:.1f}",
)
def measure_memory(args: argparse.Namespace) -> Row:
    warm_up()
    rows = []
    for name in ["G60k"] if args.small else ["N100k", "N500k", "M1M"]:
        for budget in ("none", *(["200MB"] if args.small else ["2GB", "500MB"])):
            print_progress(f"{name}, memory {budget}")
            row = measure_dedup(corpus(name), args.runs, *(["--memory", budget] if budget != "none" else []))
            if budget == "none":
                expected = row["sha256"]
            row |= {"same_bytes": row["sha256"] == expected, "pss_over_text": round(row["pss_mb"] / row["text_mb"], 2)}
            rows.append({"corpus": name, "budget": budget} | row)
    return {"rows": rows}


@section(
    "hard",
    "case | documents | pairs | all of them | kept | CPU s | wall s | peak PSS MB | CPU µs a document",
    "{case} | {documents:,} | {pairs:,} | {all_pairs:yes/no} | {kept:,} | {cpu_s} | {wall_s} | {pss_mb} | "
    "{cpu_us_a_document}",
)
def measure_hard_cases(args: argparse.Namespace) -> Row:
    warm_up()
    rows = []
    for case, (make, sizes) in HARD_CASES.items():
        for size in (full // 20 for full in sizes) if args.small else sizes:
            print_progress(f"{case}, {size:,} documents")
            rows.append({"case": case} | measure_dedup(write_corpus(f"{case}-{size}", make(size)), args.runs))
    return {"rows": rows}


def twenty_documents() -> Path:
    return write_corpus("start-20", islice(edited_copies(1000), 20))


@section(
    "first-run",
    "start | wall s | CPU s | peak RSS MB | aim, CPU s",
    "{start} | {wall_s} | {cpu_s} | {rss_mb} | {aim}",
)
def measure_first_run(args: argparse.Namespace) -> Row:
    runs_by_start: dict[str, list[Row]] = {name: [] for name in START_CPU_AIMS}
    for number in range(args.runs):
        print_progress(f"run {number + 1} of {args.runs}")
        with tempfile.TemporaryDirectory() as folder:
            command = [*NEARDUP, "dedup", twenty_documents(), "-o", Path(folder, "out.parquet"), "--force"]
            for name, runs in runs_by_start.items():
                measured = [*NEARDUP, "--help"] if name == "--help" else command
                runs.append(measure(measured, env={"NUMBA_CACHE_DIR": folder}))
    rows = [{"start": name, "aim": START_CPU_AIMS[name]} | medians(runs) for name, runs in runs_by_start.items()]
    return {"rows": rows}


def threads_table(results: Row) -> str:
    """Return one thread beside two, and the serial share of each stage."""
    pairs = list(zip(results["rows"][::2], results["rows"][1::2], strict=True))
    speedups = [
        {"one": one, "two": two, "faster": one["wall_s"] / two["wall_s"]}
        | {"work": 2 * one["wall_s"] / two["two_processes_wall_s"]}
        for one, two in pairs
    ]
    row = pairs[0][1]
    # The time outside the stages is the start, which one thread does.
    start = row["cpu_s"] - sum(stage["cpu_s"] for stage in row["stages"])
    stages = [{"name": "start", "cpu_s": start, "serial_cpu_s": start}, *row["stages"]]
    cpu, serial = (sum(stage[key] for stage in stages) for key in ("cpu_s", "serial_cpu_s"))
    stages.append({"name": "all", "cpu_s": cpu, "serial_cpu_s": serial})
    shares = [stage | {"share": stage["serial_cpu_s"] / stage["cpu_s"] if stage["cpu_s"] else None} for stage in stages]
    parts = [
        markdown_table(
            "corpus | one thread: CPU s | wall s | two: CPU s | wall s | times as fast | two processes at once: wall s"
            " | times as much work",
            "{one[corpus]} | {one[cpu_s]} | {one[wall_s]} | {two[cpu_s]} | {two[wall_s]} | {faster:.2f} | "
            "{two[two_processes_wall_s]} | {work:.2f}",
            speedups,
        ),
        f"The stages of {row['corpus']} with two threads:",
        markdown_table(
            "stage | CPU s | of one thread alone | share",
            "{name} | {cpu_s:.2f} | {serial_cpu_s:.2f} | {share:.0%}",
            shares,
        ),
    ]
    return "\n\n".join(parts)


@section("threads", threads_table)
def measure_threads(args: argparse.Namespace) -> Row:
    warm_up()
    rows = []
    for name in ["G20k"] if args.small else ["N500k", "M1M"]:
        for count in (1, 2):
            print_progress(f"{name}, threads {count}")
            row: Row = {"corpus": name, "threads": count}
            rows.append(row | measure_dedup(corpus(name), args.runs, job=thread_job(count)))
        print_progress(f"{name}, two processes of one thread")
        rows[-1]["two_processes_wall_s"] = median(time_two_processes(corpus(name)) for _ in range(args.runs))
    return {"rows": rows}


def thread_job(threads: int) -> list[str]:
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


@section(
    "blog-job",
    "documents | text MB | pairs | wall s | CPU s | peak PSS MB",
    "{documents:,} | {text_mb} | {pairs:,} | {wall_s} | {cpu_s} | {pss_mb}",
)
def measure_blog_job(args: argparse.Namespace) -> Row:
    documents = 20_000 if args.small else 400_000
    file = write_corpus(f"adverts-sentences-{documents}", job_adverts(documents))
    warm_up()
    return {"rows": [measure_dedup(file, args.runs, job=["--recipe", "jaccard", "--threads", "2", "--force"])]}


def goals_table(results: Row) -> str:
    """Return each aim beside the measured value, which may come from the results of other sections and scripts."""

    def recorded(name: str, *keys: str) -> dict[object, Row]:
        rows = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))["rows"]
        return {tuple(row.get(key) for key in keys) if len(keys) > 1 else row.get(keys[0]): row for row in rows}

    jobs = {row["job"]: row for row in results["rows"]}
    runs, starts = recorded("scale", "run"), recorded("first-run", "start")
    threads, peers = recorded("threads", "corpus", "threads"), recorded("peers", "corpus", "peer")
    window = recorded("window", "corpus", "joined_to", "at_once")
    free, tight, ten, long = (runs[name] for name in ("M1M:", "M1M:500MB", "M10M:2GB", "L1M:500MB"))
    a_document = ten["cpu_s"] / ten["documents"] / (free["cpu_s"] / free["documents"])
    aims = [
        ("M1M in 500 MB, CPU over that without a budget", 2.2, tight["cpu_s"] / free["cpu_s"], "times"),
        ("M1M in 500 MB, wall over that without a budget", 3, tight["wall_s"] / free["wall_s"], "times"),
        ("M1M in 500 MB, peak RSS", 500, tight["rss_mb"], "MB"),
        ("M10M in 2 GB, CPU a document over that of M1M without a budget", 2.2, a_document, "times"),
        ("L1M in 500 MB, CPU", 55, long["cpu_s"], "s"),
        ("L1M in 500 MB, peak RSS", 500, long["rss_mb"], "MB"),
        ("15,000,000 documents of 3.45 KB in 4 GB, CPU", 1200, runs["L15M:3200MB"]["cpu_s"], "s"),
    ]
    for name in ("N500k", "M1M"):
        faster = threads[name, 1]["wall_s"] / threads[name, 2]["wall_s"]
        aims.append((f"{name}, two threads beside one", 1.8, faster, "times faster"))
    for name, aim in (("N100k", 2.3), ("N500k", 2.0)):
        over = peers[name, "neardup"]["cpu_s"] / peers[name, "polars"]["cpu_s"]
        aims.append((f"{name}, CPU over that of Polars for exact copies", aim, over, "times"))
    fastest = min(peers["R20k", peer]["cpu_s"] for peer in ("rensa", "gaoya"))
    aims.append(("R20k, CPU beside that of the fastest peer", fastest, peers["R20k", "neardup"]["cpu_s"], "s"))
    aims += [(f"{job}, CPU", aim, jobs[job]["cpu_s"], "s") for job, aim in JOB_CPU_AIMS.items()]
    aims.append(("20 documents, peak RSS", 160, jobs["20 documents"]["rss_mb"], "MB"))
    aims += [(f"{at}, CPU", START_CPU_AIMS[at], starts[at]["cpu_s"], "s") for at in ("first run ever", "--help")]
    for at_once, aim, words in ((256, 50, "in batches"), (1, 90, "one by one")):
        label = f"ddd against a window of 8,000, an item {words}"
        aims.append((label, aim, window["R20k", 0, at_once]["cpu_us"]["median"], "µs"))
    return markdown_table(
        " | aim | reached | met",
        "{label} | {aim:,g} {unit} | {reached:,.4g} {unit} | {met:yes/no}",
        [
            {"label": label, "aim": aim, "reached": reached, "unit": unit}
            | {"met": reached >= aim if unit == "times faster" else reached <= aim}
            for label, aim, reached, unit in aims
        ],
    )


@section("goals", goals_table)
def measure_goals(args: argparse.Namespace) -> Row:
    """Measure jobs that no other section measures: 20 documents, and two recipes whose cost is not that of the join."""
    warm_up()
    rows = []
    for label in JOB_CPU_AIMS:
        print_progress(label)
        name, _, options = label.partition(", ")
        file = twenty_documents() if name == "20 documents" else corpus("G20k" if args.small else name)
        job = [*options.split(), "--threads", "2", "--force"]
        measure_dedup(file, 1, job=job)  # compiles the kernels
        rows.append({"job": label} | measure_dedup(file, args.runs, job=job))
    return {"rows": rows}


if __name__ == "__main__":
    run_sections(__doc__)
