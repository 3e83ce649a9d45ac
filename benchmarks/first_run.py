"""How long the first run ever takes, when the kernels are compiled, then the second, and ``neardup --help``.

first_run.py [--runs 3]
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

from corpora import edited_copies, made
from measuring import NEARDUP, RESULTS, Run, machine, measure, note, save, table

#: Seconds that each may take.
ALLOWED = {"first": 15.0, "second": 1.5, "help": 0.3}


def start(runs: int) -> dict[str, Any]:
    """Measure starts with an empty folder for compiled kernels each time."""
    where, file = machine(), made("start-200", islice(edited_copies(1000), 200))
    taken: dict[str, list[Run]] = {name: [] for name in ALLOWED}
    for number in range(runs):
        note(f"run {number + 1} of {runs}")
        with tempfile.TemporaryDirectory() as folder:
            cache = {"NUMBA_CACHE_DIR": folder}
            command = [*NEARDUP, "dedup", file, "-o", Path(folder, "out.parquet"), "--force"]
            taken["first"].append(measure(command, env=cache))
            taken["second"].append(measure(command, env=cache))
            taken["help"].append(measure([*NEARDUP, "--help"], env=cache))
    rows = [
        {
            "start": name,
            "wall_s": round(median(run.wall for run in found), 3),
            "cpu_s": round(median(run.cpu for run in found), 3),
            "allowed_s": ALLOWED[name],
        }
        for name, found in taken.items()
    ]
    return {"machine": where, "rows": rows, "runs": runs}


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    names = {"first": "first run ever", "second": "second run", "help": "--help"}
    rows = [[names[r["start"]], r["wall_s"], r["cpu_s"], r["allowed_s"]] for r in results["rows"]]
    return table(["start", "wall s", "CPU s", "allowed s"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "first_run.json")
    options = parser.parse_args()
    results = start(options.runs)
    save(options.out, "first_run", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
