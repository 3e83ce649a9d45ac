"""The largest families of a run, and which of them are templates."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup.exploring.makeup import LargeFamily
from neardup.exploring.templates import LONGEST, Template, pattern_of
from neardup.findings import Findings
from neardup.material import Material

Integers = npt.NDArray[np.int64]

#: What is listed, at most.
FAMILIES, TEMPLATES = 20, 10
#: So many of the largest families are looked at, so many texts of each, until they have so many characters together.
_EXAMINED, _COMPARED, _CHARACTERS = 40, 12, 5_000_000
_IDS = 5
#: Characters that say how a text begins.
_BEGINS = 120


def core_of(family: Integers, representative: Integers, left: Integers, right: Integers, texts: Integers) -> Integers:
    """Return the distinct texts of a family that match the one which matches most of them, that one first.

    Parameters
    ----------
    family : int64[m]
        Its documents, ascending.
    representative : int64[n]
        For each document the first one with equal features.
    left, right : int64[k]
        The pairs of representatives.
    texts : int64[n]
        For each document the first one with the same text.
    """
    own = representative[family]
    nodes, copies = np.unique(own, return_counts=True)
    inside = np.isin(left, nodes)
    ends = np.searchsorted(nodes, np.concatenate([left[inside], right[inside]]))
    matched = copies.astype(np.float64)
    matched += np.bincount(ends, copies[np.roll(ends, len(ends) // 2)], len(nodes))
    centre = int(nodes[matched.argmax()])
    near = np.unique(np.concatenate([[centre], right[inside & (left == centre)], left[inside & (right == centre)]]))
    distinct = family[np.isin(own, near) & (texts[family] == family)]
    first = distinct[representative[distinct] == centre][:1]
    return np.concatenate([first, distinct[~np.isin(distinct, first)]])


def beginning(text: str) -> str:
    """Return how a text begins, in a line."""
    line = " ".join(text[: 2 * _BEGINS].split())
    return line if len(line) <= _BEGINS and len(text) <= 2 * _BEGINS else line[:_BEGINS].rstrip() + " …"


class LargestFamilies:
    """The largest families of a run.

    Parameters
    ----------
    findings : Findings or None
        The run; without one there are none.
    texts : int64[n]
        For each document the first one with the same text.

    Attributes
    ----------
    found : int
        How many families there are.
    wanted : int64[k]
        The documents that have to be read.
    examined : int
        How many families were looked at as templates.
    """

    def __init__(self, findings: Findings | None, texts: Integers) -> None:
        self._findings = findings
        self.found = 0 if findings is None else len(findings.families.documents)
        self.examined = 0
        #: Of each family its number, its documents, and those that are compared.
        self._largest: list[tuple[int, Integers, Integers]] = []
        if findings is not None:
            sizes, family = findings.families.documents, findings.families.family
            for place in np.argsort(-sizes, kind="stable")[:_EXAMINED].tolist():
                members = np.flatnonzero(family == place + 1)
                self._largest.append((place + 1, members, _spread(_core(findings, members, texts))))
        self.wanted = np.concatenate([np.zeros(0, np.int64), *(compared for _, _, compared in self._largest)])

    def listed(self, material: Material) -> tuple[LargeFamily, ...]:
        """Return the largest ones for people."""
        if self._findings is None:
            return ()
        known = self._findings.families
        return tuple(
            LargeFamily(
                number=number,
                documents=len(members),
                pairs=int(known.pairs[number - 1]),
                smallest=float(known.smallest[number - 1]),
                mean=float(known.mean[number - 1]),
                complete=int(known.pairs[number - 1]) == len(members) * (len(members) - 1) // 2,
                ids=tuple(material.id(place) for place in members[:_IDS].tolist()),
                begins=beginning(material.shown(int(compared[0])).text),
            )
            for number, members, compared in self._largest[:FAMILIES]
        )

    def templates(self, material: Material) -> list[Template]:
        """Return those that are templates, the largest first."""
        found = []
        left = _CHARACTERS
        self.examined = 0
        for number, members, compared in self._largest:
            if left <= 0:
                break
            self.examined += 1
            texts = [material.shown(place).text for place in compared.tolist()]
            left -= sum(min(len(text), LONGEST) for text in texts)
            pattern = pattern_of(texts)
            if pattern is not None:
                ids = tuple(material.id(int(compared[at])) for at in pattern.members[:_IDS])
                found.append(
                    Template(
                        family=number,
                        documents=len(members),
                        compared=len(pattern.members),
                        ids=ids,
                        constant=pattern.constant,
                        share=pattern.share,
                        pieces=pattern.pieces,
                        slots=pattern.slots,
                        left_out=len(texts) - len(pattern.members),
                    )
                )
        return found


def _core(findings: Findings, members: Integers, texts: Integers) -> Integers:
    matches = findings.matches
    return core_of(members, matches.representative, matches.left, matches.right, texts)


def _spread(documents: Integers) -> Integers:
    """Return the first document and, of the others, some from everywhere among them."""
    if len(documents) <= _COMPARED:
        return documents
    return documents[np.linspace(0, len(documents) - 1, _COMPARED).astype(np.int64)]
