"""Recipes of every kind that has a threshold, and texts that some of them take for near-duplicates."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from neardup.recipe import Recipe

#: A recipe, and how far around its threshold to look.
WAYS: dict[str, tuple[Recipe, float]] = {
    "jaccard": (Recipe(features="words:2", threshold=0.5), 0.2),
    "overlap": (Recipe(features="words:1", measure="overlap", threshold=0.6), 0.35),
    "multiset": (Recipe(features="words:1:multiset", measure="dice", threshold=0.65, keep="longest"), 0.2),
    "containment": (Recipe(features="words:1", measure="containment", threshold=0.8, jaccard_floor=0.2), 0.3),
    "weighted": (Recipe(features="words:1", weights="idf", measure="weighted_jaccard", threshold=0.5), 0.2),
    "cosine": (Recipe(features="words:1", weights="tfidf", measure="cosine", threshold=0.6, keep="shortest"), 0.25),
    "euclidean": (Recipe(features="words:1", weights="tf", measure="euclidean", threshold=1.5), 0.6),
    "sets apart": (Recipe(features="words:1", measure="euclidean", threshold=1.5), 0.5),
    "hamming": (Recipe(features="words:1", signature="simhash", measure="hamming", threshold=12), 9),
    "sketch": (Recipe(features="words:1", signature="minhash:16", measure="overlap", threshold=0.5), 0.25),
    "edit": (Recipe(features="words:1", threshold=0.3, second_step="edit >= 0.7"), 0.3),
    "then": (Recipe(features="words:1", threshold=0.25, second_step="jaccard(words:2) >= 0.5", keep="longest"), 0.3),
}

_WORDS = ["fox", "dog", "owl", "ran", "sat", "東京", "élan"]
TEXTS = st.lists(
    st.lists(st.sampled_from(_WORDS), max_size=7).map(" ".join)
    | st.sampled_from(["fox dog owl ran", "Fox dog owl ran!", "fox dog owl sat", "", "..."]),
    max_size=12,
)


def moved(recipe: Recipe, threshold: float) -> Recipe:
    """The recipe with another threshold, of its second step where it has one."""
    step = recipe.parsed_second_step
    if step is None:
        return recipe.changed(threshold=threshold)
    return recipe.changed(second_step=str(step._replace(threshold=threshold)))


def without_times(summary: dict[str, Any]) -> dict[str, Any]:
    """A summary without what a clock says."""
    return {name: value for name, value in summary.items() if name != "stages"}
