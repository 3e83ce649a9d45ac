"""A table of labels, every cell as text: from CSV, TSV or JSON lines, from a store of labels, or from memory."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.inputs import delimiter_of, suffixes
from neardup.documents.tables import table_of
from neardup.errors import InputError, RecipeError, option
from neardup.kernels.counts import components

_SUFFIXES = ".csv, .tsv, .jsonl or .ndjson, plain, .gz, .zst or .bz2"
_SQLITE = b"SQLite format 3\0"
#: So many values of a column are named where none is the one that was asked for.
_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Rows of text.

    Attributes
    ----------
    name : str
        What it was read from, for messages.
    columns : list of str
        In order.
    rows : list of dict
        Cells by column; an empty cell is None or missing.
    lines : list of int
        Where each row stands.
    unit : str
        What those numbers count: ``line`` of a file, or ``row`` from 0.
    """

    name: str
    columns: list[str]
    rows: list[dict[str, str | None]]
    lines: list[int]
    unit: str

    @classmethod
    def read(cls, source: Any) -> Self:
        """Read a file or a store of labels, or take a table or a list of rows as it is.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        if not isinstance(source, str | os.PathLike):
            return cls._of_memory(source)
        name = os.fspath(source)
        if is_store(name):
            return cls._of_store(name)
        suffix, codec = suffixes(name)
        if suffix not in (".csv", ".tsv", ".jsonl", ".ndjson"):
            raise InputError(f"{name} is no table of labels by its name; name it {_SUFFIXES}")
        try:
            with open(name, "rb") as file:
                stream = file if codec is None else pa.CompressedInputStream(pa.PythonFile(file), codec)
                text = stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{name} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
        except (OSError, pa.ArrowException) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
            raise InputError(f"{name} cannot be read: {reason}; check the name") from None
        read = _json_lines if suffix in (".jsonl", ".ndjson") else _delimited
        numbered = list(read(text, name))
        columns = list(dict.fromkeys(column for _, row in numbered for column in row))
        if not columns:
            raise InputError(f"{name} holds no labels; give rows like id1,id2,label below such a header")
        return cls(name, columns, [row for _, row in numbered], [line for line, _ in numbered], "line")

    @classmethod
    def _of_store(cls, name: str) -> Self:
        from neardup.labels.store import export_rows

        columns = ["id1", "id2", "label"]
        rows = [dict(zip(columns, map(_text, row), strict=True)) for row in export_rows(name)]
        if not rows:
            raise InputError(f"{name} holds no label yet; judge some pairs with neardup label")
        return cls(name, columns, rows, list(range(len(rows))), "row")

    @classmethod
    def _of_memory(cls, source: Any) -> Self:
        name = "the table of labels"
        if isinstance(source, Sequence) and source and all(isinstance(row, tuple | list) for row in source):
            columns = ["id1", "id2", "label"][: max(map(len, source))]
            if {len(row) for row in source} not in ({2}, {3}):
                raise InputError(f"{name} has rows of other than two or three values; give (id, id, label)")
            rows = [dict(zip(columns, map(_text, row), strict=True)) for row in source]
            return cls(name, columns, rows, list(range(len(rows))), "row")
        table = table_of(source)
        rows = [{column: _text(value) for column, value in row.items()} for row in table.to_pylist()]
        return cls(name, list(table.column_names), rows, list(range(len(rows))), "row")

    def __len__(self) -> int:
        return len(self.rows)

    def only(self, wanted: str) -> Self:
        """Return the rows with one value in a column, named as ``split=train``.

        Raises
        ------
        InputError
            If it is not written so, there is no such column, or no row has that value.
        """
        column, equals, value = (part.strip() for part in wanted.partition("="))
        if not equals or not column:
            raise InputError(f"{option('--only')} {wanted!r} names no column and value; write it like split=train")
        self._check_column(column, option("--only"))
        kept = [row for row in range(len(self)) if (self.cell(row, column) or "") == value]
        if not kept:
            there = list(dict.fromkeys(self.cell(row, column) or "" for row in range(len(self))))
            shown = ", ".join(map(repr, there[:_SHOWN])) + (" and others" if len(there) > _SHOWN else "")
            raise InputError(f"{self.name} has no row with {value!r} in column {column!r}; there are {shown}")
        return self._with(kept)

    def answered(self, column: str) -> Self:
        """Return the rows with something in the column of the labels; an empty one says that nobody has judged.

        Raises
        ------
        InputError
            If there is no such column.
        """
        self._check_column(column, option("--label-column"))
        return self._with([row for row in range(len(self)) if (self.cell(row, column) or "").strip()])

    def _with(self, rows: Sequence[int]) -> Self:
        return replace(self, rows=[self.rows[row] for row in rows], lines=[self.lines[row] for row in rows])

    def cell(self, row: int, column: str) -> str | None:
        """Return a cell; None where it is empty."""
        return self.rows[row].get(column)

    def numbers(self, column: str) -> npt.NDArray[np.float64]:
        """Return a column of labels as numbers.

        Raises
        ------
        InputError
            If there is no such column, or a label is not a number.
        """
        self._check_column(column, option("--label-column"))
        values = np.empty(len(self))
        for row in range(len(self)):
            text = self.cell(row, column) or ""
            try:
                values[row] = float(text)
            except ValueError:
                values[row] = math.nan
            if not math.isfinite(values[row]):
                raise InputError(
                    f"{self.where(row)}: label {text!r} is not a number; write 1 for duplicates and 0 for others, or "
                    "levels"
                )
        return values

    def positions(
        self, columns: Sequence[str], place: Mapping[str, int], *, ignore_unknown: bool
    ) -> list[npt.NDArray[np.int64]]:
        """Return the rows whose ids are all known, and the positions of each column's ids.

        Raises
        ------
        InputError
            If an id is missing, or unknown and not to be ignored.
        """
        found = np.empty((len(self), len(columns)), np.int64)
        unknown: dict[str, None] = {}
        for row in range(len(self)):
            for at, column in enumerate(columns):
                name = self.cell(row, column)
                if name is None:
                    raise InputError(f"{self.where(row)} has no id in column {column!r}; give one or leave the row out")
                found[row, at] = place.get(name, -1)
                if found[row, at] < 0:
                    unknown.setdefault(name)
        if unknown and not ignore_unknown:
            first = next(iter(unknown))
            many = f"{len(unknown):,} ids, the first {first!r}, are" if len(unknown) > 1 else f"id {first!r} is"
            raise InputError(
                f"{self.name}: {many} not in the corpus, whose ids look like {', '.join(map(repr, list(place)[:3]))}; "
                f"check {option('--id-column')}, or leave such rows out with "
                f"{option('--ignore-unknown', 'ignore_unknown=True')}"
            )
        rows = np.flatnonzero((found >= 0).all(axis=1))
        return [rows, *found[rows].T]

    def _check_column(self, column: str, option: str) -> None:
        if column not in self.columns:
            columns = ", ".join(self.columns)
            raise InputError(f"{self.name} has no column {column!r} for {option}; its columns are {columns}")

    def where(self, row: int) -> str:
        """Return the place of a row, for messages."""
        return f"{self.name}, {self.unit} {self.lines[row]}"


def is_store(name: str) -> bool:
    """Return whether a file is a database; one that cannot be read is not, and is refused later."""
    try:
        with open(name, "rb") as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def _delimited(text: str, name: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(header.encode(), name))
    try:
        columns = [column.strip() for column in next(reader, [])]
        repeated = next((column for column in columns if columns.count(column) > 1), None)
        if repeated is not None:
            raise InputError(f"{name} has two columns {repeated!r}; give each its own name")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(columns):
                count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
                raise InputError(
                    f"{name}, line {reader.line_num} has {count}, but the header has {len(columns)}; make them agree"
                )
            yield reader.line_num, dict(zip(columns, map(_text, cells), strict=True))
    except csv.Error as error:
        raise InputError(f"{name}, line {reader.line_num} is broken: {error}; quote its cells") from None


def _json_lines(text: str, name: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(
                f"{name}, line {number} is no JSON object; give lines like " + '{"id1": "a", "id2": "b", "label": 1}'
            )
        yield number, {str(column): _text(value) for column, value in row.items()}


Integers = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: Fewer labels of a class, and fewer groups, than these bring a warning.
FEW_LABELS, FEW_GROUPS = 50, 20
#: What ``Labels.judge`` says of a pair.
DUPLICATE, OTHER, UNLABELLED = 1, 0, -1

_PAIR_COLUMNS = (("id1", "id2"), ("left", "right"))
_LABEL_COLUMNS = ("label", "level")


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """What is known of the pairs of a corpus of n documents.

    Attributes
    ----------
    group : int64[n]
        The first document of each document's group; itself where it has no duplicate.
    keys : int64[k] or None
        The labelled pairs as left * n + right, ascending; None where the groups say all.
    duplicate : bool[k] or None
        Whether each of them is a duplicate.
    complete : bool
        Whether pairs without a label are no duplicates.
    warnings : tuple of str
        What to keep in mind when reading figures that rest on these labels.
    """

    group: Integers
    keys: Integers | None
    duplicate: Bools | None
    complete: bool
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
        holds clusters; else pairs: the ids in id1 and id2, left and right, or the first two columns. A pair without a
        label is none that somebody has judged.
    names : sequence of str
        The corpus's ids as text, in order; of two equal ones the first is meant.
    label_column : str, optional
        The column of the labels, ``label`` or ``level`` by default.
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
    place: dict[str, int] = {}
    for position, name in enumerate(names):
        place.setdefault(name, position)
    lowered = {name.lower(): name for name in reversed(table.columns)}
    paired = next((pair for pair in _PAIR_COLUMNS if set(pair) <= lowered.keys()), None)
    if "cluster" in lowered and paired is None and label_column is None:
        return _clusters_of_file(table, lowered, names, place, ignore_unknown=ignore_unknown)
    ids = (lowered[paired[0]], lowered[paired[1]]) if paired else table.columns[:2]
    if len(ids) < 2:
        raise InputError(f"{table.name} has one column, but labels need two ids and a label: id1,id2,label")
    column = label_column or _label_column(table, ids, lowered, complete=complete)
    listed, warnings = len(table), list[str]()
    if column is not None and len(table := table.answered(column)) < listed:
        unanswered = f"{listed - len(table):,} of the {listed:,} rows of {table.name} have no label"
        if complete:
            raise InputError(f"{unanswered}, but they are said to be complete; fill these in, or leave them out")
        warnings.append(f"{unanswered} and say nothing.")
    values = np.ones(len(table)) if column is None else table.numbers(column)
    rows, left, right = table.positions(ids, place, ignore_unknown=ignore_unknown)
    if len(rows) < len(table):
        warnings.append(_left_out(table, len(table) - len(rows)))
    fractions = values[values % 1 != 0]
    if len(fractions):
        warnings.append(
            f"Computed labels: those of {table.name} are fractions, such as {fractions[0]:g}, as similarities are; so "
            "the figures only say how well a recipe agrees with that measure."
        )
    keys, duplicate = _distinct(table, ids, rows, left, right, values[rows], len(names), positive)
    group = np.arange(len(names))
    components(keys[duplicate] // len(names), keys[duplicate] % len(names), group)
    return _checked(Labels(group, keys, duplicate, complete, tuple(warnings)), table.name, positive)


def cluster_labels(clusters: Sequence[str | None], names: Sequence[str], source: str) -> Labels:
    """Return labels from the cluster of each document: those of one cluster are duplicates of each other, no others.

    Parameters
    ----------
    clusters : sequence of str or None
        One for each document; None is a cluster of its own.
    names : sequence of str
        The corpus's ids as text, in order; of two equal ones only the first is a document.
    source : str
        What holds the clusters, for messages.

    Raises
    ------
    RecipeError
        If no two documents share a cluster, or all do.
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
    table: LabelTable, lowered: dict[str, str], names: Sequence[str], place: dict[str, int], *, ignore_unknown: bool
) -> Labels:
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


