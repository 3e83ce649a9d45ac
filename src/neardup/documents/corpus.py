"""A corpus: texts for pass one, whole records for pass two, and the raw row number between them."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Self

import numpy as np
import pyarrow as pa

from neardup.documents.ahead import ahead
from neardup.documents.copying import CopyReport, copy_kept, kept_schema, promised
from neardup.documents.origins import origins
from neardup.documents.output import check_output
from neardup.documents.parts import Broken, Source, Wanted
from neardup.documents.quarantine import Quarantine, SetAside
from neardup.documents.sift import Batch, sift, sized
from neardup.documents.textfiles import TextFiles
from neardup.errors import InputError
from neardup.wholefile import Unfinished


class Corpus:
    """Documents of one or more inputs, made by `open_corpus` or `corpus_of`.

    Attributes
    ----------
    total_bytes : int
        Bytes on disk of all inputs; of the texts, for data in memory.
    text_column : str
        Column of the texts.
    id_column, order_column : str or None
        Columns of the ids and of the keep order.
    notes : list of str
        Choices made while opening that the user may want to know of.
    raw_rows : int
        Number of raw rows, broken ones too; known when `scan` has ended, 0 before.
    pages : int
        How many of the files are web pages by their names.
    set_aside : SetAside
        What was set aside: ``counts`` by reason, and the first ``examples``.
    sources : list of Source
        The opened inputs.
    wanted : Wanted
        The columns that a scan reads.
    """

    def __init__(
        self,
        sources: list[Source],
        wanted: Wanted,
        total_bytes: int,
        *,
        inputs: Sequence[str] = (),
        strict: bool = False,
        quarantine: str | None = None,
        notes: Sequence[str] = (),
        spool: Unfinished | None = None,
    ) -> None:
        self.total_bytes = total_bytes
        self.text_column = wanted.text
        self.id_column, self.order_column = wanted.id, wanted.order
        self.notes, self.raw_rows = list(notes), 0
        self.pages = sum(source.pages for source in sources if isinstance(source, TextFiles))
        self.sources = sources
        self.wanted, self._inputs, self._strict = wanted, list(inputs), strict
        self._quarantine_path, self._quarantine = quarantine, Quarantine(None, strict)
        self._bounds = [0]
        # Runs at the latest when the corpus is forgotten: a result that nobody closed leaves no files behind.
        self._clean = None if spool is None else weakref.finalize(self, spool.discard)

    @property
    def inputs(self) -> list[str]:
        """What was opened, as it was named; nothing for data in memory."""
        return list(self._inputs)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of all inputs."""
        return list(dict.fromkeys(name for source in self.sources for name in source.columns()))

    @property
    def set_aside(self) -> SetAside:
        """What was set aside so far."""
        return self._quarantine.set_aside

    def scan(self) -> Iterator[Batch]:
        """Pass one: the good documents in batches; broken records are set aside on the way.

        Raises
        ------
        BrokenRecord
            Under strict, at the first broken record.
        """
        self._begin()
        yield from ahead(sized(self._sifted()))
        self.raw_rows = self._bounds[-1]

    def _begin(self) -> None:
        self._quarantine.close(commit=False)
        self._quarantine = Quarantine(self._quarantine_path, self._strict)
        self._bounds, self.raw_rows = [0], 0

    def _sifted(self) -> Iterator[Batch]:
        for source in self.sources:
            first, row = self._bounds[-1], self._bounds[-1]
            with closing(source.parts(self.wanted)) as parts:
                for part in parts:
                    batch, broken = sift(part, self.wanted, row)
                    for fault in broken:
                        placed = replace(fault, row=fault.row + row - first)
                        self._quarantine.add(_name(source, placed.row), placed)
                    row += part.rows
                    yield batch
            self._quarantine.finish(source, _names(source), row - first)
            self._bounds.append(row)

    def read_elsewhere(self, tallies: Iterable[tuple[int, Sequence[Broken]]]) -> None:
        """Take over what a scan in other processes found of each source: its rows, and what is broken, by row there."""
        self._begin()
        for source, (rows, broken) in zip(self.sources, tallies, strict=True):
            for fault in broken:
                self._quarantine.add(_name(source, fault.row), fault)
            self._quarantine.finish(source, _names(source), rows)
            self._bounds.append(self._bounds[-1] + rows)
        self.raw_rows = self._bounds[-1]

    def set_aside_rows(self, rows: Sequence[int] | np.ndarray, reason: str) -> None:
        """Set aside rows that the caller rejects after the scan, such as repeated ids.

        Parameters
        ----------
        rows : sequence of int
            Raw rows.
        reason : str
            A short stable phrase.

        Raises
        ------
        BrokenRecord
            Under strict, naming the first.
        """
        chosen = self._mask_of(rows)
        for source, mask in self._masked(chosen):
            if mask.any():
                found = source.records(mask) if self._quarantine_path or self._strict else None
                self._quarantine.reject(source, np.flatnonzero(mask), reason, found, _names(source))

    def copy(
        self,
        keep: np.ndarray,
        output: str,
        *,
        force: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> CopyReport:
        """Pass two: write the kept raw records, every column and their order untouched.

        Parameters
        ----------
        keep : np.ndarray
            A bool for each raw row.
        output : str
            A table file by its suffix, ``-`` for standard output, or a folder where all inputs are text
            files. JSON lines to JSON lines, and delimited text to the same, copy the bytes as they are.
        force : bool
            Whether an existing file may be replaced.
        progress : callable, optional
            Told the number of rows written since it was last told.
        """
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != (self.raw_rows,):
            raise ValueError(f"keep must be a bool for each of the {self.raw_rows} raw rows")
        check_output(output, self.inputs, force)
        self._refuse_if_changed()
        return copy_kept(self._masked(keep), output, self.wanted.text, progress)

    def take(self, rows: Sequence[int] | np.ndarray) -> pa.Table:
        """Return raw rows with all columns of the corpus, in the order asked for; a row without one has null there.

        Parameters
        ----------
        rows : sequence of int
            Raw rows, each as often as it is wanted; text files give the columns id and text.
        """
        asked = np.asarray(rows, dtype=np.int64)
        mask = self._mask_of(asked)
        self._refuse_if_changed()
        masked = self._masked(mask)
        schema = kept_schema(masked, self.text_column)
        tables = [table for source, part in masked for table in source.tables(part, schema)]
        joined = pa.concat_tables(tables) if tables else schema.empty_table()
        if joined.num_rows != np.count_nonzero(mask):
            raise InputError("a row that was set aside fits no table: take only rows that the scan gave")
        for field in promised(self.sources, self.text_column):
            if field.name not in joined.column_names:
                joined = joined.append_column(field, pa.nulls(joined.num_rows, field.type))
        place = np.cumsum(mask) - 1
        return joined.take(pa.array(place[asked]))

    def sources_of(self, rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return what raw rows were read from: a place for each among names, and the names (``documents.origins``)."""
        return origins(self.sources, self._bounds, rows)

    def _mask_of(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        asked = np.asarray(rows, dtype=np.int64)
        if asked.size and (int(asked.min()) < 0 or int(asked.max()) >= self.raw_rows):
            raise IndexError(f"raw rows go from 0 to {self.raw_rows - 1}")
        mask = np.zeros(self.raw_rows, dtype=bool)
        mask[asked] = True
        return mask

    def _masked(self, mask: np.ndarray) -> list[tuple[Source, np.ndarray]]:
        return [
            (source, mask[start:stop])
            for source, (start, stop) in zip(self.sources, pairwise(self._bounds), strict=True)
        ]

    def _refuse_if_changed(self) -> None:
        for source in self.sources:
            for found in source.files if isinstance(source, TextFiles) else [source.found]:
                if found.filesystem is not None:
                    found.refuse_if_changed()

    def close(self, *, commit: bool = True) -> None:
        """Put the quarantine file in its place (or drop it) and remove temporary files."""
        try:
            self._quarantine.close(commit=commit)
        finally:
            if self._clean is not None:
                self._clean()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(commit=kind is None)


def _names(source: Source) -> list[str] | None:
    return [found.name for found in source.files] if isinstance(source, TextFiles) else None


def _name(source: Source, row: int) -> str:
    return source.files[row].name if isinstance(source, TextFiles) else source.found.name
