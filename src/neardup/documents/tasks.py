"""Reading in other processes: the division of inputs into tasks, and the broken records that tasks report."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from neardup.documents.columnar import ColumnarSource
from neardup.documents.corpus import reopen_source, split_chunks
from neardup.documents.inputs import InputFile
from neardup.documents.lines import LineSource
from neardup.documents.records import Batch, ReadOptions, RecordFault, Source, merged_batches
from neardup.documents.rejected import Skipped
from neardup.documents.streams import BLOCK, Span
from neardup.documents.textfiles import TextFiles

#: Text files per task.
_FILES = 2000
#: Inputs are cut into at most this many tasks, unless there are more files.
_MAX_TASKS = 4096


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an input that is read at once: files of the source with this number, or a span of one file."""

    source: int
    files: Sequence[InputFile]
    span: Span | None = None


def tasks_of(sources: Sequence[Source], size: int | None = None) -> list[Task]:
    """Return the tasks of inputs, about 16 MiB each, in the order of their rows; they depend on the inputs alone.

    JSON lines are cut at line feeds and Parquet files between row groups. Files that are compressed as a whole,
    delimited text, where a line feed may be inside quotes, and Arrow files, which have no table of their rows, are a
    task each.
    """
    if size is None:
        total = sum(source.file.size for source in sources if not isinstance(source, TextFiles))
        size = BLOCK * max(-(-total // (_MAX_TASKS * BLOCK)), 1)
    tasks: list[Task] = []
    for number, source in enumerate(sources):
        if isinstance(source, TextFiles):
            files = source.files
            tasks += [Task(number, files[first : first + _FILES]) for first in range(0, len(files), _FILES)]
            continue
        spans = source.cuts(size) if isinstance(source, LineSource | ColumnarSource) else []
        whole = Task(number, [source.file])
        tasks += [replace(whole, span=span) for span in spans] or [whole]
    return tasks


class TaskReader:
    """Reads a task; the attributes are final when ``batches`` has ended.

    Attributes
    ----------
    rows : int
        The number of rows, broken ones included.
    lines : int
        The number of line feeds, for files of lines.
    faults : list of RecordFault
        The broken records, with rows and lines of the task.
    skipped : Skipped
        The numbers of things that are no documents.
    """

    def __init__(self, task: Task, options: ReadOptions, spool: str) -> None:
        self.rows, self.lines, self.faults = 0, 0, list[RecordFault]()
        self.skipped = Skipped()
        self._task, self._options, self._spool = task, options, spool

    def batches(self) -> Iterator[Batch]:
        """Yield the documents, with rows of the task."""
        yield from merged_batches(self._valid())

    def _valid(self) -> Iterator[Batch]:
        source = reopen_source(self._task.files, self._spool, self._task.span)
        for batch, faults, rows in split_chunks(source, self._options, 0):
            self.faults += faults
            self.rows += rows
            yield batch
        if isinstance(source, LineSource):
            self.lines = source.line_feeds
        self.skipped.update(getattr(source, "skipped", {}))


def shift_fault(fault: RecordFault, rows: int, lines: int) -> RecordFault:
    """Return a broken record of a task with row and line of the input, in which rows and lines precede the task."""
    return replace(fault, row=fault.row + rows, line=None if fault.line is None else fault.line + lines)


def fault_to_json(fault: RecordFault, *, record: bool) -> dict[str, Any]:
    """Return a broken record ready for JSON, with or without its bytes."""
    entry = asdict(fault)
    entry["record"] = base64.b64encode(fault.record).decode() if record and fault.record is not None else None
    return entry


def fault_from_json(entry: dict[str, Any]) -> RecordFault:
    """Return the broken record of ``fault_to_json``."""
    record = entry["record"]
    return RecordFault(**(entry | {"record": None if record is None else base64.b64decode(record)}))
