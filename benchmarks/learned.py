"""A trained classifier beside the best threshold on one measure, on pairs labelled by hand.

    learned.py [learned] [untouched] [--small]

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
from pathlib import Path
from typing import Any, NamedTuple

from corpora import shared_records
from harness import HERE, SHARED, Row, print_progress, run_sections, section

import neardup as nd

DATA = SHARED / "data"
#: A figure with its interval.
INTERVAL = "{0[value]:.3f} ({0[low]:.3f} to {0[high]:.3f})"


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


@section(
    "learned",
    "corpus | pairs | duplicates | learned: F1 | precision | recall | best threshold | its F1 | learned is ahead by",
    "{corpus} | {pairs:,} | {duplicates:,} | {f1} | {figures[precision][value]:.3f} | {figures[recall][value]:.3f} | "
    "{threshold[at]} | {threshold_f1} | {ahead}",
)
def measure_training(args: argparse.Namespace) -> Row:
    rows = []
    for name in ["clough"] if args.small else TRAINING_CORPORA:
        print_progress(name)
        case = TRAINING_CORPORA[name]
        with nd.open_files(DATA / case.corpus) as documents:
            row = nd.train(documents, str(case.labels), **case.options).summary
        ahead = INTERVAL.format(row["gain"]["difference"]) + ("" if row["gain"]["beyond_chance"] else ", within chance")
        f1 = {"f1": INTERVAL.format(row["figures"]["f1"]), "threshold_f1": INTERVAL.format(row["threshold"]["f1"])}
        rows.append({"corpus": name} | {key: row[key] for key in row if key != "wrong"} | f1 | {"ahead": ahead})
    return {"rows": rows}


@section(
    "untouched", "pairs | accuracy | precision | recall | f1", "{pairs:,} | {accuracy} | {precision} | {recall} | {f1}"
)
def measure_validation(args: argparse.Namespace) -> Row:
    if args.small:
        return {"rows": []}
    case = TRAINING_CORPORA["msrp"]
    with nd.open_files(DATA / case.corpus) as documents:
        trained = nd.train(documents, str(case.labels), **case.options).classifier
    # All documents would give millions of unlabelled candidates.
    with open(case.labels, newline="", encoding="utf-8") as rows:
        ids = {row[side] for row in csv.DictReader(rows) if row["split"] == "val" for side in ("id1", "id2")}
    records = [{"id": str(record["id"]), "text": record["text"]} for record in shared_records("msrp")]
    validation = [record for record in records if record["id"] in ids]
    options: dict[str, Any] = {"only": "split=val", "ignore_unknown": True, "classifiers": [trained]}
    comparison = nd.compare(validation, str(case.labels), recipes=["default"], **options).to_dict()
    own_row = next(row for row in comparison["recipes"][-1]["rows"] if row["own"])
    figures = {name: INTERVAL.format(own_row[name]) for name in ("accuracy", "precision", "recall", "f1")}
    return {"rows": [figures | {"pairs": comparison["duplicates"] + comparison["others"]}]}


if __name__ == "__main__":
    run_sections(__doc__)
