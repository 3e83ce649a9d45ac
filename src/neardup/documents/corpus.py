"""A corpus: the documents of several inputs, each opened with the reader that its content needs."""

from __future__ import annotations

import os
import warnings
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from itertools import groupby, pairwise
from typing import Any, Literal, Self, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.documents.arrays import as_bytes, one_array
from neardup.documents.column_paths import texts_in
from neardup.documents.columnar import ColumnarSource, TableColumns, UnreadableFile, columnar_source
from neardup.documents.compression import codec_of_bytes, foreign_format
from neardup.documents.copy import copy_kept, declared_schema, kept_schema, origins, output_places, refuse_clash
from neardup.documents.delimited import delimited_source
from neardup.documents.inputs import (
    IN_MEMORY,
    STDIN,
    SUFFIX_LIST,
    Format,
    InputFile,
    Quoting,
    discover,
    format_of_name,
    kind_of_bytes,
    one_line,
    stated_partitions,
    suffixes,
)
from neardup.documents.jsonlines import json_source, may_have_records, texts_of_records
from neardup.documents.lines import LineSource
from neardup.documents.output import check_output, check_quarantine, is_folder_name
from neardup.documents.records import (
    TORN,
    Batch,
    Names,
    ReadOptions,
    Reason,
    RecordFault,
    Source,
    as_strings,
    join_order,
    joined_column,
    lengths_of,
    merged_batches,
    name_of_row,
    readable_texts,
    repeated_ids,
    split_chunk,
)
from neardup.documents.rejected import (
    RENUMBERED,
    Rejected,
    Rejections,
    RepeatedIds,
    Skipped,
    TornFile,
    place_of_row,
)
from neardup.documents.streams import Span, read_ahead, read_head
from neardup.documents.tables import OrderColumn, TextColumn, choose_columns, is_single, require_column, table_of
from neardup.documents.textfiles import TextFiles, notes_on
from neardup.errors import InputError, OutputError, RecipeError, TornInput, is_command, option, quoted
from neardup.files import PartialOutput
from neardup.text.encoding import WINDOWS_1252, detect_encoding
from neardup.text.extraction import FailedPages, page_digest

#: Formats of one document per file: a source is a series of files.
_SERIES = frozenset({"text", "mail"})


def open_sources(files: list[InputFile], spool: str, notes: list[str]) -> list[Source]:
    """Open all files, or raise InputError; consecutive files of one text or one mail each become one source."""
    sources: list[Source] = []
    empty: list[str] = []
    forms = ((_format_of(file, notes), file) for file in _distinguish_folders(files))
    for kind, group in groupby(forms, key=lambda pair: pair[0].kind):
        if kind in _SERIES:
            series = [file for _, file in group]
            notes += notes_on(series)
            sources.append(_open_series(kind, series))
        else:
            for form, file in group:
                sources.append(_open(file, form, spool))
                # Of a remote file without a time, the size may be unknown as well.
                if not file.size and file.mtime is not None and not file.is_pipe:
                    empty.append(file.name)
    if empty:
        more = f", and so are {len(empty) - 1:,} more" if len(empty) > 1 else ""
        notes.append(f"{empty[0]} is empty, without any document{more}")
    notes += _notes_on_partitions(sources)
    return sources


def _notes_on_partitions(sources: Sequence[Source]) -> list[str]:
    """Return a note for each column that the name of a folder states and that a file has itself."""
    found: dict[str, str] = {}
    for source in sources:
        if isinstance(source, LineSource | ColumnarSource) and source.columns():
            for name in stated_partitions(source.file.name).keys() - source.partitions.keys():
                found.setdefault(name, source.file.name)
    return [
        f"{found[name]} has a column {name!r}, which is read in place of the value in the name of its folder"
        for name in sorted(found)
    ]


def _open_series(kind: str, files: list[InputFile]) -> TextFiles:
    if kind == "text":
        return TextFiles(files)
    # Few runs read mail, and the standard library's modules for it take a while to load.
    from neardup.documents.mail import MailFiles

    return MailFiles(files)


def reopen_source(files: Sequence[InputFile], spool: str, span: Span | None = None) -> Source:
    """Open the files of one source again, or a span of it, in another process; a damaged one is rejected as before."""
    form = _format_of(files[0], [])
    if form.kind in _SERIES:
        return _open_series(form.kind, list(files))
    return _open(files[0], form, spool, span)


def _distinguish_folders(files: list[InputFile]) -> list[InputFile]:
    """Make the ids of text files from several folders distinct."""
    if len({file.folder for file in files if file.folder}) < 2:
        return files
    return [replace(file, relative=file.name if file.folder else "") for file in files]


