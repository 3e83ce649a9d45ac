"""Cohen's kappa and its interval."""

from __future__ import annotations

import math
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.evaluation.agreement import Agreement, pairwise_agreements


def kappa_and_variance(table: dict[tuple[int, int], int]) -> tuple[float, float]:
    """Kappa and its variance by Fleiss, Cohen & Everitt 1969, formula (13), over any classes."""
    n = sum(table.values())
    p = {cell: count / n for cell, count in table.items()}
    classes = {one for one, _ in p}
    row = {i: sum(p[i, j] for j in classes) for i in classes}
    column = {j: sum(p[i, j] for i in classes) for j in classes}
    chance = sum(row[i] * column[i] for i in classes)
    kappa = (sum(p[i, i] for i in classes) - chance) / (1 - chance)
    on = sum(
        p[i, i] * ((1 - chance) - (column[i] + row[i]) * (1 - sum(p[k, k] for k in classes))) ** 2 for i in classes
    )
    seen = sum(p[k, k] for k in classes)
    off = (1 - seen) ** 2 * sum(p[i, j] * (column[i] + row[j]) ** 2 for i, j in product(classes, classes) if i != j)
    last = (seen * chance - 2 * chance + seen) ** 2
    return kappa, (on + off - last) / (n * (1 - chance) ** 4)


@given(st.tuples(*[st.integers(0, 40)] * 4))
def test_kappa_and_its_interval_equal_the_papers_formulas(table: tuple[int, int, int, int]) -> None:
    found = Agreement(("anna", "bob"), table)
    both, first, second, none = table
    n = sum(table)
    if not n or both == n or none == n:
        assert found.kappa is None
        assert found.interval is None
        return
    kappa, variance = kappa_and_variance({(1, 1): both, (1, 0): first, (0, 1): second, (0, 0): none})
    half = 1.959964 * math.sqrt(max(variance, 0))
    assert found.kappa == pytest.approx(kappa, abs=1e-12)
    assert found.interval == pytest.approx((max(kappa - half, -1), min(kappa + half, 1)), abs=1e-6)


def test_every_two_labellers_are_compared_on_the_pairs_that_both_are_sure_of() -> None:
    answers = {
        "p": {"anna": "same", "bob": "same", "eve": "unsure"},
        "q": {"anna": "same", "bob": "different"},
        "r": {"anna": "different", "eve": "different"},
        "s": {"bob": "same"},
    }
    assert pairwise_agreements(answers) == [
        Agreement(("anna", "bob"), (1, 1, 0, 0)),
        Agreement(("anna", "eve"), (0, 0, 0, 1), 1),
        Agreement(("bob", "eve"), (0, 0, 0, 0), 1),
    ]
    assert pairwise_agreements({}) == []
