"""What makes a corpus: of files, or of data in memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from neardup.documents.columnar import ColumnarSource, TableColumns, text_bytes
from neardup.documents.columns import choose_columns
from neardup.documents.corpus import Corpus
from neardup.documents.discover import Found, discover, one_line
from neardup.documents.opening import open_sources
from neardup.documents.output import check_quarantine
from neardup.documents.parts import Source
from neardup.documents.tables import table_of
from neardup.errors import InputError, OutputError
from neardup.wholefile import Unfinished

_IN_MEMORY = "the data in memory"


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
    spool = _spool()
    try:
        notes: list[str] = []
        found = discover(inputs, notes, spool.path)
        sources = open_sources(found, spool.path)
        wanted = choose_columns(sources, text_column, id_column, order_column, max_document)
    except BaseException:
        spool.discard()
        raise
    names, size = [os.fspath(name) for name in inputs], sum(file.size for file in found)
    return Corpus(sources, wanted, size, inputs=names, strict=strict, quarantine=quarantine, notes=notes, spool=spool)


def _spool() -> Unfinished:
    """Make the folder for what must lie in a file to be read."""
    try:
        return Unfinished.temporary()
    except OSError as error:
        raise OutputError(
            f"no temporary folder can be made ({one_line(error)}); set TMPDIR to a folder that may be written to"
        ) from None


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
    sources: list[Source] = [ColumnarSource(found, TableColumns(table, wanted.text), "slice")]
    return Corpus(sources, wanted, text_bytes(table, wanted.text), strict=strict, quarantine=quarantine)
