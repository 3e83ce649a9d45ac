"""Precision, recall, F1 and time of every named recipe and some variants on the labelled corpora of ../shared/data.

    methods.py [--runs 3] [--small]

Each recipe is scored at a grid of thresholds and at its own; intervals are those of ``neardup compare``. Time and pairs
come from a separate run at the recipe's own threshold, reading included.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from harness import SHARED, Row, Table, markdown_table, print_progress, run_sections, section, time_call

import neardup as nd
from neardup.documents import open_corpus
from neardup.evaluation.comparison import ThresholdScores, compare
from neardup.recipe import names as recipe_names

DATA = SHARED / "data"


class LabelledCorpus(NamedTuple):
    """A labelled corpus: input files, labels, description of the labels, options of ``compare``, grid of thresholds."""

    inputs: str
    labels: str
    kind: str
    options: dict[str, Any]
    thresholds: str = ".05:.95:.05"


COMPUTED_LABELS = (
    "computed: Jaccard of word 5-grams at or above 0.8",
    {"label_column": "jaccard_w5", "positive": 0.8, "complete": True},
    ".6:.95:.05",
)
CORPORA = {
    "cornell": LabelledCorpus(
        "cornell/docs",
        "cornell/pairs.csv",
        "the ten pairs that the Cornell program prints; all others are none",
        {"complete": True},
    ),
    "clough-1": LabelledCorpus(
        "clough/clough.jsonl", "clough/pairs.csv", "by hand: heavily revised or closer", {"positive": 1}
    ),
    "clough-3": LabelledCorpus(
        "clough/clough.jsonl", "clough/pairs.csv", "by hand: cut and paste only", {"positive": 3}
    ),
    "r8": LabelledCorpus("r8/r8.jsonl.gz", "", "five groups made by hand, 50 of 1,000 documents; all others alone", {}),
    "adzuna": LabelledCorpus("adzuna/adzuna.jsonl.gz", "adzuna/exact_pairs_w5_j030.csv", *COMPUTED_LABELS),
    "reuters": LabelledCorpus("reuters/reuters.jsonl.gz", "reuters/exact_pairs_w5_j030.csv", *COMPUTED_LABELS),
}
#: The groups of r8 by the first and last number of their files.
R8_GROUPS = [(0, 10), (11, 20), (21, 30), (31, 40), (41, 49)]

#: Variants measured besides the named recipes, with thresholds chosen for this benchmark.
VARIANTS: dict[str, dict[str, Any]] = {
    "words:1": {"features": "words:1"},
    "words:2": {"features": "words:2"},
    "words:3": {"features": "words:3"},
    "words:8": {"features": "words:8"},
    "qgrams:8": {"features": "qgrams:8"},
    "qgrams:4:positional": {"features": "qgrams:4:positional", "measure": "overlap", "threshold": 0.7},
    "skips:3:1": {"features": "skips:3:1"},
    "clauses": {"features": "clauses"},
    "sentence_words:3": {"features": "sentence_words:3"},
    "windows:50:8": {"features": "windows:50:8", "threshold": 0.5},
    "checksum of words": {"features": "checksum:sha1", "normalize": "words", "threshold": 1.0},
    "terms:4:positional": {"features": "terms:4:positional", "threshold": 1.0},
    "terms:8:sentence": {"features": "terms:8:sentence", "weights": "tfidf", "measure": "cosine", "threshold": 0.9},
    "minhash:128": {"signature": "minhash:128", "measure": "overlap"},
    "simhash of words:3": {"features": "words:3", "signature": "simhash", "measure": "hamming", "threshold": 3},
    "words:1 tfidf cosine": {"features": "words:1", "weights": "tfidf", "measure": "cosine"},
    "words:5 idf weighted_jaccard": {"weights": "idf", "measure": "weighted_jaccard"},
    "ddd clipped df:2:0.1": {"features": "qgrams:4", "measure": "overlap", "threshold": 0.7, "clip": "df:2:0.1"},
    "words:5 then edit": {"threshold": 0.5, "second_step": "edit >= 0.9"},
}
#: The recipes in the table of each page of docs/methods.
PAGE_RECIPES = {
    "words": ["default", "jaccard"],
    "qgrams": ["ddd", "qgrams:8", "qgrams:4:positional"],
    "skips": ["skips:3:1"],
    "clauses": ["clauses"],
    "sentence-words": ["sentence_words:3"],
    "spots": ["spotsigs"],
    "terms": ["terms", "terms:8:sentence", "terms:4:positional"],
    "windows": ["manber", "windows:50:8"],
    "checksum": ["checksum", "checksum of words"],
    "weights": ["words:1", "words:1 tfidf cosine", "words:5 idf weighted_jaccard"],
    "clipping": ["ddd", "ddd clipped df:2:0.1"],
    "minhash": ["cornell", "minhash:128"],
    "supershingle": ["supershingle"],
    "simhash": ["simhash", "simhash of words:3"],
    "imatch": ["imatch"],
    "lsh": ["lsh", "default"],
    "two-steps": ["words:5 then edit", "default"],
}
#: On smaller corpora the start dominates the time per document.
MIN_TIMED_DOCUMENTS = 1000


def r8_clusters(folder: Path) -> Path:
    path = folder / "r8.csv"
    lines = [f"file{i:02},{first}" for first, last in R8_GROUPS for i in range(first, last + 1)]
    path.write_text("\n".join(["id,cluster", *lines, ""]))
    return path


def threshold_row(row: ThresholdScores) -> Row:
    figures = {"precision": row.precision, "recall": row.recall, "f1": row.f1}
    counts = {"returned": row.returned, "correct": row.correct, "missed": row.missed, "unlabelled": row.unlabelled}
    rounded = {name: [None if end is None else round(end, 4) for end in figure] for name, figure in figures.items()}
    return {"threshold": row.threshold} | counts | rounded


def time_recipe(inputs: Path, recipe: nd.Recipe, documents: int, runs: int) -> Row:
    summary: Row = {}

    def run() -> None:
        with nd.dedup_files(str(inputs), recipe=recipe, pairs_per_document=None) as result:
            summary.update(result.summary)

    times = [time_call(run) for _ in range(runs)]
    wall, cpu = (round(1e6 * median(column) / documents, 1) for column in zip(*times, strict=True))
    counts = {key: summary[key] for key in ("pairs", "undecidable")}
    return counts | {"cpu_us_per_document": cpu, "wall_us_per_document": wall}


def shown(figure: list[float | None], *, interval: bool = False) -> str:
    value, low, high = figure
    if value is None:
        return "none"
    return f"{value:.2f} ({low:.2f}-{high:.2f})" if interval and low is not None else f"{value:.2f}"


def threshold_text(row: Row, at: str) -> str:
    """Return the best or own threshold of a row; empty for a fixed one or a recipe that finds nothing at any."""
    if row["scale"] == "fixed" or not row["best"]["f1"][0]:
        return ""
    return f"{'<= ' if row['scale'] == 'distance' else ''}{row[at]['threshold']:g}"


def f1_table(names: Sequence[str]) -> Table:
    """Return the function that makes a table of F1 of recipes on all corpora, at the best and their own threshold."""

    def cell(row: Row) -> str:
        place = threshold_text(row, "best")
        return f"{shown(row['best']['f1'])}{f' ({place})' if place else ''}, {shown(row['own']['f1'])}"

    def render(results: Row) -> str:
        corpora = {corpus["corpus"]: {row["recipe"]: row for row in corpus["rows"]} for corpus in results["corpora"]}
        header = " | ".join(["F1 at best (threshold), at own", *corpora])
        template = " | ".join(["{recipe}", *(f"{{{corpus}}}" for corpus in corpora)])
        cells = ({corpus: cell(rows[name]) for corpus, rows in corpora.items()} | {"recipe": name} for name in names)
        return markdown_table(header, template, cells)

    return render


def page_table(names: Sequence[str]) -> Table:
    """Return the function that makes the table of a page: a row for each corpus and recipe."""

    def render(results: Row) -> str:
        rows = []
        for corpus in results["corpora"]:
            timed = corpus["documents"] >= MIN_TIMED_DOCUMENTS
            for name in names:
                row = next(row for row in corpus["rows"] if row["recipe"] == name)
                cells: Row = {"corpus": corpus["corpus"], "recipe": name}
                for at in ("best", "own"):
                    cells[at] = {key: shown(row[at][key]) for key in ("precision", "recall", "f1")}
                    cells[at]["threshold"] = threshold_text(row, at)
                cells["best"]["f1"] = shown(row["best"]["f1"], interval=True)
                rows.append(cells | {"cpu": row["cpu_us_per_document"] if timed else None})
        header, template = (
            "corpus | recipe | best at | precision | recall | F1 (95%) | own at | precision | recall | F1"
            " | CPU µs a document",
            "{corpus} | {recipe} | {best[threshold]} | {best[precision]} | {best[recall]} | {best[f1]} | "
            "{own[threshold]} | {own[precision]} | {own[recall]} | {own[f1]} | {cpu:.0f}",
        )
        if len(names) == 1:
            header, template = header.replace("recipe | ", ""), template.replace("{recipe} | ", "")
        return markdown_table(header, template, rows)

    return render


def corpora_table(results: Row) -> str:
    return markdown_table(
        "corpus | documents | pairs that are duplicates | pairs that are none | labels",
        "{corpus} | {documents:,} | {duplicates:,} | {others:,} | {labels}",
        results["corpora"],
    )


def times_table(results: Row) -> str:
    corpus = max(results["corpora"], key=lambda corpus: corpus["documents"])
    table = markdown_table(
        "recipe | threshold | pairs | without features | CPU µs a document | wall µs a document",
        "{recipe} | {own[threshold]:g} | {pairs:,} | {undecidable:,} | {cpu_us_per_document:.0f} | "
        "{wall_us_per_document:.0f}",
        [row for row in corpus["rows"] if row["recipe"] in recipe_names()],
    )
    return f"On {corpus['corpus']}:\n\n{table}"


TABLES = {
    "method-overview": f1_table(recipe_names()),
    "method-corpora": corpora_table,
    "method-times": times_table,
    "method-lengths": f1_table(["words:1", "words:2", "words:3", "default", "words:8"]),
} | {f"method-{page}": page_table(names) for page, names in PAGE_RECIPES.items()}


@section("methods", TABLES)
def measure_methods(args: argparse.Namespace) -> Row:
    named = {name: nd.load_recipe(name) for name in recipe_names()}
    recipes = named | {name: nd.Recipe(name=name).changed(**choices) for name, choices in VARIANTS.items()}
    corpora = []
    for name in ["cornell"] if args.small else CORPORA:
        print_progress(f"{name}: scoring {len(recipes)} recipes")
        corpus = CORPORA[name]
        inputs = DATA / corpus.inputs
        with tempfile.TemporaryDirectory() as folder, open_corpus([inputs]) as documents:
            labels = DATA / corpus.labels if corpus.labels else r8_clusters(Path(folder))
            options: Row = corpus.options | {"thresholds": corpus.thresholds, "ignore_unknown": False}
            comparison = compare(documents, labels, recipes=list(recipes.values()), **options)
        row: Row = {"corpus": name, "labels": corpus.kind}
        row |= {key: getattr(comparison, key) for key in ("documents", "duplicates", "others")}
        rows = []
        for scored in comparison.recipes:
            print_progress(f"{name}: timing {scored.name}")
            own = threshold_row(next(each for each in scored.rows if each.own))
            scores = {"recipe": scored.name, "scale": scored.scale, "best": threshold_row(scored.best), "own": own}
            rows.append(scores | time_recipe(inputs, scored.recipe, comparison.documents, args.runs))
        corpora.append(row | {"rows": rows})
    return {"corpora": corpora}


if __name__ == "__main__":
    run_sections(__doc__)
