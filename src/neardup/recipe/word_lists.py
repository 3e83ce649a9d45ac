"""The words that a recipe leaves out, and those at which its spot signatures begin."""

from __future__ import annotations

from typing import NamedTuple

from neardup.recipe.recipe import Recipe
from neardup.text.normalize import tokens
from neardup.text.stop_words import antecedents, stop_words


class WordLists(NamedTuple):
    """The words of a recipe, as tokens.

    Attributes
    ----------
    stops : frozenset of str
        The stop words of its languages.
    antecedents : frozenset of str
        Of ``spots``: those that the recipe names, or else those of its languages.
    """

    stops: frozenset[str]
    antecedents: frozenset[str]


def word_lists(recipe: Recipe) -> WordLists:
    """Return the words of a recipe.

    Raises
    ------
    RecipeError
        If a language has no stop words.
    """
    languages = "" if recipe.stop_words == "none" else recipe.stop_words
    stops = stop_words(languages)
    if recipe.parsed_features.kind != "spots":
        return WordLists(stops, frozenset())
    if recipe.antecedents:
        return WordLists(stops, frozenset(token.text for token in tokens(recipe.antecedents, recipe.normalize)))
    return WordLists(stops, antecedents(languages))
