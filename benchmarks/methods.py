"""Precision, recall, F1 and time of every named recipe and some variants on the labelled corpora of ../shared/data.

    methods.py [--corpora cornell clough-1 clough-3 r8 adzuna reuters] [--runs 3] [--small]

Each recipe is scored at a grid of thresholds and at its own; intervals are those of ``neardup compare``. Time and pairs
come from a separate run at the recipe's own threshold, reading included.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from measuring import SHARED, Section, markdown_table, print_progress, run_sections

import neardup as nd
from neardup.documents import open_corpus
from neardup.evaluation.comparison import Comparison, SystemScores, ThresholdScores, compare
from neardup.evaluation.intervals import Figure
from neardup.recipe import names as recipe_names

DATA = SHARED / "data"
FINE_GRID, COARSE_GRID = ".05:.95:.05", ".6:.95:.05"
COMPUTED_LABELS = "computed: Jaccard of word 5-grams at or above 0.8"


class LabelledCorpus(NamedTuple):
    """A labelled corpus: input files, labels, options of ``compare``, grid of thresholds, description of the labels."""

    inputs: str
    labels: str
    options: dict[str, Any]
    thresholds: str
    kind: str


CORPORA = {
    "cornell": LabelledCorpus(
        "cornell/docs",
        "cornell/pairs.csv",
        {"complete": True},
        FINE_GRID,
        "the ten pairs that the Cornell program prints; all others are none",
    ),
    "clough-1": LabelledCorpus(
        "clough/clough.jsonl", "clough/pairs.csv", {"positive": 1}, FINE_GRID, "by hand: heavily revised or closer"
    ),
    "clough-3": LabelledCorpus(
        "clough/clough.jsonl", "clough/pairs.csv", {"positive": 3}, FINE_GRID, "by hand: cut and paste only"
    ),
    "r8": LabelledCorpus(
        "r8/r8.jsonl.gz", "", {}, FINE_GRID, "five groups made by hand, 50 of 1,000 documents; all others alone"
    ),
    "adzuna": LabelledCorpus(
        "adzuna/adzuna.jsonl.gz",
        "adzuna/exact_pairs_w5_j030.csv",
        {"label_column": "jaccard_w5", "positive": 0.8, "complete": True},
        COARSE_GRID,
        COMPUTED_LABELS,
    ),
    "reuters": LabelledCorpus(
        "reuters/reuters.jsonl.gz",
        "reuters/exact_pairs_w5_j030.csv",
        {"label_column": "jaccard_w5", "positive": 0.8, "complete": True},
        COARSE_GRID,
        COMPUTED_LABELS,
    ),
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
#: The page of each named recipe, and the texts that it suits.
NAMED_RECIPE_PAGES = {
    "default": ("words", "news, articles, mail: copies, re-sends, light edits"),
    "jaccard": ("words", "the blog's: adverts and other texts where case and punctuation carry meaning"),
    "ddd": (
        "qgrams",
        "news of several feeds; languages without spaces; noisy words. High recall, so raise the threshold",
    ),
    "cornell": ("minhash", "a hundred documents, to reproduce the Cornell program"),
    "lsh": ("lsh", "corpora that the exact join is too slow for; the same pairs but for a stated share"),
    "supershingle": ("supershingle", "very large corpora, where only near-copies matter"),
    "simhash": ("simhash", "very large corpora with 8 bytes a document; long texts"),
    "spotsigs": ("spots", "web pages with much around the text, in a language with known stop words"),
    "terms": ("terms", "rewritten and reordered texts of one subject; then read what it finds"),
    "manber": ("windows", "long files, code, manuals that share passages"),
    "imatch": ("imatch", "texts whose words in the middle range stay the same, in linear time"),
    "checksum": ("checksum", "copies equal to the last byte"),
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
NGRAM_LENGTH_RECIPES = ["words:1", "words:2", "words:3", "default", "words:8"]


def all_recipes() -> dict[str, nd.Recipe]:
    """Return the named recipes and the variants."""
    named = {name: nd.load_recipe(name) for name in recipe_names()}
    return named | {name: nd.Recipe(name=name).changed(**choices) for name, choices in VARIANTS.items()}


def score_corpora(names: Sequence[str], runs: int) -> dict[str, Any]:
    """Score and time all recipes on corpora."""
    recipes, corpora = all_recipes(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print_progress(f"{name}: scoring {len(recipes)} recipes")
            corpus = CORPORA[name]
            comparison = compare_recipes(corpus, list(recipes.values()), Path(folder))
            counts = {
                key: getattr(comparison, key) for key in ("documents", "duplicates", "others", "groups", "complete")
            }
            description = {
                "corpus": name,
                "labels": corpus.kind,
                "warnings": [without_folders(w) for w in comparison.warnings],
            }
            rows = []
            for scored in comparison.recipes:
                print_progress(f"{name}: timing {scored.name}")
                rows.append(
                    recipe_row(scored) | time_recipe(DATA / corpus.inputs, scored.recipe, comparison.documents, runs)
                )
            corpora.append(description | counts | {"rows": rows})
    return {"corpora": corpora}


def compare_recipes(corpus: LabelledCorpus, recipes: list[nd.Recipe], folder: Path) -> Comparison:
    """Return the comparison of recipes on one corpus."""
    labels = DATA / corpus.labels if corpus.labels else r8_clusters(folder)
    with open_corpus([DATA / corpus.inputs]) as documents:
        return compare(
            documents, labels, recipes=recipes, thresholds=corpus.thresholds, ignore_unknown=False, **corpus.options
        )


def r8_clusters(folder: Path) -> Path:
    """Write the groups of r8 as a label file of clusters."""
    path = folder / "r8.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "cluster"])
        for number, (first, last) in enumerate(R8_GROUPS, 1):
            writer.writerows((f"file{i:02}", f"group {number}") for i in range(first, last + 1))
    return path


def without_folders(message: str) -> str:
    """Return a message with file names in place of absolute paths."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in message.split(" "))


