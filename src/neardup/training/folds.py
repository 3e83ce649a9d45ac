"""Groups of labelled pairs: folds without a document on both sides, and figures with intervals over the groups.

Pairs that share a document depend on each other, so a whole group of connected pairs goes into one fold. If one group
holds more than half of all pairs, documents are assigned to folds instead: the machine that judges a pair is trained on
pairs whose documents lie in none of the pair's folds, and pairs that straddle folds are left out of some training. If
even that is impossible, as when one document is in nearly all pairs, folds share documents, and a warning says so.

For the intervals, groups are drawn with replacement, as in ``evaluation.scores`` (Efron & Tibshirani 1993, chapter 13).
All verdicts use the same draws, so their differences have intervals, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.evaluation.intervals import MIN_GROUPS, RESAMPLES, Figure, bootstrap_sums, make_figure, ratio
from neardup.kernels import Bools, Floats, Integers
from neardup.kernels.graph import connect_components

#: Each training part has at least this number of pairs of each class.
MIN_PER_CLASS = 2
#: A group with a larger share of all pairs makes folds too uneven.
_MAX_GROUP_SHARE = 0.5


class Split(NamedTuple):
    """Rows to train on and rows to judge, ascending."""

    train: Integers
    test: Integers


class Folds(NamedTuple):
    """A division of labelled pairs in which each pair is judged once."""

    splits: tuple[Split, ...]
    fold_count: int  #: the number of folds; by documents, there is a split for each pair of folds
    #: The unit that is assigned to folds: ``groups`` of connected pairs or ``documents``, with no document on both
    #: sides, or ``pairs``, with some documents on both.
    unit: str
    largest_share: float  #: the share of all pairs in the largest group of connected pairs
    left_out_share: float  #: the mean share of pairs that a machine neither trains on nor judges


def pair_groups(left: Integers, right: Integers) -> Integers:
    """Return the group of each pair: int64[n], equal for pairs connected by shared documents."""
    documents, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    left_index, right_index = np.split(index.astype(np.int64), 2)
    root = np.arange(len(documents))
    connect_components(left_index, right_index, root)
    return root[left_index]


def assign_folds(groups: Integers, labels: Bools, count: int, seed: int) -> Integers:
    """Assign whole groups to folds, with similar numbers of duplicates and of other pairs.

    Groups go from the largest to the smallest, each to the fold that keeps the division most even; groups of equal size
    are shuffled. Returns the fold of each row, int64[n].
    """
    names, index = np.unique(groups, return_inverse=True)
    sizes = np.column_stack([np.bincount(index, labels == label, len(names)) for label in (True, False)])
    shuffled = np.random.default_rng(seed).permutation(len(names))
    order = shuffled[np.argsort(-sizes[shuffled].sum(axis=1), kind="stable")]
    totals = [max(int(sizes[:, kind].sum()), 1) for kind in (0, 1)]
    fold_sizes = [[0, 0] for _ in range(count)]
    fold = np.empty(len(names), np.int64)
    for group, (duplicates, others) in zip(order.tolist(), sizes[order].astype(np.int64).tolist(), strict=True):
        # The sum of squared shares grows least in the fold with the least of the group's classes; in whole numbers.
        weights = duplicates * totals[1] ** 2, others * totals[0] ** 2
        smallest = min(fold_sizes, key=lambda size: size[0] * weights[0] + size[1] * weights[1])
        fold[group] = at = fold_sizes.index(smallest)
        fold_sizes[at] = [smallest[0] + duplicates, smallest[1] + others]
    return fold[index]


def make_folds(
    left: Integers, right: Integers, labels: Bools, *, count: int, seed: int, decided: Bools | None = None
) -> Folds | None:
    """Return at most ``count`` folds of n pairs, None if no two folds leave two pairs of each class to train on.

    Machines are trained on the ``decided`` pairs only (bool[n], all by default); the others are judged, too.
    """
    decided = np.ones(len(labels), np.bool_) if decided is None else decided
    groups = pair_groups(left, right)
    sizes = np.unique(groups, return_counts=True)[1]
    largest = float(sizes.max() / len(groups)) if len(groups) else 0.0
    most_folds = min(count, len(sizes))
    if largest <= _MAX_GROUP_SHARE and (found := make_group_splits(groups, labels, most_folds, seed, decided)):
        return Folds(*found, "groups", largest, 0.0)
    for folds in range(count, 2, -1):
        splits = _document_splits(left, right, labels, folds, seed)
        if _trainable(splits, labels, decided):
            used = sum(len(split.train) + len(split.test) for split in splits) / len(splits)
            return Folds(splits, folds, "documents", largest, 1 - used / len(labels))
    if found := make_group_splits(_rarer_documents(left, right), labels, min(count, len(labels)), seed, decided):
        return Folds(*found, "pairs", largest, 0.0)
    return None


def make_group_splits(
    groups: Integers, labels: Bools, count: int, seed: int, decided: Bools
) -> tuple[tuple[Split, ...], int] | None:
    """Return splits by groups, and their number of folds: the most up to ``count`` that leave enough to train on.

    ``groups`` (int64[n]) are kept whole; the other parameters are those of ``make_folds``.
    """
    for folds in range(count, 1, -1):
        fold = assign_folds(groups, labels, folds, seed)
        parts = (Split(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(folds))
        splits = tuple(split for split in parts if len(split.test))
        if _trainable(splits, labels, decided):
            return splits, folds
    return None


def select_rows(splits: Sequence[Split], rows: Integers, count: int) -> list[Split]:
    """Return splits of ``count`` rows restricted to some rows, renumbered from 0, without splits that judge none."""
    new_rows = np.full(count, -1, np.int64)
    new_rows[rows] = np.arange(len(rows))
    restricted = (Split(*(new_rows[side][new_rows[side] >= 0] for side in split)) for split in splits)
    return [split for split in restricted if len(split.test)]


def _document_splits(left: Integers, right: Integers, labels: Bools, count: int, seed: int) -> tuple[Split, ...]:
    """Return a split for each pair of folds of documents; a family of duplicates stays in one unless too large."""
    documents, index = np.unique(np.concatenate([left, right]), return_inverse=True)
    index = index.astype(np.int64)
    left_index, right_index = np.split(index, 2)
    family = np.arange(len(documents), dtype=np.int64)
    connect_components(left_index[labels], right_index[labels], family)
    groups = family[index]
    if np.bincount(groups).max(initial=0) > 2 * len(groups) / count:
        groups = index
    assigned = assign_folds(groups, np.tile(labels, 2), count, seed)
    folds = np.sort(np.stack(np.split(assigned, 2)), axis=0)
    splits: list[Split] = []
    for low in range(count):
        for high in range(low, count):
            test = (folds[0] == low) & (folds[1] == high)
            train = ~np.isin(folds, (low, high)).any(axis=0)
            if test.any():
                splits.append(Split(np.flatnonzero(train), np.flatnonzero(test)))
    return tuple(splits)


def _rarer_documents(left: Integers, right: Integers) -> Integers:
    """Return for each pair the document that is in fewer pairs, the left one of equals."""
    _, index, counts = np.unique(np.concatenate([left, right]), return_inverse=True, return_counts=True)
    left_counts, right_counts = np.split(counts[index], 2)
    return np.where(left_counts <= right_counts, left, right)


def _trainable(splits: tuple[Split, ...], labels: Bools, decided: Bools) -> bool:
    training_labels = (labels[split.train][decided[split.train]] for split in splits)
    return all(min(part.sum(), (~part).sum()) >= MIN_PER_CLASS for part in training_labels)


class Figures(NamedTuple):
    """Quality of verdicts, with 95% intervals, and their counts."""

    precision: Figure
    recall: Figure
    f1: Figure
    accuracy: Figure
    correct: int  #: duplicates that were found
    wrong: int  #: other pairs taken for duplicates
    missed: int  #: duplicates not found
    rejected: int  #: other pairs recognized as such


class Gain(NamedTuple):
    """The lead of one verdict over another in F1."""

    difference: Figure  #: over the same draws of groups
    beyond_chance: bool  #: whether its interval excludes 0 and the two verdicts differ in at least six groups


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
