"""How long documents are: counts in logarithmic bins, and quantiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup._kernels.sets import LISTED
from neardup.features.extraction import Extractor
from neardup.recipe import Recipe

Integers = npt.NDArray[np.int64]

#: Of which parts, in hundredths, the quantiles are.
QUANTILES = (0, 1, 5, 25, 50, 75, 95, 99, 100)
#: Bins of a power of ten, as far as whole numbers allow.
_A_DECADE = 10


def words_of(texts: Sequence[str]) -> Integers:
    """Return how many words texts have, as the normalizer ``words`` makes them: int64[n]."""
    counting = Extractor(Recipe(features="words:1", normalize="words"), None, LISTED)
    return counting(pa.array(texts, pa.large_string())).sizes


def binned(lengths: Integers) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return where logarithmic bins begin, and where the last ends, and how many lengths are in each.

    The bins go from that of the shortest to that of the longest; lengths of 0 are in none. Bin i holds
    edges[i] <= length < edges[i + 1].
    """
    some = lengths[lengths > 0]
    if not len(some):
        return (), ()
    edges = [1]
    step = 0
    while edges[-1] <= some.max():
        step += 1
        edge = round(10 ** (step / _A_DECADE))
        if edge > edges[-1]:
            edges.append(edge)
    counts = np.histogram(some, np.array(edges))[0]
    first = int(counts.nonzero()[0][0])
    return tuple(edges[first:]), tuple(counts[first:].tolist())


def quantiles_of(lengths: Integers) -> tuple[tuple[float, int], ...]:
    """Return the lengths that so large a part of all is at most: with the part, the smallest such length."""
    ordered = np.sort(lengths)
    if not len(ordered):
        return ()
    places = [max(-(-part * len(ordered) // 100), 1) - 1 for part in QUANTILES]
    return tuple((part / 100, int(ordered[place])) for part, place in zip(QUANTILES, places, strict=True))
