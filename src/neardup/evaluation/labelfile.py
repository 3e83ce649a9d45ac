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

from neardup.documents.formats import delimiter_of, suffixes
from neardup.documents.tables import table_of
from neardup.errors import InputError, option

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
        from neardup.labelling.store import export_rows

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
