"""What other thresholds would have done: who stays and goes at each, from pairs that are known already."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.findings import Findings
from neardup.keep import Graph, Integers, graph, standing
from neardup.reporting.model import Sweep
from neardup.search.around import Scale
from neardup.search.matches import Matches

Bools = npt.NDArray[np.bool_]

#: Thresholds of a similarity are so far apart; those of a distance that is no number of bits are such a share of it.
_STEP, _SHARE = Fraction(1, 100), Fraction(1, 20)


class Swept(NamedTuple):
    """A sweep, and what it says of documents and pairs that are watched.

    Attributes
    ----------
    sweep : Sweep
        The counts.
    goes : bool[t, w]
        Which documents go at each threshold.
    matches : bool[t, p]
        Which pairs match at each threshold.
    """

    sweep: Sweep
    goes: Bools
    matches: Bools


def known_pairs(found: Findings) -> tuple[Matches, Fraction]:
    """Return all pairs that are known, and the loosest threshold at which they are all there are."""
    if found.around is not None and found.around.matches is not None:
        return found.around.matches, found.around.loosest
    return found.matches, found.scale.threshold


def steps_of(scale: Scale, loosest: Fraction) -> list[Fraction]:
    """Return the thresholds of a sweep, from the loosest to the strictest, the own one among them."""
    own = scale.threshold
    if scale.measure == "hamming":
        return [Fraction(bits) for bits in range(int(loosest), -1, -1)]
    if scale.distance:
        step = own * _SHARE
        steps = {step * place for place in range(1, int(loosest / step) + 1)}
        return sorted(steps | {own, loosest}, reverse=True)
    first = int(loosest / _STEP) + 1
    steps = {_STEP * place for place in range(first, int(1 / _STEP) + 1)}
    return sorted(steps | {own} | ({loosest} if loosest > 0 else set()))


def swept(found: Findings, watched: Integers, edges: Integers, note: str = "") -> Swept:
    """Return what other thresholds would have done, each exactly as a run at that threshold.

    Parameters
    ----------
    found : Findings
        With all pairs at its own threshold.
    watched : int64[w]
        Documents, by position, whose own fate is of interest.
    edges : int64[p]
        Pairs of which it is, too, by their places among ``known_pairs``.
    note : str
        What the sweep is to say of itself.
    """
    scale = found.scale
    every, loosest = known_pairs(found)
    steps = steps_of(scale, loosest)
    representative, present = every.representative, int(found.documents.present.sum())
    copies = np.bincount(representative[representative >= 0], minlength=len(representative)).astype(np.int64)
    equal = int((copies * (copies - 1) // 2).sum())
    able = int(copies.sum())
    ranked = standing(representative, found.documents.order)
    places = _places(every)
    own = steps.index(scale.threshold)
    kept, pairs = [], []
    goes, matches = np.zeros((len(steps), len(watched)), np.bool_), np.zeros((len(steps), len(edges)), np.bool_)
    node = representative[watched]
    for at, threshold in enumerate(steps):
        # A decision goes by g, of which the probability is rounded: at its cut the run itself says what passes.
        chosen = own_pairs(found, every) if at == own else scale.reaching(every, threshold)
        stays = ranked.staying(_thinned(places, chosen))
        kept.append(present - able + int(stays.sum()))
        pairs.append(equal + int((copies[every.left[chosen]] * copies[every.right[chosen]]).sum()))
        matches[at] = chosen[edges]
        goes[at] = (node >= 0) & ~(stays[node] & (ranked.top[node] == watched))
    return Swept(
        Sweep(
            thresholds=[float(threshold) for threshold in steps],
            kept=kept,
            dropped=[present - number for number in kept],
            pairs=pairs,
            own=own,
            what="probability" if scale.measure == "learned" else scale.measure,
            distance=scale.distance,
            similarities=[similarity_at(scale, threshold) for threshold in steps],
            exact=scale.second or found.recipe.search != "lsh",
            note=note,
        ),
        goes,
        matches,
    )


def own_pairs(found: Findings, every: Matches) -> Bools:
    """Return which of all known pairs match in the run itself."""
    if every is found.matches:
        return np.ones(len(every.left), np.bool_)
    count = len(every.representative)
    return np.isin(every.left * count + every.right, found.matches.left * count + found.matches.right)


def _places(every: Matches) -> Graph:
    """Return the graph of pairs with their numbers in the place of similarities."""
    numbers = np.arange(len(every.left), dtype=np.float64)
    return graph(len(every.representative), every.left, every.right, numbers)


def _thinned(places: Graph, chosen: Bools) -> Graph:
    """Return the graph of the chosen pairs."""
    kept = chosen[places.similarity.astype(np.int64)]
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return Graph(before[places.heads], places.neighbours[kept], places.similarity[kept])


def similarity_at(scale: Scale, threshold: Fraction) -> float:
    """Return how similar a pair exactly at a threshold is."""
    if scale.measure == "hamming":
        return float(1 - threshold / 64)
    return 1 / (1 + float(threshold)) if scale.distance else float(threshold)
