"""Labels of the pairs of a corpus, as comparison and training use them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, RecipeError, option
from neardup.kernels import Bools, Integers
from neardup.kernels.graph import connect_components
from neardup.labels.store import SAME, UNSURE
from neardup.labels.table import LabelTable, PairRows, RowLabel, positions_by_id

#: Fewer labels of a class, and fewer groups, than these bring a warning.
FEW_LABELS, FEW_GROUPS = 50, 20
#: The labels that ``Labels.pair_labels`` returns.
DUPLICATE, NON_DUPLICATE, UNLABELLED = 1, 0, -1


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """The labels of the pairs of a corpus of n documents."""

    #: int64[n]: the first document of each document's group; the document itself if it has no duplicate.
    group: Integers
    #: int64[k]: the labelled pairs as left * n + right, ascending; None if the groups label every pair.
    keys: Integers | None
    duplicate: Bools | None  #: bool[k]: whether each of them is a duplicate
    complete: bool  #: whether pairs without a label count as different
    warnings: tuple[str, ...]  #: caveats for figures that rest on these labels

    def pair_labels(self, left: Integers, right: Integers) -> npt.NDArray[np.int8]:
        """Return DUPLICATE, NON_DUPLICATE or UNLABELLED for each pair of positions, left < right."""
        if self.keys is None or self.duplicate is None:
            same: npt.NDArray[np.int8] = (self.group[left] == self.group[right]).astype(np.int8)
            return same
        pair_keys = left * len(self.group) + right
        row = np.minimum(np.searchsorted(self.keys, pair_keys), len(self.keys) - 1)
        label = np.where(self.duplicate[row], DUPLICATE, NON_DUPLICATE)
        default = NON_DUPLICATE if self.complete else UNLABELLED
        return np.where(self.keys[row] == pair_keys, label, default).astype(np.int8)

    def pair_groups(self, left: Integers, right: Integers) -> Integers:
        """Return the group of each pair: that of its left document, or of its right one if left has no duplicate."""
        return np.where(
            self._singleton[self.group[left]] & ~self._singleton[self.group[right]],
            self.group[right],
            self.group[left],
        )

    def duplicates_by_group(self) -> Integers:
        """Return the number of labelled duplicates of each group: int64[n], 0 except at a group's first document."""
        if self.keys is None or self.duplicate is None:
            members = np.bincount(self.group, minlength=len(self.group)).astype(np.int64)
            return members * (members - 1) // 2
        return np.bincount(self.group[self._left[self.duplicate]], minlength=len(self.group)).astype(np.int64)

    @property
    def duplicates(self) -> int:
        """The number of pairs labelled as duplicates."""
        return int(self.duplicates_by_group().sum())

    @property
    def different_pairs(self) -> int:
        """The number of pairs labelled as different."""
        if self.complete or self.duplicate is None:
            return len(self.group) * (len(self.group) - 1) // 2 - self.duplicates
        return int((~self.duplicate).sum())

    @property
    def groups(self) -> int:
        """The number of groups with a label."""
        if self.complete or self.keys is None:
            return len(np.unique(self.group))
        return len(np.unique(self.pair_groups(self._left, self._right)))

    @property
    def documents(self) -> Integers:
        """The positions of the documents that labels name, ascending: int64[m]."""
        if self.keys is None:
            return np.flatnonzero(~self._singleton[self.group]).astype(np.int64)
        return np.union1d(self._left, self._right)

    @property
    def _singleton(self) -> Bools:
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

    Raises ``InputError`` if the file cannot be read or a row cannot be understood, and ``RecipeError`` if all labels
    are of one class.

    Parameters
    ----------
    source : path, table, or list of (id, id, label)
        A CSV, TSV or JSON lines file, a store of labels, or the same in memory. With a column ``cluster`` and an id it
        holds clusters; else pairs: the ids in id1 and id2, left and right, or the first two columns. An empty label
        means that nobody has judged the pair, and ``?`` that the labeller is unsure: both are left out.
    names : sequence of str
        The ids of the corpus as text, in order. A repeated id means its first document.
    label_column : str, optional
        The column of the labels; ``label``, ``answer`` or ``level`` by default.
    positive : float
        Labels at or above it mean duplicate. Raising it leaves only the closer levels as duplicates.
    only : str, optional
        ``COLUMN=VALUE``: use only the rows with that value in that column.
    complete : bool
        Whether pairs that are not listed are different; then a list of two columns holds duplicates.
    ignore_unknown : bool
        Leave out rows whose ids are not in the corpus, instead of raising an error.
    """
    table = LabelTable.read(source)
    if only is not None:
        table = table.filter_rows(only)
    positions = positions_by_id(names)
    if table.has_clusters and label_column is None:
        return _read_clusters(table, names, positions, ignore_unknown=ignore_unknown)
    pairs = table.pair_rows(label_column, only_duplicates=complete)
    row_count, warnings = len(table), list[str]()
    table = pairs.table
    labels = [pairs.row_label(row, positive) for row in range(len(table))]
    sure = np.array([label.answer != UNSURE for label in labels], np.bool_)
    for count, state in ((pairs.unanswered, "have no label"), (int((~sure).sum()), "are unsure")):
        undecided = f"{count:,} of the {row_count:,} rows of {table.name} {state}"
        if count and complete:
            raise InputError(f"{undecided}, but complete labels need an answer in each row; decide or remove these")
        if count:
            warnings.append(f"{undecided} and are not used.")
    rows, left, right = table.positions(pairs.ids, positions, ignore_unknown=ignore_unknown)
    if len(rows) < len(table):
        warnings.append(_omission_warning(table, len(table) - len(rows)))
    fractions = [label.level for label in labels if label.level % 1 > 0]
    if fractions:
        warnings.append(
            f"Computed labels: the labels of {table.name} are fractions, such as {fractions[0]:g}, like similarities. "
            "The figures only show how well a recipe agrees with that measure."
        )
    sure_rows = sure[rows]
    itself = left == right
    if itself.any():
        sure_rows &= ~itself
        example = table.location(int(rows[np.flatnonzero(itself)[0]]))
        warnings.append(
            f"{int(itself.sum()):,} of the {row_count:,} rows of {table.name} pair a document with itself, such as "
            f"{example}, and are not used."
        )
    if any(label.level not in (0, 1) for label in labels if label.answer != UNSURE):
        warnings.append(
            f"The labels of {table.name} are levels: those at or above {positive:g} count as duplicates, lower ones as "
            f"different ({option('--positive')})."
        )
    keys, duplicate = _unique_pairs(pairs, labels, rows[sure_rows], left[sure_rows], right[sure_rows], len(names))
    group = np.arange(len(names))
    connect_components(keys[duplicate] // len(names), keys[duplicate] % len(names), group)
    return _with_class_warnings(Labels(group, keys, duplicate, complete, tuple(warnings)), table.name, positive)


def cluster_labels(clusters: Sequence[str | None], names: Sequence[str], source: str) -> Labels:
    """Return labels from the cluster of each document: two documents are duplicates if they share a cluster.

    None stands for a cluster of one document. Raises ``RecipeError`` if no two documents share a cluster, or all do.
    """
    first: dict[str, int] = {}
    group = np.arange(len(names))
    seen: set[str] = set()
    for place, (name, cluster) in enumerate(zip(names, clusters, strict=True)):
        if cluster is not None and name not in seen:
            group[place] = first.setdefault(cluster, place)
        seen.add(name)
    missing = sum(cluster is None for cluster in clusters)
    warning = f"{missing:,} of {len(names):,} documents have no cluster in {source}: each counts as its own cluster."
    return _with_class_warnings(Labels(group, None, None, True, (warning,) if missing else ()), source, 1.0)


def _read_clusters(
    table: LabelTable, names: Sequence[str], positions: Mapping[str, int], *, ignore_unknown: bool
) -> Labels:
    lowered = {name.lower(): name for name in reversed(table.columns)}
    column = lowered["cluster"]
    id_columns = [name for name in table.columns if name != column]
    if not id_columns:
        raise InputError(f"{table.name} has only one column {column!r}, but clusters need an id too: id,cluster")
    id_column = lowered.get("id", id_columns[0])
    rows, documents = table.positions((id_column,), positions, ignore_unknown=ignore_unknown)
    clusters: list[str | None] = [None] * len(names)
    for row, document in zip(rows.tolist(), documents.tolist(), strict=True):
        cluster = table.cell(row, column)
        if clusters[document] not in (None, cluster):
            raise InputError(
                f"{table.location(row)}: document {table.cell(row, id_column)!r} has two clusters, "
                f"{clusters[document]!r} and {cluster!r}; keep one"
            )
        clusters[document] = cluster
    labels = cluster_labels(clusters, names, table.name)
    omissions = () if len(rows) == len(table) else (_omission_warning(table, len(table) - len(rows)),)
    return replace(labels, warnings=omissions + labels.warnings)


def _omission_warning(table: LabelTable, count: int) -> str:
    return f"{count:,} of the {len(table):,} rows of {table.name} are left out: their ids are not in the corpus."


def _unique_pairs(
    pairs: PairRows, labels: Sequence[RowLabel], rows: Integers, left: Integers, right: Integers, documents: int
) -> tuple[Integers, Bools]:
    """Return the pairs as ascending keys, and whether each is a duplicate."""
    table = pairs.table
    keys = np.minimum(left, right) * documents + np.maximum(left, right)
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    levels = np.array([labels[row].level for row in rows.tolist()], np.float64)
    repeated = keys[1:] == keys[:-1]
    differs = np.flatnonzero(repeated & (levels[1:] != levels[:-1]))
    if len(differs):
        at = int(differs[0])
        names = [repr(table.cell(int(rows[at]), name)) for name in pairs.ids]
        raise InputError(
            f"{table.location(int(rows[at + 1]))}: the pair of {names[0]} and {names[1]} has two labels, "
            f"{levels[at]:g} and {levels[at + 1]:g}; keep one, or choose rows, as with "
            f"{option('--only ', 'only=')}'labeller=anna'"
        )
    first = np.concatenate([[True], ~repeated]) if len(keys) else np.zeros(0, np.bool_)
    return keys[first], np.array([labels[row].answer == SAME for row in rows[first].tolist()], np.bool_)


def _with_class_warnings(labels: Labels, name: str, positive: float) -> Labels:
    """Return the labels with warnings about small classes; refuse labels of one class."""
    clusters = labels.keys is None
    if labels.keys is not None and not len(labels.keys):
        raise RecipeError(f"{name} has no label of a pair of this corpus; add some")
    duplicates, different = labels.duplicates, labels.different_pairs
    if not duplicates:
        way = "give clusters of two documents or more" if clusters else f"lower {option('--positive')} or label some"
        what = "no two documents of a cluster" if clusters else f"no label at or above {positive:g}, so no duplicates"
        raise RecipeError(f"{name} holds {what}; {way}")
    if not different:
        way = "add documents that belong to no cluster"
        if not labels.complete:
            none = option("--complete", "complete=True")
            way = f"label some pairs that differ; to compare recipes, {none} says that every pair not listed differs"
        raise RecipeError(f"{name} holds duplicates only ({duplicates:,}), which leave precision unknown; {way}")
    warnings = list(labels.warnings)
    for count, kind in ((duplicates, "duplicates"), (different, "pairs that are no duplicates")):
        if count < FEW_LABELS:
            warnings.append(
                f"Few labels: {count:,} {kind}, and telling methods apart takes at least {FEW_LABELS}; a figure of "
                f"1.00 over {count:,} still allows an error rate of up to {1 - 0.05 ** (1 / count):.0%}."
            )
    groups = int((labels.duplicates_by_group() > 0).sum())
    if groups < FEW_GROUPS:
        warnings.append(
            f"Few groups: the {duplicates:,} labelled duplicates lie in {groups} groups, and only groups count as "
            "independent of each other."
        )
    return replace(labels, warnings=tuple(warnings))
