"""What a classifier went by on pairs: the score g(x), the probability, and what each measure contributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.kernels import Floats, Integers

if TYPE_CHECKING:
    from neardup.classifier.classifier import Classifier

#: What stands in the place of measures where two texts are equal byte for byte.
EQUAL_TEXTS = "equal texts"
#: Where all measures lie where their means do.
NO_CONTRIBUTION = "no measure contributes"
#: In a few words there are at most so many contributions, and none that would be +0.00.
_STRONGEST = 3
_SHOWN = 0.005


class Contribution(NamedTuple):
    """What one measure had to do with a classifier."""

    #: Its name in the classifier's vector.
    measure: str
    #: What it says of the pair; None where that is not known, and the median in training stands in for it.
    value: float | None
    #: By how much it moves the score away from where its mean in training would leave it: above 0 towards
    #: near-duplicates.
    amount: float

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {"measure": self.measure, "value": self.value, "contribution": self.amount}


class Evidence(NamedTuple):
    """What a classifier went by on one pair."""

    #: The discriminant g(x); None for texts that are equal byte for byte, which are near-duplicates unasked.
    score: float | None
    #: How probable near-duplicates are among pairs of such a score; 1 for equal texts.
    probability: float
    #: Of all measures, the strongest first; none for equal texts.
    contributions: tuple[Contribution, ...] = ()
    #: The score with all measures at their means in training: with a linear kernel, it and the contributions add up to
    #: the score.
    start: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "score": self.score,
            "probability": self.probability,
            "start": self.start,
            "measures": [one.as_dict() for one in self.contributions],
        }

    def __str__(self) -> str:
        if self.score is None:
            return EQUAL_TEXTS
        strongest = self.contributions[:_STRONGEST]
        return _in_words([one.measure for one in strongest], [one.amount for one in strongest])


class Learned:
    """What a classifier went by on n pairs, in arrays.

    Values (float64[n, r]) are nan where not known, and contributions and scores for equal texts; ``start`` is the score
    with all measures at their means in training.
    """

    def __init__(self, classifier: Classifier, vectors: Floats, edges: Integers) -> None:
        """Take for each pair its row of vectors; -1 says that both texts are equal."""
        self.names = classifier.vector.names
        self.start = float(classifier.score(classifier.machine.center[np.newaxis])[0])
        self._equal = edges < 0
        asked = np.flatnonzero(~self._equal)
        x = np.ascontiguousarray(vectors[edges[asked]], np.float64)
        score = classifier.score(x)
        self.vectors, self.contributions = self._spread(x, asked), self._spread(classifier.contributions(x), asked)
        self.score = self._spread(score, asked)
        self.probability = np.where(self._equal, 1.0, self._spread(classifier.probability(score), asked))

    def __len__(self) -> int:
        return len(self._equal)

    def evidence(self, pair: int) -> Evidence:
        """Return what decided about one pair."""
        if self._equal[pair]:
            return Evidence(None, 1.0)
        values = self.vectors[pair].tolist()
        contributions = [
            Contribution(self.names[j], None if np.isnan(values[j]) else values[j], float(self.contributions[pair, j]))
            for j in _strongest_first(self.contributions[pair : pair + 1])[0].tolist()
        ]
        return Evidence(float(self.score[pair]), float(self.probability[pair]), tuple(contributions), self.start)

    def columns(self, *, measures: bool = False) -> dict[str, pa.Array]:
        """Return columns for a table of the pairs: g, evidence in a few words and, if wanted, measures in full.

        Measures have their values and contributions in a struct, null for equal texts.
        """
        found = {"score": pa.array(self.score, mask=self._equal), "evidence": pa.array(self._words(), pa.string())}
        if measures:
            kind = pa.struct(
                [(name, pa.struct({"value": pa.float64(), "contribution": pa.float64()})) for name in self.names]
            )
            found["measures"] = pa.array(map(self._named, range(len(self))), kind, size=len(self))
        return found

    def _words(self) -> list[str]:
        order = _strongest_first(self.contributions)[:, :_STRONGEST]
        strongest = np.take_along_axis(self.contributions, order, axis=1).tolist()
        return [
            EQUAL_TEXTS if equal else _in_words([self.names[j] for j in row], contributions)
            for equal, row, contributions in zip(self._equal.tolist(), order.tolist(), strongest, strict=True)
        ]

    def _named(self, pair: int) -> dict[str, dict[str, float | None]] | None:
        if self._equal[pair]:
            return None
        return {
            one.measure: {"value": one.value, "contribution": one.amount} for one in self.evidence(pair).contributions
        }

    def _spread(self, values: Floats, asked: Integers) -> Floats:
        whole = np.full((len(self._equal), *values.shape[1:]), np.nan)
        whole[asked] = values
        return whole


def _strongest_first(contributions: Floats) -> Integers:
    return np.asarray(np.argsort(-np.abs(contributions), axis=1, kind="stable"), np.int64)


def _in_words(names: Sequence[str], contributions: Sequence[float]) -> str:
    """Return contributions on one line, the strongest first."""
    said = [f"{name} {amount:+.2f}" for name, amount in zip(names, contributions, strict=True) if abs(amount) >= _SHOWN]
    return ", ".join(said) or NO_CONTRIBUTION
