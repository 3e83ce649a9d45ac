"""Does a trained classifier beat the best threshold on one measure? On pairs that were labelled by hand.

    learned.py [learned] [--corpora msrp clough reuters reuters-titles] [--small]

Both are chosen on the same training folds and judged on the same other folds, as ``neardup train`` does it; intervals
are those of its bootstrap. Documents of msrp are sentences, so it gets the measures that are for those.

    msrp     sentence pairs; the training part
    clough   short answers and the articles they were or were not copied from; levels 1 to 3 count as copied
    reuters  pairs of newswire items that were judged in the labelling page (benchmarks/labels); by the texts alone, and
             with titles and times beside them
"""

from __future__ import annotations

import argparse
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from measuring import HERE, SHARED, Section, measured, note, table

import neardup as nd

DATA = SHARED / "data"
#: In the order of the table that older results have.
HEADER = ["corpus", "pairs", "duplicates", "learned: F1", "precision", "recall", "best threshold", "its F1"]


class Case(NamedTuple):
    """A corpus, its labels, and what ``train`` is asked for."""

    corpus: str
    labels: Path
    options: dict[str, Any]


CASES = {
    "msrp": Case(
        "msrp/msrp.jsonl.gz",
        DATA / "msrp" / "pairs.csv",
        {"only": "split=train", "vector": "short", "candidate_rule": "jaccard(words:1) >= 0.1"},
    ),
    "clough": Case(
        "clough/clough.jsonl",
        DATA / "clough" / "pairs.csv",
        {"label_column": "level", "positive": 1, "candidate_rule": "jaccard(words:1) >= 0.05"},
    ),
    "reuters": Case("reuters/reuters.jsonl.gz", HERE / "labels" / "reuters.csv", {}),
    "reuters-titles": Case(
        "reuters/reuters.jsonl.gz",
        HERE / "labels" / "reuters.csv",
        {"vector": "default, title, hours_apart", "title_column": "title", "time_column": "timestamp"},
    ),
}


def documents_of(case: Case) -> pa.Table:
    """Return the documents of a corpus, with the columns that are compared."""
    path = DATA / case.corpus
    content = path.read_bytes()
    rows = [json.loads(line) for line in (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()]
    columns = ["id", "text", *(case.options[key] for key in ("title_column", "time_column") if key in case.options)]
    return pa.table({name: [str(row[name]) for row in rows] for name in columns})


def learned(given: argparse.Namespace) -> dict[str, Any]:
    """Train on each corpus."""
    rows = []
    for name in given.corpora or (["clough"] if given.small else list(CASES)):
        note(name)
        case = CASES[name]
        found = nd.train(documents_of(case), str(case.labels), **case.options)
        rows.append({"corpus": name} | {key: value for key, value in found.summary.items() if key != "wrong"})
    return {"rows": rows}


def learned_table(results: dict[str, Any]) -> str:
    """Return the trained classifier beside the best threshold."""
    rows = []
    for r in results["rows"]:
        figures, threshold, gain = r["figures"], r["threshold"], r["gain"]
        ahead = interval(gain["difference"]) + ("" if gain["beyond_chance"] else ", within chance")
        values = [f"{figures[name]['value']:.3f}" for name in ("precision", "recall")]
        counts = [f"{r['pairs']:,}", f"{r['duplicates']:,}"]
        of_threshold = [threshold["at"], interval(threshold["f1"])]
        rows.append([r["corpus"], *counts, interval(figures["f1"]), *values, *of_threshold, ahead])
    return table([*HEADER, "learned is ahead by"], rows)


def interval(figure: dict[str, float | None]) -> str:
    """Return a figure with its interval."""
    if figure["value"] is None:
        return "none"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


if __name__ == "__main__":
    measured(
        __doc__,
        {"learned": Section(learned, {"learned": learned_table})},
        lambda parser: parser.add_argument("--corpora", nargs="+", choices=list(CASES)),
    )
