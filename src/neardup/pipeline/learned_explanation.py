"""The result of a classifier on two texts: measures, contributions, and which measure could reverse the verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from neardup.classifier.classifier import Classifier
from neardup.classifier.evidence import EQUAL_TEXTS, Evidence, EvidenceTable
from neardup.classifier.measurer import Measurer
from neardup.classifier.vector import COUNT_MEASURES, PAIR_MEASURES, Records, VectorComponent
from neardup.features.extraction import Encoder
from neardup.kernels import Floats

#: Values that are trials in place of a measure's own value.
_TRIAL_VALUES = np.arange(101) / 100
_UNIT_RANGE = "[0, 1]"


class MeasureFlip(NamedTuple):
    """The measure that alone would reverse a verdict with the smallest change: its name and the nearest such value.

    Changes are compared in standard deviations of the measure in training.
    """

    measure: str
    value: float


@dataclass(frozen=True, eq=False)
class ClassifierResult:
    """The result of a classifier on a pair, computed even if the pair is no candidate.

    Attributes
    ----------
    vector : float64[r]
        The similarities of the pair, nan where unknown.
    equal : bool
        Whether both texts are equal byte for byte: such pairs are near-duplicates without a judgement.
    is_candidate : bool
        Whether the pair is a candidate.
    outside : tuple of str
        Reasons why the pair is unlike the training pairs; empty if it is not.
    """

    classifier: Classifier
    vector: Floats
    equal: bool
    is_candidate: bool
    outside: tuple[str, ...] = ()

    @classmethod
    def of(cls, classifier: Classifier, records: Records, is_candidate: bool, encoder: Encoder | None) -> Self:
        """Apply a classifier to two documents, whose titles and times are given if it compares them."""
        measurer = Measurer(classifier.vector, classifier.statistics, encoder=encoder)
        x = measurer.measure(measurer.prepare(records), np.array([0]), np.array([1]))
        domain = classifier.domain
        outside = () if domain is None else domain.outside_reasons(x[0], records.texts, classifier.vector.names)
        return cls(classifier, x[0], records.texts[0] == records.texts[1], is_candidate, outside)

    @cached_property
    def evidence(self) -> Evidence:
        """Score, probability and all measures; also for pairs outside the candidate rule."""
        edge = -1 if self.equal else 0
        return EvidenceTable(self.classifier, self.vector[np.newaxis], np.array([edge])).evidence(0)

    @property
    def value(self) -> float:
        """The probability; 1 for equal texts."""
        return self.evidence.probability

    @property
    def passed(self) -> bool:
        """Whether the score reaches the cut, or the texts are equal."""
        return self.evidence.score is None or self.evidence.score >= self.classifier.cut

    @property
    def reason(self) -> str:
        """The numbers of the verdict on one line."""
        score, probability = self.evidence.score, self.evidence.probability
        if score is None:
            return f"{EQUAL_TEXTS}, which no classifier judges"
        sign = ">=" if self.passed else "<"
        numbers = f"score {score:.4f} {sign} {self.classifier.cut:.4g}, probability {probability:.4f}"
        return (
            f"then {numbers}"
            if self.is_candidate
            else f"outside the candidate rule, so the classifier is not asked ({numbers})"
        )

    @cached_property
    def measure_flip(self) -> MeasureFlip | None:
        """The measure that alone could reverse the verdict; None if none could, or the pair is no candidate."""
        if self.equal or not self.is_candidate:
            return None
        best, smallest = None, np.inf
        for j, part in enumerate(self.classifier.vector.components):
            if np.isnan(self.vector[j]) or not _between_0_and_1(part):
                continue
            trials = np.tile(self.vector, (len(_TRIAL_VALUES), 1))
            trials[:, j] = _TRIAL_VALUES
            change = np.abs(_TRIAL_VALUES - self.vector[j]) / self.classifier.machine.scale[j]
            change[self.classifier.passes(self.classifier.score(trials)) == self.passed] = np.inf
            nearest = int(np.argmin(change))
            if change[nearest] < smallest:
                best, smallest = MeasureFlip(str(part), float(_TRIAL_VALUES[nearest])), change[nearest]
        return best

    @property
    def sentences(self) -> tuple[str, ...]:
        """What would reverse the verdict, as sentences."""
        score = self.evidence.score
        if score is None or not self.is_candidate:
            return ()
        precision = replace(self.classifier, cut=score).working_point.precision
        change = "no longer match at a cut above" if self.passed else "match at a cut of"
        at_cut = f"They {change} {score:.4f}; {precision:.1%} of the training pairs from there on were near-duplicates."
        if self.measure_flip is None:
            return at_cut, "No measure alone would reverse the decision."
        name, value = self.measure_flip
        current = float(self.vector[self.classifier.vector.names.index(name)])
        verdict = "no longer match" if self.passed else "match"
        return at_cut, f"They would {verdict} with {name} at {value:.2f} instead of {current:.4f}, all else equal."

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {
            "measure": "learned",
            "classifier": self.classifier.fingerprint,
            "is_candidate": self.is_candidate,
            "value": self.value,
            "passed": self.passed,
            "equal_texts": self.equal,
            "cut": self.classifier.cut if np.isfinite(self.classifier.cut) else None,
            **self.evidence.as_dict(),
            "flip": self.measure_flip._asdict() if self.measure_flip else None,
            "outside": list(self.outside),
        }


def _between_0_and_1(part: VectorComponent) -> bool:
    if part.features:
        return part.name not in COUNT_MEASURES
    return PAIR_MEASURES[part.name].range == _UNIT_RANGE
