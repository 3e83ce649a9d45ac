"""What a learned decision goes by and where it errs, in the words of its measures."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.decision.machine import Machine
from neardup.evaluation.scoring import Figure
from neardup.learning.judging import Judged
from neardup.learning.labelled import LabelledPairs

Floats = npt.NDArray[np.float64]

#: A push that goes along with its measure by less than this correlation goes both ways.
_ONE_WAY = 0.5
_BINS = 10


class Weight(NamedTuple):
    """How much a measure matters.

    Attributes
    ----------
    measure : str
        Its name.
    push : float
        The mean of what it adds to g or takes from it, without its sign, over the labelled pairs.
    direction : str
        ``for`` where higher values speak for duplicates, ``against``, or ``both``.
    coefficient : float or None
        Of the standardised measure, with the linear kernel.
    """

    measure: str
    push: float
    direction: str
    coefficient: float | None


class AtPrecision(NamedTuple):
    """A working point.

    Attributes
    ----------
    asked : float
        The precision that is asked for.
    cut : float or None
        From which g on the decision has it on the pairs it was trained on, unseen; None where no cut has.
    precision, recall : Figure
        What such cuts had on pairs that had no say in them.
    """

    asked: float
    cut: float | None
    precision: Figure
    recall: Figure

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        return self._asdict() | {"precision": self.precision._asdict(), "recall": self.recall._asdict()}


class Wrong(NamedTuple):
    """A labelled pair whose label a machine that had not seen it does not say.

    Attributes
    ----------
    id1, id2 : str
        The documents.
    duplicate : bool
        The label.
    g, probability : float or None
        What was said; None where equal texts are labelled as no duplicates.
    pushes, measures : dict of str to float
        What each measure added to g, and its value (None where it is not known), the strongest first.
    """

    id1: str
    id2: str
    duplicate: bool
    g: float | None
    probability: float | None
    pushes: dict[str, float]
    measures: dict[str, float | None]


def weights_of(machine: Machine, names: tuple[str, ...], x: Floats) -> tuple[Weight, ...]:
    """Return the weight of each measure over labelled pairs, the heaviest first."""
    pushes = machine.pushes(x)
    values = np.where(np.isnan(x), machine.fill, x)
    weights = [
        Weight(
            name,
            float(np.abs(pushes[:, j]).mean()),
            _direction(values[:, j], pushes[:, j]),
            float(machine.support[0, j]) if machine.gamma == 0 else None,
        )
        for j, name in enumerate(names)
    ]
    return tuple(sorted(weights, key=lambda weight: -weight.push))


def _direction(values: Floats, pushes: Floats) -> str:
    v, p = values - values.mean(), pushes - pushes.mean()
    spread = float(np.sqrt((v * v).sum() * (p * p).sum()))
    together = float((v * p).sum()) / spread if spread > 0 else 0.0
    return "for" if together >= _ONE_WAY else "against" if together <= -_ONE_WAY else "both"


def wrong_pairs(pairs: LabelledPairs, names: tuple[str, ...], judged: Judged) -> tuple[Wrong, ...]:
    """Return the pairs that the net let through and that were judged wrongly, the surest first."""
    rows = np.flatnonzero((judged.verdict != pairs.duplicate) & pairs.inside)
    sure = np.where(pairs.equal[rows], 1.0, np.abs(judged.probability[rows] - (~judged.verdict[rows])))
    found: list[Wrong] = []
    for row in rows[np.argsort(-sure, kind="stable")].tolist():
        decided = not pairs.equal[row]
        pushes = judged.pushes[row]
        order = np.argsort(-np.abs(pushes), kind="stable").tolist() if decided else []
        values = pairs.x[row]
        found.append(
            Wrong(
                *pairs.ids(row),
                bool(pairs.duplicate[row]),
                float(judged.g[row]) if decided else None,
                float(judged.probability[row]) if decided else None,
                {names[j]: float(pushes[j]) for j in order},
                {names[j]: None if np.isnan(values[j]) else float(values[j]) for j in order},
            )
        )
    return tuple(found)


def calibration(judged: Judged, pairs: LabelledPairs) -> list[dict[str, Any]]:
    """Return for tenths of the probability how many pairs were given one, their mean, and the share of duplicates."""
    rows = np.flatnonzero(pairs.decided)
    probability, labels = judged.probability[rows], pairs.duplicate[rows]
    bins = np.minimum((probability * _BINS).astype(np.int64), _BINS - 1)
    return [
        {
            "from": at / _BINS,
            "to": (at + 1) / _BINS,
            "pairs": int((bins == at).sum()),
            "probability": float(probability[bins == at].mean()),
            "duplicates": float(labels[bins == at].mean()),
        }
        for at in range(_BINS)
        if (bins == at).any()
    ]
