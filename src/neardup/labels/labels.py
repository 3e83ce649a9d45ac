"""What people say of the pairs of a corpus, as comparing and training take it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, RecipeError, option
from neardup.kernels import Bools, Integers
from neardup.kernels.graph import connect_components
from neardup.labels.store import SAME, UNSURE
from neardup.labels.table import LabelTable, PairRows, RowLabel, places_of

#: Fewer labels of a class, and fewer groups, than these bring a warning.
FEW_LABELS, FEW_GROUPS = 50, 20
#: What ``Labels.judge`` says of a pair.
DUPLICATE, OTHER, UNLABELLED = 1, 0, -1


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What is known of the pairs of a corpus of n documents."""

    #: int64[n]: the first document of each document's group; itself where it has no duplicate.
    group: Integers
    #: int64[k]: the labelled pairs as left * n + right, ascending; None where the groups say all.
    keys: Integers | None
    #: bool[k]: whether each of them is a duplicate.
    duplicate: Bools | None
    #: Whether pairs without a label are no duplicates.
    complete: bool
    #: What to keep in mind when reading figures that rest on these labels.
    warnings: tuple[str, ...]

    def judge(self, left: Integers, right: Integers) -> npt.NDArray[np.int8]:
        """Return DUPLICATE, OTHER or UNLABELLED for each pair of positions, left < right."""
        if self.keys is None or self.duplicate is None:
            same: npt.NDArray[np.int8] = (self.group[left] == self.group[right]).astype(np.int8)
            return same
        wanted = left * len(self.group) + right
        place = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        verdict = np.where(self.duplicate[place], DUPLICATE, OTHER)
        return np.where(self.keys[place] == wanted, verdict, OTHER if self.complete else UNLABELLED).astype(np.int8)

    def group_of_pairs(self, left: Integers, right: Integers) -> Integers:
        """Return the group that each pair counts in: its left document's, or its right's if left has no duplicate."""
        return np.where(
            self._alone[self.group[left]] & ~self._alone[self.group[right]], self.group[right], self.group[left]
        )

    def duplicates_of_groups(self) -> Integers:
        """Return the number of labelled duplicates in each group: int64[n], 0 for what is no group's first."""
        if self.keys is None or self.duplicate is None:
            members = np.bincount(self.group, minlength=len(self.group)).astype(np.int64)
            return members * (members - 1) // 2
        return np.bincount(self.group[self._left[self.duplicate]], minlength=len(self.group)).astype(np.int64)

    @property
    def duplicates(self) -> int:
        """The number of pairs that are duplicates."""
        return int(self.duplicates_of_groups().sum())

    @property
    def others(self) -> int:
        """The number of pairs that are known to be none."""
        if self.complete or self.duplicate is None:
            return len(self.group) * (len(self.group) - 1) // 2 - self.duplicates
        return int((~self.duplicate).sum())

    @property
    def groups(self) -> int:
        """The number of groups that hold a label."""
        if self.complete or self.keys is None:
            return len(np.unique(self.group))
        return len(np.unique(self.group_of_pairs(self._left, self._right)))

    @property
    def _alone(self) -> Bools:
        return np.bincount(self.group, minlength=len(self.group)) < 2

    @property
    def _left(self) -> Integers:
        return (np.zeros(0, np.int64) if self.keys is None else self.keys) // len(self.group)

    @property
    def _right(self) -> Integers:
        return (np.zeros(0, np.int64) if self.keys is None else self.keys) % len(self.group)


