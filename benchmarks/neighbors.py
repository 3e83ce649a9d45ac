"""What the three nearest neighbours of some documents cost: 1,000 among 100,000, by several features and measures.

neighbors.py [--corpus N100k] [--documents 1000] [--k 3] [--runs 1] [--only NAME...]

The command reads the corpus, makes features and finds the neighbours; the stages are those of one run in this process.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

from corpora import corpus
from measuring import NEARDUP, RESULTS, machine, measure, note, save, summarize, table

from neardup.documents import open_corpus
from neardup.pipeline.neighbors import Neighbors
from neardup.pipeline.neighbors import neighbors_of as neighbors
from neardup.recipe import Recipe

RECIPES = {
    "words:5 jaccard": {"features": "words:5"},
    "words:1 jaccard": {"features": "words:1"},
    "words:1 tfidf cosine": {"features": "words:1", "weights": "tfidf", "measure": "cosine"},
    "qgrams:4 overlap": {"features": "qgrams:4", "measure": "overlap"},
    "simhash hamming": {"features": "words:1", "signature": "simhash", "measure": "hamming", "threshold": "3"},
}


def recipe_of(choices: dict[str, str]) -> Recipe:
    """Return the recipe that the command takes with these options."""
    values: dict[str, Any] = choices | ({"threshold": float(choices["threshold"])} if "threshold" in choices else {})
    return Recipe(**values)


def compare(name: str, chosen: list[str], documents: int, k: int, runs: int) -> dict[str, Any]:
    """Measure the recipes, one after the other."""
    file, where, rows = corpus(name), machine(), []
    for label in chosen:
        note(label)
        options = [part for key, value in RECIPES[label].items() for part in (f"--{key}", value)]
        found = _in_process(file, RECIPES[label], documents, k)  # compiles, too
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "out.parquet")
            job = ["--first", documents, "--k", k, "--threads", 1, "-o", out, "--force"]
            command = [*NEARDUP, "neighbors", file, *options, *job]
            figures = summarize([measure(command) for _ in range(runs)])
        stages = _in_process(file, RECIPES[label], documents, k).stages
        rows.append(
            {"recipe": label, "documents": found.documents, "asked": found.asked, "k": k, "rows": len(found)}
            | figures
            | {"stages": stages}
        )
    return {"machine": where, "corpus": name, "rows": rows}


def _in_process(file: Path, choices: dict[str, str], documents: int, k: int) -> Neighbors:
    with open_corpus([file]) as opened:
        return neighbors(opened, recipe_of(choices), k, first=documents, threads=1)


def as_table(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    rows: list[list[object]] = []
    for r in results["rows"]:
        seconds = {stage["name"]: stage["wall_s"] for stage in r["stages"]}
        search = seconds.pop("neighbors")
        of = f"{r['asked']:,} of {r['documents']:,}"
        rows.append([r["recipe"], of, r["k"], r["wall_s"], round(sum(seconds.values()), 2), search, r["pss_mb"]])
    return table(["", "documents", "k", "wall s", "reading, features s", "neighbours s", "peak PSS MB"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="N100k")
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--k", type=int, default=3)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(RECIPES), default=list(RECIPES))
    parser.add_argument("--out", type=Path, default=RESULTS / "neighbors.json")
    options = parser.parse_args()
    results = compare(options.corpus, options.only, options.documents, options.k, options.runs)
    save(options.out, "neighbors", results)
    print(as_table(results))


if __name__ == "__main__":
    main()
