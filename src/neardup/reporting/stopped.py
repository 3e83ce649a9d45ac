"""Families and pairs of a flow, as reports list them: what each duplicate repeats, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import NamedTuple

import numpy as np

from neardup.pages.differences import side_by_side
from neardup.pages.parts import Html, escaped
from neardup.reporting.changes import beginning, changed, named
from neardup.reporting.extent import Extent
from neardup.reporting.families import DROPPED_LISTED
from neardup.reporting.flow import ELSEWHERE, ORIGINAL, Flow, Sources
from neardup.reporting.flowsweep import Around
from neardup.reporting.model import COPY, EQUAL, KEPT, NEAR, Case, Family, Member, Named
from neardup.sidebyside.shown import Shown

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Pairs elsewhere: so many for each twentieth of similarity.
_OF_EACH, _BANDS = 2, 20
#: Among so many of the nearest pairs it is looked for some that are no cases of one family.
_LOOKED_AT = 2000


class Picked(NamedTuple):
    """A pair that is shown: the places of the earlier and the later item, their similarity, and whether they match."""

    left: int
    right: int
    similarity: float
    matches: bool


class Listed(NamedTuple):
    """A family that is shown: its number, the place of its first item, how many it has, and what is listed of them."""

    number: int
    root: int
    documents: int
    members: list[int]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What of a flow is listed.

    Attributes
    ----------
    families : list of Listed
        The largest ones first, then some of the others.
    above, below : list of Picked
        Duplicates that only just are, beside what they repeat, and originals that only just are beside others: the
        nearest to the threshold first.
    elsewhere : list of Picked
        Pairs of other similarities, in rising order.
    """

    families: list[Listed]
    above: list[Picked]
    below: list[Picked]
    elsewhere: list[Picked]

    def places(self, flow: Flow) -> list[int]:
        """Return the items that must be read."""
        asked = {place for listed in self.families for place in (listed.root, *listed.members)}
        asked.update(int(flow.of[place]) for place in list(asked) if flow.of[place] >= 0)
        asked.update(place for one in (*self.above, *self.below, *self.elsewhere) for place in one[:2])
        return sorted(asked)


