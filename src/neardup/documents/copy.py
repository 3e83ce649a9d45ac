"""The kept records -> the output: verbatim where the format stays, else through one schema."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neardup.documents.columnar import READ_FAULTS, ColumnarSource, ParquetColumns
from neardup.documents.delimited import Delimited
from neardup.documents.inputs import KIND_OF_SUFFIX, Found, readable, suffixes
from neardup.documents.jsonlines import JsonLines
from neardup.documents.lines import LineSource
from neardup.documents.output import OutputFile, Writer, names_table, writable
from neardup.documents.records import Source, unified
from neardup.documents.streams import ahead
from neardup.documents.textfiles import TextFiles, name_of
from neardup.errors import OutputError
from neardup.files import put_at

Masked = tuple[Source, np.ndarray]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was written.

    Parameters
    ----------
    rows : int
        Records.
    bytes : int
        Bytes of them, before any .gz or .zst compression.
    """

    rows: int
    bytes: int


def copy_kept(masked: Sequence[Masked], output: str, text: str, progress: Callable[[int], None] | None) -> CopyReport:
    """Write the kept rows of all sources.

    Parameters
    ----------
    masked : sequence of (Source, mask)
        The sources in order, each with the mask over its own rows.
    output : str
        A table file by its suffix, ``-``, or a folder where all inputs are text files.
    text : str
        The text column.
    progress : callable, optional
        Told the number of rows written since it was last told.
    """
    if not names_table(output):
        return _copy_files(masked, output, progress)
    lines = _verbatim([source for source, _ in masked], output)
    if lines is not None:
        return _copy_lines(lines, [mask for _, mask in masked], output, progress)
    return _copy_tables(masked, output, text, progress)


def promised(sources: Sequence[Source], text: str) -> pa.Schema:
    """Give the columns that the inputs show before any row is read, the texts among them even where all are empty."""
    kinds: dict[str, pa.DataType] = {}
    for source in sources:
        for name, kind in source.columns().items():
            # Of an object whose keys nobody has seen no format can make a column.
            kinds.setdefault(name, pa.null() if kind == pa.struct([]) else kind)
    kinds.setdefault(text, pa.large_string())
    return pa.schema(list(kinds.items()))


def kept_schema(masked: Sequence[Masked], text: str) -> pa.Schema:
    """Give the schema that holds the kept rows of all sources; of no row, the columns that the inputs show."""
    wanted = [(source, mask) for source, mask in masked if mask.any()]
    if not wanted:
        return promised([source for source, _ in masked], text)
    names = ", ".join(dict.fromkeys(source.found.name for source, _ in wanted[:3]))
    return unified([source.schema(mask) for source, mask in wanted], names)


def _verbatim(sources: Sequence[Source], output: str) -> list[LineSource] | None:
    """Return the sources when their lines can be copied as they are."""
    lines = [source for source in sources if isinstance(source, LineSource)]
    if len(lines) < len(sources) or not lines:
        return None
    kind = None if output == "-" else KIND_OF_SUFFIX[suffixes(output)[0]]
    if kind in (None, "jsonl") and all(isinstance(source.dialect, JsonLines) for source in lines):
        return lines
    dialects = [source.dialect for source in lines if isinstance(source.dialect, Delimited)]
    if kind not in (None, "csv") or len(dialects) < len(lines):
        return None
    first = dialects[0]
    alike = all((d.names, d.delimiter) == (first.names, first.delimiter) for d in dialects)
    tabbed = output != "-" and suffixes(output)[0] == ".tsv"
    return lines if alike and (output == "-" or tabbed == (first.delimiter == "\t")) else None


def _copy_lines(
    sources: list[LineSource],
    masks: list[np.ndarray],
    output: str,
    progress: Callable[[int], None] | None,
) -> CopyReport:
    rows = 0
    with OutputFile(output) as file:
        first = sources[0].dialect
        if isinstance(first, Delimited):
            file.write(first.header)
        for source, mask in zip(sources, masks, strict=True):
            for count, data in ahead(source.lines(mask)):
                file.write(data)
                rows += count
                if progress is not None:
                    progress(count)
        size = file.tell()
    return CopyReport(rows, size)


def _copy_tables(
    masked: Sequence[Masked], output: str, text: str, progress: Callable[[int], None] | None
) -> CopyReport:
    schema = kept_schema(masked, text)
    with Writer(output, schema, text, _codec([source for source, _ in masked])) as writer:
        for source, mask in masked:
            for table in ahead(source.tables(mask, schema)):
                writer.write(table)
                if progress is not None:
                    progress(table.num_rows)
    return CopyReport(writer.rows, writer.size)


def _codec(sources: Sequence[Source]) -> str:
    """Compression of the first Parquet input."""
    for source in sources:
        if isinstance(source, ColumnarSource) and isinstance(source.data, ParquetColumns):
            try:
                return source.data.codec
            except READ_FAULTS:
                break
    return "zstd"


def _copy_files(masked: Sequence[Masked], output: str, progress: Callable[[int], None] | None) -> CopyReport:
    kept: dict[str, Found] = {}
    for source, mask in masked:
        if not isinstance(source, TextFiles):
            raise OutputError(
                f"{output} has no suffix that names a format, and a folder is written only from text files: "
                "use .jsonl, .parquet or .csv"
            )
        for row in np.flatnonzero(mask).tolist():
            found = source.files[row]
            place = _place_of(found)
            if place in kept:
                raise OutputError(
                    f"{output} cannot hold both {kept[place].name} and {found.name} as {place}: write "
                    ".jsonl, or read the folders one by one"
                )
            kept[place] = found
    size = 0
    with writable(output), put_at(os.path.realpath(output), folder=True) as made:
        for place, found in kept.items():
            size += _copy_file(found, os.path.join(made.path, place))
            if progress is not None:
                progress(1)
    return CopyReport(len(kept), size)


def _place_of(found: Found) -> str:
    steps = (name_of(found) if found.folder else os.path.basename(found.name)).split("/")
    return "/".join(step for step in steps if step not in ("", ".", ".."))


def _copy_file(found: Found, target: str) -> int:
    with readable(found.name), found.filesystem.open_input_file(found.path) as file:
        content: bytes = file.read()
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as copy:
        copy.write(content)
    return len(content)


def origins(sources: Sequence[Source], bounds: Sequence[int], rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return what raw rows were read from.

    Parameters
    ----------
    sources : sequence of Source
        Of a corpus.
    bounds : sequence of int
        The first raw row of each source, and where the last one ends.
    rows : int64[n]
        Raw rows.

    Returns
    -------
    int64[n], tuple of str
        A place among the names for each row, and the names: of files as they are given, of text files those of their
        folders; without those that have none of the rows.
    """
    named = [_names(source) for source in sources]
    names = list(dict.fromkeys(name for found in named for name in found))
    codes = {name: code for code, name in enumerate(names)}
    places = np.searchsorted(np.asarray(bounds[1:], np.int64), rows, side="right")
    found = np.zeros(len(rows), np.int64)
    for number, source in enumerate(named):
        here = np.flatnonzero(places == number)
        own = np.array([codes[name] for name in source], np.int64)
        found[here] = own[rows[here] - bounds[number]] if isinstance(sources[number], TextFiles) else own[0]
    used, dense = np.unique(found, return_inverse=True)
    return dense.astype(np.int64), tuple(names[code] for code in used.tolist())


def _names(source: Source) -> list[str]:
    """Return the folder of each text file, or the name of the one file that a source is."""
    if not isinstance(source, TextFiles):
        return [source.found.name]
    return [os.path.dirname(found.name) or os.curdir for found in source.files]
