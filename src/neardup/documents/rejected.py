"""Broken records: they are counted, a few are shown, and all are written to a quarantine file if one is named.

What is no document by its kind, such as an image in a crawl, is not broken: it is only counted.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from neardup.documents.inputs import IN_MEMORY
from neardup.documents.output import OutputFile
from neardup.documents.records import RawRecord, Reason, RecordFault, Source, name_of_row
from neardup.errors import BrokenRecord, InputError, option

_EXAMPLES = 5
#: Different things that are counted as skipped; more of them are counted together.
_MAX_KINDS = 100
_OTHERS = "others"
#: What ids with a number are counted as.
RENUMBERED = "repeated id, which got a number (~2)"


@dataclass(slots=True)
class Rejected:
    """The number of rejected records by reason, and the first few of them."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of rejected records."""
        return self.counts.total()

    def __len__(self) -> int:
        return self.total

    def add(self, place: str, reason: str, detail: str = "", count: int = 1) -> None:
        """Count records of one place."""
        self.counts[reason] += count
        if len(self.examples) < _EXAMPLES:
            self.examples.append(f"{place}: {reason}{f' ({detail})' if detail else ''}")


@dataclass(frozen=True, slots=True)
class TornFile:
    """A file that could not be read in full: its name, the number of rows read, and the fault, or the first one."""

    file: str
    rows_read: int
    reason: str
    detail: str = ""

    def __str__(self) -> str:
        if self.reason == Reason.NO_DOCUMENT:
            return f"{self.file} holds no document"
        if self.reason == Reason.NOTHING_USABLE:
            return f"{self.file} has no usable record ({self.detail})"
        rows = "1 row was read" if self.rows_read == 1 else f"{self.rows_read:,} rows were read"
        return f"{self.file} is torn ({self.reason}{f', {self.detail}' if self.detail else ''}): {rows} of it"

    def way_out(self) -> str:
        """Return what to do, as the end of a sentence."""
        accept = option("accept what was read with --allow-torn", "say allow_torn=True")
        if self.reason == Reason.NOTHING_USABLE:
            return f"check the file, and of a table the {option('--text-column')}, or {accept}"
        if self.reason == Reason.OPEN_QUOTE:
            quoting = option("--quoting none", "quoting='none'")
            return f"mend its quotes, read quotes as characters with {quoting}, or {accept}"
        return f"{'leave it out' if self.reason == Reason.NO_DOCUMENT else 'get the whole file'}, or {accept}"


def place_of_row(source: Source, row: int) -> str:
    """Return where a row is, for messages: the records of a file count from 1, rows in memory from 0 as in Python."""
    if len(source.files) > 1:
        return source.files[row].name
    name = source.file.name
    return f"{name}, row {row}" if name == IN_MEMORY else f"{name}, record {row + 1}"


