"""Documents to show to people: ids, titles, times, and the compared parts of their texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.classifier.vector import TITLE_NAMES, Records, Vector, find_usual_column, read_records
from neardup.documents import Corpus
from neardup.documents.column_paths import find_in_table
from neardup.documents.records import Names, value_texts
from neardup.documents.tables import TIME_NAMES
from neardup.errors import InputError
from neardup.features.reading import DocumentColumns, Progress, compared_texts, ignore_progress
from neardup.kernels import Integers
from neardup.pages.diff import ShownDocument
from neardup.recipe import Recipe

#: Characters of a time up to whole seconds.
_LONGEST_TIME = 19
_NUMBER = re.compile(r"0|-?[1-9][0-9]{0,17}")


class DocumentReader:
    """Reads single documents of a scanned corpus, which stays open, by position, and keeps them.

    Columns of titles and times are detected by their names if not given.
    """

    def __init__(
        self,
        corpus: Corpus,
        names: Names,
        *,
        content: str = "",
        title_column: str = "",
        time_column: str = "",
        threads: int = 1,
    ) -> None:
        self.names = names
        self._corpus, self._threads = corpus, threads
        self._recipe = Recipe(content=content)
        self._columns = {"title_column": title_column, "time_column": time_column}
        self._documents: dict[int, ShownDocument] = {}
        self._positions: dict[str, int] = {}

    @classmethod
    def from_corpus(cls, corpus: Corpus, *, report: Progress | None = None, **options: Any) -> Self:
        """Scan a corpus for the ids of its documents, and return a reader of it; the options are those of the class."""
        columns = DocumentColumns()
        consumed = 0
        for batch in corpus.scan():
            columns.add(batch)
            consumed += batch.bytes_read
            (report or ignore_progress)("read", consumed, corpus.total_bytes)
        return cls(corpus, columns.names(), **options)

    def id(self, position: int) -> str:
        """Return the id of a document as text."""
        return f"{self.names.name_at(position)}{' (reference)' if position >= self.names.input_count else ''}"

    def position(self, name: str) -> int:
        """Return the position of the document with that id, -1 if there is none."""
        if name not in self._positions:
            self.find([name])
        return self._positions[name]

    def find(self, names: Iterable[str]) -> None:
        """Look up many ids at once, for ``position``."""
        missing = [name for name in dict.fromkeys(names) if name not in self._positions]
        ids = pa.array(self.names.rows) if self.names.ids is None else self.names.ids
        has_numbers = pa.types.is_integer(ids.type)
        # The id 7 is "7" and not "07".
        valid = [name for name in missing if not has_numbers or _NUMBER.fullmatch(name)]
        values = pa.array([int(name) if has_numbers else name for name in valid], ids.type)
        found = pc.fill_null(pc.index_in(values, value_set=ids), -1).to_pylist()
        self._positions |= dict.fromkeys(missing, -1) | dict(zip(valid, found, strict=True))

    def load(self, positions: Integers) -> None:
        """Read the documents at these positions that have not been read yet."""
        unread = [position for position in np.unique(positions).tolist() if position not in self._documents]
        if not unread:
            return
        rows = self.names.rows[unread]
        table = self._corpus.take(rows)
        texts = compared_texts(table[self._corpus.text_column].to_pylist(), self._recipe, self._threads)
        titles, times = self._values(table, "title_column", TITLE_NAMES), self._values(table, "time_column", TIME_NAMES)
        for position, text, title, time in zip(unread, texts, titles, times, strict=True):
            self._documents[position] = ShownDocument(self.id(position), title, text, time[:_LONGEST_TIME])

    def _values(self, table: pa.Table, option: str, usual_names: Sequence[str]) -> list[str]:
        """Return the values of the named column, or of one with a usual name; empty texts if there is none."""
        named = self._columns[option]
        if named and find_in_table(table, named) is None:
            columns, flag = ", ".join(table.column_names), "--" + option.replace("_", "-")
            raise InputError(f"there is no column {named!r} for {flag}; the columns are {columns}")
        column = named or find_usual_column(table.column_names, usual_names)
        if not column or column == self._corpus.text_column:
            return [""] * table.num_rows
        return value_texts(find_in_table(table, column))

    def document(self, position: int) -> ShownDocument:
        """Return the document at a position."""
        if position not in self._documents:
            self.load(np.array([position]))
        return self._documents[position]

    def text_checksum(self, position: int) -> str:
        """Return a checksum of a document's text: 16 hexadecimal digits."""
        text = self.document(position).text
        return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()

    def records(self, positions: Integers, vector: Vector) -> Records:
        """Return what a vector compares of documents."""
        self.load(positions)
        texts = [self._documents[position].text for position in positions.tolist()]
        if not (vector.needs_titles or vector.needs_times):
            return Records(texts)
        columns: dict[str, Any] = self._columns
        return read_records(self._corpus.take(self.names.rows[positions]), texts, vector, **columns)
