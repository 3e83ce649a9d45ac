"""What finds the pairs of a run: one engine over documents that were read, at its threshold or another one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore
from neardup.recipe import Recipe
from neardup.search.engines import Progress, find_pairs
from neardup.search.matches import Integers, Matches, without_pairs
from neardup.search.semantic import semantic_join
from neardup.vector.encoder import Floats


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Finder:
    """The documents of a run, for ``find_pairs``, whose parameters it holds.

    Attributes
    ----------
    embeddings : float64[r, width] or None
        Of the documents that stand for themselves; for the measure ``semantic``, which compares nothing else.
    representative : int64[n] or None
        For ``embeddings``: the first document with the same text.
    """

    store: FeatureStore
    statistics: Statistics | None
    excluded: npt.NDArray[np.bool_]
    keep_order: Integers
    threads: int
    embeddings: Floats | None = None
    representative: Integers | None = None

    def __call__(self, recipe: Recipe, most_pairs: int | None, progress: Progress, *, give_up: bool = False) -> Matches:
        """Return the pairs of a recipe that differs from the run's by its threshold alone."""
        if self.embeddings is None or self.representative is None:
            return find_pairs(
                self.store,
                recipe,
                self.statistics,
                threads=self.threads,
                excluded=self.excluded,
                keep_order=self.keep_order,
                most_pairs=most_pairs,
                give_up=give_up,
                progress=progress,
            )
        found = semantic_join(self.embeddings, self.representative, recipe.exact_threshold, progress)
        too_many = give_up and most_pairs is not None and len(found.left) > most_pairs
        return without_pairs(self.representative) if too_many else found
