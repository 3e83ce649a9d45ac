"""Does the cost grow with the corpus and no faster? CPU time a document, whole process.

growth.py [--corpora N100k N500k] [--runs 3]
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from corpora import corpus
from measuring import JOB, NEARDUP, RESULTS, machine, measure, note, save, summarize, table, warm_up

#: How much dearer a document may become from the first corpus to the last.
ALLOWED = 1.3


def grow(names: list[str], runs: int) -> dict[str, Any]:
    """Measure every corpus, in turn."""
    files = {name: corpus(name) for name in names}
    where, taken = machine(), {name: [] for name in names}  # type: dict[str, Any], dict[str, list[Any]]
    said: dict[str, Any] = {}
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder, "summary.json")
        for number in range(runs):
            for name, file in files.items():
                note(f"{name}, run {number + 1} of {runs}")
                out = Path(folder, "out.parquet")
                taken[name].append(measure([*NEARDUP, "dedup", file, "-o", out, "--summary", summary, *JOB]))
                said[name] = json.loads(summary.read_text("utf-8"))
    rows = []
    for name in names:
        figures = summarize(taken[name])
        documents = said[name]["documents"]
        rows.append(
            {"corpus": name, "documents": documents, "text_mb": round(said[name]["text_bytes"] / 1e6, 1)}
            | figures
            | {
                "cpu_us_a_document": round(1e6 * figures["cpu_s"] / documents, 2),
                "stages": said[name]["stages"],
            }
        )
    ratio = round(rows[-1]["cpu_us_a_document"] / rows[0]["cpu_us_a_document"], 3)
    return {"machine": where, "rows": rows, "ratio": ratio, "allowed": ALLOWED}


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows = [
        [r["corpus"], f"{r['documents']:,}", r["text_mb"], r["cpu_s"], r["wall_s"], r["cpu_us_a_document"]]
        for r in results["rows"]
    ]
    found = table(["corpus", "documents", "text MB", "CPU s", "wall s", "CPU µs a document"], rows)
    ratio, allowed = results["ratio"], results["allowed"]
    return f"{found}\n\nFrom first to last the time a document grows by {ratio}; allowed is {allowed}."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=["N100k", "N500k"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--out", type=Path, default=RESULTS / "growth.json")
    options = parser.parse_args()
    results = grow(options.corpora, options.runs)
    save(options.out, "growth", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
