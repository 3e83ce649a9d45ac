"""Exact means exact: real corpora against a plain comparison of all pairs."""

from __future__ import annotations

import csv
import gzip
import json
import os
from fractions import Fraction
from functools import cache

import naive
import pytest
from paths import SHARED as DATA

import neardup as nd
from neardup.recipe import Recipe
from neardup.search import engines

pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not DATA.is_dir(), reason="the corpora are not in ../shared/data beside the project"),
]

CORPORA = {
    "reuters": "reuters/reuters.jsonl.gz",
    "adzuna": "adzuna/adzuna.jsonl.gz",
    "saudinews": "saudinews/saudinews.jsonl.gz",
    "peps": "peps/peps.jsonl.gz",
    "cornell": "cornell/docs",
    "clough": "clough/clough.jsonl",
    "r8": "r8/r8.jsonl.gz",
    "msrp": "msrp/msrp.jsonl.gz",
}
Run = tuple[str, str, str, str, float, float]
#: For each corpus: features, normalizer, and a measure with its threshold and floor on Jaccard.
RUNS: list[Run] = [
    ("saudinews", "words:5", "words", "jaccard", 0.1, 0),
    ("cornell", "words:3", "words", "jaccard", 0.02, 0),
    ("cornell", "qgrams:4", "compact", "containment", 0.5, 0.3),
    ("clough", "words:1:multiset", "words", "cosine", 2 / 3, 0),
    ("clough", "qgrams:4:multiset", "compact", "overlap", 0.3, 0),
]
#: These take several seconds each.
LONG_RUNS: list[Run] = [
    ("reuters", "words:5", "words", "overlap", 0.6, 0),
    ("reuters", "words:5", "words", "containment", 0.9, 0.2),
    ("adzuna", "words:5", "words", "cosine", 0.55, 0),
    ("adzuna", "words:4:multiset", "whitespace", "containment", 0.7, 0),
    ("peps", "words:5", "words", "overlap", 0.7, 0),
    ("r8", "words:3", "words", "dice", 0.8, 0),
    ("r8", "qgrams:8", "words", "jaccard", 0.4, 0),
    ("msrp", "words:2", "whitespace", "jaccard", 1 / 3, 0),
    ("msrp", "qgrams:12", "words", "cosine", 2 / 3, 0),
]
AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"


@cache
def texts(corpus: str) -> dict[str, str]:
    """The first documents of a corpus, by id: as many as plain Python can compare."""
    path, most = DATA / CORPORA[corpus], 1200 if AT_LENGTH else 250
    if path.is_dir():
        return {file.name: file.read_text("utf-8") for file in sorted(path.iterdir())[:most]}
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return {row["id"]: row["text"] for row in map(json.loads, content.splitlines()[:most])}


@pytest.mark.parametrize(
    ("corpus", "features", "normalizer", "measure", "threshold", "floor"), RUNS + LONG_RUNS * AT_LENGTH
)
def test_pairs_and_keepers_are_those_of_a_plain_comparison(
    corpus: str,
    features: str,
    normalizer: str,
    measure: str,
    threshold: float,
    floor: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recipe = Recipe(features=features, normalize=normalizer, measure=measure, threshold=threshold, jaccard_floor=floor)
    parsed, names = recipe.parsed_features, list(texts(corpus))
    sets = [naive.grams(text, normalizer, parsed.kind, parsed.n, parsed.multiset) for text in texts(corpus).values()]
    expected = naive.all_pairs(sets, measure, recipe.exact_threshold, Fraction(str(floor)))
    assert expected
    keepers = naive.keepers(len(names), expected, range(len(names)))
    table = {"id": names, "text": list(texts(corpus).values())}
    whole = nd.dedup(table, recipe=recipe, pairs_per_document=None)
    assert {(pair.left, pair.right): pair.similarity for pair in whole.pairs} == {
        (names[i], names[j]): s for (i, j), s in expected.items()
    }
    # Where there are too many pairs to find them all, the verdicts are the same.
    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 0)
    for result in (whole, nd.dedup(table, recipe=recipe, pairs_per_document=0)):
        dropped = {(drop.id, drop.keeper, drop.similarity) for drop in result.dropped}
        assert dropped == {(names[d], names[keeper], s) for d, (keeper, s) in keepers.items()}


@pytest.mark.parametrize(("corpus", "threshold"), [("reuters", 0.3), ("adzuna", 0.8)])
def test_pairs_are_those_of_the_exact_files(corpus: str, threshold: float) -> None:
    # The files were made from the texts alone, without titles, by sets of \w+ of the lower-cased text.
    with open(DATA / corpus / "exact_pairs_w5_j030.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if float(row["jaccard_w5"]) >= threshold]
    result = nd.dedup_files(DATA / CORPORA[corpus], features="words:5", threshold=threshold)
    assert {frozenset((p.left, p.right)): f"{p.similarity:.6f}" for p in result.pairs} == {
        frozenset((row["id1"], row["id2"])): row["jaccard_w5"] for row in rows
    }
