"""Found files -> sources: each with the reader its content asks for."""

from __future__ import annotations

import os
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from itertools import pairwise
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.columnar import ColumnarSource, TableColumns, UnreadableFile, columnar_source, text_bytes
from neardup.documents.copy import CopyReport, copy_kept, kept_schema, origins, places_of, promised
from neardup.documents.delimited import delimited_source
from neardup.documents.inputs import (
    KNOWN_SUFFIXES,
    STDIN,
    Format,
    Found,
    codec_of_bytes,
    discover,
    format_of_name,
    kind_of_bytes,
    one_line,
)
from neardup.documents.jsonlines import json_source
from neardup.documents.output import check_output, check_quarantine, names_folder
from neardup.documents.records import (
    CUT_SHORT,
    TORN,
    UNREADABLE_FILE,
    Batch,
    Broken,
    Names,
    Source,
    Wanted,
    as_bytes,
    as_strings,
    join_order,
    joined_texts,
    name_of_row,
    readable_texts,
    repeated_ids,
    single,
    sized,
    valid_records,
)
from neardup.documents.rejected import Rejected, Rejections, Torn
from neardup.documents.streams import Span, ahead, head_of
from neardup.documents.tables import TextColumn, choose_columns, require, table_of
from neardup.documents.textfiles import TextFiles
from neardup.errors import InputError, OutputError, RecipeError, TornInput, command_runs, option, shown
from neardup.files import Unfinished


def open_sources(found: list[Found], spool: str) -> list[Source]:
    """Open every file, or raise InputError; text files that follow each other become one source."""
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
    """Open the files of one source again, or a span of it, in another process; a damaged one is rejected as before."""
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
        reason = CUT_SHORT if "ompressed" in str(error) else UNREADABLE_FILE
        nothing = TableColumns(pa.table({}))
        return ColumnarSource(found, nothing, "row group", Broken(0, reason, 0, detail=str(error)))


