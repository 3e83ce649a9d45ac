"""Label tables, read from CSV, TSV or JSON lines, a label store, or memory.

A cell means the same to every command: a number is a level (1 for same, 0 for different), words such as ``same`` and
``different`` are answers, ``?`` means unsure, and an empty cell means that nobody has judged the pair.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.inputs import delimiter_of, suffixes
from neardup.documents.records import plain_values
from neardup.documents.tables import table_of
from neardup.errors import InputError, option
from neardup.files import open_file
from neardup.labels.store import ANSWERS, DIFFERENT, SAME, UNSURE, majority_labels

_SUFFIXES = ".csv, .tsv, .jsonl or .ndjson, plain, .gz, .zst or .bz2"
_SQLITE = b"SQLite format 3\0"
_PAIR_COLUMNS = (("id1", "id2"), ("left", "right"))
_LABEL_COLUMNS = ("label", "answer", "level")
#: The words for each answer; numbers are read apart.
_ANSWER_WORDS = {
    **{name: name for name in ANSWERS},
    **dict.fromkeys(("yes", "duplicate", "true"), SAME),
    **dict.fromkeys(("no", "other", "false"), DIFFERENT),
    "?": UNSURE,
}
#: Compressed tables of up to some bytes, or some times the bytes of their file, are read.
_SMALL, _MAX_RATIO = 16_000_000, 200
#: The most values of a column that an error lists.
_VALUES_LISTED = 5


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """The rows of a table of labels, as text."""

    name: str
    columns: list[str]
    #: Cells by column; an empty cell is None or missing.
    rows: list[dict[str, str | None]]
    lines: list[int]
    unit: str  #: what ``lines`` counts: each ``line`` of a file, or each ``row`` from 0

    @classmethod
    def read(cls, source: Any) -> Self:
        """Read a file, a label store, a table in memory or a list of rows."""
        if not isinstance(source, str | os.PathLike):
            return cls._from_memory(source)
        name = os.fspath(source)
        if is_sqlite_file(name):
            return cls._from_store(name)
        suffix, codec = suffixes(name)
        if suffix not in (".csv", ".tsv", ".jsonl", ".ndjson") and os.path.exists(name):
            raise InputError(f"{name} cannot be read as labels; name it {_SUFFIXES}")
        try:
            with open_file(name) as file:
                text = _read_bytes(file, codec, name).decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{name} is not UTF-8 at byte {error.start}; save it as UTF-8") from None
        except (OSError, pa.ArrowException) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else " ".join(str(error).split())
            raise InputError(f"{name} cannot be read: {reason}; check the name") from None
        read_rows = _read_json_lines if suffix in (".jsonl", ".ndjson") else _read_delimited
        numbered = list(read_rows(text, name))
        columns = list(dict.fromkeys(column for _, row in numbered for column in row))
        if not columns:
            raise InputError(f"{name} holds no labels; give it a header such as id1,id2,label and rows below it")
        return cls(name, columns, [row for _, row in numbered], [line for line, _ in numbered], "line")

    @classmethod
    def _from_store(cls, name: str) -> Self:
        columns = ["id1", "id2", "label"]
        rows = [dict(zip(columns, map(_cell_text, row), strict=True)) for row in majority_labels(name)]
        if not rows:
            raise InputError(f"{name} holds no label yet; judge some pairs with neardup label")
        return cls(name, columns, rows, list(range(len(rows))), "row")

    @classmethod
    def _from_memory(cls, source: Any) -> Self:
        name = "the table of labels"
        if isinstance(source, Sequence) and source and all(isinstance(row, tuple | list) for row in source):
            columns = ["id1", "id2", "label"][: max(map(len, source))]
            if {len(row) for row in source} not in ({2}, {3}):
                raise InputError(f"{name} has rows of other than two or three values; give (id, id, label)")
            rows = [dict(zip(columns, map(_cell_text, row), strict=True)) for row in source]
            return cls(name, columns, rows, list(range(len(rows))), "row")
        table = table_of(source)
        values = {column: plain_values(table[column]) for column in table.column_names}
        rows = [
            {column: _cell_text(value) for column, value in _flat_fields(dict(zip(values, row, strict=True))).items()}
            for row in zip(*values.values(), strict=True)
        ]
        columns = list(dict.fromkeys([*values, *(column for row in rows for column in row)]))
        return cls(name, columns, rows, list(range(len(rows))), "row")

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def has_clusters(self) -> bool:
        """Whether the table gives the cluster of each document instead of pairs."""
        names = {name.lower() for name in self.columns}
        return "cluster" in names and not any(set(pair) <= names for pair in _PAIR_COLUMNS)

    def filter_rows(self, condition: str) -> Self:
        """Return the rows that meet a condition such as ``split=train``."""
        column, equals, value = (part.strip() for part in condition.partition("="))
        if not equals or not column:
            raise InputError(f"{option('--only')} {condition!r} names no column and value; write it like split=train")
        self._check_column(column, option("--only"))
        kept = [row for row in range(len(self)) if (self.cell(row, column) or "") == value]
        if not kept:
            values = list(dict.fromkeys(self.cell(row, column) or "" for row in range(len(self))))
            listed = ", ".join(map(repr, values[:_VALUES_LISTED])) + (", ..." if len(values) > _VALUES_LISTED else "")
            raise InputError(f"{self.name} has no row with {value!r} in column {column!r}; its values are {listed}")
        return self._select_rows(kept)

    def pair_rows(self, label_column: str | None = None, *, only_duplicates: bool = False) -> PairRows:
        """Return the rows that label a pair.

        With ``only_duplicates``, a table of two columns lists pairs that are the same.
        """
        lowered = {name.lower(): name for name in reversed(self.columns)}
        named = next((pair for pair in _PAIR_COLUMNS if set(pair) <= lowered.keys()), None)
        ids = [lowered[name] for name in named] if named else self.columns[:2]
        labeller = lowered.get("labeller")
        if len(ids) == 2 and only_duplicates and label_column is None and len(self.columns) == 2:
            return PairRows(self, (ids[0], ids[1]), None, labeller, 0)
        usual_columns = (lowered[name] for name in _LABEL_COLUMNS if name in lowered and lowered[name] not in ids)
        column = label_column or next(usual_columns, None)
        if len(ids) < 2 or column is None or column in ids:
            raise InputError(
                f"{self.name} has the columns {', '.join(self.columns)}, but labels need two ids and a label: "
                f"id1,id2,label; name another column of labels with {option('--label-column')}"
            )
        self._check_column(column, option("--label-column"))
        answered = [row for row in range(len(self)) if (self.cell(row, column) or "").strip()]
        return PairRows(self._select_rows(answered), (ids[0], ids[1]), column, labeller, len(self) - len(answered))

    def _select_rows(self, rows: Sequence[int]) -> Self:
        return replace(self, rows=[self.rows[row] for row in rows], lines=[self.lines[row] for row in rows])

    def cell(self, row: int, column: str) -> str | None:
        """Return a cell; None if it is empty."""
        return self.rows[row].get(column)

    def positions(
        self, columns: Sequence[str], positions: Mapping[str, int], *, ignore_unknown: bool
    ) -> list[npt.NDArray[np.int64]]:
        """Return the rows whose ids are all in the corpus, and the positions of each column's ids."""
        found = np.empty((len(self), len(columns)), np.int64)
        unknown: dict[str, None] = {}
        for row in range(len(self)):
            for at, column in enumerate(columns):
                name = self.cell(row, column)
                if name is None:
                    raise InputError(
                        f"{self.location(row)} has no id in column {column!r}; give one or leave the row out"
                    )
                found[row, at] = positions.get(name, -1)
                if found[row, at] < 0:
                    unknown.setdefault(name)
        if unknown and not ignore_unknown:
            first = next(iter(unknown))
            many = f"{len(unknown):,} ids, the first {first!r}, are" if len(unknown) > 1 else f"id {first!r} is"
            raise InputError(
                f"{self.name}: {many} not in the corpus, whose ids look like "
                f"{', '.join(map(repr, list(positions)[:3]))}; "
                f"check {option('--id-column')}, or leave such rows out with "
                f"{option('--ignore-unknown', 'ignore_unknown=True')}"
            )
        rows = np.flatnonzero((found >= 0).all(axis=1))
        return [rows, *found[rows].T]

    def _check_column(self, column: str, option: str) -> None:
        if column not in self.columns:
            columns = ", ".join(self.columns)
            raise InputError(f"{self.name} has no column {column!r} for {option}; its columns are {columns}")

    def location(self, row: int) -> str:
        """Return the file and line of a row, for messages."""
        return f"{self.name}, {self.unit} {self.lines[row]}"


