"""The search for a machine: what wins, where the zero lies, and the same answer each time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from neardup.training.fit import (
    KERNELS,
    SearchResult,
    out_of_fold,
    pieces_of,
    search,
    sigmoid_of,
)
from neardup.training.folds import folds_of


def splits_of(labels: Any) -> Any:
    count = len(labels)
    folds = folds_of(np.arange(count), np.arange(count, 2 * count), labels, count=3, seed=0)
    assert folds is not None
    return folds.splits


def found(x: Any, labels: Any, kernels: tuple[str, ...] = KERNELS, seed: int = 0) -> SearchResult:
    return search(x, labels, np.arange(len(labels)), splits_of(labels), kernels=kernels, seed=seed)


def overlapping(count: int, share: float, apart: float = 0.8, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    labels = rng.random(count) < share
    return rng.normal(np.where(labels, apart, -apart)[:, np.newaxis], 1.0, (count, 3)), labels


def test_a_ring_gets_the_rbf_kernel() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(0, 1, (200, 2))
    labels = (x**2).sum(axis=1) < 1.2
    assert found(x, labels).point.kernel == "rbf"
    assert found(x, labels, ("linear",)).point.kernel == "linear"
    assert ((found(x, labels).g >= 0) == labels).mean() > 0.9


def test_g_is_moved_so_that_0_is_one_half() -> None:
    x, labels = overlapping(150, 0.3)
    chosen = found(x, labels, ("linear",))
    g = out_of_fold(pieces_of(x, labels, splits_of(labels)), chosen.point, 150)
    assert chosen.g == pytest.approx(g + chosen.offset, abs=1e-12)
    assert chosen.sigmoid.probability(chosen.g) == pytest.approx(sigmoid_of(g, labels).probability(g), abs=1e-9)
    assert chosen.sigmoid.probability(np.zeros(1))[0] == pytest.approx(chosen.zero)


def test_where_duplicates_are_rare_and_hard_to_tell_0_lies_lower() -> None:
    x, labels = overlapping(1200, 0.08, apart=0.35, seed=2)
    chosen = found(x, labels, ("linear",))
    assert chosen.zero < 0.45
    assert chosen.sigmoid.probability(np.zeros(1))[0] == pytest.approx(chosen.zero)
    assert (chosen.g >= 0).sum() > (chosen.sigmoid.probability(chosen.g) >= 0.5).sum()
