"""Writing the kept records: verbatim if the format stays the same, else through one schema."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from neardup.documents.columnar import READ_FAULTS, ColumnarSource, ParquetColumns
from neardup.documents.delimited import DelimitedDialect
from neardup.documents.inputs import (
    INPUT_KIND_OF_SUFFIX,
    KIND_OF_SUFFIX,
    InputFile,
    input_errors,
    strip_query,
    suffixes,
)
from neardup.documents.jsonlines import JsonLines, names_in
from neardup.documents.lines import LineSource
from neardup.documents.output import OutputFile, Writer, folder_at, is_folder_name, output_errors
from neardup.documents.records import Source, unified_schema
from neardup.documents.streams import read_ahead
from neardup.documents.textfiles import TextFiles, id_of
from neardup.errors import OutputError, option

#: A source, and a mask over its rows.
MaskedSource = tuple[Source, np.ndarray]


def copy_kept(
    masked: Sequence[MaskedSource],
    output: str,
    text: str,
    progress: Callable[[int], object],
    added: pa.Table | None = None,
    threads: int = 1,
) -> int:
    """Write the kept rows of all sources to a file, standard output or a folder; return their number.

    ``added`` has further columns, with a row for each kept row. JSON lines get them at their ends and are otherwise
    unchanged.
    """
    if is_folder_name(output):
        return _copy_files(masked, output, text, progress, added, threads)
    lines = _verbatim_sources([source for source, _ in masked], output)
    if lines is not None and (added is None or isinstance(lines[0].dialect, JsonLines)):
        return _copy_lines(lines, [mask for _, mask in masked], output, progress, added)
    schema = kept_schema(masked, text)
    if added is not None:
        refuse_clash(schema.names, added)
    output_schema = pa.schema([*schema, *([] if added is None else added.schema)], schema.metadata)
    with Writer(output, output_schema, text, _codec([source for source, _ in masked]), threads) as writer:
        for source, mask in masked:
            for table in read_ahead(source.tables(mask, schema)):
                if added is not None:
                    rows = added.slice(writer.rows, table.num_rows)
                    for name in rows.column_names:
                        table = table.append_column(rows.schema.field(name), rows[name])
                writer.write(table)
                progress(table.num_rows)
    return writer.rows


def refuse_clash(names: Iterable[str], added: pa.Table) -> None:
    """Raise OutputError if a column that would be added is there already."""
    name = next((name for name in names if name in added.column_names), None)
    if name is not None:
        raise OutputError(
            f"the input already has a column {name!r}, which would be added: choose other names with "
            f"{option('--annotate-prefix', 'prefix=')}"
        )


def declared_schema(sources: Sequence[Source], text: str) -> pa.Schema:
    """Return the columns that the inputs show before any row is read; of inputs without any, that of texts."""
    kinds: dict[str, pa.DataType] = {}
    for source in sources:
        for name, kind in source.columns().items():
            kinds.setdefault(name, _storable(kind))
    return pa.schema(list(kinds.items()) or [(text, pa.large_string())])


def _storable(kind: pa.DataType) -> pa.DataType:
    """Return a type with nulls in place of objects whose keys are unknown, which no format can store."""
    if pa.types.is_list(kind):
        return pa.list_(_storable(kind.value_type))
    if not pa.types.is_struct(kind):
        return kind
    return pa.struct([(field.name, _storable(field.type)) for field in kind]) if kind.num_fields else pa.null()


def kept_schema(masked: Sequence[MaskedSource], text: str) -> pa.Schema:
    """Return a schema for the kept rows of all sources; without any, the columns that the inputs show."""
    nonempty = [(source, mask) for source, mask in masked if mask.any()]
    if not nonempty:
        return declared_schema([source for source, _ in masked], text)
    names = ", ".join(dict.fromkeys(source.file.name for source, _ in nonempty[:3]))
    return unified_schema([source.schema(mask) for source, mask in nonempty], names)


def _verbatim_sources(sources: Sequence[Source], output: str) -> list[LineSource] | None:
    """Return the sources if their lines can be copied unchanged, else None."""
    lines = [source for source in sources if isinstance(source, LineSource)]
    if len(lines) < len(sources) or not lines:
        return None
    kind = None if output == "-" else KIND_OF_SUFFIX[suffixes(output)[0]]
    if kind in (None, "jsonl") and all(isinstance(source.dialect, JsonLines) for source in lines):
        return lines
    dialects = [source.dialect for source in lines if isinstance(source.dialect, DelimitedDialect)]
    has_further_columns = any(source.partitions for source in lines)
    if kind not in (None, "csv") or len(dialects) < len(lines) or has_further_columns:
        return None
    first = dialects[0]
    are_alike = all((d.names, d.delimiter) == (first.names, first.delimiter) for d in dialects)
    is_tsv = output != "-" and suffixes(output)[0] == ".tsv"
    return lines if are_alike and (output == "-" or is_tsv == (first.delimiter == "\t")) else None


def _copy_lines(
    sources: list[LineSource],
    masks: list[np.ndarray],
    output: str,
    progress: Callable[[int], object],
    added: pa.Table | None,
) -> int:
    rows = 0
    with OutputFile(output) as file:
        first = sources[0].dialect
        if isinstance(first, DelimitedDialect):
            file.write(first.header)
        for source, mask in zip(sources, masks, strict=True):
            for count, data in read_ahead(source.lines(mask)):
                file.write(data if added is None else _with_fields(data, added.slice(rows, count)))
                rows += count
                progress(count)
    return rows


def _with_fields(lines: bytes, added: pa.Table) -> bytes:
    """Return lines of JSON objects with further fields at their ends."""
    parts = []
    keys = [json.dumps(name).encode() for name in added.column_names]
    for line, fields in zip(lines.removesuffix(b"\n").split(b"\n"), added.to_pylist(), strict=True):
        # A name may be written with escapes.
        if b"\\u" in line or any(key in line for key in keys):
            refuse_clash(names_in(line), added)
        parts += [line.rstrip()[:-1].rstrip(), b", ", json.dumps(fields, ensure_ascii=False).encode()[1:], b"\n"]
    return b"".join(parts)


def _codec(sources: Sequence[Source]) -> str:
    """Return the compression of the first Parquet input."""
    for source in sources:
        if isinstance(source, ColumnarSource) and isinstance(source.data, ParquetColumns):
            try:
                return source.data.codec
            except READ_FAULTS:
                break
    return "zstd"


def output_places(sources: Sequence[Source], output: str) -> dict[str, InputFile]:
    """Return the paths below an output folder, each with its input.

    Raises ``OutputError`` if the folder cannot hold an output for each input.
    """
    places: dict[str, InputFile] = {}
    for source in sources:
        for file in source.files:
            place = _output_path(file)
            if not isinstance(source, TextFiles):
                if not strip_query(output).endswith("/"):
                    raise OutputError(
                        f"{output} has no suffix that names a format, and a folder is written only from text files: "
                        f"use .jsonl, .parquet or .csv, or {output}/ for one file for each input"
                    )
                if suffixes(place)[0] in INPUT_KIND_OF_SUFFIX.keys() - KIND_OF_SUFFIX.keys():
                    raise OutputError(
                        f"{output} cannot hold {file.name}: WARC files and mailboxes are read and not written, so name "
                        "a file such as kept.jsonl"
                    )
                if file.filesystem is None or is_folder_name(place):
                    raise OutputError(
                        f"{output} cannot hold {file.name}, whose name says no format: name a file such as kept.jsonl"
                    )
            if place in places:
                raise OutputError(
                    f"{output} cannot hold both {places[place].name} and {file.name} as {place}: write "
                    ".jsonl, or read the folders one by one"
                )
            places[place] = file
    return places


def _copy_files(
    masked: Sequence[MaskedSource],
    output: str,
    text: str,
    progress: Callable[[int], object],
    added: pa.Table | None,
    threads: int,
) -> int:
    output_places([source for source, _ in masked], output)
    if added is not None and any(isinstance(source, TextFiles) for source, _ in masked):
        raise OutputError(f"{output} is a folder of texts, which have no columns to add: name a file such as all.jsonl")
    rows = 0
    with output_errors(output), folder_at(output) as folder:
        for source, mask in masked:
            if isinstance(source, TextFiles):
                for file in (source.files[row] for row in np.flatnonzero(mask).tolist()):
                    _copy_file(file, os.path.join(folder, _output_path(file)))
                    rows += 1
                    progress(1)
                continue
            target = os.path.join(folder, _output_path(source.file))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            added_rows = None if added is None else added.slice(rows, int(mask.sum()))
            rows += copy_kept([(source, mask)], target, text, progress, added_rows, threads)
    return rows


def _output_path(file: InputFile) -> str:
    steps = (id_of(file) if file.folder else os.path.basename(file.name)).split("/")
    return "/".join(step for step in steps if step not in ("", ".", ".."))


def _copy_file(file: InputFile, target: str) -> None:
    with input_errors(file.name), file.filesystem.open_input_file(file.path) as stream:
        content: bytes = stream.read()
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with open(target, "xb") as copy:
        copy.write(content)


def origins(sources: Sequence[Source], bounds: Sequence[int], rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the origin of raw rows: for each row an index into a tuple of names, and the tuple.

    A name is that of a file, or for text files that of their folder; only names of some row are included. ``bounds``
    has the first raw row of each source, and the end of the last one.
    """
    source_names = [_origin_names(source) for source in sources]
    names = list(dict.fromkeys(name for file_names in source_names for name in file_names))
    codes = {name: code for code, name in enumerate(names)}
    places = np.searchsorted(np.asarray(bounds[1:], np.int64), rows, side="right")
    row_codes = np.zeros(len(rows), np.int64)
    for number, file_names in enumerate(source_names):
        chosen = np.flatnonzero(places == number)
        file_codes = np.array([codes[name] for name in file_names], np.int64)
        is_file_per_row = isinstance(sources[number], TextFiles)
        row_codes[chosen] = file_codes[rows[chosen] - bounds[number]] if is_file_per_row else file_codes[0]
    used, dense = np.unique(row_codes, return_inverse=True)
    return dense.astype(np.int64), tuple(names[code] for code in used.tolist())


def _origin_names(source: Source) -> list[str]:
    if not isinstance(source, TextFiles):
        return [source.file.name]
    return [os.path.dirname(file.name) or os.curdir for file in source.files]
