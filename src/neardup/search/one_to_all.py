"""One new document against all: those that it matches, and the closest ones."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup._kernels.bounds import OVERLAP
from neardup._kernels.listing import common_with_all, enter_weights
from neardup._kernels.nearest import best_of
from neardup.errors import RecipeError
from neardup.features.store import Vectors
from neardup.measures import reaching, similarities
from neardup.search.nearest import allowed_documents, code_of, empty_heap, empty_table, kind_of, rows_of, values_of

Integers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]


class Matching(NamedTuple):
    """Documents that one text matches, or is closest to, the closest first: as in ``Nearest``, without queries."""

    document: Integers
    counts: Integers
    similarity: npt.NDArray[np.float64]


def matching(
    vectors: Vectors,
    features: Words,
    weights: Integers,
    measure: str,
    threshold: Fraction,
    *,
    jaccard_floor: Fraction = Fraction(0),
    unit: int = 1,
    excluded: Mask | None = None,
) -> Matching:
    """Find all documents that a new one matches, from the closest on; of equally close ones the first.

    Parameters
    ----------
    vectors : Vectors
        All documents.
    features, weights : uint64[f], int64[f] or empty
        Those of the new document.
    measure : str
        As in ``nearest``.
    threshold : Fraction
        Documents at or above it match, for a distance at or below it. Raising it finds fewer (for a distance, more).
    jaccard_floor : Fraction
        The Jaccard that sets must reach besides.
    unit, excluded
        As in ``nearest``.

    Raises
    ------
    RecipeError
        If the measure does not fit.
    NeardupError
        If the weights are too large.
    """
    documents, counts = _compared(vectors, features, weights, measure, excluded)
    enough = reaching(measure, counts, threshold, unit)
    if jaccard_floor:
        enough &= reaching("jaccard", counts, jaccard_floor, unit)
    return _closest(documents[enough], counts[enough], measure, int(enough.sum()), unit)


def closest(
    vectors: Vectors,
    features: Words,
    weights: Integers,
    measure: str,
    k: int,
    *,
    unit: int = 1,
    excluded: Mask | None = None,
) -> Matching:
    """Find the k documents most similar to a new one; the other parameters and errors are those of ``matching``."""
    if k < 1:
        raise RecipeError(f"k {k} is below 1; ask for one neighbour at least")
    documents, counts = _compared(vectors, features, weights, measure, excluded)
    return _closest(documents, counts, measure, k, unit)


def _compared(
    vectors: Vectors, features: Words, weights: Integers, measure: str, excluded: Mask | None
) -> tuple[Integers, Integers]:
    """Return the documents that share a feature with a new one, and int64[r, 3], their o, a and b."""
    allowed = allowed_documents(vectors, excluded)
    if measure == "hamming":
        documents, values = values_of(vectors, allowed)
        documents = documents[: len(documents) * len(features)]
        counts = np.full((len(documents), 3), 64)
        counts[:, 0] -= np.bitwise_count(values[: len(documents)] ^ features[:1]).astype(np.int64)
        return documents, counts
    rows = rows_of(vectors, measure, allowed)
    new = rows_of(Vectors(np.array([0, len(features)]), features, weights), measure, np.ones(1, np.bool_))
    table = empty_table(len(features))
    enter_weights(features, weights, table)
    common = np.empty(len(allowed), np.int64)
    common_with_all(kind_of(measure, weighted=len(weights) > 0), rows, table, common)
    documents = np.flatnonzero(common)
    own = np.full(len(documents), new.totals[0])
    return documents, np.column_stack([common[documents], own, rows.totals[documents]])


def _closest(documents: Integers, counts: Integers, measure: str, k: int, unit: int) -> Matching:
    heap = empty_heap(min(k, len(documents)))
    common, own, others = np.ascontiguousarray(counts.T)
    if len(documents):
        code = OVERLAP if measure == "hamming" else code_of(measure)
        best_of(code, own[0], documents, common, others, heap)
    counts = np.column_stack([heap.common, np.full(len(heap.common), own[:1].sum()), heap.totals])
    return Matching(heap.documents, counts, similarities(measure, counts, unit))
