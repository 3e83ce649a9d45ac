"""The support vector machine in arrays: what scikit-learn decides, and a plain sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trained import fitted

from neardup.classifier.classifier import Machine
from neardup.training.fit import machine_of

Floats = npt.NDArray[np.float64]
KERNELS = st.sampled_from(["linear", "rbf"])


def drawn(seed: int, rows: int, columns: int, missing: float = 0.0) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Vectors of which some values are not known, and labels of both kinds."""
    rng = np.random.default_rng(seed)
    x = rng.random((rows, columns)) * rng.choice([0.1, 1.0, 30.0], columns)
    y = x[:, 0] + rng.normal(0, 0.1, rows) > np.median(x[:, 0])
    y[:2] = True, False
    x[rng.random(x.shape) < missing] = np.nan
    x[:, rng.integers(columns)] *= rng.choice([1.0, 0.0])
    return x, y


def plain_g(machine: Machine, row: list[float], skipped: int = -1) -> float:
    """g of one pair, in the words of its definition."""
    z = []
    for j, value in enumerate(row):
        value = float(machine.fill[j]) if math.isnan(value) else value
        z.append(0.0 if j == skipped else (value - machine.center[j]) / machine.scale[j])
    g = machine.intercept
    for alpha, u in zip(machine.dual, machine.support, strict=True):
        if machine.gamma:
            g += alpha * math.exp(-machine.gamma * sum((a - b) ** 2 for a, b in zip(z, u, strict=True)))
        else:
            g += alpha * sum(a * b for a, b in zip(z, u, strict=True))
    return float(g)


@settings(max_examples=30)
@given(
    st.integers(0, 10_000),
    st.integers(4, 60),
    st.integers(1, 7),
    KERNELS,
    st.sampled_from([0.0, 0.2]),
    st.sampled_from([0.05, 1.0, 50.0]),
    st.sampled_from([None, 0.01, 2.0]),
)
def test_g_is_the_decision_function_of_scikit_learn(
    seed: int, rows: int, columns: int, kernel: str, missing: float, cost: float, gamma: Any
) -> None:
    x, y = drawn(seed, rows, columns, missing)
    estimator = fitted(x, y, kernel, cost, gamma)
    machine = machine_of(estimator, -1.0, 0.0)
    asked = np.concatenate([x, drawn(seed + 1, 20, columns, 0.3)[0], np.full((1, columns), np.nan)])
    expected = estimator.decision_function(asked)
    assert machine.score(asked) == pytest.approx(expected, rel=1e-9, abs=1e-9 * (1 + np.abs(expected).max()))


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 5), KERNELS)
def test_g_and_contributions_are_the_plain_sums(seed: int, columns: int, kernel: str) -> None:
    x, y = drawn(seed, 30, columns, 0.1)
    machine = machine_of(fitted(x, y, kernel), -1.0, 0.0)
    rows = x[:8].tolist()
    expected = [plain_g(machine, row) for row in rows]
    assert machine.score(x[:8]).tolist() == pytest.approx(expected, rel=1e-12, abs=1e-12)
    contributions = [[plain_g(machine, row) - plain_g(machine, row, j) for j in range(columns)] for row in rows]
    assert machine.contributions(x[:8]) == pytest.approx(np.array(contributions), rel=1e-9, abs=1e-11)
    if kernel == "linear":
        start = machine.score(machine.center[np.newaxis])[0]
        assert machine.contributions(x).sum(axis=1) + start == pytest.approx(machine.score(x), rel=1e-9, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000), KERNELS, st.integers(1, 9))
def test_no_batch_changes_a_bit(seed: int, kernel: str, size: int) -> None:
    x, y = drawn(seed, 40, 4, 0.1)
    machine = machine_of(fitted(x, y, kernel), -1.0, 0.0)
    parts = [machine.score(x[at : at + size]) for at in range(0, len(x), size)]
    assert np.concatenate(parts).tobytes() == machine.score(x).tobytes()
    assert machine.score(np.asfortranarray(x)).tobytes() == machine.score(x).tobytes()


def test_probability_is_a_sigmoid_that_never_overflows() -> None:
    machine = machine_of(fitted(*drawn(1, 20, 3)), -1.5, 0.25)
    g = np.array([-1e300, -3.0, 0.0, 0.5, 3.0, 1e300])
    found = machine.probability(g)
    assert found[1:-1].tolist() == pytest.approx([1 / (1 + math.exp(-1.5 * v + 0.25)) for v in g[1:-1]])
    assert (np.diff(found) >= 0).all()
    assert 0 <= found[0] < 1e-300
    assert found[-1] == 1
