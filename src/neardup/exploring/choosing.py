"""Which features part alike pairs from unrelated ones best: the first step of the advice (``advice``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from neardup.exploring.histogram import View
from neardup.exploring.separation import Separation, alike_pairs, separation_of

#: Gaps within it are the same.
SAME = 0.02
#: What unrelated pairs may reach where no gap is known.
LOW_REACH = 0.1
#: By how much q-grams must widen the gap, and the measure whose views are chosen from.
_WORTH, _MEASURE = 0.05, "jaccard"


@dataclass(frozen=True, slots=True)
class Choice:
    """The features that were chosen.

    Attributes
    ----------
    view : View
        Of the sample, by them.
    separations : tuple of (View, Separation)
        All that were looked at.
    by_gap : bool
        Whether the sample had alike pairs enough to go by the gap.
    """

    view: View
    separations: tuple[tuple[View, Separation], ...]
    by_gap: bool

    @property
    def own(self) -> Separation:
        """What the two kinds reach by the chosen ones."""
        return next(found for view, found in self.separations if view is self.view)


def choose(views: Sequence[View], corpus_pairs: int) -> Choice:
    """Choose features: step 1 of the rule.

    Parameters
    ----------
    views : sequence of View
        Of the sample, at least one. n-grams by Jaccard are chosen from; where there are none, from all.
    corpus_pairs : int
        All pairs of the whole corpus.
    """
    grams = [view for view in views if view.n is not None and view.measure == _MEASURE]
    asked = grams or list(views)
    alike = alike_pairs(asked)
    found = tuple((view, separation_of(view, alike, corpus_pairs)) for view in asked)
    words = [one for one in found if one[0].features.startswith("words")] or list(found)
    others = [one for one in found if one not in words]
    if words[0][1].level is None:
        low = [view for view, own in words if own.reach <= LOW_REACH]
        chosen = min(low, key=_length) if low else min(words, key=lambda one: one[1].reach)[0]
        return Choice(chosen, found, by_gap=False)
    best, view = _widest(words)
    if others:
        wider, other = _widest(others)
        view = other if wider >= best + _WORTH else view
    return Choice(view, found, by_gap=True)


def _widest(found: Sequence[tuple[View, Separation]]) -> tuple[float, View]:
    """Return the widest gap, and the longest of those as wide."""
    gaps = [(own.gap or 0.0, view) for view, own in found]
    best = max(gap for gap, _ in gaps)
    return best, max((view for gap, view in gaps if gap >= best - SAME), key=_length)


def _length(view: View) -> int:
    return view.n or 0
