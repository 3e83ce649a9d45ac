"""Reuters of 26 February to 7 April 1987 as a flow: replayed with the recipe ddd, and every pair compared plainly.

reuters_flow.py [--judge FOLDER]

The plain side cuts normal forms into 4-grams by slicing strings and counts what two documents share by a product of
sparse matrices. Both compare each item with the originals of the 24 hours before it. With ``--judge`` fifty of the
stopped items, drawn by a fixed seed, go to stopped.json in that folder with both texts, for a person to read: Reuters
texts are not ours to keep in this project.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from measuring import NEARDUP, RESULTS, SHARED, machine, measure, note, save
from scipy.sparse import csr_array

SOURCE = SHARED / "data" / "reuters" / "reuters.jsonl.gz"
FIRST, BEHIND = "1987-02-26", "1987-04-08"
WINDOW = timedelta(hours=24)
#: docq at or above 7/10, as whole numbers.
TIMES, OF = 10, 7
SEED, DRAWN = 20260612, 50
_BLOCK = 256

Row = dict[str, Any]
#: For each item the original that it repeats and the similarity; None for an original.
Found = list[tuple[str, float] | None]


def items() -> list[Row]:
    """Return the items of these days in order of time."""
    with gzip.open(SOURCE, "rt", encoding="utf-8") as file:
        rows = [row for row in map(json.loads, file) if FIRST <= row["timestamp"] < BEHIND]
    return sorted(rows, key=lambda row: moment(row))


def moment(row: Row) -> datetime:
    """Return when an item came."""
    return datetime.fromisoformat(row["timestamp"]).replace(tzinfo=UTC)


def grams(text: str) -> set[str]:
    """Return the 4-grams of the normal form, letters and digits alone; a shorter text is one gram."""
    form = "".join(filter(str.isalnum, text))
    return {form[at : at + 4] for at in range(max(len(form) - 3, 1))} - {""}


def plain(rows: Sequence[Row]) -> Found:
    """Return what each item repeats, by comparing it with everything in its window."""
    numbers: dict[str, int] = {}
    sets = [[numbers.setdefault(gram, len(numbers)) for gram in grams(row["text"])] for row in rows]
    sizes = np.array([len(one) for one in sets])
    ends = np.concatenate([[0], np.cumsum(sizes)])
    columns = np.array([number for one in sets for number in one], np.int64)
    matrix = csr_array((np.ones(len(columns), np.int32), columns, ends), (len(rows), len(numbers)))
    times = [moment(row) for row in rows]
    found: Found = []
    original = np.zeros(len(rows), np.bool_)
    begin = 0
    for low in range(0, len(rows), _BLOCK):
        high = min(low + _BLOCK, len(rows))
        while times[low] - times[begin] > WINDOW:
            begin += 1
        shared = (matrix[low:high] @ matrix[begin:high].T).toarray()
        for at in range(low, high):
            best = None
            overlap = shared[at - low, : at - begin]
            fits = original[begin:at] & (TIMES * overlap >= OF * np.maximum(sizes[at], sizes[begin:at]))
            for place in np.flatnonzero(fits & (sizes[at] > 0)).tolist():
                other = begin + place
                similarity = int(overlap[place]) / int(max(sizes[at], sizes[other]))
                if times[at] - times[other] <= WINDOW and (best is None or similarity > best[1]):
                    best = rows[other]["id"], similarity
            original[at] = best is None
            found.append(best)
    return found


def replayed(rows: Sequence[Row], folder: Path) -> tuple[Found, Row]:
    """Return the same by the command, which is given the items in the order of their ids, and what it took."""
    corpus, verdicts = folder / "reuters.jsonl", folder / "verdicts.jsonl"
    listed = sorted(rows, key=lambda row: int(row["id"]))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in listed), encoding="utf-8")
    run = measure([*NEARDUP, "replay", corpus, "--recipe", "ddd", "-o", verdicts])
    by_id = {line["id"]: line for line in map(json.loads, verdicts.read_text("utf-8").splitlines())}
    found = [by_id[row["id"]] for row in rows]
    return (
        [None if line["kind"] == "original" else (line["of"], line["similarity"]) for line in found],
        {"wall_s": round(run.wall, 2), "cpu_s": round(run.cpu, 2), "exact": sum(f["kind"] == "exact" for f in found)},
    )


def drawn(rows: Sequence[Row], found: Found) -> list[Row]:
    """Return some of the stopped items with what they repeat, the same ones every time."""
    by_id = {row["id"]: row for row in rows}
    stopped = [(row, one) for row, one in zip(rows, found, strict=True) if one is not None]
    chosen = random.Random(SEED).sample(stopped, min(DRAWN, len(stopped)))  # noqa: S311
    return [{"similarity": one[1], "stopped": row, "of": by_id[one[0]]} for row, one in chosen]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="write fifty stopped items there, to be read")
    parser.add_argument("--out", type=Path, default=RESULTS / "reuters_flow.json")
    options = parser.parse_args()
    where, rows = machine(), items()
    note(f"{len(rows):,} items, all pairs")
    expected = plain(rows)
    note("replay")
    with tempfile.TemporaryDirectory() as folder:
        found, cost = replayed(rows, Path(folder))
    differing = [row["id"] for row, one, other in zip(rows, expected, found, strict=True) if one != other]
    stopped = sum(one is not None for one in expected)
    counts = {"items": len(rows), "duplicates": stopped, "agreeing": len(rows) - len(differing)}
    save(options.out, "reuters_flow", {"machine": where, **counts, **cost, "differing": differing[:20]})
    print(f"{counts['agreeing']:,} of {len(rows):,} verdicts agree with the plain comparison, item for item")
    print(f"{stopped:,} duplicates ({stopped / len(rows):.1%}), {cost['exact']:,} of them byte for byte")
    for name in differing[:20]:
        print(f"differs: {name}")
    if options.judge is not None:
        path = options.judge / "stopped.json"
        path.write_text(json.dumps(drawn(rows, expected), ensure_ascii=False, indent=1), encoding="utf-8")
        print(f"{path}: {min(DRAWN, stopped)} stopped items, to be read")


if __name__ == "__main__":
    main()
