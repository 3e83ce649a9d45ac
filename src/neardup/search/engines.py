"""Choose the engine for a recipe, and run it; only that engine is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from neardup.errors import RecipeError
from neardup.features.extraction import COSINE_UNIT
from neardup.features.recomputed import BoundedStore
from neardup.features.statistics import Statistics
from neardup.features.store import FeatureStore, MemoryNeeds
from neardup.kernels import Floats, Integers
from neardup.recipe import Recipe
from neardup.recipe.measures import measure, reaches_threshold, rule
from neardup.search.join import JoinRequest, self_join
from neardup.search.matches import (
    Matches,
    distinct_documents,
    incomplete_matches,
    restrict_to_groups,
    set_representatives,
    sorted_pairs,
)

StepProgress = Callable[[int, int], None]
#: The bits of a simhash.
_BITS = 64
#: By default, more pairs of distinct texts per document than this are too many; up to a million are always allowed.
PAIRS_PER_DOCUMENT = 20.0
_ALWAYS_ALLOWED_PAIRS = 1_000_000
#: Rows of embeddings that are compared with all later ones in one step.
_ROWS = 1024
#: Allowance for rounding in dot products; the cosines in whole numbers decide.
_MARGIN = 1e-8
#: Measured bytes of memory per document, weighted feature, 64-bit value, key of a band and byte of text.
_DOCUMENT_BYTES, _WEIGHTED_FEATURE_BYTES, _VALUE_BYTES, _KEY_BYTES, _BYTES_PER_TEXT_BYTE = 150, 48, 100, 10, 8
#: Bytes per document for its prefix and its share of the feature counts.
_PREFIX_BYTES = 20


def memory_needs(recipe: Recipe) -> MemoryNeeds:
    """Return the memory that the search of a recipe needs, without the features that can be recomputed."""
    if recipe.measure == "semantic":
        purpose = "the texts and their embeddings, which are kept in memory"
        return MemoryNeeds(_DOCUMENT_BYTES, text=_BYTES_PER_TEXT_BYTE, purpose=purpose)
    if recipe.is_weighted:
        purpose = "the search by weights, which keeps all features in memory"
        return MemoryNeeds(_DOCUMENT_BYTES, feature=_WEIGHTED_FEATURE_BYTES, purpose=purpose)
    if recipe.measure == "hamming":
        purpose = "the search by bits, which keeps all values in memory"
        return MemoryNeeds(_DOCUMENT_BYTES + _VALUE_BYTES, purpose=purpose)
    if recipe.search == "lsh":
        from neardup.search.lsh import bands_of

        bands = bands_of(recipe).bands
        purpose = f"the search by lsh, which keeps {bands:,} keys per document"
        return MemoryNeeds(_DOCUMENT_BYTES + _KEY_BYTES * bands, purpose=purpose)
    return MemoryNeeds(_DOCUMENT_BYTES + _PREFIX_BYTES)


def pair_limit(per_document: float, documents: int) -> int:
    """Return the largest allowed number of pairs of distinct texts; ``RecipeError`` if ``per_document`` is below 0."""
    if not per_document >= 0:
        raise RecipeError(f"pairs per document {per_document} is below 0")
    return max(int(per_document * documents), _ALWAYS_ALLOWED_PAIRS)


def semantic_join(
    embeddings: Floats,
    representative: Integers,
    threshold: Fraction,
    input_count: int,
    progress: StepProgress,
) -> Matches:
    """Find all pairs of texts whose embeddings have a cosine that reaches a threshold, comparing all with all.

    embeddings: float64[r, width], a row of length 1 for each distinct text, in the order of the documents;
    representative: int64[n], the first document with the same text, -1 for one that must match nothing. The first
    ``input_count`` documents are of the input; pairs among the others are not searched.
    """
    members = distinct_documents(representative)
    found = [np.empty((0, 2), np.int64)]
    values = [np.empty(0, np.int64)]
    count = int(np.searchsorted(members, input_count))
    for begin in range(0, count, _ROWS):
        cosines = embeddings[begin : min(begin + _ROWS, count)] @ embeddings[begin:].T
        row, column = np.nonzero(np.triu(cosines >= float(threshold) - _MARGIN, 1))
        found.append(np.column_stack([row, column]) + begin)
        values.append(np.rint(np.clip(cosines[row, column], 0, 1) * COSINE_UNIT).astype(np.int64))
        progress(min(begin + _ROWS, count), count)
    pairs, o = np.concatenate(found), np.concatenate(values)
    counts = np.column_stack([o, np.full((len(o), 2), COSINE_UNIT, np.int64)])
    reached = reaches_threshold("semantic", counts, threshold)
    documents, counts = members[pairs[reached]], counts[reached]
    left, right, counts = sorted_pairs(documents[:, 0], documents[:, 1], counts)
    return Matches(representative, left, right, counts, statistics={"distinct_texts": len(members), "pairs": len(left)})


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PairSearch:
    """The documents of a run, and what does not change between searches for their pairs.

    statistics: of the collection, for weights; embeddings, representative: for the measure ``semantic``, as in
    ``semantic_join``; groups: int64[n], from 0, if documents are only compared inside groups. The last
    ``reference_count`` documents are of a reference; pairs among them are not searched.
    """

    store: FeatureStore
    statistics: Statistics | None
    keep_order: Integers
    threads: int
    embeddings: Floats | None = None
    representative: Integers | None = None
    reference_count: int = 0
    groups: Integers | None = None

    def __call__(
        self, recipe: Recipe, max_pairs: int | None, progress: StepProgress, *, all_or_none: bool = False
    ) -> Matches:
        """Return the pairs for a recipe that differs from that of the run only in its threshold.

        If more than ``max_pairs`` match, the join of feature sets finds only the pairs of dropped documents with kept
        ones, and ``complete`` is False; other searches find all. With ``all_or_none``, every search then returns no
        pairs at all. ``progress`` is called with (documents done, total documents).
        """
        found = self._find(recipe, max_pairs, progress, all_or_none)
        if all_or_none and max_pairs is not None and len(found.left) > max_pairs:
            found = incomplete_matches(found.representative)
        return found if self.groups is None else restrict_to_groups(found, self.groups)

    def _find(self, recipe: Recipe, max_pairs: int | None, progress: StepProgress, all_or_none: bool) -> Matches:
        if self.embeddings is not None and self.representative is not None:
            input_count = len(self.representative) - self.reference_count
            return semantic_join(self.embeddings, self.representative, recipe.exact_threshold, input_count, progress)
        if recipe.measure == "hamming":
            return self._by_hamming_distance(recipe, progress)
        if recipe.is_weighted:
            return self._by_weights(recipe, max_pairs if all_or_none else None, progress)
        if recipe.search == "lsh":
            from neardup.search.lsh import lsh_join

            return lsh_join(self.store, recipe, threads=self.threads, reference_count=self.reference_count)
        match_rule = rule(recipe.measure, recipe.threshold, recipe.jaccard_floor)
        request = JoinRequest(set_representatives(self.store), self.keep_order, max_pairs, all_or_none, progress)
        if isinstance(self.store, BoundedStore) and self.store.recomputed is not None:
            from neardup.search.bounded_join import BoundedJoin

            join = BoundedJoin(self.store, self.store.recomputed, match_rule, self.threads, self.reference_count)
            return join.matches(request)
        return self_join(self.store, match_rule, request, threads=self.threads, reference_count=self.reference_count)

    def _by_hamming_distance(self, recipe: Recipe, progress: StepProgress) -> Matches:
        from neardup.search.hamming import hamming_pairs

        vectors = self.store.vectors()
        representative = set_representatives(self.store)
        members = distinct_documents(representative)
        values = vectors.features[vectors.heads[:-1][members]]
        pairs = hamming_pairs(values, int(recipe.threshold), threads=self.threads, progress=progress)
        # Comparing the values of a reference with each other, too, costs less than a search that leaves these out.
        searched = members[pairs.left] < len(self.store) - self.reference_count
        left, right, distance = (column[searched] for column in pairs)
        counts = np.full((len(left), 3), _BITS, np.int64)
        counts[:, 0] -= distance
        statistics = {"distinct_sets": len(members), "pairs": len(left)}
        return Matches(representative, members[left], members[right], counts, statistics=statistics)

    def _by_weights(self, recipe: Recipe, max_pairs: int | None, progress: StepProgress) -> Matches:
        from neardup.search.weighted import weighted_join

        unit = self.statistics.unit(recipe) if self.statistics else 1
        representative = set_representatives(self.store)
        repeats = representative != np.arange(len(representative))
        found = weighted_join(
            self.store.vectors(),
            recipe.measure,
            measure(recipe.measure).bound(recipe.exact_threshold, unit),
            excluded=repeats,
            threads=self.threads,
            max_pairs=max_pairs,
            reference_count=self.reference_count,
            progress=progress,
        )
        if found is None:
            return incomplete_matches(representative)
        statistics = {"distinct_sets": int((~repeats).sum())} | found.statistics
        return Matches(representative, found.left, found.right, found.counts, unit, statistics=statistics)
