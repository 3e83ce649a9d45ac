"""What the command line costs on one machine: by size, by memory, on corpora made to hurt, at its first start.

one_machine.py [growth] [memory] [hard] [first-run] [threads] [blog-job] [neighbors] [goals] [--small] [--runs N]

growth     CPU time a document, as the corpus grows
memory     peak memory as a multiple of the text, with a budget and without, and whether the bytes are the same
hard       copies of ten documents; texts with one footer that all have; slightly different copies of one text
first-run  the first run ever, when the kernels are compiled; the second; ``neardup --help``
threads    one thread beside two; what of each stage one thread does alone, and from it the time with more threads than
the machine has
blog-job   exact multiset Jaccard of word 4-grams over 400,000 job adverts, for which a blog estimated eight days.
Its corpus is not public whole: the texts mix the sentences of its 2,499 public adverts to 1.5 KB each
neighbors  the three nearest of 1,000 documents among 100,000, by several features and measures, with one thread
goals      what was set out for beside what is reached, here and in the results of other sections and scripts
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from corpora import corpus, edited_copies, job_adverts, near_copies, one_footer, ten_documents, write_corpus
from measuring import (
    JOB,
    NEARDUP,
    RESULTS,
    SHARED,
    Run,
    Section,
    measure,
    note,
    run_sections,
    summarize,
    table,
    warm_up,
)

Results = dict[str, Any]

#: What was set out for: growth of the time a document; peak memory over the text; seconds of each start.
GROWTH, TIMES_THE_TEXT = 1.3, 3.0
STARTS = {"first run ever": 8.0, "second run": 0.7, "--help": 0.15}
#: For which the time is extrapolated.
THREADS = (1, 2, 4, 8, 16)
HARD = {
    "copies": (ten_documents, [50_000, 100_000, 200_000]),
    "footer": (one_footer, [50_000, 100_000, 200_000]),
    "near-copies": (near_copies, [2_500, 5_000, 10_000, 20_000]),
}
NEIGHBORS = {
    "words:5 jaccard": [],
    "words:1 jaccard": ["--features", "words:1"],
    "words:1 tfidf cosine": ["--features", "words:1", "--weights", "tfidf", "--measure", "cosine"],
    "qgrams:4 overlap": ["--features", "qgrams:4", "--measure", "overlap"],
    "simhash hamming": ["--features", "words:1", "--signature", "simhash", "--measure", "hamming", "--threshold", "3"],
}


def measure_dedup(file: Path, args: argparse.Namespace, *options: str, job: list[str] = JOB) -> Results:
    """Return the medians of runs of ``dedup``, what its summary says, and a digest of what it kept."""
    with tempfile.TemporaryDirectory() as folder:
        out, summary = Path(folder, "out.parquet"), Path(folder, "summary.json")
        command = [*NEARDUP, "dedup", file, "-o", out, "--summary", summary, *job, *options]
        figures = summarize([measure(command) for _ in range(args.runs)])
        said = json.loads(summary.read_text("utf-8"))
        digest = hashlib.sha256(out.read_bytes()).hexdigest()
    row = {key: said[key] for key in ("documents", "kept", "dropped", "pairs", "all_pairs", "stages")}
    row |= {"text_mb": round(said["text_bytes"] / 1e6, 1), "sha256": digest}
    row |= {"spilled_mb": round(said["search"].get("spilled_bytes", 0) / 1e6, 1)}
    return row | figures | {"cpu_us_a_document": round(1e6 * figures["cpu_s"] / said["documents"], 2)}


def growth(args: argparse.Namespace) -> Results:
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
    found = table(["corpus", "documents", "text MB", "CPU s", "wall s", "CPU µs a document"], rows)
    ratio = round(each[-1] / each[0], 3)
    return f"{found}\n\nFrom first to last the time a document grows by {ratio}; allowed is {GROWTH}."


def memory(args: argparse.Namespace) -> Results:
    """Measure corpora without a budget and with each."""
    warm_up()
    rows = []
    for name in args.corpora or (["G60k"] if args.small else ["N100k", "N500k"]):
        for budget in (None, *(["200MB"] if args.small else ["2GB", "500MB"])):
            note(f"{name}, {budget or 'no budget'}")
            options = ["--memory", budget] if budget else []
            rows.append({"corpus": name, "budget": budget} | measure_dedup(corpus(name), args, *options))
    return {"rows": rows}


def memory_table(results: Results) -> str:
    """Return peak memory beside the size of the text."""
    plain = {r["corpus"]: r["sha256"] for r in results["rows"] if not r["budget"]}
    rows = []
    for r in results["rows"]:
        same = "yes" if r["sha256"] == plain[r["corpus"]] else "NO"
        peak = [r["pss_mb"], r["rss_mb"], round(r["pss_mb"] / r["text_mb"], 2)]
        head = [r["corpus"], r["text_mb"], r["budget"] or "none"]
        rows.append([*head, *peak, r["spilled_mb"], same, r["cpu_s"], r["wall_s"]])
    header = ["corpus", "text MB", "--memory", "peak PSS MB", "peak RSS MB", "PSS / text", "spilled MB", "same bytes"]
    return f"{table([*header, 'CPU s', 'wall s'], rows)}\n\nAllowed: {TIMES_THE_TEXT} times the text."


def hard(args: argparse.Namespace) -> Results:
    """Measure corpora made to hurt: the time a document must stay the same as they grow."""
    warm_up()
    rows = []
    for case, (make, sizes) in HARD.items():
        for size in (full // 20 for full in sizes) if args.small else sizes:
            note(f"{case}, {size:,} documents")
            rows.append({"case": case} | measure_dedup(write_corpus(f"{case}-{size}", make(size)), args))
    return {"rows": rows}


def hard_table(results: Results) -> str:
    """Return what the hard cases cost."""
    rows = []
    for r in results["rows"]:
        counts = [f"{r['documents']:,}", f"{r['pairs']:,}", "yes" if r["all_pairs"] else "no", f"{r['kept']:,}"]
        rows.append([r["case"], *counts, r["cpu_s"], r["wall_s"], r["pss_mb"], r["cpu_us_a_document"]])
    header = ["case", "documents", "pairs", "all of them", "kept", "CPU s", "wall s", "peak PSS MB"]
    return table([*header, "CPU µs a document"], rows)


def first_run(args: argparse.Namespace) -> Results:
    """Measure starts with an empty folder for compiled kernels each time."""
    file = write_corpus("start-20", islice(edited_copies(1000), 20))
    taken: dict[str, list[Run]] = {name: [] for name in STARTS}
    for number in range(args.runs):
        note(f"run {number + 1} of {args.runs}")
        with tempfile.TemporaryDirectory() as folder:
            command = [*NEARDUP, "dedup", file, "-o", Path(folder, "out.parquet"), "--force"]
            for name, runs in taken.items():
                asked = [*NEARDUP, "--help"] if name == "--help" else command
                runs.append(measure(asked, env={"NUMBA_CACHE_DIR": folder}))
    return {"rows": [{"start": name} | summarize(runs) for name, runs in taken.items()]}


def first_run_table(results: Results) -> str:
    """Return what starting costs."""
    rows = [[r["start"], r["wall_s"], r["cpu_s"], r["rss_mb"], STARTS[r["start"]]] for r in results["rows"]]
    return table(["start", "wall s", "CPU s", "peak RSS MB", "aim, CPU s"], rows)


def threads(args: argparse.Namespace) -> Results:
    """Measure corpora with one thread and with two, and what of each stage one thread does alone."""
    warm_up()
    names = args.corpora or (["G20k"] if args.small else ["N500k", "M1M"])
    rows = []
    for name in names:
        for count in (1, 2):
            note(f"{name}, threads {count}")
            job = [*JOB[:-2], str(count), "--force"]
            rows.append({"corpus": name, "threads": count} | measure_dedup(corpus(name), args, job=job))
    return {"rows": rows}


def threads_table(results: Results) -> str:
    """Return one thread beside two, the serial share of each stage, and what Amdahl's law makes of it."""
    pairs = list(zip(results["rows"][::2], results["rows"][1::2], strict=True))
    beside = [
        [
            one["corpus"],
            one["cpu_s"],
            one["wall_s"],
            two["cpu_s"],
            two["wall_s"],
            f"{one['wall_s'] / two['wall_s']:.2f}",
        ]
        for one, two in pairs
    ]
    row = pairs[0][1]
    # What is no stage is the start: one thread does all of it.
    start = row["cpu_s"] - sum(stage["cpu_s"] for stage in row["stages"])
    parts = [("start", start, start)]
    parts += [(stage["name"], stage["cpu_s"], stage["serial_cpu_s"]) for stage in row["stages"]]
    whole, alone = sum(cpu for _, cpu, _ in parts), sum(serial for _, _, serial in parts)
    shares = [
        [name, f"{cpu:.2f}", f"{serial:.2f}", f"{serial / cpu:.0%}" if cpu else ""]
        for name, cpu, serial in [*parts, ("all", whole, alone)]
    ]
    lines = []
    for count in THREADS:
        seconds = alone + (whole - alone) / count
        lines.append([count, f"{seconds:.1f}", f"{whole / seconds:.2f}"])
    header = ["corpus", "one thread: CPU s", "wall s", "two: CPU s", "wall s", "times as fast"]
    return (
        f"{table(header, beside)}\n\nThe stages of {row['corpus']} with two threads:\n\n"
        f"{table(['stage', 'CPU s', 'of one thread alone', 'share'], shares)}\n\n"
        "Extrapolated from these shares by Amdahl's law, not measured: the parts of one thread stay as they are, and "
        "all else is divided. One thread reads and one encodes while others work, so that few threads do a little "
        f"better than this.\n\n{table(['threads', 'seconds', 'times as fast'], lines)}"
    )


