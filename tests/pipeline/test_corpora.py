"""Exact means exact: real corpora against a plain comparison of all pairs that share a feature."""

from __future__ import annotations

import csv
import gzip
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import naive
import pytest
from naive_text import naive_tokens
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
#: For each corpus: features, normalizer, and the measures with their thresholds and floors on Jaccard.
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


#: What is compared by default; all runs with NEARDUP_LONG=1. Exact files hold the pairs of the others.
AT_LENGTH = os.environ.get("NEARDUP_LONG") == "1"
SMALL = ("saudinews", "cornell", "clough")
#: So many texts of a corpus are compared by default: its first ones; the twin counts in plain Python.
MOST = None if AT_LENGTH else 1200


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
    return {row["id"]: row["text"] for row in map(json.loads, content.splitlines()[:MOST])}


def rows(path: str) -> list[dict[str, str]]:
    with open(DATA / path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@cache
def piece_tokens(piece: str, normalizer: str) -> tuple[str, ...]:
    return tuple(naive_tokens(piece, normalizer))


def tokens(text: str, normalizer: str) -> Iterator[str]:
    """The tokens of a text: those of its pieces between white space, which no token crosses."""
    for piece in text.split():
        yield from piece_tokens(piece, normalizer)


def grams(text: str, features: str, normalizer: str) -> set[Any]:
    """The features of a text."""
    parsed = Recipe(features=features).parsed_features
    units: Any = list(tokens(text, normalizer))
    if parsed.kind == "qgrams":
        units = ("" if normalizer == "compact" else " ").join(units)
    n = parsed.n
    found = [
        units[i : i + n] if isinstance(units, str) else " ".join(units[i : i + n]) for i in range(len(units) - n + 1)
    ]
    if units and not found:
        found = [units if isinstance(units, str) else " ".join(units)]
    if not parsed.multiset:
        return set(found)
    return {(gram, repeat) for gram, count in Counter(found).items() for repeat in range(count)}


@cache
def shared(corpus: str, features: str, normalizer: str) -> Shared:
    """Count for all pairs of documents the features that they share."""
    holders = defaultdict(list)
    sizes = []
    for document, text in enumerate(texts(corpus).values()):
        found = grams(text, features, normalizer)
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


def dedup(corpus: str, **options: Any) -> nd.Result:
    return nd.dedup_files(DATA / CORPORA[corpus], **options)


@pytest.mark.parametrize(
    ("corpus", "features", "normalizer", "measure", "threshold", "floor"),
    [(*run, *rule) for *run, measures in RUNS if AT_LENGTH or run[0] in SMALL for rule in measures],
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


@pytest.mark.parametrize("corpus", ["cornell", "clough", *(["msrp"] if AT_LENGTH else [])])
def test_pieces_between_white_space_have_the_tokens_of_the_text(corpus: str) -> None:
    for text in texts(corpus).values():
        assert list(tokens(text, "words")) == naive_tokens(text, "words")
        assert list(tokens(text, "compact")) == naive_tokens(text, "compact")


@pytest.mark.parametrize("threshold", [0.3, 0.8])
@pytest.mark.parametrize("corpus", ["reuters", "adzuna"])
def test_pairs_are_those_of_the_exact_files(corpus: str, threshold: float) -> None:
    # The files were made from the texts alone, without titles, by sets of \w+ of the lower-cased text.
    expected = {
        frozenset((row["id1"], row["id2"])): row["jaccard_w5"]
        for row in rows(f"{corpus}/exact_pairs_w5_j030.csv")
        if float(row["jaccard_w5"]) >= threshold
    }
    result = dedup(corpus, features="words:5", measure="jaccard", threshold=threshold)
    assert {frozenset((p.left, p.right)): f"{p.similarity:.6f}" for p in result.pairs} == expected


@pytest.fixture(scope="session")
def ten_parts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parts")
    with gzip.open(DATA / CORPORA["reuters"], "rb") as file:
        lines = file.readlines()
    ends = [len(lines) * i * i // 100 for i in range(11)]
    paths = []
    for i in range(10):
        path = folder / f"part-{i}.jsonl{'.gz' if i % 2 else ''}"
        part = b"".join(lines[ends[i] : ends[i + 1]])
        path.write_bytes(gzip.compress(part) if i % 2 else part)
        paths.append(path)
    return paths


@pytest.mark.parametrize("name", ["clean.parquet", *(["clean.jsonl"] if AT_LENGTH else [])])
def test_threads_memory_and_parts_change_no_byte(name: str, ten_parts: list[Path], tmp_path: Path) -> None:
    whole = DATA / CORPORA["reuters"]
    runs: list[tuple[Any, dict[str, Any]]] = [
        (whole, {"threads": 1}),
        (whole, {"threads": 7, "memory": 20_000_000}),
        (ten_parts, {"threads": 3}),
    ]
    written = []
    for number, (inputs, options) in enumerate(runs):
        result = nd.dedup_files(inputs, threshold=0.7, **options)
        output = tmp_path / f"{number}-{name}"
        result.write(str(output))
        written.append((output.read_bytes(), result.duplicates().to_pylist()))
    assert written[0][1]
    for number, other in enumerate(written[1:], 1):
        assert other == written[0], runs[number][1]
