"""Cost of an index on disk: building, opening, queries, additions, and as a reference in place of files.

    disk_index.py [disk-index] [--archives N100k,N500k] [--delivery R20k] [--small]

    build     neardup index build of the archive, on two threads
    open      nd.open_index with the files in the page cache
    new, old  index.query of single texts of the delivery and of the archive
    nearest   index.query(text, k=1) of texts of the archive with every 16th or 8th word replaced, so that their
              similarity is below the threshold, and of reversed texts, which share nothing with any other
    add       neardup index add of 10,000 documents of the delivery
    dedup     neardup dedup of the delivery --against the index, and --against the files

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
from measuring import (
    NEARDUP,
    Section,
    markdown_table,
    measure,
    print_progress,
    run_sections,
    summarize,
    time_call,
    time_quantiles,
    warm_up,
)

import neardup as nd

ADDED_DOCUMENTS = 10_000


def query_times(index: Any, texts: list[str], k: int | None = None) -> dict[str, float]:
    """Return quantiles of the CPU microseconds of single queries."""
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


def archive_row(archive: Path, delivery: Path, folder: Path, runs: int, queries: int) -> dict[str, Any]:
    """Return the costs of an archive as an index."""
    index_path = folder / "index"
    builds = []
    for _ in range(runs):
        shutil.rmtree(index_path, ignore_errors=True)
        builds.append(measure([*NEARDUP, "index", "build", archive, "-o", index_path, "--threads", "2"]))
    index = nd.open_index(index_path)
    row: dict[str, Any] = {"archive": archive.stem, **index.info, "build": summarize(builds)}
    index.query("this query loads the kernels before any time is measured")
    row["open"] = time_quantiles([time_call(lambda: nd.open_index(index_path))[1] for _ in range(20)], 1e3)
    new = [text for text in islice(corpus_texts(delivery), 4 * queries) if len(text) > 60]
    old = [text for text in islice(corpus_texts(archive), 20 * queries) if len(text) > 60]
    rng = random.Random(1)  # noqa: S311
    for name, texts in (("new", new), ("old", old)):
        row[name] = query_times(index, rng.sample(texts, min(queries, len(texts))))
    sample = rng.sample(old, min(queries // 20, len(old)))
    for every in (16, 8):
        row[f"nearest, every {every}"] = query_times(index, [replace_words(text, every) for text in sample], 1)
    row["nearest, backwards"] = query_times(index, [text[::-1] for text in sample[:10]], 1)
    outputs = [folder / "index.jsonl", folder / "files.jsonl"]
    for name, reference, output in zip(("by_index", "by_files"), (index_path, archive), outputs, strict=True):
        command = [*NEARDUP, "dedup", delivery, "--against", reference, "-o", output, "--threads", "2", "--force"]
        row[name] = summarize([measure(command) for _ in range(runs)])
    if outputs[0].read_bytes() != outputs[1].read_bytes():
        raise SystemExit(f"{archive.stem}: outputs against the index and against the files differ; they must be equal")
    added = folder / "added.parquet"
    part = pq.read_table(delivery).slice(0, ADDED_DOCUMENTS).select(["text"])
    pq.write_table(part.append_column("id", [[f"added-{at}" for at in range(len(part))]]), added)
    id_options = ["--ids", "rows"] if index.manifest.ids == "rows" else []
    if index.manifest.ids == "int64":
        pq.write_table(part.append_column("id", [list(range(1 << 40, (1 << 40) + len(part)))]), added)
    row["add"] = summarize([measure([*NEARDUP, "index", "add", index_path, added, "--threads", "2", *id_options])])
    return row


def measure_archives(args: argparse.Namespace) -> dict[str, Any]:
    """Return the costs of each archive."""
    if args.small:
        words = [[f"{word}{at} {at * n}" for at in range(40)] for n, word in enumerate("abcdefgh" * 50)]
        texts = [" ".join(text_words) for text_words in words]
        archives, delivery = [write_corpus("archive", texts)], write_corpus("delivery", texts[::2] + texts[:3])
    else:
        archives, delivery = [corpus(name) for name in args.archives.split(",")], corpus(args.delivery)
    warm_up()
    rows = []
    for archive in archives:
        print_progress(archive.stem)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(archive_row(archive, delivery, Path(folder), args.runs, 100 if args.small else 2000))
    return {"delivery": delivery.stem, "rows": rows}


def disk_index_table(results: dict[str, Any]) -> str:
    """Return the costs of each archive."""
    header = ["archive", "documents", "texts MB", "index, of the texts", "build CPU s", "MB a CPU s", "open CPU ms"]
    header += ["a new text, median CPU µs", "p99", "an old text, median CPU µs", "p99", "add 10,000, CPU s"]
    header += [f"nearest, {edit}, median CPU ms" for edit in ("every 16th word edited", "every 8th", "shares nothing")]
    header += [f"{results['delivery']} against the index, CPU s", "against the files, CPU s"]
    rows = []
    for row in results["rows"]:
        size = row["text_bytes"] / 1e6
        rows.append(
            [
                *(row["archive"], f"{row['documents']:,}", f"{size:.0f}", f"{row['bytes'] / row['text_bytes']:.0%}"),
                *(f"{row['build']['cpu_s']:.1f}", f"{size / row['build']['cpu_s']:.0f}", row["open"]["median"]),
                *(f"{row[origin][figure]:.0f}" for origin in ("new", "old") for figure in ("median", "p99")),
                f"{row['add']['cpu_s']:.1f}",
                *(f"{row[f'nearest, {edit}']['median'] / 1000:.1f}" for edit in ("every 16", "every 8", "backwards")),
                *(f"{row[reference]['cpu_s']:.1f}" for reference in ("by_index", "by_files")),
            ]
        )
    return markdown_table(header, rows)


if __name__ == "__main__":

    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--archives", default="N100k,N500k", help="prepared corpora, by name")
        parser.add_argument("--delivery", default="R20k", help="corpus of new documents")

    run_sections(__doc__, {"disk-index": Section(measure_archives, {"disk-index": disk_index_table})}, options)
