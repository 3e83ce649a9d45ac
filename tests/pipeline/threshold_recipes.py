"""Recipes of every kind that has a threshold, and texts that some of them count as near-duplicates."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from neardup.documents import corpus_of
from neardup.pipeline.pipeline import run
from neardup.pipeline.result import Result
from neardup.recipe import Recipe

#: A recipe, and how far beyond its threshold to search.
MARGINS: dict[str, tuple[Recipe, float]] = {
    "jaccard": (Recipe(features="words:2", threshold=0.5), 0.2),
    "overlap": (Recipe(features="words:1", measure="overlap", threshold=0.6), 0.35),
    "multiset": (Recipe(features="words:1:multiset", measure="dice", threshold=0.65, keep="longest"), 0.2),
    "containment": (Recipe(features="words:1", measure="containment", threshold=0.8, jaccard_floor=0.2), 0.3),
    "weighted": (Recipe(features="words:1", weights="idf", measure="weighted_jaccard", threshold=0.5), 0.2),
    "cosine": (Recipe(features="words:1", weights="tfidf", measure="cosine", threshold=0.6, keep="shortest"), 0.25),
    "euclidean": (Recipe(features="words:1", weights="tf", measure="euclidean", threshold=1.5), 0.6),
    "euclidean of sets": (Recipe(features="words:1", measure="euclidean", threshold=1.5), 0.5),
    "hamming": (Recipe(features="words:1", signature="simhash", measure="hamming", threshold=12), 9),
    "sketch": (Recipe(features="words:1", signature="minhash:16", measure="overlap", threshold=0.5), 0.25),
    "edit": (Recipe(features="words:1", threshold=0.3, second_step="edit >= 0.7"), 0.3),
    "two steps": (
        Recipe(features="words:1", threshold=0.25, second_step="jaccard(words:2) >= 0.5", keep="longest"),
        0.3,
    ),
}

_WORDS = ["fox", "dog", "owl", "ran", "sat", "東京", "élan"]
TEXTS = st.lists(
    st.lists(st.sampled_from(_WORDS), max_size=7).map(" ".join)
    | st.sampled_from(["fox dog owl ran", "Fox dog owl ran!", "fox dog owl sat", "", "..."]),
    max_size=12,
)


def dedup(documents: Any, recipe: Recipe, **options: Any) -> Result:
    return run(corpus_of(documents), recipe, threads=1, **options)


def with_threshold(recipe: Recipe, threshold: float) -> Recipe:
    """Return the recipe with another threshold, of its second step if it has one."""
    step = recipe.parsed_second_step
    if step is None:
        return recipe.changed(threshold=threshold)
    return recipe.changed(second_step=str(step._replace(threshold=threshold)))
