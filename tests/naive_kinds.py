"""Naive features of a text by a recipe: sets of grams, of sketch slots, of bands, or 64 bits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import naive_features
import pyarrow as pa
from naive_sketches import naive_minhash, naive_simhash, naive_supershingles

from neardup.documents import corpus_of
from neardup.features.extraction import extract_features, gram_hashes
from neardup.features.reading import gather_statistics
from neardup.features.signatures import Signer
from neardup.features.statistics import Statistics
from neardup.recipe import Recipe
from neardup.search.lsh import bands_of
from neardup.text.stop_words import antecedents, stop_words

Features = frozenset[Any]


def feature_maker(recipe: Recipe, sample: Sequence[str]) -> Callable[[str], Features]:
    """Return a function from a text to its features: grams, the slots of a sketch with their values, or 64 bits."""
    statistics = None
    if recipe.needs_statistics:
        statistics = gather_statistics(
            corpus_of(list(sample), text_column=None, id_column=None, order_column=None), recipe
        )
    if recipe.signature:
        return cache(lambda text: _signature(text, recipe, statistics))
    languages = "" if recipe.stop_words == "none" else recipe.stop_words
    stops = stop_words(languages)
    begins = antecedents(languages) if recipe.features.startswith("spots") else frozenset()

    def grams(text: str) -> list[naive_features.Gram]:
        hashed = _hash_of(text, recipe) if recipe.features.startswith("windows") else hash
        return naive_features.features(text, recipe.features, recipe.normalize, stops, begins, hashed=hashed)

    if not recipe.clip:
        return cache(lambda text: frozenset(grams(text)))
    df = naive_features.frequencies(map(grams, sample))

    def clipped(text: str) -> Features:
        return frozenset(x for x in grams(text) if naive_features.passes_clip(recipe.clip, df[x] or 1, len(sample)))

    return cache(clipped)


def _words(text: str, recipe: Recipe, statistics: Statistics | None = None) -> tuple[list[int], list[int]]:
    block = extract_features(pa.array([text], pa.large_string()), recipe, statistics)
    return block.features.tolist(), block.weights.tolist()


def _hash_of(text: str, recipe: Recipe) -> Callable[[naive_features.Gram], int]:
    """Return the hash by which windows are sampled, from the library's hashes of all windows of a text."""
    bare = ":".join(recipe.features.split(":")[:2]) + ":1"
    grams = [g for segment in naive_features.grams(text, bare, recipe.normalize) for g in segment]
    return dict(zip(grams, gram_hashes(text, recipe).tolist(), strict=True)).__getitem__


def _signature(text: str, recipe: Recipe, statistics: Statistics | None) -> Features:
    signature = recipe.parsed_signature
    assert signature is not None
    measure = "cosine" if recipe.weights else "jaccard"
    found, weights = _words(text, recipe.changed(signature="", measure=measure, threshold=0.5), statistics)
    if not found or (signature.kind == "imatch" and len(found) < signature.numbers[0]):
        return frozenset()
    if signature.kind == "imatch":
        return frozenset([frozenset(found)])
    if signature.kind == "simhash":
        return frozenset([naive_simhash(found, weights or [1] * len(found))])
    if signature.kind == "sketch":
        signer = Signer(recipe, statistics)
        pairs = zip(signer._factors.tolist(), signer._shifts.tolist(), strict=True)
        return frozenset(enumerate(min((a * x + b) % signer._prime for x in found) for a, b in pairs))
    minima = naive_minhash(found, signature.minima, recipe.seed)
    if signature.kind == "supershingle":
        minima = naive_supershingles(minima, signature.numbers[1])
    return frozenset(enumerate(minima))


@cache
def bands(text: str, recipe: Recipe) -> Features:
    """Return the bands of the sketch of a text, each with its number."""
    plan = bands_of(recipe)
    found, _ = _words(text, recipe.changed(search="exact"))
    minima = naive_minhash(found, plan.bands * plan.rows, recipe.seed)
    return frozenset((i, tuple(minima[i : i + plan.rows])) for i in range(0, plan.bands * plan.rows, plan.rows))
