"""How much memory a run takes, as a multiple of the text, and whether less memory gives the same bytes.

memory.py [--corpora N100k N500k] [--budgets 2GB 500MB] [--runs 1]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

from corpora import corpus
from measuring import JOB, NEARDUP, RESULTS, machine, measure, note, save, summarize, table, warm_up

#: The peak may be this many times the bytes of the text.
ALLOWED = 3.0


def compare(names: list[str], budgets: list[str], runs: int) -> dict[str, Any]:
    """Measure every corpus without a budget and with each."""
    where, rows = machine(), []
    warm_up()
    for name in names:
        file, plain = corpus(name), ""
        for budget in ["", *budgets]:
            note(f"{name}, memory {budget or 'as it likes'}")
            with tempfile.TemporaryDirectory() as folder:
                out, summary = Path(folder, "out.parquet"), Path(folder, "summary.json")
                asked = ["--memory", budget] if budget else []
                command = [*NEARDUP, "dedup", file, "-o", out, "--summary", summary, *JOB, *asked]
                figures = summarize([measure(command) for _ in range(runs)])
                digest = hashlib.sha256(out.read_bytes()).hexdigest()
                said = json.loads(summary.read_text("utf-8"))
            plain = plain or digest
            row = {
                "corpus": name,
                "documents": said["documents"],
                "text_mb": round(said["text_bytes"] / 1e6, 1),
            }
            row |= {
                "budget": budget or None,
                "spilled_mb": round(said["search"]["spilled_bytes"] / 1e6, 1),
            } | figures
            row |= {
                "times_the_text": round(figures["pss_mb"] / row["text_mb"], 2),
                "same_bytes": digest == plain,
            }
            rows.append(row)
    return {"machine": where, "rows": rows, "allowed": ALLOWED}


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows = [
        [
            r["corpus"],
            r["text_mb"],
            r["budget"] or "none",
            r["pss_mb"],
            r["rss_mb"],
            r["times_the_text"],
            r["spilled_mb"],
            "yes" if r["same_bytes"] else "NO",
            r["cpu_s"],
            r["wall_s"],
        ]
        for r in results["rows"]
    ]
    header = [
        "corpus",
        "text MB",
        "--memory",
        "peak PSS MB",
        "peak RSS MB",
        "PSS / text",
        "spilled MB",
        "same bytes",
    ]
    return f"{table([*header, 'CPU s', 'wall s'], rows)}\n\nAllowed: {results['allowed']} times the text."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpora", nargs="+", default=["N100k", "N500k"])
    parser.add_argument("--budgets", nargs="*", default=["2GB", "500MB"])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "memory.json")
    options = parser.parse_args()
    results = compare(options.corpora, options.budgets, options.runs)
    save(options.out, "memory", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
