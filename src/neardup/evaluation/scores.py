"""Precision, recall, F1 and accuracy of returned pairs against labels, with bootstrap intervals.

With C correct pairs among R returned ones that have a label, and T labelled duplicates: precision = C / R,
recall = C / T, F1 = 2 C / (R + T). Source: Montanari & Puglisi 2012, section 4 (its T are the returned pairs, its C all
correct ones). With N pairs labelled as different, accuracy = (C + N - (R - C)) / (T + N). Intervals: percentile
bootstrap (Efron & Tibshirani 1993, chapter 13) that draws groups of documents with replacement, because pairs of one
group are not independent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from neardup.evaluation.intervals import RESAMPLES, Figure, bootstrap_sums, make_figure, percentile_interval, ratio
from neardup.keep.pairs import PairArrays
from neardup.kernels import Floats, Integers
from neardup.labels.labels import DUPLICATE, NON_DUPLICATE, Labels


class Scores(NamedTuple):
    """The figures of one threshold."""

    precision: Figure
    recall: Figure
    f1: Figure


class Tally(NamedTuple):
    """Counts of the pairs that a recipe returns at each of t thresholds, the loosest first."""

    #: int64[t]: pairs without a label.
    unlabelled: Integers
    #: int64[c], int64[c], int64[c]: labelled pairs, counted by the strictest threshold that returns them and by their
    #: group: the position of the threshold, the group, the count.
    correct: tuple[Integers, Integers, Integers]
    wrong: tuple[Integers, Integers, Integers]

    def totals(self, cells: tuple[Integers, Integers, Integers]) -> Integers:
        """Return the number of pairs that each threshold returns: int64[t]."""
        level, _, count = cells
        return _reverse_cumsum(np.bincount(level, count, len(self.unlabelled)).astype(np.int64))


class Resamples(NamedTuple):
    """Counts of pairs in s bootstrap draws of groups, the same draws for each of r rows (a recipe at a threshold)."""

    #: float64[s, r]: pairs in each draw.
    correct: Floats
    wrong: Floats
    #: float64[s, 1]: labelled duplicates in each draw.
    duplicates: Floats
    #: int64[2 r + 1, k]: of each kind of group (groups with equal counts): the correct pairs of each row, the wrong
    #: ones of each row, the labelled duplicates.
    kinds: Integers
    #: int64[k]: how many groups are of each kind.
    group_counts: Integers

    def select_rows(self, begin: int, end: int) -> Resamples:
        """Return the draws of the rows from ``begin`` to ``end``."""
        return self._replace(correct=self.correct[:, begin:end], wrong=self.wrong[:, begin:end])

    def f1(self) -> Floats:
        """Return the F1 of each draw and row: float64[s, r], nan where a draw holds no duplicate."""
        f1 = ratio(2 * self.correct, self.correct + self.wrong + self.duplicates)
        return np.where(self.duplicates > 0, f1, np.nan)


def tally_pairs(parts: Iterable[PairArrays], labels: Labels, cuts: Sequence[float]) -> Tally:
    """Count the pairs that a run returns at each threshold.

    ``parts`` are all pairs at the loosest threshold, ``cuts`` the similarity that a pair must reach at each, ascending.
    """
    thresholds, documents = np.asarray(cuts, np.float64), len(labels.group)
    unlabelled = np.zeros(len(thresholds) + 1, np.int64)
    cells: dict[int, list[tuple[Integers, Integers]]] = {DUPLICATE: [], NON_DUPLICATE: []}
    for part in parts:
        level = np.searchsorted(thresholds, part.similarity, side="right").astype(np.int64)
        verdict = labels.pair_labels(part.left, part.right)
        cell = level * documents + labels.pair_groups(part.left, part.right)
        for label, parts_of_label in cells.items():
            parts_of_label.append(np.unique(cell[verdict == label], return_counts=True))
        unlabelled += np.bincount(level[(verdict != DUPLICATE) & (verdict != NON_DUPLICATE)], minlength=len(unlabelled))
    correct, wrong = (_merge_cells(cells_of_label, documents) for cells_of_label in cells.values())
    return Tally(_reverse_cumsum(unlabelled[1:]), correct, wrong)


def _merge_cells(parts: list[tuple[Integers, Integers]], documents: int) -> tuple[Integers, Integers, Integers]:
    """Return the level, group and count of the pairs that at least the loosest threshold returns."""
    codes = np.concatenate([np.zeros(0, np.int64), *(codes for codes, _ in parts)])
    counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in parts)])
    cells, place = np.unique(codes, return_inverse=True)
    total = np.bincount(place, counts, len(cells)).astype(np.int64)
    returned = cells >= documents
    cells, total = cells[returned], total[returned]
    return cells // max(documents, 1) - 1, cells % max(documents, 1), total


def _reverse_cumsum(counts: Integers) -> Integers:
    return np.cumsum(counts[::-1], axis=0)[::-1]


def resample(tallies: Sequence[Tally], labels: Labels, *, count: int = RESAMPLES, seed: int = 0) -> Resamples:
    """Draw groups with replacement, as many as there are, and count the pairs in each draw.

    A draw takes the number of groups of each kind from a multinomial distribution, so it costs the same for a hundred
    groups and for a million. The rows are the thresholds of the first tally, then those of the second, and so on.
    """
    duplicates = labels.duplicates_by_group()
    active = _active_groups(tallies, duplicates)
    rows = [_counts_by_group(tally, cells, active) for cells in ("correct", "wrong") for tally in tallies]
    table = np.concatenate([*rows, duplicates[active][np.newaxis]])
    sums, kinds, group_counts = _draw_sums(table, labels.groups, count, seed)
    half = (len(kinds) - 1) // 2
    return Resamples(sums[:, :half], sums[:, half:-1], sums[:, -1:], kinds, group_counts)


def accuracy_figures(
    tallies: Sequence[Tally], labels: Labels, *, count: int = RESAMPLES, seed: int = 0
) -> list[Figure]:
    """Return the accuracy of each row: the share of labelled pairs that it classifies correctly.

    It is undefined where pairs without a label count as different: nearly all pairs are then different, and every row
    is correct about nearly all of them.
    """
    rows = sum(len(tally.unlabelled) for tally in tallies)
    if labels.complete or labels.keys is None or labels.duplicate is None:
        return [Figure(None, None, None)] * rows
    left, right = np.divmod(labels.keys[~labels.duplicate], len(labels.group))
    different = np.bincount(labels.pair_groups(left, right), minlength=len(labels.group)).astype(np.int64)
    labelled = labels.duplicates_by_group() + different
    active = _active_groups(tallies, labelled)
    correct_counts = [
        different[active] + _counts_by_group(tally, "correct", active) - _counts_by_group(tally, "wrong", active)
        for tally in tallies
    ]
    table = np.concatenate([*correct_counts, labelled[active][np.newaxis]])
    sums, _, _ = _draw_sums(table, labels.groups, count, seed)
    values = table.sum(axis=1)
    draws = ratio(sums[:, :-1], np.broadcast_to(sums[:, -1:], (count, rows)))
    return [make_figure(values[row] / values[-1], draws[:, row]) for row in range(rows)]


def _active_groups(tallies: Sequence[Tally], labelled: Integers) -> Integers:
    """Return the groups with labelled pairs (a count for each group) or with returned ones."""
    parts = [cells[1] for tally in tallies for cells in (tally.correct, tally.wrong)]
    return np.unique(np.concatenate([np.flatnonzero(labelled), *parts]))


def _draw_sums(table: Integers, total: int, count: int, seed: int) -> tuple[Floats, Integers, Integers]:
    """Draw from a table with a column for each group and from empty groups; return sums, kinds, group counts."""
    kinds, group_counts = np.unique(table, axis=1, return_counts=True)
    shares = np.append(group_counts / total, max(1 - table.shape[1] / total, 0.0))
    return bootstrap_sums(kinds, shares, total, count, seed), kinds, group_counts


def _counts_by_group(tally: Tally, cells: str, active: Integers) -> Integers:
    level, group, count = getattr(tally, cells)
    table = np.zeros((len(tally.unlabelled), len(active)), np.int64)
    np.add.at(table, (level, np.searchsorted(active, group)), count)
    return _reverse_cumsum(table)


def score_rows(correct: Integers, wrong: Integers, duplicates: int, draws: Resamples) -> list[Scores]:
    """Return precision, recall and F1 of each row, with intervals.

    ``correct`` and ``wrong`` (int64[r]) count the returned pairs that are labelled as duplicates and as different.
    """
    values = (
        ratio(correct, correct + wrong),
        correct / duplicates,
        2 * correct / (correct + wrong + duplicates),
    )
    drawn = (
        ratio(draws.correct, draws.correct + draws.wrong),
        ratio(draws.correct, np.broadcast_to(draws.duplicates, draws.correct.shape)),
        draws.f1(),
    )
    return [
        Scores(*(make_figure(v[r], s[:, r]) for v, s in zip(values, drawn, strict=True))) for r in range(len(correct))
    ]


def f1_lead(draws: Resamples, better: int, other: int) -> tuple[float | None, float | None, int]:
    """Return the interval of the difference in F1 of two rows over the same draws, and how many groups differ.

    The interval means nothing with fewer than six such groups, which could all favour one row by chance (a sign test
    over five: 2 / 2**5 > 0.05).
    """
    f1 = draws.f1()
    low, high = percentile_interval(f1[:, better] - f1[:, other])
    half = draws.correct.shape[1]
    differs = (draws.kinds[[better, half + better]] != draws.kinds[[other, half + other]]).any(axis=0)
    return low, high, int(draws.group_counts[differs].sum())
