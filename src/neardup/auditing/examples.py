"""The judged pairs of a sample that are worth reading: what was wrong, what was missed, what nobody was sure of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from neardup.errors import RecipeError
from neardup.labelling.answers import DIFFERENT, SAME, UNSURE
from neardup.sidebyside.shown import Shown

if TYPE_CHECKING:
    from neardup.auditing.audit import Drawing
    from neardup.auditing.judging import Judged

#: How many pairs of each kind are read out where nothing else is asked for.
MOST = 20
#: Why a pair is worth reading: whether it is returned, and what people say of it; None is either.
KINDS: dict[str, tuple[bool | None, str]] = {
    "wrong": (True, DIFFERENT),
    "missed": (False, SAME),
    "unsure": (None, UNSURE),
}


class Example(NamedTuple):
    """A drawn pair to read.

    Attributes
    ----------
    left, right : Shown
        Its documents.
    score : float
        On the scale of returned or of other pairs.
    returned : bool
        Whether the working point returns it.
    answer : str
        What people say of it.
    stands_for : float
        How many pairs of the whole it stands for: those of its stratum by the judged ones; 0 where it counts nowhere.
    """

    left: Shown
    right: Shown
    score: float
    returned: bool
    answer: str
    stands_for: float


@dataclass(frozen=True, slots=True)
class Examples:
    """Pairs to read, by the names of KINDS.

    Attributes
    ----------
    shown : dict
        Those that stand for most pairs, the most first.
    total : dict
        How many there are of each kind.
    """

    shown: dict[str, list[Example]]
    total: dict[str, int]


def examples_of(drawing: Drawing, known: Judged, most: int = MOST) -> Examples:
    """Return the pairs of each kind that stand for most others.

    Parameters
    ----------
    drawing : Drawing
        The sample.
    known : Judged
        What people say of it.
    most : int
        How many of each kind.

    Raises
    ------
    RecipeError
        If that is below 0.
    """
    if most < 0:
        raise RecipeError(f"{most} pairs of each kind are below 0; give how many to show, such as {MOST}")
    population = drawing.population
    score, returned = population.score[drawing.pairs], population.returned[drawing.pairs]
    weights = _weights(drawing, known)
    chosen: dict[str, list[int]] = {}
    total = {}
    for kind, (side, answer) in KINDS.items():
        members = [
            at
            for at, said in enumerate(known.answers)
            if said == answer and (side is None or bool(returned[at]) == side)
        ]
        # Of equals those furthest on the wrong side first: they surprise most.
        members.sort(key=lambda at: (-weights[at], -score[at] if returned[at] else score[at], at))
        chosen[kind], total[kind] = members[:most], len(members)
    left, right = drawing.left, drawing.right
    places = [at for members in chosen.values() for at in members]
    material = drawing.material
    material.load(np.concatenate([left[places], right[places]]))
    shown = {
        kind: [
            Example(
                material.shown(int(left[at])),
                material.shown(int(right[at])),
                float(score[at]),
                bool(returned[at]),
                known.answers[at],
                weights[at],
            )
            for at in members
        ]
        for kind, members in chosen.items()
    }
    return Examples(shown, total)


def _weights(drawing: Drawing, known: Judged) -> Sequence[float]:
    """Return for each drawn pair how many pairs of its stratum a judged one stands for; 0 for the others."""
    place = drawing.strata_of_pairs
    sure = np.array([answer in (SAME, DIFFERENT) for answer in known.answers], np.bool_)
    judged = np.bincount(place[sure], minlength=len(drawing.strata))
    pairs = np.array([stratum.pairs for stratum in drawing.strata])
    each = pairs[place] / np.maximum(judged[place], 1)
    return [float(weight) for weight in np.where(sure, each, 0.0)]
