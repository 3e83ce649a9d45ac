"""The evidence of a classifier on pairs: the score g(x), the probability, and the contribution of each measure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.kernels import Floats, Integers

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier

#: The evidence of two texts that are equal byte for byte.
EQUAL_TEXTS = "equal texts"
#: The evidence where every measure lies at its training mean.
NO_CONTRIBUTION = "no measure contributes"
#: The text form lists at most this many contributions, and none that rounds to 0.00.
_MAX_LISTED = 3
_MIN_LISTED_AMOUNT = 0.005


class Contribution(NamedTuple):
    """The contribution of one measure to a score."""

    measure: str  #: its name in the classifier's vector
    value: float | None  #: its value for the pair; None if it is unknown, and the training median is used instead
    #: The score minus the score with this measure at its training mean: above 0 speaks for near-duplicates.
    amount: float

    def as_dict(self) -> dict[str, Any]:
        """Return the contribution for JSON."""
        return {"measure": self.measure, "value": self.value, "contribution": self.amount}


class Evidence(NamedTuple):
    """The reasons for a classifier's verdict on one pair."""

    score: float | None  #: the discriminant g(x); None for equal texts, which are near-duplicates without a decision
    probability: float  #: the probability that a pair with this score is a near-duplicate; 1 for equal texts
    #: The contributions of all measures, the strongest first; empty for equal texts.
    contributions: tuple[Contribution, ...] = ()
    #: The score with all measures at their training means. With a linear kernel, start and contributions add up to the
    #: score.
    start: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return the evidence for JSON."""
        return {
            "score": self.score,
            "probability": self.probability,
            "start": self.start,
            "measures": [contribution.as_dict() for contribution in self.contributions],
        }

    def __str__(self) -> str:
        if self.score is None:
            return EQUAL_TEXTS
        return _format_contributions((item.measure, item.amount) for item in self.contributions[:_MAX_LISTED])


class EvidenceTable:
    """The evidence on n pairs, in arrays.

    Attributes
    ----------
    vectors, contributions : float64[n, r]
        Values of the measures, NaN if unknown, and their contributions; NaN for equal texts.
    score, probability : float64[n]
        The score is NaN for equal texts, whose probability is 1.
    start : float
        The score with all measures at their training means.
    """

    def __init__(self, classifier: Classifier, vectors: Floats, vector_rows: Integers) -> None:
        """Take pair i's measures from ``vectors[vector_rows[i]]``; a row of -1 stands for equal texts."""
        self.names = classifier.vector.names
        self.start = float(classifier.score(classifier.machine.center[np.newaxis])[0])
        self._equal = vector_rows < 0
        scored = np.flatnonzero(~self._equal)
        x = np.ascontiguousarray(vectors[vector_rows[scored]], np.float64)
        score = classifier.score(x)
        self.vectors = self._scatter(x, scored)
        self.contributions = self._scatter(classifier.contributions(x), scored)
        self.score = self._scatter(score, scored)
        self.probability = np.where(self._equal, 1.0, self._scatter(classifier.probability(score), scored))

    def __len__(self) -> int:
        return len(self._equal)

    def evidence(self, pair: int) -> Evidence:
        """Return the evidence on one pair."""
        if self._equal[pair]:
            return Evidence(None, 1.0)
        values = self.vectors[pair].tolist()
        contributions = [
            Contribution(self.names[j], None if np.isnan(values[j]) else values[j], float(self.contributions[pair, j]))
            for j in _strongest_first(self.contributions[pair : pair + 1])[0].tolist()
        ]
        return Evidence(float(self.score[pair]), float(self.probability[pair]), tuple(contributions), self.start)

    def columns(self, *, measures: bool = False) -> dict[str, pa.Array]:
        """Return the columns ``score`` and ``evidence`` for a table of the pairs, and with ``measures`` all of these.

        ``measures`` is a struct of each measure's value and contribution, null for equal texts.
        """
        columns = {"score": pa.array(self.score, mask=self._equal), "evidence": pa.array(self._texts(), pa.string())}
        if measures:
            kind = pa.struct(
                [(name, pa.struct({"value": pa.float64(), "contribution": pa.float64()})) for name in self.names]
            )
            columns["measures"] = pa.array(map(self._measure_dict, range(len(self))), kind, size=len(self))
        return columns

    def _texts(self) -> list[str]:
        """Return ``str`` of each pair's evidence."""
        order = _strongest_first(self.contributions)[:, :_MAX_LISTED]
        strongest = np.take_along_axis(self.contributions, order, axis=1).tolist()
        return [
            EQUAL_TEXTS if equal else _format_contributions(zip((self.names[j] for j in row), amounts, strict=True))
            for equal, row, amounts in zip(self._equal.tolist(), order.tolist(), strongest, strict=True)
        ]

    def _measure_dict(self, pair: int) -> dict[str, dict[str, float | None]] | None:
        if self._equal[pair]:
            return None
        contributions = self.evidence(pair).contributions
        return {item.measure: {"value": item.value, "contribution": item.amount} for item in contributions}

    def _scatter(self, values: Floats, pairs: Integers) -> Floats:
        """Return the values of these pairs as values of all pairs, NaN for the rest."""
        scattered = np.full((len(self._equal), *values.shape[1:]), np.nan)
        scattered[pairs] = values
        return scattered


def _strongest_first(contributions: Floats) -> Integers:
    return np.asarray(np.argsort(-np.abs(contributions), axis=1, kind="stable"), np.int64)


def _format_contributions(contributions: Iterable[tuple[str, float]]) -> str:
    listed = [f"{name} {amount:+.2f}" for name, amount in contributions if abs(amount) >= _MIN_LISTED_AMOUNT]
    return ", ".join(listed) or NO_CONTRIBUTION
