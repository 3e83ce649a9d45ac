"""What labels say while they are still being made."""

from __future__ import annotations

from typing import Any

import numpy as np

from neardup.training.training import LEAST_LABELS, quick_evaluation


def made(count: int, share: float = 0.5, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    labels = np.arange(count) < share * count
    return rng.normal(np.where(labels, 1.0, -1.0)[:, np.newaxis], 1.0, (count, 4)), labels


def test_none_while_there_are_too_few() -> None:
    x, labels = made(40, (LEAST_LABELS - 1) / 40)
    assert quick_evaluation(x, labels, np.arange(40)) is None
    assert quick_evaluation(x, ~labels, np.arange(40)) is None
    x, labels = made(40, LEAST_LABELS / 40)
    assert quick_evaluation(x, labels, np.arange(40)) is not None
    assert quick_evaluation(np.empty((0, 4)), np.empty(0, np.bool_), np.empty(0, np.int64)) is None


def test_several_measures_beat_one() -> None:
    x, labels = made(200)
    found = quick_evaluation(x, labels, np.arange(200))
    assert found is not None
    assert not found.shared
    assert (found.learned.f1.low or 0) > (found.threshold.f1.value or 1)
    assert found.learned.correct + found.learned.missed == 100
    assert quick_evaluation(x, labels, np.arange(200)) == found
