"""Recipes: one choice for each step of the chain."""

from neardup.recipe.named import load, names
from neardup.recipe.recipe import KEEP_ORDERS, SEARCHES, WEIGHTS, Recipe, parse

__all__ = ["KEEP_ORDERS", "SEARCHES", "WEIGHTS", "Recipe", "load", "names", "parse"]
