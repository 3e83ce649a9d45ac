"""From which threshold on all pairs can be known, and how many documents are dropped where they cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.exploring.growth import by_chance
from neardup.keep import graph, keepers
from neardup.pipeline import Collected
from neardup.recipe import Recipe
from neardup.search.engines import Progress, find_pairs
from neardup.search.levels import levels_of
from neardup.search.matches import Matches, members_of

#: Among so many documents all pairs are looked for, to tell at which threshold they will not be too many.
_LOOKED_AT = 1000


@dataclass(frozen=True, slots=True, eq=False)
class Searched:
    """What the searches of a curve found.

    Attributes
    ----------
    lowest : Fraction or None
        The lowest threshold whose pairs are all known; None where there is none.
    matches : Matches or None
        Those pairs.
    own : Matches
        What ``dedup`` finds at the recipe's own threshold, if that is lower; else pairs that hold those.
    dropped : dict
        How many documents are dropped at lower thresholds, for some of these.
    """

    lowest: Fraction | None
    matches: Matches | None
    own: Matches
    dropped: dict[Fraction, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Searches:
    """The searches that make a curve.

    Attributes
    ----------
    read : Collected
        The corpus; its features are at hand.
    recipe : Recipe
        What is compared.
    thresholds : sequence of Fraction
        Those of the curve, ascending, the recipe's own among them.
    worth : sequence of Fraction
        Those that are worth a search of their own where not all pairs are known.
    most_pairs : int
        More pairs of distinct documents are too many.
    seed : int
        Which documents tell how many pairs there will be.
    threads : int
        They change the time, never the answer.
    progress : callable
        Told (documents done, documents in all) from time to time.
    """

    read: Collected
    recipe: Recipe
    thresholds: Sequence[Fraction]
    worth: Sequence[Fraction]
    most_pairs: int
    seed: int
    threads: int
    progress: Progress

    def run(self) -> Searched:
        """Find all pairs at the lowest threshold; where they are too many, at one where they are not.

        Raises
        ------
        RecipeError
            If the recipe has weights, and too many pairs match at its own threshold.
        """
        found = self._find(self.thresholds[0], self.most_pairs, give_up=True)
        return Searched(self.thresholds[0], found, found) if found.complete else self._higher(found)

    def _higher(self, too_many: Matches) -> Searched:
        own, weighted = self.recipe.exact_threshold, self.recipe.is_weighted
        at_own = self._find(own, self.most_pairs, give_up=weighted)
        if weighted and not at_own.complete:
            raise RecipeError(
                f"more than {self.most_pairs:,} pairs match at {self.recipe.threshold:g}, too many for a curve of "
                f"weights {self.recipe.weights!r}; raise the threshold, or leave the weights out"
            )
        expected = self._expected(members_of(too_many.representative))
        few = [at for at, pairs in zip(self.thresholds, expected, strict=True) if 2 * pairs <= self.most_pairs]
        if at_own.complete:
            lowest, matches = self._first([at for at in few if at < own])
            if matches is None:
                lowest, matches = own, at_own
        else:
            lowest, matches = self._first([at for at in few if at > own] or self.thresholds[-1:])
        searched = Searched(lowest, matches, at_own)
        if not weighted:
            self._count(searched)
        return searched

    def _first(self, thresholds: Sequence[Fraction]) -> tuple[Fraction, Matches] | tuple[None, None]:
        """Return the first that has not too many pairs, and these; fewer and fewer of them are looked at."""
        place, step = 0, 1
        while place < len(thresholds):
            found = self._find(thresholds[place], self.most_pairs, give_up=True)
            if found.complete:
                return thresholds[place], found
            place, step = place + step, 2 * step
        return None, None

    def _expected(self, distinct: npt.NDArray[np.int64]) -> list[float]:
        """Return about how many pairs there are at each threshold, from all pairs of a few documents."""
        some = distinct[by_chance(self.read.names.rows[distinct], self.seed)[:_LOOKED_AT]]
        others = np.ones(len(self.read.names), np.bool_)
        others[some] = False
        found = self._find(self.thresholds[0], None, excluded=others)
        known = levels_of(found, self.recipe.measure, self.read.order, self.thresholds).pairs()
        share = len(distinct) * (len(distinct) - 1) / max(len(some) * (len(some) - 1), 1)
        return [pairs * share for pairs in known.tolist()]

    def _count(self, searched: Searched) -> None:
        """Count what is dropped at the thresholds below."""
        for at in self.worth:
            if searched.lowest is None or at < searched.lowest:
                found = searched.own if at == self.recipe.exact_threshold else self._find(at, 0)
                pairs = graph(len(self.read.order), found.left, found.right, np.zeros(len(found.left)))
                kept = keepers(found.representative, pairs, self.read.order)
                searched.dropped[at] = int(kept.dropped.sum())

    def _find(
        self,
        threshold: Fraction,
        most_pairs: int | None,
        *,
        give_up: bool = False,
        excluded: npt.NDArray[np.bool_] | None = None,
    ) -> Matches:
        return find_pairs(
            self.read.store,
            self.recipe.changed(threshold=float(threshold)),
            self.read.statistics,
            threads=self.threads,
            excluded=~self.read.present if excluded is None else excluded,
            keep_order=self.read.order,
            most_pairs=most_pairs,
            give_up=give_up,
            progress=self.progress,
        )