class RowLabel(NamedTuple):
    """The label that a row gives its pair."""

    answer: str  #: ``same``, ``different`` or ``unsure``
    level: float  #: the number of the row; 1 and 0 for words, nan for ``unsure``


class PairRows(NamedTuple):
    """The rows of a table that label a pair."""

    table: LabelTable
    ids: tuple[str, str]
    column: str | None  #: the column of the labels; None where each row means ``same``
    labeller: str | None  #: the column of labellers, if there is one
    unanswered: int  #: the number of further rows, whose label is empty

    def row_label(self, row: int, positive: float | None = None) -> RowLabel:
        """Return the label of a row.

        Numbers at or above ``positive`` mean ``same``; without it, 1 and 0 are the only valid numbers.
        """
        if self.column is None:
            return RowLabel(SAME, 1.0)
        text = (self.table.cell(row, self.column) or "").strip()
        answer = _ANSWER_WORDS.get(text.lower())
        if answer is not None:
            return RowLabel(answer, math.nan if answer == UNSURE else float(answer == SAME))
        try:
            level = float(text)
        except ValueError:
            level = math.nan
        if not math.isfinite(level) or (positive is None and level not in (0, 1)):
            raise InputError(
                f"{self.table.location(row)}: {self.column} {text!r} is no answer; write 1 for same, 0 for different, "
                "? for unsure, or leave it empty"
            )
        return RowLabel(SAME if level >= (1 if positive is None else positive) else DIFFERENT, level)