def chosen_of(flow: Flow, around: Around, extent: Extent, *, everything: bool) -> Chosen:
    """Choose what is listed.

    Parameters
    ----------
    flow : Flow
        What arrived.
    around : Around
        The pairs that are known besides.
    extent : Extent
        How much of it is listed.
    everything : bool
        Whether items are compared with duplicates as well.
    """
    groups = flow.groups
    # Families by what arrived in the time that is reported: what came before counts for none.
    new = np.bincount(groups.root[flow.duplicates], minlength=len(flow))[groups.roots]
    alive = np.flatnonzero(new)
    ranked = alive[np.argsort(-new[alive], kind="stable")]
    rest = ranked[extent.families :]
    drawn = np.random.default_rng(extent.seed).choice(rest, min(len(rest), extent.families // 2), replace=False)
    shown = [*ranked[: extent.families].tolist(), *sorted(drawn.tolist(), key=lambda at: (-new[at], at))]
    roots = groups.roots.tolist()
    listed = [Listed(at + 1, roots[at], int(groups.sizes[at]), _members(flow, roots[at])) for at in shown]
    near = flow.duplicates[~flow.exact[flow.duplicates] & (flow.of[flow.duplicates] >= 0)]
    matching = [
        Picked(int(flow.of[place]), place, float(flow.similarity[place]), True)
        for place in near[np.argsort(flow.similarity[near], kind="stable")].tolist()
    ]
    missing = _missing(flow, around, everything=everything)
    taken: set[int] = set()
    above = _apart(flow, matching, extent.cases, taken)
    below = _apart(flow, missing, extent.cases, taken)
    known = {*above, *below}
    return Chosen(
        listed, above, below, _spread(flow, [one for one in (*missing, *matching) if one not in known], taken)
    )


def _missing(flow: Flow, around: Around, *, everything: bool) -> list[Picked]:
    """Return originals and what they nearly match of the items that they were compared with, the nearest first."""
    stayed = flow.of == ORIGINAL
    at = np.flatnonzero(stayed[around.right] & (everything | stayed[around.left]))
    at = at[np.argsort(-around.similarity[at], kind="stable")]
    columns = around.left[at].tolist(), around.right[at].tolist(), around.similarity[at].tolist()
    return [Picked(left, right, similarity, False) for left, right, similarity in zip(*columns, strict=True)]


def _members(flow: Flow, root: int) -> list[int]:
    """Return the members to list: those least like what they repeat, in order of arrival."""
    members = flow.members(root)[1:]
    doubtful = members[np.argsort(flow.similarity[members], kind="stable")][:DROPPED_LISTED]
    found: list[int] = np.sort(doubtful).tolist()
    return found


def _apart(flow: Flow, pairs: Sequence[Picked], count: int, taken: set[int]) -> list[Picked]:
    """Return the first of the pairs that have no family in common with others; where there are too few, any."""
    root = flow.groups.root
    chosen: dict[Picked, int] = {}
    for strict in (True, False):
        for at, pair in enumerate(pairs[:_LOOKED_AT]):
            if len(chosen) == count:
                break
            marks = {int(root[pair.left]), int(root[pair.right])}
            if pair not in chosen and not (strict and marks & taken):
                chosen[pair] = at
                taken |= marks
    return sorted(chosen, key=chosen.__getitem__)


def _spread(flow: Flow, pairs: Sequence[Picked], taken: set[int]) -> list[Picked]:
    """Return some pairs of each band of similarities, in rising order."""
    bands: dict[int, list[Picked]] = {}
    for pair in pairs:
        bands.setdefault(ceil(pair.similarity * _BANDS), []).append(pair)
    chosen = [one for band in sorted(bands) for one in _apart(flow, bands[band], _OF_EACH, taken)]
    return sorted(chosen, key=lambda pair: (pair.similarity, pair.right, pair.left))


class Teller:
    """Tells of items: by name, with their texts where those are still there.

    Parameters
    ----------
    flow : Flow
        What arrived.
    shown : mapping of int to Shown
        The texts, by place.
    sources : Sources
        What matches what, and why.
    families : sequence of Listed
        The families that it is asked of.
    gone : str
        What is said in the place of a text that is not there any more.
    """

    def __init__(
        self, flow: Flow, shown: Mapping[int, Shown], sources: Sources, families: Sequence[Listed], gone: str
    ) -> None:
        self._flow, self._shown, self._sources = flow, shown, sources
        # Of all families at once, for each question costs an index.
        members = [place for listed in families for place in listed.members if len(listed.members) > 1]
        self._matching = sources.matching({place: shown[place] for place in members if place in shown})
        self._gone = Html(f'<p class="changes dim">{escaped(gone)}</p>')

    def named(self, place: int) -> Named:
        """Return what an item is called."""
        shown = self._shown.get(place)
        time = time_text(int(self._flow.times[place]))
        return Named(self._flow.id(place), "" if shown is None else shown.title, time)

    def why(self, place: int) -> str:
        """Return why an item is what it is."""
        if self._flow.of[place] == ORIGINAL:
            return KEPT
        if self._flow.exact[place]:
            return COPY
        return EQUAL if self._flow.equal[place] else NEAR

    def family(self, listed: Listed, goes: Callable[[int], str]) -> Family:
        """Return a family with its listed members."""
        apart = self._apart(listed.members)
        members = [self._member(place, goes) for place in (listed.root, *listed.members)]
        if apart is not None:
            members[1:] = [
                replace(member, apart=[self._flow.id(other) for other in apart[place]])
                for place, member in zip(listed.members, members[1:], strict=True)
            ]
        # A text that has left is called by one that repeats it.
        repeated = self._flow.members(listed.root)[1:]
        names = (named(self._shown[place]) for place in (listed.root, *listed.members) if place in self._shown)
        return Family(
            number=listed.number,
            lead=next(filter(None, names), ""),
            documents=listed.documents,
            kept=int(self._flow.of[listed.root] == ORIGINAL),
            members=members,
            equal=bool(self._flow.equal[repeated].all()),
            smallest=float(self._flow.similarity[repeated].min()),
            apart=None if apart is None else sum(map(len, apart.values())) // 2,
        )

    def _member(self, place: int, goes: Callable[[int], str]) -> Member:
        flow, shown = self._flow, self._shown
        document, text = self.named(place), shown.get(place)
        if flow.of[place] == ORIGINAL:
            look = self._gone if text is None else beginning(text)
            return Member(document=document, why=KEPT, look=look, goes=goes(place))
        other = None if flow.of[place] == ELSEWHERE else shown.get(int(flow.of[place]))
        look, passage = self._gone, 0
        if text is not None and other is not None:
            look, passage = changed(other, text)
        elif text is not None:
            look = Html(f"{beginning(text)}{self._gone}")
        parts = [self._sources.evidence(place), f"{passage:,} words in a row in common" if passage > 1 else ""]
        why = self.why(place)
        return Member(
            document=document,
            why=why,
            to_keeper=why,
            keeper=flow.repeats(place),
            similarity=float(flow.similarity[place]),
            look=look,
            evidence="; ".join(filter(None, parts)),
            goes=goes(place),
        )

    def _apart(self, members: Sequence[int]) -> dict[int, list[int]] | None:
        """Return for each listed duplicate those that repeat the same and do not match it; None if that is unknown."""
        if self._matching is None:
            return None
        of, known = self._flow.of, [place for place in members if place in self._shown]
        apart: dict[int, list[int]] = {place: [] for place in members}
        for one in known:
            for other in known:
                if one < other and of[one] == of[other] and (one, other) not in self._matching:
                    apart[one].append(other)
                    apart[other].append(one)
        return apart

    def case(self, pair: Picked, head: str, words: int, matching: str) -> Case:
        """Return two items side by side.

        Parameters
        ----------
        pair : Picked
            They.
        head : str
            How alike they are.
        words : int
            Words of each text.
        matching : str
            At which thresholds they match.
        """
        left, right = self._shown.get(pair.left), self._shown.get(pair.right)
        look = self._gone
        if left is not None and right is not None:
            look = side_by_side(left, right, words=words, head=head)
        return Case(
            left=self.named(pair.left),
            right=self.named(pair.right),
            similarity=pair.similarity,
            matches=pair.matches,
            look=Html(look),
            matching=matching,
        )


def time_text(moment: int) -> str:
    """Return a time in microseconds as people read it, to the second; empty where no calendar has it."""
    try:
        return (_EPOCH + timedelta(microseconds=moment)).strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError):
        return ""
