"""Where broken records go: counted, a few shown, all of them written to a file if one is named."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from neardup.documents.output import OutputFile
from neardup.documents.records import Broken, Raw, Source, name_of_row
from neardup.errors import BrokenRecord, InputError, option

_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class Example:
    """One record that was rejected."""

    file: str
    line: int | None
    row: int | None
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        place = f", line {self.line}" if self.line is not None else f", row {self.row}"
        if self.line is None and self.row is None:
            place = ""
        return f"{self.file}{place}: {self.reason}{f' ({self.detail})' if self.detail else ''}"


@dataclass(slots=True)
class Rejected:
    """Counts of the records that were rejected by reason, and the first few of them."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[Example] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Number of records rejected."""
        return self.counts.total()

    def __len__(self) -> int:
        return self.total


@dataclass(frozen=True, slots=True)
class Torn:
    """A file that could not be read in full: its name, how many rows were read, and what is wrong with it."""

    file: str
    rows_read: int
    reason: str

    def __str__(self) -> str:
        rows = "1 row was read" if self.rows_read == 1 else f"{self.rows_read:,} rows were read"
        return f"{self.file} is torn ({self.reason}): {rows} of it"


class Rejections:
    """Takes broken records in order: counts them, and writes them to a file of JSON lines where one is named.

    Under strict the first is raised as BrokenRecord instead.
    """

    def __init__(self, path: str | None, strict: bool) -> None:
        self.rejected = Rejected()
        self._strict = strict
        self._file = None if path is None else OutputFile(path)
        self._deferred: list[Broken] = []

    def add(self, source: Source, broken: Broken) -> None:
        """Count a record, whose row counts from the source's first, and write it or remember to."""
        name = name_of_row(source, broken.row)
        single = broken.count == 1 and broken.line is None
        example = Example(name, broken.line, broken.row if single else None, broken.reason, broken.detail)
        if self._strict:
            raise BrokenRecord(f"{example}; without {option('--strict')} it is rejected and the rest goes on")
        self.rejected.counts[broken.reason] += max(broken.count, 1)
        if len(self.rejected.examples) < _EXAMPLES:
            self.rejected.examples.append(example)
        if self._file is None:
            return
        if self._deferred or (broken.record is None and broken.count == 1):
            self._deferred.append(broken)
        else:
            self._write(name, broken, broken.record)

    def finish(self, source: Source, rows: int) -> None:
        """Write what was remembered of a source, fetching the records it was read without."""
        if not self._deferred:
            return
        mask = np.zeros(rows, dtype=bool)
        mask[[broken.row for broken in self._deferred if broken.record is None and broken.count == 1]] = True
        raws = _readable(source.records(mask))
        for broken in self._deferred:
            record = broken.record
            if record is None and broken.count == 1:
                raw = next(raws, None)
                record = None if raw is None else raw.record
            self._write(name_of_row(source, broken.row), broken, record)
        self._deferred = []

    def reject(self, source: Source, mask: np.ndarray, reason: str) -> None:
        """Count and write rows of a source, under a mask, that were good when they were read."""
        # Nobody asks for their places where they are only counted.
        raws = source.records(mask) if self._file is not None or self._strict else iter(())
        for row in np.flatnonzero(mask).tolist():
            raw = next(raws, None)
            line, record = (None, None) if raw is None else (raw.line, raw.record)
            self.add(source, Broken(row, reason, 1, line, record=record))

    def _write(self, name: str, broken: Broken, record: bytes | None) -> None:
        if self._file is None:
            return
        entry: dict[str, object] = {"file": name}
        if broken.line is not None:
            entry["line"] = broken.line
        elif broken.count:
            entry["row"] = broken.row
        if broken.count > 1:
            entry["rows"] = broken.count
        entry["reason"] = broken.reason
        if broken.detail:
            entry["detail"] = broken.detail
        if record is not None:
            try:
                entry["record"] = record.decode()
            except UnicodeDecodeError:
                entry["record_base64"] = base64.b64encode(record).decode()
        self._file.write(json.dumps(entry, ensure_ascii=False).encode(errors="replace") + b"\n")

    def close(self, *, commit: bool) -> None:
        """Put the file in its place, or remove it."""
        if self._file is not None:
            if commit:
                self._file.commit()
            else:
                self._file.discard()
            self._file = None


def _readable(raws: Iterator[Raw]) -> Iterator[Raw]:
    """Stop at what cannot be read: the entry is then written without its record."""
    try:
        yield from raws
    except InputError:
        return
