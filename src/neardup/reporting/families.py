"""Which families a report shows, which of their members, and what it says of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from neardup.findings import APART, Findings
from neardup.material import Material
from neardup.reporting.changes import beginning, changed, named
from neardup.reporting.model import COPY, EQUAL, KEPT, NEAR, Family, Member, Named

#: A spread of the families that are not among the largest: so many for each of these.
_SPREAD = 0.5
#: Members that are listed of a family: those that go, and those that stay.
DROPPED_LISTED, KEPT_LISTED = 8, 4


class Reasons(NamedTuple):
    """Why each document went, bool[n] each; no document has two.

    Attributes
    ----------
    copy : bool[n]
        It has the text, byte for byte, of a document before it in keep order.
    equal : bool[n]
        It has another text, and the features of a document before it in keep order.
    near : bool[n]
        It has features of its own.
    """

    copy: np.ndarray[tuple[int], np.dtype[np.bool_]]
    equal: np.ndarray[tuple[int], np.dtype[np.bool_]]
    near: np.ndarray[tuple[int], np.dtype[np.bool_]]

    def of(self, position: int) -> str:
        """Return the reason of a document; that it is kept where there is none."""
        names = (COPY, self.copy), (EQUAL, self.equal), (NEAR, self.near)
        return next((name for name, holds in names if holds[position]), KEPT)


def reasons_of(found: Findings) -> Reasons:
    """Return why each document went."""
    copy, equal = found.copies, found.equals
    return Reasons(copy, equal & ~copy, found.goes & ~equal & ~copy)


class Listed(NamedTuple):
    """A family that is shown: its number, and the positions of the members that are listed, kept ones first.

    ``equal`` says whether all of its members have equal features.
    """

    number: int
    documents: int
    kept: int
    equal: bool
    stay: list[int]
    go: list[int]


def chosen_families(found: Findings, most: int, seed: int) -> list[Listed]:
    """Return the largest families, and a random spread of the others, the largest first.

    Parameters
    ----------
    found : Findings
        What the run found.
    most : int
        So many of the largest are shown, and half as many of the others.
    seed : int
        Another one draws others.
    """
    sizes = found.families.documents
    ranked = np.argsort(-sizes, kind="stable")
    rest = ranked[most:]
    drawn = np.random.default_rng(seed).choice(rest, min(len(rest), int(most * _SPREAD)), replace=False)
    chosen = [*ranked[:most].tolist(), *sorted(drawn.tolist(), key=lambda place: (-sizes[place], place))]
    family = found.families.family
    order = np.argsort(family, kind="stable")
    ends = np.cumsum(np.bincount(family, minlength=len(sizes) + 1))
    goes, kept = found.goes, found.kept
    listed = []
    for place in chosen:
        members = order[ends[place] : ends[place + 1]]
        going = members[goes[members]]
        # The least similar ones are those that one doubts.
        doubtful = going[np.argsort(kept.similarity[going], kind="stable")][:DROPPED_LISTED].tolist()
        staying = members[~goes[members]].tolist()
        named = list(dict.fromkeys(kept.keeper[doubtful].tolist()))
        others = [member for member in staying if member not in set(named)]
        equal = len(np.unique(found.matches.representative[members])) == 1
        listed.append(Listed(place + 1, len(members), len(staying), equal, [*named, *others][:KEPT_LISTED], doubtful))
    return listed


def family_of(
    listed: Listed,
    found: Findings,
    reasons: Reasons,
    material: Material,
    evidence: Callable[[int, int], str],
    goes: Callable[[int], str],
) -> Family:
    """Return a family as the page shows it.

    Parameters
    ----------
    listed : Listed
        Which one.
    found, reasons : Findings, Reasons
        What the run found.
    material : Material
        Its documents, loaded.
    evidence : callable
        What says in a line why a document, by position, matches its keeper; the second number is how many words
        in a row both have.
    goes : callable
        What says at which thresholds a document goes.
    """
    members = [
        Member(document=_named(material, place), why=KEPT, look=beginning(material.shown(place)), goes=goes(place))
        for place in listed.stay
    ]
    apart, marks = _apart(found, listed.go), found.documents.text_marks
    own = found.matches.representative
    for place in listed.go:
        keeper = int(found.kept.keeper[place])
        to_keeper = (
            COPY if np.array_equal(marks[place], marks[keeper]) else EQUAL if own[place] == own[keeper] else NEAR
        )
        member = Member(
            document=_named(material, place),
            why=reasons.of(place),
            keeper=material.id(keeper),
            similarity=float(found.kept.similarity[place]),
            to_keeper=to_keeper,
            goes=goes(place),
        )
        if to_keeper != COPY:
            differs = changed(material.shown(keeper), material.shown(place))
            member = replace(member, look=differs.look, evidence=evidence(place, differs.passage))
        if apart is not None:
            member = replace(member, apart=[material.id(other) for other in apart[place]])
        members.append(member)
    at, pairs, complete = listed.number - 1, found.families.pairs, found.matches.complete
    every = listed.documents * (listed.documents - 1) // 2
    return Family(
        number=listed.number,
        documents=listed.documents,
        kept=listed.kept,
        lead=named(material.shown((listed.stay or listed.go)[0])),
        members=members,
        equal=listed.equal,
        pairs=int(pairs[at]) if complete else None,
        smallest=float(found.families.smallest[at]),
        mean=float(found.families.mean[at]) if complete else None,
        complete=int(pairs[at]) == every if complete else None,
        apart=None if apart is None else sum(map(len, apart.values())) // 2,
    )


def _named(material: Material, place: int) -> Named:
    shown = material.shown(place)
    return Named(shown.id, shown.title, shown.time)


def _apart(found: Findings, members: list[int]) -> dict[int, list[int]] | None:
    """Return for each dropped document those with the same keeper that it does not match; None if pairs are unknown."""
    if not found.matches.complete:
        return None
    keeper = found.kept.keeper
    pairs = [
        (one, other) for at, one in enumerate(members) for other in members[at + 1 :] if keeper[one] == keeper[other]
    ]
    apart: dict[int, list[int]] = {member: [] for member in members}
    if pairs:
        asked = np.array(pairs)
        for (one, other), edge in zip(pairs, found.edges(asked[:, 0], asked[:, 1]).tolist(), strict=True):
            if edge == APART:
                apart[one].append(other)
                apart[other].append(one)
    return apart
