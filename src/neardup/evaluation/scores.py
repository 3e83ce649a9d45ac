"""Precision, recall, F1 and accuracy of returned pairs against labels, with bootstrap intervals.

With C correct pairs among R returned ones that have a label, and T labelled duplicates: precision = C / R,
recall = C / T, F1 = 2 C / (R + T). Source: Montanari & Puglisi 2012, section 4 (its T are the returned pairs, its C all
correct ones). With N pairs labelled as none, accuracy = (C + N - (R - C)) / (T + N). Intervals: percentile bootstrap
(Efron & Tibshirani 1993, chapter 13) that draws groups of documents with replacement, because pairs of one group stand
or fall together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.keep.pairs import PairArrays
from neardup.kernels import Floats, Integers
from neardup.labels.labels import DUPLICATE, NON_DUPLICATE, Labels

#: How many times groups are drawn, and the cells of counts that are drawn at once.
RESAMPLES = 2000
_CELLS = 1 << 22
#: Two recipes that differ in fewer groups cannot be told apart.
LEAST_GROUPS = 6
#: The share of resamples inside an interval.
CONFIDENCE = 0.95
#: So many standard errors reach as far on both sides.
Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


class Figure(NamedTuple):
    """A figure with its interval; None where it is not defined, as the precision of nothing."""

    value: float | None
    low: float | None
    high: float | None


def record_dict(record: Any) -> dict[str, Any]:
    """Return a record as JSON takes it, with the records in it."""
    return {
        name: record_dict(value) if hasattr(value, "_asdict") else value for name, value in record._asdict().items()
    }


class Scores(NamedTuple):
    """Precision, recall and F1 at one threshold."""

    precision: Figure
    recall: Figure
    f1: Figure


class Tally(NamedTuple):
    """What a recipe returned at each of t thresholds, the loosest first."""

    #: int64[t]: pairs that carry no label.
    unlabelled: Integers
    #: int64[c], int64[c], int64[c]: labelled pairs in cells: the strictest threshold that still returns them, their
    #: group, how many.
    correct: tuple[Integers, Integers, Integers]
    wrong: tuple[Integers, Integers, Integers]

    def totals(self, cells: tuple[Integers, Integers, Integers]) -> Integers:
        """Return how many pairs of the cells each threshold returns: int64[t]."""
        level, _, count = cells
        return _from_each_on(np.bincount(level, count, len(self.unlabelled)).astype(np.int64))


class Resamples(NamedTuple):
    """The same draws of groups for r rows."""

    #: float64[s, r]: pairs in each draw.
    correct: Floats
    wrong: Floats
    #: float64[s, 1]: labelled duplicates in each draw.
    duplicates: Floats
    #: int64[2 r + 1, k]: what groups hold that are treated alike: correct pairs, wrong ones, labelled duplicates.
    kinds: Integers
    #: int64[k]: how many groups are of each kind.
    members: Integers

    def of(self, begin: int, end: int) -> Resamples:
        """Return those of some rows."""
        return self._replace(correct=self.correct[:, begin:end], wrong=self.wrong[:, begin:end])

    def f1(self) -> Floats:
        """Return F1 of each draw and row: float64[s, r], nan where no duplicate was drawn."""
        f1 = ratio(2 * self.correct, self.correct + self.wrong + self.duplicates)
        return np.where(self.duplicates > 0, f1, np.nan)


def tally(parts: Iterable[PairArrays], labels: Labels, cuts: Sequence[float]) -> Tally:
    """Count the pairs of a run at each threshold.

    ``parts`` are all pairs of the loosest threshold; a pair counts at the ``cuts``, ascending, that its similarity
    reaches.
    """
    thresholds, documents = np.asarray(cuts, np.float64), len(labels.group)
    unlabelled = np.zeros(len(thresholds) + 1, np.int64)
    found: dict[int, list[tuple[Integers, Integers]]] = {DUPLICATE: [], NON_DUPLICATE: []}
    for part in parts:
        level = np.searchsorted(thresholds, part.similarity, side="right").astype(np.int64)
        verdict = labels.pair_labels(part.left, part.right)
        cell = level * documents + labels.pair_groups(part.left, part.right)
        for wanted, held in found.items():
            held.append(np.unique(cell[verdict == wanted], return_counts=True))
        unlabelled += np.bincount(level[(verdict != DUPLICATE) & (verdict != NON_DUPLICATE)], minlength=len(unlabelled))
    correct, wrong = (_cells(held, documents) for held in found.values())
    return Tally(_from_each_on(unlabelled[1:]), correct, wrong)


def _cells(held: list[tuple[Integers, Integers]], documents: int) -> tuple[Integers, Integers, Integers]:
    """Return level, group and count of what at least the loosest threshold returns."""
    codes = np.concatenate([np.zeros(0, np.int64), *(codes for codes, _ in held)])
    counts = np.concatenate([np.zeros(0, np.int64), *(counts for _, counts in held)])
    cells, place = np.unique(codes, return_inverse=True)
    total = np.bincount(place, counts, len(cells)).astype(np.int64)
    returned = cells >= documents
    cells, total = cells[returned], total[returned]
    return cells // max(documents, 1) - 1, cells % max(documents, 1), total


def _from_each_on(counts: Integers) -> Integers:
    return np.cumsum(counts[::-1], axis=0)[::-1]


def resample(tallies: Sequence[Tally], labels: Labels, *, count: int = RESAMPLES, seed: int = 0) -> Resamples:
    """Draw groups with replacement, as many as there are, and count the pairs in each draw.

    Groups that all recipes treat alike are one kind, and a draw is a draw of how many there are of each kind: the
    multinomial distribution, so that it costs the same for a hundred groups and for a million.

    The thresholds of the tallies, one recipe after the other, are the rows.
    """
    duplicates = labels.duplicates_by_group()
    active = _active(tallies, duplicates)
    rows = [_by_group(one, cells, active) for cells in ("correct", "wrong") for one in tallies]
    table = np.concatenate([*rows, duplicates[active][np.newaxis]])
    drawn, kinds, members = _drawn(table, labels.groups, count, seed)
    half = (len(kinds) - 1) // 2
    return Resamples(drawn[:, :half], drawn[:, half:-1], drawn[:, -1:], kinds, members)


def accuracies(tallies: Sequence[Tally], labels: Labels, *, count: int = RESAMPLES, seed: int = 0) -> list[Figure]:
    """Return the share of labelled pairs that each row puts on the right side.

    Where pairs without a label count as none, nearly all pairs are none, and any row is right about nearly all: then
    no accuracy is defined.
    """
    rows = sum(len(one.unlabelled) for one in tallies)
    if labels.complete or labels.keys is None or labels.duplicate is None:
        return [Figure(None, None, None)] * rows
    left, right = np.divmod(labels.keys[~labels.duplicate], len(labels.group))
    others = np.bincount(labels.pair_groups(left, right), minlength=len(labels.group)).astype(np.int64)
    labelled = labels.duplicates_by_group() + others
    active = _active(tallies, labelled)
    right_ones = [
        others[active] + _by_group(one, "correct", active) - _by_group(one, "wrong", active) for one in tallies
    ]
    table = np.concatenate([*right_ones, labelled[active][np.newaxis]])
    drawn, _, _ = _drawn(table, labels.groups, count, seed)
    values = table.sum(axis=1)
    spread = ratio(drawn[:, :-1], np.broadcast_to(drawn[:, -1:], (count, rows)))
    return [figure_of(values[row] / values[-1], spread[:, row]) for row in range(rows)]


def _active(tallies: Sequence[Tally], held: Integers) -> Integers:
    """Return the groups that hold something, or of which something is returned."""
    parts = [cells[1] for one in tallies for cells in (one.correct, one.wrong)]
    return np.unique(np.concatenate([np.flatnonzero(held), *parts]))


def _drawn(table: Integers, total: int, count: int, seed: int) -> tuple[Floats, Integers, Integers]:
    """Return the sums of draws of a table's columns, with as many empty ones as make the total; kinds, and members."""
    kinds, members = np.unique(table, axis=1, return_counts=True)
    shares = np.append(members / total, max(1 - table.shape[1] / total, 0.0))
    return sums_of_draws(kinds, shares, total, count, seed), kinds, members


