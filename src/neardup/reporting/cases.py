"""Pairs to read: those that only just match, those that only just do not, and some at other similarities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.findings import Findings
from neardup.keep import Floats, Integers
from neardup.material import Material
from neardup.pages.differences import side_by_side
from neardup.reporting.model import Case, Named
from neardup.reporting.sweep import known_pairs, own_pairs
from neardup.search.matches import Matches

#: Pairs are drawn from bands so wide, so many from each.
_BANDS, _OF_EACH = 20, 2
#: Among so many of the nearest pairs it is looked for some that are no cases of one family.
_LOOKED_AT = 2000
_WORDS, _WORDS_ELSEWHERE = 300, 160


class Picked(NamedTuple):
    """A pair that is shown: positions, similarity, whether it matches, and its place among all known pairs."""

    left: int
    right: int
    similarity: float
    matches: bool
    edge: int


class Cases(NamedTuple):
    """The pairs that a report shows."""

    above: list[Picked]
    below: list[Picked]
    elsewhere: list[Picked]

    @property
    def every(self) -> list[Picked]:
        """All of them."""
        return [*self.above, *self.below, *self.elsewhere]

    @property
    def positions(self) -> list[int]:
        """The documents that must be read."""
        return [place for picked in self.every for place in picked[:2]]


def chosen_cases(found: Findings, count: int, seed: int) -> Cases:
    """Choose the pairs to read.

    Parameters
    ----------
    found : Findings
        What the run found.
    count : int
        So many on each side of the threshold, the nearest first; on a side not two with one document, or of one
        family, while there are others.
    seed : int
        Of the draw elsewhere.
    """
    every = known_pairs(found)[0]
    similarity = found.scale.similarities(every)
    matching = own_pairs(found, every)
    family = found.families.family
    above, below = np.flatnonzero(matching), np.flatnonzero(~matching)
    above = above[np.argsort(similarity[above], kind="stable")]
    below = below[np.argsort(-similarity[below], kind="stable")]
    # Sides are apart from themselves only: the nearest pair of each is shown, whatever the other one shows.
    sides: tuple[set[int], set[int]] = set(), set()
    near = [_apart(every, places, count, family, taken) for places, taken in zip((above, below), sides, strict=True)]
    rest = np.setdiff1d(np.arange(len(every.left)), np.array([*near[0], *near[1]], np.int64))
    elsewhere = _spread(every, rest, similarity, family, set.union(*sides), seed)

    def picked(places: Sequence[int]) -> list[Picked]:
        return [
            Picked(int(every.left[at]), int(every.right[at]), float(similarity[at]), bool(matching[at]), at)
            for at in places
        ]

    return Cases(picked(near[0]), picked(near[1]), picked(elsewhere))


def _apart(every: Matches, places: Integers, count: int, family: Integers, taken: set[int]) -> list[int]:
    """Return the first of the pairs that have no document, and no family, in common with others; then any."""
    chosen: list[int] = []
    for strict in (True, False):
        for at in places[:_LOOKED_AT].tolist():
            if len(chosen) >= count:
                break
            marks = _marks(every, at, family)
            if at in chosen or (strict and not taken.isdisjoint(marks)):
                continue
            chosen.append(at)
            taken |= marks
    wanted = set(chosen)
    return [at for at in places[:_LOOKED_AT].tolist() if at in wanted]


def _marks(every: Matches, at: int, family: Integers) -> set[int]:
    """Return what two pairs should not have in common: documents, and families as negative numbers."""
    ends = int(every.left[at]), int(every.right[at])
    return {*ends, *(-int(family[end]) for end in ends if family[end])}


def _spread(
    every: Matches, rest: Integers, similarity: Floats, family: Integers, taken: set[int], seed: int
) -> list[int]:
    """Return some of the pairs from each band of similarities, in rising order."""
    drawn = np.random.default_rng(seed).permutation(rest)
    chosen: list[int] = []
    band = np.ceil(similarity * _BANDS)
    for number in np.unique(band[rest]).tolist():
        inside = drawn[band[drawn] == number]
        chosen += _apart(every, inside, _OF_EACH, family, taken)
    return sorted(chosen, key=lambda at: (similarity[at], at))


def case_of(picked: Picked, material: Material, head: str, matching: str, *, near: bool) -> Case:
    """Return a pair as the page shows it.

    Parameters
    ----------
    picked : Picked
        Which one.
    material : Material
        Its documents, loaded.
    head : str
        How alike the two are.
    matching : str
        As in ``Case``.
    near : bool
        Whether it is near the threshold: more of its texts is shown then.
    """
    left, right = material.shown(picked.left), material.shown(picked.right)
    look = side_by_side(left, right, words=_WORDS if near else _WORDS_ELSEWHERE, head=head)
    return Case(
        left=Named(left.id, left.title, left.time),
        right=Named(right.id, right.title, right.time),
        similarity=picked.similarity,
        matches=picked.matches,
        look=look,
        matching=matching,
    )
