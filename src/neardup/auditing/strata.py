"""Strata of a result: by whether pairs are returned and by score, and how many pairs of each to draw.

Edges of strata are chosen among round scores by the rule of cumulated square roots (Dalenius & Hodges 1959), and
numbers of pairs by powers of the strata's sizes (Bankier 1988), half way between Neyman's optimum (1934), which would
spend nearly all on the many pairs far below the working point, and equal numbers. Both go by how doubtful pairs of
such a score are expected to be.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import sqrt
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: How many strata there are of returned pairs, and of others.
MOST_RETURNED, MOST_OTHERS = 5, 6
#: The fewest pairs that are drawn from a stratum that has so many, unless the sample is small.
FLOOR = 8
#: Pairs are never taken to be surer than where one in twenty-five is not what it seems.
_LEAST_DOUBT = 0.2


class Stratum(NamedTuple):
    """Pairs that are all returned or all not, with scores in [low, high), or [low, high] where ``high`` is the highest.

    Attributes
    ----------
    returned : bool
        Whether they are.
    low, high : float
        The scores.
    pairs : int
        How many.
    weight : float
        In which proportion they are drawn.
    """

    returned: bool
    low: float
    high: float
    pairs: int
    weight: float


def doubt(probability: Floats) -> Floats:
    """Return the standard deviation of whether a pair is a duplicate, 0.2 at least."""
    return np.maximum(np.sqrt(probability * (1 - probability)), _LEAST_DOUBT)


def stratify(
    score: Floats, returned: Bools, doubts: Floats, edges: Sequence[float], other_edges: Sequence[float]
) -> tuple[list[Stratum], Integers]:
    """Return the strata, the highest scores first and returned pairs before others, and the stratum of each pair.

    They depend on the scores alone, not on the order of the pairs, nor on the size of a sample.

    Parameters
    ----------
    score, returned, doubts : float64[n], bool[n], float64[n]
        Of each pair; scores of returned pairs and of others may be on different scales.
    edges, other_edges : sequence of float
        Where strata of returned pairs and of others may begin, ascending.
    """
    strata: list[Stratum] = []
    place = np.zeros(len(score), np.int64)
    for side, most, begins in ((True, MOST_RETURNED, edges), (False, MOST_OTHERS, other_edges)):
        mine = np.flatnonzero(returned == side)
        if not len(mine):
            continue
        values = score[mine]
        lowest, highest = float(values.min()), float(values.max())
        inner = np.array([edge for edge in begins if lowest < edge <= highest], np.float64)
        chosen = _chosen(values, doubts[mine], inner, most)
        first = max((edge for edge in begins if edge <= lowest), default=lowest)
        bounds = [first, *chosen, min((edge for edge in begins if edge > highest), default=highest)]
        number = np.searchsorted(np.array(chosen), values, side="right")
        counts = np.bincount(number, minlength=len(chosen) + 1)
        doubtful = np.bincount(number, doubts[mine], len(chosen) + 1)
        place[mine] = len(strata) + len(chosen) - number
        strata += [
            Stratum(side, bounds[at], bounds[at + 1], int(counts[at]), float(doubtful[at]) / sqrt(counts[at]))
            for at in range(len(chosen), -1, -1)
        ]
    return strata, place


def _chosen(values: Floats, doubts: Floats, edges: Floats, most: int) -> list[float]:
    """Return at most ``most`` - 1 of the edges, none of which leaves a stratum empty."""
    bins = np.searchsorted(edges, values, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    held = np.maximum(counts, 1)
    roots = np.sqrt(counts) * np.bincount(bins, doubts, len(edges) + 1) / held
    reached = np.cumsum(roots)
    chosen: list[float] = []
    begin = 0
    for part in range(1, most):
        # The edge whose cumulated root is nearest to this part of the whole.
        at = int(np.argmin(np.abs(reached[:-1] - reached[-1] * part / most))) if len(edges) else 0
        if at < len(edges) and counts[begin : at + 1].any() and counts[at + 1 :].any():
            chosen.append(float(edges[at]))
            begin = at + 1
    return chosen


def allocate(strata: Sequence[Stratum], sample: int) -> list[int]:
    """Return how many pairs to draw from each stratum: half of the sample from returned pairs, half from others.

    A larger sample draws no fewer from any stratum. Within a side the whole numbers are the best possible ones for the
    strata's weights (Wright 2012: equal proportions).

    Parameters
    ----------
    strata : sequence of Stratum
        As ``stratify`` gives them.
    sample : int
        How many in all; all pairs are drawn where there are fewer. Raising it narrows all intervals.
    """
    sides = [[at for at, stratum in enumerate(strata) if stratum.returned == side] for side in (True, False)]
    sizes = [sum(strata[at].pairs for at in side) for side in sides]
    first = min((sample + 1) // 2, sizes[0])
    second = min(sample - first, sizes[1])
    first = min(sample - second, sizes[0])
    drawn = [0] * len(strata)
    for side, share in zip(sides, (first, second), strict=True):
        for at, count in zip(side, _apportioned([strata[at] for at in side], share), strict=True):
            drawn[at] = count
    return drawn


def _apportioned(strata: Sequence[Stratum], share: int) -> list[int]:
    drawn = [0] * len(strata)
    queue = [(_claim(stratum, 0), at) for at, stratum in enumerate(strata)]
    heapify(queue)
    for _ in range(share):
        at = queue[0][1]
        drawn[at] += 1
        heapreplace(queue, (_claim(strata[at], drawn[at]), at))
    return drawn


def _claim(stratum: Stratum, drawn: int) -> tuple[int, float]:
    """Return the less the stronger a stratum's claim to one pair more: first all come to the floor, by turns."""
    if drawn >= stratum.pairs:
        return 2, 0.0
    if drawn < FLOOR:
        return 0, float(drawn)
    return 1, -stratum.weight / sqrt(drawn * (drawn + 1))