class Rejections:
    """Counts broken records in order, and writes them to a file of JSON lines if one is named.

    With ``strict`` the first one raises BrokenRecord.
    """

    def __init__(self, path: str | None, strict: bool) -> None:
        self.rejected = Rejected()
        self._strict = strict
        self._file = None if path is None else OutputFile(path)
        self._deferred: list[RecordFault] = []

    def add(self, source: Source, fault: RecordFault) -> None:
        """Count a record, whose row counts from the source's first, and write it now or in ``finish``."""
        name = place = name_of_row(source, fault.row)
        if fault.line is not None:
            place = f"{name}, line {fault.line}"
        elif fault.count == 1:
            place = place_of_row(source, fault.row)
        example = f"{place}: {fault.reason}{f' ({fault.detail})' if fault.detail else ''}"
        if self._strict:
            raise BrokenRecord(f"{example}; without {option('--strict')} it is rejected and the rest goes on")
        self.rejected.counts[fault.reason] += max(fault.count, 1)
        if len(self.rejected.examples) < _EXAMPLES:
            self.rejected.examples.append(example)
        if self._file is None:
            return
        if self._deferred or (fault.record is None and fault.count == 1):
            self._deferred.append(fault)
        else:
            self._write(name, fault, fault.record)

    def finish(self, source: Source, rows: int) -> None:
        """Write the deferred records of a source, fetching the bytes of those without."""
        if not self._deferred:
            return
        mask = np.zeros(rows, dtype=bool)
        mask[[fault.row for fault in self._deferred if fault.record is None and fault.count == 1]] = True
        raws = _readable_records(source.records(mask))
        for fault in self._deferred:
            record = fault.record
            if record is None and fault.count == 1:
                raw = next(raws, None)
                record = None if raw is None else raw.record
            self._write(name_of_row(source, fault.row), fault, record)
        self._deferred = []

    def reject(self, source: Source, mask: np.ndarray, reason: str) -> None:
        """Count and write rows of a source, under a mask, that were good when they were read."""
        # Records that are only counted need not be fetched.
        raws = source.records(mask) if self._file is not None or self._strict else iter(())
        for row in np.flatnonzero(mask).tolist():
            raw = next(raws, None)
            line, record = (None, None) if raw is None else (raw.line, raw.record)
            self.add(source, RecordFault(row, reason, 1, line, record=record))

    def _write(self, name: str, fault: RecordFault, record: bytes | None) -> None:
        if self._file is None:
            return
        entry: dict[str, object] = {"file": name}
        if fault.line is not None:
            entry["line"] = fault.line
        elif fault.count:
            entry["row"] = fault.row
        if fault.count > 1:
            entry["rows"] = fault.count
        entry["reason"] = fault.reason
        if fault.detail:
            entry["detail"] = fault.detail
        if record is not None:
            try:
                entry["record"] = record.decode()
            except UnicodeDecodeError:
                entry["record_base64"] = base64.b64encode(record).decode()
        self._file.write(json.dumps(entry, ensure_ascii=False).encode(errors="replace") + b"\n")

    def close(self, *, commit: bool) -> None:
        """Put the quarantine file in its place, or remove it."""
        if self._file is not None:
            if commit:
                self._file.commit()
            else:
                self._file.discard()
            self._file = None


def _readable_records(raws: Iterator[RawRecord]) -> Iterator[RawRecord]:
    """Yield records up to the first that cannot be read; later entries are written without their records."""
    try:
        yield from raws
    except InputError:
        return


class Skipped(Counter[str]):
    """The numbers of things that are no documents, by what they are."""

    def add(self, what: str, number: int = 1) -> None:
        """Count things; beyond a number of different ones, they are counted together."""
        name = " ".join(what.split())[:60]
        self[name if name in self or len(self) < _MAX_KINDS else _OTHERS] += number

    def __str__(self) -> str:
        return ", ".join(f"{name}: {number:,}" for name, number in sorted(self.items()))


class RepeatedIds:
    """Gives ids that occur again a number, in one pass: the second ``a`` becomes ``a~2``, the third ``a~3``.

    One mail in five lists has one Message-ID, and a page that was fetched twice has one address. Whether they are
    duplicates is for their texts to say.
    """

    def __init__(self) -> None:
        self.count = 0
        self._times: dict[str, int] = {}

    def numbered(self, ids: pa.Array | None) -> pa.Array | None:
        """Return ids as distinct ones."""
        if ids is None or not pa.types.is_large_string(ids.type):
            return ids
        before = self.count
        distinct = [self._distinct(key) for key in ids.to_pylist()]
        return ids if self.count == before else pa.array(distinct, pa.large_string())

    def _distinct(self, key: str) -> str:
        times = self._times.get(key, 0) + 1
        self._times[key] = times
        if times == 1:
            return key
        self.count += 1
        while (name := f"{key}~{times}") in self._times:
            times += 1
        self._times[key] = times
        self._times[name] = 1
        return name
