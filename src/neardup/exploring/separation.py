"""How well a view parts alike pairs from unrelated ones, in similarities that both kinds reach.

Unrelated pairs are the bulk: beyond its middle their number falls tenfold from step to step, about evenly. The steps
from half of them to a tenth and from there to a hundredth say what the most similar unrelated pair of the whole corpus
is expected to have, the ``reach`` of the unrelated; the shorter pace counts, for the other one may have been across a
heap of pairs with the same boilerplate, or among related ones. (Pairs of 0.5 and more are not of the bulk, unless they
are most of all pairs.) It needs no related pair, so that it holds for a sample of a large corpus, too.

Alike pairs are the closest of the sample: as many as are at 0.5 or above, in the median of the views. Nine in ten of
them are at or above the view's ``level``. A longer n brings both down, the unrelated ones first; so there is an n with
the widest gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log10
from statistics import median_low
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.exploring.histogram import BINS, View

#: Pairs at or above it are alike.
_ALIKE = 50
#: Fewer alike pairs say nothing of their level.
FEWEST_ALIKE = 10
#: The part of alike pairs that is at or above their level, and the parts of the bulk that its pace is taken from.
_MOST = 0.9
_PARTS = (0.5, 0.1, 0.01)
#: What stands for no pairs in logarithms.
_NONE = 1e-9


@dataclass(frozen=True, slots=True)
class Separation:
    """What the two kinds of pairs reach in one view.

    Attributes
    ----------
    reach : float
        The similarity that the most similar unrelated pair of the corpus is expected to have.
    alike : int
        How many pairs of the sample are taken as alike.
    level : float or None
        The similarity that nine in ten of them have at least; None where they are fewer than 10.
    between : float or None
        For each alike pair, the number of pairs in the middle third of the way from ``reach`` to ``level``: those that
        are neither. None where there is no level, or no way.
    """

    reach: float
    alike: int
    level: float | None
    between: float | None

    @property
    def gap(self) -> float | None:
        """How far the level lies above the reach; None where there is no level."""
        return None if self.level is None else self.level - self.reach

    def as_dict(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        return asdict(self) | {"gap": self.gap}


def above(view: View) -> npt.NDArray[np.float64]:
    """Return float64[101]: how many pairs of a view are at or above each hundredth."""
    return np.array([view.at_least(i) for i in range(BINS + 1)], np.float64)


def alike_pairs(views: Sequence[View]) -> int:
    """Return how many pairs of a sample are taken as alike."""
    return int(median_low(view.at_least(_ALIKE) for view in views)) if views else 0


def separation_of(view: View, alike: int, corpus_pairs: int) -> Separation:
    """Return what unrelated and alike pairs reach in a view.

    Parameters
    ----------
    view : View
        Of the sample.
    alike : int
        How many of its closest pairs are alike.
    corpus_pairs : int
        All pairs of the whole corpus: the more there are, the further the most similar unrelated one reaches.
    """
    pairs = above(view)
    reach = _reach(pairs, corpus_pairs)
    if alike < FEWEST_ALIKE:
        return Separation(reach, alike, None, None)
    level = _reached_by(pairs, _MOST * alike)
    if level <= reach:
        return Separation(reach, alike, level, None)
    third = (level - reach) / 3
    between = _at(pairs, reach + third) - _at(pairs, level - third)
    return Separation(reach, alike, level, between / alike)


def _reach(pairs: npt.NDArray[np.float64], corpus_pairs: int) -> float:
    total = pairs[0]
    if not total:
        return 0.0
    bulk = np.maximum(pairs - pairs[_ALIKE], 0.0) if 2 * pairs[_ALIKE] <= total else pairs
    places = [_reached_by(bulk, part * bulk[0]) for part in _PARTS]
    expected = [
        place + (place - before) / log10(earlier / part) * log10(max(part * corpus_pairs * bulk[0] / total, 1.0))
        for (earlier, part), (before, place) in zip(pairwise(_PARTS), pairwise(places), strict=True)
    ]
    return min(*expected, 1.0)


def _reached_by(pairs: npt.NDArray[np.float64], count: float) -> float:
    """Return the similarity that so many pairs have at least; between hundredths their number falls evenly in logs."""
    logs = -np.log(np.maximum(pairs, _NONE))
    return float(np.interp(-np.log(count), logs, np.arange(BINS + 1) / BINS))


def _at(pairs: npt.NDArray[np.float64], similarity: float) -> float:
    """Return how many pairs have a similarity at least."""
    return float(np.exp(np.interp(similarity, np.arange(BINS + 1) / BINS, np.log(np.maximum(pairs, _NONE)))))