class Corpus:
    """Documents of one or more inputs, made by `open_corpus` or `corpus_of`.

    Attributes
    ----------
    total_bytes : int
        Bytes on disk of all inputs; of the texts, for data in memory.
    text_column : str
        Column of the texts, the first if there are several (``wanted.texts``).
    id_column, order_column : str or None
        Columns of the ids and of the keep order.
    notes : list of str
        Choices made while opening that the user may want to know of.
    raw_rows : int
        Number of raw rows, broken ones too; known when `scan` has ended, 0 before.
    pages : int
        How many of the files are web pages by their names.
    spooled_bytes : int
        Bytes on disk of what can be read once only, such as standard input, or out of order, and was copied first.
    torn : list of Torn
        The files of which not all could be read, known when `scan` has ended.
    reference : Corpus or None
        Documents that those of this corpus are compared with, see ``stand_against``.
    left_out : int
        How many more documents there are that whoever made the corpus knows to match nothing that is asked.
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
        allow_torn: bool = False,
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
        self._rejected_path, self._rejections = quarantine, Rejections(None, strict)
        self.allow_torn, self.torn = allow_torn, list[Torn]()
        self.reference: Corpus | None = None
        self.left_out = 0
        self._bounds = [0]
        # Runs at the latest when the corpus is forgotten: a result that nobody closed leaves no files behind.
        self.spooled_bytes = 0 if spool is None else sum(file.stat().st_size for file in os.scandir(spool.path))
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
    def promised_rows(self) -> int:
        """How many raw rows the inputs say that they have, before any is read; most forms do not say."""
        own = sum(
            group.rows for source in self.sources if isinstance(source, ColumnarSource) for group in source.data.groups
        )
        return own + (0 if self.reference is None else self.reference.promised_rows)

    @property
    def rejected(self) -> Rejected:
        """What was rejected so far."""
        return self._rejections.rejected

    def stand_against(self, reference: Corpus) -> None:
        """Take documents to compare with: scans give them behind the own ones, with rows that count on.

        They are no part of what is rejected, copied or counted here, and are closed with this corpus. A file on both
        sides is refused.
        """
        mine = {_identity(found): found.name for source in self.sources for found in source.files}
        for source in reference.sources:
            for found in source.files:
                same = mine.get(_identity(found))
                if same is not None:
                    raise InputError(
                        f"{found.name} is read as input and as reference, where every document would match itself: "
                        f"leave it out of {option('--against')}, or of the input"
                    )
        self.reference = reference
        self.total_bytes += reference.total_bytes

    def scan(self) -> Iterator[Batch]:
        """Pass one: the good documents in batches; broken records are rejected on the way, or raised under strict."""
        self._begin()
        yield from ahead(sized(self._valid()))
        self._end()
        if self.reference is not None:
            for batch in self.reference.scan():
                yield replace(batch, rows=batch.rows + self.raw_rows)

    def scan_again(self, order: str | None = None, *, alone: bool = False) -> Iterator[Batch]:
        """Read the good documents once more, after `scan`; broken records are not noted again.

        ``order`` names another column to hand over in place of the order column; ``alone`` leaves out the reference.
        """
        wanted = self.wanted if order is None else replace(self.wanted, order=order)

        def batches() -> Iterator[Batch]:
            row = 0
            for source in self.sources:
                with closing(source.chunks(wanted)) as chunks:
                    for chunk in chunks:
                        yield valid_records(chunk, wanted, row, name_of_ids(source))[0]
                        row += chunk.rows

        yield from ahead(sized(batches()))
        if self.reference is not None and not alone:
            for batch in self.reference.scan_again(order):
                yield replace(batch, rows=batch.rows + self.raw_rows)

    def values(self, column: str, *, alone: bool = False) -> pa.Array:
        """Return a column of all good documents as strings, null for empty ones; this reads the inputs again."""
        parts = [batch.order for batch in self.scan_again(column, alone=alone)]
        found = join_order(parts, column).cast(pa.large_string())
        return pc.if_else(pc.equal(found, ""), None, found)

    def require(self, column: str, what: str) -> None:
        """Refuse, before anything is read, a column that an input does not have or that holds no single values."""
        require(
            [source for source in self.sources if source.columns()],
            column,
            what,
            lambda kind: not pa.types.is_nested(kind),
            "its values must be single ones",
        )

    def _begin(self) -> None:
        self._rejections.close(commit=False)
        self._rejections = Rejections(self._rejected_path, self._strict)
        self._bounds, self.raw_rows, self.torn = [0], 0, []

    def _end(self) -> None:
        self.raw_rows = self._bounds[-1]
        if self.torn and not self.allow_torn and not command_runs():
            more = f", and {len(self.torn) - 1:,} more files are" if len(self.torn) > 1 else ""
            message = f"{self.torn[0]}{more}; get the whole file, or say allow_torn=True"
            warnings.warn(message, TornInput, stacklevel=2)

    @property
    def torn_summary(self) -> dict[str, Any]:
        """What a summary says of torn files: nothing where there is none."""
        return {"torn": [asdict(torn) for torn in self.all_torn]} if self.all_torn else {}

    @property
    def all_torn(self) -> list[Torn]:
        """``torn``, and those of the reference."""
        return self.torn + ([] if self.reference is None else self.reference.torn)

    def _valid(self) -> Iterator[Batch]:
        for source in self.sources:
            first, row, damage = self._bounds[-1], self._bounds[-1], list[Broken]()
            with closing(source.chunks(self.wanted)) as chunks:
                for chunk in chunks:
                    batch, broken = valid_records(chunk, self.wanted, row, name_of_ids(source))
                    placed = [replace(fault, row=fault.row + row - first) for fault in broken]
                    for fault in placed:
                        self._rejections.add(source, fault)
                    damage += [fault for fault in placed if fault.reason in TORN]
                    row += chunk.rows
                    yield batch
            self._finish(source, row - first, damage)

    def _finish(self, source: Source, rows: int, damage: Iterable[Broken]) -> None:
        """Close the count of a source, whose rows are known now, and whose damage is."""
        self._rejections.finish(source, rows)
        self._bounds.append(self._bounds[-1] + rows)
        lost: dict[str, int] = {}
        reasons: dict[str, str] = {}
        for fault in damage:
            name = name_of_row(source, fault.row)
            reasons.setdefault(name, fault.reason)
            lost[name] = lost.get(name, 0) + fault.count
        for name, reason in reasons.items():
            # A text file is one row, and gone.
            read = 0 if isinstance(source, TextFiles) else rows - lost[name]
            self.torn.append(Torn(name, read, reason))

    def read_elsewhere(self, tallies: Iterable[tuple[int, Sequence[Broken]]]) -> None:
        """Take over what a scan in other processes found of each source: its rows, and what is broken, by row there."""
        self._begin()
        for source, (rows, broken) in zip(self.sources, tallies, strict=True):
            for fault in broken:
                self._rejections.add(source, fault)
            self._finish(source, rows, [fault for fault in broken if fault.reason in TORN])
        self._end()

    def refuse_repeated(self, names: Names) -> None:
        """Refuse ids that several documents have: a verdict that names one would mean any of them."""
        if self.reference is not None:
            rows = names.rows[names.own :] - self.raw_rows
            ids = None if self.reference.id_column is None else names.reference_names
            self.reference.refuse_repeated(Names(rows, ids))
        found = np.zeros(0, np.int64) if names.ids is None else repeated_ids(names.ids)
        if len(found):
            later = int(found[0])
            same = names.one(later)
            raise self.repeated(len(found), same, names.rows[[names.position(same), later]].tolist())

    def repeated(self, documents: int, same: Any, rows: Sequence[int]) -> InputError:
        """Return what to raise where so many documents have an id that an earlier one has; some rows have the same."""
        rows_instead = option("--ids rows", "ids='rows'" if self._inputs else "id_column=''")
        ways = [f"{rows_instead} numbers the rows instead"]
        if len(self.sources) > 1 and not self.wanted.by_file:
            ways.append(f"""{option("--ids file+id", "ids='file+id'")} puts the name of its file before each id""")
        have = "1 document has" if documents == 1 else f"{documents:,} documents have"
        places = " and ".join(map(self._place, rows))
        return InputError(
            f"{have} an id in column {self.id_column!r} that an earlier one has, as {shown(same)} in {places}: "
            f"{', and '.join(ways)}"
        )

    def _place(self, row: int) -> str:
        source = bisect_right(self._bounds, row) - 1
        own = row - self._bounds[source]
        return f"{name_of_row(self.sources[source], own)}, row {own}" if self._inputs else f"row {own}"

    def reject(self, rows: Sequence[int] | np.ndarray, reason: str) -> None:
        """Reject, or raise under strict, rows that only the caller can judge, such as those without a time."""
        chosen = self._mask_of(rows)
        for source, mask in self._masked(chosen):
            if mask.any():
                self._rejections.reject(source, mask, reason)

    def copy(
        self,
        keep: np.ndarray,
        output: str,
        *,
        force: bool = False,
        progress: Callable[[int], None] | None = None,
        added: pa.Table | None = None,
        threads: int = 1,
    ) -> CopyReport:
        """Pass two: write the raw rows under the mask, every column and their order untouched.

        JSON lines to JSON lines, and delimited text to the same, copy the bytes as they are. ``added`` has a row of
        more columns for each kept row; ``progress`` is told the number of rows written since it was last told;
        ``threads`` encode Parquet.
        """
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != (self.raw_rows,):
            raise ValueError(f"keep must be a bool for each of the {self.raw_rows} raw rows")
        check_output(output, self.inputs, force)
        self._refuse_if_changed()
        if added is not None:
            for name in added.column_names:
                if name in self.columns:
                    raise OutputError(
                        f"the input has a column {name!r} already, which would be added: choose other names with "
                        f"{option('--annotate-prefix', 'prefix=')}"
                    )
        return copy_kept(self._masked(keep), output, self.wanted.text, progress, added, threads)

    def check_folder(self, output: str) -> None:
        """Refuse, before the work, a folder that cannot hold an output for each input."""
        if names_folder(output):
            places_of(self.sources, output)

    def take(self, rows: Sequence[int] | np.ndarray) -> pa.Table:
        """Return raw rows with all columns of the corpus, in the order asked for; a row without one has null there.

        Where several columns make the texts, the first one holds what they make. Text files give the columns id and
        text.
        """
        asked = np.asarray(rows, dtype=np.int64)
        if self.reference is not None and bool((asked >= self.raw_rows).any()):
            return self._taken_of_both(asked, self.reference)
        mask = self._mask_of(asked)
        self._refuse_if_changed()
        masked = self._masked(mask)
        schema = kept_schema(masked, self.text_column)
        tables = [table for source, own in masked for table in source.tables(own, schema)]
        joined = pa.concat_tables(tables) if tables else schema.empty_table()
        if joined.num_rows != np.count_nonzero(mask):
            raise InputError("a row that was rejected fits no table: take only rows that the scan gave")
        for field in promised(self.sources, self.text_column):
            if field.name not in joined.column_names:
                joined = joined.append_column(field, pa.nulls(joined.num_rows, field.type))
        if self.wanted.more:
            texts = readable_texts(joined_texts([as_bytes(single(joined[name])) for name in self.wanted.texts]))
            joined = joined.set_column(joined.column_names.index(self.text_column), self.text_column, texts)
        place = np.cumsum(mask) - 1
        return joined.take(pa.array(place[asked]))

    def _taken_of_both(self, asked: np.ndarray, reference: Corpus) -> pa.Table:
        """Return rows of both sides; columns whose types fit no common one are left out."""
        own = asked < self.raw_rows
        tables = [self.take(asked[own]), reference.take(asked[~own] - self.raw_rows)]
        if reference.text_column != self.text_column:
            others = [name for name in tables[1].column_names if name != self.text_column]
            tables[1] = (
                tables[1]
                .select(others)
                .rename_columns([self.text_column if name == reference.text_column else name for name in others])
            )
        for side, table in enumerate(tables):
            texts = pa.chunked_array([as_strings(as_bytes(single(table[self.text_column])))])
            at = table.column_names.index(self.text_column)
            tables[side] = table.set_column(at, self.text_column, texts)
        for name in set(tables[0].column_names) & set(tables[1].column_names):
            schemas = [pa.schema([table.schema.field(name).with_nullable(True)]) for table in tables]
            try:
                pa.unify_schemas(schemas, promote_options="permissive")
            except pa.ArrowException:
                tables = [table.drop_columns([name]) for table in tables]
        joined = pa.concat_tables(tables, promote_options="permissive")
        place = np.empty(len(asked), np.int64)
        place[np.concatenate([np.flatnonzero(own), np.flatnonzero(~own)])] = np.arange(len(asked))
        return joined.take(pa.array(place))

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
            for found in source.files:
                if found.filesystem is not None:
                    found.refuse_if_changed()

    def close(self, *, commit: bool = True) -> None:
        """Put the quarantine file in its place (or drop it) and remove temporary files."""
        try:
            self._rejections.close(commit=commit)
        finally:
            if self._clean is not None:
                self._clean()
            if self.reference is not None:
                self.reference.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(commit=kind is None)


def _identity(found: Found) -> tuple[str, str]:
    """Return what tells a file from others; of data in memory something that nothing else has."""
    if found.name == STDIN:
        return "", STDIN
    if found.filesystem is None:
        return "memory", str(id(found))
    return found.filesystem.type_name, os.path.realpath(found.path)


def name_of_ids(source: Source) -> str:
    """Return what makes the ids of a source its own; empty for text files, whose ids are their names."""
    return "" if isinstance(source, TextFiles) else source.found.name


#: What documents are called: by their column of ids, by row numbers, or by their file and the column of ids.
Ids = Literal["column", "rows", "file+id"]
_IN_MEMORY = "the data in memory"


def open_corpus(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    text_column: TextColumn = None,
    id_column: str | None = None,
    order_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    max_document: int | None = None,
    ids: Ids = "column",
    allow_torn: bool = False,
) -> Corpus:
    """Open files, folders, globs, URIs or standard input as one corpus.

    Parameters
    ----------
    inputs : sequence of str or path
        In the order in which the documents count. A folder stands for the data files in it, by name, or
        where there are none for its text files.
    text_column : str or sequence of str, optional
        Column of the texts; found by its name or as the only column of strings when not given. Several columns, as
        names or joined by commas, make one text, line by line.
    id_column : str, optional
        Column of the ids; found by its name when not given; the empty string means that there is none.
    order_column : str, optional
        Column to hand over for the keep order.
    strict : bool
        Raise BrokenRecord at the first broken record instead of rejecting it.
    quarantine : str, optional
        JSON lines file for what is rejected; it appears when the corpus is closed.
    max_document : int, optional
        Largest text in bytes; larger ones are rejected. None sets no limit.
    ids : "column", "rows" or "file+id"
        What documents are called: by the column of ids, by their row numbers whatever the columns are, or by the name
        of their file and the column of ids, as ``shard-1.jsonl:17``, for shards that each count from 0.
    allow_torn : bool
        Give no warning where a file is torn: what could be read of it counts anyway, and ``torn`` says how much.

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
        wanted = _wanted(sources, ids, text_column, id_column, order_column, max_document)
    except BaseException:
        spool.discard()
        raise
    names, size = [os.fspath(name) for name in inputs], sum(file.size for file in found)
    return Corpus(
        sources,
        wanted,
        size,
        inputs=names,
        strict=strict,
        quarantine=quarantine,
        allow_torn=allow_torn,
        notes=notes,
        spool=spool,
    )


