"""Cost of an index on disk: building, opening, queries, additions, and as a reference in place of files.

    disk_index.py [disk-index] [--small]

    build     neardup index build of N100k and of N500k, on two threads
    open      nd.open_index with the files in the page cache
    new, old  index.query of single texts of R20k and of the archive
    nearest   index.query(text, k=1) of texts of the archive with every 16th or 8th word replaced, so that their
              similarity is below the threshold, and of reversed texts, which share nothing with any other
    add       neardup index add of 10,000 documents of R20k
    dedup     neardup dedup of R20k --against the index, and --against the files

The recipe is default. The outputs of both dedup runs must have the same bytes; tests/index compares all other answers.
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from corpora import corpus, corpus_texts, write_corpus
from harness import (
    NEARDUP,
    Row,
    measure,
    measure_runs,
    medians,
    print_progress,
    run_sections,
    section,
    time_call,
    time_quantiles,
    warm_up,
)

import neardup as nd


def query_times(index: Any, texts: list[str], k: int | None = None) -> dict[str, float]:
    times = []
    for text in texts:
        begin = time.thread_time()
        index.query(text, k)
        times.append(time.thread_time() - begin)
    return time_quantiles(times, 1e6)


def replace_words(text: str, every: int) -> str:
    """Return a text with one word in `every` replaced."""
    words = text.split()
    words[every // 2 :: every] = [f"edited{at}" for at in range(len(words[every // 2 :: every]))]
    return " ".join(words)


def archive_row(archive: Path, delivery: Path, folder: Path, runs: int, queries: int) -> Row:
    index_path = folder / "index"
    builds = []
    for _ in range(runs):
        shutil.rmtree(index_path, ignore_errors=True)
        builds.append(measure([*NEARDUP, "index", "build", archive, "-o", index_path, "--threads", "2"]))
    index = nd.open_index(index_path)
    row: Row = {"archive": archive.stem, **index.info, "build": medians(builds)}
    row |= {"text_mb": row["text_bytes"] / 1e6, "of_texts": row["bytes"] / row["text_bytes"]}
    row |= {"mb_a_cpu_s": row["text_mb"] / row["build"]["cpu_s"]}
    index.query("this query loads the kernels before any time is measured")
    row["open"] = time_quantiles([time_call(lambda: nd.open_index(index_path))[1] for _ in range(20)], 1e3)
    new = [text for text in islice(corpus_texts(delivery), 4 * queries) if len(text) > 60]
    old = [text for text in islice(corpus_texts(archive), 20 * queries) if len(text) > 60]
    rng = random.Random(1)  # noqa: S311
    for name, texts in (("new", new), ("old", old)):
        row[name] = query_times(index, rng.sample(texts, min(queries, len(texts))))
    sample = rng.sample(old, min(queries // 20, len(old)))
    edits = {every: [replace_words(text, every) for text in sample] for every in (16, 8)}
    edits |= {0: [text[::-1] for text in sample[:10]]}
    row["nearest_ms"] = {every: query_times(index, texts, 1)["median"] / 1000 for every, texts in edits.items()}
    outputs = [folder / "index.jsonl", folder / "files.jsonl"]
    for name, reference, output in zip(("by_index", "by_files"), (index_path, archive), outputs, strict=True):
        command = [*NEARDUP, "dedup", delivery, "--against", reference, "-o", output, "--threads", "2", "--force"]
        row[name] = measure_runs(command, runs)
    if outputs[0].read_bytes() != outputs[1].read_bytes():
        raise SystemExit(f"{archive.stem}: outputs against the index and against the files differ; they must be equal")
    part = pq.read_table(delivery).slice(0, 10_000).select(["text"])
    ids = [1 << 40 | at if index.manifest.ids == "int64" else f"added-{at}" for at in range(len(part))]
    pq.write_table(part.append_column("id", [ids]), folder / "added.parquet")
    id_options = ["--ids", "rows"] if index.manifest.ids == "rows" else []
    add = [*NEARDUP, "index", "add", index_path, folder / "added.parquet", "--threads", "2", *id_options]
    return row | {"add": measure_runs(add, 1)}


@section(
    "disk-index",
    "archive | documents | texts MB | index, of the texts | build CPU s | MB a CPU s | open CPU ms"
    " | a new text, median CPU µs | p99 | an old text, median CPU µs | p99 | add 10,000, CPU s"
    " | nearest, every 16th word edited, median CPU ms | nearest, every 8th | nearest, shares nothing"
    " | R20k against the index, CPU s | against the files, CPU s",
    "{archive} | {documents:,} | {text_mb:.0f} | {of_texts:.0%} | {build[cpu_s]:.1f} | {mb_a_cpu_s:.0f} | "
    "{open[median]} | {new[median]:.0f} | {new[p99]:.0f} | {old[median]:.0f} | {old[p99]:.0f} | {add[cpu_s]:.1f} | "
    "{nearest_ms[16]:.1f} | {nearest_ms[8]:.1f} | {nearest_ms[0]:.1f} | {by_index[cpu_s]:.1f} | {by_files[cpu_s]:.1f}",
)
def measure_archives(args: argparse.Namespace) -> Row:
    if args.small:
        words = [[f"{word}{at} {at * n}" for at in range(40)] for n, word in enumerate("abcdefgh" * 50)]
        texts = [" ".join(text_words) for text_words in words]
        archives, delivery = [write_corpus("archive", texts)], write_corpus("delivery", texts[::2] + texts[:3])
    else:
        archives, delivery = [corpus("N100k"), corpus("N500k")], corpus("R20k")
    warm_up()
    rows = []
    for archive in archives:
        print_progress(archive.stem)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(archive_row(archive, delivery, Path(folder), args.runs, 100 if args.small else 2000))
    return {"delivery": delivery.stem, "rows": rows}


if __name__ == "__main__":
    run_sections(__doc__)