def read_labels(
    source: Any,
    names: Sequence[str],
    *,
    label_column: str | None = None,
    positive: float = 1.0,
    only: str | None = None,
    complete: bool = False,
    ignore_unknown: bool = False,
) -> Labels:
    """Read the labels of a corpus.

    Parameters
    ----------
    source : path, table, or list of (id, id, label)
        A CSV, TSV or JSON lines file, a store of labels, or the same in memory. With a column ``cluster`` and an id it
        holds clusters; else pairs: the ids in id1 and id2, left and right, or the first two columns. A row without a
        label is a pair that nobody has judged, and ``?`` one of which somebody is unsure: both are left out.
    names : sequence of str
        The corpus's ids as text, in order; of two equal ones the first is meant.
    label_column : str, optional
        The column of the labels; ``label``, ``answer`` or ``level`` by default.
    positive : float
        Labels at or above it say duplicate. Raising it leaves only the closer levels as duplicates.
    only : str, optional
        ``COLUMN=VALUE``: the rows with that value in that column are the labels.
    complete : bool
        Whether pairs that are not listed are no duplicates; then a list of two columns holds duplicates.
    ignore_unknown : bool
        Leave out rows whose ids the corpus does not hold, instead of refusing them.

    Raises
    ------
    InputError
        If the file cannot be read, or a row cannot be understood.
    RecipeError
        If the labels are of one class only.
    """
    table = LabelTable.read(source)
    if only is not None:
        table = table.only(only)
    place = places_of(names)
    if table.holds_clusters and label_column is None:
        return _clusters_of_file(table, names, place, ignore_unknown=ignore_unknown)
    pairs = table.pairs(label_column, listed=complete)
    listed, warnings = len(table), list[str]()
    table = pairs.table
    answers = [pairs.answer(row, positive) for row in range(len(table))]
    sure = np.array([answer.said != UNSURE for answer in answers], np.bool_)
    for count, what in ((pairs.unanswered, "have no label"), (int((~sure).sum()), "are unsure")):
        silent = f"{count:,} of the {listed:,} rows of {table.name} {what}"
        if count and complete:
            raise InputError(f"{silent}, but they are said to be complete; decide these, or leave them out")
        if count:
            warnings.append(f"{silent} and say nothing.")
    rows, left, right = table.positions(pairs.ids, place, ignore_unknown=ignore_unknown)
    if len(rows) < len(table):
        warnings.append(_left_out(table, len(table) - len(rows)))
    fractions = [answer.level for answer in answers if answer.level % 1 > 0]
    if fractions:
        warnings.append(
            f"Computed labels: those of {table.name} are fractions, such as {fractions[0]:g}, as similarities are; so "
            "the figures only say how well a recipe agrees with that measure."
        )
    told = sure[rows]
    if any(answer.level not in (0, 1) for answer in answers if answer.said != UNSURE):
        warnings.append(
            f"The labels of {table.name} are levels: those at or above {positive:g} count as duplicates, lower ones as "
            f"different ({option('--positive')})."
        )
    keys, duplicate = _distinct(pairs, answers, rows[told], left[told], right[told], len(names))
    group = np.arange(len(names))
    connect_components(keys[duplicate] // len(names), keys[duplicate] % len(names), group)
    return _checked(Labels(group, keys, duplicate, complete, tuple(warnings)), table.name, positive)


def cluster_labels(clusters: Sequence[str | None], names: Sequence[str], source: str) -> Labels:
    """Return labels from the cluster of each document: those of one cluster are duplicates of each other, no others.

    None is a cluster of its own. Raises ``RecipeError`` if no two documents share a cluster, or all do.
    """
    first: dict[str, int] = {}
    group = np.arange(len(names))
    seen: set[str] = set()
    for place, (name, cluster) in enumerate(zip(names, clusters, strict=True)):
        if cluster is not None and name not in seen:
            group[place] = first.setdefault(cluster, place)
        seen.add(name)
    missing = sum(cluster is None for cluster in clusters)
    alone = f"{missing:,} of {len(names):,} documents have no cluster in {source}: each counts as one of its own."
    return _checked(Labels(group, None, None, True, (alone,) if missing else ()), source, 1.0)


def _clusters_of_file(
    table: LabelTable, names: Sequence[str], place: Mapping[str, int], *, ignore_unknown: bool
) -> Labels:
    lowered = {name.lower(): name for name in reversed(table.columns)}
    column = lowered["cluster"]
    others = [name for name in table.columns if name != column]
    if not others:
        raise InputError(f"{table.name} has the one column {column!r}, but clusters need an id too: id,cluster")
    key = lowered.get("id", others[0])
    rows, positions = table.positions((key,), place, ignore_unknown=ignore_unknown)
    clusters: list[str | None] = [None] * len(names)
    for row, position in zip(rows.tolist(), positions.tolist(), strict=True):
        given = table.cell(row, column)
        if clusters[position] not in (None, given):
            raise InputError(
                f"{table.where(row)}: document {table.cell(row, key)!r} has two clusters, {clusters[position]!r} and "
                f"{given!r}; keep one"
            )
        clusters[position] = given
    labels = cluster_labels(clusters, names, table.name)
    left_out = () if len(rows) == len(table) else (_left_out(table, len(table) - len(rows)),)
    return Labels(labels.group, None, None, True, left_out + labels.warnings)


def _left_out(table: LabelTable, count: int) -> str:
    return f"{count:,} of the {len(table):,} rows of {table.name} are left out: the corpus does not hold their ids."


def _distinct(
    pairs: PairRows, answers: Sequence[RowLabel], rows: Integers, left: Integers, right: Integers, documents: int
) -> tuple[Integers, Bools]:
    """Return the pairs as ascending keys, and whether each is a duplicate."""
    table = pairs.table
    itself = np.flatnonzero(left == right)
    if len(itself):
        row = int(rows[itself[0]])
        name = table.cell(row, pairs.ids[0])
        raise InputError(f"{table.where(row)} pairs document {name!r} with itself; leave the row out")
    keys = np.minimum(left, right) * documents + np.maximum(left, right)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    levels = np.array([answers[row].level for row in rows.tolist()], np.float64)
    repeated = keys[1:] == keys[:-1]
    differs = np.flatnonzero(repeated & (levels[1:] != levels[:-1]))
    if len(differs):
        at = int(differs[0])
        names = [repr(table.cell(int(rows[at]), name)) for name in pairs.ids]
        raise InputError(
            f"{table.where(int(rows[at + 1]))}: the pair of {names[0]} and {names[1]} has two labels, {levels[at]:g} "
            f"and {levels[at + 1]:g}; keep one, or choose rows, as with {option('--only ', 'only=')}'labeller=anna'"
        )
    first = np.concatenate([[True], ~repeated]) if len(keys) else np.zeros(0, np.bool_)
    return keys[first], np.array([answers[row].said == SAME for row in rows[first].tolist()], np.bool_)


def _checked(labels: Labels, name: str, positive: float) -> Labels:
    """Return the labels with warnings where there are few."""
    clusters = labels.keys is None
    if labels.keys is not None and not len(labels.keys):
        raise RecipeError(f"{name} holds no label of a pair of this corpus; give some")
    duplicates, others = labels.duplicates, labels.others
    if not duplicates:
        way = "give clusters of two documents or more" if clusters else f"lower {option('--positive')} or label some"
        what = "no two documents of a cluster" if clusters else f"no label at or above {positive:g}, so no duplicates"
        raise RecipeError(f"{name} holds {what}; {way}")
    if not others:
        way = "add documents that belong to no cluster"
        if not labels.complete:
            none = option("--complete", "complete=True")
            way = f"label some pairs that differ; to compare recipes, {none} says that every pair not listed differs"
        raise RecipeError(f"{name} holds duplicates only ({duplicates:,}), which leave precision unknown; {way}")
    warnings = list(labels.warnings)
    for count, what in ((duplicates, "duplicates"), (others, "pairs that are no duplicates")):
        if count < FEW_LABELS:
            warnings.append(
                f"Few labels: {count:,} {what}, and {FEW_LABELS} are the least to tell methods apart; a figure of 1.00 "
                f"over {count:,} still leaves an error rate of up to {1 - 0.05 ** (1 / count):.0%}."
            )
    groups = int((labels.duplicates_of_groups() > 0).sum())
    if groups < FEW_GROUPS:
        warnings.append(
            f"Few groups: the {duplicates:,} labelled duplicates lie in {groups} groups, and only groups count as "
            "independent of each other."
        )
    return Labels(labels.group, labels.keys, labels.duplicate, labels.complete, tuple(warnings))
