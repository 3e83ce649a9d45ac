"""Alignment and common runs of two sequences, compared with naive computations."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.text import alignment
from neardup.text.alignment import MatchingBlock, SuffixAutomaton, matching_blocks

WORDS = st.lists(st.integers(0, 5), max_size=40)


def lcs(left: list[int], right: list[int]) -> int:
    """The length of a longest common subsequence, by the textbook table."""
    table = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            table[i + 1][j + 1] = table[i][j] + 1 if one == other else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def check_blocks(left: list[int], right: list[int], blocks: list[MatchingBlock]) -> None:
    for block in blocks:
        assert block.length > 0
        assert left[block.left :][: block.length] == right[block.right :][: block.length]
        assert len(left[block.left :]) >= block.length <= len(right[block.right :])
    for one, other in pairwise(blocks):
        assert one.left + one.length <= other.left
        assert one.right + one.length <= other.right
        assert (one.left + one.length, one.right + one.length) != (other.left, other.right)


@given(WORDS, WORDS)
def test_short_texts_are_aligned_by_a_longest_common_subsequence(left: list[int], right: list[int]) -> None:
    blocks = matching_blocks(left, right)
    check_blocks(left, right, blocks)
    assert sum(block.length for block in blocks) == lcs(left, right)


@given(st.lists(st.integers(0, 60), max_size=80), st.data())
def test_long_texts_are_aligned_by_unique_runs(left: list[int], data: st.DataObject) -> None:
    right = data.draw(st.one_of(st.permutations(left), st.lists(st.integers(0, 60), max_size=80)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alignment, "_MAX_LCS_AREA", 0)
        blocks = matching_blocks(left, right)
    check_blocks(left, right, blocks)
    assert sum(block.length for block in blocks) <= lcs(left, right)
    head = next((at for at, (one, other) in enumerate(zip(left, right, strict=False)) if one != other), None)
    if head:
        assert blocks[0][:2] == (0, 0)


def test_a_long_text_with_few_changes_is_aligned_almost_completely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alignment, "_MAX_LCS_AREA", 100)
    left = list(range(3000))
    right = [*left[:500], -1, *left[501:1500], -2, -3, *left[1500:2000], *left[2010:]]
    assert sum(block.length for block in matching_blocks(left, right)) == 3000 - 1 - 10


@given(items=st.text("ab", max_size=12), wanted=st.text("ab", min_size=1, max_size=8))
def test_all_positions_of_the_longest_run_are_found(items: str, wanted: str) -> None:
    automaton = SuffixAutomaton(items)
    for begin in range(len(wanted)):
        runs = [wanted[begin:end] for end in range(len(wanted), begin, -1)]
        longest = next((run for run in runs if run in items), "")
        starts = [i for i in range(len(items)) if longest and items.startswith(longest, i)]
        run = automaton.longest_run(wanted, begin)
        assert (run.length, run.places) == (len(longest), len(starts))
        if starts:
            assert (run.start, automaton.starts(run)) == (starts[0], starts)


@given(st.text("abcd", max_size=30), st.text("abcd", max_size=30))
def test_the_longest_common_run_is_the_first_among_equals(left: str, right: str) -> None:
    place, length = SuffixAutomaton(right).longest_common_run(left)
    runs = [(begin, left[begin:end]) for end in range(len(left) + 1) for begin in range(end)]
    shared = [(-len(run), begin) for begin, run in runs if run in right]
    assert (-length, place) == min(shared, default=(0, 0))
