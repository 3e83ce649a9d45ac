"""What the tests of the engines share: texts of which many are edited copies, and their pairs by comparing all."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import naive

import neardup as nd
from neardup.recipe import Recipe
from neardup.recipe.measures import exact_fraction

PairsByPlace = dict[tuple[int, int], float]


def edited_texts(
    rng: random.Random,
    count: int,
    vocabulary: Sequence[str],
    sizes: Sequence[int] = (0, 1, 2, 3, 5, 8, 20, 60),
    edits: Sequence[int] = (0, 0, 1, 1, 2, 4),
) -> list[str]:
    """Texts of words, of which many are copies of others with a few words changed, and some of these cut short."""
    texts: list[str] = []
    for _ in range(count):
        if texts and rng.random() < 0.6:
            words = rng.choice(texts).replace(",", "").split()
            for _ in range(rng.choice(edits)):
                if words:
                    words[rng.randrange(len(words))] = rng.choice(vocabulary)
            if words and rng.random() < 0.2:
                del words[rng.randrange(len(words)) :]
        else:
            words = rng.choices(vocabulary, k=rng.choice(sizes))
        texts.append(rng.choice([" ", ", ", "  "]).join(words))
    return texts


def numbered_words(count: int) -> list[str]:
    return [f"w{number}" for number in range(count)]


def naive_pairs(texts: Sequence[str], recipe: Recipe) -> PairsByPlace:
    """All pairs of a recipe's sets, by comparing all with all in fractions."""
    spec = recipe.parsed_features
    sets = [naive.grams(text, recipe.normalize, spec.kind, spec.n, spec.multiset) for text in texts]
    floor = exact_fraction(recipe.jaccard_floor, "floor", zero=True)
    return naive.all_pairs(sets, recipe.measure, recipe.exact_threshold, floor)


def pairs_of(result: nd.Result) -> PairsByPlace:
    """The pairs of a result, which are sorted and listed once."""
    rows = [tuple(pair) for pair in result.pairs]
    assert rows == sorted(set(rows))
    assert len(rows) == len(result.pairs)
    return {(left, right): similarity for left, right, similarity in rows}


def keepers_of(result: nd.Result) -> dict[Any, tuple[Any, float]]:
    return {drop.id: (drop.keeper, drop.similarity) for drop in result.dropped}
