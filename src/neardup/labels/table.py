"""What a table says of pairs of documents: read from CSV, TSV or JSON lines, a store of labels, or memory.

A cell means the same to every command: a number is a level (1 says same, 0 different), ``same``, ``different`` and the
like say so, ``?`` is somebody who is unsure, and an empty cell is a pair that nobody has judged.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.documents.inputs import delimiter_of, suffixes
from neardup.documents.tables import table_of
from neardup.errors import InputError, option
from neardup.labels.store import ANSWERS, DIFFERENT, SAME, UNSURE, export_rows

_SUFFIXES = ".csv, .tsv, .jsonl or .ndjson, plain, .gz, .zst or .bz2"
_SQLITE = b"SQLite format 3\0"
_PAIR_COLUMNS = (("id1", "id2"), ("left", "right"))
_LABEL_COLUMNS = ("label", "answer", "level")
#: How answers may be written besides their own names, and besides numbers.
_WORDS = {
    **{name: name for name in ANSWERS},
    **dict.fromkeys(("yes", "duplicate", "true"), SAME),
    **dict.fromkeys(("no", "other", "false"), DIFFERENT),
    "?": UNSURE,
}
#: So many values of a column are named where none is the one that was asked for.
_SHOWN = 5


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Rows of text."""

    name: str
    columns: list[str]
    #: Cells by column; an empty cell is None or missing.
    rows: list[dict[str, str | None]]
    lines: list[int]
    #: What those numbers count: ``line`` of a file, or ``row`` from 0.
    unit: str

    @classmethod
    def read(cls, source: Any) -> Self:
        """Read a file or a store of labels, or take a table or a list of rows as it is."""
        if not isinstance(source, str | os.PathLike):
            return cls._of_memory(source)
        name = os.fspath(source)
        if is_store(name):
            return cls._of_store(name)
        suffix, codec = suffixes(name)
        if suffix not in (".csv", ".tsv", ".jsonl", ".ndjson") and os.path.exists(name):
            raise InputError(f"{name} cannot be read as labels; name it {_SUFFIXES}")
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

    @property
    def holds_clusters(self) -> bool:
        """Whether it names the cluster of each document, and no pairs."""
        names = {name.lower() for name in self.columns}
        return "cluster" in names and not any(set(pair) <= names for pair in _PAIR_COLUMNS)

    def only(self, wanted: str) -> Self:
        """Return the rows with one value in a column, named as ``split=train``."""
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

    def pairs(self, label_column: str | None = None, *, listed: bool = False) -> PairRows:
        """Return the rows in which somebody has said something of a pair.

        With ``listed``, a table of two columns lists pairs that are the same.
        """
        lowered = {name.lower(): name for name in reversed(self.columns)}
        named = next((pair for pair in _PAIR_COLUMNS if set(pair) <= lowered.keys()), None)
        ids = [lowered[name] for name in named] if named else self.columns[:2]
        labeller = lowered.get("labeller")
        if len(ids) == 2 and listed and label_column is None and len(self.columns) == 2:
            return PairRows(self, (ids[0], ids[1]), None, labeller, 0)
        usual = (lowered[name] for name in _LABEL_COLUMNS if name in lowered and lowered[name] not in ids)
        column = label_column or next(usual, None)
        if len(ids) < 2 or column is None or column in ids:
            raise InputError(
                f"{self.name} has the columns {', '.join(self.columns)}, but labels need two ids and a label: "
                f"id1,id2,label; name another column of labels with {option('--label-column')}"
            )
        self._check_column(column, option("--label-column"))
        answered = [row for row in range(len(self)) if (self.cell(row, column) or "").strip()]
        return PairRows(self._with(answered), (ids[0], ids[1]), column, labeller, len(self) - len(answered))

    def _with(self, rows: Sequence[int]) -> Self:
        return replace(self, rows=[self.rows[row] for row in rows], lines=[self.lines[row] for row in rows])

    def cell(self, row: int, column: str) -> str | None:
        """Return a cell; None where it is empty."""
        return self.rows[row].get(column)

    def positions(
        self, columns: Sequence[str], place: Mapping[str, int], *, ignore_unknown: bool
    ) -> list[npt.NDArray[np.int64]]:
        """Return the rows whose ids are all known, and the positions of each column's ids."""
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


class RowLabel(NamedTuple):
    """What a row says of its pair."""

    #: ``same``, ``different`` or ``unsure``.
    said: str
    #: The number that says so; 1 and 0 for words, nan for ``unsure``.
    level: float


class PairRows(NamedTuple):
    """The rows of a table in which somebody has said something of a pair."""

    table: LabelTable
    ids: tuple[str, str]
    #: The column of the labels; None where each row says ``same``.
    column: str | None
    #: The column that says who judged, if there is one.
    labeller: str | None
    #: Further rows, with an empty label: nobody has judged these pairs.
    unanswered: int

    def answer(self, row: int, positive: float | None = None) -> RowLabel:
        """Return what a row says.

        Numbers at or above ``positive`` say ``same``; without it 1 and 0 are the only numbers that are answers.
        """
        if self.column is None:
            return RowLabel(SAME, 1.0)
        text = (self.table.cell(row, self.column) or "").strip()
        said = _WORDS.get(text.lower())
        if said is not None:
            return RowLabel(said, math.nan if said == UNSURE else float(said == SAME))
        try:
            level = float(text)
        except ValueError:
            level = math.nan
        if not math.isfinite(level) or (positive is None and level not in (0, 1)):
            raise InputError(
                f"{self.table.where(row)}: {self.column} {text!r} is no answer; write 1 for same, 0 for different, "
                "? for unsure, or leave it empty"
            )
        return RowLabel(SAME if level >= (1 if positive is None else positive) else DIFFERENT, level)


def places_of(names: Sequence[Any]) -> dict[str, int]:
    """Return where the document of each id is, by the id as text; of two equal ones the first."""
    place: dict[str, int] = {}
    for position, name in enumerate(names):
        place.setdefault(str(name), position)
    return place


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
