"""Reading in other processes: what is sent there of each input, and what comes back of what was broken."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from neardup.documents.discover import Found
from neardup.documents.opening import open_again
from neardup.documents.parts import Broken, Source, Wanted
from neardup.documents.sift import Batch, sift, sized
from neardup.documents.textfiles import TextFiles

#: Text files that are read by one task.
_FILES = 2000


@dataclass(frozen=True, slots=True)
class Task:
    """A part of an input that is read in one go.

    Attributes
    ----------
    source : int
        Which input it is of.
    first : int
        The row of the input that it begins with.
    files : sequence of Found
        What is read.
    """

    source: int
    first: int
    files: Sequence[Found]


def tasks_of(sources: Sequence[Source]) -> list[Task]:
    """Return how inputs are cut into tasks: a file each, or some text files."""
    found: list[Task] = []
    for number, source in enumerate(sources):
        if isinstance(source, TextFiles):
            files = source.files
            found += [Task(number, first, files[first : first + _FILES]) for first in range(0, len(files), _FILES)]
        else:
            found.append(Task(number, 0, [source.found]))
    return found


class Reading:
    """The reading of a task; ``batches`` has to be gone through before the rest is known.

    Attributes
    ----------
    rows : int
        How many rows there were, broken ones too.
    broken : list of Broken
        What was set aside, with rows of the task.
    """

    def __init__(self, task: Task, wanted: Wanted, spool: str) -> None:
        self.rows, self.broken = 0, list[Broken]()
        self._task, self._wanted, self._spool = task, wanted, spool

    def batches(self) -> Iterator[Batch]:
        """Yield the good documents, with rows of the task."""
        yield from sized(self._sifted())

    def _sifted(self) -> Iterator[Batch]:
        source = open_again(self._task.files, self._spool)
        with closing(source.parts(self._wanted)) as parts:
            for part in parts:
                batch, broken = sift(part, self._wanted, self.rows)
                self.broken += [replace(fault, row=fault.row + self.rows) for fault in broken]
                self.rows += part.rows
                yield batch


def as_json(broken: Broken, *, record: bool) -> dict[str, Any]:
    """Return a broken record ready for JSON, with its bytes only where they are wanted."""
    told = asdict(broken)
    told["record"] = base64.b64encode(broken.record).decode() if record and broken.record is not None else None
    return told


def from_json(told: dict[str, Any]) -> Broken:
    """Return what ``as_json`` wrote."""
    record = told["record"]
    return Broken(**(told | {"record": None if record is None else base64.b64decode(record)}))