def _format_of(file: InputFile, notes: list[str]) -> Format:
    """Return the format that the first bytes show, else the one that the name says; ``notes`` gets what was guessed."""
    if file.is_in_maildir:
        return Format("mail", None)
    named_format = None if file.is_pipe and not suffixes(file.name)[0] else format_of_name(file.name)
    if named_format is not None and named_format.kind == "text" and (file.folder or named_format.codec is None):
        # A text may begin with anything; only a table that has lost its suffix and a mailbox are recognized.
        head = read_head(file, None, 1024) if not file.folder else b""
        if kind_of_bytes(head, "text") == "text" and codec_of_bytes(head) is None:
            return named_format
    codec = codec_of_bytes(read_head(file, None, 16), file.name)
    head = read_head(file, codec)
    if foreign := foreign_format(head, codec, file.name):
        raise InputError(f"{file.name} {foreign}")
    kind = kind_of_bytes(head, None if named_format is None else named_format.kind)
    encoding = detect_encoding(head)[0].upper()[:6] if kind in (None, "jsonl", "csv") else ""
    if encoding in ("UTF-16", "UTF-32"):
        raise InputError(
            f"{file.name} is encoded in {encoding}: convert it to UTF-8, for instance with iconv -f {encoding} -t UTF-8"
        )
    if kind is None:
        if file.is_pipe and not file.size:
            return Format("jsonl", None)
        if file.is_pipe and file.name != STDIN:
            return Format("text", codec)
        raise InputError(f"{file.name} is of no known format: give {SUFFIX_LIST}, the tables also as .gz or .zst")
    if kind == "mbox" and (named_format is None or named_format.kind == "text"):
        notes.append(f"{file.name} begins as a mailbox: each of its mails is a document")
    elif named_format is None and kind in ("csv", "jsonl") and not (kind == "jsonl" and file.is_pipe):
        form = "CSV" if kind == "csv" else "JSON lines"
        notes.append(f"{file.name} is read as {form}: its name says no format, and its first lines are a table")
    return Format(kind, codec)


def _open(file: InputFile, form: Format, spool: str, span: Span | None = None) -> Source:
    if form.kind == "jsonl":
        return json_source(file, form.codec, span)
    if form.kind == "csv":
        return delimited_source(file, form.codec)
    if form.kind == "warc":
        from neardup.documents.warc import warc_source

        return warc_source(file, form.codec)
    if form.kind == "mbox":
        from neardup.documents.mail import mailbox_source

        return mailbox_source(file, form.codec)
    try:
        return columnar_source(file, form.kind, form.codec, spool, span)
    except UnreadableFile as error:
        reason = Reason.DAMAGED_COMPRESSION if "ompressed" in str(error) else Reason.UNREADABLE_FILE
        nothing = TableColumns(pa.table({}))
        return ColumnarSource(file, nothing, "row group", RecordFault(0, reason, 0, detail=str(error)))


