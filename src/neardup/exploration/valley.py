"""Where the valley between unrelated and related pairs lies.

A histogram of similarities falls steeply from where the unrelated pairs are, and then it does not: it goes on evenly,
or rises again, up to 1. So how densely pairs lie at t, within 0.05 of it, is compared with how densely they lie above
t, on average: A(t) / (1 - t), where A(t) is the number of pairs at or above t. While the histogram falls, pairs at t
are the denser ones by far. Where they become the sparser ones, a mass of pairs lies behind them: the related ones.

A clear valley is the lowest stretch, 0.08 long at least, in which pairs are at most half as dense as above it. Where
there is none, there may be one that is not clear: pairs are nowhere more than a quarter denser than above it, and
somewhere no denser. A counts pairs from one end, so that empty bins and single pairs do not lead astray, as they do a
search for the emptiest bin. The last tenth, 0.9 to 1, is no place for the valley: many near-copies are not quite equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

#: The last hundredth in which a valley may lie, how far around a place pairs are counted, and how long a valley is.
_LAST_HUNDREDTH, _HALF_WINDOW, _SHORTEST = 90, 5, 8
#: Fewer pairs above a place make no valley there, and fewer than these no clear one.
FEWEST_PAIRS, FEWEST_CLEAR_PAIRS = 10, 30
#: How dense pairs may be, of the mean above: in a clear valley; in another, and somewhere in it.
_CLEAR_DENSITY, _EVEN_DENSITY, _SPARSE_DENSITY = 0.5, 1.25, 1.0
#: The part of the pairs above its lower end that a cut may lose as far as twice the way.
_KEPT_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Valley:
    """The stretch of similarities between the unrelated pairs and the related ones."""

    #: Where it begins and ends; 0.9 where it goes on up to the copies.
    low: float
    high: float
    #: Where to cut: half-way from its lower end to where one in twenty of the pairs above that end would be lost.
    at: float
    #: How many pairs lie below ``low`` (those that share nothing, too), and at or above ``high``.
    before: int
    after: int
    #: Pairs in the stretch, per million of all: the fewer, the deeper.
    depth: float
    #: Whether it is sparse, and at least 30 pairs lie above ``low``.
    clear: bool
    #: Whether pairs in it are at most half as dense as above it. Else they thin out slowly, and no cut is sharp.
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
    # Where everything resembles everything, the unrelated pairs are not at 0: the valley is right of the middle pair.
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
    """Return the first stretch, from and to which place, that has no more than ``most``, and once at most ``least``."""
    inside = np.concatenate([[False], density <= most, [False]])
    for begin, end in list(pairwise(np.flatnonzero(inside[1:] != inside[:-1]).tolist()))[::2]:
        if end - begin >= _SHORTEST and density[begin:end].min() <= least:
            return begin, end - 1
    return None
