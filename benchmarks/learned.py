"""A trained classifier beside the best threshold on one measure, on pairs labelled by hand.

    learned.py [learned] [untouched] [--corpora msrp clough reuters reuters-titles] [--small]

Both are chosen on the same training folds and judged on the same test folds, as in ``neardup train``; intervals are
those of its bootstrap. Documents of msrp are sentences, so it uses the measures for sentences.

    msrp     sentence pairs; the training part
    clough   short answers and the articles they may be copied from; levels 1 to 3 count as copied
    reuters  pairs of newswire items judged in the labelling page (benchmarks/labels); reuters-titles also
             compares titles and times

untouched: a classifier trained on the training part of msrp judges its validation part.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from measuring import HERE, SHARED, Section, markdown_table, print_progress, run_sections

import neardup as nd

DATA = SHARED / "data"
LEARNED_HEADER = ["corpus", "pairs", "duplicates", "learned: F1", "precision", "recall", "best threshold", "its F1"]


class TrainingCorpus(NamedTuple):
    """A corpus, its labels, and the options of ``train``."""

    corpus: str
    labels: Path
    options: dict[str, Any]


TRAINING_CORPORA = {
    "msrp": TrainingCorpus(
        "msrp/msrp.jsonl.gz",
        DATA / "msrp" / "pairs.csv",
        {"only": "split=train", "vector": "short", "candidate_rule": "jaccard(words:1) >= 0.1"},
    ),
    "clough": TrainingCorpus(
        "clough/clough.jsonl",
        DATA / "clough" / "pairs.csv",
        {"label_column": "level", "positive": 1, "candidate_rule": "jaccard(words:1) >= 0.05"},
    ),
    "reuters": TrainingCorpus("reuters/reuters.jsonl.gz", HERE / "labels" / "reuters.csv", {}),
    "reuters-titles": TrainingCorpus(
        "reuters/reuters.jsonl.gz",
        HERE / "labels" / "reuters.csv",
        {"vector": "default, title, hours_apart", "title_column": "title", "time_column": "timestamp"},
    ),
}


def load_documents(case: TrainingCorpus) -> pa.Table:
    """Return the documents of a corpus with the compared columns."""
    path = DATA / case.corpus
    content = path.read_bytes()
    rows = [json.loads(line) for line in (gzip.decompress(content) if path.suffix == ".gz" else content).splitlines()]
    columns = ["id", "text", *(case.options[key] for key in ("title_column", "time_column") if key in case.options)]
    return pa.table({name: [str(row[name]) for row in rows] for name in columns})


def measure_training(args: argparse.Namespace) -> dict[str, Any]:
    """Train on each corpus."""
    rows = []
    for name in args.corpora or (["clough"] if args.small else list(TRAINING_CORPORA)):
        print_progress(name)
        case = TRAINING_CORPORA[name]
        trained = nd.train(load_documents(case), str(case.labels), **case.options)
        rows.append({"corpus": name} | {key: value for key, value in trained.summary.items() if key != "wrong"})
    return {"rows": rows}


def learned_table(results: dict[str, Any]) -> str:
    """Return the figures of the classifier beside those of the best threshold."""
    rows = []
    for r in results["rows"]:
        figures, threshold, gain = r["figures"], r["threshold"], r["gain"]
        ahead = format_interval(gain["difference"]) + ("" if gain["beyond_chance"] else ", within chance")
        values = [f"{figures[name]['value']:.3f}" for name in ("precision", "recall")]
        counts = [f"{r['pairs']:,}", f"{r['duplicates']:,}"]
        threshold_cells = [threshold["at"], format_interval(threshold["f1"])]
        rows.append([r["corpus"], *counts, format_interval(figures["f1"]), *values, *threshold_cells, ahead])
    return markdown_table([*LEARNED_HEADER, "learned is ahead by"], rows)


def measure_validation(args: argparse.Namespace) -> dict[str, Any]:
    """Train on the training part of msrp and judge its validation part."""
    if args.small:
        return {}
    case = TRAINING_CORPORA["msrp"]
    documents = load_documents(case)
    trained = nd.train(documents, str(case.labels), **case.options).classifier
    # All documents would give millions of unlabelled candidates.
    with open(case.labels, newline="", encoding="utf-8") as rows:
        validation_ids = {row[side] for row in csv.DictReader(rows) if row["split"] == "val" for side in ("id1", "id2")}
    validation = documents.filter(pc.is_in(documents["id"], pa.array(sorted(validation_ids))))
    options: dict[str, Any] = {"only": "split=val", "ignore_unknown": True, "classifiers": [trained]}
    comparison = nd.compare(validation, str(case.labels), recipes=["default"], **options).to_dict()
    own_row = next(row for row in comparison["recipes"][-1]["rows"] if row["own"])
    return {"pairs": comparison["duplicates"] + comparison["others"], "own": own_row}


def untouched_table(results: dict[str, Any]) -> str:
    """Return the figures at the cutoff of the classifier."""
    names = ["accuracy", "precision", "recall", "f1"]
    rows = [[f"{results['pairs']:,}", *(format_interval(results["own"][name]) for name in names)]] if results else []
    return markdown_table(["pairs", *names], rows)


def format_interval(figure: dict[str, float | None]) -> str:
    """Return a figure with its interval."""
    if figure["value"] is None:
        return "none"
    return f"{figure['value']:.3f} ({figure['low']:.3f} to {figure['high']:.3f})"


if __name__ == "__main__":
    run_sections(
        __doc__,
        {
            "learned": Section(measure_training, {"learned": learned_table}),
            "untouched": Section(measure_validation, {"learned-untouched": untouched_table}),
        },
        lambda parser: parser.add_argument("--corpora", nargs="+", choices=list(TRAINING_CORPORA)),
    )