def positions_by_id(names: Sequence[Any]) -> dict[str, int]:
    """Return the position of each id's document, by the id as text; a repeated id keeps its first document."""
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        positions.setdefault(str(name), position)
    return positions


def is_sqlite_file(name: str) -> bool:
    """Return whether a file is a SQLite database; False also for a file that cannot be read."""
    try:
        with open_file(name) as file:
            # A pipe gives its first bytes once.
            return file.seekable() and file.read(len(_SQLITE)) == _SQLITE
    except OSError:
        return False


def _read_bytes(file: BinaryIO, codec: str | None, name: str) -> bytes:
    """Return the bytes of a label table; raises ``InputError`` if they are many times as many as those of its file."""
    if codec is None:
        return file.read()
    data = file.read()
    most = max(_SMALL, _MAX_RATIO * len(data))
    found: bytes = pa.CompressedInputStream(pa.BufferReader(data), codec).read(most + 1)
    if len(found) > most:
        raise InputError(f"{name} is more than {_MAX_RATIO} times as long as its file; decompress it first")
    return found


def _cell_text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and value.is_integer():
        # As ids of doubles are written.
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def _flat_fields(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a row, those of objects in it also as ``object.field``, unless there is such a name."""
    fields = {str(name): value for name, value in row.items()}
    for name, value in row.items():
        if isinstance(value, Mapping):
            inner = {f"{name}.{field}": found for field, found in _flat_fields(value).items()}
            fields = inner | fields
    return {name: fields[name] for name in [*map(str, row), *(name for name in fields if name not in row)]}


def _read_delimited(text: str, name: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    header = text.partition("\n")[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(header.encode(), name))
    try:
        columns = [column.strip() for column in next(reader, [])]
        if repeated := [column for column, count in Counter(columns).items() if count > 1]:
            raise InputError(f"{name} has two columns {repeated[0]!r}; give each its own name")
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(columns):
                count = f"{len(cells)} cell{'s' if len(cells) > 1 else ''}"
                raise InputError(
                    f"{name}, line {reader.line_num} has {count}, but the header has {len(columns)}; make them agree"
                )
            yield reader.line_num, dict(zip(columns, map(_cell_text, cells), strict=True))
    except csv.Error as error:
        raise InputError(f"{name}, line {reader.line_num} is broken: {error}; quote its cells") from None


def _read_json_lines(text: str, name: str) -> Iterator[tuple[int, dict[str, str | None]]]:
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InputError(
                f"{name}, line {number} is no JSON object; give lines like " + '{"id1": "a", "id2": "b", "label": 1}'
            )
        yield number, {column: _cell_text(value) for column, value in _flat_fields(row).items()}