def blog_job(args: argparse.Namespace) -> Results:
    """Measure the blog's job."""
    kind = "sentences" if (SHARED / "data" / "adzuna").is_dir() else "words"
    documents = 20_000 if args.small else 400_000
    file = write_corpus(f"adverts-{kind}-{documents}", job_adverts(documents))
    warm_up()
    job = ["--recipe", "jaccard", "--threads", "2", "--force"]
    return {"rows": [{"of": kind} | measure_dedup(file, args, job=job)]}


def blog_job_table(results: Results) -> str:
    """Return the blog's estimate and what the job takes."""
    rows: list[list[object]] = [["the blog's estimate", "400,000", "", "", "8 days", "", ""]]
    for r in results["rows"]:
        sizes = [f"{r['documents']:,}", r["text_mb"], f"{r['pairs']:,}"]
        rows.append(["neardup", *sizes, f"{r['wall_s']} s", r["cpu_s"], r["pss_mb"]])
    return table(["", "documents", "text MB", "pairs", "wall", "CPU s", "peak PSS MB"], rows)


def neighbors(args: argparse.Namespace) -> Results:
    """Measure the neighbours of the first documents, by several recipes."""
    warm_up()
    name, first, k = ("G20k", 200, 3) if args.small else ("N100k", 1000, 3)
    rows = []
    for label, options in NEIGHBORS.items():
        note(label)
        with tempfile.TemporaryDirectory() as folder:
            job = ["--first", first, "--k", k, "--threads", 1, "-o", Path(folder, "out.parquet"), "--force"]
            command = [*NEARDUP, "neighbors", corpus(name), *options, *job]
            measure(command)  # compiles, where that is not done
            figures = summarize([measure(command) for _ in range(args.runs)])
        rows.append({"recipe": label, "corpus": name, "asked": first, "k": k} | figures)
    return {"rows": rows}


