"""Reading in other processes: what is sent there of each input, and what comes back of what was broken."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from neardup.documents.columnar import ColumnarSource
from neardup.documents.corpus import name_of_ids, open_again
from neardup.documents.inputs import Found
from neardup.documents.lines import LineSource
from neardup.documents.records import Batch, Broken, Source, Wanted, sized, valid_records
from neardup.documents.streams import BLOCK, Span
from neardup.documents.textfiles import TextFiles

#: Text files that are read by one task.
_FILES = 2000
#: Inputs are cut into so many tasks at most, save where files or row groups are more.
_TASKS = 4096


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an input, given by its number, that is read in one go: files, or a span of one file."""

    source: int
    files: Sequence[Found]
    span: Span | None = None


def tasks_of(sources: Sequence[Source], size: int | None = None) -> list[Task]:
    """Return how inputs are cut into tasks of some 16 MiB, in the order of their rows: by the inputs alone.

    JSON lines are cut at line feeds and Parquet files between row groups. All that is compressed as a whole, delimited
    text, where a line feed may be inside quotes, and Arrow files, which have no table of their rows, are a task each.
    """
    if size is None:
        total = sum(source.found.size for source in sources if not isinstance(source, TextFiles))
        size = BLOCK * max(-(-total // (_TASKS * BLOCK)), 1)
    found: list[Task] = []
    for number, source in enumerate(sources):
        if isinstance(source, TextFiles):
            files = source.files
            found += [Task(number, files[first : first + _FILES]) for first in range(0, len(files), _FILES)]
            continue
        spans = source.cuts(size) if isinstance(source, LineSource | ColumnarSource) else []
        whole = Task(number, [source.found])
        found += [replace(whole, span=span) for span in spans] or [whole]
    return found


class Reading:
    """The reading of a task; ``batches`` has to be gone through before the rest is known.

    The rest is the number of rows, broken ones too, the line feeds of a file of lines, and what is broken, with rows
    and lines of the task.
    """

    def __init__(self, task: Task, wanted: Wanted, spool: str) -> None:
        self.rows, self.lines, self.broken = 0, 0, list[Broken]()
        self._task, self._wanted, self._spool = task, wanted, spool

    def batches(self) -> Iterator[Batch]:
        """Yield the good documents, with rows of the task."""
        yield from sized(self._valid())

    def _valid(self) -> Iterator[Batch]:
        source = open_again(self._task.files, self._spool, self._task.span)
        with closing(source.chunks(self._wanted)) as chunks:
            for chunk in chunks:
                batch, broken = valid_records(chunk, self._wanted, self.rows, name_of_ids(source))
                self.broken += [replace(fault, row=fault.row + self.rows) for fault in broken]
                self.rows += chunk.rows
                yield batch
        if isinstance(source, LineSource):
            self.lines = source.line_feeds


def placed(broken: Broken, rows: int, lines: int) -> Broken:
    """Return a broken record of a task as one of the input, of which so many rows and lines come before."""
    return replace(broken, row=broken.row + rows, line=None if broken.line is None else broken.line + lines)


def as_json(broken: Broken, *, record: bool) -> dict[str, Any]:
    """Return a broken record ready for JSON, with its bytes only where they are wanted."""
    told = asdict(broken)
    told["record"] = base64.b64encode(broken.record).decode() if record and broken.record is not None else None
    return told


def from_json(told: dict[str, Any]) -> Broken:
    """Return what ``as_json`` wrote."""
    record = told["record"]
    return Broken(**(told | {"record": None if record is None else base64.b64decode(record)}))
