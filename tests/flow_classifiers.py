"""Hand-made classifiers for flows, so that tests do not depend on a training; and a slow, plain index with them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import naive
import numpy as np
import pyarrow as pa
from naive_window import Expected, Item, NaiveIndex, microseconds

from neardup.classifier.classifier import Classifier, Machine, parse_candidate_rule
from neardup.classifier.measurer import Measurer
from neardup.classifier.records import NO_TIME, Records
from neardup.classifier.vector import Vector, vector_statistics
from neardup.documents import corpus_of

#: Texts that frequencies are taken from.
SAMPLE = ["the fox ran.", "the dog said", "Owl and fox", "東京 fox", "dog dog dog", "is the owl there"]
VECTORS = {
    "sets": "jaccard(words:1), containment(words:2), length_ratio",
    "facts": "jaccard(words:1), numbers, names, word_edit",
    "weights": "dice(words:1), cosine(words:1:tfidf), edit",
    "times": "jaccard(words:1), hours_apart, title",
}


def make_classifier(
    vector: str,
    *,
    weights: Sequence[float] = (),
    bias: float = -0.5,
    gamma: float = 0.0,
    candidate_rule: float = 0.3,
    sample: Sequence[str] = SAMPLE,
) -> Classifier:
    """A classifier on texts of few words; with gamma an RBF kernel on three support vectors."""
    parsed = Vector.parse(VECTORS.get(vector, vector))
    r = len(parsed)
    scale = np.linspace(0.3, 0.5, r)
    machine = Machine(
        fill=np.linspace(0.2, 0.8, r),
        center=np.full(r, 0.45),
        scale=scale,
        gamma=gamma,
        support=np.vstack([np.ones(r), -np.ones(r), np.linspace(-1, 1, r)]) if gamma else _weights(weights, r),
        dual=np.array([1.5, -1.0, 0.25]) if gamma else np.ones(1),
        intercept=bias,
        a=-1.7,
        b=0.1,
    )
    statistics = vector_statistics(parsed, corpus_of(pa.table({"text": sample})), threads=1)
    return Classifier(
        candidate_rule=parse_candidate_rule(f"jaccard(words:1) >= {candidate_rule}"),
        vector=parsed,
        statistics=statistics,
        machine=machine,
        scores=np.array([-1.0, 0.5, 1.0]),
        labels=np.array([False, True, True]),
    )


def _weights(weights: Sequence[float], r: int) -> np.ndarray:
    return np.array([weights or np.linspace(1.0, 0.4, r)])


class NaiveClassifierIndex(NaiveIndex):
    """The rules of the flow with a classifier: every candidate is measured by itself, and g is its definition."""

    def __init__(self, classifier: Classifier, **choices: Any) -> None:
        super().__init__(classifier.candidate_rule, **choices)
        self.classifier = classifier
        self._measurer = Measurer(classifier.vector, classifier.statistics)
        self._documents: dict[str, Any] = {}

    def add(self, document: Any) -> Expected:
        self._documents[document.id] = document
        return super().add(document)

    def query(self, text: str, k: int | None = None) -> list[tuple[str, float]]:
        self._documents[""] = None
        return super().query(text, k)

    def _match(self, item: Item, other: Item, o: int, a: int, b: int) -> float | None:
        candidate_rule = self.classifier.candidate_rule
        if not naive.reaches(candidate_rule.measure, o, a, b, Fraction(str(candidate_rule.threshold))):
            return None
        if item.text == other.text:
            return 1.0
        g = self.g_of(item, other)
        if g < self.classifier.cut:
            return None
        probability = 1 / (1 + math.exp(self.classifier.machine.a * g + self.classifier.machine.b))
        return min(round(probability * 10**9), 10**9 - 1) / 10**9

    def g_of(self, item: Item, other: Item) -> float:
        """g of two documents, by the formula of support vector machines."""
        known = [self._documents[each.id] for each in (item, other)]
        titles = ["" if document is None else document.title for document in known]
        times = [
            NO_TIME if document is None or document.timestamp is None else _rounded(document) for document in known
        ]
        records = Records([item.text, other.text], [title or None for title in titles], np.array(times))
        x = self._measurer.measure(self._measurer.prepare(records), np.array([0]), np.array([1]))[0]
        m = self.classifier.machine
        z = [(f if math.isnan(v) else v) - c for v, f, c in zip(x.tolist(), m.fill, m.center, strict=True)]
        z = [v / s for v, s in zip(z, m.scale, strict=True)]
        g = m.intercept
        for dual, support in zip(m.dual, m.support, strict=True):
            if m.gamma:
                g += dual * math.exp(-m.gamma * sum((u - v) ** 2 for u, v in zip(support, z, strict=True)))
            else:
                g += dual * sum(u * v for u, v in zip(support, z, strict=True))
        return float(g)


def _rounded(document: Any) -> int:
    return round(microseconds(document.timestamp) / 1e6 * 1e6)
