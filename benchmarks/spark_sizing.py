"""A billion documents on a hundred workers, on paper: each figure by a formula from what spark.py measured.

    spark_sizing.py [--documents 1e9] [--bytes 5000] [--workers 100] [--cores 16] [--memory 64] [--in FILE]

Prints the tables of docs/spark-sizing.md for other numbers than the page has; those of the page are renewed by
tables.py.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np
from measuring import RESULTS, table
from spark_tables import RECALL, THRESHOLD, cell_of, corpora_of, row_of

from neardup.search.lsh import bands_for
from neardup.spark.candidates import ENTRY
from neardup.spark.search import Settings

#: Bytes that a document has in the stage features besides its features: row, marks, sizes, and where they begin.
FIXED = 48
#: Bytes of a candidate: two rows.
PAIR = 16
#: Fewest and most bits of a sketch, and the rows that are sent to all rather than that sets travel to meet them.
FEWEST_BITS, MOST_BITS, FEW_ROWS = 512, 8192, 4_000_000
ENTRY_BYTES = sum(np.dtype(kind).itemsize for kind in ENTRY)
#: Copies of the entries of a part that a worker holds at a time: what came, joined, sorted, and in pieces.
COPIES = 4
#: Bytes of an edge in the rounds of keepers, and how often one travels: three joins a round, and half of them are
#: decided in each.
EDGE, TRAVELS = 24, 6
#: The stages whose work grows with the bytes of texts; that of the others grows with documents, or as ``_work`` says.
BY_TEXT = ("documents", "features", "counts", "sketched", "sketched-routes", "pairs")


@dataclass(frozen=True)
class Given:
    """What is to be done, and with what."""

    documents: float = 1e9
    bytes: float = 5000
    workers: int = 100
    cores: int = 16
    memory_gb: float = 64
    network_gb: float = 1.25
    disk_gb: float = 1.0
    core_mb: float = 100
    parts: int = 16_000


class Measured:
    """What a search took on the cluster, on the largest corpus, and how it grew from the smallest one."""

    def __init__(self, results: dict[str, Any], search: str) -> None:
        names = corpora_of(results)
        row, first = (row_of(results, name, "cluster", search) for name in (names[-1], names[0]))
        if row is None or first is None:
            raise SystemExit(f"the cluster was not measured with search {search}")
        cell, before = (cell_of(results, name, "cluster", search) for name in (names[-1], names[0]))
        large, small = cell["counted"], before["counted"]
        self.corpus, self.small = names[-1], names[0]
        self.documents, self.text = row["documents"], row["text_bytes"]
        self.stages = {stage["name"]: stage for stage in row["stages"]}
        self.features = (self.stages["features"]["bytes"] - FIXED * self.documents) / 8
        self.entries = large["entries"]
        self.entry_bytes = self.stages["candidates"]["shuffle_bytes"] / max(self.entries, 1)
        self.candidates = large["raw_candidates"] / self.documents
        ratio = self.candidates * first["documents"] / max(small["raw_candidates"], 1)
        self.grows = log(ratio) / log(self.documents / first["documents"]) if ratio > 0 and first is not row else 0.0
        self.routes = large["in_candidates"] / self.documents
        self.sent = large["features_sent"] / self.documents
        self.pairs = large["pairs"] / self.documents
        self.copies = 1 - large["distinct_sets"] / self.documents
        self.python_mb = cell["largest_mb"].get("python", 0.0)


@dataclass(frozen=True)
class Sized:
    """What a search would take.

    Attributes
    ----------
    rows : list
        What, its formula, its value.
    work_s : dict
        Seconds of one core for each stage.
    """

    rows: list[tuple[str, str, str]]
    work_s: dict[str, float]


def sized(results: dict[str, Any], search: str, given: Given) -> Sized:
    """Put the formulas together; sizes are bytes."""
    own, exact = Measured(results, search), search == "exact"
    n, cores = given.documents, given.workers * given.cores
    m = own.features / own.text * given.bytes
    counts = float(1 << Settings().count_bits) if exact else 0.0
    entries = (1 - THRESHOLD) * m + 1 if exact else float(bands_for(THRESHOLD, RECALL, 256).bands)
    bits = min(max(1 << (int(8 * m) // 2).bit_length(), FEWEST_BITS), MOST_BITS)
    listed, pairs = n * own.candidates, n * own.pairs
    known = sum(own.stages[name].get("shuffle_bytes", 0) for name in ("repeated", "equal"))
    # Counts, entries, sketches and features are made of sets: each reads them all.
    passes = 4 if exact else 3
    # They travel where the rows to leave out, or (for the last two) those to pick, are too many to be sent to all.
    moved = passes if n * own.copies > FEW_ROWS else 2 if n * own.routes > FEW_ROWS else 0
    shuffled = {
        "entries": n * entries * own.entry_bytes,
        "candidates": 2 * PAIR * listed,
        "sketches": n * own.routes * (bits / 8 + 32),
        "features": n * own.sent * 8 * m,
        "rounds": TRAVELS * EDGE * pairs,
        "marks": n * known / own.documents,
        "counts": cores * counts,
        "moved": moved * 8 * n * m,
        "texts": n * given.bytes,
    }
    total = sum(shuffled.values())
    work = {
        name: stage["worker_s"] * _work(name, own, given, entries, m)
        for name, stage in own.stages.items()
        if "worker_s" in stage
    }
    # What the corpus that was measured is too small for: there, rows were sent to all in the place of it.
    work["sets and texts that travel"] = (shuffled["moved"] + shuffled["texts"]) / (1e6 * given.core_mb)
    stages = n * (8 * m + FIXED) + PAIR * listed + 2 * EDGE * pairs
    task = 1e6 * own.python_mb + counts + COPIES * n * entries * ENTRY_BYTES / given.parts
    busy = {
        "processors": sum(work.values()) / cores / 3600,
        "network": total / (given.workers * given.network_gb * 1e9) / 3600,
        "disks": (n * given.bytes + stages + passes * 8 * n * m + 2 * total)
        / (given.workers * given.disk_gb * 1e9)
        / 3600,
    }
    grown = listed * (n / own.documents) ** own.grows
    table_ = "2^count_bits + " if exact else ""

    def share(name: str) -> str:
        part = shuffled[name] / total
        return f"{_size(shuffled[name])}, {100 * part:.0f} %" if part >= 0.005 else _size(shuffled[name])

    rows = [
        ("features a document, m", "L F / T", f"{m:,.0f}"),
        ("all features", "8 n m", _size(8 * n * m)),
        ("entries a document, e", "(1 - t) m + 1, a whole prefix" if exact else "bands", f"{entries:,.0f}"),
        ("candidates listed, c", f"{own.candidates:.2f} n", f"{listed:,.0f}"),
        ("c, if it goes on growing", f"{own.candidates:.2f} n (n / n0)^{own.grows:.2f}", f"{grown:,.0f}"),
        ("shuffled: entries", f"{own.entry_bytes:.1f} n e", share("entries")),
        ("shuffled: candidates", f"2 x {PAIR} c", share("candidates")),
        ("shuffled: sketches of s bits", f"{own.routes:.2f} n (s / 8 + 32), s = {bits}", share("sketches")),
        ("shuffled: features to verify", f"{own.sent:.2f} n x 8 m", share("features")),
        ("shuffled: pairs, keepers in rounds", f"{TRAVELS} x {EDGE} x {own.pairs:.3f} n", share("rounds")),
        ("shuffled: ids and marks", f"{known / own.documents:.0f} n", share("marks")),
        ("shuffled: tables of counts", "cores x 2^count_bits" if exact else "none", share("counts")),
        ("shuffled: sets, to leave copies out", f"{moved} x 8 n m", share("moved")),
        ("shuffled: texts, to leave the dropped out", "n L", share("texts")),
        ("**shuffled, all**", "", f"**{_size(total)}**"),
        ("shuffled, a document", "", f"{total / n:,.0f} B"),
        (
            "disk for shuffles, a machine",
            "all / machines, if none is removed before the end",
            _size(total / given.workers),
        ),
        ("stages on the shared store", f"n (8 m + {FIXED}) + {PAIR} c + {2 * EDGE} pairs", _size(stages)),
        ("worker hours, one core each", "below", f"{sum(work.values()) / 3600:,.0f}"),
        ("time of the processors", "worker hours / cores", _time(busy["processors"])),
        ("time of the network", "shuffled / network", _time(busy["network"])),
        ("time of the disks", f"(n L + stages + {passes} x 8 n m + 2 shuffled) / disks", _time(busy["disks"])),
        ("**one after the other**", "", f"**{_time(sum(busy.values()))}**"),
        ("memory of a Python worker", f"measured + {table_}{COPIES} x {ENTRY_BYTES} n e / parts", _size(task)),
        ("of all on a machine", "x its cores", _size(task * given.cores)),
    ]
    return Sized(rows, work)


def _work(name: str, own: Measured, given: Given, entries: float, m: float) -> float:
    """Return how many times the work of a stage grows."""
    if name == "candidates":
        by_entries = given.documents * entries / max(own.entries, 1)
        return float(max(by_entries, given.documents * m / own.features))
    by = given.documents * given.bytes / own.text if name in BY_TEXT else given.documents / own.documents
    return float(by)


def _size(value: float) -> str:
    for unit, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if value >= unit:
            return f"{value / unit:,.1f} {name}"
    return f"{value / 1e3:,.1f} kB" if value else "0"


def _time(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"


def given_table(results: dict[str, Any], given: Given | None = None) -> str:
    """Return what goes into the formulas as Markdown."""
    given = given or Given()
    own = Measured(results, "exact")
    rows: list[list[object]] = [
        ["n", "documents", f"{given.documents:,.0f}", "assumed"],
        ["L", "bytes a document", f"{given.bytes:,.0f}", "assumed"],
        ["", "machines for the work", given.workers, "assumed"],
        ["", "cores of each", given.cores, "assumed"],
        ["", "memory of each", f"{given.memory_gb:.0f} GB", "assumed"],
        ["", "network of each", f"{given.network_gb} GB/s (10 Gbit/s)", "assumed"],
        ["", "disk of each, for shuffles", f"{given.disk_gb:.0f} GB/s", "assumed"],
        ["", "bytes that a core sorts and shuffles in a second", f"{given.core_mb:.0f} MB", "assumed"],
        ["parts", "`Settings(partitions=...)`", f"{given.parts:,}", "chosen"],
        ["t", "threshold (`default` recipe)", THRESHOLD, "chosen"],
        ["n0", f"documents of {own.corpus}", f"{own.documents:,}", "measured"],
        ["T", "their text", _size(own.text), "measured"],
        ["F", "their features", f"{own.features:,.0f}", "measured"],
        ["", "copies among them", f"{own.copies:.2%}", "measured"],
        ["", "largest Python worker", f"{own.python_mb:,.0f} MB", "measured"],
    ]
    return table(["", "what", "value", ""], rows)


def as_table(results: dict[str, Any], given: Given | None = None) -> str:
    """Return what exact search and LSH would take as Markdown."""
    both = [sized(results, search, given or Given()) for search in ("exact", "lsh")]
    rows: list[list[object]] = []
    for (what, formula, exact), (_, other, lsh) in zip(both[0].rows, both[1].rows, strict=True):
        rows.append([what, formula, exact, other if other != formula else "the same", lsh])
    return table(["", "exact search", "", "LSH", ""], rows)


def work_table(results: dict[str, Any], given: Given | None = None) -> str:
    """Return the worker hours of each stage as Markdown."""
    given = given or Given()
    found = {search: sized(results, search, given) for search in ("exact", "lsh")}
    own = {search: Measured(results, search) for search in found}
    names = list(dict.fromkeys([*found["exact"].work_s, *found["lsh"].work_s]))
    rows: list[list[object]] = []
    for name in names:
        line: list[object] = [name]
        for search, one in found.items():
            stage = own[search].stages.get(name)
            measured = "" if stage is None else f"{stage['worker_s']:.1f}"
            line += [measured, f"{one.work_s[name] / 3600:,.0f}" if name in one.work_s else ""]
        rows.append(line)
    rows.append(["all", *(v for s in found.values() for v in ("", f"{sum(s.work_s.values()) / 3600:,.0f}"))])
    corpus = own["exact"].corpus
    return table(
        ["stage", f"exact, {corpus}: worker s", "worker hours", f"LSH, {corpus}: worker s", "worker hours"], rows
    )


def driver_table(results: dict[str, Any], given: Given | None = None) -> str:
    """Return what the driver holds as Markdown."""
    given = given or Given()
    own, settings = Measured(results, "exact"), Settings()
    n = given.documents
    company = min(2 * own.pairs + 2 * own.copies, 1.0) * n
    both = [
        ("the table of counts, and as it travels", "2 x 2^count_bits", 2 << settings.count_bits),
        ("pairs that it decides itself, at most", "100 x driver_pairs", 100 * settings.driver_pairs),
        (f"rows that it sends to all, {FEW_ROWS:,} at most", f"100 x {FEW_ROWS:,}", 100 * FEW_ROWS),
    ]
    rows = [[what, formula, _size(value), _size(value)] for what, formula, value in both]
    rows += [
        ["which rows are bad, and which stay", "2 n", "", _size(2 * n)],
        ["documents in company", "100 x min(2 pairs + 2 copies, n)", "", _size(100 * company)],
        ["the texts, once more, 200 MB/s", "n L / 200 MB/s", "", _time(n * given.bytes / 2e8 / 3600)],
    ]
    return table(["what the driver holds or does", "formula", "`neardup.spark.dedup`", "the command line"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=float, default=1e9)
    parser.add_argument("--bytes", type=float, default=5000)
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--cores", type=int, default=16)
    parser.add_argument("--memory", type=float, default=64)
    parser.add_argument("--in", dest="file", type=Path, default=RESULTS / "spark.json")
    asked = parser.parse_args()
    results = json.loads(asked.file.read_text("utf-8"))
    given = Given(asked.documents, asked.bytes, asked.workers, asked.cores, asked.memory)
    for made in (given_table, as_table, work_table, driver_table):
        print(made(results, given), end="\n\n")


if __name__ == "__main__":
    main()
