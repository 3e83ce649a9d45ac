"""Pairs of entries that share a key, against a plain loop over all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.kernels.bounds import need
from neardup.kernels.prefixes import meet_in_runs, sort_runs
from neardup.recipe.measures import SET_MEASURES, Rule, measure, rule

#: Size, row, rest and the key before.
Entry = tuple[int, int, int, int]


def plain(runs: list[list[Entry]], wanted: Rule) -> list[tuple[int, int]]:
    """The smaller set first, of equal sizes the smaller row."""
    found = []
    for run in runs:
        ordered = sorted(run)
        for place, (size, row, rest, before) in enumerate(ordered):
            for other_size, other_row, other_rest, other_before in ordered[:place]:
                if before and before == other_before:
                    continue
                if other_rest > 0 and need(wanted, other_size, size) <= min(other_rest, abs(rest)):
                    found.append((other_row, row))
    return sorted(found)


def met(runs: list[list[Entry]], wanted: Rule, room: int, split: int = 0) -> list[tuple[int, int]]:
    heads = np.concatenate([[0], np.cumsum([len(run) for run in runs])]).astype(np.int64)
    columns: Any = np.array([entry for run in runs for entry in run], np.int64).reshape(-1, 4)
    sizes, rows, rests = columns[:, 0].astype(np.int32), columns[:, 1].copy(), columns[:, 2].astype(np.int32)
    befores = columns[:, 3].astype(np.uint64)
    sort_runs(heads, sizes, rests, rows, befores)
    pairs = np.empty((max(room, *(len(run) for run in runs), 1), 2), np.int64)
    splits = np.full(len(runs), split, np.int64)
    found, run, at = [], 0, 0
    while run < len(runs):
        run, at, written = meet_in_runs(run, at, heads, splits, sizes, rests, rows, befores, wanted, pairs)
        found += [(int(left), int(right)) for left, right in pairs[:written]]
    return sorted(found)


@st.composite
def lists(draw: st.DrawFn) -> list[list[Entry]]:
    rows = iter(draw(st.permutations(range(200))))
    sizes = st.integers(1, 30)

    def entry() -> Entry:
        size = draw(sizes)
        rest = draw(st.integers(1, size)) * draw(st.sampled_from([1, 1, -1]))
        return size, next(rows), rest, draw(st.sampled_from([0, 0, 5, 6]))

    return [[entry() for _ in range(draw(st.integers(0, 12)))] for _ in range(draw(st.integers(1, 5)))]


RULES = st.sampled_from(
    [rule(name, 3.0 if measure(name).distance else threshold) for name in SET_MEASURES for threshold in (0.2, 0.7, 1.0)]
)


@settings(max_examples=100)
@given(lists(), RULES, st.integers(1, 40))
def test_pairs_of_runs_are_those_of_a_plain_loop(runs: list[list[Entry]], wanted: Rule, room: int) -> None:
    assert met(runs, wanted, room) == plain(runs, wanted)


@settings(max_examples=60)
@given(lists(), RULES, st.integers(1, 6))
def test_cells_of_a_run_are_the_run(runs: list[list[Entry]], wanted: Rule, block: int) -> None:
    (run,) = [sorted(entry for run in runs for entry in run)]
    blocks = [run[begin : begin + block] for begin in range(0, len(run), block)]
    found = []
    for later, own in enumerate(blocks):
        found += met([own], wanted, 1)
        for earlier in range(later):
            found += met([blocks[earlier] + own], wanted, 1, split=block)
    assert sorted(found) == plain([run], wanted)


def test_long_runs_are_sorted_like_short_ones() -> None:
    rng = np.random.default_rng(3)
    run = [(int(rng.integers(1, 9)), row, 1, row % 3) for row in rng.permutation(300).tolist()]
    wanted = rule("jaccard", 0.1)
    assert met([run, run[:5]], wanted, 1) == plain([run, run[:5]], wanted)
