"""What people are told of an exploration in words and characters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.pages import numbers


@given(st.floats(0, 9e14))
def test_short_numbers_are_short_and_near(value: float) -> None:
    written = numbers.short(value)
    assert len(written) <= 4
    if written == "<.1":
        assert 0 < value < 0.05
        return
    number = float(written.rstrip("kMGT")) * 1000 ** "kMGT".find(written[-1]) * (1000 if written[-1] in "kMGT" else 1)
    number = float(written) if written[-1].isdigit() else number
    assert number == pytest.approx(value, rel=0.06, abs=0.051)


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_only_nothing_is_0_and_only_all_is_100(part: int, of: int) -> None:
    written = numbers.share(min(part, of), of)
    assert (written == "0%") == (part == 0)
    assert (written == "100%") == (part >= of)


@given(st.lists(st.integers(0, 10**12), min_size=100, max_size=100), st.sampled_from([10, 20, 50]))
def test_sparklines(counts: list[int], cells: int) -> None:
    line = numbers.sparkline(counts, cells)
    sums = np.array(counts, object).reshape(cells, -1).sum(axis=1)
    assert len(line) == cells
    assert [one == " " for one in line] == [not total for total in sums]
    levels = [" ▁▂▃▄▅▆▇█".index(one) for one in line]
    # More pairs are never lower.
    assert [level for _, level in sorted(zip(sums.tolist(), levels, strict=True))] == sorted(levels)
    plain = numbers.sparkline(counts, cells, blocks=False)
    assert [" .:-=+*#@".index(one) for one in plain] == levels
    if max(sums) > 1:
        assert max(levels) == 8
