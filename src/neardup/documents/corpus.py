"""A corpus: texts for pass one, whole records for pass two, and the raw row number between them."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pyarrow as pa

from neardup.documents.ahead import ahead
from neardup.documents.columnar import ColumnarSource, TableColumns, text_bytes
from neardup.documents.columns import choose_columns
from neardup.documents.copying import CopyReport, copy_kept, kept_schema
from neardup.documents.discover import Found, discover
from neardup.documents.opening import open_sources
from neardup.documents.output import check_output, check_quarantine
from neardup.documents.parts import Source, Wanted
from neardup.documents.quarantine import Quarantine, SetAside
from neardup.documents.sift import Batch, sift, sized
from neardup.documents.tables import table_of
from neardup.documents.textfiles import TextFiles
from neardup.errors import InputError

_IN_MEMORY = "the data in memory"


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
        spool: str | None = None,
    ) -> None:
        self.total_bytes = total_bytes
        self.text_column = wanted.text
        self.id_column = wanted.id
        self.order_column = wanted.order
        self.notes = list(notes)
        self.raw_rows = 0
        self.pages = sum(source.pages for source in sources if isinstance(source, TextFiles))
        self._sources = sources
        self._wanted = wanted
        self._inputs = list(inputs)
        self._strict = strict
        self._quarantine_path = quarantine
        self._quarantine = Quarantine(None, strict)
        self._bounds = [0]
        # Runs at the latest when the corpus is forgotten: a result that nobody closed leaves no files behind.
        self._clean = None if spool is None else weakref.finalize(self, shutil.rmtree, spool, True)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of all inputs."""
        return list(dict.fromkeys(name for source in self._sources for name in source.columns()))

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
        self._quarantine.close(commit=False)
        self._quarantine = Quarantine(self._quarantine_path, self._strict)
        self._bounds = [0]
        self.raw_rows = 0
        yield from ahead(sized(self._sifted()))
        self.raw_rows = self._bounds[-1]

    def _sifted(self) -> Iterator[Batch]:
        for source in self._sources:
            first, row = self._bounds[-1], self._bounds[-1]
            with closing(source.parts(self._wanted)) as parts:
                for part in parts:
                    batch, broken = sift(part, self._wanted, row)
                    for fault in broken:
                        placed = replace(fault, row=fault.row + row - first)
                        self._quarantine.add(_name(source, placed.row), placed)
                    row += part.rows
                    yield batch
            self._quarantine.finish(source, _names(source), row - first)
            self._bounds.append(row)

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
        check_output(output, self._inputs, force)
        self._refuse_if_changed()
        return copy_kept(self._masked(keep), output, self._wanted.text, progress)

    def take(self, rows: Sequence[int] | np.ndarray) -> pa.Table:
        """Return raw rows with all columns, in the order asked for.

        Parameters
        ----------
        rows : sequence of int
            Raw rows, each as often as it is wanted; text files give the columns id and text.
        """
        asked = np.asarray(rows, dtype=np.int64)
        mask = self._mask_of(asked)
        self._refuse_if_changed()
        masked = self._masked(mask)
        schema = kept_schema(masked)
        tables = [table for source, part in masked for table in source.tables(part, schema)]
        joined = pa.concat_tables(tables) if tables else schema.empty_table()
        if joined.num_rows != np.count_nonzero(mask):
            raise InputError("a row that was set aside fits no table: take only rows that the scan gave")
        place = np.cumsum(mask) - 1
        return joined.take(pa.array(place[asked]))

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
            for source, (start, stop) in zip(self._sources, pairwise(self._bounds), strict=True)
        ]

    def _refuse_if_changed(self) -> None:
        for source in self._sources:
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


def open_corpus(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    order_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    max_document: int | None = None,
) -> Corpus:
    """Open files, folders, globs, URIs or standard input as one corpus.

    Parameters
    ----------
    inputs : sequence of str or path
        In the order in which the documents count. A folder stands for the data files in it, by name, or
        where there are none for its text files.
    text_column : str, optional
        Column of the texts; found by its name or as the only column of strings when not given.
    id_column : str, optional
        Column of the ids; found by its name when not given; the empty string means that there is none.
    order_column : str, optional
        Column to hand over for the keep order.
    strict : bool
        Raise BrokenRecord at the first broken record instead of setting it aside.
    quarantine : str, optional
        JSON lines file for what is set aside; it appears when the corpus is closed.
    max_document : int, optional
        Largest text in bytes; larger ones are set aside. None sets no limit.

    Raises
    ------
    InputError
        For what is missing, unreadable, of unknown format or without a text column.
    """
    if isinstance(inputs, str | os.PathLike):
        inputs = [inputs]
    if quarantine is not None:
        check_quarantine(quarantine, inputs)
    spool = tempfile.mkdtemp(prefix="neardup-")
    try:
        notes: list[str] = []
        found = discover(inputs, notes, spool)
        sources = open_sources(found, spool)
        wanted = choose_columns(sources, text_column, id_column, order_column, max_document)
    except BaseException:
        shutil.rmtree(spool, ignore_errors=True)
        raise
    names, size = [os.fspath(name) for name in inputs], sum(file.size for file in found)
    return Corpus(sources, wanted, size, inputs=names, strict=strict, quarantine=quarantine, notes=notes, spool=spool)


def corpus_of(
    data: Any,
    *,
    text_column: str | None = None,
    id_column: str | None = None,
    order_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    max_document: int | None = None,
) -> Corpus:
    """Make a corpus of data in memory; the options are those of `open_corpus`.

    Parameters
    ----------
    data : object
        Texts, or columns in any form that Arrow takes: see `neardup.documents.tables.table_of`.
    """
    table = table_of(data)
    if quarantine is not None:
        check_quarantine(quarantine, ())
    found = Found(None, "", _IN_MEMORY, 0, None)
    whole: list[Source] = [ColumnarSource(found, TableColumns(table), "slice")]
    if not table.num_columns:
        raise InputError("the data has no columns: give texts or a table with a column of texts")
    wanted = choose_columns(whole, text_column, id_column, order_column, max_document)
    size = text_bytes(table, wanted.text)
    sources: list[Source] = [ColumnarSource(found, TableColumns(table, wanted.text), "slice")]
    return Corpus(sources, wanted, size, strict=strict, quarantine=quarantine)
