"""A sample seen through a recipe: all its pairs by similarity, and the closer ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa

from neardup.errors import RecipeError
from neardup.exploring.histogram import View
from neardup.exploring.overlaps import NONE_CLOSE, SamplePairs, all_pairs
from neardup.exploring.separation import above
from neardup.exploring.valley import valley_of
from neardup.features.extraction import Extractor
from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore, Vectors
from neardup.parallel import in_order
from neardup.recipe import Recipe

#: Texts in a piece of work for a thread.
_AT_A_TIME = 128
_GRAMS = ("words", "qgrams")


def check_comparable(recipe: Recipe, content: str) -> None:
    """Refuse a recipe whose similarities do not follow from features.

    Raises
    ------
    RecipeError
        In one sentence: what it compares, and the way out.
    """
    if recipe.measure == "semantic":
        raise RecipeError(
            f"recipe {recipe.name!r} compares embeddings (measure 'semantic'), and explore looks at all pairs by "
            "features, weights or simhashes: leave it out"
        )
    if content and recipe.content not in ("", content):
        raise RecipeError(
            f"recipe {recipe.name!r} compares content {recipe.content!r}, and the sample is of content {content!r}: "
            "give one of the two"
        )


def texts_array(texts: Sequence[str]) -> pa.LargeStringArray:
    """Return texts as the array that features are made of."""
    return pa.array(texts, pa.large_string())


def vectors_of(
    texts: pa.LargeStringArray, recipe: Recipe, statistics: Statistics | None = None, *, threads: int = 1
) -> Vectors:
    """Return the features of texts, which are contents already where the recipe asks for these."""
    extractor = partial(Extractor(recipe.changed(content=""), statistics))
    with FeatureStore() as store:
        parts = [texts.slice(begin, _AT_A_TIME) for begin in range(0, len(texts), _AT_A_TIME)]
        for block in in_order(partial(extractor, allocate=store.allocate), parts, threads):
            store.add(block)
        return store.vectors()


def view_of(
    vectors: Vectors,
    recipe: Recipe,
    statistics: Statistics | None = None,
    *,
    name: str = "",
    least: int = NONE_CLOSE,
    threads: int = 1,
) -> tuple[View, SamplePairs]:
    """Compare all pairs of texts by a recipe, without its threshold, its second step and its search.

    Parameters
    ----------
    vectors : Vectors
        The features of the texts.
    recipe : Recipe
        What made them (``vectors_of``).
    statistics : Statistics, optional
        For a recipe with ``needs_statistics``.
    name : str
        Of the view; where it is empty, it is called by its features, and has an n.
    least : int
        Pairs of so many hundredths or more are returned; 101 for none.
    threads : int
        They change the time, never the answer.

    Returns
    -------
    View, SamplePairs
        The pairs by the places of the texts.
    """
    begin = time.perf_counter()
    unit = 1 if statistics is None else statistics.unit(recipe)
    found = all_pairs(vectors, recipe.measure, unit=unit, least=least, threads=threads)
    sizes, features = np.diff(vectors.heads), recipe.parsed_features
    view = View(
        name=name or recipe.features,
        recipe=recipe,
        n=features.n if features.kind in _GRAMS and not name else None,
        weighted=recipe.is_weighted,
        documents=len(sizes),
        empty=int((sizes == 0).sum()),
        typical=int(np.median(sizes)) if len(sizes) else 0,
        pairs=len(sizes) * (len(sizes) - 1) // 2,
        zero=found.zero,
        counts=tuple(found.counts.tolist()),
        edges=tuple(found.edges.tolist()),
        valley=None,
        seconds=0.0,
    )
    return replace(view, valley=valley_of(above(view)), seconds=time.perf_counter() - begin), found.close
