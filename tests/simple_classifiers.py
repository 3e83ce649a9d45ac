"""Hand-made classifiers, so that tests of their use do not depend on a training."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from neardup.classifier.classifier import Classifier, Machine, parse_candidate_rule
from neardup.classifier.vector import Vector

VECTOR = "jaccard(words:2), length_ratio"


def make_classifier(
    *, cut: float = 0.0, steep: float = 1.0, candidate_rule: str = "jaccard(words:1) >= 0.1"
) -> Classifier:
    """A classifier that goes by shared pairs of words, and a little by lengths; ``steep``: how fast p rises with g."""
    machine = Machine(
        fill=np.array([0.5, 0.5]),
        center=np.array([0.5, 0.9]),
        scale=np.array([0.25, 0.1]),
        gamma=0.0,
        support=np.array([[1.0, 0.1]]),
        dual=np.ones(1),
        intercept=0.1,
        a=-steep,
        b=0.2,
    )
    return Classifier(
        candidate_rule=parse_candidate_rule(candidate_rule),
        vector=Vector.parse(VECTOR),
        statistics={},
        machine=machine,
        scores=np.array([-1.0, 0.5, 1.0]),
        labels=np.array([False, True, True]),
        cut=cut,
    )


def saved(path: Path) -> Path:
    """A classifier in a file."""
    make_classifier().save(path)
    return path