def neighbors_table(results: Results) -> str:
    """Return what the nearest neighbours cost."""
    rows = [
        [r["recipe"], f"{r['asked']:,} of {r['corpus']}", r["k"], r["wall_s"], r["cpu_s"], r["pss_mb"]]
        for r in results["rows"]
    ]
    return table(["", "documents", "k", "wall s", "CPU s", "peak PSS MB"], rows)


def goals(args: argparse.Namespace) -> Results:
    """Measure what no other section does: 20 documents, and two recipes whose cost lies elsewhere than the join."""
    warm_up()
    name = "G20k" if args.small else "N100k"
    few = write_corpus("start-20", islice(edited_copies(1000), 20))
    asked = {
        "20 documents": (few, []),
        f"{name}, --recipe checksum": (corpus(name), ["--recipe", "checksum"]),
        f"{name}, --recipe ddd": (corpus(name), ["--recipe", "ddd"]),
    }
    rows = []
    for label, (file, options) in asked.items():
        note(label)
        job = [*options, "--threads", "2", "--force"]
        measure_dedup(file, argparse.Namespace(runs=1), job=job)  # compiles, where that is not done
        rows.append({"job": label} | measure_dedup(file, args, job=job))
    return {"rows": rows}


def goals_table(results: Results) -> str:
    """Return each aim beside what is reached; what other sections and scripts measured comes from their results."""
    lines = []
    for what, wanted, reached, unit in [*_of_sizes(), *_of_threads_and_peers(), *_of_starts(results["rows"])]:
        met = ""
        if reached is not None:
            met = "yes" if (reached >= wanted if unit == "times faster" else reached <= wanted) else "no"
        found = "not measured" if reached is None else f"{reached:,.4g} {unit}"
        lines.append([what, f"{wanted:,g} {unit}", found, met])
    return table(["", "aim", "reached", "met"], lines)


