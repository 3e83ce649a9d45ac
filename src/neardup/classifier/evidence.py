"""What a learned decision went by on pairs: g(x), the probability, and the measures that pushed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from neardup.classifier.classifier import Decision

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: What stands in the place of measures where two texts are equal byte for byte.
EQUAL_TEXTS = "equal texts"
#: Where all measures lie where their means do.
NO_PUSH = "no measure pushes"
#: In a few words there are at most so many pushes, and none that would be +0.00.
_STRONGEST = 3
_SHOWN = 0.005


class Push(NamedTuple):
    """What one measure had to do with a decision.

    Attributes
    ----------
    measure : str
        Its name in the decision's vector.
    value : float or None
        What it says of the pair; None where that is not known, and the median in training stands in for it.
    push : float
        By how much it moves g away from where its mean in training would leave it: above 0 towards near-duplicates.
    """

    measure: str
    value: float | None
    push: float


class Evidence(NamedTuple):
    """What a decision went by on one pair.

    Attributes
    ----------
    g : float or None
        The discriminant; None for texts that are equal byte for byte, which are near-duplicates unasked.
    probability : float
        How probable near-duplicates are among pairs with such a g; 1 for equal texts.
    pushes : tuple of Push
        All measures, the strongest push first; none for equal texts.
    start : float or None
        g with all measures at their means in training: with a linear kernel, it and the pushes add up to g.
    """

    g: float | None
    probability: float
    pushes: tuple[Push, ...] = ()
    start: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "g": self.g,
            "probability": self.probability,
            "start": self.start,
            "measures": [push._asdict() for push in self.pushes],
        }

    def __str__(self) -> str:
        if self.g is None:
            return EQUAL_TEXTS
        strongest = self.pushes[:_STRONGEST]
        return _in_words([push.measure for push in strongest], [push.push for push in strongest])


class Learned:
    """What a decision went by on n pairs, in arrays.

    Attributes
    ----------
    names : tuple of str
        The measures.
    vectors, pushes : float64[n, r]
        Their values, nan where not known, and how they pushed; nan for equal texts.
    g, probability : float64[n]
        nan and 1 for equal texts.
    start : float
        g with all measures at their means in training.
    """

    def __init__(self, decision: Decision, vectors: Floats, edges: Integers) -> None:
        """Take for each pair its row of vectors; -1 says that both texts are equal."""
        self.names = decision.vector.names
        self.start = float(decision.g(decision.machine.center[np.newaxis])[0])
        self._equal = edges < 0
        asked = np.flatnonzero(~self._equal)
        x = np.ascontiguousarray(vectors[edges[asked]], np.float64)
        g = decision.g(x)
        self.vectors, self.pushes = self._spread(x, asked), self._spread(decision.pushes(x), asked)
        self.g = self._spread(g, asked)
        self.probability = np.where(self._equal, 1.0, self._spread(decision.probability(g), asked))

    def __len__(self) -> int:
        return len(self._equal)

    def evidence(self, pair: int) -> Evidence:
        """Return what decided about one pair."""
        if self._equal[pair]:
            return Evidence(None, 1.0)
        values = self.vectors[pair].tolist()
        pushes = [
            Push(self.names[j], None if np.isnan(values[j]) else values[j], float(self.pushes[pair, j]))
            for j in _strongest_first(self.pushes[pair : pair + 1])[0].tolist()
        ]
        return Evidence(float(self.g[pair]), float(self.probability[pair]), tuple(pushes), self.start)

    def columns(self, *, measures: bool = False) -> dict[str, pa.Array]:
        """Return columns for a table of the pairs: g, evidence in a few words and, if wanted, measures in full.

        Parameters
        ----------
        measures : bool
            Whether there is a column of them, for each its value and its push; null for equal texts.
        """
        found = {"g": pa.array(self.g, mask=self._equal), "evidence": pa.array(self._words(), pa.string())}
        if measures:
            kind = pa.struct([(name, pa.struct({"value": pa.float64(), "push": pa.float64()})) for name in self.names])
            found["measures"] = pa.array(map(self._named, range(len(self))), kind, size=len(self))
        return found

    def _words(self) -> list[str]:
        order = _strongest_first(self.pushes)[:, :_STRONGEST]
        strongest = np.take_along_axis(self.pushes, order, axis=1).tolist()
        return [
            EQUAL_TEXTS if equal else _in_words([self.names[j] for j in row], pushes)
            for equal, row, pushes in zip(self._equal.tolist(), order.tolist(), strongest, strict=True)
        ]

    def _named(self, pair: int) -> dict[str, dict[str, float | None]] | None:
        if self._equal[pair]:
            return None
        return {push.measure: {"value": push.value, "push": push.push} for push in self.evidence(pair).pushes}

    def _spread(self, values: Floats, asked: Integers) -> Floats:
        whole = np.full((len(self._equal), *values.shape[1:]), np.nan)
        whole[asked] = values
        return whole


def _strongest_first(pushes: Floats) -> Integers:
    return np.asarray(np.argsort(-np.abs(pushes), axis=1, kind="stable"), np.int64)


def _in_words(names: Sequence[str], pushes: Sequence[float]) -> str:
    """Return pushes on one line, the strongest first."""
    said = [f"{name} {push:+.2f}" for name, push in zip(names, pushes, strict=True) if abs(push) >= _SHOWN]
    return ", ".join(said) or NO_PUSH
