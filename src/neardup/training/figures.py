"""Precision, recall, F1 and accuracy of verdicts on labelled pairs, with bootstrap intervals over groups.

As in ``evaluation.scores``: groups of documents are drawn with replacement, because pairs of one group stand or fall
together (Efron & Tibshirani 1993, chapter 13). All verdicts are judged on the same draws, so that differences between
two have intervals, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.evaluation.scores import LEAST_GROUPS, RESAMPLES, Figure, figure_of, ratio, sums_of_draws
from neardup.kernels import Bools, Floats, Integers


class Figures(NamedTuple):
    """What verdicts are worth."""

    #: With 95% intervals.
    precision: Figure
    recall: Figure
    f1: Figure
    accuracy: Figure
    #: Duplicates found, others taken for duplicates, duplicates not found, others told apart.
    correct: int
    wrong: int
    missed: int
    rejected: int


class Gain(NamedTuple):
    """How far one verdict leads another in F1."""

    #: Over the same draws of groups.
    difference: Figure
    #: Whether its interval does not hold 0, and the two differ in six groups or more.
    beyond_chance: bool


class Draws(NamedTuple):
    """Draws of groups, in which several verdicts are counted."""

    #: float64[s + 1, 2 v + 2]: found and wrong pairs of each of v verdicts, duplicates and others: first as they are,
    #: then in s draws.
    table: Floats
    #: int64[v, v]: in how many groups two verdicts find other duplicates or take others for duplicates.
    apart: Integers

    def figures(self, verdict: int) -> Figures:
        """Return what one of the verdicts is worth."""
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
        """Return how far a verdict leads another."""
        difference = _figure(self._f1(verdict) - self._f1(over))
        low, high = difference.low, difference.high
        clear = low is not None and high is not None and (low > 0 or high < 0)
        return Gain(difference, bool(clear and self.apart[verdict, over] >= LEAST_GROUPS))

    def _columns(self, verdict: int) -> tuple[Floats, Floats, Floats, Floats]:
        return self.table[:, 2 * verdict], self.table[:, 2 * verdict + 1], self.table[:, -2], self.table[:, -1]

    def _f1(self, verdict: int) -> Floats:
        correct, wrong, duplicates, _ = self._columns(verdict)
        return np.where(duplicates > 0, ratio(2 * correct, correct + wrong + duplicates), np.nan)


def draw(labels: Bools, groups: Integers, verdicts: Sequence[Bools], *, count: int = RESAMPLES, seed: int = 0) -> Draws:
    """Count verdicts in draws of groups with replacement, as many as there are.

    Each verdict (bool[n]) says which of the pairs are duplicates.
    """
    names, place = np.unique(groups, return_inverse=True)
    marks = [mark for verdict in verdicts for mark in (verdict & labels, verdict & ~labels)] + [labels, ~labels]
    cells = np.stack([np.bincount(place, mark, len(names)) for mark in marks]).astype(np.int64)
    # Groups that hold the same are one kind, and a draw is a draw of how many there are of each kind.
    kinds, members = np.unique(cells, axis=1, return_counts=True)
    drawn = sums_of_draws(kinds, members / max(len(names), 1), len(names), count, seed)
    table = np.concatenate([cells.sum(axis=1)[np.newaxis], drawn])
    held = cells[:-2].reshape(len(verdicts), 2, len(names))
    apart = (held[:, np.newaxis] != held[np.newaxis]).any(axis=2).sum(axis=2)
    return Draws(table, apart.astype(np.int64))


def _figure(values: Floats) -> Figure:
    """Return a figure from its value and those in the draws behind it."""
    return figure_of(float(values[0]), values[1:])
