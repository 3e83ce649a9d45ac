"""The engines in memory, and which one finds the pairs of a recipe; only that one is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from neardup.errors import RecipeError
from neardup.features.recomputed import BoundedStore
from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore, MemoryNeeds
from neardup.kernels import Floats
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, rule
from neardup.search.join import self_join
from neardup.search.matches import (
    Matches,
    distinct_documents,
    incomplete_matches,
    restrict_to_groups,
    set_representatives,
)

Integers = npt.NDArray[np.int64]
StepProgress = Callable[[int, int], None]
#: The bits of a simhash.
_BITS = 64
#: More pairs of distinct texts than this a document are too many to find them all, unless they are below a million.
PAIRS_PER_DOCUMENT = 20.0
_ALWAYS_ALLOWED_PAIRS = 1_000_000
#: Bytes of each document, weighted feature, value of 64 bits, key of a band and byte of text, as they were measured.
_A_DOCUMENT, _A_WEIGHTED_FEATURE, _A_VALUE, _A_KEY, _A_BYTE_OF_TEXT = 150, 48, 100, 10, 8
#: And of a document's prefix, with its part of the counts that say who has one: in too few slots they rule nothing out.
_A_PREFIX = 20


def memory_needs(recipe: Recipe) -> MemoryNeeds:
    """Return what the search of a recipe takes of a memory budget, features that can be made again left out."""
    if recipe.measure == "semantic":
        return MemoryNeeds(_A_DOCUMENT, text=_A_BYTE_OF_TEXT, purpose="the texts and their embeddings, which are held")
    if recipe.is_weighted:
        return MemoryNeeds(
            _A_DOCUMENT, feature=_A_WEIGHTED_FEATURE, purpose="the search by weights, which holds all features"
        )
    if recipe.measure == "hamming":
        return MemoryNeeds(_A_DOCUMENT + _A_VALUE, purpose="the search by bits, which holds all values")
    if recipe.search == "lsh":
        from neardup.search.lsh import bands_of

        bands = bands_of(recipe).bands
        return MemoryNeeds(
            _A_DOCUMENT + _A_KEY * bands, purpose=f"the search by lsh, which holds {bands:,} keys per document"
        )
    return MemoryNeeds(_A_DOCUMENT + _A_PREFIX)


def most_pairs(per_document: float, documents: int) -> int:
    """Return how many pairs of distinct texts are not yet too many.

    Raises
    ------
    RecipeError
        If ``per_document`` is below 0.
    """
    if not per_document >= 0:
        raise RecipeError(f"pairs per document {per_document} is below 0")
    return max(int(per_document * documents), _ALWAYS_ALLOWED_PAIRS)


def find_pairs(
    store: FeatureStore,
    recipe: Recipe,
    statistics: Statistics | None,
    *,
    threads: int,
    excluded: npt.NDArray[np.bool_],
    keep_order: Integers,
    most_pairs: int | None,
    give_up: bool = False,
    reference: int = 0,
    progress: StepProgress,
) -> Matches:
    """Return the pairs of a store's documents that match by a recipe's measure and threshold.

    Parameters
    ----------
    store : FeatureStore
        The documents' features.
    recipe : Recipe
        Its measure, threshold and search.
    statistics : Statistics, optional
        Of the collection, for weights.
    threads : int
        They change the time, never the answer.
    excluded : bool[n]
        Documents that must match nothing.
    keep_order : int64[n]
        The documents in keep order.
    most_pairs : int, optional
        For the join of feature sets: where more match, only those of dropped documents with kept ones are found.
    give_up : bool
        Where more match, find none at all, whatever the search; ``complete`` is False then, too.
    reference : int
        How many of the documents, the last ones, are of a reference: pairs among them are not looked for.
    progress : callable
        Told (documents done, documents in all) from time to time.
    """
    limit = most_pairs if give_up else None
    if recipe.measure == "hamming":
        found = _by_hamming_distance(store, recipe, threads, excluded, reference, progress)
        return found if limit is None or len(found.left) <= limit else incomplete_matches(found.representative)
    if recipe.is_weighted:
        unit = statistics.unit(recipe) if statistics else 1
        return _by_weights(store, recipe, unit, threads, excluded, limit, reference, progress)
    if recipe.search == "lsh":
        from neardup.search.lsh import lsh_join

        return lsh_join(store, recipe, threads=threads, excluded=excluded, reference=reference)
    join = partial(self_join, store)
    if isinstance(store, BoundedStore) and store.recomputed is not None:
        from neardup.search.recomputed import recomputed_join

        join = partial(recomputed_join, store, store.recomputed)
    return join(
        rule(recipe.measure, recipe.threshold, recipe.jaccard_floor),
        threads=threads,
        excluded=excluded,
        keep_order=keep_order,
        most_pairs=most_pairs,
        with_kept=not give_up,
        reference=reference,
        progress=progress,
    )


def _by_hamming_distance(
    store: FeatureStore,
    recipe: Recipe,
    threads: int,
    excluded: npt.NDArray[np.bool_],
    reference: int,
    progress: StepProgress,
) -> Matches:
    from neardup.search.hamming import hamming_pairs

    vectors = store.vectors()
    representative = set_representatives(store, excluded)
    members = distinct_documents(representative)
    values = vectors.features[vectors.heads[:-1][members]]
    near = hamming_pairs(values, int(recipe.threshold), threads=threads, progress=progress)
    # Values are too short to tell sides apart: comparing those of a reference, too, costs less than knowing them.
    looked_for = members[near.left] < len(store) - reference
    left, right, distance = (column[looked_for] for column in near)
    counts = np.full((len(left), 3), _BITS, np.int64)
    counts[:, 0] -= distance
    statistics = {"distinct_sets": len(members), "pairs": len(left)}
    return Matches(representative, members[left], members[right], counts, statistics=statistics)


def _by_weights(
    store: FeatureStore,
    recipe: Recipe,
    unit: int,
    threads: int,
    excluded: npt.NDArray[np.bool_],
    most_pairs: int | None,
    reference: int,
    progress: StepProgress,
) -> Matches:
    from neardup.search.weighted import weighted_join

    representative = set_representatives(store, excluded)
    others = representative != np.arange(len(representative))
    bound = measure(recipe.measure).bound(recipe.exact_threshold, unit)
    found = weighted_join(
        store.vectors(),
        recipe.measure,
        bound,
        excluded=others,
        threads=threads,
        most_pairs=most_pairs,
        reference=reference,
        progress=progress,
    )
    if found is None:
        return incomplete_matches(representative)
    statistics = {"distinct_sets": int((~others).sum())} | found.statistics
    return Matches(representative, found.left, found.right, found.counts, unit, statistics=statistics)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PairSearch:
    """The documents of a run, for ``find_pairs``, whose parameters it holds.

    Attributes
    ----------
    embeddings : float64[r, width] or None
        Of the documents that stand for themselves; for the measure ``semantic``, which compares nothing else.
    representative : int64[n] or None
        For ``embeddings``: the first document with the same text.
    reference : int
        How many of the documents, the last ones, are of a reference.
    groups : int64[n] or None
        Where documents are compared inside groups alone: the group of each, from 0.
    """

    store: FeatureStore
    statistics: Statistics | None
    excluded: npt.NDArray[np.bool_]
    keep_order: Integers
    threads: int
    embeddings: Floats | None = None
    representative: Integers | None = None
    reference: int = 0
    groups: Integers | None = None

    def __call__(
        self, recipe: Recipe, most_pairs: int | None, progress: StepProgress, *, give_up: bool = False
    ) -> Matches:
        """Return the pairs of a recipe that differs from the run's by its threshold alone."""
        found = self._found(recipe, most_pairs, progress, give_up)
        return found if self.groups is None else restrict_to_groups(found, self.groups)

    def _found(self, recipe: Recipe, most_pairs: int | None, progress: StepProgress, give_up: bool) -> Matches:
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
                reference=self.reference,
                progress=progress,
            )
        from neardup.search.semantic import semantic_join

        own = len(self.representative) - self.reference
        found = semantic_join(self.embeddings, self.representative, recipe.exact_threshold, own, progress)
        too_many = give_up and most_pairs is not None and len(found.left) > most_pairs
        return incomplete_matches(self.representative) if too_many else found
