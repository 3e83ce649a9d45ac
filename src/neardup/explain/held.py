"""What two documents really have: the grams that a collection leaves them, their weights, their signatures."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.explain.grams import Gram, Side, side_of, spans_of
from neardup.recipe import Recipe

if TYPE_CHECKING:
    from neardup.features.statistics import Statistics

Words = npt.NDArray[np.uint64]
Integers = npt.NDArray[np.int64]


class Counts(NamedTuple):
    """o, a and b of a pair, as ``neardup.measures`` takes them, and how much of them makes 1."""

    o: int
    a: int
    b: int
    unit: int = 1


class Compared(NamedTuple):
    """What two documents are compared by, where it is no plain set.

    Attributes
    ----------
    counts : Counts
        Of the weighted vectors or of the signatures.
    words : tuple of list of int
        The words of each signature; empty for weights.
    """

    counts: Counts
    words: tuple[list[int], list[int]]


def needs_kernels(recipe: Recipe) -> bool:
    """Return whether what a document has is more than its plain grams, so that kernels must tell."""
    return bool(recipe.clip or recipe.weights or recipe.signature) or _chooses(recipe)


def _chooses(recipe: Recipe) -> bool:
    return recipe.parsed_features.kind in ("terms", "windows")


def held_side(text: str, recipe: Recipe, statistics: Statistics | None) -> Side:
    """Return a text's grams, of those that are clipped, sampled or chosen only the ones that the document holds.

    Parameters
    ----------
    text : str
        Any text.
    recipe : Recipe
        Its ``normalize``, ``features`` and ``clip``.
    statistics : Statistics or None
        Of the collection, for recipes with ``needs_statistics``.

    Raises
    ------
    RecipeError
        If the recipe needs statistics and there are none.
    """
    if recipe.needs_statistics and statistics is None:
        raise RecipeError(
            f"what recipe {recipe.name!r} compares depends on the collection, and there are no statistics of one; "
            "gather them first, or ask the result of a run"
        )
    side, wanted = side_of(text, recipe), recipe.parsed_features
    if not side.grams or not (recipe.clip or _chooses(recipe)):
        return side
    if wanted.kind == "terms" and wanted.positional:
        return _ranked(side, recipe, statistics)
    hashes = _hashes(text, recipe)
    at = np.arange(len(hashes))
    if wanted.kind == "windows":
        at = _sampled(hashes, wanted.numbers[1])
    bare = recipe.without_statistics()
    # Repeats are numbered and places added in the order of the grams.
    features = _features([text], bare)[0] if wanted.multiset or wanted.positional else hashes[at]
    return _some(side, at[np.isin(features, _features([text], bare.changed(clip=recipe.clip), statistics)[0])].tolist())


def _some(side: Side, at: list[int]) -> Side:
    return side._replace(grams=[side.grams[i] for i in at], places=[side.places[i] for i in at])


def _sampled(hashes: Words, modulus: int) -> Integers:
    chosen = np.flatnonzero(hashes % np.uint64(modulus) == 0)
    return chosen if len(chosen) else np.array([np.argmin(hashes)])


def _ranked(side: Side, recipe: Recipe, statistics: Statistics | None) -> Side:
    """Return the chosen terms at all their places, each with its rank in its segment."""
    wanted, bare = recipe.parsed_features, recipe.without_statistics()
    segments = spans_of(side.text, wanted.unit)
    document = bare.changed(features=f"terms:{wanted.numbers[0]}", clip=recipe.clip)
    chosen = _features([side.text[start:end] for start, end in segments], document, statistics)
    ranks = [{term: rank for rank, term in enumerate(terms.tolist())} for terms in chosen]
    ends = [end for _, end in segments]
    kept: list[int] = []
    grams: list[Gram] = []
    for i, term in enumerate(_hashes(side.text, bare).tolist()):
        rank = ranks[bisect_right(ends, side.units[i].start)].get(term)
        if rank is not None:
            kept.append(i)
            grams.append((*side.grams[i], rank))
    return _some(side, kept)._replace(grams=grams)


def _hashes(text: str, recipe: Recipe) -> Words:
    from neardup.features.extraction import gram_hashes

    return gram_hashes(text, recipe)


def _features(texts: list[str], recipe: Recipe, statistics: Statistics | None = None) -> list[Words]:
    block = _extracted(texts, recipe, statistics)
    return np.split(block.features, np.cumsum(block.sizes)[:-1])


def _extracted(texts: list[str], recipe: Recipe, statistics: Statistics | None) -> Any:
    import pyarrow as pa

    from neardup.features.extraction import extract

    return extract(pa.array(texts, pa.large_string()), recipe, statistics)


def compared(left: str, right: str, recipe: Recipe, statistics: Statistics | None) -> Compared | None:
    """Return what the recipe's measure takes of two texts where it is no set: weighted vectors or signatures."""
    if not (recipe.weights or recipe.signature):
        return None
    block = _extracted([left, right], recipe, statistics)
    end = int(block.sizes[0])
    features = block.features[:end].tolist(), block.features[end:].tolist()
    if recipe.is_weighted:
        weights = block.weights[:end].tolist(), block.weights[end:].tolist()
        f, g = (dict(zip(*pair, strict=True)) for pair in zip(features, weights, strict=True))
        unit = 1 if statistics is None else statistics.unit(recipe)
        return Compared(_of_vectors(f, g, recipe.measure, unit), ([], []))
    if recipe.signature == "simhash":
        a, b = 64 * len(features[0]), 64 * len(features[1])
        differ = (features[0][0] ^ features[1][0]).bit_count() if a and b else 64
        return Compared(Counts(64 - differ, a, b), features)
    shared = len(set(features[0]) & set(features[1]))
    return Compared(Counts(shared, len(features[0]), len(features[1])), features)


def _of_vectors(f: dict[int, int], g: dict[int, int], measure: str, unit: int) -> Counts:
    if measure == "weighted_jaccard":
        return Counts(sum(min(w, g.get(x, 0)) for x, w in f.items()), sum(f.values()), sum(g.values()), unit)
    a, b = (sum(w * w for w in vector.values()) for vector in (f, g))
    return Counts(sum(w * g.get(x, 0) for x, w in f.items()), a, b, unit)
