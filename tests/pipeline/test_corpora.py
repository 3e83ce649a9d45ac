"""Exact means exact: real corpora against a plain comparison of all pairs that share a feature."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import Counter, defaultdict
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any, NamedTuple

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
#: For each corpus: features, normalizer, and the measures with their thresholds and floors on Jaccard. By default only
#: the first measures of small corpora are compared; all with NEARDUP_LONG=1.
RUNS: list[tuple[str, str, str, list[tuple[str, float, float]]]] = [
    (
        "reuters",
        "words:5",
        "words",
        [("jaccard", 0.3, 0), ("jaccard", 0.8, 0), ("overlap", 0.6, 0), ("containment", 0.9, 0.2)],
    ),
    ("adzuna", "words:5", "words", [("jaccard", 0.3, 0), ("jaccard", 0.7, 0), ("dice", 0.9, 0), ("cosine", 0.55, 0)]),
    ("adzuna", "words:4:multiset", "whitespace", [("jaccard", 0.5, 0), ("containment", 0.7, 0)]),
    ("saudinews", "words:5", "words", [("jaccard", 0.5, 0), ("jaccard", 0.8, 0), ("containment", 0.8, 0)]),
    ("peps", "words:5", "words", [("jaccard", 0.5, 0), ("jaccard", 0.9, 0), ("overlap", 0.7, 0), ("cosine", 0.95, 0)]),
    ("cornell", "words:3", "words", [("jaccard", 0.02, 0), ("jaccard", 0.5, 0), ("dice", 0.7, 0)]),
    ("cornell", "qgrams:4", "compact", [("jaccard", 0.3, 0), ("overlap", 0.7, 0), ("containment", 0.5, 0.3)]),
    ("clough", "words:1:multiset", "words", [("jaccard", 0.5, 0), ("cosine", 2 / 3, 0)]),
    ("clough", "words:3:multiset", "words", [("jaccard", 0.1, 0), ("containment", 0.3, 0.05)]),
    ("clough", "qgrams:4:multiset", "compact", [("overlap", 0.3, 0), ("cosine", 0.5, 0)]),
    ("r8", "words:3", "words", [("jaccard", 0.2, 0), ("containment", 0.5, 0), ("dice", 0.8, 0)]),
    ("r8", "qgrams:8", "words", [("jaccard", 0.4, 0)]),
    ("msrp", "words:2", "whitespace", [("jaccard", 1 / 3, 0), ("containment", 1.0, 0)]),
    ("msrp", "qgrams:12", "words", [("jaccard", 0.3, 0), ("cosine", 2 / 3, 0)]),
]


AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"
SMALL = ("saudinews", "cornell", "clough")


class Shared(NamedTuple):
    """The size of each feature set, and how many features each pair shares that shares any."""

    sizes: list[int]
    overlap: dict[tuple[int, int], int]


@cache
def texts(corpus: str) -> dict[str, str]:
    """The documents of a corpus, by id, in its order."""
    path = DATA / CORPORA[corpus]
    if path.is_dir():
        return {file.name: file.read_text("utf-8") for file in sorted(path.iterdir())}
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    return {row["id"]: row["text"] for row in map(json.loads, content.splitlines()[: None if AT_LENGTH else 800])}


def rows(path: str) -> list[dict[str, str]]:
    with open(DATA / path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def shared(corpus: str, features: str, normalizer: str) -> Shared:
    """Count for all pairs of documents the features that they share."""
    parsed = Recipe(features=features).parsed_features
    holders = defaultdict(list)
    sizes = []
    for document, text in enumerate(texts(corpus).values()):
        found = naive.grams(text, normalizer, parsed.kind, parsed.n, parsed.multiset)
        sizes.append(len(found))
        for gram in found:
            holders[gram].append(document)
    overlap: Counter[tuple[int, int]] = Counter()
    for documents, times in Counter(map(tuple, holders.values())).items():
        for pair in combinations(documents, 2):
            overlap[pair] += times
    return Shared(sizes, overlap)


def all_pairs(found: Shared, measure: str, threshold: float, floor: float) -> dict[tuple[int, int], float]:
    """Every pair at or above the threshold."""
    t, f = (Fraction(str(value)).limit_denominator(10**9) for value in (threshold, floor))
    pairs = {}
    for (left, right), o in found.overlap.items():
        a, b = found.sizes[left], found.sizes[right]
        # No measure is above o / min(a, b): far below the threshold there is nothing to compute.
        if o < (threshold - 0.01) * min(a, b):
            continue
        if naive.reaches(measure, o, a, b, t) and naive.reaches("jaccard", o, a, b, f):
            pairs[left, right] = naive.similarity(measure, o, a, b)
    return pairs


@pytest.mark.parametrize(
    ("corpus", "features", "normalizer", "measure", "threshold", "floor"),
    [
        (*run, *rule)
        for *run, measures in RUNS
        if AT_LENGTH or run[0] in SMALL
        for rule in (measures if AT_LENGTH else measures[-1:])
    ],
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
    options: dict[str, Any] = {
        "features": features,
        "normalize": normalizer,
        "measure": measure,
        "threshold": threshold,
        "jaccard_floor": floor,
    }
    names = list(texts(corpus))
    table = {"id": names, "text": list(texts(corpus).values())}
    result = nd.dedup(table, **options, pairs_per_document=None)
    expected = all_pairs(shared(corpus, features, normalizer), measure, threshold, floor)
    assert expected
    found = {(pair.left, pair.right): pair.similarity for pair in result.pairs}
    assert found == {(names[i], names[j]): s for (i, j), s in expected.items()}
    assert len(result.pairs) == len(expected)
    # A document without a pair stays and matters to no other.
    paired = sorted({document for pair in expected for document in pair})
    keepers = naive.keepers(len(names), expected, paired)
    dropped = {(drop.id, drop.keeper, drop.similarity) for drop in result.dropped}
    assert dropped == {(names[d], names[keeper], s) for d, (keeper, s) in keepers.items()}
    assert result.kept == [name for d, name in enumerate(names) if d not in keepers]
    # Where there are too many pairs to find them all, the verdicts are the same.
    monkeypatch.setattr(engines, "_ALWAYS_ALLOWED_PAIRS", 0)
    short = nd.dedup(table, **options, pairs_per_document=0)
    assert {(drop.id, drop.keeper, drop.similarity) for drop in short.dropped} == dropped
    assert short.kept == result.kept


@pytest.mark.parametrize(("corpus", "threshold"), [("reuters", 0.3), ("adzuna", 0.8)])
def test_pairs_are_those_of_the_exact_files(corpus: str, threshold: float) -> None:
    # The files were made from the texts alone, without titles, by sets of \w+ of the lower-cased text.
    expected = {
        frozenset((row["id1"], row["id2"])): row["jaccard_w5"]
        for row in rows(f"{corpus}/exact_pairs_w5_j030.csv")
        if float(row["jaccard_w5"]) >= threshold
    }
    result = nd.dedup_files(DATA / CORPORA[corpus], features="words:5", threshold=threshold)
    assert {frozenset((p.left, p.right)): f"{p.similarity:.6f}" for p in result.pairs} == expected
