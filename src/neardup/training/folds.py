"""Parts of labelled pairs to train on and parts to judge on, so that no document is in both.

Pairs that share a document depend on each other, so whole groups of connected pairs go into a fold. Where one group
holds more than half of all pairs, documents are dealt into folds instead, and a pair is judged by a machine that was
trained on pairs of documents of all other folds than its own one or two; pairs that straddle folds are then left out of
some training. Where even that is impossible, as with one document in nearly all pairs, folds share documents, and that
is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.kernels import Bools, Integers
from neardup.kernels.graph import connect_components

#: Each training part has at least so many pairs of each class.
LEAST_OF_A_CLASS = 2
#: A group with more than this share of all pairs makes folds lopsided.
_LARGEST_SHARE = 0.5


class Split(NamedTuple):
    """Rows to train on, and rows to judge: int64[t], int64[u], ascending."""

    train: Integers
    test: Integers


class Folds(NamedTuple):
    """How labelled pairs are parted; each is judged once."""

    splits: tuple[Split, ...]
    number: int
    #: ``groups`` of connected pairs; ``documents``, then too no document is on both sides; ``pairs``, then some are.
    by: str
    #: The share of all pairs that the largest group of connected pairs holds.
    largest: float
    #: The mean share of pairs that a machine is neither trained on nor judges.
    left_out: float


def connected(left: Integers, right: Integers) -> Integers:
    """Return the group of each pair: int64[n], equal where pairs hang together over documents they share."""
    documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    root = np.arange(len(documents), dtype=np.int64)
    places = places.astype(np.int64)
    connect_components(places[: len(left)], places[len(left) :], root)
    return root[places[: len(left)]]


def deal(groups: Integers, labels: Bools, count: int, seed: int) -> Integers:
    """Deal groups into folds of much the same numbers of duplicates and of others: int64[n], the fold of each row.

    The largest group goes first, each to where it leaves the folds most even; equally large ones are shuffled.
    """
    names, place = np.unique(groups, return_inverse=True)
    sizes = np.column_stack([np.bincount(place, labels == wanted, len(names)) for wanted in (True, False)])
    shuffled = np.random.default_rng(seed).permutation(len(names))
    order = shuffled[np.argsort(-sizes[shuffled].sum(axis=1), kind="stable")]
    whole = [max(int(sizes[:, kind].sum()), 1) for kind in (0, 1)]
    held = [[0, 0] for _ in range(count)]
    fold = np.empty(len(names), np.int64)
    for group, (one, other) in zip(order.tolist(), sizes[order].astype(np.int64).tolist(), strict=True):
        # The sum of squared shares grows least where a fold holds least of what the group brings; in whole numbers.
        brings = one * whole[1] ** 2, other * whole[0] ** 2
        least = min(held, key=lambda holds: holds[0] * brings[0] + holds[1] * brings[1])
        fold[group] = at = held.index(least)
        held[at] = [least[0] + one, least[1] + other]
    return fold[place]


def folds_of(
    left: Integers, right: Integers, labels: Bools, *, count: int, seed: int, decided: Bools | None = None
) -> Folds | None:
    """Part pairs into folds.

    Machines are trained on the ``decided`` pairs (bool[n], all by default); the others are judged all the same. None if
    no two folds leave two pairs of each class to train on.
    """
    decided = np.ones(len(labels), np.bool_) if decided is None else decided
    groups = connected(left, right)
    sizes = np.unique(groups, return_counts=True)[1]
    largest = float(sizes.max() / len(groups)) if len(groups) else 0.0
    fewest = min(count, len(sizes))
    if largest <= _LARGEST_SHARE and (found := splits_of(groups, labels, fewest, seed, decided)):
        return Folds(*found, "groups", largest, 0.0)
    for folds in range(count, 2, -1):
        splits = _by_documents(left, right, labels, folds, seed)
        if _trainable(splits, labels, decided):
            used = sum(len(split.train) + len(split.test) for split in splits) / len(splits)
            return Folds(splits, folds, "documents", largest, 1 - used / len(labels))
    if found := splits_of(_rarer(left, right), labels, min(count, len(labels)), seed, decided):
        return Folds(*found, "pairs", largest, 0.0)
    return None


def splits_of(
    groups: Integers, labels: Bools, count: int, seed: int, decided: Bools
) -> tuple[tuple[Split, ...], int] | None:
    """Return splits by groups and the number of folds: as many, ``count`` at most, as leave enough to train on.

    The parameters are those of ``folds_of``; ``groups`` are what is dealt.
    """
    for folds in range(count, 1, -1):
        fold = deal(groups, labels, folds, seed)
        parts = (Split(np.flatnonzero(fold != at), np.flatnonzero(fold == at)) for at in range(folds))
        splits = tuple(split for split in parts if len(split.test))
        if _trainable(splits, labels, decided):
            return splits, folds
    return None


def among(splits: Sequence[Split], rows: Integers, count: int) -> list[Split]:
    """Return splits of ``count`` rows with some of them alone, numbered anew, without those that judge none of them."""
    place = np.full(count, -1, np.int64)
    place[rows] = np.arange(len(rows))
    parts = (Split(*(place[part][place[part] >= 0] for part in split)) for split in splits)
    return [split for split in parts if len(split.test)]


def _by_documents(left: Integers, right: Integers, labels: Bools, count: int, seed: int) -> tuple[Split, ...]:
    """Deal documents, those of a family of duplicates together unless one is too large; train on neither fold's."""
    documents, places = np.unique(np.concatenate([left, right]), return_inverse=True)
    one, other = (part.astype(np.int64) for part in np.split(places, 2))
    family = np.arange(len(documents), dtype=np.int64)
    connect_components(one[labels], other[labels], family)
    ends = family[np.concatenate([one, other])]
    if np.bincount(ends).max(initial=0) > 2 * len(ends) / count:
        family = np.arange(len(documents), dtype=np.int64)
        ends = np.concatenate([one, other])
    dealt = deal(ends, np.tile(labels, 2), count, seed)
    folds = np.sort(np.stack(np.split(dealt, 2)), axis=0)
    splits: list[Split] = []
    for low in range(count):
        for high in range(low, count):
            test = (folds[0] == low) & (folds[1] == high)
            train = ~np.isin(folds, (low, high)).any(axis=0)
            if test.any():
                splits.append(Split(np.flatnonzero(train), np.flatnonzero(test)))
    return tuple(splits)


def _rarer(left: Integers, right: Integers) -> Integers:
    """Return of each pair the document that is in fewer pairs, the left one of equals."""
    _, places, times = np.unique(np.concatenate([left, right]), return_inverse=True, return_counts=True)
    one, other = np.split(times[places], 2)
    return np.where(one <= other, left, right)


def _trainable(splits: tuple[Split, ...], labels: Bools, decided: Bools) -> bool:
    if len(splits) < 2:
        return False
    usable = (labels[split.train][decided[split.train]] for split in splits)
    return all(min(found.sum(), (~found).sum()) >= LEAST_OF_A_CLASS for found in usable)
