"""The valley between unrelated and related pairs.

A histogram of similarities falls steeply from the unrelated pairs on, and then levels off or rises again up to 1. The
density of pairs at t, within 0.05 of it, is compared with the mean density above t, which is A(t) / (1 - t), where A(t)
is the number of pairs at or above t. While the histogram falls, pairs at t are much denser. Where they become sparser,
many pairs lie above them: the related ones.

A clear valley is the lowest range of length 0.08 or more in which pairs are at most half as dense as above it. If there
is none, a valley that is not clear is a range in which pairs are nowhere more than a quarter denser than above it, and
somewhere no denser. Empty bins and single pairs mislead a search for the emptiest bin, but hardly change A, which
counts from one end. The valley never lies above 0.9, because many near-copies are not quite equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

#: In hundredths: the upper limit of a valley, the half width of the window of a density, and the least length.
_LAST_HUNDREDTH, _HALF_WINDOW, _SHORTEST = 90, 5, 8
#: The fewest pairs above the lower end of a valley, and of a clear one.
FEWEST_PAIRS, FEWEST_CLEAR_PAIRS = 10, 30
#: The highest density relative to the mean above: in a clear valley, in any other one, and somewhere in that.
_CLEAR_DENSITY, _EVEN_DENSITY, _SPARSE_DENSITY = 0.5, 1.25, 1.0
#: The cut lies half-way to where this share of the pairs above the lower end is left.
_KEPT_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Valley:
    """The range of similarities between unrelated and related pairs."""

    #: Its ends; it ends at 0.9 if it continues up to the copies.
    low: float
    high: float
    #: The cut: half-way from the lower end to where one in twenty of the pairs above that end would be lost.
    at: float
    #: The number of pairs below ``low``, including those that share nothing, and at or above ``high``.
    before: int
    after: int
    #: Pairs in the range per million of all pairs.
    depth: float
    #: Whether it is sparse, and at least 30 pairs lie above ``low``.
    clear: bool
    #: Whether pairs in it are at most half as dense as above it; otherwise they thin out slowly, and no cut is sharp.
    sparse: bool = True


def find_valley(above: Sequence[float] | npt.NDArray[np.float64], first_known: int = 0) -> Valley | None:
    """Return the valley of a distribution of similarities, None if it has none.

    ``above`` has 101 values: the number of pairs at or above each hundredth, beginning with all pairs. The values
    below ``first_known`` are unknown, and the valley does not lie there. There is no valley if pairs thin out up to
    0.9, or if fewer than 10 pairs lie above the place where they stop thinning out: the sample then has too few
    related pairs, or they do not stand apart from the others.
    """
    pairs = np.asarray(above, np.float64)
    total = pairs[0]
    # If all documents resemble each other, unrelated pairs are not at 0, but the valley is above the median pair.
    first = int(np.flatnonzero(2 * pairs >= total)[-1]) + 1 if total else _LAST_HUNDREDTH + 1
    first = max(first, first_known)
    places = np.arange(first, _LAST_HUNDREDTH + 1)
    places = places[pairs[places] >= FEWEST_PAIRS]
    if not len(places):
        return None
    window_begins, window_ends = np.maximum(places - _HALF_WINDOW, first), places + _HALF_WINDOW
    density = (
        (pairs[window_begins] - pairs[window_ends]) / (window_ends - window_begins) * (100 - places) / pairs[places]
    )
    found = _first_sparse_range(density, _CLEAR_DENSITY, _CLEAR_DENSITY)
    sparse = found is not None
    found = found or _first_sparse_range(density, _EVEN_DENSITY, _SPARSE_DENSITY)
    if found is None:
        return None
    begin, end = int(places[found[0]]), int(places[found[1]])
    kept = int(np.count_nonzero(pairs[begin : end + 1] >= _KEPT_SHARE * pairs[begin])) - 1
    return Valley(
        begin / 100,
        end / 100,
        (begin + kept // 2) / 100,
        round(total - pairs[begin]),
        round(pairs[end]),
        float(1e6 * (pairs[begin] - pairs[end]) / total),
        sparse and bool(pairs[begin] >= FEWEST_CLEAR_PAIRS),
        sparse,
    )


def _first_sparse_range(density: npt.NDArray[np.float64], most: float, least: float) -> tuple[int, int] | None:
    """Return the ends of the first range with densities up to ``most``, and somewhere up to ``least``."""
    inside = np.concatenate([[False], density <= most, [False]])
    for begin, end in list(pairwise(np.flatnonzero(inside[1:] != inside[:-1]).tolist()))[::2]:
        if end - begin >= _SHORTEST and density[begin:end].min() <= least:
            return begin, end - 1
    return None
