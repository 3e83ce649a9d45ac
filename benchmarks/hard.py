"""Measure corpora made to hurt: the time a document must stay the same as they grow.

hard.py [--scale 1.0] [--runs 1]

copies       N copies of ten documents
footer       N documents of 130-300 words of their own and one footer of 300 words
near-copies  N copies of one document with one or two words changed: N (N - 1) / 2 pairs match, and where
             they are too many, only those of dropped texts with kept ones are found (--pairs-per-document)
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from corpora import made, near_copies, one_footer, ten_documents
from measuring import (
    JOB,
    NEARDUP,
    RESULTS,
    CommandFailedError,
    machine,
    measure,
    note,
    save,
    summarize,
    table,
    warm_up,
)

CASES = {
    "copies": (ten_documents, [50_000, 100_000, 200_000]),
    "footer": (one_footer, [50_000, 100_000, 200_000]),
    "near-copies": (near_copies, [2_500, 5_000, 10_000, 20_000]),
}


def hurt(scale: float, runs: int) -> dict[str, Any]:
    """Measure every case at its sizes; a run that fails is a result too."""
    where, rows = machine(), []
    warm_up()
    for case, (make, sizes) in CASES.items():
        for size in (int(scale * full) for full in sizes):
            file = made(f"{case}-{size}", make(size))
            note(f"{case}, {size:,} documents")
            row: dict[str, Any] = {"case": case, "documents": size}
            with tempfile.TemporaryDirectory() as folder:
                out, summary = Path(folder, "out.parquet"), Path(folder, "summary.json")
                command = [*NEARDUP, "dedup", file, "-o", out, "--summary", summary, *JOB]
                try:
                    figures = summarize([measure(command) for _ in range(runs)])
                except CommandFailedError as error:
                    rows.append(row | {"failed": str(error).splitlines()[-1]})
                    continue
                said = json.loads(summary.read_text("utf-8"))
            row |= {
                "pairs": said["pairs"],
                "all_pairs": said["all_pairs"],
                "kept": said["kept"],
                "candidates": said["search"]["candidates"],
            }
            rows.append(row | figures | {"cpu_us_a_document": round(1e6 * figures["cpu_s"] / size, 1)})
    return {"machine": where, "rows": rows}


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows = [
        [
            r["case"],
            f"{r['documents']:,}",
            *(
                [
                    f"{r['pairs']:,}",
                    "yes" if r["all_pairs"] else "no",
                    f"{r['kept']:,}",
                    r["cpu_s"],
                    r["wall_s"],
                    r["pss_mb"],
                    r["cpu_us_a_document"],
                ]
                if "failed" not in r
                else ["failed", r["failed"], "", "", "", "", ""]
            ),
        ]
        for r in results["rows"]
    ]
    header = [
        "case",
        "documents",
        "pairs",
        "all of them",
        "kept",
        "CPU s",
        "wall s",
        "peak PSS MB",
        "CPU µs a document",
    ]
    return table(header, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1.0, help="factor on all sizes")
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "hard.json")
    options = parser.parse_args()
    results = hurt(options.scale, options.runs)
    save(options.out, "hard", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