def sums_of_draws(kinds: Integers, shares: Floats, groups: int, count: int, seed: int) -> Floats:
    """Return the sums of draws of groups with replacement: float64[count, r].

    ``kinds`` (int64[r, k]) is what a group of each kind holds, ``shares`` (float64[k]) how many of the groups are of
    each kind; the last one may be of groups that hold nothing. So many groups as there are, are drawn each time.
    """
    random = np.random.default_rng(seed)
    drawn = np.empty((count, len(kinds)))
    step = max(_CELLS // max(len(shares), 1), 1)
    for begin in range(0, count, step):
        draws = random.multinomial(groups, shares, size=min(step, count - begin))[:, : kinds.shape[1]]
        drawn[begin : begin + step] = draws.astype(np.float64) @ kinds.T.astype(np.float64)
    return drawn


def _by_group(one: Tally, cells: str, active: Integers) -> Integers:
    level, group, count = getattr(one, cells)
    table = np.zeros((len(one.unlabelled), len(active)), np.int64)
    np.add.at(table, (level, np.searchsorted(active, group)), count)
    return _from_each_on(table)


def scores(correct: Integers, wrong: Integers, duplicates: int, draws: Resamples) -> list[Scores]:
    """Return precision, recall and F1 of each row, with intervals.

    Of the returned pairs (int64[r]), ``correct`` are duplicates and ``wrong`` are known to be none.
    """
    values = (
        ratio(correct, correct + wrong),
        correct / duplicates,
        2 * correct / (correct + wrong + duplicates),
    )
    spread = (
        ratio(draws.correct, draws.correct + draws.wrong),
        ratio(draws.correct, np.broadcast_to(draws.duplicates, draws.correct.shape)),
        draws.f1(),
    )
    return [
        Scores(*(figure_of(v[r], s[:, r]) for v, s in zip(values, spread, strict=True))) for r in range(len(correct))
    ]


def lead_of(draws: Resamples, better: int, other: int) -> tuple[float | None, float | None, int]:
    """Return the interval of the difference in F1 of two rows over the same draws, and in how many groups they differ.

    Fewer than six groups could all favour one row by chance (a sign test over five: 2 / 2**5 > 0.05), and draws of so
    few groups cannot tell.
    """
    f1 = draws.f1()
    low, high = interval(f1[:, better] - f1[:, other])
    half = draws.correct.shape[1]
    differs = (draws.kinds[[better, half + better]] != draws.kinds[[other, half + other]]).any(axis=0)
    return low, high, int(draws.members[differs].sum())


def interval(values: Floats) -> tuple[float | None, float | None]:
    """Return the percentiles that hold the middle of the values that are numbers; None where there are none."""
    held = values[np.isfinite(values)]
    if not len(held):
        return None, None
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(held, [tail, 100 - tail])
    return float(low), float(high)


def figure_of(value: float, spread: Floats) -> Figure:
    """Return a figure from its value and those in draws; not defined if the value is no number."""
    return Figure(float(value), *interval(spread)) if np.isfinite(value) else Figure(None, None, None)


def ratio(part: npt.NDArray[np.number], whole: npt.NDArray[np.number]) -> Floats:
    """Return part / whole, nan where the whole is 0."""
    result = np.full(np.shape(part), np.nan)
    np.divide(part, whole, out=result, where=whole != 0)
    return result
