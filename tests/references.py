"""A corpus with a reference, the engines that must agree on it, and the results of plain comparison."""

from __future__ import annotations

import random
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import strategies as st

import neardup as nd

Pairs = dict[tuple[int, int], float]
#: A memory limit that is too small for any features.
SMALL = 1_000_000


class Encoder:
    """Embeds texts as counts of their letters."""

    def encode(self, texts: list[str]) -> Any:
        return np.array([[text.count(letter) + 0.1 for letter in "abcdefgh"] for text in texts], np.float64)


def corpus(count: int, seed: int = 1) -> list[str]:
    """Texts in families of near copies and single texts, some equal, some empty."""
    rng = random.Random(seed)
    words = [f"word{n}" for n in range(150)]
    found: list[str] = []
    while len(found) < count:
        own = rng.choices(words, k=rng.randint(1, 30))
        found.append(" ".join(own))
        for _ in range(rng.choice([0, 0, 1, 3])):
            edited = (word if rng.random() > 0.08 else rng.choice(words) for word in own)
            found.append(" ".join(list(edited)[rng.choice([0, 0, 0, 0, 1, 2]) :]))
    found = [*found[:count], "", "", *found[:8], found[9].upper()]
    rng.shuffle(found)
    return found


def plain_verdicts(own: int, count: int, pairs: Pairs, order: list[int]) -> dict[int, tuple[int, float]]:
    """The dropped documents of the input; the reference is last in rows, first in keep order, and never dropped."""
    return naive.keepers(count, pairs, [*range(own, count), *order])


def without_reference(own: int, pairs: Pairs) -> Pairs:
    return {(left, right): value for (left, right), value in pairs.items() if left < own}


def check(result: nd.Result, own: int, pairs: Pairs, order: list[int]) -> None:
    """Check a result, whose ids are row numbers, against all pairs except those within the reference.

    The rows of the reference follow those of the input.
    """
    count = own + result.summary["reference"]["documents"]
    pairs = without_reference(own, pairs)
    table = result.pairs.to_arrow()
    right = [
        row + (own if side == "reference" else 0)
        for row, side in zip(table["right"].to_pylist(), table["right_from"].to_pylist(), strict=True)
    ]
    listed = list(zip(table["left"].to_pylist(), right, strict=True))
    if result.summary["all_pairs"]:
        assert listed == sorted(pairs)
        assert len(result.pairs) == len(pairs)
        assert dict(zip(listed, table["similarity"].to_pylist(), strict=True)) == pytest.approx(pairs)
    similar = pairs | dict(zip(listed, table["similarity"].to_pylist(), strict=True))
    expected = plain_verdicts(own, count, similar, order)
    found = {
        row["dropped"]: (row["keeper"] + (own if row["keeper_from"] == "reference" else 0), row["similarity"])
        for row in result.duplicates().to_pylist()
    }
    assert found == expected
    assert result.kept == [row for row in range(own) if row not in expected]
    summary = result.summary
    assert (summary["documents"], summary["kept"]) == (own, own - len(expected))
    assert summary["dropped"] == len(expected)
    assert summary["reference"]["dropped"] == sum(keeper >= own for keeper, _ in expected.values())
    if summary["all_pairs"]:
        groups = [group for group in naive.families(count, pairs) if min(group) < own]
        named = [[*family.members, *(row + own for row in family.reference)] for family in result.families]
        assert named == groups
        assert [family.pairs for family in result.families] == [
            sum(left in group for left, _ in pairs) for group in groups
        ]


LETTERS = ["a", "b", "c", "d", "e", "f", "g", "h"]
WORDS = st.lists(st.lists(st.sampled_from(LETTERS), max_size=7).map(" ".join), max_size=14)
MEASURES = [
    ("jaccard", 0.5),
    ("jaccard", 1.0),
    ("overlap", 0.6),
    ("dice", 0.75),
    ("cosine", 0.7),
    ("containment", 0.8),
    ("euclidean", 2.0),
]


ENGINES: dict[str, dict[str, Any]] = {
    "sets": {"features": "words:2", "threshold": 0.5},
    "repeats": {"features": "words:1:multiset", "measure": "containment", "threshold": 0.8},
    "sketch": {"features": "words:1", "signature": "sketch:25", "measure": "overlap", "threshold": 0.5},
    "terms": {"recipe": "terms"},
    "weights": {"features": "words:1", "weights": "tfidf", "measure": "cosine", "threshold": 0.6},
    "weighted jaccard": {"features": "words:1", "weights": "idf", "measure": "weighted_jaccard", "threshold": 0.5},
    "clipped": {"features": "words:1", "clip": "df:2:0.5", "threshold": 0.6},
    "lsh": {"features": "words:1", "search": "lsh", "threshold": 0.5, "recall": 0.8},
    "hamming": {"recipe": "simhash", "threshold": 12},
    "edit": {"features": "words:1", "threshold": 0.4, "second_step": "edit >= 0.7"},
    "sets twice": {"features": "words:1", "threshold": 0.4, "second_step": "jaccard(words:2) >= 0.5"},
    "semantic": {"features": "words:1", "measure": "semantic", "threshold": 0.97, "encoder": Encoder()},
    "checksum": {"recipe": "checksum"},
}


def of_both(new: list[str], old: list[str], **choices: Any) -> Pairs:
    """All pairs of a run over input and reference together; other tests check these against plain loops."""
    whole = nd.dedup(new + old, pairs_per_document=None, **choices)
    return {(pair.left, pair.right): pair.similarity for pair in whole.pairs}


NEWS = "the harbour board voted on tuesday to widen the eastern channel at a cost of forty million"
OTHER = "a late frost has damaged two thirds of the cherry crop in the northern valleys growers say"
