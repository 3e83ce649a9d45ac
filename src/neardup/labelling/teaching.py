"""Which pair teaches most: first an even spread over similarity, then where the model doubts, and some it is sure of.

Doubt is a small absolute g, nearness to the machine's boundary [Tong & Koller 2001, Support vector machine active
learning].
A model that is only asked where it doubts never learns where it is surely wrong, so some pairs are others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup.labelling.candidates import STRATA, Pool
from neardup.labelling.choosing import Asked, Fact, Says, similarity_says
from neardup.labelling.known import Known, Place
from neardup.labelling.model import Lessons, Model, lessons_of

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Labels that are spread over similarity before the model is asked, and of each class at least so many.
SPREAD, LEAST_OF_A_CLASS = 30, 4
#: What the questions after that are, in turn.
TURNS = ("doubt", "doubt", "audit", "doubt", "doubt", "doubt", "spread", "doubt", "doubt", "audit")
#: The share of a labeller's questions that others have answered too.
SHARED = 0.25
#: The most doubtful pairs, of which one from a cluster that was not asked lately is taken.
_DOUBTFUL = 200
#: A cluster asked so few questions ago is left in peace.
_LATELY = 10
#: Beyond the margin of the machine it is sure.
_SURE = 1.0
#: So near the boundary it says nothing.
_EVEN = 0.1


class TeachingChooser:
    """Asks what teaches most.

    The choice depends on the pool, the labels and the labeller alone.

    Parameters
    ----------
    pool : Pool
        The pairs that may be asked.
    known : Known
        The labels there are.
    model : Model
        What they say so far.
    shared : float
        The share of each labeller's questions that others have answered, too, as long as there are such. Raising it
        makes agreement known more precisely, and brings fewer labels of new pairs.
    """

    def __init__(self, pool: Pool, known: Known, model: Model, *, shared: float = SHARED) -> None:
        self._pool, self._known, self._model, self._shared = pool, known, model, shared
        self._index = {place: at for at, place in enumerate(zip(pool.left.tolist(), pool.right.tolist(), strict=True))}

    def next_pair(self, labeller: str) -> Asked | None:
        """Return what to ask a labeller, None if there is nothing left."""
        answers = self._known.answers
        mine = {place for place, given in answers.items() if labeller in given}
        aside = self._known.skipped(labeller)
        theirs = [place for place in answers if place not in mine and place in self._index and place not in aside]
        if theirs and int((len(mine) + 1) * self._shared) > int(len(mine) * self._shared):
            return self._asked(min(theirs, key=self._rank), "agreement")
        fresh = np.ones(len(self._pool), np.bool_)
        gone = [*answers, *aside, *self._known.open_of_others(labeller)]
        fresh[[self._index[place] for place in gone if place in self._index]] = False
        if fresh.any():
            return self._fresh(fresh)
        if theirs:
            return self._asked(min(theirs, key=self._rank), "agreement")
        left = [place for place in aside if place in self._index]
        return self._asked(left[0], "spread") if left else None

    def _rank(self, place: Place) -> int:
        return int(self._pool.rank[self._index[place]])

    def _asked(self, place: Place, reason: str) -> Asked:
        return Asked(*place, reason, float(self._pool.similarity[self._index[place]]))

    def _fresh(self, fresh: Bools) -> Asked:
        """Return a pair that nobody was asked."""
        lessons = lessons_of(self._known)
        turn = "spread"
        if len(lessons.places) >= SPREAD and min(lessons.classes) >= LEAST_OF_A_CLASS:
            turn = TURNS[len(self._known.answers) % len(TURNS)]
        g = None if turn == "spread" else self._model.pool_g()
        if g is None:
            at = self._spread(fresh, lessons)
            turn = "spread"
        elif turn == "audit":
            at = self._audit(fresh, g)
        else:
            at = self._doubt(fresh, g)
        return self._asked((int(self._pool.left[at]), int(self._pool.right[at])), turn)

    def _spread(self, fresh: Bools, lessons: Lessons) -> int:
        """Return a pair of the stratum that was asked least; while a class is missing, from its end of similarity."""
        asked = np.bincount(self._pool.stratum[self._judged()], minlength=STRATA)
        strata = np.unique(self._pool.stratum[fresh])
        same, different = lessons.classes
        if len(lessons.places) >= SPREAD and len(strata) > 1:
            half = len(strata) // 2
            strata = strata[half:] if same < different else strata[:-half]
        # Of strata asked as often, the highest: that is where duplicates are, which are rarer.
        stratum = min(strata.tolist(), key=lambda one: (asked[one], -one))
        return self._peaceful(np.flatnonzero(fresh & (self._pool.stratum == stratum)), self._pool.rank)

    def _doubt(self, fresh: Bools, g: Floats) -> int:
        """Return a pair near the machine's boundary."""
        able = np.flatnonzero(fresh)
        doubtful = able[np.argsort(np.abs(g[able]), kind="stable")[:_DOUBTFUL]]
        return self._peaceful(doubtful, np.abs(g))

    def _audit(self, fresh: Bools, g: Floats) -> int:
        """Return a pair that the machine is sure of, of the side of which fewer were asked."""
        judged = self._judged()
        sides = [fresh & (g >= _SURE), fresh & (g <= -_SURE)]
        asked = [int((g[judged] >= _SURE).sum()), int((g[judged] <= -_SURE).sum())]
        for side in sorted((0, 1), key=asked.__getitem__):
            if sides[side].any():
                return self._peaceful(np.flatnonzero(sides[side]), self._pool.rank)
        return self._doubt(fresh, g)

    def _judged(self) -> Integers:
        """Return which pairs of the pool have labels, in order."""
        return np.array([self._index[place] for place in self._known.answers if place in self._index], np.int64)

    def _peaceful(self, able: Integers, order: Floats | Integers) -> int:
        """Return the first by ``order`` of those whose clusters were asked least among the last questions."""
        lately = self._pool.cluster[self._judged()[-_LATELY:]]
        clusters = self._pool.cluster[able]
        weight = (clusters[:, :, np.newaxis] == lately.reshape(1, 1, -1)).sum(axis=(1, 2))
        return int(able[np.lexsort((order[able], weight))[0]])

    def asks(self, place: Place) -> bool:
        """Return whether the pair is in the pool."""
        return place in self._index

    def says(self, asked: Asked) -> list[Says]:
        """Return the pair's similarity, and what the model thinks of it."""
        said = similarity_says(asked, self._pool.measure)
        g = self._model.g((asked.left, asked.right))
        if g is not None:
            which = "same" if g >= 0 else "different"
            says = f"is sure of {which}" if abs(g) >= _SURE else f"leans to {which}"
            if abs(g) < _EVEN:
                said.append(Says(f"the model cannot tell (g {g:+.2f})"))
            else:
                said.append(Says(f"the model {says} (g {g:+.2f})", g >= 0))
        return said

    def facts(self) -> tuple[list[Fact], bool]:
        """Return how well the labels can be learned."""
        return self._model.facts()

    def left(self, labeller: str) -> int | None:
        """Return None: there are more pairs than anybody would judge."""
        return None
