"""Recipes: one choice for each step of the chain."""

from neardup.recipe.named import AnyRecipe, load, names, recipe_of
from neardup.recipe.recipe import KEEP_ORDERS, SEARCHES, WEIGHTS, Recipe, parse

__all__ = ["KEEP_ORDERS", "SEARCHES", "WEIGHTS", "AnyRecipe", "Recipe", "load", "names", "parse", "recipe_of"]