def _wanted(
    sources: Sequence[Source],
    ids: Ids,
    text_column: TextColumn,
    id_column: str | None,
    order_column: str | None,
    max_document: int | None,
) -> Wanted:
    if ids not in get_args(Ids):
        raise RecipeError(f"{option('--ids')} {shown(ids)} is not known: give {', '.join(get_args(Ids))}")
    if ids == "rows":
        if id_column:
            both = f"{option('--ids')} rows and {option('--id-column')} {id_column}"
            raise RecipeError(f"{both} contradict each other: give one of the two")
        id_column = ""
    wanted = choose_columns(sources, text_column, id_column, order_column, max_document)
    if ids == "file+id" and wanted.id is None:
        raise InputError(
            f"{option('--ids')} file+id needs a column of ids, and none is found: name it with "
            f"{option('--id-column')}, or number the rows with {option('--ids')} rows"
        )
    return replace(wanted, by_file=ids == "file+id")


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
    text_column: TextColumn = None,
    id_column: str | None = None,
    order_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    max_document: int | None = None,
    ids: Ids = "column",
) -> Corpus:
    """Make a corpus of data in memory; the options are those of `open_corpus`, save that no file names ids.

    Parameters
    ----------
    data : object
        Texts, or columns in any form that Arrow takes: see `neardup.documents.tables.table_of`.
    """
    if ids == "file+id":
        raise RecipeError("ids 'file+id' is for files, and this data is in memory: give ids='rows' to number the rows")
    table = table_of(data)
    if quarantine is not None:
        check_quarantine(quarantine, ())
    if not table.num_columns:
        raise InputError("the data has no columns: give texts or a table with a column of texts")
    columns = TableColumns(table)
    sources: list[Source] = [ColumnarSource(Found(None, "", _IN_MEMORY, 0, None), columns, "slice")]
    wanted = _wanted(sources, ids, text_column, id_column, order_column, max_document)
    columns.cut(wanted.texts)
    return Corpus(sources, wanted, text_bytes(table, wanted.texts), strict=strict, quarantine=quarantine)
