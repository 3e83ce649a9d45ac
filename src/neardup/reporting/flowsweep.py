"""What other thresholds would have done to a flow: exactly where all pairs are known, else as far as verdicts tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from neardup.keep import Graph, Standing, graph, standing
from neardup.reporting.flow import ORIGINAL, Bools, Floats, Flow, Integers
from neardup.reporting.model import Sweep
from neardup.reporting.sweep import similarity_at, steps_of
from neardup.search.around import Scale

_STRICTER_ONLY = (
    "It moves to stricter thresholds only: a flow does not find out how near an item came that matched nothing."
)
_COUNTED = {
    True: "Items are compared with all that the window holds, so a stricter threshold stops exactly those whose "
    "similarity reaches it.",
    False: "It counts the duplicates whose recorded similarity reaches the threshold. Items that a stricter one lets "
    "pass would themselves enter the window and could stop others, so a flow with that threshold differs a little: "
    "replay it to know.",
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Around:
    """The pairs of items that the window held together, from a looser threshold on.

    Attributes
    ----------
    left, right : int64[k]
        Places in the flow, the earlier item on the left.
    similarity : float64[k]
        Of each pair.
    loosest : Fraction
        The threshold from which on all pairs are there.
    known : bool
        Whether they were looked for at all.
    note : str
        Why not.
    """

    left: Integers
    right: Integers
    similarity: Floats
    loosest: Fraction
    known: bool = True
    note: str = ""

    @classmethod
    def nothing(cls, own: Fraction, note: str) -> Self:
        """Return what is known where no pairs were looked for; ``own`` is the flow's threshold."""
        none = np.zeros(0, np.int64)
        return cls(left=none, right=none, similarity=np.zeros(0), loosest=own, known=False, note=note)


class Swept(NamedTuple):
    """A sweep, and what would become of an item or a pair at each of its thresholds, as texts of 0 and 1.

    Attributes
    ----------
    sweep : Sweep or None
        None where no threshold can be moved.
    bars : float64[t]
        The similarity that a pair has to reach at each threshold.
    gone : bool[t, n] or None
        Which items would be duplicates; None where only the recorded similarities say so.
    """

    sweep: Sweep | None
    bars: Floats
    gone: Bools | None

    def goes(self, flow: Flow, place: int) -> str:
        """Return at which thresholds an item is a duplicate."""
        if self.sweep is None:
            return ""
        if self.gone is not None:
            return "".join("01"[int(gone)] for gone in self.gone[:, place].tolist())
        return self.matching(float(flow.similarity[place]), matches=bool(flow.of[place] != ORIGINAL))

    def matching(self, similarity: float, *, matches: bool) -> str:
        """Return at which thresholds a pair matches; at its own the flow itself has said that."""
        if self.sweep is None:
            return ""
        states = ["01"[similarity >= bar] for bar in self.bars.tolist()]
        states[self.sweep.own] = "01"[matches]
        return "".join(states)


def swept(flow: Flow, scale: Scale, around: Around, *, everything: bool, whole: bool) -> Swept:
    """Return what other thresholds would have done.

    Parameters
    ----------
    flow : Flow
        What arrived.
    scale : Scale
        What decides.
    around : Around
        The pairs that are known.
    everything : bool
        Whether items are compared with duplicates as well.
    whole : bool
        Whether the recorded similarities say all of stricter thresholds.
    """
    if around.known:
        steps = steps_of(scale, around.loosest)
        bars = _bars(scale, steps)
        own = steps.index(scale.threshold)
        gone = _gone(len(flow), around, bars, everything=everything)
        # What cannot be done again in this way, such as items that came too late, is not made up.
        if np.array_equal(gone[own], flow.of != ORIGINAL):
            pairs = np.sort(around.similarity)
            known = len(pairs) - np.searchsorted(pairs, bars)
            dropped = gone.sum(axis=1)
            made = _sweep(scale, steps, len(flow), dropped, known, own)
            return Swept(made, bars, gone)
    steps = steps_of(scale, scale.threshold)
    bars = _bars(scale, steps)
    similarity = np.sort(flow.similarity[flow.duplicates])
    left = len(similarity) - np.searchsorted(similarity, bars)
    left[0] = len(similarity)
    made = _sweep(scale, steps, len(flow) - flow.before, left, left, 0)
    note = f"{_STRICTER_ONLY} {_COUNTED[everything]}"
    return Swept(replace(made, exact=whole, note=note), bars, None)


def _bars(scale: Scale, steps: Sequence[Fraction]) -> Floats:
    return np.array([similarity_at(scale, step) for step in steps], np.float64)


def _sweep(
    scale: Scale, steps: Sequence[Fraction], documents: int, dropped: Integers, pairs: Integers, own: int
) -> Sweep:
    return Sweep(
        thresholds=[float(step) for step in steps],
        kept=(documents - dropped).tolist(),
        dropped=dropped.tolist(),
        pairs=pairs.tolist(),
        own=own,
        what="probability" if scale.measure == "learned" else scale.measure,
        distance=scale.distance,
        similarities=[similarity_at(scale, step) for step in steps],
    )


def _gone(count: int, around: Around, bars: Floats, *, everything: bool) -> Bools:
    """Return for each threshold which items would be duplicates, by all pairs: bool[t, n]."""
    gone = np.zeros((len(bars), count), np.bool_)
    if everything:
        best = np.full(count, -1.0)
        np.maximum.at(best, around.right, around.similarity)
        gone[:] = best >= bars[:, None]
        return gone
    # An item goes if an original before it matches: who stays is decided in order of arrival, as in `keep`.
    places = np.arange(count)
    ranked, pairs = standing(places, places), graph(count, around.left, around.right, around.similarity)
    for at, bar in enumerate(bars.tolist()):
        gone[at] = ~_staying(ranked, pairs, bar)
    return gone


def _staying(ranked: Standing, pairs: Graph, bar: float) -> Bools:
    kept = pairs.similarity >= bar
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int64)
    return ranked.staying(Graph(before[pairs.heads], pairs.neighbours[kept], pairs.similarity[kept]))