def recipe_row(scored: SystemScores) -> dict[str, Any]:
    """Return the figures of a recipe at its best and at its own threshold."""
    own_row = next(row for row in scored.rows if row.own)
    return {
        "recipe": scored.name,
        "in_words": scored.recipe.in_words(),
        "scale": scored.scale,
        "best": threshold_row(scored.best),
        "own": threshold_row(own_row),
    }


def threshold_row(row: ThresholdScores) -> dict[str, Any]:
    """Return the figures at a threshold as JSON values."""
    figures = {"precision": row.precision, "recall": row.recall, "f1": row.f1}
    counts = {"returned": row.returned, "correct": row.correct, "missed": row.missed, "unlabelled": row.unlabelled}
    return {"threshold": row.threshold} | counts | {name: round_figure(figure) for name, figure in figures.items()}


def round_figure(figure: Figure) -> list[float | None]:
    """Return value, low end and high end to four places."""
    return [None if value is None else round(value, 4) for value in figure]


def time_recipe(inputs: Path, recipe: nd.Recipe, documents: int, runs: int) -> dict[str, Any]:
    """Return pairs, documents without features, and microseconds a document at a recipe's own threshold."""
    wall, cpu = [], []
    for _ in range(runs):
        begin = time.perf_counter(), time.process_time()
        with nd.dedup_files(str(inputs), recipe=recipe, pairs_per_document=None) as result:
            wall.append(time.perf_counter() - begin[0])
            cpu.append(time.process_time() - begin[1])
            summary = result.summary
    per_document = 1e6 / documents
    return {
        "pairs": summary["pairs"],
        "undecidable": summary["undecidable"],
        "cpu_us_per_document": round(median(cpu) * per_document, 1),
        "wall_us_per_document": round(median(wall) * per_document, 1),
    }


def overview_table(results: dict[str, Any]) -> str:
    """Return F1 of all named recipes on all corpora, at the best and at their own threshold."""
    return f1_by_corpus(results, recipe_names())


def recipes_table(results: dict[str, Any]) -> str:
    """Return the settings of each named recipe and the texts that it suits."""
    in_words = {row["recipe"]: row["in_words"] for row in results["corpora"][0]["rows"]}
    rows = [[f"[{name}]({page}.md)", in_words[name], texts] for name, (page, texts) in NAMED_RECIPE_PAGES.items()]
    return markdown_table(["recipe", "features, measure, threshold", "for"], rows)


def lengths_table(results: dict[str, Any]) -> str:
    """Return F1 of word n-grams of several lengths on all corpora."""
    return f1_by_corpus(results, NGRAM_LENGTH_RECIPES)


def corpora_table(results: dict[str, Any]) -> str:
    """Return the corpora and their labels."""
    rows = [
        [
            corpus["corpus"],
            f"{corpus['documents']:,}",
            f"{corpus['duplicates']:,}",
            f"{corpus['others']:,}",
            corpus["labels"],
        ]
        for corpus in results["corpora"]
    ]
    return markdown_table(["corpus", "documents", "pairs that are duplicates", "pairs that are none", "labels"], rows)


