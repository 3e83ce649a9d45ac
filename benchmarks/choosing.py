r"""How long a window, which q and which threshold: what a flow of Reuters items stops, and how that agrees with labels.

    choosing.py [windows] [grams] [--out FILE]

    windows  the recipe ddd with windows of an hour to endless: duplicates stopped, documents held, memory of the window
    grams    a window of 24 hours, q of 3 to 8 and thresholds of 0.5 to 0.9, and word 5-grams beside them

Items arrive in order of time and are compared with the originals before them. Nothing is timed. The labels are
computed, not human: all pairs whose word 5-grams have a Jaccard of 0.3 or more. An item ought to be stopped if they
pair it with an item that is older by no more than the window. Sections that are not named stay as they are in the
results.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from arrivals import renew, rows_of
from measuring import RESULTS, SHARED, note, table

from neardup.search.window import Length
from neardup.stream.document import Document, Verdict
from neardup.stream.index import Index

DATA = SHARED / "data" / "reuters"
LABELS = "exact_pairs_w5_j030.csv"
WINDOWS = ("1h", "6h", "12h", "24h", "48h", "7d", "endless")
SHOWN = {"1h": "1 hour", "6h": "6 hours", "12h": "12 hours", "24h": "24 hours", "48h": "48 hours", "7d": "7 days"}
LENGTHS, THRESHOLDS = range(3, 9), (0.5, 0.6, 0.7, 0.8, 0.9)
#: The least Jaccard of pairs that ought to be found.
LEAST = (0.5, 0.8)
DAY = 86_400_000_000
_AT_ONCE = 256

Row = dict[str, Any]
Pairs = dict[tuple[str, str], float]


def items() -> list[Document]:
    """Return all items in order of time."""
    with gzip.open(DATA / "reuters.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    documents = [Document(row["id"], row["text"], row["timestamp"]) for row in rows]
    return sorted(documents, key=lambda document: document.microseconds or 0)


def expected(documents: Sequence[Document], window: int | None) -> dict[float, set[str]]:
    """Return the items that ought to be stopped within some microseconds (None: ever), for each least Jaccard."""
    order = {document.id: place for place, document in enumerate(documents)}
    found: dict[float, set[str]] = {least: set() for least in LEAST}
    with (DATA / LABELS).open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            first, second = sorted((order[row["id1"]], order[row["id2"]]))
            apart = (documents[second].microseconds or 0) - (documents[first].microseconds or 0)
            for least in LEAST:
                if (window is None or apart <= window) and float(row["jaccard_w5"]) >= least:
                    found[least].add(documents[second].id)
    return found


def judged(documents: Sequence[Document], recipe: str, window: str, **choices: Any) -> tuple[list[Verdict], int, int]:
    """Return the verdicts on all items, and the most documents and bytes that the window had."""
    verdicts: list[Verdict] = []
    held = size = 0
    with Index(recipe, window=window, **choices) as index:
        for begin in range(0, len(documents), _AT_ONCE):
            verdicts += index.add_many(documents[begin : begin + _AT_ONCE])
            statistics = index.statistics
            held, size = max(held, statistics.held), max(size, statistics.bytes)
    return verdicts, held, size


def windows() -> list[Row]:
    """Measure what windows of several lengths stop."""
    documents, rows = items(), []
    for window in WINDOWS:
        note(f"ddd, window {window}")
        verdicts, held, size = judged(documents, "ddd", window)
        stopped = {verdict.id for verdict in verdicts if verdict.is_duplicate}
        labelled = stopped & expected(documents, Length.parse(window).value)[0.5]
        exact = sum(verdict.kind == "exact" for verdict in verdicts)
        found = {"stopped": len(stopped), "labelled": len(labelled), "exact": exact}
        rows.append({"window": window, "items": len(verdicts)} | found | {"held": held, "bytes": size})
    return rows


def grams() -> list[Row]:
    """Measure what q-grams of several lengths stop at several thresholds, and word 5-grams beside them."""
    documents = items()
    labels, rows = expected(documents, DAY), []
    ways = [(f"q = {q}", "ddd", {"features": f"qgrams:{q}"}) for q in LENGTHS]
    for name, recipe, choices in [*ways, ("words:5, jaccard", "default", {})]:
        for threshold in THRESHOLDS:
            note(f"{name}, at {threshold}")
            verdicts, _, _ = judged(documents, recipe, "24h", threshold=threshold, **choices)
            stopped = {verdict.id for verdict in verdicts if verdict.is_duplicate}
            agreeing = [
                {"least": least, "expected": len(labels[least]), "both": len(stopped & labels[least])}
                for least in LEAST
            ]
            rows.append({"way": name, "threshold": threshold, "stopped": len(stopped), "agreeing": agreeing})
    return rows


def as_table(results: dict[str, Any]) -> str:
    """Return what windows of several lengths stop, as Markdown."""
    rows = rows_of(results, "windows")
    most = max((row["stopped"] for row in rows), default=1)
    return table(
        [
            "window",
            "duplicates stopped",
            "of those an endless one stops",
            "byte for byte",
            "in the labels (>= 0.5)",
            "most held",
            "memory MB",
        ],
        [
            [
                SHOWN.get(row["window"], row["window"]),
                f"{row['stopped']:,}",
                f"{row['stopped'] / most:.0%}",
                f"{row['exact']:,}",
                f"{row['labelled']:,} ({row['labelled'] / row['stopped']:.0%})",
                f"{row['held']:,}",
                f"{row['bytes'] / 1e6:.1f}",
            ]
            for row in rows
        ],
    )


def stopped_table(results: dict[str, Any]) -> str:
    """Return how many items are stopped within 24 hours, as Markdown."""
    return _by_threshold(results, lambda row: f"{row['stopped']:,}")


def half_table(results: dict[str, Any]) -> str:
    """Return precision and recall by the labels at or above 0.5, as Markdown."""
    return _by_threshold(results, lambda row: _agreement(row, 0.5))


def most_table(results: dict[str, Any]) -> str:
    """Return precision and recall by the labels at or above 0.8, as Markdown."""
    return _by_threshold(results, lambda row: _agreement(row, 0.8))


def _agreement(row: Row, least: float) -> str:
    one = next(one for one in row["agreeing"] if one["least"] == least)
    return f"{one['both'] / max(row['stopped'], 1):.2f} / {one['both'] / one['expected']:.2f}"


def _by_threshold(results: dict[str, Any], cell: Callable[[Row], str]) -> str:
    rows = rows_of(results, "grams")
    ways = dict.fromkeys(row["way"] for row in rows)
    lines = [[way, *(cell(row) for row in rows if row["way"] == way)] for way in ways]
    return table(["", *(f">= {threshold}" for threshold in THRESHOLDS)], lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sections = {"windows": windows, "grams": grams}
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="windows, grams; both by default")
    parser.add_argument("--out", type=Path, default=RESULTS / "choosing.json")
    options = parser.parse_args()
    if unknown := set(options.sections) - set(sections):
        parser.error(f"no section {', '.join(sorted(unknown))}; there are {', '.join(sections)}")
    renew(options.out, "choosing", {name: sections[name] for name in options.sections or sections})


if __name__ == "__main__":
    main()
