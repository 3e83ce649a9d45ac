"""The pairs of texts whose embeddings are close: all with all, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from neardup.features.embeddings import COSINE_UNIT
from neardup.kernels import Floats
from neardup.recipe.measures import reaches_threshold
from neardup.search.matches import Matches, distinct_documents, sorted_pairs

Integers = npt.NDArray[np.int64]
_ROWS = 1024
#: Room for the rounding of dot products; the cosines in whole numbers decide.
_MARGIN = 1e-8


def semantic_join(
    embeddings: Floats,
    representative: Integers,
    threshold: Fraction,
    own: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Matches:
    """Find all pairs whose cosine reaches a threshold.

    Parameters
    ----------
    embeddings : float64[r, width]
        Rows of length 1, one for each document that stands for itself, in order.
    representative : int64[n]
        The first document with the same text, -1 for one that must match nothing.
    threshold : Fraction
        In (0, 1]. Raising it finds fewer pairs, in the same time: n (n - 1) / 2 cosines.
    own : int, optional
        How many of the documents, the first ones, are of the input: pairs of two others are not looked for.
    progress : callable
        Told (rows done, rows in all).
    """
    members = distinct_documents(representative)
    found = [np.empty((0, 2), np.int64)]
    values = [np.empty(0, np.int64)]
    count = len(members) if own is None else int(np.searchsorted(members, own))
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