def times_table(results: dict[str, Any]) -> str:
    """Return the cost of each named recipe on the largest corpus."""
    corpus = max(results["corpora"], key=lambda corpus: corpus["documents"])
    rows = [
        [
            row["recipe"],
            f"{row['own']['threshold']:g}",
            f"{row['pairs']:,}",
            f"{row['undecidable']:,}",
            f"{row['cpu_us_per_document']:.0f}",
            f"{row['wall_us_per_document']:.0f}",
        ]
        for row in corpus["rows"]
        if row["recipe"] in recipe_names()
    ]
    header = ["recipe", "threshold", "pairs", "without features", "CPU µs a document", "wall µs a document"]
    return f"On {corpus['corpus']}:\n\n{markdown_table(header, rows)}"


def f1_by_corpus(results: dict[str, Any], names: Sequence[str]) -> str:
    corpora = {corpus["corpus"]: {row["recipe"]: row for row in corpus["rows"]} for corpus in results["corpora"]}
    rows = [[name, *(best_and_own_f1(rows[name]) for rows in corpora.values())] for name in names]
    return markdown_table(["F1 at best (threshold), at own", *corpora], rows)


def best_and_own_f1(row: dict[str, Any]) -> str:
    best, own = row["best"], row["own"]
    place = f" ({threshold_text(row, best)})" if threshold_text(row, best) else ""
    return f"{format_value(best['f1'])}{place}, {format_value(own['f1'])}"


def threshold_text(row: dict[str, Any], at: dict[str, Any]) -> str:
    """Return the threshold of a row; empty for a fixed threshold or a recipe that finds nothing at any."""
    if row["scale"] == "fixed" or not row["best"]["f1"][0]:
        return ""
    return f"{distance_sign(row)}{at['threshold']:g}"


def distance_sign(row: dict[str, Any]) -> str:
    return "<= " if row["scale"] == "distance" else ""


def format_value(figure: list[float | None]) -> str:
    return "none" if figure[0] is None else f"{figure[0]:.2f}"


def format_interval(figure: list[float | None]) -> str:
    return (
        f"{format_value(figure)} ({figure[1]:.2f}-{figure[2]:.2f})" if figure[1] is not None else format_value(figure)
    )


def page_table(page: str) -> Callable[[dict[str, Any]], str]:
    """Return the renderer of the table of a page: a row for each corpus and recipe."""

    def render(results: dict[str, Any]) -> str:
        names, rows = PAGE_RECIPES[page], []
        for corpus in results["corpora"]:
            row_by_recipe = {row["recipe"]: row for row in corpus["rows"]}
            show_recipe, documents = len(names) > 1, corpus["documents"]
            rows += [
                [corpus["corpus"], *recipe_cells(row_by_recipe[name], documents, show_recipe=show_recipe)]
                for name in names
            ]
        header = ["corpus", *(["recipe"] if len(names) > 1 else []), "best at", "precision", "recall", "F1 (95%)"]
        return markdown_table([*header, "own at", "precision", "recall", "F1", "CPU µs a document"], rows)

    return render


def recipe_cells(row: dict[str, Any], documents: int, *, show_recipe: bool) -> list[str]:
    best, own = row["best"], row["own"]
    return [
        *([row["recipe"]] if show_recipe else []),
        threshold_text(row, best),
        format_value(best["precision"]),
        format_value(best["recall"]),
        format_interval(best["f1"]),
        threshold_text(row, own),
        *(format_value(own[name]) for name in ("precision", "recall", "f1")),
        f"{row['cpu_us_per_document']:.0f}" if documents >= MIN_TIMED_DOCUMENTS else "",
    ]


def measure_methods(args: argparse.Namespace) -> dict[str, Any]:
    """Score all recipes on all corpora, or on one small corpus."""
    return score_corpora(args.corpora or (["cornell"] if args.small else list(CORPORA)), args.runs)


TABLES = {
    "method-overview": overview_table,
    "method-recipes": recipes_table,
    "method-corpora": corpora_table,
    "method-times": times_table,
    "method-lengths": lengths_table,
} | {f"method-{page}": page_table(page) for page in PAGE_RECIPES}

if __name__ == "__main__":
    if not DATA.is_dir():
        raise SystemExit("../shared/data, which has the labelled corpora, is missing; put it beside the repository")
    run_sections(
        __doc__,
        {"methods": Section(measure_methods, TABLES)},
        lambda parser: parser.add_argument("--corpora", nargs="+", choices=list(CORPORA)),
    )
