"""The blog's job: exact multiset Jaccard of word 4-grams over 400,000 job adverts; it estimated 8 days.

blog_job.py [--documents 400000] [--runs 1]

The blog's corpus is not public whole: the texts mix the sentences of its 2,499 public adverts to about 1.5 KB
each, one in ten an edited copy of another. Unrelated texts share whole sentences, more than real adverts do.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from corpora import job_adverts, made
from measuring import NEARDUP, RESULTS, SHARED, machine, measure, note, save, summarize, table, warm_up

BLOG_DAYS = 8
BLOG_DOCUMENTS = 400_000


def job(documents: int, runs: int) -> dict[str, Any]:
    """Measure the job."""
    kind = "sentences" if (SHARED / "data" / "adzuna").is_dir() else "words"
    file = made(f"adverts-{kind}-{documents}", job_adverts(documents))
    where = machine()
    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        out, summary = Path(folder, "out.parquet"), Path(folder, "summary.json")
        note(f"{documents:,} adverts")
        command = [
            *NEARDUP,
            "dedup",
            file,
            "-o",
            out,
            "--recipe",
            "jaccard",
            "--threads",
            "2",
            "--summary",
            summary,
        ]
        figures = summarize([measure([*command, "--force"]) for _ in range(runs)])
        said = json.loads(summary.read_text("utf-8"))
    row = {
        "documents": documents,
        "of": kind,
        "text_mb": round(said["text_bytes"] / 1e6, 1),
        "recipe": said["recipe"],
    }
    row |= {"pairs": said["pairs"], "dropped": said["dropped"], "stages": said["stages"]} | figures
    return {"machine": where, "rows": [row], "blog_days": BLOG_DAYS, "blog_documents": BLOG_DOCUMENTS}


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows: list[list[object]] = [
        [
            "the blog's estimate",
            f"{results['blog_documents']:,}",
            "",
            "",
            f"{results['blog_days']} days",
            "",
            "",
        ]
    ]
    rows += [
        [
            "neardup",
            f"{r['documents']:,}",
            r["text_mb"],
            f"{r['pairs']:,}",
            f"{r['wall_s']} s",
            r["cpu_s"],
            r["pss_mb"],
        ]
        for r in results["rows"]
    ]
    return table(["", "documents", "text MB", "pairs", "wall", "CPU s", "peak PSS MB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=BLOG_DOCUMENTS)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=RESULTS / "blog_job.json")
    options = parser.parse_args()
    results = job(options.documents, options.runs)
    save(options.out, "blog_job", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
