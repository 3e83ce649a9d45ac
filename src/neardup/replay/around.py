"""The pairs of items of one window that come near the threshold, by a second replay with a looser one."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from neardup.decision.decision import Decision
from neardup.features.statistics import Statistics
from neardup.flow.document import Document
from neardup.flow.index import Index
from neardup.recipe import Recipe
from neardup.replay.order import Item, Report
from neardup.replay.run import END_OF_TIME
from neardup.replay.settings import Settings
from neardup.reporting.flowsweep import Around
from neardup.search.around import loosened, scale_of
from neardup.times import utc
from neardup.window.times import Length

_HOUR = 3_600_000_000
#: More pairs than so many for each item, and so many besides, are not kept.
_OF_EACH, _BESIDES = 20, 1_000_000


def around_of(
    items: Iterable[Item],
    settings: Settings,
    around: float,
    total: int,
    *,
    statistics: Statistics | None = None,
    report: Report,
) -> Around:
    """Return the pairs of items of one window that reach a looser threshold.

    Parameters
    ----------
    items : iterable of Item
        All that were replayed, in their order.
    settings : Settings
        Of the replay.
    around : float
        How much looser; 0 for not at all. Raising it finds more pairs, slower.
    total : int
        How many items there are.
    statistics : Statistics or None
        Of the collection, for recipes that need them.
    report : callable
        Told the stage, how many items have gone through, and how many will.

    Raises
    ------
    RecipeError
        If it leads out of the measure's range.
    """
    recipe, decision = settings.recipe, settings.decision
    own = scale_of(recipe, decision).threshold
    if not around:
        return Around.nothing(own, "Pairs below the threshold were not looked for; --report-around 0.2 looks for them.")
    looser = loosened(recipe, around)
    if isinstance(looser, str):
        return Around.nothing(own, looser)
    every = None if decision is None else decision.everything()
    loosest = Fraction(0) if every is not None else scale_of(looser).threshold
    length = Length.parse(settings.window, settings.window_by)
    with _index(looser, every, settings, statistics) as index:
        pairs = _Pairs(length, _OF_EACH * total + _BESIDES)
        for item in items:
            if len(pairs) % 256 == 0:
                report("look around the threshold", len(pairs), total)
            document = Document(str(len(pairs)), item.text, utc(item.time), title=item.title)
            # A question has the time of the clock, which an item may move; where items are counted, it is the next one.
            if length.unit in ("documents", "endless"):
                found = index.query(document)
                index.add(document)
            else:
                index.add(document)
                found = index.query(document)
            if not pairs.add(item.time, [(int(other.id), other.similarity) for other in found]):
                note = (
                    f"More than {pairs.most:,} pairs reach the looser threshold, so they were not kept; look less far."
                )
                return Around.nothing(own, note)
    return pairs.around(loosest)


def _index(recipe: Recipe, decision: Decision | None, settings: Settings, statistics: Statistics | None) -> Index:
    """Return an index in memory that compares with everything in the window."""
    return Index(
        None if decision else recipe,
        decision=decision,
        window=settings.window,
        window_by=settings.window_by,
        against="everything",
        sample=statistics,
        now=lambda: END_OF_TIME,
    )


class _Pairs:
    """Takes what each item matches, as far as the window holds both."""

    def __init__(self, length: Length, most: int) -> None:
        self.most = most
        self._length = length
        self._times = array("q")
        self._left, self._right, self._similarity = array("q"), array("q"), array("d")

    def __len__(self) -> int:
        return len(self._times)

    def add(self, time: int, found: Iterable[tuple[int, float]]) -> bool:
        """Take the next item; return False where there are too many pairs."""
        place = len(self._times)
        self._times.append(time)
        for other, similarity in found:
            if other < place and self._together(time, self._times[other], place - other):
                self._left.append(other)
                self._right.append(place)
                self._similarity.append(similarity)
        return len(self._left) <= self.most

    def _together(self, time: int, other: int, apart: int) -> bool:
        """Return whether a window reaches from one to the other."""
        length = self._length
        if length.value is None:
            return True
        if length.unit == "documents":
            return apart <= length.value
        scale = _HOUR if length.unit == "hour" else 1
        return abs(time // scale - other // scale) <= length.value

    def around(self, loosest: Fraction) -> Around:
        return Around(
            left=np.array(self._left, np.int64),
            right=np.array(self._right, np.int64),
            similarity=np.array(self._similarity, np.float64),
            loosest=loosest,
        )
