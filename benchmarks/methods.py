"""Every recipe, and some variants, on the labelled corpora of ../shared/data: precision, recall, F1, time.

    methods.py [--corpora cornell clough-1 clough-3 r8 adzuna reuters] [--runs 3] [--small]

Each recipe is scored at many thresholds and at its own; intervals are those of ``neardup compare``. Time and pairs come
from a separate run at the recipe's own threshold, reading included.
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

from measuring import SHARED, Section, note, run_sections, table

import neardup as nd
from neardup.documents import open_corpus
from neardup.evaluation.comparison import Comparison, Row, SystemScores, compare
from neardup.evaluation.scores import Figure
from neardup.recipe import names as recipe_names

DATA = SHARED / "data"
FINE, COARSE = ".05:.95:.05", ".6:.95:.05"
COMPUTED = "computed: Jaccard of word 5-grams at or above 0.8"


class Labelled(NamedTuple):
    """A labelled corpus: its files, the options of ``compare``, the thresholds, and what the labels are."""

    inputs: str
    labels: str
    options: dict[str, Any]
    thresholds: str
    kind: str


CORPORA = {
    "cornell": Labelled(
        "cornell/docs",
        "cornell/pairs.csv",
        {"complete": True},
        FINE,
        "the ten pairs that the Cornell program prints; all others are none",
    ),
    "clough-1": Labelled(
        "clough/clough.jsonl", "clough/pairs.csv", {"positive": 1}, FINE, "by hand: heavily revised or closer"
    ),
    "clough-3": Labelled(
        "clough/clough.jsonl", "clough/pairs.csv", {"positive": 3}, FINE, "by hand: cut and paste only"
    ),
    "r8": Labelled("r8/r8.jsonl.gz", "", {}, FINE, "five groups made by hand, 50 of 1,000 documents; all others alone"),
    "adzuna": Labelled(
        "adzuna/adzuna.jsonl.gz",
        "adzuna/exact_pairs_w5_j030.csv",
        {"label_column": "jaccard_w5", "positive": 0.8, "complete": True},
        COARSE,
        COMPUTED,
    ),
    "reuters": Labelled(
        "reuters/reuters.jsonl.gz",
        "reuters/exact_pairs_w5_j030.csv",
        {"label_column": "jaccard_w5", "positive": 0.8, "complete": True},
        COARSE,
        COMPUTED,
    ),
}
#: The groups of r8 by the numbers of their files, from and to.
R8_GROUPS = [(0, 10), (11, 20), (21, 30), (31, 40), (41, 49)]

#: Variants measured besides the named recipes. All their thresholds are ours.
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
#: The page of each named recipe, and the texts it is for.
NAMED = {
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
#: What each page of docs/methods shows, by the table's name.
PAGES = {
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
#: On smaller corpora the time per document reflects the start-up more than the method.
LARGE = 1000
LENGTHS = ["words:1", "words:2", "words:3", "default", "words:8"]


def all_recipes() -> dict[str, nd.Recipe]:
    """Return the named recipes and the variants."""
    named = {name: nd.load_recipe(name) for name in recipe_names()}
    return named | {name: nd.Recipe(name=name).changed(**choices) for name, choices in VARIANTS.items()}


def score_corpora(names: Sequence[str], runs: int) -> dict[str, Any]:
    """Score and time all recipes on corpora."""
    recipes, found = all_recipes(), []
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            note(f"{name}: scoring {len(recipes)} recipes")
            corpus = CORPORA[name]
            compared = compare_recipes(corpus, list(recipes.values()), Path(folder))
            counts = {
                key: getattr(compared, key) for key in ("documents", "duplicates", "others", "groups", "complete")
            }
            description = {
                "corpus": name,
                "labels": corpus.kind,
                "warnings": [without_folders(w) for w in compared.warnings],
            }
            rows = []
            for scored in compared.recipes:
                note(f"{name}: timing {scored.name}")
                rows.append(
                    recipe_row(scored) | time_recipe(DATA / corpus.inputs, scored.recipe, compared.documents, runs)
                )
            found.append(description | counts | {"rows": rows})
    return {"corpora": found}


def compare_recipes(corpus: Labelled, recipes: list[nd.Recipe], folder: Path) -> Comparison:
    """Return the figures of recipes on one corpus."""
    labels = DATA / corpus.labels if corpus.labels else r8_clusters(folder)
    with open_corpus([DATA / corpus.inputs]) as documents:
        return compare(
            documents, labels, recipes=recipes, thresholds=corpus.thresholds, ignore_unknown=False, **corpus.options
        )


def r8_clusters(folder: Path) -> Path:
    """Write the groups of r8 as clusters."""
    path = folder / "r8.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "cluster"])
        for number, (first, last) in enumerate(R8_GROUPS, 1):
            writer.writerows((f"file{i:02}", f"group {number}") for i in range(first, last + 1))
    return path


def without_folders(text: str) -> str:
    """Return a message with the names of files for their paths."""
    return " ".join(Path(word).name if word.startswith("/") else word for word in text.split(" "))


def recipe_row(scored: SystemScores) -> dict[str, Any]:
    """Return what one recipe reached at its best and at its own threshold."""
    own = next(row for row in scored.rows if row.own)
    return {
        "recipe": scored.name,
        "in_words": scored.recipe.in_words(),
        "scale": scored.scale,
        "best": threshold_row(scored.best),
        "own": threshold_row(own),
    }


def threshold_row(row: Row) -> dict[str, Any]:
    """Return the figures at a threshold, ready for JSON."""
    figures = {"precision": row.precision, "recall": row.recall, "f1": row.f1}
    counts = {"returned": row.returned, "correct": row.correct, "missed": row.missed, "unlabelled": row.unlabelled}
    return {"threshold": row.threshold} | counts | {name: round_figure(figure) for name, figure in figures.items()}


def round_figure(figure: Figure) -> list[float | None]:
    """Return value, low and high end."""
    return [None if value is None else round(value, 4) for value in figure]


def time_recipe(inputs: Path, recipe: nd.Recipe, documents: int, runs: int) -> dict[str, Any]:
    """Return pairs, undecidable documents, and microseconds a document at a recipe's own threshold."""
    wall, cpu = [], []
    for _ in range(runs):
        begin = time.perf_counter(), time.process_time()
        with nd.dedup_files(str(inputs), recipe=recipe, pairs_per_document=None) as result:
            wall.append(time.perf_counter() - begin[0])
            cpu.append(time.process_time() - begin[1])
            said = result.summary
    per_document = 1e6 / documents
    return {
        "pairs": said["pairs"],
        "undecidable": said["undecidable"],
        "cpu_us_per_document": round(median(cpu) * per_document, 1),
        "wall_us_per_document": round(median(wall) * per_document, 1),
    }


