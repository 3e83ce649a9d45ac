"""What a classifier says of two texts: every measure, how it pushes, and which one could turn the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.classifier.classifier import Classifier
from neardup.classifier.evidence import EQUAL_TEXTS, Evidence, EvidenceTable
from neardup.classifier.measurer import Measurer
from neardup.classifier.records import Records
from neardup.classifier.vector import COUNT_MEASURES, PAIR_MEASURES, VectorComponent
from neardup.features.embeddings import Encoder

Floats = npt.NDArray[np.float64]
#: Values of a measure that are tried in the place of its own.
_TRIED = np.arange(101) / 100
_WHOLE = "[0, 1]"


class MeasureFlip(NamedTuple):
    """The measure that, alone, would turn a verdict around with the smallest change: its name, and the nearest value.

    A change counts in standard deviations of the measure in training.
    """

    measure: str
    value: float


@dataclass(frozen=True, eq=False)
class ClassifierResult:
    """What a classifier says of a pair of texts, asked or not: it looks only at candidates.

    Attributes
    ----------
    classifier : Classifier
        It.
    vector : float64[r]
        The similarities of the pair, nan where not known.
    equal : bool
        Whether both texts are equal byte for byte: such pairs are near-duplicates unasked.
    is_candidate : bool
        Whether the pair is a candidate.
    outside : tuple of str
        Why the pair is unlike those that the classifier was trained on; nothing where it is not.
    """

    classifier: Classifier
    vector: Floats
    equal: bool
    is_candidate: bool
    outside: tuple[str, ...] = ()

    @cached_property
    def evidence(self) -> Evidence:
        """g, the probability and all measures; for pairs outside the candidate rule, what they would be."""
        place = -1 if self.equal else 0
        return EvidenceTable(self.classifier, self.vector[np.newaxis], np.array([place])).evidence(0)

    @property
    def value(self) -> float:
        """The probability; 1 for equal texts."""
        return self.evidence.probability

    @property
    def passed(self) -> bool:
        """Whether g reaches the cut, or the texts are equal."""
        return self.evidence.score is None or self.evidence.score >= self.classifier.cut

    @property
    def reason(self) -> str:
        """Its numbers on one line."""
        g, probability = self.evidence.score, self.evidence.probability
        if g is None:
            return f"{EQUAL_TEXTS}, of which no classifier is asked"
        sign = ">=" if self.passed else "<"
        numbers = f"score {g:.4f} {sign} {self.classifier.cut:.4g}, probability {probability:.4f}"
        return (
            f"then {numbers}"
            if self.is_candidate
            else f"outside the candidate rule, so the classifier is not asked ({numbers})"
        )

    @cached_property
    def turn(self) -> MeasureFlip | None:
        """The measure that could turn the decision around; None where none could alone, or it is no candidate."""
        if self.equal or not self.is_candidate:
            return None
        best, smallest = None, np.inf
        for j, part in enumerate(self.classifier.vector.components):
            if np.isnan(self.vector[j]) or not _between_0_and_1(part):
                continue
            tried = np.tile(self.vector, (len(_TRIED), 1))
            tried[:, j] = _TRIED
            change = np.abs(_TRIED - self.vector[j]) / self.classifier.machine.scale[j]
            change[self.classifier.passes(self.classifier.score(tried)) == self.passed] = np.inf
            nearest = int(np.argmin(change))
            if change[nearest] < smallest:
                best, smallest = MeasureFlip(str(part), float(_TRIED[nearest])), change[nearest]
        return best

    @property
    def sentences(self) -> tuple[str, ...]:
        """What would turn the verdict around, in words."""
        g = self.evidence.score
        if g is None or not self.is_candidate:
            return ()
        precision = replace(self.classifier, cut=g).working_point.precision
        way = "no longer match at a cut above" if self.passed else "match at a cut of"
        at_cut = f"They {way} {g:.4f}; {precision:.1%} of the training pairs from there on were near-duplicates."
        if self.turn is None:
            return at_cut, "No measure alone would turn the decision around."
        name, value = self.turn
        mine = float(self.vector[self.classifier.vector.names.index(name)])
        verdict = "no longer match" if self.passed else "match"
        return at_cut, f"They would {verdict} with {name} at {value:.2f} in place of {mine:.4f}, all else alike."

    def as_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "measure": "learned",
            "classifier": self.classifier.fingerprint,
            "is_candidate": self.is_candidate,
            "value": self.value,
            "passed": self.passed,
            "equal_texts": self.equal,
            "cut": self.classifier.cut if np.isfinite(self.classifier.cut) else None,
            **self.evidence.as_dict(),
            "flip": self.turn._asdict() if self.turn else None,
            "outside": list(self.outside),
        }


def classifier_result(
    classifier: Classifier, records: Records, *, is_candidate: bool, encoder: Encoder | None = None
) -> ClassifierResult:
    """Return what a classifier says of two documents.

    Parameters
    ----------
    classifier : Classifier
        It.
    records : Records
        The two documents: what is compared of their texts, and titles and times where the classifier asks for them.
    is_candidate : bool
        Whether the pair passes the candidate rule.
    encoder : Encoder, optional
        For ``semantic``.
    """
    measurer = Measurer(classifier.vector, classifier.statistics, encoder=encoder)
    x = measurer.measure(measurer.prepare(records), np.array([0]), np.array([1]))
    home = classifier.domain
    outside = () if home is None else home.outside_reasons(x[0], records.texts, classifier.vector.names)
    return ClassifierResult(classifier, x[0], records.texts[0] == records.texts[1], is_candidate, outside)


def _between_0_and_1(part: VectorComponent) -> bool:
    if part.features:
        return part.name not in COUNT_MEASURES
    return PAIR_MEASURES[part.name].range == _WHOLE
