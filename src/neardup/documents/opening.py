"""Found files -> sources: each with the reader its content asks for."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from neardup.documents.delimited import delimited_source
from neardup.documents.discover import STDIN, Found
from neardup.documents.formats import KNOWN_SUFFIXES, Format, codec_of_bytes, format_of_name, kind_of_bytes
from neardup.documents.jsonlines import json_source
from neardup.documents.parquet import UnreadableFile, columnar_source
from neardup.documents.parts import CUT_SHORT, UNREADABLE_FILE, Broken, Part, Raw, Source, Wanted
from neardup.documents.streams import Span, head_of
from neardup.documents.textfiles import TextFiles
from neardup.errors import InputError


def open_sources(found: list[Found], spool: str) -> list[Source]:
    """Open every file; text files that follow each other become one source.

    Raises
    ------
    InputError
        For a format nothing here reads, or a damaged file that is the only input.
    """
    sources: list[Source] = []
    texts: list[Found] = []
    for file, form in zip(_with_folders(found), map(_format_of, found), strict=True):
        if form.kind == "text":
            texts.append(file)
            continue
        if texts:
            sources.append(TextFiles(texts))
            texts = []
        sources.append(_open(file, form, spool, alone=len(found) == 1))
    if texts:
        sources.append(TextFiles(texts))
    return sources


def open_again(found: Sequence[Found], spool: str, span: Span | None = None) -> Source:
    """Open the files of one source that were opened before, in another process; a damaged one is set aside as then.

    Parameters
    ----------
    found : sequence of Found
        A file, or some text files.
    spool : str
        A folder for what is decompressed.
    span : (int, int), optional
        A part of the file, as its source's ``cuts`` gave it.
    """
    form = _format_of(found[0])
    return TextFiles(list(found)) if form.kind == "text" else _open(found[0], form, spool, alone=False, span=span)


def _with_folders(found: list[Found]) -> list[Found]:
    """Keep the ids of text files apart when they come from several folders."""
    if len({file.folder for file in found if file.folder}) < 2:
        return found
    return [replace(file, relative=file.name if file.folder else "") for file in found]


def _format_of(found: Found) -> Format:
    """Format by the first bytes, and where they do not tell by the name."""
    named = None if found.name == STDIN else format_of_name(found.name)
    if named is not None and named.kind == "text" and (found.folder or named.codec is None):
        # A text may begin with anything; only a file of tables that lost its suffix is told from it.
        head = head_of(found, None, 8) if not found.folder else b""
        if kind_of_bytes(head, "text") == "text" and codec_of_bytes(head) is None:
            return named
    codec = codec_of_bytes(head_of(found, None, 8))
    kind = kind_of_bytes(head_of(found, codec), None if named is None else named.kind)
    if kind is None:
        if found.name == STDIN and not found.size:
            return Format("jsonl", None)
        raise InputError(f"{found.name} is of no known format: give {KNOWN_SUFFIXES}, the tables also as .gz or .zst")
    return Format(kind, codec)


def _open(found: Found, form: Format, spool: str, *, alone: bool, span: Span | None = None) -> Source:
    if form.kind == "jsonl":
        return json_source(found, form.codec, span)
    if form.kind == "csv":
        return delimited_source(found, form.codec)
    try:
        return columnar_source(found, form.kind, form.codec, spool, span)
    except UnreadableFile as error:
        if alone:
            raise InputError(f"{found.name} is damaged and shows no row ({error}); get or write it again") from None
        return _Damaged(found, str(error))


class _Damaged:
    """A file that shows no row; it is set aside as one."""

    def __init__(self, found: Found, detail: str) -> None:
        self.found = found
        self._detail = detail

    def columns(self) -> dict[str, pa.DataType]:
        """Give no column: none can be seen."""
        return {}

    def parts(self, wanted: Wanted) -> Generator[Part, None, None]:
        """One part without rows."""
        del wanted
        reason = CUT_SHORT if "ompressed" in self._detail else UNREADABLE_FILE
        broken = [Broken(0, reason, 0, detail=self._detail)]
        yield Part(0, pa.array([], pa.large_binary()), broken=broken, consumed=self.found.size)

    def schema(self, keep: np.ndarray) -> pa.Schema:
        """No column."""
        del keep
        return pa.schema([])

    def tables(self, keep: np.ndarray, schema: pa.Schema) -> Iterator[pa.Table]:
        """No row."""
        del keep, schema
        return iter(())

    def records(self, keep: np.ndarray) -> Iterator[Raw]:
        """No row."""
        del keep
        return iter(())