def _label_column(table: LabelTable, ids: Sequence[str], lowered: dict[str, str], *, complete: bool) -> str | None:
    """Return the column of the labels; None where a list of two columns holds duplicates only."""
    found = [lowered[name] for name in _LABEL_COLUMNS if name in lowered and lowered[name] not in ids]
    if not found and not (complete and len(table.columns) == 2):
        columns = f"{option('--label-column')}: {', '.join(table.columns)}"
        raise InputError(f"{table.name} has no column label or level; name one with {columns}")
    return found[0] if found else None


def _left_out(table: LabelTable, count: int) -> str:
    return f"{count:,} of the {len(table):,} rows of {table.name} are left out: the corpus does not hold their ids."


def _distinct(
    table: LabelTable,
    ids: Sequence[str],
    rows: Integers,
    left: Integers,
    right: Integers,
    values: npt.NDArray[np.float64],
    documents: int,
    positive: float,
) -> tuple[Integers, Bools]:
    """Return the pairs as ascending keys, and whether each is a duplicate."""
    same = np.flatnonzero(left == right)
    if len(same):
        row = int(rows[same[0]])
        name = table.cell(row, ids[0])
        raise InputError(f"{table.where(row)} pairs document {name!r} with itself; leave the row out")
    keys = np.minimum(left, right) * documents + np.maximum(left, right)
    order = np.argsort(keys, kind="stable")
    keys, values, rows = keys[order], values[order], rows[order]
    repeated = keys[1:] == keys[:-1]
    differs = np.flatnonzero(repeated & (values[1:] != values[:-1]))
    if len(differs):
        at = int(differs[0])
        names = [repr(table.cell(int(rows[at]), name)) for name in ids]
        raise InputError(
            f"{table.where(int(rows[at + 1]))}: the pair of {names[0]} and {names[1]} has two labels, {values[at]:g} "
            f"and {values[at + 1]:g}; keep one, or choose rows, as with {option('--only ', 'only=')}'labeller=anna'"
        )
    first = np.concatenate([[True], ~repeated]) if len(keys) else np.zeros(0, np.bool_)
    return keys[first], values[first] >= positive


def _checked(labels: Labels, name: str, positive: float) -> Labels:
    """Return the labels with warnings where there are few.

    Raises
    ------
    RecipeError
        If all are of one class.
    """
    clusters = labels.keys is None
    if labels.keys is not None and not len(labels.keys):
        raise RecipeError(f"{name} holds no label of a pair of this corpus; give some")
    duplicates, others = labels.duplicates, labels.others
    if not duplicates:
        way = "give clusters of two documents or more" if clusters else f"lower {option('--positive')} or label some"
        what = "no two documents of a cluster" if clusters else f"no label at or above {positive:g}, so no duplicates"
        raise RecipeError(f"{name} holds {what}; {way}")
    if not others:
        way = "add documents that are none"
        if not labels.complete:
            none = option("--complete", "complete=True")
            way = f"label some that are none, or, to compare recipes, say with {none} that pairs not listed are none"
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
