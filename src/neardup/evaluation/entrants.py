"""What is compared: recipes, and learned decisions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.decision.choosing import Given, decision_of
from neardup.decision.decision import Decision
from neardup.errors import RecipeError
from neardup.evaluation.thresholds import Ladder, decision_ladder, ladder, levels
from neardup.pairs import PairArrays, Pairs
from neardup.recipe import AnyRecipe, Recipe, recipe_of
from neardup.recipe import names as recipe_names
from neardup.result import Result


class Entrant(NamedTuple):
    """A recipe, or a decision with its recipe, and the thresholds to try.

    Attributes
    ----------
    recipe : Recipe
        With its name and its own threshold.
    ladder : Ladder
        The thresholds.
    decision : Decision or None
        Where one decides.
    """

    recipe: Recipe
    ladder: Ladder
    decision: Decision | None = None

    @property
    def loosest(self) -> tuple[Recipe, Decision | None]:
        """What finds the pairs of the loosest threshold."""
        if self.decision is None:
            return self.recipe.changed(keep="first", threshold=self.ladder.thresholds[0]), None
        every = self.decision.everything()
        return every.recipe.changed(keep="first"), every

    @property
    def needs_columns(self) -> bool:
        """Whether more than texts is compared."""
        return self.decision is not None and (self.decision.vector.needs_titles or self.decision.vector.needs_times)


def recipe_entrants(recipes: Sequence[AnyRecipe] | None, content: str | None, asked: Sequence[float]) -> list[Entrant]:
    """Return recipes, all named ones by default; with a content for all, where one is given."""
    chosen = [recipe_of(recipe) for recipe in recipes or recipe_names()]
    if content is not None:
        chosen = [recipe.changed(content=content) for recipe in chosen]
    return [Entrant(recipe, ladder(recipe, asked)) for recipe in chosen]


def decision_entrants(
    decisions: Sequence[Given], title_column: str | None, time_column: str | None, asked: Sequence[float]
) -> list[Entrant]:
    """Return decisions, called after their files; columns as in training, unless others are given.

    Raises
    ------
    NeardupError
        If a file holds no decision, or a column of titles is named and none compares titles.
    """
    known = [decision_of(given, time_column=time_column) for given in decisions]
    titled = [one.vector.needs_titles for one in known]
    if title_column is not None and not any(titled):
        raise RecipeError(f"title column {title_column!r} is for decisions that compare titles; leave it out")
    found = []
    for given, decision, compares in zip(decisions, known, titled, strict=True):
        decision = decision_of(decision, title_column=title_column if compares else None)
        name = Path(given).stem if isinstance(given, str | os.PathLike) else decision.recipe.name
        says = f"{decision.vector} on pairs with {decision.net.in_words()}"
        recipe = decision.recipe.changed(name=name, description=says)
        found.append(Entrant(recipe, decision_ladder(decision, asked), decision))
    return found


def pairs_of(result: Result, entrant: Entrant) -> Iterator[PairArrays]:
    """Yield the pairs with what the cuts of the ladder are about.

    After a second step a result tells the second measure's similarity; then the thresholds that still return a pair are
    counted. A decision's levels are those of g, which tells apart what probabilities near 1 do not.
    """
    pairs, steps = result.pairs, entrant.ladder
    if entrant.decision is not None and result.vectors is not None:
        share = levels(entrant.decision, steps, entrant.decision.g(result.vectors))
        yield from Pairs(pairs.names, pairs.representative, pairs.left, pairs.right, share).arrays()
        return
    if not result.recipe.then:
        yield from pairs.arrays()
        return
    ends = [np.zeros((0, 2), np.int64)]
    for threshold in steps.thresholds:
        ends += [np.stack([part.left, part.right], axis=1) for part in result.at(threshold).pairs.arrays()]
    found, times = np.unique(np.concatenate(ends), axis=0, return_counts=True)
    yield PairArrays(found[:, 0], found[:, 1], np.asarray(steps.cuts)[times - 1])


def told_apart(entrants: Sequence[Entrant]) -> list[str]:
    """Return the names, with a number behind those that others have, too."""
    names: list[str] = []
    for entrant in entrants:
        number, name = 1, entrant.recipe.name
        while name in names:
            number += 1
            name = f"{entrant.recipe.name} ({number})"
        names.append(name)
    return names