def as_table(results: dict[str, Any]) -> str:
    """Return all named recipes on all corpora: F1 at the best and at their own threshold."""
    return _by_corpus(results, recipe_names())


def recipes_table(results: dict[str, Any]) -> str:
    """Return what each named recipe does, as measured, and for which texts it is."""
    in_words = {row["recipe"]: row["in_words"] for row in results["corpora"][0]["rows"]}
    rows = [[f"[{name}]({page}.md)", in_words[name], texts] for name, (page, texts) in NAMED.items()]
    return table(["recipe", "features, measure, threshold", "for"], rows)


def lengths_table(results: dict[str, Any]) -> str:
    """Return word n-grams of several lengths on all corpora."""
    return _by_corpus(results, LENGTHS)


def corpora_table(results: dict[str, Any]) -> str:
    """Return what the corpora and their labels are."""
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
    return table(["corpus", "documents", "pairs that are duplicates", "pairs that are none", "labels"], rows)


def times_table(results: dict[str, Any]) -> str:
    """Return what each named recipe costs on the largest corpus."""
    corpus = max(results["corpora"], key=lambda one: one["documents"])
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
    return f"On {corpus['corpus']}:\n\n{table(header, rows)}"


def _by_corpus(results: dict[str, Any], names: Sequence[str]) -> str:
    found = {corpus["corpus"]: {row["recipe"]: row for row in corpus["rows"]} for corpus in results["corpora"]}
    rows = [[name, *(_best_and_own(rows[name]) for rows in found.values())] for name in names]
    return table(["F1 at best (threshold), at own", *found], rows)


def _best_and_own(row: dict[str, Any]) -> str:
    best, own = row["best"], row["own"]
    place = f" ({_place(row, best)})" if _place(row, best) else ""
    return f"{_value(best['f1'])}{place}, {_value(own['f1'])}"


def _place(row: dict[str, Any], at: dict[str, Any]) -> str:
    """Return a threshold; nothing where a recipe has no other, or finds nothing at any."""
    if row["scale"] == "fixed" or not row["best"]["f1"][0]:
        return ""
    return f"{_sign(row)}{at['threshold']:g}"


def _sign(row: dict[str, Any]) -> str:
    return "<= " if row["scale"] == "distance" else ""


def _value(figure: list[float | None]) -> str:
    return "none" if figure[0] is None else f"{figure[0]:.2f}"


def _spread(figure: list[float | None]) -> str:
    return f"{_value(figure)} ({figure[1]:.2f}-{figure[2]:.2f})" if figure[1] is not None else _value(figure)


def page_table(page: str) -> Callable[[dict[str, Any]], str]:
    """Return what makes the table of a page: a row for each corpus and recipe."""

    def made(results: dict[str, Any]) -> str:
        wanted = PAGES[page]
        rows = []
        for corpus in results["corpora"]:
            known = {row["recipe"]: row for row in corpus["rows"]}
            several, documents = len(wanted) > 1, corpus["documents"]
            rows += [[corpus["corpus"], *_figures(known[name], documents, several=several)] for name in wanted]
        header = ["corpus", *(["recipe"] if len(wanted) > 1 else []), "best at", "precision", "recall", "F1 (95%)"]
        return table([*header, "own at", "precision", "recall", "F1", "CPU µs a document"], rows)

    return made


def _figures(row: dict[str, Any], documents: int, *, several: bool) -> list[str]:
    best, own = row["best"], row["own"]
    return [
        *([row["recipe"]] if several else []),
        _place(row, best),
        _value(best["precision"]),
        _value(best["recall"]),
        _spread(best["f1"]),
        _place(row, own),
        *(_value(own[name]) for name in ("precision", "recall", "f1")),
        f"{row['cpu_us_per_document']:.0f}" if documents >= LARGE else "",
    ]


def methods(args: argparse.Namespace) -> dict[str, Any]:
    """Score all recipes on all corpora, or on a small one."""
    return score_corpora(args.corpora or (["cornell"] if args.small else list(CORPORA)), args.runs)


TABLES = {
    "method-overview": as_table,
    "method-recipes": recipes_table,
    "method-corpora": corpora_table,
    "method-times": times_table,
    "method-lengths": lengths_table,
} | {f"method-{page}": page_table(page) for page in PAGES}

if __name__ == "__main__":
    if not DATA.is_dir():
        raise SystemExit("the labelled corpora are those of ../shared/data, which is not there")
    run_sections(
        __doc__,
        {"methods": Section(methods, TABLES)},
        lambda parser: parser.add_argument("--corpora", nargs="+", choices=list(CORPORA)),
    )
