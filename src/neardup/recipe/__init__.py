"""Recipes: one choice for each step of the chain."""

from __future__ import annotations

from neardup.recipe.named import AnyRecipe, load_recipe, names, resolve_recipe
from neardup.recipe.recipe import KEEP_ORDERS, SEARCHES, WEIGHTS, Recipe, parse

__all__ = [
    "KEEP_ORDERS",
    "SEARCHES",
    "WEIGHTS",
    "AnyRecipe",
    "Recipe",
    "load_recipe",
    "names",
    "parse",
    "resolve_recipe",
]
