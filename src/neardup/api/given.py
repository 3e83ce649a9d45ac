"""What all functions are given: a corpus, and a recipe with other values for some of its fields."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any, TypedDict

from neardup.decision.choosing import Given, decision_of, recipe_beside
from neardup.decision.decision import Decision
from neardup.documents import Corpus, corpus_of, open_corpus
from neardup.errors import RecipeError
from neardup.recipe import AnyRecipe, Recipe
from neardup.recipe import load as load_recipe
from neardup.recipe.choosing import chosen

__all__ = ["Choices", "Given", "chosen_recipe", "corpus_from", "load_recipe", "open_files", "recipe_and_decision"]


class Choices(TypedDict, total=False):
    """Fields of ``Recipe`` that take the place of the recipe's own."""

    content: str
    normalize: str
    features: str
    stop_words: str
    antecedents: str
    clip: str
    weights: str
    signature: str
    measure: str
    threshold: float
    jaccard_floor: float
    search: str
    recall: float
    num_perm: int
    seed: int
    then: str
    keep: str


def open_files(
    inputs: str | PathLike[str] | Sequence[str | PathLike[str]],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    clusters: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
) -> Corpus:
    """Open files, folders, globs or URIs for ``neighbors``, ``query`` and ``compare``; close it, or use it in ``with``.

    Parameters
    ----------
    inputs, text_column, id_column, strict, quarantine
        As in ``dedup_files``.
    clusters : str, optional
        The column that tells clusters apart, for ``compare``.
    """
    return open_corpus(
        [inputs] if isinstance(inputs, str | PathLike) else inputs,
        text_column=text_column,
        id_column=id_column,
        order_column=clusters,
        strict=strict,
        quarantine=quarantine,
    )


def corpus_from(data: Any, text_column: str | None, id_column: str | None, order_column: str | None = None) -> Corpus:
    """Return the documents of data in memory, or of files that are open.

    Raises
    ------
    RecipeError
        If columns are named for files that are open.
    """
    if not isinstance(data, Corpus):
        return corpus_of(data, text_column=text_column, id_column=id_column, order_column=order_column)
    given = {"text_column": text_column, "id_column": id_column, "clusters": order_column}
    for name, value in given.items():
        if value is not None:
            raise RecipeError(f"{name} {value!r} comes too late for files that are open; give it to open_files")
    return data


def chosen_recipe(recipe: AnyRecipe, choices: Choices) -> Recipe:
    """Return a recipe, by name or file where it is a text, with other values for some of its fields.

    Raises
    ------
    RecipeError
        If there is no such recipe, a recipe has no such field, or a value is refused.
    """
    return chosen(recipe, choices)


def recipe_and_decision(
    recipe: AnyRecipe,
    choices: Choices,
    decision: Given | None,
    *,
    title_column: str | None = None,
    time_column: str | None = None,
) -> tuple[Recipe, Decision | None]:
    """Return what is to be done: the chosen recipe, or that of a decision with the decision.

    Parameters
    ----------
    recipe, choices
        As in ``chosen_recipe``; beside a decision only ``keep`` may be chosen.
    decision : Decision or path, optional
        It, or its file.
    title_column, time_column : str, optional
        Where titles and times are, for a decision that goes by them.

    Raises
    ------
    NeardupError
        If there is no such recipe or decision, or one contradicts the other.
    """
    if decision is None:
        if title_column is not None:
            raise RecipeError(f"title_column {title_column!r} is for decisions that compare titles; leave it out")
        return chosen_recipe(recipe, choices), None
    found = decision_of(decision, title_column=title_column, time_column=time_column)
    asked = {"recipe": None if recipe == "default" else recipe} | choices
    return recipe_beside(found, asked), found