#: What it is about, the aim, what is reached or None where that is not measured, and the unit.
_Aim = tuple[str, float, float | None, str]


def _rows_of(name: str) -> list[Results]:
    path = RESULTS / f"{name}.json"
    found: list[Results] = json.loads(path.read_text("utf-8"))["rows"] if path.exists() else []
    return found


def _over(one: float | None, other: float | None) -> float | None:
    return one / other if one and other else None


def _of_sizes() -> list[_Aim]:
    runs = {row["run"]: row for row in _rows_of("scale")}
    whole, small, ten, long = (runs.get(name, {}) for name in ("M1M:", "M1M:500MB", "M10M:2GB", "L1M:500MB"))
    a_document = [_over(row.get("cpu_s"), row.get("documents")) for row in (ten, whole)]
    return [
        ("M1M in 500 MB, CPU over that without a budget", 2.2, _over(small.get("cpu_s"), whole.get("cpu_s")), "times"),
        ("M1M in 500 MB, wall over that without a budget", 3, _over(small.get("wall_s"), whole.get("wall_s")), "times"),
        ("M1M in 500 MB, peak RSS", 500, small.get("rss_mb"), "MB"),
        ("M10M in 2 GB, CPU a document over that of M1M without a budget", 2.2, _over(*a_document), "times"),
        ("L1M in 500 MB, CPU", 55, long.get("cpu_s"), "s"),
        ("L1M in 500 MB, peak RSS", 500, long.get("rss_mb"), "MB"),
        ("15,000,000 documents of 3.45 KB in 4 GB, CPU", 1200, runs.get("L15M:3200MB", {}).get("cpu_s"), "s"),
    ]


def _of_threads_and_peers() -> list[_Aim]:
    walls = {(row["corpus"], row["threads"]): row["wall_s"] for row in _rows_of("threads") if "threads" in row}
    cpu = {(row["corpus"], row["peer"]): row["cpu_s"] for row in _rows_of("peers") if row["variant"] != "lsh"}
    found: list[_Aim] = [
        (f"{name}, two threads beside one", 1.8, _over(walls.get((name, 1)), walls.get((name, 2))), "times faster")
        for name in ("N500k", "M1M")
    ]
    for name, wanted in (("N100k", 2.3), ("N500k", 2.0)):
        reached = _over(cpu.get((name, "neardup")), cpu.get((name, "polars")))
        found.append((f"{name}, CPU over that of Polars for exact copies", wanted, reached, "times"))
    fastest = [cpu["R20k", peer] for peer in ("rensa", "gaoya") if ("R20k", peer) in cpu]
    if fastest:
        found.append(("R20k, CPU beside that of the fastest peer", min(fastest), cpu.get(("R20k", "neardup")), "s"))
    return found


def _of_starts(rows: list[Results]) -> list[_Aim]:
    found: list[_Aim] = [
        (f"{row['job']}, CPU", wanted, row["cpu_s"], "s")
        for row in rows
        if (wanted := _AIMS.get(row["job"].rpartition(" ")[2])) is not None
    ]
    found += [("20 documents, peak RSS", 160, row["rss_mb"], "MB") for row in rows if row["job"] == "20 documents"]
    starts = {row["start"]: row["cpu_s"] for row in _rows_of("first-run")}
    found += [(f"{start}, CPU", STARTS[start], starts.get(start), "s") for start in ("first run ever", "--help")]
    items = {
        row["at_once"]: row["cpu_us"]["median"]
        for row in _rows_of("window")
        if row["corpus"] == "R20k" and not row["joined_to"]
    }
    found.append(("ddd against a window of 8,000, an item in batches", 50, items.get(256), "µs"))
    found.append(("ddd against a window of 8,000, an item one by one", 90, items.get(1), "µs"))
    return found


#: CPU seconds, by the last word of a job.
_AIMS = {"documents": 0.7, "checksum": 1.2, "ddd": 14.0}

SECTIONS = {
    "growth": Section(growth, {"growth": growth_table}),
    "memory": Section(memory, {"memory": memory_table}),
    "hard": Section(hard, {"hard": hard_table}),
    "first-run": Section(first_run, {"first-run": first_run_table}),
    "threads": Section(threads, {"threads": threads_table}),
    "blog-job": Section(blog_job, {"blog-job": blog_job_table}),
    "neighbors": Section(neighbors, {"neighbors": neighbors_table}),
    "goals": Section(goals, {"goals": goals_table}),
}

if __name__ == "__main__":
    run_sections(
        __doc__, SECTIONS, lambda parser: parser.add_argument("--corpora", nargs="+", help="of growth and of memory")
    )