class Corpus:
    """Documents of one or more inputs, made by `open_corpus` or `corpus_of`.

    Attributes
    ----------
    inputs : list of str
        The names of the inputs as they were given; empty for data in memory.
    total_bytes : int
        The bytes on disk of all inputs; for data in memory those of the texts.
    text_column : str
        The column of texts, the first if there are several (``read_options.texts``).
    id_column, order_column : str or None
        The columns of the ids and of the keep order.
    notes : list of str
        Choices made while opening that the user may want to know.
    raw_rows : int
        The number of raw rows, broken ones included; 0 until `scan` has ended.
    page_count : int
        The number of files that are web pages by their names.
    page_archives : list of str
        The files that hold pages of a crawl.
    spooled_bytes : int
        The bytes on disk of copies of inputs that can be read only once, such as standard input, or only in order.
    skipped : Skipped
        The numbers of things in WARC files and mail that are no documents, by what they are.
    torn_files : list of TornFile
        The files that could not be read in full; complete when `scan` has ended.
    reference : Corpus or None
        The documents with which those of this corpus are compared, see ``set_reference``.
    failed_pages : Rejected
        The pages whose main content could not be extracted, of the reference as well: all their text is compared. Those
        that ``name_failed_pages`` has found.
    omitted_count : int
        The number of further documents that are known to match nothing, if this corpus was selected from an index.
    known_count : int or None
        The number of documents of an index that were left out because the input has them, too; None if all stay.
    """

    def __init__(
        self,
        sources: list[Source],
        options: ReadOptions,
        total_bytes: int,
        *,
        inputs: Sequence[str] = (),
        strict: bool = False,
        quarantine: str | None = None,
        allow_torn: bool = False,
        notes: Sequence[str] = (),
        spool: PartialOutput | None = None,
    ) -> None:
        self.total_bytes = total_bytes
        self.text_column = options.text
        self.id_column, self.order_column = options.id, options.order
        self.notes, self.raw_rows = list(notes), 0
        self.page_count = sum(source.page_count for source in sources if isinstance(source, TextFiles))
        self.page_archives = [source.file.name for source in sources if getattr(source, "holds_pages", False)]
        self.sources = sources
        self.read_options, self.inputs, self._strict = options, list(inputs), strict
        self.quarantine, self._rejections = quarantine, Rejections(None, strict)
        self.allow_torn, self.torn_files = allow_torn, list[TornFile]()
        self.reference: Corpus | None = None
        self.failed_pages, self._failures, self._named = Rejected(), FailedPages(), 0
        self.omitted_count = 0
        self.skipped = Skipped()
        self.known_count: int | None = None
        self._bounds, self._document_count = [0], 0
        # Runs at the latest when the corpus is collected, so that a result that is not closed leaves no files behind.
        self.spooled_bytes = 0 if spool is None else sum(file.stat().st_size for file in os.scandir(spool.path))
        self._discard_spool = None if spool is None else weakref.finalize(self, spool.discard)

    @property
    def columns(self) -> list[str]:
        """The names of the columns of all inputs."""
        return list(dict.fromkeys(name for source in self.sources for name in source.columns()))

    @property
    def columns_used(self) -> dict[str, str | None]:
        """The columns of texts and ids (None for row numbers), and that of the order, if there is one, by its use."""
        options = self.read_options
        used = {"text": ",".join(self._shown(name, is_text=True) for name in options.texts)}
        columns = used | {"id": self._shown(options.id) if options.id else None}
        return columns | ({options.order_use: self._shown(options.order)} if options.order else {})

    def _shown(self, name: str, *, is_text: bool = False) -> str:
        found = (source.find_column(name) for source in self.sources if source.columns())
        path = next((path for path in found if path is not None), None)
        return name if path is None else str(path.as_text() if is_text else path)

    @property
    def has_columns(self) -> bool:
        """Whether there are columns to choose from, which texts in files of their own have not."""
        return not all(type(source) is TextFiles for source in self.sources)

    @property
    def declared_rows(self) -> int:
        """The number of raw rows that inputs declare before they are read; most formats declare none."""
        rows = sum(
            group.rows for source in self.sources if isinstance(source, ColumnarSource) for group in source.data.groups
        )
        return rows + (0 if self.reference is None else self.reference.declared_rows)

    @property
    def rejected(self) -> Rejected:
        """The records rejected so far."""
        return self._rejections.rejected

    def set_reference(self, reference: Corpus) -> None:
        """Set the documents to compare with: scans yield them after those of the input, with rows that count on.

        They are not rejected, copied or counted here, and are closed with this corpus.

        Raises ``InputError`` if a file is on both sides.
        """
        identities = {_identity(file) for source in self.sources for file in source.files}
        for source in reference.sources:
            for file in source.files:
                if _identity(file) in identities:
                    raise InputError(
                        f"{file.name} is read as input and as reference, where every document would match itself: "
                        f"leave it out of {option('--against')}, or of the input"
                    )
        self.reference = reference
        self.total_bytes += reference.total_bytes

    def scan(self) -> Iterator[Batch]:
        """Pass one: yield the documents in batches; broken records are rejected, or raised with ``strict``."""
        self._begin_scan()
        yield from read_ahead(merged_batches(self._batches()))
        self._end_scan()
        if self.reference is not None:
            for batch in self.reference.scan():
                yield replace(batch, rows=batch.rows + self.raw_rows)

    def rescan(self, order: str | None = None, *, input_only: bool = False) -> Iterator[Batch]:
        """Yield the documents once more, after `scan`; broken records are not counted again.

        ``order`` names another column to yield as the order column; ``input_only`` leaves out the reference.
        """
        options = self.read_options if order is None else replace(self.read_options, order=order)

        def batches() -> Iterator[Batch]:
            row = 0
            repeats = RepeatedIds()
            for source in self.sources:
                for batch, _, rows in split_chunks(source, options, row, repeats):
                    yield batch
                    row += rows

        yield from read_ahead(merged_batches(batches()))
        if self.reference is not None and not input_only:
            for batch in self.reference.rescan(order):
                yield replace(batch, rows=batch.rows + self.raw_rows)

    def values(self, column: str, *, input_only: bool = False) -> pa.Array:
        """Return a column of all documents as strings, null for empty ones; this reads the inputs again."""
        parts = [batch.order for batch in self.rescan(column, input_only=input_only)]
        values = join_order(parts, column).cast(pa.large_string())
        return pc.if_else(pc.equal(values, ""), None, values)

    def require_column(self, column: str, option_name: str) -> None:
        """Check, before anything is read, that all inputs have a column, and that it has single values."""
        require_column(
            [source for source in self.sources if source.columns()],
            column,
            option_name,
            is_single,
            "its values must be single ones",
        )

    def _begin_scan(self) -> None:
        self._rejections.close(commit=False)
        self._rejections = Rejections(self.quarantine, self._strict)
        self._bounds, self.raw_rows, self.torn_files = [0], 0, []
        self._document_count = 0
        self.skipped = Skipped()

    def _end_scan(self) -> None:
        self.raw_rows = self._bounds[-1]
        torn, rejected = self.torn_files, self.rejected
        if not self.inputs and rejected.total and not self._document_count:
            number = "the only record is" if rejected.total == 1 else f"all {rejected.total:,} records are"
            is_fixed = all(isinstance(source, TextFiles) or hasattr(source, "id_column") for source in self.sources)
            hint = "" if is_fixed else f", and name its column of texts with {option('--text-column')}"
            raise InputError(f"{number} rejected ({rejected.examples[0]}): check the input{hint}")
        if torn and not self.allow_torn and not is_command():
            more = f", and {len(torn) - 1:,} more files are" if len(torn) > 1 else ""
            warnings.warn(f"{torn[0]}{more}; {torn[0].way_out()}", TornInput, stacklevel=2)

    @property
    def torn_summary(self) -> dict[str, Any]:
        """The entry of a summary about torn files; empty if there are none."""
        torn = [{name: value for name, value in asdict(file).items() if value != ""} for file in self.all_torn_files]
        return {"torn": torn} if torn else {}

    @property
    def encodings(self) -> dict[str, str]:
        """The encodings of files that are not in UTF-8 and do not say in which they are, by their names."""
        found: dict[str, str] = {}
        for source in self.sources:
            if isinstance(source, LineSource) and source.encoding == WINDOWS_1252:
                found[source.file.name] = WINDOWS_1252
            elif isinstance(source, TextFiles):
                found |= source.encodings
        return found | ({} if self.reference is None else self.reference.encodings)

    @property
    def all_torn_files(self) -> list[TornFile]:
        """``torn_files``, and those of the reference."""
        return self.torn_files + ([] if self.reference is None else self.reference.torn_files)

    def _batches(self) -> Iterator[Batch]:
        repeats = RepeatedIds()
        for source in self.sources:
            first, row, documents = self._bounds[-1], self._bounds[-1], 0
            noted = list[RecordFault]()
            for batch, faults, rows in split_chunks(source, self.read_options, first, repeats):
                for fault in faults:
                    self._rejections.add(source, fault)
                noted += _noted_faults(source, faults, is_first=not noted)
                row += rows
                documents += len(batch.texts)
                yield batch
            self._finish_source(source, row - first, documents, noted)
            self.skipped.update(getattr(source, "skipped", {}))
        if repeats.count:
            self.skipped.add(RENUMBERED, repeats.count)

    def _finish_source(self, source: Source, rows: int, documents: int, faults: Sequence[RecordFault]) -> None:
        """Record the numbers of rows and documents of a source that was read, and its damage."""
        self._rejections.finish(source, rows)
        self._bounds.append(self._bounds[-1] + rows)
        self._document_count += documents
        lost: dict[str, int] = {}
        firsts: dict[str, RecordFault] = {}
        for fault in faults:
            if fault.reason in TORN:
                name = name_of_row(source, fault.row)
                firsts.setdefault(name, fault)
                lost[name] = lost.get(name, 0) + fault.count
        if isinstance(source, TextFiles):
            self.torn_files += [TornFile(name, 0, fault.reason) for name, fault in firsts.items()]
            # Each file is one row, which is lost if it is rejected; one that is larger than wanted is no surprise.
            for fault in faults:
                name = name_of_row(source, fault.row)
                if name not in firsts and (fault.reason != Reason.TOO_LONG or source.file.max_document is None):
                    self.torn_files.append(TornFile(name, 0, Reason.NOTHING_USABLE, fault.reason))
            return
        is_useless = rows > 0 and not documents
        for name, fault in firsts.items():
            if not is_useless or rows == lost[name]:
                place = f"first in line {fault.line}" if fault.reason == Reason.OPEN_QUOTE else ""
                self.torn_files.append(TornFile(name, rows - lost[name], fault.reason, place))
                is_useless = False
        if is_useless:
            first = faults[0]
            place = f"record {first.row + 1}" if first.line is None else f"line {first.line}"
            number = "its only one is" if rows == 1 else f"all {rows:,} are"
            detail = f"{number} rejected, the first in {place}: {first.reason}"
            self.torn_files.append(TornFile(source.file.name, 0, Reason.NOTHING_USABLE, detail))

    def record_scan(
        self, results: Iterable[tuple[int, Sequence[RecordFault]]], skipped: Mapping[str, int] | None = None
    ) -> None:
        """Record a scan in other processes: for each source its number of rows, and its broken records."""
        self._begin_scan()
        self.skipped.update(skipped or {})
        for source, (rows, faults) in zip(self.sources, results, strict=True):
            for fault in faults:
                self._rejections.add(source, fault)
            self._finish_source(source, rows, rows - sum(fault.count for fault in faults), faults)
        self._end_scan()

    def number_ids(self, ids: pa.Array, raw_rows: np.ndarray) -> pa.Array:
        """Return the ids that documents of a scan in other processes get, in their order, as a scan here gives them."""
        if not any(_numbers_ids(source, self.read_options) for source in self.sources):
            return ids
        repeats = RepeatedIds()
        places = np.searchsorted(raw_rows, self._bounds)
        parts = [
            repeats.numbered(part) if _numbers_ids(source, self.read_options) else part
            for source, (begin, end) in zip(self.sources, pairwise(places.tolist()), strict=True)
            for part in [ids.slice(begin, end - begin)]
        ]
        if repeats.count:
            self.skipped.add(RENUMBERED, repeats.count)
        return pa.concat_arrays(parts)

    def check_unique_ids(self, names: Names) -> None:
        """Raise InputError if several documents have the same id, since verdicts name documents by their ids."""
        if self.reference is not None:
            rows = names.rows[names.input_count :] - self.raw_rows
            ids = None if self.reference.id_column is None else names.reference_names
            self.reference.check_unique_ids(Names(rows, ids))
        repeats = np.zeros(0, np.int64) if names.ids is None else repeated_ids(names.ids)
        if len(repeats):
            later = int(repeats[0])
            example = names.name_at(later)
            rows = names.rows[[names.position_of(example), later]]
            raise self._repeated_ids_error(len(repeats), example, [self._place(row) for row in rows.tolist()])

    def _repeated_ids_error(self, documents: int, example: Any, places: Sequence[str]) -> InputError:
        rows_instead = option("--ids rows", "ids='rows'" if self.inputs else "id_column=''")
        hints = [f"number the rows instead with {rows_instead}"]
        stated = any(self.id_column in getattr(source, "partitions", ()) for source in self.sources)
        column = f"column {self.id_column!r},"
        if stated:
            column += " the name of a folder, which all rows below it have,"
        elif len(set(places)) == 1:
            hints.insert(0, "name each file once")
        elif len(self.sources) > 1 and not self.read_options.by_file:
            file_and_id = option("--ids file+id", "ids='file+id'")
            hints.append(f"put the name of its file before each id with {file_and_id}")
        repeat = "1 document repeats" if documents == 1 else f"{documents:,} documents repeat"
        return InputError(
            f"{repeat} an id of {column} such as {quoted(example)} in {' and in '.join(places)}: {', or '.join(hints)}"
        )

    def _place(self, row: int) -> str:
        source = bisect_right(self._bounds, row) - 1
        own_row = row - self._bounds[source]
        return place_of_row(self.sources[source], own_row) if self.inputs else f"row {own_row}"

    def name_failed_pages(self) -> None:
        """Add to ``failed_pages`` those of the run so far; if there are any, the inputs are read again to find them."""
        reasons = dict(list(self._failures.reasons.items())[self._named :])
        if not reasons:
            return
        self._named += len(reasons)
        named = set[bytes]()
        for batch in self.rescan():
            for row, text in zip(batch.rows.tolist(), batch.texts.cast(pa.large_binary()).to_pylist(), strict=True):
                digest = page_digest(text)
                if digest not in reasons:
                    continue
                named.add(digest)
                self.record_failed_page(row, reasons[digest])
        if is_command():
            # In other programs these may be the pages of another corpus.
            for digest in reasons.keys() - named:
                self.failed_pages.add("a page beside the documents, such as the query", reasons[digest])

    def record_failed_page(self, row: int, reason: str) -> None:
        """Add the page of a raw row to ``failed_pages``; those of the reference follow those of the input."""
        if self.reference is None or row < self.raw_rows:
            place = self._place(row)
        else:
            place = f"the reference, {self.reference._place(row - self.raw_rows)}"
        self.failed_pages.add(place, reason)

    def reject(self, rows: Sequence[int] | np.ndarray, reason: str) -> None:
        """Reject rows for a reason that only the caller knows, such as a missing time; with ``strict``, raise."""
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
    ) -> int:
        """Pass two: write the raw rows under a mask, with all columns, in their order; return their number.

        JSON lines to JSON lines, and delimited text to the same, copy the bytes unchanged. ``added`` has further
        columns, with a row for each kept row. ``progress`` is called with the number of rows written since the last
        call. ``threads`` encode Parquet.
        """
        keep = np.asarray(keep)
        if keep.dtype != np.bool_ or keep.shape != (self.raw_rows,):
            raise ValueError(f"keep must be a bool for each of the {self.raw_rows} raw rows")
        check_output(output, self.inputs, force)
        self._refuse_if_changed()
        if added is not None:
            refuse_clash(self.columns, added)
        report = progress or (lambda rows: None)
        return copy_kept(self._masked(keep), output, self.read_options.text, report, added, threads)

    def check_folder(self, output: str) -> None:
        """Check, before the work, that an output folder can hold an output for each input."""
        if is_folder_name(output):
            output_places(self.sources, output)

    def take(self, rows: Sequence[int] | np.ndarray) -> pa.Table:
        """Return raw rows in the given order, with all columns of the corpus, null where an input has no such column.

        The text column has the texts as they are compared: those of several columns or of a list joined, and of a path
        as a further column of its name. Text files have the columns id and text.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if self.reference is not None and bool((rows >= self.raw_rows).any()):
            return self._take_from_both(rows, self.reference)
        mask = self._mask_of(rows)
        self._refuse_if_changed()
        masked = self._masked(mask)
        try:
            schema = kept_schema(masked, self.text_column)
            tables = [table for source, part in masked for table in source.tables(part, schema)]
        except InputError:
            if not all(may_have_records(source) for source in self.sources):
                raise
            # Records of JSON need not fit one table.
            tables = [texts_of_records(masked, self.read_options.texts)]
            schema = tables[0].schema
        joined = pa.concat_tables(tables) if tables else schema.empty_table()
        if joined.num_rows != np.count_nonzero(mask):
            raise InputError("a rejected row has no place in a table: take only rows of documents")
        for field in declared_schema(self.sources, self.text_column):
            if field.name not in joined.column_names:
                joined = joined.append_column(field, pa.nulls(joined.num_rows, field.type))
        if (
            self.read_options.more_texts
            or self.text_column not in joined.column_names
            or pa.types.is_nested(joined.schema.field(self.text_column).type)
        ):
            joined = self._with_texts(joined)
        place = np.cumsum(mask) - 1
        return joined.take(pa.array(place[rows]))

    def _with_texts(self, table: pa.Table) -> pa.Table:
        """Return a table whose text column has the texts of all columns and paths of texts."""
        columns = [as_bytes(texts_in(table, name)) for name in self.read_options.texts]
        texts = readable_texts(joined_column(columns))
        if self.text_column not in table.column_names:
            return table.append_column(self.text_column, texts)
        return table.set_column(table.column_names.index(self.text_column), self.text_column, texts)

    def _take_from_both(self, rows: np.ndarray, reference: Corpus) -> pa.Table:
        """Return rows of both sides, without columns whose types do not fit together."""
        of_input = rows < self.raw_rows
        tables = [self.take(rows[of_input]), reference.take(rows[~of_input] - self.raw_rows)]
        if reference.text_column != self.text_column:
            names = [name for name in tables[1].column_names if name != self.text_column]
            renamed = [self.text_column if name == reference.text_column else name for name in names]
            tables[1] = tables[1].select(names).rename_columns(renamed)
        for side, table in enumerate(tables):
            texts = pa.chunked_array([as_strings(as_bytes(one_array(table[self.text_column])))])
            at = table.column_names.index(self.text_column)
            tables[side] = table.set_column(at, self.text_column, texts)
        for name in set(tables[0].column_names) & set(tables[1].column_names):
            schemas = [pa.schema([table.schema.field(name).with_nullable(True)]) for table in tables]
            try:
                pa.unify_schemas(schemas, promote_options="permissive")
            except pa.ArrowException:
                tables = [table.drop_columns([name]) for table in tables]
        joined = pa.concat_tables(tables, promote_options="permissive")
        place = np.empty(len(rows), np.int64)
        place[np.concatenate([np.flatnonzero(of_input), np.flatnonzero(~of_input)])] = np.arange(len(rows))
        return joined.take(pa.array(place))

    def sources_of(self, rows: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
        """Return the origin of raw rows: for each row an index into a tuple of names, and the tuple."""
        return origins(self.sources, self._bounds, rows)

    def _mask_of(self, rows: Sequence[int] | np.ndarray) -> np.ndarray:
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and (int(rows.min()) < 0 or int(rows.max()) >= self.raw_rows):
            raise IndexError(f"raw rows go from 0 to {self.raw_rows - 1}")
        mask = np.zeros(self.raw_rows, dtype=bool)
        mask[rows] = True
        return mask

    def _masked(self, mask: np.ndarray) -> list[tuple[Source, np.ndarray]]:
        return [
            (source, mask[start:stop])
            for source, (start, stop) in zip(self.sources, pairwise(self._bounds), strict=True)
        ]

    def _refuse_if_changed(self) -> None:
        for source in self.sources:
            for file in source.files:
                if file.filesystem is not None:
                    file.refuse_if_changed()

    def close(self, *, commit: bool = True) -> None:
        """Put the quarantine file in its place (or remove it) and remove temporary files."""
        try:
            self._rejections.close(commit=commit)
        finally:
            if self._discard_spool is not None:
                self._discard_spool()
            if self.reference is not None:
                self.reference.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close(commit=kind is None)


def _identity(file: InputFile) -> tuple[str, str]:
    """Return what identifies a file; data in memory is always different."""
    if file.name == STDIN:
        return "", STDIN
    if file.filesystem is None:
        return "memory", str(id(file))
    return file.filesystem.type_name, os.path.realpath(file.path)


def _noted_faults(source: Source, faults: Sequence[RecordFault], *, is_first: bool) -> list[RecordFault]:
    """Return the faults that concern whole files, and the first of any kind."""
    if isinstance(source, TextFiles):
        return list(faults)
    return [fault for number, fault in enumerate(faults) if fault.reason in TORN or (is_first and not number)]


def _numbers_ids(source: Source, options: ReadOptions) -> bool:
    """Return whether ids of a source come from outside, such as those of mails: they may repeat, and get numbers."""
    return options.id is not None and getattr(source, "id_column", None) == options.id


def split_chunks(
    source: Source, options: ReadOptions, first: int, repeats: RepeatedIds | None = None
) -> Iterator[tuple[Batch, list[RecordFault], int]]:
    """Yield the documents of each chunk of a source, its broken records, and its number of rows.

    The rows of the documents count from ``first``, those of the broken records from the source's first. ``repeats``
    makes ids distinct that come from outside, such as those of mails.
    """
    row = 0
    # Ids of text files are their names already.
    prefix = "" if isinstance(source, TextFiles) else source.file.name
    with closing(source.chunks(options)) as chunks:
        for chunk in chunks:
            batch, faults = split_chunk(chunk, options, first + row, prefix)
            if repeats is not None and _numbers_ids(source, options):
                batch = replace(batch, ids=repeats.numbered(batch.ids))
            yield batch, [replace(fault, row=fault.row + row) for fault in faults], chunk.row_count
            row += chunk.row_count


#: The names of documents: the column of ids, row numbers, or file and column of ids.
Ids = Literal["column", "rows", "file+id"]


def open_corpus(
    inputs: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    text_column: TextColumn = None,
    id_column: str | None = None,
    order_column: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    max_document: int | None = None,
    ids: Ids = "column",
    allow_torn: bool = False,
    quoting: Quoting = "standard",
) -> Corpus:
    """Open files, folders, globs, URIs or standard input as one corpus.

    A folder stands for its data files, by name, or if it has none for its text files. The other parameters are those of
    ``neardup.dedup_files``.

    Parameters
    ----------
    text_column : str or sequence of str, optional
        Column of texts, or a path such as ``messages[].content``; by default the column with a usual name. Several, as
        names or joined by commas, make one text, line by line.
    id_column : str, optional
        Column of ids, or a path; by default the column with a usual name. The empty string means that there is none.
    order_column : str, optional
        Column for the keep order.
    quarantine : str, optional
        JSON lines file for rejected records; it appears when the corpus is closed.
    max_document : int, optional
        Largest text in bytes; larger ones are rejected.

    Raises
    ------
    InputError
        If an input is missing, unreadable, of unknown format or without a column of texts.
    """
    names = _names_of(inputs)
    if quoting not in get_args(Quoting):
        known = " or ".join(get_args(Quoting))
        raise RecipeError(f"{option('--quoting')} {quoted(quoting)} is not known: give {known}")
    if quarantine is not None:
        check_quarantine(quarantine, names)
    spool = _make_spool()
    try:
        notes: list[str] = []
        files = [
            replace(file, quoting=quoting, max_document=max_document) for file in discover(names, notes, spool.path)
        ]
        sources = open_sources(files, spool.path, notes)
        options = _read_options(sources, ids, text_column, id_column, order_column, max_document)
    except BaseException:
        spool.discard()
        raise
    return Corpus(
        sources,
        options,
        sum(file.size for file in files),
        inputs=names,
        strict=strict,
        quarantine=quarantine,
        allow_torn=allow_torn,
        notes=notes,
        spool=spool,
    )


def _names_of(inputs: Any) -> list[str]:
    is_one = isinstance(inputs, str | os.PathLike) or not isinstance(inputs, Iterable)
    names = [inputs] if is_one else list(inputs)
    for name in names:
        if not isinstance(name, str | os.PathLike):
            raise InputError(f"{quoted(name)} is no name of a file: give a str or a path, or a list of them")
    return [os.fspath(name) for name in names]


def _read_options(
    sources: Sequence[Source],
    ids: Ids,
    text_column: TextColumn,
    id_column: str | None,
    order_column: str | None,
    max_document: int | None,
) -> ReadOptions:
    if ids not in get_args(Ids):
        raise RecipeError(f"{option('--ids')} {quoted(ids)} is not known: give {', '.join(get_args(Ids))}")
    if ids == "rows":
        if id_column:
            choices = f"{option('--ids')} rows and {option('--id-column')} {id_column}"
            raise RecipeError(f"{choices} contradict each other: give one of the two")
        id_column = ""
    options = choose_columns(sources, text_column, id_column, order_column, max_document)
    if ids == "file+id" and options.id is None:
        raise InputError(
            f"{option('--ids')} file+id needs a column of ids, and none is found: name it with "
            f"{option('--id-column')}, or number the rows with {option('--ids')} rows"
        )
    return replace(options, by_file=ids == "file+id")


def _make_spool() -> PartialOutput:
    try:
        return PartialOutput.temporary_folder()
    except OSError as error:
        raise OutputError(
            f"no temporary folder can be made ({one_line(error)}); set TMPDIR to a folder that may be written to"
        ) from None


def corpus_of(
    data: Any, *, text_column: TextColumn = None, id_column: str | None = None, order_column: str | None = None
) -> Corpus:
    """Return data in memory as a corpus: texts, or columns in any form that `tables.table_of` accepts.

    The other parameters are those of `open_corpus`.
    """
    table = table_of(data)
    if not table.num_columns:
        raise InputError("the data has no columns: give texts or a table with a column of texts")
    columns = TableColumns(table)
    source = ColumnarSource(InputFile(None, "", IN_MEMORY, 0, None), columns, "slice")
    options = choose_columns([source], text_column, id_column, order_column, None)
    paths = [path.as_text() for name in options.texts if (path := source.find_column(name)) is not None]
    columns.cut([path.root for path in paths])
    text_bytes = sum(
        int(lengths_of(as_bytes(path.of_array(chunk))).sum()) for path in paths for chunk in table[path.root].chunks
    )
    return Corpus([source], options, text_bytes)


def cluster_column(name: str | None) -> OrderColumn | None:
    """Return the order column for a column whose equal values mean duplicates."""
    return None if name is None else OrderColumn(name, "clusters")


def as_corpus(
    data: Any, text_column: TextColumn = None, id_column: str | None = None, clusters: str | None = None
) -> Corpus:
    """Return data in memory as a corpus, and open files as they are.

    Raises ``RecipeError`` if columns are named for open files.
    """
    if not isinstance(data, Corpus):
        return corpus_of(data, text_column=text_column, id_column=id_column, order_column=cluster_column(clusters))
    for name, value in {"text_column": text_column, "id_column": id_column, "clusters": clusters}.items():
        if value is not None:
            raise RecipeError(f"{name} {value!r} comes too late for open files; give it to open_files")
    return data
