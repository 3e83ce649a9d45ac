"""What an index on disk costs: to build, to open, to ask, to add to, and as a reference in place of files.

    disk_index.py [disk-index] [--archives N100k,N500k] [--delivery R20k] [--small]

    build     neardup index build of the archive, a new process on two threads
    open      nd.open_index, once the files are in memory
    new, old  index.query of texts of the delivery, and of texts of the archive, one by one
    nearest   index.query(text, k=1) of texts of the archive in which every 16th or 8th word is another one, which makes
              them less similar than the threshold, and of texts that share nothing with any other: written backwards
    add       neardup index add of 10,000 documents of the delivery, a new process
    dedup     neardup dedup of the delivery --against the index, and --against the files

All with the recipe default. That the answers are those of the files is held by tests/test_index.py; here the kept
documents are compared once more, byte for byte.
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
from corpora import corpus, texts_of, write_corpus
from measuring import (
    NEARDUP,
    Section,
    measure,
    note,
    run_sections,
    summarize,
    table,
    time_call,
    time_quantiles,
    warm_up,
)

import neardup as nd

ADDED = 10_000


def query_times(index: Any, texts: list[str], k: int | None = None) -> dict[str, float]:
    """Return the CPU microseconds that questions take, one by one: the machine may be busy with other things."""
    times = []
    for text in texts:
        begin = time.thread_time()
        index.query(text, k)
        times.append(time.thread_time() - begin)
    return time_quantiles(times, 1e6)


def replace_words(text: str, every: int) -> str:
    """Return a text in which one word of so many is another one."""
    words = text.split()
    words[every // 2 :: every] = [f"edited{at}" for at in range(len(words[every // 2 :: every]))]
    return " ".join(words)


def of_archive(archive: Path, delivery: Path, folder: Path, runs: int, questions: int) -> dict[str, Any]:
    """Return what an archive costs as an index."""
    place = folder / "index"
    builds = []
    for _ in range(runs):
        shutil.rmtree(place, ignore_errors=True)
        builds.append(measure([*NEARDUP, "index", "build", archive, "-o", place, "--threads", "2"]))
    index = nd.open_index(place)
    found: dict[str, Any] = {"archive": archive.stem, **index.info, "build": summarize(builds)}
    index.query("the kernels are loaded before any clock runs")
    found["open"] = time_quantiles([time_call(lambda: nd.open_index(place))[1] for _ in range(20)], 1e3)
    enough = [text for text in islice(texts_of(delivery), 4 * questions) if len(text) > 60]
    old = [text for text in islice(texts_of(archive), 20 * questions) if len(text) > 60]
    drawn = random.Random(1)  # noqa: S311
    for name, texts in (("new", enough), ("old", old)):
        found[name] = query_times(index, drawn.sample(texts, min(questions, len(texts))))
    few = drawn.sample(old, min(questions // 20, len(old)))
    for every in (16, 8):
        found[f"nearest, every {every}"] = query_times(index, [replace_words(text, every) for text in few], 1)
    found["nearest, backwards"] = query_times(index, [text[::-1] for text in few[:10]], 1)
    outputs = [folder / "index.jsonl", folder / "files.jsonl"]
    for name, reference, output in zip(("by_index", "by_files"), (place, archive), outputs, strict=True):
        command = [*NEARDUP, "dedup", delivery, "--against", reference, "-o", output, "--threads", "2", "--force"]
        found[name] = summarize([measure(command) for _ in range(runs)])
    if outputs[0].read_bytes() != outputs[1].read_bytes():
        raise SystemExit(f"the answers over {archive.stem} differ")
    some = folder / "some.parquet"
    part = pq.read_table(delivery).slice(0, ADDED).select(["text"])
    pq.write_table(part.append_column("id", [[f"added-{at}" for at in range(len(part))]]), some)
    kind = ["--ids", "rows"] if index.manifest.ids == "rows" else []
    if index.manifest.ids == "int64":
        pq.write_table(part.append_column("id", [list(range(1 << 40, (1 << 40) + len(part)))]), some)
    found["add"] = summarize([measure([*NEARDUP, "index", "add", place, some, "--threads", "2", *kind])])
    return found


def disk_index(args: argparse.Namespace) -> dict[str, Any]:
    """Return what each archive costs."""
    if args.small:
        words = [[f"{word}{at} {at * n}" for at in range(40)] for n, word in enumerate("abcdefgh" * 50)]
        texts = [" ".join(own) for own in words]
        archives, delivery = [write_corpus("archive", texts)], write_corpus("delivery", texts[::2] + texts[:3])
    else:
        archives, delivery = [corpus(name) for name in args.archives.split(",")], corpus(args.delivery)
    warm_up()
    rows = []
    for archive in archives:
        note(archive.stem)
        with tempfile.TemporaryDirectory() as folder:
            rows.append(of_archive(archive, delivery, Path(folder), args.runs, 100 if args.small else 2000))
    return {"delivery": delivery.stem, "rows": rows}


def costs(results: dict[str, Any]) -> str:
    """Return what each archive costs."""
    header = ["archive", "documents", "texts MB", "index, of the texts", "build CPU s", "MB a CPU s", "open CPU ms"]
    header += ["a new text, median CPU µs", "p99", "an old text, median CPU µs", "p99", "add 10,000, CPU s"]
    header += [f"nearest, {of}, median CPU ms" for of in ("every 16th word edited", "every 8th", "shares nothing")]
    header += [f"{results['delivery']} against the index, CPU s", "against the files, CPU s"]
    rows = []
    for row in results["rows"]:
        size = row["text_bytes"] / 1e6
        rows.append(
            [
                *(row["archive"], f"{row['documents']:,}", f"{size:.0f}", f"{row['bytes'] / row['text_bytes']:.0%}"),
                *(f"{row['build']['cpu_s']:.1f}", f"{size / row['build']['cpu_s']:.0f}", row["open"]["median"]),
                *(f"{row[which][of]:.0f}" for which in ("new", "old") for of in ("median", "p99")),
                f"{row['add']['cpu_s']:.1f}",
                *(f"{row[f'nearest, {of}']['median'] / 1000:.1f}" for of in ("every 16", "every 8", "backwards")),
                *(f"{row[which]['cpu_s']:.1f}" for which in ("by_index", "by_files")),
            ]
        )
    return table(header, rows)


if __name__ == "__main__":

    def options(parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--archives", default="N100k,N500k", help="prepared corpora, by name")
        parser.add_argument("--delivery", default="R20k", help="what is new")

    run_sections(__doc__, {"disk-index": Section(disk_index, {"disk-index": costs})}, options)
