"""A decision in the place of a recipe: where it is taken from, and which options have a say beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from neardup.decision.decision import Decision
from neardup.decision.file import load_decision
from neardup.errors import RecipeError
from neardup.recipe import Recipe

#: A decision, or the file that holds it.
Given = Decision | str | os.PathLike[str]
_WHY = {
    "recipe": "brings its own recipe; leave one of the two out",
    "content": "was trained on {content}; leave it out",
    "threshold": "has a cut in its place; choose its working point with {precision}",
}


def decision_of(given: Given, *, title_column: str | None = None, time_column: str | None = None) -> Decision:
    """Return a decision, from its file where a path is given.

    Parameters
    ----------
    given : Decision or path
        What ``load_decision`` reads, or a decision.
    title_column, time_column : str, optional
        Other columns than those of the training. A column of times may be there for other reasons.

    Raises
    ------
    InputError
        If the file holds no decision.
    RecipeError
        If a column of titles is named and it compares none.
    """
    decision = given if isinstance(given, Decision) else load_decision(given)
    if title_column is not None and not decision.vector.needs_titles:
        raise RecipeError(f"title column {title_column!r} is asked for by no measure of this decision; leave it out")
    return replace(
        decision,
        title_column=decision.title_column if title_column is None else title_column,
        time_column=decision.time_column if time_column is None else time_column,
    )


def recipe_beside(
    decision: Decision,
    choices: Mapping[str, Any],
    *,
    say: Callable[[str, Any], str] = lambda name, value: f"{name}={value!r}",
    precision: str = "decision.at_precision(0.99)",
) -> Recipe:
    """Return a decision's recipe, in the keep order that was asked for.

    Parameters
    ----------
    decision : Decision
        It brings a recipe of its own.
    choices : mapping
        The recipe, and fields of recipes that were asked for; None for what was not.
    say : callable
        Gives an option as the caller writes it.
    precision : str
        How the caller chooses a working point.

    Raises
    ------
    RecipeError
        If anything was asked for but ``keep``, or the ``content`` that the decision was trained on.
    """
    for name, value in choices.items():
        if value is None or name == "keep" or (name == "content" and value == decision.net.content):
            continue
        content = f"content {decision.net.content!r}" if decision.net.content else "texts as they are"
        why = _WHY.get(name, _WHY["recipe"]).format(content=content, precision=precision)
        raise RecipeError(f"{say(name, value)} does not go with a learned decision, which {why}")
    return decision.recipe.changed(keep=choices.get("keep") or decision.net.keep)
