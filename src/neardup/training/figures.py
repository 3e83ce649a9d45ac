"""Precision, recall, F1 and accuracy of verdicts on labelled pairs, with bootstrap intervals over groups.

As in ``evaluation.scores``, groups of connected pairs are drawn with replacement, because pairs of one group depend on
each other (Efron & Tibshirani 1993, chapter 13). All verdicts use the same draws, so their differences have intervals,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.evaluation.intervals import MIN_GROUPS, RESAMPLES, Figure, bootstrap_sums, make_figure, ratio
from neardup.kernels import Bools, Floats, Integers


class Figures(NamedTuple):
    """Quality of verdicts, with 95% intervals, and their counts."""

    precision: Figure
    recall: Figure
    f1: Figure
    accuracy: Figure
    #: Duplicates that were found.
    correct: int
    #: Other pairs taken for duplicates.
    wrong: int
    #: Duplicates not found.
    missed: int
    #: Other pairs recognized as such.
    rejected: int


class Gain(NamedTuple):
    """The lead of one verdict over another in F1."""

    #: Over the same draws of groups.
    difference: Figure
    #: Whether its interval excludes 0 and the two verdicts differ in at least six groups.
    beyond_chance: bool


class Draws(NamedTuple):
    """Counts of v verdicts in s draws of groups."""

    #: float64[s + 1, 2 v + 2]: correct and wrong pairs of each verdict, then duplicates and other pairs. The first row
    #: holds the labelled pairs themselves, the others the draws.
    table: Floats
    #: int64[v, v]: the number of groups in which two verdicts differ in their correct or wrong pairs.
    differing_groups: Integers

    def figures(self, verdict: int) -> Figures:
        """Return the figures of one verdict."""
        correct, wrong, duplicates, others = self._columns(verdict)
        return Figures(
            precision=_figure(ratio(correct, correct + wrong)),
            recall=_figure(ratio(correct, duplicates)),
            f1=_figure(self._f1(verdict)),
            accuracy=_figure(ratio(correct + others - wrong, duplicates + others)),
            correct=int(correct[0]),
            wrong=int(wrong[0]),
            missed=int(duplicates[0] - correct[0]),
            rejected=int(others[0] - wrong[0]),
        )

    def gain(self, verdict: int, over: int) -> Gain:
        """Return the lead of a verdict over another."""
        difference = _figure(self._f1(verdict) - self._f1(over))
        low, high = difference.low, difference.high
        excludes_zero = low is not None and high is not None and (low > 0 or high < 0)
        return Gain(difference, bool(excludes_zero and self.differing_groups[verdict, over] >= MIN_GROUPS))

    def _columns(self, verdict: int) -> tuple[Floats, Floats, Floats, Floats]:
        return self.table[:, 2 * verdict], self.table[:, 2 * verdict + 1], self.table[:, -2], self.table[:, -1]

    def _f1(self, verdict: int) -> Floats:
        correct, wrong, duplicates, _ = self._columns(verdict)
        return np.where(duplicates > 0, ratio(2 * correct, correct + wrong + duplicates), np.nan)


def draw_groups(
    labels: Bools, groups: Integers, verdicts: Sequence[Bools], *, count: int = RESAMPLES, seed: int = 0
) -> Draws:
    """Draw as many groups as there are, with replacement, ``count`` times, and count the verdicts on their pairs.

    Each verdict (bool[n]) says which of the n pairs are duplicates; ``groups`` is int64[n].
    """
    names, index = np.unique(groups, return_inverse=True)
    masks = [mask for verdict in verdicts for mask in (verdict & labels, verdict & ~labels)] + [labels, ~labels]
    group_counts = np.stack([np.bincount(index, mask, len(names)) for mask in masks]).astype(np.int64)
    # Groups with equal counts are interchangeable, so a draw is a number of groups of each kind.
    kinds, members = np.unique(group_counts, axis=1, return_counts=True)
    drawn = bootstrap_sums(kinds, members / max(len(names), 1), len(names), count, seed)
    table = np.concatenate([group_counts.sum(axis=1)[np.newaxis], drawn])
    by_verdict = group_counts[:-2].reshape(len(verdicts), 2, len(names))
    differing = (by_verdict[:, np.newaxis] != by_verdict[np.newaxis]).any(axis=2).sum(axis=2)
    return Draws(table, differing.astype(np.int64))


def _figure(values: Floats) -> Figure:
    """Return a figure from its value, the first one, and its values in the draws."""
    return make_figure(float(values[0]), values[1:])
