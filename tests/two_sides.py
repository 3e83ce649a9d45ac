"""Two sides, the limits of each engine between them, and their pairs by comparing all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from types import ModuleType
from typing import Any, NamedTuple

import naive
import numpy as np
import numpy.typing as npt
from naive_kinds import feature_maker

import neardup as nd
from neardup.recipe import Recipe
from neardup.search import bounded_join, engines, hamming, join, lsh, scan_count, second_step, weighted


class Sides(NamedTuple):
    """Few documents and many: entries of the former meet seldom, and those of the latter often."""

    new: list[str]
    old: list[str]


def _sides() -> Sides:
    rng = np.random.default_rng(7)
    shares = 1 / np.arange(1, 25)
    sets: dict[frozenset[int], None] = {}
    while len(sets) < 400:
        sets[frozenset(rng.choice(24, 8, replace=False, p=shares / shares.sum()).tolist())] = None
    # Words repeat, so that weights differ.
    texts = [" ".join(f"w{number}" for number in numbers for _ in range(1 + number % 3)) for numbers in sets]
    return Sides(texts[:60], texts[60:])


SIDES = _sides()


class Vectors:
    """An encoder for ``SIDES``: all cosines are eighths."""

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        words = {f"w{number}": number for number in range(24)}
        rows = np.zeros((len(texts), 24), np.float32)
        for row, text in enumerate(texts):
            rows[row, [words[word] for word in text.split()]] = 1
        return rows


def sets_of(text: str) -> frozenset[str]:
    return frozenset(text.split())


def share_of_sets(left: frozenset[str], right: frozenset[str]) -> bool:
    return naive.reaches("jaccard", len(left & right), len(left), len(right), Fraction(7, 10))


def cosine_of_sets(left: frozenset[str], right: frozenset[str]) -> bool:
    return naive.reaches("cosine", len(left & right), len(left), len(right), Fraction(7, 10))


def cosine_of_counts(left: frozenset[tuple[str, int]], right: frozenset[tuple[str, int]]) -> bool:
    return naive.reaches("cosine", *naive.vector_counts("cosine", dict(left), dict(right)), Fraction(8, 10))


def few_bits(left: frozenset[int], right: frozenset[int]) -> bool:
    return naive.hamming(*left, *right) <= 8


class Way(NamedTuple):
    """The options of an engine, the naive features and matches of its pairs, and the limits to try.

    Limits are values of a constant of a module: the smallest is exceeded by both sides, the largest by none.
    """

    options: dict[str, Any]
    features: Callable[[str], Hashable] = sets_of
    matches: Callable[..., bool] = share_of_sets
    limits: tuple[tuple[ModuleType, str, tuple[int, ...]], ...] = ()
    fixed: tuple[tuple[ModuleType, str, int], ...] = ()


JACCARD: dict[str, Any] = {"features": "words:1", "threshold": 0.7}
SIMHASH: dict[str, Any] = {"features": "words:1", "signature": "simhash", "measure": "hamming", "threshold": 8}
IN_PARTS = ((bounded_join, "_MIN_STORED", 0), (bounded_join, "_MAX_PARTS", 16))
COUNTED = ((join, "MIN_MEETINGS", -1), (join, "_MEETINGS_PER_FEATURE", 0))
WAYS = {
    "memory": Way(
        JACCARD,
        limits=((join, "MIN_MEETINGS", (-1, 100, 1000, 3000, 10_000, 30_000, 1 << 40)),),
        fixed=((join, "_MEETINGS_PER_FEATURE", 0),),
    ),
    "counted lists": Way(
        JACCARD,
        limits=((scan_count, "_BATCH", (16, 64, 256)), (scan_count, "_PIECE", (5, 100))),
        fixed=(*COUNTED, (scan_count, "_SEGMENT", 48), (scan_count, "_SAMPLE", 20)),
    ),
    "bounded memory": Way(
        JACCARD | {"memory": 1_000_000},
        limits=(
            (bounded_join, "_MAX_CANDIDATES", (0, 1, 4, 16, 64)),
            (bounded_join, "_KEYS_AT_A_TIME", (1, 50, 500)),
            (bounded_join, "_PAIRS_AT_A_TIME", (1, 30, 300)),
            (bounded_join, "_MIN_PARTS", (1, 8, 64)),
        ),
        fixed=IN_PARTS,
    ),
    "lsh": Way(
        JACCARD | {"search": "lsh", "recall": 0.999999},
        limits=((lsh, "_PIECE", (7, 61, 500)), (lsh, "_CAPACITY", (1, 30, 300))),
    ),
    "lsh in bounded memory": Way(
        JACCARD | {"search": "lsh", "recall": 0.9999, "memory": 20_000_000},
        limits=((lsh, "_PIECE", (7, 500)), (bounded_join, "_PAIRS_AT_A_TIME", (30,))),
        fixed=IN_PARTS,
    ),
    "hamming": Way(
        SIMHASH,
        feature_maker(Recipe(**SIMHASH), ()),
        few_bits,
        limits=((hamming, "_MAX_RUN", (2, 5, 20, 100)), (hamming, "_CAPACITY", (2, 30, 300))),
        fixed=((hamming, "_SORT_COST", 0), (hamming, "_MAX_TABLES", 30), (hamming, "_ROWS_PER_PIECE", 32)),
    ),
    "weighted": Way(
        {"features": "words:1", "measure": "cosine", "weights": "tf", "threshold": 0.8},
        lambda text: frozenset(Counter(text.split()).items()),
        cosine_of_counts,
        limits=((weighted, "_PIECE", (7, 60, 61, 500)), (weighted, "_CAPACITY", (1, 30, 300))),
    ),
    "semantic": Way(
        {"measure": "semantic", "threshold": 0.7, "encoder": Vectors()},
        matches=cosine_of_sets,
        limits=((engines, "_ROWS", (1, 7, 60, 61, 500)),),
    ),
    "second step": Way(
        {"features": "words:1", "threshold": 0.4, "second_step": "jaccard(words:1) >= 0.7"},
        limits=((second_step, "_PAIRS_AT_A_TIME", (1, 30, 1000)),),
    ),
}


def constants(way: Way) -> Iterator[tuple[tuple[ModuleType, str, int], ...]]:
    yield ()
    for module, name, values in way.limits:
        for value in values:
            yield (*way.fixed, (module, name, value))


def plain_pairs(way: Way, sides: Sides) -> set[tuple[str, str]]:
    """All pairs of which one is new, by comparing all with all; of equal features only the first."""
    firsts: dict[Hashable, str] = {}
    for side, texts in zip("no", sides, strict=True):
        for number, text in enumerate(texts):
            firsts.setdefault(way.features(text), f"{side}{number}")
    pairs = combinations(firsts.items(), 2)
    return {(left[1], right[1]) for left, right in pairs if left[1][0] == "n" and way.matches(left[0], right[0])}


def named(side: str, texts: Sequence[str]) -> dict[str, list[str]]:
    return {"id": [f"{side}{number}" for number in range(len(texts))], "text": list(texts)}


def listed(result: nd.Result) -> list[tuple[str, str]]:
    return [(pair.left, pair.right) for pair in result.pairs]
