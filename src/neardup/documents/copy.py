"""The kept records -> the output: verbatim where the format stays, else through one schema."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from neardup.documents.columnar import READ_FAULTS, ColumnarSource, ParquetColumns
from neardup.documents.delimited import Delimited
from neardup.documents.inputs import KIND_OF_SUFFIX, Found, place_of, readable, suffixes
from neardup.documents.jsonlines import JsonLines
from neardup.documents.lines import LineSource
from neardup.documents.output import OutputFile, Writer, folder_at, names_folder, writable
from neardup.documents.records import Source, unified
from neardup.documents.streams import ahead
from neardup.documents.textfiles import TextFiles, name_of
from neardup.errors import OutputError

Masked = tuple[Source, np.ndarray]


@dataclass(frozen=True, slots=True)
class CopyReport:
    """How many records were written, and their bytes before any .gz or .zst compression."""

    rows: int
    bytes: int


def copy_kept(
    masked: Sequence[Masked],
    output: str,
    text: str,
    progress: Callable[[int], None] | None,
    added: pa.Table | None = None,
    threads: int = 1,
) -> CopyReport:
    """Write the kept rows of all sources to a table file by its suffix, to standard output or to a folder.

    ``added`` holds more columns, with a row for each kept row: lines of JSON get them at their ends and stay as they
    are otherwise.
    """
    if names_folder(output):
        return _copy_files(masked, output, text, progress, added, threads)
    lines = _verbatim([source for source, _ in masked], output)
    if lines is not None and (added is None or isinstance(lines[0].dialect, JsonLines)):
        return _copy_lines(lines, [mask for _, mask in masked], output, progress, added)
    return _copy_tables(masked, output, text, progress, added, threads)


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
    added: pa.Table | None,
) -> CopyReport:
    rows = 0
    with OutputFile(output) as file:
        first = sources[0].dialect
        if isinstance(first, Delimited):
            file.write(first.header)
        for source, mask in zip(sources, masks, strict=True):
            for count, data in ahead(source.lines(mask)):
                file.write(data if added is None else _with_fields(data, added.slice(rows, count)))
                rows += count
                if progress is not None:
                    progress(count)
        size = file.tell()
    return CopyReport(rows, size)


def _with_fields(lines: bytes, added: pa.Table) -> bytes:
    """Return lines of JSON objects with more fields at their ends."""
    parts = []
    for line, fields in zip(lines.splitlines(), added.to_pylist(), strict=True):
        parts += [line.rstrip()[:-1].rstrip(), b", ", json.dumps(fields, ensure_ascii=False).encode()[1:], b"\n"]
    return b"".join(parts)


def _copy_tables(
    masked: Sequence[Masked],
    output: str,
    text: str,
    progress: Callable[[int], None] | None,
    added: pa.Table | None,
    threads: int,
) -> CopyReport:
    schema = kept_schema(masked, text)
    more = [] if added is None else list(added.schema)
    whole, codec = pa.schema([*schema, *more], schema.metadata), _codec([source for source, _ in masked])
    with Writer(output, whole, text, codec, threads) as writer:
        for source, mask in masked:
            for table in ahead(source.tables(mask, schema)):
                if added is not None:
                    own = added.slice(writer.rows, table.num_rows)
                    for name in own.column_names:
                        table = table.append_column(own.schema.field(name), own[name])
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


def places_of(sources: Sequence[Source], output: str) -> dict[str, Found]:
    """Return the places below a folder of what is written there, each with its input; refuse two of one place."""
    taken: dict[str, Found] = {}
    for source in sources:
        for found in source.files:
            place = _place_of(found)
            if not isinstance(source, TextFiles):
                if not place_of(output).endswith("/"):
                    raise OutputError(
                        f"{output} has no suffix that names a format, and a folder is written only from text files: "
                        f"use .jsonl, .parquet or .csv, or {output}/ for one file for each input"
                    )
                if found.filesystem is None or names_folder(place):
                    raise OutputError(
                        f"{output} cannot hold {found.name}, whose name says no format to write: name a file such as "
                        "kept.jsonl"
                    )
            if place in taken:
                raise OutputError(
                    f"{output} cannot hold both {taken[place].name} and {found.name} as {place}: write "
                    ".jsonl, or read the folders one by one"
                )
            taken[place] = found
    return taken


def _copy_files(
    masked: Sequence[Masked],
    output: str,
    text: str,
    progress: Callable[[int], None] | None,
    added: pa.Table | None,
    threads: int,
) -> CopyReport:
    places_of([source for source, _ in masked], output)
    if added is not None and any(isinstance(source, TextFiles) for source, _ in masked):
        raise OutputError(f"{output} is a folder of texts, which have no columns to add: name a file such as all.jsonl")
    rows = size = 0
    with writable(output), folder_at(output) as made:
        for source, mask in masked:
            if isinstance(source, TextFiles):
                for found in (source.files[row] for row in np.flatnonzero(mask).tolist()):
                    size += _copy_file(found, os.path.join(made, _place_of(found)))
                    rows += 1
                    if progress is not None:
                        progress(1)
                continue
            target = os.path.join(made, _place_of(source.found))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            own = None if added is None else added.slice(rows, int(mask.sum()))
            done = copy_kept([(source, mask)], target, text, progress, own, threads)
            rows, size = rows + done.rows, size + done.bytes
    return CopyReport(rows, size)


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
    """Return where raw rows were read from: for each row a place in a list of names, and the names.

    They are the names of files as given, or for text files the names of their folders; only those that some row is
    from. ``bounds`` holds the first raw row of each source, and where the last one ends.
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
