"""The second step of a flow: a document that arrives beside those in the window that the first step let pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.content.step import content_of
from neardup.decision.decision import Decision
from neardup.decision.evidence import Learned, Push
from neardup.errors import RecipeError
from neardup.flow.parts import Story
from neardup.flow.pool import Pool
from neardup.measures import similarities
from neardup.recipe import Recipe
from neardup.search.learned import check_decision, counts_of
from neardup.search.matches import Matches
from neardup.search.verify import second_step
from neardup.vector.measuring import Measurer
from neardup.vector.records import Records

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
StoryOf = Callable[[int], Story]


class Looked(NamedTuple):
    """Which of some documents pass a second step beside one.

    Attributes
    ----------
    places : int64[k]
        Those that do, ascending.
    similarity, counts : float64[k], int64[k, 3]
        How similar they are, and o, a and b.
    g, vectors : float64[k], float64[k, r]
        What a learned decision makes of them, and from what; nan where none decides.
    """

    places: Integers
    similarity: Floats
    counts: Integers
    g: Floats
    vectors: Floats


class MeasuredStep:
    """A second step by a measure.

    Parameters
    ----------
    recipe : Recipe
        Its ``then``, and the content that it is about.
    story_of : callable
        Gives what is known of a document by its number.
    """

    def __init__(self, recipe: Recipe, story_of: StoryOf) -> None:
        self._recipe, self._story_of = recipe, story_of

    def look(self, one: Story, serial: int, others: Integers) -> Looked:
        """Return which documents pass beside one: its story and its number, -1 for none, and their numbers."""
        del serial
        stories = [one, *map(self._story_of, others.tolist())]
        texts = [content_of(each.text, self._recipe.content) for each in stories]
        right = np.arange(1, len(texts))
        every = Matches(np.arange(len(texts)), np.zeros_like(right), right, np.ones((len(right), 3), np.int64))
        # No text counts as equal to another, so that every pair is measured.
        each = np.arange(len(texts))
        passed = second_step(every, self._recipe, each, lambda places: Records([texts[i] for i in places]), threads=1)
        counts = np.empty((0, 3), np.int64) if passed.second is None else passed.second
        step = self._recipe.second_step
        found = similarities(step.measure, counts) if step is not None else np.empty(0)
        return Looked(passed.right - 1, found, counts, np.full(len(found), np.nan), np.empty((len(found), 0)))

    def pushes(self, vector: Floats) -> tuple[Push, ...]:
        """Return nothing: such a step says all by its counts."""
        del vector
        return ()

    def forget_from(self, serial: int) -> None:
        """Do nothing: nothing is remembered of documents."""


class LearnedStep:
    """A second step by a learned decision.

    Parameters
    ----------
    recipe : Recipe
        That of the decision.
    story_of : callable
        Gives what is known of a document by its number.
    decision : Decision
        What decides.

    Raises
    ------
    RecipeError
        If the recipe names another one.
    """

    def __init__(self, recipe: Recipe, story_of: StoryOf, decision: Decision) -> None:
        self._recipe, self._story_of = recipe, story_of
        self._decision = check_decision(decision, recipe, None)
        self._measurer = Measurer(decision.vector, decision.statistics)
        self._pool = Pool(self._measurer)

    def look(self, one: Story, serial: int, others: Integers) -> Looked:
        """Return which documents pass beside one: its story and its number, -1 for none, and their numbers."""
        # As in a run in memory, the one that comes later is the right one.
        wanted = [*others.tolist(), serial]
        self._pool.make_room(wanted)
        missing = [number for number in wanted if number == serial or number not in self._pool]
        stories = [*map(self._story_of, missing[:-1]), one]
        self._pool.add(missing, self._records(stories))
        places = self._pool.places(wanted)
        vectors = self._measurer.measure(self._pool.prepared(), places[:-1], np.full(len(others), places[-1]))
        g = self._decision.g(vectors)
        passed = np.flatnonzero(self._decision.passes(g))
        counts = counts_of(self._decision, g[passed])
        return Looked(passed, similarities("learned", counts), counts, g[passed], vectors[passed])

    def _records(self, stories: Sequence[Story]) -> Records:
        return Records(
            [content_of(each.text, self._recipe.content) for each in stories],
            [each.title or None for each in stories],
            np.array([each.time for each in stories], np.int64),
        )

    def pushes(self, vector: Floats) -> tuple[Push, ...]:
        """Return what the measures of a pair have to do with its g, the one that pushed it furthest first."""
        return Learned(self._decision, vector[np.newaxis], np.zeros(1, np.int64)).evidence(0).pushes

    def forget_from(self, serial: int) -> None:
        """Forget documents from a number on: others will have these numbers."""
        self._pool.forget_from(serial)


def second_of(recipe: Recipe, story_of: StoryOf, decision: Decision | None) -> MeasuredStep | LearnedStep | None:
    """Return the second step of a recipe, None where it has none.

    Raises
    ------
    RecipeError
        If it is a learned one and the decision is not there.
    """
    step = recipe.second_step
    if step is None:
        return None
    if step.measure != "learned":
        return MeasuredStep(recipe, story_of)
    if decision is None:
        raise RecipeError(f"then {str(step)!r} is a learned decision; give it as decision=, in place of the recipe")
    return LearnedStep(recipe, story_of, decision)
